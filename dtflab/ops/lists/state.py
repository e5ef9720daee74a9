"""The contents of a TensorArray: a list of tensors that are written once each, and cleared when they were read.

Stands for `core/kernels/tensor_array.h` and `.cc`. Left out: its lock; the ops on an array cost nothing, so they all
run on the thread that drives the step.

Rules: a place is written once; in the array of the gradients, later writes to it are added. A place that was read can't
be written any more, and is cleared unless `clear_after_read` is off. A place of which only the shape is known is zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtflab.graph.dtypes import DType
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.messages import dtype_text, invalid, shape_text


class _Place:
    """One element: its value, or before that no more than its shape."""

    __slots__ = ("cleared", "own", "read", "shape", "value")

    def __init__(self, shape: tuple[int, ...] | None = None) -> None:
        self.shape = shape  # None: not written
        self.value: Any = None  # of what is written: zeros
        self.own = False  # a sum that only this place holds
        self.read = self.cleared = False


class TensorArrayState:
    """The tensors of one array during one step.

    `element_shape` holds for all of them; if they are `identical`, the first one written completes it. An array of
    gradients (`is_grad`) adds up.
    """

    def __init__(
        self,
        name: str,
        dtype: DType,
        size: int,
        element_shape: TensorShape,
        identical: bool = False,
        dynamic_size: bool = False,
        clear_after_read: bool = True,
        is_grad: bool = False,
    ) -> None:
        self.name, self.dtype, self.element_shape, self.identical = name, dtype, element_shape, identical
        self.dynamic_size, self.clear_after_read, self.is_grad = dynamic_size, clear_after_read, is_grad
        self.marked_size = -1  # how many tensors the last split made
        self._sums = False
        self._places: list[_Place] | None = [_Place() for _ in range(size)]  # None: closed

    @property
    def places(self) -> list[_Place]:
        if self._places is None:
            raise invalid(f"TensorArray {self.name} has already been closed.")
        return self._places

    @property
    def size(self) -> int:
        """How many elements there are, written or not."""
        return len(self.places)

    def close(self) -> None:
        """Release all elements; any later use is an error."""
        self._places = None

    # -- writing ------------------------------------------------------------------------------------------

    def write(self, index: int, value: Any) -> None:
        """Put `value` at `index`, or add it to what the array of gradients has there."""
        place = self._place_to_write(index)
        refused = f"TensorArray {self.name}: Could not write to TensorArray index {index} because"
        if not self.element_shape.is_compatible_with(value.shape):
            raise invalid(
                f"{refused} the value shape is {shape_text(value)} which is incompatible with the TensorArray's "
                f"inferred element shape: {shape_text(self.element_shape)} (consider setting infer_shape=False)."
            )
        if self.identical and not self.element_shape.is_fully_defined():
            self.element_shape = TensorShape(value.shape)
        if place.read:
            raise invalid(f"{refused} it has already been read.")
        if place.shape is None:
            place.shape, place.value = value.shape, value
        elif self.is_grad:
            self._add(place, index, value)
        else:
            raise invalid(f"{refused} it has already been written to.")

    def _place_to_write(self, index: int) -> _Place:
        places = self.places
        if index < 0 or (index >= len(places) and not self.dynamic_size):
            raise invalid(
                f"TensorArray {self.name}: Tried to write to index {index} but array is not resizeable and size is: "
                f"{len(places)}"
            )
        self._grow(index + 1)
        return places[index]

    def _grow(self, size: int, shape: tuple[int, ...] | None = None) -> None:
        self.places.extend(_Place(shape) for _ in range(size - self.size))

    def _add(self, place: _Place, index: int, value: Any) -> None:
        if value.shape != place.shape:
            raise invalid(
                f"TensorArray {self.name}: Could not aggregate to TensorArray index {index} because the existing shape "
                f"is {shape_text(place.shape)} but the new input shape is {shape_text(value)}."
            )
        if place.value is None:
            place.value = value
            return
        self._sums = True
        if place.own:
            place.value += value
        else:
            place.value, place.own = place.value + value, True

    # -- reading ------------------------------------------------------------------------------------------

    def read(self, index: int, zeros: Callable[[tuple[int, ...]], Any]) -> Any:
        """The tensor at `index`; `zeros(shape)` makes one where there is none but its shape is known."""
        if index < 0 or (index >= self.size and not self.is_grad):
            raise invalid(f"Tried to read from index {index} but array size is: {self.size}")
        if index >= self.size or self.places[index].shape is None:
            self._fill(index)
        place = self.places[index]
        if place.cleared:
            raise invalid(
                f"TensorArray {self.name}: Could not read index {index} twice because it was cleared after a previous "
                "read (perhaps try setting clear_after_read = false?)."
            )
        value = zeros(place.shape) if place.value is None else place.value  # type: ignore[arg-type]
        place.read = True
        place.cleared = self.clear_after_read
        place.value = None if place.cleared else value
        return value

    def _fill(self, index: int) -> None:
        """Zeros for a place that was never written: the gradient of an element that nothing depends on."""
        if not self.element_shape.is_fully_defined():
            raise invalid(
                f"TensorArray {self.name}: Could not read from TensorArray index {index}.  Furthermore, the element "
                f"shape is not fully defined: {shape_text(self.element_shape)}.  It is possible you are working with a "
                "resizeable TensorArray and stop_gradients is not allowing the gradients to be written.  If you set "
                "the full element_shape property on the forward TensorArray, the proper all-zeros tensor will be "
                "returned instead of incurring this error."
            )
        shape: Any = tuple(self.element_shape.as_list())
        self._grow(index + 1, shape)
        self.places[index].shape = shape

    @property
    def size_to_concat(self) -> int:
        """How many tensors a concat joins; of gradients as many as the split made."""
        return self.marked_size if self.is_grad else self.size

    # -- shapes and dtypes ----------------------------------------------------------------------------------

    def must_be(self, dtype: DType, doing: str) -> None:
        """InvalidArgumentError unless the elements are of that dtype; `doing` says what an op wants to do."""
        if dtype != self.dtype:
            raise invalid(f"TensorArray dtype is {dtype_text(self.dtype)} but Op {doing} dtype {dtype_text(dtype)}.")

    def narrow(self, shape: TensorShape) -> None:
        """All elements must have this shape, too."""
        mine = self.element_shape
        if None not in (mine.ndims, shape.ndims) and mine.ndims != shape.ndims:
            raise invalid(f"PartialTensorShape: Incompatible ranks during merge: {mine.ndims} vs. {shape.ndims}")
        if not mine.is_compatible_with(shape):
            shapes = f"{shape_text(mine)} vs. {shape_text(shape)}"
            raise invalid(f"PartialTensorShape: Incompatible shapes during merge: {shapes}")
        self.element_shape = mine.merge_with(shape)

    # -- gradients ------------------------------------------------------------------------------------------

    def begin_gradients(self) -> None:
        """From now on this array does not grow. InvalidArgumentError if its elements are sums."""
        self.dynamic_size = False
        if self._sums:
            raise invalid(
                f"Unable to create a gradients TensorArray for {self.name}.  Perhaps you used the "
                "multiple_writes_aggregate flag on a previous write?  Gradient calculation is impossible when multiple "
                "writes are performed to the same index."
            )

    def gradients(self, name: str, before: tuple[int, ...]) -> TensorArrayState:
        """An array for the gradients of this one's elements, of equal shapes; they begin with `before`."""
        shape = TensorShape(before).concatenate(self.element_shape)
        found = TensorArrayState(name, self.dtype, self.size, shape, self.identical, is_grad=True)
        found.marked_size = self.marked_size
        for mine, theirs in zip(self.places, found.places, strict=True):
            theirs.shape = None if mine.shape is None else before + mine.shape
        return found
