"""StepStats: what ran when, where, on which thread, and how large its outputs were.

Stands for `core/common_runtime/step_stats_collector.cc`. The result is TensorFlow's StepStats message, which the
timeline, `RunMetadata` and every picture read.

Rule: collecting is a tuple per node; messages are made when the step is over.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

from dtflab.base.events import PROCESS, NodeRan
from dtflab.graph.node import Node
from dtflab.machine.clock import Clock
from dtflab.machine.memory_trace import MemoryTrace, variables_in
from dtflab.machine.node_stats import Allocation, Lines, Output
from dtflab.machine.pools import Part


class StepStatsCollector:
    """The trace of one step in this process. `add` may be called from any thread.

    It reports each node that ran. If the trace is `wanted`, not only watched, it keeps the node, too.
    """

    def __init__(self, clock: Clock, wanted: bool = True) -> None:
        # Clocks count from anywhere; the messages carry the time of day, so that tasks can be compared.
        self._offset = clock.time() - clock.now()
        self._clock, self._memory = clock, MemoryTrace(clock)
        self.wanted = wanted
        self.step = 0
        self.lane: Any = None  # what stands for the thread that works now, where a model says how long (virtual time)
        self._kept: list[NodeRan] = []
        self._early: dict[int, tuple[list[Output], list[Allocation]]] = {}  # by the id of the value, which is alive
        self._remote: list[Any] = []

    def begin(self, device: str, resources: Any, constants: Iterable[tuple[Node, Any]]) -> None:
        """A part of the step begins on `device`: note what its variables hold, and what is known before."""
        now = self._clock.now()
        for node, cell in variables_in(resources) if self.wanted else ():
            self.add(f"{device}/variables", node, now, now, cell)
        for node, value in constants:
            self.add(device, node, now, now, value)

    def allocate(self, node: Node, value: Any) -> None:
        """Note what `value` takes of the memory from now on, though its node will end later (virtual time)."""
        self._early[id(value)] = self._memory.add(node, value)

    def add(
        self, device: str, node: Node, started: float, ended: float, value: Any, parts: Sequence[Part] = ()
    ) -> None:
        """A node ran on `device` between two moments of the clock and gave `value` (or a sequence of values).

        `parts` says which threads did how much of it.
        """
        early = id(value) in self._early
        outputs, new = self._early.pop(id(value)) if early else self._memory.add(node, value)
        ran = NodeRan(
            step=self.step,
            device=device,
            node=node,
            started=started,
            ended=ended,
            thread=self.lane or threading.current_thread(),
            outputs=outputs,
            allocations=new,
            parts=parts,
        )
        if self.wanted:
            self._kept.append(ran)
        for hear in PROCESS.node:
            hear(ran)

    def merge(self, step_stats: Any) -> None:
        """Take over what another process recorded of the same step."""
        self._remote.append(step_stats)

    def write(self, step_stats: Any) -> None:
        """Fill a StepStats message: one DeviceStepStats per device, nodes in order of time."""
        self._memory.close()
        lines = Lines(step_stats, self._offset)
        for ran in sorted(self._kept, key=lambda ran: ran.started):
            lines.add(ran)
        for remote in self._remote:
            step_stats.dev_stats.extend(remote.dev_stats)


def trace_of(clock: Clock, wanted: bool) -> StepStatsCollector | None:
    """The trace of a step that begins, if it is wanted or somebody watches what nodes do."""
    return StepStatsCollector(clock, wanted) if wanted or PROCESS.node else None
