"""Blocks of tensors: their notation (`0,2:-`), their keys in checkpoints, and their intersections.

Stands for `core/framework/tensor_slice.{h,cc}`, `tensor_shape` of `ParseShapeAndSlice` and the parts of
`core/lib/strings/ordered_code.cc` that checkpoints use.

Rule: a slice is one extent per dimension, (start, length) or None for all of it; of a shape, always inside it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dtflab.base import errors
from dtflab.graph import dtypes
from dtflab.graph.dtypes import DType
from dtflab.protos.tensor_slice_pb2 import TensorSliceProto

Extent = tuple[int, int] | None
_invalid = errors.InvalidArgumentError.of


class TensorSlice(tuple[Extent, ...]):
    """A block: (start, length) for each dimension, None for all of it."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> TensorSlice:
        """`0,2:-` is rows 0 and 1 of a matrix. Raises InvalidArgumentError for anything else."""
        return cls(_parse_extent(item, text) for item in text.split(":") if item)

    @classmethod
    def full(cls, rank: int) -> TensorSlice:
        """All of a tensor."""
        return cls([None] * rank)

    @classmethod
    def from_proto(cls, proto: Any) -> TensorSlice:
        return cls((e.start, e.length) if e.HasField("length") else None for e in proto.extent)

    def to_proto(self) -> TensorSliceProto:
        proto = TensorSliceProto()
        for extent in self:
            added = proto.extent.add()
            if extent is not None:
                added.start, added.length = extent
        return proto

    def is_full(self, shape: Sequence[int]) -> bool:
        """True if this is all of a tensor of `shape`."""
        return all(extent is None or extent == (0, size) for extent, size in zip(self, shape, strict=True))

    def shape_in(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of the block, of a tensor of `shape`. InternalError, as TensorFlow's, if it is not inside."""
        if len(self) != len(shape):
            raise errors.InternalError.of(f"Mismatching ranks: shape = {brackets(shape)}, slice = {self.text()}")
        for axis, (extent, size) in enumerate(zip(self, shape, strict=True)):
            if extent is not None and sum(extent) > size:
                where = f"shape = {brackets(shape)}, slice = {self.text()}"
                raise errors.InternalError.of(f"Extent in dimension {axis} out of bounds: {where}")
        return tuple(size if extent is None else extent[1] for extent, size in zip(self, shape, strict=True))

    def cut(self) -> tuple[slice, ...]:
        """The index that takes the block out of an array."""
        return tuple(slice(None) if e is None else slice(e[0], e[0] + e[1]) for e in self)

    def overlap(self, other: TensorSlice, shape: Sequence[int]) -> tuple[tuple[slice, ...], tuple[slice, ...]] | None:
        """The common part of two blocks as an index of each; None if they have no common part."""
        mine, theirs = [], []
        for a, b, size in zip(self, other, shape, strict=True):
            (start_a, length_a), (start_b, length_b) = a or (0, size), b or (0, size)
            start, end = max(start_a, start_b), min(start_a + length_a, start_b + length_b)
            if end <= start:
                return None
            mine.append(slice(start - start_a, end - start_a))
            theirs.append(slice(start - start_b, end - start_b))
        return tuple(mine), tuple(theirs)

    def text(self) -> str:
        return ":".join("-" if extent is None else f"{extent[0]},{extent[1]}" for extent in self)

    def key(self, name: str) -> bytes:
        """The key of this block of tensor `name` in a checkpoint: it sorts by name, then by place."""
        extents = [number for extent in self for number in (extent or (0, -1))]
        return b"".join([_number(0), _string(name.encode()), _number(len(self)), *(_signed_number(n) for n in extents)])


_PAIR = re.compile(r"(-?\d+),(-?\d+)")


def _parse_extent(item: str, text: str) -> Extent:
    if item == "-":
        return None
    match = _PAIR.fullmatch(item)
    if match is None:
        raise _invalid(f"Expected a pair of numbers or '-' but got '{item}': string = {text}")
    start, length = int(match[1]), int(match[2])
    if start < 0 or length <= 0:
        got = f"start = {start}, length = {length}: string = {text}"
        raise _invalid(f"Expected non-negative start and positive length but got {got}")
    return start, length


def parse_shape_and_slice(text: str) -> tuple[tuple[int, ...], TensorSlice, tuple[int, ...]]:
    """`4 3 0,2:-` as the shape of the whole, the slice, and the slice's own shape."""
    *dims, block = text.split(" ")
    if not dims:
        raise _invalid(f"Need least two elements in shape_and_slice specification: '{text}'")
    for dim in dims:
        if not re.fullmatch(r"-?\d+", dim):
            raise _invalid(f"Non numerical dimension in shape_and_slice: '{text}'")
    shape = tuple(map(int, dims))
    found = TensorSlice.parse(block)
    return shape, found, found.shape_in(shape)


class SavedTensor(NamedTuple):
    """The description of a tensor in a checkpoint; with `slices` if it was saved in parts."""

    dtype: DType
    shape: tuple[int, ...]
    slices: list[TensorSlice]

    @classmethod
    def from_protos(cls, dtype: int, shape: Any, slices: Any) -> SavedTensor:
        """The description from an entry of an index. Raises DataLossError if it can't be a tensor's."""
        dims = tuple(dim.size for dim in shape.dim)
        try:
            found = dtypes.as_dtype(dtype)
            if min(dims, default=0) < 0 or shape.unknown_rank or not found.is_numpy_compatible:
                raise ValueError
        except (TypeError, ValueError):
            what = f"dtype number {dtype} and shape {brackets(dims)}"
            raise errors.DataLossError.of(f"A tensor of {what} can't have been saved") from None
        return cls(found, dims, [TensorSlice.from_proto(proto) for proto in slices])


def assemble(
    name: str, saved: SavedTensor, wanted: TensorSlice, read: Callable[[TensorSlice], np.ndarray[Any, Any]]
) -> np.ndarray[Any, Any]:
    """The block `wanted` of a tensor, made of those that are saved; `read` gives the value of one of them."""
    shape = wanted.shape_in(saved.shape)
    parts = [(block, common) for block in saved.slices if (common := wanted.overlap(block, saved.shape)) is not None]
    missing = math.prod(shape) - sum(math.prod(at.stop - at.start for at in here) for _, (here, _) in parts)
    if missing:
        raise _invalid(
            f"Does not have sufficient slices for partitioned tensor {name} to restore in slice_spec: "
            f"{wanted.text()}. Available slices: {', '.join(block.text() for block in saved.slices)}"
        )
    if saved.dtype == dtypes.string:  # an array of objects takes memory at once: not for parts that are not there
        read = {block: read(block) for block, _ in parts}.__getitem__
    value = np.empty(shape, saved.dtype.as_numpy_dtype)
    for block, (here, there) in parts:
        value[here] = read(block)[there]
    return value


def brackets(shape: Sequence[int]) -> str:
    """`[2,3]`: a shape as TensorFlow writes it."""
    return f"[{','.join(map(str, shape))}]"


# -- ordered code: bytes that sort as what they stand for ---------------------------------------------------


def _number(value: int) -> bytes:
    """A number that is not negative: how many bytes, then the bytes."""
    body = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes([len(body)]) + body


def _string(value: bytes) -> bytes:
    """Ends in 0 1; what could be taken for that, or for more than any string, is followed by a second byte."""
    return re.sub(rb"[\0\xff]", lambda m: b"\0\xff" if m[0] == b"\0" else b"\xff\0", value) + b"\0\1"


def _signed_number(value: int) -> bytes:
    """In two's complement, its length as that many leading ones (zeros if it is negative)."""
    length = (value if value >= 0 else ~value).bit_length() // 7 + 1
    header = ((1 << length) - 1) << (8 * length - length)
    return ((value & ((1 << 8 * length) - 1)) ^ header).to_bytes(length, "big")
