"""Theory of stale gradients, and the cures against them, on a parabola in virtual time."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dtflab as tf
from dtflab.sim import formulas
from dtflab.sim.races import Run

CARD = tf.sim.Processor(
    "a slow card", "GPU", {"float32": 1e9}, memory_bytes=1 << 30, memory_bandwidth=1e9, launch_s=5e-3, cores=1,
    source="assumed: a step takes much longer than its messages",
)  # fmt: skip
SECONDS = 4.0


def parabola(client, way):
    """Descend x²/2 from x = 1: pairs (virtual seconds, |x|). Workers begin one after the other."""
    hooks = []
    place = tf.train.replica_device_setter(
        cluster=client.cluster_spec, ps_device="/job:ps/cpu:0", worker_device=f"{client.device}/gpu:0"
    )
    with tf.device(place):
        x = tf.get_variable("x", [], tf.float64, initializer=tf.ones_initializer())
        step = tf.train.get_or_create_global_step()
        optimizer = tf.train.GradientDescentOptimizer(way["rate"])
        if "aggregate" in way:
            workers = client.cluster_spec.num_tasks("worker")
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, way["aggregate"], workers)
            hooks.append(optimizer.make_session_run_hook(client.is_chief))
        optimizer = tf.train.StalenessOptimizer(optimizer, client.index, **way.get("cures", {}))
        train = optimizer.minimize(tf.square(x) / 2, global_step=step)
        hooks.append(optimizer.make_session_run_hook())
        pulled = tf.identity(x)
    points = []
    with tf.train.MonitoredTrainingSession(
        client.target, is_chief=client.is_chief, hooks=hooks, stop_grace_period_secs=1
    ) as session:
        end = tf.sim.now() + way.get("seconds", SECONDS)
        tf.sim.sleep(way.get("stagger", 0.0) * client.index)
        forever = "aggregate" in way and not client.is_chief
        while not session.should_stop() and (forever or tf.sim.now() < end):
            points.append((tf.sim.now(), abs(session.run([pulled, train])[0])))
    return points


def race(ways, workers, **how):
    return tf.sim.race(parabola, ways, workers=workers, gpus=1, gpu=CARD, **how)


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_gradients_of_equal_workers_are_stale_by_all_the_others(workers):
    log = race({"free": {"rate": 0.01, "stagger": 2e-3}}, workers)["free"].staleness
    settled = log.staleness[workers * 2 :]
    assert len(settled) > 100 and set(settled.tolist()) == {formulas.mean_staleness(workers)}


def test_the_mean_stays_when_steps_vary():
    log = race({"free": {"rate": 0.01}}, 8, stragglers=tf.sim.lognormal(0.3))["free"].staleness
    assert log.mean() == pytest.approx(formulas.mean_staleness(8), rel=0.05) and log.staleness.std() > 0.5


@pytest.mark.parametrize("workers", [2, 4])
def test_with_a_delay_descent_diverges_where_theory_says(workers):
    delay = workers - 1
    edge = formulas.divergence_learning_rate(delay)
    runs = race({share: {"rate": share * edge, "stagger": 2e-3, "seconds": 9.0} for share in (0.96, 1.04)}, workers)
    ends = {share: run.losses[-30:].max() for share, run in runs.items()}
    for run in runs.values():
        assert set(run.staleness.staleness[workers * 2 :].tolist()) == {delay}
    assert ends[0.96] < 0.5 and ends[1.04] > 2
    alone = race({"one": {"rate": 1.04 * edge, "seconds": 1.0}}, 1)["one"]  # the same rate, nothing stale
    assert alone.losses[-1] < 1e-6


def test_a_synchronous_step_lasts_as_long_as_the_slowest_worker():
    way = {"rate": 0.01, "aggregate": 6, "seconds": 8.0}
    plain, varied = (race({"all": way}, 6, stragglers=tf.sim.exponential(mean))["all"] for mean in (0.0, 1.0))
    one, mean = (np.diff(run.seconds[2:]).mean() for run in (plain, varied))
    assert mean / one == pytest.approx(1 + formulas.exponential_order_statistic(6, 6), rel=0.1)


RATE = 0.49  # beyond the edge for a delay of 3, 0.445; below that of four gradients of one point at once, 2/4
CURES = {
    "drop what is stale": {"rate": RATE, "cures": {"drop_above": 1}},
    "divide by staleness": {"rate": RATE, "cures": {"scale": True}},
    "bound of 0": {"rate": RATE, "cures": {"max_ahead": 0, "num_workers": 4}},
    "lower rate": {"rate": RATE / 4},
    "synchronous": {"rate": RATE, "aggregate": 4},
    "one spare": {"rate": RATE, "aggregate": 3},
}


@pytest.fixture(scope="module")
def cured():
    """The losses of seven races of thirty workers: ten seconds, so the tests that look at them are slow."""
    ways = {"nothing": {"rate": RATE}, "warm-up alone": {"rate": RATE, "cures": {"warm_up_steps": 40}}}
    return race({name: {"stagger": 2e-3, **way} for name, way in {**ways, **CURES}.items()}, 4)


@pytest.mark.slow
def test_stale_gradients_diverge_at_a_rate_at_which_fresh_ones_do_not(cured):
    assert cured["nothing"].losses[-30:].max() > 10


@pytest.mark.slow
@pytest.mark.parametrize("cure", CURES)
def test_each_cure_helps(cured, cure):
    assert cured[cure].losses[-1] < 1e-3 < 1 < cured["nothing"].losses[-1]


@pytest.mark.slow
def test_warm_up_only_postpones(cured):
    late, early = cured["warm-up alone"], cured["nothing"]
    assert late.losses.min() < 1e-6 and late.losses[-1] > late.losses.min()
    assert late.losses[-1] < early.losses[-1]


@pytest.mark.slow
def test_what_a_run_tells(cured):
    run = cured["synchronous"]
    assert run.loss_at([-1, 0, 1e9])[1:].tolist() == [run.losses[0], run.losses[-1]]
    assert np.isnan(run.loss_at([-1]))[0]
    assert run.reaches(2.0) == 0 and run.reaches(-1.0) == math.inf
    seconds = run.reaches(0.5)
    assert run.loss_at(seconds) <= 0.5 < run.loss_at(seconds - 1e-9)
    starts, counts = run.pulled(0.1, 1.0, 2.0)
    assert np.allclose(starts, np.arange(1.0, 2.0, 0.1)) and len(counts) == 10
    arrived = run.pulls[(run.pulls[:, 0] >= 1) & (run.pulls[:, 0] < 2)]
    assert counts.sum() == arrived[:, 1].sum() > 0
    assert cured["nothing"].steps > 3 * run.steps  # each step of all four takes four gradients
    assert run.steps_per_minute == pytest.approx(60 * run.steps / run.staleness.seconds[-1])


@pytest.mark.parametrize("asked", [(0, 0, 1), (-0.1, 0, 1), (math.nan, 0, 1), (0.1, 2, 1)])
def test_pieces_of_time_need_a_width(asked):
    run = Run(np.zeros(1), np.zeros(1), tf.train.StalenessLog.of_rows(np.zeros([0, 6])), np.zeros([0, 2]))
    with pytest.raises(ValueError, match="width is above 0, last not before first"):
        run.pulled(*asked)


def test_workers_are_counted_in_one_way():
    with pytest.raises(TypeError, match="workers=, not worker=3"):
        tf.sim.race(lambda client, way: [(0.0, 1.0)], {"idle": 1}, worker=3)


def test_equal_seeds_make_equal_races():
    one, other = (race({"way": {"rate": 0.1}}, 3, seed=5, stragglers=tf.sim.lognormal(0.3))["way"] for _ in range(2))
    assert np.array_equal(one.losses, other.losses) and np.array_equal(one.pulls, other.pulls)


@pytest.mark.parametrize("returned", [None, [], "ab", [(1, 2), (3,)]], ids=["None", "nothing", "text", "ragged"])
def test_a_program_that_returns_no_pairs_is_told(returned):
    with pytest.raises(ValueError, match=r"must return pairs \(seconds, loss\)"):
        tf.sim.race(lambda client, way: returned, {"idle": 1}, workers=1)


def test_without_a_log_there_is_no_rate():
    run = tf.sim.race(lambda client, way: [(0.0, 1.0), (1.0, 0.5)], {"unmeasured": 1}, workers=1)["unmeasured"]
    assert math.isnan(run.steps_per_minute) and run.reaches(0.7) == 1.0


def test_a_watched_race_has_a_line_for_each_way_from_its_first_step_on():
    def program(client, way):
        points = parabola(client, way)
        for seconds, value in points:
            client.report(value + client.index, step=seconds)
        return points

    live = tf.viz.live("|x|", over="virtual time (s)", show=False)
    ways = {"slow": {"rate": 0.01}, "fast": {"rate": 0.1}}
    runs = tf.sim.race(program, ways, workers=2, gpus=1, gpu=CARD, watch=live)
    lines = {pen["name"]: line for pen, line in zip(*map(live.picture.living_data.get, ("pens", "lines")), strict=True)}
    for name, run in runs.items():
        _, xs, ys = lines[name]
        kept = np.searchsorted(run.seconds, xs)
        assert xs[0] == 0 and len(xs) > 100
        assert np.array_equal(run.seconds[kept], xs) and np.array_equal(run.losses[kept], ys)
