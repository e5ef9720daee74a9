"""The labels that a network trained by `ctc_loss` says: the best class of each step, or a search over paths.

Stands for `core/kernels/ctc_decoder_ops.cc` and `core/util/ctc/ctc_beam_search.h`. Left out: scorers, such as a
language model's.

How the search goes: a beam is a sequence of labels, with log p of the paths that say it so far and end in its last
label, in a blank, or in either. A step lets every beam go on, and grow by a label if that is better than the worst
that is kept.

Rule: the blank is the last class; the greedy decoder takes another one as `blank_index`.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from dtflab.base import errors
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, elements, no_gradient, op
from dtflab.graph.operation import Operation
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.costs import of_first
from dtflab.ops.messages import invalid


def _check(inputs: Any, lengths: Any) -> None:
    if inputs.ndim != 3:
        raise invalid("inputs is not a 3-Tensor")
    if not inputs.size:
        raise invalid("inputs must not be empty")
    if lengths.ndim != 1:
        raise invalid("sequence_length is not a vector")
    max_time, batch, _ = inputs.shape
    if len(lengths) != batch:
        text = f"len(sequence_length):  {len(lengths)} batch_size: {batch}"
        raise errors.FailedPreconditionError.of(f"len(sequence_length) != batch_size.  {text}")
    for b, length in enumerate(lengths.tolist()):
        if length > max_time:
            raise errors.FailedPreconditionError.of(f"sequence_length({b}) <= {max_time}")


def _shapes(op: Operation, paths: int) -> list[TensorShape]:
    batch = op.inputs[0].shape.with_rank(3)[1].merge_with(op.inputs[1].shape.with_rank(1)[0])
    sparse = [TensorShape([None, 2])] * paths + [TensorShape([None])] * paths + [TensorShape([2])] * paths
    return [*sparse, TensorShape([batch, paths])]


def _sparse(sequences: list[list[int]]) -> tuple[Any, Any, Any]:
    """Indices, values and shape of a sparse matrix with a sequence in each row."""
    lengths = [len(s) for s in sequences]
    rows = np.repeat(np.arange(len(sequences)), lengths)
    columns = np.concatenate([np.arange(n) for n in lengths])
    values = np.array([x for s in sequences for x in s], np.int64)
    return np.stack([rows, columns], 1).astype(np.int64), values, np.array([len(sequences), max(lengths)], np.int64)


@op("""CTCGreedyDecoder(inputs: T, sequence_length: int32) ->
       (decoded_indices: int64, decoded_values: int64, decoded_shape: int64, log_probability: T)
       merge_repeated: bool = false, blank_index: int = -1, T: {float, double} = float""")
class CTCGreedyDecoder(Op):
    grad = no_gradient
    flops = of_first

    def infer(op):
        return _shapes(op, 1)

    def kernel(node: Node, xp: Any, inputs: Any, lengths: Any) -> Any:
        merge, blank_index = node["merge_repeated"], node["blank_index"]
        _check(inputs, lengths)
        classes = inputs.shape[2]
        if not -classes <= blank_index < classes:
            raise invalid(f"blank_index expected to be between {-classes} and {classes - 1} but was {blank_index}")
        best, score = inputs.argmax(2), inputs.max(2)
        said = np.arange(len(inputs))[:, None] < lengths
        kept = said & (best != blank_index % classes)
        if merge:
            kept[1:] &= best[1:] != best[:-1]
        sequences = [best[kept[:, b], b].tolist() for b in range(inputs.shape[1])]
        scores = -np.where(said, score, 0).sum(0).astype(inputs.dtype)
        return *_sparse(sequences), scores[:, None]


# -- the search ---------------------------------------------------------------------------------------

_NEVER = -math.inf


class _LogP(NamedTuple):
    """Log probabilities of a beam's paths: all, those that end in a blank, those that end in its last label."""

    total: float = _NEVER
    blank: float = _NEVER
    label: float = _NEVER


class _Beam:
    """A sequence of labels: that of its parent and one more."""

    __slots__ = ("children", "label", "new", "old", "parent")

    def __init__(self, parent: _Beam | None, label: int, new: _LogP) -> None:
        self.parent, self.label, self.new, self.old = parent, label, new, _LogP()
        self.children: dict[int, _Beam] = {}

    def sequence(self, merge_repeated: bool) -> list[int]:
        """The labels of the beam; equal neighbours become one with `merge_repeated`."""
        labels: list[int] = []
        beam = self
        while beam.parent is not None:
            labels.append(beam.label)
            beam = beam.parent
        labels.reverse()
        return [key for key, _ in itertools.groupby(labels)] if merge_repeated else labels


Kept = list[tuple[float, int, _Beam]]  # a heap, the worst first; the numbers only tell equal ones apart


def _log_add(a: float, b: float) -> float:
    low, high = (a, b) if a < b else (b, a)
    return high if low == _NEVER else high + math.log1p(math.exp(low - high))


def _search(log_p: Any, width: int) -> list[_Beam]:
    """The best beams after all steps, best first; `log_p` is [time, classes]."""
    beams = [_Beam(None, -1, _LogP(0.0, 0.0))]
    for step in log_p:
        beams = _step(beams, step, width)
    return beams


def _step(beams: list[_Beam], log_p: Any, width: int) -> list[_Beam]:
    numbers = itertools.count()
    for beam in beams:
        beam.old = beam.new
    kept: Kept = []
    for beam in beams:
        beam.new = _going_on(beam, log_p)
        kept.append((beam.new.total, next(numbers), beam))
    heapq.heapify(kept)
    for beam in beams:
        _grow(beam, log_p, kept, width, numbers)
    return [beam for _, _, beam in sorted(kept, key=lambda item: -item[0])]


def _going_on(beam: _Beam, log_p: Any) -> _LogP:
    """The paths that still say the same: the last label again, or said only now after its parent; or a blank."""
    label = _NEVER
    if beam.parent is not None:
        label = beam.new.label
        if beam.parent.new.total != _NEVER:
            old = beam.parent.old
            label = _log_add(label, old.blank if beam.label == beam.parent.label else old.total)
        label += float(log_p[beam.label])
    blank = beam.old.total + float(log_p[-1])
    return _LogP(_log_add(blank, label), blank, label)


def _grow(beam: _Beam, log_p: Any, kept: Kept, width: int, numbers: Iterator[int]) -> None:
    """Keep those children of the beam that are better than the worst that is kept."""

    def is_candidate(total: float) -> bool:
        return total > _NEVER and (len(kept) < width or total > kept[0][0])

    if not is_candidate(beam.old.total):
        return
    totals = beam.old.total + log_p[:-1]
    if beam.label >= 0:
        totals[beam.label] = beam.old.blank + log_p[beam.label]  # a label twice has a blank between
    bound = kept[0][0] if len(kept) >= width else _NEVER
    for label in sorted({*np.flatnonzero(totals > bound).tolist(), *beam.children}):
        child, total = beam.children.get(label), float(totals[label])
        if child is not None and child.new.total != _NEVER:
            continue
        if not is_candidate(total):
            if child is not None:
                child.old = _LogP()  # as in TensorFlow: a child that is dropped in this step can't grow either
            continue
        if child is None:
            child = beam.children[label] = _Beam(beam, label, _LogP())
        child.new = _LogP(total, _NEVER, total)
        if len(kept) == width:
            _, _, worst = heapq.heapreplace(kept, (total, next(numbers), child))
            worst.new = _LogP()
        else:
            heapq.heappush(kept, (total, next(numbers), child))


@op("""CTCBeamSearchDecoder(inputs: T, sequence_length: int32) -> (decoded_indices: top_paths * int64,
       decoded_values: top_paths * int64, decoded_shape: top_paths * int64, log_probability: T)
       beam_width: int >= 1, top_paths: int >= 1, merge_repeated: bool = true, T: {float, double} = float""")
class CTCBeamSearchDecoder(Op):
    grad = no_gradient

    def infer(op):
        return _shapes(op, op.get_attr("top_paths"))

    def kernel(node: Node, xp: Any, inputs: Any, lengths: Any) -> Any:
        width, paths, merge = node["beam_width"], node["top_paths"], node["merge_repeated"]
        _check(inputs, lengths)
        log_p = inputs.astype(np.float64)
        log_p -= log_p.max(2, keepdims=True)
        log_p -= np.log(np.exp(log_p).sum(2, keepdims=True))
        found = [_best(_search(log_p[:n, b], width), paths, width) for b, n in enumerate(lengths.tolist())]
        parts = [_sparse([beams[p].sequence(merge) for beams in found]) for p in range(paths)]
        scores = np.array([[beam.new.total for beam in beams] for beams in found], inputs.dtype)
        return [*(part[k] for k in range(3) for part in parts), scores]

    def flops(node, ins, outs):
        return 100 * node["beam_width"] * elements(ins[0])


def _best(beams: list[_Beam], paths: int, width: int) -> list[_Beam]:
    if paths > width:
        raise invalid("requested more paths than the beam width.")
    if paths > len(beams):
        raise invalid("Less leaves in the beam search than requested.")
    return beams[:paths]
