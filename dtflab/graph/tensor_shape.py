"""Static shapes: `Dimension` (a size or unknown), `TensorShape` (of known or unknown rank), broadcasting.

Stands for `tensorflow/python/framework/tensor_shape.py` and the broadcasting part of `common_shapes.py`, as
they behave in TF1: indexing or iterating a shape gives Dimensions. Left out: TF2's overrides, trace types.
The rule it obeys: what depends on an unknown Dimension is unknown; even `==` then answers None.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

_Size = int | None


def _misfit(message: str, of_rule: str) -> ValueError:
    """A ValueError in the words of Python's TensorShape, which keeps those of the shape rules of ops in C++."""
    error = ValueError(message)
    error.of_rule = of_rule  # type: ignore[attr-defined]
    return error


def in_a_rule(error: ValueError) -> str:
    """The text of an error of this module as the shape rule of an op reports it."""
    return getattr(error, "of_rule", str(error))


class Dimension:
    """One size of a shape, or `Dimension(None)` where it is not known before the step runs."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = _as_size(value)

    def is_compatible_with(self, other: Any) -> bool:
        """True if both may be the same size: equal, or one unknown."""
        other = _as_size(other)
        return self.value is None or other is None or self.value == other

    def assert_is_compatible_with(self, other: Any) -> None:
        """Check that both may be the same size. Raises ValueError otherwise."""
        if not self.is_compatible_with(other):
            raise _misfit(
                f"Dimensions {self} and {other} are not compatible",
                f"Dimensions must be equal, but are {self} and {other}",
            )

    def merge_with(self, other: Any) -> Dimension:
        """The Dimension that knows what either knows; ValueError when they contradict."""
        self.assert_is_compatible_with(other)
        return Dimension(_as_size(other) if self.value is None else self.value)

    def _combine(self, f: Callable[[int, int], Any], other: Any, swap: bool = False) -> Any:
        """f of both sizes, or None when one is not known."""
        a, b = self.value, _as_size(other)
        if a is None or b is None:
            return None
        return f(b, a) if swap else f(a, b)

    def _arith(self, f: Callable[[int, int], int], other: Any, swap: bool = False) -> Dimension:
        return Dimension(self._combine(f, other, swap))

    def __add__(self, other: Any) -> Dimension:
        return self._arith(operator.add, other) if _is_size(other) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return self + other

    def __sub__(self, other: Any) -> Dimension:
        return self._arith(operator.sub, other) if _is_size(other) else NotImplemented

    def __rsub__(self, other: Any) -> Dimension:
        return self._arith(operator.sub, other, swap=True)

    def __mul__(self, other: Any) -> Dimension:
        return self._arith(operator.mul, other) if _is_size(other) else NotImplemented

    def __rmul__(self, other: Any) -> Any:
        return self * other

    def __floordiv__(self, other: Any) -> Dimension:
        return self._arith(operator.floordiv, other) if _is_size(other) else NotImplemented

    def __rfloordiv__(self, other: Any) -> Dimension:
        return self._arith(operator.floordiv, other, swap=True)

    def __mod__(self, other: Any) -> Dimension:
        return self._arith(operator.mod, other)

    def __rmod__(self, other: Any) -> Dimension:
        return self._arith(operator.mod, other, swap=True)

    def __truediv__(self, other: Any) -> NoReturn:
        raise _no_true_division(self, other)

    def __rtruediv__(self, other: Any) -> NoReturn:
        raise _no_true_division(other, self)

    def __eq__(self, other: object) -> Any:
        return self._combine(operator.eq, other) if _is_size(other) else NotImplemented

    def __ne__(self, other: object) -> Any:
        return self._combine(operator.ne, other) if _is_size(other) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # unknown sizes are equal to nothing, so there is no key

    def __lt__(self, other: Any) -> Any:
        return self._combine(operator.lt, other)

    def __le__(self, other: Any) -> Any:
        return self._combine(operator.le, other)

    def __gt__(self, other: Any) -> Any:
        return self._combine(operator.gt, other)

    def __ge__(self, other: Any) -> Any:
        return self._combine(operator.ge, other)

    def __int__(self) -> int:
        return self.value  # type: ignore[return-value]  # Python itself refuses the None

    __index__ = __int__

    def __bool__(self) -> bool:
        return bool(self.value)

    def __repr__(self) -> str:
        return f"Dimension({self.value})"

    def __str__(self) -> str:
        return "?" if self.value is None else str(self.value)

    def __reduce__(self) -> tuple[Any, ...]:
        return Dimension, (self.value,)


def _as_size(value: Any) -> _Size:
    """The size that a Dimension, an integer of any kind or None stands for."""
    if value is None:
        return None
    if isinstance(value, Dimension):
        return value.value
    if not hasattr(value, "__index__"):
        raise TypeError(
            "Dimension value must be integer or None or have an __index__ method, "
            f"got value '{value!r}' with type '{type(value)!r}'"
        )
    size = operator.index(value)
    if size < 0:
        raise ValueError(f"Dimension {size} must be >= 0")
    return size


def _is_size(value: Any) -> bool:
    try:
        _as_size(value)
    except (TypeError, ValueError):
        return False
    return True


def _no_true_division(a: Any, b: Any) -> TypeError:
    types = f"'{type(a).__name__}' and '{type(b).__name__}'"
    return TypeError(f"unsupported operand type(s) for /: {types}, please use // instead")


class TensorShape:
    """The shape of a tensor as far as it is known: `TensorShape(None)`, `TensorShape([None, 3])`, …

    Made from None, an int, a Dimension, an iterable of those, another TensorShape, or a TensorShapeProto.
    """

    __slots__ = ("__weakref__", "_dims")

    def __init__(self, dims: Any) -> None:
        self._dims = _as_sizes(dims)

    @property
    def rank(self) -> _Size:
        """The number of dimensions, or None."""
        return None if self._dims is None else len(self._dims)

    ndims = rank

    @property
    def dims(self) -> list[Dimension] | None:
        """The Dimensions as a list, or None if the rank is unknown."""
        return None if self._dims is None else [Dimension(d) for d in self._dims]

    def as_list(self) -> list[_Size]:
        """The sizes as a list of ints and Nones; ValueError if the rank is unknown."""
        if self._dims is None:
            raise ValueError("as_list() is not defined on an unknown TensorShape.")
        return list(self._dims)

    def num_elements(self) -> _Size:
        """The product of the sizes, or None unless all are known."""
        return math.prod(self._dims) if self.is_fully_defined() else None  # type: ignore[arg-type]  # no None there

    def is_fully_defined(self) -> bool:
        """True if rank and every size are known."""
        return self._dims is not None and None not in self._dims

    def assert_is_fully_defined(self) -> None:
        """Check that the rank and every size are known. Raises ValueError otherwise."""
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined")

    def is_compatible_with(self, other: Any) -> bool:
        """True if one tensor could have both shapes."""
        a, b = self._dims, as_shape(other)._dims
        if a is None or b is None:
            return True
        if len(a) != len(b):
            return False
        return all(x is None or y is None or x == y for x, y in zip(a, b, strict=True))

    def admits(self, sizes: tuple[int, ...]) -> bool:
        """True if an array of these sizes has this shape."""
        dims = self._dims
        if dims is None or dims == sizes:
            return True
        return len(dims) == len(sizes) and all(d is None or d == size for d, size in zip(dims, sizes, strict=True))

    def assert_is_compatible_with(self, other: Any) -> None:
        """Check that one tensor could have both shapes. Raises ValueError otherwise."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {other} are incompatible")

    def merge_with(self, other: Any) -> TensorShape:
        """The shape that knows what either knows; ValueError when they contradict."""
        shape = as_shape(other)
        if self._dims == shape._dims:
            return self
        if not self.is_compatible_with(shape):
            raise _misfit(f"Shapes {self} and {shape} are not compatible", self._difference(shape))
        if self._dims is None:
            return shape
        if shape._dims is None:
            return self
        return TensorShape([y if x is None else x for x, y in zip(self._dims, shape._dims, strict=True)])

    def _difference(self, other: TensorShape) -> str:
        """The first difference that makes the two incompatible."""
        a, b = self._dims or (), other._dims or ()
        if len(a) != len(b):
            return f"Shapes must be equal rank, but are {len(a)} and {len(b)}"
        axis = next(i for i, (x, y) in enumerate(zip(a, b, strict=True)) if None not in (x, y) and x != y)
        texts = [f"[{','.join('?' if d is None else str(d) for d in dims)}]" for dims in (a, b)]
        return (
            f"Dimension {axis} in both shapes must be equal, but are {a[axis]} and {b[axis]}. "
            f"Shapes are {texts[0]} and {texts[1]}."
        )

    def most_specific_compatible_shape(self, other: Any) -> TensorShape:
        """The shape that holds for tensors of either shape: what they do not share becomes unknown."""
        a, b = self._dims, as_shape(other)._dims
        if a is None or b is None or len(a) != len(b):
            return unknown_shape()
        return TensorShape([x if x == y else None for x, y in zip(a, b, strict=True)])

    def concatenate(self, other: Any) -> TensorShape:
        """The dimensions of both, one after the other."""
        other = as_shape(other)
        if self._dims is None or other._dims is None:
            return unknown_shape()
        return TensorShape(self._dims + other._dims)

    def assert_same_rank(self, other: Any) -> None:
        """Check that both ranks may be equal. Raises ValueError if they are known and differ."""
        other = as_shape(other)
        if None not in (self.rank, other.rank) and self.rank != other.rank:
            raise ValueError(f"Shapes {self} and {other} must have the same rank")

    def assert_has_rank(self, rank: _Size) -> None:
        """Check that the rank may be `rank`. Raises ValueError if it is known and differs."""
        if self.rank not in (None, rank):
            raise ValueError(f"Shape {self} must have rank {rank}")

    def with_rank(self, rank: _Size) -> TensorShape:
        """This shape, known to have that rank; ValueError if it has another."""
        wanted = unknown_shape(rank)
        return self._checked(self.is_compatible_with(wanted), f"{rank}", f"rank {rank}").merge_with(wanted)

    def with_rank_at_least(self, rank: int) -> TensorShape:
        """This shape; ValueError if its rank is known and smaller."""
        return self._checked(self.rank is None or self.rank >= rank, f"at least {rank}", f"at least rank {rank}")

    def with_rank_at_most(self, rank: int) -> TensorShape:
        """This shape; ValueError if its rank is known and larger."""
        return self._checked(self.rank is None or self.rank <= rank, f"at most {rank}", f"at most rank {rank}")

    def _checked(self, fits: bool, wanted: str, of_rule: str) -> TensorShape:
        """This shape; ValueError that says which rank was wanted unless it fits."""
        if not fits:
            raise _misfit(f"Shape {self} must have rank {wanted}", f"Shape must be {of_rule} but is rank {self.rank}")
        return self

    def as_proto(self) -> Any:
        """This shape as a TensorShapeProto, -1 for an unknown size."""
        from dtflab.protos.tensor_shape_pb2 import TensorShapeProto

        if self._dims is None:
            return TensorShapeProto(unknown_rank=True)
        sizes = (-1 if size is None else size for size in self._dims)
        return TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in sizes])

    def __len__(self) -> int:
        if self._dims is None:
            raise ValueError("Cannot take the length of shape with unknown rank.")
        return len(self._dims)

    def __bool__(self) -> bool:
        return self._dims is not None  # the scalar shape is true: it is known

    def __iter__(self) -> Iterator[Dimension]:
        if self._dims is None:
            raise ValueError("Cannot iterate over a shape with unknown rank.")
        return (Dimension(d) for d in self._dims)

    def __getitem__(self, key: Any) -> Any:
        """A Dimension for an index, a TensorShape for a slice."""
        if self._dims is None:
            return _slice_of_unknown(key)
        found = list(self._dims)[key]
        return TensorShape(found) if isinstance(key, slice) else Dimension(found)

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: Any) -> TensorShape:
        return as_shape(other).concatenate(self)

    def __eq__(self, other: object) -> bool:
        try:
            return self._dims == as_shape(other)._dims
        except TypeError:
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self._dims)

    def __repr__(self) -> str:
        return f"TensorShape({self.dims})"

    def __str__(self) -> str:
        if self._dims is None:
            return "<unknown>"
        sizes = ["?" if d is None else str(d) for d in self._dims]
        return f"({sizes[0]},)" if len(sizes) == 1 else f"({', '.join(sizes)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorShape, (None if self._dims is None else list(self._dims),)


def _as_sizes(dims: Any) -> tuple[_Size, ...] | None:
    if dims is None:
        return None
    if isinstance(dims, (tuple, list)):
        return tuple(map(_as_size, dims))
    if isinstance(dims, TensorShape):
        return dims._dims
    if hasattr(dims, "unknown_rank"):  # a TensorShapeProto, ours or TensorFlow's
        sizes = (None if d.size == -1 else _as_size(d.size) for d in dims.dim)
        return None if dims.unknown_rank else tuple(sizes)
    try:
        items = iter(dims)
    except TypeError:
        return (_as_size(dims),)
    return tuple(_item_size(dims, item) for item in items)


def _item_size(dims: Any, item: Any) -> _Size:
    try:
        return _as_size(item)
    except TypeError:
        raise TypeError(
            f"Failed to convert '{dims!r}' to a shape: '{item!r}' could not be converted to a dimension. "
            "A shape should either be single dimension (e.g. 10), or an iterable of dimensions "
            "(e.g. [1, 10, None])."
        ) from None


def _slice_of_unknown(key: Any) -> Any:
    """`shape[key]` of an unknown rank: only the length of a slice with fixed ends is known."""
    if not isinstance(key, slice):
        return Dimension(None)
    if key.step is not None:
        raise ValueError("Steps are not yet handled")
    start = 0 if key.start is None else key.start
    if key.stop is None or start < 0 or key.stop < 0:
        return unknown_shape()
    return unknown_shape(max(0, key.stop - start))


def as_dimension(value: Any) -> Dimension:
    """A Dimension as it is, anything else made into one."""
    return value if isinstance(value, Dimension) else Dimension(value)


def as_shape(shape: Any) -> TensorShape:
    """A TensorShape as it is, anything else made into one."""
    return shape if isinstance(shape, TensorShape) else TensorShape(shape)


def unknown_shape(rank: _Size = None, **kwargs: Any) -> TensorShape:
    """A shape of which nothing is known, or only the rank (`ndims` is its old name)."""
    if rank is None and "ndims" in kwargs:
        rank = kwargs.pop("ndims")
    if kwargs:
        raise TypeError(f"Unknown argument: {kwargs}")
    return TensorShape(None) if rank is None else TensorShape([None] * rank)


def scalar() -> TensorShape:
    """The shape of a scalar: no dimensions."""
    return TensorShape([])


def vector(length: Any) -> TensorShape:
    """The shape of a vector of that length, which may be None."""
    return TensorShape([length])


def matrix(rows: Any, cols: Any) -> TensorShape:
    """The shape of a matrix; either size may be None."""
    return TensorShape([rows, cols])


def dimension_value(dimension: Any) -> Any:
    """The size that an element of a shape stands for, whether it is a Dimension or already a number."""
    return dimension.value if isinstance(dimension, Dimension) else dimension


def dimension_at_index(shape: TensorShape, index: int) -> Dimension:
    """The Dimension at an index, unknown if the rank is."""
    return Dimension(None) if shape._dims is None else Dimension(list(shape._dims)[index])


def broadcast_shape(shape_x: TensorShape, shape_y: TensorShape) -> TensorShape:
    """The shape of `x + y`; ValueError if they cannot be broadcast together."""
    try:
        return infer_broadcast(shape_x, shape_y)
    except ValueError:
        raise ValueError(
            "Incompatible shapes for broadcasting. Two shapes are compatible if for each dimension pair "
            f"they are either equal or one of them is 1. Received: {shape_x} and {shape_y}."
        ) from None


def infer_broadcast(shape_x: TensorShape, shape_y: TensorShape) -> TensorShape:
    """broadcast_shape for an op's shape rule: the error says, as TF's C++ does, which sizes do not fit."""
    x, y = shape_x._dims, shape_y._dims
    if x is None or y is None:
        return unknown_shape()
    rank = max(len(x), len(y))
    x, y = (1,) * (rank - len(x)) + x, (1,) * (rank - len(y)) + y
    return TensorShape([_broadcast_size(a, b) for a, b in zip(x, y, strict=True)])


def _broadcast_size(a: _Size, b: _Size) -> _Size:
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    if a is None or b is None:  # a known size above 1 is the result: the unknown one must be 1 or the same
        known = b if a is None else a
        return known if known else None  # TF does not draw that conclusion for 0
    raise ValueError(f"Dimensions must be equal, but are {a} and {b}")
