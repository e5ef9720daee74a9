"""group_by_window and bucket_by_sequence_length: elements of equal keys together.

Stands for `python/data/ops/group_by_window_op.py` and `Dataset.bucket_by_sequence_length`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dtflab.base import nest
from dtflab.data.dataset import Dataset
from dtflab.data.structure import DatasetStructure, TensorStructure
from dtflab.data.traced import TracedFunction
from dtflab.graph import dtypes
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays.functions import cast

_KEY = TensorStructure(dtypes.int64, TensorShape([]))


def group_by_window(
    dataset: Dataset,
    key_func: Callable[..., Any],
    reduce_func: Callable[..., Any],
    window_size: Any = None,
    window_size_func: Callable[..., Any] | None = None,
) -> Dataset:
    """See `tf.data.experimental.group_by_window`."""
    if (window_size is None) == (window_size_func is None):
        raise ValueError("Either the `window_size` argument or the `window_size_func` argument must be specified.")
    size_func = window_size_func or (lambda key: window_size)
    structure = dataset._structure
    functions = {
        "key": TracedFunction(lambda *x: cast(key_func(*x), dtypes.int64), structure, "group_by_window"),
        "reduce": TracedFunction(reduce_func, (_KEY, DatasetStructure(structure)), "group_by_window"),
        "window_size": TracedFunction(lambda key: cast(size_func(key), dtypes.int64), _KEY, "group_by_window"),
    }
    for part in ("key", "window_size"):
        if functions[part].structure != _KEY:
            raise ValueError(f"`{part}_func` must return a single tf.int64 scalar, not {functions[part].structure}.")
    made = functions["reduce"].structure
    if not isinstance(made, DatasetStructure):
        raise TypeError(f"`reduce_func` must return a single `tf.data.Dataset` object, not {made}.")
    inputs: dict[str, Any] = {}
    for part, function in functions.items():
        inputs[f"{part}_func"], inputs[f"{part}_func_other_arguments"] = function.attr, function.captures
    return dataset._with("GroupByWindowDataset", made.element, **inputs)


def bucket_by_sequence_length(
    dataset: Dataset,
    element_length_func: Callable[..., Any],
    boundaries: Sequence[int],
    batch_sizes: Sequence[int],
    padded_shapes: Any,
    padding_values: Any,
    pad_to_boundary: bool,
    no_padding: bool,
    drop_remainder: bool,
) -> Dataset:
    """See `tf.data.experimental.bucket_by_sequence_length`."""
    if len(batch_sizes) != len(boundaries) + 1:
        raise ValueError(
            f"`len(bucket_batch_sizes)` must equal `len(bucket_boundaries) + 1` but `len(bucket_batch_sizes)="
            f"{len(batch_sizes)}` and `len(bucket_boundaries)={len(boundaries)}`."
        )

    def bucket(*element: Any) -> Any:
        length = cast(convert_to_tensor(element_length_func(*element)), dtypes.int64)
        return sum((cast(length >= boundary, dtypes.int64) for boundary in boundaries), constant(0, dtypes.int64))

    def size(number: Any) -> Any:
        return constant(list(batch_sizes), dtypes.int64)[number]

    def batch(number: Any, group: Dataset) -> Dataset:
        if no_padding:
            return group.batch(size(number), drop_remainder)
        shapes = padded_shapes or group.output_shapes
        if pad_to_boundary:
            longest = constant([boundary - 1 for boundary in boundaries], dtypes.int64)[number]
            shapes = nest.map_structure(lambda shape: _filled(shape, longest), shapes)
        return group.padded_batch(size(number), shapes, padding_values, drop_remainder)

    return group_by_window(dataset, bucket, batch, window_size_func=size)


def _filled(shape: Any, size: Any) -> Any:
    """The shape with `size` in place of what is unknown."""
    sizes = [size if d is None else constant(d, dtypes.int64) for d in TensorShape(shape).as_list()]
    return convert_to_tensor(sizes, dtypes.int64) if sizes else TensorShape([])
