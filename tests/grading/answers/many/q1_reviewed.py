"""Answers to many/q1 that a review found: wrong ones with full marks, or with the hint of another mistake."""

import numpy as np

import dtflab as tf
from solutions.wrong.many.q1 import net, read


def trained(argv, batch=None, loss=lambda loss: loss, change=lambda gradients: gradients, tried=None):
    """The right way, but for the batches, the loss, the gradients, and the images that it is tried out on."""
    options, digits = read(argv), tf.datasets.digits()
    batch = batch or (lambda digits: digits.train.next_batch(32))
    with tf.Graph().as_default(), tf.container(options.container), tf.device(options.device):
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
        logits = net(images, options.hidden, options.container)
        optimizer = tf.train.GradientDescentOptimizer(options.rate)
        gradients = optimizer.compute_gradients(loss(tf.losses.sparse_softmax_cross_entropy(labels, logits)))
        step = optimizer.apply_gradients(change(gradients), tf.train.get_or_create_global_step())
        right = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), labels), tf.float32))
        with tf.Session(options.server) as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(options.steps):
                x, y = batch(digits)
                sess.run(step, {images: x, labels: y})
            part = digits.validation
            return float(sess.run(right, {images: part.images[:tried], labels: part.labels[:tried]}))


def mixed(train, others, part="validation"):
    """Batches of that many training images and that many others."""

    def batch(digits):
        pairs = digits.train.next_batch(train), getattr(digits, part).next_batch(others)
        return [np.concatenate(arrays) for arrays in zip(*pairs)]

    return batch


def one_validation_image_of_32(argv):
    return trained(argv, mixed(31, 1))


def one_test_image_of_32(argv):
    return trained(argv, mixed(31, 1, "test"))


def one_validation_image_more(argv):
    return trained(argv, mixed(32, 1))


def clips_by_global_norm(argv):
    def clipped(pairs):
        gradients, variables = zip(*pairs)
        return list(zip(tf.clip_by_global_norm(gradients, 1.0)[0], variables))

    return trained(argv, change=clipped)


def clips_by_a_large_norm(argv):
    def clipped(pairs):
        gradients, variables = zip(*pairs)
        return list(zip(tf.clip_by_global_norm(gradients, 5.0)[0], variables))

    return trained(argv, change=clipped)


def clips_each_gradient(argv):
    return trained(argv, change=lambda pairs: [(tf.clip_by_norm(g, 1.0), v) for g, v in pairs])


def clips_by_value(argv):
    return trained(argv, change=lambda pairs: [(tf.clip_by_value(g, -1.0, 1.0), v) for g, v in pairs])


def penalty(weight, kernels_alone=True):
    def penalized(loss):
        some = [one for one in tf.trainable_variables() if "kernel" in one.name or not kernels_alone]
        return loss + weight * tf.add_n([tf.nn.l2_loss(one) for one in some])

    return penalized


def a_penalty_of_large_weights(argv):
    return trained(argv, loss=penalty(1e-3))


def a_small_penalty(argv):
    return trained(argv, loss=penalty(1e-4))


def a_penalty_of_all_variables(argv):
    return trained(argv, loss=penalty(5e-4, kernels_alone=False))


def last_layer_alone(argv):
    return trained(argv, change=lambda pairs: [(g, v) for g, v in pairs if "logits" in v.name])


def first_layer_alone(argv):
    return trained(argv, change=lambda pairs: [(g, v) for g, v in pairs if "hidden" in v.name])


def kernels_alone(argv):
    return trained(argv, change=lambda pairs: [(g, v) for g, v in pairs if "kernel" in v.name])


def sum_of_the_batch(argv):
    return trained(argv, loss=lambda loss: 32 * loss)


def mean_of_rows_and_labels(argv):
    return trained(argv, loss=lambda loss: loss / 10)


def first_hundred_validation_images(argv):
    return trained(argv, tried=100)


def every_batch_twice(argv):
    kept = []

    def batch(digits):
        kept[:] = kept[1:] or [digits.train.next_batch(32)] * 2
        return kept[0]

    return trained(argv, batch)


def right_by_hand(argv):
    """Gradients, then a step by hand, as the review's right answer."""
    return trained(argv)


def batches_in_order(argv):
    """The training images from first to last, as they lie there."""
    return trained(argv, lambda digits: digits.train.next_batch(32, shuffle=False))


def batches_drawn_at_random(argv):
    """Batches in which an image may be twice, or again."""

    def batch(digits):
        rows = np.random.default_rng().choice(digits.train.num_examples, 32)
        return digits.train.images[rows], digits.train.labels[rows]

    return trained(argv, batch)


RIGHT = [right_by_hand, batches_in_order, batches_drawn_at_random]
WRONG = {
    every_batch_twice: "repeats_one_batch",
    one_validation_image_of_32: "trains_on_other_images",
    one_test_image_of_32: "trains_on_other_images",
    one_validation_image_more: "other_batches",
    clips_by_global_norm: "changes_the_gradient",
    clips_by_a_large_norm: "changes_the_gradient",
    clips_each_gradient: "changes_the_gradient",
    clips_by_value: "changes_the_gradient",
    a_penalty_of_large_weights: "changes_the_gradient",
    a_small_penalty: "changes_the_gradient",
    a_penalty_of_all_variables: "changes_the_gradient",
    last_layer_alone: "trains_a_part",
    first_layer_alone: "trains_a_part",
    kernels_alone: "trains_a_part",
    sum_of_the_batch: "multiplies_the_loss",
    mean_of_rows_and_labels: "multiplies_the_loss",
    first_hundred_validation_images: "",
}
