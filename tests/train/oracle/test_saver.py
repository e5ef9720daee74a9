"""Saver, side by side with TensorFlow: what it saves and restores, and refuses; each reads the other's files."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import dtflab
from dtflab.train.checkpoints import saver as our_saver
from tests.oracle.answers import module_of
from tests.oracle.checkpoints import NEW_DTYPES, assert_same_at_home, one_of_each, plain, session, tried
from tests.oracle.programs import Programs

program = Programs()


@program.each()
def test_same_answer(run, tmp_path):
    assert_same_at_home(run, tmp_path)


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
    module = module_of(tf, "python.training.saver", our_saver)

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


# ---- each reads what the other wrote ----


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("split", [False, True], ids=["whole", "sharded"])
@pytest.mark.parametrize("way", ["reads", "is_read"])
def test_across(way, split, version, tmp_path, real_tf):
    writer, reader = (real_tf, dtflab) if way == "reads" else (dtflab, real_tf)

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
    from dtflab.train.checkpoints.saver import get_saver_or_default

    with dtflab.Graph().as_default() as made:
        dtflab.Variable(1.0)
        saver = get_saver_or_default()
        assert saver.saver_def.sharded and get_saver_or_default() is saver
        made.add_to_collection(dtflab.GraphKeys.SAVERS, dtflab.train.Saver())
        with pytest.raises(RuntimeError, match="More than one item in collection"):
            get_saver_or_default()


def _restore_without_the_step(tf, home, steps):
    """The error's text for a path without the step, whose checkpoints have one."""
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


def test_a_path_without_its_step_names_the_checkpoints_that_are_there(tmp_path, real_tf):
    """The first line is TensorFlow's; the second tells the newest, in the order of their steps."""
    told = _restore_without_the_step(dtflab, tmp_path, [0, 9, 10, 2, 100, 30])
    assert told.splitlines()[0] == _restore_without_the_step(real_tf, tmp_path, [1])
    names = [f"{tmp_path}/model.ckpt-{step}" for step in (2, 9, 10, 30, 100)]
    assert f"the number of that step: {', '.join(names)}. Restore one of them" in told.splitlines()[1]


def test_a_path_without_any_checkpoint_has_the_first_line_only(tmp_path):
    assert "\n" not in _restore_without_the_step(dtflab, tmp_path, [])


@pytest.mark.parametrize("sharded", [False, True])
def test_a_save_over_the_last_one(sharded, tmp_path, real_tf):
    """Names and bytes of its files are TensorFlow's, also after dtflab's own way of replacing them."""
    written = {}
    for tf in (real_tf, dtflab):
        folder = tmp_path / tf.__name__
        folder.mkdir()
        with tf.Graph().as_default(), tf.Session() as sess:
            variables = [tf.get_variable(name, [3], initializer=tf.zeros_initializer()) for name in "ab"]
            saver = tf.train.Saver(sharded=sharded)
            sess.run(tf.global_variables_initializer())
            for value in (1.0, 2.0):
                sess.run([v.assign([value] * 3) for v in variables])
                path = saver.save(sess, str(folder / "ckpt"), write_meta_graph=False)
            assert real_tf.train.load_variable(path, "b").tolist() == [2.0] * 3
        written[tf] = {file.name: file.read_bytes() for file in folder.iterdir() if file.name != "checkpoint"}
    assert written[dtflab] == written[real_tf]
