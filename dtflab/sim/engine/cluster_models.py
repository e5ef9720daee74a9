"""ClusterModel: a cluster that never runs: the tasks that compute, those that keep variables, and the wires.

Stands for a ClusterSpec and replica_device_setter's arguments. Left out: evaluators, which train nothing.

Rule: the wires are those of `hardware/topology.py`; this module only adds what software makes of them: the part of a
bandwidth that it reaches, and what a message between tasks costs in their CPUs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

from dtflab.base.grouping import grouped
from dtflab.base.text_table import plural
from dtflab.hardware.machines import Host, Machines, machines_for
from dtflab.hardware.parts import Network, Processor
from dtflab.hardware.topology import Link, path
from dtflab.sim.engine.parameters import Parameters
from dtflab.sim.engine.transfers import Wire


@dataclass(frozen=True)
class ClusterModel:
    """`gpus[i]` are the devices (full names) that worker i drives, `servers` those that hold the variables."""

    machines: Machines
    gpus: tuple[tuple[str, ...], ...]
    servers: tuple[str, ...]

    @property
    def devices(self) -> tuple[str, ...]:
        """All devices that compute, worker by worker."""
        return tuple(device for gpus in self.gpus for device in gpus)

    @property
    def processor(self) -> Processor:
        """The processor of the first worker."""
        return self.machines.processor(self.devices[0])[0]

    def __repr__(self) -> str:
        workers, servers = plural(len(self.gpus), "worker"), plural(len(self.servers), "server")
        return f"<{workers}, {len(self.devices)} × {self.processor.name}, {servers}>"


def cluster_model(
    workers: int = 1,
    ps_tasks: int = 1,
    *,
    gpus_per_worker: int = 1,
    workers_per_host: int = 1,
    ps_colocated: bool = False,
    local_parameter_device: str = "cpu",
    gpu: Any = "K40",
    cpu: Any = "2x Xeon E5-2690 v3",
    bus: Any = "pcie3",
    network: Any = "10Gb/s",
    racks: Any = None,
) -> ClusterModel:
    """A cluster of equal hosts. Parts by name or as objects of `dtflab.hardware`.

    Each host has `workers_per_host` workers of `gpus_per_worker` GPUs (0: they compute on the CPU). Parameter servers
    have hosts of their own, or are `ps_colocated` with the workers. Without any (`ps_tasks=0`), the first worker holds
    the variables: `local_parameter_device` is "cpu", or "gpu" for its GPUs in turns.
    ValueError for numbers that do not describe a cluster, and for unknown parts.
    """
    _check(workers, ps_tasks, gpus_per_worker, workers_per_host, local_parameter_device)
    tasks = {f"/job:worker/task:{i}": f"host {i // workers_per_host}" for i in range(workers)}
    hosts = max(1, workers // workers_per_host)
    for i in range(ps_tasks):
        tasks[f"/job:ps/task:{i}"] = f"host {i % hosts}" if ps_colocated else f"ps host {i}"
    shown = {
        f"/job:worker/task:{i}": range(first := i % workers_per_host * gpus_per_worker, first + gpus_per_worker)
        for i in range(workers)
    }
    cards = gpus_per_worker * min(workers_per_host, workers)
    machines = machines_for(tasks, gpus=cards, gpu=gpu, cpu=cpu, network=network, bus=bus, racks=racks, visible=shown)
    devices = tuple(_devices(f"/job:worker/replica:0/task:{i}", gpus_per_worker) for i in range(workers))
    at_home = devices[0] if local_parameter_device == "gpu" else ("/job:worker/replica:0/task:0/device:CPU:0",)
    servers = tuple(f"/job:ps/replica:0/task:{i}/device:CPU:0" for i in range(ps_tasks)) or at_home
    return ClusterModel(machines, devices, servers)


def of_machines(machines: Machines) -> ClusterModel:
    """Tasks of job `ps` hold the variables; all others but evaluators compute, with all the GPUs that they see."""
    by_task = grouped((device.rpartition("/")[0], device) for device in machines.devices)
    servers = [devices[0] for task, devices in by_task.items() if task.startswith("/job:ps/")]
    workers = [devices for task, devices in by_task.items() if not task.startswith(("/job:ps/", "/job:evaluator/"))]
    if not workers:
        raise ValueError(f"The machines have no task that computes, only {', '.join(by_task)}.")
    gpus = tuple(tuple(devices[1:] or devices) for devices in workers)
    return ClusterModel(machines, gpus, tuple(servers) or (workers[0][0],))


def rebuilt(machines: Machines, change: Callable[[Host], Host], network: Network | None = None) -> Machines:
    """The same machines with other things in their hosts, or between them."""
    return Machines(map(change, machines.hosts), network or machines.network, *inhabitants(machines))


def inhabitants(machines: Machines) -> tuple[dict[str, str], dict[str, list[int]]]:
    """For each task the name of its host, and the cards that it sees there."""
    homes = {task: machines.place(f"{task}/device:CPU:0").host.name for task in machines.tasks}
    cards = ((device.rpartition("/")[0], machines.place(device).card) for device in machines.devices)
    return homes, grouped(((task, card) for task, card in cards if card is not None), machines.tasks)


def without_trees(machines: Machines) -> Machines:
    """The same machines, but each GPU has its own lanes to the CPU."""
    return rebuilt(machines, lambda host: replace(host, bus=replace(host.bus, tree=0)))


def reached(machines: Machines, parameters: Parameters) -> Machines:
    """Machines whose data sheets give the rates that software reaches."""

    def host(one: Host) -> Host:
        part, bus = parameters.bus_efficiency, one.bus
        lanes = replace(bus, bandwidth=bus.bandwidth * part, peer_bandwidth=bus.peer_bandwidth * part)
        return replace(one, bus=lanes, nic=replace(one.nic, bandwidth=one.nic.bandwidth * parameters.nic_efficiency))

    return rebuilt(machines, host, replace(machines.network, per_message_cpu_s=parameters.message_s))


def _check(workers: int, ps_tasks: int, gpus: int, per_host: int, local_parameter_device: str) -> None:
    counts = workers, ps_tasks, gpus, per_host
    integral = all(isinstance(count, Integral) for count in counts)
    if not integral or workers < 1 or ps_tasks < 0 or gpus < 0 or per_host < 1:
        raise ValueError(f"No cluster has {workers=}, {per_host!r} on a host, each with {gpus=}, and {ps_tasks=}.")
    if local_parameter_device not in ("cpu", "gpu"):
        raise ValueError(f"local_parameter_device is 'cpu' or 'gpu', not {local_parameter_device!r}.")
    if local_parameter_device == "gpu" and (ps_tasks or not gpus):
        raise ValueError("local_parameter_device='gpu' needs ps_tasks=0 and a worker with GPUs to hold the variables.")


def _devices(task: str, gpus: int) -> tuple[str, ...]:
    return tuple(f"{task}/device:GPU:{g}" for g in range(gpus)) or (f"{task}/device:CPU:0",)


class Wiring:
    """The wires of a cluster, numbered: what messages of `transfers` and `messages` travel on."""

    def __init__(self, cluster: ClusterModel, parameters: Parameters) -> None:
        self.wires: list[Wire] = []
        self._cluster, self._parameters = cluster, parameters
        self._numbers: dict[Link, int] = {}
        self._sums: dict[tuple[str, str], int] = {}
        self._ports: dict[tuple[str, str], int] = {}
        self._routes: dict[tuple[str, str], tuple[int, ...]] = {}
        self._homes: dict[str, tuple[str, int]] = {}
        self._racks: dict[tuple[int, int], tuple[int, ...]] = {}

    def route(self, source: str, target: str) -> tuple[int, ...]:
        """The wires from device to device (full names)."""
        here, there = memory_of(source), memory_of(target)
        if here == there:
            return self._inside(source, target)
        return self._inside(source, here) + self._between(here, there) + self._inside(there, target)

    def sum(self, device: str, what: str) -> int:
        """The wire of the processor that adds up `what` arrives at `device`: it is as slow as its memory."""
        if (device, what) not in self._sums:
            bandwidth = self._cluster.machines.processor(device)[0].memory_bandwidth / 3  # read two, write one
            self._sums[device, what] = self.add(Wire(f"{device} sum of {what}", bandwidth))
        return self._sums[device, what]

    def _inside(self, source: str, target: str) -> tuple[int, ...]:
        """Within a task."""
        if source == target:
            return ()
        if (source, target) not in self._routes:
            links = path(self._cluster.machines, source, target)
            numbers = (self._number(link, self._parameters.bus_efficiency) for link in links)
            self._routes[source, target] = tuple(numbers)
        return self._routes[source, target]

    def _between(self, here: str, there: str) -> tuple[int, ...]:
        """Between tasks: the sender's port, what lies between the racks, the receiver's port. Each is found once."""
        (source, rack), (target, other) = self._home(here), self._home(there)
        if source == target:
            return self._messages(here, there)
        out, into = self._ports.get((source, "out")), self._ports.get((target, "in"))
        between = self._racks.get((rack, other))
        if out is None or between is None or into is None:
            out, *rest, into = self._messages(here, there)
            between = self._racks[rack, other] = tuple(rest)
            self._ports[source, "out"], self._ports[target, "in"] = out, into
        return out, *between, into

    def _home(self, device: str) -> tuple[str, int]:
        """The device's host, and the host's rack."""
        if device not in self._homes:
            host = self._cluster.machines.place(device).host
            self._homes[device] = host.name, self._cluster.machines.rack_of(host)
        return self._homes[device]

    def _messages(self, here: str, there: str) -> tuple[int, ...]:
        """Sender and receiver each spend time on a message, at the first and the last link."""
        links = path(self._cluster.machines, here, there)
        cost, reached, ends = self._parameters.message_s, self._parameters.nic_efficiency, (links[0], links[-1])
        return tuple(self._number(link, reached, cost * (link in ends)) for link in links)

    def _number(self, link: Link, reached: float, overhead_s: float = 0.0) -> int:
        if link not in self._numbers:
            wire = Wire(link.short, link.bandwidth * reached, link.latency_s, overhead_s)
            self._numbers[link] = self.add(wire)
        return self._numbers[link]

    def add(self, wire: Wire) -> int:
        """Add a wire; its number."""
        self.wires.append(wire)
        return len(self.wires) - 1


@functools.cache
def memory_of(device: str) -> str:
    """The CPU device of the device's task: the memory of its host."""
    return device.rpartition("/device:")[0] + "/device:CPU:0"


def whole(what: str, value: Any, least: int = 1) -> int:
    """The value as a count; ValueError if it is not one."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{what}={value!r} is not a whole number from {least} up.")
    return int(value)
