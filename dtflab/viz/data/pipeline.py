"""From what a watch saw to an input pipeline: stages, the queues between them, and how fast each goes.

A stage is all steps that take from the same queues and put into the same ones, whichever client runs them. What it
waited is known from the queues; the rest of the time, from its first step to its last, it was at work. A reader takes
a file name only now and then: its steps with and without are one stage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dtflab.base.events import Call
from dtflab.base.grouping import grouped
from dtflab.machine.watch import Watch
from dtflab.viz.data.queue_history import QueueHistory, queue_histories

Places = frozenset[int]  # numbers of queues


class Stage(NamedTuple):
    """Steps that do the same. Seconds are those of all its workers together."""

    name: str
    takes: Places
    puts: Places
    workers: int  # as many steps at a time
    steps: int
    taken: int  # elements
    put: int
    began: float
    ended: float
    waited_to_take: float
    waited_to_put: float

    @property
    def present(self) -> float:
        """Seconds from its first step to its last, of all workers."""
        return (self.ended - self.began) * self.workers

    @property
    def worked(self) -> float:
        """Seconds that it neither waited to take nor to put."""
        return max(0.0, self.present - self.waited_to_take - self.waited_to_put)


class Pipeline(NamedTuple):
    """Stages in the order in which elements pass them, the histories of the queues, and the whole time in seconds."""

    stages: list[Stage]
    queues: list[QueueHistory]
    seconds: float

    def share(self, stage: Stage, seconds: float) -> float:
        """The part of the whole time that `seconds` of a stage's workers are."""
        return min(1.0, seconds / (self.seconds * stage.workers)) if self.seconds else 0.0

    def bottleneck(self) -> Stage | None:
        """The stage that was at work for the largest part of the time, if anybody waited at all."""
        waited = any(stage.waited_to_take + stage.waited_to_put > 0 for stage in self.stages)
        if len(self.stages) < 2 or not waited:
            return None
        return max(self.stages, key=lambda stage: self.share(stage, stage.worked))


class _Step:
    """One step's work at queues; from its call, if that has ended, else from its first event to its last."""

    def __init__(self, client: str) -> None:
        self.client = client
        self.takes: set[int] = set()
        self.puts: set[int] = set()
        self.taken = self.put = 0
        self.ops: list[str] = []
        self.moments: list[float] = []
        self.waited = {"take": 0.0, "put": 0.0, "close": 0.0}


def pipeline(seen: Watch) -> Pipeline:
    """The stages and queues of a watch; ValueError if nothing happened at a queue."""
    queues = queue_histories(seen)
    steps = _steps(queues, seen.calls)
    at_queues = [step for step in steps.values() if step.takes or step.puts]
    kinds = grouped(((frozenset(step.takes), frozenset(step.puts)), step) for step in at_queues)
    moments = [moment for step in at_queues for moment in step.moments]
    stages = [_stage(*places, own) for places, own in _joined(kinds).items()]
    return Pipeline(_in_order(stages), queues, max(moments) - min(moments) if moments else 0.0)


def _joined(kinds: dict[tuple[Places, Places], list[_Step]]) -> dict[tuple[Places, Places], list[_Step]]:
    """Kinds of steps, those that take less than others of the same client, and put into the same queues, with these."""
    joined = dict(sorted(kinds.items(), key=lambda kind: len(kind[0][0])))
    for (takes, puts), own in list(joined.items()):
        who = {step.client for step in own}
        for (wider, same), others in joined.items():
            if puts and puts == same and takes < wider and who & {step.client for step in others}:
                others += joined.pop((takes, puts))
                break
    return joined


def _steps(queues: Sequence[QueueHistory], calls: Iterable[Call]) -> dict[int, _Step]:
    steps: dict[int, _Step] = {}
    for number, history in enumerate(queues):
        for event in history.events:
            step = steps.setdefault(event.step, _Step(event.client))
            step.moments.append(event.at)
            step.ops.append(event.op)
            wants = event.wants or event.what
            if wants == "take":
                step.takes.add(number)
                step.taken += event.elements
            elif wants == "put":
                step.puts.add(number)
                step.put += event.elements
        for wait in history.waits:
            steps[wait.step].waited[wait.wants] += wait.seconds
            steps[wait.step].moments.append(wait.ended)
    for call in calls:
        if call.method == "RunStep" and call.step in steps:
            steps[call.step].moments += [call.at, call.ended]
    return steps


def _stage(takes: Places, puts: Places, steps: Sequence[_Step]) -> Stage:
    # The last op of a step names it, which puts if any does; that of most steps, else the shortest name.
    last = Counter(step.ops[-1] for step in steps)
    name = min(last, key=lambda op: (-last[op], len(op), op)) or "steps"
    return Stage(
        name, takes, puts, _at_a_time(steps), len(steps), sum(step.taken for step in steps),
        sum(step.put for step in steps), min(min(step.moments) for step in steps),
        max(max(step.moments) for step in steps), sum(step.waited["take"] for step in steps),
        sum(step.waited["put"] for step in steps),
    )  # fmt: skip


def _at_a_time(steps: Sequence[_Step]) -> int:
    """How many steps there were at once, at most; one that begins when another ends is not next to it."""
    changes = [(min(step.moments), 1) for step in steps] + [(max(step.moments), -1) for step in steps]
    most = now = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return max(most, 1)


def _in_order(stages: list[Stage]) -> list[Stage]:
    """Producers come before consumers; in a circle, the one that began first."""
    left, ordered = sorted(stages, key=lambda stage: stage.began), list[Stage]()
    while left:
        waiting_for = {queue for stage in left for queue in stage.puts}
        free = [stage for stage in left if not stage.takes & (waiting_for - stage.puts)]
        ordered.append((free or left)[0])
        left.remove(ordered[-1])
    return ordered
