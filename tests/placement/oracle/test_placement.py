"""Every node goes where TensorFlow's placer puts it, and what can't be placed fails as there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

import dtflab
from dtflab.cluster.addresses import free_addresses
from tests.oracle import answers
from tests.oracle.programs import Programs

program = Programs()
CPUS = {"CPU": 3}
TASKS = ("/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1")


@pytest.fixture(scope="module")
def targets() -> Iterator[dict[str, str]]:
    """By layout: the target of a session. In the clusters the master is the second worker's."""
    with dtflab.Cluster(ps=1, worker=2, config=dtflab.ConfigProto(device_count=CPUS)) as cluster:
        yield {"local": "", "cluster": cluster.target_of("worker", 1)}


@cache
def their_servers(tf: Any) -> list[Any]:
    addresses = free_addresses(3)
    spec = {"ps": addresses[:1], "worker": addresses[1:]}
    config = tf.ConfigProto(device_count=CPUS)
    return [tf.train.Server(spec, job, task, config=config) for job in spec for task in range(len(spec[job]))]


def where(layout: str) -> Callable[[int], str]:
    return (lambda i: f"/cpu:{i}") if layout == "local" else (lambda i: TASKS[i])


def placed_by_tensorflow(real_tf: Any, function: Any, layout: str, soft: bool) -> dict[str, str]:
    messages = answers.module_of(real_tf, "core.protobuf.rewriter_config_pb2", None)
    rewrites = messages.RewriterConfig(disable_meta_optimizer=True)
    unoptimized = real_tf.OptimizerOptions(opt_level=-1)
    target = "" if layout == "local" else their_servers(real_tf)[2].target
    config = real_tf.ConfigProto(
        device_count=CPUS,
        allow_soft_placement=soft,
        graph_options=real_tf.GraphOptions(rewrite_options=rewrites, optimizer_options=unoptimized),
    )
    metadata = real_tf.RunMetadata()
    with real_tf.Graph().as_default():
        fetches = function(real_tf, where(layout))
        with real_tf.Session(target, config=config) as session:
            session.run(real_tf.global_variables_initializer())
            options = real_tf.RunOptions(output_partition_graphs=True)
            session.run(fetches, options=options, run_metadata=metadata)
    return {node.name: node.device for graph in metadata.partition_graphs for node in graph.node}


def placed_here(function: Any, layout: str, target: str, soft: bool) -> dict[str, str]:
    config = dtflab.ConfigProto(device_count=CPUS, allow_soft_placement=soft)
    with dtflab.Graph().as_default():
        fetches = function(dtflab, where(layout))
        with dtflab.Session(target, config=config) as session:
            session.run(dtflab.global_variables_initializer())
            session.run(fetches)
            return {node.name: node.device for node in session.placed_nodes()}


@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
@pytest.mark.parametrize("layout", ["local", "cluster"])
@program.each("function")
def test_same_placement(function, layout, soft, targets):
    def answer(tf):
        try:
            return placed_by_tensorflow(tf, function, layout, soft)
        except tf.errors.OpError as error:
            return type(error).__name__, re.findall("Cannot [A-Za-z ]+", error.message)[0]  # up to the first name

    theirs = answers.theirs(answer)
    try:
        ours: Any = placed_here(function, layout, targets[layout], soft)
    except dtflab.errors.OpError as error:
        ours = error
    if isinstance(theirs, tuple):
        kind, sentence = theirs
        assert type(ours).__name__ == kind, ours
        assert sentence in ours.message
    else:
        assert not isinstance(ours, Exception), ours
        both = theirs.keys() & ours.keys()
        assert len(both) > 1
        assert {name: ours[name] for name in both} == {name: theirs[name] for name in both}


# -- what is open -----------------------------------------------------------------------------------------------


@program
def nothing_is_pinned(tf, at):
    v = tf.Variable([[1.0]], name="v")
    return tf.matmul(v, v) + 1.0


@program
def constants_follow_their_only_consumers(tf, at):
    a, b = tf.constant(1.0), tf.constant(2.0)
    c = tf.constant(3.0)
    with tf.device(at(1)):
        x = tf.negative(a)
        y = tf.add(b, c)
    with tf.device(at(2)):
        z = tf.negative(c)
    return [x, y, z]


@program
def a_chain_does_not_follow(tf, at):
    a = tf.identity(tf.constant(1.0))
    with tf.device(at(2)):
        return tf.negative(a)


@program
def random_numbers_are_no_generators(tf, at):
    a = tf.random_uniform([2, 2], seed=1)
    with tf.device(at(1)):
        return tf.negative(a)


@program
def placeholders_follow(tf, at):
    a = tf.placeholder_with_default(1.0, [])
    with tf.device(at(1)):
        return a + 1.0


@program
def control_inputs_count_as_consumers(tf, at):
    a, b = tf.constant(1.0, name="a"), tf.constant(2.0, name="b")
    with tf.device(at(1)), tf.control_dependencies([a]):
        x = tf.negative(b)
    with tf.device(at(2)), tf.control_dependencies([b]):
        y = tf.identity(x)
    return y


@program
def shapes_stay_with_their_tensor(tf, at):
    with tf.device(at(1)):
        a = tf.reshape(tf.placeholder_with_default([1.0, 2.0], [None]), [-1])
    return [tf.shape(a), tf.size(a), tf.rank(a)]


@program
def shapes_of_what_is_open(tf, at):
    a = tf.placeholder_with_default([1.0, 2.0], [None])
    with tf.device(at(2)):
        b = tf.negative(a)
    return [tf.shape(a), b]


@program
def pins_in_part(tf, at):
    found = []
    for request in ("/cpu:1", "/device:CPU:2", "/job:worker", "/job:worker/cpu:1", "/task:0", "/replica:0", "/job:*"):
        if at(0) == "/cpu:0" and "worker" in request:
            continue
        with tf.device(request):
            found.append(tf.negative(tf.identity(tf.constant(1.0))))
    return found


# -- who must be together ---------------------------------------------------------------------------------------


def variables(tf, at):
    with tf.device(at(1)):
        return [tf.Variable(1.0, use_resource=False), tf.Variable(1.0, use_resource=True)]


@program
def ops_follow_their_variable(tf, at):
    found = []
    for v in variables(tf, at):
        found += [v.assign(2.0), v.assign_add(1.0), v.read_value(), v + 1.0]
    return found


@program
def a_variables_pin_is_stronger(tf, at):
    ref, resource = variables(tf, at)
    with tf.device(at(2)):
        return [v.assign_add(tf.constant(1.0)) for v in (ref, resource)] + [ref.read_value(), resource.read_value()]


@program
def an_ops_pin_holds_for_an_open_variable(tf, at):
    ref, resource = tf.Variable(1.0, use_resource=False), tf.Variable(1.0, use_resource=True)
    with tf.device(at(2)):
        return [v.assign_add(1.0) for v in (ref, resource)]


@program
def training(tf, at):
    with tf.device(at(1)):
        w = tf.Variable([[1.0, 2.0]], name="w")
    with tf.device(at(2)):
        loss = tf.reduce_sum(tf.square(tf.matmul([[1.0], [2.0]], w)))
    return tf.train.GradientDescentOptimizer(0.1).minimize(loss)


@program
def an_initial_value_goes_with_its_variable(tf, at):
    value = tf.constant(1.0)
    with tf.device(at(1)):
        v = tf.Variable(value * 2.0)
    return [v.initializer, v]


@program
def colocation(tf, at):
    with tf.device(at(1)):
        a = tf.identity(tf.constant(1.0), name="a")
    with tf.colocate_with(a):
        b = tf.negative(tf.constant(2.0))
    with tf.colocate_with(b.op), tf.device(at(1)):
        c = tf.negative(b)
    return [b, c]


@program
def colocation_with_what_is_open(tf, at):
    a = tf.identity(tf.constant(1.0), name="a")
    with tf.colocate_with(a), tf.device(at(2)):
        b = tf.negative(a)
    with tf.colocate_with(a):
        c = tf.constant(5.0) + b
    return [b, c]


@program
def colocation_that_contradicts(tf, at):
    with tf.device(at(1)):
        a = tf.identity(tf.constant(1.0), name="a")
    with tf.colocate_with(a), tf.device(at(2)):
        b = tf.negative(a, name="b")
    return b


@program
def two_variables_in_one_op(tf, at):
    with tf.device(at(1)):
        a = tf.Variable(1.0, use_resource=False)
    with tf.device(at(2)):
        b = tf.Variable(1.0, use_resource=False)
    graph, inputs = tf.get_default_graph(), [v.op.outputs[0] for v in (a, b)]
    attrs = {"N": attr(tf, i=2), "T": attr(tf, type=tf.float32.as_datatype_enum)}
    return graph.create_op("RefMerge", inputs, [tf.float32._as_ref, tf.int32], attrs=attrs).outputs[0]


def attr(tf, **value):
    from dtflab.protos.attr_value_pb2 import AttrValue

    return (AttrValue if tf is dtflab else tf.AttrValue)(**value)


# -- what can't be placed ---------------------------------------------------------------------------------------


def pinned_to(request: str) -> None:
    @program
    def pinned(tf, at):
        with tf.device(request):
            return tf.identity(tf.constant(1.0), name="nowhere") + 1.0

    pinned.__name__ = f"pinned_to_{request}"


for request in ("/cpu:7", "/gpu:0", "/job:nowhere", "/job:worker/task:9", "/job:ps/gpu:0", "/replica:3"):
    pinned_to(request)
