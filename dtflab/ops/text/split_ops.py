"""Ops that take strings apart: substr, split.

Stands for `core/kernels/substr_op.cc` and `string_split_op.cc`. Left out: results that are RaggedTensors.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.tensor_shape import infer_broadcast
from dtflab.ops import shapes
from dtflab.ops.examples.columns import sparse_rows
from dtflab.ops.messages import check_rank, invalid, shape_text
from dtflab.ops.text.elementwise_ops import CHARACTER


@op("""Substr(input: string, pos: T, len: T) -> (output: string)
       T: {int32, int64}
       unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'""")
class Substr(Op):
    def infer(operation):
        text, pos, length = (tensor.shape for tensor in operation.inputs)
        if pos.ndims is not None and length.ndims is not None:
            if pos.ndims != length.ndims:
                raise ValueError(f"Shape must be rank {length.ndims} but is rank {pos.ndims}")
            if not pos.is_compatible_with(length):
                raise ValueError(f"pos and len shapes must match: {shape_text(pos)} vs. {shape_text(length)}")
        return [infer_broadcast(text, pos)]

    def bind(node, xp):
        in_bytes = node["unit"] == b"BYTE"

        def substr(texts, pos, length):
            if pos.shape != length.shape:
                raise invalid(
                    f"pos and len should have the same shape, got: {shape_text(pos)} vs. {shape_text(length)}"
                )
            try:
                texts, pos, length = np.broadcast_arrays(texts, pos, length)
            except ValueError:
                raise invalid(f"Incompatible shapes: {shape_text(texts)} vs. {shape_text(pos)}") from None
            cut = _cut_bytes if in_bytes else _cut_characters
            parts = zip(texts.ravel().tolist(), pos.ravel().tolist(), length.ravel().tolist())
            return np.array([cut(*part, i) for i, part in enumerate(parts)], object).reshape(texts.shape)

        return substr


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
    def bind(cls, node, xp):
        def split(strings, separator):
            check_rank(strings, 1, "input must be a vector, got shape: {}")
            if separator.ndim:
                wanted = "delimiter must scalar" if node.op == "StringSplit" else "sep must be a scalar"
                raise invalid(f"{wanted}, got shape: {shape_text(separator)}")
            at = separator.item()
            return sparse_rows([cls.parts(text, at, node) for text in strings.tolist()], dtypes.string)

        return split


@op("""StringSplit(input: string, delimiter: string) -> (indices: int64, values: string, shape: int64)
       skip_empty: bool = true""")
class StringSplit(_Split):
    """At each of the characters in `delimiter`; into bytes if there are none."""

    grad = no_gradient

    def parts(text, at, node):
        if at:
            parts = re.split(b"[" + re.escape(at) + b"]", text)
        else:
            parts = [text[i : i + 1] for i in range(len(text))]
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
