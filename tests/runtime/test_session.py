"""Sessions beyond what one call of TensorFlow shows: ownership, threads, waiting, closing, a placer of one's own."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from collections import Counter

import numpy as np
import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.graph.feeds import checked_feeds
from dtflab.graph.fetches import own
from dtflab.machine.devices import Device
from dtflab.runtime import session as sessions
from dtflab.runtime.graph_mgr import StepContext
from dtflab.runtime.runner import Step
from tests.cluster.two_tasks import in_threads, interrupt_main, never, until

LOCAL = "/job:localhost/replica:0/task:0"
TASK = "/job:localhost/task:0"


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture
def cluster():
    with tf.Cluster(worker=2) as cluster:
        yield cluster


@pytest.fixture(params=["local", "cluster"])
def target(request, cluster):
    return "" if request.param == "local" else cluster.target


# -- what a client is given is its own --------------------------------------------------------------------------


def test_a_fetched_array_is_copied_only_if_somebody_else_holds_it():
    kept = np.ones(3)
    values = [np.ones(3), kept, np.ones(3)[:2], np.broadcast_to(np.float32(1), 3)]
    where = [value.ctypes.data for value in values]
    found = list(map(own, values))
    assert [a.ctypes.data == b for a, b in zip(found, where, strict=True)] == [True, False, False, False]
    assert all(array.flags.writeable and array.base is None for array in found)


def test_no_two_fetches_share_memory():
    x = tf.placeholder(tf.float32, [None, 2])
    variable, y = tf.Variable([1.0, 2.0]), x * 2.0
    several = [y, tf.identity(y), tf.reshape(y, [-1]), variable, variable.read_value(), tf.constant([1.0, 2.0]), x]
    with tf.Session() as session:
        session.run(variable.initializer)
        fed = np.ones((3, 2), np.float32)
        first = session.run(several, {x: fed})
        for i, a in enumerate(first):
            assert not any(np.shares_memory(a, b) for b in [fed, *first[i + 1 :]])
        expected = [a.copy() for a in first]
        for a in first:
            a.fill(-1)
        for a, b in zip(session.run(several, {x: fed}), expected, strict=True):
            np.testing.assert_array_equal(a, b)


def test_writing_into_a_fetched_array_changes_nothing(target):
    v, c = tf.Variable([1.0, 2.0]), tf.constant([3.0, 4.0])
    p = tf.placeholder_with_default([5.0, 6.0], [2])
    with tf.Session(target) as session:
        session.run(v.initializer)
        for _ in range(2):
            found = session.run([v, v.op.outputs[0], c, p, tf.identity(c)])
            assert [a.tolist() for a in found] == [[1, 2], [1, 2], [3, 4], [5, 6], [3, 4]]
            for array in found:
                array += 100  # all are writable, and none is another one's or the cluster's


def test_changing_a_fed_array_later_changes_nothing(target):
    x = tf.placeholder(tf.float32, [2])
    v = tf.Variable([0.0, 0.0])
    array = np.float32([1, 2])
    with tf.Session(target) as session:
        fetched, _ = session.run([x, v.assign(x)], {x: array})
        array[:] = 100
        assert fetched.tolist() == [1, 2] and session.run(v).tolist() == [1, 2]
        fetched[:] = 7
        assert session.run(v).tolist() == [1, 2] and array.tolist() == [100, 100]


def test_what_only_products_read_is_fed_as_it_is():
    """Then nothing of it is left after the step; all else that is fed is copied."""
    x, y, z = (tf.placeholder(tf.float32, [2, 2]) for _ in range(3))
    v, product, later = tf.Variable(tf.zeros([2, 2])), tf.matmul(x, x), tf.matmul(x, z)
    keep = v.assign(product), tf.identity(y), tf.matmul(y, y)
    given = np.eye(2, dtype=np.float32)
    assert checked_feeds(x.graph, {x: given}, copy=False)[x] is given
    others = [{y: given}, {x: given.T}, {x: given.astype(float)}]
    for feed in others:
        (fed,) = checked_feeds(x.graph, feed, copy=False).values()
        assert not np.shares_memory(fed, given) and fed.dtype == np.float32
    assert not np.shares_memory(checked_feeds(x.graph, {x: given})[x], given)
    with tf.Session() as session:
        fetched = session.run([x, product, *keep], {x: given, y: given})
        assert not any(np.shares_memory(array, given) for array in fetched)
        given[:] = 7
        assert session.run(v).tolist() == [[1, 0], [0, 1]]
        handle = session.partial_run_setup([product, later], [x, z])
        session.partial_run(handle, product, {x: given})
        steps = session.step_through(product, {x: given})
        given[:] = 0
        assert session.partial_run(handle, later, {z: np.eye(2)}).tolist() == [[7, 7], [7, 7]]
        assert steps.finish().tolist() == [[98, 98], [98, 98]]


@pytest.mark.parametrize(
    ("name", "fetch", "feed"),
    [
        ("wieghts/read:0", "weights/read:0", "weights/read:0"),
        ("wieghts/read", "weights/read", "weights/read:0"),
        ("weights/read:3", "weights/read:0", "weights/read:0"),
        ("dnoe", "done", None),  # an op without a tensor
        ("nope:0", None, None),  # it ends as `e:0`, as all tensors do
    ],
)
def test_a_name_that_is_not_there_gets_its_nearest(name, fetch, feed):
    with tf.Graph().as_default():
        tf.identity(1.0, name="weights/read"), tf.no_op(name="done"), tf.identity(1.0, name="e")
        with tf.Session() as sess:
            for meant, wrong in ((fetch, lambda: sess.run(name)), (feed, lambda: sess.run("done", {name: 1.0}))):
                with pytest.raises((ValueError, TypeError)) as caught:
                    wrong()
                assert getattr(caught.value, "__notes__", []) == [f"Did you mean {meant}?"] * (meant is not None)


def test_two_fetches_of_one_value_are_two_arrays():
    x = tf.placeholder(tf.float32, [2])
    with tf.Session() as session:
        a, b, c = session.run([x, tf.identity(x), x * 1.0], {x: [1, 2]})
    a[:], b[:] = 5, 6
    assert (a.tolist(), b.tolist(), c.tolist()) == ([5, 5], [6, 6], [1, 2])


def test_a_view_of_a_fed_array_is_copied_too():
    x = tf.placeholder(tf.float32, [3])
    base = np.arange(6, dtype=np.float32)
    with tf.Session() as session:
        assert session.run(x * 2.0, {x: base[::2]}).tolist() == [0, 4, 8]


# -- many threads -----------------------------------------------------------------------------------------------


def test_many_threads_on_one_session(target, fresh_graph):
    x = tf.placeholder(tf.float32, [])
    v = tf.Variable(0.0)
    more = tf.assign_add(v, 1.0, use_locking=True)
    y = x * 2.0
    with tf.Session(target) as session:
        session.run(v.initializer)
        found = in_threads(8, lambda n: [session.run([y, more], {x: n + i})[0] for i in range(50)])
        assert found == [[2 * (n + i) for i in range(50)] for n in range(8)]
        assert session.run(v) == 400


def test_many_threads_that_extend_the_graph(target, fresh_graph):
    one = tf.constant(1.0)
    with tf.Session(target, graph=fresh_graph) as session:

        def client(number):
            with fresh_graph.as_default():
                return [float(session.run(one + float(number + i))) for i in range(10)]

        assert in_threads(6, client) == [[1.0 + n + i for i in range(10)] for n in range(6)]


def test_many_sessions_on_one_server(cluster):
    v = tf.Variable(0.0)
    more = tf.assign_add(v, 1.0, use_locking=True)
    graph = tf.get_default_graph()
    with tf.Session(cluster.target) as session:
        session.run(v.initializer)

        def client(number):
            with tf.Session(cluster.target, graph=graph) as own:
                return len([own.run(more) for _ in range(30)])

        assert in_threads(6, client) == [30] * 6
        assert session.run(v) == 180


# -- waiting ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["options", "config"])
def test_a_step_that_takes_too_long(how):
    config = tf.ConfigProto(operation_timeout_in_ms=50 if how == "config" else 0)
    options = tf.RunOptions(timeout_in_ms=50) if how == "options" else None
    waits = never(TASK) + 1.0
    with tf.Session(config=config) as session:
        with pytest.raises(errors.DeadlineExceededError, match="Timed out"):
            session.run(waits, options=options)
        assert session.run(tf.constant(5), options=tf.RunOptions(timeout_in_ms=60_000)) == 5


def test_a_steps_own_limit_comes_before_the_sessions():
    with tf.Session(config=tf.ConfigProto(operation_timeout_in_ms=1)) as session:
        assert session.run(tf.constant(1), options=tf.RunOptions(timeout_in_ms=60_000)) == 1


def test_closing_a_session_ends_its_steps(target):
    place = TASK if not target else "/job:worker/task:0"
    waits = never(place) + 1.0
    session = tf.Session(target)
    found, runs = [], threading.Thread(target=lambda: found.extend(in_threads(2, lambda n: session.run(waits))))
    runs.start()
    until(lambda: session.handle and len(session._master.session(session.handle)._running) == 2, "two steps run")
    session.close()
    runs.join(30)
    assert [type(error) for error in found] == [errors.CancelledError] * 2
    with pytest.raises(RuntimeError, match="Attempted to use a closed Session"):
        session.run(waits)


def test_ctrl_c_while_waiting_leaves_the_session_usable():
    waits, quick = never(TASK) + 1.0, tf.constant(5)
    with tf.Session() as session:
        for _ in range(3):
            helper = threading.Thread(target=interrupt_main, args=("_wait",))
            helper.start()
            with pytest.raises(KeyboardInterrupt):
                session.run(waits)
            helper.join()
            assert session.run(quick) == 5
            assert session._master.session(session.handle)._running == {}


# -- connecting -------------------------------------------------------------------------------------------------


def test_a_session_connects_at_its_first_run():
    a = tf.constant(1.0)
    session = tf.Session("grpc://soon.example.com:2222")  # nobody is there yet, as in a book's listing
    server = tf.train.Server({"worker": ["soon.example.com:2222"]})
    try:
        assert session.run(a) == 1
        session.close()
    finally:
        server.stop()


def test_nobody_at_the_target(monkeypatch):
    monkeypatch.setattr(tf.timeouts, "connect", 0.05)
    too_long = pytest.raises(errors.UnavailableError, match=r"nobody.invalid:2222 did not answer within 0.05 s")
    with tf.Session("grpc://nobody.invalid:2222") as session, too_long:
        session.run(tf.constant(1.0))


@pytest.mark.parametrize("call", ["run", "make_callable", "partial_run_setup", "step_through"])
def test_an_empty_graph_names_a_fetch_of_another_one(call):
    old = tf.constant(2.0) + 1.0
    for fetches, foreign in [({"y": [old]}, True), (old.op, True), ("add:0", False)]:
        with (
            tf.Session(graph=tf.Graph()) as session,
            pytest.raises(RuntimeError, match=r"^The Session graph is empty\. Add") as caught,
        ):
            getattr(session, call)(fetches)
        notes = "".join(getattr(caught.value, "__notes__", ()))
        assert ("'add" in notes and "tf.Session(graph=t.graph)" in notes) == foreign
    with tf.Session(graph=old.graph) as session:
        assert session.run(old) == 3


def test_what_can_t_be_placed_fails_at_each_run_until_the_session_is_made_again():
    good = tf.constant(1.0)
    with tf.Session() as session:
        assert session.run(good) == 1
        with tf.device("/job:nowhere"):
            tf.negative(good, name="lost")
        for _ in range(2):
            with pytest.raises(
                errors.InvalidArgumentError, match="Cannot assign a device for operation lost"
            ) as caught:
                session.run(good)
            assert __file__ in str(caught.value)


def test_a_session_that_can_t_be_opened_leaves_nothing_behind(cluster):
    with tf.device("/job:nowhere"):
        lost = tf.constant(1.0)
    session = tf.Session(cluster.target)
    for _ in range(3):
        with pytest.raises(errors.InvalidArgumentError, match="Cannot assign a device"):
            session.run(lost)
    assert [task.server.task.worker._sessions for task in cluster.tasks] == [{}, {}]


# -- closing ----------------------------------------------------------------------------------------------------


def test_a_forgotten_session_is_closed(cluster):
    a = tf.constant(1.0)
    session = tf.Session(cluster.target)
    session.run(a)
    master, handle, gone = session._master, session.handle, weakref.ref(session)
    assert sessions.last_session() is session
    del session
    gc.collect()
    assert gone() is None and handle not in master._sessions


def test_two_steps_that_make_what_a_node_keeps_at_once_share_it():
    """A queue without a shared name is an example: the second step's was let go, with the threads that waited there."""
    kept: dict[str, object] = {}
    one, other = (StepContext(Step(n), Device(f"{LOCAL}/device:CPU:0"), None, kept, (), None) for n in (1, 2))
    others = []

    def make():
        others.append(other.state("node", object))
        return object()

    assert one.state("node", make) is others[0] is kept["node"]


def test_a_closed_session_leaves_nothing_behind():
    with tf.device("/cpu:0"):
        a = tf.constant(1.0)
    with tf.device("/cpu:1"):
        b = a + 1.0
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        assert session.run(b) == 2
        (worker,) = [get() for get in session._master._workers.values()]
        assert worker.rendezvous._steps == {} and len(worker.graphs._graphs) == 1
    assert worker.graphs._graphs == {} and worker._sessions == {} and session._master._sessions == {}


def test_sessions_work_in_threads_of_their_own():
    a = tf.constant(1.0)

    def client(number):
        assert tf.get_default_session() is None and tf.get_default_graph() is not a.graph
        with tf.Session(graph=a.graph) as session:
            assert tf.get_default_session() is session and tf.get_default_graph() is a.graph
            return float(a.eval())

    assert in_threads(4, client) == [1.0] * 4


# -- the placer is a function -----------------------------------------------------------------------------------


def test_a_placer_of_ones_own():
    asked = []

    def everything_on_the_last(nodes, devices, default_task, allow_soft_placement, placed):
        asked.append((len(nodes), default_task, allow_soft_placement, len(placed)))
        return {node.name: devices[-1] for node in nodes}

    a = tf.constant(1.0)
    config = tf.ConfigProto(device_count={"CPU": 3}, allow_soft_placement=True)
    with tf.Session(config=config, placer=everything_on_the_last) as session:
        assert session.run(a) == 1
        b = a + 1.0
        assert session.run(b) == 2
        assert {node.device for node in session.placed_nodes()} == {f"{LOCAL}/device:CPU:2"}
    assert asked == [(1, LOCAL, True, 0), (3, LOCAL, True, 1)]


# -- what a step reports ------------------------------------------------------------------------------------------


def test_partition_graphs():
    with tf.device("/cpu:1"):
        a = tf.constant(1.0, name="a")
    b = tf.negative(a, name="b")
    metadata = tf.RunMetadata()
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 3})) as session:
        session.run(b, options=tf.RunOptions(output_partition_graphs=True), run_metadata=metadata)
    graphs = [[(n.name.rpartition("/")[2], n.op, n.device[-5:]) for n in g.node] for g in metadata.partition_graphs]
    assert graphs == [
        [("a", "Const", "CPU:1"), ("send", "_Send", "CPU:1")],
        [("recv", "_Recv", "CPU:0"), ("b", "Neg", "CPU:0"), ("_retval_b_0_0", "_Retval", "CPU:0")],
    ]


def test_partition_graphs_of_gpus():
    """One for each card, with what crosses between its two memories: as the parts that the executors have."""
    with tf.Cluster(worker=1, gpus=3) as cluster:
        with tf.device("/cpu:0"):
            x = tf.placeholder(tf.float32, [2, 2])
        y = x
        for i in range(3):
            with tf.device(f"/gpu:{i}"):
                y = tf.reshape(tf.matmul(y, y), tf.cast([2.0, 2.0], tf.int32))  # made on the card, read on the host
        metadata, options = tf.RunMetadata(), tf.RunOptions(output_partition_graphs=True)
        with tf.Session(cluster.target) as session:
            session.run(y, {x: np.eye(2)}, options=options, run_metadata=metadata)
            (graphs,) = session._master._workers["/job:worker/replica:0/task:0"]().graphs._graphs.values()
    assert [[n.name for n in graph.node] for graph in metadata.partition_graphs] == [
        [node.name for node in executor.nodes] for executor in graphs
    ]
    parts = {graph.node[0].device[-5:]: Counter(n.op for n in graph.node) for graph in metadata.partition_graphs}
    assert sorted(parts) == ["CPU:0", "GPU:0", "GPU:1", "GPU:2"] and len(metadata.partition_graphs) == 4
    for gpu in ("GPU:0", "GPU:1", "GPU:2"):
        assert [parts[gpu][op] for op in ("_Recv", "_Send", "_HostRecv", "_HostSend")] == [1, 2, 1, 0]


def test_log_device_placement(capfd):
    with tf.Session(config=tf.ConfigProto(log_device_placement=True)) as session:
        session.run(tf.constant(1.0, name="first"))
        session.run(tf.constant(1.0, name="second"))
    lines = [f"{name}: (Const): {LOCAL}/device:CPU:0" for name in ("first", "first", "second")]
    assert capfd.readouterr().out.splitlines() == lines, "a graph that has grown is placed again, as a whole"


def test_devices():
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        first, second = session.list_devices()
    assert (first.name, second.name) == (f"{LOCAL}/device:CPU:0", f"{LOCAL}/device:CPU:1")
    assert first.device_type == "CPU" and first.memory_limit_bytes > 0
    assert first.incarnation != second.incarnation and "CPU:0, CPU" in repr(first)


def test_devices_can_be_listed_though_the_graph_can_not_be_placed():
    with tf.device("/gpu:7"):
        x = tf.constant(1.0) + 1.0
    with tf.Session() as session:
        assert [device.device_type for device in session.list_devices()] == ["CPU"]
        with pytest.raises(tf.errors.InvalidArgumentError, match="/device:GPU:7 but available devices are"):
            session.run(x)


def test_placement_of_a_part():
    a, b = tf.constant(1.0, name="a"), tf.constant(2.0, name="b")
    with tf.Session() as session:
        assert [n.name for n in session.placed_nodes(-a)] == ["a", "Neg"]
        assert [n.name for n in session.placed_nodes([b.op])] == ["b"]


def test_a_program_that_just_ends_ends():
    """No thread, session or server holds up the end of a process."""
    program = """
import dtflab as tf
x = tf.Variable(tf.random_normal([300, 300]))
cluster = tf.Cluster(ps=1, worker=2)
with tf.device("/job:ps/task:0"):
    y = tf.Variable(1.0)
session = tf.Session(cluster.target)
session.run(tf.global_variables_initializer())
session.run([tf.matmul(x, x), y])
print("done")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_an_empty_list_remembered_does_not_make_none_a_fetch():
    tf.constant(1.0)
    with tf.Session() as sess:
        assert sess.run([]) == []
        with pytest.raises(TypeError, match="Cannot be None"):
            sess.run(None)


def test_a_step_that_is_cancelled_twice_tells_the_first_reason():
    """The session is closed, then its cluster is stopped, both before the step's own thread looks."""
    step = Step(1)
    step.cancel(errors.CancelledError(None, None, "the session was closed"))
    step.cancel(errors.UnavailableError(None, None, "the task was stopped"))
    with pytest.raises(errors.CancelledError, match="the session was closed"):
        step.drive()


def test_a_step_that_comes_while_its_master_ends_hears_why():
    """The step that is not yet among those which the end of a session cancels."""
    with tf.Graph().as_default(), tf.Session() as sess:
        one = tf.constant(1.0)
        sess.run(one)
        sess.master_session().close(tf.errors.UnavailableError(None, None, "the task was killed"))
        with pytest.raises(tf.errors.UnavailableError, match="the task was killed"):
            sess.run(one)
