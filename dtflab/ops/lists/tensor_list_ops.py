"""Lists of tensors as values: how TensorFlow 2's loops, and TensorArrays in them, hold the values of their iterations.

Stands for `list_ops.cc` in `core/ops`, `core/kernels/list_kernels.cc` and `python/ops/list_ops.py`, item by item; what
has to do with rows of tensors is in `tensor_list_row_ops.py`. Left out: tensors of lists (`TensorListPushBackBatch`).

Rule: a list never changes; to set an item makes a new list of the same tensors. So branches and loops may hand one list
on to many ops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.dtypes import DType
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.operation import Tensor
from dtflab.graph.static_value import folded_shape
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.costs import FreeOp
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.variants import TensorList, zeros

SHAPE_TYPE = "shape_type: {int32, int64}"


def shape_in(value: Any) -> TensorShape:
    """A shape given as a tensor, -1 for what is not known; the scalar -1 knows nothing."""
    array = np.asarray(value.get() if hasattr(value, "get") else value)
    if array.ndim == 0:
        if array != -1:
            raise invalid("The only valid scalar shape tensor is the fully unknown shape specified as -1.")
        return TensorShape(None)
    return TensorShape([None if size < 0 else int(size) for size in array])


class ListOp(FreeOp):
    aliasing = True
    infer = shapes.scalar  # a list, and its length


def element_shape(operation: Any) -> TensorShape:
    """The shape of an element as far as the input `element_shape` is known."""
    names = [arg.name for arg in operation.op_def.inputs]
    return folded_shape(operation.inputs[names.index("element_shape")])


def _length(handle: Tensor) -> Tensor:
    return apply_op("TensorListLength", input_handle=handle)


def like(handle: Tensor, dtype: DType) -> Tensor:
    """A list of as many items as another one, none of them set: the beginning of its gradient."""
    shape = apply_op("TensorListElementShape", input_handle=handle, shape_type=dtypes.int32)
    return apply_op("TensorListReserve", element_shape=shape, num_elements=_length(handle), element_dtype=dtype)


# -- making -------------------------------------------------------------------------------------------------------


@op(f"""EmptyTensorList(element_shape: shape_type, max_num_elements: int32) -> (handle: variant)
        element_dtype: type
        {SHAPE_TYPE}""")
class EmptyTensorList(ListOp):
    """A list to push to."""

    def bind(node: Node, xp: Any) -> Callable[[Any, Any], TensorList]:
        dtype = node["element_dtype"]
        return lambda shape, limit: TensorList((), dtype, shape_in(shape), int(limit))


@op(f"""TensorListReserve(element_shape: shape_type, num_elements: int32) -> (handle: variant)
        element_dtype: type
        {SHAPE_TYPE}""")
class TensorListReserve(ListOp):
    """A list of items to be set."""

    def kernel(node: Node, xp: Any, shape: Any, count: Any) -> TensorList:
        if count < 0:
            raise invalid(f"The num_elements to reserve must be a non negative number, but got {int(count)}")
        return TensorList([None] * int(count), node["element_dtype"], shape_in(shape))


# -- changing -----------------------------------------------------------------------------------------------------


@op("""TensorListPushBack(input_handle: variant, tensor: element_dtype) -> (output_handle: variant)
       element_dtype: type""")
class TensorListPushBack(ListOp):
    """The list with one more item."""

    def grad(operation, dlist):
        shape, dtype = apply_op("Shape", input=operation.inputs[1]), operation.get_attr("element_dtype")
        return apply_op("TensorListPopBack", input_handle=dlist, element_shape=shape, element_dtype=dtype)

    def kernel(node: Node, xp: Any, into: TensorList, tensor: Any) -> TensorList:
        items = into.items
        into.check_fits(tensor, "Tried to append a tensor with incompatible shape to a list. Op element shape")
        into.checked(node["element_dtype"])
        if into.limit != -1 and len(items) >= into.limit:
            raise invalid(f"Tried to push item into a full list list size: {len(items)} max_num_elements: {into.limit}")
        return into.replaced((*items, tensor))


@op("""TensorListPopBack(input_handle: variant, element_shape: int32) -> (output_handle: variant, tensor: element_dtype)
       element_dtype: type""")
class TensorListPopBack(ListOp):
    """The list without its last item, and that item."""

    def infer(operation):
        return [TensorShape([]), element_shape(operation)]

    def grad(operation, dlist, dtensor):
        if dlist is None:  # no op has used what was left
            dlist = like(operation.outputs[0], operation.get_attr("element_dtype"))
        if dtensor is None:
            dtensor = apply_op("ZerosLike", x=operation.outputs[1])
        return [apply_op("TensorListPushBack", input_handle=dlist, tensor=dtensor), None]

    def kernel(node: Node, xp: Any, source: TensorList, shape: Any) -> tuple[TensorList, Any]:
        if not source.checked(node["element_dtype"]).items:
            raise invalid("Trying to pop from an empty list.")
        *rest, last = source.items
        return source.replaced(rest), filled(source, last, shape, xp)


def filled(source: TensorList, item: Any, shape: Any, xp: Any) -> Any:
    """An item; zeros for one that was not set."""
    if item is not None:
        return item
    known = source.common_shape(shape_in(shape))
    if not known.is_fully_defined():
        raise invalid(
            f"Trying to read an uninitialized tensor but element_shape is not fully defined: {shape_text(known)} and "
            "no list element is set."
        )
    return zeros(known, source.dtype, xp)


@op("""TensorListSetItem(input_handle: variant, index: int32, item: element_dtype) -> (output_handle: variant)
       element_dtype: type, resize_if_index_out_of_bounds: bool = false""")
class TensorListSetItem(ListOp):
    """The list with another item at `index`."""

    def grad(operation, dlist):
        source, index, item = operation.inputs
        zero = apply_op("ZerosLike", x=item)
        rest = apply_op("TensorListSetItem", input_handle=dlist, index=index, item=zero)
        if operation.get_attr("resize_if_index_out_of_bounds"):
            rest = apply_op("TensorListResize", input_handle=rest, size=_length(source))
        shape = apply_op("Shape", input=item)
        read = {"index": index, "element_shape": shape, "element_dtype": item.dtype}
        return [rest, None, apply_op("TensorListGetItem", input_handle=dlist, **read)]

    def kernel(node: Node, xp: Any, into: TensorList, index: Any, item: Any) -> TensorList:
        dtype, grows = node["element_dtype"], node["resize_if_index_out_of_bounds"]
        items, i = list(into.checked(dtype).items), int(index)
        if grows and i >= len(items):
            items += [None] * (i + 1 - len(items))
        if not 0 <= i < len(items):
            raise invalid(f"Trying to modify element {i} in a list with {len(items)} elements.")
        into.check_can_be_set(item)
        items[i] = item
        return into.replaced(items)


@op("""TensorListResize(input_handle: variant, size: int32) -> (output_handle: variant)""")
class TensorListResize(ListOp):
    """The list cut, or filled up with items that are not set, to `size`."""

    def grad(operation, dlist):
        return [apply_op("TensorListResize", input_handle=dlist, size=_length(operation.inputs[0])), None]

    def kernel(node: Node, xp: Any, source: TensorList, size: Any) -> TensorList:
        if size < 0:
            # TensorFlow's own word for the op
            raise invalid(f"TensorListSlice expects size to be non-negative. Got: {int(size)}")
        kept = source.items[: int(size)]
        return source.replaced([*kept, *[None] * (int(size) - len(kept))])


# -- reading ------------------------------------------------------------------------------------------------------


@op("TensorListLength(input_handle: variant) -> (length: int32)")
class TensorListLength(ListOp):
    """The number of items."""

    grad = no_gradient

    def bind(node: Node, xp: Any) -> Callable[[TensorList], Any]:
        return lambda source: np.int32(len(source.items))


@op(f"""TensorListElementShape(input_handle: variant) -> (element_shape: shape_type)
        {SHAPE_TYPE}""")
class TensorListElementShape(ListOp):
    """The shape of the elements, -1 for what is not known."""

    grad = no_gradient

    infer = Op.infer

    def kernel(node: Node, xp: Any, source: TensorList) -> Any:
        dtype = node["shape_type"].as_numpy_dtype
        if source.element_shape.ndims is None:
            return dtype(-1)
        return np.array([-1 if size is None else size for size in source.element_shape.as_list()], dtype)


@op("""TensorListGetItem(input_handle: variant, index: int32, element_shape: Tshape) -> (item: element_dtype)
       element_dtype: type, Tshape: {int32, int64} = int32""")
class TensorListGetItem(ListOp):
    """The item at `index`; zeros if it was not set."""

    def infer(operation):
        return [element_shape(operation)]

    def grad(operation, ditem):
        source, index, _ = operation.inputs
        empty = like(source, ditem.dtype)
        return [apply_op("TensorListSetItem", input_handle=empty, index=index, item=ditem), None, None]

    def kernel(node: Node, xp: Any, source: TensorList, index: Any, shape: Any) -> Any:
        items, i = source.checked(node["element_dtype"]).items, int(index)
        if not 0 <= i < len(items):
            raise invalid(f"Trying to access element {i} in a list with {len(items)} elements.")
        return filled(source, items[i], shape, xp)
