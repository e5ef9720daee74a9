"""Question parallel/q1: which two ops can run at the same time.

Each case is two ops in a graph of their own, made so that they do run at the same time if they may. The graph runs in
virtual time, on a cluster of this process, and the trace of the step shows it. How the ops depend on each other is
known from how they were made, so the only rules applied to them are those of mistakes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np

from dtflab.cluster.cluster import Cluster
from dtflab.grading.device_functions import shown
from dtflab.grading.questions import Wrong, from_toml
from dtflab.grading.unaided import by_itself, opens_a_session
from dtflab.graph.convert import constant
from dtflab.graph.graph import Graph
from dtflab.graph.operation import Operation
from dtflab.ops.arrays.functions import identity_n
from dtflab.ops.linalg.functions import matmul
from dtflab.protos.config_pb2 import RunMetadata
from dtflab.runtime.session import Session
from dtflab.viz.drawing.picture import Picture
from dtflab.viz.timeline import timeline

q1 = from_toml(__file__)
q1.mistake()(opens_a_session)


W0, W1 = "/job:worker/replica:0/task:0/device:", "/job:worker/replica:0/task:1/device:"
CPU, GPU, GPU1, OTHER_CPU, OTHER_GPU = f"{W0}CPU:0", f"{W0}GPU:0", f"{W0}GPU:1", f"{W1}CPU:0", f"{W1}GPU:0"
_SIZE, _LARGE = 200, 600  # of matrices; a large product takes longer than several others
_ROUNDING_NS = 1000  # moments of a trace are rounded to some 256 ns; an op takes 30 µs or more
_MOST_SAID = 6  # ops in a sentence


class _Maker:
    """Makes products of matrices in the default graph: those of one size take the same time on a device."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def __call__(
        self,
        device: str,
        reads: Operation | None = None,
        waits: Sequence[Operation] = (),
        size: int = _SIZE,
        on_the_right: bool = False,
    ) -> Operation:
        with self._graph.device(device):
            matrix = np.eye(size, dtype=np.float32)
            factors = [constant(matrix) if reads is None else reads.outputs[-1], constant(matrix)]
            with self._graph.control_dependencies(list(waits)):
                product: Operation = matmul(factors[on_the_right], factors[not on_the_right]).op
            return product

    def with_two_outputs(self, device: str) -> Operation:
        """An op with two outputs, of which a product reads the second."""
        with self._graph.device(device):
            matrices = identity_n([constant(np.eye(_SIZE, dtype=np.float32))] * 2)
        first: Operation = matrices[0].op
        return first


class Pair(NamedTuple):
    """How two ops are made. `link` says how the second needs the first: "" for not at all, `reads` or `waits`.

    `by_way` is for others in between, `level` for ops with as many others before them, `common` for those that read the
    same op, `as_second` for a link by the second input. `behind`: the op in between has the control dependency;
    `beyond`: it is on that op.
    """

    make: Callable[[_Maker], tuple[Operation, Operation]]
    link: str = ""
    by_way: bool = False
    level: bool = False
    common: bool = False
    as_second: bool = False
    behind: bool = False
    beyond: bool = False


def _apart(one: str, other: str, size: int = _SIZE) -> Pair:
    """Two ops that know nothing of each other; large ones, if one of them has to wait for a call to its task."""
    return Pair(lambda make: (make(one, size=size), make(other, size=size)), level=True)


def _at_depths(one: str, other: str) -> Pair:
    """A long op that is ready at once, and one that is not, and begins while the long one runs."""
    return Pair(lambda make: (make(one, size=_LARGE), make(other, make(other))))


def _common_source(device: str) -> Pair:
    def build(make: _Maker) -> tuple[Operation, Operation]:
        source = make(device)
        return make(device, source), make(device, source)

    return Pair(build, level=True, common=True)


def _reads(one: str, other: str, on_the_right: bool = False) -> Pair:
    def build(make: _Maker) -> tuple[Operation, Operation]:
        first = make(one)
        return first, make(other, first, on_the_right=on_the_right)

    return Pair(build, "reads", as_second=on_the_right)


def _reads_by_way(way: str, device: str) -> Pair:
    """The second reads the first by way of six others."""

    def build(make: _Maker) -> tuple[Operation, Operation]:
        first = make(device)
        return first, make(device, functools.reduce(lambda op, _: make(way, op), range(6), first))

    return Pair(build, "reads", by_way=True)


def _reads_a_second_output(device: str) -> Pair:
    def build(make: _Maker) -> tuple[Operation, Operation]:
        first = make.with_two_outputs(device)
        return first, make(device, first)

    return Pair(build, "reads")


def _waits_apart(one: str, other: str) -> Pair:
    """The second has a control dependency on the first, and on an op before or after that."""

    def build(make: _Maker) -> tuple[Operation, Operation]:
        first = make(one)
        return first, make(other, None, [make(one), first])

    return Pair(build, "waits")


def _waits_and_waits(device: str) -> Pair:
    """The second has a control dependency on an op that has one on the first."""

    def build(make: _Maker) -> tuple[Operation, Operation]:
        first = make(device)
        return first, make(device, None, [make(device, None, [first])])

    return Pair(build, "waits", by_way=True, behind=True, beyond=True)


def _waits(device: str, by_way: bool) -> Pair:
    """The second has a control dependency on the first, or reads an op that has one."""

    def build(make: _Maker) -> tuple[Operation, Operation]:
        first = make(device)
        second = make(device, None, [first])
        return first, make(device, second) if by_way else second

    return Pair(build, "waits", by_way, behind=by_way)


def _waits_for_a_reader(device: str) -> Pair:
    """The second has a control dependency on what reads the first."""

    def build(make: _Maker) -> tuple[Operation, Operation]:
        first = make(device)
        return first, make(device, None, [make(device, first)])

    return Pair(build, "waits", by_way=True, beyond=True)


class Case(NamedTuple):
    """Two ops as they are given to an answer, how they were made, and the edges that lead to them."""

    first: Operation
    second: Operation
    pair: Pair
    turned: bool  # the second was made first
    graph: str

    @property
    def link(self) -> str:
        return self.pair.link

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
        if op.type in ("MatMul", "IdentityN"):
            reads = [tensor.op.name for tensor in op.inputs if tensor.op.type in ("MatMul", "IdentityN")]
            reads = [f"reads {', '.join(reads)}"] if reads else []
            waits = [other.name for one in (op, *(t.op for t in op.inputs)) for other in one.control_inputs]
            waits = [f"waits for {', '.join(dict.fromkeys(waits))}"] if waits else []
            sentences.append(f"{op.name} is on {op.device}" + "".join(f", {text}" for text in (*reads, *waits)))
    if len(sentences) > _MOST_SAID:  # a long way: its beginning and its end
        sentences[2:-2] = ["…"]
    return "; ".join(sentences)


def _overlapped(metadata: RunMetadata, names: Sequence[str]) -> bool:
    """Whether the two ops ran at the same time in a traced step."""
    nodes = [node for device in metadata.step_stats.dev_stats for node in device.node_stats if node.node_name in names]
    begins = [node.all_start_nanos for node in nodes]
    ends = [node.all_start_nanos + node.all_end_rel_nanos for node in nodes]
    return bool(max(begins) < min(ends) - _ROUNDING_NS)


def _demand(answer: Any, random: Random, pairs: Sequence[Pair]) -> Picture:
    """Wrong unless the answer says of each pair what a run of it shows; the picture of the last, or of a wrong one."""
    said: list[tuple[Case, bool]] = []
    wrong, picture = "", None
    with Cluster(worker=2, gpus=2, clock="virtual") as cluster:
        for pair in random.sample(pairs, len(pairs)):
            with Graph().as_default() as graph, Session(cluster.target) as session:
                ops = pair.make(_Maker(graph))
                metadata = session.trace(list(ops))
                really = _overlapped(metadata, [op.name for op in ops])
                for turned in (False, True):
                    case = Case(*(ops[::-1] if turned else ops), pair, turned, _in_words(graph))
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
    said = by_itself(answer, case.first, case.second, may_run=False)
    if not isinstance(said, bool | np.bool_):
        raise Wrong(f"may_overlap returned {shown(said)}; expected: True or False.")
    return bool(said)


# -- what is checked -----------------------------------------------------------------------------------------


@q1.check("Ops that do not need each other: on different devices, on one CPU; and some that do", points=3)
def apart(answer: Any, random: Random) -> Picture:
    pairs = [_apart(*pair) for pair in ((CPU, CPU), (CPU, GPU), (GPU, GPU1), (CPU, OTHER_CPU))]
    pairs += [_apart(GPU, OTHER_GPU, _LARGE)]
    later = [_at_depths(*pair) for pair in ((CPU, CPU), (CPU, GPU), (GPU, GPU1), (GPU, OTHER_GPU))]
    return _demand(answer, random, [*pairs, *later, _common_source(CPU), _reads(CPU, CPU), _reads(GPU, GPU)])


@q1.check("One op needs the other: it reads it, directly or by way of others, or waits for it", points=4)
def one_after_the_other(answer: Any, random: Random) -> Picture:
    reading = [
        _reads(CPU, CPU),
        _reads(CPU, GPU),
        _reads(GPU, GPU1, on_the_right=True),
        _reads_by_way(GPU, CPU),
        _reads_by_way(CPU, CPU),
        _reads(GPU, GPU),
        _reads(GPU, OTHER_GPU),
        _reads_a_second_output(CPU),
    ]
    waiting = [_waits(CPU, by_way=False), _waits(CPU, by_way=True), _waits_for_a_reader(CPU), _waits_and_waits(CPU)]
    waiting += [_waits_apart(CPU, GPU), _waits_apart(GPU, GPU1)]
    return _demand(answer, random, [*reading, *waiting, _apart(CPU, GPU), _apart(CPU, OTHER_GPU, _LARGE)])


@q1.check("Ops that do not need each other, on one GPU", points=3)
def one_gpu(answer: Any, random: Random) -> Picture:
    pairs = [_apart(GPU, GPU), _apart(GPU, GPU1), _apart(GPU1, GPU1), _apart(GPU, OTHER_GPU, _LARGE), _reads(GPU, GPU1)]
    pairs += [_apart(CPU, GPU)]
    return _demand(answer, random, [*pairs, _common_source(GPU1), _at_depths(GPU, GPU), _at_depths(GPU1, GPU)])


# -- mistakes ------------------------------------------------------------------------------------------------


def _follows(seen: Seen, rule: Callable[[Case], bool]) -> bool:
    """Whether all that was said is what another rule says."""
    return all(said == rule(case) for case, said in seen.said)


@q1.mistake()
def one_op_per_device(seen: Seen) -> bool:
    """Ops on one device were taken to run one after the other. A CPU has a pool of threads, one for each core, and
    takes every op that is ready: they can run at the same time."""
    return _follows(seen, lambda case: not case.link and not case.same_device)


@q1.mistake()
def a_gpu_is_no_cpu(seen: Seen) -> bool:
    """Ops on one GPU were taken to overlap. A GPU puts what TensorFlow gives it into one queue, its compute stream, and
    runs that op by op. An op uses all of its cores, but two ops do not run at the same time."""
    return _follows(seen, lambda case: not case.link)


@q1.mistake()
def forgets_control_inputs(seen: Seen) -> bool:
    """Control dependencies are forgotten. An op waits for them, too, although it reads nothing: the sources of an op
    are those of its inputs and its control_inputs."""
    return _follows(seen, lambda case: case.link != "reads" and not case.on_one_gpu)


@q1.mistake()
def looks_only_at_neighbours(seen: Seen) -> bool:
    """One op may need the other by way of others in between. Follow the edges back to the end: a function that calls
    itself for each source does this."""
    return _follows(seen, lambda case: (not case.link or case.pair.by_way) and not case.on_one_gpu)


@q1.mistake()
def forgets_controls_in_between(seen: Seen) -> bool:
    """Control dependencies count only for the two ops themselves. Those of an op in between make it wait, too: follow
    inputs and control_inputs alike, for each op on the way."""

    def rule(goes_on: bool, case: Case) -> bool:
        lost = case.pair.behind or (case.pair.beyond and not goes_on)
        return (not case.link or lost) and not case.on_one_gpu

    return any(_follows(seen, functools.partial(rule, goes_on)) for goes_on in (True, False))


@q1.mistake()
def stops_at_control_inputs(seen: Seen) -> bool:
    """The search ends at an op that is waited for. That op has sources of its own, and they are needed, too: go on from
    it, as from one whose output is read."""
    return _follows(seen, lambda case: (not case.link or case.pair.beyond) and not case.on_one_gpu)


@q1.mistake()
def looks_in_one_direction(seen: Seen) -> bool:
    """A path was looked for in one direction only. The second op may be the one that has to be done first: look in
    both."""

    def rule(turned: bool, case: Case) -> bool:
        return not (case.link and case.turned == turned) and not case.on_one_gpu

    return any(_follows(seen, functools.partial(rule, turned)) for turned in (False, True))


@q1.mistake()
def compares_depths(seen: Seen) -> bool:
    """Only ops at the same depth of the graph were taken to overlap. But an op begins when its own sources are done,
    and a long op that began earlier may still be running. Only a path from one to the other keeps them apart."""
    return _follows(seen, lambda case: case.pair.level and not case.on_one_gpu)


@q1.mistake()
def takes_gpus_of_two_tasks_for_one(seen: Seen) -> bool:
    """GPU:0 of one task was taken for GPU:0 of another. Compare the full names, with job and task."""

    def rule(case: Case) -> bool:
        names = [op.device.rpartition("/")[2] for op in (case.first, case.second)]
        return not case.link and not (names[0] == names[1] and "GPU" in names[0])

    return _follows(seen, rule)


@q1.mistake()
def takes_all_gpus_for_one(seen: Seen) -> bool:
    """Ops on two GPUs were taken to wait for each other. Each GPU has a compute stream of its own: only ops on the same
    one do."""
    return _follows(seen, lambda case: not case.link and not all("GPU" in op.device for op in case[:2]))


@q1.mistake()
def one_op_per_task(seen: Seen) -> bool:
    """Ops of one task were taken to run one after the other. A task has several devices, and all of them work at the
    same time; compare devices, not tasks."""
    return _follows(seen, lambda case: not case.link and len({op.device[: len(W0)] for op in case[:2]}) > 1)


@q1.mistake()
def keeps_siblings_apart(seen: Seen) -> bool:
    """Two ops that need the same third one were taken to need each other. When the third is done, both are ready, and
    can run at the same time: only a path from one to the other keeps them apart."""
    return _follows(seen, lambda case: not (case.link or case.pair.common or case.on_one_gpu))


@q1.mistake()
def follows_one_input(seen: Seen) -> bool:
    """Only the first input of an op was followed. op.inputs is a list: an op waits for all that it reads."""
    return _follows(seen, lambda case: (not case.link or case.pair.as_second) and not case.on_one_gpu)


@q1.mistake()
def looks_at_devices_only(seen: Seen) -> bool:
    """Only the devices were compared. An op that needs the other one never runs at the same time, wherever the two are:
    look for a path of edges between them, too."""
    return _follows(seen, lambda case: not case.on_one_gpu)


@q1.mistake()
def says_the_same_of_all(seen: Seen) -> bool:
    """All pairs got the same verdict, whatever they are. Two things decide: whether one of the ops needs the other, and
    whether they are on the same GPU."""
    return len({said for _, said in seen.said}) == 1
