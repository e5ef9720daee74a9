"""Ops that take strings apart, substr and split, and put them together: element by element, along axes, by segments.

Stands for `core/kernels/{substr,string_split,string_join,reduce_join,unsorted_segment_join}_op.cc`. Left out: results
that are RaggedTensors.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from dtflab.base import errors
from dtflab.graph import dtypes
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.static_value import constant_value
from dtflab.graph.tensor_shape import TensorShape, infer_broadcast
from dtflab.ops import shapes
from dtflab.ops.messages import check_rank, invalid, shape_text
from dtflab.ops.sparse_arrays import sparse_rows
from dtflab.ops.text.elementwise_ops import CHARACTER


@op("""Substr(input: string, pos: T, len: T) -> (output: string)
       T: {int32, int64}, unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'""")
class Substr(Op):
    def infer(operation):
        text, pos, length = (tensor.shape for tensor in operation.inputs)
        if pos.ndims is not None and length.ndims is not None:
            if pos.ndims != length.ndims:
                raise ValueError(f"Shape must be rank {length.ndims} but is rank {pos.ndims}")
            if not pos.is_compatible_with(length):
                raise ValueError(f"pos and len shapes must match: {shape_text(pos)} vs. {shape_text(length)}")
        return [infer_broadcast(text, pos)]

    def kernel(node, xp, texts, pos, length):
        in_bytes = node["unit"] == b"BYTE"
        if pos.shape != length.shape:
            raise invalid(f"pos and len should have the same shape, got: {shape_text(pos)} vs. {shape_text(length)}")
        try:
            texts, pos, length = np.broadcast_arrays(texts, pos, length)
        except ValueError:
            raise invalid(f"Incompatible shapes: {shape_text(texts)} vs. {shape_text(pos)}") from None
        cut = _cut_bytes if in_bytes else _cut_characters
        parts = zip(texts.ravel().tolist(), pos.ravel().tolist(), length.ravel().tolist())
        return np.array([cut(*part, i) for i, part in enumerate(parts)], object).reshape(texts.shape)


def _cut_bytes(text: bytes, pos: int, length: int, i: int) -> bytes:
    if not -len(text) <= pos <= len(text):
        raise invalid(f"pos {pos} out of range for string b'{text.decode(errors='replace')}' at index {i}")
    return _cut(text, pos, length)


def _cut_characters(text: bytes, pos: int, length: int, i: int) -> bytes:
    characters = CHARACTER.findall(text)
    if not -len(characters) <= pos <= len(characters):
        raise invalid(f"pos {pos} out of range for string at index {i}")
    return b"".join(_cut(characters, pos, max(length, 0)))  # TensorFlow's steps over characters never go back


def _cut(items: Any, pos: int, length: int) -> Any:
    """`length` items from `pos` on, which counts from the end if it is negative; all if `length` is."""
    start = pos + len(items) if pos < 0 else pos
    return items[start : len(items) if length < 0 else start + length]


# -- split --------------------------------------------------------------------------------------------


class _Split(Op):
    """The parts of each string of a vector, as a sparse matrix."""

    infer = shapes.fixed([None, 2], [None], [2], ranks=[1, 0])
    parts: Callable[[bytes, bytes, Any], list[bytes]]  # of a text, the separator and the node

    @classmethod
    def kernel(cls, node, xp, strings, separator):
        check_rank(strings, 1, "input must be a vector, got shape: {}")
        if separator.ndim:
            wanted = "delimiter must scalar" if node.op == "StringSplit" else "sep must be a scalar"
            raise invalid(f"{wanted}, got shape: {shape_text(separator)}")
        at = separator.item()
        return sparse_rows([cls.parts(text, at, node) for text in strings.tolist()], dtypes.string)


@op("""StringSplit(input: string, delimiter: string) -> (indices: int64, values: string, shape: int64)
       skip_empty: bool = true""")
class StringSplit(_Split):
    """At each of the characters in `delimiter`; into bytes if there are none."""

    grad = no_gradient

    def parts(text, at, node):
        parts = re.split(b"[" + re.escape(at) + b"]", text) if at else [bytes([byte]) for byte in text]
        return [part for part in parts if part] if node["skip_empty"] or not text else parts


@op("""StringSplitV2(input: string, sep: string) -> (indices: int64, values: string, shape: int64)
       maxsplit: int = -1""")
class StringSplitV2(_Split):
    """As Python's `split`: at `sep`, or at white space if it is empty."""

    def parts(text, at, node):
        return text.split(at, node["maxsplit"]) if at else _words(text, node["maxsplit"])


def _words(text: bytes, most: int) -> list[bytes]:
    """Split at white space. After `most` splits there is one more part, even if it is empty."""
    parts = text.split(None, most) if most else [text]
    return [*parts, b""] if len(parts) == most else parts


# -- join --------------------------------------------------------------------------------------------


@op("StringJoin(inputs: N * string) -> (output: string) where N: int >= 0, separator: string = ''")
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

    def kernel(node, xp, *inputs):
        separator = node["separator"]
        shape = next((x.shape for x in inputs if np.ndim(x)), ())
        for x in inputs:
            if np.ndim(x) and x.shape != shape:
                raise invalid(f"Input shapes do not match: {shape_text(shape)} vs. {shape_text(x.shape)}")
        found = np.full(shape, b"", object)
        for i, items in enumerate(zip(*(np.broadcast_to(x, shape).flat for x in inputs), strict=True)):
            found.flat[i] = separator.join(items)
        return found


@op("""ReduceJoin(inputs: string, reduction_indices: int32) -> (output: string)
       keep_dims: bool = False, separator: string = ''""")
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

    def kernel(node, xp, inputs, axes):
        separator, keep = node["separator"], node["keep_dims"]
        ordered = _checked_axes(np.ravel(axes), inputs.ndim)
        kept = [i for i, _ in enumerate(inputs.shape) if i not in ordered]
        sizes = [inputs.shape[i] for i in kept]
        rows = inputs.transpose(kept + ordered[::-1]).reshape(math.prod(sizes), -1 if inputs.size else 0)
        found = _filled(sizes, (separator.join(row) for row in rows))
        return found.reshape([1 if i in ordered else n for i, n in enumerate(inputs.shape)]) if keep else found


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
       separator: string = '', Tindices: {int32, int64}, Tnumsegments: {int32, int64} = int32""")
class UnsortedSegmentJoin(Op):
    """Per segment, the strings of the rows that belong to it put together."""

    def infer(operation):
        inputs, ids = operation.inputs[0].shape, operation.inputs[1].shape
        if inputs.ndims is None or ids.ndims is None:
            return [TensorShape(None)]
        inputs[: ids.ndims].merge_with(ids)
        count = constant_value(operation.inputs[2])
        return [TensorShape([None if count is None else int(count)]).concatenate(inputs[ids.ndims :])]

    def kernel(node, xp, inputs, ids, count):
        separator = node["separator"]
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
