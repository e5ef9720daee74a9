"""tf.sets: the last dimension holds sets; their intersections, unions and differences, and how large they are.

Stands for `core/kernels/set_kernels.cc`, `core/ops/set_ops.cc` and `python/ops/sets_impl.py`.

How: every element becomes one integer, group × number of values + place of its value among all values, so that one
sorted operation on two vectors works on all sets at once. Counting then gives the place of each element.

Rule: sets come out sorted, left-aligned in their rows, each value once. With `validate_indices` the indices of sparse
sets must be in order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.operation import Operation
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.costs import of_inputs, per_input
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.sparse_arrays import check_order, check_sparse

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
    return np.repeat(np.arange(int(np.prod(groups)), dtype=np.int64), values.shape[-1]), values.reshape(-1), groups


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


def _operation(node: Node) -> Callable[[Any, Any], Any]:
    how = _OPERATIONS.get(node["set_operation"].lower())
    if how is None:
        raise invalid(f"Invalid set_operation {node['set_operation'].decode()}.")
    return how


_SETS = "{int8, int16, int32, int64, uint8, uint16, string}"
_RESULT = f"""(result_indices: int64, result_values: T, result_shape: int64)
       set_operation: string
       validate_indices: bool = true
       T: {_SETS}"""


_INPUTS = {"Dense": "set{0}: T", "Sparse": "set{0}_indices: int64, set{0}_values: T, set{0}_shape: int64"}


def _rank(kind: str, tensors: Any) -> int | None:
    """The rank of an input; of a sparse one what its shape, or else its indices, have."""
    if kind == "Dense":
        return tensors[0].shape.ndims
    indices, _, shape = tensors
    known = shape.shape[0].value if shape.shape.ndims is not None else None
    return indices.shape[1].value if known is None and indices.shape.ndims is not None else known


def _infer_rule(first: str, second: str) -> Callable[[Any], list[TensorShape]]:
    """The shapes of the result; ValueError where the graph already shows that the inputs can't fit."""
    at = 1 if first == "Dense" else 3

    def infer(op: Operation) -> list[TensorShape]:
        if first == second == "Dense":
            a, b = (x.shape if x.shape.ndims is None else x.shape.with_rank_at_least(2) for x in op.inputs)
            if a.ndims is not None and b.ndims is not None:
                a.assert_same_rank(b)
                a[:-1].assert_is_compatible_with(b[:-1])
        a_rank, b_rank = _rank(first, op.inputs[:at]), _rank(second, op.inputs[at:])
        if first == "Sparse" and None not in (a_rank, b_rank) and a_rank != b_rank:
            raise ValueError(f"Dimension must be {a_rank} but is {b_rank}")
        rank = b_rank if (first == second and b_rank is not None) or a_rank is None else a_rank
        return [TensorShape([None, rank]), TensorShape([None]), TensorShape([rank])]

    return infer


def _bind_rule(first: str, second: str) -> Callable[[Any, Any], Callable[..., Any]]:
    at = 1 if first == "Dense" else 3

    def bind(node: Node, xp: Any) -> Callable[..., Any]:
        how, validate = _operation(node), node["validate_indices"]

        def elements_of(kind: str, arrays: Any) -> Elements:
            return _from_dense(*arrays) if kind == "Dense" else _from_sparse(*arrays, validate=validate)

        return lambda *ab: _combined(how, elements_of(first, ab[:at]), elements_of(second, ab[at:]))

    return bind


for _first, _second in (("Dense", "Dense"), ("Dense", "Sparse"), ("Sparse", "Sparse")):
    _name = f"{_first}To{_second}SetOperation"
    _members = {"infer": _infer_rule(_first, _second), "bind": _bind_rule(_first, _second), "grad": no_gradient}
    _inputs = f"{_INPUTS[_first].format(1)}, {_INPUTS[_second].format(2)}"
    op(f"{_name}({_inputs}) -> {_RESULT}")(type(_name, (Op,), _members | {"flops": of_inputs}))


@op(f"""SetSize(set_indices: int64, set_values: T, set_shape: int64) -> (size: int32)
        validate_indices: bool = true, T: {_SETS}""")
class SetSize(Op):
    """How many distinct values each set has."""

    grad = no_gradient
    flops = per_input(1, index=1)

    def kernel(node, xp, indices, values, shape):
        group, values, groups = _from_sparse(indices, values, shape, node["validate_indices"])
        distinct, codes = np.unique(values, return_inverse=True)
        pairs = np.unique(group * max(len(distinct), 1) + codes.reshape(-1))
        sizes = np.bincount(pairs // max(len(distinct), 1), minlength=int(np.prod(groups)))
        return sizes.astype(np.int32).reshape(groups)
