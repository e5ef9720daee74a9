"""Machines with something else in them: another network, other GPUs, more workers.

Left out: other racks.

Rule: pure. A change is a name of the catalogue, a part, or a factor such as twice as fast as now; all else stays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Real
from typing import Any, TypeVar

from dtflab.graph import device_spec
from dtflab.hardware import catalogue
from dtflab.hardware.machines import Host, Machines
from dtflab.hardware.parts import Bus, Network, Nic, Processor
from dtflab.sim.engine.cluster_models import inhabitants, rebuilt
from dtflab.sim.what_ifs.step_tasks import copy_of

_Part = TypeVar("_Part")
_Wire = TypeVar("_Wire", Bus, Nic)


def altered(
    machines: Machines, network: Any = None, latency: Any = None, bus: Any = None, gpu: Any = None, cpu: Any = None
) -> Machines:
    """The machines with what is not None; the arguments are those of `WhatIf.run`. ValueError for what can't be."""
    if all(asked is None for asked in (network, latency, bus, gpu, cpu)):
        return machines
    later = 1.0 if latency is None else _number("latency", latency, zero=True)

    def host(one: Host) -> Host:
        processor = _changed("cpu", one.cpu, cpu, catalogue.cpu, _faster_processor)
        cards = tuple(_changed("gpu", card, gpu, catalogue.gpu, _faster_processor) for card in one.gpus)
        lanes = _changed("bus", one.bus, bus, catalogue.bus, _faster_wire)
        nic = _changed("network", one.nic, network, _nic, _faster_wire)
        return Host(one.name, processor, cards, _late(lanes, later), _late(nic, later))

    between = _between(machines.network, network)
    between = replace(between, nic=_late(between.nic, later), switch_latency_s=between.switch_latency_s * later)
    return rebuilt(machines, host, between)


def with_workers(machines: Machines, master: str, count: int) -> Machines:
    """Machines on which tasks 0 to `count` of the master's job live; missing hosts are like that of the master."""
    home = machines.place(f"{master}/device:CPU:0").host
    homes, shown = inhabitants(machines)
    hosts = list(machines.hosts)
    for task in (copy_of(master, index) for index in range(count)):
        if task not in homes:
            hosts.append(replace(home, name=_host_name(home.name, master, task, {host.name for host in hosts})))
            homes[task], shown[task] = hosts[-1].name, shown[master]
    return machines if len(hosts) == len(machines.hosts) else Machines(hosts, machines.network, homes, shown)


def with_local(machines: Machines, master: str) -> Machines:
    """Machines on which a session without a cluster runs where the first worker does, unless it has a place."""
    if device_spec.parse(master).job != "localhost" or master in machines.tasks:
        return machines
    first = first_worker(machines)
    homes, shown = inhabitants(machines)
    return Machines(machines.hosts, machines.network, homes | {master: homes[first]}, shown | {master: shown[first]})


def first_worker(machines: Machines) -> str:
    """The first task that is not a parameter server."""
    return next((task for task in machines.tasks if device_spec.parse(task).job != "ps"), machines.tasks[0])


def _host_name(home: str, master: str, task: str, taken: set[str]) -> str:
    """The name of another task's host: worker-2.cluster1, as worker-0.cluster1 is that of the master."""
    old, new = (device_spec.label(name).replace(":", "-") for name in (master, task))
    name = home.replace(old, new, 1)
    return f"{home} of {task}" if name in taken else name


def _number(what: str, value: Any, zero: bool = False) -> float:
    """The value as a factor; ValueError if it is not one."""
    good = is_factor(value) and not isinstance(value, bool) and 0 <= value < float("inf")
    if not good or not (value or zero):
        raise ValueError(f"{what} must be a number{', 0 or more' if zero else ' above 0'}, not {value!r}.")
    return float(value)


def is_factor(asked: Any) -> bool:
    """True for what says how many times as fast, or as long."""
    return isinstance(asked, Real)  # numpy's numbers, too


def _changed(
    what: str, part: _Part, asked: Any, find: Callable[[Any], _Part], faster: Callable[[_Part, float], _Part]
) -> _Part:
    """A part as asked for: another one, or this one as many times as fast."""
    if asked is None:
        return part
    return faster(part, _number(what, asked)) if is_factor(asked) else find(asked)


def _faster_wire(part: _Wire, times: float) -> _Wire:
    """A bus or a network card on which everything is as many times as fast."""
    rates = [name for name in ("bandwidth", "peer_bandwidth") if hasattr(part, name)]
    changes: dict[str, Any] = {name: getattr(part, name) * times for name in rates}
    return replace(part, **changes)


def _nic(asked: Any) -> Nic:
    return catalogue.network(asked).nic


def _between(network: Network, asked: Any) -> Network:
    """The network between the hosts; racks and the cost of messages stay, unless a whole Network is given."""
    if asked is None or isinstance(asked, Network):
        return asked or network
    if is_factor(asked):
        return replace(network, nic=_faster_wire(network.nic, _number("network", asked)))
    found = catalogue.network(asked)
    return replace(network, nic=found.nic, switch_latency_s=found.switch_latency_s)


def _late(part: _Wire, times: float) -> _Wire:
    return replace(part, latency_s=part.latency_s * times)


def _faster_processor(part: Processor, times: float) -> Processor:
    """A processor that is as many times as fast in everything."""
    peaks = {dtype: flops * times for dtype, flops in part.peak_flops.items()}
    bandwidth = part.memory_bandwidth * times
    return replace(part, peak_flops=peaks, memory_bandwidth=bandwidth, launch_s=part.launch_s / times)
