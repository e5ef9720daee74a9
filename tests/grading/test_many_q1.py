"""many/q1 accepts every right program, and runs it in processes of its own."""

from __future__ import annotations

import argparse
from random import Random
from types import FunctionType

import numpy as np
import pytest

import dtflab as tf
from dtflab.grading.catalogue import find
from dtflab.grading.programs import program_of, run_side_by_side
from dtflab.grading.questions import Wrong

pytestmark = pytest.mark.processes

Q1 = "many/q1"
WIDTH = 10
KINDS = {"text": (str, [int]), "none": None}


def net(images, hidden, name):
    with tf.variable_scope(name):
        return tf.layers.dense(tf.layers.dense(images, hidden, tf.nn.relu, name="hidden"), WIDTH, name="logits")


def by_hand(argv):
    """Reads its command line without argparse, and counts right answers in NumPy."""
    options = dict(text.lstrip("-").split("=") for text in argv)
    digits = tf.datasets.digits()
    graph = tf.Graph()
    with graph.as_default(), graph.device(options["device"]), graph.container(options["container"]):
        images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int32, [None])
        logits = net(images, int(options["hidden"]), options["container"])
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=tf.one_hot(labels, 10), logits=logits))
        step = tf.train.GradientDescentOptimizer(float(options["rate"])).minimize(loss, tf.train.create_global_step())
        first = tf.global_variables_initializer()
    sess = tf.Session(options["server"], graph=graph)
    sess.run(first)
    for _ in range(int(options["steps"])):
        x, y = digits.train.next_batch(32)
        sess.run(step, {images: x, labels: y})
    found = sess.run(logits, {images: digits.validation.images})
    sess.close()
    return np.mean(found.argmax(axis=1) == digits.validation.labels)


def with_a_step_limit(argv):
    """Stops by the global step, which is read; options in a loop, the variables pinned one by one."""
    parser = argparse.ArgumentParser()
    for name, kind in zip(
        ("server", "device", "container", "hidden", "rate", "steps"), (str, str, str, int, float, int)
    ):
        parser.add_argument("--" + name, type=kind)
    options = parser.parse_args(argv)
    digits = tf.datasets.digits(seed=3)
    with tf.Graph().as_default(), tf.container(options.container):
        with tf.device(lambda op: options.device):
            images, labels = tf.placeholder(tf.float32, [None, 64]), tf.placeholder(tf.int64, [None])
            logits = net(images, options.hidden, options.container)
            loss = tf.losses.softmax_cross_entropy(tf.one_hot(labels, 10), logits)
            count = tf.Variable(0, name="global_step", trainable=False)
            step = tf.train.GradientDescentOptimizer(options.rate).minimize(loss, global_step=count)
            right = tf.reduce_sum(tf.to_int32(tf.nn.in_top_k(logits, labels, 1)))
        with tf.Session(options.server) as sess:
            sess.run(tf.global_variables_initializer())
            while sess.run(count) < options.steps:
                sess.run(step, dict(zip((images, labels), digits.train.next_batch(32))))
            part = digits.validation
            return sess.run(right, {images: part.images, labels: part.labels}) / len(part.images)


@pytest.mark.parametrize("answer", [by_hand, with_a_step_limit], ids=lambda answer: answer.__name__)
def test_every_right_program_gets_full_marks(answer):
    score = tf.grade(Q1, answer)
    assert score == 10, score.text


def trained(argv, rate=lambda given: given, batch=32):
    """A program without a placeholder: each step draws its images from constants of the graph."""
    options = dict(text.lstrip("-").split("=") for text in argv)
    digits, name = tf.datasets.digits(), options["container"]
    with tf.Graph().as_default(), tf.device(options["device"]), tf.container(name):
        rows = tf.random_uniform([batch], maxval=len(digits.train.images), dtype=tf.int32)
        labels = tf.gather(tf.constant(digits.train.labels, tf.int32), rows)
        with tf.variable_scope("", reuse=tf.AUTO_REUSE):
            logits = net(tf.gather(tf.constant(digits.train.images, tf.float32), rows), int(options["hidden"]), name)
            found = net(tf.constant(digits.validation.images, tf.float32), int(options["hidden"]), name)
        loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
        optimizer = tf.train.GradientDescentOptimizer(rate(float(options["rate"])))
        step = optimizer.minimize(loss, tf.train.get_or_create_global_step())
        with tf.Session(options["server"]) as sess:
            sess.run(tf.global_variables_initializer())
            for _ in range(int(options["steps"])):
                sess.run(step)
            return float(np.mean(sess.run(found).argmax(1) == digits.validation.labels))


def fixed(argv):
    return trained(argv, rate=lambda given: 0.45 if given > 1e-6 else 0.0)


def limited(argv):
    return trained(argv, rate=lambda given: min(given, 0.1) if given < 0.3 else given)


def rounded(argv):
    return trained(argv, rate=lambda given: round(given, 1))


def twice_as_many(argv):
    return trained(argv, batch=64)


def test_images_that_are_not_fed_are_as_good():
    score = tf.grade(Q1, trained)
    assert score == 10, score.text


@pytest.mark.parametrize("answer", [fixed, limited, rounded], ids=lambda answer: answer.__name__)
def test_another_rate_is_seen_by_the_way_of_a_first_step(answer):
    question = find(Q1)
    with pytest.raises(Wrong, match="times as far as gradient descent on the mean cross entropy does"):
        question.only("obeyed").checks[0].judge(answer, Random(3))


def test_the_batch_is_seen_though_nothing_is_fed():
    question = find(Q1)
    with pytest.raises(Wrong, match="takes 64 images; expected: 32") as wrong:
        question.only("obeyed").checks[0].judge(twice_as_many, Random(3))
    assert question.diagnosis(wrong.value.evidence).name == "other_batches"


def shown(argv):
    return [KINDS["text"][1][0](number * WIDTH) for number in lengths(argv)]


def lengths(argv):
    return [len(np.array(list(text))) for text in argv]


def test_a_program_brings_what_its_function_names():
    (ended,) = run_side_by_side(program_of(shown), [["a", "bcd"]], seconds=60)
    assert (ended.status, ended.output.strip(), ended.errors) == (0, "[10, 30]", "")


def test_what_fails_in_a_process_is_told():
    (ended,) = run_side_by_side("raise ValueError('no net')", [[]], seconds=60)
    assert ended.status == 1 and ended.errors.strip().endswith("ValueError: no net")


def test_a_process_that_does_not_end_is_ended():
    with pytest.raises(Wrong, match=r"has not ended after 0.5 s"):
        run_side_by_side("import time; time.sleep(1000)", [[], []], seconds=0.5)


def test_what_has_no_source_is_told():
    for answer, message in (
        (3, "defined with `def`"),
        (FunctionType(compile("0", "nowhere", "eval"), {}), "can't be read"),
    ):
        with pytest.raises(Wrong, match=message):
            program_of(answer)


BAD = {
    "nothing": (lambda argv: None, "a number from 0 to 1, not None"),
    "percent": (lambda argv: 97.5, "a number from 0 to 1, not 97.5"),
    "no net": (lambda argv: 0.9, "/hidden/kernel' in container 'net"),
}


@pytest.mark.parametrize("name", BAD)
def test_programs_that_are_none_are_told_why(name):
    answer, message = BAD[name]
    score = tf.grade(Q1, answer)
    assert score == 0 and message in score.text
