"""NodeExecStats: what a trace says of one run of one node, as TensorFlow's message.

Stands for `NodeExecStatsWrapper` in `step_stats_collector.cc`. Left out: memory of allocators.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from dtflab.graph import dtypes
from dtflab.graph.node import Node


class Record(NamedTuple):
    """A node that ran on a device, between two moments in seconds, on a thread.

    `sizes` has (bytes, shape, dtype) of each output; `parts` what which thread did of it, if that were several.
    """

    device: str
    node: Node
    started: float
    ended: float
    thread: threading.Thread
    sizes: Sequence[Any]
    parts: Sequence[Any]


class Lines:
    """Records on their way into a StepStats message, one DeviceStepStats per device.

    The parts of a node stand beside its device, as TensorFlow has the streams of a GPU: they are no nodes.
    """

    def __init__(self, step_stats: Any, offset: float) -> None:
        self._step_stats = step_stats
        self._offset = offset
        self._devices: dict[str, Any] = {}
        self._threads: dict[threading.Thread, int] = {}

    def add(self, record: Record) -> None:
        """Write the lines of a node and of its parts."""
        self._add(record)
        for i, part in enumerate(record.parts, 1):
            device = f"{record.device}/intra-op"
            stats = self._add(Record(device, record.node, part.started, part.ended, part.thread, (), ()))
            stats.timeline_label += f" part {i} of {len(record.parts)}"

    def _add(self, record: Record) -> Any:
        device, node, started, ended, thread, sizes, _ = record
        if device not in self._devices:
            self._devices[device] = self._step_stats.dev_stats.add(device=device)
        number = self._threads.setdefault(thread, len(self._threads))
        self._devices[device].thread_names[number] = _thread_name(thread, number)
        stats = self._devices[device].node_stats.add()
        fill(stats, node, started + self._offset, ended - started, number, sizes)
        return stats


def _thread_name(thread: threading.Thread, number: int) -> str:
    if "inter-op" in thread.name or "intra-op" in thread.name:
        return thread.name
    return "client" if number == 0 else f"thread {number}"


def fill(stats: Any, node: Node, started: float, seconds: float, thread: int, sizes: Sequence[Any]) -> None:
    """Fill a NodeExecStats; `started` is the time of day in seconds, `sizes` (bytes, shape, dtype) of each output."""
    nanos = int(seconds * 1e9)
    stats.node_name = node.name
    stats.all_start_micros = int(started * 1e6)
    stats.all_start_nanos = int(started * 1e9)
    stats.op_end_rel_micros = stats.all_end_rel_micros = nanos // 1000
    stats.op_end_rel_nanos = stats.all_end_rel_nanos = nanos
    stats.thread_id = thread
    stats.timeline_label = f"{node.name} = {node.op}({', '.join(name for name, _ in node.inputs)})"
    for slot, (nbytes, shape, dtype) in enumerate(sizes):
        if nbytes is None:
            continue
        output = stats.output.add(slot=slot)
        allocation = output.tensor_description.allocation_description
        allocation.requested_bytes = allocation.allocated_bytes = nbytes
        allocation.allocator_name = "cpu"
        output.tensor_description.shape.dim.extend(
            [output.tensor_description.shape.Dim(size=int(d)) for d in shape or ()]
        )
        output.tensor_description.dtype = _enum(dtype)
    if node.op == "_Recv":
        # TensorFlow's own form: a transfer is a RecvTensor that says how much came from where to where.
        total = sum(size for size, _, _ in sizes if size)
        source, target = node.attrs["send_device"].decode(), node.attrs["recv_device"].decode()
        stats.node_name = "RecvTensor"
        stats.timeline_label = f"[{total}B] {node.attrs['tensor_name'].decode()} from {source} to {target}"


def _enum(dtype: Any) -> int:
    try:
        return dtypes.as_dtype(dtype).as_datatype_enum
    except TypeError:
        return 0
