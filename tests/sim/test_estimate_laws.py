"""Laws of any model of time: what must hold whatever the numbers are."""

import dataclasses
import random

import numpy as np
import pytest

from dtflab.hardware.parts import Nic
from dtflab.sim.engine import messages, step_model
from dtflab.sim.engine.cluster_models import rebuilt
from dtflab.sim.engine.job import job
from dtflab.sim.engine.layer_costs import Kernel
from dtflab.sim.engine.parameters import IDEAL, Parameters
from dtflab.sim.engine.stragglers import lognormal
from dtflab.sim.estimates.estimate import estimate
from tests.sim.networks import BUS, GPU, cluster, layered

SIZES = [400_000, 3_000_000, 50_000, 9_000_000, 1_200_000]
MODES = {
    "ps_sync": {},
    "ps_async": {},
    "ps_sync_spares": {"spares": 1},
    "allreduce": {},
    "pipeline": {"micro_batches": 5},
}


def seconds(network, there, mode="ps_sync", steps=6, **options):
    """Per example."""
    given = {"parameters": IDEAL, **MODES[mode], **options}
    return 1 / estimate(network, there, steps, mode, **given).throughput


@pytest.mark.parametrize("mode", ["ps_sync", "ps_async", "ps_sync_spares", "allreduce"])
def test_half_the_bandwidth_doubles_the_time_of_a_full_link(mode):
    network = layered(SIZES, forward_s=0.0, backward_s=1e-9)
    one, half = (seconds(network, cluster(4, 2, bandwidth=b), mode) for b in (1e8, 0.5e8))
    assert half == pytest.approx(2 * one, rel=1e-6)


@pytest.mark.parametrize("mode", ["ps_sync", "ps_async", "allreduce"])
@pytest.mark.parametrize("workers", [1, 3, 8])
def test_an_ideal_network_scales_linearly(mode, workers):
    network = layered(SIZES)
    there = cluster(workers, 2, bandwidth=float("inf"))
    found = estimate(network, there, 4, mode, parameters=IDEAL)
    assert found.speedup == pytest.approx(workers, rel=1e-6)
    assert found.efficiency == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("engine", [step_model, messages])
@pytest.mark.parametrize("required", [6, 4])
def test_who_is_slow_does_not_matter(engine, required):
    """Workers are alike: under other numbers the same times come out, exactly where no two send at one moment.

    Messages sent at one moment go in the order of the workers' numbers, so where all pull at once they do matter.
    """
    factors, order = lognormal(0.3).factors(8, 6, seed=1), [3, 5, 0, 1, 4, 2]
    ready = job(layered(SIZES), cluster(6, 2, bandwidth=1e8), IDEAL)
    pushing = dataclasses.replace(ready, pull=dataclasses.replace(ready.pull, nbytes=0 * ready.pull.nbytes))
    for one, rel in ((pushing, 1e-9), (ready, 0.06)):
        runs = [engine.synchronous(one, drawn, required).updates for drawn in (factors, factors[:, order])]
        assert runs[1] == pytest.approx(runs[0], rel=rel)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("k", [0.25, 7.0])
def test_all_times_as_long_make_the_run_as_long(mode, k):
    def taken(k):
        bus = dataclasses.replace(BUS, bandwidth=1e9 / k, latency_s=k * 1e-5)
        gpu = dataclasses.replace(GPU, peak_flops={"float32": 1e12 / k}, memory_bandwidth=1e11 / k, launch_s=k * 1e-3)
        there = cluster(4, 2, bandwidth=1e8 / k, latency_s=k * 1e-4, bus=bus, gpu=gpu)
        machines = rebuilt(there.machines, lambda host: dataclasses.replace(host, cpu=slower(host.cpu, k)))
        values = dataclasses.replace(IDEAL, message_s=k * 1e-4)
        network = layered(SIZES, output_bytes=100_000)
        return seconds(network, dataclasses.replace(there, machines=machines), mode, parameters=values)

    def slower(cpu, k):
        return dataclasses.replace(cpu, peak_flops={"float32": 1e11 / k}, memory_bandwidth=1e10 / k, launch_s=k * 1e-4)

    assert taken(k) == pytest.approx(k * taken(1.0), rel=1e-9)


def a_platform(draw, mode):
    """A network, and the arguments of a cluster."""
    workers = draw.randint(1, 8)
    options = {
        "workers": workers,
        "ps_tasks": draw.randint(1, 4),
        "gpus_per_worker": draw.choice([1, 1, 2, 4]),
        "bandwidth": 10 ** draw.uniform(7, 10),
        "latency_s": 10 ** draw.uniform(-6, -3),
    }
    sizes = [
        int(10 ** draw.uniform(3, 7)) for _ in range(draw.randint(8, 40) if mode == "pipeline" else draw.randint(1, 9))
    ]
    if mode == "pipeline":
        options |= {"workers": draw.randint(1, 2)}
    network = layered(sizes, 10 ** draw.uniform(-4, -1), 10 ** draw.uniform(-4, -1), output_bytes=100_000)
    return network, options


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(20))
def test_more_bandwidth_never_hurts(mode, seed):
    """A hundred random platforms, five modes."""
    draw = random.Random(100 * seed + len(mode))
    network, options = a_platform(draw, mode)
    spares = {"spares": min(1, options["workers"] - 1)} if mode == "ps_sync_spares" else {}
    stragglers = lognormal(draw.choice([0.0, 0.3]))
    before = seconds(network, cluster(**options), mode, stragglers=stragglers, **spares)
    options["bandwidth"] *= draw.uniform(1.1, 20)
    assert seconds(network, cluster(**options), mode, stragglers=stragglers, **spares) <= before * (1 + 1e-9)


@pytest.mark.parametrize("count", [8, 16])
def test_racks_without_oversubscription_do_not_delay_free_running_workers(count):
    network = layered([1_000_000] * count, 1e-3, 2e-3)
    one, two = (
        estimate(network, cluster(count, count, racks=racks, bandwidth=1e8), 6, "ps_async", parameters=IDEAL)
        for racks in (1, 2)
    )
    assert two.step_time == pytest.approx(one.step_time)


@pytest.mark.parametrize("engine", ["vectorized", "events"])
def test_a_servers_card_is_not_held_by_a_slow_bus(engine):
    """Eight workers whose buses have an eighth of the network's bandwidth push at once: each as if it were alone."""
    bus = dataclasses.replace(BUS, bandwidth=1e8)
    alone, eight = (
        estimate(layered([1_000_000], 0, 0), cluster(n, 1, bandwidth=8e8, bus=bus), 1, parameters=IDEAL, engine=engine)
        for n in (1, 8)
    )
    last_begins = 7 * 1_000_000 / 8e8  # the server sends one variable after the other
    assert eight.step_time == pytest.approx(alone.step_time + last_begins)


@pytest.mark.parametrize("mode", ["ps_sync", "ps_sync_spares", "allreduce"])
def test_more_workers_never_make_a_step_shorter(mode):
    network = layered(SIZES)
    steps = [
        estimate(network, cluster(n, 2, bandwidth=1e8), 3, mode, parameters=IDEAL, **MODES[mode]).step_time
        for n in (2, 3, 5, 9, 17)
    ]
    assert steps == sorted(steps)


def test_each_step_is_no_shorter_than_what_it_is_made_of():
    ready = job(layered(SIZES), cluster(5, 2, bandwidth=1e8), IDEAL)
    factors = lognormal(0.2).factors(10, 5, seed=2)
    record = step_model.synchronous(ready, factors, 5)
    assert (record.steps >= ready.items.compute_s * factors.max(axis=1) - 1e-12).all()
    assert (record.busy <= record.seconds * (1 + 1e-12)).all()
    assert (record.computing <= record.seconds).all()


def test_a_parameter_outside_its_range_is_refused():
    with pytest.raises(ValueError, match=r"nic_efficiency is 1.5, but must lie between 0.1 and 1.0"):
        Parameters(nic_efficiency=1.5)


def test_a_kernel_of_no_flops_takes_no_time():
    assert Kernel("NoOp", "float32", 0, 0).seconds(GPU) == 0
    assert np.isinf(Nic("ideal", float("inf"), 0.0, "made up").bandwidth)
