"""DeviceMemory: which tensor lies where in the memory of a GPU, which node made it, and when it is freed.

Stands for `GPUProcessState` and the part of `OpKernelContext` that allocates outputs. A simulated GPU computes with
NumPy: its arrays lie in host memory, and this is the book-keeping that a card would do. Left out: memory that a kernel
uses while it runs, and scoped allocators.

Rules: what counts is the buffer. Views share the buffer of the array that owns it; it is accounted once, for the node
that made it, and freed when the last array on it is gone. Text and other Python objects are in host memory.
"""

from __future__ import annotations

import gc
import itertools
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.base import errors
from dtflab.graph import dtypes
from dtflab.graph.node import line_text
from dtflab.machine.bfc_allocator import BFCAllocator, OutOfMemory, human_bytes, rounded
from dtflab.ops.cell import Cell
from dtflab.ops.messages import dtype_text, shape_text

# A message lists this many tensors, or as many as make up this part of the bytes.
_MOST_ROWS = 10
_MOST_BYTES = 0.99
_SPARE = 32  # bytes: random numbers are drawn a few at a time, so the last ones may be too many


serials = itertools.count()  # of the buffers of all devices, in the order in which they came
_holders: weakref.WeakValueDictionary[int, DeviceMemory] = weakref.WeakValueDictionary()  # by the id of the array


class Buffer:
    """The memory of one array: its place on the device, and the node that made it."""

    __slots__ = ("address", "dtype", "line", "name", "nbytes", "number", "owner", "serial", "shape", "size", "variable")

    def __init__(self, owner: np.ndarray, array: np.ndarray, maker: Any) -> None:
        self.owner: Any = owner  # a weak reference to it, once it has memory
        self.nbytes = owner.nbytes
        shown = array if owner.nbytes - array.nbytes < _SPARE else owner  # people know the shape of the tensor
        self.shape = shown.shape
        self.dtype = shown.dtype
        self.name: str = maker.name
        self.line = getattr(maker, "line", None)
        self.variable = maker.name if isinstance(maker, Cell) else None  # that holds it; the Cell would hold the array
        self.address = 0
        self.size = 0  # of the chunk
        self.number = 0  # counted from 1: TensorFlow's allocation id
        self.serial = next(serials)

    def __str__(self) -> str:
        return self.name if self.variable is None else f"variable {self.variable}"


class DeviceMemory:
    """The arrays of one device (or of all sessions of a program on one card), laid out by `allocator`."""

    def __init__(self, device_name: str, allocator: BFCAllocator, others: Callable[[], str] = lambda: "") -> None:
        """`others()` says which other programs hold memory of the card, for errors."""
        self._others = others
        self.device_name = device_name
        self.allocator = allocator
        self.other_cards: list[DeviceMemory] = []  # of this program: its first tensor takes them, too
        self._buffers: dict[int, Buffer] = {}  # by the id of the array that owns the memory
        self._gone: deque[int] = deque()  # ids of arrays that are no more, whose memory is not yet given back
        self._lock = threading.Lock()

    def keep(self, value: Any, maker: Any) -> Any:
        """Account what `value` (of an edge, or a list of them) has in memory, made by `maker`, a Node or Cell.

        Returns the value, NumPy's scalars as arrays without dimensions, which can be watched. ResourceExhaustedError
        if the memory is full; then nothing of the value is accounted.
        """
        if isinstance(value, np.generic):
            value = np.asarray(value)
        if isinstance(value, np.ndarray) or hasattr(value, "__cuda_array_interface__"):
            self._adopt(value, maker)
        elif isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*(self.keep(each, maker) for each in value))
        elif isinstance(value, list | tuple):
            return type(value)(self.keep(each, maker) for each in value)
        elif isinstance(value, Cell) and value.value is not None:
            self._adopt(value.value, value)
        return value

    def _of(self, owner: Any) -> Buffer | None:
        found = self._buffers.get(id(owner))
        return found if found is not None and found.owner() is owner else None

    def buffers(self) -> list[Buffer]:
        """All that is on the device, the oldest first."""
        self._drain()
        with self._lock:
            return sorted(self._buffers.values(), key=lambda buffer: buffer.number)

    @property
    def bytes_in_use(self) -> int:
        """Bytes of the chunks that are in use now."""
        self._drain()
        return self.allocator.stats.bytes_in_use

    def usage(self) -> str:
        """The holders of memory, the largest first; as in TensorFlow's message, with sizes, shapes and lines."""
        rows = sorted(self.buffers(), key=lambda buffer: (-buffer.size, buffer.number))
        left = sum(buffer.size for buffer in rows)
        least = left * (1 - _MOST_BYTES)
        lines = [f"Current usage from device: {self.device_name}, allocator: {self.allocator.name}"]
        for buffer in rows[:_MOST_ROWS]:
            if left > least:
                lines.append(f"  {_row(buffer)}")
                left -= buffer.size
        rest = len(rows) + 1 - len(lines)
        return "\n".join([*lines, f"  Remaining {rest} tensors with {human_bytes(left)}"] if rest else lines)

    # -- buffers come and go ----------------------------------------------------------------------------------------

    def _adopt(self, array: np.ndarray, maker: Any) -> None:
        owner = owner_of(array)
        if owner.nbytes == 0 or owner.dtype.kind in "OSUV":
            return
        found = self._of(owner)
        if found is None:
            try:
                self._allocate(owner, array, maker)
            except OutOfMemory as error:
                raise self._exhausted(error, array, maker) from None
        elif isinstance(maker, Cell):
            found.variable = maker.name

    def _allocate(self, owner: np.ndarray, array: np.ndarray, maker: Any, again: bool = True) -> None:
        try:
            with self._lock:
                self._free_the_gone()
                if self._of(owner) is None:  # still
                    self._register(owner, Buffer(owner, array, maker))
            self._drain()
            others, self.other_cards = self.other_cards, []
            for other in others:
                other.begin()
        except OutOfMemory:
            self._drain()
            if not again:
                raise
            gc.collect()  # memory held only by a cycle of Python objects must not make an allocation fail
            self._allocate(owner, array, maker, again=False)

    def _register(self, owner: np.ndarray, buffer: Buffer) -> None:
        key = id(owner)
        buffer.owner = weakref.ref(owner, lambda _: self._let_go(key))
        buffer.address = self.allocator.allocate(owner.nbytes, buffer)
        buffer.size = self.allocator.allocated_size(buffer.address)
        buffer.number = self.allocator.stats.num_allocs
        self._buffers[key] = buffer
        _holders[key] = self

    def begin(self) -> None:
        """The program uses one of its cards: take the memory of this one, too."""
        with self._lock:
            self.allocator.begin()

    def _let_go(self, key: int) -> None:
        """An array is gone: called by the interpreter, on any thread and at any moment, even inside `_allocate`."""
        self._gone.append(key)
        self._drain()

    def _drain(self) -> None:
        """Give back what is gone. A thread without the lock leaves it to the holder, which looks again afterwards."""
        while self._gone and self._lock.acquire(blocking=False):
            try:
                self._free_the_gone()
            finally:
                self._lock.release()

    def _free_the_gone(self) -> None:
        while self._gone:
            self.allocator.deallocate(self._buffers.pop(key := self._gone.popleft()).address)
            if _holders.get(key) is self:
                _holders.pop(key, None)

    def _exhausted(self, full: OutOfMemory, array: np.ndarray, maker: Any) -> errors.ResourceExhaustedError:
        dtype = dtype_text(dtypes.as_dtype(array.dtype))
        tensor = f"tensor with shape{shape_text(array)} and type {dtype}"
        lines = [
            f"OOM when allocating {tensor} on {self.device_name} by allocator {self.allocator.name}",
            _why(full),
            self._others() if full.refused else "",
            self.usage() if self._buffers else "",
        ]
        error = errors.ResourceExhaustedError.of("\n".join(filter(None, lines)))
        error.report, error.exhausted = full.report, full.exhausted
        return error


def located(owner: Any) -> tuple[DeviceMemory | None, Buffer | None]:
    """The device memory that an array lies in, if it owns its memory, and its buffer there; Nones for the host's."""
    memory = _holders.get(id(owner))
    buffer = memory and memory._of(owner)
    return (memory, buffer) if buffer else (None, None)


def owner_of(array: Any) -> Any:
    """The array whose memory `array` is a view of, perhaps itself."""
    owner = base = array
    while base is not None:
        if hasattr(base, "dtype"):
            owner = base
        base = getattr(base, "base", None)  # as_strided puts an object of another kind in between
    return owner


def _row(buffer: Buffer) -> str:
    """One line of the usage: `4.00MiB from MatMul: float[1024,1024] (train.py:12, in model)`."""
    line = line_text(buffer.line)
    text = f"{human_bytes(buffer.size)} from {buffer}: {dtype_text(dtypes.as_dtype(buffer.dtype))}"
    needs = "" if rounded(buffer.nbytes) == buffer.size else f", which needs {human_bytes(buffer.nbytes)}"
    return f"{text}{shape_text(buffer.shape)}{needs}" + (f" ({line})" if line else "")


def _why(full: OutOfMemory) -> str:
    """Why it did not fit, and what helps."""
    wanted, free, piece = human_bytes(full.nbytes), human_bytes(full.free), human_bytes(full.largest_free)
    if full.nbytes > full.limit:
        return f"{wanted} are wanted: more than this program has on the card, {human_bytes(full.limit)}."
    if full.refused:
        return (
            f"failed to allocate {human_bytes(full.refused)} from device: CUDA_ERROR_OUT_OF_MEMORY. "
            f"{wanted} are wanted; a program takes memory in larger pieces, by default all that it may have at once, "
            "which is more than is free. End another program that uses it, or start all of them with a smaller "
            "per_process_gpu_memory_fraction or with allow_growth."
        )
    if full.free >= full.nbytes:
        return (
            f"{wanted} are wanted and {free} are free, but in pieces of at most {piece}: memory is fragmented. "
            "Allocate what stays, such as variables, first, or make tensors of one size."
        )
    if full.free + full.waste >= full.nbytes:
        return (
            f"{wanted} are wanted and {free} are free; {human_bytes(full.waste)} are lost in chunks that are larger "
            "than their tensors, by less than the double and less than 128MiB, so that they were not split. Tensors of "
            "half that size, or smaller batches, would fit."
        )
    return (
        f"{wanted} are wanted, {free} of {human_bytes(full.limit)} are free. Smaller batches need less; a control "
        "dependency that makes one branch wait for the end of another frees the first one's tensors before."
    )
