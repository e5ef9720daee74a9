"""collapse_repeated: what the labels of connectionist temporal classification are before they are compared.

Stands for `collapse_repeated` of `python/ops/ctc_ops.py`.
"""

from __future__ import annotations

from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.ops.arrays import casting, constant as constants, gathering, identity as array, joining, reshaping
from dtflab.ops.arrays.arranging import sequence_mask
from dtflab.ops.math import logic
from dtflab.ops.reduce import reduction
from dtflab.ops.reduce.segments import boolean_mask


def collapse_repeated(labels: Any, seq_length: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """[batch, time] labels of which runs of equal ones count once, shifted to the left, 0 behind; and their lengths."""
    with name_scope(name, "collapse_repeated_labels", [labels, seq_length]):
        labels = convert_to_tensor(labels, name="labels")
        seq_length = convert_to_tensor(seq_length, name="seq_length")
        first = constants.ones_like(labels[:, :1], dtypes.bool)
        kept = joining.concat([first, logic.not_equal(labels[:, 1:], labels[:, :-1])], axis=1)
        kept = logic.logical_and(kept, sequence_mask(seq_length, maxlen=_size(labels, 1)))
        lengths = reduction.reduce_sum(casting.cast(kept, dtypes.int32), axis=1)
        longest = reduction.reduce_max(lengths)
        moved = _moved(labels, kept, sequence_mask(lengths, maxlen=longest))
        return reshaping.reshape(moved, [_size(labels, 0), longest]), casting.cast(lengths, seq_length.dtype)


def _moved(labels: Tensor, kept: Tensor, goals: Tensor) -> Tensor:
    """The labels that are kept, at the places that are goals: both in the order of rows; as a vector."""
    labels, kept, goals = (reshaping.reshape(x, [-1]) for x in (labels, kept, goals))
    places = constants.range(_size(goals, 0))
    return gathering.scatter_nd(
        indices=reshaping.expand_dims(boolean_mask(places, goals), axis=1),
        updates=boolean_mask(labels, kept),
        shape=array.shape(goals),
    )


def _size(tensor: Tensor, axis: int) -> Any:
    return tensor.shape[axis].value or array.shape(tensor)[axis]
