"""Saved models, side by side with TensorFlow: what is written, what is refused, and each loads the other's."""

from __future__ import annotations

import inspect
import os
from pathlib import Path
from typing import Any

import numpy as np

import dtflab
from tests.oracle.checkpoints import at_home, plain, tried
from tests.oracle.programs import Programs
from tests.train.oracle.test_meta_graph import assert_same

program = Programs()
model = Programs()  # builds a graph in a session and saves it to a directory


@program.each()
def test_same_answer(run, tmp_path):
    (theirs, _), (ours, _) = at_home(run, tmp_path)
    assert ours == theirs


def linear(tf: Any) -> tuple[Any, Any]:
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    with tf.device("/cpu:0"):
        w = tf.get_variable("w", [2, 1], initializer=tf.constant_initializer(3.0))
        b = tf.get_variable("b", [1], initializer=tf.ones_initializer(), use_resource=True)
    return x, tf.identity(tf.matmul(x, w) + b, name="y")


@model
def simple(tf, sess, path):
    x, y = linear(tf)
    sess.run(tf.global_variables_initializer())
    tf.saved_model.simple_save(sess, path, {"features": x}, {"prediction": y})


@model
def several_graphs(tf, sess, path):
    x, y = linear(tf)
    sess.run(tf.global_variables_initializer())
    builder = tf.saved_model.builder.SavedModelBuilder(path)
    signature = tf.saved_model.signature_def_utils.predict_signature_def({"in": x}, {"out": y})
    builder.add_meta_graph_and_variables(sess, ["train", "gpu"], {"one": signature}, strip_default_attrs=True)
    signatures = {"serving_default": signature}
    builder.add_meta_graph(
        [tf.saved_model.tag_constants.SERVING], signatures, clear_devices=True, strip_default_attrs=True
    )
    builder.save()


@model
def assets_and_a_main_op(tf, sess, path):
    Path("words.txt").write_text("some words")
    os.mkdir("other")
    Path("other/words.txt").write_text("other words")
    names = [tf.constant("words.txt", name="first"), tf.constant("other/words.txt", name="second")]
    x, y = linear(tf)
    text = tf.Variable(["", ""], name="text", collections=[tf.GraphKeys.LOCAL_VARIABLES])
    read = tf.group(text.assign([tf.read_file(name) for name in names]), name="read")
    sess.run(tf.global_variables_initializer())
    builder = tf.saved_model.Builder(path)
    signature = tf.saved_model.predict_signature_def({"features": x}, {"prediction": y})
    builder.add_meta_graph_and_variables(sess, ["serve"], {"serving_default": signature}, names, main_op=read)
    builder.save(as_text=True)


@model
def without_variables(tf, sess, path):
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    tf.saved_model.simple_save(sess, path, {"features": x}, {"prediction": tf.identity(x * 2.0, name="y")})


def run_model(tf: Any, path: str) -> Any:
    found = []
    for scope in (None, "scope"):
        with tf.Graph().as_default(), tf.Session() as sess:
            message = tf.saved_model.load(sess, ["serve"], path, import_scope=scope)
            (signature,) = message.signature_def.values()
            (taken,), (given,) = signature.inputs.values(), signature.outputs.values()
            x, y = (tf.saved_model.get_tensor_from_tensor_info(info, import_scope=scope) for info in (taken, given))
            found += [x.name, sess.run(y, {x: [[1.0, 2.0]]}), [v.name for v in tf.global_variables()]]
            found += [sess.run(tf.local_variables()), sorted(message.collection_def)]
            found.append({node.name: sorted(node.attr) for node in message.graph_def.node})
    return plain(found)


@model.each("build")
def test_what_is_written_and_who_loads_it(build, tmp_path, monkeypatch, real_tf):
    from tensorflow.core.protobuf import saved_model_pb2 as real_saved_model

    files, messages, values = [], [], []
    for tf in (real_tf, dtflab):
        home = tmp_path / tf.__name__
        home.mkdir()
        monkeypatch.chdir(home)
        with tf.Graph().as_default(), tf.Session() as sess:
            build(tf, sess, "model")
        files.append({str(p.relative_to(home)): p.read_bytes() for p in home.rglob("*") if p.is_file()})
        messages.append(real_saved_model.SavedModel())
        if (pb := home / "model" / "saved_model.pb").exists():
            messages[-1].ParseFromString(pb.read_bytes())
        for reader in (real_tf, dtflab):
            assert reader.saved_model.contains_saved_model("model")
            values.append(run_model(reader, "model"))
    assert files[1].keys() == files[0].keys()
    for name, data in files[0].items():
        if "saved_model" not in name:
            assert files[1][name] == data, name
    assert values[1:] == values[:1] * 3
    assert messages[1].saved_model_schema_version == messages[0].saved_model_schema_version
    for ours, theirs in zip(messages[1].meta_graphs, messages[0].meta_graphs, strict=True):
        assert_same(ours, theirs)
        assert ours.signature_def == theirs.signature_def


@program
def refused(tf, home):
    sm = tf.saved_model
    x, y = linear(tf)
    os.mkdir("full")
    Path("full/file").touch()
    words = ("isn't empty", "has not been saved yet", "already been saved", "must have one of the 'encoding'",
             "dtype field set", "is reserved for", "could not be found in SavedModel", "does not exist at",
             "Cannot parse file", "to be an Operation", "must be a Tensor", "of type constant", "of dtype string",
             "already contains one or more main ops", "must be a scalar", "cannot be None")  # fmt: skip
    info = tf.MetaGraphDef().signature_def["x"].inputs["x"]
    bad = [sm.build_signature_def({"a": info})]
    info.name = "x:0"
    bad.append(sm.build_signature_def({"a": info}))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        fresh = iter(range(100))

        def add(**options: Any) -> Any:
            builder = sm.Builder(f"{home}/new{next(fresh)}")
            return builder.add_meta_graph_and_variables(sess, ["t"], **options)

        builder = sm.Builder("done")
        calls = [
            lambda: sm.Builder("full"), lambda: builder.add_meta_graph(["t"]),
            lambda: builder.add_meta_graph_and_variables(sess, ["t"]),
            lambda: builder.add_meta_graph_and_variables(sess, ["t"]), lambda: builder.save(),
            lambda: sm.load(sess, ["none"], "done"), lambda: sm.load(sess, ["t", "u"], "done"),
            lambda: sm.load(sess, ["t"], "nowhere"),
            *(lambda s=s: add(signature_def_map={"k": s}) for s in bad),
            lambda: add(signature_def_map={"__saved_model_init_op": sm.build_signature_def()}),
            lambda: add(assets_collection=["x"]), lambda: add(assets_collection=[x]),
            lambda: add(assets_collection=[tf.constant(1)]),
            lambda: add(assets_collection=[tf.constant(["a", "b"])]),
            lambda: add(assets_collection=[tf.constant(["gone"])]),
            lambda: add(main_op=y.op), lambda: add(main_op=y.op), lambda: sm.simple_save(sess, "s", {}, {"y": y}),
            lambda: sm.simple_save(sess, "s", {"x": x}, None),
        ]  # fmt: skip
        found = [tried(call, *words) for call in calls]
        Path("done/saved_model.pb").write_bytes(b"\xff\xff")
        return [*found, tried(lambda: sm.load(sess, ["t"], "done"), *words), sm.contains_saved_model("full")]


@program
def signatures(tf, home):
    sm = tf.saved_model
    text, number = tf.placeholder(tf.string, [None], name="t"), tf.placeholder(tf.float32, [None, 1], name="n")
    sparse = tf.sparse_placeholder(tf.float32, name="s")
    makers = [
        lambda: sm.predict_signature_def({"a": number, "s": sparse}, {"b": text}),
        lambda: sm.regression_signature_def(text, number), lambda: sm.classification_signature_def(text, text, number),
        lambda: sm.classification_signature_def(text, None, number),
        lambda: sm.classification_signature_def(text, text, None), lambda: sm.build_signature_def(),
    ]  # fmt: skip
    made = [make() for make in makers]
    refused = [
        lambda: sm.predict_signature_def({}, {"b": text}), lambda: sm.predict_signature_def({"a": text}, None),
        lambda: sm.regression_signature_def(None, number), lambda: sm.regression_signature_def(text, None),
        lambda: sm.regression_signature_def(number, number), lambda: sm.regression_signature_def(text, text),
        lambda: sm.regression_signature_def("x", number), lambda: sm.classification_signature_def(None, text, number),
        lambda: sm.classification_signature_def(text, None, None),
        lambda: sm.classification_signature_def(text, number, None),
        lambda: sm.classification_signature_def(text, None, text),
    ]  # fmt: skip
    changed = [type(made[0]).FromString(s.SerializeToString()) for s in made]
    for signature in changed:
        signature.outputs["other"].CopyFrom(sm.build_tensor_info(text))
    back = [sm.get_tensor_from_tensor_info(info) for info in made[0].inputs.values()]
    return (
        [s.SerializeToString(deterministic=True) for s in made],
        [sm.is_valid_signature(s) for s in (*made, *changed, None)],
        [tried(make) for make in refused],
        sorted(getattr(t, "name", type(t).__name__) for t in back),
        tried(lambda: sm.get_tensor_from_tensor_info(type(made[0].inputs["a"])()), "Invalid TensorInfo.encoding"),
    )


@program
def main_ops(tf, home):
    v = tf.Variable(1.0)
    local = tf.Variable(2.0, collections=[tf.GraphKeys.LOCAL_VARIABLES])
    other = tf.Variable(7.0, collections=[])
    with tf.Session() as sess:
        sess.run(tf.saved_model.main_op.main_op())
        sess.run(tf.saved_model.main_op.main_op_with_restore(other.initializer))
        return sess.run([v, local, other]), [op.type for op in tf.get_default_graph().get_operations()]


@program
def names(tf, home):
    sm = tf.saved_model
    parts = (sm.tag_constants, sm.signature_constants, sm.constants)
    values = [{n: getattr(p, n) for n in dir(p) if n.isupper() and "DEBUG" not in n} for p in parts]
    made = sm.Builder
    functions = [made.__init__, made.add_meta_graph, made.add_meta_graph_and_variables, made.save]
    functions += [sm.load, sm.simple_save]
    return values, [
        [(p.name, p.default is p.empty) for p in inspect.signature(f).parameters.values()] for f in functions
    ]


def test_numbers_are_those_of_the_session(tmp_path, real_tf):
    """Not the initial ones."""
    path = str(tmp_path / "model")
    with dtflab.Graph().as_default(), dtflab.Session() as sess:
        x, y = linear(dtflab)
        sess.run(dtflab.global_variables_initializer())
        sess.run(dtflab.global_variables()[0].assign([[5.0], [7.0]]))
        dtflab.saved_model.simple_save(sess, path, {"x": x}, {"y": y})
    with real_tf.Graph().as_default(), real_tf.Session() as sess:
        real_tf.saved_model.load(sess, ["serve"], path)
        np.testing.assert_allclose(sess.run("y:0", {"x:0": [[1.0, 2.0]]}), [[20.0]])
