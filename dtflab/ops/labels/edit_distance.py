"""How many steps it takes to turn one sequence into another: Levenshtein's distance.

Stands for `core/kernels/edit_distance_op.cc`.

Rule: a sequence is the last dimension of a sparse tensor; there is one distance for each place of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dtflab.base.grouping import grouped
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.static_value import folded_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.messages import invalid, shape_text


def levenshtein(truth: Sequence[Any], hypothesis: Sequence[Any]) -> int:
    """How many insertions, deletions and replacements lead from one sequence to the other."""
    row = list(range(len(hypothesis) + 1))
    for i, wanted in enumerate(truth, 1):
        before, row[0] = row[0], i
        for j, found in enumerate(hypothesis, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (wanted != found))
    return row[-1]


def _sequences(indices: Any, values: Any) -> dict[tuple[int, ...], list[Any]]:
    """The sequences by their place; inside of each the values stand in order."""
    return grouped(zip(map(tuple, indices[:, :-1].tolist()), values.tolist()))


@op("""EditDistance(hypothesis_indices: int64, hypothesis_values: T, hypothesis_shape: int64, truth_indices: int64,
                    truth_values: T, truth_shape: int64) -> (output: float)
       normalize: bool = true, T: type""")
class EditDistance(Op):
    grad = no_gradient

    def infer(op):
        for start in (0, 3):
            for tensor, rank in zip(op.inputs[start:], (2, 1, 1)):
                tensor.shape.with_rank(rank)
        one, other = folded_value(op.inputs[2]), folded_value(op.inputs[5])
        if one is None or other is None:
            return [TensorShape(None)]
        if len(one) != len(other):
            text = f"Num elements of hypothesis_shape does not match truth_shape: {len(one)} vs. {len(other)}"
            raise ValueError(text)
        return [TensorShape(np.maximum(one, other)[:-1].tolist())]

    def kernel(node, xp, indices, values, shape, truth_indices, truth_values, truth_shape):
        normalize = node["normalize"]
        if len(shape) != len(truth_shape) or len(shape) < 2:
            given = f"{shape_text(truth_shape.tolist())} and {shape_text(shape.tolist())}"
            raise invalid(f"truth_shape and hypothesis_shape must be vectors of one length, 2 at least: {given}")
        out = np.zeros(np.maximum(shape, truth_shape)[:-1].tolist(), np.float32)
        truths, hypotheses = _sequences(truth_indices, truth_values), _sequences(indices, values)
        for place in {**truths, **hypotheses}:
            truth, hypothesis = truths.get(place, []), hypotheses.get(place, [])
            steps = levenshtein(truth, hypothesis)
            out[place] = steps if not normalize else steps / len(truth) if truth else np.inf
        return out
