"""The files of checkpoints, side by side with TensorFlow: names, how many are kept, what looks into them."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path

import numpy as np

from dtflab.python.tools import inspect_checkpoint
from tests.oracle.answers import module_of
from tests.oracle.checkpoints import assert_same_at_home, one_of_each, session, tried
from tests.oracle.programs import Programs

program = Programs()


@program.each()
def test_same_answer(run, tmp_path):
    assert_same_at_home(run, tmp_path)


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


# ---- the files of a directory ----


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
    tool = module_of(tf, "python.tools.inspect_checkpoint", inspect_checkpoint)
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
