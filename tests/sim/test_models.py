"""Networks as graphs: the counts that were published, the layers of Keras, and graphs whose shapes are all known."""

from __future__ import annotations

import functools
import math

import pytest

import dtflab as tf
from dtflab.graph.node import by_name
from dtflab.graph.node_shapes import shapes_of
from dtflab.hardware.machines import machines_for
from dtflab.hardware.schedule import simulate
from dtflab.hardware.workload import tasks_of
from dtflab.runtime.placer import place
from dtflab.runtime.prune import prune
from dtflab.sim import models

# Keras counts (moving averages included) and, without batch normalization, Caffe's and torchvision's.
PARAMETERS = {
    "alexnet": 61_100_840,
    "googlenet": 6_998_552,
    "inception_v3": 23_851_784,
    "inception_v3_aux": 27_179_376,
    "resnet50": 25_636_712,
    "resnet101": 44_707_176,
    "resnet152": 60_419_944,
    "resnet50_v1.5": 25_636_712,
    "resnet101_v1.5": 44_707_176,
    "resnet152_v1.5": 60_419_944,
    "vgg16": 138_357_544,
    "vgg19": 143_667_240,
    "mlp": 784 * 100 + 100 + 100 * 10 + 10,
    "ranker": 8 * 64_000_000 + 512 * 1024 + 1024 + 1024 * 512 + 512 + 512 * 256 + 256 + 257,
}

# Multiply-adds per image in G: the papers' tables (ResNet: 3.8, 7.6, 11.3), and what is quoted of v1.5 and the others.
GMACS = {
    "alexnet": 0.72,
    "googlenet": 1.58,
    "inception_v3": 5.7,
    "resnet50": 3.86,
    "resnet101": 7.6,
    "resnet152": 11.3,
    "resnet50_v1.5": 4.1,
    "resnet101_v1.5": 7.8,
    "resnet152_v1.5": 11.5,
    "vgg16": 15.5,
    "vgg19": 19.6,
}


@functools.cache
def model_of_two(name):
    """The network for a batch of two; tests only look at it."""
    return models.get(name)(batch=2)


def macs_per_example(model):
    """Multiply-adds of convolutions and matrix products, counted here from shapes alone."""
    total = 0
    for op in model.graph.get_operations():
        if op.type == "Conv2D":
            total += math.prod(op.outputs[0].shape.as_list()) * math.prod(op.inputs[1].shape.as_list()[:3])
        if op.type == "MatMul":
            total += math.prod(op.outputs[0].shape.as_list()) * op.inputs[0].shape.as_list()[1]
    return total / model.batch


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_are_the_published_ones(name):
    assert model_of_two(name).parameters == PARAMETERS[name]


@pytest.mark.parametrize("name", GMACS)
def test_multiply_adds_are_the_published_ones(name):
    assert macs_per_example(model_of_two(name)) / 1e9 == pytest.approx(GMACS[name], rel=0.013)


@pytest.mark.parametrize("name", models.names())
def test_a_training_step_has_known_shapes_and_updates_all_that_can_be_trained(name):
    model = models.get(name)(batch=4)
    run = reached_from(model.train_op())
    assert [op.name for op in run if not all(shape.is_fully_defined() for shape in shapes_of(op))] == []
    assert all(tensor.shape[0] == 4 for tensor in model.inputs)
    updated = {op.inputs[0].op for op in run if op.type in ("ApplyGradientDescent", "ScatterSub")}
    assert updated == {v.op for v in trainable(model)}


def test_a_training_step_moves_the_averages_of_batch_normalization():
    model = models.get("resnet50")(batch=1)
    moved = {op.inputs[0].op.name for op in reached_from(model.train_op()) if op.type == "AssignSub"}
    assert {v.op.name for v in model.variables} - {v.op.name for v in trainable(model)} == moved != set()


def reached_from(op):
    """All that runs when `op` does."""
    reached, queue = set(), [op]
    while queue:
        op = queue.pop()
        if op not in reached:
            reached.add(op)
            queue += [tensor.op for tensor in op.inputs] + op.control_inputs
    return reached


def trainable(model):
    return model.graph.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES)


@pytest.mark.parametrize(
    ("attention", "bottom", "upper", "more"),
    [(None, 2, 2, 0), ("standard", 3, 2, 8 * 8 + 16 * 8), ("gnmt", 3, 3, 8 * 8)],
)
def test_parameters_of_seq2seq(attention, bottom, upper, more):
    """Two embeddings, a projection, LSTMs whose kernels are (inputs + units) × 4 units, and what attention adds."""
    units, words, layers = 8, 100, 3
    model = models.get("seq2seq")(2, layers=layers, units=units, vocabulary=words, attention=attention, steps=4)
    lstms = 2 * layers + bottom + upper * (layers - 1)  # input widths, in units; a bias is a row
    assert model.parameters == 3 * words * units + (lstms * units + 2 * layers) * 4 * units + more


@pytest.mark.parametrize(("attention", "chain"), [(None, 4 + 6 - 1), ("standard", 4 * 6), ("gnmt", 4 + 6 - 1)])
def test_with_standard_attention_a_word_waits_for_all_layers_of_the_word_before(attention, chain):
    """The longest chain of LSTMs in the decoder: along one layer and one word, or through all layers at all words."""
    model = models.get("seq2seq")(2, layers=4, units=8, vocabulary=20, attention=attention, steps=6)
    longest = {}
    for op in model.graph.get_operations():
        here = op.type == "MatMul" and op.name.startswith("decoder/") and "lstm" in op.name
        longest[op] = here + max((longest[tensor.op] for tensor in op.inputs), default=0)
    assert longest[model.loss.op] == chain


def test_upper_layers_see_what_the_bottom_one_asked_for_a_word_before():
    model = models.get("seq2seq_gnmt")(2, layers=2, units=8, vocabulary=20, steps=3)
    upper = "decoder/rnn/rnn/bottom_attention_cell/cell_1/lstm_cell/MatMul"
    products = [op for op in model.graph.get_operations() if op.type == "MatMul" and op.name.startswith(upper)]
    asked = [sum(op.type == "Softmax" for op in reached_from(product)) for product in products]
    assert asked == [0, 1, 2]


def test_layers_of_seq2seq_on_devices_of_their_own():
    places = [f"/device:GPU:{i}" for i in range(2)]
    model = models.get("seq2seq_gnmt")(2, layers=2, units=8, vocabulary=20, steps=3, devices=places)
    products = [op for op in model.graph.get_operations() if op.type == "MatMul" and "lstm" in op.name]
    assert {(op.device, "cell_1" in op.name) for op in products} == {(places[0], False), (places[1], True)}
    with pytest.raises(ValueError, match="4 layers on 2 devices"):
        models.get("seq2seq")(2, devices=places)
    with pytest.raises(ValueError, match=r"attention must be one of .*'gnmt'.*, not 'top'"):
        models.get("seq2seq")(2, attention="top")


def makespan(attention, devices):
    """The makespan of a training step whose layers are on devices of their own, the rest on the last of them."""
    model = models.get("seq2seq")(
        32, layers=4, units=512, vocabulary=1000, attention=attention, steps=6, devices=devices, device=devices[-1]
    )
    with model.graph.as_default():
        step = tf.train.GradientDescentOptimizer(0.1).minimize(model.loss, colocate_gradients_with_ops=True)
    machines = machines_for({"/job:worker/task:0": "host"}, gpus=4, gpu="K40")
    nodes = by_name(op.node() for op in model.graph.get_operations())
    where = place(list(nodes.values()), list(machines.devices), TASK, allow_soft_placement=True)
    placed = {name: node.replace(device=where[name]) for name, node in nodes.items()}
    return simulate(tasks_of(prune(placed, [], [], [step.name], where[step.name]), machines), machines).makespan


TASK = "/job:worker/replica:0/task:0"
FOUR = [f"{TASK}/device:GPU:{i}" for i in range(4)]


def test_four_devices_help_less_where_the_top_layer_asks():
    """By the graph alone: layers work next to each other unless each word's bottom layer waits for the top one."""
    speedups = {kind: makespan(kind, FOUR[:1] * 4) / makespan(kind, FOUR) for kind in (None, "standard", "gnmt")}
    assert speedups["standard"] < 1.6 < 2.2 < min(speedups["gnmt"], speedups[None])


def test_a_sampled_softmax_leaves_most_of_the_matrix_alone():
    full, sampled = (models.get("language_model")(4, vocabulary=1000, steps=3, sampled=n) for n in (None, 10))
    assert full.parameters == sampled.parameters == 2 * 1000 * 512 + 1000 + 2 * (1024 * 2048 + 2048)
    assert isinstance(gradients(full)["softmax/weights"], tf.Tensor)
    assert gradients(sampled)["softmax/weights"].values.shape.as_list() == [4 * 3 + 10, 512]


def gradients(model):
    found = tf.gradients(model.loss, trainable(model))
    return {v.op.name: grad for v, grad in zip(trainable(model), found, strict=True)}


def test_gradients_of_the_rankers_tables_are_rows():
    model = models.get("ranker")(4, tables=2, rows=1000, depth=16)
    sparse = {name: grad for name, grad in gradients(model).items() if isinstance(grad, tf.IndexedSlices)}
    rows = {name: grad.values.shape.as_list() for name, grad in sparse.items()}
    assert rows == {f"embedding_{i}/weights": [4 * 10, 16] for i in range(2)}


def test_a_users_own_network_is_a_function_that_returns_its_loss():
    def net(batch, units=3):
        x = tf.placeholder(tf.float32, [batch, 5])
        return tf.reduce_mean(tf.square(tf.layers.dense(x, units)))

    model = models.build(net, batch=7, units=4, device="/gpu:0")
    assert (model.name, model.batch, model.parameters) == ("net", 7, 5 * 4 + 4)
    assert [tensor.shape.as_list() for tensor in model.inputs] == [[7, 5]]
    assert model.loss.device == "/device:GPU:0"
    assert repr(model) == "<Model 'net': 24 parameters, batch of 7>"


def test_what_is_no_network_is_told_so():
    with pytest.raises(ValueError, match=r"no model 'resnet51'. Known are alexnet, .*resnet50"):
        models.get("resnet51")
    with pytest.raises(ValueError, match="VGG has 16 or 19 layers with weights, not 17"):
        models.get("vgg16")(1, depth=17)
    with pytest.raises(ValueError, match="ResNet has 50, 101 or 152 layers"):
        models.get("resnet50")(1, stride_in=2)
    with pytest.raises(ValueError, match="A batch has at least one example, not 0"):
        models.get("mlp")(0)
    with pytest.raises(ValueError, match="Model 'pair': the function must return its loss, a scalar tensor"):
        models.build(lambda batch: tf.zeros([batch]), batch=2, name="pair")
