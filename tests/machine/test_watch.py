"""tf.watch: what is seen of calls and queues, in real and in virtual time, with errors, many threads, and ends."""

from __future__ import annotations

import contextlib
import re
import threading
import typing
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import dtflab as tf
from dtflab.base import events
from dtflab.runtime.watched_master import WatchedMaster

CLOCKS = ["real", "virtual"]


@pytest.fixture(params=CLOCKS)
def cluster(request):
    with tf.Cluster(ps=1, worker=2, clock=request.param) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def nobody_watches_afterwards():
    yield
    assert events.PROCESS.call == events.PROCESS.queue == () and events.clients == {}


def product():
    """A variable on the ps, a product on worker 1."""
    with tf.device("/job:ps"):
        v = tf.Variable(tf.ones([10, 10]), name="v")
    with tf.device("/job:worker/task:1"):
        return v, tf.matmul(v, v, name="square")


def of(calls, method):
    return [call for call in calls if call.method == method]


def names(calls):
    return [
        (call.method, call.source.replace("/replica:0", ""), call.target.replace("/replica:0", "")) for call in calls
    ]


# ---- calls ----


def test_calls_of_a_first_and_a_second_step(cluster):
    v, square = product()
    with tf.Session(cluster.target) as sess, tf.watch() as seen:
        sess.run(v.initializer)
        sess.run(square)
        first = len(seen.calls)
        sess.run(square)
    w0, w1, ps = "/job:worker/task:0", "/job:worker/task:1", "/job:ps/task:0"
    assert ("CreateSession", "client", w0) in names(seen.calls)
    assert ("RegisterGraph", w0, ps) in names(seen.calls) and ("RegisterGraph", w0, w1) in names(seen.calls)
    second = names(seen.calls[first:])
    assert "RegisterGraph" not in [method for method, _, _ in second]  # its graphs are there
    assert {("RunGraph", w0, ps), ("RunGraph", w0, w1), ("RecvTensor", w1, ps), ("RecvTensor", w0, w1)} <= set(second)
    assert second[-1] == ("RunStep", "client", w0)


def test_bytes_and_steps_of_calls(cluster):
    v, square = product()
    x = tf.placeholder(tf.float32, [10])
    with tf.Session(cluster.target) as sess:
        sess.run(v.initializer)
        with tf.watch() as seen:
            sess.run([square, x], {x: np.zeros(10)})
    (step,) = of(seen.calls, "RunStep")
    assert (step.sent, step.nbytes) == (40, 40 + 400)  # what is fed and fetched stays with the client
    pulled = of(seen.calls, "RecvTensor")
    assert sorted(call.nbytes for call in pulled) == [400, 400]
    assert {call.step for call in seen.calls if call.method != "RegisterGraph"} == {step.step}
    assert all(call.at <= call.ended and call.turn < call.answered for call in seen.calls)
    assert step.at <= min(call.at for call in seen.calls) and step.answered == max(c.answered for c in seen.calls)


def test_in_virtual_time_a_tensor_needs_its_way():
    with tf.Cluster(ps=1, worker=2, clock="virtual", network="1Gb/s") as cluster:
        v, square = product()
        with tf.Session(cluster.target) as sess:
            sess.run(v.initializer)
            with tf.watch() as seen:
                sess.run(square)
    for call in of(seen.calls, "RecvTensor"):
        assert call.ended - call.at >= 400 / 125e6
    assert of(seen.calls, "RunStep")[0].ended == seen.ended


def test_two_runs_in_virtual_time_are_seen_alike():
    def run():
        with tf.Graph().as_default(), tf.Cluster(ps=1, worker=2, clock="virtual", seed=3) as cluster:
            v, square = product()

            def work(client):
                with tf.Session(client.target) as sess:
                    sess.run(square)

            with tf.Session(cluster.target) as sess:
                sess.run(v.initializer)
            graph = tf.get_default_graph()
            with tf.watch() as seen:
                cluster.run(lambda client: work_in(graph, work, client))
            return [call[:5] for call in seen.calls]

    def work_in(graph, work, client):
        with graph.as_default():
            work(client)

    assert run() == run()


def test_a_local_session_has_a_client_and_a_master():
    with tf.Session() as sess, tf.watch() as seen:
        sess.run(tf.constant(1.0) + 1.0)
    assert [call.method for call in seen.calls] == ["CreateSession", "RunStep"]
    assert {call.target for call in seen.calls} == {"/job:localhost/replica:0/task:0"}


def test_partial_runs_extensions_and_the_end_of_a_session_are_calls_too():
    a = tf.placeholder(tf.float32, [])
    b = a + 1.0
    with tf.watch() as seen, tf.Session() as sess:
        handle = sess.partial_run_setup([b], [a])
        assert sess.partial_run(handle, b, {a: 1.0}) == 2.0
        tf.constant(2.0, name="late")
        sess.run("late:0")
        sess.close()
    methods = [call.method for call in seen.calls]
    assert methods == ["CreateSession", "PartialRunSetup", "PartialRun", "ExtendSession", "RunStep", "CloseSession"]


def test_a_step_that_fails_is_a_call_with_an_error(cluster):
    with tf.device("/job:ps"):
        v = tf.Variable(1.0, name="v")
    with tf.Session(cluster.target) as sess, tf.watch() as seen, pytest.raises(tf.errors.FailedPreconditionError):
        sess.run(v.read_value() + 1.0)
    assert [call.error for call in of(seen.calls, "RunStep")] == ["FailedPreconditionError"]


def test_fetching_what_is_not_there_does_not_break_the_watch():
    with tf.Session() as sess, tf.watch() as seen:
        tf.constant(1.0, name="there")
        with pytest.raises(ValueError, match="gone"):
            sess.run("gone:0")
        assert sess.run("there:0") == 1.0
    assert len(of(seen.calls, "RunStep")) == 1


def test_which_variables_a_client_needs(cluster):
    v, square = product()
    with tf.container("own"), tf.device("/job:ps"):
        other = tf.Variable(1.0, name="other")
    with tf.Session(cluster.target) as sess, tf.watch() as seen:
        sess.run([v.initializer, other.initializer])
        sess.run(square)
    ps = "/job:ps/replica:0/task:0/device:CPU:0"
    assert {use[:4] for use in seen.uses} == {("client", ps, "", "v"), ("client", ps, "own", "other")}


def test_which_ops_a_step_uses_a_variable_with(cluster):
    with tf.device("/job:ps"):
        v, w = tf.Variable(1.0, name="v"), tf.get_variable("w", initializer=1.0, use_resource=True)
    both, once = tf.assign(v, v + 1.0, name="both"), tf.assign_add(v, 1.0, name="once")
    with tf.Session(cluster.target) as sess, tf.watch() as seen:
        sess.run([v.initializer, w.initializer])
        sess.run([both, w.assign(w + 1.0).op])
        sess.run(once.op)
    found = {(use.variable, use.step): use.ops for use in seen.uses}
    assert found == {
        ("v", "v/Assign, w/Assign"): ("Assign",), ("w", "v/Assign, w/Assign"): ("AssignVariableOp",),
        ("v", "both:0, AssignVariableOp"): ("Assign", "Identity"),
        ("w", "both:0, AssignVariableOp"): ("AssignVariableOp", "ReadVariableOp"),
        ("v", "once"): ("AssignAdd",),
    }  # fmt: skip


# ---- queues ----


def brief(event):
    return event.what, event.elements, event.level, event.op


def test_puts_and_takes_with_the_level_after_them(cluster):
    q = tf.FIFOQueue(3, [tf.int32], shapes=[[]], name="q")
    put, take = q.enqueue(1, name="put"), q.dequeue(name="take")
    with tf.Session(cluster.target) as sess, tf.watch() as seen:
        for op in (put, put, take):
            sess.run(op)
        sess.run(q.close())
    assert [brief(event) for event in seen.queues] == [
        ("put", 1, 1, "put"), ("put", 1, 2, "put"), ("take", 1, 1, "take"), ("close", 0, 1, "q_Close")
    ]  # fmt: skip
    assert {(event.capacity, event.client, event.queue) for event in seen.queues} == {
        (3, "client", seen.queues[0].queue)
    }
    assert [event.at for event in seen.queues] == sorted(event.at for event in seen.queues)


def test_a_large_put_waits_and_goes_on_piece_by_piece():
    q = tf.FIFOQueue(2, [tf.int32], shapes=[[]], name="q")
    put, take = q.enqueue_many([[1, 2, 3]], name="put"), q.dequeue_many(3, name="take")
    with tf.Session() as sess, tf.watch() as seen:
        sess.run([put, take])
    assert [(event.what, event.elements, event.level, event.over) for event in seen.queues] in (
        [("put", 2, 2, False), ("wait", 0, 2, False), ("take", 2, 0, False), ("put", 1, 1, True), ("take", 1, 0, True)],
        [("wait", 0, 0, False), ("put", 2, 2, False), ("take", 2, 0, False), ("put", 1, 1, True), ("take", 1, 0, True)],
    )


def waits_at(seen, waiting, number=1):
    """Let the thread that puts come to wait, by events."""
    event = threading.Event()

    class Told(list):
        def append(self, one):
            super().append(one)
            if sum(each.what == "wait" for each in self) >= number:
                event.set()

    seen.queues = Told(seen.queues)
    waiting()
    assert event.wait(60)


@pytest.mark.parametrize("clock", CLOCKS)
def test_a_watch_that_ends_while_an_op_waits(clock):
    with tf.Cluster(worker=1, clock=clock) as cluster:
        q = tf.FIFOQueue(1, [tf.int32], shapes=[[]], name="q", shared_name="q")
        take, cancel = q.dequeue(name="take"), q.close(cancel_pending_enqueues=True)
        sess = tf.Session(cluster.target)
        ends: list[BaseException] = []

        def reader():
            try:
                sess.run(take)
            except tf.errors.OpError as error:
                ends.append(error)

        thread = cluster.clock.thread(reader, name="reader")
        with tf.watch() as seen:
            if clock == "virtual":
                thread.start()
                cluster.clock.sleep(1.0)
            else:
                waits_at(seen, thread.start)
        sess.run(cancel)
        thread.join()
        sess.close()
    (event,) = seen.queues
    assert (event.what, event.wants, event.op, event.client, event.over) == ("wait", "take", "take", "reader", False)
    (course,) = tf.viz.queues(seen).tables[1][2]
    assert course[-1] == "still waits"
    assert isinstance(ends[0], tf.errors.OutOfRangeError)


def test_a_wait_that_began_before_the_watch_is_seen_when_it_ends():
    q = tf.FIFOQueue(1, [tf.int32], shapes=[[]], name="q")
    put, take = q.enqueue(1), q.dequeue(name="take")
    sess = tf.Session()
    with tf.watch() as before:
        thread = threading.Thread(target=lambda: sess.run(take), name="reader")
        waits_at(before, thread.start)
    with tf.watch() as seen:
        sess.run(put)
        thread.join(60)
    sess.close()
    assert [(event.what, event.level) for event in seen.queues] == [("put", 1), ("take", 0)]


def is_cancelled(sess, op):
    with contextlib.suppress(tf.errors.CancelledError):
        sess.run(op)


def test_who_waits_and_is_sent_away_by_a_close_or_a_deadline():
    q = tf.FIFOQueue(1, [tf.int32], shapes=[[]], name="q")
    put, take = q.enqueue(1, name="put"), q.dequeue(name="take")
    with tf.Session() as sess, tf.watch() as seen:
        with pytest.raises(tf.errors.DeadlineExceededError):
            sess.run(take, options=tf.RunOptions(timeout_in_ms=20))
        sess.run(put)
        thread = threading.Thread(target=is_cancelled, args=(sess, put))
        waits_at(seen, thread.start, number=2)
        sess.run(q.close(cancel_pending_enqueues=True))
        thread.join(60)
        sess.run(take)
        with pytest.raises(tf.errors.OutOfRangeError):
            sess.run(take)
    seen_at_queues = [(event.what, event.op, event.error) for event in seen.queues]
    assert seen_at_queues == [
        ("wait", "take", ""), ("end", "take", "CancelledError"), ("put", "put", ""), ("wait", "put", ""),
        ("close", "q_Close", ""), ("end", "put", "CancelledError"), ("take", "take", ""),
        ("end", "take", "OutOfRangeError"),
    ]  # fmt: skip


def test_what_is_given_back_when_a_queue_closes_is_put_again():
    q = tf.FIFOQueue(5, [tf.int32], shapes=[[]], name="q")
    put, take, close = q.enqueue_many([[1, 2]]), q.dequeue_up_to(4, name="take"), q.close()
    with tf.Session() as sess, tf.watch() as seen:
        values = []
        thread = threading.Thread(target=lambda: values.append(sess.run(take)))
        waits_at(seen, thread.start)
        sess.run(put)
        sess.run(close)
        thread.join(60)
    assert values[0].tolist() == [1, 2]
    assert seen.queues[-1].level == 0 and seen.queues[-1].over


# ---- watches ----


def test_watches_may_be_nested_and_each_sees_everything_of_its_time():
    with tf.Session() as sess, tf.watch() as outer:
        sess.run(tf.constant(1))
        with tf.watch() as inner:
            sess.run(tf.constant(2))
        sess.run(tf.constant(3))
    assert len(of(outer.calls, "RunStep")) == 3 and len(of(inner.calls, "RunStep")) == 1
    assert of(inner.calls, "RunStep")[0] is of(outer.calls, "RunStep")[1]


def test_a_watch_goes_on_when_it_is_entered_again_but_not_twice_at_once():
    seen = tf.watch()
    with tf.Session() as sess:
        for _ in range(2):
            with seen:
                sess.run(tf.constant(1))
        with seen, pytest.raises(RuntimeError, match="under way"):
            seen.__enter__()
    assert len(of(seen.calls, "RunStep")) == 2


def test_an_error_in_the_block_ends_the_watch():
    with pytest.raises(ZeroDivisionError), tf.watch() as seen:
        raise ZeroDivisionError
    with tf.Session() as sess:
        sess.run(tf.constant(1))
    assert seen.calls == [] and "0 calls" in repr(seen) and "goes on" not in repr(seen)


def test_nothing_is_lost_when_threads_are_many():
    threads, times = 24, 40
    q = tf.FIFOQueue(7, [tf.int32], shapes=[[]], name="q")
    put, take = q.enqueue(1), q.dequeue()
    with tf.Session() as sess, tf.watch() as seen:
        sess.run(q.size())
        each = [threading.Thread(target=lambda op=op: [sess.run(op) for _ in range(times)], name=f"{op.name} {n}")
                for n in range(threads // 2) for op in (put, take)]  # fmt: skip
        for thread in each:
            thread.start()
        for thread in each:
            thread.join(60)
    done = [event for event in seen.queues if event.what != "wait"]
    assert len(done) == threads * times and len(of(seen.calls, "RunStep")) == threads * times + 1
    level = 0
    for event in done:  # in the order in which it happened
        level += 1 if event.what == "put" else -1
        assert event.level == level
    counts = {event.client: sum(other.client == event.client for other in done) for event in done}
    assert len(counts) == threads and set(counts.values()) == {times}


def test_an_unwatched_step_goes_straight_to_the_master():
    with tf.Session() as sess:
        sess.run(tf.constant(1))
        assert sess._opened() is sess._master
        with tf.watch():
            assert isinstance(sess._opened(), WatchedMaster)


def test_a_watch_around_a_virtual_cluster_goes_by_what_it_saw():
    with tf.watch() as seen, tf.Cluster(worker=1, clock="virtual") as cluster, tf.Session(cluster.target) as sess:
        q = tf.FIFOQueue(3, [tf.int32], shapes=[[]])
        sess.run(q.enqueue(1))
        sess.run(q.enqueue(1))
    first, second, *_ = seen.queues
    assert first.at < second.at < 1.0 < seen.began
    assert seen.end_after(second.at) == second.at


# ---- listeners ----


def test_a_function_gets_each_event_as_soon_as_it_is_known(cluster):
    heard = []
    with tf.Session(cluster.target) as sess:
        v, square = product()
        q = tf.FIFOQueue(3, [tf.int32], shapes=[[]])
        sess.run(v.initializer)
        with tf.watch(heard.append) as seen:
            sess.run(square)
            sess.run(q.enqueue(1))
            assert heard[-1] is seen.calls[-1]
        sess.run(square)
    assert [event for event in heard if isinstance(event, events.Call)] == seen.calls
    assert [event for event in heard if isinstance(event, events.QueueEvent)] == seen.queues
    assert {event for event in heard if isinstance(event, events.Use)} == set(seen.uses)


def test_an_object_gets_the_events_for_which_it_has_methods():
    class Listener:
        def __init__(self):
            self.heard = []

        def on_queue(self, event):
            self.heard.append(event)

    listener = Listener()
    with tf.Session() as sess, tf.watch(listener) as seen:
        q = tf.FIFOQueue(3, [tf.int32], shapes=[[]])
        sess.run(q.enqueue(1))
    assert listener.heard == seen.queues != [] and seen.calls


class OfMessages:
    def on_call(self, event): ...

    def on_message(self, event): ...


@pytest.mark.parametrize("listener", [3, "print", object(), OfMessages()])
def test_what_can_not_listen_is_refused(listener):
    with pytest.raises(TypeError, match=r"needs a function, or an object with on_call or .*, but without on_message"):
        tf.watch(listener)


def test_a_class_is_refused_as_only_its_instances_can_listen():
    with pytest.raises(TypeError, match=r"needs an instance: tf\.watch\(OfMessages\(\)\)"):
        tf.watch(OfMessages)


def test_an_instrument_has_the_methods_of_each_kind():
    kinds = [f"on_{name}" for name in typing.get_type_hints(events.Instrument)]
    instrument = events.Instrument(SimpleNamespace(**{kind: kind for kind in events.KINDS}))
    assert [getattr(instrument, kind.removeprefix("on_")) for kind in kinds] == [(kind,) for kind in events.KINDS]


def test_the_table_for_engineers_names_each_event_and_its_fields():
    text = (Path(tf.__file__).parents[1] / "docs" / "engineer.md").read_text()
    rows = [row.split("|")[1:-1] for row in re.findall(r"^\| `on_.*$", text, re.MULTILINE)]
    assert [method.strip(" `") for method, *_ in rows] == list(events.HEARD)
    for method, event, _, fields in rows:
        kind = getattr(events, event.strip(" `"))
        hears = typing.get_type_hints(events.Instrument)[method.strip(" `").removeprefix("on_")]
        assert f"[{kind.__module__}.{kind.__name__}]" in str(hears)
        assert set(re.findall(r"`(\w+)`", fields)) <= set(kind._fields) and fields.strip()


def test_an_error_of_a_listener_is_logged_and_raised_at_the_end_and_breaks_no_step(caplog):
    heard = []

    def fails(event):
        heard.append(event)
        raise ValueError("in the listener")

    with tf.Session() as sess:
        v = tf.Variable(1.0)
        sess.run(v.initializer)
        with pytest.raises(ValueError, match="in the listener"), tf.watch(fails) as seen:
            assert sess.run(v.assign_add(1.0)) == 2.0
            assert "fails" in caplog.text and "gets no more events" in caplog.text
            assert sess.run(v.assign_add(1.0)) == 3.0
        with tf.watch() as again:
            assert sess.run(v) == 3.0
    assert len(heard) == 1 and len(of(seen.calls, "RunStep")) == 2 and len(of(again.calls, "RunStep")) == 1


def test_an_error_of_the_block_comes_before_one_of_its_listener(caplog):
    def fails(event):
        raise ValueError("in the listener")

    with tf.Session() as sess, pytest.raises(KeyError, match="in the block"), tf.watch(fails):
        sess.run(tf.constant(1))
        raise KeyError("in the block")
    assert "in the listener" in caplog.text


def test_a_listener_for_nodes_hears_of_each_that_ran(cluster):
    heard = []

    class Nodes:
        on_node = staticmethod(heard.append)

    with tf.Session(cluster.target) as sess:
        v, square = product()
        sess.run(v.initializer)
        metadata = tf.RunMetadata()
        with tf.watch(Nodes()) as seen:
            sess.run(square, run_metadata=metadata)
        assert not metadata.step_stats.dev_stats  # nobody asked for a trace
        heard_then = len(heard)
        traced = sess.trace(square)
    assert len(heard) == heard_then
    ran = {(event.device, event.node.name) for event in heard}
    w1 = "/job:worker/replica:0/task:1/device:CPU:0"
    assert (w1, "square") in ran and {event.step for event in heard} == {of(seen.calls, "RunStep")[0].step}
    assert len(heard) == sum(len(device.node_stats) for device in traced.step_stats.dev_stats)
    assert all(event.started <= event.ended for event in heard)


def test_a_listener_hears_what_the_log_of_virtual_time_keeps():
    heard = []

    class Happened:
        on_happened = staticmethod(heard.append)

    with tf.Cluster(ps=1, worker=2, clock="virtual") as cluster, tf.Session(cluster.target) as sess:
        v, square = product()
        sess.run(v.initializer)
        before = cluster.log().count
        with tf.watch(Happened()):
            sess.run(square)
        assert heard == cluster.log().lines[before:] and {bool(event.target) for event in heard} == {True, False}
