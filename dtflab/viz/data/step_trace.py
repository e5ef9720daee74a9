"""A step's trace as plain data: what ran, when, where, and which tensors crossed devices.

Reads TensorFlow's StepStats (or a RunMetadata that holds one), as dtflab and real TensorFlow write it; a transfer
is the node `RecvTensor` on the receiving device, whose label says size, tensor, source and destination. What a device
does next to its nodes, the parts of a kernel on intra-op threads and a GPU's copies, stands under a name of its own:
`/device:GPU:0/intra-op`, `/device:GPU:0/memcpy`; so does what is on its way to a device in virtual time, `…/wire`, and
what `dtflab.chaos` did to its task, `…/chaos`. What its variables held before the step, `…/variables`, did not run.
Times are microseconds since the start of the step. Clocks of different machines are taken at their word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from dtflab.machine.node_stats import SLOT

_TRANSFER = re.compile(
    r"(?:\[(?P<bytes>\d+)B\] )?(?:\[[^]]*\] )?(?P<tensor>.+) from (?P<source>\S+) to (?P<target>\S+)"
)
_ADDED = re.compile(r"^edge_\d+_|/to_job_\w+/.+/(?:send|recv)(?=:MEMCPY)")  # to the name of what is moved
_EDGE_NUMBER = re.compile(r"^edge_\d+_")
# TensorFlow puts what a node took of memory before its name: `[cpu 16.0MB 16.0MB] `.
_LABEL = re.compile(r"^(?:\[\S+ [^]]*B\] )*(?P<name>\S+) = (?P<op>\w+)\((?P<inputs>[^)]*)")
_OWN_LINE = re.compile(r"(?P<device>.*/device:\w+:\d+)/(?P<line>[\w-]+)$")
_PART = re.compile(r" part (?P<number>\d+) of (?P<count>\d+)$")
_OWN_POOL = re.compile(r"^[CG]PU(:\d+)? (?=.*(inter|intra)-op)")
_BFC = re.compile(r"GPU_\d+_bfc$")
_HIDDEN = {"_SOURCE", "_SINK"}
_ADDED_OPS = {"_Send", "_Recv", "_HostSend", "_HostRecv", "_Retval"}  # by partitioning and for what is fetched
MOVED = {"wire": "sent", "memcpy": "copied"}  # what the rows of these names show
_CHAOS = "chaos"  # the row of faults


class Event(NamedTuple):
    """A kernel that ran, or the part of one: `part` is then, say, (2, 3), the second of three.

    `bytes` is the size of all its outputs, `outputs` that of each, by its number. `inputs` are the nodes that it takes
    tensors from, as its label lists them. A tensor on its way to `device` has a `source`, the device that sends it.
    """

    name: str
    op: str
    device: str
    thread: str
    start: float
    end: float
    bytes: int
    part: tuple[int, int] | None = None
    outputs: Mapping[int, int] = MappingProxyType({})
    source: str = ""
    inputs: str = ""

    @property
    def duration(self) -> float:
        return self.end - self.start

    @property
    def added(self) -> bool:
        """True for an op that is not one of the graph's own ops but sends, receives or fetches what these made."""
        return self.op in _ADDED_OPS

    @property
    def is_sent(self) -> bool:
        """True for a tensor on its way to the device: nothing runs there."""
        return self.op == MOVED["wire"]

    @property
    def is_fault(self) -> bool:
        """True for what `dtflab.chaos` did to the device's task: nothing runs there."""
        return self.thread == _CHAOS

    def called(self, name: str) -> str:
        """A form of the op's name, with the number of the part if this is one."""
        return f"{name} {self.part[0]}/{self.part[1]}" if self.part else name


class Transfer(NamedTuple):
    """A tensor that went from one device to another; from asking for it (`start`) to having it."""

    tensor: str
    source: str
    device: str
    start: float
    end: float
    bytes: int

    @property
    def duration(self) -> float:
        return self.end - self.start

    @property
    def producer(self) -> str:
        """The op whose output this is."""
        return self.tensor.partition(":")[0]


class Trace(NamedTuple):
    """One step. `total` is its length: from the first start to the last end.

    `details` are bars that are not ops: the parts of one, and copies from and to a GPU. `simulated` are the GPUs that
    compute with NumPy. If only the beginning was read, `whole` is how many records there are and the length of all.
    """

    events: list[Event]
    transfers: list[Transfer]
    total: float
    details: Sequence[Event] = ()
    simulated: frozenset[str] = frozenset()
    whole: tuple[int, float] | None = None

    def devices(self) -> set[str]:
        ends = {device for transfer in self.transfers for device in (transfer.source, transfer.device)}
        return {event.device for event in (*self.events, *self.details)} | ends


def read(step: Any, most: int | None = None) -> Trace:
    """The trace in a RunMetadata, StepStats or simulated step; ValueError, saying how to get one, if there is none.

    Of more than `most` records those that start first are read.
    """
    stats = getattr(step, "step_stats", step)
    stats = stats() if callable(stats) else stats  # of what was only simulated: an Outcome, an Estimate
    if not hasattr(stats, "dev_stats"):
        kind = type(step).__name__
        raise TypeError(f"A RunMetadata or StepStats is needed, not {kind}. Trace a step: sess.trace(fetches).")
    nodes = [(d, n) for d in stats.dev_stats for n in d.node_stats if ran(d, n)]
    if not nodes:
        raise ValueError(
            "The trace is empty. Run the step with options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE) "
            "and run_metadata=tf.RunMetadata()."
        )
    zero = min(_start(n) for _, n in nodes)
    whole = None
    if most is not None and len(nodes) > most:
        whole = len(nodes), max(_span(n, zero)[1] for _, n in nodes)
        nodes = sorted(nodes, key=lambda pair: _start(pair[1]))[:most]
    events: list[Event] = []
    details: list[Event] = []
    transfers: list[Transfer] = []
    for device, node in nodes:
        transfer = _transfer(node, device.device, zero)
        if transfer:
            transfers.append(transfer)
        elif _OWN_LINE.match(device.device):
            details.append(_event(node, device, zero))
        else:
            events.append(_event(node, device, zero))
    source = {(t.device, t.tensor): t.source for t in transfers}
    details = [e._replace(source=source.get((e.device, e.name), "")) if e.is_sent else e for e in details]
    total = max([*(e.end for e in (*events, *details)), *(t.end for t in transfers)])
    if total <= 0:
        raise ValueError("There is nothing to draw: all times of the trace are equal. Trace a longer step.")
    for bars in (events, details):
        bars.sort(key=lambda e: (e.start, e.end))
    transfers.sort(key=lambda t: (t.start, t.end, t.tensor))
    return Trace(events, transfers, total, details, _simulated(stats), whole)


def ran(device: Any, node: Any) -> bool:
    """False for records that stand for nothing that ran."""
    return node.node_name not in _HIDDEN and not device.device.endswith("/variables")


def _simulated(stats: Any) -> frozenset[str]:
    """The GPUs with dtflab's own allocator. TensorFlow's has the same name, but its traces have a `_SOURCE`.

    In virtual time the timings are not NumPy's, but modelled: the rows of kernels say so.
    """
    if any(node.node_name == "_SOURCE" for device in stats.dev_stats for node in device.node_stats):
        return frozenset()
    return frozenset(
        device.device
        for device in stats.dev_stats
        if any(_BFC.match(memory.allocator_name) for node in device.node_stats for memory in node.memory)
        and not any(name.startswith(SLOT) for name in device.thread_names.values())
    )


def _start(node: Any) -> float:
    """Microseconds, as an exact difference of integers needs: nanoseconds where they were written."""
    nanos: int = node.all_start_nanos or node.all_start_micros * 1000
    return nanos / 1000


def _span(node: Any, zero: float) -> tuple[float, float]:
    start = _start(node) - zero
    nanos = node.all_end_rel_nanos or node.op_end_rel_nanos
    micros = node.all_end_rel_micros or node.op_end_rel_micros
    return start, start + max(nanos / 1000 if nanos else micros, 0.0)


def _transfer(node: Any, device: str, zero: float) -> Transfer | None:
    match = _TRANSFER.match(node.timeline_label) if node.node_name == "RecvTensor" else None
    if match is None:
        return None
    tensor = _EDGE_NUMBER.sub("", match["tensor"])
    size = int(match["bytes"] or sum(_sizes(node).values()))
    return Transfer(tensor, match["source"], device, *_span(node, zero), size)


def _event(node: Any, device: Any, zero: float) -> Event:
    match, part = _LABEL.match(node.timeline_label), _PART.search(node.timeline_label)
    own_line = _OWN_LINE.match(device.device)
    thread = device.thread_names.get(node.thread_id) or f"thread {node.thread_id}"
    thread = own_line["line"] if own_line and not part else _OWN_POOL.sub("", thread)
    where = own_line["device"] if own_line else device.device
    op = match["op"] if match else node.timeline_label or node.node_name
    if own_line and op == "NoOp":  # no op, but what is on its way
        op = MOVED.get(own_line["line"], op)
    numbers = (int(part["number"]), int(part["count"])) if part else None
    name, sizes = _ADDED.sub("", node.node_name), _sizes(node)
    inputs = match["inputs"] if match else ""
    return Event(name, op, where, thread, *_span(node, zero), sum(sizes.values()), numbers, sizes, inputs=inputs)


def _sizes(node: Any) -> dict[int, int]:
    """Bytes of each output."""
    return {o.slot: o.tensor_description.allocation_description.requested_bytes for o in node.output}
