"""TensorArray: a list of tensors that a program writes and reads by index, for example one per iteration of a loop.

Stands for `python/ops/tensor_array_ops.py` in TF1's form. Left out: eager mode, arrays made of TensorLists, the
warning when the result of a write is not used.

Rule: an object here is the graph's side of an array: a handle and a flow. A method that writes gives a new object with
a new flow, and what uses the new object comes after the write. The elements live where the handle's device is
(tensor_array_ops.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from dtflab.base import nest
from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import colocate_with, control_dependencies, device, name_scope
from dtflab.graph.static_value import constant_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays import functions as arrays


class TensorArray:
    """A list of tensors of one dtype that lives as long as a step.

    Each element is written once; gradients flow through writes and reads. Go on with what a method
    that writes returns: it takes the place of the array. `handle` is the resource handle that names the array, `flow`
    a tensor that is available once all writes that led to this object are done, `dynamic_size` whether a write past
    the end makes the array grow.
    """

    def __init__(
        self,
        dtype: Any,
        size: Any = None,
        dynamic_size: bool | None = None,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        handle: Tensor | None = None,
        flow: Tensor | None = None,
        infer_shape: bool = True,
        element_shape: Any = None,
        colocate_with_first_write_call: bool = True,
        name: str | None = None,
    ) -> None:
        """An array of `size` elements; it grows if `dynamic_size`. Or the array that a `handle` names, after a `flow`.

        A read clears the element unless `clear_after_read` is False. With `infer_shape` all elements have one shape;
        `element_shape` says what is known of it before the first write. The array is on the device of what is written
        first, or with `colocate_with_first_write_call=False` on the one of the context. ValueError for arguments that
        contradict each other, TypeError for a handle that is not a tensor.
        """
        _check(handle, size, element_shape, dynamic_size, clear_after_read, tensor_array_name)
        self.dtype = dtypes.as_dtype(dtype).base_dtype
        self._size = size
        self.dynamic_size = dynamic_size or False
        self._infer_shape = infer_shape
        self._element_shape = [TensorShape(element_shape)]  # one list for all objects of an array
        self._colocate = colocate_with_first_write_call
        self._colocate_with: list[Tensor] = []  # the first tensor that was written; one list, too
        with name_scope(name, "TensorArray", [handle, size, flow]) as scope:
            if handle is not None:
                if flow is None:
                    raise ValueError("flow must not be None if handle is not None.")
                self.handle, self.flow = handle, flow
                return
            with self._placed_later():
                settings: dict[str, Any] = {
                    "dynamic_size": self.dynamic_size,
                    "clear_after_read": clear_after_read is not False,
                }
                settings |= {"identical_element_shapes": infer_shape, "tensor_array_name": tensor_array_name or ""}
                like = {"dtype": dtype, "element_shape": self.element_shape}
                self.handle, self.flow = apply_op("TensorArrayV3", scope, size=size, **like, **settings)

    @contextlib.contextmanager
    def _placed_later(self) -> Iterator[None]:
        """The device of the context does not count if the first write decides."""
        if not self._colocate:
            yield
            return
        with device(None), colocate_with(None, ignore_existing=True):
            yield

    @property
    def element_shape(self) -> TensorShape:
        """The shape of each element, as far as it is known."""
        return self._element_shape[0]

    def identity(self) -> TensorArray:
        """The same array after the control dependencies of the context."""
        return self._after(arrays.identity(self.flow))

    def _after(self, flow: Tensor) -> TensorArray:
        """The same array, later."""
        later = self._behind(self.handle, flow, self._colocate)
        later.dynamic_size, later._size, later._colocate_with = self.dynamic_size, self._size, self._colocate_with
        return later

    def _behind(self, handle: Tensor, flow: Tensor, colocate: bool) -> TensorArray:
        """The array behind a handle, with elements like this one's."""
        like: dict[str, Any] = {"infer_shape": self._infer_shape, "colocate_with_first_write_call": colocate}
        found = TensorArray(self.dtype, handle=handle, flow=flow, **like)
        found._element_shape = self._element_shape
        return found

    def grad(self, source: str, flow: Tensor | None = None, name: str | None = None) -> TensorArray:
        """The array of the gradients of the elements that belongs to `source`, the name of a call of `gradients`."""
        flow = self.flow if flow is None else flow
        with name_scope(name, "TensorArrayGrad", [self.handle]), colocate_with(self.handle):
            handle, _ = apply_op("TensorArrayGradV3", name, handle=self.handle, flow_in=flow, source=source)
            with control_dependencies([handle]):
                flow = arrays.identity(flow, name="gradient_flow")
            return self._behind(handle, flow, colocate=False)

    def _handle_and_flow(self) -> dict[str, Tensor]:
        return {"handle": self.handle, "flow_in": self.flow}

    # -- reading ------------------------------------------------------------------------------------------

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """The element at `index`, an int32 scalar. Zeros if it was never written and its shape is known."""
        value: Tensor = apply_op("TensorArrayReadV3", name, index=index, dtype=self.dtype, **self._handle_and_flow())
        value.set_shape(self.element_shape)
        return value

    def stack(self, name: str | None = None) -> Tensor:
        """All elements, one below the other: shape [size] + the element's."""
        with colocate_with(self.handle), name_scope(name, "TensorArrayStack", [self.handle]):
            value = self.gather(arrays.range(0, self.size()), name=name)
            if not self.dynamic_size and self._size is not None:
                value.set_shape(TensorShape([constant_value(self._size)]).concatenate(self.element_shape))
            return value

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """The elements at `indices`, an int32 vector, one below the other."""
        wanted = {"indices": indices, "dtype": self.dtype, "element_shape": self.element_shape}
        value: Tensor = apply_op("TensorArrayGatherV3", name, **wanted, **self._handle_and_flow())
        value.set_shape(TensorShape([None]).concatenate(self.element_shape))
        return value

    def concat(self, name: str | None = None) -> Tensor:
        """All elements, joined along their first dimension, in which they may differ."""
        wanted = {"dtype": self.dtype, "element_shape_except0": self.element_shape[1:]}
        value: Tensor = apply_op("TensorArrayConcatV3", name, **wanted, **self._handle_and_flow())[0]
        if self.element_shape.ndims is not None:
            size = constant_value(self.size()) if self._infer_shape else None
            rows = None if size is None else self.element_shape[0] * int(size)
            value.set_shape(TensorShape([rows]).concatenate(self.element_shape[1:]))
        return value

    # -- writing ------------------------------------------------------------------------------------------

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array after `value` was put at `index`. ValueError for a value of another shape than the others."""
        with name_scope(name, "TensorArrayWrite", [self.handle, index, value]):
            value = convert_to_tensor(value, name="value", preferred_dtype=self.dtype)
            self._check_element_shape(value.shape)
            return self._written("TensorArrayWriteV3", name, value, index=index)

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """The array after each row of `value` became an element."""
        with name_scope(name, "TensorArrayUnstack", [self.handle, value]):
            rows = arrays.shape(value)[0]
            return self.scatter(arrays.range(0, rows), value, name)

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array after row i of `value` became the element `indices[i]`."""
        with name_scope(name, "TensorArrayScatter", [self.handle, value, indices]):
            value = convert_to_tensor(value, name="value", preferred_dtype=self.dtype)
            self._check_element_shape(value.shape[1:])
            return self._written("TensorArrayScatterV3", name, value, indices=indices)

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """The array after `value` was cut along its first dimension into elements of these lengths."""
        with name_scope(name, "TensorArraySplit", [self.handle, value, lengths]):
            value = convert_to_tensor(value, dtype=self.dtype, name="value")
            with self._with_the_first(value):
                lengths = arrays.cast(lengths, dtypes.int64)
                known = constant_value(lengths)
                if value.shape.ndims is not None and known is not None and known.size and known.max() == known.min():
                    self._check_element_shape(TensorShape([known[0]]).concatenate(value.shape[1:]))
                return self._written("TensorArraySplitV3", name, value, lengths=lengths)

    def _written(self, op_type: str, name: str | None, value: Tensor, **where: Any) -> TensorArray:
        with self._with_the_first(value):
            flow = apply_op(op_type, name, value=value, **where, **self._handle_and_flow())
        return self._after(flow)

    def _with_the_first(self, value: Tensor) -> contextlib.AbstractContextManager[Any]:
        """Operations go where the tensor is that was written first: this one, if there was none."""
        if not self._colocate:
            return contextlib.nullcontext()
        if not self._colocate_with:
            self._colocate_with.append(value)
        return colocate_with(self._colocate_with[0])

    def _check_element_shape(self, shape: TensorShape) -> None:
        if not shape.is_compatible_with(self.element_shape):
            raise ValueError(f"Inconsistent shapes: saw {shape} but expected {self.element_shape} ")
        if self._infer_shape:
            self._element_shape[0] = self.element_shape.merge_with(shape)

    # -- the array itself -----------------------------------------------------------------------------------

    def size(self, name: str | None = None) -> Tensor:
        """The number of elements, int32."""
        if not self.dynamic_size and self._size is not None:
            return convert_to_tensor(self._size, dtypes.int32)
        return apply_op("TensorArraySizeV3", name, **self._handle_and_flow())

    def close(self, name: str | None = None) -> Operation:
        """The operation that releases all elements before the step ends."""
        return apply_op("TensorArrayCloseV3", name, handle=self.handle)


def _check(handle: Any, size: Any, shape: Any, dynamic: Any, clear: Any, array_name: Any) -> None:
    """ValueError and TypeError for arguments that an existing array must not have, or a new one must."""
    if handle is None:
        if size is None:
            raise ValueError("Argument `size` must be provided if handle is not provided.")
        return
    if array_name:
        raise ValueError("Cannot provide both `handle` and `tensor_array_name` arguments at the same time.")
    if not isinstance(handle, Tensor):
        raise TypeError(f"Expected `handle` to be a Tensor, but got `{handle}` of type `{type(handle)}` instead.")
    if size is not None:
        raise ValueError("Cannot provide both a `handle` and `size` arguments at the same time.")
    given = {"element_shape": shape, "dynamic_size": dynamic, "clear_after_read": clear}
    for what, value in given.items():
        if value is not None:
            raise ValueError(f"Cannot provide both `handle` and `{what}` arguments at the same time.")


# In a loop or a branch an array is its flow: that goes round, or through Switch and Merge; the handle stays outside.
nest.register_composite(TensorArray, lambda whole: [whole.flow], lambda whole, parts: whole._after(parts[0]))
