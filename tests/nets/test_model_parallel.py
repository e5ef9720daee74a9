"""Layers and nets over several devices give the values and gradients of those on one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dtflab as tf
from dtflab import model_parallel

CPUS = [f"/cpu:{i}" for i in range(4)]
CONFIG = tf.ConfigProto(device_count={"CPU": 5})
RANDOM = np.random.default_rng(5)
Net = Callable[[Any], Any]


def run(net: Net, inputs: np.ndarray, folder: Any, restore: bool) -> tuple[dict[str, Any], set[str]]:
    """Outputs of a net, its gradients by inputs and variables, and the devices of its products.

    The variables are random and saved, or those that were saved before, whatever parts they had.
    """
    with tf.Graph().as_default() as graph, tf.device("/cpu:4"):
        x = tf.placeholder(tf.float64, inputs.shape)
        y = net(x)
        direction = np.random.default_rng(1).normal(size=y.shape.as_list())
        variables = tf.trainable_variables()
        grads = tf.gradients(y, [x, *variables], tf.constant(direction))
        saver = tf.train.Saver()
        with tf.Session(config=CONFIG) as session:
            if restore:
                saver.restore(session, str(folder / "net"))
            else:
                session.run([v.assign(RANDOM.normal(size=v.shape.as_list())) for v in variables])
                saver.save(session, str(folder / "net"))
            values, dx, *dvs = session.run([y, *grads], {x: inputs})
    found = {"y": values, "x": dx} | whole([v.op.name for v in variables], dvs)
    busy = {op.device for op in graph.get_operations() if op.type in ("MatMul", "Conv2D")}
    return found, busy


def whole(names: list[str], grads: list[np.ndarray]) -> dict[str, Any]:
    """The gradient of each variable, put together from those of its parts."""
    parts: dict[str, list[np.ndarray]] = {}
    for name, grad in zip(names, grads, strict=True):
        parts.setdefault(name.partition("/part_")[0], []).append(grad)
    axis = {1: 0, 2: 1, 4: 3}
    together = {}
    for name, found in parts.items():
        by_rows = found[0].ndim == 2 and len({p.shape[1] for p in found}) == 1 and "rows" in name
        together[name] = np.concatenate(found, 0 if by_rows else axis[found[0].ndim])
    return together


def compare(unsplit: Net, split: Net, inputs: np.ndarray, folder: Any, devices: list[str]) -> None:
    want, _ = run(unsplit, inputs, folder, restore=False)
    got, busy = run(split, inputs, folder, restore=True)
    assert got.keys() == want.keys()
    for name, value in want.items():
        np.testing.assert_allclose(got[name], value, rtol=1e-9, atol=1e-12, err_msg=name)
    assert busy >= {f"/device:CPU:{d[-1]}" for d in devices}, "each device multiplies"


def dense(name: str, units: int, activation: Any = None) -> Net:
    def layer(x: Any) -> Any:
        with tf.variable_scope(name):
            kernel = tf.get_variable("kernel", [x.shape[1], units], x.dtype)
            y = tf.nn.bias_add(tf.matmul(x, kernel), tf.get_variable("bias", [units], x.dtype))
        return y if activation is None else activation(y)

    return layer


@pytest.mark.parametrize("by", ["columns", "rows"])
@pytest.mark.parametrize("count", [1, 2, 3])  # 7 can't be cut evenly
def test_dense(tmp_path, by, count):
    devices, name = CPUS[:count], f"layer_by_{by}"
    compare(
        dense(name, 7, tf.nn.relu),
        lambda x: model_parallel.dense(x, 7, devices, by, tf.nn.relu, name=name),
        RANDOM.normal(size=(5, 10)),
        tmp_path,
        devices,
    )


def conv(filters: int, size: tuple[int, int], strides: tuple[int, int], padding: str) -> Net:
    def layer(x: Any) -> Any:
        with tf.variable_scope("conv2d"):
            kernel = tf.get_variable("kernel", [*size, x.shape[3], filters], x.dtype)
            y = tf.nn.conv2d(x, kernel, [1, *strides, 1], padding)
            return tf.nn.bias_add(y, tf.get_variable("bias", [filters], x.dtype))

    return layer


@pytest.mark.parametrize(
    ("kind", "by"), [("dense", "columns"), ("dense", "rows"), ("conv2d", "channels"), ("conv2d", "rows")]
)
def test_without_a_bias_and_with_a_regularizer_as_in_tf_layers(kind, by):
    inputs = RANDOM.normal(size=(2, 6) if kind == "dense" else (2, 6, 5, 3))
    size = () if kind == "dense" else (3,)
    how = {"use_bias": False, "kernel_initializer": tf.ones_initializer(), "name": "layer",
           "kernel_regularizer": lambda kernel: 0.5 * tf.reduce_sum(kernel * kernel)}  # fmt: skip
    found = []
    for split in (False, True):
        with tf.Graph().as_default(), tf.Session(config=CONFIG) as session:
            layer = getattr(model_parallel if split else tf.layers, kind)
            y = layer(tf.constant(inputs), 4, *size, *[CPUS[:2], by] * split, **how)
            assert {v.op.name.partition("/part_")[0] for v in tf.global_variables()} == {"layer/kernel"}
            losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
            session.run(tf.global_variables_initializer())
            found.append(session.run([y, tf.add_n(losses)]))
    for got, want in zip(*found, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("by", ["channels", "rows"])
@pytest.mark.parametrize(
    ("height", "size", "strides", "padding", "count"),
    [
        (9, (3, 3), (1, 1), "SAME", 2),
        (9, (3, 3), (1, 1), "VALID", 3),
        (10, (5, 3), (2, 1), "SAME", 3),
        (11, (4, 2), (3, 2), "VALID", 2),
        (8, (1, 1), (2, 2), "SAME", 4),
        (7, (5, 5), (1, 1), "SAME", 4),  # the border is wider than what a device makes
    ],
)
def test_conv2d(tmp_path, by, height, size, strides, padding, count):
    devices = CPUS[:count]
    compare(
        conv(5, size, strides, padding),
        lambda x: model_parallel.conv2d(x, 5, size, devices, by, strides, padding),
        RANDOM.normal(size=(2, height, 8, 3)),
        tmp_path,
        devices,
    )


def test_only_the_rows_that_a_device_needs_are_sent():
    images, devices = tf.placeholder(tf.float32, [1, 10, 4, 1]), CPUS[:2]
    model_parallel.conv2d(images, 2, 3, devices, "rows", padding="SAME")
    slices = [op.outputs[0].shape.as_list()[1] for op in tf.get_default_graph().get_operations()
              if op.type == "StridedSlice"]  # fmt: skip
    assert slices == [6, 6], "half of ten rows, and one of the neighbour's"


def test_a_recurrent_net_by_layers(tmp_path):
    def net(devices: list[str]) -> Net:
        def layers(x: Any) -> Any:
            cells = [tf.nn.rnn_cell.BasicLSTMCell(4) for _ in range(3)]
            cell = model_parallel.rnn_layers(cells, devices) if devices else tf.nn.rnn_cell.MultiRNNCell(cells)
            outputs, _ = tf.nn.dynamic_rnn(cell, x, dtype=x.dtype)
            return outputs

        return layers

    compare(net([]), net(CPUS[:3]), RANDOM.normal(size=(2, 5, 3)), tmp_path, CPUS[:3])


@pytest.mark.parametrize("micro_batches", [1, 2, 4])
def test_a_pipeline(tmp_path, micro_batches):
    layers = [dense("a", 6, tf.tanh), dense("b", 5, tf.tanh), dense("c", 2)]

    def unsplit(x: Any) -> Any:
        for k, layer in enumerate(layers):
            with tf.variable_scope(f"stage_{k}"):
                x = layer(x)
        return x

    def pipelined(x: Any) -> Any:
        return tf.concat(model_parallel.pipeline(layers, x, CPUS[:3], micro_batches), 0)

    compare(unsplit, pipelined, RANDOM.normal(size=(8, 3)), tmp_path, CPUS[:3])


def test_a_pipeline_trains_as_the_batch_does():
    """The mean of the micro-batches' losses is the loss of the batch; structures go from stage to stage."""

    def first(given: Any) -> Any:
        x, labels = given["x"], given["labels"]
        return {"h": tf.layers.dense(x, 6, tf.tanh, name="h"), "labels": labels}

    def last(given: Any) -> Any:
        logits = tf.layers.dense(given["h"], 3, name="logits")
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=given["labels"], logits=logits))

    x, labels = RANDOM.normal(size=(12, 4)).astype(np.float32), RANDOM.integers(0, 3, 12)

    def train(micro_batches: int) -> list[float]:
        with tf.Graph().as_default():
            tf.set_random_seed(3)
            inputs = {"x": tf.constant(x), "labels": tf.constant(labels)}
            losses = model_parallel.pipeline([first, last], inputs, CPUS[:2], micro_batches)
            loss = tf.add_n(losses) / micro_batches
            optimizer = tf.train.GradientDescentOptimizer(0.5)
            step = optimizer.minimize(loss, colocate_gradients_with_ops=True)
            with tf.Session(config=CONFIG) as session:
                session.run(tf.global_variables_initializer())
                return [session.run([loss, step])[0] for _ in range(5)]

    whole_batch = train(1)
    np.testing.assert_allclose(train(3), whole_batch, rtol=1e-5)
    assert whole_batch[-1] < whole_batch[0]


def test_a_device_takes_the_micro_batches_in_their_order():
    values = model_parallel.pipeline([tf.negative, tf.negative], tf.zeros([6, 2]), CPUS[:2], 3)
    first = [tensor.op.inputs[0].op for tensor in values]
    assert [op.device for op in first] == ["/device:CPU:0"] * 3
    assert [[c.name for c in op.control_inputs] for op in first] == [[], [first[0].name], [first[1].name]]


def test_layers_without_names_have_those_of_tf_layers():
    with tf.Graph().as_default():
        x = tf.zeros([2, 4, 4, 3])
        for _ in range(2):
            model_parallel.dense(tf.layers.flatten(model_parallel.conv2d(x, 4, 3, CPUS[:2])), 4, CPUS[:2], "rows")
        split = {v.op.name.partition("/part_")[0] for v in tf.trainable_variables()}
    with tf.Graph().as_default():
        x = tf.zeros([2, 4, 4, 3])
        for _ in range(2):
            tf.layers.dense(tf.layers.flatten(tf.layers.conv2d(x, 4, 3)), 4)
        assert split == {v.op.name for v in tf.trainable_variables()}


def test_a_device_function_places_variables_and_products():
    def second(op: Any) -> str:
        return "/device:CPU:1"

    with tf.Graph().as_default() as graph:
        model_parallel.dense(tf.zeros([2, 3]), 4, [second, "/device:CPU:2"])
        devices = [v.device for v in tf.trainable_variables()]
    products = [op.device for op in graph.get_operations() if op.type == "MatMul"]
    assert (devices, products) == (["/device:CPU:1", "/device:CPU:2"] * 2, ["/device:CPU:1", "/device:CPU:2"])


def test_what_has_the_wrong_type_is_refused():
    x = tf.zeros([2, 3])
    for make in (
        lambda: model_parallel.dense(x, 4, "/cpu:0"),
        lambda: model_parallel.conv2d(tf.zeros([1, 4, 4, 1]), 4, 3, "/cpu:0", "rows"),
        lambda: model_parallel.rnn_layers([], "/cpu:0"),
        lambda: model_parallel.pipeline([], x, "/cpu:0", 2),
    ):
        with pytest.raises(ValueError, match="devices must be a list with a device for each part, not '/cpu:0'"):
            make()
    with pytest.raises(TypeError, match="dense: the inputs must be floating-point numbers, not int32"):
        model_parallel.dense(tf.zeros([2, 3], tf.int32), 4, CPUS[:2])
    with pytest.raises(TypeError, match="pipeline: stage 0 must return tensors, not None"):
        model_parallel.pipeline([lambda x: None], x, CPUS[:1], 2)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda x, im: model_parallel.dense(x, 2, CPUS[:3]), "dense: 2 units can't be cut over 3 devices"),
        (lambda x, im: model_parallel.dense(x, 9, CPUS, "rows"), "dense: 3 inputs can't be cut over 4 devices"),
        (lambda x, im: model_parallel.dense(x, 9, []), "over 0 devices"),
        (lambda x, im: model_parallel.dense(x, 9, CPUS, "layers"), "by must be 'columns' or 'rows', not 'layers'"),
        (
            lambda x, im: model_parallel.conv2d(im, 9, 3, CPUS, "columns"),
            "by must be 'channels' or 'rows', not 'columns'",
        ),
        (lambda x, im: model_parallel.conv2d(im, 9, 3, CPUS, "rows"), "2 rows of results can't be cut over 4 devices"),
        (lambda x, im: model_parallel.conv2d(im, 1, 3, CPUS), "1 filters can't be cut over 4 devices"),
        (lambda x, im: model_parallel.conv2d(im, 9, 3, CPUS[:1], "rows", padding="FULL"), "must be 'SAME' or 'VALID'"),
        (lambda x, im: model_parallel.rnn_layers([1, 2], CPUS), "2 layers and 4 devices"),
        (lambda x, im: model_parallel.pipeline([tf.negative], x, CPUS, 2), "1 stages and 4 devices"),
        (
            lambda x, im: model_parallel.pipeline([tf.negative], tf.zeros([33, 2]), CPUS[:1], 4),
            "a batch of 33 can't be cut",
        ),
        (lambda x, im: model_parallel.pipeline([tf.negative], x, CPUS[:1], 0), "an integer of 1 or more, not 0"),
        (lambda x, im: model_parallel.pipeline([tf.negative], x, CPUS[:1], 2.0), "an integer of 1 or more, not 2.0"),
        (lambda x, im: model_parallel.pipeline([], x, [], 2), "the list of stages is empty"),
        (lambda x, im: model_parallel.conv2d(im, 9, [3, 3, 3], CPUS), r"kernel_size must be .* not \[3, 3, 3\]"),
        (lambda x, im: model_parallel.conv2d(im, 9, 0, CPUS), "kernel_size must be .* not 0"),
        (lambda x, im: model_parallel.conv2d(im, 9, 3, CPUS, strides=0), "strides must be a whole number, 1 or more"),
        (lambda x, im: model_parallel.conv2d(im, 9, 3, CPUS, "rows", strides=(1, 0)), r"strides must .* not \(1, 0\)"),
        (lambda x, im: model_parallel.conv2d(im, 9, 2.5, CPUS), "kernel_size must be .* not 2.5"),
    ],
)
def test_what_can_t_be_split_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make(tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None, 4, 4, 1]))


def test_on_the_tasks_of_a_cluster(tmp_path):
    """A conv net whose convolution is cut over two workers by rows and whose dense layer is cut by columns."""
    workers = ["/job:worker/task:0", "/job:worker/task:1"]

    def logits(images: Any, devices: list[str]) -> Any:
        maps = model_parallel.conv2d(images, 4, 3, devices, "rows", padding="SAME", activation=tf.nn.relu)
        flat = tf.reshape(maps, [2, 6 * 6 * 4])
        return model_parallel.dense(flat, 3, devices)

    images = RANDOM.normal(size=(2, 6, 6, 1)).astype(np.float32)
    found = []
    for devices in (workers[:1], workers):
        with tf.Cluster(worker=2) as cluster, tf.Graph().as_default():
            y = logits(tf.constant(images), devices)
            saver, grads = tf.train.Saver(), tf.gradients(y, tf.trainable_variables()[:1])
            with tf.Session(cluster.target) as session:
                if found:
                    saver.restore(session, str(tmp_path / "net"))
                else:
                    session.run(tf.global_variables_initializer())
                    saver.save(session, str(tmp_path / "net"))
                found.append(session.run([y, *grads]))
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-5, atol=1e-6)
