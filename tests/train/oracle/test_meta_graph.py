"""Meta graphs, side by side with TensorFlow: what is exported, what an import makes of it, in both directions."""

from __future__ import annotations

import functools
import os
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage

import dtflab
from dtflab.graph import op_registry
from dtflab.graph.op_def_proto import op_def_proto
from dtflab.protos.control_flow_pb2 import CondContextDef
from dtflab.train.checkpoints import meta_graph, meta_graph_import
from tests.oracle.answers import module_of
from tests.oracle.checkpoints import at_home, tried
from tests.oracle.graph_defs import both, nodes
from tests.oracle.programs import Programs

model = Programs()  # builds a graph with collections; returns the saver to export it with, or None
program = Programs()


def module(tf: Any) -> Any:
    ours = types.SimpleNamespace(**vars(meta_graph) | vars(meta_graph_import))
    return module_of(tf, "python.framework.meta_graph", ours)


def facts(message: Any) -> dict[str, Any]:
    """The compared parts of a MetaGraphDef."""
    message = dtflab.MetaGraphDef.FromString(message.SerializeToString())
    shapes = {n.name: str(n.attr["_output_shapes"]) for n in message.graph_def.node if "_output_shapes" in n.attr}
    return {
        "nodes": {name: whole(node) for name, node in nodes(message.graph_def, gradients=True).items()},
        "order": [n.name for n in message.graph_def.node],
        "shapes": shapes,
        "collections": {key: collection(key, value) for key, value in message.collection_def.items()},
        "saver": str(message.saver_def),
        "ops": [op.name for op in message.meta_info_def.stripped_op_list.op],
        "stripped": message.meta_info_def.stripped_default_attrs,
        "tags": list(message.meta_info_def.tags),
        "versions": str(message.graph_def.versions),
    }


def collection(key: str, value: Any) -> str:
    """Text of a collection; of contexts, which have maps, whose bytes come in any order, that of their messages."""
    if key != "cond_context" or not value.HasField("bytes_list"):
        return str(value)
    return "\n".join(str(CondContextDef.FromString(data)) for data in value.bytes_list.value)


def whole(node: dict[str, Any]) -> dict[str, Any]:
    """TensorFlow writes the first output of a node with or without `:0`."""
    return {**node, "inputs": [name.removesuffix(":0") for name in node["inputs"]]}


def assert_same(ours: Any, theirs: Any) -> None:
    assert_same_facts(facts(ours), facts(theirs))


def assert_same_facts(got: dict[str, Any], want: dict[str, Any]) -> None:
    for name, value in want["nodes"].items():
        assert got["nodes"].get(name) == value, name
    for key, value in want["collections"].items():
        assert got["collections"].get(key) == value, key
    assert got == want


# -- models ---------------------------------------------------------------------------------------------------


@model
def collections_of_everything(tf):
    v = tf.Variable([1.0, 2.0], name="v")
    r = tf.Variable(3.0, name="r", use_resource=True, trainable=False)
    tf.Variable(1, name="local", collections=[tf.GraphKeys.LOCAL_VARIABLES])
    for key, items in {
        "ints": [3, 4], "floats": [3.5, 1.25], "texts": ["hello", "v"], "bytes": [b"a\1", b""], "empty": [],
        "mine": [v, r], "tensors": [v + 1.0, v.op], "mixed": [3, 3.5], "objects": [object()], "bools": [True, False],
        "lists": [[1, 2]], "none": [None], ("a", "tuple"): [1],
        tf.GraphKeys.MODEL_VARIABLES: [v], tf.GraphKeys.MOVING_AVERAGE_VARIABLES: [r],
    }.items():  # fmt: skip
        tf.get_collection_ref(key).extend(items)
    packed = AnyMessage()
    packed.Pack(AnyMessage(value=b"inside"))
    tf.add_to_collection("any", packed)
    tf.train.create_global_step()
    saver = tf.train.Saver([v])
    tf.add_to_collection(tf.GraphKeys.SAVERS, saver)
    tf.add_to_collection(tf.GraphKeys.SAVERS, tf.train.Saver({"x": r}, name="second", sharded=True))
    return saver


@model
def queue_runners(tf):
    queue = tf.FIFOQueue(30, tf.float32, shared_name="shared")
    tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue([1.0])] * 2))
    tf.add_to_collection("batch", queue.dequeue_many(3))


@model
def partitioned_variables(tf):
    with tf.variable_scope("scope", partitioner=tf.fixed_size_partitioner(2)):
        whole = tf.get_variable("v", [5, 2])
        tf.get_variable("u", [4], use_resource=True)
    tf.add_to_collection("whole", whole)
    return tf.train.Saver()


@model
def conditionals(tf):
    x = tf.placeholder(tf.float32, [], name="x")
    v = tf.Variable(2.0, name="v")
    y = tf.cond(x > 0.0, lambda: v * 2.0, lambda: tf.cond(x > -5.0, lambda: x, lambda: v - 1.0))
    tf.add_to_collection("y", y)
    return tf.train.Saver()


@model
def devices_and_controls(tf):
    with tf.device("/job:ps/task:0"):
        v = tf.Variable([[1.0]], name="v")
    with tf.device("/cpu:0"), tf.control_dependencies([v.initializer]):
        w = tf.matmul(v, v, transpose_a=True, name="w")
    with tf.name_scope("scope"), tf.colocate_with(w):
        tf.identity(w, name="copy")
    return tf.train.Saver()


@model
def a_training(tf):
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    with tf.variable_scope("layer"):
        w = tf.get_variable("w", [3, 2], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 1.0))
    train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, global_step=tf.train.get_or_create_global_step())
    tf.add_to_collection(tf.GraphKeys.TRAIN_OP, train)
    tf.add_to_collection("loss", loss)
    return tf.train.Saver()


@model
def nothing(tf):
    tf.add_to_collection("sum", tf.add(tf.placeholder(tf.float32, [], name="in"), 42.0, name="out"))


# -- export and import ------------------------------------------------------------------------------------------


def export(tf: Any, build: Callable[[Any], Any], **options: Any) -> Any:
    saver = build(tf)
    return tf.train.export_meta_graph(saver_def=saver and saver.saver_def, **options)


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "stripped": {"strip_default_attrs": True},
    "no_devices": {"clear_devices": True},
    "one_saver": {"clear_extraneous_savers": True},
    "some": {"collection_list": ["ints", "variables", "nowhere"]},
}


@pytest.mark.unordered
@model.each("build")
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_same_export(build, options):
    if "clear_extraneous_savers" in options and build(dtflab) is None:
        options = {}
    theirs, ours = both(lambda tf: facts(export(tf, build, **options)))
    assert_same_facts(ours, theirs)


@model.each("build")
@pytest.mark.parametrize("scope", ["", "inner"])
@pytest.mark.parametrize("clear", [False, True], ids=["devices", "no_devices"])
@pytest.mark.parametrize("way", ["reads", "is_read"])
def test_import_of_the_others(build, scope, clear, way, tmp_path, real_tf):
    """An export by one, imported and exported again by the other, equals the first one's own."""
    writer, reader = (real_tf, dtflab) if way == "reads" else (dtflab, real_tf)
    path = str(tmp_path / "graph.meta")
    with writer.Graph().as_default():
        export(writer, build, filename=path)
    again = []
    for tf in (writer, reader):
        with tf.Graph().as_default():
            saver = tf.train.import_meta_graph(path, clear_devices=clear, import_scope=scope)
            again.append((tf.train.export_meta_graph(saver_def=saver and saver.saver_def), saver is None))
            if saver is not None:
                found = saver.saver_def
                for name in (found.filename_tensor_name, found.save_tensor_name, found.restore_op_name):
                    tf.get_default_graph().as_graph_element(name)
    assert again[1][1] == again[0][1]
    assert_same(again[1][0], again[0][0])


@pytest.mark.parametrize("way", ["reads", "is_read"])
def test_a_training_goes_on(way, tmp_path, real_tf):
    """Train, save, import the graph with the other, restore, train on: as if one had done it all."""
    writer, reader = (real_tf, dtflab) if way == "reads" else (dtflab, real_tf)
    batch = {"x:0": np.arange(6.0).reshape(2, 3)}
    path = str(tmp_path / "model")

    def go_on(tf: Any, sess: Any, steps: int) -> Any:
        for _ in range(steps):
            sess.run(tf.get_collection("train_op")[0], batch)
        return sess.run([tf.get_collection("loss")[0], "layer/w:0", "layer/w/Momentum:0", "global_step:0"], batch)

    with writer.Graph().as_default(), writer.Session() as sess:
        saver = a_training(writer)
        sess.run(writer.global_variables_initializer())
        go_on(writer, sess, 3)
        saver.save(sess, path, global_step=3)
        want = go_on(writer, sess, 4)
    with reader.Graph().as_default(), reader.Session() as sess:
        saver = reader.train.import_meta_graph(f"{path}-3.meta")
        saver.restore(sess, f"{path}-3")
        got = go_on(reader, sess, 4)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


# -- scopes -------------------------------------------------------------------------------------------------------


def layers(tf: Any) -> None:
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    with tf.name_scope("a"):
        w = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="w")
        tf.Variable(1.0, name="r", use_resource=True)
        with tf.control_dependencies([x.op]):
            h = tf.nn.relu(tf.matmul(x, w), name="h")
        tf.add_to_collection("texts", "text")
        saver = tf.train.Saver([w])
        tf.add_to_collection(tf.GraphKeys.SAVERS, saver)
    with tf.name_scope("b"), tf.device("/cpu:0"):
        tf.add_to_collection("outputs", tf.reduce_sum(h * tf.Variable(2.0, name="w"), name="sum"))
    tf.add_to_collection("outputs", h)


@pytest.mark.unordered
@pytest.mark.parametrize("scope", ["a", "b", "a/", "a/h", "nowhere"])
@pytest.mark.parametrize("clear", [False, True], ids=["devices", "no_devices"])
def test_export_of_a_scope(scope, clear):
    def run(tf):
        layers(tf)
        message, variables = module(tf).export_scoped_meta_graph(export_scope=scope, clear_devices=clear)
        return facts(message), sorted(variables), tf.get_collection("unbound_inputs")

    theirs, ours = both(run)
    assert ours[1:] == theirs[1:]
    assert_same_facts(ours[0], theirs[0])


@program
def import_of_a_scope(tf, home):
    with tf.Graph().as_default():
        layers(tf)
        message = tf.train.export_meta_graph(export_scope="a")
    x, start = tf.constant([[1.0, 1.0]]), tf.no_op()
    found = []
    for given in ({}, {"y": x}, {"$unbound_inputs_x": x}, {"$unbound_inputs_x": x, "^$unbound_inputs_x": start}):
        words = ("Graph contains unbound inputs", "$unbound_inputs_x")
        load = functools.partial(tf.train.import_meta_graph, message, import_scope="new", input_map=given)
        found.append(tried(lambda load=load: load().saver_def, *words))
    found += [sorted(v.name for v in tf.global_variables()), [t.name for t in tf.get_collection("outputs")]]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return [*found, sess.run("new/h:0"), tf.get_collection("texts")]


@program
def copy_of_a_scope(tf, home):
    with tf.name_scope("hidden"):
        w = tf.Variable([1.0, 2.0], name="w")
        tf.add_to_collection("double", tf.multiply(w, 2.0, name="double"))
    variables = module(tf).copy_scoped_meta_graph(from_scope="hidden", to_scope="again")
    found = [sorted(variables), sorted(v.name for v in tf.global_variables())]
    found.append(tried(lambda: module(tf).copy_scoped_meta_graph("hidden", "hidden"), "need to be different"))
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        return [*found, sess.run(["again/double:0", "again/w:0"]), [t.name for t in tf.get_collection("double")]]


@program
def a_scope_beside_what_stays_behind(tf, home):
    outside = tf.constant(1.0, name="outside")
    with tf.name_scope("hidden"), tf.colocate_with(outside):
        tf.Variable(2.0, name="v")
        tf.constant(3.0, name="c")
    message = tf.train.export_meta_graph(export_scope="hidden")
    with tf.Graph().as_default() as graph:
        tf.train.import_meta_graph(message, import_scope="new")
        found = [(op.name, op.colocation_groups(), "_class" in op.node_def.attr) for op in graph.get_operations()]
        with tf.Session() as sess:
            return found, sess.run("new/c:0")


@program
def several_imports(tf, home):
    with tf.Graph().as_default(), tf.Session() as sess:
        v = tf.Variable(5.0, name="v")
        sess.run(v.initializer)
        path = tf.train.Saver().save(sess, f"{home}/m")
    found = []
    with tf.Session() as sess:
        for scope in (None, "", "a", "a", "b/c"):
            saver = tf.train.import_meta_graph(f"{path}.meta", import_scope=scope)
            saver.restore(sess, path)
            found += [saver.saver_def, [v.name for v in tf.global_variables()]]
        with tf.name_scope("outer"):
            saver = tf.train.import_meta_graph(f"{path}.meta", graph=sess.graph)
        saver.restore(sess, path)
        return found, saver.saver_def, [v.name for v in tf.global_variables()], sess.run(tf.global_variables())


@program
def chosen_collections_and_elements(tf, home):
    with tf.Graph().as_default():
        collections_of_everything(tf)
        message = tf.train.export_meta_graph()
    tf.train.import_meta_graph(message, restore_collections_predicate=lambda key: "s" not in key)
    keys = sorted(tf.get_default_graph().get_all_collection_keys())
    with tf.Graph().as_default():
        variables, elements = module(tf).import_scoped_meta_graph_with_return_elements(
            message, import_scope="s", return_elements=["v:0", "r"]
        )
    return keys, sorted(variables), [e.name for e in elements]


@program
def files(tf, home):
    path = f"{home}/meta"
    with tf.Graph().as_default():
        tf.Variable(10.0, name="v0")
        tf.train.export_meta_graph(path)
    with tf.Graph().as_default():
        saver = tf.train.import_meta_graph(path)
        saver.export_meta_graph(path, as_text=True)
    found = [Path(path).read_text().startswith("meta_info_def")]
    with tf.Graph().as_default():
        found.append(tf.train.import_meta_graph(path).saver_def)
    tf.train.write_graph(saver.saver_def, home, "meta")
    for name in ("meta", "none"):
        found.append(
            tried(lambda name=name: tf.train.import_meta_graph(f"{home}/{name}"), "Cannot parse", "does not exist")
        )
    with tf.Graph().as_default():
        found.append(tried(lambda: tf.train.export_meta_graph(f"{home}/not/there/meta") and None))
        found.append(tried(lambda: tf.train.export_meta_graph(graph_def="x"), "graph_def must be of type GraphDef"))
        found.append(tried(lambda: tf.train.export_meta_graph(saver_def="x"), "saver_def must be of type SaverDef"))
        found.append(tried(lambda: tf.train.export_meta_graph(meta_info_def="x"), "meta_info_def must be of type"))
        found.append(tried(lambda: tf.train.export_meta_graph(graph="x")))
        found.append(tried(lambda: tf.train.import_meta_graph(tf.GraphDef())))
    return found


@program
def info(tf, home):
    given = tf.MetaGraphDef.MetaInfoDef(meta_graph_version="v1", tags=["serve", "x"])
    message = tf.train.export_meta_graph(meta_info_def=given)
    return (
        list(message.meta_info_def.tags),
        message.meta_info_def.meta_graph_version,
        message.meta_info_def.tensorflow_version,
    )


@program
def graphs_as_files(tf, home):
    tf.constant([1.0, 2.0], name="c")
    graph = tf.get_default_graph()
    paths = [
        tf.train.write_graph(graph, f"{home}/a/b", "g.pbtxt"),
        tf.train.write_graph(graph.as_graph_def(), home, "g.pb", as_text=False),
        tf.train.write_graph(graph.as_graph_def(), f"{home}/", "g2.pb", False),
        tf.io.write_graph(graph, home, "g3.pb", False),
    ]
    read = [tf.GraphDef.FromString(Path(p).read_bytes()) == graph.as_graph_def() for p in paths[1:]]
    return paths, read, Path(paths[0]).read_text(), sorted(os.listdir(home))


@program.each()
def test_same_answer(run, tmp_path):
    (theirs, _), (ours, _) = at_home(run, tmp_path)
    assert ours == theirs


def test_the_interfaces_of_all_ops(real_tf):
    """Our OpDef of an op is TensorFlow's, but for descriptions and what we do not ask."""
    from tensorflow.python.framework import op_def_registry

    for name in op_registry.names():
        theirs = type(op_def_registry.get("NoOp"))()
        theirs.CopyFrom(op_def_registry.get(name))
        theirs.is_commutative = theirs.is_aggregate = theirs.is_distributed_communication = False
        theirs.ClearField("deprecation")
        for arg in (*theirs.input_arg, *theirs.output_arg):
            arg.ClearField("handle_data")
            arg.ClearField("experimental_full_type")
        ours = type(theirs).FromString(op_def_proto(name).SerializeToString())
        for side in (ours, theirs):
            attrs = sorted((a for a in side.attr if a.type != "tensor"), key=lambda a: a.name)  # no default in ours
            for attr in attrs:
                for allowed in (attr.allowed_values.list.type, attr.allowed_values.list.s):
                    allowed[:] = sorted(set(allowed))  # TensorFlow's ResizeBilinear names bfloat16 twice
            del side.attr[:]
            side.attr.extend(attrs)
        assert ours == theirs, name
