"""Wires: messages on their way between devices.

Stands for gRPC, the NICs and the PCIe bus. The rule for messages is that of `hardware/topology.py`: they pass the links
of their path cut-through, each link first come, first served. A message between hosts costs both of them CPU time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dtflab.hardware import topology
from dtflab.hardware.machines import Machines
from dtflab.hardware.topology import Link
from dtflab.virtual.engine import Engine
from dtflab.virtual.event_log import EventLog

if TYPE_CHECKING:
    from dtflab.virtual.world import Slots

CALL_BYTES = 200  # of a request or an answer without tensors


class Wires:
    """The links of a cluster's machines. `cores_of(device)` are the cores of the host on which a device is."""

    def __init__(self, engine: Engine, machines: Machines, cores_of: Callable[[str], Slots], log: EventLog) -> None:
        self.carried: dict[Link, tuple[int, int, float]] = {}  # messages, bytes, seconds busy
        self._engine = engine
        self._machines = machines
        self._cores_of = cores_of
        self._log = log
        self._free: dict[Link, float] = {}  # from when on
        self._paths: dict[tuple[str, str], tuple[Link, ...]] = {}

    def path(self, source: str, target: str) -> tuple[Link, ...]:
        """The links between two devices; none within one."""
        key = (source, target)
        if key not in self._paths:
            self._paths[key] = topology.path(self._machines, source, target)
        return self._paths[key]

    def send(self, source: str, target: str, nbytes: int, what: str, arrived: Callable[[], Any]) -> None:
        """Let a message go from one device to another now, and call `arrived()` when it is there."""
        links = self.path(source, target)
        if not links:
            arrived()
            return
        cpu = self._machines.network.per_message_cpu_s
        if not cpu or self._machines.place(source).host == self._machines.place(target).host:
            self._carry(links, source, target, nbytes, what, arrived)
            return
        there = lambda: self._cores_of(target).submit(lambda: cpu, arrived)  # noqa: E731
        self._cores_of(source).submit(lambda: cpu, lambda: self._carry(links, source, target, nbytes, what, there))

    def call(self, source: str, target: str, what: str, arrived: Callable[[], Any]) -> None:
        """Let a request or an answer without tensors go from one task to another."""
        self.send(f"{source}/device:CPU:0", f"{target}/device:CPU:0", CALL_BYTES, what, arrived)

    def _carry(
        self, links: tuple[Link, ...], source: str, target: str, nbytes: int, what: str, arrived: Callable[[], Any]
    ) -> None:
        now = start = end = self._engine.now
        latency = 0.0
        for link in links:
            start = max(self._free.get(link, 0.0), start)
            end = max(start + nbytes / link.bandwidth, end)
            self._free[link] = end
            latency += link.latency_s
            messages, carried, busy = self.carried.get(link, (0, 0, 0.0))
            self.carried[link] = messages + 1, carried + nbytes, busy + end - start
        self._log.add(now, end + latency, what, source, target, nbytes)
        self._engine.at(end + latency, arrived)
