"""Transfers: many messages over shared links at once, as max-plus scans in NumPy.

The rule for one message is plan.md's: with t the moment it is sent and links 1…k, each first in, first out,
`start_i = max(free_i, start_(i−1) + overhead_(i−1))`, `end_i = max(start_i + overhead_i + n/B_i, end_(i−1))`,
`free_i = end_i`; it arrives at `end_k + Σ latency`. A link serves messages in the order in which they were *sent*.

Left out: fair sharing. Two streams that share a link take turns by message, as gRPC's do, not by packet.

Rule: all send times of a flow are known before it starts; then the scan is exact. `messages.py` does the same message
by message, and a test holds the two equal.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Wire:
    """One direction of a physical link; or what a task's CPU does for each message, with an infinite bandwidth."""

    name: str
    bandwidth: float  # B/s
    latency_s: float = 0.0
    overhead_s: float = 0.0  # per message; the wire is busy meanwhile, and what follows waits


class Flow(NamedTuple):
    """Messages of one kind, in the order of their numbers, which those go in that are sent at one moment."""

    routes: Sequence[tuple[int, ...]]  # the wires that each takes
    nbytes: Array
    counts: Array  # how many messages each stands for, each with the wires' overhead
    senders: Array | None = None  # who sends each, if a sender's messages are always sent in the order of their numbers


class Level(NamedTuple):
    """Wires that no message of the batch reaches before those of earlier levels."""

    wires: Array  # int [w]
    messages: Array  # int [w, k]: which messages take the wire, in the order of their numbers; else the spare one
    service: Array  # float [w, k]: seconds for which each holds the wire
    overhead: Array  # float [w, k]: for how long each holds up what follows on the wire behind
    in_order: bool  # they are sent in the order of their numbers, whatever the send times


def held_s(wires: Sequence[Wire], flow: Flow) -> Array:
    """Seconds for which the flow holds each wire."""
    lengths = [len(route) for route in flow.routes]
    wire = np.array([wire for route in flow.routes for wire in route], int)
    overheads, slowness = (np.array(column) for column in zip(*((w.overhead_s, 1 / w.bandwidth) for w in wires)))
    each = overheads[wire] * np.repeat(flow.counts, lengths) + slowness[wire] * np.repeat(flow.nbytes, lengths)
    return np.bincount(wire, each, len(wires))


def idle_wires(wires: Sequence[Wire], flows: Iterable[Flow]) -> frozenset[int]:
    """Wires that never make a message wait: exactly the same messages pass a slower one just before or behind.

    On the slower one they wait for each other at least as long, so what the faster one says changes nothing.
    """
    users: dict[int, list[tuple[int, int]]] = {}
    beside: set[tuple[int, int]] = set()
    for number, flow in enumerate(flows):
        for message, route in enumerate(flow.routes):
            for wire in route:
                users.setdefault(wire, []).append((number, message))
            beside.update(itertools.pairwise(route))
    idle: set[int] = set()
    for pair in sorted(beside):
        fast, slow = sorted(pair, key=lambda wire: -wires[wire].bandwidth)
        if not wires[fast].overhead_s and slow not in idle and users[fast] == users[slow]:
            idle.add(fast)
    return frozenset(idle)


class Batch:
    """A flow that is sent again and again, at other moments."""

    def __init__(self, wires: Sequence[Wire], flow: Flow, idle: frozenset[int] = frozenset()) -> None:
        self.count = len(flow.routes)
        self._served: list[tuple[Array, Array, Array, Array]] = []  # wires, free before, messages, their ends
        self.latency = np.array([sum(wires[w].latency_s for w in route) for route in flow.routes])
        users: dict[int, list[int]] = {}
        for message, route in enumerate(flow.routes):
            for wire in route:
                users.setdefault(wire, []).append(message)
        routes = {tuple(wire for wire in route if wire not in idle) for route in flow.routes}
        self.levels = [self._level(wires, flow, level, users) for level in _ordered(routes)]

    def _level(self, wires: Sequence[Wire], flow: Flow, level: list[int], users: dict[int, list[int]]) -> Level:
        most = max(len(users[wire]) for wire in level)
        messages = np.full((len(level), most), self.count)
        overhead, service = np.zeros(messages.shape), np.zeros(messages.shape)
        for row, wire in enumerate(level):
            taken = users[wire]
            messages[row, : len(taken)] = taken
            overhead[row, : len(taken)] = wires[wire].overhead_s * flow.counts[taken]
            service[row, : len(taken)] = overhead[row, : len(taken)] + flow.nbytes[taken] / wires[wire].bandwidth
        senders = np.arange(self.count) if flow.senders is None else flow.senders
        alone = all(len(set(senders[users[wire]].tolist())) == 1 for wire in level)
        return Level(np.array(level), messages, service, overhead, alone)

    def arrivals(self, sent: Array, free: Array) -> Array:
        """When messages sent at `sent[i]` arrive; `free[wire]`, from when on each wire is idle, is brought forward."""
        start, end = np.append(sent, -np.inf), np.full(self.count + 1, -np.inf)
        moments = np.append(sent, np.inf)
        self._served = []
        for level in self.levels:
            messages, service, overhead = level.messages, level.service, level.overhead
            if not level.in_order:
                order = np.argsort(moments[messages], axis=1, kind="stable")
                messages = np.take_along_axis(messages, order, 1)
                service = np.take_along_axis(service, order, 1)
                overhead = np.take_along_axis(overhead, order, 1)
            before = free[level.wires]
            started, ended = _serve(start[messages], end[messages], service, before[:, None])
            free[level.wires] = ended[:, -1]
            start[messages], end[messages] = started + overhead, ended
            start[-1] = end[-1] = -np.inf
            self._served.append((level.wires, before, messages, ended))
        arrived: Array = np.maximum(end[:-1], sent) + self.latency
        return arrived

    def take_back(self, gone: Array, free: Array) -> None:
        """As if the messages `gone[i]` had not been sent last time; they were the last that were sent."""
        stays = np.append(~gone, False)
        for wires, before, messages, ended in self._served:
            free[wires] = np.maximum(before, np.where(stays[messages], ended, -np.inf).max(axis=1))


def _serve(start: Array, end: Array, service: Array, free: Array) -> tuple[Array, Array]:
    """Start and end on wires of messages in their order, whose stay on the wire before was from `start` to `end`."""
    ready = np.maximum(start + service, end)
    np.maximum(ready[:, :1], free + service[:, :1], out=ready[:, :1])
    work = np.cumsum(service, axis=1)
    ended = np.maximum.accumulate(ready - work, axis=1)
    ended += work
    started = start.copy()
    np.maximum(started[:, :1], free, out=started[:, :1])
    np.maximum(started[:, 1:], ended[:, :-1], out=started[:, 1:])
    return started, ended


def _ordered(routes: Iterable[Sequence[int]]) -> list[list[int]]:
    """The wires in levels: each behind all those that stand before it on some route. ValueError if that is a circle."""
    after: dict[int, set[int]] = {}
    for route in routes:
        for wire in route:
            after.setdefault(wire, set())
        for before, wire in itertools.pairwise(route):
            after[wire].add(before)
    levels: list[list[int]] = []
    placed: set[int] = set()
    while len(placed) < len(after):
        level = sorted(wire for wire, before in after.items() if wire not in placed and before <= placed)
        if not level:
            raise ValueError(
                f"routes go in a circle over wires {sorted(set(after) - placed)}: no order serves them all"
            )
        levels.append(level)
        placed.update(level)
    return levels
