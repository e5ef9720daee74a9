"""Functions that a kernel calls: on its thread, within its step, with the device's resources, a state of their own."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.graph import op_registry
from dtflab.graph.apply_op import apply_op
from dtflab.graph.tracing import trace
from dtflab.machine.clock import REAL
from dtflab.machine.devices import Device
from dtflab.runtime.function_call import FunctionCall
from dtflab.runtime.graph_mgr import StepContext

SCALAR = (tf.float32, tf.TensorShape([]))
INTERFACE = """CallIt(args: Tin) -> (output: Tout)
    Tin: list(type) >= 0
    Tout: list(type) >= 0
    f: func"""


@pytest.fixture(autouse=True)
def graph():
    """A graph, and an op whose kernel calls its function."""

    @op_registry.op(INTERFACE)
    class CallIt(op_registry.Op):
        needs_ctx = True
        stateful = True

        def bind(node, xp):
            def kernel(ctx, *values):
                return ctx.state(node.name, lambda: ctx.instantiate(node["f"]))(values, ctx)

            return kernel

    try:
        with tf.Graph().as_default() as graph:
            yield graph
    finally:
        del op_registry._registry["CallIt"]


def called(traced, *arguments):
    types = [dtype for _, dtype in traced.function.results]
    return apply_op("CallIt", None, args=[*arguments, *traced.captures], f=traced.function, Tout=types)


def test_a_kernel_calls_a_function_of_this_step():
    outside = tf.placeholder(tf.float32, [])
    traced = trace(lambda x: (x * outside, tf.reduce_sum(tf.ones([3]) * x)), [SCALAR], "f")
    results = called(traced, 2.0)
    with tf.Session() as session:
        assert session.run(results, {outside: 5.0}) == [10.0, 6.0]
        assert session.run(results, {outside: 7.0}) == [14.0, 6.0]


def test_the_function_is_bound_once(monkeypatch):
    made = []
    monkeypatch.setattr(FunctionCall, "__init__", counting(FunctionCall.__init__, made))
    (y,) = called(trace(lambda x: x + 1.0, [SCALAR], "f"), 1.0)
    with tf.Session() as session:
        assert [session.run(y) for _ in range(3)] == [2.0] * 3
    assert len(made) == 1


def counting(function, calls):
    def counted(*args):
        calls.append(args)
        function(*args)

    return counted


def test_branches_loops_and_calls_inside():
    inner = trace(lambda x: x * 3.0, [SCALAR], "inner")

    def body(x):
        (y,) = apply_op("PartitionedCall", None, args=[x], f=inner.function, Tout=[tf.float32])
        _, y = tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, y * 2.0), [0, y])
        return tf.cond(y > 0.0, lambda: y, lambda: called(inner, y)[0])

    traced = trace(body, [SCALAR], "f")
    x = tf.placeholder(tf.float32, [])
    (y,) = called(traced, x)
    with tf.Session() as session:
        assert [session.run(y, {x: value}) for value in (1.0, -1.0)] == [12.0, -36.0]


def test_variables_of_the_device_and_random_numbers_of_its_own():
    v = tf.get_variable("v", initializer=1.0, use_resource=True)

    def body(x):
        with tf.control_dependencies([v.assign_add(x)]):
            return v.read_value(), tf.random_uniform([], seed=7)

    first, second = (called(trace(body, [SCALAR], "f"), 2.0) for _ in range(2))
    with tf.Session() as session:
        session.run(v.initializer)
        runs = [session.run(first), session.run(first), session.run(second)]
    assert [value for value, _ in runs] == [3.0, 5.0, 7.0]
    numbers = [number for _, number in runs]
    assert numbers[0] == numbers[2] != numbers[1]


def test_what_a_body_raises_names_its_node():
    (y,) = called(trace(lambda x: tf.check_numerics(x, "bad", name="check"), [SCALAR], "f"), np.float32(np.nan))
    with tf.Session() as session, pytest.raises(errors.InvalidArgumentError, match=r"bad.*\n.*node check"):
        session.run(y)


def waiting_program():
    """A call that waits for a queue that nobody fills, and the queue."""
    queue = tf.FIFOQueue(1, tf.float32, [[]], shared_name="queue")
    started = threading.Event()

    def body(x):
        mark = tf.py_func(lambda: started.set(), [], [])
        with tf.control_dependencies([mark]):
            return queue.dequeue() + x

    return called(trace(body, [SCALAR], "f"), 1.0)[0], queue, started


def test_it_ends_with_its_step_when_the_session_is_closed():
    y, _, started = waiting_program()
    session, caught = tf.Session(), []

    def run():
        try:
            session.run(y)
        except errors.OpError as error:
            caught.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert started.wait(30)
    session.close()
    thread.join(30)
    assert not thread.is_alive() and isinstance(caught[0], errors.CancelledError)


def test_it_has_no_more_time_than_its_step():
    y, _, _ = waiting_program()
    with tf.Session() as session, pytest.raises(errors.DeadlineExceededError):
        session.run(y, options=tf.RunOptions(timeout_in_ms=50))


def test_it_waits_for_what_another_step_does():
    y, queue, started = waiting_program()
    fill = queue.enqueue(41.0)
    with tf.Session() as session:
        found = []
        thread = threading.Thread(target=lambda: found.append(session.run(y)))
        thread.start()
        assert started.wait(30)
        session.run(fill)
        thread.join(30)
    assert found == [42.0]


def test_a_trace_shows_the_nodes_of_the_body():
    (y,) = called(trace(lambda x: tf.multiply(x, 2.0, name="inside"), [SCALAR], "f"), 1.0)
    metadata = tf.RunMetadata()
    with tf.Session() as session:
        session.run(y, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
    assert "inside" in {n.node_name for device in metadata.step_stats.dev_stats for n in device.node_stats}


# -- without a step -------------------------------------------------------------------------------------------------


@pytest.fixture
def device():
    device = Device("/job:localhost/replica:0/task:0/device:CPU:0")
    yield device
    device.close()


def bound(traced, device):
    return FunctionCall(traced.function, device, REAL, StepContext)


def test_many_threads_may_call_at_once(device):
    call = bound(trace(lambda x: tf.while_loop(lambda y: y < 100.0, lambda y: y + x, [x]), [SCALAR], "f"), device)
    found = [None] * 8

    def run(i):
        found[i] = [call([np.float32(i + 1)])[0] for _ in range(20)]

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(found))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [[np.float32(-(-100 // (i + 1)) * (i + 1))] * 20 for i in range(len(found))]


def test_a_wrong_number_of_values_is_refused(device):
    call = bound(trace(lambda x: x, [SCALAR], "f"), device)
    with pytest.raises(errors.InvalidArgumentError, match="Function f takes 1 arguments, but was given 2"):
        call([1.0, 2.0])


def test_a_function_may_give_what_it_got_or_a_constant(device):
    call = bound(trace(lambda x: (x, tf.constant(3), x), [SCALAR], "f"), device)
    assert call([np.float32(2)]) == [2.0, 3, 2.0]
