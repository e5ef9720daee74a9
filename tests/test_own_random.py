"""A program's `random` and `numpy.random` are its own: whatever dtflab does, it draws nothing from them.

`test_house.py` reads the sources for the same rule; here the streams of a running program are watched.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

import dtflab as tf
from dtflab.grading.catalogue import all_questions
from dtflab.placement.dynamic import DynamicPlacer


def run(*fetches, target=""):
    with tf.Session(target) as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        for _ in range(3):
            session.run(fetches)


def net():
    """A loss with dropout over unseeded weights, and a step of training."""
    x = tf.random_uniform([8, 4])
    hidden = tf.nn.dropout(tf.layers.dense(x, 5, tf.nn.relu), 0.5)
    loss = tf.reduce_mean(tf.square(tf.layers.dense(hidden, 1)))
    step = tf.train.get_or_create_global_step()
    return loss, tf.train.AdamOptimizer().minimize(loss, step)


def data_set(path):
    numbers = tf.data.Dataset.range(20).shuffle(20).repeat(2)
    doubled = numbers.map(lambda n: n * 2, num_parallel_calls=3).filter(lambda n: n > 2)
    run(tf.data.make_one_shot_iterator(doubled.batch(4).prefetch(2)).get_next())


def generator(path):
    made = tf.data.Dataset.from_generator(lambda: iter(range(5)), tf.int64, [])
    run(tf.data.make_one_shot_iterator(made).get_next())


def functions(path):
    run(tf.map_fn(lambda n: n + 1, tf.range(4)), tf.py_func(np.square, [2.0], tf.float32))


def control_flow(path):
    flip = tf.random_uniform([]) > 0.5
    run(tf.cond(flip, lambda: 1, lambda: 2), tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0]))


def queues(path):
    queue = tf.RandomShuffleQueue(20, 0, tf.int32, [[]])
    run(queue.enqueue_many(tf.range(6)), queue.dequeue_many(3))


def input_producers(path):
    for name in "abc":
        (path / f"{name}.txt").write_text("1\n2\n3\n")
    files = tf.train.string_input_producer([str(file) for file in path.glob("*.txt")], shuffle=True)
    line = tf.train.shuffle_batch([tf.TextLineReader().read(files)[1]], 2, 20, 2, num_threads=3)
    with tf.train.MonitoredSession() as session:
        session.run(line)


def local_training(path):
    run(*net())


def monitored_training(path):
    loss, train = net()
    tf.summary.scalar("loss", loss)
    hooks = [tf.train.StopAtStepHook(4)]
    options = {"save_checkpoint_steps": 2, "save_summaries_steps": 2, "log_step_count_steps": None}
    with tf.train.MonitoredTrainingSession(checkpoint_dir=str(path), hooks=hooks, **options) as session:
        while not session.should_stop():
            session.run(train)
    tf.summary.FileWriterCache.clear()


def saver(path):
    tf.get_variable("v", [3])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        saved = tf.train.Saver(sharded=True).save(session, str(path / "model"))
        tf.train.Saver().restore(session, saved)


def summaries(path):
    merged = tf.summary.merge([tf.summary.histogram("h", tf.random_normal([9])), tf.summary.scalar("s", 1.0)])
    with tf.summary.FileWriter(str(path)) as writer, tf.Session() as session:
        writer.add_summary(session.run(merged), 1)


def between_graph(**options):
    with tf.Cluster(ps=1, worker=3, **options) as cluster:

        def work(client):
            with tf.device(tf.train.replica_device_setter(cluster=client.cluster_spec)):
                run(*net(), target=client.target)

        cluster.run(work)


def in_process_cluster(path):
    between_graph()


def listening_cluster(path):
    between_graph(listen=True)


def virtual_cluster(path):
    between_graph(clock="virtual", stragglers=tf.sim.lognormal(0.2))


def simulated_gpus(path):
    with tf.Cluster(worker=1, gpus=2) as cluster, tf.device("/job:worker/task:0/gpu:1"):
        run(tf.random_normal([4]), target=cluster.target)


def searching_placer(path):
    a = tf.random_normal([4, 4])
    product = tf.add_n([a @ a, a @ (a + 1), (a + 2) @ a])
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 3}), placer=DynamicPlacer()) as session:
        session.run(product)


def digits(path):
    images = tf.datasets.digits().train
    for _ in range(30):
        images.next_batch(100)


def estimates(path):
    where = tf.sim.cluster_model(workers=3, ps_tasks=1, gpu="K40")
    tf.sim.estimate(tf.sim.models.get("resnet50")(32), where, steps=2, batch=32)


def questions(path):
    tf.grade(all_questions()[0].id, lambda *args: None)


FEATURES = (data_set, generator, functions, control_flow, queues, input_producers, local_training, monitored_training,
            saver, summaries, in_process_cluster, listening_cluster, virtual_cluster, simulated_gpus,
            searching_placer, digits, estimates, questions)  # fmt: skip


def streams():
    """The states of both."""
    _, keys, *rest = np.random.get_state()  # noqa: NPY002
    return random.getstate(), keys.tolist(), rest


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.__name__)
def test_the_streams_of_the_program_are_not_drawn_from(feature, tmp_path):
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    before = streams()
    with tf.Graph().as_default():
        feature(tmp_path)
    assert streams() == before
