"""Answers to many/q2 by other authors: right ones in another style, and wrong ones with the hint that fits."""

import dtflab as tf
from solutions.wrong.many.q2 import asked, best_of, net


def adds_logarithms(results, images):
    return asked(best_of(results), images, says=tf.nn.log_softmax)


def takes_two(results, images):
    return asked(best_of(results)[1:], images)


def takes_the_last(results, images):
    return asked(results[-3:], images)


def multiplies_them(results, images):
    def product(opinions):
        return opinions[0] * opinions[1] * opinions[2]

    return asked(best_of(results), images, combine=product)


def gives_probabilities(results, images):
    return tf.add_n([tf.nn.softmax(net(images, one.hidden, one.container)) for one in best_of(results)])


def flattens_them(results, images):
    return asked(best_of(results), images, says=lambda logits: tf.nn.softmax(0.7 * logits))


RIGHT: list = []
WRONG = {
    takes_two: "takes_two_or_four",
    takes_the_last: "takes_the_first",
    multiplies_them: "adds_logits",
    adds_logarithms: "adds_logits",
    flattens_them: "",
    gives_probabilities: "forgets_the_container",
}
