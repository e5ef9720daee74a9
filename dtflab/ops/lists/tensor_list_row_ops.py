"""Lists of tensors and the tensors that have their items as rows.

Stands for the rest of `core/kernels/list_kernels.cc` and `python/ops/list_ops.py`; the first part is
`tensor_list_ops.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.node import Node
from dtflab.graph.op_registry import no_gradient, op
from dtflab.graph.operation import Tensor
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.costs import of_part
from dtflab.ops.lists.tensor_list_ops import SHAPE_TYPE, ListOp, element_shape, filled, like, shape_in
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.variants import TensorList, zeros


def row_shape(tensor: Tensor) -> Tensor:
    """The shape of a row, as a tensor."""
    return apply_op("Slice", input=apply_op("Shape", input=tensor), begin=[1], size=[-1])


def _put_rows(into: Tensor, rows: Tensor, indices: Tensor) -> Tensor:
    return apply_op("TensorListScatterIntoExistingList", input_handle=into, tensor=rows, indices=indices)


def _rows_of(source: Tensor, tensor: Tensor, indices: Tensor) -> Tensor:
    """The items of a list at `indices`, of the shape that the rows of `tensor` have."""
    rows = {"element_shape": row_shape(tensor), "element_dtype": tensor.dtype}
    return apply_op("TensorListGather", input_handle=source, indices=indices, **rows)


@op(f"""TensorListFromTensor(tensor: element_dtype, element_shape: shape_type) -> (output_handle: variant)
        element_dtype: type
        {SHAPE_TYPE}""")
class TensorListFromTensor(ListOp):
    """The rows of a tensor."""

    def grad(operation, dlist):
        tensor = operation.inputs[0]
        count = tensor.shape[0].value if tensor.shape.ndims else None
        rows = {"element_shape": row_shape(tensor), "element_dtype": tensor.dtype}
        rows["num_elements"] = -1 if count is None else count
        return [apply_op("TensorListStack", input_handle=dlist, **rows), None]

    def kernel(node: Node, xp: Any, tensor: Any, shape: Any) -> TensorList:
        wanted = shape_in(shape)
        if tensor.ndim == 0:
            raise invalid(f"Tensor must be at least a vector, but saw shape: {shape_text(tensor)}")
        if not wanted.is_compatible_with(TensorShape(tensor.shape[1:])):
            raise invalid(
                f"Specified a list with shape {shape_text(wanted)} from a tensor with shape "
                f"{shape_text(tensor.shape[1:])}"
            )
        return TensorList(list(tensor), node["element_dtype"], wanted)


@op("""TensorListStack(input_handle: variant, element_shape: int32) -> (tensor: element_dtype)
       element_dtype: type, num_elements: int = -1""")
class TensorListStack(ListOp):
    """All items as the rows of a tensor; zeros for those that were not set."""

    bytes = of_part

    def infer(operation):
        count = operation.get_attr("num_elements")
        return [TensorShape([None if count < 0 else count]).concatenate(element_shape(operation))]

    def grad(operation, drows):
        shape = np.array([-1 if n is None else n for n in drows.shape[1:].as_list()], np.int32)
        return [apply_op("TensorListFromTensor", tensor=drows, element_shape=shape), None]

    def kernel(node: Node, xp: Any, source: TensorList, shape: Any) -> Any:
        dtype, count = node["element_dtype"], node["num_elements"]
        items = source.checked(dtype).items
        if count not in (-1, len(items)):
            raise invalid(f"Operation expected a list with {count} elements but got a list with {len(items)} elements.")
        known = source.common_shape(shape_in(shape))
        if not known.is_fully_defined():
            what = "list which only contains uninitialized tensors and has a"
            what = what if items else "elements of an empty list with"
            raise invalid(f"Tried to stack {what} non-fully-defined element_shape: {shape_text(known)}")
        if not items:
            return zeros(TensorShape([0]).concatenate(known), dtype, xp)
        return xp.stack([zeros(known, dtype, xp) if item is None else item for item in items])


@op("""TensorListGather(input_handle: variant, indices: int32, element_shape: int32) -> (values: element_dtype)
       element_dtype: type""")
class TensorListGather(ListOp):
    """The items at these indices as the rows of a tensor."""

    bytes = of_part

    def infer(operation):
        return [TensorShape([None]).concatenate(element_shape(operation))]

    def grad(operation, drows):
        source, indices, _ = operation.inputs
        return [_put_rows(like(source, drows.dtype), drows, indices), None, None]

    def kernel(node: Node, xp: Any, source: TensorList, indices: Any, shape: Any) -> Any:
        dtype = node["element_dtype"]
        items = source.checked(dtype).items
        for i in indices:
            if not 0 <= i < len(items):
                raise invalid(f"Index {i} out o range; list only has {len(items)} elements.")
        if not len(indices):
            return zeros(TensorShape([0]).concatenate(source.common_shape(shape_in(shape))), dtype, xp)
        return xp.stack([filled(source, items[int(i)], shape, xp) for i in indices])


@op(f"""TensorListScatterV2(tensor: element_dtype, indices: int32, element_shape: shape_type, num_elements: int32)
            -> (output_handle: variant)
        element_dtype: type
        {SHAPE_TYPE}""")
class TensorListScatterV2(ListOp):
    """A list with the rows of a tensor at these indices."""

    def grad(operation, dlist):
        return [_rows_of(dlist, operation.inputs[0], operation.inputs[1]), None, None, None]

    def kernel(node: Node, xp: Any, tensor: Any, indices: Any, shape: Any, count: Any) -> TensorList:
        size = max(int(count), int(np.max(indices, initial=-1)) + 1) if count < 0 else int(count)
        return _scattered(TensorList([None] * size, node["element_dtype"], shape_in(shape)), tensor, indices)


@op("""TensorListScatterIntoExistingList(input_handle: variant, tensor: element_dtype, indices: int32)
           -> (output_handle: variant)
       element_dtype: type""")
class TensorListScatterIntoExistingList(ListOp):
    """The list with the rows of a tensor at these indices."""

    def grad(operation, dlist):
        _, tensor, indices = operation.inputs
        zero = apply_op("ZerosLike", x=tensor)
        return [_put_rows(dlist, zero, indices), _rows_of(dlist, tensor, indices), None]

    def kernel(node: Node, xp: Any, into: TensorList, tensor: Any, indices: Any) -> TensorList:
        missing = int(np.max(indices, initial=-1)) + 1 - len(into.checked(node["element_dtype"]).items)
        return _scattered(into.replaced([*into.items, *[None] * missing]), tensor, indices)


def _scattered(into: TensorList, tensor: Any, indices: Any) -> TensorList:
    items = list(into.items)
    if len(tensor) < len(indices):
        raise invalid(f"Invalid number of rows in input tensor. Expected at least {len(indices)}, saw: {len(tensor)}")
    for row, i in zip(tensor, indices):
        if i < 0:
            raise invalid(f"Indices in TensorListScatter must all be non-negative, but saw {i}")
        if i >= len(items):
            raise invalid(f"TensorListScatter: Trying to scatter at index {i} in list with size {len(items)}")
        into.check_can_be_set(row)
        items[int(i)] = row
    return into.replaced(items)


@op("TensorListConcatLists(input_a: variant, input_b: variant) -> (output: variant) where element_dtype: type")
class TensorListConcatLists(ListOp):
    """The items of two lists."""

    grad = no_gradient

    def bind(node: Node, xp: Any) -> Callable[[TensorList, TensorList], TensorList]:
        dtype = node["element_dtype"]
        return lambda a, b: a.checked(dtype).replaced((*a.items, *b.checked(dtype).items))


@op(f"""TensorListConcatV2(input_handle: variant, element_shape: shape_type, leading_dims: int64)
            -> (tensor: element_dtype, lengths: int64)
        element_dtype: type
        {SHAPE_TYPE}""")
class TensorListConcatV2(ListOp):
    """All items one after the other along their first axis, and how long each is."""

    bytes = of_part

    def infer(operation):
        shape = element_shape(operation)
        rest = shape if shape.ndims is None else TensorShape([None]).concatenate(shape[1:])
        return [rest, TensorShape([None])]

    def grad(operation, dtensor, _=None):
        shape = apply_op("TensorListElementShape", input_handle=operation.inputs[0], shape_type=dtypes.int32)
        lengths = operation.outputs[1]
        return [apply_op("TensorListSplit", tensor=dtensor, element_shape=shape, lengths=lengths), None, None]

    def kernel(node: Node, xp: Any, source: TensorList, shape: Any, leading: Any) -> tuple[Any, Any]:
        dtype = node["element_dtype"]
        given = shape_in(shape)
        items = list(source.checked(dtype).items)
        for i, item in enumerate(items):
            if item is None:
                first = int(leading[i]) if i < len(leading) else None
                known = given.merge_with(source.element_shape)
                items[i] = filled(source, None, [first or known.as_list()[0] or -1, *_rest(known)], xp)
            elif item.ndim == 0:
                raise invalid(f"Concat saw a scalar shape at index {i} but requires at least vectors.")
        lengths = np.array([len(item) for item in items], np.int64)
        if items:
            return xp.concatenate(items), lengths
        rest = given.merge_with(source.element_shape)[1:]
        if not rest.is_fully_defined():
            raise invalid(
                "All except the first dimension must be fully defined when concating an empty tensor list. "
                f"element_shape: {shape_text(rest)}"
            )
        return zeros(TensorShape([0]).concatenate(rest), dtype, xp), lengths


def _rest(shape: TensorShape) -> list[int]:
    return [-1 if size is None else size for size in shape.as_list()[1:]]


@op(f"""TensorListSplit(tensor: element_dtype, element_shape: shape_type, lengths: int64) -> (output_handle: variant)
        element_dtype: type
        {SHAPE_TYPE}""")
class TensorListSplit(ListOp):
    """Pieces of a tensor along its first axis, of these lengths."""

    def grad(operation, dlist):
        tensor, _, lengths = operation.inputs
        shape = apply_op("ConcatV2", values=[np.array([-1], np.int32), row_shape(tensor)], axis=0)
        pieces = {"element_shape": shape, "leading_dims": lengths, "element_dtype": tensor.dtype}
        return [apply_op("TensorListConcatV2", input_handle=dlist, **pieces)[0], None, None]

    def kernel(node: Node, xp: Any, tensor: Any, shape: Any, lengths: Any) -> TensorList:
        if tensor.ndim == 0:
            raise invalid(f"Tensor must be at least a vector, but saw shape: {shape_text(tensor)}")
        ends, length = np.cumsum(np.asarray(lengths), dtype=np.int64), len(tensor)
        used = ends[-1] if len(ends) else 0
        if used > length:
            raise invalid(f"Attempting to slice [{used - lengths[-1]}, {used}] from tensor with length {length}")
        if used < length:
            raise invalid(f"Unused values in tensor. Length of tensor: {length} Values used: {used}")
        pieces = [tensor[end - length : end] for end, length in zip(ends, lengths)]
        return TensorList(pieces, node["element_dtype"], shape_in(shape))
