"""The simulation gives what the formulas say, where nothing else is in the way."""

import dataclasses
import math
import random

import numpy as np
import pytest

from dtflab.sim import formulas
from dtflab.sim.engine import messages, pipelines, reductions, step_model, stragglers
from dtflab.sim.engine.job import job
from dtflab.sim.engine.parameters import IDEAL
from dtflab.train.collectives.schedule import schedule
from tests.sim.networks import cluster, layered

REL = 1e-9


@pytest.mark.parametrize("algorithm", ["ring", "tree", "halving_doubling"])
@pytest.mark.parametrize("workers", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("by_events", [False, True])
def test_all_reduce(algorithm, workers, by_events):
    latency_s, bandwidth, nbytes = 30e-6, 1.25e9, 4_000_000
    there = cluster(workers, 0, bandwidth=bandwidth, latency_s=latency_s)
    ready = reductions.reduction(layered([nbytes]), there, IDEAL, algorithm, 1e9)
    ready = dataclasses.replace(ready, sum_s_per_byte=0.0)
    run = reductions.messages_one_by_one if by_events else reductions.synchronous
    taken = run(ready, np.ones((2, workers))).steps[1] - ready.items.compute_s
    formula = getattr(formulas, f"{algorithm}_all_reduce_seconds")
    assert taken == pytest.approx(formula(workers, nbytes, latency_s, bandwidth), rel=REL, abs=1e-15)


def moments(workers, draw):
    """When workers are ready: at once, or within what a message takes, or much later."""
    longest = draw.choice([0.0, 3e-5, 1e-3, 1.0])
    return [draw.uniform(0, longest) for _ in range(workers)]


def until_all_have_it(algorithm, ready, *network):
    """Seconds from when the last worker is ready."""
    return max(formulas.all_reduce_ends(algorithm, ready, *network)) - max(ready)


NETWORK = 2_520_000, 30e-6, 1.25e9  # bytes, latency, bandwidth


@pytest.mark.parametrize("workers", range(1, 18))
def test_a_ring_takes_as_long_whenever_workers_are_ready(workers):
    draw = random.Random(workers)
    for _ in range(10):
        expected = formulas.ring_all_reduce_seconds(workers, *NETWORK)
        assert until_all_have_it("ring", moments(workers, draw), *NETWORK) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("workers", range(1, 18))
def test_the_formula_of_a_tree_bounds_all_and_is_exact_for_powers_of_two(workers):
    draw = random.Random(workers)
    levels = {1: 0, 2: 1, **dict.fromkeys((3, 4), 2), **dict.fromkeys(range(5, 9), 3), 17: 5}.get(workers, 4)
    bound = formulas.tree_all_reduce_seconds(workers, *NETWORK)
    assert bound == pytest.approx(2 * levels * (30e-6 + 2_520_000 / 1.25e9), rel=REL)
    assert len(schedule("tree", workers).reduce) == levels
    for _ in range(30):
        assert until_all_have_it("tree", moments(workers, draw), *NETWORK) <= bound + 1e-14
    at_once = until_all_have_it("tree", [0.0] * workers, *NETWORK)
    assert (at_once == pytest.approx(bound, rel=REL)) == (workers & (workers - 1) == 0)


@pytest.mark.parametrize("workers", [1, 2, 4, 8, 16])
def test_halving_and_doubling_of_workers_that_are_ready_at_once(workers):
    expected = formulas.halving_doubling_all_reduce_seconds(workers, *NETWORK)
    assert until_all_have_it("halving_doubling", [0.5] * workers, *NETWORK) == pytest.approx(expected, abs=1e-14)


def test_an_all_reduce_of_fewer_elements_than_pieces_is_refused():
    with pytest.raises(ValueError, match="12 bytes are 3 elements of 4 bytes, fewer than the 9 pieces"):
        formulas.all_reduce_ends("ring", [0.0] * 9, 12, 1e-5, 1e9, itemsize=4)
    assert len(formulas.all_reduce_ends("ring", [0.0] * 9, 12, 1e-5, 1e9)) == 9


def test_an_all_reduce_by_hand():
    """Three workers, 2 s a tensor on a port, 1 s of latency. The root's port takes one message after the other."""
    ends = formulas.all_reduce_ends("tree", [0.0, 0.0, 0.0], 2.0, 1.0, 1.0)
    assert ends == [5.0, 5 + 4 + 1, 5 + 2 + 1]  # both in by 4 + 1; then out to the second, and behind it to the first
    assert formulas.all_reduce_ends("tree", [0.0, 0.0, 7.0], 2.0, 1.0, 1.0) == [10.0, 15.0, 13.0]
    assert formulas.all_reduce_ends("tree", [9.0, 0.0, 0.0], 2.0, 1.0, 1.0) == [9.0, 14.0, 12.0]
    assert formulas.all_reduce_ends("ring", [4.0], 2.0, 1.0, 1.0) == [4.0]


def test_ring_all_reduce_adds_what_it_gets():
    ready = reductions.reduction(layered([8000]), cluster(4, 0, latency_s=1e-6), IDEAL, "ring", 1e9)
    ready = dataclasses.replace(ready, sum_s_per_byte=2e-10)
    for run in (reductions.synchronous, reductions.messages_one_by_one):
        taken = run(ready, np.ones((1, 4))).steps[0] - ready.items.compute_s
        assert taken == pytest.approx(formulas.ring_all_reduce_seconds(4, 8000, 1e-6, 1e9, 2e-10), rel=REL)


@pytest.mark.parametrize("engine", [step_model, messages])
@pytest.mark.parametrize(("sizes", "servers"), [([3e6], 1), ([1e6, 2e6, 8e6], 3), ([5e6, 5e6, 5e6], 2)])
@pytest.mark.parametrize("way", ["pull", "push"])
def test_the_hottest_server_decides_each_way(engine, sizes, servers, way):
    workers, bandwidth = 7, 1e9
    network = layered([int(size) for size in sizes], forward_s=0.0, backward_s=0.0)
    ready = job(network, cluster(workers, servers, bandwidth=bandwidth), IDEAL)
    other = "push" if way == "pull" else "pull"  # takes no time; together they overlap, a port sends while it receives
    ready = dataclasses.replace(
        ready, **{other: dataclasses.replace(getattr(ready, other), nbytes=0 * ready.push.nbytes)}
    )
    hottest = max(np.bincount(ready.items.server, ready.items.push_bytes))
    steps = engine.synchronous(ready, np.ones((3, workers)), workers).steps
    assert steps == pytest.approx(formulas.parameter_server_seconds(workers, hottest, bandwidth), rel=REL)


@pytest.mark.parametrize("stages", [1, 2, 4, 8])
@pytest.mark.parametrize("micro_batches", [1, 2, 10])
def test_the_bubble_of_a_pipeline(stages, micro_batches):
    there = cluster(1, 0, gpus_per_worker=stages)
    ready = pipelines.pipeline(layered([1000] * 16), there, IDEAL, micro_batches)
    record, _ = pipelines.run(ready, np.ones((2, stages)))
    idle = 1 - record.computing / record.seconds
    assert idle == pytest.approx(formulas.pipeline_bubble(stages, micro_batches), rel=REL, abs=1e-12)


@pytest.mark.parametrize("workers", [1, 2, 5, 20])
def test_staleness_of_workers_that_run_freely(workers):
    ready = job(layered([1]), cluster(workers, 1, bandwidth=math.inf), IDEAL)
    seen = messages.asynchronous(ready, np.ones((6, workers))).staleness
    assert seen[workers:].mean() == pytest.approx(formulas.mean_staleness(workers), rel=REL)


def test_the_kth_of_n_exponentials_is_what_the_simulation_waits_for():
    """Workers that compute 1 + an exponential time; the step is that of the k-th. Mean of 4,000 steps, 4 sigma."""
    workers, required, steps = 20, 16, 4000
    ready = job(layered([1], forward_s=0.0, backward_s=1.0), cluster(workers, 1, bandwidth=math.inf), IDEAL)
    factors = stragglers.exponential(0.5).factors(steps, workers, seed=1)
    waited = np.sort(factors, axis=1)[:, required - 1]
    record = step_model.synchronous(ready, factors[:1], required)
    assert record.steps[0] == pytest.approx(waited[0], rel=REL)
    expected = 1 + formulas.exponential_order_statistic(required, workers, 0.5)
    assert waited.mean() == pytest.approx(expected, abs=4 * waited.std() / math.sqrt(steps))


def test_order_statistics_add_up():
    sums = [formulas.exponential_order_statistic(k, 10, 2.0) for k in range(1, 11)]
    assert sums[0] == pytest.approx(2.0 / 10)  # the first of ten
    assert math.fsum(sums) == pytest.approx(10 * 2.0)  # all of them together


@pytest.mark.parametrize("delay", [0, 1, 2, 5, 20])
def test_gradient_descent_on_old_gradients_diverges_just_above_the_bound(delay):
    def grows(rate):
        x = [1.0] * (delay + 1)
        for _ in range(4000 * (delay + 1)):
            x.append(x[-1] - rate * x[-1 - delay])
        return max(map(abs, x[-100:])) > 1

    bound = formulas.divergence_learning_rate(delay)
    assert grows(bound * 1.01) and not grows(bound * 0.99)
    assert formulas.divergence_learning_rate(delay, 4.0) == bound / 4


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: formulas.halving_doubling_all_reduce_seconds(6, 1, 1, 1),
            "power of two workers, not 6: all_reduce_ends",
        ),
        (lambda: formulas.all_reduce_ends("star", [0.0], 1, 1, 1), "Unknown all-reduce algorithm 'star'"),
        (lambda: formulas.all_reduce_ends("ring", [], 1, 1, 1), "at least one worker, not 0"),
        (lambda: formulas.ring_all_reduce_seconds(0, 1, 1, 1), "workers must be at least 1, not 0"),
        (lambda: formulas.exponential_order_statistic(3, 2), "The 3-th of 2"),
        (lambda: formulas.divergence_learning_rate(-1), "delay must be a number of steps"),
    ],
)
def test_what_has_no_answer(call, message):
    with pytest.raises(ValueError, match=message):
        call()
