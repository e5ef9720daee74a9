"""The book's kind of programs: a convolutional and a recurrent net learn the digits, on one task and split over two."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dtflab as tf
from dtflab import model_parallel
from dtflab.datasets import digits

WORKERS = [f"/job:worker/task:{task}" for task in range(3)]
BATCH = 50
# Colocated gradients of a loop over two devices need it, in TensorFlow, too.
SOFT = tf.ConfigProto(allow_soft_placement=True)
Net = Callable[[Any, list[str]], Any]


def convolutional(images: Any, devices: list[str]) -> Any:
    """Two convolutions with pooling and two dense layers; the first is cut by image rows, the next by filters."""
    x = tf.reshape(images, [-1, 8, 8, 1])
    x = model_parallel.conv2d(x, 16, 3, devices, "rows", padding="SAME", activation=tf.nn.relu, name="conv1")
    x = tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    x = model_parallel.conv2d(x, 32, 3, devices, "channels", padding="SAME", activation=tf.nn.relu, name="conv2")
    x = tf.layers.flatten(tf.nn.max_pool(x, [1, 2, 2, 1], [1, 2, 2, 1], "SAME"))
    x = model_parallel.dense(x, 64, devices, "columns", tf.nn.relu, name="hidden")
    return model_parallel.dense(x, 10, devices, "rows", name="logits")


def recurrent(images: Any, devices: list[str]) -> Any:
    """An image is read row by row by two layers of LSTM, each on its device."""
    cells = [tf.nn.rnn_cell.BasicLSTMCell(64) for _ in range(2)]
    layers = model_parallel.rnn_layers(cells, [devices[0], devices[-1]])
    outputs, _ = tf.nn.dynamic_rnn(layers, tf.reshape(images, [-1, 8, 8]), dtype=images.dtype)
    return tf.layers.dense(outputs[:, -1], 10, name="logits")


Trained = tuple[np.ndarray, float, set[str]]


def train(
    net: Net, devices: list[str], rate: float, folder: Any, dtype: Any = tf.float32, follow: bool = False, ulps: int = 0
) -> Trained:
    """The losses of 400 steps, the accuracy on the test digits at the end, and the devices that multiplied.

    The first training saves its weights before each step in `folder`, the recurrent one before the first alone. The
    next one begins with the same, and if it is to `follow`, each of its steps does. `ulps` is by how many units in the
    last place the pixels of the batches are too large.
    """
    data, steps = digits(), 400
    with tf.Cluster(worker=3) as cluster, tf.Graph().as_default():
        tf.set_random_seed(7)
        images, labels = tf.placeholder(dtype, [None, 64]), tf.placeholder(tf.int64, [None])
        logits = net(images, devices)
        # tf.losses would round the losses to float32, whatever they are computed in.
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32))
        weights = tf.trainable_variables()
        # Slower and slower: else the last few batches, and what another CPU rounds otherwise, move the accuracy.
        done = tf.train.get_or_create_global_step()
        adam = tf.train.AdamOptimizer(tf.train.polynomial_decay(rate, done, steps, rate / 10))
        step = adam.minimize(loss, done, colocate_gradients_with_ops=True)
        saver, losses, traced = tf.train.Saver(weights, max_to_keep=None), [], tf.RunMetadata()
        first = not any(folder.iterdir())
        with tf.Session(cluster.target, config=SOFT) as session:
            session.run(tf.global_variables_initializer())
            for number in range(steps):
                if first and (number == 0 or net is convolutional):
                    saver.save(session, str(folder / f"{number}"), write_meta_graph=False, write_state=False)
                elif number == 0 or follow:
                    saver.restore(session, str(folder / f"{number}"))
                pixels, digit = data.train.next_batch(BATCH)
                pixels = pixels.astype(dtype.as_numpy_dtype)
                pixels += ulps * np.spacing(pixels) * (pixels > 0)
                losses.append(session.run([loss, step], {images: pixels, labels: digit})[0])
            test = {images: data.test.images, labels: data.test.labels}
            score = session.run(accuracy, test, tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), traced)
    return np.array(losses), float(score), _busy(traced)


def _busy(traced: Any) -> set[str]:
    """The tasks that computed products or convolutions."""
    return {
        device.device.replace("/replica:0", "").partition("/device")[0]
        for device in traced.step_stats.dev_stats
        if any("= MatMul(" in node.timeline_label or "= Conv2D(" in node.timeline_label for node in device.node_stats)
    }


Training = Callable[..., Trained]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Training:
    """`train`, run once for equal arguments, the whole net first; equal nets of equal dtypes share a folder."""
    folders = functools.cache(lambda *shared: tmp_path_factory.mktemp("weights"))

    @functools.cache
    def once(net: Net, parts: int, rate: float, dtype: Any = tf.float32, **how: Any) -> Trained:
        return train(net, WORKERS[:parts], rate, folders(net, dtype), dtype, **how)

    return once


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("net", "rate", "bar"), [(convolutional, 0.003, 0.97), (recurrent, 0.02, 0.95)])
def test_digits(trained, net, rate, bar):
    one, accuracy, busy = trained(net, 1, rate)
    assert accuracy >= bar and busy == set(WORKERS[:1])
    two, as_well, both = trained(net, 2, rate)
    assert as_well >= bar and both == set(WORKERS[:2])
    assert np.mean(one[-20:]) < 0.2 * one[0]
    if net is recurrent:  # whole layers lie on one device or another: the same kernels on the same values
        np.testing.assert_array_equal(two, one)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("parts", [2, 3])
def test_each_loss_of_a_split_net_differs_no_more_than_rounding_explains(trained, parts):
    """From equal weights in each step: over many, a rounding may flip a maximum, and trainings part for good.

    A split adds partial sums in another order. The bound is four times what pixels that are 1 ulp off change in a loss
    of the whole net (every layer rounds, not only the input), plus 4 ulp.
    """
    one = trained(convolutional, 1, 0.003)[0]
    split = trained(convolutional, parts, 0.003, follow=True)[0]
    shaken = trained(convolutional, 1, 0.003, follow=True, ulps=1)[0]
    bound = 4 * abs(shaken - one).max() + 4 * np.finfo(one.dtype).eps * one
    assert bound.max() < 1e-5, "the bound would hold for anything"
    far = abs(split - one) / bound
    assert far.max() <= 1, f"step {far.argmax()}: {split[far.argmax()]} and {one[far.argmax()]}"


@pytest.mark.timeout(900)
def test_a_split_net_computes_the_losses_of_the_whole_one(trained):
    """In float64 rounding hides no mistake: 400 losses agree to 4e-15, also of three uneven parts."""
    one, two, three = (trained(convolutional, parts, 0.003, tf.float64)[0] for parts in (1, 2, 3))
    assert one.dtype == np.float64
    np.testing.assert_allclose(two, one, rtol=1e-12, atol=0)
    np.testing.assert_allclose(three, one, rtol=1e-12, atol=0)
