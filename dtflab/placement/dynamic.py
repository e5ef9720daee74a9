"""The dynamic placer: each node goes where the step, simulated, ends soonest.

Stands for section 3.2.1 of the TensorFlow white paper (2015), which describes such a placer; none was ever released.
Its greedy walk through a simulated execution is `earliest_finish`. It is one of several strategies tried here, since
alone it is sometimes worse than a single device. Left out: a placement that changes while a session runs.

Rules: the rules of the simple placer hold here, too (pins, partial pins, colocations, references, kernels, earlier
runs), since `colocation_graph` lists the candidate devices. The best result of all strategies is improved by a search
with a fixed budget, so the same graph gives the same placement. A node that is not part of a step is placed next to its
reader.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dtflab.graph import device_spec
from dtflab.graph.node import Node
from dtflab.hardware.machines import SIMULATED, Machines, machines_for
from dtflab.hardware.schedule import Schedule
from dtflab.hardware.workload import BATCH, Workload, measured
from dtflab.machine import clock
from dtflab.placement import dynamic_reasons, earliest_finish
from dtflab.placement.clusters import Clusters
from dtflab.placement.colocation_graph import ColocationGraph
from dtflab.placement.local_search import Search
from dtflab.placement.problem import Assignment, Problem, Verdict
from dtflab.placement.reasons import EARLIER, Placement, Reasons
from dtflab.placement.recurring import recurring
from dtflab.placement.spreading import busy_alone, spread
from dtflab.placement.units import problem_of

BUDGET = 120_000  # events that the search may simulate: about 0.3 s
FEW = 64  # units: more are also tried in clusters
PARTS = (2, 3, 6)  # clusters have at most this part of a device's share of the work; the best part varies


class DynamicPlacer:
    """A placer that minimizes the time of a step: `Session(placer="dynamic")` or `placer=DynamicPlacer(costs=…)`.

    `costs` is the StepStats of an earlier step, an object that has them (RunMetadata, a trace), or a list of these.
    Without it, times are estimated from static shapes, and an unknown dimension counts as `batch`. `machines` describes
    the hardware: by default that of the session's cluster in virtual time, else `default_machines`. `budget` is the
    number of events that the search may simulate. After a placement, `schedule` is the simulated step.
    """

    keeps_the_rules = True  # its candidates come from the colocation graph

    def __init__(
        self, costs: Any = None, machines: Machines | None = None, batch: int = BATCH, budget: int = BUDGET
    ) -> None:
        one = hasattr(costs, "dev_stats") or hasattr(costs, "step_stats")
        steps = [] if costs is None else [costs] if one else list(costs)
        self._measured = measured(*(getattr(step, "step_stats", step) for step in steps)) if steps else None
        self._machines = machines
        self._batch = batch
        self._budget = budget
        self.schedule: Schedule | None = None
        self.__name__ = "dynamic"

    def __call__(
        self,
        nodes: Sequence[Node],
        devices: Sequence[str],
        default_task: str,
        allow_soft_placement: bool = False,
        placed: Mapping[str, str] | None = None,
    ) -> Placement:
        """The device of each node. The arguments are those of the simple placer, `runtime.placer.place`.

        Raises InvalidArgumentError for requests that no device satisfies, ResourceExhaustedError if no placement fits
        into the devices' memory, ValueError if `machines` has no such device.
        """
        graph = ColocationGraph(nodes, _preferred(devices, default_task), allow_soft_placement, placed or {})
        machines = self._machines or _machines_of(devices)
        work = Workload(recurring(nodes), self._measured, batch=self._batch)
        problem = problem_of(work, graph, machines)
        best = best_assignment(problem, self._budget)
        self.schedule = problem.schedule(best)
        dynamic_reasons.check_memory(problem, self.schedule)
        where, why = dict(placed or {}), dict.fromkeys(placed or (), EARLIER)
        new = [node for node in work.nodes if node.name not in where]
        reasons = Reasons(graph, default_task)
        why |= dynamic_reasons.of_nodes(new, problem, self.schedule, graph, reasons)
        for node in new:
            where[node.name] = self.schedule.tasks[node.name].device
            graph.assign(node, where[node.name])
        _place_the_rest(nodes, graph, reasons, where, why)
        return Placement(where, why)


def default_machines(devices: Iterable[str]) -> Machines:
    """The machines assumed for `devices`: a host for each task, with the defaults of `machines_for`."""
    cards: dict[str, int] = {}
    for device in devices:
        task = device_spec.task_name(device)
        cards[task] = cards.get(task, 0) + (device_spec.parse(device).type == "GPU")
    return machines_for({task: task for task in cards}, gpus=cards)


def _machines_of(devices: Sequence[str]) -> Machines:
    """The machines of the cluster in virtual time that has these devices, or the default."""
    machines = SIMULATED.get(clock.current())
    return machines if machines and set(devices) <= set(machines.devices) else default_machines(devices)


def _preferred(devices: Sequence[str], default_task: str) -> list[str]:
    """GPUs before CPUs, the master's task before others: of equally good devices the first is chosen."""
    return sorted(devices, key=lambda d: (device_spec.parse(d).type == "CPU", not d.startswith(default_task + "/"), d))


# -- the strategies ----------------------------------------------------------------------------------------


def best_assignment(problem: Problem, budget: int = BUDGET) -> Assignment:
    """The best assignment found: the best of several strategies, improved by a search."""
    ways = [problem.on_one(device) for device in _different(problem)]
    ways += [earliest_finish.by_time(problem), earliest_finish.ranked(problem)]
    single = [[unit] for unit in range(len(problem.units))]
    if len(single) <= FEW:
        search = Search(problem, single, problem.candidates, budget)
        return search.from_anywhere(min(search.climb(way) for way in ways))[1]
    ways.append(_spread(problem, budget // 2))
    search = Search(problem, single, problem.candidates, budget // 2)
    return search.climb(min(ways, key=lambda way: problem.judge(way)[0]))[1]


def _spread(problem: Problem, budget: int) -> Assignment:
    """The best assignment of clusters of several sizes to the fast devices, improved by a search."""
    fast = _fast(problem)
    found: list[tuple[Verdict, int, Clusters, list[int]]] = []
    for parts in PARTS:
        clusters = Clusters(problem, parts * len(fast))
        busy = busy_alone(clusters, fast[0])
        for count in _counts(len(fast)):
            where = spread(clusters, busy, fast[:count])
            found.append((problem.judge(clusters.assignment(where))[0], len(found), clusters, where))
    _, _, clusters, where = min(found)
    search = Search(problem, clusters.members, clusters.candidates, budget)
    return clusters.assignment(search.climb(where)[1])


def _different(problem: Problem) -> list[int]:
    """The devices without those that are equal to an earlier one on their host, for all units."""
    machines, found = problem.fabric.machines, dict[Any, int]()
    for d, device in enumerate(problem.devices):
        processor, host = machines.processor(device)
        found.setdefault((processor, host.name, tuple(d in units for units in problem.candidates)), d)
    return list(found.values())


def _fast(problem: Problem) -> list[int]:
    """The devices that need at most twice the time of the fastest for the whole work."""
    total = [sum(seconds) for seconds in problem.seconds]
    return [d for d, seconds in enumerate(total) if seconds <= 2 * min(total)]


def _counts(count: int) -> list[int]:
    """How many of `count` devices to try: all, half of them, a quarter, …"""
    return sorted({math.ceil(count / 2**power) for power in range(count.bit_length())} - {1} | {count})


def _place_the_rest(
    nodes: Sequence[Node], graph: ColocationGraph, reasons: Reasons, where: dict[str, str], why: dict[str, str]
) -> None:
    """Place the nodes that are not part of a step: next to their reader, if they may be there."""
    readers = {source: node.name for node in reversed(nodes) for source in node.sources()}  # the first of each
    for node in reversed(nodes):
        if node.name in where:
            continue
        candidates = graph.devices_for(node)
        reader = readers.get(node.name, "")
        follows = where.get(reader) in candidates
        where[node.name] = where[reader] if follows else candidates[0]
        why[node.name] = "not part of a step" + f", next to {reader!r}" * follows
        if node.name in graph.links:
            why[node.name] = reasons.of(node, [where[node.name]])
        graph.assign(node, where[node.name])
