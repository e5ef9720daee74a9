"""Ops that put strings together: element by element, along dimensions, by segments.

Stands for `core/kernels/{string_join,reduce_join,unsorted_segment_join}_op.cc`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dtflab.base import errors
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.static_value import constant_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.messages import invalid, shape_text


@op("""StringJoin(inputs: N * string) -> (output: string)
       N: int >= 0
       separator: string = ''""")
class StringJoin(Op):
    """Element by element; scalars are joined to every element."""

    grad = no_gradient

    def infer(op):
        found = TensorShape([])
        for shape in (t.shape for t in op.inputs):
            if shape.ndims is None:
                return [TensorShape(None)]
            if shape.ndims:
                found = shape if found.ndims == 0 else found.merge_with(shape)
        return [found]

    def bind(node, xp):
        separator = node["separator"]

        def join(*inputs):
            shape = next((x.shape for x in inputs if np.ndim(x)), ())
            for x in inputs:
                if np.ndim(x) and x.shape != shape:
                    raise invalid(f"Input shapes do not match: {shape_text(shape)} vs. {shape_text(x.shape)}")
            found = np.full(shape, b"", object)
            for i, items in enumerate(zip(*(np.broadcast_to(x, shape).flat for x in inputs), strict=True)):
                found.flat[i] = separator.join(items)
            return found

        return join


@op("""ReduceJoin(inputs: string, reduction_indices: int32) -> (output: string)
       keep_dims: bool = False
       separator: string = ''""")
class ReduceJoin(Op):
    """The strings along some dimensions put together, those of the first one first."""

    grad = no_gradient

    def infer(operation):
        shape, axes = operation.inputs[0].shape, constant_value(operation.inputs[1])
        keep = operation.attrs["keep_dims"]
        if shape.ndims is None or (axes is None and not keep):
            return [TensorShape(None)]
        if axes is None:
            return [TensorShape([None] * shape.ndims)]
        for axis in np.ravel(axes):
            if not -shape.ndims <= axis < shape.ndims:
                raise ValueError(f"Invalid reduction dimension {axis} for input with {shape.ndims} dimensions.")
        gone = {int(axis) % shape.ndims for axis in np.ravel(axes)}
        sizes = [1 if i in gone else size for i, size in enumerate(shape.as_list()) if keep or i not in gone]
        return [TensorShape(sizes)]

    def bind(node, xp):
        separator, keep = node["separator"], node["keep_dims"]

        def join(inputs, axes):
            ordered = _checked_axes(np.ravel(axes), inputs.ndim)
            kept = [i for i, _ in enumerate(inputs.shape) if i not in ordered]
            sizes = [inputs.shape[i] for i in kept]
            rows = inputs.transpose(kept + ordered[::-1]).reshape(math.prod(sizes), -1 if inputs.size else 0)
            found = _filled(sizes, (separator.join(row) for row in rows))
            return found.reshape([1 if i in ordered else n for i, n in enumerate(inputs.shape)]) if keep else found

        return join


def _checked_axes(axes: Any, ndims: int) -> list[int]:
    found: list[int] = []
    for axis in axes.tolist():
        if not -ndims <= axis < ndims:
            raise errors.OutOfRangeError.of(f"Invalid reduction dimension {axis} for input with {ndims} dimension(s)")
        if axis % ndims in found:
            raise invalid(f"Duplicate reduction dimension {axis % ndims}")
        found.append(axis % ndims)
    return found


def _filled(shape: Sequence[int], items: Iterable[bytes]) -> Any:
    found = np.empty(shape, object)
    for i, item in enumerate(items):
        found.flat[i] = item
    return found


@op("""UnsortedSegmentJoin(inputs: string, segment_ids: Tindices, num_segments: Tnumsegments) -> (output: string)
       separator: string = ''
       Tindices: {int32, int64}
       Tnumsegments: {int32, int64} = int32""")
class UnsortedSegmentJoin(Op):
    """Per segment, the strings of the rows that belong to it put together."""

    def infer(operation):
        inputs, ids = operation.inputs[0].shape, operation.inputs[1].shape
        if inputs.ndims is None or ids.ndims is None:
            return [TensorShape(None)]
        inputs[: ids.ndims].merge_with(ids)
        count = constant_value(operation.inputs[2])
        return [TensorShape([None if count is None else int(count)]).concatenate(inputs[ids.ndims :])]

    def bind(node, xp):
        separator = node["separator"]

        def join(inputs, ids, count):
            if count < 0:
                raise invalid(f"Number of segments must be non-negative but got {count}")
            if ids.size and not 0 <= ids.min() <= ids.max() < count:
                raise invalid("segment_ids are not allowed to exceed num_segments or to have negative values.")
            inner = inputs.shape[ids.ndim :]
            rows = inputs.reshape(ids.size, math.prod(inner))
            segments: list[list[list[bytes]]] = [[[] for _ in range(rows.shape[1])] for _ in range(count)]
            for row, segment in zip(rows.tolist(), ids.ravel().tolist(), strict=True):
                for words, word in zip(segments[segment], row, strict=True):
                    words.append(word)
            return _filled((int(count), *inner), (separator.join(words) for segment in segments for words in segment))

        return join
