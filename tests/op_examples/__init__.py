"""Generated inputs for every op: what `test_every_op.py` runs on dtflab and on TensorFlow.

The families are in the files of this folder, which are all found. An op that only means something in a program of
several steps (a queue, a reader) is named in `IN_PROGRAMS` of its file, with the test that runs it on both.

A function per family of ops gets a `Values` (a dtype and a seeded generator) and gives `Example`s. Whatever is in
the registry and not here is a failure of that test.

Rule: ordinary values stay clear of whole and half numbers, where derivatives jump; `special` ones (NaN, infinities,
the ends of the integers) are for values only.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph import dtypes, op_registry
from dtflab.graph.dtypes import DType


@dataclasses.dataclass(frozen=True)
class Var:
    """An input that is a variable, of either family, with this value."""

    value: np.ndarray


@dataclasses.dataclass(frozen=True)
class Example:
    """One use of an op. `smooth` if finite differences say what the gradient is.

    `gradient` is False where TensorFlow's own gradient function fails on the example.
    """

    inputs: tuple[Any, ...]
    attrs: dict[str, Any]
    smooth: bool = True
    gradient: bool = True


class Values:
    """Generated values of one dtype."""

    def __init__(self, op: str, dtype: DType) -> None:
        self.op = op
        self.dtype = dtype
        self.random = np.random.default_rng(zlib.crc32(f"{op} {dtype.name}".encode()))

    def __call__(self, *inputs: Any, smooth: bool = True, gradient: bool = True, **attrs: Any) -> Example:
        return Example(inputs, attrs, smooth, gradient)

    def array(self, *shape: int, low: int = -3, high: int = 3) -> np.ndarray:
        """Ordinary values between `low` and `high`."""
        kind = self.dtype
        if kind == dtypes.string:
            words = np.array([b"", b"a", b"bc", "dé".encode(), b"\0\xff"], object)
            found = np.empty(shape, object)
            found[...] = words[self.random.integers(0, len(words), shape)]
            return found
        if kind.is_bool:
            return self.random.integers(0, 2, shape).astype(bool)
        if kind.is_unsigned:
            low, high = max(low, 0), high + 3
        whole = self.random.integers(low, high, shape)
        if kind.is_floating or kind.is_complex:
            whole = whole + self.random.uniform(0.15, 0.4, shape)
            if kind.is_complex:
                whole = whole + 1j * (self.random.integers(low, high, shape) + self.random.uniform(0.15, 0.4, shape))
        return np.asarray(whole).astype(kind.as_numpy_dtype)

    def positive(self, *shape: int) -> np.ndarray:
        return self.array(*shape, low=1, high=4)

    def within(self, low: float, high: float, *shape: int) -> np.ndarray:
        """Floats between two bounds."""
        values = self.random.uniform(low, high, shape)
        if self.dtype.is_complex:
            values = values + 1j * self.random.uniform(low, high, shape)
        return np.asarray(values).astype(self.dtype.as_numpy_dtype)

    def special(self) -> np.ndarray:
        """Values at which formulas break."""
        kind = self.dtype
        if kind.is_floating:
            largest = float(kind.max) ** 0.75  # its inverse is not a subnormal, which TensorFlow takes for zero
            return np.array(
                [np.nan, np.inf, -np.inf, -0.0, 0.0, 1, -1, 0.5, -2.5, largest, -largest, 1e-3],
                kind.as_numpy_dtype,
            )
        if kind.is_complex:
            return np.array([0, 1, -1, 1j, -1j, 0.5 - 2j], kind.as_numpy_dtype)
        if kind.is_integer:
            return np.array([kind.min, kind.max, 0, 1, 2, kind.max // 2], kind.as_numpy_dtype)
        return self.array(4)

    def index(self, bound: int, *shape: int, dtype: Any = np.int32) -> np.ndarray:
        return self.random.integers(0, bound, shape).astype(dtype)


Family = Callable[[Values], list[Example]]
EXAMPLES: dict[str, Family] = {}
ROUNDINGS: dict[str, float] = {}  # ops whose answers are judged by condition numbers: `tests/conditions.py`
ANY = [
    dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.uint8, dtypes.int8, dtypes.bool,
    dtypes.string, dtypes.complex64, dtypes.float16, dtypes.bfloat16, dtypes.uint16,
]  # fmt: skip


SOME_ROUNDINGS, MANY_ROUNDINGS = 3, 12  # of sums and decompositions; of functions of matrices


def examples(*ops: str, roundings: float | None = None) -> Callable[[Family], Family]:
    def register(family: Family) -> Family:
        for op in ops:
            assert op not in EXAMPLES, op
            EXAMPLES[op] = family
            if roundings is not None:
                ROUNDINGS[op] = roundings
        return family

    return register


def main_attr(op_def: op_registry.OpDef) -> str:
    """The type attribute that the examples run through: the first that allows more than integers, or the first."""
    found = [name for arg in (*op_def.inputs, *op_def.outputs) if (name := arg.type_attr or arg.type_list_attr)]
    wide = [name for name in found if any(d.is_floating or d.is_complex for d in op_def.attrs[name].allowed or ANY)]
    return (wide or found or [""])[0]


def dtypes_of(op_def: op_registry.OpDef) -> list[DType]:
    """All dtypes that the interface allows, or a choice where it allows any."""
    attr = op_def.attrs.get(main_attr(op_def))
    if attr is None:
        fixed = op_def.inputs[0].type if op_def.inputs else None
        return [dtypes.float32 if fixed in (None, dtypes.resource) else fixed]
    allowed = ANY if attr.allowed is None else attr.allowed
    return [d for d in allowed if d == dtypes.string or (d.size and not d.is_quantized)]


def examples_of(op: str, dtype: DType) -> list[Example]:
    return EXAMPLES[op](Values(op, dtype))


IN_PROGRAMS: dict[str, str] = {}  # op → the test, from the root of the repository, whose programs run it on both

for _found in pkgutil.iter_modules(__path__):
    _module = importlib.import_module(f"{__name__}.{_found.name}")
    IN_PROGRAMS.update(getattr(_module, "IN_PROGRAMS", {}))
