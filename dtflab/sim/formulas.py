"""Formulas: what theory says of collectives, parameter servers, pipelines, stragglers and staleness.

Left out: everything that only contention decides; for that there are `step_model` and `messages`.

Rule: closed forms only. Tests hold the simulation to them at 1e-9 where nothing else is in the way. Bytes, seconds and
bytes per second everywhere.
"""

from __future__ import annotations

import math


def ring_all_reduce_seconds(
    workers: int, nbytes: float, latency_s: float, bandwidth: float, reduce_s_per_byte: float = 0.0
) -> float:
    """Ring all-reduce: each of `workers` sends 2(p−1) pieces of n/p bytes, and adds p−1 of those that it gets."""
    p = _positive("workers", workers)
    piece = nbytes / p
    return 2 * (p - 1) * (latency_s + piece / bandwidth) + (p - 1) * piece * reduce_s_per_byte


def tree_all_reduce_seconds(workers: int, nbytes: float, latency_s: float, bandwidth: float) -> float:
    """Sum up a binary tree of `workers` leaves, then send the sum down again: all bytes on every level."""
    return 2 * math.ceil(math.log2(_positive("workers", workers))) * (latency_s + nbytes / bandwidth)


def halving_doubling_all_reduce_seconds(workers: int, nbytes: float, latency_s: float, bandwidth: float) -> float:
    """Recursive halving, then doubling: log2 p exchanges each way, of n/2, n/4, … bytes. ValueError unless p = 2^k."""
    p = _positive("workers", workers)
    if p & (p - 1):
        raise ValueError(f"Recursive halving and doubling takes a power of two workers, not {p}: use ring or tree.")
    return 2 * math.log2(p) * latency_s + 2 * (p - 1) / p * nbytes / bandwidth


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
        raise ValueError(f"delay counts steps and is ≥ 0, not {delay}.")
    return 2 * math.sin(math.pi / (2 * (2 * delay + 1))) / curvature


def _positive(name: str, count: int) -> int:
    if count < 1:
        raise ValueError(f"{name} must be at least 1, not {count}.")
    return count
