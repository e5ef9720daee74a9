"""`Session.reset` and `share_cluster_devices_in_session`, on TensorFlow's servers and on dtflab's."""

from __future__ import annotations

import pytest

pytest.importorskip("tensorflow")
import tensorflow.compat.v1 as real_tf

import dtflab
from dtflab.cluster.addresses import free_addresses


@pytest.fixture(scope="module")
def theirs():
    """Two servers, which can't be stopped, and the target of the first."""
    spec = {"worker": free_addresses(2)}
    servers = [real_tf.train.Server(spec, "worker", index) for index in (0, 1)]
    yield servers[0].target


@pytest.fixture
def ours():
    with dtflab.Cluster(worker=2) as cluster:
        yield cluster.target


def left_after_reset(tf, target, names, devices_filtered):
    """Which of six variables, of three containers on two tasks, a reset leaves initialized."""
    with tf.Graph().as_default():
        found = []
        for number, container in enumerate(["", "a", "b"] * 2):
            with tf.container(container), tf.device(f"/job:worker/task:{number % 2}"):
                found.append(tf.get_variable(f"v{number}", initializer=1.0, use_resource=False))
        held = [tf.is_variable_initialized(v) for v in found]
        with tf.Session(target) as session:
            session.run(tf.global_variables_initializer())
        config = tf.ConfigProto(device_filters=["/job:worker/task:0"]) if devices_filtered else None
        tf.Session.reset(target, names, config)
        with tf.Session(target) as session:
            return [bool(value) for value in session.run(held)]


@pytest.mark.parametrize("devices_filtered", [False, True])
@pytest.mark.parametrize("names", [None, [], [""], ["a"], ["nobody's"], ["b", "nobody's"]])
def test_a_reset_empties_the_default_container_or_those_it_names(theirs, ours, names, devices_filtered):
    wanted = left_after_reset(real_tf, theirs, names, devices_filtered)
    assert left_after_reset(dtflab, ours, names, devices_filtered) == wanted


@pytest.mark.parametrize("shares", [False, True])
def test_a_function_whose_ops_are_on_two_tasks_of_a_brought_cluster(shares):
    """TensorFlow needs the option for it; here functions are inlined before their ops are placed."""
    with real_tf.Graph().as_default() as graph:

        @real_tf.function
        def on_both(x):
            with real_tf.device("/job:brought/task:1"):
                y = x * 3.0
            with real_tf.device("/job:brought/task:0"):
                return y + 1.0

        real_tf.identity(on_both(real_tf.constant(2.0)), name="result")
    sent = dtflab.GraphDef.FromString(graph.as_graph_def().SerializeToString())
    with dtflab.Cluster(worker=2, listen=True) as cluster, dtflab.Graph().as_default():
        addresses = [task.address for task in cluster.tasks]
        config = dtflab.ConfigProto(share_cluster_devices_in_session=shares)
        config.cluster_def.CopyFrom(dtflab.train.ClusterSpec({"brought": addresses}).as_cluster_def())
        dtflab.import_graph_def(sent, name="")
        traced = dtflab.RunMetadata()
        options = dtflab.RunOptions(trace_level=dtflab.RunOptions.FULL_TRACE)
        with dtflab.Session(cluster.target, config=config) as session:
            assert session.run("result:0", options=options, run_metadata=traced) == 7.0
        assert {stats.device[:30] for stats in traced.step_stats.dev_stats} >= {
            "/job:brought/replica:0/task:0/", "/job:brought/replica:0/task:1/"
        }  # fmt: skip
