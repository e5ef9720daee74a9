"""Job: a training job made ready for simulation: what each device computes, what travels over which wires.

Left out: values. A job is a dry run.

Rules. Messages of one kind are numbered item by item, and within an item device by device; gradients leave from the
last item to the first. Both engines (`step_model`, vectorized; `messages`, by events) simulate the same Job.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from dtflab.sim.engine.cluster_models import ClusterModel, Wiring, memory_of
from dtflab.sim.engine.layer_costs import LayerTime
from dtflab.sim.engine.network_profile import Profile
from dtflab.sim.engine.parameters import Parameters
from dtflab.sim.engine.traffic import Array, Items, items, shards
from dtflab.sim.engine.transfers import Flow, Wire, held_s, idle_wires


@dataclass(frozen=True)
class Input:
    """Where examples come from: `bytes_per_example` over the wires from a file server of that bandwidth (B/s).

    Preloaded data costs nothing: then there is no Input. `read` ahead, they come while the step before computes;
    else they are fed, and the step waits for them.
    """

    bytes_per_example: float
    bandwidth: float
    read: bool = True

    def __post_init__(self) -> None:
        nbytes, bandwidth = given = self.bytes_per_example, self.bandwidth
        if not all(isinstance(number, Real) for number in given) or not (0 <= nbytes < math.inf and bandwidth > 0):
            raise ValueError(
                f"bytes_per_example must be finite and 0 or more, and bandwidth more than 0, not {nbytes!r} and "
                f"{bandwidth!r}."
            )


@dataclass(frozen=True, kw_only=True)
class Work:
    """The common part of all jobs. `owner[d]` is the worker of device d; `slowness[d]` its time over the first's."""

    batch: int  # of each device
    items: Items
    wires: list[Wire]
    held_s: Array  # per wire: for how long a step of all workers holds it
    owner: Array
    slowness: Array

    @property
    def workers(self) -> int:
        return int(self.owner[-1]) + 1

    @property
    def devices(self) -> int:
        return len(self.owner)


@dataclass(frozen=True, kw_only=True)
class Job(Work):
    """Data parallel training with parameter servers."""

    pull: Flow  # from the servers to each worker, or to each device if there is no local aggregation
    scatter: Flow | None  # on to the worker's devices
    gather: Flow | None  # from them, to be summed
    push: Flow
    inputs: Flow | None
    reads_ahead: bool
    notified_s: Array  # per worker: until it knows that a step is over
    idle: frozenset[int]  # wires that need not be simulated


def job(
    profile: Profile,
    cluster: ClusterModel,
    parameters: Parameters,
    *,
    strategy: str = "greedy",
    parts: int = 1,
    local_aggregation: bool = True,
    input: Input | None = None,
    most: int | None = None,
) -> Job:
    """The job of training `profile`, whose batch is that of one device, on `cluster`.

    `strategy` and `parts` say how variables are placed (`traffic.shards`), `most` bounds the items.
    """
    held = shards(profile, len(cluster.servers), strategy, parts)
    work = overlapping(items(times(profile, cluster, cluster.servers[0], parameters), held, most), parameters.overlap)
    wiring = Wiring(cluster, parameters)
    workers = cluster.gpus if local_aggregation else tuple((device,) for device in cluster.devices)
    flows = _flows(work, cluster, wiring, workers)
    inputs = None if input is None else _inputs(input, profile.batch, workers, wiring)
    sent = [flow for flow in (*flows.values(), inputs) if flow]
    owner = np.repeat(np.arange(len(workers)), [len(devices) for devices in workers])
    return Job(
        batch=profile.batch,
        items=work,
        owner=owner,
        slowness=slowness(profile, cluster, parameters),
        **flows,
        inputs=inputs,
        reads_ahead=input is not None and input.read,
        notified_s=_notified_s(cluster, wiring, workers),
        wires=wiring.wires,
        held_s=np.sum([held_s(wiring.wires, flow) for flow in sent], axis=0),
        idle=idle_wires(wiring.wires, sent),
    )


# ---- computing ----


def times(profile: Profile, cluster: ClusterModel, keeper: str, parameters: Parameters) -> list[LayerTime]:
    """The times of each layer on the first device, and of its updates on the device that keeps the variables."""
    here, there = cluster.processor, cluster.machines.processor(keeper)[0]
    computed, updated = (profile.times(processor, parameters.flop_efficiency) for processor in (here, there))
    return [time._replace(update=other.update) for time, other in zip(computed, updated, strict=True)]


def slowness(profile: Profile, cluster: ClusterModel, parameters: Parameters) -> Array:
    """How much longer each device computes than the first, by the roofline of the whole step."""
    bare = replace(profile, step_seconds=None)
    processors = [cluster.machines.processor(device)[0] for device in cluster.devices]
    times = {one: bare.times(one, parameters.flop_efficiency) for one in set(processors)}
    whole = {one: sum(time.forward + time.backward for time in layers) for one, layers in times.items()}
    taken = np.array([whole[processor] for processor in processors])
    alone = taken / taken[0] if taken[0] else np.ones(len(taken))
    return alone * (1 + parameters.board_sharing * (_on_board(cluster) - 1))


def _on_board(cluster: ClusterModel) -> Array:
    """How many of the devices are on the board of each, itself among them."""
    places = [cluster.machines.place(device) for device in cluster.devices]
    boards = [
        (place.host.name, device if place.card is None else place.card // place.host.gpus[place.card].chips)
        for place, device in zip(places, cluster.devices, strict=True)
    ]
    members = Counter(boards)
    return np.array([members[board] for board in boards])


def overlapping(work: Items, part: float) -> Items:
    """The same work, of which only a part can go on while items are under way.

    With 1 it goes on in layer order; with 0 all is pulled before it, and pushed after it.
    """
    forward, whole = work.forward_s * part, float(work.ready_s.max())
    forward[-1] += (1 - part) * (work.head_s + work.forward_s.sum())
    ready = whole - part * (whole - work.ready_s)
    return work._replace(forward_s=forward, ready_s=ready, head_s=work.head_s * part)


# ---- sending ----


def _flows(work: Items, cluster: ClusterModel, wiring: Wiring, workers: Sequence[Sequence[str]]) -> dict[str, Any]:
    alone = all(len(devices) == 1 for devices in workers)
    ends = [devices[0] if alone else memory_of(devices[0]) for devices in workers]
    homes, devices = cluster.servers, [device for each in workers for device in each]

    def summed(source: str, target: str, what: str) -> tuple[int, ...]:
        route = wiring.route(source, target)
        return (*route, wiring.sum(target, what)) if route else route

    def inside(device: int) -> str:
        return memory_of(devices[device])

    flows: dict[str, Any] = {"scatter": None, "gather": None}
    flows["pull"] = _flow(work, len(ends), lambda s, r: wiring.route(homes[s], ends[r]))
    flows["push"] = _flow(work, len(ends), lambda s, r: summed(ends[r], homes[s], "gradients"), back=True)
    if not alone:
        scatter = _flow(work, len(devices), lambda s, d: wiring.route(inside(d), devices[d]))
        flows["scatter"] = replace(scatter, senders=None)  # in the order in which the items come in
        flows["gather"] = _flow(work, len(devices), lambda s, d: summed(devices[d], inside(d), "its GPUs'"), back=True)
    return flows


def _flow(work: Items, ends: int, route: Callable[[int, int], tuple[int, ...]], back: bool = False) -> Flow:
    """A message for each item and each end, by `route(server, end)`; `back` from the last item to the first."""
    order = np.arange(len(work.names))[:: -1 if back else 1]
    routes = {server: [route(server, end) for end in range(ends)] for server in set(work.server.tolist())}
    nbytes = work.push_bytes if back else work.pull_bytes
    return Flow(
        list(itertools.chain.from_iterable(routes[server] for server in work.server[order].tolist())),
        np.repeat(nbytes[order], ends),
        np.repeat(work.messages[order], ends),
        np.tile(np.arange(ends), len(order)),
    )


def _inputs(given: Input, batch: int, workers: Sequence[Sequence[str]], wiring: Wiring) -> Flow:
    """One message per worker from the file server, whose wire all share."""
    server = wiring.add(Wire("file server egress", given.bandwidth))
    nbytes = [given.bytes_per_example * batch * len(devices) for devices in workers]
    return Flow([(server,)] * len(workers), np.array(nbytes), np.ones(len(workers)))


def _notified_s(cluster: ClusterModel, wiring: Wiring, workers: Sequence[Sequence[str]]) -> Array:
    """A token's way from the first server to each worker, when nothing else is under way."""
    source = memory_of(cluster.servers[0])
    routes = [wiring.route(source, memory_of(devices[0])) for devices in workers]
    return np.array([sum(wiring.wires[w].latency_s + wiring.wires[w].overhead_s for w in route) for route in routes])
