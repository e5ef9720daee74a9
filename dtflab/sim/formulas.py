"""Formulas: what theory says of collectives, parameter servers, pipelines, stragglers and staleness.

Left out: everything that only contention decides; for that there are `step_model` and `messages`.

Rule: closed forms, and one recurrence (`all_reduce_ends`) where there is no closed form. Tests hold the simulation to
them at 1e-9 where nothing else is in the way. Bytes, seconds and bytes per second everywhere.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from dtflab.train.collectives.schedule import bounds, schedule


def ring_all_reduce_seconds(
    workers: int, nbytes: float, latency_s: float, bandwidth: float, reduce_s_per_byte: float = 0.0
) -> float:
    """Ring all-reduce: each of `workers` sends 2(p−1) pieces of n/p bytes, and adds p−1 of those that it gets.

    Exact for any number of workers, counted from the moment at which the last one is ready.
    """
    p = _positive("workers", workers)
    piece = nbytes / p
    return 2 * (p - 1) * (latency_s + piece / bandwidth) + (p - 1) * piece * reduce_s_per_byte


def tree_all_reduce_seconds(workers: int, nbytes: float, latency_s: float, bandwidth: float) -> float:
    """Sum up a binary tree of `workers` leaves, then send the sum down again: all bytes on every level.

    Exact for 2^k workers that are ready at once. Otherwise latencies overlap and this is an upper bound, counted from
    the moment at which the last worker is ready; `all_reduce_ends` is exact.
    """
    return 2 * math.ceil(math.log2(_positive("workers", workers))) * (latency_s + nbytes / bandwidth)


def halving_doubling_all_reduce_seconds(workers: int, nbytes: float, latency_s: float, bandwidth: float) -> float:
    """Recursive halving, then doubling: log2 p exchanges each way, of n/2, n/4, … bytes. ValueError unless p = 2^k.

    Exact for workers that are ready at once; `all_reduce_ends` is exact for any others.
    """
    p = _positive("workers", workers)
    if p & (p - 1):
        raise ValueError(
            f"The formula of recursive halving and doubling needs a power of two workers, not {p}: all_reduce_ends is "
            "exact for any number."
        )
    return 2 * math.log2(p) * latency_s + 2 * (p - 1) / p * nbytes / bandwidth


def all_reduce_ends(
    algorithm: str,
    ready: Sequence[float],
    nbytes: float,
    latency_s: float,
    bandwidth: float,
    itemsize: int | None = None,
) -> list[float]:
    """When each worker has the sum, if worker w has its own tensor at `ready[w]`; in seconds.

    Exact for any number of workers and any moments: it walks through the messages of `algorithm` ("ring", "tree",
    "halving_doubling") in the order in which they are sent. Each worker has a port out and a port in, which serve
    messages first come, first served. With `itemsize`, the bytes of an element, a piece holds whole elements, as in a
    graph, and there must be one for each piece; without it, all pieces are equally large. Adding takes no time.
    ValueError for an unknown algorithm, without workers, or with fewer elements than pieces.
    """
    plan = schedule(algorithm, len(ready))
    cuts = [nbytes * piece / plan.pieces for piece in range(plan.pieces + 1)]
    if itemsize is not None:
        if (elements := round(nbytes / itemsize)) < plan.pieces:
            raise ValueError(
                f"{nbytes:g} bytes are {elements} elements of {itemsize} bytes, fewer than the {plan.pieces} pieces of "
                f"{algorithm} for {len(ready)} workers. Leave itemsize out for pieces of equal size."
            )
        cuts = [float(itemsize * element) for element in bounds(elements, plan.pieces)]
    rounds = [{message.source: message for message in messages} for messages in plan.reduce + plan.gather]
    missing = Counter((message.target, i) for i, messages in enumerate(rounds) for message in messages.values())
    latest: dict[tuple[int, int], float] = {}
    free_out, free_in, ends = [-math.inf] * len(ready), [-math.inf] * len(ready), list(ready)
    heap = [(moment, 0, worker) for worker, moment in enumerate(ready)]  # when each worker comes to which round
    heapify(heap)

    def has(worker: int, number: int, moment: float) -> None:
        """A worker leaves a round once it has come to it and has got all messages of it."""
        place = worker, number
        latest[place] = max(moment, latest.get(place, moment))
        missing[place] -= 1
        if missing[place] < 0:
            heappush(heap, (latest[place], number + 1, worker))

    while heap:
        moment, number, worker = heappop(heap)
        if number == len(rounds):
            ends[worker] = moment
            continue
        has(worker, number, moment)
        if message := rounds[number].get(worker):
            seconds = (cuts[message.last] - cuts[message.first]) / bandwidth
            begin = max(moment, free_out[worker])
            free_out[worker] = begin + seconds
            free_in[message.target] = end = max(begin, free_in[message.target]) + seconds
            has(message.target, number, end + latency_s)
    return ends


def parameter_server_seconds(workers: int, hottest_bytes: float, bandwidth: float) -> float:
    """One way, all pulls or all pushes: the server that holds most bytes serves `workers` times as many."""
    return _positive("workers", workers) * hottest_bytes / bandwidth


def pipeline_bubble(stages: int, micro_batches: int) -> float:
    """The part of its time for which a stage of a pipeline idles, (K−1)/(M+K−1): all stages are equally long."""
    k, m = _positive("stages", stages), _positive("micro_batches", micro_batches)
    return (k - 1) / (m + k - 1)


def exponential_order_statistic(k: int, n: int, mean: float = 1.0) -> float:
    """The expected k-th smallest of n independent exponential times: mean · (H_n − H_(n−k))."""
    if not 1 <= k <= n:
        raise ValueError(f"The {k}-th of {n} times does not exist: 1 ≤ k ≤ n.")
    return mean * math.fsum(1 / i for i in range(n - k + 1, n + 1))


def mean_staleness(workers: int) -> int:
    """Updates by others between a worker's pull and its own update: all run freely, none is faster."""
    return _positive("workers", workers) - 1


def divergence_learning_rate(delay: int, curvature: float = 1.0) -> float:
    """Above this learning rate gradient descent on ½λx² diverges if gradients are `delay` steps old; λ: `curvature`."""
    if delay < 0:
        raise ValueError(f"delay must be a number of steps, 0 or more, not {delay}.")
    return 2 * math.sin(math.pi / (2 * (2 * delay + 1))) / curvature


def _positive(name: str, count: int) -> int:
    if count < 1:
        raise ValueError(f"{name} must be at least 1, not {count}.")
    return count
