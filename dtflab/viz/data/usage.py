"""A step's use of memory as plain data: which tensors lay on which device, from when to when, and which at the peak.

Reads the allocation records of TensorFlow's StepStats, as dtflab and real TensorFlow write them. Times are microseconds
since the start of the step, and no finer: where several changes fall into one, memory is taken before it is freed, as
at the end of a node that reads one tensor and makes another; but what a node takes at its beginning, as in virtual
time, is taken last: the node began because others had ended.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from dtflab.base.grouping import grouped
from dtflab.graph import dtypes
from dtflab.viz.data import step_trace as trace
from dtflab.viz.data.graph_ops import Op
from dtflab.viz.drawing.palette import in_order

_DEVICE = re.compile(r".*/device:(\w+):\d+")
_NODE = re.compile(r"(?P<name>(?:variable )?\S+) = (?P<op>\w+)\(")
_FED = re.compile(r"_arg_(?P<name>.+)_\d+_\d+")
_RECEIVED = re.compile(r"\] (?:edge_\d+_)?(?P<name>\S+) from ")
_SOURCE = ("_SOURCE", "NoOp")  # TensorFlow's traces have it
_COPY = "received"  # the op of a tensor that another device made

_HANDED_ON = frozenset(  # ops whose output is what they read, where it lies
    "Identity IdentityN Reshape Squeeze ExpandDims StopGradient PreventGradient CheckNumerics Bitcast Snapshot "
    "Switch RefSwitch Merge RefMerge Enter RefEnter Exit RefExit NextIteration RefNextIteration LoopCond".split()
)


class Held(NamedTuple):
    """A tensor in memory: made by node `name` at `start`, freed at `end`, or after the step if that is None.

    `until` is the op that was the last to need it; empty if the graph does not show it. `over` are the ops that wrote
    what they made over it, each with when it began.
    """

    name: str
    op: str
    what: str  # `float32 [100, 784]`, as far as the trace says
    bytes: int
    start: float
    end: float | None
    until: str = ""
    buffer: int = 0  # its number in the trace, 0 if that has none
    over: tuple[tuple[float, str], ...] = ()
    early: bool = False  # taken at the beginning of its node

    def output_of(self, moment: float) -> str:
        """The op whose output lies there at a moment."""
        return next((name for at, name in reversed(self.over) if at <= moment), self.name)


class Usage(NamedTuple):
    """The memory of one device in one step. `before` is what was in use already, as far as the trace says."""

    device: str
    allocator: str
    simulated: bool
    before: int
    tensors: list[Held]
    total: float  # length of the step, µs

    @property
    def changes(self) -> list[tuple[float, int]]:
        """When how many bytes are taken (above 0) or freed, in order."""
        taken = [(one.start, 2 if one.early else 0, one.bytes) for one in self.tensors]
        freed = [(one.end, 1, -one.bytes) for one in self.tensors if one.end is not None]
        return [(moment, change) for moment, _, change in sorted(taken + freed)]

    def peak(self) -> tuple[float, int]:
        """The first moment with the most bytes in use, and how many: with `before`."""
        best, now = (0.0, self.before), self.before
        for moment, change in self.changes:
            now += change
            if now > best[1]:
                best = moment, now
        return best

    def held_at_peak(self) -> list[Held]:
        """The tensors of the step that make the peak, the largest first."""
        moment, most = self.peak()
        held = [one for one in self.tensors if one.start <= moment and (one.end is None or one.end >= moment)]
        # Of those that were freed in that very microsecond, some were freed before: the sum says how many.
        too_many = sum(one.bytes for one in held) + self.before - most
        for one in sorted(held, key=lambda one: one.start):
            if too_many and one.end == moment and one.bytes <= too_many:
                held.remove(one)
                too_many -= one.bytes
        return sorted(held, key=lambda one: (-one.bytes, one.start))


def read(step: Any, ops: Iterable[Op] = ()) -> list[Usage]:
    """The memory of each device in a RunMetadata or StepStats; ValueError if nothing is recorded of any.

    `ops` are those of the step's graph: they show which ops needed a tensor.
    """
    whole, zero = trace.read(step), _start(step)
    writers = _writers(step, zero)
    readers = _Readers(ops, whole.events, [node for device in _stats(step) for node in device.node_stats])
    tensors: dict[tuple[str, str], list[Held]] = {}
    in_use: dict[tuple[str, str], list[tuple[float, int]]] = {}
    for device in _stats(step):
        for node in device.node_stats:
            for memory in node.memory:
                key = _place(device.device, memory.allocator_name), memory.allocator_name
                found = [
                    one._replace(
                        start=one.start if trace.ran(device, node) else 0.0,
                        until=readers.last(one.name, device.device if one.op == _COPY else ""),
                        over=_over(one, writers.get((device.device, one.buffer))),
                    )
                    for one in _held(node, memory, zero)
                ]
                tensors.setdefault(key, []).extend(found)
                if memory.allocator_bytes_in_use and found and trace.ran(device, node):
                    in_use.setdefault(key, []).append((found[-1].start, memory.allocator_bytes_in_use))
    if not any(tensors.values()):
        raise ValueError("The trace has no allocations: scalars on a CPU don't count. Trace a step that makes arrays.")
    order = in_order(device for device, _ in tensors)
    return [
        Usage(device, allocator, device in whole.simulated,
              _before(held, in_use.get((device, allocator), [])), sorted(held, key=lambda one: one.start), whole.total)
        for (device, allocator), held in sorted(tensors.items(), key=lambda item: (order.index(item[0][0]), item[0][1]))
        if held
    ]  # fmt: skip


class _Readers:
    """The readers of each output, as far as they ran: `last(name)` is done last of those that needed what an op made.

    An op that took no memory of its own passes on what it reads (an Identity, or a Relu that writes over its input):
    then the readers of its output count, too. A device's copy of a tensor is only for the readers on that device.
    """

    def __init__(self, ops: Iterable[Op], events: Iterable[trace.Event], nodes: Iterable[Any]) -> None:
        self.ran = {event.name: event for event in events}
        self.own = {node.node_name for node in nodes if node.memory}
        self.readers = grouped((name, op.name) for op in ops if op.name in self.ran for name, _ in op.inputs)

    def last(self, name: str, device: str = "") -> str:
        """The last op, on `device` if one is named, to need what `name` made or what was fed for it; else empty."""
        fed = _FED.fullmatch(name)
        seen, todo = {name}, [fed["name"] if fed else name]
        while todo:
            readers = self.readers.get(todo.pop(), ())
            new = [one for one in readers if one not in seen and device in ("", self.ran[one].device)]
            seen.update(new)
            todo += [reader for reader in new if reader not in self.own]
        return max(seen - {name}, key=lambda reader: self.ran[reader].end, default="")


def unknown(step: Any) -> list[str]:
    """The devices whose variables were there before the step, but are not in its trace: TensorFlow's servers'."""
    ran = ((device.device, [_source(node) for node in device.node_stats]) for device in _stats(step))
    return [device for device, ops in ran if _SOURCE in ops and {"VariableV2", "VarHandleOp"} & {op for _, op in ops}]


def _stats(step: Any) -> Any:
    """The records by device of a RunMetadata or StepStats."""
    return getattr(step, "step_stats", step).dev_stats


def _start(step: Any) -> float:
    """The zero of `trace.read`, in microseconds since 1970."""
    nodes = [node for device in _stats(step) for node in device.node_stats if trace.ran(device, node)]
    return float(min((node.all_start_nanos or node.all_start_micros * 1000) / 1000 for node in nodes))


def _place(device: str, allocator: str) -> str:
    """The device that owns the memory: outputs of a GPU's nodes in host memory are the CPU's."""
    match = _DEVICE.match(device)
    name = match[0] if match else device
    return re.sub(r"/device:\w+:\d+$", "/device:CPU:0", name) if allocator == "cpu" else name


def _held(node: Any, memory: Any, zero: float) -> Iterable[Held]:
    """The allocations of a node, each with its end: the first that is given back with as many bytes."""
    name, op = _source(node)
    ends = [(record.alloc_micros - zero, -record.alloc_bytes) for record in memory.allocation_records]
    ends = [end for end in ends if end[1] > 0]
    for record in memory.allocation_records:
        if record.alloc_bytes > 0:
            end = next((each for each in ends if each[1] == record.alloc_bytes), None)
            if end is not None:
                ends.remove(end)
            start = max(0.0, record.alloc_micros - zero)
            what, buffer = _output(node, record.alloc_bytes)
            freed = None if end is None else max(start, end[0])
            early = record.alloc_micros <= node.all_start_micros and node.all_end_rel_micros > 0
            yield Held(name, op, what, record.alloc_bytes, start, freed, buffer=buffer, early=early)


def _source(node: Any) -> tuple[str, str]:
    """The node that made a tensor and its op; what was received has the name that it has where it comes from."""
    received = _RECEIVED.search(node.timeline_label) if node.node_name == "RecvTensor" else None
    if received is not None:
        return received["name"], _COPY
    match = _NODE.search(node.timeline_label)
    return node.node_name, match["op"] if match is not None else node.timeline_label or node.node_name


def _output(node: Any, nbytes: int) -> tuple[str, int]:
    """Type and shape of the output that has that many bytes, and the number of its buffer."""
    for output in node.output:
        description = output.tensor_description
        there = description.allocation_description
        if nbytes in (there.allocated_bytes, there.requested_bytes):
            shape = ", ".join(str(dim.size) for dim in description.shape.dim)
            return f"{dtypes.as_dtype(description.dtype).name} [{shape}]", there.allocation_id
    return "", 0


class _Write(NamedTuple):
    """An output in a buffer: when its op began, which that is, and its bytes."""

    at: float
    name: str
    nbytes: int


def _writers(step: Any, zero: float) -> dict[tuple[str, int], list[_Write]]:
    """The ops that wrote into each buffer of each device, in the order of time; without those that only hand it on."""
    found: dict[tuple[str, int], list[_Write]] = {}
    for device in _stats(step):
        for node in device.node_stats:
            name, op = _source(node)
            for output in node.output if op not in _HANDED_ON else ():
                there = output.tensor_description.allocation_description
                write = _Write(node.all_start_micros - zero, name, there.requested_bytes)
                found.setdefault((device.device, there.allocation_id), []).append(write)
    return {key: sorted(own) for key, own in found.items() if key[1]}


def _over(held: Held, writes: Iterable[_Write] | None) -> tuple[tuple[float, str], ...]:
    """The writes of other tensors that filled a tensor's whole buffer."""
    own = {write.name: write for write in writes or ()}
    size = own[held.name].nbytes if held.name in own else 0
    return tuple((write.at, name) for name, write in own.items() if name != held.name and write.nbytes == size)


def _before(held: list[Held], in_use: list[tuple[float, int]]) -> int:
    """Bytes in use when the step began: what the allocator had at its first allocation, less those of the step."""
    if not in_use:
        return 0
    moment, then = min(in_use)
    own = sum(one.bytes for one in held if one.start <= moment and (one.end is None or one.end >= moment))
    return max(0, then - own)
