"""Question parallel/q1: which two ops can run at the same time.

Each case is two ops in a graph of their own, made so that they do run at the same time if they may. The graph runs in
virtual time, on a cluster of this process, and the trace of the step shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np

from dtflab.cluster.cluster import Cluster
from dtflab.grading.device_functions import shown
from dtflab.grading.questions import Wrong, from_toml
from dtflab.graph.convert import constant
from dtflab.graph.graph import Graph
from dtflab.graph.operation import Operation
from dtflab.ops.linalg.functions import matmul
from dtflab.protos.config_pb2 import RunMetadata
from dtflab.runtime.session import Session
from dtflab.viz.drawing.picture import Picture
from dtflab.viz.timeline import timeline

q1 = from_toml(__file__)


W0, W1 = "/job:worker/replica:0/task:0/device:", "/job:worker/replica:0/task:1/device:"
CPU, GPU, GPU1, OTHER_CPU = f"{W0}CPU:0", f"{W0}GPU:0", f"{W0}GPU:1", f"{W1}CPU:0"
_MATRIX = np.eye(200, dtype=np.float32)
_ROUNDING_NS = 1000  # moments of a trace are rounded to some 256 ns; an op takes 30 µs or more

Build = Callable[["_Maker"], tuple[Operation, Operation]]


class _Maker:
    """Makes products of matrices in the default graph: all of them take the same time on a device."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def __call__(self, device: str, reads: Operation | None = None, waits: Sequence[Operation] = ()) -> Operation:
        with self._graph.device(device), self._graph.control_dependencies(list(waits)):
            left = constant(_MATRIX) if reads is None else reads.outputs[0]
            product: Operation = matmul(left, constant(_MATRIX)).op
            return product


def _apart(one: str, other: str) -> Build:
    """Two ops that know nothing of each other."""
    return lambda make: (make(one), make(other))


def _common_source(device: str) -> Build:
    def build(make: _Maker) -> tuple[Operation, Operation]:
        source = make(device)
        return make(device, source), make(device, source)

    return build


def _reads(one: str, other: str) -> Build:
    def build(make: _Maker) -> tuple[Operation, Operation]:
        first = make(one)
        return first, make(other, first)

    return build


def _reads_by_way(way: str, device: str) -> Build:
    """The second reads what reads the first."""

    def build(make: _Maker) -> tuple[Operation, Operation]:
        first = make(device)
        return first, make(device, make(way, make(way, first)))

    return build


def _waits(device: str, by_way: bool) -> Build:
    """The second has a control dependency on the first, or reads an op that has one."""

    def build(make: _Maker) -> tuple[Operation, Operation]:
        first = make(device)
        second = make(device, None, [first])
        return first, make(device, second) if by_way else second

    return build


class Case(NamedTuple):
    """Two ops, what they are in words, and the edges that lead to them."""

    first: Operation
    second: Operation
    graph: str

    def may_overlap(self, direct: bool = False, controls: bool = True, both: bool = True) -> bool:
        """Whether no path leads from one to the other; the options leave something out, as mistakes do."""

        def waits(op: Operation, other: Operation) -> bool:
            sources = [tensor.op for tensor in op.inputs] + list(op.control_inputs if controls else ())
            return other in sources or (not direct and any(waits(source, other) for source in sources))

        return not (waits(self.first, self.second) or (both and waits(self.second, self.first)))

    @property
    def same_device(self) -> bool:
        return bool(self.first.device == self.second.device)

    @property
    def on_one_gpu(self) -> bool:
        return self.same_device and "GPU" in self.first.device


class Seen(NamedTuple):
    """The answer's verdicts on the cases that it was asked about."""

    said: Sequence[tuple[Case, bool]]


def _in_words(graph: Graph) -> str:
    sentences = []
    for op in graph.get_operations():
        if op.type == "MatMul":
            reads = [tensor.op.name for tensor in op.inputs if tensor.op.type == "MatMul"]
            reads = [f"reads {', '.join(reads)}"] if reads else []
            waits = [other.name for one in (op, *(t.op for t in op.inputs)) for other in one.control_inputs]
            waits = [f"waits for {', '.join(dict.fromkeys(waits))}"] if waits else []
            sentences.append(f"{op.name} is on {op.device}" + "".join(f", {text}" for text in (*reads, *waits)))
    return "; ".join(sentences)


def _overlapped(metadata: RunMetadata, names: Sequence[str]) -> bool:
    """Whether the two ops ran at the same time in a traced step."""
    nodes = [node for device in metadata.step_stats.dev_stats for node in device.node_stats if node.node_name in names]
    begins = [node.all_start_nanos for node in nodes]
    ends = [node.all_start_nanos + node.all_end_rel_nanos for node in nodes]
    return bool(max(begins) < min(ends) - _ROUNDING_NS)


def _demand(answer: Any, random: Random, builds: Sequence[Build]) -> Picture:
    """Wrong unless the answer says of each pair what a run of it shows; the picture of the last, or of a wrong one."""
    said: list[tuple[Case, bool]] = []
    wrong, picture = "", None
    with Cluster(worker=2, gpus=2, clock="virtual") as cluster:
        for build in random.sample(builds, len(builds)):
            with Graph().as_default() as graph, Session(cluster.target) as session:
                pair = build(_Maker(graph))
                metadata = session.trace(list(pair))
                really = _overlapped(metadata, [op.name for op in pair])
                for first, second in (pair, pair[::-1]):
                    case = Case(first, second, _in_words(graph))
                    said.append((case, _answered(answer, case)))
                    if said[-1][1] != really and not wrong:
                        wrong, picture = _verdict(case, really), timeline(metadata)
    if wrong:
        raise Wrong(wrong, Seen(said), picture)
    return timeline(metadata)


def _verdict(case: Case, really: bool) -> str:
    """The verdict on an answer that differs from what a run shows."""
    ran = "ran at the same time" if really else "did not run at the same time"
    return f"may_overlap({case.first.name}, {case.second.name}) is {not really}, but they {ran}. {case.graph}."


def _answered(answer: Any, case: Case) -> bool:
    said = answer(case.first, case.second)
    if not isinstance(said, bool | np.bool_):
        raise Wrong(f"may_overlap returned {shown(said)}; expected: True or False.")
    return bool(said)


# -- what is checked -----------------------------------------------------------------------------------------


@q1.check("Ops that do not need each other: on different devices, on one CPU", points=3)
def apart(answer: Any, random: Random) -> Picture:
    pairs = [(CPU, CPU), (CPU, GPU), (GPU, GPU1), (CPU, OTHER_CPU)]
    return _demand(answer, random, [*(_apart(*pair) for pair in pairs), _common_source(CPU)])


@q1.check("One op needs the other: it reads it, directly or by way of others, or waits for it", points=4)
def one_after_the_other(answer: Any, random: Random) -> Picture:
    reading = [_reads(CPU, CPU), _reads(CPU, GPU), _reads(GPU, GPU1), _reads_by_way(GPU, CPU), _reads_by_way(CPU, CPU)]
    return _demand(answer, random, [*reading, _waits(CPU, by_way=False), _waits(CPU, by_way=True)])


@q1.check("Ops that do not need each other, on one GPU", points=3)
def one_gpu(answer: Any, random: Random) -> Picture:
    return _demand(answer, random, [_apart(GPU, GPU), _common_source(GPU1), _apart(GPU, GPU1), _apart(GPU1, GPU1)])


# -- mistakes ------------------------------------------------------------------------------------------------


def _follows(seen: Seen, rule: Callable[[Case], bool]) -> bool:
    """Whether all that was said is what another rule says."""
    return all(said == rule(case) for case, said in seen.said)


@q1.mistake()
def one_op_per_device(seen: Seen) -> bool:
    """On the same device, ops can run at the same time: a CPU has a pool of threads, one for each core, and takes every
    op that is ready."""
    return _follows(seen, lambda case: case.may_overlap() and not case.same_device)


@q1.mistake()
def a_gpu_is_no_cpu(seen: Seen) -> bool:
    """A GPU takes what TensorFlow gives it into one queue, its compute stream, and works that off op by op. Inside of
    an op it uses all of its cores; but two ops of one GPU do not overlap."""
    return _follows(seen, lambda case: case.may_overlap())


@q1.mistake()
def forgets_control_inputs(seen: Seen) -> bool:
    """A control dependency counts, too: the op waits, although it reads nothing. Sources of an op are those of its
    inputs and its control_inputs."""
    return _follows(seen, lambda case: case.may_overlap(controls=False) and not case.on_one_gpu)


@q1.mistake()
def looks_only_at_neighbours(seen: Seen) -> bool:
    """One op may need the other by way of others in between. Follow the edges back to the end: a function that calls
    itself for each source does this."""
    return _follows(seen, lambda case: case.may_overlap(direct=True) and not case.on_one_gpu)


@q1.mistake()
def looks_in_one_direction(seen: Seen) -> bool:
    """The second op may be the one that has to be done first. Look for a path in both directions."""
    other_way = [(case._replace(first=case.second, second=case.first), said) for case, said in seen.said]
    ways = (seen, Seen(other_way))
    return any(_follows(one, lambda c: c.may_overlap(both=False) and not c.on_one_gpu) for one in ways)
