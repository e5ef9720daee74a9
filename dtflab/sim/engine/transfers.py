"""Transfers: many messages over shared links at once, as max-plus scans in NumPy.

The rule for one message is that of `hardware/cut_through.py`, link by link: it takes `overhead + n/B` of a link, its
head goes on `overhead` after it has begun there, and it arrives at the last end + Σ latency. A link serves messages in
the order in which they were *sent*.

Left out: fair sharing. Two streams that share a link take turns by message, as gRPC's do, not by packet.

Rule: all send times of a flow are known before it starts; then the scan is exact. `messages.py` does the same message
by message, and a test holds the two equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
NEVER = -1e300  # a moment before all others, with which one can still reckon


@dataclass(frozen=True)
class Wire:
    """One direction of a physical link; or what a task's CPU does for each message, with an infinite bandwidth."""

    name: str
    bandwidth: float  # B/s
    latency_s: float = 0.0
    overhead_s: float = 0.0  # per message; the wire is busy meanwhile, and what follows waits


@dataclass(frozen=True, eq=False)
class Flow:
    """Messages of one kind, by number; messages sent at the same moment keep that order."""

    routes: Sequence[tuple[int, ...]]  # the wires that each takes
    nbytes: Array
    counts: Array  # how many messages each stands for, each with the wires' overhead
    senders: Array | None = None  # of each, if a sender's messages are always sent in the order of their numbers

    @cached_property
    def ways(self) -> Array:
        """Different routes, one a row: their wires, filled up with -1."""
        different = list(dict.fromkeys(self.routes))
        longest = max(map(len, different), default=0)
        filled = [(*route, *(-1,) * (longest - len(route))) for route in different]
        return np.array(filled, int).reshape(len(different), longest)

    @cached_property
    def way(self) -> Array:
        """The row of each message."""
        numbers = {route: number for number, route in enumerate(dict.fromkeys(self.routes))}
        return np.fromiter(map(numbers.__getitem__, self.routes), int, len(self.routes))

    @cached_property
    def pairs(self) -> Array:
        """Wires that follow each other on some way: `[pair, (before, behind)]`, as often as on different ways."""
        pairs = np.stack([self.ways[:, :-1], self.ways[:, 1:]], -1).reshape(-1, 2)
        return pairs[pairs[:, 1] >= 0]


class Level(NamedTuple):
    """Wires that no message of the batch reaches before those of earlier levels."""

    wires: Array  # int [w]
    messages: Array  # int [w, k]: which messages take the wire, in the order of their numbers; else the spare one
    service: Array  # float [w, k]: seconds for which each holds the wire
    overhead: Array  # float [w, k]: for how long each holds up what follows on the wire behind
    work: Array  # float [w, k]: the seconds of all up to each
    alike: bool  # all messages on a wire hold it for as long, whatever their order
    rows: Array  # int [w, 1]: where each row begins
    in_order: bool  # they are sent in the order of their numbers, whatever the send times


def held_s(wires: Sequence[Wire], flow: Flow) -> Array:
    """Seconds for which the flow holds each wire."""
    message, place = np.nonzero(flow.ways[flow.way] >= 0)
    taken = flow.ways[flow.way[message], place]
    return np.bincount(taken, _service(wires, flow, taken, message)[1], len(wires))


def _service(wires: Sequence[Wire], flow: Flow, wire: Array, message: Array) -> tuple[Array, Array]:
    """For how long `message[i]` holds up what follows on `wire[i]`, and for how long it takes the wire."""
    overhead_s, bandwidth = np.array([(w.overhead_s, w.bandwidth) for w in wires]).reshape(len(wires), 2).T
    overhead = overhead_s[wire] * flow.counts[message]
    return overhead, overhead + flow.nbytes[message] / bandwidth[wire]


def idle_wires(wires: Sequence[Wire], flows: Sequence[Flow]) -> frozenset[int]:
    """Wires that never make a message wait: exactly the same messages pass a slower one just before or behind.

    On the slower one they wait for each other at least as long, so what the faster one says changes nothing.
    """
    users = np.sum([np.bincount(flow.ways[flow.ways >= 0], minlength=len(wires)) for flow in flows], axis=0)
    pairs, together = np.unique(np.concatenate([flow.pairs for flow in flows]), axis=0, return_counts=True)
    same = (users[pairs] == together[:, None]).all(axis=1)
    idle: set[int] = set()
    for pair in pairs[same].tolist():
        fast, slow = sorted(pair, key=lambda wire: -wires[wire].bandwidth)
        if not wires[fast].overhead_s and slow not in idle:
            idle.add(fast)
    return frozenset(idle)


class Batch:
    """A flow that is sent again and again, at other moments."""

    def __init__(self, wires: Sequence[Wire], flow: Flow, idle: frozenset[int] = frozenset()) -> None:
        self.wires = frozenset(flow.ways[flow.ways >= 0].tolist()) - idle
        latency = np.array([*(wire.latency_s for wire in wires), 0.0])[flow.ways].sum(axis=1)  # -1 is the 0 behind
        self.latency = latency[flow.way]
        depth = _depths(flow, len(wires))
        depth[list(idle)] = -1
        place = np.append(depth, -1)[flow.ways][flow.way]
        levels = (_level(wires, flow, place == level) for level in range(depth.max(initial=-1) + 1))
        self.levels = [level for level in levels if len(level.wires)]

    def arrivals(self, sent: Array, free: Array) -> Array:
        """When messages sent at `sent[i]` arrive; `free[wire]`, from when on each wire is idle, is brought forward."""
        start = np.append(sent, NEVER)
        end = start.copy()
        moments = np.append(sent, np.inf)
        for level in self.levels:
            messages, service, overhead, work = level.messages, level.service, level.overhead, level.work
            if not level.in_order:
                order = np.argsort(moments[messages], axis=1, kind="stable")
                order += level.rows
                messages = messages.take(order)
                if not level.alike:
                    service, overhead = service.take(order), overhead.take(order)
                    work = np.cumsum(service, axis=1)
            before = free[level.wires]
            started, ended, freed = _serve(start[messages], end[messages], service, work, before[:, None])
            free[level.wires] = freed[:, -1]
            start[messages], end[messages] = started + overhead, ended
            start[-1] = end[-1] = NEVER
        arrived: Array = end[:-1] + self.latency
        return arrived


def _serve(start: Array, end: Array, service: Array, work: Array, free: Array) -> tuple[Array, Array, Array]:
    """`pass_link` for messages one after the other in each row; `work` is the sum of `service` up to each."""
    ready = start + service
    spare = np.maximum(end - ready, 0.0)
    np.maximum(ready[:, :1], free + service[:, :1], out=ready[:, :1])
    ready -= work
    freed = np.maximum.accumulate(ready, axis=1)
    freed += work
    before = np.concatenate([free, freed[:, :-1]], axis=1)
    return np.maximum(start, before - spare), np.maximum(end, freed), freed


def _level(wires: Sequence[Wire], flow: Flow, here: Array) -> Level:
    """The wires `[message, place on its route]` that are marked."""
    message, place = np.nonzero(here)
    wire = flow.ways[flow.way[message], place]
    order = np.argsort(wire, kind="stable")
    wire, message = wire[order], message[order]
    taken, first, count = np.unique(wire, return_index=True, return_counts=True)
    row, column = np.repeat(np.arange(len(taken)), count), np.arange(len(wire)) - np.repeat(first, count)
    shape = len(taken), int(count.max(initial=1))
    messages, overhead, service = np.full(shape, len(flow.routes)), np.zeros(shape), np.zeros(shape)
    messages[row, column] = message
    overhead[row, column], service[row, column] = _service(wires, flow, wire, message)
    senders = np.arange(len(flow.routes)) if flow.senders is None else flow.senders
    alone = bool((senders[message] == np.repeat(senders[message[first]], count)).all())
    alike = bool((service[row, column] == service[row, 0]).all() and (overhead[row, column] == overhead[row, 0]).all())
    rows = shape[1] * np.arange(shape[0])[:, None]
    return Level(taken, messages, service, overhead, np.cumsum(service, axis=1), alike, rows, alone)


def _depths(flow: Flow, wires: int) -> Array:
    """For each wire, how many at most lie before it on any route. ValueError if routes go in a circle."""
    depths, before, behind = np.zeros(wires, int), flow.pairs[:, 0], flow.pairs[:, 1]
    used = len(np.unique(flow.pairs))
    while (depths[behind] <= depths[before]).any():
        np.maximum.at(depths, behind, depths[before] + 1)
        if depths.max() > used:
            raise ValueError("Routes form a cycle over some wires, so no order serves them all.")
    return depths
