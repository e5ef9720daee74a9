"""Reductions: data parallel training whose gradients are summed by an all-reduce, in modelled time.

Stands for Horovod and NCCL on top of the model of a step. Left out: chunks within a round, trees of several roots.

Rules. Who sends what to whom is `train/all_reduce_schedule`'s, as in the graph. Gradients are fused in the order in
which they are computed, and fused ones are reduced one after the other. Vectorised, a round takes as long as its
busiest wire; by events each message is sent when its sender has what it needs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dtflab.hardware.cut_through import pass_link
from dtflab.sim.cluster_models import ClusterModel, Wiring
from dtflab.sim.critical_path import Part
from dtflab.sim.job import Work, overlapping, slowness, times
from dtflab.sim.parameters import Parameters
from dtflab.sim.profile import Profile
from dtflab.sim.record import Log, Moments, Record
from dtflab.sim.traffic import Array, Items, items, shards
from dtflab.train.all_reduce_schedule import Message, Round, Schedule, schedule
from dtflab.virtual.engine import Engine

Sizes = tuple[tuple[int, int, int], ...]  # source, target and number of pieces of a round's messages


class Reach(NamedTuple):
    """What a message between two devices needs."""

    wires: tuple[int, ...]
    latency_s: float


@dataclass(frozen=True, kw_only=True)
class Reduction(Work):
    """`reach[a, b]` for all pairs of devices that talk; `sum_s_per_byte` is what adding a byte takes."""

    schedule: Schedule
    reach: dict[tuple[int, int], Reach]
    sum_s_per_byte: float


def reduction(
    profile: Profile, cluster: ClusterModel, parameters: Parameters, algorithm: str, fusion_bytes: float
) -> Reduction:
    """The job of training `profile` on all devices of `cluster`, in the order in which the cluster has them."""
    devices = cluster.devices
    layers = times(profile, cluster, devices[0], parameters)
    work = fused(overlapping(items(layers, shards(profile, 1)), parameters.overlap), fusion_bytes)
    plan, wiring = schedule(algorithm, len(devices)), Wiring(cluster, parameters)
    sent: Counter[tuple[int, int]] = Counter()  # messages from one device to another, and the pieces in them
    pieces: Counter[tuple[int, int]] = Counter()
    for source, target, first, last in (m for messages, _ in _rounds(plan) for m in messages):
        sent[source, target] += 1
        pieces[source, target] += last - first
    reach = {pair: _reach(wiring, devices[pair[0]], devices[pair[1]]) for pair in sorted(sent)}
    held, nbytes = np.zeros(len(wiring.wires)), work.push_bytes.sum() / plan.pieces
    for pair, (wires, _) in reach.items():
        for wire in wires:
            one = wiring.wires[wire]
            held[wire] += sent[pair] * len(work.names) * one.overhead_s + pieces[pair] * nbytes / one.bandwidth
    bandwidth = cluster.processor.memory_bandwidth
    return Reduction(
        batch=profile.batch,
        items=work,
        wires=wiring.wires,
        held_s=held,
        owner=np.arange(len(devices)),
        slowness=slowness(profile, cluster, parameters),
        schedule=plan,
        reach=reach,
        sum_s_per_byte=3 / bandwidth,  # read two, write one
    )


def _reach(wiring: Wiring, source: str, target: str) -> Reach:
    wires = wiring.route(source, target)
    return Reach(wires, sum(wiring.wires[wire].latency_s for wire in wires))


def fused(work: Items, nbytes: float) -> Items:
    """Items whose gradients leave together: from the last one on, until `nbytes` are there."""
    groups: list[list[int]] = [[]]
    for item in range(len(work.names) - 1, -1, -1):
        if groups[-1] and work.push_bytes[groups[-1]].sum() + work.push_bytes[item] > nbytes:
            groups.append([])
        groups[-1].append(item)
    groups = [group[::-1] for group in groups[::-1]]
    first = [group[0] for group in groups]
    names = [f"{work.names[g[0]]} … {work.names[g[-1]]}" if len(g) > 1 else work.names[g[0]] for g in groups]

    def summed(column: Array) -> Array:
        return np.array([column[group].sum() for group in groups])

    return Items(
        names=names,
        server=work.server[first],
        messages=np.ones(len(groups), int),
        pull_bytes=summed(work.pull_bytes),
        push_bytes=summed(work.push_bytes),
        forward_s=summed(work.forward_s),
        ready_s=work.ready_s[first],
        apply_s=summed(work.apply_s),
        head_s=work.head_s,
    )


def synchronous(job: Reduction, factors: Array, trace: bool = False) -> Record:
    """Steps of devices that sum their gradients, vectorised; `factors[step, device]` as in `step_model`."""
    log, over = Log(job, len(factors), trace), 0.0
    fixed, per_byte = _seconds(job)
    cost = fixed + per_byte * job.items.push_bytes
    for k, drawn in enumerate(factors):
        start = np.full(job.devices, over)
        forward, ready = computed(job, start, drawn)
        done, whole = float(forward.max()), np.empty_like(ready)
        for item in reversed(range(len(cost))):
            done = max(done, float(ready[item].max())) + cost[item]
            whole[item] = done
        log.write(k, start, _moments(start, forward, ready, whole), np.full(job.devices, done))
        over = log.updates[k] = done + float(job.items.apply_s.sum())
    return log.synchronous(factors, job.workers, 0)


def computed(job: Reduction, start: Array, drawn: Array) -> tuple[Array, Array]:
    """When each device is through the way forward, and has each item's gradient."""
    slow = drawn * job.slowness
    forward = start + slow * (job.items.head_s + job.items.forward_s.sum())
    return forward, forward + slow * job.items.ready_s[:, None]


def _moments(start: Array, forward: Array, ready: Array, whole: Array) -> Moments:
    there = np.broadcast_to(start, ready.shape)
    return Moments(there, there, start, forward, ready, ready, whole)


def _seconds(job: Reduction) -> tuple[float, float]:
    """Seconds of an all-reduce: fixed, and per byte of the tensor. Each round is as slow as its busiest wire."""
    fixed = per_byte = 0.0
    known: dict[Sizes, tuple[float, float]] = {}
    for messages, adds in _rounds(job.schedule):
        shape = tuple((source, target, last - first) for source, target, first, last in messages)
        if shape not in known:
            known[shape] = _round_seconds(job, shape)
        fixed += known[shape][0]
        share = max(pieces for _, _, pieces in shape) / job.schedule.pieces
        per_byte += known[shape][1] + adds * share * job.sum_s_per_byte
    return fixed, per_byte


def _rounds(plan: Schedule) -> Iterator[tuple[Round, bool]]:
    """All rounds, and whether who gets a piece adds it."""
    yield from ((messages, True) for messages in plan.reduce)
    yield from ((messages, False) for messages in plan.gather)


def _round_seconds(job: Reduction, messages: Sizes) -> tuple[float, float]:
    load: Counter[int] = Counter()
    overhead: defaultdict[int, float] = defaultdict(float)
    latest = 0.0
    for source, target, pieces in messages:
        wires, latency_s = job.reach[source, target]
        latest = max(latest, latency_s + sum(job.wires[wire].overhead_s for wire in wires))
        for wire in wires:
            load[wire] += pieces
            overhead[wire] += job.wires[wire].overhead_s
    per_byte = max(count / job.wires[wire].bandwidth for wire, count in load.items()) / job.schedule.pieces
    return max(latest, max(overhead.values())), per_byte


def critical_path(job: Reduction, record: Record) -> list[Part]:
    """What the end of the last step waited for: computing until nothing keeps the all-reduces waiting, then these."""
    assert record.trace is not None
    start, ready = float(record.started[-1].max()), record.trace.ready[-1].max(axis=1)
    forward = float(record.trace.forward[-1].max())
    ended = record.trace.pushed[-1].max(axis=1)
    item = 0
    while item + 1 < len(ready) and ended[item + 1] > ready[item]:
        item += 1
    computing = [Part("forward", "all of it", forward - start)]
    computing.append(Part("backward", f"to the gradient of {job.items.names[item]}", float(ready[item]) - forward))
    since = [float(ready[item]), *ended[: item + 1][::-1].tolist()]
    sums = [
        Part("push", f"all-reduce of {job.items.names[each]}", since[i + 1] - since[i])
        for i, each in enumerate(range(item, -1, -1))
    ]
    return [*computing, *sums, Part("update", "of all variables", float(record.updates[-1]) - since[-1])]


# ---- by events ----


def messages_one_by_one(job: Reduction, factors: Array, trace: bool = False) -> Record:
    """As `synchronous`, with every message an event."""
    run = _Run(job, factors, trace)
    run.begin()
    run.engine.run()
    return run.log.synchronous(factors, job.workers, 0)


class _Run:
    """Devices that go from round to round, and from tensor to tensor; a step begins when all have ended the last."""

    def __init__(self, job: Reduction, factors: Array, trace: bool) -> None:
        self.job, self.factors, self.engine = job, factors, Engine()
        self.log = Log(job, len(factors), trace)
        self.free = [0.0] * len(job.wires)
        self.rounds = [_by_source(messages) for messages, _ in _rounds(job.schedule)]
        self.gets = [Counter(m.target for m in messages) for messages, _ in _rounds(job.schedule)]
        self.adds = len(job.schedule.reduce)
        self.step = 0

    def begin(self) -> None:
        """All devices start the next step."""
        self.start = np.full(self.job.devices, self.engine.now)
        self.forward, self.ready = computed(self.job, self.start, self.factors[self.step])
        self.whole = np.empty_like(self.ready)
        self.inbox: Counter[tuple[int, int, int]] = Counter()
        self.at = [(-1, -1)] * self.job.devices  # item and round that each is in
        self.working = self.job.devices
        for device in range(self.job.devices):
            self.next_item(device, len(self.job.items.names) - 1)

    def next_item(self, device: int, item: int) -> None:
        """A device goes on to an item's gradient as soon as it has that; after the first item it is done."""
        if item < 0:
            self.finish()
        else:
            self.engine.at(max(self.engine.now, float(self.ready[item, device])), self.begin_round, device, item, 0)

    def begin_round(self, device: int, item: int, number: int) -> None:
        """A device has all from the rounds before, and sends what this one says."""
        if number == len(self.rounds):
            self.whole[item, device] = self.engine.now
            self.next_item(device, item - 1)
            return
        self.at[device] = item, number
        self.send(device, item, number)
        self.look(device)

    def look(self, device: int) -> None:
        """Once a device has all that it gets in its round, that is over."""
        item, number = self.at[device]
        if self.inbox[device, item, number] == self.gets[number][device]:
            self.engine.at(self.engine.now, self.begin_round, device, item, number + 1)

    def send(self, device: int, item: int, number: int) -> None:
        """What a device sends in a round."""
        for message in self.rounds[number].get(device, ()):
            nbytes = self.job.items.push_bytes[item] * (message.last - message.first) / self.job.schedule.pieces
            wires, latency_s = self.job.reach[device, message.target]
            start = end = self.engine.now
            for wire in wires:
                one = self.job.wires[wire]
                seconds = one.overhead_s + nbytes / one.bandwidth
                start, end, self.free[wire] = pass_link(start, end, self.free[wire], seconds)
                start += one.overhead_s
            adding = nbytes * self.job.sum_s_per_byte if number < self.adds else 0.0
            self.engine.at(end + latency_s + adding, self.arrive, message.target, item, number)

    def arrive(self, device: int, item: int, number: int) -> None:
        """A message is there, and added."""
        self.inbox[device, item, number] += 1
        if self.at[device] == (item, number):
            self.look(device)

    def finish(self) -> None:
        """One more device has all sums."""
        self.working -= 1
        if self.working:
            return
        ended = np.maximum(self.engine.now, self.forward.max())
        moments = _moments(self.start, self.forward, self.ready, self.whole)
        self.log.write(self.step, self.start, moments, np.full(self.job.devices, ended))
        over = self.log.updates[self.step] = float(ended) + float(self.job.items.apply_s.sum())
        self.step += 1
        if self.step < len(self.factors):
            self.engine.at(over, self.begin)


def _by_source(messages: Round) -> dict[int, list[Message]]:
    sent: dict[int, list[Message]] = {}
    for message in messages:
        sent.setdefault(message.source, []).append(message)
    return sent
