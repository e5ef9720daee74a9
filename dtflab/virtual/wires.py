"""Wires: messages on their way between devices.

Stands for gRPC, the NICs and the PCIe bus. Messages pass the links of their path by the rule of
`hardware/cut_through.py`. A message between hosts costs both of them CPU time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from dtflab.base import errors
from dtflab.hardware import topology
from dtflab.hardware.cut_through import pass_link
from dtflab.hardware.machines import Machines
from dtflab.hardware.topology import Link
from dtflab.virtual.engine import Engine
from dtflab.virtual.event_log import EventLog

if TYPE_CHECKING:
    from dtflab.virtual.world import Lane, Slots

CALL_BYTES = 200  # of a request or an answer without tensors

Arrived = Callable[[], Any]
Lost = Callable[[Exception], Any]


class Wire:
    """One link at work. `free` is the moment from which on it takes the next message."""

    __slots__ = ("bandwidth", "busy", "free", "link", "messages", "nbytes")

    def __init__(self, link: Link, slowness: float) -> None:
        self.link = link
        self.bandwidth = link.bandwidth / slowness  # B/s, of now
        self.free = 0.0
        self.messages = self.nbytes = 0
        self.busy = 0.0  # seconds


class Route(NamedTuple):
    """How messages go from one device to another: over which wires, and on whose cores they cost how much."""

    wires: tuple[Wire, ...]
    latency: float
    cpu: float
    sender: Slots | None
    receiver: Slots | None


class _Work:
    """A message's work for the cores of a host."""

    __slots__ = ("_seconds", "_then")
    label = None

    def __init__(self, seconds: float, then: Arrived) -> None:
        self._seconds = seconds
        self._then = then

    def begin(self) -> float:
        return self._seconds

    def end(self, lane: Lane) -> None:
        self._then()


class Wires:
    """The links of a cluster's machines. `cores_of(device)` are the cores of the host on which a device is."""

    def __init__(self, engine: Engine, machines: Machines, cores_of: Callable[[str], Slots], log: EventLog) -> None:
        self._engine = engine
        self._machines = machines
        self._cores_of = cores_of
        self._log = log
        self._wires: dict[Link, Wire] = {}
        self._routes: dict[tuple[str, str], Route] = {}
        self._slowness: dict[str, float] = {}  # of links, by name
        # Asked of each message, by step, what, source and target, when it is about to set out.
        self.loses: Callable[[int, str, str, str], bool] | None = None

    @property
    def used(self) -> list[Wire]:
        """The wires that have carried something, or are about to."""
        return list(self._wires.values())

    def route(self, source: str, target: str) -> Route:
        """The way between two devices, by their full names; no wires within one."""
        found = self._routes.get((source, target))
        if found is None:
            found = self._routes[source, target] = self._find(source, target)
        return found

    def _find(self, source: str, target: str) -> Route:
        links = topology.path(self._machines, source, target)
        wires = tuple(map(self._wire, links))
        latency = sum(link.latency_s for link in links)
        cpu = self._machines.network.per_message_cpu_s
        if not cpu or self._machines.place(source).host == self._machines.place(target).host:
            return Route(wires, latency, 0.0, None, None)
        return Route(wires, latency, cpu, self._cores_of(source), self._cores_of(target))

    def _wire(self, link: Link) -> Wire:
        if link not in self._wires:
            self._wires[link] = Wire(link, self._slowness.get(link.name, 1.0))
        return self._wires[link]

    def slow_down(self, host: str, factor: float) -> None:
        """From now on, what begins to pass the network card of a host takes `factor` times as long as planned."""
        self._slowness |= {f"{host} egress": factor, f"{host} ingress": factor}
        for link, wire in self._wires.items():
            wire.bandwidth = link.bandwidth / self._slowness.get(link.name, 1.0)

    def send(self, step: int, what: str, source: str, target: str, nbytes: int, arrived: Arrived, lost: Lost) -> None:
        """Let a step's message go from one device to another now, and call `arrived()` when it is there.

        If it is lost, `lost(error)` is called at once, as over a connection that breaks.
        """
        route = self.route(source, target)
        if not route.wires:
            arrived()
            return
        carry = partial(self._carry, route, step, what, source, target, nbytes, arrived, lost)
        if route.sender is None:
            carry()
        else:
            route.sender.submit(_Work(route.cpu, carry))

    def call(self, step: int, what: str, source: str, target: str, arrived: Arrived, lost: Lost) -> None:
        """Let a request or an answer without tensors go from one task to another."""
        self.send(step, what, f"{source}/device:CPU:0", f"{target}/device:CPU:0", CALL_BYTES, arrived, lost)

    def _carry(
        self, route: Route, step: int, what: str, source: str, target: str, nbytes: int, arrived: Arrived, lost: Lost
    ) -> None:
        now = start = end = self._engine.now
        if self.loses is not None and self.loses(step, what, source, target):
            self._log.add(now, now, step, f"lost: {what}", source, target, nbytes)
            self._engine.at(now, lost, errors.UnavailableError.of(f"{what} from {source} to {target} was lost."))
            return
        for wire in route.wires:
            seconds = nbytes / wire.bandwidth
            start, end, wire.free = pass_link(start, end, wire.free, seconds)
            wire.messages += 1
            wire.nbytes += nbytes
            wire.busy += seconds
        end += route.latency
        self._log.add(now, end, step, what, source, target, nbytes)
        self._engine.at(end, self._came, route, arrived)

    def _came(self, route: Route, arrived: Arrived) -> None:
        if route.receiver is None:
            arrived()
        else:
            route.receiver.submit(_Work(route.cpu, arrived))
