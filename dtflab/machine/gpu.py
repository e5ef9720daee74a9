"""GPUs: devices with a memory of their own. Simulated ones compute with NumPy.

Stands for `core/common_runtime/gpu/gpu_device.cc` and `gpu_util.cc`. Left out: streams and peer access between cards
(`cuda.py` has the streams of real ones).

Rules: what a kernel makes is in the device's memory, unless TensorFlow's registry says that this output is in host
memory. Values come in through `_Recv`, leave through `_Send`, and are copied only there. A simulated GPU copies, too,
so that no buffer belongs to two memories.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dtflab.graph import op_registry
from dtflab.graph.node import Node, make_node
from dtflab.machine.bfc_allocator import BFCAllocator
from dtflab.machine.cards import grab_all_limit
from dtflab.machine.clock import REAL, Clock
from dtflab.machine.devices import Device
from dtflab.machine.memory import DeviceMemory
from dtflab.ops import kernel_registry
from dtflab.ops.cell import Cell
from dtflab.protos.config_pb2 import ConfigProto

if TYPE_CHECKING:
    from dtflab.machine.hosts import Claim

Kernel = Callable[..., Any]


class GPUDevice(Device):
    """The common base of simulated and real GPUs: device memory, host-memory arguments, transfers."""

    def __init__(self, name: str, claim: Claim, config: ConfigProto | None = None, clock: Clock = REAL) -> None:
        self.claim = claim
        claim.clock = clock
        self.memory = _memory_of(claim, name, config)
        super().__init__(name, clock, self.memory.allocator.limit, config)
        self.resources.memory = self.memory
        self._now = clock.now

    def attributes(self) -> Any:
        """This device as a DeviceAttributes message."""
        message = super().attributes()
        message.physical_device_desc = self.claim.description
        message.locality.bus_id = 1
        return message

    def to_device(self, array: Any) -> Any:
        """A copy of a host array in the device's memory; it is not yet accounted."""
        raise NotImplementedError

    def to_host(self, array: Any) -> Any:
        """A copy of a device array in host memory."""
        raise NotImplementedError

    def module_of(self, node: Node) -> Any:
        """NumPy for a kernel that has all its arguments in host memory, such as arithmetic on int32."""
        inputs, outputs = kernel_registry.host_memory(node.op, node.attrs, "GPU")
        on_host = len(inputs) == len(node.inputs) and len(outputs) == len(node.output_types)
        return np if on_host and node.output_types else self.xp

    def wrapped(self, kernel: Kernel, node: Node) -> Kernel:
        """A kernel whose time counts as the card's and whose outputs as its memory's.

        Virtual time stands still while it computes; the card advances it afterwards.
        """
        if node.op == "_Recv":
            return self._receiving(kernel, node)
        if node.op == "_Send":
            return self._sending(kernel, node)
        if node.op == "Const":
            kernel = self._held(kernel, node)
        return self._accounted(kernel, node)

    def _accounted(self, kernel: Kernel, node: Node) -> Kernel:
        _, on_host = kernel_registry.host_memory(node.op, node.attrs, "GPU")
        here = [i for i in range(len(node.output_types)) if i not in on_host]
        keep = self.memory.keep
        if self.claim.clock is REAL:
            kernel = self._timed(kernel)
        if not here or op_registry.get(node.op).is_async:  # what arrives later has been accounted where it was made
            return kernel

        def run(*args: Any, **out: Any) -> Any:
            value = kernel(*args, **out)
            if isinstance(value, list | tuple):
                return [keep(v, node) if i in here else v for i, v in enumerate(value)]
            return keep(value, node)

        return run

    def _timed(self, kernel: Kernel) -> Kernel:
        now, busy = self._now, self.claim.busy

        def run(*args: Any, **out: Any) -> Any:
            started = now()
            value = kernel(*args, **out)
            busy(now() - started)
            return value

        return run

    def _held(self, kernel: Kernel, node: Node) -> Kernel:
        """The kernel of a constant: its value is on the device as long as the kernel is."""
        held: list[Any] = []

        def run() -> Any:
            if not held:
                held.append(self.to_device(kernel()))
            return held[0]

        return run if not kernel_registry.host_memory(node.op, node.attrs, "GPU")[1] else kernel

    def _receiving(self, kernel: Kernel, node: Node) -> Kernel:
        copy = make_node(f"{node.name}:MEMCPYHtoD", "NoOp", device=node.device)

        def run(ctx: Any, done: Any) -> None:
            def came(value: Any, error: Exception | None) -> None:
                try:
                    if error is None and hasattr(value, "dtype"):  # not so if it is dead
                        value = self.memory.keep(self._copied(ctx, copy, self.to_device, value), node)
                except Exception as failed:
                    value, error = None, failed
                done(value, error)

            kernel(ctx, came)

        return run

    def _sending(self, kernel: Kernel, node: Node) -> Kernel:
        copy = make_node(f"{node.name}:MEMCPYDtoH", "NoOp", device=node.device)

        def run(ctx: Any, value: Any) -> None:
            def to_host(array: Any) -> Any:
                return self._copied(ctx, copy, self.to_host, array)

            if isinstance(value, Cell):
                value = _CellElsewhere(value, to_host)
            elif hasattr(value, "dtype"):
                value = to_host(value)
            kernel(ctx, value)

        return run

    def _copied(self, ctx: Any, node: Node, copy: Kernel, array: Any) -> Any:
        """`copy(array)`, and a line of the trace that says so."""
        started = self._now()
        copied = copy(array)
        if ctx.step.trace is not None:
            ctx.step.trace.add(f"{self.name}/memcpy", node, started, self._now(), copied)
        return copied


class _CellElsewhere(Cell):
    """A variable in the memory of a device, as it is read from outside: by a copy, once it is really read."""

    __slots__ = ("_cell", "_to_host")

    def __init__(self, cell: Cell, to_host: Kernel) -> None:
        super().__init__(cell.name, cell.dtype, cell.shape)
        self._cell = cell
        self._to_host = to_host

    def read(self) -> Any:
        return self._to_host(self._cell.read())


def _memory_of(claim: Claim, device_name: str, config: ConfigProto | None) -> DeviceMemory:
    """A program's memory on a card, made for its first session: the GPUOptions of later ones change nothing."""
    name = f"GPU_{device_name.rpartition(':')[2]}_bfc"
    if claim.memory is None:
        options = (config or ConfigProto()).gpu_options
        fraction, total = options.per_process_gpu_memory_fraction, claim.card.memory_bytes
        limit = int(fraction * total) if fraction > 0 else grab_all_limit(total)
        allocator = BFCAllocator(name, limit, claim.grab, options.allow_growth)
        claim.memory = DeviceMemory(device_name, allocator, claim.other_holders)
    elif not claim.card.real:  # it may have another number here, by visible_device_list: errors name the newest
        claim.memory.device_name, claim.memory.allocator.name = device_name, name
    return claim.memory


class SimulatedGPU(GPUDevice):
    """A GPU that computes with NumPy and has the memory of the card that it stands for."""

    def to_device(self, array: Any) -> Any:
        return np.array(array)

    def to_host(self, array: Any) -> Any:
        return np.array(array)
