"""StepStats: what ran when, where, on which thread, and how large its outputs were.

Stands for `core/common_runtime/step_stats_collector.cc`. The result is TensorFlow's StepStats message, which the
timeline, `RunMetadata` and every picture read.

Rule: collecting is a tuple per node; messages are made when the step is over.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from dtflab.graph.node import Node
from dtflab.graph.node_stats import fill
from dtflab.machine.clock import Clock


class StepStatsCollector:
    """The trace of one step in this process. `add` may be called from any thread."""

    def __init__(self, clock: Clock) -> None:
        # Clocks count from anywhere; the messages carry the time of day, so that tasks can be compared.
        self._offset = time.time() - clock.now()
        self._records: list[tuple[str, Node, float, float, int, list[Any]]] = []
        self._remote: list[Any] = []

    def add(self, device: str, node: Node, started: float, ended: float, value: Any) -> None:
        """A node ran on `device` between two moments of the clock and gave `value` (or a sequence of values)."""
        outputs = list(value) if isinstance(value, list | tuple) else [value]
        sizes = [(getattr(o, "nbytes", None), getattr(o, "shape", None), getattr(o, "dtype", None)) for o in outputs]
        self._records.append((device, node, started, ended, threading.get_ident(), sizes))

    def merge(self, step_stats: Any) -> None:
        """Take over what another process recorded of the same step."""
        self._remote.append(step_stats)

    def write(self, step_stats: Any) -> None:
        """Fill a StepStats message: one DeviceStepStats per device, nodes in order of time."""
        devices: dict[str, Any] = {}
        threads: dict[int, int] = {}
        for device, node, started, ended, thread, sizes in sorted(self._records, key=lambda r: r[2]):
            if device not in devices:
                devices[device] = step_stats.dev_stats.add(device=device)
            number = threads.setdefault(thread, len(threads))
            stats = devices[device]
            stats.thread_names[number] = "client" if number == 0 else f"pool-{number}"
            fill(stats.node_stats.add(), node, started + self._offset, ended - started, number, sizes)
        for remote in self._remote:
            step_stats.dev_stats.extend(remote.dev_stats)
