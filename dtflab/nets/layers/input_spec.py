"""InputSpec: the requirements of a layer on its inputs, and their check at a call.

Stands for `keras/engine/input_spec.py`. Left out: optional inputs, inputs by name, a last axis that may be missing.
"""

from __future__ import annotations

from typing import Any

from dtflab.base import nest
from dtflab.graph.dtypes import as_dtype
from dtflab.graph.tensor_shape import TensorShape, as_shape


class InputSpec:
    """Requirements: a dtype, a rank (exact, minimum or maximum), sizes of some axes, or a whole shape."""

    def __init__(
        self,
        dtype: Any = None,
        shape: Any = None,
        ndim: int | None = None,
        max_ndim: int | None = None,
        min_ndim: int | None = None,
        axes: dict[int, Any] | None = None,
    ) -> None:
        self.dtype = None if dtype is None else as_dtype(dtype).name
        self.shape = None if as_shape(shape).ndims is None else tuple(as_shape(shape).as_list())
        self.ndim = ndim if self.shape is None else len(self.shape)
        self.max_ndim, self.min_ndim = max_ndim, min_ndim
        try:
            self.axes = {int(axis): size for axis, size in (axes or {}).items()}
        except (AttributeError, ValueError, TypeError):
            raise TypeError(f"Argument `axes` must be a dict with integer keys. Received: axes={axes}") from None
        rank = self.ndim or self.max_ndim
        if self.axes and rank is not None and max(self.axes) > rank - 1:
            raise ValueError(f"Axis {max(self.axes)} is greater than the maximum allowed value: {rank - 1}")

    def __repr__(self) -> str:
        said = {name: value for name, value in vars(self).items() if value}
        return f"InputSpec({', '.join(f'{name}={value}' for name, value in said.items())})"

    def misfit(self, x: Any) -> str | None:
        """The requirement that the tensor `x` does not meet, or None."""
        shape = as_shape(x.shape)
        if shape.ndims is None:
            return None
        return self._wrong_rank(shape) or self._wrong_dtype(x) or self._wrong_sizes(shape)

    def _wrong_rank(self, shape: TensorShape) -> str | None:
        found = f"found ndim={shape.ndims}. Full shape received: {tuple(shape.as_list())}"
        if self.ndim is not None and shape.ndims != self.ndim:
            return f"expected ndim={self.ndim}, {found}"
        if self.max_ndim is not None and len(shape) > self.max_ndim:
            return f"expected max_ndim={self.max_ndim}, {found}"
        if self.min_ndim is not None and len(shape) < self.min_ndim:
            return f"expected min_ndim={self.min_ndim}, {found}"
        return None

    def _wrong_dtype(self, x: Any) -> str | None:
        if self.dtype is None or x.dtype.name == self.dtype:
            return None
        return f"expected dtype={self.dtype}, found dtype={x.dtype}"

    def _wrong_sizes(self, shape: TensorShape) -> str | None:
        sizes = shape.as_list()
        for axis, size in self.axes.items():
            size = getattr(size, "value", size)
            if size is not None and sizes[axis] not in (size, None):
                received = f"but received input with shape {tuple(sizes)}"
                return f"expected axis {axis} of input shape to have value {size}, {received}"
        if self.shape is not None and not shape.is_compatible_with(self.shape):
            return f"expected shape={self.shape}, found shape={tuple(sizes)}"
        return None


def assert_input_compatibility(spec: Any, inputs: Any, layer: str) -> None:
    """Raise ValueError if the `inputs` of a layer don't meet its `spec` (an InputSpec, a list of them, or None)."""
    if not spec:
        return
    specs, tensors = nest.flatten(spec), nest.flatten(inputs)
    for x in tensors:
        if not hasattr(x, "shape"):
            raise TypeError(
                f"Inputs to a layer should be tensors. Got '{x}' (of type {type(x)}) as input for layer '{layer}'."
            )
    if len(tensors) != len(specs):
        raise ValueError(
            f'Layer "{layer}" expects {len(specs)} input(s), but it received {len(tensors)} input tensors. '
            f"Inputs received: {tensors}"
        )
    for index, (x, one) in enumerate(zip(tensors, specs)):
        if one is not None and (wrong := one.misfit(x)):
            raise ValueError(f'Input {index} of layer "{layer}" is incompatible with the layer: {wrong}')
