"""Pushed tensors: they come without being asked for, once; and what becomes of them when a link or a master is lost."""

from __future__ import annotations

import contextlib
import gc
import threading
import weakref

import numpy as np
import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.cluster import negotiation
from dtflab.cluster.worker_stub import WorkerStub
from dtflab.graph import op_registry
from dtflab.protos.worker_pb2 import CleanupGraphRequest
from dtflab.runtime.pushing import PUSHED, PushingRendezvousMgr
from dtflab.runtime.runner import Step
from tests.cluster.two_tasks import THERE, edge_key, lab_over, link_to_ps, never, until


@pytest.fixture
def lab():
    with lab_over("link") as lab:
        yield lab


@pytest.mark.parametrize("kind", ["small products", "a function of the program"])
def test_a_tensor_that_is_ready_leaves_before_what_takes_long(kind, lab, monkeypatch):
    """Else the other task would wait for what this one does next."""
    monkeypatch.setattr(Step, "HELD_FOR", 0.0 if kind == "small products" else 60.0)
    arrived, in_time = threading.Event(), []
    received = lab.serving[0].pushed
    monkeypatch.setattr(lab.serving[0], "pushed", lambda *push: (received(*push), arrived.set()))

    def wait(x):
        in_time.append(arrived.wait(30))
        return x

    product = op_registry.get("MatMul").bind

    def slow_product(*node):
        kernel = product(*node)
        return lambda *args: wait(kernel(*args))

    with tf.device("/job:lab/task:1"):
        x = tf.Variable(1.0) + 1.0
        if kind == "small products":
            monkeypatch.setattr(op_registry.get("MatMul"), "bind", staticmethod(slow_product))
            late = tf.matmul([[2.0]], [[x]])
        else:
            with tf.control_dependencies([x]):
                late = tf.py_func(wait, [tf.constant(1.0)], tf.float32)
    with tf.device("/job:lab/task:0"):
        y = x + 0.0
    with lab.session() as sess:
        sess.run(tf.global_variables_initializer())
        lab.worker(1, lab.tasks[0])
        sess.run(y)
        arrived.clear()
        del in_time[:]
        assert sess.run([y, late.op])[0] == 2.0
    assert in_time == [True]


def test_a_tensor_comes_without_being_asked_for(ps_elsewhere):
    server, spec = ps_elsewhere
    worker, ps = "/job:worker/replica:0/task:0", "/job:ps/replica:0/task:0"
    with tf.device("/job:ps"):
        w = tf.Variable([1.0, 2.0])
    with tf.device("/job:worker"):
        y = w * 2.0
    with tf.Session(server.target) as sess:
        sess.run(w.initializer)
        sess.run(y)
        until(lambda: link_to_ps(spec), "the link is up")
        sess.run(y)
        with tf.watch() as seen:
            assert sess.run(y).tolist() == [2.0, 4.0]
    (call,) = (call for call in seen.calls if call.method == "RecvTensor")
    assert call[2:4] == (worker, ps) and call.pushed and call.step > 0 and call.nbytes >= 8


def test_a_branch_that_is_not_taken_is_pushed_too(ps_elsewhere):
    server, _ = ps_elsewhere
    taken = tf.placeholder(tf.bool, [])
    with tf.device("/job:ps"):
        left, right = tf.cond(taken, lambda: tf.constant(1.0), lambda: tf.constant(2.0)), tf.constant(3.0)
    with tf.device("/job:worker"):
        both = tf.cond(taken, lambda: left + 10.0, lambda: right + 20.0)
    with tf.Session(server.target) as sess:
        for _ in range(3):
            assert [sess.run(both, {taken: way}) for way in (True, False)] == [11.0, 23.0]


def test_an_error_there_is_the_error_of_the_step(ps_elsewhere):
    server, _ = ps_elsewhere
    x = tf.placeholder(tf.float32, [None])
    with tf.device("/job:ps"):
        checked = tf.check_numerics(x, "bad")
    with tf.device("/job:worker"):
        y = checked + 1.0
    with tf.Session(server.target) as sess:
        for _ in range(3):
            assert sess.run(y, {x: [1.0]}).tolist() == [2.0]
            with pytest.raises(tf.errors.InvalidArgumentError, match="bad"):
                sess.run(y, {x: [np.nan]})
        assert server.task.worker.rendezvous.waiting() == []


def test_a_step_that_waits_for_a_pushed_tensor_ends_with_the_link(ps_elsewhere):
    """And what was pushed and lost is not waited for."""
    server, spec = ps_elsewhere
    with tf.device("/job:ps"):
        queue = tf.FIFOQueue(1, tf.float32, shared_name="never")
        late = queue.dequeue()
        w = tf.Variable(1.0)
    with tf.device("/job:worker"):
        y, z = late + 1.0, w + 1.0
    with tf.Session(server.target) as sess:
        sess.run(w.initializer)
        sess.run(z)
        link = until(lambda: link_to_ps(spec), "the link is up")
        sess.run(z)
        failed = []

        def wait():
            try:
                sess.run(y)
            except errors.UnavailableError as error:
                failed.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        until(lambda: server.task.worker.rendezvous.waiting(), "it waits")
        link.close("the connection was cut")
        thread.join()
        assert "/job:ps/replica:0/task:0" in failed[0].message

        def again():  # the ps may push once more into the link, before it has read its end
            with contextlib.suppress(errors.UnavailableError):
                return sess.run(z)

        assert until(again, "a step without the link") == 2.0


@pytest.mark.parametrize("wire", ["link", "grpc"])
def test_a_step_that_is_given_up_hears_that_no_value_comes(wire):
    """Once: else it would wait for that, or count it twice."""
    with lab_over(wire) as lab:
        answers, step, peer = [], Step(1), lab.worker(0, lab.tasks[1])
        key = edge_key(lab.tasks[0]).rsplit(";", 1)
        sender, incarnation, *rest = key[0].split(";")
        worker = lab.tasks[1].worker
        waits = worker._step_rendezvous(worker.session("s"), step)
        waits.recv_async((sender, int(incarnation, 16), *rest), key[1], lambda *answer: answers.append(answer))
        assert (peer._pushing is not None) == (wire == "link")
        step.fail(errors.CancelledError.of("given up"))
        until(lambda: answers, "it hears")
        step.fail(errors.CancelledError.of("again"))
    ((value, error),) = answers
    assert value is None and isinstance(error, errors.CancelledError)


def test_nothing_keeps_a_step_that_has_its_value(lab):
    """Not even a cycle until the next collection: the values of a step are large."""

    class Consumer:
        def __init__(self):
            self.has_it = threading.Event()

        def __call__(self, value, error):
            self.has_it.set()

    here, there = lab.tasks
    lab.worker(0, there)
    consumer, step = Consumer(), Step(1)
    gc.disable()
    try:
        there.worker._pull(there.worker.session("s"), step, here.name, edge_key(here), consumer)
        until(lambda: here.worker.rendezvous._pushes, "it pushes")
        here.worker.rendezvous.find(1).send(edge_key(here), np.float32(5))()
        assert consumer.has_it.wait(60)
        consumer = weakref.ref(consumer)
        until(lambda: consumer() is None, "it is gone")
    finally:
        gc.enable()


def test_the_end_of_a_failed_step_is_said_again_if_it_was_lost_with_its_link():
    """Else what other tasks pushed for that step would stay."""

    class Lost:
        link, told = None, []

        def start(self, path, request, done, tell=None):
            done(b"", errors.UnavailableError.of("lost"))

        def tell(self, path, request):
            self.told.append((path, CleanupGraphRequest.FromString(b"".join(request)).step_id))

    stub = WorkerStub("/a", Lost())
    stub.cleanup_graph(5, errors.InternalError.of("any"))
    stub._tidy()
    assert Lost.told == [("/tensorflow.WorkerService/CleanupGraph", 5)]


# ---- the table of a step ----


def pushed_by(table):
    """The pushes of a manager of tables to task b from now on, as (step, key, value)."""
    found = []
    table.push_to("/b", lambda *push: found.append(push) or (lambda: None))
    return found


KEY = "/a/device:CPU:0;1;/b/device:CPU:0;x;0:0"
OWN = "/a/device:CPU:0;1;/a/device:GPU:0;x;0:0"


def got(table, key=KEY, step=1):
    answers = []
    table.find(step).recv_async(key, lambda *answer: answers.append(answer))
    return answers


def test_what_is_sent_before_and_after_is_pushed_once():
    table = PushingRendezvousMgr()
    table.find(1).send(KEY, 5)
    table.find(1).send(OWN, 6)
    pushed = pushed_by(table)
    table.find(2).send(KEY, 7)
    table.find(2).send(OWN, 8)
    assert pushed == [(1, KEY, 5), (2, KEY, 7)]
    assert got(table, OWN) == [(6, None)] and got(table, OWN, 2) == [(8, None)]


def test_a_value_that_is_sent_while_a_task_asks_for_pushes_is_pushed_once_and_not_lost(monkeypatch):
    """The step's thread may be faster than the one that looks for what is there already."""
    table = PushingRendezvousMgr()
    tables = table._tables
    table.find(1)
    monkeypatch.setattr(table, "_tables", lambda: table.find(1).send(KEY, 5) and tables())
    assert pushed_by(table) == [(1, KEY, 5)]


def test_who_asked_before_gets_the_answer_and_no_push():
    table = PushingRendezvousMgr()
    answers = got(table)
    pushed = pushed_by(table)
    table.find(1).send(KEY, 5)
    assert answers == [(5, None)] and pushed == []


def test_what_was_pushed_cannot_be_pulled_nor_pushed_again():
    table = PushingRendezvousMgr()
    pushed_by(table)
    table.find(1).send(KEY, 5)
    assert [push[2] for push in pushed_by(table)] == [PUSHED]
    ((value, error),) = got(table)
    assert value is None and isinstance(error, errors.UnavailableError)


def test_a_lost_value_fails_who_waits_and_who_comes_later_and_spares_who_has_it():
    table = PushingRendezvousMgr()
    waits = got(table)
    table.lose(1, KEY)
    assert isinstance(waits[0][1], errors.UnavailableError)
    table.lose(2, KEY)
    assert isinstance(got(table, step=2)[0][1], errors.UnavailableError)
    table.find(3).send(KEY, 5)
    table.lose(3, KEY)
    assert got(table, step=3) == [(5, None)]


def test_a_task_out_of_reach_fails_those_who_wait_for_it_alone():
    table = PushingRendezvousMgr()
    waits, other = got(table), got(table, "/c" + KEY[2:])
    table.fail_from("/a", errors.UnavailableError.of("gone"))
    assert isinstance(waits[0][1], errors.UnavailableError) and other == []


# ---- a master that is gone ----


def test_a_step_whose_caller_is_lost_is_over_there_and_where_it_pushed_to(lab):
    """A master that was killed cleans up nothing."""
    here, there = lab.tasks
    stub = lab.worker(1, here)
    stub.create_worker_session("session", here.name, 1)
    graph = tf.Graph()
    with graph.as_default():
        never(THERE)
    step = Step(7)
    stub.run_graph("session", stub.register_graph("session", nodes_on(graph, there)), step)
    until(lambda: there.worker.rendezvous.waiting(), "it waits")
    there.worker.rendezvous.push_to(here.name, lambda *push: lambda: None)
    to_here = edge_key(there).replace("/task:1/device:CPU:0;edge", "/task:0/device:CPU:0;edge")
    there.worker.rendezvous.find(7).send(to_here, 5)
    here.worker.rendezvous.find(7)  # where it came
    assert lab.steps() == 2
    negotiation.between(lab.addresses[0], lab.addresses[1]).close("the master was killed")
    until(lambda: not lab.steps(), "nothing is left")


def test_the_steps_of_a_master_that_has_restarted_are_over(lab):
    here, there = lab.tasks
    stub = lab.worker(1, here)
    stub.create_worker_session("old", here.name, 1)
    graph = tf.Graph()
    with graph.as_default(), tf.device(THERE):
        tf.constant(1.0)
    step = Step(7)
    stub.run_graph("old", stub.register_graph("old", nodes_on(graph, there)), step)
    step.drive()
    there.worker.rendezvous.find(7)
    stub.create_worker_session("new", here.name, 2)
    assert lab.steps() == 0


def nodes_on(graph, task):
    """The nodes of a graph, each on the CPU of a task, as a master registers them."""
    return [node.replace(device=task.worker.devices[0].name) for node in graph.nodes()]
