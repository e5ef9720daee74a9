"""The reason for each device that the dynamic placer chose, and the error if no placement fits.

Rule: times are those of the simulated step.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from dtflab.base.errors import ResourceExhaustedError
from dtflab.graph.node import Node
from dtflab.hardware.schedule import Schedule, Span
from dtflab.machine.bfc_allocator import human_bytes
from dtflab.placement.colocation_graph import ColocationGraph
from dtflab.placement.problem import Problem
from dtflab.placement.reasons import Reasons, short


def of_nodes(
    nodes: Iterable[Node], problem: Problem, schedule: Schedule, graph: ColocationGraph, reasons: Reasons
) -> dict[str, str]:
    """A sentence for each node of the step, by name; `reasons` has those of nodes without a choice."""
    times = _Times(problem, schedule)
    found = {}
    for node in nodes:
        task = problem.plan.numbers[node.name]
        if len(problem.candidates[problem.unit_of[task]]) == 1 or node.name in graph.links:
            found[node.name] = reasons.of(node, [schedule.tasks[node.name].device])
        else:
            found[node.name] = times.sentence(task)
    return found


class _Times:
    """The times at which nodes end where they are, and would end elsewhere."""

    def __init__(self, problem: Problem, schedule: Schedule) -> None:
        self.problem, self.schedule = problem, schedule
        self.spans = list(schedule.tasks.values())
        self.starts = {device: [span.start for span in spans] for device, spans in schedule.spans.items()}

    def sentence(self, task: int) -> str:
        """When a node ends, and when it would end on the next best device."""
        here = self.spans[task]
        if here.start == here.end:
            return f"takes no time; {self._next_to(task, here)}"
        others = [d for d in self.problem.candidates[self.problem.unit_of[task]] if self._name(d) != here.device]
        soonest, other = min((self._elsewhere(task, d), d) for d in others)
        at, there = seconds(here.end), f"{short(self._name(other))} at {seconds(soonest)}"
        if soonest >= here.end:
            return f"done soonest here, at {at}; on {there}"
        return f"done at {at}, on {there}, but the best step found, {seconds(self.schedule.makespan)}, has it here"

    def _next_to(self, task: int, here: Span) -> str:
        plan = self.problem.plan
        near = [consumer for consumer, _ in plan.consumers[task]] + [source for source, _ in plan.inputs[task]]
        found = next((other for other in near if self.spans[other].device == here.device), None)
        return "it may be anywhere" if found is None else f"next to {self.problem.plan.names[found]!r}"

    def _name(self, device: int) -> str:
        return self.problem.devices[device]

    def _elsewhere(self, task: int, device: int) -> float:
        """When a node would end on another device, if its inputs were sent there over free links.

        A GPU finishes its current op first; a CPU is assumed to have a free core.
        """
        problem, start = self.problem, 0.0
        for source, output in [*problem.plan.inputs[task], *((s, -1) for s in problem.plan.controls[task])]:
            span = self.spans[source]
            route = problem.fabric.route(problem.fabric.numbers[span.device], device)
            start = max(start, span.end + route.alone_s(problem.plan.bytes_of(source, output)))
        if problem.fabric.slots[problem.fabric.processors[device]] == 1:
            start = self._free_from(self._name(device), start)
        return start + problem.seconds[device][task]

    def _free_from(self, device: str, moment: float) -> float:
        """When a device that runs one op at a time ends the op that it runs at a given moment."""
        before = bisect_right(self.starts[device], moment)
        return max(moment, self.schedule.spans[device][before - 1].end) if before else moment


def seconds(value: float) -> str:
    """A time as people write it: 12.3 ms."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value / 1e-6:.3g} µs"


def check_memory(problem: Problem, schedule: Schedule) -> None:
    """Raise ResourceExhaustedError if a step needs more memory than a device has."""
    over = problem.over(schedule)
    if not over:
        return
    device = max(over, key=lambda name: over[name])
    capacity = problem.capacity[problem.fabric.numbers[device]]
    raise ResourceExhaustedError.of(
        f"The dynamic placer found no placement that fits: {short(device)} is short of {human_bytes(over[device])}. "
        f"A step needs {human_bytes(capacity + over[device])} there, and it has {human_bytes(capacity)}. "
        f"{_largest(problem, schedule, device)}\nWhat to do: a smaller batch, more or larger devices, or fewer pins."
    )


def _largest(problem: Problem, schedule: Schedule, device: str) -> str:
    """The largest tensors that are made on a device."""
    sizes = {
        name: sum(problem.plan.outputs[task]) or problem.plan.kept.get(task, 0)
        for task, name in enumerate(problem.plan.names)
        if schedule.tasks[name].device == device and problem.plan.view[task] < 0
    }
    largest = sorted(sizes, key=lambda name: (-sizes[name], name))[:3]
    return f"The largest tensors there: {', '.join(f'{name} ({human_bytes(sizes[name])})' for name in largest)}."
