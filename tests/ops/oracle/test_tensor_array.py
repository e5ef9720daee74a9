"""TensorArray: the graph that it makes, what it computes, its gradients, its errors, where it lives."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dtflab
from dtflab.machine.hosts import simulate_gpus
from tests.oracle import answers
from tests.oracle.graph_defs import assert_same_graph
from tests.oracle.programs import Programs

program = Programs()  # `function(tf)` → what to fetch
mistake = Programs()  # `function(tf)` fails, while it is called or while its result is computed


def computed(tf: Any, make: Callable[[Any], Any]) -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        return session.run(make(tf))


# TensorFlow knows the rank of what TensorArrayGradWithShape makes.
OTHER_SHAPES = {"array_of_gradients_with_more_dimensions"}


@program.each("make")
def test_same_values(make):
    theirs, ours = answers.both(lambda tf: computed(tf, make))
    assert len(theirs) == len(ours)
    for a, b in zip(theirs, ours, strict=True):
        np.testing.assert_allclose(b, a, 1e-6) if np.asarray(a).dtype.kind == "f" else np.testing.assert_array_equal(
            b, a
        )
        assert np.asarray(a).dtype == np.asarray(b).dtype


@program.each("make")
def test_same_graph(make):
    assert_same_graph(make, gradients=True)


@program.each("make")
def test_same_static_shapes(make):
    def answer(tf):
        with tf.Graph().as_default() as graph:
            make(tf)
            return {t.name: str(t.shape) for op in graph.get_operations() for t in op.outputs}

    theirs, ours = answers.both(answer)
    with pytest.raises(AssertionError) if make.__name__ in OTHER_SHAPES else contextlib.nullcontext():
        assert ours == theirs


@mistake.each("make")
def test_same_error(make):
    def answer(tf):
        with pytest.raises((ValueError, TypeError, tf.errors.OpError)) as info:
            computed(tf, make)
        return info.type.__name__, told(info.value)

    theirs, ours = answers.both(answer)
    assert ours == theirs


def told(error: Exception) -> str:
    """The text of an error, without the node, and without the numbers that arrays have in the process."""
    text = getattr(error, "message", str(error))
    text = re.sub(r"(?s)^Graph execution error:.*?Node: '.*?'\n", "", text)
    text = re.split(r"\n|for '\{\{node| for Tensor", text)[0]
    return re.sub(r"(TensorArray\w*)_\d+", r"\1", text).strip()


# -- writing and reading ------------------------------------------------------------------------------------------


def array(tf, size=3, **options):
    return tf.TensorArray(tf.float32, size=size, **options)


@program
def written_and_stacked(tf):
    x = tf.constant([1.0, 2.0], name="x")
    ta = array(tf).write(0, x).write(2, x * 3).write(1, -x)
    return [ta.stack(), ta.size(), ta.flow]


@program
def read_one_by_one(tf):
    ta = array(tf, clear_after_read=False).unstack([[1.0], [2.0], [3.0]])
    return [ta.read(2), ta.read(0), ta.read(2), ta.gather([1, 1, 0]), ta.stack()]


@program
def arguments(tf):
    ta = tf.TensorArray(
        tf.int64, tf.constant(2), dynamic_size=True, tensor_array_name="mine", element_shape=[None], name="named"
    )
    ta = ta.write(0, [1, 2], name="first").write(3, np.array([3, 4])).identity()
    return [ta.gather([3, 0], name="both"), ta.size(name="how_many")]


@program
def fixed_device(tf):
    with tf.device("/cpu:0"):
        ta = tf.TensorArray(tf.float32, 2, colocate_with_first_write_call=False)
        x = tf.constant(3.0)
    return [ta.scatter([1, 0], tf.stack([x, x + 1])).read(1)]


@program
def grows(tf):
    ta = tf.TensorArray(tf.int32, 0, dynamic_size=True, element_shape=[]).write(4, 7).write(1, 8)
    ta = ta.scatter([6], [9])
    return [ta.stack(), ta.size()]


@program
def unknown_shapes(tf):
    p = tf.placeholder_with_default([[1.0, 2.0], [3.0, 4.0]], None)
    n = tf.placeholder_with_default(2, [])
    ta = tf.TensorArray(tf.float32, n).unstack(p)
    return [ta.stack(), ta.size()]


@program
def split_and_joined(tf):
    ta = array(tf, infer_shape=False).split(tf.range(6.0), [1, 3, 2])
    same = array(tf, 2, clear_after_read=False).split(tf.ones([4, 2]), tf.constant([2, 2]))
    return [ta.concat(), same.concat(name="all"), same.read(1)]


@program
def raw_concat_with_its_lengths(tf):
    ta = array(tf, infer_shape=False).write(0, [[1.0]]).write(1, [[2.0], [3.0]]).write(2, tf.zeros([0, 1]))
    return list(
        tf.raw_ops.TensorArrayConcatV3(
            handle=ta.handle, flow_in=ta.flow, dtype=tf.float32, element_shape_except0=[1], name="raw"
        )
    )


@program
def text_and_truth(tf):
    words = tf.TensorArray(tf.string, 2).write(0, "a").write(1, "bc")
    truths = tf.TensorArray(tf.bool, 2).unstack([True, False])
    return [words.stack(), truths.read(1), tf.TensorArray(tf.string, 1).unstack([["x", "y"]]).concat()]


@program
def nothing_at_all(tf):
    none = array(tf, 0, element_shape=[2])
    return [
        none.stack(),
        array(tf, 0, element_shape=[3, 2]).concat(),
        none.size(),
        array(tf, element_shape=[2]).read(1),
    ]


@program
def in_a_branch(tf):
    p = tf.placeholder_with_default(True, [])
    ta = array(tf, 2).write(0, 1.0)
    ta = tf.cond(p, lambda: ta.write(1, 2.0), lambda: ta.write(1, 3.0))
    return [ta.stack()]


# -- gradients ----------------------------------------------------------------------------------------------------


@program
def gradients_of_writes_and_stack(tf):
    x = tf.constant([1.0, 2.0])
    y = array(tf).write(0, x).write(1, x * x).write(2, 3.0 * x).stack()
    return tf.gradients(y * [[1.0], [2.0], [3.0]], x)


@program
def gradients_of_unstack_and_reads(tf):
    x = tf.constant([1.0, 2.0, 3.0])
    ta = array(tf, clear_after_read=False).unstack(x)
    return tf.gradients(ta.read(0) * ta.read(2) + ta.read(2) * 5.0, x)


@program
def gradients_of_what_was_never_read(tf):
    x, y = tf.constant(2.0), tf.constant(5.0)
    return tf.gradients(array(tf, 2).write(0, x).write(1, y).read(0) ** 3, [x, y])


@program
def gradients_of_gather_and_scatter(tf):
    x = tf.constant([[1.0], [2.0], [3.0]])
    ta = array(tf, 4, clear_after_read=False).scatter([3, 0, 1], x)
    return tf.gradients([ta.gather([0, 3, 0]) ** 2, ta.read(1)], x)


@program
def gradients_of_split_and_concat(tf):
    x = tf.constant([1.0, 2.0, 3.0, 4.0])
    ta = array(tf, infer_shape=False, clear_after_read=False).split(x, [2, 1, 1])
    return [*tf.gradients(ta.concat() ** 2, x), *tf.gradients(ta.read(0) * 7.0, x)]


@program
def two_calls_of_gradients(tf):
    x = tf.constant(3.0)
    y = array(tf, 1).write(0, x * x).stack()
    with tf.name_scope("inner"):
        second = tf.gradients(y, x, name="gradients_of_mine")
    return [tf.gradients(y, x)[0], second[0]]


@program
def gradients_of_doubles(tf):
    x = tf.constant([1.0, 2.0], tf.float64)
    ta = tf.TensorArray(tf.float64, 2, dynamic_size=True).unstack(x)
    return tf.gradients(tf.sin(ta.stack()), x)


@program
def array_of_gradients_with_more_dimensions(tf):
    ta = array(tf, 2, element_shape=[2]).unstack([[1.0, 2.0], [3.0, 4.0]])
    handle, flow = tf.raw_ops.TensorArrayGradWithShape(
        handle=ta.handle, flow_in=ta.flow, shape_to_prepend=[3], source="mine"
    )
    flow = tf.raw_ops.TensorArrayWriteV3(handle=handle, index=1, value=tf.ones([3, 2]), flow_in=flow)
    flow = tf.raw_ops.TensorArrayWriteV3(handle=handle, index=1, value=tf.ones([3, 2]), flow_in=flow)
    return [
        tf.raw_ops.TensorArrayGatherV3(
            handle=handle, indices=[0, 1], flow_in=flow, dtype=tf.float32, element_shape=None
        )
    ]


# -- in loops -----------------------------------------------------------------------------------------------------


@program
def filled_in_a_loop(tf):
    _, ta = tf.while_loop(
        lambda i, _: i < 4, lambda i, ta: (i + 1, ta.write(i, 2.0 * tf.cast(i, tf.float32))), [0, array(tf, 4)]
    )
    return [ta.stack(), ta.size()]


@program
def read_and_filled_in_a_loop(tf):
    x = tf.constant([[1.0], [2.0], [3.0]])
    rows = array(tf).unstack(x)

    def body(i, a, sums):
        a = a * rows.read(i) + 1.0
        return i + 1, a, sums.write(i, a)

    grown = tf.TensorArray(tf.float32, 0, dynamic_size=True)
    _, last, sums = tf.while_loop(lambda i, a, s: i < 3, body, (0, tf.constant([1.0]), grown), parallel_iterations=1)
    stacked = sums.stack()
    return [last, stacked, *tf.gradients([last, stacked**2], x)]


@program
def made_in_a_loop(tf):
    x = tf.constant([1.0, 2.0])

    def body(i, a):
        ta = array(tf, 2, clear_after_read=False).write(0, a).write(1, x * a)
        return i + 1, ta.read(0) + ta.read(1)

    _, last = tf.while_loop(lambda i, a: i < 3, body, (0, x))
    return [last, *tf.gradients(last, x)]


@program
def a_decoder(tf):
    """Outputs as long as it takes; a sequence that has ended keeps its state."""
    w, length = tf.constant([[0.5, -0.3], [0.2, 0.8]]), tf.constant(3)
    x = tf.constant(np.arange(8.0).reshape(4, 1, 2) / 10, tf.float32)
    inputs = array(tf, 4, clear_after_read=False).unstack(x)

    def body(i, state, outputs):
        new = tf.cond(i < length, lambda: tf.tanh(tf.matmul(state, w) + inputs.read(i)), lambda: state)
        return i + 1, new, outputs.write(i, new)

    grown = tf.TensorArray(tf.float32, 0, dynamic_size=True)
    _, last, outputs = tf.while_loop(lambda i, s, o: i < 4, body, [0, tf.zeros([1, 2]), grown])
    stacked = outputs.stack()
    return [last, stacked, *tf.gradients([stacked**2, last], [w, x])]


@program
def loops_in_loops(tf):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])

    def outer(i, total, rows):
        def inner(j, a, row):
            return j + 1, a * x[i, j], row.write(j, a + x[i, j])

        _, total, row = tf.while_loop(lambda j, a, r: j < 2, inner, [0, total, array(tf, 2)])
        return i + 1, total, rows.write(i, row.stack())

    _, total, rows = tf.while_loop(lambda i, t, r: i < 2, outer, [0, tf.constant(1.0), array(tf, 2)])
    stacked = rows.stack()
    return [total, stacked, *tf.gradients([total, stacked**2], x)]


@program
def rows_of_different_lengths(tf):
    ta = array(tf, infer_shape=False)
    _, ta = tf.while_loop(lambda i, _: i < 3, lambda i, t: (i + 1, t.write(i, tf.ones([i + 1]))), [0, ta])
    return [ta.concat()]


@program
def gradients_of_writes_in_branches(tf):
    x, p = tf.constant([1.0, 2.0, 3.0]), tf.placeholder_with_default(True, [])
    ta = array(tf, 2, clear_after_read=False).write(0, x)
    ta = tf.cond(p, lambda: ta.write(1, x * x), lambda: ta.write(1, x))
    return tf.gradients(ta.stack() ** 2, x)


@program
def reads_in_branches_of_a_map(tf):
    x = tf.constant([1.0, 2.0, 3.0])
    ta = array(tf, clear_after_read=False).unstack(x)

    def chosen(i):
        return tf.cond(tf.equal(i % 2, 0), lambda: ta.read(i) * 3.0, lambda: ta.read(0) * ta.read(i))

    y = tf.map_fn(chosen, tf.range(3), dtype=tf.float32)
    return [y, *tf.gradients(y, x)]


# -- mistakes -------------------------------------------------------------------------------------------------------


@mistake
def read_twice(tf):
    ta = array(tf).write(0, 1.0)
    x = ta.read(0)
    with tf.control_dependencies([x]):
        return ta.read(0)


@mistake
def written_twice(tf):
    return array(tf).write(0, 1.0).write(0, 2.0).flow


@mistake
def written_after_it_was_read(tf):
    ta = array(tf).write(0, 1.0)
    with tf.control_dependencies([ta.read(0)]):
        return ta.identity().write(0, 1.0).flow


@mistake
def written_behind_the_end(tf):
    return array(tf).write(3, 1.0).flow


@mistake
def written_before_the_beginning(tf):
    return array(tf).write(-1, 1.0).flow


@mistake
def read_without_a_shape(tf):
    return array(tf).read(0)


@mistake
def read_behind_the_end(tf):
    return array(tf).read(3)


@mistake
def read_behind_what_has_grown(tf):
    return array(tf, dynamic_size=True).write(7, 1.0).read(9)


@mistake
def other_static_shape(tf):
    return array(tf).write(0, [1.0]).write(1, 1.0)


@mistake
def other_shape(tf):
    p, q = tf.placeholder_with_default([1.0], None), tf.placeholder_with_default([1.0, 2.0], None)
    return array(tf).write(0, p).write(1, q).flow


@mistake
def not_the_declared_shape(tf):
    return array(tf, element_shape=[3]).write(0, tf.placeholder_with_default([1.0], None)).flow


@mistake
def stack_of_different_shapes(tf):
    return array(tf, 2, infer_shape=False).write(0, [1.0]).write(1, [1.0, 2.0]).stack()


@mistake
def concat_of_different_shapes(tf):
    return array(tf, 2, infer_shape=False).write(0, [[1.0]]).write(1, [[1.0, 2.0]]).concat()


@mistake
def concat_of_scalars(tf):
    return array(tf, 1, infer_shape=False).write(0, 1.0).concat()


@mistake
def stack_of_nothing(tf):
    return array(tf, 0).stack()


@mistake
def concat_of_nothing(tf):
    return array(tf, 0).concat()


@mistake
def negative_size(tf):
    return array(tf, -1).flow


@mistake
def vector_as_size(tf):
    return array(tf, [3]).flow


@mistake
def vector_as_size_at_run_time(tf):
    return array(tf, tf.placeholder_with_default([3], None)).flow


@mistake
def vector_as_index(tf):
    return array(tf).write(tf.placeholder_with_default([0], None), 1.0).flow


@mistake
def scatter_behind_the_end(tf):
    return array(tf).scatter([0, 2, 5], [1.0, 2.0, 3.0]).flow


@mistake
def scatter_twice(tf):
    return array(tf).scatter([0, 2, 0], [1.0, 2.0, 3.0]).flow


@mistake
def unstack_too_many(tf):
    return array(tf).unstack([1.0, 2.0, 3.0, 4.0]).flow


@mistake
def scatter_of_too_few(tf):
    return array(tf).scatter(tf.placeholder_with_default([0, 1, 2], [None]), [1.0, 2.0]).flow


@mistake
def split_into_too_few(tf):
    return array(tf).split([1.0, 2.0, 3.0], [1, 2]).flow


@mistake
def split_of_too_little(tf):
    return array(tf).split([1.0, 2.0, 3.0], [1, 2, 1]).flow


@mistake
def other_dtype_written(tf):
    ta = array(tf)
    return tf.raw_ops.TensorArrayWriteV3(handle=ta.handle, index=0, value=1, flow_in=ta.flow)


@mistake
def other_dtype_read(tf):
    ta = array(tf)
    return tf.raw_ops.TensorArrayReadV3(handle=ta.handle, index=0, flow_in=ta.flow, dtype=tf.int32)


def gathered(tf, ta, shape):
    return tf.raw_ops.TensorArrayGatherV3(
        handle=ta.handle, indices=[0], flow_in=ta.flow, dtype=tf.float32, element_shape=shape
    )


@mistake
def gather_of_another_shape(tf):
    return gathered(tf, array(tf, infer_shape=False).write(0, [1.0, 2.0]), [3])


@mistake
def gather_of_another_declared_shape(tf):
    return gathered(tf, array(tf, element_shape=[2]).write(0, [1.0, 2.0]), [3])


@mistake
def gather_of_another_rank(tf):
    return gathered(tf, array(tf, element_shape=[2]).write(0, [1.0, 2.0]), [3, 2])


@mistake
def closed(tf):
    ta = array(tf, dynamic_size=True)
    with tf.control_dependencies([ta.close()]):
        return tf.raw_ops.TensorArraySizeV3(handle=ta.handle, flow_in=ta.flow)


@mistake
def gradients_of_gradients(tf):
    x = tf.constant(3.0)
    (first,) = tf.gradients(array(tf, 1).write(0, x * x).read(0) ** 2, x)
    return tf.gradients(first, x)[0]


@mistake
def gradients_under_another_name(tf):
    x = tf.constant(3.0)
    return tf.gradients(array(tf, 1).write(0, x).read(0), x, name="mine")[0]


def handle_and(tf, **options):
    ta = array(tf)
    return tf.TensorArray(tf.float32, handle=ta.handle, **{"flow": ta.flow, **options})


for _options in (
    {"size": 1}, {"tensor_array_name": "a"}, {"element_shape": []}, {"dynamic_size": False},
    {"clear_after_read": True}, {"flow": None},
):  # fmt: skip

    def _contradiction(tf, options=_options):
        return handle_and(tf, **options)

    _contradiction.__name__ = f"handle_and_{next(iter(_options))}"
    mistake(_contradiction)


@mistake
def no_size(tf):
    return tf.TensorArray(tf.float32)


@mistake
def handle_that_is_no_tensor(tf):
    return tf.TensorArray(tf.float32, handle="a", flow=tf.constant(0.0))


# -- where it lives -------------------------------------------------------------------------------------------------


@pytest.fixture
def two_gpus(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    simulate_gpus(2)
    yield
    simulate_gpus(None)


def test_it_is_where_the_first_write_is(two_gpus):
    with dtflab.Graph().as_default():
        with dtflab.device("/cpu:0"):
            ta = dtflab.TensorArray(dtflab.float32, 2)
        with dtflab.device("/gpu:1"):
            x = dtflab.constant([1.0, 2.0]) * 2.0
        y = ta.write(0, x).write(1, x + 1.0).stack()
        (dx,) = dtflab.gradients(dtflab.reduce_sum(y * y), x)
        options, facts = dtflab.RunOptions(trace_level=dtflab.RunOptions.FULL_TRACE), dtflab.RunMetadata()
        with dtflab.Session() as session:
            assert session.run([y, dx], options=options, run_metadata=facts)[1].tolist() == [10.0, 18.0]
    ran = {
        node.node_name: stats.device
        for stats in facts.step_stats.dev_stats
        for node in stats.node_stats
        if "GPU:1" in stats.device
    }
    assert {"TensorArray", "TensorArrayStack/TensorArrayGatherV3"} <= set(ran)


def test_it_lives_on_one_task_and_is_used_from_another():
    with dtflab.Cluster(ps=1, worker=1) as cluster, dtflab.Graph().as_default():
        with dtflab.device("/job:ps/task:0"):
            ta = dtflab.TensorArray(dtflab.float32, 2, colocate_with_first_write_call=False)
        with dtflab.device("/job:worker/task:0"):
            x = dtflab.constant([3.0])
            y = ta.write(0, x).write(1, x * x).stack() * 2.0
        with dtflab.Session(cluster.target) as session:
            assert session.run(y).tolist() == [[6.0], [18.0]]
            assert session.run(dtflab.gradients(y, x)[0]).tolist() == [14.0]


def test_a_step_keeps_nothing():
    with dtflab.Graph().as_default(), dtflab.Session() as session:
        big = dtflab.placeholder(dtflab.float32, [None])
        flow = dtflab.TensorArray(dtflab.float32, 1).write(0, big).flow
        for _ in range(3):
            assert session.run(flow, {big: np.ones(8, np.float32)}) == 0
