"""The schedule of a placed graph: when each op would run, on given processors and links.

Stands for nothing in TensorFlow; the white paper of 2015 has such a simulation in its placer (section 3.2.1). Left out:
loops (a task runs once), Merges that continue with their first input, the two memories of a GPU, the master's calls to
its workers before and after a step. Fetched values are not sent.

Rules: pure and deterministic. A task is ready when all its inputs are on its device. A GPU runs one task at a time, and
a host's cores run all tasks of the host, in the order in which they became ready; at one moment, in the order of the
events that made them ready. Outputs are delivered at once on the same device, and by one message per (tensor, device)
to others, which passes its links as `cut_through.py` says. A message between hosts takes a core's time at both ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, NamedTuple

from dtflab.hardware import topology
from dtflab.hardware.cut_through import pass_link
from dtflab.hardware.machines import Place
from dtflab.hardware.spans import Hop, Message, Record, Schedule, Span, Task

if TYPE_CHECKING:
    from dtflab.hardware.machines import Machines
    from dtflab.hardware.topology import Link

__all__ = ["Fabric", "Hop", "Message", "Plan", "Schedule", "Span", "Task", "simulate"]


def simulate(tasks: Sequence[Task], machines: Machines) -> Schedule:
    """The schedule of placed tasks. Raises ValueError for missing inputs and circular waits.

    To run one graph many times, keep its `Plan` and the `Fabric` of the machines.
    """
    plan = Plan(tasks)
    return plan.run(Fabric(machines, plan.devices))


class Route(NamedTuple):
    """The way between two devices: its links and their bandwidths (B/s), the sum of latencies, a message's CPU time."""

    links: tuple[Link, ...]
    rates: tuple[tuple[int, float], ...]  # (number of the link, bytes per second)
    latency_s: float
    cpu_s: float

    def hops(self, nbytes: int, sent: float, free: Mapping[int, float]) -> list[tuple[float, float, float]]:
        """For each link, when a message begins and ends to pass it, and when it is free again; `free` is before it."""
        hops, start, end = [], sent, sent
        for link, rate in self.rates:
            start, end, done = pass_link(start, end, free.get(link, 0.0), nbytes / rate)
            hops.append((start, end, done))
        return hops

    def take(self, hops: Sequence[tuple[float, float, float]], free: dict[int, float]) -> None:
        """Occupy the links of a message for its bytes."""
        for (link, _), (_, _, done) in zip(self.rates, hops, strict=True):
            free[link] = done

    def alone_s(self, nbytes: int) -> float:
        """Seconds that a message takes if there are no others, the cores' time at both ends included."""
        return max((nbytes / rate for _, rate in self.rates), default=0.0) + self.latency_s + 2 * self.cpu_s


class Fabric:
    """Machines as flat arrays. Devices are numbered in the order of `devices` (full names)."""

    def __init__(self, machines: Machines, devices: Sequence[str]) -> None:
        self.machines = machines
        self.devices = list(devices)
        self.numbers = {device: number for number, device in enumerate(self.devices)}
        self.slots: list[int] = []  # of each processor: how many tasks at once
        self.links: dict[Link, int] = {}
        self._processors: dict[tuple[str, int | None], int] = {}
        self._routes: dict[tuple[int, int], Route] = {}
        places = [machines.place(device) for device in self.devices]
        self._hosts = [place.host.name for place in places]
        self.cores = [self._processor(Place(place.host, None)) for place in places]  # of each device's host
        self.processors = [self._processor(place) for place in places]

    def _processor(self, place: Place) -> int:
        """The number of a processor: the tasks of a host share its cores and its cards."""
        key = place.host.name, place.card
        if key not in self._processors:
            self._processors[key] = len(self.slots)
            self.slots.append(place.host.cpu.cores if place.card is None else 1)
        return self._processors[key]

    def route(self, source: int, target: int) -> Route:
        """The way from one device to another, found when it is first asked for."""
        found = self._routes.get((source, target))
        if found is None:
            links = topology.path(self.machines, self.devices[source], self.devices[target])
            rates = tuple((self.links.setdefault(link, len(self.links)), link.bandwidth) for link in links)
            apart = self._hosts[source] != self._hosts[target]
            cpu_s = self.machines.network.per_message_cpu_s if apart else 0.0
            found = self._routes[source, target] = Route(links, rates, sum(link.latency_s for link in links), cpu_s)
        return found


class Plan:
    """Tasks as flat arrays, by number: prepared once, run many times."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self.names = [task.name for task in tasks]
        self.devices = list(dict.fromkeys(task.device for task in tasks))
        self.seconds = [task.seconds for task in tasks]
        self.outputs = [task.outputs for task in tasks]
        self.view = [task.view for task in tasks]
        self.made = [sum(task.outputs) + task.kept for task in tasks]
        self.kept = {i: task.kept for i, task in enumerate(tasks) if task.kept}
        self.numbers = numbers = {name: i for i, name in enumerate(self.names)}
        numbered = {device: d for d, device in enumerate(self.devices)}
        self.where = [numbered[task.device] for task in tasks]
        _check(tasks, numbers)
        self.inputs = [[(numbers[name], output) for name, output in task.inputs] for task in tasks]
        self.controls = [[numbers[name] for name in task.controls] for task in tasks]
        self.waits = [len(task.inputs) + len(task.controls) for task in tasks]
        self.consumers: list[list[tuple[int, int]]] = [[] for _ in tasks]  # (task, output that it takes, or -1)
        for i, inputs in enumerate(self.inputs):
            for source, output in inputs:
                self.consumers[source].append((i, output))
            for source in self.controls[i]:
                self.consumers[source].append((i, -1))

    @cached_property
    def order(self) -> list[int]:
        """The tasks, producers first."""
        waits = list(self.waits)
        order = [task for task, count in enumerate(waits) if not count]
        for task in order:  # which grows
            for consumer, _ in self.consumers[task]:
                waits[consumer] -= 1
                if not waits[consumer]:
                    order.append(consumer)
        return order

    def bytes_of(self, source: int, output: int) -> int:
        """The size of a tensor in bytes; output -1, which signals the end of a task, has 0."""
        return self.outputs[source][output] if output >= 0 else 0

    def run(
        self, fabric: Fabric, seconds: Sequence[float] | None = None, where: Sequence[int] | None = None
    ) -> Schedule:
        """The schedule on `fabric`, whose devices start with the plan's own, or are numbered as `where` says.

        `seconds` and `where` replace the times and devices of the tasks, in their order. Raises ValueError if tasks
        wait for each other.
        """
        run = _Run(self, fabric, self.seconds if seconds is None else seconds, self.where if where is None else where)
        return Schedule(self, fabric, run.record())


def _check(tasks: Sequence[Task], numbers: dict[str, int]) -> None:
    """Raise ValueError for two tasks of one name, a time below 0, or an input that no task makes."""
    if len(numbers) < len(tasks):
        twice = next(task.name for i, task in enumerate(tasks) if numbers[task.name] != i)
        raise ValueError(f"Two tasks are named {twice!r}. Give each its own name.")
    for task in tasks:
        if not 0 <= task.seconds < float("inf"):
            raise ValueError(f"Task {task.name!r} on {task.device} takes {task.seconds} s. Give a time of 0 or more.")
        for name, output in task.inputs:
            if name not in numbers or not 0 <= output < len(tasks[numbers[name]].outputs):
                raise ValueError(f"Task {task.name!r} on {task.device} reads {name}:{output}, which no task makes.")
        for name in task.controls:
            if name not in numbers:
                raise ValueError(f"Task {task.name!r} on {task.device} waits for unknown task {name!r}.")


_Call = Callable[[float, Any], None]


class _Run:
    """One run: a heap of events, a queue before each processor, the moment at which each link is free."""

    def __init__(self, plan: Plan, fabric: Fabric, seconds: Sequence[float], where: Sequence[int]) -> None:
        count = len(plan.names)
        self.plan, self.fabric, self.seconds, self.where = plan, fabric, seconds, where
        self.waits = list(plan.waits)
        self.ready, self.start, self.end = [0.0] * count, [0.0] * count, [0.0] * count
        self.cause = [-1] * count
        self.messages: list[tuple[int, int, int, float, float, list[tuple[float, float]]]] = []
        self.free = list(fabric.slots)
        self.queues: list[deque[tuple[float, _Call, int]]] = [deque() for _ in fabric.slots]
        self.link_free: dict[int, float] = {}
        self.events: list[tuple[float, int, _Call, Any]] = []
        self.number = 0
        self.readers: list[list[int]] = []  # of each message
        self.done = 0

    def record(self) -> Record:
        """Run all events and return their record."""
        for task, count in enumerate(self.waits):
            if not count:
                self.set_ready(0.0, task)
        events = self.events
        while events:
            now, _, call, what = heappop(events)
            call(now, what)
        if self.done < len(self.waits):
            stuck = [name for name, count in zip(self.plan.names, self.waits, strict=True) if count]
            raise ValueError(f"{len(stuck)} tasks are blocked in a circle of waits, among them {', '.join(stuck[:5])}.")
        return Record(self.where, self.ready, self.start, self.end, self.cause, self.messages, self.number)

    def at(self, moment: float, call: _Call, what: Any) -> None:
        self.number += 1
        heappush(self.events, (moment, self.number, call, what))

    # -- processors ---------------------------------------------------------------------------------------------

    def set_ready(self, now: float, task: int) -> None:
        """Start a task that has all its inputs, or queue it at its processor."""
        self.ready[task] = self.start[task] = now
        if self.seconds[task]:
            self.occupy(now, self.fabric.processors[self.where[task]], self.seconds[task], self.finish, task)
        else:
            self.at(now, self.finish, task)

    def occupy(self, now: float, processor: int, seconds: float, call: _Call, what: int) -> None:
        """Work for a processor; then `call(moment, what)`."""
        if self.free[processor]:
            self.free[processor] -= 1
            self.at(now + seconds, self.leave, (processor, call, what))
        else:
            self.queues[processor].append((seconds, call, what))

    def leave(self, now: float, work: tuple[int, _Call, int]) -> None:
        """Deliver the result of finished work, and begin the next in the queue."""
        processor, call, what = work
        call(now, what)
        if not self.queues[processor]:
            self.free[processor] += 1
            return
        seconds, following, after = self.queues[processor].popleft()
        if following == self.finish:
            self.start[after] = now
            self.cause[after] = what if call == self.finish else len(self.waits) + what
        self.at(now + seconds, self.leave, (processor, following, after))

    # -- what goes from one to the other ----------------------------------------------------------------------------

    def finish(self, now: float, task: int) -> None:
        """End a task: its outputs reach its own device at once, and each other device by one message per tensor."""
        self.end[task] = now
        self.done += 1
        where, here = self.where, self.where[task]
        under_way: dict[tuple[int, int], int] = {}
        for consumer, output in self.plan.consumers[task]:
            there = where[consumer]
            if there == here:
                self.arrive(now, consumer, task)
            else:
                number = under_way.get((output, there))
                if number is None:
                    number = under_way[output, there] = self.send(now, task, output, there)
                    under_way.setdefault((-1, there), number)  # its arrival also signals the end
                self.readers[number].append(consumer)

    def arrive(self, now: float, consumer: int, cause: int) -> None:
        """Count one more input of a task as available."""
        self.waits[consumer] -= 1
        if not self.waits[consumer]:
            self.cause[consumer] = cause
            self.set_ready(now, consumer)

    def send(self, now: float, task: int, output: int, there: int) -> int:
        """Send a message; returns its number."""
        number = len(self.messages)
        self.messages.append((task, output, there, now, now, []))
        self.readers.append([])
        here = self.where[task]
        cpu_s = self.fabric.route(here, there).cpu_s
        if cpu_s:
            self.occupy(now, self.fabric.cores[here], cpu_s, self.transmit, number)
        else:
            self.transmit(now, number)
        return number

    def transmit(self, now: float, number: int) -> None:
        """Let a message pass its links."""
        task, output, there, *_, hops = self.messages[number]
        route = self.fabric.route(self.where[task], there)
        passed = route.hops(self.plan.bytes_of(task, output), now, self.link_free)
        route.take(passed, self.link_free)
        hops += [(start, end) for start, end, _ in passed]
        self.at((hops[-1][1] if hops else now) + route.latency_s, self.land, number)

    def land(self, now: float, number: int) -> None:
        """Receive the last byte; between hosts, a core of the receiver is busy with it."""
        task, _, there, *_ = self.messages[number]
        cpu_s = self.fabric.route(self.where[task], there).cpu_s
        if cpu_s:
            self.occupy(now, self.fabric.cores[there], cpu_s, self.deliver, number)
        else:
            self.deliver(now, number)

    def deliver(self, now: float, number: int) -> None:
        """Give a message to its readers."""
        task, output, there, sent, _, hops = self.messages[number]
        self.messages[number] = (task, output, there, sent, now, hops)
        for consumer in self.readers[number]:
            self.arrive(now, consumer, len(self.waits) + number)
