"""Lists of tensors as values: how TensorFlow 2's loops, and TensorArrays in them, hold the values of their turns.

Stands for `core/ops/list_ops.cc` and `core/kernels/list_kernels.cc`. Left out: gradients, which a TensorFlow client
makes before it sends a graph; tensors of lists (`TensorListPushBackBatch`).

Rule: a list never changes; who sets an item makes a new list of the same tensors. So branches and loops may hand one on
to many.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph.op_registry import Op, op
from dtflab.graph.static_value import folded_shape
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.control_flow import free
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.variants import TensorList, zeros

_SHAPE_TYPE = "shape_type: {int32, int64}"


def _shape_in(value: Any) -> TensorShape:
    """A shape given as a tensor, -1 for what is not known; the scalar -1 knows nothing."""
    array = np.asarray(value.get() if hasattr(value, "get") else value)
    if array.ndim == 0:
        if array != -1:
            raise invalid("The only valid scalar shape tensor is the fully unknown shape specified as -1.")
        return TensorShape(None)
    return TensorShape([None if size < 0 else int(size) for size in array])


class _ListOp(Op):
    flops = staticmethod(free)
    aliasing = True

    @staticmethod
    def infer(operation: Any) -> list[TensorShape]:
        """A list, or its length, is a scalar."""
        return [TensorShape([])] * len(operation.outputs)


def _element_shape(operation: Any) -> TensorShape:
    """The shape of an element as far as the input `element_shape` tells."""
    names = [arg.name for arg in operation.op_def.inputs]
    return folded_shape(operation.inputs[names.index("element_shape")])


# -- making -------------------------------------------------------------------------------------------------------


@op(f"""EmptyTensorList(element_shape: shape_type, max_num_elements: int32) -> (handle: variant)
        element_dtype: type
        {_SHAPE_TYPE}""")
class EmptyTensorList(_ListOp):
    """A list to push to."""

    def bind(node: Any, xp: Any) -> Callable[[Any, Any], TensorList]:
        dtype = node["element_dtype"]
        return lambda shape, limit: TensorList((), dtype, _shape_in(shape), int(limit))


@op(f"""TensorListReserve(element_shape: shape_type, num_elements: int32) -> (handle: variant)
        element_dtype: type
        {_SHAPE_TYPE}""")
class TensorListReserve(_ListOp):
    """A list of items to be set."""

    def bind(node: Any, xp: Any) -> Callable[[Any, Any], TensorList]:
        dtype = node["element_dtype"]

        def reserve(shape: Any, count: Any) -> TensorList:
            if count < 0:
                raise invalid(f"The num_elements to reserve must be a non negative number, but got {int(count)}")
            return TensorList([None] * int(count), dtype, _shape_in(shape))

        return reserve


@op(f"""TensorListFromTensor(tensor: element_dtype, element_shape: shape_type) -> (output_handle: variant)
        element_dtype: type
        {_SHAPE_TYPE}""")
class TensorListFromTensor(_ListOp):
    """The rows of a tensor."""

    def bind(node: Any, xp: Any) -> Callable[[Any, Any], TensorList]:
        dtype = node["element_dtype"]

        def from_tensor(tensor: Any, shape: Any) -> TensorList:
            wanted = _shape_in(shape)
            if tensor.ndim == 0:
                raise invalid(f"Tensor must be at least a vector, but saw shape: {shape_text(tensor)}")
            if not wanted.is_compatible_with(TensorShape(tensor.shape[1:])):
                raise invalid(
                    f"Specified a list with shape {shape_text(wanted)} from a tensor with shape "
                    f"{shape_text(tensor.shape[1:])}"
                )
            return TensorList(list(tensor), dtype, wanted)

        return from_tensor


# -- changing -----------------------------------------------------------------------------------------------------


@op("""TensorListPushBack(input_handle: variant, tensor: element_dtype) -> (output_handle: variant)
       element_dtype: type""")
class TensorListPushBack(_ListOp):
    """The list with one more item."""

    def bind(node: Any, xp: Any) -> Callable[[TensorList, Any], TensorList]:
        dtype = node["element_dtype"]

        def push(into: TensorList, tensor: Any) -> TensorList:
            items = into.items
            if not into.takes(tensor):
                raise invalid(
                    "Tried to append a tensor with incompatible shape to a list. Op element shape: "
                    f"{shape_text(tensor)} list shape: {shape_text(into.element_shape)}"
                )
            into.checked(dtype)
            if into.limit != -1 and len(items) >= into.limit:
                raise invalid(
                    f"Tried to push item into a full list list size: {len(items)} max_num_elements: {into.limit}"
                )
            return into.replaced((*items, tensor))

        return push


@op("""TensorListPopBack(input_handle: variant, element_shape: int32) -> (output_handle: variant, tensor: element_dtype)
       element_dtype: type""")
class TensorListPopBack(_ListOp):
    """The list without its last item, and that item."""

    def infer(operation):
        return [TensorShape([]), _element_shape(operation)]

    def bind(node: Any, xp: Any) -> Callable[[TensorList, Any], tuple[TensorList, Any]]:
        dtype = node["element_dtype"]

        def pop(source: TensorList, shape: Any) -> tuple[TensorList, Any]:
            if not source.checked(dtype).items:
                raise invalid("Trying to pop from an empty list.")
            *rest, last = source.items
            return source.replaced(rest), _filled(source, last, shape, xp)

        return pop


def _filled(source: TensorList, item: Any, shape: Any, xp: Any) -> Any:
    """An item; zeros for one that was not set."""
    if item is not None:
        return item
    known = source.common_shape(_shape_in(shape))
    if not known.is_fully_defined():
        raise invalid(
            f"Trying to read an uninitialized tensor but element_shape is not fully defined: {shape_text(known)} and "
            "no list element is set."
        )
    return zeros(known, source.dtype, xp)


@op("""TensorListSetItem(input_handle: variant, index: int32, item: element_dtype) -> (output_handle: variant)
       element_dtype: type
       resize_if_index_out_of_bounds: bool = false""")
class TensorListSetItem(_ListOp):
    """The list with another item at `index`."""

    def bind(node: Any, xp: Any) -> Callable[[TensorList, Any, Any], TensorList]:
        dtype, grows = node["element_dtype"], node["resize_if_index_out_of_bounds"]

        def set_item(into: TensorList, index: Any, item: Any) -> TensorList:
            items, i = list(into.checked(dtype).items), int(index)
            if grows and i >= len(items):
                items += [None] * (i + 1 - len(items))
            if not 0 <= i < len(items):
                raise invalid(f"Trying to modify element {i} in a list with {len(items)} elements.")
            if not into.takes(item):
                raise invalid(
                    "Tried to set a tensor with incompatible shape at a list index. Item element shape: "
                    f"{shape_text(item)} list shape: {shape_text(into.element_shape)}"
                )
            items[i] = item
            return into.replaced(items)

        return set_item


@op("""TensorListResize(input_handle: variant, size: int32) -> (output_handle: variant)""")
class TensorListResize(_ListOp):
    """The list with so many items."""

    def bind(node: Any, xp: Any) -> Callable[[TensorList, Any], TensorList]:
        def resize(source: TensorList, size: Any) -> TensorList:
            if size < 0:
                raise invalid(
                    f"TensorListSlice expects size to be non-negative. Got: {int(size)}"
                )  # TensorFlow's own word for the op
            kept = source.items[: int(size)]
            return source.replaced([*kept, *[None] * (int(size) - len(kept))])

        return resize


@op("""TensorListConcatLists(input_a: variant, input_b: variant) -> (output: variant)
       element_dtype: type""")
class TensorListConcatLists(_ListOp):
    """The items of two lists."""

    def bind(node: Any, xp: Any) -> Callable[[TensorList, TensorList], TensorList]:
        dtype = node["element_dtype"]
        return lambda a, b: a.checked(dtype).replaced((*a.items, *b.checked(dtype).items))


@op(f"""TensorListScatterV2(tensor: element_dtype, indices: int32, element_shape: shape_type, num_elements: int32)
            -> (output_handle: variant)
        element_dtype: type
        {_SHAPE_TYPE}""")
class TensorListScatterV2(_ListOp):
    """A list with the rows of a tensor at these indices."""

    def bind(node: Any, xp: Any) -> Callable[..., TensorList]:
        dtype = node["element_dtype"]

        def scatter(tensor: Any, indices: Any, shape: Any, count: Any) -> TensorList:
            size = max(int(count), int(np.max(indices, initial=-1)) + 1) if count < 0 else int(count)
            return _scattered(TensorList([None] * size, dtype, _shape_in(shape)), tensor, indices)

        return scatter


@op("""TensorListScatterIntoExistingList(input_handle: variant, tensor: element_dtype, indices: int32)
           -> (output_handle: variant)
       element_dtype: type""")
class TensorListScatterIntoExistingList(_ListOp):
    """The list with the rows of a tensor at these indices."""

    def bind(node: Any, xp: Any) -> Callable[[TensorList, Any, Any], TensorList]:
        dtype = node["element_dtype"]

        def scatter(into: TensorList, tensor: Any, indices: Any) -> TensorList:
            missing = int(np.max(indices, initial=-1)) + 1 - len(into.checked(dtype).items)
            return _scattered(into.replaced([*into.items, *[None] * missing]), tensor, indices)

        return scatter


def _scattered(into: TensorList, tensor: Any, indices: Any) -> TensorList:
    items = list(into.items)
    if len(tensor) < len(indices):
        raise invalid(f"Invalid number of rows in input tensor. Expected at least {len(indices)}, saw: {len(tensor)}")
    for row, i in zip(tensor, indices):
        if i < 0:
            raise invalid(f"Indices in TensorListScatter must all be non-negative, but saw {i}")
        if i >= len(items):
            raise invalid(f"TensorListScatter: Trying to scatter at index {i} in list with size {len(items)}")
        if not into.takes(row):
            raise invalid(
                f"Tried to set a tensor with incompatible shape at a list index. Item element shape: {shape_text(row)} "
                f"list shape: {shape_text(into.element_shape)}"
            )
        items[int(i)] = row
    return into.replaced(items)


# -- reading ------------------------------------------------------------------------------------------------------


@op("TensorListLength(input_handle: variant) -> (length: int32)")
class TensorListLength(_ListOp):
    """The number of items."""

    def bind(node: Any, xp: Any) -> Callable[[TensorList], Any]:
        return lambda source: np.int32(len(source.items))


@op(f"""TensorListElementShape(input_handle: variant) -> (element_shape: shape_type)
        {_SHAPE_TYPE}""")
class TensorListElementShape(_ListOp):
    """The shape of the elements, -1 for what is not known."""

    def infer(operation):
        return [TensorShape(None)]

    def bind(node: Any, xp: Any) -> Callable[[TensorList], Any]:
        dtype = node["shape_type"].as_numpy_dtype

        def element_shape(source: TensorList) -> Any:
            if source.element_shape.ndims is None:
                return dtype(-1)
            return np.array([-1 if size is None else size for size in source.element_shape.as_list()], dtype)

        return element_shape


@op("""TensorListGetItem(input_handle: variant, index: int32, element_shape: Tshape) -> (item: element_dtype)
       element_dtype: type
       Tshape: {int32, int64} = int32""")
class TensorListGetItem(_ListOp):
    """The item at `index`; zeros if it was not set."""

    def infer(operation):
        return [_element_shape(operation)]

    def bind(node: Any, xp: Any) -> Callable[[TensorList, Any, Any], Any]:
        dtype = node["element_dtype"]

        def get_item(source: TensorList, index: Any, shape: Any) -> Any:
            items, i = source.checked(dtype).items, int(index)
            if not 0 <= i < len(items):
                raise invalid(f"Trying to access element {i} in a list with {len(items)} elements.")
            return _filled(source, items[i], shape, xp)

        return get_item


@op("""TensorListStack(input_handle: variant, element_shape: int32) -> (tensor: element_dtype)
       element_dtype: type
       num_elements: int = -1""")
class TensorListStack(_ListOp):
    """All items as the rows of a tensor; zeros for those that were not set."""

    def infer(operation):
        count = operation.get_attr("num_elements")
        return [TensorShape([None if count < 0 else count]).concatenate(_element_shape(operation))]

    def bind(node: Any, xp: Any) -> Callable[[TensorList, Any], Any]:
        dtype, count = node["element_dtype"], node["num_elements"]

        def stack(source: TensorList, shape: Any) -> Any:
            items = source.checked(dtype).items
            if count not in (-1, len(items)):
                raise invalid(
                    f"Operation expected a list with {count} elements but got a list with {len(items)} elements."
                )
            known = source.common_shape(_shape_in(shape))
            if not known.is_fully_defined():
                raise invalid(f"Tried to stack {_UNSET if items else _EMPTY} non-fully-defined element_shape: "
                              f"{shape_text(known)}")  # fmt: skip
            if not items:
                return zeros(TensorShape([0]).concatenate(known), dtype, xp)
            return xp.stack([zeros(known, dtype, xp) if item is None else item for item in items])

        return stack


_EMPTY = "elements of an empty list with"
_UNSET = "list which only contains uninitialized tensors and has a"


@op("""TensorListGather(input_handle: variant, indices: int32, element_shape: int32) -> (values: element_dtype)
       element_dtype: type""")
class TensorListGather(_ListOp):
    """The items at these indices as the rows of a tensor."""

    def infer(operation):
        return [TensorShape([None]).concatenate(_element_shape(operation))]

    def bind(node: Any, xp: Any) -> Callable[[TensorList, Any, Any], Any]:
        dtype = node["element_dtype"]

        def gather(source: TensorList, indices: Any, shape: Any) -> Any:
            items = source.checked(dtype).items
            for i in indices:
                if not 0 <= i < len(items):
                    raise invalid(f"Index {i} out o range; list only has {len(items)} elements.")
            if not len(indices):
                return zeros(TensorShape([0]).concatenate(source.common_shape(_shape_in(shape))), dtype, xp)
            return xp.stack([_filled(source, items[int(i)], shape, xp) for i in indices])

        return gather


@op(f"""TensorListConcatV2(input_handle: variant, element_shape: shape_type, leading_dims: int64)
            -> (tensor: element_dtype, lengths: int64)
        element_dtype: type
        {_SHAPE_TYPE}""")
class TensorListConcatV2(_ListOp):
    """All items one after the other along their first axis, and how long each is."""

    def infer(operation):
        shape = _element_shape(operation)
        rest = shape if shape.ndims is None else TensorShape([None]).concatenate(shape[1:])
        return [rest, TensorShape([None])]

    def bind(node: Any, xp: Any) -> Callable[[TensorList, Any, Any], tuple[Any, Any]]:
        dtype = node["element_dtype"]

        def concat(source: TensorList, shape: Any, leading: Any) -> tuple[Any, Any]:
            given = _shape_in(shape)
            items = list(source.checked(dtype).items)
            for i, item in enumerate(items):
                if item is None:
                    first = int(leading[i]) if i < len(leading) else None
                    known = given.merge_with(source.element_shape)
                    items[i] = _filled(source, None, [first or known.as_list()[0] or -1, *_rest(known)], xp)
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

        return concat


def _rest(shape: TensorShape) -> list[int]:
    return [-1 if size is None else size for size in shape.as_list()[1:]]


@op(f"""TensorListSplit(tensor: element_dtype, element_shape: shape_type, lengths: int64) -> (output_handle: variant)
        element_dtype: type
        {_SHAPE_TYPE}""")
class TensorListSplit(_ListOp):
    """Pieces of a tensor along its first axis, of these lengths."""

    def bind(node: Any, xp: Any) -> Callable[[Any, Any, Any], TensorList]:
        dtype = node["element_dtype"]

        def split(tensor: Any, shape: Any, lengths: Any) -> TensorList:
            if tensor.ndim == 0:
                raise invalid(f"Tensor must be at least a vector, but saw shape: {shape_text(tensor)}")
            ends = np.cumsum(np.asarray(lengths), dtype=np.int64)
            if len(ends) and ends[-1] > len(tensor):
                raise invalid(
                    f"Attempting to slice [{ends[-1] - lengths[-1]}, {ends[-1]}] from tensor with length {len(tensor)}"
                )
            if (ends[-1] if len(ends) else 0) < len(tensor):
                raise invalid(
                    f"Unused values in tensor. Length of tensor: {len(tensor)} Values used: "
                    f"{ends[-1] if len(ends) else 0}"
                )
            pieces = [tensor[end - length : end] for end, length in zip(ends, lengths)]
            return TensorList(pieces, dtype, _shape_in(shape))

        return split
