"""Questions on what runs side by side.

q2: control dependencies that take a peak out of a card's memory. The answer joins parts that the checks made, each with
large tensors in between; a real step runs on a simulated card, and the card says how much was in use at once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from dtflab.cluster.cluster import Cluster
from dtflab.grading.device_functions import shown
from dtflab.grading.questions import Wrong, register
from dtflab.graph.graph import Graph
from dtflab.graph.operation import Operation, Tensor
from dtflab.ops.constant import fill
from dtflab.ops.reduction import reduce_sum
from dtflab.runtime.session import Session
from dtflab.viz.memory import memory
from dtflab.viz.picture import Picture
from dtflab.viz.units import plural

Part = Callable[[], Tensor]

q2 = register(
    "parallel/q2",
    "A peak that control dependencies remove",
    answer="in_turn",
    hints=(
        """Ops wait for the control dependencies of the block in which they are made. So the part has to be called
        inside: with tf.control_dependencies([…]): results.append(part()). To wait for a part is to wait for its
        result.""",
        """The first at_once parts wait for nothing: tf.control_dependencies([]) is allowed. Each later one may begin
        when there is room again.""",
        """Part i waits for results[i - at_once], if there is one: results[i - at_once : i - at_once + 1] if
        i >= at_once else []. The answer is tf.add_n(results).""",
    ),
)


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
    """How many large tensors there were at once, and the longest chain of parts."""

    case: Case
    alive: int
    chain: int
    controls: bool  # whether any op of the graph has a control dependency
    picture: Picture


class _Made:
    """The parts of a case, as functions; notes the first op of each that was called."""

    def __init__(self, case: Case) -> None:
        self.first: list[Operation] = []
        self.parts: list[Part] = [self._part(case.size, float(i + 1)) for i in range(case.number)]
        self.total = sum((i + 1) * case.size for i in range(case.number))

    def _part(self, size: int, value: float) -> Part:
        def part() -> Tensor:
            large = fill([size], value)
            self.first.append(large.op)
            total: Tensor = reduce_sum(large)
            return total

        return part

    def chain(self, end: Operation) -> int:
        """The most parts that follow each other, of those that `end` waits for."""
        known: dict[Operation, int] = {}
        for op in end.graph.get_operations():  # sources stand before those who need them
            before = [tensor.op for tensor in op.inputs] + list(op.control_inputs)
            known[op] = max((known[source] for source in before), default=0) + (op in self.first)
        return known[end]


def _alive(metadata: Any) -> int:
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
            raise Wrong(f"in_turn returned {shown(total)}; expected is a tensor, the sum of the parts.")
        with Session(cluster.target) as session:
            metadata = session.trace(total.op)
            value = session.run(total)
    if not math.isclose(float(value), made.total, rel_tol=1e-4):
        told = f"Of {plural(case.number, 'part')}, in_turn gave {float(value):,.0f}"
        raise Wrong(f"{told}; expected is the sum, {made.total:,.0f}.")
    controls = any(op.control_inputs for op in graph.get_operations())
    picture = memory(metadata, title="Memory of the card")
    return Seen(case, _alive(metadata), made.chain(total.op), controls, picture)


def _demand_peak(seen: Seen) -> Picture:
    """Wrong if more parts than allowed had their large tensors at once."""
    case = seen.case
    if seen.alive > case.at_once:
        told = f"{plural(case.number, 'part')}, {case.at_once} at once: there were {seen.alive} large tensors at once"
        raise Wrong(f"{told}; expected: {case.at_once} at most.", seen, seen.picture)
    return seen.picture


# -- what is checked -----------------------------------------------------------------------------------------


@q2.check("One part at a time", points=4)
def one(answer: Any, random: Random) -> Picture:
    return _demand_peak(_run(answer, Case(random.randint(3, 6), 1, random.randrange(100_000, 200_000))))


@q2.check("Several parts at a time, not more", points=3)
def several(answer: Any, random: Random) -> Picture:
    at_once = random.randint(2, 3)
    count = 2 * at_once + random.randint(1, 2)
    return _demand_peak(_run(answer, Case(count, at_once, random.randrange(100_000, 200_000))))


@q2.check("No part waits for longer than it must", points=3)
def no_longer(answer: Any, random: Random) -> None:
    for at_once in (2, 3, 9):
        seen = _run(answer, Case(random.randint(6, 8), at_once, 1000))
        if seen.chain > seen.case.least:
            case = seen.case
            raise Wrong(
                f"{plural(case.number, 'part')}, {at_once} at once: {seen.chain} of them have to run one after the "
                f"other; expected: {case.least}.",
                seen,
            )


# -- mistakes ------------------------------------------------------------------------------------------------


@q2.mistake(
    "All parts begin at once: their ops have no inputs, so all of them are ready. Nothing in the graph says that one "
    "part should wait for another; a control dependency does."
)
def lets_all_begin(seen: Seen) -> bool:
    return not seen.controls and seen.chain == 1


@q2.mistake(
    "There is a control dependency, but not on the parts: their ops were made before the block. Call part() inside of "
    "`with tf.control_dependencies(…)`; what exists already does not wait."
)
def makes_them_before(seen: Seen) -> bool:
    return seen.controls and seen.chain == 1


@q2.mistake(
    "Each part waits for the one before it, however many may be at work at once. Part i only has to wait for part i - "
    "at_once."
)
def always_one(seen: Seen) -> bool:
    return seen.chain == seen.case.number > seen.case.least


@q2.mistake(
    "One part too many is at work at once. Count: while part i works, at_once - 1 others may; the one that has to be "
    "done is part i - at_once."
)
def one_too_many(seen: Seen) -> bool:
    return 1 < seen.chain == math.ceil(seen.case.number / (seen.case.at_once + 1))


@q2.mistake(
    "There is room for all parts at once, and yet some wait. Where i is less than at_once, i - at_once is negative, "
    "and an index below 0 counts from the end of a list. These parts wait for nothing."
)
def counts_from_the_end(seen: Seen) -> bool:
    return seen.chain > seen.case.least == 1
