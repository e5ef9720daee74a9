"""Everything that shows time shows virtual time: traces, timeline, hooks, summaries, timestamps, coordinators."""

from __future__ import annotations

import io
import subprocess
import sys
from contextlib import redirect_stdout

import numpy as np
import pytest

import dtflab as tf
from dtflab.machine.smi import IN_VIRTUAL_TIME, SIMULATED
from dtflab.virtual.clock import EPOCH
from tests.virtual.small_program import CPU, GPU, NETWORK


@pytest.fixture
def cluster():
    with tf.Cluster(ps=1, worker=2, cpu=CPU, gpu=GPU, network=NETWORK, clock="virtual") as cluster:
        yield cluster


def spans(device_stats):
    """(node, start, end) in seconds of virtual time."""
    starts = [node.all_start_nanos / 1e9 - EPOCH for node in device_stats.node_stats]
    return [
        (node.node_name, start, start + node.all_end_rel_nanos / 1e9)
        for node, start in zip(device_stats.node_stats, starts, strict=True)
    ]


def traced(cluster):
    """A matrix from the ps, worked on by a GPU: its trace by device."""
    with tf.Graph().as_default(), tf.Session(cluster.target) as session:
        with tf.device("/job:ps/task:0"):
            weights = tf.Variable(tf.ones([500, 500]), name="w")
        with tf.device("/job:worker/task:0/gpu:0"):
            total = tf.reduce_sum(tf.matmul(weights, weights, name="product"))
        session.run(tf.global_variables_initializer())
        metadata = session.trace(total)
        return metadata, {device.device: device for device in metadata.step_stats.dev_stats}


def test_a_trace_has_modelled_times(cluster):
    metadata, devices = traced(cluster)
    gpu = "/job:worker/replica:0/task:0/device:GPU:0"
    ((start, end),) = ((start, end) for name, start, end in spans(devices[gpu]) if name == "product")
    flops = 500 * 500 * (2 * 500 - 1)
    assert end - start == pytest.approx(GPU.launch_s + flops / (1e11 * 0.5), rel=0.01)
    ((_, sent, arrived),) = spans(devices[f"{gpu}/wire"])
    assert arrived - sent == pytest.approx(500 * 500 * 4 / 1e8, rel=0.02)  # at the speed of the network card
    assert arrived <= start + 1e-6
    picture = tf.viz.timeline(metadata)
    drawn = str(picture.svg if hasattr(picture, "svg") else picture._repr_svg_())
    assert "modelled GPU" in drawn and "modelled GPU 0" not in drawn, "the row of GPU:1 would look like GPU:0's"
    assert "NumPy timings" not in str(picture)


def test_kernels_on_the_cores_of_a_host_have_rows_of_their_own(cluster):
    with tf.Graph().as_default(), tf.Session(cluster.target) as session:
        one = tf.placeholder(tf.float32, [100_000])
        with tf.device("/job:worker/task:0/cpu:0"):
            parts = [tf.negative(one, name=f"part_{i}") for i in range(6)]
        metadata = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        session.run([part.op for part in parts], {one: np.zeros(100_000, np.float32)}, options, metadata)
    (device,) = metadata.step_stats.dev_stats
    rows = {}
    for node in device.node_stats:
        if node.node_name.startswith("part"):
            rows.setdefault(device.thread_names[node.thread_id], []).append(node.all_start_nanos)
    assert sorted(rows) == [f"modelled core {i}" for i in range(4)]
    assert sorted(map(len, rows.values())) == [1, 1, 2, 2]


def test_hooks_count_virtual_seconds(cluster, tmp_path):
    """A step takes 100 s, which the client says; steps per second, checkpoints and summaries go by that."""

    def program(client):
        with tf.device("/job:ps/task:0"):
            step = tf.train.get_or_create_global_step()
            train_op = tf.assign_add(step, 1)
            tf.summary.scalar("step", step)
        with tf.train.MonitoredTrainingSession(
            client.target, checkpoint_dir=str(tmp_path), save_checkpoint_secs=350, save_summaries_secs=250,
            save_summaries_steps=None, log_step_count_steps=10, hooks=[tf.train.StopAtStepHook(last_step=20)],
        ) as session:  # fmt: skip
            while not session.should_stop():
                session.run(train_op)
                tf.sim.sleep(100.0)

    with tf.Graph().as_default():
        program(cluster.client("worker"))
    tf.summary.FileWriterCache.clear()
    events = [event for file in tmp_path.glob("events*") for event in tf.train.summary_iterator(str(file))]
    rates = [v.simple_value for e in events for v in e.summary.value if v.tag == "global_step/sec"]
    assert rates == pytest.approx([0.01], rel=0.01)
    moments = [e.wall_time - EPOCH for e in events if any(v.tag == "step" for v in e.summary.value)]
    assert np.diff(moments) == pytest.approx(300.0, abs=1.0)  # the first step at which 250 s have passed
    assert all(-1 < e.wall_time - EPOCH < 3000 for e in events if e.HasField("summary"))


def test_a_timestamp_is_of_virtual_time(cluster):
    def program(client):
        tf.sim.sleep(1000.0 * (1 + client.index))
        with tf.device(client.device), tf.Session(client.target) as session:
            return session.run(tf.timestamp()) - EPOCH

    assert cluster.run(program) == pytest.approx([1000.0, 2000.0], abs=0.01)


def test_coordinators_and_supervisors_rest_in_virtual_time(cluster):
    def program(client):
        coord = tf.train.Coordinator()
        seen = []

        def look():
            seen.append(tf.sim.now())

        with coord.stop_on_exception():
            looper = tf.train.LooperThread.loop(coord, 10.0, look)
            tf.sim.sleep(35.0)
            coord.request_stop()
        coord.join([looper])
        return seen

    for seen in cluster.run(program):
        assert seen == pytest.approx([0.0, 10.0, 20.0, 30.0])


def test_a_cluster_says_what_time_it_is(cluster):
    cluster.run(lambda client: tf.sim.sleep(1.5))
    with redirect_stdout(io.StringIO()) as printed:
        print(cluster)
    assert "1.5 s of virtual time; 3 × a CPU, 2 × a GPU; a NIC" in printed.getvalue()
    assert "1.5 s of virtual time" in cluster.status() and "1.5 s of virtual time" in cluster._repr_html_()
    assert cluster.machines.devices == [
        f"/job:{name}:0" for name in (
            "ps/replica:0/task:0/device:CPU",
            "worker/replica:0/task:0/device:CPU", "worker/replica:0/task:0/device:GPU",
            "worker/replica:0/task:1/device:CPU", "worker/replica:0/task:1/device:GPU",
        )
    ]  # fmt: skip


def test_partial_runs_and_steps_by_hand_give_the_same_values(cluster):
    with tf.Graph().as_default(), tf.Session(cluster.target) as session:
        with tf.device("/job:worker/task:1/cpu:0"):
            x, y = tf.placeholder(tf.float32, [], name="x"), tf.placeholder(tf.float32, [], name="y")
            first = x * 2.0
            second = first + y
        handle = session.partial_run_setup([first, second], [x, y])
        assert session.partial_run(handle, first, {x: 3.0}) == 6.0
        assert session.partial_run(handle, second, {y: 1.0}) == 7.0
        assert cluster.now() > 0
        steps = session.step_through(second, {x: 1.0, y: 2.0})
        while not steps.over:
            steps.next()
        assert steps.finish() == 4.0


def multiply(client):
    """A product on the client's GPU, and its seconds."""
    with tf.device(f"{client.device}/gpu:0"):
        ones = tf.constant(np.ones([500, 500], np.float32))
        product = tf.matmul(ones, ones).op
    return product, GPU.launch_s + 2 * 500**3 / (1e11 * 0.5)


def state_of(shown, cluster, index):
    """The host of a worker, among all that this machine knows."""
    (host,) = (host for host in shown.hosts if host.name.startswith(f"worker-{index}.{cluster.name} "))
    return host


def test_gpu_util_is_of_virtual_seconds_since_the_last_look(cluster):
    def program(client):
        product, takes = multiply(client)
        with tf.Session(client.target) as session:
            session.run(product)
            found = []
            for pause in (takes, 3 * takes):
                tf.smi()
                session.run(product)
                tf.sim.sleep(pause)
                found.append(tf.smi())
            return found

    (half, quarter), _ = cluster.run(lambda client: program(client) if client.is_chief else None)
    mine, other = state_of(half, cluster, 0), state_of(half, cluster, 1)
    assert "GPU-Util is of modelled seconds" in mine.label and "|     50%      Default |" in str(half)
    assert mine.cards[0].utilization == pytest.approx(0.5, rel=1e-4) and other.cards[0].utilization == 0
    assert state_of(quarter, cluster, 0).cards[0].utilization == pytest.approx(0.25, rel=1e-4)


def test_a_look_with_a_period_lets_virtual_time_pass(cluster):
    def program(client):
        product, takes = multiply(client)
        with tf.Session(client.target) as session:
            if not client.is_chief:
                for _ in range(20):
                    session.run(product)
                return None
            tf.sim.sleep(2.5 * takes)
            began = tf.sim.now()
            shown = tf.smi(10 * takes)
            assert tf.sim.now() - began == pytest.approx(10 * takes)
            return state_of(shown, cluster, 1).cards[0].utilization

    assert cluster.run(program)[0] == pytest.approx(1.0, rel=0.1)


def labels(cluster=None):
    """The label of each host with cards, or of a cluster's own hosts; each must be in the text and the table, too."""
    shown = tf.smi()
    assert all(host.label in shown.text for host in shown.hosts)
    assert ("NumPy" in shown.text) == ("NumPy" in shown._repr_html_())
    own = [host for host in shown.hosts if cluster is None or f".{cluster.name} of process" in host.name]
    return [host.label for host in own]


@pytest.fixture
def simulated():
    tf.simulate_gpus(1)
    yield
    tf.simulate_gpus(None)


def test_cards_in_virtual_time_are_never_said_to_take_the_times_of_numpy():
    with tf.Cluster(ps=1, worker=3, gpus=1, clock="virtual") as cluster:
        assert labels() == [IN_VIRTUAL_TIME] * 3, "before the first session"
        with tf.Session(cluster.target) as session:
            assert labels() == [IN_VIRTUAL_TIME] * 3, "before the first step"
            with tf.device("/job:worker/task:1/gpu:0"):
                session.run(tf.ones([2, 2]) + 1.0)
            assert labels() == [IN_VIRTUAL_TIME] * 3, "after a step of one of them"
        cluster.stop()
        assert labels() == []
        cluster.restart()
        assert labels() == [IN_VIRTUAL_TIME] * 3
    assert labels() == []


def test_nor_are_those_that_the_host_of_a_notebook_lends(simulated):
    with tf.Cluster(worker=3, clock="virtual") as cluster:
        with tf.Session(cluster.target):
            assert labels(cluster) == [IN_VIRTUAL_TIME] * 3
        assert labels() == [SIMULATED, *[IN_VIRTUAL_TIME] * 3]  # the notebook's own programs run in real time
        cluster.stop()
        assert labels(cluster) == [], "no host of a stopped cluster is left"
        cluster.restart()
        with tf.Session(cluster.target):
            assert labels(cluster) == [IN_VIRTUAL_TIME] * 3
    assert labels() == [SIMULATED]


def test_a_host_by_address_is_in_virtual_time_as_long_as_a_virtual_cluster_lives_there(simulated):
    with tf.Cluster({"worker": ["localhost:7001", "localhost:7002"]}, clock="virtual"):
        with tf.Cluster({"worker": ["localhost:7003"]}, clock="virtual"):
            assert labels() == [IN_VIRTUAL_TIME]
        assert labels() == [IN_VIRTUAL_TIME]
    assert labels() == [SIMULATED]


def test_a_cluster_without_cards_says_nothing_of_the_host(simulated):
    with tf.Cluster({"ps": ["localhost:7001"]}, clock="virtual"):
        assert labels() == [SIMULATED]


def test_another_process_sees_virtual_time_before_the_first_step():
    with tf.Cluster(worker=1, gpus=1, clock="virtual"):
        printed = subprocess.run(
            [sys.executable, "-m", "dtflab", "smi", "--period", "0"], capture_output=True, text=True, check=True
        ).stdout
    assert IN_VIRTUAL_TIME in printed and "NumPy" not in printed
