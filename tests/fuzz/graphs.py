"""Seeds of graphs: small GraphDefs that use most of what a GraphDef can say."""

from __future__ import annotations

from collections.abc import Callable

import dtflab as tf
from dtflab.graph.graph_def import nodes_to_proto
from dtflab.protos.graph_pb2 import GraphDef
from tests.cluster.test_bombs import function_with

FLOAT, BOOL = 1, 10


def graph_def(build: Callable[[], object]) -> GraphDef:
    with tf.Graph().as_default() as graph:
        build()
        return nodes_to_proto(graph.nodes())


def arithmetic() -> None:
    x = tf.placeholder(tf.float32, [2, 2], "x")
    w = tf.constant([[1.0, 2.0], [3.0, 4.0]], name="w")
    with tf.device("/cpu:0"), tf.control_dependencies([tf.no_op("before")]):
        y = tf.matmul(x, w, name="y")
    tf.add_n([y, tf.ones([2, 2]), tf.zeros([2, 2])], name="sum")
    tf.constant(["a", "bc"], name="texts")
    tf.cast(tf.range(5), tf.float16, name="half")


def state() -> None:
    v = tf.Variable([1.0, 2.0], name="v")
    r = tf.get_variable("r", initializer=3, use_resource=True)
    with tf.colocate_with(v.op):
        tf.assign_add(v, [1.0, 1.0], name="up")
    tf.add(r, 1, name="more")
    queue = tf.FIFOQueue(2, [tf.int32], [[]], name="queue")
    queue.enqueue(7, name="put")
    tf.group(v.initializer, r.initializer, name="init")


def control_flow() -> None:
    x = tf.placeholder(tf.int32, [], "x")
    tf.while_loop(lambda i: i < 3, lambda i: i + x, [0], name="loop")
    tf.cond(x > 1, lambda: x + 1, lambda: x - 1, name="choice")


def ragged() -> GraphDef:
    """Constants that list fewer elements than they have, and of types of their own."""
    made = GraphDef()
    for name, dtype, field, values in (
        ("c", FLOAT, "float_val", [1.0, 2.0]), ("b", BOOL, "bool_val", []), ("s", 7, "string_val", [b"q"]),
    ):  # fmt: skip
        node = made.node.add(name=name, op="Const")
        node.attr["dtype"].type = dtype
        node.attr["value"].tensor.dtype = dtype
        node.attr["value"].tensor.tensor_shape.dim.add(size=5)
        getattr(node.attr["value"].tensor, field).extend(values)
        node.attr["_output_shapes"].list.shape.add().dim.add(size=5)
    return made


def calls(depth: int = 3, inside: int = 2) -> GraphDef:
    """Functions each of which calls the next one `inside` times."""
    made = GraphDef()
    made.versions.producer = 1882
    for n in range(depth):
        definition = made.library.function.add()
        definition.signature.name = f"f{n}"
        definition.signature.input_arg.add(name="x", type=FLOAT)
        definition.signature.output_arg.add(name="y", type=FLOAT)
        last, reference = n == depth - 1, "x"
        for call in range(inside):
            node = definition.node_def.add(name=f"n{call}", op="Neg" if last else f"f{n + 1}", input=[reference])
            if last:
                node.attr["T"].type = FLOAT
            reference = f"n{call}:y:0"
        definition.ret["y"] = reference
    x = made.node.add(name="x", op="Placeholder")
    x.attr["dtype"].type = FLOAT
    call = made.node.add(name="call", op="PartitionedCall", input=["x"])
    for attr in ("Tin", "Tout"):
        call.attr[attr].list.type.append(FLOAT)
    call.attr["f"].func.name = "f0"
    return made


def seeds() -> list[bytes]:
    made = [*map(graph_def, (arithmetic, state, control_flow)), ragged(), calls(), function_with(2, inside=True)]
    return [one.SerializeToString(deterministic=True) for one in made]
