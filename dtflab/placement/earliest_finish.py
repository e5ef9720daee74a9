"""Greedy placement by the earliest finish, over a simulated execution.

Stands for section 3.2.1 of the TensorFlow white paper (2015), whose placer was never released. There a node is placed
when the simulation reaches it; `ranked` takes the order of HEFT (Topcuoglu, 2002) instead: the longest way to the end
comes first.

Rules: a unit goes where its first node that takes time would end soonest, the transfer of its inputs included; of equal
devices, to the first. A node that takes no time and needs no input goes with its first reader. A device without memory
for a unit is not a candidate, unless all are full.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from dtflab.placement.problem import Assignment, Problem

OPEN = -1  # the device of a unit that has none yet


def by_time(problem: Problem) -> Assignment:
    """The assignment of nodes in the order of a simulated execution."""
    return _Greedy(problem, None).run()


def ranked(problem: Problem) -> Assignment:
    """The assignment of nodes in the order of their distance from the end, the farthest first."""
    return _Greedy(problem, ranks(problem)).run()


def ranks(problem: Problem) -> list[float]:
    """Seconds from the start of each task to the end of all, with mean times and mean transfers."""
    plan, count = problem.plan, len(problem.unit_of)
    mean = [sum(times) / len(times) for times in zip(*problem.seconds, strict=True)]
    per_byte, latency = mean_transfer(problem)
    found = [0.0] * count
    for task in reversed(plan.order):
        after = 0.0
        for consumer, output in plan.consumers[task]:
            after = max(after, latency + per_byte * plan.bytes_of(task, output) + found[consumer])
        found[task] = mean[task] + after
    return found


def mean_transfer(problem: Problem) -> tuple[float, float]:
    """Seconds per byte and latency of a message, over all pairs of devices, those of one device included."""
    devices = range(len(problem.devices))
    routes = [problem.fabric.route(a, b) for a in devices for b in devices if a != b]
    per_byte = sum(max((1 / rate for _, rate in route.rates), default=0.0) for route in routes)
    latency = sum(route.latency_s + 2 * route.cpu_s for route in routes)
    pairs = len(problem.devices) ** 2
    return per_byte / pairs, latency / pairs


class _Greedy:
    """The execution, as far as it has been simulated."""

    def __init__(self, problem: Problem, ranks: list[float] | None) -> None:
        self.problem, self.plan, self.fabric = problem, problem.plan, problem.fabric
        self.ranks = ranks
        self.assignment = [OPEN] * len(problem.units)
        self.end = [0.0] * len(problem.unit_of)
        self.free = [[0.0] * slots for slots in self.fabric.slots]  # by processor: when each of its slots is free
        self.link_free: dict[int, float] = {}
        self.come: dict[tuple[int, int, int], float] = {}  # (task, output, device) → when it is there
        self.memory = list(problem.capacity)

    def run(self) -> Assignment:
        """Take the tasks one after the other."""
        waits = list(self.plan.waits)
        heap = [self._key(task) for task, count in enumerate(waits) if not count]
        heap.sort()
        while heap:
            task = heappop(heap)[1]
            self._place(task)
            for consumer, _ in self.plan.consumers[task]:
                waits[consumer] -= 1
                if not waits[consumer]:
                    heappush(heap, self._key(consumer))
        candidates = self.problem.candidates
        return [found[0] if device == OPEN else device for device, found in zip(self.assignment, candidates)]

    def _key(self, task: int) -> tuple[float, int]:
        if self.ranks is not None:
            return -self.ranks[task], task
        return max((self.end[source] for source in self._sources(task)), default=0.0), task

    def _sources(self, task: int) -> list[int]:
        return [source for source, _ in self.plan.inputs[task]] + self.plan.controls[task]

    # -- one task -----------------------------------------------------------------------------------------------

    def _place(self, task: int) -> None:
        unit = self.problem.unit_of[task]
        device = self.assignment[unit]
        if device == OPEN:
            candidates = self.problem.candidates[unit]
            if self._may_stay_open(task):
                return
            device = candidates[0] if len(candidates) == 1 else self._soonest(task, candidates)
            self._settle(unit, device)
        self._begin(task, device)

    def _may_stay_open(self, task: int) -> bool:
        """True for a task that takes no time and has no placed input: it can be anywhere when it is needed."""
        if any(seconds[task] for seconds in self.problem.seconds):
            return False
        return all(self._device(source) == OPEN for source in self._sources(task))

    def _device(self, task: int) -> int:
        return self.assignment[self.problem.unit_of[task]]

    def _soonest(self, task: int, candidates: Sequence[int]) -> int:
        """The candidate on which a task would end first."""
        needs = self.problem.kept(self.problem.unit_of[task])
        fits = [device for device in candidates if needs <= self.memory[device]]
        if not fits:
            return max(candidates, key=self.memory.__getitem__)
        return min(fits, key=lambda device: self._start(task, device) + self.problem.seconds[device][task])

    def _start(self, task: int, device: int) -> float:
        """The time at which a task could start on a device."""
        start = min(self.free[self.fabric.processors[device]])
        for source, output in self.plan.inputs[task]:
            start = max(start, self._arrival(source, output, device))
        for source in self.plan.controls[task]:
            start = max(start, self._arrival(source, -1, device))
        return start

    def _arrival(self, source: int, output: int, device: int, book: bool = False) -> float:
        """The time at which a tensor would be on a device, with the links as they are; `book` occupies them."""
        here = self._device(source)
        if here in (OPEN, device):
            return self.end[source]
        key = source, output, device
        if key in self.come:
            return self.come[key]
        route = self.fabric.route(here, device)
        nbytes = self.plan.bytes_of(source, output)
        sent = self.end[source] + route.cpu_s
        hops = route.hops(nbytes, sent, self.link_free)
        arrival = (hops[-1][1] if hops else sent) + route.latency_s + route.cpu_s
        if book:
            route.take(hops, self.link_free)
            self.come[key] = arrival
        return arrival

    # -- consequences -------------------------------------------------------------------------------------

    def _settle(self, unit: int, device: int) -> None:
        self.assignment[unit] = device
        self.memory[device] -= self.problem.kept(unit)

    def _begin(self, task: int, device: int) -> None:
        """Run a task on a device: its unplaced inputs are placed there, the others are sent."""
        start = 0.0
        for source, output in [*self.plan.inputs[task], *((source, -1) for source in self.plan.controls[task])]:
            if self._device(source) == OPEN:
                self._settle_open(source, device)
            start = max(start, self._arrival(source, output, device, book=True))
        slots = self.free[self.fabric.processors[device]]
        seconds = self.problem.seconds[device][task]
        if seconds:
            slot = slots.index(min(slots))
            start = max(start, slots[slot])
            slots[slot] = start + seconds
        self.end[task] = start + seconds

    def _settle_open(self, source: int, device: int) -> None:
        """Place a task that could be anywhere, and all its inputs, next to its first reader, if possible."""
        stack = [source]
        while stack:
            task = stack.pop()
            unit = self.problem.unit_of[task]
            if self.assignment[unit] == OPEN:
                found = self.problem.candidates[unit]
                fits = device in found and self.problem.kept(unit) <= self.memory[device]
                self._settle(unit, device if fits else max(found, key=self.memory.__getitem__))
                stack += self._sources(task)
