"""Conditionals and loops whose parts lie on different tasks."""

from __future__ import annotations

from typing import Any

from tests.interop.programs.site import PS, WORKER, Site


def conditionals(tf: Any, site: Site) -> list[Any]:
    """tf.cond and tf.case: values, gradients, and which variables were assigned; dead tensors cross."""
    p, n = tf.placeholder(tf.bool, []), tf.placeholder(tf.int32, [])
    with tf.device(PS):
        x = tf.get_variable("x", initializer=tf.constant(3.0))
        touched = tf.get_variable("touched", initializer=tf.constant(0.0), use_resource=False)

    def far() -> Any:
        with tf.device(WORKER):
            return tf.square(x) * 10.0

    def near() -> Any:
        with tf.device(PS), tf.control_dependencies([tf.assign_add(touched, 1.0)]):
            return x + 1.0

    chosen = tf.cond(p, far, near)
    nested = tf.cond(n > 1, lambda: tf.cond(p, far, lambda: x * 0.5), lambda: tf.identity(x))
    cases = tf.case([(tf.equal(n, 1), far), (tf.equal(n, 2), lambda: x - 1.0)], default=lambda: x - 2.0)
    (slope,) = tf.gradients(chosen, [x])
    with tf.Session(site.target) as sess:
        sess.run(tf.global_variables_initializer())
        found = [sess.run([chosen, nested, cases, slope], {p: flag, n: i}) for flag in (True, False) for i in (1, 2, 3)]
        return [[[float(value) for value in row] for row in found], float(sess.run(touched))]


def loops(tf: Any, site: Site) -> list[Any]:
    """tf.while_loop over both tasks, a branch and another loop inside: values, gradients, variables; frames cross."""
    n = tf.placeholder(tf.int32, [])
    with tf.device(PS):
        w = tf.get_variable("w", initializer=tf.constant([0.5, -0.25]))
        touched = tf.get_variable("touched", initializer=tf.constant(0.0), use_resource=False)

    def inner(j: Any, z: Any) -> Any:
        with tf.device(PS):
            return j + 1, tf.tanh(z * w)

    def body(i: Any, y: Any) -> Any:
        with tf.device(WORKER), tf.control_dependencies([touched.assign_add(1.0)]):
            y = tf.sin(y) * w + tf.cast(i, tf.float32)
        y = tf.cond(i > 1, lambda: y * w, lambda: tf.while_loop(lambda j, _: j < i, inner, (0, y))[1])
        return i + 1, y

    with tf.device(WORKER):
        _, y = tf.while_loop(lambda i, _: i < n, body, (0, w + 1.0), parallel_iterations=4)
    (slope,) = tf.gradients(y, [w])
    with tf.Session(site.target) as sess:
        sess.run(tf.global_variables_initializer())
        found = [sess.run([y, slope], {n: i}) for i in (0, 1, 3, 5)]
        return [[[part.tolist() for part in row] for row in found], float(sess.run(touched))]
