"""NodeExecStats: what a trace says of one run of one node, as TensorFlow's message.

Stands for `NodeExecStatsWrapper` in `step_stats_collector.cc`. Left out: tensors that a kernel refers to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dtflab.base.events import NodeRan
from dtflab.graph import dtypes
from dtflab.graph.node import Node

SLOT = "modelled"  # how the names of lanes begin in which a model of the hardware has put nodes
_PERSISTENT = ("Const", "Variable", "VariableV2")  # their outputs live as long as their kernels


class Output(NamedTuple):
    """One output of a node: its bytes (None for a value that is not a tensor), and where they lie."""

    nbytes: int | None
    shape: Any
    dtype: Any
    allocator: str = "cpu"
    allocated: int = 0
    number: int = 0  # of the allocation
    address: int = 0


@dataclass
class Allocation:
    """Memory that a node took: from when to when, in seconds; None: longer than the step."""

    allocator: str
    nbytes: int
    made: float
    in_use: int = 0  # of the whole allocator, then
    freed: float | None = None


class Lines:
    """Nodes that ran, on their way into a StepStats message, one DeviceStepStats per device.

    The parts of a node stand next to its device, as TensorFlow has the streams of a GPU: they are not nodes.
    """

    def __init__(self, step_stats: Any, offset: float) -> None:
        self._step_stats = step_stats
        self._offset = offset
        self._devices: dict[str, Any] = {}
        self._threads: dict[Any, int] = {}
        self._named: set[tuple[str, int]] = set()  # devices and threads whose names are written

    def add(self, ran: NodeRan) -> None:
        """Write the lines of a node and of its parts."""
        self._add(ran)
        for i, part in enumerate(ran.parts, 1):
            only = ran._replace(device=f"{ran.device}/intra-op", outputs=(), allocations=(), **part._asdict())
            self._add(only).timeline_label += f" part {i} of {len(ran.parts)}"

    def _add(self, ran: NodeRan) -> Any:
        _, device, node, started, ended, thread, outputs, allocations, _ = ran
        if device not in self._devices:
            self._devices[device] = self._step_stats.dev_stats.add(device=device)
        number = self._threads.setdefault(thread, len(self._threads))
        if (device, number) not in self._named:
            self._named.add((device, number))
            self._devices[device].thread_names[number] = _thread_name(thread.name, number)
        stats = self._devices[device].node_stats.add()
        fill(stats, node, started + self._offset, ended - started, number, outputs)
        _fill_memory(stats, allocations, self._offset)
        return stats


def _thread_name(name: str, number: int) -> str:
    if "inter-op" in name or "intra-op" in name or name.startswith(SLOT):
        return name
    return "client" if number == 0 else f"thread {number}"


def fill(stats: Any, node: Node, started: float, seconds: float, thread: int, outputs: Sequence[Output]) -> None:
    """Fill a NodeExecStats; `started` is the time of day in seconds."""
    nanos = int(seconds * 1e9)
    stats.node_name = node.name
    stats.all_start_micros = int(started * 1e6)
    stats.all_start_nanos = int(started * 1e9)
    stats.op_end_rel_micros = stats.all_end_rel_micros = nanos // 1000
    stats.op_end_rel_nanos = stats.all_end_rel_nanos = nanos
    stats.thread_id = thread
    stats.timeline_label = f"{node.name} = {node.op}({', '.join(name for name, _ in node.inputs)})"
    for slot, output in enumerate(outputs):
        if output.nbytes is not None:
            _fill_output(stats.output.add(slot=slot).tensor_description, output)
    if node.op in _PERSISTENT:
        stats.memory_stats.persistent_memory_size = sum(output.nbytes or 0 for output in outputs)
    if node.op in ("_Recv", "_HostRecv"):
        # TensorFlow's own form: a transfer is a RecvTensor that says how much came from where to where.
        total = sum(output.nbytes or 0 for output in outputs)
        source, target = node.attrs["send_device"].decode(), node.attrs["recv_device"].decode()
        stats.node_name = "RecvTensor"
        stats.timeline_label = f"[{total}B] {node.attrs['tensor_name'].decode()} from {source} to {target}"


def _fill_output(description: Any, output: Output) -> None:
    description.dtype = _enum(output.dtype)
    description.shape.dim.extend([description.shape.Dim(size=int(size)) for size in output.shape or ()])
    allocation = description.allocation_description
    allocation.requested_bytes, allocation.allocated_bytes = output.nbytes, output.allocated
    allocation.allocator_name = output.allocator
    allocation.allocation_id, allocation.ptr = output.number, output.address


def _fill_memory(stats: Any, allocations: Sequence[Allocation], offset: float) -> None:
    """One AllocatorMemoryUsed per allocator: what the node took of it, and when that came back."""
    stats.memory_stats.SetInParent()
    for name in dict.fromkeys(allocation.allocator for allocation in allocations):
        own = [allocation for allocation in allocations if allocation.allocator == name]
        total = sum(allocation.nbytes for allocation in own)
        memory = stats.memory.add(allocator_name=name, total_bytes=total, peak_bytes=total, live_bytes=total)
        memory.allocator_bytes_in_use = own[-1].in_use
        changes = [(allocation.made, allocation.nbytes) for allocation in own]
        changes += [(a.freed, -a.nbytes) for a in own if a.freed is not None]
        for moment, nbytes in changes:
            memory.allocation_records.add(alloc_micros=int((moment + offset) * 1e6), alloc_bytes=nbytes)


def _enum(dtype: Any) -> int:
    try:
        return dtypes.as_dtype(dtype).as_datatype_enum
    except TypeError:
        return 0
