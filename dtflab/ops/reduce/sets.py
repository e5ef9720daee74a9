"""tf.sets: the last dimension holds sets; their intersections, unions and differences, and how large they are.

Stands for `core/kernels/set_kernels.cc`, `core/ops/set_ops.cc` and `python/ops/sets_impl.py`.

How: every element becomes one integer, group × number of values + place of its value among all values, so that one
sorted operation on two vectors works on all sets at once; where an element ends up follows from counting.

Rule: sets come out sorted, left-aligned in their rows, each value once. With `validate_indices` the indices of sparse
sets must be in order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph.op_registry import Op, elements, no_gradient, op
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.sparse.places import check_order, check_sparse

_OPERATIONS: dict[bytes, Callable[[Any, Any], Any]] = {  # on sorted vectors of distinct integers
    b"intersection": lambda a, b: np.intersect1d(a, b, assume_unique=True),
    b"union": np.union1d,
    b"a-b": lambda a, b: np.setdiff1d(a, b, assume_unique=True),
    b"b-a": lambda a, b: np.setdiff1d(b, a, assume_unique=True),
}

Elements = tuple[Any, Any, tuple[int, ...]]  # the group of each element, its value, and the shape of the groups


def _from_dense(values: Any) -> Elements:
    if values.ndim < 2:
        raise invalid(f"Shape {shape_text(values)} has rank {values.ndim} < 2")
    groups = values.shape[:-1]
    numbers = np.arange(int(np.prod(groups)), dtype=np.int64)
    return np.repeat(numbers, values.shape[-1]), values.reshape(-1), groups


def _from_sparse(indices: Any, values: Any, shape: Any, validate: bool) -> Elements:
    check_sparse(indices, values, shape)
    if len(shape) < 2:
        raise invalid(f"Invalid rank {len(shape)}.")
    if validate:
        check_order(indices, shape)
    groups = tuple(shape[:-1].tolist())
    return np.ravel_multi_index(tuple(indices[:, :-1].T), groups), values, groups


def _combined(how: Callable[[Any, Any], Any], a: Elements, b: Elements) -> tuple[Any, Any, Any]:
    """Indices, values and shape of the sets that `how` makes of those of a and b."""
    (a_groups, a_values, groups), (b_groups, b_values, others) = a, b
    if groups != others:
        raise invalid(f"Mismatched shapes {shape_text(groups)} vs {shape_text(others)}")
    values, codes = np.unique(np.concatenate([a_values, b_values]), return_inverse=True)
    count, here = max(len(values), 1), len(a_values)
    codes = codes.reshape(-1)
    found = how(np.unique(a_groups * count + codes[:here]), np.unique(b_groups * count + codes[here:]))
    group, code = np.divmod(found, count)
    place = np.arange(len(group)) - np.searchsorted(group, group)  # as many as are before it in its set
    indices = np.stack([*np.unravel_index(group, groups), place], axis=1).astype(np.int64)
    return indices, values[code], np.array([*groups, place.max(initial=-1) + 1], np.int64)


class _SetOperation(Op):
    grad = staticmethod(no_gradient)
    rank: Callable[[Any], int | None]  # of the result, as far as the inputs' shapes tell

    @classmethod
    def infer(cls, op: Any) -> list[TensorShape]:
        rank = cls.rank(op)
        return [TensorShape([None, rank]), TensorShape([None]), TensorShape([rank])]

    @staticmethod
    def flops(node: Any, ins: Any, outs: Any) -> int:
        return sum(elements(x) for x in ins)


def _operation(node: Any) -> Callable[[Any, Any], Any]:
    how = _OPERATIONS.get(node["set_operation"].lower())
    if how is None:
        raise invalid(f"Invalid set_operation {node['set_operation'].decode()}.")
    return how


_SETS = "{int8, int16, int32, int64, uint8, uint16, string}"
_RESULT = f"""(result_indices: int64, result_values: T, result_shape: int64)
       set_operation: string
       validate_indices: bool = true
       T: {_SETS}"""


def _rank_of_dense(op: Any) -> int | None:
    """Checks that all dimensions but the last are the same."""
    a, b = (x.shape if x.shape.ndims is None else x.shape.with_rank_at_least(2) for x in op.inputs)
    if a.ndims is not None and b.ndims is not None:
        a.assert_same_rank(b)
        a[:-1].assert_is_compatible_with(b[:-1])
    return b.ndims if a.ndims is None else a.ndims


def _rank_of_sparse(op: Any, first: int) -> int | None:
    """The rank that the shape, or else the indices, of a sparse input from place `first` on have."""
    indices, _, shape = op.inputs[first : first + 3]
    known = shape.shape[0].value if shape.shape.ndims is not None else None
    return indices.shape[1].value if known is None and indices.shape.ndims is not None else known


@op(f"DenseToDenseSetOperation(set1: T, set2: T) -> {_RESULT}")
class DenseToDenseSetOperation(_SetOperation):
    rank = staticmethod(_rank_of_dense)

    def bind(node, xp):
        how = _operation(node)
        return lambda a, b: _combined(how, _from_dense(a), _from_dense(b))


@op(f"DenseToSparseSetOperation(set1: T, set2_indices: int64, set2_values: T, set2_shape: int64) -> {_RESULT}")
class DenseToSparseSetOperation(_SetOperation):
    @staticmethod
    def rank(op):
        dense = op.inputs[0].shape.ndims
        return _rank_of_sparse(op, 1) if dense is None else dense

    def bind(node, xp):
        how, validate = _operation(node), node["validate_indices"]
        return lambda a, *b: _combined(how, _from_dense(a), _from_sparse(*b, validate))


@op(f"""SparseToSparseSetOperation(set1_indices: int64, set1_values: T, set1_shape: int64,
        set2_indices: int64, set2_values: T, set2_shape: int64) -> {_RESULT}""")
class SparseToSparseSetOperation(_SetOperation):
    @staticmethod
    def rank(op):
        first, second = _rank_of_sparse(op, 0), _rank_of_sparse(op, 3)
        if first is not None and second is not None and first != second:
            raise ValueError(f"Dimension must be {first} but is {second}")
        return second if first is None else first

    def bind(node, xp):
        how, validate = _operation(node), node["validate_indices"]
        return lambda *ab: _combined(how, _from_sparse(*ab[:3], validate), _from_sparse(*ab[3:], validate))


@op(f"""SetSize(set_indices: int64, set_values: T, set_shape: int64) -> (size: int32)
        validate_indices: bool = true
        T: {_SETS}""")
class SetSize(Op):
    """How many distinct values each set has."""

    grad = no_gradient

    def infer(op):
        return [TensorShape(None)]

    def bind(node, xp):
        def kernel(indices, values, shape):
            group, values, groups = _from_sparse(indices, values, shape, node["validate_indices"])
            distinct, codes = np.unique(values, return_inverse=True)
            pairs = np.unique(group * max(len(distinct), 1) + codes.reshape(-1))
            sizes = np.bincount(pairs // max(len(distinct), 1), minlength=int(np.prod(groups)))
            return sizes.astype(np.int32).reshape(groups)

        return kernel

    def flops(node, ins, outs):
        return elements(ins[1])


# -- functions ----------------------------------------------------------------------------------------
