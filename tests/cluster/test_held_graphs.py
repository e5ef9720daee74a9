"""Stepping through tasks of several processes: people see what tasks of one process show, and nothing is left."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.base.limits import limits
from dtflab.cluster.answering import ServerCall
from dtflab.cluster.held_graphs import HeldGraphs, RemoteGraph
from dtflab.protos.worker_pb2 import RunGraphRequest
from dtflab.runtime.step_through import StepThrough
from tests.cluster.two_tasks import cluster_over, open_links, until

PS, *WORKERS = ["/job:ps/task:0", *(f"/job:worker/task:{i}" for i in range(3))]
TASKS = {"ps": 1, "worker": 3}


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default():
        yield


@pytest.fixture(scope="module")
def here():
    with tf.Cluster(**TASKS) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def elsewhere():
    with tf.Cluster(**TASKS, engine="process", token=None) as cluster:
        yield cluster


# -- the same nodes, sets, counters and records ---------------------------------------------------------------------


def a_product():
    with tf.device(PS):
        v = tf.Variable(tf.ones([2, 3]), name="v", use_resource=False)
    with tf.device(WORKERS[1]):
        m = tf.matmul(v, v, transpose_b=True, name="m")
    with tf.device(WORKERS[2]):
        return tf.reduce_sum(m, name="n"), v.initializer


def a_queue():
    with tf.device(PS):
        queue = tf.FIFOQueue(3, tf.float32, [[]], name="queue")
    with tf.device(WORKERS[1]):
        put = queue.enqueue(tf.negative(tf.placeholder_with_default(2.0, [], name="x")))
    with tf.device(WORKERS[2]):
        return [queue.dequeue(name="take") * 3.0, put], tf.no_op()


def a_loop():
    with tf.device(WORKERS[1]):
        x = tf.placeholder_with_default(1.0, [], name="x")

    def turn(i, total):
        with tf.device(WORKERS[2]):
            more = total + x
        with tf.device(PS):
            return i + 1, more * 2.0

    with tf.device(WORKERS[1]):
        return tf.while_loop(lambda i, _: i < 3, turn, [0, x], name="loop"), tf.no_op()


def a_branch():
    with tf.device(WORKERS[0]):
        p, x = tf.placeholder_with_default(True, []), tf.placeholder_with_default(1.0, [], name="x")

    def on(task, op, name):
        with tf.device(task):
            return op(x, name=name)

    with tf.device(PS):
        taken = tf.cond(p, lambda: on(WORKERS[1], tf.negative, "yes"), lambda: on(WORKERS[2], tf.exp, "no"))
        return taken + 1.0, tf.no_op()


def a_race():
    """Reads of a variable and an update that are ready together, on a task that is not the master's."""
    with tf.device(WORKERS[2]):
        v = tf.Variable(1.0, name="v", use_resource=False)
        return [v * 10.0, v.assign_add(1.0), v * 100.0], v.initializer


def seen(cluster, make):
    """Everything that a step through shows: its start, its sets, what stands after each, and the values."""
    with tf.Graph().as_default(), tf.Session(cluster.target) as session:
        fetches, before = make()
        session.run(before)
        steps = session.step_through(fetches)
        shown = [state_of(steps)]
        while not steps.over:
            shown.append((steps.next(patient=True), *state_of(steps)))
        assert steps.unseen == [] and {ran.op for record in steps.records for ran in record.ran} >= {"_Send", "_Retval"}
        return shown, tf.nest.flatten(steps.finish())


def state_of(steps):
    return steps.ready, steps.waiting, steps.counts, steps.nodes, repr(steps)


GRAPHS = {"product": [12.0], "queue": [-6.0, None], "loop": [3, 22.0], "branch": [0.0], "race": [10.0, 2.0, 100.0]}


@pytest.mark.parametrize("graph", GRAPHS)
def test_a_step_through_processes_shows_what_one_through_tasks_of_this_process_shows(here, elsewhere, graph):
    make = globals()[f"a_{graph}"]
    expected, values = seen(here, make)
    found, found_values = seen(elsewhere, make)
    for one, other in zip(found, expected, strict=True):
        assert one == other
    assert found_values == values == GRAPHS[graph]
    assert elsewhere.waits() == []


def test_the_tables_of_a_set_name_all_tasks(elsewhere):
    fetches, before = a_product()
    with tf.Session(elsewhere.target) as session:
        session.run(before)
        steps = session.step_through(fetches)
        records = list(steps)
        assert len(records) == 8 and len(steps.nodes) == 11
    ran = {(ran.device.partition("/device")[0], ran.name): ran.result for r in records for ran in r.ran}
    one, two = (task.replace("/task", "/replica:0/task") for task in WORKERS[1:])
    assert ran[one, "m"] == "float32 [2, 2] = [[3., 3.], [3., 3.]]" and ran[two, "n"] == "float32 = 12."


@pytest.mark.parametrize("wire", ["link", "grpc"])
def test_a_step_through_tasks_over_each_wire(here, wire):
    expected = seen(here, a_loop)
    with cluster_over(wire, **TASKS) as cluster:
        open_links(cluster)
        assert seen(cluster, a_loop) == expected


def test_a_trace_has_the_parts_of_all_tasks(elsewhere):
    fetches, before = a_product()
    metadata, options = tf.RunMetadata(), tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    with tf.Session(elsewhere.target) as session:
        session.run(before)
        session.step_through(fetches, options=options, run_metadata=metadata).finish()
    ran = {node.node_name for device in metadata.step_stats.dev_stats for node in device.node_stats}
    assert {"v", "m", "n"} <= ran


# -- what waits for something outside -------------------------------------------------------------------------------


def waiting_at_a_task():
    """A step that waits for a queue of another task than its master, and what fills that."""
    with tf.device(WORKERS[2]):
        queue = tf.FIFOQueue(3, tf.float32, [[]], name="queue")
        taken = tf.negative(queue.dequeue(name="take"), name="taken")
    with tf.device(WORKERS[1]):
        return taken + 1.0, queue.enqueue(5.0), queue.size()


def test_a_part_waits_for_what_comes_from_outside(elsewhere):
    result, put, _ = waiting_at_a_task()
    with tf.Session(elsewhere.target) as session:
        steps = session.step_through(result)
        while "take" not in steps.waiting:
            steps.next()
        assert steps.ready == [] and steps.next().ran == [] and not steps.over
        session.run(put)
        came = steps.next(patient=True)
        assert ("take", "came", ["float32 = 5."]) in [(r.name, r.state, r.outputs) for r in came.ran]
        assert came.ready == ["taken"] and steps.finish() == -4.0


def test_a_patient_set_waits_for_whichever_part_is_ready_first(elsewhere):
    """Two parts wait; one of them is given something and, while the other still waits, runs on."""
    queues, puts, taken = [], [], []
    for task in (WORKERS[1], WORKERS[2]):
        with tf.device(task):
            queues.append(tf.FIFOQueue(3, tf.float32, [[]]))
            puts.append(queues[-1].enqueue(5.0))
            taken.append(tf.negative(queues[-1].dequeue()))
    with tf.Session(elsewhere.target) as session:
        steps = session.step_through(taken)
        while len([name for name in steps.waiting if "Dequeue" in name]) < 2:
            steps.next()
        records = []
        waiter = threading.Thread(target=lambda: records.append(steps.next(patient=True)))
        waiter.start()
        session.run(puts[1])
        waiter.join(60)
        (record,) = records
        assert record.ready == [taken[1].op.name]
        session.run(puts[0])
        assert steps.finish() == [-5.0, -5.0]


# -- how it ends ----------------------------------------------------------------------------------------------------


def test_an_error_in_a_part_names_its_task_and_the_users_line(elsewhere):
    with tf.device(WORKERS[2]):
        checked = tf.check_numerics(tf.placeholder_with_default(np.float32("nan"), []), "not a number")
    with tf.Session(elsewhere.target) as session:
        steps = session.step_through(checked)
        with pytest.raises(tf.errors.InvalidArgumentError, match="not a number") as caught:
            steps.finish()
        assert "/job:worker/replica:0/task:2" in str(caught.value) and "test_held_graphs.py" in str(caught.value)
        assert steps.over and "failed" in repr(steps) and steps.nodes
        assert session.run(tf.constant(1)) == 1
    assert elsewhere.waits() == []


@pytest.fixture
def stood(monkeypatch):
    """A list of the steps by hand, and of their parts, that somebody still holds."""
    made, init = [], StepThrough.__init__

    def recorded(step, *args, **named):
        made.append(weakref.ref(step))
        init(step, *args, **named)

    monkeypatch.setattr(StepThrough, "__init__", recorded)

    def alive():
        gc.collect()  # a step and its iterations know each other
        return [ref() for ref in made if ref() is not None]

    return alive


@pytest.mark.parametrize("end", ["closed", "let go of", "session", "failed"])
@pytest.mark.parametrize("wire", ["link", "grpc"])
def test_what_is_given_up_is_freed_at_all_tasks(stood, wire, end):
    with cluster_over(wire, **TASKS) as cluster:
        open_links(cluster)
        result, _, size = waiting_at_a_task()
        session = tf.Session(cluster.target, config=tf.ConfigProto(operation_timeout_in_ms=300))
        steps = session.step_through(result)
        while "take" not in steps.waiting:
            steps.next()
        assert len(stood()) == 3 and cluster.waits(), "the master's step, and the parts of workers 1 and 2"
        if end == "failed":
            with pytest.raises(tf.errors.DeadlineExceededError):
                steps.finish()
        elif end == "let go of":
            del steps
        else:
            (steps if end == "closed" else session).close()
        until(lambda: not cluster.waits(), "nobody waits for it")
        session.close()
        steps = None
        until(lambda: not stood(), "nobody holds a part")
        with tf.Session(cluster.target) as another:
            assert another.run(size) == 0


def test_a_step_that_is_over_is_freed_at_all_tasks(stood):
    with cluster_over("link", **TASKS) as cluster, tf.Session(cluster.target) as session:
        open_links(cluster)
        fetches, before = a_product()
        session.run(before)
        with session.step_through(fetches) as steps:
            assert steps.finish() == 12.0 and len(stood()) >= 1
        del steps
        until(lambda: not stood(), "nobody holds a part")


CLIENT = """
import sys, dtflab as tf
from tests.cluster.test_held_graphs import waiting_at_a_task
result, _, _ = waiting_at_a_task()
with tf.Session(sys.argv[1]) as session:
    steps = session.step_through(result)
    while "take" not in steps.waiting:
        steps.next()
    print("stands", flush=True)
    sys.stdin.read()
"""


def test_a_step_whose_client_is_killed_is_freed_at_all_tasks(elsewhere):
    with subprocess.Popen(
        [sys.executable, "-c", CLIENT, elsewhere.target], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as client:
        assert client.stdout.readline() == "stands\n"
        assert [line for line in elsewhere.waits() if "take" in line]
        client.kill()
    until(lambda: not elsewhere.waits(), "no part waits any more")


def test_a_step_whose_master_is_killed_is_freed_at_the_others():
    with tf.Cluster(**TASKS, engine="process") as cluster:
        result, _, size = waiting_at_a_task()
        with tf.Session(cluster.target_of("worker", 0)) as session:
            steps = session.step_through(result)
            while "take" not in steps.waiting:
                steps.next()
            cluster.kill("worker", 0)
            until(lambda: not [line for line in cluster.waits() if "take" in line], "the part of worker 2 is gone")
            with pytest.raises(tf.errors.OpError):
                steps.next()
        without = tf.ConfigProto(device_filters=["/job:ps", *WORKERS[1:]])
        with tf.Session(cluster.target_of("ps", 0), config=without) as other:
            assert other.run(size) == 0


# -- what the calls refuse --------------------------------------------------------------------------------------------


@pytest.fixture
def held(here):
    task = here.tasks[0].server.task
    return HeldGraphs(task, lambda request, step: None, lambda step_id: None)


@pytest.mark.parametrize("method", ["AwaitGraph", "AdvanceGraph", "SettleGraph", "AwaitReady"])
def test_a_part_that_is_not_there_is_an_invalid_argument(held, method):
    with pytest.raises(errors.InvalidArgumentError, match="No part of step 7"):
        held.methods()[method](RunGraphRequest(step_id=7).SerializeToString(), ServerCall())


def test_a_part_is_held_once_and_as_many_as_steps_may_be(held, monkeypatch):
    hold = held.methods()["HoldGraph"]
    hold(RunGraphRequest(step_id=1).SerializeToString(), ServerCall())
    with pytest.raises(errors.InvalidArgumentError, match="already"):
        hold(RunGraphRequest(step_id=1).SerializeToString(), ServerCall())
    monkeypatch.setattr(limits, "steps", 1)
    with pytest.raises(errors.ResourceExhaustedError, match="steps"):
        hold(RunGraphRequest(step_id=2).SerializeToString(), ServerCall())


@pytest.mark.parametrize(
    "nonsense", [b"", b"{", b"[]", b"{}", b'{"nodes": 1}', b'{"nodes": [[1]]}', b"\xff", b"[" * 9999]
)
def test_what_a_worker_says_must_be_readable(nonsense):
    with pytest.raises(errors.DataLossError, match="/job:a"):
        RemoteGraph("/job:a", lambda *call: lambda: None, nonsense)
