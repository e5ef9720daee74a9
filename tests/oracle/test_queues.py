"""Queues of all kinds, side by side with TensorFlow: values, order, shapes, waiting, and every error."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

pytest.importorskip("tensorflow")

import dtflab
from tests.oracle.graph_defs import both
from tests.oracle.programs import Programs

program = Programs()


@program.each()
def test_same_answer(run):
    theirs, ours = both(run)
    assert ours == theirs


def seen(value: Any) -> Any:
    """A value with its types, in a form that can be compared."""
    if isinstance(value, np.ndarray):
        return "array", value.dtype.name, value.tolist()
    if isinstance(value, np.generic):
        return value.dtype.name, value.item()
    if isinstance(value, dict):
        return {key: seen(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [seen(item) for item in value]
    return value


def said(error: Exception) -> str:
    """Class and words of an error: without what surrounds them in TensorFlow, without numbers of queues."""
    text = getattr(error, "message", str(error))
    if node := re.search(r"Node: '[^']*'\n(.*)", text, re.S):
        text = node[1]
    text = re.split(r"\n\t \[\[|\nAdditional GRPC|\n\nOriginal stack", text)[0]
    text = text.removeprefix("Graph execution error:\n\n")
    return f"{type(error).__name__}: {re.sub(r'_[0-9]+_', '_N_', text)}"


def tried(call: Callable[[], Any]) -> Any:
    """What a call gives, or its error."""
    try:
        return seen(call())
    except Exception as error:
        return said(error)


def nodes(tf: Any) -> Any:
    """The default graph, node for node, and the static shapes of all tensors."""
    graph = tf.get_default_graph()
    shapes = [(t.name, t.dtype.name, str(t.shape)) for op in graph.get_operations() for t in op.outputs]
    found = []
    for node in graph.as_graph_def().node:
        attrs = {key: str(value) for key, value in node.attr.items() if not key.startswith("_")}
        found.append((node.name, node.op, node.device, list(node.input), attrs))
    return found, shapes


# -- the graph ------------------------------------------------------------------------------------------------


@program
def a_destroyed_queue_begins_anew(tf):
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


@program
def nodes_of_constructors(tf):
    f, i, s = tf.float32, tf.int32, tf.string
    tf.FIFOQueue(10, f)
    tf.FIFOQueue(10, "float", name="Q")
    tf.FIFOQueue(-1, (i, f), shapes=(tf.TensorShape([1, 2]), [5, 8]), shared_name="foo", name="Q")
    tf.FIFOQueue(capacity=3, dtypes=[np.int64], shapes=(), names="only")
    tf.FIFOQueue(3, [i, i], [(), 2])
    tf.PaddingFIFOQueue(10, f, ((None,),))
    tf.PaddingFIFOQueue(10, [f, s], [(None, 3), ()], names=["a", "b"], shared_name="p")
    tf.RandomShuffleQueue(10, 5, f)
    tf.RandomShuffleQueue(10, 5, f, seed=7)
    tf.RandomShuffleQueue(10, 5, f, shared_name="r")
    tf.set_random_seed(3)
    tf.RandomShuffleQueue(10, 5, f)
    tf.RandomShuffleQueue(10, 5, [f, f], [(2,), ()], seed=7, name="own")
    tf.RandomShuffleQueue(10, 5, f, shared_name="r")
    tf.RandomShuffleQueue(10, 5, f, shared_name="s", seed=0)
    tf.PriorityQueue(10, s, ())
    tf.PriorityQueue(10, (s, f), ((), (2,)), shared_name="q", name="prio")
    tf.PriorityQueue(10, s, [])
    with tf.device("/job:ps/task:1"), tf.name_scope("scope"), tf.container("box"):
        tf.FIFOQueue(10, f)
        tf.RandomShuffleQueue(10, 5, f, seed=7)
        with tf.control_dependencies([tf.no_op()]):
            tf.FIFOQueue(10, f)
            tf.PaddingFIFOQueue(10, f, ((None,),))
    return nodes(tf)


@program
def nodes_of_operations(tf):
    plain = tf.FIFOQueue(10, [tf.int32, tf.float32])
    with tf.name_scope("scope"):
        shaped = tf.FIFOQueue(10, [tf.int32, tf.float32], shapes=[(), (2,)], name="shaped")
    named = tf.PaddingFIFOQueue(10, [tf.int32, tf.float32], [(), (None, 3)], names=["n", "x"], name="named")
    one = tf.RandomShuffleQueue(10, 2, tf.string, name="one")
    n = tf.placeholder(tf.int32, [])
    plain.enqueue((1, 2.0))
    plain.enqueue([1, [2.0, 3]], name="put")
    plain.enqueue_many(([1, 2], [2.0, 3.0]))
    plain.enqueue((1, 2.0, 3))
    plain.dequeue()
    plain.dequeue_many(4)
    with tf.name_scope("other"):
        shaped.enqueue_many((np.arange(3, dtype=np.int32), np.zeros((3, 2), "f")), name="all")
        shaped.dequeue()
        shaped.dequeue_many(4, name="four")
        shaped.dequeue_many(n)
        shaped.dequeue_up_to(4)
        shaped.close()
        shaped.close(cancel_pending_enqueues=True, name="shut")
        shaped.is_closed()
        shaped.size("how_many")
    named.enqueue({"x": [[1.0, 2, 3]], "n": 4})
    named.enqueue_many({"x": [[[1.0, 2, 3]]], "n": [4]})
    found = [named.dequeue()["x"].name, named.dequeue_many(2)["n"].name, sorted(named.dequeue_up_to(2))]
    one.enqueue("a")
    one.enqueue(["a"])
    one.enqueue_many([["a", "b"]])
    found += [one.dequeue().name, plain.name, shaped.name, named.names, [str(s) for s in named.shapes]]
    found += [[d.name for d in named.dtypes], plain.names, str(shaped.queue_ref.dtype), one.queue_ref.name]
    return found, nodes(tf)


@program
def a_queue_from_a_list(tf):
    qs = [tf.PaddingFIFOQueue(10, [tf.float32], [s]) for s in ([1, 1], [1, 2], [1, None])]
    other, flat = tf.PaddingFIFOQueue(10, [tf.int32], [[1]]), tf.PaddingFIFOQueue(10, [tf.float32], [[1]])
    named = tf.PaddingFIFOQueue(10, [tf.float32], [[1]], names=["x"])
    which = tf.placeholder(tf.int32, [])
    q = tf.QueueBase.from_list(which, qs)
    shapes = [str(q.shapes[0]), str(tf.QueueBase.from_list(which, [flat, *qs]).shapes[0])]
    refused = [
        tried(lambda x=x: tf.FIFOQueue.from_list(0, x)) for x in ([], (flat,), [flat, other], [flat, 3], [flat, named])
    ]
    put, take = q.enqueue([[[5.0, 6.0]]]), q.dequeue()
    with tf.Session() as session:
        session.run(put, {which: 1})
        session.run(put, {which: 1})
        sizes = [[q.size() for q in qs]]
        found = session.run([*sizes, take], {which: 1})
        return shapes, refused, seen(found[0][:1]), seen(found[-1]), tried(lambda: session.run(take, {which: 3}))


@program
def constructors_that_are_refused(tf):
    f, i = tf.float32, tf.int32
    calls = [
        lambda: tf.FIFOQueue(4, [i, i], shapes=[(2,)]),
        lambda: tf.FIFOQueue(4, [i], shapes=[(None,)]),
        lambda: tf.FIFOQueue(4, [i], names=["a", "b"]),
        lambda: tf.FIFOQueue(4, [i], shapes=7),
        lambda: tf.FIFOQueue(4, [i], shapes=[tf.TensorShape(None)]),
        lambda: tf.PaddingFIFOQueue(4, i, shapes=[None]),
        lambda: tf.PaddingFIFOQueue(4, i, shapes=None),
        lambda: tf.PaddingFIFOQueue(4, i, shapes=(2, 3)),
        lambda: tf.PaddingFIFOQueue(4, i, shapes=[tf.TensorShape(None)]),
        lambda: tf.PaddingFIFOQueue(4, [i, i], shapes=[(2,)]),
        lambda: tf.PriorityQueue(4, [], []),
        lambda: tf.PriorityQueue(4, i, None),
        lambda: tf.PriorityQueue(4, [i, f], [()]),
        lambda: tf.FIFOQueue(4, []),
        lambda: tf.QueueBase([i], [(), ()], None, tf.FIFOQueue(4, i).queue_ref),
        lambda: tf.QueueBase([i], None, ["a", "b"], tf.FIFOQueue(4, i).queue_ref),
    ]
    return [_first_words(tried(call)) for call in calls]


@program
def elements_that_are_refused(tf):
    q = tf.FIFOQueue(9, [tf.int32, tf.float32], shapes=[(), (2,)], name="q")
    named = tf.FIFOQueue(9, [tf.int32, tf.float32], names=["n", "x"], name="named")
    p = tf.PaddingFIFOQueue(9, tf.int32, [(None, 3)], name="p")
    prio = tf.PriorityQueue(9, tf.string, (), name="prio")
    some = tf.placeholder(tf.int32)
    calls = [
        lambda: q.enqueue((1, 2.0)),
        lambda: q.enqueue((1, [2.0, 3.0, 4.0])),
        lambda: q.enqueue((1.5, [2.0, 3.0])),
        lambda: q.enqueue(("a", [2.0, 3.0])),
        lambda: q.enqueue((some, some)),
        lambda: q.enqueue({"n": 1, "x": 2.0}),
        lambda: q.enqueue_many((1, [2.0, 3.0])),
        lambda: q.enqueue_many(([1], [[2.0, 3.0], [1.0, 2.0]])),
        lambda: q.enqueue_many((some, [[[2.0, 3.0]]])),
        lambda: q.enqueue_many({"n": [1], "x": [2.0]}),
        lambda: named.enqueue((1, 2.0)),
        lambda: named.enqueue({}),
        lambda: named.enqueue({"n": 1}),
        lambda: named.enqueue({"n": 1, "x": 2.0, "y": 3}),
        lambda: named.enqueue_many([1.0]),
        lambda: p.enqueue([[1, 2]]),
        lambda: prio.enqueue(("a", "b")),
        lambda: prio.enqueue(([1, 2], "b")),
        lambda: prio.enqueue((1, "b")).type,
        lambda: q.dequeue_many(-1),
    ]
    return [_first_words(tried(call)) for call in calls]


def _first_words(answer: Any) -> Any:
    """An error's class and the beginning of its text, where TensorFlow goes on with how it found out."""
    answer = re.sub(r"component_\d: ", "", answer) if isinstance(answer, str) else answer
    return (
        re.split(r" for '\{\{node| of type|, but got|, got|, ?received| \[Op", answer)[0]
        if isinstance(answer, str)
        else answer
    )


# -- values and order -----------------------------------------------------------------------------------------


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


# -- closing, errors ------------------------------------------------------------------------------------------


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


OLD = """
node { name: "q" op: "FIFOQueue" attr { key: "component_types" value { list { type: DT_INT32 type: DT_STRING } } }
  attr { key: "shapes" value { list { shape { } shape { } } } } attr { key: "capacity" value { i: 5 } } }
node { name: "shared" op: "RandomShuffleQueue" attr { key: "component_types" value { list { type: DT_INT32 } } }
  attr { key: "shapes" value { list { shape { } } } } attr { key: "capacity" value { i: 5 } }
  attr { key: "seed" value { i: 3 } } attr { key: "seed2" value { i: 4 } }
  attr { key: "shared_name" value { s: "shared" } } attr { key: "container" value { s: "box" } } }
node { name: "pad" op: "PaddingFIFOQueue" attr { key: "component_types" value { list { type: DT_INT32 } } }
  attr { key: "shapes" value { list { shape { dim { size: -1 } } } } } }
node { name: "prio" op: "PriorityQueue" attr { key: "component_types" value { list { type: DT_INT32 } } }
  attr { key: "shapes" value { list { shape { } } } } }
node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } } }
node { name: "s" op: "Placeholder" attr { key: "dtype" value { type: DT_STRING } } }
node { name: "n" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } } }
node { name: "rank" op: "Placeholder" attr { key: "dtype" value { type: DT_INT64 } } }
node { name: "put" op: "QueueEnqueue" input: "q" input: "x" input: "s"
  attr { key: "Tcomponents" value { list { type: DT_INT32 type: DT_STRING } } } }
node { name: "put_many" op: "QueueEnqueueMany" input: "shared" input: "x"
  attr { key: "Tcomponents" value { list { type: DT_INT32 } } } }
node { name: "put_pad" op: "QueueEnqueue" input: "pad" input: "x"
  attr { key: "Tcomponents" value { list { type: DT_INT32 } } } }
node { name: "put_prio" op: "QueueEnqueueMany" input: "prio" input: "rank" input: "x"
  attr { key: "Tcomponents" value { list { type: DT_INT64 type: DT_INT32 } } } }
node { name: "take" op: "QueueDequeue" input: "q"
  attr { key: "component_types" value { list { type: DT_INT32 type: DT_STRING } } } }
node { name: "take_many" op: "QueueDequeueMany" input: "shared" input: "n"
  attr { key: "component_types" value { list { type: DT_INT32 } } } }
node { name: "take_pad" op: "QueueDequeueUpTo" input: "pad" input: "n"
  attr { key: "component_types" value { list { type: DT_INT32 } } } }
node { name: "take_prio" op: "QueueDequeueMany" input: "prio" input: "n"
  attr { key: "component_types" value { list { type: DT_INT64 type: DT_INT32 } } } }
node { name: "size" op: "QueueSize" input: "shared" }
node { name: "is_closed" op: "QueueIsClosed" input: "shared" }
node { name: "close" op: "QueueClose" input: "shared" }
versions { producer: 9 }
"""


@program
def graphs_of_before_resource_handles(tf):
    graph_def = tf.GraphDef()
    text_format.Parse(OLD, graph_def)
    tf.import_graph_def(graph_def, name="")
    shapes = nodes(tf)[1]
    with tf.Session() as session:
        for n in range(2):
            session.run("put", {"x:0": n, "s:0": b"abc"[: n + 1]})
        session.run("put_many", {"x:0": [1, 2, 3, 4]})
        for n in (1, 3):
            session.run("put_pad", {"x:0": [n] * n})
        session.run("put_prio", {"x:0": [1, 2], "rank:0": [9, 8]})
        found = [session.run("shared:0"), session.run(["take:0", "take:1"])]
        found += [session.run("take_many:0", {"n:0": 3}), session.run(["size:0", "is_closed:0"])]
        session.run("close")
        found += [session.run("is_closed:0"), session.run("take_pad:0", {"n:0": 2})]
        found += [session.run(["take_prio:0", "take_prio:1"], {"n:0": 2})]
        return shapes, seen(found), tried(lambda: session.run("take_many", {"n:0": 2}))


# -- threads, sessions, servers -------------------------------------------------------------------------------


def in_thread(call: Callable[[], Any]) -> Callable[[], Any]:
    """Start a call; the result waits for its end and gives what it gave, or its error."""
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(tried(call)))
    thread.start()

    def join() -> Any:
        thread.join(30)
        assert answers, "still waiting after 30 s"
        return answers[0]

    return join


def announced(tf: Any, wait: Callable[[], Any]) -> tuple[Any, Any]:
    """An operation that waits, and one that returns when the step with the first has begun."""
    begun = tf.FIFOQueue(9, tf.bool, name="begun")
    with tf.control_dependencies([begun.enqueue(True)]):
        return wait(), begun.dequeue()


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
