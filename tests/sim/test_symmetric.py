"""The symmetric step: formulas where nothing is in the way, laws, and the same as the estimate of every message."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from dtflab import sim
from dtflab.hardware import catalogue
from dtflab.sim import formulas
from dtflab.sim.engine.network_profile import Profile
from dtflab.sim.engine.parameters import Parameters
from dtflab.sim.engine.stragglers import Stragglers
from dtflab.sim.predictions.layers import Layer, layers_of
from dtflab.sim.predictions.symmetric import (
    Line,
    Site,
    all_reduce_step,
    asynchronous_step,
    carry,
    copied_step,
    parameter_server_step,
    slow_host,
    slowest,
)

ONE = (Layer(100e6, 0.0),)
SOME = (Layer(4e6, 0.0), Layer(9e6, 0.4), Layer(60e6, 0.7), Layer(30e6, 0.9))
FAST = Site(hosts=1, gpus=1, nic=math.inf, bus=math.inf, sum_rate=math.inf)


def close(value):
    return pytest.approx(value, rel=1e-9)


# ---- formulas ----


@pytest.mark.parametrize("workers", [3, 50])
def test_a_step_waits_for_the_hottest_server_each_way(workers):
    site = replace(FAST, hosts=workers, servers=2, nic=1e9)
    one_way = formulas.parameter_server_seconds(workers, 100e6, 1e9)
    assert parameter_server_step(0.0, ONE, site) == close(2 * one_way)


@pytest.mark.parametrize(
    ("collective", "formula", "workers"),
    [
        *(("ring", formulas.ring_all_reduce_seconds, workers) for workers in (2, 7, 64)),
        *(("tree", formulas.tree_all_reduce_seconds, workers) for workers in (2, 7, 64)),
        *(("halving", formulas.halving_doubling_all_reduce_seconds, workers) for workers in (2, 64)),
    ],
)
def test_an_all_reduce_takes_what_its_formula_says(collective, formula, workers):
    site = replace(FAST, hosts=workers, nic=1e9, latency_s=1e-5)
    assert all_reduce_step(0.0, ONE, site, collective) == close(formula(workers, 100e6, 1e-5, 1e9))


def test_a_ring_inside_a_host_goes_over_its_own_links():
    site = replace(FAST, gpus=8, peer=20e9)
    assert all_reduce_step(0.0, ONE, site) == close(formulas.ring_all_reduce_seconds(8, 100e6, 0.0, 20e9))


@pytest.mark.parametrize(
    ("said", "times"),
    [
        ({"gpus": 8, "bus": 1e9, "sums_on_gpus": True}, 7),
        ({"gpus": 8, "peer": 1e9, "sums_on_gpus": True}, 7),
        ({"gpus": 8, "bus": 1e9}, 1),
        ({"gpus": 8, "bus": 1e9, "switch": 4}, 4),
        ({"gpus": 8, "peer": 1e9, "sums_on_gpus": True, "in_halves": True}, 2),
        ({"gpus": 2, "peer": 1e9, "sums_on_gpus": True, "in_halves": True}, 1),
    ],
)
def test_gradients_are_copied_together_and_their_sum_back(said, times):
    """One GPU gets those of all others; the host those of a switch; along links three come at once, then one."""
    site = replace(FAST, overlap=0.0, **said)
    assert copied_step(1.0, ONE, site) == close(1 + 2 * times * 100e6 / 1e9)


def test_a_gpu_that_sums_up_sends_and_gets_by_turns_a_bus_has_two_directions():
    pair = (Layer(100e6, 0.0), Layer(100e6, 0.5))
    site = replace(FAST, overlap=0.0, gpus=2, bus=1e9)
    assert copied_step(1.0, pair, site) == close(1 + 3 * 0.1), "one comes back while the other goes"
    assert copied_step(1.0, pair, replace(site, sums_on_gpus=True)) == close(1 + 2 * 0.1), "each on its own GPU"
    both = (*pair, *(layer._replace(depth=layer.depth + 0.1) for layer in pair))
    assert copied_step(1.0, both, replace(site, sums_on_gpus=True)) == close(1 + 4 * 0.1), "two on each"


def test_the_last_of_exponential_workers():
    site = replace(FAST, hosts=50, jitter=0.2, spares=4)
    assert slowest(site) == close((1 + formulas.exponential_order_statistic(46, 50, 0.2)) / 1.2)
    assert slowest(replace(FAST, jitter=0.2)) == close(1.0), "a measured rate has its own jitter in it"


@pytest.mark.parametrize(("hosts", "spares"), [(50, 0), (54, 4)])
def test_the_median_of_the_last_host_of_a_pareto_tail(hosts, spares):
    draw = random.Random(1)
    lasts = sorted(sorted(draw.paretovariate(1 / 0.1) for _ in range(hosts))[-1 - spares] for _ in range(4001))
    assert slow_host(replace(FAST, hosts=hosts, spares=spares, tail=0.1)) == pytest.approx(lasts[2000], rel=0.01)


# ---- mechanisms ----


def test_transfers_hide_behind_computing_in_layer_order():
    site = replace(FAST, hosts=4, servers=1, nic=1e9)
    late, early = (Layer(50e6, 0.9),), (Layer(50e6, 0.0),)
    # Pulled in 0.2 s, needed at 0.9 of a forward pass of 1 s; pushed in 0.2 s, of which 1.8 s of the way back are left.
    assert parameter_server_step(3.0, late, site) == close(3.0)
    assert parameter_server_step(3.0, early, site) == close(3.4)
    assert parameter_server_step(3.0, late, replace(site, overlap=0.0)) == close(3.4)


def test_more_servers_relieve_many_variables_but_not_one():
    def step(servers, layers, **changes):
        return parameter_server_step(0.0, layers, replace(FAST, hosts=20, nic=1e9, servers=servers, **changes))

    many = tuple(Layer(1e5, i / 1000) for i in range(1000))
    assert step(4, many) == pytest.approx(step(1, many) / 4, rel=0.01)
    assert step(10, ONE) == close(step(1, ONE))
    assert step(10, ONE, sliced=True) == close(step(1, ONE) / 10), "a partitioned variable is spread"


def test_a_host_that_sums_up_sends_once():
    site = replace(FAST, hosts=2, gpus=4, servers=1, nic=1e9)
    assert parameter_server_step(0.0, ONE, replace(site, aggregates=False)) == close(
        4 * parameter_server_step(0.0, ONE, site)
    )


def test_gpus_behind_a_switch_share_its_uplink():
    site = replace(FAST, gpus=8, bus=10e9)
    assert parameter_server_step(0.0, ONE, replace(site, switch=4)) == close(4 * parameter_server_step(0.0, ONE, site))


def test_a_colocated_server_is_reached_by_one_worker_without_the_network():
    site = replace(FAST, hosts=4, servers=1, nic=1e9)
    apart, together = (parameter_server_step(0.0, ONE, replace(site, colocated=here)) for here in (False, True))
    assert together == close(apart * 3 / 4)


def test_the_servers_pay_for_gradients_of_spares():
    site = replace(FAST, hosts=50, servers=1, nic=1e9)
    assert parameter_server_step(0.0, ONE, replace(site, hosts=54, spares=4)) == close(
        parameter_server_step(0.0, ONE, site) * 54 / 50
    )


def test_messages_cost_a_server_as_many_times_as_it_has_workers():
    scalars = tuple(Layer(4.0, i / 16) for i in range(16))
    site = replace(FAST, servers=16, message_s=1e-5)
    one, hundred = (parameter_server_step(0.0, scalars, replace(site, hosts=hosts)) for hosts in (1, 100))
    assert one == close(2 * 16 * 1e-5), "16 messages in the worker's CPU, and one in each server's"
    assert hundred == pytest.approx(2 * 100 * 1e-5, rel=0.2), "100 messages in each server's"


def test_a_free_running_worker_waits_for_nobody_until_a_line_is_full():
    site = replace(FAST, hosts=4, servers=1, nic=1e9, overlap=0.0)
    assert asynchronous_step(3.0, ONE, site) == close(3.2), "its own pull and push"
    assert asynchronous_step(0.1, ONE, site) == close(0.4), "its share of the server's card"


def test_a_fast_line_carries_others_while_one_trickles_in():
    """Ten slow lines lead into one that is ten times as fast: all are through when each slow one is."""
    fast, slow = Line(), [Line() for _ in range(10)]
    assert [carry([(line, 1.0), (fast, 0.1)], 0.0) for line in slow] == pytest.approx([1.0] * 10)
    assert fast.busy == pytest.approx(1.0)


# ---- laws ----


def sites(count):
    draw = random.Random(7)
    for _ in range(count):
        yield Site(
            hosts=draw.randint(1, 64),
            gpus=draw.randint(1, 16),
            nic=10 ** draw.uniform(8, 10),
            bus=10 ** draw.uniform(9, 11),
            sum_rate=10 ** draw.uniform(9, 11),
            latency_s=10 ** draw.uniform(-6, -3),
            message_s=10 ** draw.uniform(-6, -4),
            switch=draw.choice([1, 2, 4]),
            servers=draw.randint(0, 16),
            colocated=draw.random() < 0.5,
            sums_on_gpus=draw.random() < 0.5,
            overlap=draw.random(),
            jitter=draw.uniform(0, 0.2),
            tail=draw.uniform(0, 0.2),
        )


NETWORK = [parameter_server_step, asynchronous_step, all_reduce_step]
STEPS = [*NETWORK, copied_step]


@pytest.mark.parametrize("step", STEPS)
def test_more_bandwidth_never_hurts(step):
    for site in sites(100):
        for name in ("nic", "bus", "sum_rate"):
            faster = replace(site, **{name: 1.5 * getattr(site, name)})
            assert step(0.2, SOME, faster) <= step(0.2, SOME, site) * (1 + 1e-12), (name, site)


@pytest.mark.parametrize("step", STEPS)
def test_all_times_longer_make_the_step_longer_by_as_much(step):
    for site in sites(30):
        slower = replace(
            site,
            nic=site.nic / 3,
            bus=site.bus / 3,
            sum_rate=site.sum_rate / 3,
            latency_s=3 * site.latency_s,
            message_s=3 * site.message_s,
        )
        assert step(0.6, SOME, slower) == close(3 * step(0.2, SOME, site))


@pytest.mark.parametrize("step", STEPS)
def test_a_perfect_network_scales_linearly(step):
    assert step(1.0, SOME, replace(FAST, hosts=500, gpus=8, servers=16)) == close(1.0)


@pytest.mark.parametrize("step", NETWORK)
def test_half_the_bandwidth_doubles_a_saturated_step(step):
    site = replace(FAST, hosts=50, servers=4, nic=1e9)
    assert step(0.0, SOME, replace(site, nic=0.5e9)) == close(2 * step(0.0, SOME, site))


# ---- the same as the estimate, which has every worker and every message ----

PARAMETERS = Parameters(
    nic_efficiency=0.9,
    bus_efficiency=0.6,
    overlap=0.4,
    message_s=2e-5,
    jitter=0.0,
    tail_shared=0.0,
    board_sharing=0.0,
)
TABLE = {"many variables": (23.8e6, 8.2, 5.7), "one large": (138e6, 411, 15.5), "a few": (61e6, 151, 0.72)}
RATE, BATCH = 100.0, 64


def site_of(workers, servers, gpus=1, bus="pcie3", colocated=False):
    network, lanes = catalogue.network("10Gb/s"), catalogue.bus(bus)
    return Site(
        hosts=workers,
        gpus=gpus,
        nic=network.nic.bandwidth * PARAMETERS.nic_efficiency,
        bus=lanes.bandwidth * PARAMETERS.bus_efficiency,
        sum_rate=catalogue.cpu("2x Xeon E5-2690 v3").memory_bandwidth / 3,
        latency_s=network.nic.latency_s + network.switch_latency_s,
        message_s=PARAMETERS.message_s,
        switch=max(1, lanes.tree),
        servers=servers,
        colocated=colocated,
        overlap=PARAMETERS.overlap,
    )


def both(name, workers, servers, gpus=1, bus="pcie3", colocated=False):
    """Seconds of a step by the estimate and by the symmetric step."""
    profile = Profile.from_table(*TABLE[name], batch=BATCH).scaled(RATE)
    cluster = sim.cluster_model(
        workers, servers, gpus_per_worker=gpus, ps_colocated=colocated, gpu="V100-SXM2", bus=bus
    )
    each = sim.estimate(profile, cluster, 5, parameters=PARAMETERS, stragglers=Stragglers()).step_time
    site = site_of(workers, servers, gpus, bus, colocated)
    return each, parameter_server_step(BATCH / RATE, layers_of(profile, False, 1.0), site)


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("servers", [1, 3])
def test_one_worker_takes_what_the_estimate_says(name, servers):
    each, alike = both(name, 1, servers)
    assert alike == pytest.approx(each, rel=0.005)


@pytest.mark.parametrize("setup", [(8, 4), (8, 8), (4, 2, 4, "pcie3-tree"), (8, 4, 1, "pcie3", True)])
def test_equal_workers_take_what_the_estimate_says(setup):
    each, alike = both("many variables", *setup)
    assert alike == pytest.approx(each, rel=0.05)


def test_a_hot_server_is_shared_fairly_here_and_in_turns_there():
    """Links of the estimate serve workers in turns, so the first pushes while the last pulls; TCP shares fairly."""
    each, alike = both("one large", 16, 4)
    one_way = formulas.parameter_server_seconds(16, 411e6, 0.9 * 1.25e9)
    assert alike == pytest.approx(2 * one_way, rel=0.1)
    assert one_way < each < alike


@pytest.mark.parametrize("name", TABLE)
def test_a_ring_takes_what_the_estimate_says(name):
    profile = Profile.from_table(*TABLE[name], batch=BATCH).scaled(RATE)
    cluster = sim.cluster_model(8, 1, gpu="V100-SXM2")
    options = {"parameters": PARAMETERS, "stragglers": Stragglers()}
    each = sim.estimate(profile, cluster, 5, "allreduce", fusion_bytes=4e6, **options).step_time
    alike = all_reduce_step(BATCH / RATE, layers_of(profile, True, 1.0), site_of(8, 0))
    assert alike == pytest.approx(each, rel=0.05)
