"""Python functions in a graph: what they get, what they may return, how they fail, as in TensorFlow."""

from __future__ import annotations

import gc
import re
import threading

import numpy as np
import pytest

pytest.importorskip("tensorflow")
import tensorflow.compat.v1 as real_tf

import dtflab as tf
from dtflab.base import errors

BOTH = pytest.mark.parametrize("lib", [tf, real_tf], ids=["dtflab", "TensorFlow"])


def result(lib, function, inputs=(), Tout="float32", **more):
    """The function's result through a session."""
    with lib.Graph().as_default(), lib.Session() as session:
        kinds = [getattr(lib, t) for t in Tout] if isinstance(Tout, list) else getattr(lib, Tout)
        return session.run(lib.py_func(function, [lib.constant(x) for x in inputs], kinds, **more))


RETURNS = [
    (lambda: np.float32(1), "float32"),
    (lambda: 1.5, "float64"),
    (lambda: 3, "int64"),
    (lambda: True, "bool"),
    (lambda: (np.float32(1), 2), ["float32", "int64"]),
    (lambda: [np.arange(3.0)], "float64"),
    (lambda: [[1, 2]], ["int64"]),
    (lambda: "text", "string"),
    (lambda: b"zero\0", "string"),
    (lambda: ["a", "bé"], ["string", "string"]),
    (lambda: np.array(["a", "bcd"]), "string"),
    (lambda: np.array([[b"a"], [b"bc"]], object), "string"),
    (lambda: np.asfortranarray(np.arange(6.0).reshape(2, 3)), "float64"),
    (lambda: np.zeros((0, 2), np.int32), "int32"),
    (lambda: None, []),
]


@pytest.mark.parametrize("function, Tout", RETURNS)
@pytest.mark.parametrize("stateful", [True, False])
def test_results_are_tensorflows(function, Tout, stateful):
    ours, theirs = (result(lib, function, Tout=Tout, stateful=stateful) for lib in (tf, real_tf))
    if not isinstance(Tout, list):
        ours, theirs = [ours], [theirs]
    assert Tout == [] or len(ours) == len(theirs)
    for our, their in zip(ours, theirs, strict=True) if Tout != [] else ():
        np.testing.assert_array_equal(our, their)
        assert type(our) is type(their) and np.asarray(our).dtype == np.asarray(their).dtype


@BOTH
def test_what_a_function_gets(lib):
    got = []
    values = [1.0, [1, 2], "a", [b"a", b"b\0"], True, b"\0a\0", np.int64([[1]])]
    result(lib, lambda *args: got.extend(args) or np.float32(0), values)
    assert [type(x).__name__ for x in got] == ["float32", "ndarray", "bytes", "ndarray", "bool", "bytes", "ndarray"]
    assert got[5] == b"\0a\0" and got[3].tolist() == [b"a", b"b\0"] and got[6].dtype == np.int64


@BOTH
def test_it_may_change_what_it_gets(lib):
    def in_place(x):
        x *= 2
        return x

    with lib.Graph().as_default(), lib.Session() as session:
        x = lib.constant([1.0, 2.0]) + 0.0
        y = lib.py_func(in_place, [lib.identity(x)], lib.float32)
        assert session.run(y).tolist() == [2.0, 4.0]


def test_arrays_that_the_function_keeps_are_its_own():
    kept = np.zeros(2, np.float32)

    def add():
        kept[...] += 1
        return kept

    with tf.Graph().as_default(), tf.Session() as session:
        y = tf.py_func(add, [], tf.float32)
        first = session.run(y)
        assert session.run(y).tolist() == [2.0, 2.0]
        assert first.tolist() == [1.0, 1.0]


REFUSED = [
    (lambda: 1.0, "float32", "0-th value returned by pyfunc_N is double, but expects float"),
    (lambda: (1, 2), ["int64"], "pyfunc_N returns 2 values, but expects to see 1 values."),
    (lambda: None, ["int64"], "pyfunc_N returns 0 values, but expects to see 1 values."),
    (lambda: ["a", "b"], "string", "pyfunc_N returns 2 values, but expects to see 1 values."),
    (lambda: {"a": 1}, "float32", "Unsupported object type dict"),
    (lambda: [np.array([None])], "float32", "Unsupported object type NoneType"),
]


@BOTH
@pytest.mark.parametrize("function, Tout, text", REFUSED, ids=[text for *_, text in REFUSED])
def test_results_that_are_refused(lib, function, Tout, text):
    with pytest.raises((lib.errors.InvalidArgumentError, lib.errors.InternalError)) as caught:
        result(lib, function, Tout=Tout)
    assert isinstance(caught.value, lib.errors.InternalError) == text.startswith("Unsupported")
    assert text in re.sub(r"pyfunc_\d+", "pyfunc_N", caught.value.message)


RAISED = {
    ValueError: "InvalidArgumentError", TypeError: "InvalidArgumentError", UnicodeError: "InvalidArgumentError",
    StopIteration: "OutOfRangeError", MemoryError: "ResourceExhaustedError", NotImplementedError: "UnimplementedError",
    KeyError: "UnknownError", RuntimeError: "UnknownError", ZeroDivisionError: "UnknownError",
}  # fmt: skip


@BOTH
@pytest.mark.parametrize("raised", RAISED)
def test_exceptions_become_errors_that_show_the_users_line(lib, raised):
    def fails():
        raise raised("oh no")

    with pytest.raises(getattr(lib.errors, RAISED[raised])) as caught:
        result(lib, fails)
    assert f"{raised.__name__}: " in caught.value.message and "oh no" in caught.value.message
    assert 'test_script.py", line' in caught.value.message and 'raise raised("oh no")' in caught.value.message


@BOTH
def test_what_can_not_be_called(lib):
    with lib.Graph().as_default(), pytest.raises(ValueError, match="Expected func to be callable"):
        lib.py_func("no function", [], lib.float32)


@BOTH
def test_names_types_and_gradients(lib):
    with lib.Graph().as_default():
        x = lib.constant(1.0)
        one = lib.py_func(np.negative, [x], lib.float32)
        many = lib.numpy_function(np.negative, [x, 2], [lib.float32], stateful=False, name="named")
        none = lib.py_func(print, [], [])
        assert (one.name, one.op.type, one.shape.ndims) == ("PyFunc:0", "PyFunc", None)
        assert [t.name for t in many] == ["named:0"] and many[0].op.type == "PyFuncStateless"
        assert many[0].op.inputs[1].name == "named/input_1:0"
        assert none.name == "PyFunc_1"
        assert lib.gradients(one, x) == [None]


def test_a_variable_is_given_by_its_value():
    for use_resource in (False, True):
        with tf.Graph().as_default(), tf.Session() as session:
            v = tf.get_variable("v", initializer=3.0, use_resource=use_resource)
            session.run(v.initializer)
            assert session.run(tf.py_func(np.negative, [v], tf.float32)) == -3.0


def test_it_is_called_each_time_that_its_result_is_needed():
    calls = []
    with tf.Graph().as_default(), tf.Session() as session:
        y = tf.py_func(lambda: calls.append(1) or np.float32(len(calls)), [], tf.float32)
        z = tf.constant(1.0)
        assert [session.run(y), session.run(z), session.run(y + y)] == [1.0, 1.0, 4.0]


def test_a_function_lives_as_long_as_its_graph():
    with tf.Graph().as_default() as graph:
        tf.py_func(lambda: np.float32(7), [], tf.float32, name="seven")
    message = graph.as_graph_def()
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(message, name="")
        assert session.run("seven:0") == 7.0
        del graph
        gc.collect()
        with pytest.raises(errors.InvalidArgumentError, match="Could not find callback with key=pyfunc_"):
            session.run("seven:0")


def test_another_process_says_that_it_can_not():
    with tf.Cluster(worker=1, engine="process") as cluster, tf.Graph().as_default():
        y = tf.py_func(lambda: np.float32(7), [], tf.float32, name="seven")
        with tf.Session(cluster.target) as session, pytest.raises(errors.InvalidArgumentError) as caught:
            session.run(y)
    assert "put 'seven' on a device of that process" in caught.value.message


def test_py_function_says_what_to_use():
    with pytest.raises(NotImplementedError, match=r"tf\.numpy_function"):
        tf.py_function(lambda x: x, [1.0], tf.float32)


# -- functions of one step, at the same time ----------------------------------------------------------------------


def meeting(lib, count, seconds, build, **config):
    """Whether `count` functions of one step meet, each of which waits up to `seconds` for the others."""
    barrier = threading.Barrier(count)

    def meet(*_):
        try:
            barrier.wait(seconds)
        except threading.BrokenBarrierError:
            return False
        return True

    with lib.Graph().as_default():
        met = build(lib, [meet] * count)
        with lib.Session(config=lib.ConfigProto(**config)) as session:
            return session.run(met).tolist()


def in_a_step(lib, functions):
    return lib.stack([lib.py_func(function, [], lib.bool) for function in functions])


def in_a_map(lib, functions):
    rows = lib.data.Dataset.range(1).map(
        lambda x: lib.stack([lib.numpy_function(function, [x], lib.bool) for function in functions])
    )
    return (
        lib.data.make_one_shot_iterator(rows).get_next() if lib is real_tf else rows.make_one_shot_iterator().get_next()
    )


@BOTH
@pytest.mark.parametrize("count, threads", [(2, 2), (3, 3), (2, 3), (2, 1), (3, 2)])
def test_functions_of_one_step_meet_if_there_are_threads_for_all(lib, count, threads):
    there_are = threads >= count
    config = {"inter_op_parallelism_threads": threads, "use_per_session_threads": True}
    assert meeting(lib, count, 60 if there_are else 0.05, in_a_step, **config) == [there_are] * count


@BOTH
def test_functions_of_one_step_run_on_the_clients_thread_if_that_is_asked_for(lib):
    assert meeting(lib, 2, 0.05, in_a_step, inter_op_parallelism_threads=-1) == [False, False]


@BOTH
def test_functions_in_the_body_of_a_function_are_called_one_after_the_other(lib):
    def in_a_map(lib, functions):
        rows = lib.data.Dataset.range(1).map(lambda x: lib.stack([lib.py_func(f, [x], lib.bool) for f in functions]))
        return lib.data.make_one_shot_iterator(rows).get_next()

    config = {"inter_op_parallelism_threads": 3, "use_per_session_threads": True}
    assert meeting(lib, 2, 0.05, in_a_map, **config) == [False, False]
