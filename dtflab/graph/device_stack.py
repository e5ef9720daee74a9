"""The device blocks around an operation: strings, functions, specs, and how they combine.

Stands for `_UserDeviceSpec` and `Graph._apply_device_functions` in `python/framework/ops.py`.

Rule, as measured on TensorFlow: blocks are asked from the inside out. A string (or DeviceSpec) only fills the
fields that are still open; a function's result replaces the device whole, so an outer function overrides inner
blocks unless it merges by itself; `device(None)` stops the walk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtflab.graph.device_spec import DeviceSpec


class DeviceStack:
    """The nested `device` blocks of a graph."""

    def __init__(self) -> None:
        self._blocks: list[Callable[[Any], str] | None] = []

    def __len__(self) -> int:
        return len(self._blocks)

    def copy(self) -> DeviceStack:
        """The same blocks, to be nested further on their own."""
        new = DeviceStack()
        new._blocks = list(self._blocks)
        return new

    def push(self, block: Any) -> Callable[[Any], str] | None:
        """Enter a block: None, a string, a DeviceSpec, or a function of the operation. The result is for `pop`."""
        if block is None:
            entered = None
        elif callable(block) and not isinstance(block, DeviceSpec):
            entered = _from_function(block)
        else:
            entered = _filling_in(block)
        self._blocks.append(entered)
        return entered

    def pop(self, block: Callable[[Any], str] | None) -> None:
        """Leave a block; RuntimeError unless it is the innermost one."""
        if self._blocks[-1] is not block:
            raise RuntimeError("Exiting device scope without proper scope nesting.")
        self._blocks.pop()

    def apply(self, op: Any) -> None:
        """Give `op` the device that the blocks ask for."""
        for block in reversed(self._blocks):
            if block is None:
                break
            op.device = block(op)


def _from_function(function: Callable[[Any], Any]) -> Callable[[Any], str]:
    def device_of(op: Any) -> str:
        device = function(op)
        if isinstance(device, DeviceSpec):
            return device.to_string()
        if not isinstance(device, str):
            raise TypeError(
                f"A device function must return a device string, not {device!r} (for operation '{op.name}'). "
                "Return '' for no request."
            )
        return device

    return device_of


def _filling_in(block: Any) -> Callable[[Any], str]:
    spec = block if isinstance(block, DeviceSpec) else DeviceSpec.from_string(block)
    text = spec.to_string()

    def device_of(op: Any) -> str:
        if not op.device:
            return text
        merged = DeviceSpec.from_string(text)
        merged.merge_from(DeviceSpec.from_string(op.device))
        return merged.to_string()

    return device_of
