"""Real GPUs, through CuPy: arrays live on the card, kernels run there, copies are explicit.

Stands for `core/common_runtime/gpu/gpu_device.cc`, `gpu_stream_util.cc` and `gpu_util.cc`. Left out: copies from card
to card, which go through the host, and several compute streams.

Rules: CuPy is imported when a card is asked for, and never needed. Each card has one stream for kernels and one for
copies in each direction; a stream that uses another stream's result waits for it on the card. The program waits only
where the host needs a value: a copy to it, a kernel that looks at an array, a trace. An error of an earlier kernel
comes up there, too. All memory is of the compute stream's pool, so that what is freed is used again in the order of
that stream.

A kernel over CuPy is the kernel over NumPy. Where CuPy has no way, `ON_HOST`, and for bfloat16, it runs on NumPy, with
copies there and back.
"""

from __future__ import annotations

import functools
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dtflab.base import errors
from dtflab.graph import op_registry
from dtflab.graph.node import Node, make_node
from dtflab.machine import cards as models
from dtflab.machine.bfc_allocator import AllocatorStats, human_bytes
from dtflab.machine.cards import Card
from dtflab.machine.clock import REAL, Clock
from dtflab.machine.gpu import GPUDevice, Kernel
from dtflab.machine.memory import DeviceMemory
from dtflab.ops import kernel_registry
from dtflab.ops.variants import Variant
from dtflab.protos.config_pb2 import ConfigProto

if TYPE_CHECKING:
    from dtflab.machine.hosts import Claim
    from dtflab.protos.config_pb2 import GPUOptions

DTYPES = "?bBhHiIlLqQefdFD"  # what CuPy computes with, as characters of NumPy
_BLOCK = 512  # bytes: CuPy's pool gives multiples of it

# Ops whose kernels go element by element through Python, or need what CuPy doesn't have.
ON_HOST = frozenset(
    "Unique SparseFillEmptyRows SparseReorder SparseReshape SparseSlice SparseSliceGrad SparseSplit "
    "SparseToDense".split()
)


# -- which cards there are ---------------------------------------------------------------------------------------


@functools.cache
def cards(host: str) -> list[Card]:
    """The cards that CUDA shows to this process (it obeys CUDA_VISIBLE_DEVICES itself); none if CuPy can't use any."""
    if problem() is not None:
        return []
    runtime = _cupy().cuda.runtime
    return [_card(runtime, host, i) for i in range(runtime.getDeviceCount())]


@functools.cache
def problem() -> str | None:
    """Why there is no real GPU; None if there is one."""
    try:
        cupy = _cupy()
    except ImportError as error:
        return f"CuPy can't be loaded: {error}. `pip install dtflab[gpu]` installs it."
    try:
        if not cupy.cuda.runtime.getDeviceCount():
            return "CUDA sees no card."
        _try_a_kernel(cupy)
    except Exception as error:  # of CUDA, of its compiler, a missing library, for example; report it whatever it is
        return f"CUDA can't be used: {type(error).__name__}: {error}"
    return None


def _try_a_kernel(cupy: Any) -> None:
    """The first kernel needs all of CUDA that the later ones need."""
    with cupy.cuda.Device(0), cupy.cuda.Stream(non_blocking=True):
        two = cupy.ones(1, np.float32) + 1
        if int(two[0]) != 2:
            raise RuntimeError(f"1 + 1 is {two}")


def usage(card: Card) -> tuple[int, int]:
    """Bytes of the card that are in use, as its driver says, and those that CuPy's pool in this process has."""
    cupy = _cupy()
    with cupy.cuda.Device(card.index):
        free, total = cupy.cuda.runtime.memGetInfo()
        return total - free, cupy.get_default_memory_pool().total_bytes()


def _cupy() -> Any:
    import cupy

    return cupy


def _card(runtime: Any, host: str, index: int) -> Card:
    found = runtime.getDeviceProperties(index)
    model = models.CardModel(
        name=found["name"].decode(),
        short=(),
        memory_bytes=int(found["totalGlobalMem"]),
        compute_capability=(found["major"], found["minor"]),
        clock_ghz=found.get("clockRate", 0) / 1e6,  # kHz; CUDA 13 no longer reports it
        multiprocessors=found["multiProcessorCount"],
        power_watts=0,  # CUDA does not report it
    )
    return Card(host, index, model, model.memory_bytes, runtime.deviceGetPCIBusId(index), real=True)


# -- memory ------------------------------------------------------------------------------------------------------


class PoolBooks:
    """The statistics of CuPy's pool, in the words of an allocator. The pool itself says when memory is full."""

    def __init__(self, name: str, limit: int) -> None:
        self.name = name
        self.limit = limit
        self.stats = AllocatorStats(limit)
        self._sizes: dict[int, int] = {}

    def allocate(self, nbytes: int, what: Any = None) -> int:
        """Note that an array of that many bytes was made; returns its number."""
        size = -(-nbytes // _BLOCK) * _BLOCK
        self.stats.allocated(size)
        self._sizes[self.stats.num_allocs] = size
        return self.stats.num_allocs

    def allocated_size(self, address: int) -> int:
        return self._sizes[address]

    def deallocate(self, address: int) -> None:
        """Note that the tensor at `address` has been freed."""
        self.stats.bytes_in_use -= self._sizes.pop(address)

    def report(self, nbytes: int = 0) -> str:
        """The counts."""
        return f"CuPy's memory pool {self.name}\n{self.stats.debug_string()}"


class CardMemory(DeviceMemory):
    """A program's memory on a real card, and the streams in whose order it is used: one for all its sessions."""

    def __init__(self, device_name: str, card: Any, cupy: Any, options: GPUOptions) -> None:
        with card:
            self.compute, self.upload, self.download = (cupy.cuda.Stream(non_blocking=True) for _ in range(3))
            free, total = cupy.cuda.runtime.memGetInfo()
            fraction = options.per_process_gpu_memory_fraction
            limit = int(fraction * total) if fraction > 0 else free - models.min_system_memory(free)
            limit = limit // _BLOCK * _BLOCK
            super().__init__(device_name, PoolBooks(f"GPU_{device_name.rpartition(':')[2]}_pool", limit))  # type: ignore[arg-type]
            cupy.get_default_memory_pool().set_limit(size=limit)
            if not options.allow_growth:
                self._grab(cupy, limit)

    def begin(self) -> None:
        """Do nothing: the memory was taken when the device was made."""

    def _grab(self, cupy: Any, nbytes: int) -> None:
        """Take all at once, as TensorFlow does: what the pool has had once, it keeps."""
        try:
            with self.compute:
                cupy.empty(nbytes, np.uint8)
        except cupy.cuda.memory.OutOfMemoryError:
            raise errors.ResourceExhaustedError.of(
                f"failed to allocate {human_bytes(nbytes)} ({nbytes} bytes) on {self.device_name}: other programs have "
                "it. End them, or start all with a smaller per_process_gpu_memory_fraction, or with allow_growth."
            ) from None

    def keep(self, value: Any, maker: Any) -> Any:
        """Account arrays of the card; what else there is on an edge is not in its memory."""
        if hasattr(value, "__cuda_array_interface__"):
            self._adopt(value, maker)
        elif not isinstance(value, np.ndarray | np.generic):
            return super().keep(value, maker)
        return value


@dataclass(frozen=True)
class _Size:
    """The size, shape and dtype of an array that has been copied, for a trace."""

    nbytes: int
    shape: tuple[int, ...]
    dtype: Any


# -- the device --------------------------------------------------------------------------------------------------


class CudaGPU(GPUDevice):
    """A card that CUDA shows, as /gpu:N."""

    def __init__(self, name: str, claim: Claim, config: ConfigProto | None = None, clock: Clock = REAL) -> None:
        self.cupy = _cupy()
        self.card = self.cupy.cuda.Device(claim.card.index)
        if claim.memory is None:
            claim.memory = CardMemory(name, self.card, self.cupy, (config or ConfigProto()).gpu_options)
        assert isinstance(claim.memory, CardMemory)
        self.streams = claim.memory
        super().__init__(name, claim, config, clock)
        self.xp = self.cupy
        self._launched: deque[str] = deque(maxlen=20)  # nodes since the host last waited
        self._errors = _Errors(self)
        self._here = threading.local()  # .copies: those of the kernel that this thread runs

    def module_of(self, node: Node) -> Any:
        """NumPy for results in host memory, which take shapes at most, for constants, and where CuPy has no way."""
        on_host, made_on_host = kernel_registry.host_memory(node.op, node.attrs, "GPU")
        hosted, ends = (made_on_host, node.output_types) if node.output_types else (on_host, node.inputs)
        return np if len(hosted) == len(ends) or node.op == "Const" or _on_host(node) else self.xp

    def to_device(self, array: Any) -> Any:
        """A copy on the card; text and bfloat16, which CuPy doesn't have, stay where they are."""
        if isinstance(array, Variant):
            return array.mapped(self.to_device)
        array = np.asarray(array)
        if array.dtype.char not in DTYPES:
            return array
        compute, upload = self.streams.compute, self.streams.upload
        with self.card, self._errors:
            with compute:
                copy = self.cupy.empty(array.shape, array.dtype)
            upload.wait_event(compute.record())  # the previous user of this memory has finished
            copy.set(np.ascontiguousarray(array).reshape(array.shape), stream=upload)
            compute.wait_event(upload.record())
        return copy

    def to_host(self, array: Any) -> Any:
        """A copy in host memory, once the kernels before have run; values that are not on the card stay as they are."""
        if isinstance(array, Variant):
            return array.mapped(self.to_host)
        if not isinstance(array, self.cupy.ndarray):
            return array
        compute, download = self.streams.compute, self.streams.download
        with self.card, self._errors:
            with compute:
                array = self.cupy.ascontiguousarray(array).reshape(array.shape)
            download.wait_event(compute.record())
            copy = array.get(stream=download)
        self._launched.clear()
        return copy

    def traced(
        self, trace: Any, node: Node, started: float, ended: float, value: Any, parts: Sequence[Any] = ()
    ) -> None:
        """Write a node into a trace, when it has run on the card, and before it the copies that it made."""
        with self._errors:
            self.streams.compute.synchronize()
        for copy, at, until, size in self._copies():
            trace.add(f"{self.name}/memcpy", copy, at, until, size)
        self._copies().clear()
        super().traced(trace, node, started, self._now(), value, parts)

    def _copies(self) -> list[tuple[Node, float, float, _Size]]:
        if not hasattr(self._here, "copies"):
            self._here.copies = []
        copies: list[tuple[Node, float, float, _Size]] = self._here.copies
        return copies

    def _copied(self, ctx: Any, node: Node, copy: Kernel, array: Any) -> Any:
        """Copy an input to this GPU. In a trace, a copy takes until it has arrived."""

        def arrived(array: Any) -> Any:
            copied = copy(array)
            self.streams.upload.synchronize()
            return copied

        return super()._copied(ctx, node, copy if ctx.step.trace is None else arrived, array)

    # -- kernels -------------------------------------------------------------------------------------------------

    def bind(self, node: Node) -> Kernel:
        """The kernel of `node`; what it keeps for all its runs is made on the card, too."""
        with self.card, self.streams.compute, self._errors:
            return super().bind(node)

    def _accounted(self, kernel: Kernel, node: Node) -> Kernel:
        return super()._accounted(self._on_card(kernel, node), node)

    def _on_card(self, kernel: Kernel, node: Node) -> Kernel:
        """The kernel on the card's compute stream, with its values where TensorFlow says that they are."""
        op = op_registry.get(node.op)
        first = int(op.needs_ctx or op.is_async)
        made_on_host = kernel_registry.host_memory(node.op, node.attrs, "GPU")[1]
        place = [self._copier(node, i in made_on_host) for i in range(len(node.output_types))]
        fetch = self._copier(node, True) if _on_host(node) else None

        many = len(op.op_def.outputs) > 1 or any(arg.is_list for arg in op.op_def.outputs)

        def placed(value: Any) -> Any:
            if many and isinstance(value, list | tuple):
                return [put(each) for put, each in zip(place, value, strict=True)]
            return place[0](value) if place else value

        def run(*args: Any) -> Any:
            self._copies().clear()
            if fetch is not None:
                args = (*args[:first], *map(fetch, args[first:]))
            if op.is_async:
                args = (*args[:-1], _then(placed, args[-1]))
            self._launched.append(node.name)
            with self.card, self.streams.compute, self._errors:
                value = kernel(*args)
            return placed(value)

        return run

    def _copier(self, node: Node, to_host: bool) -> Callable[[Any], Any]:
        """A function that brings a value of `node` to the side where it belongs, and notes the copy."""
        wrong: Any = self.cupy.ndarray if to_host else (np.ndarray, np.generic)
        copy = self.to_host if to_host else self.to_device
        line = make_node(f"{node.name}:MEMCPY{'DtoH' if to_host else 'HtoD'}", "NoOp", device=node.device)

        def put(value: Any) -> Any:
            if not isinstance(value, wrong):
                return value
            started = self._now()
            copied = copy(value)
            if copied is not value:
                size = _Size(copied.nbytes, copied.shape, copied.dtype)  # the array itself would stay in memory
                self._copies().append((line, started, self._now(), size))
            return copied

        return put


class _Errors:
    """CuPy's errors as TensorFlow's."""

    def __init__(self, device: CudaGPU) -> None:
        self._device = device

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        device = self._device
        cuda = device.cupy.cuda
        if isinstance(error, cuda.memory.OutOfMemoryError):
            raise errors.ResourceExhaustedError.of(f"OOM on {device.name}: {error}\n{device.memory.usage()}") from error
        if isinstance(error, cuda.runtime.CUDARuntimeError | cuda.driver.CUDADriverError):
            since = ", ".join(device._launched)
            raise errors.InternalError.of(
                f"CUDA failed on {device.name}: {error}. Kernels run while the program goes on, so that it may be the "
                f"fault of any since the host last waited: {since}. A traced step, or CUDA_LAUNCH_BLOCKING=1 in the "
                "environment, waits for each."
            ) from error


def _on_host(node: Node) -> bool:
    """True if the kernel can only run on NumPy."""
    short = any(str(dtype.base_dtype.name) == "bfloat16" for dtype in (*_input_types(node), *node.output_types))
    return short or node.op in ON_HOST


def _input_types(node: Node) -> list[Any]:
    return list(op_registry.get(node.op).op_def.input_types(node.attrs))


def _then(placed: Callable[[Any], Any], done: Callable[..., None]) -> Callable[..., None]:
    """The callback of an asynchronous kernel, whose value is put in its place first."""

    def called(value: Any, error: Exception | None = None) -> None:
        if error is None:
            try:
                value = placed(value)
            except Exception as failed:
                value, error = None, failed
        done(value, error)

    return called
