"""Reductions: data parallel training whose gradients are summed by an all-reduce, in modelled time.

Stands for Horovod and NCCL on top of the model of a step. Left out: chunks within a round, trees of several roots.

Rules. The messages are those of `train/collectives/schedule.py`, as in the graph: a device sends when it has what it
needs, and waits for no others. Gradients are fused in the order in which they are computed, and fused ones are reduced
one after the other. Both engines give the same times.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dtflab.hardware.cut_through import pass_link
from dtflab.sim.engine.cluster_models import ClusterModel, Wiring
from dtflab.sim.engine.critical_path import Part
from dtflab.sim.engine.job import Work, overlapping, slowness, times
from dtflab.sim.engine.network_profile import Profile
from dtflab.sim.engine.parameters import Parameters
from dtflab.sim.engine.record import Log, Moments, Record
from dtflab.sim.engine.traffic import Array, Items, items, shards
from dtflab.train.collectives.schedule import Message, Round, Rounds, schedule
from dtflab.virtual.engine import Engine

_BLOCK = 32  # steps at once: their arrays stay in a processor's cache


class Reach(NamedTuple):
    """The wires and the time that a message between two devices needs."""

    wires: tuple[int, ...]
    latency_s: float


@dataclass(frozen=True, kw_only=True)
class Reduction(Work):
    """`reach[a, b]` for all pairs of devices that talk; `sum_s_per_byte` is what adding a byte takes."""

    schedule: Rounds
    reach: dict[tuple[int, int], Reach]
    sum_s_per_byte: float

    @cached_property
    def shared(self) -> frozenset[int]:
        """The wires that messages of several senders take."""
        senders = Counter(wire for wire, _ in {(w, a) for (a, _), one in self.reach.items() for w in one.wires})
        return frozenset(wire for wire, count in senders.items() if count > 1)


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
    return Reduction(
        batch=profile.batch,
        items=work,
        wires=wiring.wires,
        held_s=held,
        owner=np.arange(len(devices)),
        slowness=slowness(profile, cluster, parameters),
        schedule=plan,
        reach=reach,
        sum_s_per_byte=3 / cluster.processor.memory_bandwidth,  # read two, write one
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
    """Steps of devices that sum their gradients, vectorized; `factors[step, device]` as in `step_model`."""
    return _record(job, factors, trace, _vectorized(job, factors))


def messages_one_by_one(job: Reduction, factors: Array, trace: bool = False) -> Record:
    """Steps of devices that sum their gradients; every message is an event. See `synchronous`."""
    return _record(job, factors, trace, _by_events(job, factors))


def _record(job: Reduction, factors: Array, trace: bool, whole: Array) -> Record:
    """The record of steps whose devices had the sums at `whole[step, item, device]`, from the step's start on.

    A step ends when all devices have all sums, so nothing of it is left on the wires of the next.
    """
    log, over = Log(job, len(factors), trace), 0.0
    for k, drawn in enumerate(factors):
        start = np.full(job.devices, over)
        forward, ready = computed(job, start, drawn)
        done = over + float(whole[k].max())
        there = np.broadcast_to(start, ready.shape)
        moments = Moments(there, there, start, forward, ready, ready, over + whole[k])
        log.write(k, start, moments, np.full(job.devices, done))
        over = log.updates[k] = done + float(job.items.apply_s.sum())
    return log.synchronous(factors, job.workers, 0)


def computed(job: Reduction, start: Array, drawn: Array) -> tuple[Array, Array]:
    """When each device is through the way forward, and has each item's gradient."""
    slow = drawn * job.slowness
    forward = start + slow * (job.items.head_s + job.items.forward_s.sum())
    return forward, forward + slow * job.items.ready_s[:, None]


def _ready(job: Reduction, drawn: Array) -> Array:
    """When each device has each item's gradient, `[item, device]`, from the step's start on."""
    return computed(job, np.zeros(job.devices), drawn)[1]


def _rounds(plan: Rounds) -> Iterator[tuple[Round, bool]]:
    """All rounds, and whether a device that gets a piece adds it."""
    yield from ((messages, True) for messages in plan.reduce)
    yield from ((messages, False) for messages in plan.gather)


# ---- vectorized ----


class _Group(NamedTuple):
    """Messages of a round no two of which take the same wire; arrays have a row for each."""

    sources: Array
    targets: Array
    wires: Array  # [message, place on its route], filled up with the number of the spare wire
    part: Array  # of the item's bytes, [message, 1]
    latency: Array  # [message, 1]


def _vectorized(job: Reduction, factors: Array) -> Array:
    """`whole[step, item, device]`, many steps at once, a round after the other; equal steps are simulated once."""
    different, which = np.unique(factors, axis=0, return_inverse=True)
    scan = _Scan(job)
    blocks = np.array_split(different, -(-len(different) // _BLOCK))
    return np.concatenate([scan.run(block) for block in blocks])[which.ravel()]


class _Scan:
    """Steps side by side: arrays have a column for each.

    A scan is exact as long as each wire gets its messages in the order of the rounds, at one moment too. Events decide
    about the `open` steps, in which a wire gets them in another order.
    """

    def __init__(self, job: Reduction) -> None:
        self.job = job
        known: dict[tuple[tuple[int, int, int], ...], list[_Group]] = {}
        self.rounds = []
        for messages, adds in _rounds(job.schedule):
            shape = tuple((source, target, last - first) for source, target, first, last in messages)
            if shape not in known:
                known[shape] = [*_groups(job, messages)]
            self.rounds.append((known[shape], adds))
        self.bandwidth, self.overhead = np.array([*((w.bandwidth, w.overhead_s) for w in job.wires), (np.inf, 0.0)]).T
        self.meet = np.isin(np.arange(len(self.bandwidth)), list(job.shared))

    def run(self, factors: Array) -> Array:
        """`whole[step, item, device]` of a block of steps."""
        ready = np.stack([_ready(self.job, drawn) for drawn in factors], -1)  # [item, device, step]
        self.free = np.zeros((len(self.bandwidth), len(factors)))
        self.sent = np.full(self.free.shape, -np.inf)  # the latest message of each wire that several senders take
        self.at = np.zeros(ready.shape[1:])
        self.open = np.zeros(len(factors), bool)
        self.whole = np.empty(ready.shape)
        for item in reversed(range(len(ready))):
            self.reduce(item, ready[item])
        whole = np.moveaxis(self.whole, -1, 0)
        if self.open.any():
            whole[self.open] = _by_events(self.job, factors[self.open])
        return whole

    def reduce(self, item: int, ready: Array) -> None:
        """All rounds of an item; each device begins when it has the item, and is through with the one before."""
        np.maximum(self.at, ready, out=self.at)
        for groups, adds in self.rounds:
            come = self.at.copy()
            for group in groups:
                nbytes = self.job.items.push_bytes[item] * group.part
                adding = nbytes * self.job.sum_s_per_byte if adds else 0.0
                come[group.targets] = np.maximum(come[group.targets], self._arrivals(group, nbytes)) + adding
            self.at = come
        self.whole[item] = self.at

    def _arrivals(self, group: _Group, nbytes: Array) -> Array:
        """`pass_link` for all messages of a group, one place of their routes after the other."""
        sent = start = end = self.at[group.sources]
        for wires in group.wires.T:
            if (meet := self.meet[wires]).any():
                self.open |= (sent[meet] < self.sent[wires[meet]]).any(axis=0)
                self.sent[wires[meet]] = sent[meet]
            overhead = self.overhead[wires, None]
            seconds = overhead + nbytes / self.bandwidth[wires, None]
            free, through = self.free[wires], start + seconds
            spare = np.maximum(end - through, 0.0)
            done = np.maximum(start, free) + seconds
            start, end = np.maximum(start, free - spare) + overhead, np.maximum(end, done)
            self.free[wires], self.free[-1] = done, 0.0
        arrived: Array = end + group.latency
        return arrived


def _groups(job: Reduction, messages: Round) -> Iterator[_Group]:
    """The messages of a round in their order: each in the first group behind all those that share a wire with it."""
    groups: list[list[Message]] = []
    last: dict[int, int] = {}  # of each wire, the last group in which it is taken
    for message in messages:
        wires = job.reach[message.source, message.target].wires
        number = 1 + max((last.get(wire, -1) for wire in wires), default=-1)
        last.update(dict.fromkeys(wires, number))
        if number == len(groups):
            groups.append([])
        groups[number].append(message)
    for group in groups:
        reach = [job.reach[message.source, message.target] for message in group]
        longest, spare = max(len(one.wires) for one in reach), len(job.wires)
        yield _Group(
            np.array([message.source for message in group]),
            np.array([message.target for message in group]),
            np.array([[*one.wires, *[spare] * (longest - len(one.wires))] for one in reach]),
            np.array([[(message.last - message.first) / job.schedule.pieces] for message in group]),
            np.array([[one.latency_s] for one in reach]),
        )


def critical_path(job: Reduction, record: Record) -> list[Part]:
    """The chain that ends the last step: computing until nothing keeps the all-reduces waiting, then these."""
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
    spans = zip(job.items.names[item::-1], itertools.pairwise(since), strict=True)
    sums = [Part("push", f"all-reduce of {name}", end - begin) for name, (begin, end) in spans]
    return [*computing, *sums, Part("update", "of all variables", float(record.updates[-1]) - since[-1])]


# ---- by events ----


def _by_events(job: Reduction, factors: Array) -> Array:
    """`whole[step, item, device]`, step by step."""
    run = _Run(job)
    return np.stack([run.step(_ready(job, drawn)) for drawn in factors])


class _Run:
    """Devices that go from round to round, and from tensor to tensor, as soon as each has what it needs."""

    def __init__(self, job: Reduction) -> None:
        self.job = job
        self.sends = [{message.source: message for message in messages} for messages, _ in _rounds(job.schedule)]
        self.adds = [
            {m.target: (m.last - m.first) / job.schedule.pieces * adds for m in messages}
            for messages, adds in _rounds(job.schedule)
        ]  # of each device that gets something: the part of an item that it adds then

    def step(self, ready: Array) -> Array:
        """When each device has each item's sum, if it has its own gradient at `ready[item, device]`."""
        self.engine, self.free = Engine(), [0.0] * len(self.job.wires)
        self.ready, self.whole = ready, np.empty_like(ready)
        self.inbox: set[tuple[int, int, int]] = set()
        self.at = [(-1, -1)] * self.job.devices  # item and round that each is in
        for device in range(self.job.devices):
            self.next_item(device, len(ready) - 1)
        self.engine.run()
        return self.whole

    def next_item(self, device: int, item: int) -> None:
        """A device goes on to an item's gradient as soon as it has that; after the first item it is done."""
        if item >= 0:
            self.engine.at(max(self.engine.now, float(self.ready[item, device])), self.begin_round, device, item, 0)

    def begin_round(self, device: int, item: int, number: int) -> None:
        """A device has all from the rounds before, and sends what this one says."""
        if number == len(self.sends):
            self.whole[item, device] = self.engine.now
            self.next_item(device, item - 1)
            return
        self.at[device] = item, number
        if message := self.sends[number].get(device):
            self.send(message, item, number)
        if device not in self.adds[number] or (device, item, number) in self.inbox:
            self.end_round(device, item, number)

    def send(self, message: Message, item: int, number: int) -> None:
        """A message sets out; its arrival is known then."""
        nbytes = self.job.items.push_bytes[item] * ((message.last - message.first) / self.job.schedule.pieces)
        wires, latency_s = self.job.reach[message.source, message.target]
        start = end = self.engine.now
        for wire in wires:
            one = self.job.wires[wire]
            seconds = one.overhead_s + nbytes / one.bandwidth
            start, end, self.free[wire] = pass_link(start, end, self.free[wire], seconds)
            start += one.overhead_s
        self.engine.at(end + latency_s, self.arrive, message.target, item, number)

    def arrive(self, device: int, item: int, number: int) -> None:
        """A message is there, perhaps before its receiver has come to that round."""
        self.inbox.add((device, item, number))
        if self.at[device] == (item, number):
            self.end_round(device, item, number)

    def end_round(self, device: int, item: int, number: int) -> None:
        """A device has what it gets in a round, adds it to its own, and goes on."""
        adding = self.job.items.push_bytes[item] * self.adds[number].get(device, 0.0) * self.job.sum_s_per_byte
        self.engine.at(self.engine.now + adding, self.begin_round, device, item, number + 1)
