"""Learning rates, moving averages and clipped gradients next to TensorFlow's: graphs, values and errors."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dtflab.train.optimizers import moving_averages
from tests.oracle import answers
from tests.oracle.answers import module_of
from tests.oracle.graph_defs import assert_same_graph, both
from tests.oracle.programs import Programs

both_kinds = pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])

RATES: dict[str, Callable[[Any, Any], Any]] = {
    "exponential": lambda tf, step: tf.train.exponential_decay(0.1, step, 4, 0.96),
    "exponential stairs": lambda tf, step: tf.train.exponential_decay(0.1, step, 3, 0.5, staircase=True, name="down"),
    "natural": lambda tf, step: tf.train.natural_exp_decay(0.1, step, 4, 0.3),
    "natural stairs": lambda tf, step: tf.train.natural_exp_decay(0.1, step, 3, 0.3, True),
    "inverse": lambda tf, step: tf.train.inverse_time_decay(tf.constant(0.1, tf.float64), step, 4, 0.5),
    "inverse stairs": lambda tf, step: tf.train.inverse_time_decay(0.1, step, 3, 0.5, staircase=True),
    "polynomial": lambda tf, step: tf.train.polynomial_decay(0.1, step, 6, power=0.5),
    "polynomial again": lambda tf, step: tf.train.polynomial_decay(0.1, step, 3, 0.01, 2.0, cycle=True),
    "cosine": lambda tf, step: tf.train.cosine_decay(0.1, step, 6, alpha=0.1),
    "restarts": lambda tf, step: tf.train.cosine_decay_restarts(0.1, step, 2, m_mul=0.8, alpha=0.01),
    "equal restarts": lambda tf, step: tf.train.cosine_decay_restarts(0.1, step, 3, t_mul=1.0),
    "linear cosine": lambda tf, step: tf.train.linear_cosine_decay(0.1, step, 6, alpha=0.2),
    "noisy": lambda tf, step: tf.train.noisy_linear_cosine_decay(0.1, step, 6, name="rough"),
    "pieces": lambda tf, step: tf.train.piecewise_constant(step, [2, 5, 7], [1.0, 0.5, 0.25, 0.1]),
    "two pieces": lambda tf, step: tf.train.piecewise_constant_decay(step, [4], [1.0, 0.5], "P"),
}


@both_kinds
@pytest.mark.parametrize("rate", RATES.values(), ids=RATES)
def test_same_graph_of_rates(rate, use_resource):
    def program(tf):
        step = tf.Variable(0, name="step", trainable=False, use_resource=use_resource)
        with tf.name_scope("outer"):
            rate(tf, step)

    assert_same_graph(program)


@pytest.mark.parametrize("rate", RATES.values(), ids=RATES)
def test_same_rates(rate):
    def rates(tf):
        tf.set_random_seed(3)
        step = tf.placeholder(tf.int32, [])
        now = rate(tf, step)
        with tf.Session() as session:
            return [session.run(now, {step: i}) for i in range(12)]

    theirs, ours = both(rates)
    assert [r.dtype for r in ours] == [r.dtype for r in theirs]
    np.testing.assert_allclose(ours, theirs, 2e-6, 1e-9)


def test_training_with_a_rate_that_decays():
    def trained(tf):
        step = tf.train.get_or_create_global_step()
        w = tf.Variable([1.0, -2.0])
        rate = tf.train.piecewise_constant(step, [3, 6], [0.1, 0.01, 0.001])
        train = tf.train.MomentumOptimizer(rate, 0.9).minimize(tf.reduce_sum(w * w), step)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            return [session.run([w, rate, train])[:2] for _ in range(10)]

    for a, b in zip(*both(trained)):
        np.testing.assert_allclose(a[0], b[0], 1e-5)
        np.testing.assert_allclose(a[1], b[1], 1e-6)


WRONG: dict[str, Callable[[Any], Any]] = {
    "no step": lambda tf: tf.train.exponential_decay(0.1, None, 3, 0.9),
    "boundaries of another dtype": lambda tf: tf.train.piecewise_constant(tf.constant(1), [1.0], [0.1, 0.2]),
    "int64 boundary": lambda tf: tf.train.piecewise_constant(tf.constant(1), [tf.constant(1, tf.int64)], [0.1, 0.2]),
    "values of two dtypes": lambda tf: tf.train.piecewise_constant(
        tf.constant(1), [1], [tf.constant(0.1), tf.constant(0.1, tf.float64)]
    ),
    "too few values": lambda tf: tf.train.piecewise_constant(tf.constant(1), [1, 2], [0.1, 0.2]),
    "average of integers": lambda tf: tf.train.ExponentialMovingAverage(0.9).apply([tf.Variable(1)]),
    "norm of one tensor": lambda tf: tf.global_norm(tf.constant(1.0)),
    "clip one tensor": lambda tf: tf.clip_by_global_norm(tf.constant(1.0), 1.0),
    "clip to a larger shape": lambda tf: tf.clip_by_value(tf.ones([2]), tf.zeros([3, 2]), 1.0),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_same_errors(wrong):
    def error(tf):
        try:
            return "nothing", wrong(tf)
        except Exception as error:
            return type(error).__name__, re.split(r"[:<]", str(error))[0]

    theirs, ours = both(error)
    assert ours == theirs


FUNCTIONS = [f"train.{name}" for name in (
    "exponential_decay natural_exp_decay inverse_time_decay polynomial_decay piecewise_constant cosine_decay "
    "cosine_decay_restarts linear_cosine_decay noisy_linear_cosine_decay piecewise_constant_decay "
    "ExponentialMovingAverage ExponentialMovingAverage.apply ExponentialMovingAverage.average_name "
    "ExponentialMovingAverage.variables_to_restore AdamOptimizer FtrlOptimizer MomentumOptimizer AdagradOptimizer "
    "AdadeltaOptimizer RMSPropOptimizer AdagradDAOptimizer ProximalAdagradOptimizer GradientDescentOptimizer "
    "ProximalGradientDescentOptimizer Optimizer Optimizer.minimize Optimizer.compute_gradients "
    "Optimizer.apply_gradients SyncReplicasOptimizer SyncReplicasOptimizer.apply_gradients "
    "SyncReplicasOptimizer.get_init_tokens_op SyncReplicasOptimizer.make_session_run_hook"
).split()]  # fmt: skip


@pytest.mark.parametrize("path", FUNCTIONS)
def test_same_signature(path):
    def answer(function):
        for part in path.split("."):
            function = getattr(function, part)
        return [(p.name, repr(p.default)) for p in inspect.signature(function).parameters.values()]

    theirs, ours = answers.both(answer)
    assert ours == theirs


# -- moving averages ------------------------------------------------------------------------------------------------

average = Programs()


@both_kinds
@average.each("program")
def test_same_graph_of_averages(program, use_resource):
    assert_same_graph(lambda tf: program(tf, use_resource))


@pytest.mark.unordered
@both_kinds
@average.each("program")
def test_same_averages(program, use_resource):
    def run(tf):
        averages, found, update, feeds = program(tf, use_resource)
        kept = [averages.average(v) for v in found]
        names = [averages.average_name(v) for v in found]
        restored = {name: v.name for name, v in averages.variables_to_restore().items()}
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            values = []
            for feed in feeds:
                session.run(update, feed)
                values.append(session.run(kept))
        return names, restored, [k.name for k in kept], values

    (*their_names, theirs), (*names, ours) = both(run)
    assert names == their_names
    for a, b in zip(ours, theirs):
        for x, y in zip(a, b):
            assert x.dtype == y.dtype
            np.testing.assert_allclose(x, y, 2e-3 if x.dtype == np.float16 else 1e-6)


@average
def of_trainable_variables(tf, use_resource):
    w = tf.Variable([1.0, 2.0], name="w", use_resource=use_resource)
    b = tf.Variable(tf.zeros([]), name="b", use_resource=use_resource)
    tf.Variable(3.0, trainable=False, name="other", use_resource=use_resource)
    change = tf.group(w.assign_add([1.0, -1.0]), b.assign_add(2.0))
    averages = tf.train.ExponentialMovingAverage(0.75)
    with tf.control_dependencies([change]):
        update = averages.apply()
    assert tf.moving_average_variables() == [w, b]
    return averages, [w, b], update, [{}] * 5


@average
def by_number_of_updates(tf, use_resource):
    with tf.variable_scope("model"):
        w = tf.get_variable("w", [2, 2], tf.float64, tf.ones_initializer(), use_resource=use_resource)
    step = tf.train.get_or_create_global_step()
    averages = tf.train.ExponentialMovingAverage(0.9, num_updates=step, name="Slow")
    with tf.control_dependencies([tf.group(w.assign(w * 1.5), step.assign_add(1))]):
        update = averages.apply([w])
    averages.apply([w])
    return averages, [w], update, [{}] * 5


@average
def of_tensors(tf, use_resource):
    x = tf.placeholder(tf.float32, [2], name="x")
    half = tf.cast(x, tf.float16, name="half")
    averages = tf.train.ExponentialMovingAverage(0.5)
    update = averages.apply([x, half])
    return averages, [x, half], update, [{x: [i, -i]} for i in range(5)]


@average
def of_tensors_without_bias(tf, use_resource):
    x = tf.placeholder(tf.float32, [2], name="x")
    with tf.variable_scope("scope"):
        y = tf.identity(x * 2.0, name="y")
        averages = tf.train.ExponentialMovingAverage(0.9, zero_debias=True)
        update = averages.apply([x, y])
        tf.train.ExponentialMovingAverage(0.8, zero_debias=True, name="Again").apply([x])
    return averages, [x, y], update, [{x: [i + 1, -i]} for i in range(5)]


@average
def on_parameter_servers(tf, use_resource):
    averages = tf.train.ExponentialMovingAverage(0.9)
    with tf.device("/device:CPU:0"):
        v = tf.Variable(10.0, name="v", use_resource=use_resource)
    with tf.control_dependencies([v.assign_add(1.0)]):
        update = averages.apply([v])
    return averages, [v], update, [{}] * 3


@pytest.mark.parametrize("truediv", [True, False])
@both_kinds
def test_weighted_moving_average(use_resource, truediv):
    def program(tf):
        value, weight = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [])
        with tf.variable_scope("scope", use_resource=use_resource):
            average = module_of(tf, "python.training.moving_averages", moving_averages).weighted_moving_average(
                value, 0.5, weight, truediv, None if truediv else [tf.GraphKeys.GLOBAL_VARIABLES, "mine"], "WMA"
            )
        return average, [{value: [3.0, 1.0], weight: 4.0}, {value: [11.0, -1.0], weight: 22.0}]

    def run(tf):
        average, feeds = program(tf)
        assert len(tf.get_collection("mine")) == (0 if truediv else 2)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            return [session.run(average, feed).tolist() for feed in feeds]

    assert_same_graph(program)
    theirs, ours = both(run)
    assert ours == theirs


# -- clipping ---------------------------------------------------------------------------------------------------------

CLIPS: dict[str, Callable[[Any], Any]] = {
    "value": lambda tf: tf.clip_by_value(tf.constant([-5.0, 0.5, 5.0]), -1.0, [1.0, 2.0, 3.0]),
    "value of slices": lambda tf: tf.clip_by_value(slices(tf), -1.0, 1.0),
    "norm": lambda tf: tf.clip_by_norm(tf.constant([[3.0, 4.0], [0.0, 0.0]]), 2.5),
    "norm by axis": lambda tf: tf.clip_by_norm(tf.constant([[3.0, 4.0], [0.3, 0.4]]), tf.constant(1.0), axes=[1]),
    "norm below zero": lambda tf: tf.clip_by_norm(tf.constant([3.0, 4.0]), -1.0),
    "norm of slices": lambda tf: tf.clip_by_norm(slices(tf), 1.0, name="c"),
    "average norm": lambda tf: tf.clip_by_average_norm(tf.constant([[-3.0, 0.0], [0.0, 4.0]]), 0.8),
    "global norm": lambda tf: tf.clip_by_global_norm([tf.constant([3.0]), None, slices(tf)], 2.0),
    "given norm": lambda tf: tf.clip_by_global_norm([tf.constant([3.0])], 2.0, tf.constant(9.0), "n"),
    "infinite norm": lambda tf: tf.clip_by_global_norm([tf.constant([3.0, np.inf])], 2.0),
    "only the norm": lambda tf: tf.global_norm((tf.constant([3.0], tf.float64), None, tf.constant([4.0], tf.float64))),
}


def slices(tf: Any) -> Any:
    return tf.IndexedSlices(tf.constant([[3.0, -4.0], [1.0, 0.5]]), tf.constant([2, 0]), tf.constant([5, 2]))


@pytest.mark.parametrize("clip", CLIPS.values(), ids=CLIPS)
def test_clipping(clip):
    assert_same_graph(clip)

    def run(tf):
        found = clip(tf)
        with tf.Session() as session:
            clipped = [v for v in found[0] if v is not None] if isinstance(found, tuple) else [found]
            norms = list(found[1:]) if isinstance(found, tuple) else []
            values = session.run(clipped + norms)
        kinds = [isinstance(v, tf.IndexedSlices) for v in clipped]
        return kinds, [part for v in values for part in (v if isinstance(v, tuple) else [v])]

    (their_kinds, theirs), (our_kinds, ours) = both(run)
    assert our_kinds == their_kinds
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, 1e-6)
