"""SaveableObject: what a checkpoint can hold, and the tensors that are written for it.

Stands for `python/training/saving/saveable_object.py`. Its subclasses are in
`training/variable_saveables.py` and `tables/functions.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dtflab.graph.dtypes import DType
from dtflab.graph.operation import Tensor


class SaveSpec:
    """One tensor of a saveable: under which name and as which slice (`4 3 0,2:-`, "" for all) it is saved."""

    def __init__(
        self,
        tensor: Tensor | Callable[[], Tensor],
        slice_spec: str,
        name: str,
        dtype: DType | None = None,
        device: str | None = None,
    ) -> None:
        self._tensor, self.slice_spec, self.name = tensor, slice_spec, name
        if callable(tensor):
            if dtype is None or device is None:
                raise AssertionError(
                    "When passing a callable `tensor` to a SaveSpec, an explicit dtype and device must be provided."
                )
            self.dtype, self.device = dtype, device
        else:
            self.dtype = tensor.dtype
            self.device = tensor.device if device is None else device

    @property
    def tensor(self) -> Any:
        return self._tensor() if callable(self._tensor) else self._tensor


class SaveableObject:
    """Base of what can be saved: `specs` say what to write, `restore` gives the operation that takes it back."""

    def __init__(self, op: Any, specs: Sequence[SaveSpec], name: str) -> None:
        self.op, self.specs, self.name = op, specs, name

    @property
    def device(self) -> str:
        """The device of its tensors."""
        return self.specs[0].device

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Sequence[Any] | None) -> Any:
        """An operation that sets the object to `restored_tensors`, reshaped to `restored_shapes` if given."""
        raise ValueError("Calling an abstract method.")
