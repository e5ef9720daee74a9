"""what_if: its changes are virtual steps on changed clusters, and what it says of them."""

from __future__ import annotations

import numpy as np
import pytest

import dtflab as tf
from dtflab import sim
from dtflab.hardware.catalogue import gpu
from tests.sim.questions import PRECISION, cluster, images, train_on_servers


def seconds_of_a_step(batch=32, workers=1, **hardware):
    """The seconds of a step in a real virtual run, in which all workers begin it at once: the longest."""
    with cluster(workers, **hardware) as made:

        def program(client):
            x, fetches = train_on_servers(client.device)
            with tf.Session(client.target) as session:
                if client.is_chief:
                    session.run(tf.global_variables_initializer())
                for moment in (10, 20):
                    sim.sleep(moment - sim.now())
                    session.run(fetches, {x: images(batch)})
                return sim.now() - 20

        return max(made.run(program))


# ---- what is changed ----


@pytest.mark.parametrize(
    "changes",
    [
        {"network": "1Gb/s"},
        {"network": "InfiniBand EDR"},
        {"gpu": "V100"},
        {"cpu": "2x Xeon E5-2686 v4"},
        {"gpu": "P100", "bus": "nvlink2"},
        {"batch": 128},
        {"workers": 2},
        {"workers": 8, "network": "1Gb/s"},
        {"workers": 5, "batch": 512, "gpu": "V100", "network": "25Gb/s"},
    ],
    ids=str,
)
def test_a_change_is_what_a_cluster_with_it_does(question, changes):
    """Also under contention: both pass links in the same order."""
    assert question.run(**changes).makespan == pytest.approx(seconds_of_a_step(**changes), rel=PRECISION)


class Fixed:
    """Stragglers that are always the same."""

    def factors(self, steps, devices, seed):
        return np.tile(np.linspace(1.0, 4.0, devices), (steps, 1))


def test_stragglers_are_those_of_a_cluster(question):
    slow = question.run(workers=3, stragglers=Fixed())
    assert slow.makespan == pytest.approx(seconds_of_a_step(workers=3, stragglers=Fixed()), rel=PRECISION)
    by_name = {f"/job:worker/task:{i}": factor for i, factor in enumerate((1.0, 2.5, 4.0))}
    assert question.run(workers=3, stragglers=by_name).makespan == slow.makespan
    assert question.run(workers=3, stragglers={"/job:worker/task:2": 4.0}).makespan == slow.makespan
    drawn = [question.run(workers=3, stragglers=sim.lognormal(1.0), seed=seed).makespan for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_factors_are_parts_that_much_faster(question):
    k40 = gpu("K40")
    faster = tf.sim.Processor("K40 twice", "GPU", {name: 2 * flops for name, flops in k40.peak_flops.items()},
                              k40.memory_bytes, 2 * k40.memory_bandwidth, k40.launch_s / 2, 1, "made up")  # fmt: skip
    twice = question.run(gpu=2.0)
    assert twice.makespan == question.run(gpu=faster).makespan < question.base.makespan
    assert question.run(gpu=1.0, network=1, bus=1.0, cpu=1, latency=1).makespan == question.base.makespan
    gpus = [name for name in question.base.busy if "GPU" in name]
    assert [twice.busy[name] for name in gpus] == pytest.approx([question.base.busy[name] / 2 for name in gpus])


def test_bandwidth_and_latency_are_what_a_transfer_takes(question):
    """The first message on its links: halved bandwidth doubles its bytes' part, doubled latency that of the wires."""
    base, *changed = (read(question.run(**c)) for c in ({}, {"network": 0.5, "bus": 0.5}, {"latency": 2.0}))
    nbytes = 200 * 300 * 4 / 1.25e9  # 10 Gb/s are 1.25e9 B/s
    assert changed[0] - base == pytest.approx(nbytes)
    assert changed[1] - base == pytest.approx(base - nbytes - 100e-6)  # of which two ends of a message take 50 µs each


def read(outcome):
    """How long the first layer's weights are on their way."""
    (message,) = (m for m in outcome.messages if m.source == "w0/read")
    return message.arrived - message.sent


def test_more_of_anything_never_hurts(question):
    steps = [question.run(network=factor).makespan for factor in (0.1, 0.5, 1, 2, 10, 1e6)]
    assert steps == sorted(steps, reverse=True)
    steps = [question.run(gpu=factor).makespan for factor in (0.1, 0.5, 1, 2, 10)]
    assert steps == sorted(steps, reverse=True)
    saturated = [question.run(network=factor, latency=0, gpu=1e9, cpu=1e9).makespan for factor in (1e-4, 5e-5)]
    assert saturated[1] / saturated[0] == pytest.approx(2, rel=1e-3)


# ---- what it says ----


def test_an_outcome_adds_up(question):
    base, four = question.base, question.run(workers=4)
    assert base.speedup == 1 and base.throughput == pytest.approx(32 / base.makespan)
    assert four.throughput == pytest.approx(4 * 32 / four.makespan)
    assert four.speedup == pytest.approx(four.throughput / base.throughput)
    for outcome in (base, four):
        assert sum(part.seconds for part in outcome.critical_path) == pytest.approx(outcome.makespan, rel=PRECISION)
        assert all(0 <= load <= 1 for load in outcome.link_load.values())
        gpus = [name for name in outcome.busy if "GPU" in name]
        assert len(gpus) == outcome.workers
        for name in gpus:  # one thing at a time
            assert outcome.busy[name] == pytest.approx(outcome.makespan * (1 - outcome.idle[name]), rel=PRECISION)
    assert {part.kind for part in base.critical_path} == {"compute", "transfer"}
    assert "RunGraph" in base.critical_path[0].what
    assert not any("1000" in device or "1001" in device for device in base.busy)


def test_its_trace_is_a_timeline(question):
    outcome = question.run(workers=2, network="1Gb/s")
    picture = tf.viz.timeline(outcome.step_stats())
    ops = sum(len(own) for own in outcome.schedule.spans.values())
    tensors = [
        message for message in outcome.messages if message.source.partition(" ")[2] not in ("RunGraph", "answer")
    ]
    assert f"{ops} ops on 6 devices, {len(tensors)} transfers" in picture.sentence
    assert "worker:1 GPU:0 99% idle" in picture.sentence


def test_tables(question):
    answers = question.sweep(network=["1Gb/s", "10Gb/s", "100Gb/s"])
    assert [outcome.title for outcome in answers] == ["network 1Gb/s", "network 10Gb/s", "network 100Gb/s"]
    lines = question.table(network=["1Gb/s", "10Gb/s", "100Gb/s"]).splitlines()
    assert len(lines) == 5 and lines[1].split()[:2] == ["the", "base"]
    assert f"{1e3 * answers[0].makespan:.3f}" in lines[2]
    assert "ingress" in repr(answers[0]) and "0.20" in lines[2]
    assert answers[0].to_dict()["makespan"] == answers[0].makespan


def test_numbers_of_numpy_are_numbers(question):
    assert [one.workers for one in question.sweep(workers=2 ** np.arange(3))] == [1, 2, 4]
    assert question.run(gpu=np.float32(2)).makespan == question.run(gpu=np.int64(2)).makespan
    assert question.run(batch=np.int64(question.base.batch)).makespan == question.base.makespan


def test_a_sweep_with_something_else_changed_too(question):
    slow = question.sweep(workers=[1, 3], network="1Gb/s")
    assert [one.title for one in slow] == ["network 1Gb/s, workers 1", "network 1Gb/s, workers 3"]
    assert slow[1].makespan == question.run(workers=3, network="1Gb/s").makespan
    drawn = question.sweep(stragglers=sim.lognormal(0.3), seed=range(3))
    assert len({one.makespan for one in drawn}) == 3 and drawn[2].title == "stragglers lognormal(0.3), seed 2"
    named = question.run(gpu=2, stragglers={"/job:worker/task:0/gpu:0": 3.0})
    assert named.title == "gpu × 2, worker:0 GPU:0 3 × as slow"


def test_the_link_in_the_way_is_named_first(question):
    """A GPU's lanes are not in the way of a slow network: each link is taken for its own bytes only."""
    loads = question.run(network="1Gb/s").link_load
    first, *_ = loads
    assert first.endswith(("egress", "ingress")) and "lanes" not in first
    assert 0 < max(load for link, load in loads.items() if "lanes" in link) < 0.02 * loads[first]
    assert {link.partition(" ")[0] for link in question.run(workers=3).link_load} >= {
        "worker-0",
        "worker-1",
        "worker-2",
    }


def test_a_slider_can_drive_it(question):
    """A change costs some 3 µs per event (`docs/measured.md`); wall-clock times are not asserted."""
    assert question.run(network=0.5).schedule.events < 500
    assert question.run(workers=4, network=0.5).schedule.events < 2000
    work = question.step._costs
    question.run(gpu=1.5, bus=2.0)
    assert question.step._costs is work and len(work) <= 3, "nothing is worked out again for another GPU"
    for factor in range(40):
        question.run(gpu=1 + factor / 100)
    assert len(question.step._times) <= 16, "and what a slider has left behind is forgotten"


def test_factors_of_a_job_and_of_its_task_multiply(question):
    both = question.run(stragglers={"/job:worker": 2.0, "/job:worker/task:0": 3.0})
    assert both.makespan == question.run(stragglers={"/job:worker/task:0": 6.0}).makespan > question.base.makespan
