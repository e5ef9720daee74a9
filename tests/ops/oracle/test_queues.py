"""Queues of all kinds, side by side with TensorFlow: values, order, and every error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.oracle.programs import Programs
from tests.oracle.said import seen, tried

program = Programs()
test_same_answer = program.same_answers()


@program
def a_destroyed_queue_begins_again(tf):
    queue = tf.FIFOQueue(-1, [tf.float32], shared_name="destroyed")
    put, size, close = queue.enqueue(1.0), queue.size(), queue.close()
    destroy = tf.raw_ops.DestroyResourceOp(resource=queue.queue_ref, ignore_lookup_error=False)
    with tf.Session() as session:
        session.run(put)
        session.run(close)
        session.run(destroy)
        results = [session.run(size)]
        session.run(put)
        return [*results, session.run(size)]


# ---- values and order ----


@program
def first_in_first_out(tf):
    q = tf.FIFOQueue(10, [tf.int32, tf.string], shapes=[(), (2,)])
    put = q.enqueue_many(([1, 2, 3, 4], [["a", "b"], ["c", "d"], ["e", "f"], ["g", "h"]]))
    one, two, rest = q.dequeue(), q.dequeue_many(2), q.dequeue_up_to(5)
    with tf.Session() as session:
        session.run([put])
        found = [session.run(one), session.run(two), session.run(q.size())]
        session.run(q.close())
        return seen([*found, session.run(rest), session.run(q.is_closed())])


@program
def elements_of_every_type(tf):
    names = """float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool complex64
               complex128 string"""
    found = []
    with tf.Session() as session:
        for dtype in map(tf.as_dtype, names.split()):
            values = np.array([[1, 0], [1, 1], [0, 1]])
            values = values.astype(str).astype(object) if dtype == tf.string else values.astype(dtype.as_numpy_dtype)
            for q in (tf.FIFOQueue(9, dtype, (2,)), tf.PaddingFIFOQueue(9, dtype, [(None,)])):
                session.run([q.enqueue_many([values])])
                session.run(q.enqueue([values[0]]))
                found += [seen(session.run(x)) for x in (q.dequeue_many(0), q.dequeue_many(2), q.dequeue_many(1))]
    return found


@program
def strings_keep_every_byte(tf):
    q = tf.FIFOQueue(9, [tf.string, tf.string], [(), (2,)])
    x, y = tf.placeholder(tf.string), tf.placeholder(tf.string)
    with tf.Session() as session:
        session.run(q.enqueue((x, y)), {x: b"a\0\0", y: [b"", b"\xff\0"]})
        session.run(q.enqueue((tf.constant("dé"), y)), {y: ["é", "b" * 40]})
        session.run(q.enqueue_many((x, y)), {x: [b"\0", "u"], y: [[b"1", b"2"], [b"3", b"4"]]})
        return seen([session.run(q.dequeue()), session.run(q.dequeue_many(2)), session.run(q.dequeue())])


@program
def named_components(tf):
    q = tf.FIFOQueue(9, (tf.float32, tf.int32, tf.string), shapes=((), (), ()), names=("f", "i", "s"))
    with tf.Session() as session:
        session.run(q.enqueue({"i": 123, "s": "aa", "f": 10.0}))
        session.run(q.enqueue_many({"f": [40.0, 50.0], "i": [126, 127], "s": ["dd", "ee"]}))
        return seen([session.run(q.dequeue()), session.run(q.dequeue_many(1)), session.run(q.dequeue_up_to(1))])


@program
def shuffled_order_follows_the_seeds(tf):
    found = []
    for graph_seed, seed in ((None, 1), (None, 1729), (5, None), (5, 7), (5, 7)):
        with tf.Graph().as_default():
            tf.set_random_seed(graph_seed)
            q = tf.RandomShuffleQueue(500, 5, [tf.int32, tf.float32], shapes=[(), ()], seed=seed)
            s = tf.RandomShuffleQueue(500, 0, tf.int32, seed=seed, shared_name="s" if graph_seed else None)
            with tf.Session() as session:
                session.run([q.enqueue_many((np.arange(300), np.arange(300.0))), s.enqueue_many([np.arange(20)])])
                one, some, rest = q.dequeue(), q.dequeue_many(70), q.dequeue_up_to(100)
                found += [session.run(x) for x in (one, some, some, one)]
                session.run([q.enqueue_many(([-1, -2], [-1.0, -2.0]))])
                session.run(q.close())
                found += [session.run(rest) for _ in range(2)]
                found += [session.run(s.dequeue()) for _ in range(20)]
    return seen(found)


@program
def padding(tf):
    q = tf.PaddingFIFOQueue(9, [tf.string, tf.int32, tf.float32], [(None,), (1, None), ()], name="q")
    x, y = tf.placeholder(tf.string), tf.placeholder(tf.int32)
    put = q.enqueue((x, y, 1.5))
    many = q.enqueue_many((x, y, [0.5, 0.25]))
    with tf.Session() as session:
        for n in range(4):
            session.run(put, {x: ["abc"[:n]] * n, y: np.full((1, 3 - n), n)})
        session.run(many, {x: [["u", "v"]] * 2, y: [[[7]], [[8]]]})
        empty = session.run(q.dequeue_many(0))
        found = [session.run(q.dequeue_many(3)), session.run(q.dequeue_up_to(2)), session.run(q.dequeue())]
        wrong = [
            tried(lambda: session.run(put, {x: ["a"], y: [[1], [2]]})),
            tried(lambda: session.run(put, {x: "a", y: [[1]]})),
            tried(lambda: session.run(many, {x: [["a"]], y: [[[1]]]})),
        ]
        return seen([empty, found]), wrong


@program
def priorities_and_their_ties(tf):
    q = tf.PriorityQueue(500, tf.int32, (), name="q")
    random = np.random.RandomState(0)
    ranks = random.randint(-3, 3, 200)
    with tf.Session() as session:
        found = []
        for start in range(0, 200, 50):
            session.run(q.enqueue_many((ranks[start : start + 50], np.arange(start, start + 50))))
            found.append(session.run(q.dequeue_many(20)))
            session.run(q.enqueue((2**40, start)))
            found.append(session.run(q.dequeue()))
        session.run(q.close())
        found += [session.run(q.dequeue_many(60)), session.run(q.dequeue_up_to(10)), session.run(q.size())]
        return seen(found), tried(lambda: session.run(q.dequeue_many(100))), tried(lambda: session.run(q.size()))


@program
def several_operations_in_a_step(tf):
    q = tf.FIFOQueue(9, tf.float32)
    count = q.enqueue(q.dequeue() + 1)
    d = q.dequeue()
    with tf.control_dependencies([q.enqueue(7.0)]):
        after = q.dequeue()
    with tf.Session() as session:
        session.run(q.enqueue(1.0))
        for _ in range(5):
            session.run(count)
        found = [session.run([d, d]), session.run(after), session.run(after, {after: 3.0}), session.run(q.size())]
        session.run([q.enqueue(float(n)) for n in range(3)])
        found.append(sorted(session.run([q.dequeue(), q.dequeue(), q.dequeue()])))
        return seen(found)


@program
def a_count_from_another_queue(tf):
    counts, q = tf.FIFOQueue(9, tf.int32, ()), tf.FIFOQueue(99, tf.int32, ())
    taken = q.dequeue_many(counts.dequeue())
    with tf.Session() as session:
        session.run([counts.enqueue_many([[3, 0, 2]]), q.enqueue_many([[1, 2, 3, 4, 5]])])
        return seen([session.run(taken) for _ in range(3)])


# ---- closing, errors ----


def _kinds(tf):
    return [
        tf.FIFOQueue(4, [tf.int64, tf.int32], [(), ()], name="q"),
        tf.RandomShuffleQueue(4, 1, [tf.int64, tf.int32], [(), ()], name="q", seed=1),
        tf.PaddingFIFOQueue(4, [tf.int64, tf.int32], [(), ()], name="q"),
        tf.PriorityQueue(4, [tf.int32], [()], name="q"),
    ]


@program
def closing_every_kind(tf):
    return [_closed(tf, q) for q in _kinds(tf)]


def _closed(tf, q):
    put, one, none = q.enqueue_many(([1, 2, 3], [4, 5, 6])), q.enqueue((1, 2)), q.enqueue_many((np.zeros(0, int),) * 2)
    with tf.Session() as session:
        session.run(put)
        found = [seen([session.run(q.is_closed()), session.run(q.size())])]
        session.run(q.close())
        calls = [
            *(q.close(), q.close(cancel_pending_enqueues=True), one, put, none, q.dequeue_many(4), q.size()),
            *(q.dequeue(), q.dequeue_up_to(2), q.dequeue_up_to(2), q.dequeue(), q.dequeue_many(1)),
            *(q.dequeue_many(0), q.dequeue_up_to(0), q.is_closed(), q.size()),
        ]
        found += [tried(lambda call=call: session.run(call)) for call in calls]
    return [f.replace("PaddingFIFOQueue '", "FIFOQueue '") if isinstance(f, str) else f for f in found]


@program
def wrong_at_run_time(tf):
    x, y, n = tf.placeholder(tf.int32), tf.placeholder(tf.float32), tf.placeholder(tf.int32)
    shaped = tf.FIFOQueue(9, [tf.int32, tf.float32], [(), (2,)], name="shaped")
    plain = tf.RandomShuffleQueue(9, 0, [tf.int32, tf.float32], name="plain")
    other = tf.QueueBase([tf.int32, tf.int32], None, None, shaped.queue_ref)
    feeds = [
        (shaped.enqueue((x, y)), {x: 1, y: [1, 2, 3]}),
        (shaped.enqueue((x, y)), {x: [1], y: [1, 2]}),
        (shaped.enqueue_many((x, y)), {x: [1], y: [[1, 2, 3]]}),
        (shaped.enqueue_many((x, y)), {x: [1], y: [[1, 2], [2, 3]]}),
        (shaped.enqueue_many((x, y)), {x: [], y: np.zeros((0, 2))}),
        (plain.enqueue_many((x, y)), {x: [1], y: [[1, 2], [2, 3]]}),
        (plain.enqueue_many((x, y)), {x: [1, 2], y: [[1, 2], [2, 3]]}),
        (plain.dequeue_many(1), {}),
        (plain.dequeue_up_to(0), {}),
        (shaped.dequeue_many(n), {n: -1}),
        (shaped.dequeue_up_to(n), {n: -2}),
        (other.dequeue(), {}),
        (other.enqueue((x, x)), {x: 1}),
    ]
    with tf.Session() as session:
        return [tried(lambda f=f, d=d: session.run(f, d)) for f, d in feeds]


@program
def sharing_what_differs(tf):
    i, f = tf.int32, tf.float32
    makers = [
        lambda: tf.FIFOQueue(4, i, shared_name="s"),
        lambda: tf.FIFOQueue(5, i, shared_name="s"),
        lambda: tf.FIFOQueue(4, f, shared_name="s"),
        lambda: tf.FIFOQueue(4, [i, f], shared_name="s"),
        lambda: tf.FIFOQueue(4, i, shapes=[()], shared_name="s"),
        lambda: tf.FIFOQueue(-1, i, shared_name="s"),
        lambda: tf.PaddingFIFOQueue(4, i, shapes=[()], shared_name="s"),
        lambda: tf.RandomShuffleQueue(4, 2, i, shared_name="s"),
        lambda: tf.PriorityQueue(4, i, shapes=[()], shared_name="s"),
        lambda: tf.RandomShuffleQueue(4, 2, i, shared_name="r"),
        lambda: tf.RandomShuffleQueue(4, 3, i, shared_name="r"),
        lambda: tf.RandomShuffleQueue(4, 2, i, shared_name="r", seed=3),
        lambda: tf.FIFOQueue(4, i, shared_name="r"),
        lambda: tf.RandomShuffleQueue(4, 2, i, shared_name="seeded", seed=3),
        lambda: tf.RandomShuffleQueue(4, 2, i, shared_name="seeded"),
        lambda: tf.PaddingFIFOQueue(4, i, shapes=[(None,)], shared_name="p"),
        lambda: tf.PaddingFIFOQueue(4, i, shapes=[(2,)], shared_name="p"),
        lambda: tf.PaddingFIFOQueue(4, i, shapes=[(2, 2)], shared_name="p"),
        lambda: tf.PriorityQueue(4, i, shapes=[()], shared_name="pr"),
        lambda: tf.PriorityQueue(4, tf.int64, shapes=[()], shared_name="pr"),
        lambda: tf.PriorityQueue(4, i, shapes=[(2,)], shared_name="pr"),
        lambda: tf.FIFOQueue(-1, i, shared_name="u"),
        lambda: tf.FIFOQueue(-5, i, shared_name="u"),
        lambda: tf.FIFOQueue(2**31 - 1, i, shared_name="u"),
        lambda: tf.FIFOQueue(0, i),
        lambda: tf.RandomShuffleQueue(4, 5, i),
        lambda: tf.RandomShuffleQueue(4, 4, i),
        lambda: tf.RandomShuffleQueue(4, -1, i),
    ]
    found = []
    with tf.Session() as session:
        for make in makers:
            q = make()
            found.append(tried(lambda q=q: session.run(q.queue_ref.op)))
            if found[-1] is None:
                found.append(tried(lambda q=q: session.run(q.size())))
    return found


@program
def timeouts(tf):
    q = tf.FIFOQueue(2, tf.int32, [()])
    soon = tf.RunOptions(timeout_in_ms=40)
    found = []
    with tf.Session() as session:
        found.append(_class(lambda: session.run(q.dequeue(), options=soon)))
        session.run(q.enqueue(37))
        found.append(tried(lambda: session.run(q.dequeue())))
        session.run(q.enqueue_many([[1, 2]]))
        found.append(_class(lambda: session.run(q.enqueue(3), options=soon)))
        found.append(tried(lambda: session.run(q.size())))
        found.append(_class(lambda: session.run(q.dequeue_many(3), options=soon)))
        found.append(tried(lambda: session.run(q.size())))
        found.append(_class(lambda: session.run(q.enqueue_many([[4, 5, 6]]), options=soon)))
        found.append(tried(lambda: session.run(q.dequeue_many(2))))
    with tf.Session(config=tf.ConfigProto(operation_timeout_in_ms=40)) as session:
        found.append(_class(lambda: session.run(q.dequeue())))
    return found


def _class(call: Callable[[], Any]) -> str:
    return str(tried(call)).split(":")[0]


@program
def a_failure_elsewhere_ends_the_wait(tf):
    q = tf.FIFOQueue(10, [tf.int32], shapes=[()])
    a = q.dequeue()
    with tf.control_dependencies([tf.Assert(False, ["Before enqueue"])]):
        c = q.enqueue(33)
    with tf.Session() as session:
        return _class(lambda: session.run([a, c]))
