"""what_if: its base is the virtual step, with all that runs and is sent in it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import dtflab as tf
from dtflab import model_parallel, sim
from tests.graphs import Line, build, recipes
from tests.sim.questions import PRECISION, cluster, flat, images, in_one_graph, train_on_servers
from tests.test_one_equals_many import PLACES, TWO_CPUS


def on_servers():
    x, fetches = train_on_servers()
    return fetches, {x: images(32)}


def pipelined():
    """Four stages on four GPUs, and back."""
    x = tf.placeholder(tf.float32, [32, 64])
    stages = [lambda value: tf.layers.dense(value, 64, tf.nn.relu)] * 4
    parts = model_parallel.pipeline(stages, x, [f"/gpu:{i}" for i in range(4)], 4)
    loss = tf.add_n([tf.reduce_mean(tf.square(part)) for part in parts])
    step = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, colocate_gradients_with_ops=True)
    return [loss, step], {x: np.ones([32, 64], np.float32)}


def layers_of_cells():
    """Two LSTM layers, each on its own GPU, unrolled."""
    x = tf.placeholder(tf.float32, [8, 4, 16])
    cells = [tf.nn.rnn_cell.LSTMCell(16) for _ in range(2)]
    cell = model_parallel.rnn_layers(cells, ["/gpu:0", "/gpu:1"])
    outputs, _ = tf.nn.static_rnn(cell, tf.unstack(x, axis=1), dtype=tf.float32)
    loss = tf.reduce_mean(tf.square(tf.stack(outputs)))
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss, colocate_gradients_with_ops=True)
    return [step], {x: np.ones([8, 4, 16], np.float32)}


def classified_on_a_cpu():
    """Adam and a softmax, on a CPU."""
    with tf.device("/job:worker/task:0/cpu:0"):
        x, labels = tf.placeholder(tf.float32, [32, 64]), tf.placeholder(tf.int32, [32])
        logits = tf.layers.dense(tf.layers.dense(x, 128, tf.nn.relu), 10)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        step = tf.train.AdamOptimizer().minimize(tf.reduce_mean(losses))
        return [losses, step], {x: np.ones([32, 64], np.float32), labels: np.zeros(32, np.int32)}


@pytest.mark.parametrize("network", ["10Gb/s", "100Mb/s"])
@pytest.mark.parametrize("program", [on_servers, pipelined, in_one_graph, layers_of_cells, classified_on_a_cpu])
def test_the_base_is_the_virtual_step_traced_or_only_planned(program, network):
    with tf.Graph().as_default(), cluster(3, gpus=4, network=network) as made:
        fetches, feeds = program()
        config = tf.ConfigProto(allow_soft_placement=True)
        with tf.Session(made.target, config=config) as session:
            session.run(tf.global_variables_initializer())
            before = made.now()
            session.run(fetches, feeds)
            took = made.now() - before
            asked = sim.what_if(session, fetches=fetches, feed_dict=feeds)
        planned = sim.what_if(flat(fetches), made)
    assert asked.base.makespan == pytest.approx(took, rel=PRECISION)
    assert planned.base.makespan == pytest.approx(took, rel=PRECISION)


def looped():
    """LSTM layers in a loop of ten words: nodes of a loop run once, for as long as all its turns."""
    x = tf.placeholder(tf.float32, [8, 10, 64])
    with tf.device("/gpu:0"):
        cell = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.LSTMCell(64) for _ in range(2)])
        loss = tf.reduce_mean(tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)[0])
    return [loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss)], {x: np.ones([8, 10, 64], np.float32)}


def chosen():
    """One of two branches, whose weights are on a server: what did not run takes no time, and is sent as nothing."""
    x, yes = tf.placeholder(tf.float32, [8, 64]), tf.placeholder(tf.bool, [])
    with tf.device("/job:ps/task:0"):
        weights = tf.get_variable("weights", [64, 64])
    with tf.device("/job:worker/task:0/gpu:0"):
        y = tf.cond(yes, lambda: tf.matmul(x, weights), lambda: tf.matmul(tf.matmul(x, weights), weights))
    return [tf.reduce_sum(y)], {x: np.ones([8, 64], np.float32), yes: True}


@pytest.mark.parametrize("program, bound", [(looped, 0.01), (chosen, 0.001)])
def test_loops_and_branches_are_near(program, bound):
    with tf.Graph().as_default(), cluster() as made:
        fetches, feeds = program()
        with tf.Session(made.target, config=tf.ConfigProto(allow_soft_placement=True)) as session:
            session.run(tf.global_variables_initializer())
            before = made.now()
            session.run(fetches, feeds)
            took = made.now() - before
            asked = sim.what_if(session, fetches=fetches, feed_dict=feeds)
    assert asked.base.makespan == pytest.approx(took, rel=bound)


@pytest.fixture(scope="module")
def three_tasks():
    with tf.Cluster(ps=1, worker=2, config=TWO_CPUS, clock="virtual", network="1Gb/s") as made:
        yield made


WITHOUT_LOOPS = recipes.map(lambda recipe: [line for line in recipe if line.kind != "loop"]).filter(bool)


@pytest.mark.timeout(120)
@settings(max_examples=150, derandomize=True)
@given(recipe=WITHOUT_LOOPS)
def test_random_programs_over_six_devices(three_tasks, recipe):
    """Equal; with branches, whose dead values race with others at one moment, to a thousandth."""
    built = build(recipe, lambda place: PLACES[place % 6])
    with tf.Session(three_tasks.target, graph=built.graph) as session:
        if built.initializers:
            session.run(built.initializers)
        before = three_tasks.now()
        session.run(built.values)
        took = three_tasks.now() - before
        asked = sim.what_if(session, fetches=built.values)
    tf.Session.reset(three_tasks.target)
    branches = any(line.kind == "cond" for line in recipe)
    assert asked.base.makespan == pytest.approx(took, rel=1e-3 if branches else 1e-8)


def test_a_constant_after_another_is_known_before_the_step_too(three_tasks):
    """Also the signal that one is there: it sets out with the first."""
    places = ((0, None), (2, 0), (0, None), (0, None), (0, None))
    recipe = [*(Line("const", 0, 0, place, after) for place, after in places), Line("add", 0, 1, 0, None)]
    test_random_programs_over_six_devices.hypothesis.inner_test(three_tasks, recipe)


def test_every_kernel_and_message_of_the_base_is_where_the_log_has_it():
    with tf.Graph().as_default(), cluster() as made:
        x, fetches = train_on_servers()
        with tf.Session(made.target) as session:
            session.run(tf.global_variables_initializer())
            asked = sim.what_if(session, fetches=fetches, feed_dict={x: images(32)})
            before, count = made.now(), made.log().count
            session.run(fetches, {x: images(32)})
        new = list(made.log().lines)[count - made.log().count :]
    ran = {line.what: (line.started - before, line.ended - before) for line in new if not line.target}
    mine = {span.name: (span.start, span.end) for own in asked.base.schedule.spans.values() for span in own}
    assert mine.keys() == ran.keys()
    for name, moments in ran.items():
        assert mine[name] == pytest.approx(moments, rel=PRECISION, abs=1e-14)
    sent = sorted((line.ended - before, line.nbytes) for line in new if line.target)
    carried = sorted((last_byte(message), message.nbytes) for message in asked.base.messages)
    assert np.array(carried) == pytest.approx(np.array(sent), rel=PRECISION)


def last_byte(message):
    """When a message has come, before a core of the receiver takes it in."""
    return message.hops[-1].end + sum(hop.link.latency_s for hop in message.hops)
