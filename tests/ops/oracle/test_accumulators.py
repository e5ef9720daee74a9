"""Conditional accumulators next to TensorFlow's: what is summed, what is dropped, who waits, and every error."""

from __future__ import annotations

import inspect
import re
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dtflab
from dtflab.graph.apply_op import apply_op
from tests.oracle import answers
from tests.oracle.answers import theirs
from tests.oracle.graph_defs import assert_same_graph, both
from tests.oracle.programs import Programs

SECONDS = 60  # long enough that only what hangs is noticed

program = Programs()


@program.each()
def test_same_answer(run):
    theirs, ours = both(lambda tf: plain(run(tf)))
    assert ours == theirs


def plain(value: Any) -> Any:
    """A value in a form that can be compared."""
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.name, value.tolist()
    return [plain(v) for v in value] if isinstance(value, list | tuple) else value


def tried(call: Callable[[], Any]) -> Any:
    """The result of a call, or its error without the names of nodes."""
    try:
        return plain(call())
    except Exception as error:
        lines = str(getattr(error, "message", error)).split("\n")
        said = [line for line in lines if re.match("Shape|Argument|Input|Values|Expected|TakeGrad", line)]
        return type(error).__name__, said[:1]


def slices(tf: Any, indices: Any, values: Any, shape: Any = None) -> Any:
    return tf.IndexedSlices(np.array(values, np.float32), indices, shape)


# -- dense ------------------------------------------------------------------------------------------------------------


@program
def mean_and_sum(tf):
    found = []
    for kind in ("MEAN", "SUM"):
        q = tf.ConditionalAccumulator(tf.float32, shape=[3], reduction_type=kind)
        with tf.Session() as session:
            for gradient in ([1.0, 2, 3], [10, 20, 30], [0.5, 0, 0]):
                session.run(q.apply_grad(gradient))
                found.append(session.run(q.num_accumulated()))
            found += [session.run(q.take_grad(2)), session.run(q.num_accumulated())]
    return found


@program
def every_dtype(tf):
    found = []
    with tf.Session() as session:
        for dtype in (tf.float16, tf.float32, tf.float64):
            q = tf.ConditionalAccumulator(dtype, shape=tf.TensorShape([1]))
            assert q.dtype == dtype
            for value in (1, 2, 4):
                session.run(q.apply_grad(np.array([value], dtype.as_numpy_dtype)))
            found.append(session.run(q.take_grad(1)))
    return found


@program
def stale_gradients_are_dropped(tf):
    q = tf.ConditionalAccumulator(tf.float32, shape=tf.TensorShape([]))
    step, value = tf.placeholder(tf.int64, []), tf.placeholder(tf.float32, [])
    add, take, count = q.apply_grad(value, local_step=step), q.take_grad(1), q.num_accumulated()
    found = []
    with tf.Session() as session:
        for i, (at, v) in enumerate([(0, 1.0), (1, 3.0), (0, 7.0), (1, 5.0), (0, 9.0), (3, 2.0), (2, 4.0)]):
            session.run(add, {step: at, value: v})
            found.append(session.run(count))
            if i in (1, 3):
                found.append(session.run(take))
        session.run(q.set_global_step(9))
        session.run(add, {step: 8, value: 100.0})
        found.append(session.run(count))
        session.run(q.set_global_step(tf.Variable(3).initialized_value()))
        session.run(add, {step: 3, value: 100.0})
        return [*found, session.run(take), session.run(count)]


@program
def shared_by_name(tf):
    one = tf.ConditionalAccumulator(tf.float32, [2], shared_name="together")
    other = tf.ConditionalAccumulator(tf.float32, [2], shared_name="together", name="other")
    alone = tf.ConditionalAccumulator(tf.float32, [2])
    with tf.Session() as session:
        session.run([one.apply_grad([1.0, 2]), alone.apply_grad([5.0, 5])])
        found = [session.run(q.num_accumulated()) for q in (one, other, alone)]
        session.run(other.apply_grad([3.0, 6]))
        return [*found, session.run(one.take_grad(2))]


@program
def unknown_shapes(tf):
    any_shape = tf.ConditionalAccumulator(tf.float32)
    some = tf.ConditionalAccumulator(tf.float32, shape=[None, 2])
    x = tf.placeholder(tf.float32)
    with tf.Session() as session:
        found = [str(any_shape.take_grad(1).shape), str(some.take_grad(1).shape)]
        for q in (any_shape, some):
            for value in ([[1.0, 2]], [[3.0, 4]], [[3.0, 4, 5]], [1.0]):
                found.append(tried(lambda q=q, v=value: session.run(q.apply_grad(x), {x: v})))
            found.append(tried(lambda q=q: session.run(q.take_grad(1))))
            # Free again to be of another shape, in the next step.
            found.append(tried(lambda q=q: session.run(q.apply_grad(x, local_step=1), {x: np.ones([3, 2], "f")})))
    return found


@program
def dense_errors(tf):
    q = tf.ConditionalAccumulator(tf.float32, shape=[1, 2])
    with tf.Session() as session:
        return [
            tried(lambda: session.run(q.take_grad(0))),
            tried(lambda: session.run(q.take_grad(-3))),
            tried(lambda: q.apply_grad([1.0, 2.0]))[0],
            tried(lambda: q.apply_grad([["a", "b"]]))[0],
            tried(lambda: q.apply_grad([[1.0, 2.0]], local_step=[1]))[0],
            tried(lambda: q.take_grad([1]))[0],
            tried(lambda: tf.ConditionalAccumulator(tf.float32, reduction_type="Invalid"))[0],
            tried(lambda: tf.ConditionalAccumulator(tf.string))[0],
        ]


@program
def attributes(tf):
    with tf.name_scope("outer"):
        dense = tf.ConditionalAccumulator(tf.float64, [2], name="Q")
        rows = tf.SparseConditionalAccumulator(tf.float32, name="R")
    found = []
    for q in (dense, rows):
        ref = q.accumulator_ref
        found += [q.name, q.dtype.name, ref.dtype.name, str(ref.shape), ref.op.type, q.num_accumulated().op.name]
        found += [isinstance(q, tf.ConditionalAccumulatorBase), q.num_accumulated("n").op.name]
    return found


def test_same_graph():
    def build(tf):
        dense = tf.ConditionalAccumulator(tf.float32, [2], shared_name="d")
        dense.apply_grad([1.0, 2.0], tf.constant(3))
        dense.set_global_step(tf.Variable(0, name="step"))
        dense.take_grad(tf.constant(2), name="t")
        dense.num_accumulated()
        rows = tf.SparseConditionalAccumulator(tf.float16, reduction_type="SUM", name="rows")
        rows.apply_grad([0], np.ones([1, 2], np.float16), [3, 2], local_step=2)
        rows.apply_indexed_slices_grad(tf.IndexedSlices(tf.ones([1, 2], tf.float16), tf.constant([0])))
        rows.take_indexed_slices_grad(1)
        rows.set_global_step(4)
        rows.num_accumulated()

    assert_same_graph(build)


@pytest.mark.parametrize("kind", ["ConditionalAccumulator", "SparseConditionalAccumulator"])
def test_same_signatures(kind):
    def signatures(library):
        found = getattr(library, kind)
        methods = [n for n in dir(found) if not n.startswith("_") and callable(getattr(found, n))]
        return {n: str(inspect.signature(getattr(found, n))).partition(" ->")[0] for n in methods}

    ours = {name: strip_annotations(text) for name, text in signatures(dtflab).items()}
    assert ours == theirs(signatures)


def strip_annotations(text: str) -> str:
    """`(a: int = 3)` as `(a=3)`."""
    parts = text.strip("()").split(", ")
    return f"({', '.join(p.split(':')[0] + ('=' + p.split(' = ')[1] if ' = ' in p else '') for p in parts)})"


# -- rows -------------------------------------------------------------------------------------------------------------


@program
def rows_are_averaged_each(tf):
    found = []
    for kind in ("MEAN", "SUM"):
        for shape in ([], [None, 2], [4, None]):
            q = tf.SparseConditionalAccumulator(tf.float32, shape=shape, reduction_type=kind)
            with tf.Session() as session:
                session.run(q.apply_indexed_slices_grad(slices(tf, [0, 1], [[1, 0], [0, 2]])))
                session.run(q.apply_grad([0, 3], np.array([[0, 1], [3, 0]], "f"), [4, 2]))
                session.run(q.apply_grad(tf.constant([1]), np.array([[5, 5]], "f")))
                found += [session.run(q.num_accumulated()), *session.run(q.take_indexed_slices_grad(2))]
                # A new sum, in the next step; what is of the last one is dropped.
                session.run(q.apply_grad([2], np.array([[7, 7]], "f"), local_step=0))
                session.run(q.apply_grad([2], np.array([[8, 8]], "f"), local_step=1))
                found += [session.run(q.take_grad(1))]
    return found


@program
def rows_in_any_order(tf):
    """TensorFlow takes the indices for increasing and does what it does if they are not."""
    q = tf.SparseConditionalAccumulator(tf.float32)
    with tf.Session() as session:
        session.run(q.apply_grad([3, 1, 1], np.array([[1.0], [2], [4]], "f")))
        session.run(q.apply_grad([1, 3, 2, 3], np.array([[10.0], [20], [30], [40]], "f")))
        session.run(q.apply_grad(np.zeros([0], np.int32), np.zeros([0, 1], "f")))
        return session.run(q.take_grad(3))


@program
def rows_of_every_dtype(tf):
    found = []
    with tf.Session() as session:
        for dtype in (tf.float16, tf.float32, tf.float64):
            q = tf.SparseConditionalAccumulator(dtype, shape=[3, 2])
            for value in (1, 2, 4):
                session.run(q.apply_grad([value % 3], np.full([1, 2], value, dtype.as_numpy_dtype)))
            found.append(session.run(q.take_grad(1)))
    return found


@program
def row_errors(tf):
    q = tf.SparseConditionalAccumulator(tf.float32, shape=[2, 2, None], name="Q")
    one, two = np.ones([1, 2, 2], "f"), np.ones([1, 2, 2, 2], "f")
    with tf.Session() as session:

        def apply(*args: Any, **kwargs: Any) -> Any:
            return tried(lambda: session.run(q.apply_grad(*args, **kwargs)))

        found = [
            apply([0], np.ones([1, 2], "f"), [2, 2]),
            apply([0], np.ones([1, 3, 2], "f"), [2, 3, 2]),
            apply([3], one),
            apply([0, 1], np.ones([2, 2], "f")),
            apply([0], np.ones([1, 3, 2], "f")),
            apply([[0, 1], [1, 0]], np.ones([2], "f")),
            apply([0], np.float32(1)),
            apply([0, 1], one),
            apply([0], two),
            apply([0], one),
            apply([0], np.ones([1, 2, 2, 3], "f")),
            apply([0], np.ones([1], "f"), local_step=-1),  # stale: not looked at
            tried(lambda: session.run(q.take_grad(0))),
        ]
        session.run(q.take_grad(1))
        return [*found, apply([0], np.ones([1, 2, 2, 3], "f"), local_step=1), apply([0], two, local_step=1)]


def test_dense_accumulators_of_old_graphs():
    """Found by a reference to two strings; TF1's Python made them before it had resource handles."""
    with dtflab.Graph().as_default() as graph:
        handle = apply_op("ConditionalAccumulator", "q", dtype=dtflab.float32, shape=[2], shared_name="old")
        value, step = dtflab.placeholder(dtflab.float32, name="value"), dtflab.placeholder(dtflab.int64, name="step")
        apply_op("AccumulatorApplyGradient", "add", handle=handle, local_step=step, gradient=value)
        apply_op("AccumulatorTakeGradient", "take", handle=handle, num_required=2, dtype=dtflab.float32)
        apply_op("AccumulatorSetGlobalStep", "set", handle=handle, new_global_step=step)
        apply_op("AccumulatorNumAccumulated", "count", handle=handle)

    def run(tf):
        with tf.Graph().as_default() as built:
            tf.import_graph_def(tf.GraphDef.FromString(graph.as_graph_def().SerializeToString()), name="")
        found = [built.get_tensor_by_name(f"{name}:0").shape.ndims for name in ("q", "take", "count")]
        with tf.Session(graph=built) as session:
            for at, gradient in ((0, [1, 2]), (0, [3, 4]), (0, [5]), (1, [7, 8])):
                found.append(tried(lambda a=at, g=gradient: session.run("add", {"step:0": a, "value:0": g})))
            found += [session.run("take:0"), session.run("count:0")]
            session.run("set", {"step:0": 5})
            session.run("add", {"step:0": 4, "value:0": [1, 1]})
            found.append(session.run("count:0"))
            session.run("add", {"step:0": 5, "value:0": [1, 1]})
            return plain([*found, session.run("count:0")])

    want, got = answers.both(run)
    assert got == want


# -- waiting ----------------------------------------------------------------------------------------------------------


class Client:
    """A thread that runs something; `result()` waits for what came out, an error as `tried` shows it."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._found: list[Any] = []
        self._thread = threading.Thread(target=lambda: self._found.append(tried(call)))
        self._thread.start()

    def result(self) -> Any:
        self._thread.join(SECONDS)
        assert not self._thread.is_alive(), "still waiting"
        return self._found[0]


def until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, "does not come about"


@program
def taking_waits_for_enough(tf):
    q = tf.ConditionalAccumulator(tf.float32, [2])
    x = tf.placeholder(tf.float32, [2])
    add, take, count = q.apply_grad(x), q.take_grad(3), q.num_accumulated()
    with tf.Session() as session:
        taker = Client(lambda: session.run(take))
        for i in range(3):
            session.run(add, {x: [i, 10 * i]})
        return taker.result(), session.run(count)


@program
def many_takers_get_one_mean_each(tf):
    q = tf.ConditionalAccumulator(tf.float32, [])
    x, step = tf.placeholder(tf.float32, []), tf.placeholder(tf.int64, [])
    add, take, count = q.apply_grad(x, local_step=step), q.take_grad(1), q.num_accumulated()
    with tf.Session() as session:
        takers = [Client(lambda: session.run(take)) for _ in range(8)]
        for i in range(8):
            session.run(add, {x: i + 1.0, step: i})
            until(lambda: session.run(count) == 0)  # a late taker would take what came meanwhile, too
        return sorted(str(taker.result()) for taker in takers), session.run(count)


@program
def many_add_at_once(tf):
    q = tf.ConditionalAccumulator(tf.float32, [])
    adders = [q.apply_grad(float(i)) for i in range(10)]
    rows = tf.SparseConditionalAccumulator(tf.float32, [2, 1])
    row_adders = [rows.apply_grad([i % 2], np.array([[i]], "f")) for i in range(10)]
    takes = q.take_grad(10), rows.take_grad(10)
    with tf.Session() as session:
        clients = [Client(lambda a=a: session.run(a)) for a in (*adders, *row_adders)]
        assert [client.result() for client in clients] == [None] * 20
        return session.run(takes)


@program
def waiting_in_one_step(tf):
    """The adding and the taking of it may be in one step."""
    q = tf.ConditionalAccumulator(tf.float32, [])
    add = [q.apply_grad(1.0), q.apply_grad(3.0)]
    take = q.take_grad(2)
    with tf.Session() as session:
        return session.run([take, *add])[0]


@program
def closing_the_session_sends_takers_away(tf):
    found = []
    for q in (tf.ConditionalAccumulator(tf.float32, [2]), tf.SparseConditionalAccumulator(tf.float32)):
        begun = tf.FIFOQueue(1, tf.bool)
        with tf.control_dependencies([begun.enqueue(True)]):
            take = q.take_grad(1)
        session, wait = tf.Session(), begun.dequeue()
        taker = Client(lambda s=session, t=take: s.run(t))
        session.run(wait)
        session.close()
        found.append(taker.result()[0])
    return found


@program
def a_deadline_sends_takers_away(tf):
    q = tf.ConditionalAccumulator(tf.float32, [], shared_name="late")
    take = q.take_grad(1)
    with tf.Session() as session:
        found = [tried(lambda: session.run(take, options=tf.RunOptions(timeout_in_ms=50)))[0]]
        session.run(q.apply_grad(2.0))  # for nobody: who stood in line is gone
        return [*found, session.run(q.num_accumulated()), session.run(take)]
