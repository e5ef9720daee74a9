"""Partitioned variables, side by side with TensorFlow: how they are cut, named, placed, initialized and assigned."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.oracle.test_variable_scope import shown, tried
from tests.oracle.graph_defs import assert_same_graph
from tests.oracle.programs import Programs

program = Programs()
test_same_answer = program.same_answers()


@program.each()
def test_same_graph(run):
    assert_same_graph(run)


def info(shard: Any) -> Any:
    found = shard._get_save_slice_info()
    return found.full_name, found.full_shape, found.var_offset, found.var_shape, found.spec


def run(tf: Any, *fetches: Any) -> list[Any]:
    """The values of the fetches, after initialization."""
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
        session.run(tf.global_variables_initializer())
        return [np.asarray(value).tolist() for value in session.run(list(fetches))]


@program
def partitioners(tf):
    shape = tf.TensorShape
    cuts = [
        lambda: tf.fixed_size_partitioner(3)(shape=shape([10, 2]), dtype=tf.float32),
        lambda: tf.fixed_size_partitioner(3, axis=1)(shape=shape([10, 2]), dtype=tf.float32),
        lambda: tf.variable_axis_size_partitioner(40)(shape=shape([10, 4]), dtype=tf.float32),
        lambda: tf.variable_axis_size_partitioner(40, max_shards=3)(shape=shape([10, 4]), dtype=tf.float64),
        lambda: tf.variable_axis_size_partitioner(7, axis=1)(shape=shape([10, 4]), dtype=tf.int8),
        lambda: tf.variable_axis_size_partitioner(64)(shape=shape([10, 1]), dtype=tf.string),
        lambda: tf.variable_axis_size_partitioner(0),
        lambda: tf.variable_axis_size_partitioner(8)(shape=[10, 4], dtype=tf.float32),
        lambda: tf.variable_axis_size_partitioner(8)(shape=shape([None, 4]), dtype=tf.float32),
        lambda: tf.min_max_variable_partitioner(10)(shape=shape([1024, 1024]), dtype=tf.float32),
        lambda: tf.min_max_variable_partitioner(100, min_slice_size=256)(shape=shape([40, 20]), dtype=tf.float32),
        lambda: tf.min_max_variable_partitioner(100, 1, 256)(shape=shape([40, 20]), dtype=tf.string),
        lambda: tf.min_max_variable_partitioner(3, axis=2)(shape=shape([40, 20]), dtype=tf.float32),
    ]
    return [tried(cut)[: 2 if i != 6 else 1] for i, cut in enumerate(cuts)]


@program
def names_slices_and_values(tf):
    v = tf.get_variable(
        "v",
        [5, 3],
        initializer=lambda shape, dtype, partition_info: tf.fill(shape, partition_info.var_offset[0] + 0.5),
        partitioner=tf.fixed_size_partitioner(2),
    )
    with tf.variable_scope("s", partitioner=tf.fixed_size_partitioner(3, axis=1)):
        w = tf.get_variable("w", [2, 4], initializer=tf.reshape(tf.range(8.0), [2, 4]))
        x = tf.get_variable("x", shape=[2, 3], initializer=np.arange(6, dtype="i4").reshape(2, 3), dtype=tf.int32)
        scalar = tf.get_variable("scalar", [])
        y = tf.get_variable("y", [3, 2], use_resource=True, initializer=tf.ones_initializer())
    whole = tf.get_variable("whole", [2], partitioner=tf.fixed_size_partitioner(1), initializer=tf.zeros_initializer())
    seen = shown([v, w, x, scalar, y, whole])
    values = run(tf, v.as_tensor(), tf.multiply(w, 2), tf.convert_to_tensor(x), tf.add_n([y, y]), whole.as_tensor())
    return (
        seen,
        values,
        [info(shard) for part in (v, w, x, y, whole) for shard in part],
        len(v),
        v.get_shape().as_list(),
    )


@program
def reuse_and_refusals(tf):
    two, three = tf.fixed_size_partitioner(2), tf.fixed_size_partitioner(3)
    with tf.variable_scope("a", partitioner=two):
        v = tf.get_variable("v", [4, 2])
    with tf.variable_scope("a", reuse=True, partitioner=two):
        found = [tf.get_variable("v", [4, 2]) is v]
    with tf.variable_scope("a", reuse=True):
        found += [tf.get_variable("v") is v]
        calls = [
            lambda: tf.get_variable("v", [4, 2], partitioner=three),
            lambda: tf.get_variable("v", [4, 3], partitioner=two),
            lambda: tf.get_variable("v", [4, 2], tf.int32, partitioner=two),
            lambda: tf.get_variable("w", [4, 2], partitioner=two),
        ]
        refused = [tried(call) for call in calls]
    tf.get_variable("plain", [4])
    calls = [
        lambda: tf.get_variable("plain", [4], partitioner=two),
        lambda: tf.get_variable("n", [4, 2], partitioner=lambda shape, dtype: [1]),
        lambda: tf.get_variable("n", [4, 2], partitioner=lambda shape, dtype: 2),
        lambda: tf.get_variable("n", [4, 2], partitioner=lambda shape, dtype: [0, 1]),
        lambda: tf.get_variable("n", [4, 2], partitioner=lambda shape, dtype: [2, 2]),
        lambda: tf.get_variable("n", [None, 2], partitioner=two),
        lambda: tf.get_variable("n", partitioner=two),
    ]
    refused += [tried(call) for call in calls]
    with tf.variable_scope("a"):
        refused += [
            tried(lambda: tf.get_variable("v", [4, 2])),
            tried(lambda: tf.get_variable("v", [4, 2], partitioner=two)),
        ]
    return found, refused


@program
def assignments(tf):
    v = tf.get_variable("v", [5, 2], partitioner=tf.fixed_size_partitioner(2), initializer=tf.zeros_initializer())
    w = tf.get_variable("w", [2, 5], partitioner=tf.fixed_size_partitioner(3, axis=1), use_resource=True)
    value = tf.reshape(tf.range(10.0), [5, 2])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        seen = [[part.tolist() for part in session.run(v.assign(value))]]
        seen += [[part.tolist() for part in session.run(v.assign_add(value))]]
        seen += [[part.tolist() for part in session.run(v.assign_sub([tf.ones([3, 2]), tf.ones([2, 2])]))]]
        session.run(v.assign(v))
        session.run(w.assign(tf.reshape(value, [2, 5]), name="set"))
        return seen, session.run(v.as_tensor()).tolist(), session.run(w.as_tensor()).tolist()


@program
def over_servers(tf):
    cluster = {"ps": ["a:1", "b:1", "c:1"], "worker": ["d:1"]}
    with tf.device(tf.train.replica_device_setter(cluster=cluster)):
        v = tf.get_variable("v", [7, 2], partitioner=tf.fixed_size_partitioner(4))
        w = tf.get_variable("w", [7, 2], use_resource=True, partitioner=tf.fixed_size_partitioner(2))
        total = tf.reduce_sum(v) + tf.reduce_sum(w)
    return [shard.device for part in (v, w) for shard in part], total.device, tf.convert_to_tensor(v).device


@program
def lists_of_shards(tf):
    parts = tf.create_partitioned_variables([4, 2], [2, 1], tf.ones_initializer(), name="parts")
    more = tf.create_partitioned_variables([4, 2], [1, 2], tf.reshape(tf.range(8.0), [4, 2]), trainable=False)
    with tf.variable_scope("outer"):
        inner = tf.create_partitioned_variables(
            [3], [3], lambda shape, dtype: tf.zeros(shape, dtype), tf.int32, name="i"
        )
    again = tf.create_partitioned_variables([4, 2], [2, 1], tf.ones_initializer(), name="parts", reuse=True)
    calls = [
        lambda: tf.create_partitioned_variables([4, 2], [2], tf.ones_initializer()),
        lambda: tf.create_partitioned_variables([], [], tf.ones_initializer()),
        lambda: tf.create_partitioned_variables([4, 2], [2, 2], tf.ones_initializer(), name="cut"),
    ]
    seen = shown([parts, more, inner]), [a is b for a, b in zip(parts, again)], [tried(call) for call in calls]
    return seen, run(tf, *parts, *more, *inner), [info(p) for p in (*parts, *more, *inner)]


@program
def regularized_and_scaled(tf):
    with tf.variable_scope("a", regularizer=tf.reduce_sum, partitioner=tf.fixed_size_partitioner(2)):
        tf.get_variable("v", [4, 3], initializer=tf.ones_initializer())
        tf.get_variable("s", [4, 3], initializer=tf.uniform_unit_scaling_initializer(seed=1))
        tf.get_variable("g", [4, 3], initializer=tf.glorot_normal_initializer(seed=1))
    losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    return [loss.name for loss in losses], run(tf, *tf.global_variables())


@program
def messages(tf):
    v = tf.get_variable("s/v", [4, 3], partitioner=tf.fixed_size_partitioner(2), use_resource=True)
    w = tf.get_variable("s/w", [4, 3], partitioner=tf.fixed_size_partitioner(2))
    protos = [shard.to_proto() for shard in (*v, *w)]
    restored = [info(tf.Variable.from_proto(proto)) for proto in protos]
    part = tf.Variable.SaveSliceInfo("s/v", [4, 3], [2, 0], [2, 3])
    return [str(proto) for proto in protos], restored, part.spec, str(part.to_proto("s")), part.to_proto("other")


@program
def made_by_hand(tf):
    def shard(offset):
        v = tf.Variable(tf.zeros([2, 3]), name="part")
        v._set_save_slice_info(tf.Variable.SaveSliceInfo("v", [4, 3], [offset, 0], [2, 3]))
        return v

    from importlib import import_module

    package = tf.__name__.partition(".")[0]
    where = (
        "tensorflow.python.ops.variables"
        if package.startswith("tensorflow")
        else "dtflab.ops.variables.partitioned_variables"
    )
    kind = import_module(where).PartitionedVariable
    parts = [shard(2), shard(0)]
    calls = [
        lambda: [info(part)[2] for part in kind("v", [4, 3], tf.float32, parts, [2, 1])],
        lambda: kind("v", [4, 3], tf.float32, 1, [2, 1]),
        lambda: kind("v", [4, 3], tf.float32, parts, 2),
        lambda: kind("v", [4, 3], tf.float32, parts, [0, 1]),
        lambda: kind("v", [4, 3], tf.float32, [], [2, 1]),
        lambda: kind("v", [4, 3], tf.float32, parts, [2]),
        lambda: kind("v", [4, 2], tf.float32, parts, [2, 1]),
        lambda: kind("v", [4, 3], tf.float32, [tf.Variable(1.0, name="whole")], [2, 1]),
        lambda: len(kind("v", [4, 3], tf.float32, parts, [2, 2])),
        lambda: kind("v", [4, 3], tf.float32, parts, [2, 2]).as_tensor()[0],
        lambda: tf.convert_to_tensor(kind("v", [4, 3], tf.float32, parts, [2, 1]), tf.int32),
    ]
    return [seen[:1] if i == 9 else seen for i, seen in enumerate(map(tried, calls))]
