"""Kernel registry: on which types of device an op has a kernel, and which arguments it needs in host memory.

Stands for `core/framework/op_kernel.cc` (FindKernelRegistration, SupportedDeviceTypesForNode) and `memory_types.cc`. A
GPU here runs NumPy and could do anything; but a program should meet the limits that it meets in TensorFlow. So
`gpu_kernels.txt` is what TensorFlow registers, written by `docs/kernel_table.py`. Left out: labels, ops that TensorFlow
would rather run on a CPU (iterators), and a table of CPU kernels: every op of dtflab has one.

Rules: a device's own kernel for these attributes comes first, else a DEFAULT one serves. An op that is not in the
table, and so every op that a program adds, runs on CPUs only. The table is read on first use.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

from dtflab.base.grouping import grouped
from dtflab.graph import dtypes, op_registry
from dtflab.graph.dtypes import DType

Positions = frozenset[int]

_CPU_ONLY, _BOTH = ("CPU",), ("GPU", "CPU")
_NOWHERE: Positions = frozenset()
_ALWAYS_ON_HOST = (dtypes.string, dtypes.string._as_ref, dtypes.resource)


class Kernel(NamedTuple):
    """Kernels of one op for a device type: the values of attributes that they take, the arguments in host memory."""

    device_type: str
    allowed: dict[str, frozenset[Any]]
    host_args: frozenset[str]

    def takes(self, attrs: Mapping[str, Any]) -> bool:
        """True if the kernel is for these attributes; it must take each of a list of types."""
        return all(
            values.issuperset(attrs[name]) if isinstance(attrs[name], tuple) else attrs[name] in values
            for name, values in self.allowed.items()
        )

    def __str__(self) -> str:
        """The line of TensorFlow's error texts: `device='GPU'; T in [DT_HALF, DT_FLOAT]`."""
        texts = [f"device='{self.device_type}'"]
        for name, values in self.allowed.items():
            texts.append(f"{name} in [{', '.join(map(_proto_name, sorted(values, key=str)))}]")
        return "; ".join(texts)


def device_types(op_name: str, attrs: Mapping[str, Any]) -> tuple[str, ...]:
    """The types of devices that have a kernel of the op for these attributes, best first."""
    if op_name not in _table() or _find(op_name, _key(op_name, attrs)) is None:
        return _CPU_ONLY
    return _BOTH


def host_memory(op_name: str, attrs: Mapping[str, Any], device_type: str) -> tuple[Positions, Positions]:
    """The positions of a node's inputs and of its outputs in host memory; none on a CPU, which has no other."""
    if device_type == "CPU":
        return _NOWHERE, _NOWHERE
    return _host_memory(op_name, _key(op_name, attrs))


def gpu_kernels(op_name: str) -> list[Kernel]:
    """The kernels that the table lists for an op."""
    return [_parsed(line) for line in _table().get(op_name, ())]


# -- the table --------------------------------------------------------------------------------------------------


@functools.cache
def _table() -> dict[str, list[str]]:
    """The lines of each op, GPU before DEFAULT."""
    from pathlib import Path  # with what it needs of `urllib`, this takes 2 ms

    text = Path(__file__).with_name("gpu_kernels.txt").read_text(encoding="utf-8")
    lines = (line.partition(" ") for line in text.splitlines())
    return grouped((op_name, rest) for op_name, _, rest in lines)


def _parsed(line: str) -> Kernel:
    device_type, *words = line.split(" ")
    pairs = [word.partition("=") for word in words if not word.startswith("host:")]
    allowed = {name: frozenset(map(_value, values.split(","))) for name, _, values in pairs}
    host = [word[5:].split(",") for word in words if word.startswith("host:")]
    return Kernel(device_type, allowed, frozenset(arg for args in host for arg in args))


def _value(text: str) -> DType | bytes:
    return text.strip("'").encode() if text.startswith("'") else dtypes.as_dtype(text)


def _proto_name(value: DType | bytes) -> str:
    return repr(value.decode()) if isinstance(value, bytes) else "DT_" + dtypes.dtype_text(value).upper()


# -- looking up, once per op and attributes ---------------------------------------------------------------------

_Key = tuple[Any, ...]


def _key(op_name: str, attrs: Mapping[str, Any]) -> _Key:
    """The values of the attributes that a kernel, or the types of a node's inputs and outputs, depend on."""
    values = (attrs.get(name) for name in _telling(op_name))
    return tuple(tuple(value) if isinstance(value, list) else value for value in values)


@functools.cache
def _telling(op_name: str) -> tuple[str, ...]:
    op_def = op_registry.get(op_name).op_def
    args = (*op_def.inputs, *op_def.outputs)
    of_args = [attr for arg in args for attr in (arg.type_attr, arg.number_attr, arg.type_list_attr) if attr]
    return tuple(dict.fromkeys([*of_args, *(name for kernel in gpu_kernels(op_name) for name in kernel.allowed)]))


@functools.lru_cache(maxsize=4096)
def _find(op_name: str, key: _Key) -> Kernel | None:
    """The kernel for a GPU: the first that takes the attributes, and DEFAULT ones are last."""
    attrs = dict(zip(_telling(op_name), key, strict=True))
    return next((kernel for kernel in gpu_kernels(op_name) if kernel.takes(attrs)), None)


@functools.lru_cache(maxsize=4096)
def _host_memory(op_name: str, key: _Key) -> tuple[Positions, Positions]:
    op_def, kernel = op_registry.get(op_name).op_def, _find(op_name, key)
    attrs = dict(zip(_telling(op_name), key, strict=True))
    return _on_host(op_def.inputs, attrs, kernel), _on_host(op_def.outputs, attrs, kernel)


def _on_host(args: tuple[op_registry.ArgDef, ...], attrs: dict[str, Any], kernel: Kernel | None) -> Positions:
    """Positions of what a kernel declares, and of types that are never in a GPU's memory."""
    found, position = set(), 0
    for arg in args:
        for dtype in arg.types(attrs):
            declared = kernel is not None and arg.name in kernel.host_args
            int32_without_kernel = kernel is None and dtype == dtypes.int32
            if declared or int32_without_kernel or dtype in _ALWAYS_ON_HOST:
                found.add(position)
            position += 1
    return frozenset(found)
