"""Profiles: sums, what grows with the batch, whose layer a gradient is, and made-up layers next to real ones."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest

import dtflab as tf
from dtflab.graph.node import by_name
from dtflab.hardware import catalogue
from dtflab.hardware.machines import machines_for
from dtflab.hardware.workload import Workload
from dtflab.runtime.prune import prune
from dtflab.sim import models
from dtflab.sim.engine.layer_costs import Kernel, LayerCost, VariableCost
from dtflab.sim.engine.network_profile import Profile

K40 = catalogue.gpu("K40")
CONVOLUTIONAL = ["alexnet", "googlenet", "inception_v3", "resnet50", "vgg16"]
OTHERS = ["language_model_sampled", "mlp", "ranker", "seq2seq_gnmt"]
SMALLER = {  # networks of words whose graphs are built and priced quickly
    "language_model_sampled": {"units": 32, "vocabulary": 600, "steps": 4},
    "seq2seq_gnmt": {"layers": 2, "units": 32, "vocabulary": 600, "steps": 4},
}


@functools.cache
def profile(name, batch=4, **options):
    model = models.get(name)(batch, **{**SMALLER.get(name, {}), **options})
    return Profile.from_graph(model.loss, name=name)


@pytest.mark.parametrize(
    "examples", [lambda: tf.random_uniform([8, 6, 6, 3]), lambda: tf.zeros([8, 6, 6, 3]), lambda: tf.ones([8, 108])]
)
def test_made_up_examples_grow_with_the_batch(examples):
    """Random numbers and constants, of which benchmarks and exercises are made, as if they were fed."""

    def of(x):
        loss = tf.reduce_sum(tf.layers.dense(tf.layers.dense(tf.layers.flatten(x), 20, tf.nn.relu), 3))
        return Profile.from_graph(loss, batch=8)

    with tf.Graph().as_default():
        made = of(examples())
    with tf.Graph().as_default():
        fed = of(tf.placeholder(tf.float32, [8, 108]))
    assert [layer.output_bytes for layer in made.layers] == [layer.output_bytes for layer in fed.layers]
    assert made.with_batch(16).backward_flops == fed.with_batch(16).backward_flops
    assert made.memory_bytes >= fed.memory_bytes - 8 * 108 * 4


def test_what_a_branch_computes_grows_with_the_batch():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [10, 8])
        chosen = tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2, lambda: x)
        found = Profile.from_graph(tf.reduce_mean(tf.layers.dense(chosen, 5)))
    (product,) = (kernel for kernel in found.layers[0].forward if kernel.op == "Mul")
    assert product.fixed_bytes == 4, "the two"


def small_net():
    """Two dense layers; the second has a scale of its own, and what follows belongs to it."""
    x = tf.placeholder(tf.float32, [10, 6], name="x")
    hidden = tf.layers.dense(x / 2.0, 5, tf.nn.relu, name="first")
    with tf.variable_scope("second"):
        w = tf.get_variable("w", [5, 3])
        scale = tf.get_variable("scale", [3])
    return tf.reduce_sum(tf.square(tf.matmul(hidden, w) * scale))


# ---- layers of a graph ----


def test_a_layer_is_a_matrix_with_its_vectors_and_what_follows():
    with tf.Graph().as_default():
        found = Profile.from_graph(small_net(), name="small")
    first, second = found.layers
    assert (found.batch, first.name, second.name) == (10, "first", "second")
    assert [v.name for v in first.variables] == ["first/kernel", "first/bias"]
    assert [(v.name, v.bytes) for v in second.variables] == [("second/w", 4 * 15), ("second/scale", 4 * 3)]
    assert kernels(first.forward) == {"RealDiv": 60, "MatMul": 2 * 300, "BiasAdd": 50, "Relu": 50}
    assert kernels(second.forward) == {"MatMul": 2 * 150, "Mul": 30, "Square": 30, "Sum": 30}


def kernels(found):
    """Flops by op."""
    sums = {}
    for kernel in found:
        sums[kernel.op] = sums.get(kernel.op, 0) + kernel.flops * kernel.count
    return {op: flops for op, flops in sums.items() if flops}


def test_the_way_back_belongs_to_the_layer_that_it_goes_back_through():
    with tf.Graph().as_default():
        first, second = Profile.from_graph(small_net()).layers
    assert kernels(second.backward)["MatMul"] == 2 * 2 * 150  # by hidden and by w
    assert kernels(first.backward)["MatMul"] == 2 * 300  # by the kernel: nobody reads the one by x
    assert kernels(first.update) == kernels(first.update) | {"ApplyGradientDescent": 2 * (30 + 5)}
    assert "ApplyGradientDescent" in kernels(second.update)


def test_what_crosses_a_cut_and_what_is_kept():
    with tf.Graph().as_default():
        first, second = Profile.from_graph(small_net()).layers
    assert (first.output_bytes, second.output_bytes) == (4 * 50, 0)
    # x / 2 and relu; in the second layer the product (for the scale), its square's input
    assert first.kept_bytes == 4 * (60 + 50)
    assert second.kept_bytes == 4 * (30 + 30)


def test_a_skipped_layer_is_crossed_too():
    with tf.Graph().as_default():
        x = tf.layers.dense(tf.placeholder(tf.float32, [2, 4]), 4, name="a")
        y = tf.layers.dense(x, 4, name="b")
        z = tf.layers.dense(y, 4, name="c") + x
        found = Profile.from_graph(tf.reduce_sum(z))
    assert [layer.output_bytes for layer in found.layers] == [4 * 8, 4 * 16, 0]
    assert ["AddN" in kernels(layer.backward) for layer in found.layers] == [False, True, False]  # of x's two gradients


def test_what_is_fed_or_shown_twice_crosses_a_cut_once_or_never():
    with tf.Graph().as_default():
        x, late = tf.placeholder(tf.float32, [2, 4]), tf.placeholder(tf.float32, [2, 4])
        x = tf.layers.dense(x, 4, name="a")
        y = tf.layers.dense(tf.reshape(x, [4, 2]), 3, name="b")
        z, last = tf.layers.dense(x, 4, name="c"), tf.layers.dense(late, 4, name="d")
        found = Profile.from_graph(tf.reduce_sum(y) + tf.reduce_sum(z) + tf.reduce_sum(last))
    assert [layer.output_bytes for layer in found.layers] == [4 * 8, 4 * 8 + 4, 4, 0]  # and the sums so far


def test_a_matrix_that_is_read_again_after_the_next_one():
    with tf.Graph().as_default():
        a, b, c = (tf.get_variable(name, [4, 4]) for name in "abc")
        x = tf.matmul(tf.placeholder(tf.float32, [2, 4]), a)
        z = tf.matmul(tf.matmul(x, b), c) + x
        found = Profile.from_graph(tf.reduce_sum(z) + tf.reduce_sum(tf.matmul(x, b)) + tf.reduce_sum(b * c))
    assert found.layers[1].output_bytes == 4 * (8 + 8 + 1)  # x for the sum, x · b for c, and what x · b adds up to
    assert [kernels(layer.forward).get("Mul") for layer in found.layers] == [None, None, 16]


def test_a_matrix_that_is_read_at_many_times_is_one_layer():
    steps, units = 5, 8
    found = profile("seq2seq", layers=2, units=units, vocabulary=30, steps=steps)
    cell = next(layer for layer in found.layers if layer.name.startswith("decoder") and "cell_1" in layer.name)
    (product,) = [kernel for kernel in cell.forward if kernel.op == "MatMul"]
    assert (product.count, product.flops) == (steps, 2 * 4 * 2 * units * 4 * units)


def test_only_rows_of_an_embedding_travel():
    batch, rows = 4, 8 * 10 * 64 * 4
    found = profile("ranker", batch)
    tables = [v for v in found.variables if v.is_sparse]
    assert len(tables) == 8 and sum(v.pull_bytes for v in tables) == batch * rows
    assert found.gradient_bytes == batch * rows + sum(v.bytes for v in found.variables if not v.is_sparse)
    assert found.gradient_bytes < found.variable_bytes / 200


def test_looking_up_rows_does_not_cost_the_table():
    few, many = profile("ranker", tables=1, rows=1000), profile("ranker", tables=1, rows=1_000_000)
    assert few.times(K40) == many.times(K40)


def test_averages_of_batch_normalization_are_variables_that_no_gradient_changes():
    found = profile("resnet50")
    averages = [v for v in found.variables if not v.trainable]
    assert sum(v.bytes for v in averages) == 4 * (25_636_712 - 25_583_592)
    assert all("moving_" in v.name for v in averages)
    kept = sum(layer.kept_bytes for layer in found.layers)
    assert found.memory_bytes == kept + 4 * (25_636_712 + 25_583_592)
    assert all(len(layer.variables) == 6 for layer in found.layers[:-1])  # kernel, bias, gamma, beta, two averages


def test_vectors_that_meet_no_layer_before_belong_to_the_one_that_they_feed():
    with tf.Graph().as_default():
        x, training = tf.placeholder(tf.float32, [8, 20]), tf.placeholder(tf.bool, [])
        hidden = tf.layers.dense(x * tf.get_variable("scale", [20]), 30, name="dense")
        loss = tf.reduce_mean(tf.layers.batch_normalization(hidden, training=training, name="norm"))
        found = Profile.from_graph(loss)
    (layer,) = found.layers  # in a cond both branches count, so the averages are read by one that x does not feed
    assert len(layer.variables) == 1 + 2 + 4


def test_a_network_of_vectors_is_one_layer():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [4])
        loss = tf.reduce_sum(x * tf.get_variable("w", [1]) + tf.get_variable("b", [1]))
        (layer,) = Profile.from_graph(loss).layers
    assert [v.name for v in layer.variables] == ["w", "b"]


def test_parts_of_a_variable_are_variables_of_one_layer():
    with tf.Graph().as_default():
        w = tf.get_variable("w", [20, 30], partitioner=tf.fixed_size_partitioner(3))
        loss = tf.reduce_sum(tf.matmul(tf.placeholder(tf.float32, [8, 20]), w))
        (layer,) = Profile.from_graph(loss).layers
    assert [v.bytes for v in layer.variables] == [4 * 7 * 30, 4 * 7 * 30, 4 * 6 * 30]
    assert kernels(layer.forward)["MatMul"] == 2 * 8 * 20 * 30


@pytest.mark.parametrize("resource", [False, True])
def test_inputs_out_of_a_queue_tell_the_batch(resource):
    with tf.Graph().as_default(), tf.variable_scope("net", use_resource=resource):
        x, y = tf.FIFOQueue(10, [tf.float32, tf.int32], [[20], []]).dequeue_many(16)
        logits = tf.layers.dense(x, 30)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        found = Profile.from_graph(loss)
    assert found.batch == 16
    assert found.with_batch(32).forward_flops == 2 * found.forward_flops


def test_a_given_training_step_is_the_one_that_is_priced():
    with tf.Graph().as_default():
        loss = small_net()
        plain = Profile.from_graph(loss)
        adam = Profile.from_graph(loss, tf.train.AdamOptimizer().minimize(loss, name="adam"))
    assert "ApplyAdam" in kernels(adam.layers[0].update)
    assert adam.backward_flops == plain.backward_flops and adam.forward_flops == plain.forward_flops


def test_an_update_is_with_its_variable_whatever_it_waits_for():
    with tf.Graph().as_default():
        loss = small_net()
        grads, clipped = tf.gradients(loss, tf.trainable_variables()), tf.trainable_variables()
        grads, _ = tf.clip_by_global_norm(grads, 1.0)
        step = tf.train.GradientDescentOptimizer(0.1).apply_gradients(zip(grads, clipped))
        found = Profile.from_graph(loss, step)
    updates = [kernels(layer.update)["ApplyGradientDescent"] for layer in found.layers]
    assert updates == [2 * (30 + 5), 2 * (15 + 3)]


@pytest.mark.parametrize("resource", [False, True])
def test_loops_in_loops_and_the_rows_that_they_read(resource):
    with tf.Graph().as_default(), tf.variable_scope("net", use_resource=resource):
        table, ids = tf.get_variable("table", [100, 8]), tf.placeholder(tf.int32, [4])

        def inner(i, total):
            return i + 1, total + tf.nn.embedding_lookup(table, ids)

        def outer(i, total):
            return i + 1, tf.while_loop(lambda i, _: i < 3, inner, [0, total])[1]

        loss = tf.reduce_sum(tf.while_loop(lambda i, _: i < 3, outer, [0, tf.zeros([4, 8])])[1])
        found = Profile.from_graph(loss, tf.no_op(), batch=4, loop_turns=3)
    (layer,) = found.layers
    assert [v.rows_bytes for v in layer.variables] == [9 * 4 * 8 * 4]
    assert {k.op: k.count for k in layer.forward if "Gather" in k.op} == {KIND[resource]: 9}


KIND = {False: "GatherV2", True: "ResourceGather"}


def test_a_loop_costs_its_turns():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2, 3])
        w = tf.get_variable("w", [3, 3])
        loop = tf.while_loop(lambda i, h: i < 7, lambda i, h: (i + 1, tf.matmul(h, w)), [0, x])
        loss = tf.reduce_sum(loop[1])
        step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        with pytest.raises(ValueError, match=r"in the loop '[^']*while[^']*'.*loop_turns=…"):
            Profile.from_graph(loss, step)
        found = Profile.from_graph(loss, step, loop_turns=7)
    products = [
        sum(k.count for k in phase if k.op == "MatMul") for phase in (found.layers[0].forward, found.layers[0].backward)
    ]
    assert products == [7, 2 * 7]
    longer = Profile.from_graph(loss, step, loop_turns=12)
    assert longer.layers[0].kept_bytes - found.layers[0].kept_bytes == (12 - 7) * 4 * 6  # h of each turn


def test_shapes_that_are_not_known_are_told_with_the_operation():
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [None, 6], name="x")
        loss = tf.reduce_sum(tf.layers.dense(x, 2, name="dense"))
        with pytest.raises(ValueError, match=r"dense/MatMul.*Give `batch`|batch=…"):
            Profile.from_graph(loss)
        assert Profile.from_graph(loss, batch=8).forward_flops >= 2 * 8 * 12


# ---- sums and laws ----


@pytest.mark.parametrize("name", CONVOLUTIONAL + OTHERS)
def test_variables_are_those_of_the_graph(name):
    model = models.get(name)(2, **SMALLER.get(name, {}))
    assert Profile.from_graph(model.loss).variable_bytes == 4 * model.parameters


@pytest.mark.parametrize("name", CONVOLUTIONAL)
def test_gradients_of_convolutions_take_twice_the_flops(name):
    found = profile(name)
    unread = found.layers[0].forward[0].flops  # the first gradient by the images
    assert found.layers[0].forward[0].op == "Conv2D"
    assert found.backward_flops + unread == pytest.approx(2 * found.forward_flops, rel=0.02)


@pytest.mark.parametrize("name", ["inception_v3", "resnet50", *OTHERS[1:]])  # sampled words don't grow with the batch
def test_another_batch_is_as_another_graph(name):
    grown, built = profile(name, 4).with_batch(12), profile(name, 12)
    assert grown.batch == built.batch == 12
    assert grown.forward_flops == pytest.approx(3 * profile(name, 4).forward_flops, rel=0.01)
    cuts = [sum(layer.output_bytes for layer in each.layers) for each in (grown, built)]
    assert cuts[0] == pytest.approx(cuts[1], rel=1e-3)
    for field in ("forward_flops", "backward_flops", "variable_bytes", "gradient_bytes", "memory_bytes"):
        assert getattr(grown, field) == pytest.approx(getattr(built, field), rel=1e-3), field
    assert sums(grown.times(K40)) == pytest.approx(sums(built.times(K40)), rel=1e-3)


def sums(times):
    return [sum(getattr(time, phase) for time in times) for phase in PHASES]


def test_times_are_those_of_a_step_in_virtual_time():
    """Kernel by kernel the same as the virtual runner's, which prices real arrays."""
    model = models.get("mlp")(64, device="/job:worker/task:0/gpu:0", hidden=(300, 200))
    step = model.train_op()
    feeds = {x: np.zeros(x.shape.as_list(), x.dtype.as_numpy_dtype) for x in model.inputs}
    cluster = tf.Cluster(worker=1, gpu="K40", gpus=1, clock="virtual", seed=1)
    with cluster, model.graph.as_default(), tf.Session(cluster.target, config=SOFT) as session:
        session.run(tf.global_variables_initializer())
        session.run([model.loss, step], feeds)
        lines = cluster.log().lines
    ran = [line for line in lines if line.step == lines[-1].step and "GPU" in line.where and not line.target]
    found = Profile.from_graph(model.loss, step)
    assert sum(sums(found.times(K40))) == pytest.approx(sum(line.ended - line.started for line in ran), rel=1e-9)
    counts = [kernel.count for layer in found.layers for phase in PHASES for kernel in getattr(layer, phase)]
    assert sum(counts) == len(ran)


@pytest.mark.parametrize("name", ["resnet50", "vgg16", "ranker"])
def test_times_are_those_of_the_schedule(name):
    """The schedule's times are those that a placer adds up for the same step."""
    model = models.get(name)(4)
    step = model.train_op()
    nodes = by_name(op.node() for op in model.graph.get_operations())
    work = Workload(prune(nodes, [], [model.loss.name], [step.name], ""))
    machines = machines_for({"/job:worker/task:0": "host"}, gpus=1, gpu="K40")
    scheduled = work.seconds(machines, "/job:worker/replica:0/task:0/device:GPU:0")
    assert sum(sums(Profile.from_graph(model.loss, step).times(K40))) == pytest.approx(sum(scheduled), rel=1e-9)


SOFT = tf.ConfigProto(allow_soft_placement=True)
PHASES = ("forward", "backward", "update")


def test_a_measured_rate_scales_the_times():
    found = profile("vgg16", 32)
    bare, scaled = found.times(K40), found.scaled(single_device_rate=20.0).times(K40)
    assert sum(t.forward + t.backward for t in scaled) == pytest.approx(32 / 20)
    factor = scaled[3].forward / bare[3].forward
    assert [t.backward for t in scaled] == pytest.approx([t.backward * factor for t in bare])
    assert [t.update for t in scaled] == [t.update for t in bare]


def test_without_a_processor_flops_share_out_a_measured_step():
    found = profile("alexnet", 8).scaled(80)
    first = found.times()[0]
    share = sum(kernels(found.layers[0].forward).values()) / (found.forward_flops + found.backward_flops)
    assert first.forward == pytest.approx(0.1 * share)
    assert found.with_batch(16).step_seconds == pytest.approx(0.2)


def test_without_a_processor_or_a_rate_there_is_no_time():
    with pytest.raises(ValueError, match=r"Profile 'mlp': how long it takes depends on a processor"):
        profile("mlp").times()
    with pytest.raises(ValueError, match="A batch has at least one example, not 0"):
        profile("mlp").with_batch(0)
    with pytest.raises(ValueError, match="finite number of examples per second above 0, not 0"):
        profile("mlp").scaled(0)
    empty = Profile("empty", 1, (LayerCost("a", (), ()),)).scaled(1.0)
    with pytest.raises(ValueError, match="can't be shared out among layers without work"):
        empty.times(K40)


# ---- as text ----


def test_json_gives_the_same_profile():
    found = profile("ranker", rows=100).scaled(1000)
    assert Profile.from_json(found.to_json()) == found


def test_a_profile_is_printed_as_a_table():
    kernel = Kernel("MatMul", "float32", flops=2_000_000_000, bytes=8)
    layer = LayerCost(
        "fc", (kernel,), (dataclasses.replace(kernel, count=2),), (), (VariableCost("w", 4_000_000),), 8_000
    )
    assert str(Profile("net", 4, (layer,))).splitlines() == [
        "<Profile 'net': 1 layer, 1 variable of 4.0 MB, batch of 4, 500 Mflop forward per example>",
        "layer  forward Mflop  backward Mflop  variables MB  output MB  kept MB",
        "fc              2000            4000           4.0  0.008          0.0",
        "sum             2000            4000           4.0                 0.0",
    ]


# ---- out of a few numbers ----


@pytest.mark.parametrize("name", ["alexnet", "googlenet", "inception_v3", "resnet50", "resnet152", "vgg16"])
def test_a_table_fits_its_numbers_and_looks_like_the_real_network(name):
    real = profile(name, 1)
    params, macs = real.variable_bytes // 4, real.forward_flops / 2
    largest = max(v.bytes for v in real.variables)
    made = Profile.from_table(params, largest / 1e6, macs / 1e9, name=name)
    assert made.variable_bytes == 4 * params
    assert max(layer.variable_bytes for layer in made.layers) == pytest.approx(largest, rel=0.001)
    assert made.forward_flops == pytest.approx(2 * macs, rel=0.001)
    assert made.backward_flops == 2 * made.forward_flops
    assert abs(late(made) - late(real)) < 0.19


def late(found):
    """The share of variables whose gradients are there after a quarter of the way back."""
    done, share = 0, 0
    for layer in reversed(found.layers):
        share += layer.variable_bytes if done < found.backward_flops / 4 else 0
        done += sum(kernels(layer.backward).values())
    return share / found.variable_bytes


def test_a_large_layer_of_a_table_is_dense_and_has_little_to_compute():
    made = Profile.from_table(params=138e6, largest_variable_MB=411, gmac_per_image=15.5, batch=2)
    assert [layer.forward[0].op for layer in made.layers] == ["Conv2D"] * 6 + ["MatMul"] * 2
    assert made.layers[-1].forward[0].flops == 2 * 2 * made.layers[-1].variable_bytes // 4


@pytest.mark.parametrize("attention", [None, "standard", "gnmt"])
def test_a_table_of_words_is_the_graph_in_closed_form(attention):
    made = Profile.from_table(layers=3, units=256, vocab=4000, attention=attention, steps=6, batch=4)
    options = {"layers": 3, "units": 256, "vocabulary": 4000, "attention": attention, "steps": 6}
    real = profile("seq2seq", 4, **options)
    assert made.variable_bytes == real.variable_bytes
    assert sorted(layer.variable_bytes for layer in made.layers) == sorted(
        layer.variable_bytes for layer in real.layers
    )
    assert made.gradient_bytes == real.gradient_bytes
    assert made.forward_flops == pytest.approx(real.forward_flops, rel=0.02)
    assert made.backward_flops == pytest.approx(real.backward_flops, rel=0.05)


def test_a_table_of_words_can_be_fitted_to_a_published_sum():
    made = Profile.from_table(params=160e6, layers=4, units=1024, vocab=32000, attention="gnmt")
    assert made.variable_bytes == pytest.approx(4 * 160e6, rel=1e-6)


def test_a_table_that_says_too_little_is_refused():
    with pytest.raises(ValueError, match="Model 'nin': params, largest_variable_MB and gmac_per_image"):
        Profile.from_table(params=7.6e6, gmac_per_image=1.1, name="nin")
    with pytest.raises(ValueError, match="largest variable, 2,500,000 numbers, is more than all 1,000,000"):
        Profile.from_table(params=1e6, largest_variable_MB=10, gmac_per_image=1)
    with pytest.raises(ValueError, match="not 'top'"):
        Profile.from_table(layers=1, units=8, vocab=10, attention="top")
