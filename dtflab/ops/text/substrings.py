"""Parts of strings: substr, split, length, and upper and lower case.

Stands for `core/kernels/{substr_op,string_split_op,string_length_op,string_upper_op,string_strip_op}.cc` and
`python/ops/string_ops.py`, `ragged_string_ops.py`. Left out: results that are RaggedTensors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.graph.tensor_shape import TensorShape, infer_broadcast
from dtflab.ops import shapes
from dtflab.ops.arrays.reshaping import expand_dims
from dtflab.ops.examples.example_values import counted
from dtflab.ops.messages import invalid, renamed, shape_text
from dtflab.ops.sparse.sparse_tensor import SparseTensor

_CHARACTER = re.compile(rb"[^\x80-\xbf][\x80-\xbf]*")  # of UTF-8: what follows its first byte begins with the bits 10


def each(strings: Any, function: Callable[[bytes], Any], kind: Any = object) -> Any:
    """`function` of every string."""
    return np.array([function(text) for text in strings.ravel().tolist()], kind).reshape(strings.shape)


# -- substr -------------------------------------------------------------------------------------------


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
    characters = _CHARACTER.findall(text)
    if not -len(characters) <= pos <= len(characters):
        raise invalid(f"pos {pos} out of range for string at index {i}")
    return b"".join(_cut(characters, pos, max(length, 0)))  # TensorFlow's steps over characters never go back


def _cut(items: Any, pos: int, length: int) -> Any:
    """`length` items from `pos` on, which counts from the end if it is negative; all if `length` is."""
    start = pos + len(items) if pos < 0 else pos
    return items[start : len(items) if length < 0 else start + length]


@op("""StringLength(input: string) -> (output: int32)
       unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'""")
class StringLength(Op):
    infer = shapes.unchanged

    def bind(node, xp):
        count = len if node["unit"] == b"BYTE" else lambda text: len(_CHARACTER.findall(text))
        return lambda strings: each(strings, count, np.int32)


# -- split --------------------------------------------------------------------------------------------


def _as_sparse(rows: Sequence[Sequence[bytes]]) -> list[Any]:
    lengths = np.array([len(row) for row in rows], np.int64)
    indices = np.stack([np.repeat(np.arange(len(rows)), lengths), counted(lengths)], 1)
    values = np.array([text for row in rows for text in row], object)
    return [indices, values, np.array([len(rows), lengths.max(initial=0)], np.int64)]


def _check_vector(strings: Any) -> None:
    if strings.ndim != 1:
        raise invalid(f"input must be a vector, got shape: {shape_text(strings)}")


class _Split(Op):
    def infer(operation: Any) -> list[TensorShape]:
        operation.inputs[0].shape.with_rank(1)
        operation.inputs[1].shape.with_rank(0)
        return [TensorShape([None, 2]), TensorShape([None]), TensorShape([2])]


@op("""StringSplit(input: string, delimiter: string) -> (indices: int64, values: string, shape: int64)
       skip_empty: bool = true""")
class StringSplit(_Split):
    """At each of the characters in `delimiter`; into bytes if there are none."""

    grad = no_gradient

    def bind(node, xp):
        skip = node["skip_empty"]

        def split(strings, delimiter):
            _check_vector(strings)
            if delimiter.ndim:
                raise invalid(f"delimiter must scalar, got shape: {shape_text(delimiter)}")
            at = re.compile(b"[" + re.escape(delimiter.item()) + b"]") if delimiter.item() else None
            rows = []
            for text in strings.tolist():
                parts = at.split(text) if at is not None else [text[i : i + 1] for i in range(len(text))]
                rows.append([part for part in parts if part] if skip or not text else parts)
            return _as_sparse(rows)

        return split


@op("""StringSplitV2(input: string, sep: string) -> (indices: int64, values: string, shape: int64)
       maxsplit: int = -1""")
class StringSplitV2(_Split):
    """As Python's `split`: at `sep`, or at white space if it is empty."""

    def bind(node, xp):
        most = node["maxsplit"]

        def split(strings, sep):
            _check_vector(strings)
            if sep.ndim:
                raise invalid(f"sep must be a scalar, got shape: {shape_text(sep)}")
            at = sep.item()
            return _as_sparse([text.split(at, most) if at else _words(text, most) for text in strings.tolist()])

        return split


def _words(text: bytes, most: int) -> list[bytes]:
    """Split at white space; after the last split that is allowed there is one more part, even if it is empty."""
    parts = text.split(None, most) if most else [text]
    return [*parts, b""] if len(parts) == most else parts


# -- letters ------------------------------------------------------------------------------------------


def _in_case(node: Any, change: str) -> Callable[[Any], Any]:
    if node["encoding"] not in (b"", b"utf-8"):
        raise invalid(f"only utf-8 or '' (no encoding) is supported, received {node['encoding'].decode()}")
    if not node["encoding"]:
        return lambda strings: each(strings, getattr(bytes, change))
    return lambda strings: each(strings, lambda text: getattr(text.decode(), change)().encode())


@op("""StringUpper(input: string) -> (output: string)
       encoding: string = ''""")
class StringUpper(Op):
    infer = shapes.unchanged

    def bind(node, xp):
        return _in_case(node, "upper")


@op("""StringLower(input: string) -> (output: string)
       encoding: string = ''""")
class StringLower(Op):
    infer = shapes.unchanged

    def bind(node, xp):
        return _in_case(node, "lower")


@op("StringStrip(input: string) -> (output: string)")
class StringStrip(Op):
    infer = shapes.unchanged

    def bind(node, xp):
        return lambda strings: each(strings, bytes.strip)


# -- what programs call -----------------------------------------------------------------------------------------------


def substr(input: Any, pos: Any, len: Any, name: str | None = None, unit: str = "BYTE") -> Tensor:
    """From each string `len` bytes (or, if `unit` is 'UTF8_CHAR', characters) from `pos` on; shapes are broadcast.

    A negative `pos` counts from the end. InvalidArgumentError if it is not within the string.
    """
    return apply_op("Substr", name, input=input, pos=pos, len=len, unit=unit)


def string_length(input: Any, name: str | None = None, unit: str = "BYTE") -> Tensor:
    """The number of bytes (or, if `unit` is 'UTF8_CHAR', characters) of each string: int32."""
    return apply_op("StringLength", name, input=input, unit=unit)


def string_lower(input: Any, encoding: str = "", name: str | None = None) -> Tensor:
    """In lower case: ASCII letters only, all letters if `encoding` is 'utf-8'."""
    return apply_op("StringLower", name, input=input, encoding=encoding)


def string_upper(input: Any, encoding: str = "", name: str | None = None) -> Tensor:
    """In upper case: ASCII letters only, all letters if `encoding` is 'utf-8'."""
    return apply_op("StringUpper", name, input=input, encoding=encoding)


def string_strip(input: Any, name: str | None = None) -> Tensor:
    """Without white space at both ends."""
    return apply_op("StringStrip", name, input=input)


def string_split(
    source: Any, sep: Any = None, skip_empty: bool = True, delimiter: Any = None, result_type: str = "SparseTensor",
    name: str | None = None,
) -> SparseTensor:  # fmt: skip
    """Split a vector of strings at each character of `sep` (a space if None): a SparseTensor with a row for each.

    Where `sep` is empty, each byte is a part. `delimiter` is the old name of `sep`.
    """
    with name_scope(name, "StringSplit", [source]):
        sep = renamed("sep", sep, "delimiter", delimiter)
        at = convert_to_tensor(" " if sep is None else sep, dtypes.string)
        _check_sparse(result_type)
        parts = apply_op(
            "StringSplit", None, input=convert_to_tensor(source, dtypes.string), delimiter=at, skip_empty=skip_empty
        )
        return SparseTensor(*parts)


def _check_sparse(result_type: str) -> None:
    if result_type != "SparseTensor":
        raise ValueError(f"result_type must be 'SparseTensor' here, there are no RaggedTensors; got {result_type!r}.")


def strings_split(
    input: Any = None, sep: Any = None, maxsplit: int = -1, result_type: str = "SparseTensor", source: Any = None,
    name: str | None = None,
) -> SparseTensor:  # fmt: skip
    """Split a vector of strings, or one, as Python's `split` does: a SparseTensor with a row for each."""
    input = renamed("input", input, "source", source)
    with name_scope(name, "StringSplit", [input]):
        _check_sparse(result_type)
        strings = convert_to_tensor(input, dtypes.string, name="input")
        if strings.shape.ndims == 0:
            strings = expand_dims(strings, 0)
        sep = convert_to_tensor("" if sep is None else sep, dtypes.string)
        return SparseTensor(*apply_op("StringSplitV2", None, input=strings, sep=sep, maxsplit=maxsplit))
