"""Machines: the hosts, their parts, and the host of each task.

Stands for an administrator's notes on a cluster. Left out: hosts that come and go.

Rules: pure, apart from `SIMULATED`. Devices have TensorFlow's full names. All tasks of a host share its CPU cores, its
cards, its bus and its network card; a task sees only its visible cards, in their order, as with CUDA_VISIBLE_DEVICES.
"""

from __future__ import annotations

import math
import re
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from dtflab.base.grouping import grouped
from dtflab.base.text_table import plural
from dtflab.graph import device_spec
from dtflab.hardware import catalogue
from dtflab.hardware.parts import Bus, Network, Nic, Processor, Rack


@dataclass(frozen=True)
class Host:
    """One machine: its CPUs as one processor, its cards, and what connects them."""

    name: str
    cpu: Processor
    gpus: tuple[Processor, ...]
    bus: Bus
    nic: Nic


@dataclass(frozen=True, eq=False)
class Link:
    """One direction of one wire: messages pass it in order. `bandwidth` in B/s; two links are equal if they are one."""

    name: str
    bandwidth: float
    latency_s: float

    @property
    def short(self) -> str:
        """The device's name for people, without its host's process and cluster number."""
        return re.sub(r"(\.cluster\d+)? of process \d+", "", self.name)


class Place(NamedTuple):
    """Where a device is: its host, and which card of it; None is the CPU."""

    host: Host
    card: int | None


class Machines:
    """Hosts, the network between them, and the home of each task.

    `tasks` maps names of tasks, "/job:worker/task:0", to names of hosts; `visible` maps some of them to the cards that
    they see (default: all of the host's). Hosts stand in racks in their order.
    """

    def __init__(
        self,
        hosts: Iterable[Host],
        network: Network,
        tasks: Mapping[str, str],
        visible: Mapping[str, Sequence[int]] | None = None,
    ) -> None:
        self.hosts = tuple(hosts)
        self.network = network
        self._numbers = {host.name: number for number, host in enumerate(self.hosts)}
        if len(self._numbers) < len(self.hosts):
            raise ValueError(f"Two hosts have the same name: {', '.join(host.name for host in self.hosts)}.")
        shown = {task_of(name): tuple(cards) for name, cards in (visible or {}).items()}
        self._homes = {task_of(task): self._home(task, name, shown.get(task_of(task))) for task, name in tasks.items()}
        if unknown := shown.keys() - self._homes.keys():
            raise ValueError(f"visible names {unknown.pop()}, but the tasks are {', '.join(self._homes)}.")
        self._links: dict[str, Link] = {}
        self._places: dict[str, Place] = {}

    def _home(self, task: str, name: str, cards: tuple[int, ...] | None) -> tuple[Host, tuple[int, ...]]:
        if name not in self._numbers:
            raise ValueError(f"Task {task} is on unknown host {name!r}; the hosts are {', '.join(self._numbers)}.")
        host = self.hosts[self._numbers[name]]
        cards = tuple(range(len(host.gpus))) if cards is None else cards
        if missing := [card for card in cards if not 0 <= card < len(host.gpus)]:
            raise ValueError(f"visible lists card {missing[0]} for task {task}, but {name} has {len(host.gpus)} cards.")
        return host, cards

    @property
    def tasks(self) -> list[str]:
        """Full names of all tasks."""
        return list(self._homes)

    @property
    def devices(self) -> list[str]:
        """Full names of all devices, task by task."""
        return [
            f"{task}/device:{kind}:{index}"
            for task, (_, cards) in self._homes.items()
            for kind, count in (("CPU", 1), ("GPU", len(cards)))
            for index in range(count)
        ]

    def place(self, device_name: str) -> Place:
        """Host and card of a device; ValueError names the devices of its task, or the tasks."""
        if device_name not in self._places:
            self._places[device_name] = self._find(device_name)
        return self._places[device_name]

    def _find(self, device_name: str) -> Place:
        spec = device_spec.parse(device_name)
        task = task_of(device_name)
        if task not in self._homes:
            raise ValueError(f"The task of device {device_name!r} is unknown; the tasks are {', '.join(self._homes)}.")
        host, cards = self._homes[task]
        index = spec.id or 0
        if spec.type in (None, "CPU"):
            return Place(host, None)  # however many CPU devices a task has, they are the same cores
        if spec.type != "GPU" or index >= len(cards):
            raise ValueError(f"{task} on {host.name} has no device {device_name!r}: it sees {len(cards)} cards.")
        return Place(host, cards[index])

    def processor(self, device_name: str) -> tuple[Processor, Host]:
        """The processor of a device and its host. Raises ValueError for a device that does not exist."""
        host, card = self.place(device_name)
        return (host.cpu if card is None else host.gpus[card]), host

    def rack_of(self, host: Host) -> int:
        """The number of the host's rack."""
        return self._numbers[host.name] // self.network.hosts_per_rack if self.network.hosts_per_rack else 0

    def link(self, name: str, bandwidth: float, latency_s: float) -> Link:
        """The link of that name: the same object each time."""
        return self._links.setdefault(name, Link(name, bandwidth, latency_s))

    def __repr__(self) -> str:
        cards = sum(len(host.gpus) for host in self.hosts)
        where = f"{plural(len(self._homes), 'task')} on {plural(len(self.hosts), 'host')}"
        return f"<{where} with {plural(cards, 'GPU')}, {self.network.nic.name}>"


# The machines of each cluster in virtual time, by its clock: a placer finds them there.
SIMULATED: weakref.WeakKeyDictionary[object, Machines] = weakref.WeakKeyDictionary()


def machines_for(
    tasks: Mapping[str, str],
    *,
    gpus: Any = 0,
    gpu: Any = "K520",
    cpu: Any = "2x Xeon E5-2690 v3",
    network: str | Nic | Network = "10Gb/s",
    nic: Any = None,
    bus: Any = "pcie3",
    racks: int | str | Rack | None = None,
    visible: Mapping[str, Sequence[int]] | None = None,
) -> Machines:
    """Machines for tasks ("/job:worker/task:0" → the name of a host), from what `dtflab.Cluster` is given.

    `gpus` is how many cards each host has, `gpu` of which model, `cpu`, `bus` and `nic` what else is in it (`nic`
    default: the network's). Each may be a mapping, for a mixed cluster: by task, job or host, and "" for the rest:
    `gpu={"/job:worker/task:3": "K80", "": "K40"}`. A host that only `ps` tasks live on has no cards, and a `ps` task
    sees none, unless `gpus` or `visible` says so. `racks` is a number of racks, or a kind of rack.
    Raises ValueError for unknown names, and for tasks of one host whose options conflict.
    """
    residents = grouped((name, task) for task, name in tasks.items())
    wire = catalogue.network(network)
    if racks is not None:
        rack = _racks(racks, len(residents)) if isinstance(racks, int) else catalogue.rack(racks)
        wire = replace(wire, hosts_per_rack=rack.hosts, oversubscription=rack.oversubscription)
    parts = {
        "gpu": _found(catalogue.gpu, gpu),
        "cpu": _found(catalogue.cpu, cpu),
        "bus": _found(catalogue.bus, bus),
        "nic": _found(catalogue.nic, wire.nic if nic is None else nic),
    }
    hosts = [_host(name, own, gpus, parts) for name, own in residents.items()]
    shown: dict[str, Sequence[int]] = {task: () for task in tasks if _is_ps(task) and not isinstance(gpus, Mapping)}
    return Machines(hosts, wire, tasks, {**shown, **(visible or {})})


def _racks(count: int, hosts: int) -> Rack:
    """One of `count` racks that are filled one after the other, without oversubscription."""
    if isinstance(count, bool) or count < 1:
        raise ValueError(f"racks is {count}, but must be 1 or more.")
    return Rack(f"{count} racks", math.ceil(hosts / count), 1.0, "as requested")


def _found(find: Callable[[Any], Any], given: Any) -> Any:
    """The part of that name; of a mapping, the parts."""
    return {key: find(name) for key, name in given.items()} if isinstance(given, Mapping) else find(given)


def _host(name: str, residents: Sequence[str], gpus: Any, parts: Mapping[str, Any]) -> Host:
    bare = not isinstance(gpus, Mapping) and all(map(_is_ps, residents))
    count = 0 if bare else _asked_for("gpus", gpus, name, residents) or 0
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise ValueError(f"The number of GPUs of {name} must be 0 or more, not {count!r}.")
    of = {what: _asked_for(what, given, name, residents) for what, given in parts.items() if what != "gpu" or count}
    return Host(name, of["cpu"], (of["gpu"],) * count if count else (), of["bus"], of["nic"])


def _asked_for(what: str, given: Any, host: str, residents: Sequence[str]) -> Any:
    """The option given for a host: for itself, else for its tasks or their jobs, else for all."""
    if not isinstance(given, Mapping):
        return given
    if host in given:
        return given[host]
    keys = {task_of(key): value for key, value in given.items() if key.startswith("/job:")}
    said = [keys.get(task_of(task), given.get(str(device_spec.parse(task).job))) for task in residents]
    found = list(dict.fromkeys(value for value in said if value is not None))
    if len(found) > 1:
        one, other = (getattr(value, "name", value) for value in found[:2])
        raise ValueError(f"{what} is {one!r} and {other!r} for tasks that share host {host}. Choose one.")
    if found:
        return found[0]
    if "" not in given and what != "gpus":  # a host without a number of GPUs has none
        raise ValueError(f'{what} does not mention host {host} ({", ".join(residents)}). Name it, or "" for the rest.')
    return given.get("")


def _is_ps(task: str) -> bool:
    return device_spec.parse(task).job == "ps"


def task_of(name: str) -> str:
    """The full name of a task, from a name of it or of one of its devices."""
    spec = device_spec.parse(name)
    return f"/job:{spec.job}/replica:{spec.replica or 0}/task:{spec.task or 0}"
