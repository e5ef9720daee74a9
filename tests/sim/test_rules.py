"""One rule at a time, by hand: what the comparisons of whole runs leave to chance."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

from dtflab.sim.engine import critical_path, reductions
from dtflab.sim.engine.layer_costs import LayerTime
from dtflab.sim.engine.parameters import IDEAL
from dtflab.sim.engine.traffic import Shard, items
from dtflab.sim.engine.transfers import Flow, Wire, idle_wires
from dtflab.sim.estimates.estimate import _needed
from tests.sim.networks import cluster, layered

OVERHEAD, LATENCY = 0.25, 0.125


@pytest.mark.parametrize("run", [reductions.synchronous, reductions.messages_one_by_one])
@pytest.mark.parametrize(("workers", "overheads", "latencies"), [(2, 4, 2), (3, 3 + 3, 2)])
def test_a_message_costs_both_ends_their_overhead(run, workers, overheads, latencies):
    """Two workers send to and fro. Of three, the root's port takes one message behind the other, in and out."""
    values = dataclasses.replace(IDEAL, message_s=1e-3 * OVERHEAD)
    there = cluster(workers, 0, latency_s=LATENCY)
    ready = reductions.reduction(layered([1]), there, values, "tree", 1e9)
    taken = run(ready, np.ones((1, workers))).steps[0] - ready.items.compute_s
    assert taken == pytest.approx(1e-3 * overheads * OVERHEAD + latencies * LATENCY, abs=1e-7)


@pytest.mark.parametrize("bandwidths", [(10.0, 1000.0), (1000.0, 10.0)])
def test_alone_a_message_takes_the_narrowest_link_of_its_way(bandwidths):
    """Also if that comes first: its end lies behind that of the fast link after it."""
    job = SimpleNamespace(wires=[Wire(f"{b:g}", b, LATENCY, OVERHEAD) for b in bandwidths])
    flow = Flow([(0, 1)], np.array([50.0]), np.array([1]))
    parts = critical_path._transfer(job, flow, 0, "push", "w", 3.0, 13.0)
    narrowest = OVERHEAD * (1 + bandwidths.index(10.0)) + 50.0 / 10.0
    assert parts[0] == ("push", "w over 10", pytest.approx(narrowest + 2 * LATENCY))
    assert parts[1].seconds == pytest.approx(10.0 - parts[0].seconds)


def test_a_server_needs_all_its_shards_and_what_it_computes_itself():
    profile = layered([300, 500, 700])
    apart = cluster(2, 1)
    assert _needed(profile, apart, "greedy", 1)[apart.servers[0]] == 300 + 500 + 700
    colocated = cluster(2, 1, ps_colocated=True)
    held = _needed(profile, colocated, "greedy", 1)
    assert sum(held.values()) == 2 * profile.fetched_memory_bytes + 300 + 500 + 700


@pytest.mark.parametrize(("overhead_s", "idle"), [(0.0, {1}), (0.01, set())])
def test_a_faster_wire_makes_nobody_wait_unless_it_takes_time_for_each_message(overhead_s, idle):
    """A fast wire with an overhead may well be the slower one for a small message."""
    wires = [Wire("slow", 10.0), Wire("fast", 1000.0, overhead_s=overhead_s)]
    assert idle_wires(wires, [Flow([(0, 1)] * 3, np.ones(3), np.ones(3, int))]) == idle


def test_an_update_is_shared_out_by_the_bytes_of_a_layers_shards():
    held = [[Shard("a", 0, 10, 10, 10), Shard("b", 1, 30, 30, 30)], [Shard("c", 0, 5, 5, 5)]]
    made = items([LayerTime(1.0, 1.0, 4.0), LayerTime(1.0, 1.0, 7.0)], held)
    assert made.names == ["a", "b", "c"] and made.apply_s.tolist() == [1.0, 3.0, 7.0]
