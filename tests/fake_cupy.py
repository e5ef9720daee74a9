"""A stand-in for the whole of CuPy, for tests without a card: strict arrays, and as much of `cupy.cuda` as dtflab uses.

It is not a GPU: nothing is asynchronous and NumPy computes. It shows that dtflab keeps to CuPy's interface, puts its
work on the right device and stream, stays within the memory pool's limit and copies where it says that it copies.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import math
import sys
import types
import weakref
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests import strict_arrays
from tests.strict_arrays import StrictArray, hooks


class OutOfMemoryError(MemoryError):
    """CuPy's, with CuPy's text."""

    def __init__(self, size: int, total: int, limit: int = 0) -> None:
        super().__init__(
            f"Out of memory allocating {size:,} bytes (allocated so far: {total:,} bytes, limit {limit:,})."
        )


class CUDARuntimeError(RuntimeError):
    """CuPy's error for an error code of CUDA."""


class CUDADriverError(RuntimeError):
    """CuPy's error for a launch that failed."""


class Pool:
    """The default memory pool of all devices."""

    def __init__(self, cards: int) -> None:
        self.limits = [0] * cards
        self.used = [0] * cards
        self._known: set[int] = set()

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        self.limits[hooks.device] = size or 0

    def used_bytes(self) -> int:
        return self.used[hooks.device]

    total_bytes = used_bytes

    def made(self, array: np.ndarray) -> None:
        """Count an array's memory as long as it lives."""
        device, size = hooks.device, -(-array.nbytes // 512) * 512
        if self.used[device] + size > self.limits[device] > 0:
            raise OutOfMemoryError(size, self.used[device], self.limits[device])
        self.used[device] += size
        weakref.finalize(array, self._gone, device, size)

    def _gone(self, device: int, size: int) -> None:
        self.used[device] -= size


class Device:
    """cupy.cuda.Device: a context in which it is the current one."""

    def __init__(self, index: int = 0) -> None:
        self.id = index
        self._before: list[int] = []

    def __enter__(self) -> Device:
        self._before.append(hooks.device)
        hooks.device = self.id
        return self

    def __exit__(self, *exc: Any) -> None:
        hooks.device = self._before.pop()

    def synchronize(self) -> None:
        """There is nothing to wait for."""


class Event:
    """A point in a stream."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream


class Stream:
    """cupy.cuda.Stream; `log` says what was asked of it."""

    def __init__(self, null: bool = False, non_blocking: bool = False) -> None:
        assert non_blocking, "a stream of dtflab never waits for the default stream"
        self.device = hooks.device
        self.log: list[str] = []
        self.fails: Exception | None = None  # what the next wait of the host will report
        self._before: list[Any] = []

    def __enter__(self) -> Stream:
        assert self.device == hooks.device, "a stream is used on its own device"
        self._before.append(hooks.stream)
        hooks.stream = self
        return self

    def __exit__(self, *exc: Any) -> None:
        hooks.stream = self._before.pop()

    def record(self, event: Any = None) -> Event:
        return Event(self)

    def wait_event(self, event: Event) -> None:
        self.log.append("wait")

    def synchronize(self) -> None:
        self.log.append("synchronize")
        self._report()

    def _report(self) -> None:
        if self.fails is not None:
            error, self.fails = self.fails, None
            raise error


def _copied(kind: str, array: np.ndarray, stream: Any) -> None:
    assert stream is not None and stream is not hooks.stream, "copies have streams of their own"
    stream.log.append(f"{kind} {array.nbytes}")
    stream._report()


def _runtime(cards: int, memory: int, pool: Pool) -> Any:
    def properties(index: int) -> dict[str, Any]:
        assert 0 <= index < cards
        return {"name": b"Stand-in", "totalGlobalMem": memory, "multiProcessorCount": 4, "major": 7, "minor": 5,
                "clockRate": 1_000_000}  # fmt: skip

    return SimpleNamespace(
        CUDARuntimeError=CUDARuntimeError,
        getDeviceCount=lambda: cards,
        getDeviceProperties=properties,
        deviceGetPCIBusId=lambda index: f"0000:{index + 1:02x}:00.0",
        memGetInfo=lambda: (memory - pool.used_bytes(), memory),
    )


def module(cards: int, memory: int) -> Any:
    """The module `cupy` of a machine with that many cards of that many bytes."""
    cupy: Any = types.ModuleType("cupy")
    cupy.__spec__ = importlib.machinery.ModuleSpec("cupy", None)
    vars(cupy).update(vars(strict_arrays.module))
    pool = Pool(cards)
    cupy.get_default_memory_pool = lambda: pool
    cupy.asnumpy = lambda array, stream=None: array.get(stream)
    cupy.cuda = SimpleNamespace(
        Device=Device, Stream=Stream, Event=Event, runtime=_runtime(cards, memory, pool),
        memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
        driver=SimpleNamespace(CUDADriverError=CUDADriverError),
        is_available=lambda: cards > 0,
    )  # fmt: skip
    return cupy


def _special(name: str) -> Any:
    """A function of `cupyx.scipy.special`: of halves it makes doubles, as CuPy's."""
    function = np.frompyfunc(getattr(math, name), 1, 1)

    def call(array: StrictArray) -> Any:
        wide = np.float32 if array.dtype == np.float32 else np.float64
        return StrictArray(np.asarray(function(array._array.astype(np.float64)), np.float64).astype(wide))

    return call


def _more() -> dict[str, Any]:
    """The modules next to `cupy` that kernels use."""
    scipy: Any = types.ModuleType("cupyx.scipy")
    scipy.special = SimpleNamespace(erf=_special("erf"), erfc=_special("erfc"))
    return {"cupyx": types.ModuleType("cupyx"), "cupyx.scipy": scipy}


@contextlib.contextmanager
def installed(cards: int = 1, memory: int = 1 << 30) -> Iterator[Any]:
    """`import cupy` finds the stand-in; arrays are only made on a stream, and each counts in the pool."""
    from dtflab.machine import cuda, hosts

    def forget() -> None:
        cuda.cards.cache_clear()
        cuda.problem.cache_clear()
        for key in [key for key, claim in hosts._claims.items() if claim.card.real]:
            del hosts._claims[key]

    def made(array: np.ndarray) -> None:
        assert hooks.stream is not None, "a kernel runs outside of the compute stream"
        cupy.get_default_memory_pool().made(array)

    cupy = module(cards, memory)
    stand_ins = {"cupy": cupy} | _more()
    before = {name: sys.modules.get(name) for name in stand_ins}
    sys.modules.update(stand_ins)
    kind = type(hooks)
    originals = kind.made, kind.copied
    kind.made, kind.copied = lambda self, array: made(array), lambda self, *args: _copied(*args)  # type: ignore[method-assign]
    forget()
    try:
        yield cupy
    finally:
        forget()
        kind.made, kind.copied = originals  # type: ignore[method-assign]
        for name, real in before.items():
            del sys.modules[name]
            if real is not None:
                sys.modules[name] = real


__all__ = ["StrictArray", "installed", "module"]
