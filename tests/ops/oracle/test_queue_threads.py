"""Queues, side by side with TensorFlow: who waits, who is served, and how sessions and servers share them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import dtflab
from tests.oracle.programs import Programs
from tests.oracle.said import seen, tried

program = Programs()
test_same_answer = program.same_answers()


def in_thread(call: Callable[[], Any]) -> Callable[[], Any]:
    """Start a call; the result waits for its end and gives what it gave, or its error."""
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(tried(call)))
    thread.start()

    def join() -> Any:
        thread.join(60)
        assert answers, "still waiting after 60 s"
        return answers[0]

    return join


def announced(tf: Any, wait: Callable[[], Any]) -> tuple[Any, Any]:
    """An operation that waits, and one that returns when the step with the first has begun."""
    begun = tf.FIFOQueue(9, tf.bool, name="begun")
    has_begun = begun.dequeue()
    with tf.control_dependencies([begun.enqueue(True)]):
        return wait(), has_begun


@program
def a_large_batch_goes_through_a_small_queue(tf):
    q = tf.FIFOQueue(2, tf.int32, [()])
    put, take = q.enqueue_many([list(range(20))]), q.dequeue_many(9)
    with tf.Session() as session:
        putting = in_thread(lambda: session.run(put))
        found = [session.run(take), session.run(take), session.run(q.dequeue()), session.run(q.dequeue())]
        return seen([*found, putting(), session.run(q.size())])


@program
def what_waits_is_served_in_the_end(tf):
    q = tf.FIFOQueue(3, tf.int32, [()])
    take, begun = announced(tf, lambda: q.dequeue_many(4))
    with tf.Session() as session:
        taking = in_thread(lambda: session.run(take))
        session.run(begun)
        for n in range(5):
            session.run(q.enqueue(n))
        return taking(), seen(session.run(q.size()))


@program
def what_a_closed_queue_gave_in_part_comes_back_in_order(tf):
    q = tf.FIFOQueue(4, (tf.float32, tf.float32), ((), ()))
    take, begun = announced(tf, lambda: q.dequeue_many(4))
    with tf.Session() as session:
        session.run(q.enqueue_many(([1.0, 2.0, 3.0], [10.0, 20.0, 30.0])))
        taking = in_thread(lambda: session.run(take))
        session.run(begun)
        session.run(q.close())
        return taking().split(":")[0], seen([session.run(q.dequeue()) for _ in range(3)]), seen(session.run(q.size()))


@program
def closing_waits_for_those_who_put(tf):
    q = tf.FIFOQueue(2, tf.int32, [()])
    put, begun = announced(tf, lambda: q.enqueue_many([[1, 2, 3]]))
    take, size = q.dequeue(), q.size()
    with tf.Session() as session:
        putting = in_thread(lambda: session.run(put))
        session.run(begun)
        while session.run(size) < 2:
            pass
        closing = in_thread(lambda: session.run(q.close()))
        found = [session.run(take), putting(), closing(), session.run(q.is_closed())]
        found += [session.run(take), session.run(take)]
        return seen(found), tried(lambda: session.run(take))


@program
def closing_at_once(tf):
    q = tf.FIFOQueue(2, tf.int32, [()])
    put, begun = announced(tf, lambda: q.enqueue_many([[1, 2, 3]]))
    with tf.Session() as session:
        putting = in_thread(lambda: session.run(put))
        session.run(begun)
        while session.run(q.size()) < 2:
            pass
        session.run(q.close(cancel_pending_enqueues=True))
        return putting(), seen(session.run(q.dequeue_many(2)))


@contextlib.contextmanager
def local_server(tf: Any) -> Iterator[Any]:
    """A server of this process; TensorFlow's can't be stopped."""
    server = tf.train.Server.create_local_server()
    yield server
    if tf is dtflab:
        server.stop()


def _cancelled_waits(tf, target):
    empty, full = tf.FIFOQueue(5, tf.int32, [()]), tf.RandomShuffleQueue(1, 0, tf.int32, [()])
    calls = [empty.dequeue, lambda: empty.dequeue_many(2), lambda: empty.dequeue_up_to(2),
             lambda: full.enqueue(3), lambda: full.enqueue_many([[3, 4]])]  # fmt: skip
    waits = [announced(tf, call) for call in calls]
    session = tf.Session(target)
    session.run(full.enqueue(1))
    waiting = [in_thread(lambda op=op: session.run(op)) for op, _ in waits]
    session.run([begun for _, begun in waits])
    session.close()
    return [join().split(":")[0] for join in waiting]


@program
def closing_the_session_ends_the_wait(tf):
    return _cancelled_waits(tf, "")


@program
def closing_the_session_of_a_server_ends_the_wait(tf):
    with local_server(tf) as server:
        return _cancelled_waits(tf, server.target)


@program
def sessions_share_what_has_a_shared_name(tf):
    def build():
        with tf.Graph().as_default() as graph:
            qs = [tf.FIFOQueue(3, tf.int32, [()], name="own"), tf.FIFOQueue(3, tf.int32, [()], shared_name="b")]
            with tf.container("box"):
                qs.append(tf.FIFOQueue(3, tf.int32, [()], shared_name="b", name="boxed"))
            return graph, [(q.enqueue(5), q.size(), q.dequeue()) for q in qs]

    (graph1, ops1), (graph2, ops2) = build(), build()
    found = []
    with local_server(tf) as server:
        one, two = tf.Session(server.target, graph=graph1), tf.Session(server.target, graph=graph2)
        for (put, size, _), (_, size2, _) in zip(ops1, ops2, strict=True):
            one.run(put)
            found.append((one.run(size), two.run(size2)))
        one.close()
        with tf.Session(server.target, graph=graph1) as again:
            found.append([again.run(size) for _, size, _ in ops1])
        found.append(two.run(ops2[1][2]))
        two.run([put for put, _, _ in ops2])
        tf.Session.reset(server.target, ["box"])
        with tf.Session(server.target, graph=graph1) as session:
            found.append([session.run(size) for _, size, _ in ops1])
        tf.Session.reset(server.target)
        with tf.Session(server.target, graph=graph1) as session:
            found.append([session.run(size) for _, size, _ in ops1])
    return seen(found)


@program
def local_sessions_have_queues_of_their_own(tf):
    q = tf.FIFOQueue(3, tf.int32, [()], shared_name="q")
    put, size = q.enqueue(1), q.size()
    with tf.Session() as one, tf.Session() as two:
        one.run(put)
        return seen([one.run(size), two.run(size)])
