"""Cell: where a variable's value lives, between steps and between sessions.

Stands for `Var` in `core/framework/resource_var.h` and the mutable buffer behind VariableV2.
Left out: variables of variant dtype, copy-on-read mode.

Rule: an array that was handed out never changes. An update works in place only while the cell is the array's
sole owner; otherwise the cell takes a new array and readers keep the old one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dtflab.base import errors
from dtflab.base.ownership import SOLE_ATTRIBUTE, holders
from dtflab.graph.dtypes import DType

RUN_INITIALIZER = (
    "Run its initializer first, on the cluster that holds it: `sess.run(tf.global_variables_initializer())`, or for a "
    "local variable, such as the count of epochs of an input producer, `sess.run(tf.local_variables_initializer())`."
)


class Cell:
    """A variable's value with its lock; `value` is None until the first assignment.

    `memory` is that of its device (machine/memory.py), where it is accounted; None on a CPU.
    """

    __slots__ = ("dtype", "lock", "memory", "name", "shape", "value")

    def __init__(self, name: str, dtype: DType, shape: Any) -> None:
        self.name, self.dtype, self.shape = name, dtype, shape
        self.value: Any = None
        self.memory: Any = None
        self.lock = threading.Lock()

    @property
    def initialized(self) -> bool:
        return self.value is not None

    @property
    def nbytes(self) -> int:
        """The bytes of the value, for a trace."""
        return int(getattr(self.value, "nbytes", 0))

    def read(self) -> Any:
        """The current value; FailedPreconditionError before the first assignment."""
        # Under the lock, so that `_is_sole_owner` in another thread counts this reader or precedes it.
        with self.lock:
            value = self.value
        if value is None:
            raise uninitialized(self.name)
        return value

    def assign(self, value: Any) -> None:
        """Replace the value."""
        with self.lock:
            self.value = self._kept(value)

    def _kept(self, value: Any) -> Any:
        """`value`, once the device has memory for it."""
        return value if self.memory is None else self.memory.keep(value, self)

    def update(self, compute: Callable[..., Any]) -> None:
        """Replace the value by `compute(value, out)`; `out` is the array to write into, or None for a new one."""
        with self.lock:
            if self.value is None:
                raise uninitialized(self.name)
            out = self.value if _is_sole_owner(self) else None
            self.value = self._kept(compute(self.value, out))

    def own(self, xp: Any) -> Any:
        """The value as an array of `xp` that nothing else holds, to be written into; only under the lock."""
        if self.value is None:
            raise uninitialized(self.name)
        if not _is_sole_owner(self):
            self.value = self._kept(xp.array(self.value))
        return self.value

    def __repr__(self) -> str:
        return f"<variable {self.name} {self.dtype.name}{self.shape} {'set' if self.initialized else 'unset'}>"


def update_together(cells: Sequence[Cell], xp: Any, write: Callable[..., None], *given: Any) -> None:
    """Let `write(values, *given)` change the values of several variables, as arrays of `xp`, in place.

    All are locked meanwhile, in the same order by every caller.
    """
    _update(cells if len(cells) == 1 else sorted(set(cells), key=id), cells, xp, write, given)


def _update(to_lock: Sequence[Cell], cells: Sequence[Cell], xp: Any, write: Callable[..., None], given: Any) -> None:
    if to_lock:
        with to_lock[0].lock:
            _update(to_lock[1:], cells, xp, write, given)
    else:
        write([cell.own(xp) for cell in cells], *given)


class ReferenceCell(Cell):
    """The value of a reference variable, which may have the same name as a resource variable."""

    __slots__ = ()


def uninitialized(name: str) -> errors.FailedPreconditionError:
    """The error of reading variable `name` before it has a value."""
    return errors.FailedPreconditionError.of(f"Attempting to use uninitialized value {name}. {RUN_INITIALIZER}")


def _is_sole_owner(cell: Cell) -> bool:
    value = cell.value
    if isinstance(value, np.ndarray):
        owned = value.base is None and value.flags.writeable
    elif hasattr(value, "__cuda_array_interface__"):  # CuPy's; what was launched before has its turn before
        owned = value.base is None
    else:
        return False  # NumPy scalars are immutable
    del value
    return owned and holders(cell.value) <= SOLE_ATTRIBUTE
