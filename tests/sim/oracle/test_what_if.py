"""A step that real TensorFlow ran and traced, simulated again on other hardware."""

from __future__ import annotations

import subprocess
import sys

import pytest

import dtflab as tf
from dtflab import sim
from dtflab.hardware.machines import machines_for

# Without oneDNN TensorFlow's own kernels run; with it, nodes become ops that no graph of a user has.
PROGRAM = """
import sys
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
with tf.device("/cpu:0"):
    x = tf.placeholder(tf.float32, [None, 200], name="x")
    weights = tf.get_variable("weights", [200, 300])
with tf.device("/cpu:1"):
    loss = tf.reduce_mean(tf.square(tf.nn.relu(tf.matmul(x, weights, name="product"))))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
metadata = tf.RunMetadata()
with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
    session.run(tf.global_variables_initializer())
    session.run([loss, train], {x: np.ones([64, 200])}, options=options, run_metadata=metadata)
open(sys.argv[1], "wb").write(metadata.SerializeToString())
"""


@pytest.fixture(scope="module")
def metadata(tmp_path_factory):
    path = tmp_path_factory.mktemp("tensorflow") / "metadata"
    environment = {"TF_ENABLE_ONEDNN_OPTS": "0", "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
    subprocess.run([sys.executable, "-c", PROGRAM, str(path)], env=environment, check=True, timeout=120,
                   capture_output=True)  # fmt: skip
    return tf.RunMetadata.FromString(path.read_bytes())


def test_the_base_has_tensorflows_times_and_its_messages(metadata):
    asked = sim.what_if(metadata, machines_for({"/job:localhost/task:0": "host"}), measured=True)
    recorded = {
        node.node_name: node.all_end_rel_nanos / 1e9
        for device in metadata.step_stats.dev_stats
        for node in device.node_stats
    }
    spans = asked.base.schedule.tasks
    kernels = [name for name, span in spans.items() if span.end > span.start]
    assert {"product", "Relu", "gradients/MatMul_grad/MatMul_1"} & set(kernels)
    for name in kernels:
        assert spans[name].end - spans[name].start == pytest.approx(recorded[name], rel=1e-9)
    assert spans["weights/read/_2"].device.endswith("CPU:0") and spans["product"].device.endswith("CPU:1")
    assert asked.step.batch == 64 and asked.step.sizes["product"] == [(64, 300)]


def test_it_runs_on_what_it_never_ran_on(metadata):
    asked = sim.what_if(metadata, machines_for({"/job:localhost/task:0": "host"}), measured=True)
    assert asked.run(cpu=2.0).makespan == pytest.approx(asked.base.makespan / 2)
    assert asked.run(batch=128).makespan > asked.base.makespan
