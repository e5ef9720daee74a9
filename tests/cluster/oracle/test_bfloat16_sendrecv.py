"""`enable_bfloat16_sendrecv`: tensors that cross between tasks have TensorFlow's bits, and no others change."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import dtflab
from dtflab.cluster.addresses import free_addresses
from tests.interop.programs.parts import AWKWARD
from tests.oracle import answers
from tests.oracle.programs import Programs

program = Programs()
CPUS = {"CPU": 2}
PS, WORKER = "/job:ps/cpu:0", "/job:worker/cpu:0"
BITS = np.concatenate([np.array(AWKWARD, np.uint32), np.random.default_rng(5).integers(0, 1 << 32, 2000, np.uint32)])
VALUES = BITS.view(np.float32)


@pytest.fixture(params=["real", "virtual"], scope="module")
def target(request):
    config = dtflab.ConfigProto(device_count=CPUS)
    with dtflab.Cluster(ps=1, worker=1, config=config, clock=request.param) as cluster:
        yield cluster.target_of("ps", 0)


@cache
def their_servers(tf: Any) -> list[Any]:
    ps, worker = free_addresses(2)
    config = tf.ConfigProto(device_count=CPUS)
    return [tf.train.Server({"ps": [ps], "worker": [worker]}, job, 0, config=config) for job in ("ps", "worker")]


@program.each()
def test_same_bits(run, target):
    theirs = answers.theirs(lambda tf: found(tf, run, their_servers(tf)[0].target))
    ours = found(dtflab, run, target)
    assert [a.dtype for a in ours] == [a.dtype for a in theirs]
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a.view(np.uint8), b.view(np.uint8))


def found(tf: Any, run: Any, target: str) -> list[Any]:
    """The values of the program's fetches, as arrays of one element at least; `run` gives fetches and feeds."""
    config = tf.ConfigProto(device_count=CPUS, graph_options=tf.GraphOptions(enable_bfloat16_sendrecv=True))
    with tf.Graph().as_default(), tf.Session(target, config=config) as session:
        fetches, feeds = run(tf)
        session.run(tf.global_variables_initializer())
        return [np.atleast_1d(value) for value in session.run(fetches, feeds)]


@program
def from_task_to_task(tf):
    with tf.device(PS):
        x = tf.placeholder(tf.float32, [None])
        y = tf.identity(x)
    with tf.device(WORKER):
        return [tf.bitcast(y, tf.int32)], {x: VALUES}


@program
def fed_and_fetched(tf):
    """On the task that is not the master both ways are a crossing; on the master neither is."""
    xs, ys = [], []
    for device in (PS, WORKER):
        with tf.device(device):
            xs.append(tf.placeholder(tf.float32, [None]))
            ys.append(tf.identity(xs[-1]))
    return ys, dict.fromkeys(xs, VALUES)


@program
def from_device_to_device_of_a_task(tf):
    with tf.device(PS):
        x = tf.placeholder(tf.float32, [None])
        y = tf.identity(x)
    with tf.device("/job:ps/cpu:1"):
        return [tf.identity(y)], {x: VALUES}


@program
def other_dtypes(tf):
    values = [np.pi * 10.0**n for n in range(5)]
    with tf.device(PS):
        made = [tf.constant(values, dtype) for dtype in (tf.float64, tf.float16, tf.bfloat16, tf.complex64)]
        made.append(tf.constant([257, -65537]))
    with tf.device(WORKER):
        return [tf.bitcast(tf.identity(x), tf.uint8) for x in made], None


@program
def scalars_and_nothing(tf):
    with tf.device(PS):
        made = [tf.constant(np.pi, tf.float32), tf.zeros([0, 3])]
    with tf.device(WORKER):
        return [tf.identity(x) for x in made], None


@program
def a_reference_and_a_resource(tf):
    with tf.device(PS):
        v, w = (tf.Variable(np.float32([np.pi, -np.e]), use_resource=kind) for kind in (False, True))
    with tf.device(WORKER):
        y, z = tf.abs(v._ref()), tf.abs(w)
    with tf.device(PS):
        return [y, z, tf.assign_add(v, y)], None


@program
def a_branch_that_is_not_taken(tf):
    with tf.device(PS):
        x = tf.placeholder(tf.float32, [None])
        no, yes = tf.raw_ops.Switch(data=x, pred=tf.constant(False))
    with tf.device(WORKER):
        root = tf.sqrt(yes)
    with tf.device(PS):
        return tf.raw_ops.Merge(inputs=[no, root]), {x: VALUES}


@program
def turns_of_a_loop(tf):
    def body(i, a):
        with tf.device(WORKER):
            return i + 1, a * 1.37

    with tf.device(PS):
        return tf.while_loop(lambda i, a: i < 5, body, [tf.constant(0), tf.constant(np.float32([1.1, -7.7]))]), None


@program
def after_a_control_edge(tf):
    with tf.device(PS):
        n = tf.identity(tf.constant(np.pi, tf.float32))
    with tf.device(WORKER), tf.control_dependencies([n]):
        return [tf.constant(2.0) + 1.25, n + tf.constant(0.001)], None
