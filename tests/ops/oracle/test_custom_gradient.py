"""Functions that bring their own gradient, side by side with TensorFlow; and small questions about tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.oracle.programs import Programs

program = Programs()
test_same_answer = program.same_answers()


def graph_of(tf: Any) -> list[Any]:
    return [(op.name, op.type, [t.name for t in op.inputs]) for op in tf.get_default_graph().get_operations()]


@program
def its_gradient_counts(tf):
    @tf.custom_gradient
    def square(x):
        """Wrong by intent."""
        return x * x, lambda dy: dy * 3.0

    x = tf.constant(2.0)
    y = square(x)
    nodes = graph_of(tf)
    with tf.Session() as sess:
        return nodes, square.__doc__, [float(v) for v in sess.run([y, *tf.gradients(y, x)])]


@program
def several_arguments_and_results(tf):
    @tf.custom_gradient
    def both(x, y):
        return (x + y, x * y), lambda da, db: (da + 10.0 * db, da - db)

    x, y = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])
    a, b = both(x, y)
    with tf.Session() as sess:
        return [v.tolist() for v in sess.run([a, b, *tf.gradients([a, 2.0 * b], [x, y])])]


@program
def second_derivatives_go_through_the_gradient(tf):
    @tf.custom_gradient
    def cube(x):
        return x**3, lambda dy: dy * 3.0 * x * x

    x = tf.constant(2.0)
    (first,) = tf.gradients(cube(x), x)
    (second,) = tf.gradients(first, x)
    with tf.Session() as sess:
        return [float(v) for v in sess.run([first, second])]


@program
def passing_through(tf):
    x = tf.constant([0.4, 1.6])
    y = tf.grad_pass_through(tf.round)(x)
    with tf.Session() as sess:
        return [v.tolist() for v in sess.run([y, *tf.gradients(3.0 * y, x)])]


@program
def static_values(tf):
    known = tf.get_static_value(tf.shape(tf.zeros([2, 3])))
    partly = tf.get_static_value(tf.stack([1, tf.placeholder(tf.int32, [])]), partial=True)
    unknown = tf.get_static_value(tf.placeholder(tf.int32))
    return known.tolist(), [None if v is None else int(v) for v in partly], unknown


@program
def what_is_a_tensor(tf):
    v = tf.Variable(1.0)
    things = [v, v + 1, 1, np.ones(2), tf.SparseTensor([[0]], [1], [2]), tf.IndexedSlices(v, [0]), "x", None]
    return [tf.is_tensor(thing) for thing in things]


@program
def dimensions(tf):
    ask = tf.compat.dimension_value
    unknown = tf.compat.dimension_at_index(tf.TensorShape(None), 1)
    return ask(tf.Dimension(3)), ask(None), ask(4), ask(tf.dimension_at_index(tf.TensorShape([1, 2]), 1)), str(unknown)
