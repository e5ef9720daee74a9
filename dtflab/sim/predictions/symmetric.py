"""Symmetric: the time of one step of data-parallel training whose workers are all alike, so one stands for all.

Stands for thousands of equal messages: if n workers send the same bytes at the same moment, a link passes them as one
message that is n times as long. Left out: workers that differ (`step_model.py` has each), what each link is doing when.

Rule: messages pass links as everywhere here (`hardware/cut_through.py`). No name and no number of anything is asked
for: the numbers of a `Site` are all there is.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dtflab.hardware.cut_through import pass_link
from dtflab.sim.engine.traffic import greedy
from dtflab.sim.formulas import exponential_order_statistic
from dtflab.sim.predictions.layers import Layer

FORWARD = 1 / 3  # of a step's computing: a backward pass multiplies matrices twice as often


@dataclass(frozen=True)
class Site:
    """Equal hosts and what their links reach: bandwidths in B/s in one direction, times in seconds.

    Each of `hosts` has `gpus` cards and one worker that drives them. `servers` tasks hold the variables, `colocated`
    with workers or on hosts of their own; without servers, and on the way to them, a host sums up its own gradients
    first, on its CPU or (`sums_on_gpus`) each variable on one of its GPUs. `spares` of the hosts are not waited for.
    """

    hosts: int
    gpus: int
    nic: float
    bus: float  # between one GPU and the host
    sum_rate: float  # at which a host adds up gradients
    latency_s: float = 0.0  # of a message between hosts
    message_s: float = 0.0  # of a CPU per message, at each end
    peer: float = 0.0  # between GPUs over links of their own; 0: over the bus
    switch: int = 1  # that many GPUs share a way to the host
    servers: int = 0
    colocated: bool = False
    sums_on_gpus: bool = False
    in_halves: bool = False  # what is summed on GPUs: first by one of each half of them, over links of their own
    sliced: bool = False  # each variable over all servers, not whole on one
    aggregates: bool = True  # a host sends one sum, not a gradient of each GPU
    spares: int = 0
    overlap: float = 1.0  # part of the computing that transfers in layer order may hide behind
    jitter: float = 0.0  # mean of the exponential part of a worker's computing time, relative to the rest
    tail: float = 0.0  # exponent of the Pareto tail of a worker's steps where others use hosts and network, too
    crowding: float = 0.0  # how much longer a GPU computes next to the others of its board

    @property
    def copies(self) -> int:
        """Messages of a worker for one variable."""
        return 1 if self.aggregates else self.gpus

    @property
    def senders(self) -> int:
        """Workers whose messages reach a server over its links."""
        return self.hosts - (1 if self.colocated else 0)


class Line:
    """One direction of a link, or a processor: messages pass it one after the other."""

    def __init__(self) -> None:
        self.free = 0.0
        self.busy = 0.0


Stage = tuple[Line, float]  # seconds for which a message holds the line


def carry(stages: Sequence[Stage], sent: float) -> float:
    """When a message that is sent at `sent` has passed all lines, each of which it holds for that many seconds."""
    start = end = sent
    for line, seconds in stages:
        start, end, line.free = pass_link(start, end, line.free, seconds)
        line.busy += seconds
    return end


class Way:
    """All lines of one direction: pulls go from servers to GPUs, pushes from GPUs to servers."""

    def __init__(self, site: Site, layers: tuple[Layer, ...], senders: int) -> None:
        self._site, self._senders = site, senders
        self._is_far = site.servers > 0 and senders > 0
        self._server = _shared_out(layers, max(1, site.servers))
        self._owner = _shared_out(layers, site.gpus)
        self._lines: defaultdict[tuple[str, int], Line] = defaultdict(Line)

    @property
    def busiest_s(self) -> float:
        """Seconds for which the busiest line was busy."""
        return max((line.busy for line in self._lines.values()), default=0.0)

    def pull(self, layer: Layer, sent: float) -> float:
        """When all GPUs have the variable, if it was there to be fetched at `sent`."""
        far = self._at_server(layer, "out") + self._at_worker(layer, "in")
        return self._passed([far, *reversed(self._in_host(layer))], sent)

    def push(self, layer: Layer, sent: float) -> float:
        """When the sum of all gradients of the variable is there, if they are computed at `sent`."""
        far = self._at_worker(layer, "out") + self._at_server(layer, "in")
        return self._passed([*self._in_host(layer), far], sent)

    def _passed(self, legs: list[list[Stage]], sent: float) -> float:
        """A GPU that is alone hands bytes on as they come; a sum of several leaves when it is whole."""
        for leg in legs if self._site.gpus > 1 else [list(itertools.chain(*legs))]:
            sent = carry(leg, sent)
        return sent + self._site.latency_s * self._is_far

    def _line(self, name: str, number: int = 0) -> Line:
        return self._lines[name, number]

    def _at_worker(self, layer: Layer, way: str) -> list[Stage]:
        """The work of one worker's CPU and network card for a variable."""
        site, copies = self._site, self._site.copies
        return self._is_far * [
            (self._line(f"worker CPU {way}"), copies * (site.message_s + layer.nbytes / site.sum_rate)),
            (self._line(f"worker NIC {way}"), copies * layer.nbytes / site.nic),
        ]

    def _at_server(self, layer: Layer, way: str) -> list[Stage]:
        """The work of the server that holds a variable, and of its network card, for all workers."""
        site, number = self._site, self._server[layer]
        times = self._senders * site.copies
        nbytes = layer.nbytes / max(1, site.servers) if site.sliced else layer.nbytes
        return self._is_far * [
            (self._line(f"server NIC {way}", number), times * nbytes / site.nic),
            (self._line(f"server CPU {way}", number), times * (site.message_s + nbytes / site.sum_rate)),
        ]

    def _in_host(self, layer: Layer) -> list[list[Stage]]:
        """From the GPUs of a host to the memory that holds its copy of the variable."""
        site, nbytes = self._site, layer.nbytes
        if not site.sums_on_gpus:
            return [[(self._line("uplink"), min(site.switch, site.gpus) * nbytes / site.bus)]]
        owner = self._owner[layer]
        if site.in_halves:
            return self._over_links(owner, nbytes / site.peer)
        lanes = (self._line("lanes", owner), (site.gpus - 1) * nbytes / (site.peer or site.bus))
        if site.peer or site.switch == 1 or site.gpus <= site.switch:
            return [[lanes]]
        outside = (site.gpus - site.switch) * nbytes / site.bus
        return [[lanes, (self._line("uplink", owner // site.switch), outside)]]

    def _over_links(self, owner: int, once_s: float) -> list[list[Stage]]:
        """One GPU of each half gets what its own half has, over all its links at once; then the owner what it got."""
        half = self._site.gpus // 2
        mates_s = min(1, half - 1) * once_s
        both = [(self._line("links", main), mates_s) for main in (owner, (owner + half) % self._site.gpus)]
        return [both, [(self._line("across", owner), once_s)]]


def parameter_server_step(compute_s: float, layers: tuple[Layer, ...], site: Site) -> float:
    """Seconds of one synchronous step: pull all variables, compute, push all gradients, sum them up.

    `compute_s` is the time that one GPU computes. With `spares`, hosts − spares of them are waited for, and the servers
    still take the gradients of all. Chance makes a worker's own part longer, not the time that it waits for servers.
    """
    compute_s *= slowest(site)
    whole, _ = _cycle(compute_s, layers, site, site.senders)
    if site.tail == 0:
        return whole
    own, _ = _cycle(compute_s, layers, site, min(1, site.senders))
    return whole + own * (slow_host(site) - 1)


def asynchronous_step(compute_s: float, layers: tuple[Layer, ...], site: Site) -> float:
    """Seconds between two steps of one worker that waits for no other: its own cycle, or its share of a busy line."""
    compute_s *= 1 + site.crowding
    alone, _ = _cycle(compute_s, layers, site, min(1, site.senders))
    _, busiest_s = _cycle(compute_s, layers, site, site.senders)
    return max(alone * slow_host(replace(site, hosts=1, spares=0)), busiest_s)


def _cycle(compute_s: float, layers: tuple[Layer, ...], site: Site, senders: int) -> tuple[float, float]:
    """End of one step of which each server serves `senders`, and how long its busiest line is busy."""
    pulls, pushes = Way(site, layers, senders), Way(site, layers, senders)
    forward, backward = compute_s * FORWARD, compute_s * (1 - FORWARD)
    now = passed = 0.0
    for layer in layers:
        needed = layer.depth * site.overlap
        now = max(now + (needed - passed) * forward, pulls.pull(layer, 0.0))
        passed = needed
    end = last = now + (1 - passed) * forward + backward
    for layer in reversed(layers):
        end = max(end, pushes.push(layer, last - layer.depth * site.overlap * backward))
    return end, max(pulls.busiest_s, pushes.busiest_s)


def all_reduce_step(compute_s: float, layers: tuple[Layer, ...], site: Site, collective: str = "ring") -> float:
    """Seconds of one step whose gradients are summed by a ring of each host's GPUs, then between the hosts.

    The hosts, too, are a "ring", or exchange halves ("halving"), or are a "tree" in which all bytes go up and down.
    Gradients are fused into few messages, so latency counts once. A step without contention takes what `formulas` says.
    """
    hosts, gpus = site.hosts, site.gpus
    hops = 2 * (hosts - 1) if collective == "ring" else 2 * math.ceil(math.log2(hosts))
    times = hops if collective == "tree" else 2 * (hosts - 1) / hosts
    compute = compute_s * slowest(site)
    inside, network, end = Line(), Line(), compute
    for layer in reversed(layers):
        ready = compute - layer.depth * site.overlap * compute * (1 - FORWARD)
        inside_s = 2 * (gpus - 1) / gpus * layer.nbytes / (site.peer or site.bus)
        end = max(end, carry([(inside, inside_s), (network, times * layer.nbytes / site.nic)], ready))
    return (end + hops * site.latency_s) * slow_host(site)


def copied_step(compute_s: float, layers: tuple[Layer, ...], site: Site) -> float:
    """Seconds of one step of one host whose GPUs have all variables each: gradients are copied together, the sums back.

    A GPU that sums up some variables gets the others' sums, too: by symmetry its lines are as long as if it did both
    for its own. A bus to the host carries both directions at once.
    """
    there = Way(site, layers, senders=0)
    back = there if site.sums_on_gpus else Way(site, layers, senders=0)
    end = compute = compute_s * slowest(site)
    for layer in reversed(layers):
        ready = compute - layer.depth * site.overlap * compute * (1 - FORWARD)
        end = max(end, back.pull(layer, there.push(layer, ready)))
    return end * slow_host(site)


def slowest(site: Site) -> float:
    """How much longer than one GPU alone the last one that is waited for computes."""
    waited = (site.hosts - site.spares) * site.gpus
    chance = site.jitter * exponential_order_statistic(waited, site.hosts * site.gpus)
    return (1 + chance) / (1 + site.jitter) * (1 + site.crowding)


def slow_host(site: Site) -> float:
    """How much longer than planned a step takes whose hosts and links others use, too: the median of the last host."""
    slower = (site.spares + 2 / 3) / (site.hosts + 1 / 3)  # part of all hosts that is slower still, by Blom
    return math.exp(-site.tail * math.log(slower))


@functools.lru_cache(256)
def _shared_out(layers: tuple[Layer, ...], holders: int) -> dict[Layer, int]:
    """The holder of each layer, which stays whole: the largest first, each to the one that holds least."""
    largest = sorted(layers, key=lambda layer: -layer.nbytes)
    return dict(zip(largest, greedy([layer.nbytes for layer in largest], holders), strict=True))
