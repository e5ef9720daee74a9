"""collapse_repeated: what the labels of connectionist temporal classification are before they are compared.

Stands for `collapse_repeated` of `python/ops/ctc_ops.py`.
"""

from __future__ import annotations

from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.indexing.functions import boolean_mask, sequence_mask
from dtflab.ops.math import functions as math
from dtflab.ops.reduce import functions as reduce


def collapse_repeated(labels: Any, seq_length: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """[batch, time] labels of which runs of equal ones count once, shifted to the left, 0 behind; and their lengths."""
    with name_scope(name, "collapse_repeated_labels", [labels, seq_length]):
        labels = convert_to_tensor(labels, name="labels")
        seq_length = convert_to_tensor(seq_length, name="seq_length")
        first = arrays.ones_like(labels[:, :1], dtypes.bool)
        kept = arrays.concat([first, math.not_equal(labels[:, 1:], labels[:, :-1])], axis=1)
        kept = math.logical_and(kept, sequence_mask(seq_length, maxlen=_size(labels, 1)))
        lengths = reduce.reduce_sum(arrays.cast(kept, dtypes.int32), axis=1)
        longest = reduce.reduce_max(lengths)
        moved = _moved(labels, kept, sequence_mask(lengths, maxlen=longest))
        return arrays.reshape(moved, [_size(labels, 0), longest]), arrays.cast(lengths, seq_length.dtype)


def _moved(labels: Tensor, kept: Tensor, goals: Tensor) -> Tensor:
    """The labels that are kept, at the places that are goals: both in the order of rows; as a vector."""
    labels, kept, goals = (arrays.reshape(x, [-1]) for x in (labels, kept, goals))
    places = arrays.range(_size(goals, 0))
    return indexing.scatter_nd(
        indices=arrays.expand_dims(boolean_mask(places, goals), axis=1),
        updates=boolean_mask(labels, kept),
        shape=arrays.shape(goals),
    )


def _size(tensor: Tensor, axis: int) -> Any:
    return tensor.shape[axis].value or arrays.shape(tensor)[axis]
