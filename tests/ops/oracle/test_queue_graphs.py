"""Queues, side by side with TensorFlow: the nodes that they make, and what is refused when they are made."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

from tests.oracle.programs import Programs
from tests.oracle.said import seen, tried

program = Programs()
test_same_answer = pytest.mark.unordered(program.same_answers())


def nodes(tf: Any) -> Any:
    """The default graph, node for node, and the static shapes of all tensors."""
    graph = tf.get_default_graph()
    shapes = [(t.name, t.dtype.name, str(t.shape)) for op in graph.get_operations() for t in op.outputs]
    found = []
    for node in graph.as_graph_def().node:
        attrs = {key: str(value) for key, value in node.attr.items() if not key.startswith("_")}
        found.append((node.name, node.op, node.device, list(node.input), attrs))
    return found, shapes


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


# ---- older graphs ----

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
