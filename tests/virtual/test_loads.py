"""Loads: who was busy how long, against what the program must have used."""

from __future__ import annotations

import numpy as np
import pytest

import dtflab as tf
from tests.virtual.small_program import CPU, GPU, NETWORK


@pytest.fixture
def cluster():
    with tf.Cluster(ps=1, worker=2, cpu=CPU, gpu=GPU, network=NETWORK, clock="virtual") as cluster:
        yield cluster


def product_of_a_pulled_matrix(client):
    """A matrix of 1 MB comes from the ps, and is multiplied on the GPU."""
    with tf.device("/job:ps/task:0"):
        weights = tf.constant(np.ones([500, 500], np.float32))
    with tf.device(f"{client.device}/gpu:0"):
        product = tf.matmul(weights, weights).op
    with tf.Session(client.target) as session:
        session.run(product)


def test_a_kernel_and_a_message_load_what_they_use(cluster):
    cluster.run(lambda client: product_of_a_pulled_matrix(client) if client.is_chief else None)
    loads = cluster.loads()
    assert loads.seconds == cluster.now()
    busiest, idle = loads.processors[0], loads.processors[-1]
    takes = GPU.launch_s + 2 * 500**3 / (1e11 * 0.5)
    assert busiest.devices == ("/job:worker/replica:0/task:0/device:GPU:0",) and busiest.hardware == "a GPU"
    assert busiest.busy == pytest.approx(takes) and busiest.share == pytest.approx(takes / cluster.now())
    assert idle.busy == idle.share == 0 and len(loads.processors) == 5
    (egress,) = (link for link in loads.links if link.name.startswith("ps-0") and "egress" in link.name)
    assert egress.nbytes > 1_000_000 and egress.messages == 2  # the matrix, and that the step has ended
    assert egress.busy == pytest.approx(egress.nbytes / 1e8) and egress.share == pytest.approx(
        egress.busy / loads.seconds
    )


def test_a_slow_processor_is_busy_for_longer(cluster):
    cluster.slow("worker", 0, 3.0)
    cluster.run(lambda client: product_of_a_pulled_matrix(client) if client.is_chief else None)
    (busy,) = (load.busy for load in cluster.loads().processors if "task:0/device:GPU" in load.devices[0])
    assert busy == pytest.approx(3 * (GPU.launch_s + 2 * 500**3 / (1e11 * 0.5)))


def test_texts_take_what_is_in_them_not_what_their_shape_says(cluster):
    """Two texts of one shape through one op: of which the second is a thousand times as long."""
    text = tf.placeholder(tf.string, [])
    with tf.device("/job:worker/task:0/cpu:0"):
        bucket = tf.strings.to_hash_bucket_fast(text, 10).op
    with tf.Session(cluster.target_of("worker", 0)) as session:
        busy = [0.0]
        for count in (1_000, 1_000_000):
            session.run(bucket, {text: b"x" * count})
            busy.append(sum(load.busy for load in cluster.loads().processors))
    first, second = np.diff(busy) - CPU.launch_s
    assert second == pytest.approx(1000 * first, rel=0.05)


def test_cores_count_together(cluster):
    """Two of four cores at work, all the time."""

    def program(client):
        with tf.device(f"{client.device}/cpu:0"), tf.Session(client.target) as session:
            values = [tf.constant(np.full([100, 100], i, np.float32)) for i in range(2)]
            session.run([tf.matmul(value, value).op for value in values])

    cluster.run(lambda client: program(client) if client.is_chief else None)
    assert cluster.loads().processors[0].share == pytest.approx(0.5)


def test_the_busiest_stand_first_in_text_and_html(cluster):
    cluster.run(product_of_a_pulled_matrix)
    loads = cluster.loads()
    first, *lines = loads.text.splitlines()
    assert first == f"{cluster.now():.6g} s of virtual time" and str(loads) == repr(loads) == loads.text
    assert lines[0].split() == ["processor", "of", "hardware", "busy", "s", "share"]
    assert lines[1].startswith("/job:worker/task:") and f"{loads.processors[0].share:.1%}" in lines[1]
    assert "egress" in lines[7] and f" {loads.links[0].nbytes} " in lines[7]
    assert loads._repr_html_().count("<tr>") == 2 + len(loads.processors) + len(loads.links)


def test_nothing_has_happened_yet_and_long_tables_are_cut():
    with tf.Cluster(worker=30, cpu=CPU, network=NETWORK, clock="virtual") as cluster:
        loads = cluster.loads()
    assert {load.share for load in loads.processors} == {0.0} and loads.links == ()
    assert "… and 10 more" in loads.text and len(loads.processors) == 30


def test_a_host_of_many_tasks_has_one_row():
    spec = {"worker": [f"one.example.com:{2222 + i}" for i in range(3)]}
    with tf.Cluster(spec, cpu=CPU, network=NETWORK, clock="virtual") as cluster:
        (load,) = cluster.loads().processors
    assert len(load.devices) == 3 and str(load) == "/job:worker/task:0/cpu:0 and 2 more"


def test_real_time_has_no_loads():
    with tf.Cluster(worker=1) as cluster, pytest.raises(ValueError, match="knows no loads"):
        cluster.loads()


def test_links_have_the_short_names_that_what_if_gives_them(cluster):
    cluster.run(product_of_a_pulled_matrix)
    names = {link.name for link in cluster.loads().links}
    assert {"ps-0 egress", "worker-0 ingress"} <= names and not any("process" in name for name in names)


def synchronous_training(**options):
    """Virtual seconds that five synchronous steps take by the chief's clock."""
    with tf.Cluster(ps=1, worker=1, cpu=CPU, network=NETWORK, clock="virtual") as cluster:

        def work(client):
            with tf.Graph().as_default(), tf.device(tf.train.replica_device_setter(cluster=cluster.spec)):
                step, weight = tf.train.get_or_create_global_step(), tf.get_variable("weight", [])
                optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), 1)
                train = optimizer.minimize(tf.square(weight), global_step=step)
                hooks = [optimizer.make_session_run_hook(client.is_chief)]
                with tf.train.MonitoredTrainingSession(
                    client.target, is_chief=client.is_chief, hooks=hooks, **options
                ) as session:
                    for _ in range(5):
                        session.run(train)

        cluster.run(work, job="worker")
        return cluster.loads()


def test_a_synchronous_chief_stands_still_for_its_grace_period():
    """These are TensorFlow's 120 s (docs/troubleshooting.md), next to which nobody has worked at all."""
    waited, at_once = synchronous_training(), synchronous_training(stop_grace_period_secs=0)
    assert waited.seconds > 120 and max(load.share for load in waited.processors) < 0.0005
    assert at_once.seconds < 1 and max(load.share for load in at_once.processors) > 0.01


@pytest.mark.parametrize("in_data_set", [True, False])
def test_functions_of_data_sets_take_no_virtual_time(in_data_set):
    """The same product in the graph does; docs/tour.md and lesson 07 say so."""

    def seconds(size):
        def product(_):
            return tf.reduce_sum(tf.matmul(tf.ones([size, size]), tf.ones([size, size])))

        numbers = tf.data.Dataset.range(3)
        element = tf.data.make_one_shot_iterator(numbers.map(product) if in_data_set else numbers).get_next()
        with tf.Cluster(localhost=1, cpu=CPU, clock="virtual") as cluster, tf.Session(cluster.target) as session:
            session.run(element if in_data_set else product(element))
            return cluster.now()

    small, large = seconds(2), seconds(300)
    assert (small == large) == in_data_set and small <= large
