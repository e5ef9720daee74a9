"""Saver and the files that it keeps, side by side with TensorFlow: graphs, values, bytes; each reads the other's."""

from __future__ import annotations

import contextlib
import functools
import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")
import tensorflow.compat.v1 as real_tf
from tensorflow.python.tools import inspect_checkpoint as real_inspect_checkpoint

import dtflab
from dtflab.python.tools import inspect_checkpoint as our_inspect_checkpoint
from tests.oracle.graph_defs import assert_same_graph

PROGRAMS: list[Callable[[Any, str], Any]] = []
GRAPHS: list[Callable[[Any], Any]] = []


def program(function: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    """A program with a directory of its own; what it returns is compared, and every file of a checkpoint."""
    PROGRAMS.append(function)
    return function


def graph(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    GRAPHS.append(function)
    return function


@pytest.mark.parametrize("run", PROGRAMS, ids=lambda f: f.__name__)
def test_same_answer(run, tmp_path, monkeypatch):
    found = []
    for tf in (real_tf, dtflab):
        # One directory after the other under one name: paths in files and messages are the same.
        home = tmp_path / "home"
        home.mkdir()
        monkeypatch.chdir(home)
        with tf.Graph().as_default():
            answer = plain(run(tf, str(home)))
        found.append((answer, contents(home)))
        home.rename(tmp_path / tf.__name__)
    theirs, ours = found
    assert ours[0] == theirs[0]
    assert ours[1].keys() == theirs[1].keys()
    for name, data in theirs[1].items():
        assert ours[1][name] == data, name


def contents(home: Path) -> dict[str, bytes | None]:
    """The files under a directory; meta graphs have their own test."""
    files = (path for path in sorted(home.rglob("*")) if path.is_file() and "tempstate" not in path.name)
    return {str(path.relative_to(home)): None if path.suffix == ".meta" else path.read_bytes() for path in files}


@pytest.mark.parametrize("build", GRAPHS, ids=lambda f: f.__name__)
def test_same_graph(build):
    assert_same_graph(build)


def plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.name, value.tolist()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "DESCRIPTOR"):
        return str(value)
    return value


def tried(call: Callable[[], Any], *words: str) -> Any:
    """What a call gives, or the class of its error and which of the words its text has."""
    try:
        return call()
    except Exception as error:
        text = str(getattr(error, "message", error))
        return type(error).__name__, [word in text for word in words]


def session(tf: Any, init: bool = True, cpus: int = 1) -> Any:
    opened = tf.Session(config=tf.ConfigProto(device_count={"CPU": cpus}))
    if init:
        opened.run(tf.global_variables_initializer())
    return opened


# -- the graph of a saver -----------------------------------------------------------------------------------


def variables(tf: Any) -> list[Any]:
    with tf.device("/job:ps/task:0"):
        a = tf.Variable([1.0, 2.0], name="a")
    with tf.device("/job:ps/task:1/device:GPU:1"):
        b = tf.Variable([1, 2], name="b", use_resource=True)
    c = tf.Variable(1, name="c", validate_shape=False)
    d = tf.Variable(tf.placeholder_with_default([1.0], [None]), name="d", validate_shape=False, use_resource=True)
    return [a, b, c, d]


@graph
def plain_saver(tf):
    variables(tf)
    tf.train.Saver()


@graph
def several_savers(tf):
    a, b, c, d = variables(tf)
    tf.train.Saver([b, a], name="first")
    tf.train.Saver({"x/y": c, "z": b}, filename="elsewhere")
    with tf.name_scope("scope"):
        tf.train.Saver({"a": a}, restore_sequentially=True)
    tf.train.Saver((d, a))
    tf.train.Saver({a, b})


@graph
def saver_with_reshape(tf):
    variables(tf)
    tf.train.Saver(reshape=True)


@graph
def sharded_saver(tf):
    variables(tf)
    tf.train.Saver(sharded=True)
    tf.train.Saver(sharded=True, reshape=True, max_to_keep=2, name="again")


@graph
def savers_of_the_old_format(tf):
    variables(tf)
    tf.train.Saver(write_version=tf.train.SaverDef.V1)
    tf.train.Saver(write_version=tf.train.SaverDef.V1, sharded=True, reshape=True)


@graph
def saver_of_partitioned_variables(tf):
    for resource in (False, True):
        with tf.variable_scope(f"scope{resource:d}", partitioner=tf.fixed_size_partitioner(3), use_resource=resource):
            whole = tf.get_variable("v", [7, 2])
        tf.train.Saver()
        tf.train.Saver([whole])
        tf.train.Saver({"other": whole})
        tf.train.Saver({"list": list(whole)}, sharded=True)
    tf.train.Saver(reshape=True)


@graph
def deferred_saver(tf):
    saver = tf.train.Saver(defer_build=True)
    variables(tf)
    saver.build()
    saver.build()


@graph
def initializing_from_a_checkpoint(tf):
    path = os.environ["DTFLAB_TEST_CHECKPOINT"]
    with tf.variable_scope("s"):
        tf.get_variable("x", [2])
        tf.get_variable("y", [2], use_resource=True)
        tf.get_variable("p", [4, 2], partitioner=tf.fixed_size_partitioner(2))
    tf.train.init_from_checkpoint(path, {"a/": "s/"})
    tf.train.init_from_checkpoint(path, {"a/x": "s/x"})


@pytest.fixture(autouse=True, scope="module")
def checkpoint_to_start_from(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("start") / "model")
    with real_tf.Graph().as_default(), real_tf.Session() as sess:
        values = {"a/x": [1.0, 2.0], "a/y": [3.0, 4.0], "a/p": np.arange(8.0).reshape(4, 2), "n": [7]}
        made = [real_tf.get_variable(n, initializer=np.array(v, "f")) for n, v in values.items()]
        sess.run(real_tf.global_variables_initializer())
        real_tf.train.Saver(made).save(sess, path)
    os.environ["DTFLAB_TEST_CHECKPOINT"] = path
    yield
    del os.environ["DTFLAB_TEST_CHECKPOINT"]


# -- saving and restoring -----------------------------------------------------------------------------------

DTYPES = (
    "float16 float32 float64 bfloat16 int8 uint8 int16 uint16 int32 uint32 int64 uint64 bool string complex64 "
    "complex128"
).split()
NEW_DTYPES = ("bfloat16", "uint32", "uint64")  # which the old format does not know


def one_of_each(tf: Any) -> list[Any]:
    found = []
    for i, name in enumerate(DTYPES):
        value: Any = (
            [["a", "bc", ""], ["", "d" * 300, "\u00e4"]] if name == "string" else np.arange(6).reshape(2, 3) % 4
        )
        tensor = tf.constant(value) if name == "string" else tf.cast(value, name)
        found.append(tf.Variable(tensor, name=f"v_{name}", use_resource=i % 2 == 1))
    found.append(tf.Variable(2.5, name="scalar"))
    found.append(tf.Variable(np.zeros((0, 3)), name="empty"))
    return found


@program
def every_dtype(tf, home):
    made = one_of_each(tf)
    saver = tf.train.Saver()
    with session(tf) as sess:
        path = saver.save(sess, f"{home}/model", global_step=7)
    with session(tf, init=False) as sess:
        saver.restore(sess, path)
        return path, sess.run(made)


@program
def many_variables(tf, home):
    made = [tf.Variable([float(i)], name=f"layer_{i % 7}/part_of_a_long_name_{i}") for i in range(90)]
    saver = tf.train.Saver()
    with session(tf) as sess:
        saver.save(sess, f"{home}/model", write_meta_graph=False)
        saver.restore(sess, f"{home}/model")
        return sess.run(made), tf.train.list_variables(home)


@program
def steps(tf, home):
    step = tf.Variable(12, name="step", dtype=tf.int64)
    saver, padded = tf.train.Saver(), tf.train.Saver(pad_step_number=True)
    with session(tf) as sess:
        return [
            saver.save(sess, f"{home}/m", global_step=given) for given in (3, step, np.int32(4), tf.constant(5))
        ] + [padded.save(sess, f"{home}/p", global_step=given) for given in (3, step, 123456789)]


@program
def what_is_kept(tf, home):
    tf.Variable(1.0, name="v")
    saver = tf.train.Saver(max_to_keep=2)
    seen = []
    with session(tf) as sess:
        for name in ("a", "b", "c", "b", "a"):
            saver.save(sess, f"{home}/{name}")
            seen.append((saver.last_checkpoints, sorted(os.listdir(home))))
        second = tf.train.Saver(saver_def=saver.as_saver_def())
        second.set_last_checkpoints(saver.last_checkpoints)
        third = tf.train.Saver(saver_def=saver.as_saver_def())
        third.recover_last_checkpoints([f"{home}/b", f"{home}/none", f"{home}/a"])
        for each in (second, third):
            seen.append(each.last_checkpoints)
            each.save(sess, f"{home}/d", write_meta_graph=False)
            seen.append((each.last_checkpoints, sorted(os.listdir(home))))
        return seen


@program
def everything_is_kept(tf, home):
    tf.Variable(1.0, name="v")
    with session(tf) as sess:
        for keep in (None, 0):
            saver = tf.train.Saver(max_to_keep=keep)
            for i in range(7):
                saver.save(sess, f"{home}/m{keep}", global_step=i)
        return saver.last_checkpoints, saver.saver_def


@program
def one_in_so_many_hours_is_kept(tf, home):
    tf.Variable(1.0, name="v")
    saver = tf.train.Saver(max_to_keep=1, keep_checkpoint_every_n_hours=1.0)
    with session(tf) as sess:
        saver.save(sess, f"{home}/a")
        old = [(path, time + 4000) for path, time in saver._last_checkpoints]
        saver.set_last_checkpoints_with_time(old)
        for name in "bcd":
            saver.save(sess, f"{home}/{name}")
        return saver.last_checkpoints, sorted(os.listdir(home))


@program
def without_meta_graph_or_state(tf, home):
    tf.Variable(1.0, name="v")
    saver = tf.train.Saver()
    with session(tf) as sess:
        saver.save(sess, f"{home}/a", write_meta_graph=False)
        saver.save(sess, f"{home}/b", write_state=False, meta_graph_suffix="other.meta")
        saver.save(sess, f"{home}/c", latest_filename="newest")
        return saver.last_checkpoints, tf.train.latest_checkpoint(home), tf.train.latest_checkpoint(home, "newest")


@program
def relative_paths(tf, home):
    os.mkdir("train")
    v = tf.Variable(0.0, name="v")
    savers = [tf.train.Saver(), tf.train.Saver(save_relative_paths=True)]
    found = []
    with session(tf) as sess:
        for saver in savers:
            for step in range(2):
                sess.run(v.assign_add(1.0))
                found.append(saver.save(sess, "train/snapshot", global_step=step))
                found.append(saver.save(sess, f"{home}/train/absolute", global_step=step))
            found.append(tf.train.latest_checkpoint("train"))
            found.append(tf.train.latest_checkpoint("train/"))
        saver.restore(sess, tf.train.latest_checkpoint("train"))
        return found, sess.run(v), tf.train.get_checkpoint_state("train")


@program
def in_the_working_directory(tf, home):
    tf.Variable(0.0, name="v")
    saver = tf.train.Saver()
    with session(tf) as sess:
        return saver.save(sess, "m"), tf.train.latest_checkpoint("."), saver.save(sess, "./n"), saver.restore(sess, "m")


@program
def names_and_subsets(tf, home):
    a, b = tf.Variable(1.0, name="a"), tf.Variable(2.0, name="scope/b", use_resource=True)
    with session(tf) as sess:
        tf.train.Saver({"x/a": a, "b": b}).save(sess, f"{home}/m")
        sess.run([a.assign(5.0), b.assign(6.0)])
        found = tried(lambda: tf.train.Saver([a, b]).restore(sess, f"{home}/m"), "not found in checkpoint", "a")
        tf.train.Saver({"x/a": a}).restore(sess, f"{home}/m")
        values = sess.run([a, b])
        tf.train.Saver({"b": a, "x/a": b}).restore(sess, f"{home}/m")
        return found, values, sess.run([a, b])


@program
def another_shape(tf, home):
    a = tf.Variable([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], name="a")
    with session(tf) as sess:
        tf.train.Saver({"v": a}).save(sess, f"{home}/m")
    found = []
    for resource in (False, True):
        b = tf.Variable([[0.0, 0.0]] * 3, use_resource=resource)
        c = tf.Variable(0, use_resource=resource)
        with session(tf, init=False) as sess:
            words = ("Restoring from checkpoint failed", "mismatch between the current graph")
            for var in (b, c):
                found.append(tried(lambda v=var: tf.train.Saver({"v": v}).restore(sess, f"{home}/m"), *words))
            if not resource:
                tf.train.Saver({"v": b}, reshape=True).restore(sess, f"{home}/m")
                found.append(sess.run(b))
    return found


@program
def unknown_shape(tf, home):
    for resource in (False, True):
        v = tf.Variable(tf.placeholder_with_default([1.0, 2.0], None), validate_shape=False, use_resource=resource,
                        name=f"v{resource}")  # fmt: skip
        saver = tf.train.Saver([v])
        with session(tf) as sess:
            saver.save(sess, f"{home}/m{resource}")
            sess.run(v.initializer)
            saver.restore(sess, f"{home}/m{resource}")
            yield_value = sess.run(v)
    return yield_value


@program
def sharded(tf, home):
    with tf.device("/cpu:0"):
        a = tf.Variable(10, name="a")
    with tf.device("/cpu:1"):
        b = tf.Variable([20, 21], name="b")
    c = tf.Variable("text", name="c")
    saver = tf.train.Saver(sharded=True, max_to_keep=1)
    with session(tf, cpus=2) as sess:
        found = [saver.save(sess, f"{home}/m", global_step=i) for i in range(2)]
        sess.run([a.assign(0), b.assign([0, 0])])
        saver.restore(sess, found[-1])
        found += [sess.run([a, b, c]), saver.saver_def]
        single = tf.train.Saver([a, b])
        sess.run([a.assign(0), b.assign([0, 0])])
        single.restore(sess, saver.last_checkpoints[0])
        found.append(sess.run([a, b]))
        single.save(sess, f"{home}/single")
        saver2 = tf.train.Saver([a, b], sharded=True)
        saver2.restore(sess, f"{home}/single")
        return found, sess.run([a, b])


@program
def partitioned(tf, home):
    full = np.arange(30, dtype=np.float32).reshape(10, 3)

    def parts(slices, value, resource):
        if slices is None:
            return [tf.Variable(value, name="v", use_resource=resource)]
        with tf.variable_scope("", use_resource=resource):
            return tf.create_partitioned_variables([10, 3], slices, tf.constant(value), name="v")

    found = []
    ways = (None, [10, 1], [2, 1], [1, 3], [3, 1])
    for resource in (False, True):
        for i, way in enumerate(ways):
            with tf.Graph().as_default():
                made = parts(way, full + i, resource)
                with session(tf) as sess:
                    saver = tf.train.Saver(made)
                    saver.save(sess, f"{home}/m{i}{resource}", write_meta_graph=False)
            for other in ways:
                with tf.Graph().as_default():
                    made = parts(other, np.zeros_like(full), resource)
                    with session(tf, init=False) as sess:
                        tf.train.Saver(made).restore(sess, f"{home}/m{i}{resource}")
                        found.append(sess.run(list(made)))
            found.append(tf.train.load_variable(f"{home}/m{i}{resource}", "v"))
    return found


@program
def not_all_slices(tf, home):
    v = tf.Variable([[1.0, 2.0, 3.0]], name="v")
    v._set_save_slice_info(tf.Variable.SaveSliceInfo("whole", [4, 3], [1, 0], [1, 3]))
    w = tf.Variable(np.zeros((4, 3), "f"), name="whole")
    u = tf.Variable(np.zeros((1, 2), "f"), name="u")
    u._set_save_slice_info(tf.Variable.SaveSliceInfo("whole", [4, 3], [1, 1], [1, 2]))
    x = tf.Variable(np.zeros((1, 3), "f"), name="x")
    x._set_save_slice_info(tf.Variable.SaveSliceInfo("whole", [5, 3], [1, 0], [1, 3]))
    with session(tf) as sess:
        tf.train.Saver([v]).save(sess, f"{home}/m")
        tf.train.Saver([u]).restore(sess, f"{home}/m")
        return sess.run(u), [
            tried(lambda var=var: tf.train.Saver([var]).restore(sess, f"{home}/m"), "whole", "[5,3]") for var in (w, x)
        ]


@program
def old_format(tf, home):
    with tf.device("/cpu:0"):
        made = [v for v in one_of_each(tf) if v.dtype.base_dtype.name not in NEW_DTYPES]
    with tf.device("/cpu:1"):
        made.append(tf.Variable([1.0, 2.0], name="elsewhere"))
    made += tf.create_partitioned_variables([4, 3], [2, 1], tf.constant(np.arange(12.0).reshape(4, 3)), name="parts")
    found = []
    for split in (False, True):
        saver = tf.train.Saver(made, write_version=tf.train.SaverDef.V1, sharded=split, max_to_keep=1)
        with session(tf, cpus=2) as sess:
            for step in range(2):
                found.append(saver.save(sess, f"{home}/m{split}", global_step=step))
        with session(tf, init=False, cpus=2) as sess:
            saver.restore(sess, found[-1])
            found.append(sess.run(made))
            tf.train.Saver([made[1]]).restore(sess, found[-2])  # a saver of the new format reads them, too
            found.append((tf.train.checkpoint_exists(found[-2]), tf.train.latest_checkpoint(home)))
    return found


@program
def nothing_to_save(tf, home):
    tf.constant(1.0)
    found = [tried(tf.train.Saver, "No variables to save")]
    saver = tf.train.Saver(allow_empty=True)
    with tf.Session() as sess:
        found += [saver.save(sess, f"{home}/m"), saver.restore(sess, f"{home}/none"), os.listdir(home)]
    return found, saver.saver_def


@program
def savers_that_are_refused(tf, home):
    a, b = tf.Variable([1.0], name="a"), tf.Variable([2.0], name="b")
    c = tf.Variable([2.0], name="c", use_resource=True)
    part = tf.Variable([2.0], name="part")
    part._set_save_slice_info(tf.Variable.SaveSliceInfo("a", [1], [0], [1]))
    odd = tf.Variable([2.0], name="odd")
    odd._set_save_slice_info(tf.Variable.SaveSliceInfo("other", [1], [0], [1]))
    words = ("same name", "restored with two names", "Slices must all be", "not a string", "should be passed in a dict",
             "is not a Variable", "Not a variable", "a")  # fmt: skip
    return [
        tried(lambda given=given: tf.train.Saver(given).as_saver_def(), *words)
        for given in (
            [a, b, part], {"a": a, "again": a}, {"c": c, "again": c}, [a, a], {"x": [a, b]}, {"x": [part, odd]},
            {1: a}, 5, "a", [a + 1.0], {"x": a + 1.0}, {"x": "y"}, ["y"], {"p": [part], "a": a}, [a, None], {"x": None},
            {"x": [1, 2]}, [[a], (b,)], {"x": a.value()}, [a.op.outputs[0]], {"y": c.handle},
        )
    ]  # fmt: skip


@program
def calls_that_are_refused(tf, home):
    v = tf.Variable(1.0, name="v")
    saver = tf.train.Saver()
    deferred = tf.train.Saver(defer_build=True)
    os.mkdir("dir")
    open("file", "w").close()
    words = ("Parent directory of", "doesn't exist", "must not contain path", "collides with", "defer_build", "build",
             "must be a Session", "when it is None", "not a valid checkpoint", "uninitialized value v")  # fmt: skip
    with session(tf) as sess:
        calls = [
            lambda: saver.save(sess, f"{home}/none/deeper/m"),
            lambda: saver.save(sess, f"{home}/made/m"),
            lambda: saver.save(sess, f"{home}/file/m"),
            lambda: saver.save(sess, f"{home}/m", latest_filename="a/b"),
            lambda: saver.save(sess, f"{home}/checkpoint"),
            lambda: saver.save(sess, f"{home}/checkpoint", global_step=1),
            lambda: saver.save(sess, f"{home}/latest", latest_filename="latest"),
            lambda: tf.train.Saver([v], defer_build=True),
            lambda: deferred.save(sess, f"{home}/m"),
            lambda: saver.save(None, f"{home}/m"),
            lambda: saver.save("session", f"{home}/m"),
            lambda: saver.restore(sess, None),
            lambda: saver.restore(sess, f"{home}/nowhere"),
            lambda: saver.restore(sess, ""),
            lambda: tf.train.Saver(saver_def="text"),
            lambda: tf.train.Saver(saver_def=tf.train.SaverDef()),
            lambda: tf.train.Saver(saver_def=tf.train.SaverDef(save_tensor_name="x:0")),
        ]
        found = [tried(call, *words) for call in calls]
    with session(tf, init=False) as sess:
        return [*found, tried(lambda: saver.save(sess, f"{home}/m"), *words)]


@program
def saver_from_a_message(tf, home):
    v = tf.Variable(1.0, name="v")
    with tf.name_scope("scope"):
        saver = tf.train.Saver(max_to_keep=3)
    twin = tf.train.Saver.from_proto(saver.to_proto())
    found = [saver.to_proto("scope"), saver.to_proto("nowhere"), twin.to_proto(), twin.as_saver_def()]
    moved = tf.train.Saver.from_proto(saver.to_proto("scope"), import_scope="scope")
    with session(tf) as sess:
        moved.save(sess, f"{home}/m")
        sess.run(v.assign(3.0))
        twin.restore(sess, f"{home}/m")
        return found, moved.to_proto(), sess.run(v)


@program
def default_file_name(tf, home):
    tf.Variable(1.0, name="v")
    saver = tf.train.Saver(filename=f"{home}/default")
    with session(tf) as sess:
        return sess.run(saver.saver_def.save_tensor_name), sess.run(saver.saver_def.restore_op_name)


@program
def a_builder_of_ones_own(tf, home):
    from tensorflow.python.training import saver as real_saver

    from dtflab.train import saver as our_saver

    module = real_saver if tf is real_tf else our_saver

    class Builder(module.BaseSaverBuilder):  # type: ignore[misc,name-defined]
        def save_op(self, filename_tensor, saveables):
            names.extend(s.name for s in saveables)
            return super().save_op(filename_tensor, saveables)

        def restore_op(self, filename_tensor, saveable, preferred_shard):
            found = super().restore_op(filename_tensor, saveable, preferred_shard)
            return [tensor + 1.0 for tensor in found]

    class Doubled(module.BaseSaverBuilder.SaveableObject):  # type: ignore[misc,name-defined]
        """A variable that is saved with twice its value."""

        def __init__(self, var):
            specs = [module.BaseSaverBuilder.SaveSpec(var * 2.0, "", "doubled")]
            super().__init__(var, specs, "doubled")

        def restore(self, restored_tensors, restored_shapes):
            return self.op.assign(restored_tensors[0])

    names: list[str] = []
    a, b = tf.Variable(1.0, name="a"), tf.Variable(2.0, name="b", use_resource=True)
    c = tf.Variable(5.0, name="c", collections=[])
    tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, Doubled(c))
    saver = tf.train.Saver(builder=Builder())
    with tf.Session() as sess:
        sess.run([tf.global_variables_initializer(), c.initializer])
        path = saver.save(sess, f"{home}/m")
        saver.restore(sess, path)
        return names, sess.run([a, b, c]), tf.train.list_variables(path)


# -- the files of a directory -------------------------------------------------------------------------------


@program
def checkpoint_states(tf, home):
    train = tf.train
    found = [
        train.generate_checkpoint_state_proto("train", "train/model-0"),
        train.generate_checkpoint_state_proto(home, f"{home}/model-0"),
        train.generate_checkpoint_state_proto("train", f"{home}/m", [f"{home}/k", "train/m"]),
        train.generate_checkpoint_state_proto(home, f"{home}/m-0", ["m-2"], [1.5, 2.5], 0.5),
        tried(lambda: train.generate_checkpoint_state_proto(home, "m", ["k"], [1.0]), "must match checkpoint paths"),
    ]
    os.mkdir("train")
    train.update_checkpoint_state("train", "train/model-2", [f"{home}/model-0", "train/model-2"])
    found += [train.get_checkpoint_state("train"), train.latest_checkpoint("train")]
    train.update_checkpoint_state(home, f"{home}/x", latest_filename="other", all_model_checkpoint_timestamps=[3.0])
    found += [train.get_checkpoint_state(home, "other"), train.get_checkpoint_state(home)]
    found.append(tried(lambda: train.update_checkpoint_state(home, f"{home}/checkpoint"), "conflicts with path"))
    found.append(tried(lambda: train.update_checkpoint_state(f"{home}/none", "m")))
    for text in ("", "nonsense", 'model_checkpoint_path: "a', 'all_model_checkpoint_paths: "x"',
                 'model_checkpoint_path: "./m-1"\nall_model_checkpoint_paths: "m-0"'):  # fmt: skip
        Path("checkpoint").write_text(text)
        found.append(tried(lambda: train.get_checkpoint_state(home), "Invalid checkpoint state"))
        found.append(tried(lambda: train.latest_checkpoint(Path(home))))
    return found


@program
def files_of_checkpoints(tf, home):
    tf.Variable(1.0, name="v")
    new, old = tf.train.Saver(), tf.train.Saver(write_version=tf.train.SaverDef.V1)
    with session(tf) as sess:
        paths = [new.save(sess, f"{home}/new"), old.save(sess, f"{home}/old"), f"{home}/none"]
        new.save(sess, f"{home}/new-1")
    found = [[tf.train.checkpoint_exists(p) for p in paths], len(tf.train.get_checkpoint_mtimes(paths))]
    found.append(int(tf.train.get_checkpoint_mtimes(paths)[0]) == int(os.stat("new.index").st_mtime))
    tf.train.remove_checkpoint(f"{home}/new-1")
    found.append(sorted(os.listdir(home)))
    tf.train.remove_checkpoint(f"{home}/old", tf.train.SaverDef.V1)
    tf.train.remove_checkpoint(f"{home}/none")
    return found


@program
def checkpoints_inspected(tf, home):
    tool = our_inspect_checkpoint if tf is dtflab else real_inspect_checkpoint
    tf.get_variable("v", [5, 2], partitioner=tf.fixed_size_partitioner(2), initializer=tf.ones_initializer())
    variables = {"a": tf.Variable([1, 2]), "b": tf.Variable(0.5), "text": tf.Variable("words")}
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        plain_path = tf.train.Saver(variables).save(sess, f"{home}/plain")
        path = tf.train.Saver({**variables, "v": tf.global_variables()[:2]}).save(sess, f"{home}/m")
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        tool.print_tensors_in_checkpoint_file(plain_path, None, False)
        for arguments in (("", False, True), ("", True), ("v", False), ("none", False)):
            tool.print_tensors_in_checkpoint_file(path, *arguments)
        tool.print_tensors_in_checkpoint_file(path, "a", False, count_exclude_pattern="^(a|t)")
        tool.print_tensors_in_checkpoint_file(f"{home}/none", "a", False)
    return shown.getvalue()


@program
def looking_into_checkpoints(tf, home):
    one_of_each(tf)
    with session(tf) as sess:
        path = tf.train.Saver().save(sess, f"{home}/m")
    reader = tf.train.NewCheckpointReader(path)
    shapes, dtypes = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    found = [shapes, {name: dtype.name for name, dtype in dtypes.items()}, reader.has_tensor("scalar")]
    found += [reader.has_tensor("none"), reader.has_tensor(b"scalar"), sorted(reader.debug_string().splitlines())]
    found += [reader.get_tensor(name) for name in sorted(shapes)]
    found += [tf.train.load_variable(home, "scalar:0"), tf.train.list_variables(home)]
    found += [tf.train.load_checkpoint(Path(home)).get_tensor("scalar")]
    os.mkdir("empty")
    found += [
        tried(lambda: reader.get_tensor("none"), "not found in checkpoint"),
        tried(lambda: tf.train.NewCheckpointReader(f"{home}/none"), "Unsuccessful TensorSliceReader", "none"),
        tried(lambda: tf.train.load_checkpoint(f"{home}/empty"), "Couldn't find 'checkpoint' file or checkpoints"),
        tried(lambda: tf.train.load_variable(path, "none"), "not found in checkpoint"),
    ]
    return found


@program
def waiting_for_checkpoints(tf, home):
    tf.Variable(1.0, name="v")
    saver = tf.train.Saver()
    found = [list(tf.train.checkpoints_iterator(home, timeout=0))]
    asked: list[int] = []

    def enough() -> bool:
        asked.append(1)
        return len(asked) > 2

    with session(tf) as sess:
        found += tf.train.checkpoints_iterator(home, timeout=0, timeout_fn=enough)
        saver.save(sess, f"{home}/m", global_step=0)
        for path in tf.train.checkpoints_iterator(home, timeout=0):
            found.append(path)
            if len(found) < 6:
                saver.save(sess, f"{home}/m", global_step=len(found))
    return found, len(asked)


# -- initializing from a checkpoint -------------------------------------------------------------------------


@program
def initial_values_from_a_checkpoint(tf, home):
    path = os.environ["DTFLAB_TEST_CHECKPOINT"]
    found = []
    for assignment in (
        {"a/x": "s/x", "a/p": "s/p"}, {"a/": "s/"}, [("a/y", "s/y")], {"a/x": "s/y", "a/y": "s/x"}, {"/": "/"},
        {"none": "s/x"}, {"n": "s/x"}, {"a/": "t/"}, {"a": "t/"}, {"none/": "s/"}, {"a/x": "s/none"}, {},
    ):  # fmt: skip
        with tf.Graph().as_default():
            with tf.variable_scope("s"):
                x = tf.get_variable("x", [2], initializer=tf.zeros_initializer())
                y = tf.get_variable("y", [2], initializer=tf.zeros_initializer(), use_resource=True)
                p = tf.get_variable("p", [4, 2], initializer=tf.zeros_initializer(),
                                    partitioner=tf.fixed_size_partitioner(2))  # fmt: skip
            words = ("is not found in", "doesn't match with shape of tensor", "scope only name")
            found.append(tried(lambda a=assignment: tf.train.init_from_checkpoint(path, a), *words))
            with session(tf) as sess:
                found.append(sess.run([x, y, *p]))
    with tf.Graph().as_default():
        x, y = tf.get_variable("x", [2]), tf.get_variable("y", [2], use_resource=True)
        p = tf.get_variable("p", [4, 2], partitioner=tf.fixed_size_partitioner(2))
        tf.train.init_from_checkpoint(os.path.dirname(path), {"a/x": x, "a/y": y, "a/p": list(p)})
        with session(tf) as sess:
            found.append((sess.run([x, y, *p]), x.initial_value.shape.as_list()))
    return found


@program
def warm_starts(tf, home):
    path = os.environ["DTFLAB_TEST_CHECKPOINT"]
    found = []
    words = ("must be a `list` or `str`", "it must be all `Variable`", "that were not used", "is not found in")
    for chosen, renamed in (
        (".*", None), (None, None), ("a/x", None), (["a/x", "a/f"], None), ("nothing", None), (["b"], {"b": "a/x"}),
        ("a", {"a/x": "a/y", "a/y": "a/x"}), ("a", {"none": "a/x"}), (5, None), (["a/x", 5], None), ("b", None),
    ):  # fmt: skip
        with tf.Graph().as_default():
            with tf.variable_scope("a", initializer=tf.zeros_initializer()):
                x, y = tf.get_variable("x", [2]), tf.get_variable("y", [2], use_resource=True)
                p = tf.get_variable("p", [4, 2], partitioner=tf.fixed_size_partitioner(2))
            if chosen in ("b", ["b"]):
                x = tf.get_variable("b", [2], initializer=tf.zeros_initializer())
            start = functools.partial(tf.train.warm_start, path, chosen, var_name_to_prev_var_name=renamed)
            found.append(tried(start, *words))
            with session(tf) as sess:
                found.append(sess.run([x, y, *p]))
    with tf.Graph().as_default():
        made = [tf.get_variable(f"a/{name}", [2]) for name in "xy"]
        tf.train.warm_start(os.path.dirname(path), made)
        with session(tf) as sess:
            return found, sess.run(made)


# -- each reads what the other wrote --------------------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("split", [False, True], ids=["whole", "sharded"])
@pytest.mark.parametrize(("writer", "reader"), [(real_tf, dtflab), (dtflab, real_tf)], ids=["reads", "is_read"])
def test_across(writer, reader, split, version, tmp_path):
    def build(tf: Any, shards: int) -> tuple[list[Any], Any, Any]:
        made = [v for v in one_of_each(tf) if version == 2 or v.dtype.base_dtype.name not in NEW_DTYPES]
        with tf.device("/cpu:1"):
            made.append(tf.Variable([1.0, 2.0], name="elsewhere"))
        whole = tf.get_variable("parts", [5, 2], partitioner=tf.fixed_size_partitioner(shards))
        return made, whole, tf.train.Saver([*made, whole], sharded=split, write_version=version)

    with writer.Graph().as_default():
        made, whole, saver = build(writer, 2)
        with session(writer, cpus=2) as sess:
            path = saver.save(sess, str(tmp_path / "m"))
            written = sess.run([*made, whole.as_tensor()])
    with reader.Graph().as_default():
        made, whole, saver = build(reader, 3)
        with session(reader, init=False, cpus=2) as sess:
            saver.restore(sess, path)
            assert plain(sess.run([*made, whole.as_tensor()])) == plain(written)


def test_saver_in_the_collection_or_a_new_one():
    from dtflab.train.saver import get_saver_or_default

    with dtflab.Graph().as_default() as made:
        dtflab.Variable(1.0)
        saver = get_saver_or_default()
        assert saver.saver_def.sharded and get_saver_or_default() is saver
        made.add_to_collection(dtflab.GraphKeys.SAVERS, dtflab.train.Saver())
        with pytest.raises(RuntimeError, match="More than one item in collection"):
            get_saver_or_default()


def _restore_without_the_step(tf, home, steps):
    """What the error says of a path without the step, whose checkpoints have one."""
    with tf.Graph().as_default(), tf.Session() as sess:
        v = tf.Variable(1.0, name="v")
        sess.run(v.initializer)
        saver = tf.train.Saver(max_to_keep=None)
        for step in steps:
            saver.save(sess, f"{home}/model.ckpt", global_step=step)
        saver.save(sess, f"{home}/model.ckpt-other")
        with pytest.raises(ValueError, match="not a valid checkpoint") as it:
            saver.restore(sess, f"{home}/model.ckpt")
    return str(it.value)


def test_a_path_without_its_step_names_the_checkpoints_that_are_there(tmp_path):
    """The first line is TensorFlow's; the second tells the newest, in the order of their steps."""
    told = _restore_without_the_step(dtflab, tmp_path, [0, 9, 10, 2, 100, 30])
    assert told.splitlines()[0] == _restore_without_the_step(real_tf, tmp_path, [1])
    names = [f"{tmp_path}/model.ckpt-{step}" for step in (2, 9, 10, 30, 100)]
    assert f"the number of that step: {', '.join(names)}. Restore one of them" in told.splitlines()[1]


def test_a_path_without_any_checkpoint_has_the_first_line_only(tmp_path):
    assert "\n" not in _restore_without_the_step(dtflab, tmp_path, [])
