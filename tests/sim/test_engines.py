"""The vectorized engine and the one by events simulate the same job, and give the same times to 1e-12."""

import dataclasses
import random

import numpy as np
import pytest

from dtflab.hardware.cut_through import pass_link
from dtflab.sim.engine import messages, reductions, step_model, stragglers
from dtflab.sim.engine.job import Input, job
from dtflab.sim.engine.parameters import IDEAL
from dtflab.sim.engine.transfers import Batch, Flow, Wire, idle_wires
from dtflab.sim.formulas import all_reduce_ends
from tests.sim.networks import cluster, layered

SIZES = [40_000, 300_000, 5_000, 900_000, 120_000, 60_000]
BUSY = dataclasses.replace(IDEAL, message_s=1e-5)
CLUSTERS = {
    "one worker": {},
    "contention": {"workers": 8, "ps_tasks": 3},
    "servers next to workers": {"workers": 8, "ps_tasks": 4, "ps_colocated": True},
    "GPUs that share a host": {"workers": 3, "ps_tasks": 2, "gpus_per_worker": 4},
    "workers that share a host": {"workers": 6, "ps_tasks": 2, "workers_per_host": 3},
    "one host": {"workers": 1, "ps_tasks": 0, "gpus_per_worker": 4},
    "racks": {"workers": 6, "ps_tasks": 2, "racks": 3},
}


def a_job(name, sizes=SIZES, **options):
    there = cluster(**{"latency_s": 2e-5, "bandwidth": 1e8, **CLUSTERS[name]})
    return job(layered(sizes, forward_s=0.003, backward_s=0.006), there, BUSY, **options)


def drawn(ready, steps=6, sigma=0.2):
    return stragglers.lognormal(sigma).factors(steps, ready.devices, seed=3)


def same(one, two, rel=1e-12):
    for field in ("updates", "steps", "started", "ended", "computing", "busy", "staleness", "dropped", "examples"):
        assert getattr(one, field) == pytest.approx(getattr(two, field), rel=rel, nan_ok=True), field
    for name, ours, theirs in zip(one.trace._fields, one.trace, two.trace, strict=True):
        assert ours == pytest.approx(theirs, rel=rel, nan_ok=True), name


@pytest.mark.parametrize("name", CLUSTERS)
@pytest.mark.parametrize("sigma", [0.0, 0.2])
@pytest.mark.parametrize("trace", [False, True])
def test_synchronous_steps_are_equal_under_any_contention(name, sigma, trace):
    ready = a_job(name)
    factors = drawn(ready, sigma=sigma)
    runs = [engine.synchronous(ready, factors, ready.workers, trace) for engine in (step_model, messages)]
    same(*runs)
    assert runs[0].steps.min() > ready.items.compute_s * factors.min()  # they do wait for messages


@pytest.mark.parametrize(
    "options", [{"local_aggregation": False}, {"strategy": "round_robin", "parts": 2}, {"most": 4}]
)
def test_equal_however_variables_are_placed(options):
    ready = a_job("GPUs that share a host", **options)
    factors = drawn(ready)
    same(*(engine.synchronous(ready, factors, ready.workers, True) for engine in (step_model, messages)))


@pytest.mark.parametrize("read", [False, True])
def test_equal_with_a_file_server(read):
    ready = a_job("contention", input=Input(2e5, 1e9, read))
    factors = drawn(ready)
    fed = [engine.synchronous(ready, factors, ready.workers, True) for engine in (step_model, messages)]
    same(*fed)
    assert fed[0].seconds > step_model.synchronous(a_job("contention"), factors, ready.workers).seconds


@pytest.mark.parametrize("name", CLUSTERS)
@pytest.mark.parametrize("chance", [stragglers.exponential(0.5), stragglers.exponential(0.01), stragglers.uniform(0.3)])
def test_spares_are_equal_however_late_they_come(name, chance):
    ready = a_job(name)
    factors = chance.factors(20, ready.devices, 1)
    runs = [engine.synchronous(ready, factors, max(1, ready.workers - 2), True) for engine in (step_model, messages)]
    same(*runs)
    assert runs[0].dropped > 0 or ready.workers == 1


def test_spares_that_are_not_a_whole_step_late_need_no_events(monkeypatch):
    """Otherwise an estimate of hundreds of workers takes minutes instead of a fraction of a second."""
    ready = a_job("contention")
    factors = stragglers.uniform(0.3).factors(20, ready.devices, 1)
    expected = messages.synchronous(ready, factors, 6)
    monkeypatch.delattr(messages, "synchronous")
    same(step_model.synchronous(ready, factors, 6), expected)
    assert expected.dropped > 0


AWKWARD = [3, 5, 6, 7, 8]  # workers


def random_cluster(draw, workers, ps_tasks):
    """Workers on hosts of their own, sharing hosts or racks, or with several GPUs that share lanes."""
    options = draw.choice([
        {}, {"gpus_per_worker": 4}, {"workers_per_host": 3}, {"racks": 3}, {"gpus_per_worker": 2, "bus": "pcie3-tree"},
        {"ps_colocated": True} if ps_tasks else {},
    ])  # fmt: skip
    network = {"bandwidth": draw.choice([1e8, 1e9]), "latency_s": draw.choice([0.0, 2e-5])}
    return cluster(workers, ps_tasks, **network, **options)


def random_network(draw):
    sizes = [draw.randint(1, 10**6) for _ in range(draw.randint(1, 6))]
    return layered(sizes, draw.choice([0.001, 0.02]), draw.choice([0.002, 0.04]))


def random_values(draw):
    return dataclasses.replace(IDEAL, message_s=draw.choice([0.0, 1e-5]), overlap=draw.choice([1.0, 0.2]))


def random_factors(draw, devices):
    """Equal devices too: then messages meet at the same moment."""
    chance = draw.choice([stragglers.lognormal(s) for s in (0.0, 0.01, 0.2)] + [stragglers.exponential(0.5)])
    return chance.factors(8, devices, draw.randrange(1000))


@pytest.mark.parametrize("workers", AWKWARD)
@pytest.mark.parametrize("seed", range(8))
def test_random_jobs_with_servers(workers, seed):
    draw = random.Random(f"{workers} {seed}")
    there, together = random_cluster(draw, workers, draw.choice([1, 2, 3, 5])), draw.random() < 0.7
    ready = job(random_network(draw), there, random_values(draw), local_aggregation=together)
    factors = random_factors(draw, ready.devices)
    for required in (ready.workers, ready.workers - 1, ready.workers - 2):
        same(*(engine.synchronous(ready, factors, required, True) for engine in (step_model, messages)))


@pytest.mark.parametrize("algorithm", ["ring", "tree", "halving_doubling"])
@pytest.mark.parametrize("workers", AWKWARD)
@pytest.mark.parametrize("seed", range(5))
def test_random_jobs_without_servers(algorithm, workers, seed):
    draw = random.Random(f"{algorithm} {workers} {seed}")
    there, fusion_bytes = random_cluster(draw, workers, 0), draw.choice([0, 300_000, 1e9])
    ready = reductions.reduction(random_network(draw), there, random_values(draw), algorithm, fusion_bytes)
    factors = random_factors(draw, ready.devices)
    same(*(run(ready, factors, True) for run in (reductions.synchronous, reductions.messages_one_by_one)))


@pytest.mark.parametrize("algorithm", ["ring", "tree", "halving_doubling"])
@pytest.mark.parametrize("workers", range(1, 10))
def test_an_all_reduce_of_either_engine_is_exact(algorithm, workers):
    """Every device ends when `formulas.all_reduce_ends` says, which tests/virtual holds to runs in virtual time."""
    draw = random.Random(f"{algorithm} {workers}")
    there = cluster(workers, 0, bandwidth=1e9, latency_s=5e-5)
    ready = reductions.reduction(layered([20160], 0.0, 1.0), there, IDEAL, algorithm, 1e9)
    ready = dataclasses.replace(ready, sum_s_per_byte=0.0)
    for longest in (0.0, 6e-5, 3e-4, 1.0):
        factors = np.array([[1 + draw.uniform(0, longest) for _ in range(workers)]])
        expected = all_reduce_ends(algorithm, factors[0].tolist(), 20160, 5e-5, 1e9)
        for run in (reductions.synchronous, reductions.messages_one_by_one):
            assert run(ready, factors, True).trace.pushed[0, 0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("run", [reductions.synchronous, reductions.messages_one_by_one])
def test_a_device_adds_what_came_before_it_was_ready(run):
    """An Add has two inputs, as in a graph, and the device's own is one of them."""
    there = cluster(2, 0, bandwidth=1e9, latency_s=5e-5)
    ready = reductions.reduction(layered([8000], 0.0, 1.0), there, IDEAL, "tree", 1e9)
    ready = dataclasses.replace(ready, sum_s_per_byte=1e-9)
    pushed = run(ready, np.array([[3.0, 1.0]]), True).trace.pushed[0, 0]
    assert pushed == pytest.approx([3 + 8e-6, 3 + 8e-6 + 8e-6 + 5e-5], rel=1e-12)


def test_layers_taken_together_are_within_a_tenth():
    """The vectorized engine takes layers together above 20,000 messages: sixteen layers as four items."""
    fine, coarse = (
        job(layered([200_000] * 48, 0.001, 0.002), cluster(8, 2, bandwidth=1e9), BUSY, most=most) for most in (None, 16)
    )
    assert len(coarse.items.names) <= 16 < len(fine.items.names)
    assert coarse.items.messages.sum() == 48
    assert coarse.held_s == pytest.approx(fine.held_s)  # nothing is lost
    seconds = [step_model.synchronous(ready, drawn(fine), 8).seconds for ready in (fine, coarse)]
    assert seconds[1] == pytest.approx(seconds[0], rel=0.1)


# ---- the scan itself ----


def one_by_one(wires, flow, sent, free):
    """The rule of hardware/cut_through.py, a message at a time."""
    arrived = np.zeros(len(flow.routes))
    for i in sorted(range(len(flow.routes)), key=lambda i: (sent[i], i)):
        start, end, latency = sent[i], sent[i], 0.0
        for number in flow.routes[i]:
            wire = wires[number]
            held = wire.overhead_s * flow.counts[i]
            start, end, free[number] = pass_link(start, end, free[number], held + flow.nbytes[i] / wire.bandwidth)
            start, latency = start + held, latency + wire.latency_s
        arrived[i] = end + latency
    return arrived


def random_flow(draw):
    wires = [
        Wire(f"{i}", draw.choice([1.0, 2.0, 5.0, np.inf]), draw.random(), draw.choice([0.0, 0.3])) for i in range(9)
    ]
    count = draw.randint(1, 40)
    routes = [tuple(sorted(draw.sample(range(9), draw.randint(0, 4)))) for _ in range(count)]
    sizes = np.array([draw.choice([0.0, 1.0, 3 * draw.random()]) for _ in range(count)])
    return wires, Flow(routes, sizes, np.array([draw.randint(1, 3) for _ in range(count)]))


@pytest.mark.parametrize("seed", range(60))
def test_a_batch_is_the_rule_message_by_message(seed):
    draw = random.Random(seed)
    wires, flow = random_flow(draw)
    batch, free, expected = Batch(wires, flow), np.zeros(len(wires)), np.zeros(len(wires))
    for again in range(2):
        sent = again + np.array([draw.choice([0.0, 1.0, 5 * draw.random()]) for _ in flow.routes])
        assert batch.arrivals(sent, free) == pytest.approx(one_by_one(wires, flow, sent, expected), rel=1e-12)
        assert free == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_idle_wires_change_nothing(seed):
    draw = random.Random(seed)
    wires = [Wire(f"{i}", draw.choice([1.0, 2.0, 4.0, 8.0])) for i in range(6)]
    routes = [(i % 2, 2 + i % 2, 4 + i % 2) for i in range(12)]
    flow = Flow(routes, np.array([draw.random() for _ in routes]), np.ones(12))
    idle = idle_wires(wires, [flow])
    assert len(idle) >= 2  # of three wires in a row that the same messages pass, one is slower than another
    sent = np.array([draw.random() for _ in routes])
    arrivals = [Batch(wires, flow, which).arrivals(sent, np.zeros(6)) for which in (frozenset(), idle)]
    assert arrivals[0] == pytest.approx(arrivals[1], rel=1e-12)


def test_routes_in_a_circle_are_refused():
    wires = [Wire("a", 1.0), Wire("b", 1.0)]
    with pytest.raises(ValueError, match="form a cycle"):
        Batch(wires, Flow([(0, 1), (1, 0)], np.ones(2), np.ones(2)))
