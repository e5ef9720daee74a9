"""what_if: what can be asked about: sessions, metadata, measured times, steps that never ran; and what can't."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dtflab as tf
from dtflab import sim, viz
from dtflab.hardware.catalogue import cpu
from dtflab.hardware.machines import machines_for
from dtflab.sim.what_ifs import outcomes
from tests.sim.questions import WORKER, cluster, flat, images, in_one_graph, train_on_servers


def test_a_session_without_a_cluster_runs_where_the_first_worker_does():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 64])
        there = sim.cluster_model(workers=2, ps_tasks=1, gpu="K40")
        asked = sim.what_if(session, there, fetches=tf.matmul(x, tf.ones([64, 64])), feed_dict={x: np.ones([32, 64])})
    first = "/job:worker/replica:0/task:0/device:CPU:0"
    assert asked.machines.place(asked.step.nodes[0].device).host == there.machines.place(first).host
    assert asked.run(cpu=2.0).speedup > 1.9 and asked.run(workers=3).throughput > 2 * asked.base.throughput


# ---- from measured times, and from metadata ----


def metadata_of_a_step(made, fetches, feeds):
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
    with tf.Session(made.target) as session:
        session.run(tf.global_variables_initializer())
        session.run(fetches, feeds, options=options, run_metadata=(metadata := tf.RunMetadata()))
    return metadata


def test_measured_times_hold_in_the_ratio_of_the_models():
    with tf.Graph().as_default(), cluster() as made:
        x, fetches = train_on_servers()
        metadata = metadata_of_a_step(made, fetches, {x: images(32)})
    modelled = sim.what_if(metadata, made.world.machines)
    for device in metadata.step_stats.dev_stats:
        for node in device.node_stats:
            node.all_end_rel_nanos *= 3
    measured = sim.what_if(metadata, made.world.machines, measured=True)
    for changes in ({}, {"gpu": "V100"}, {"cpu": 2.0}):
        model, three = modelled.run(**changes).busy, measured.run(**changes).busy
        for device, seconds in model.items():
            assert three[device] == pytest.approx(3 * seconds, rel=1e-3), "a nanosecond of some microseconds is lost"
    assert sim.what_if(metadata, made.world.machines).base.makespan == modelled.base.makespan


def test_a_session_in_real_time_says_how_long_numpy_took():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [64, 300])
        y = tf.matmul(x, tf.ones([300, 400]), name="y")
        with pytest.raises(ValueError, match="real time"):
            sim.what_if(session, fetches=y, feed_dict={x: np.ones([64, 300], np.float32)})
        host = machines_for({"/job:localhost/task:0": "laptop"})
        asked = sim.what_if(session, host, fetches=y, feed_dict={x: np.ones([64, 300], np.float32)})
    spent = asked.step.seconds["y"]
    task = asked.base.schedule.tasks["y"]
    assert spent > 0 and task.end - task.start == pytest.approx(spent)
    half = asked.run(cpu=0.5).schedule.tasks["y"]
    assert half.end - half.start == pytest.approx(2 * spent)


def test_a_step_that_never_ran_is_placed_by_whom_one_likes():
    with tf.Graph().as_default(), cluster(gpus=2) as made:
        x = tf.placeholder(tf.float32, [None, 512])
        products = [tf.matmul(x, tf.ones([512, 512])) for _ in range(2)]
        fetches = [tf.reduce_sum(product) for product in products]

    def apart(nodes, devices, task, **rest):
        return {node.name: f"{WORKER}/device:GPU:{int(node.name.endswith('_1'))}" for node in nodes}

    one = sim.what_if(fetches, made, batch=512)
    two = sim.what_if(fetches, made, batch=512, placer=apart)
    assert [two.base.busy[f"{WORKER}/device:GPU:{i}"] > 0 for i in range(2)] == [True, True]
    assert two.base.makespan < one.base.makespan
    with pytest.raises(TypeError, match="'dynamic'"):
        sim.what_if(fetches, made, placer="mine")


def test_a_batch_that_is_built_in_says_so():
    with tf.Graph().as_default(), cluster() as made:
        x = tf.placeholder(tf.float32, [32, 8])
        flattened = tf.reshape(tf.square(x), [32 * 8], name="flatten")
        asked = sim.what_if([tf.reduce_sum(tf.sqrt(flattened))], made)
        with pytest.raises(ValueError, match=r"'flatten' on .*fixed batch size of 32"):
            asked.run(batch=64)
        fine = sim.what_if([tf.reduce_sum(tf.sqrt(tf.reshape(tf.square(x), [-1])))], made)
        assert fine.run(batch=3200).makespan > fine.base.makespan
        with pytest.raises(ValueError, match="Nothing that is fed has 7 examples"):
            sim.what_if([tf.reduce_sum(x)], made, batch=7).run(batch=64)


def fed_with(*shapes):
    """A step that is only planned, of a graph that is fed with those shapes."""
    with tf.Graph().as_default(), cluster() as made:
        fed = [tf.reduce_sum(tf.placeholder(tf.float32, shape)) for shape in shapes]
        return sim.what_if([tf.add_n([tf.reduce_sum(tf.ones([32, 8])), *fed])], made)


@pytest.mark.parametrize("shapes", [[], [[]], [[8, 3], [16, 3]], [None]])
def test_a_step_that_is_fed_no_examples_counts_steps(shapes):
    """Constants, a scalar such as a learning rate, several first dimensions, a shape that nobody knows."""
    asked = fed_with(*shapes)
    assert asked.step.batch is None and asked.base.throughput == 1 / asked.base.makespan
    shown = [asked.table(network=["1Gb/s"]), repr(asked.base), asked.base.sentence, viz.what_if(asked.base).html]
    shown += [str(asked.run(workers=2)), str(asked.base.to_dict())]
    assert not [text for text in shown if "example" in text]
    assert "steps/s" in asked.base.sentence
    with pytest.raises(ValueError, match="fed no examples.* can't be 64" if shapes in ([], [[]]) else "not known"):
        asked.run(batch=64)


def test_examples_that_are_fed_are_counted_and_32_where_the_graph_leaves_open_how_many():
    for shapes, batch in (([[None, 4]], 32), ([[128, 4], [128]], 128), ([[128, 4], []], 128)):
        asked = fed_with(*shapes)
        assert asked.step.batch == batch and asked.base.throughput == batch / asked.base.makespan
        assert "examples/s" in asked.base.sentence


def test_placeholders_that_the_step_does_not_need_are_not_fed():
    with tf.Graph().as_default(), cluster() as made:
        tf.placeholder(tf.float32, [None, 100], name="for_evaluation")
        v = tf.Variable(tf.ones([64, 64]))
        fed = tf.matmul(tf.placeholder(tf.float32, [50, 64]), v)
        assert sim.what_if([v.assign_add(v)], made).step.batch is None
        asked = sim.what_if([fed], made)
    assert asked.step.batch == 50 and asked.run(batch=100).throughput > asked.base.throughput


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"gpu": "K4000"}, "K4000"),
        ({"network": 0}, "network must be a number above 0, not 0"),
        ({"gpu": cpu("2x Xeon E5-2690 v3")}, "is a CPU"),
        ({"network": "fast"}, "fast"),
        ({"latency": -1}, "latency must be a number, 0 or more, not -1"),
        ({"workers": 0}, "workers=0"),
        ({"workers": 2.5}, "workers=2.5"),
        ({"batch": -3}, "batch=-3"),
        ({"stragglers": {"/job:worker/task:7": 2.0}}, "/job:worker/task:7.*There are /job:"),
        ({"stragglers": {"/job:worker/task:0": -2.0}}, "how many times as long"),
        ({"stragglers": 2.0}, r"sim.lognormal\(0.2\), or a factor by name"),
        ({"stragglers": sim.lognormal(0.2), "seed": -1}, "seed=-1 is not a whole number from 0 up"),
    ],
    ids=str,
)
def test_bad_changes_say_what_is_wrong(question, changes, words):
    with pytest.raises(ValueError, match=words):
        question.run(**changes)


def test_a_step_of_constants_takes_what_it_takes_in_virtual_time():
    with tf.Graph().as_default(), cluster() as made:
        constant = tf.constant(3.0)
        with tf.Session(made.target) as session:
            before = made.now()
            session.run(constant)
            took = made.now() - before
            asked = sim.what_if(session, fetches=constant)
    assert asked.base.makespan == pytest.approx(took)
    assert asked.run(gpu=2.0).speedup == 1 and "the base" in asked.table(cpu=[2.0])


def test_bad_questions_say_what_is_lacking(question):
    with pytest.raises(ValueError, match="/gpu:3 computes nothing"):
        question.base.bubble(["/gpu:0", "/gpu:3"])
    with pytest.raises(ValueError, match=r"varies one parameter.*given: network and gpu"):
        question.sweep(network=["1Gb/s"], gpu=["K40"])
    with pytest.raises(ValueError, match="given: none"):
        question.table(network="1Gb/s")
    with pytest.raises(ValueError, match="what_if needs hardware"):
        sim.what_if(tf.RunMetadata())
    with pytest.raises(ValueError, match="only used with a session"):
        sim.what_if([], question.machines, feed_dict={})
    with pytest.raises(ValueError, match="batch=-3"):
        sim.what_if([], question.machines, batch=-3)
    with pytest.raises(ValueError, match="output_partition_graphs=True"):
        sim.what_if(tf.RunMetadata(), question.machines)
    with pytest.raises(TypeError, match="not 'a name'"):
        sim.what_if("a name", question.machines)
    with pytest.raises(TypeError, match="Machines"):
        sim.what_if(tf.RunMetadata(), 3)
    with tf.Graph().as_default(), cluster(3) as made:
        fetches, _ = in_one_graph()
        with pytest.raises(ValueError, match="3 tasks of one job"):
            sim.what_if(flat(fetches), made).run(workers=2)
        with tf.Session(made.target) as session, pytest.raises(ValueError, match="needs what the step fetches"):
            sim.what_if(session)


def test_the_base_has_one_name_and_a_rate_says_of_what(question):
    faster, head = question.run(network="100Gb/s"), outcomes.HEADS.index("per second")
    assert question.base.title == "the base" and faster.sentence.endswith(f" × {question.base.title}")
    assert question.base.row[head] == f"{question.base.rate} examples"
    assert replace(question.base, batch=None).row[head].endswith(" steps")


def test_answers_are_tables_in_a_notebook_too(question):
    several = question.sweep(workers=[1, 2])
    assert repr(several) == outcomes.table(several) and len(several) == 2
    html = several._repr_html_()
    assert html.count("<tr>") == 3 and all(cell in html for one in several for cell in one.row[1:])
    html = question.base._repr_html_()
    assert question.base.sentence in html and "critical path" in html and html.count("<table>") == 3


def test_the_table_of_the_critical_path_adds_up_to_the_step(question):
    rows = question.base.path_rows
    assert len(question.base.critical_path) > len(rows) == 13
    assert sum(float(ms) for _, _, ms, _ in rows) == pytest.approx(1e3 * question.base.makespan, abs=1e-2)
    longest = max(question.base.critical_path, key=lambda part: part.seconds)
    assert (longest.kind, longest.what) in [row[:2] for row in rows] and rows[-1][0] == "…"
    assert "critical path" in repr(question.base) and longest.what in repr(question.base)
