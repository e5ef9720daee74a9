"""Questions on what runs side by side.

q2: control dependencies that take a peak out of a card's memory. The answer joins parts that the checks made, each with
large tensors in between; a real step runs on a simulated card, and the card says how much was in use at once.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from dtflab.base.text_table import plural
from dtflab.cluster.cluster import Cluster
from dtflab.grading.device_functions import shown
from dtflab.grading.questions import Wrong, from_toml
from dtflab.graph.graph import Graph
from dtflab.graph.operation import Operation, Tensor
from dtflab.ops.arrays.functions import fill
from dtflab.ops.reduce.functions import reduce_sum
from dtflab.protos.config_pb2 import RunMetadata
from dtflab.runtime.session import Session
from dtflab.viz.drawing.picture import Picture
from dtflab.viz.memory import memory

Part = Callable[[], Tensor]

q2 = from_toml(__file__)


class Case(NamedTuple):
    """Parts that hold `size` numbers in between, and how many may be at work at once."""

    number: int
    at_once: int
    size: int

    @property
    def least(self) -> int:
        """The parts that have to follow each other."""
        return math.ceil(self.number / self.at_once)


class Seen(NamedTuple):
    """How many large tensors there were at once, the longest chain of parts, the most calls of one part.

    Where a step does not run all parts, or gives another number than their sum, only `missing` is known, how many it
    leaves out, how many were never called, and the `share` of the sum that it gives. `together` is the most parts of
    which none waits for another, `first` how many wait for nothing. `too_many` is for how many parts a part waits that
    it needn't wait for: more than stand before it in its chain.
    """

    case: Case
    alive: int
    together: int
    first: int
    chain: int
    too_many: int
    calls: int
    controls: bool  # whether any op of the graph has a control dependency
    bound: bool  # whether a part has one, or what the part reads
    picture: Picture | None = None
    missing: int = 0
    uncalled: int = 0
    share: float = 1.0


class _Made:
    """The parts of a case, as functions; notes the first op of each call, and which part it belongs to."""

    def __init__(self, case: Case) -> None:
        self.first: dict[Operation, int] = {}
        self.parts: list[Part] = [self._part(case.size, i + 1) for i in range(case.number)]
        self.total = sum((i + 1) * case.size for i in range(case.number))

    def _part(self, size: int, value: int) -> Part:
        def part() -> Tensor:
            large = fill([size], float(value))
            self.first[large.op] = value
            total: Tensor = reduce_sum(large)
            return total

        return part

    @property
    def calls(self) -> int:
        """How often the part was called that was called most often."""
        return max(Counter(self.first.values()).values(), default=0)

    def waits(self, end: Operation) -> dict[Operation, frozenset[Operation]]:
        """The parts that `end` waits for, each with the parts that it waits for and itself."""
        known: dict[Operation, frozenset[Operation]] = {}
        for op in end.graph.get_operations():  # sources stand before those who need them
            sources = [tensor.op for tensor in op.inputs] + list(op.control_inputs)
            itself = [op] if op in self.first else []
            known[op] = frozenset(itself).union(*(known[source] for source in sources))
        return {op: known[op] for op in known[end]}


def _depths(waits: Mapping[Operation, frozenset[Operation]]) -> dict[Operation, int]:
    """How many parts follow each other up to each part, itself included."""
    depths: dict[Operation, int] = {}
    for op in sorted(waits, key=lambda op: len(waits[op])):  # an op that others wait for has fewer to wait for
        depths[op] = 1 + max((depths[other] for other in waits[op] - {op}), default=0)
    return depths


def _together(waits: Mapping[Operation, frozenset[Operation]]) -> int:
    """The most parts that nothing keeps from being at work at once; of a few parts, so every set of them is tried."""

    def apart(parts: Sequence[Operation]) -> bool:
        return all(one is other or one not in waits[other] for one in parts for other in parts)

    sizes = range(len(waits), 0, -1)
    return next((n for n in sizes if any(map(apart, itertools.combinations(waits, n)))), 0)


def _alive(metadata: RunMetadata) -> int:
    """The most large tensors that there were at once in a traced step."""
    changes = [
        (record.alloc_micros, 1 if record.alloc_bytes > 0 else -1)
        for device in metadata.step_stats.dev_stats
        for node in device.node_stats
        if " = Fill(" in node.timeline_label
        for allocation in node.memory
        for record in allocation.allocation_records
    ]
    return max(itertools.accumulate(change for _, change in sorted(changes)), default=0)  # in a moment: first the end


def _run(answer: Any, case: Case) -> Seen:
    """A step of the answer, on a card of its own."""
    made = _Made(case)
    with Cluster(worker=1, gpus=1) as cluster, Graph().as_default() as graph:
        total = answer(list(made.parts), case.at_once)
        if not isinstance(total, Tensor):
            raise Wrong(f"in_turn returned {shown(total)}; expected: a tensor, the sum of the parts.")
        with Session(cluster.target) as session:
            metadata = session.trace(total.op)
            value = session.run(total)
    waits = made.waits(total.op)
    missing, uncalled = case.number - len(waits), case.number - len(set(made.first.values()))
    partial = Seen(case, 0, 0, 0, 0, 0, 0, False, False, None, missing, uncalled, float(value) / made.total)
    if not math.isclose(partial.share, 1, rel_tol=1e-4):
        observed = f"Of {plural(case.number, 'part')}, in_turn gave {float(value):,.0f}"
        raise Wrong(f"{observed}; expected: the sum, {made.total:,.0f}.", partial)
    if missing > 0:
        text = f"Of {plural(case.number, 'part')}, a step of the sum runs {len(waits)}"
        raise Wrong(f"{text}; expected: all of them.", partial)
    return _seen(case, waits, made.calls, graph, metadata)


def _seen(case: Case, waits: Mapping[Operation, frozenset[Operation]], calls: int, graph: Graph, step: Any) -> Seen:
    depths = _depths(waits)
    return Seen(
        case,
        alive=_alive(step),
        together=_together(waits),
        first=list(depths.values()).count(1),
        chain=max(depths.values(), default=0),
        too_many=max((len(waits[op]) - depths[op] for op in waits), default=0),
        calls=calls,
        controls=any(op.control_inputs for op in graph.get_operations()),
        bound=any(one.control_inputs for op in waits for one in (op, *(tensor.op for tensor in op.inputs))),
        picture=memory(step, title="Memory of the card"),
    )


def _demand_peak(seen: Seen) -> Picture | None:
    """Wrong if more parts than allowed had their large tensors at once."""
    case = seen.case
    given = f"{plural(case.number, 'part')}, {case.at_once} at once"
    if seen.alive > case.at_once:
        text = f"{given}: there were {seen.alive} large tensors at once"
        raise Wrong(f"{text}; expected: {case.at_once} at most.", seen, seen.picture)
    if seen.together > case.at_once:
        text = f"{given}: {seen.together} parts wait for none of each other, and may all be at work at once"
        raise Wrong(f"{text}; expected: {case.at_once} at most.", seen, seen.picture)
    return seen.picture


# -- what is checked -----------------------------------------------------------------------------------------


@q2.check("One part at a time, each called once", points=4)
def one(answer: Any, random: Random) -> Picture | None:
    return _demand_once(_run(answer, Case(random.randint(3, 6), 1, random.randrange(100_000, 200_000))))


def _demand_once(seen: Seen) -> Picture | None:
    if seen.calls > 1:
        raise Wrong(f"in_turn called a part {seen.calls} times; it should call each once.", seen)
    return _demand_peak(seen)


@q2.check("Several parts at a time, not more", points=3)
def several(answer: Any, random: Random) -> Picture | None:
    for count, at_once in ((random.randint(7, 8), 3), (7, 2)):  # no multiple, nor its square
        picture = _demand_once(_run(answer, Case(count, at_once, random.randrange(100_000, 200_000))))
    return picture


@q2.check("No part waits for longer than it must", points=3)
def no_longer(answer: Any, random: Random) -> None:
    for number, at_once in ((random.randint(6, 8), 2), (8, 3), (random.randint(6, 8), 9), (5, 4), (6, 4)):
        seen = _run(answer, Case(number, at_once, 1000))
        given = f"{plural(number, 'part')}, {at_once} at once"
        if seen.chain > seen.case.least:
            one_by_one = f"{seen.chain} of them have to run one after the other"
            raise Wrong(f"{given}: {one_by_one}; expected: {seen.case.least}.", seen)
        if seen.too_many:
            side_by_side = "a part waits for several parts that run side by side"
            raise Wrong(f"{given}: {side_by_side}; it should begin when one of them is done.", seen)
        if seen.first < min(number, at_once):
            raise Wrong(f"{given}: {seen.first} of them wait for nothing; expected: {min(number, at_once)}.", seen)


# -- mistakes ------------------------------------------------------------------------------------------------


@q2.mistake()
def waits_for_one_of_a_group(seen: Seen) -> bool:
    """The parts of a group wait for one part of the group before, and the others of that may still be at work. Let part
    i wait for part i - at_once: then each begins when its own place is free."""
    groups = -(-seen.case.number // seen.case.at_once)
    in_groups = seen.first == seen.case.at_once > 1 and seen.chain == groups and seen.too_many == 0
    return in_groups and seen.together > seen.case.at_once


@q2.mistake()
def lets_all_begin(seen: Seen) -> bool:
    """All parts begin at once: their ops have no inputs, so all of them are ready. Nothing in the graph says that one
    part should wait for another; a control dependency does."""
    return not seen.controls and seen.chain == 1


@q2.mistake()
def makes_them_before(seen: Seen) -> bool:
    """There is a control dependency, but not on the parts: their ops were made before the block. Call part() inside of
    `with tf.control_dependencies(…)`; what exists already does not wait."""
    return seen.controls and not seen.bound and seen.chain == 1


@q2.mistake()
def waits_for_a_beginning(seen: Seen) -> bool:
    """The parts wait for something that is done before any part has ended, so they don't wait for each other. Give
    `with tf.control_dependencies(…)` what an earlier part() returned."""
    return seen.bound and seen.chain == 1


@q2.mistake()
def calls_twice(seen: Seen) -> bool:
    """Each call of a part makes new ops. Call each once, inside of the block with its control dependencies, and keep
    what it returns."""
    return seen.calls > 1


@q2.mistake()
def waits_for_groups(seen: Seen) -> bool:
    """A part waits until several others are done: a whole group, or all that began before. If one of these is slow,
    there is room for others, and nobody begins. Part i only has to wait for one: part i - at_once."""
    return seen.too_many > 0


@q2.mistake()
def always_one(seen: Seen) -> bool:
    """Each part waits for the one before it, however many may be at work at once. Part i only has to wait for part i -
    at_once."""
    return seen.chain == seen.case.number > seen.case.least


@q2.mistake()
def one_too_many(seen: Seen) -> bool:
    """One part too many is at work at once. Count: while part i works, at_once - 1 others may; the one that has to be
    done is part i - at_once."""
    too_many = seen.case.at_once + 1
    return seen.first == seen.together == too_many and 1 < seen.chain == math.ceil(seen.case.number / too_many)


@q2.mistake()
def all_wait_for_one(seen: Seen) -> bool:
    """Many parts wait for the same one. When it is done there is room for one of them, and all begin. Part i waits for
    part i - at_once, so each has another one to wait for."""
    return (
        seen.chain == 2 < seen.case.number - seen.case.at_once + 1 and seen.first == seen.case.at_once < seen.together
    )


@q2.mistake()
def counts_from_the_end(seen: Seen) -> bool:
    """There is room for all parts at once, and yet some wait. Where i is less than at_once, i - at_once is negative,
    and an index below 0 counts from the end of a list. These parts wait for nothing."""
    return seen.chain > seen.case.least == 1


@q2.mistake()
def leaves_parts_out(seen: Seen) -> bool:
    """Some parts were never called, and so are not in the sum. Each of `parts` is called once, the first and the last
    of them, too."""
    return 0 < seen.uncalled == seen.missing


@q2.mistake()
def takes_the_mean(seen: Seen) -> bool:
    """A step gives the mean of the parts, where their sum is asked for. Add up what they return, and don't divide by
    their number: tf.add_n(results)."""
    return not seen.missing and math.isclose(seen.share * seen.case.number, 1, rel_tol=1e-4)


@q2.mistake()
def runs_them_before(seen: Seen) -> bool:
    """The parts ran while the graph was built, and a step of the sum runs none. Open no session: call the parts, so
    that their ops are in the graph, and add up what they return."""
    return seen.missing == seen.case.number and not seen.uncalled


@q2.mistake()
def waits_for_the_one_before(seen: Seen) -> bool:
    """Each part that has to wait waits for the one just before it, so that from there on only one at a time works.
    There is room as soon as any one is done: the part that began first, at_once before it."""
    case = seen.case
    return (
        not seen.too_many and seen.chain == case.number - case.at_once + 1 > case.least and seen.first == case.at_once
    )


@q2.mistake()
def leaves_room(seen: Seen) -> bool:
    """Parts wait at the beginning, where there is room for them. The first at_once parts wait for nothing; only then
    does part i wait for part i - at_once."""
    return 0 < seen.first < min(seen.case.number, seen.case.at_once)
