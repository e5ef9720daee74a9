"""Loops over time: TensorFlow's nodes, values and gradients, for the same weights."""

from __future__ import annotations

import numpy as np
import pytest

from tests.oracle.graph_defs import assert_same_graph, both

pytestmark = pytest.mark.filterwarnings("ignore:.*deprecated and will be:UserWarning")

TIME, BATCH, DEPTH = 5, 3, 2
LENGTHS = [5, 0, 3]


def weights(tf):
    """The same numbers in both libraries, other ones in each element."""

    def made(shape, dtype=None, partition_info=None):
        return tf.constant(np.sin(np.arange(np.prod(shape)) + 1.0).reshape(shape), dtype)

    return made


def lstm(tf):
    return tf.nn.rnn_cell.BasicLSTMCell(4)


def two_layers(tf):
    cells = tf.nn.rnn_cell
    return cells.MultiRNNCell([cells.LSTMCell(3, use_peepholes=True), cells.GRUCell(2)])


def batch_of_sequences(tf, shape=(BATCH, TIME, DEPTH)):
    values = np.cos(np.arange(BATCH * TIME * DEPTH)).reshape(BATCH, TIME, DEPTH)
    return tf.placeholder_with_default(tf.constant(values, tf.float32), shape)


# Each returns (outputs, last state); the arguments are a module and a function that makes a cell.

STATIC = {}
DYNAMIC = {}


def static(function):
    STATIC[function.__name__] = function
    return function


def dynamic(function):
    DYNAMIC[function.__name__] = function
    return function


@static
def all_steps(tf, cell):
    return tf.nn.static_rnn(cell(tf), tf.unstack(batch_of_sequences(tf), axis=1), dtype=tf.float32)


@static
def lengths(tf, cell):
    steps = tf.unstack(batch_of_sequences(tf), axis=1)
    return tf.nn.static_rnn(cell(tf), steps, dtype=tf.float32, sequence_length=LENGTHS, scope="mine")


@static
def initial_state(tf, cell):
    steps = tf.unstack(batch_of_sequences(tf), axis=1)
    made = cell(tf)
    state = tf.nest.map_structure(lambda zeros: zeros + 0.5, made.zero_state(BATCH, tf.float32))
    return tf.nn.static_rnn(made, steps, initial_state=state, sequence_length=tf.constant(LENGTHS, tf.int64))


@static
def unknown_batch(tf, cell):
    steps = tf.unstack(batch_of_sequences(tf, (None, TIME, DEPTH)), axis=1)
    return tf.nn.static_rnn(cell(tf), steps, dtype=tf.float32, sequence_length=LENGTHS)


@static
def both_directions(tf, cell):
    steps = tf.unstack(batch_of_sequences(tf), axis=1)
    outputs, fw, bw = tf.nn.static_bidirectional_rnn(cell(tf), cell(tf), steps, dtype=tf.float32)
    return outputs, (fw, bw)


@static
def both_directions_of_lengths(tf, cell):
    steps = tf.unstack(batch_of_sequences(tf), axis=1)
    outputs, fw, bw = tf.nn.static_bidirectional_rnn(
        cell(tf), cell(tf), steps, dtype=tf.float32, sequence_length=LENGTHS
    )
    return outputs, (fw, bw)


@dynamic
def dynamic_all_steps(tf, cell):
    return tf.nn.dynamic_rnn(cell(tf), batch_of_sequences(tf), dtype=tf.float32)


@dynamic
def dynamic_lengths(tf, cell):
    return tf.nn.dynamic_rnn(
        cell(tf), batch_of_sequences(tf), LENGTHS, dtype=tf.float32, parallel_iterations=2, swap_memory=True, scope="x"
    )


@dynamic
def dynamic_time_first(tf, cell):
    made = cell(tf)
    x = tf.transpose(batch_of_sequences(tf), [1, 0, 2])
    return tf.nn.dynamic_rnn(made, x, initial_state=made.zero_state(BATCH, tf.float32), time_major=True)


@dynamic
def dynamic_unknown_sizes(tf, cell):
    x = batch_of_sequences(tf, (None, None, DEPTH))
    return tf.nn.dynamic_rnn(cell(tf), x, tf.constant(LENGTHS, tf.int64), dtype=tf.float32)


@dynamic
def dynamic_both_directions(tf, cell):
    return tf.nn.bidirectional_dynamic_rnn(cell(tf), cell(tf), batch_of_sequences(tf), dtype=tf.float32)


@dynamic
def dynamic_both_directions_of_lengths(tf, cell):
    x = tf.transpose(batch_of_sequences(tf), [1, 0, 2])
    return tf.nn.bidirectional_dynamic_rnn(cell(tf), cell(tf), x, LENGTHS, dtype=tf.float32, time_major=True)


@dynamic
def raw(tf, cell):
    return raw_of(tf, cell, lambda output: output, None)


@dynamic
def raw_with_a_loop_state(tf, cell):
    return raw_of(tf, cell, lambda output: (output, tf.reduce_sum(output, 1)), 0)


def raw_of(tf, cell, emit, loop_state):
    """A loop as dynamic_rnn's, written out; `loop_state` counts the steps."""
    made = cell(tf)
    x = tf.transpose(batch_of_sequences(tf), [1, 0, 2])
    inputs = tf.TensorArray(tf.float32, TIME).unstack(x)

    def loop_fn(time, output, state, counted):
        finished = time >= tf.constant(LENGTHS)
        over = tf.reduce_all(finished)
        next_input = tf.cond(over, lambda: tf.zeros([BATCH, DEPTH]), lambda: inputs.read(time))
        if output is None:
            zeros = None if loop_state is None else (tf.zeros([made.output_size]), tf.zeros([]))
            start = None if loop_state is None else tf.constant(loop_state)
            return finished, next_input, made.zero_state(BATCH, tf.float32), zeros, start
        return finished, next_input, state, emit(output), None if counted is None else counted + 1

    outputs, state, counted = tf.nn.raw_rnn(made, loop_fn)
    stacked = tf.nest.map_structure(lambda array: array.stack(), outputs)
    return (stacked, state) if counted is None else (stacked, (state, counted))


CELLS = {"lstm": lstm, "two_layers": two_layers}
ALL = {**STATIC, **DYNAMIC}


def program(name, cell):
    def run(tf):
        with tf.variable_scope("net", initializer=weights(tf)):
            return ALL[name](tf, CELLS[cell])

    return run


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("name", ALL)
def test_same_graph(name, cell):
    def with_gradients(tf):
        outputs, _ = program(name, cell)(tf)
        if name != "raw_with_a_loop_state":  # in a loop Sum's gradient has nodes in TensorFlow that nobody uses
            tf.gradients(tf.nest.flatten(outputs), tf.trainable_variables())

    assert_same_graph(with_gradients, gradients=True)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("name", ALL)
def test_same_values(name, cell):
    """Outputs, last states, and gradients by the inputs and all variables."""

    def run(tf):
        outputs, state = program(name, cell)(tf)
        flat = [tf.cast(t, tf.float32) for t in [*tf.nest.flatten(outputs), *tf.nest.flatten(state)]]
        loss = tf.add_n([tf.reduce_sum(t * tf.sin(t)) for t in flat])
        variables = tf.trainable_variables()
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            values = session.run([*flat, *tf.gradients(loss, variables)])
        shapes = [t.shape.as_list() for t in flat]
        return [v.name for v in variables], shapes, values

    theirs, ours = both(run)
    assert ours[:2] == theirs[:2]
    assert len(ours[2]) == len(theirs[2])
    for mine, other in zip(ours[2], theirs[2]):
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-5)


def shared(tf):
    with tf.variable_scope("model"):
        first, _ = tf.nn.static_rnn(lstm(tf), tf.unstack(batch_of_sequences(tf), axis=1), dtype=tf.float32)
    with tf.variable_scope("model", reuse=True):
        second, _ = tf.nn.dynamic_rnn(lstm(tf), batch_of_sequences(tf), dtype=tf.float32)
    return [first[-1], second]


def resources(tf):
    with tf.variable_scope("model", use_resource=True, initializer=weights(tf)):
        return [all_steps(tf, two_layers)[0][-1], dynamic_lengths(tf, lstm)[0]]


def shards(tf):
    with tf.variable_scope("model", partitioner=tf.fixed_size_partitioner(2)):
        return [dynamic_all_steps(tf, lstm)[0]]


def dropped(tf):
    cell = tf.nn.rnn_cell.DropoutWrapper(lstm(tf), 0.5, 0.5, 0.5, True, DEPTH, tf.float32, seed=3)
    return [tf.nn.dynamic_rnn(cell, batch_of_sequences(tf), LENGTHS, dtype=tf.float32)[0]]


def elsewhere(tf):
    with tf.device(tf.train.replica_device_setter(cluster={"ps": ["a:1", "b:1"], "worker": ["c:1"]})):
        cells = [tf.nn.rnn_cell.DeviceWrapper(tf.nn.rnn_cell.GRUCell(4), f"/gpu:{i}") for i in range(2)]
        return [tf.nn.dynamic_rnn(tf.nn.rnn_cell.MultiRNNCell(cells), batch_of_sequences(tf), dtype=tf.float32)[0]]


def inside_a_loop(tf):
    """Training steps in a loop: its variables are not cached."""

    def body(i, total):
        outputs, _ = tf.nn.dynamic_rnn(lstm(tf), batch_of_sequences(tf), dtype=tf.float32)
        return i + 1, total + tf.reduce_sum(outputs)

    with tf.variable_scope("model", use_resource=True):
        tf.while_loop(lambda i, total: i < 3, body, [0, 0.0])


@pytest.mark.parametrize(
    "run", [shared, resources, shards, dropped, elsewhere, inside_a_loop], ids=lambda f: f.__name__
)
def test_same_graph_with_gradients(run):
    def with_gradients(tf):
        outputs = run(tf)
        if outputs:
            tf.gradients(outputs, tf.trainable_variables())

    assert_same_graph(with_gradients, gradients=run is not elsewhere)


def test_lengths_that_do_not_fit_the_batch():
    def error(tf):
        outputs, _ = tf.nn.dynamic_rnn(
            lstm(tf), batch_of_sequences(tf), tf.placeholder_with_default([1, 2], [None]), dtype=tf.float32
        )
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            with pytest.raises(tf.errors.InvalidArgumentError, match="Expected shape for Tensor"):
                session.run(outputs)

    both(error)


class Saver:
    """The argument of static_state_saving_rnn: states by name."""

    def __init__(self, tf):
        self.saved = {name: tf.get_variable(name, initializer=tf.ones([BATCH, 4])) for name in ("c", "h")}

    def state(self, name):
        return self.saved[name].initialized_value() * 1.0

    def save_state(self, name, value):
        return self.saved[name].assign(value)


def test_state_saving():
    def run(tf):
        saver = Saver(tf)
        with tf.variable_scope("net", initializer=weights(tf)):
            steps = tf.unstack(batch_of_sequences(tf), axis=1)
            outputs, _ = tf.nn.static_state_saving_rnn(lstm(tf), steps, saver, tf.nn.rnn_cell.LSTMStateTuple("c", "h"))
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            last = session.run(outputs[-1])
            return [last, *session.run([saver.saved["c"], saver.saved["h"]])]

    theirs, ours = both(run)
    for mine, other in zip(ours, theirs):
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(ours[0], ours[2])


BAD = {
    "static": {
        "no cell": lambda tf, x: tf.nn.static_rnn(3, [x[0]]),
        "no list": lambda tf, x: tf.nn.static_rnn(lstm(tf), x[0], dtype=tf.float32),
        "empty": lambda tf, x: tf.nn.static_rnn(lstm(tf), [], dtype=tf.float32),
        "no dtype": lambda tf, x: tf.nn.static_rnn(lstm(tf), [x[0]]),
        "depth": lambda tf, x: tf.nn.static_rnn(lstm(tf), [tf.placeholder(tf.float32, [2, None])], dtype=tf.float32),
        "lengths": lambda tf, x: tf.nn.static_rnn(lstm(tf), [x[0]], dtype=tf.float32, sequence_length=[[1]]),
        "batches": lambda tf, x: tf.nn.static_rnn(lstm(tf), [x[0], tf.ones([7, 2])], dtype=tf.float32),
        "names": lambda tf, x: tf.nn.static_state_saving_rnn(lstm(tf), [x[0]], None, "one"),
    },
    "dynamic": {
        "no cell": lambda tf, x: tf.nn.dynamic_rnn(3, x),
        "no dtype": lambda tf, x: tf.nn.dynamic_rnn(lstm(tf), x),
        "depth": lambda tf, x: tf.nn.dynamic_rnn(lstm(tf), tf.placeholder(tf.float32, [2, 3, None]), dtype=tf.float32),
        "rank": lambda tf, x: tf.nn.dynamic_rnn(lstm(tf), x[0, 0], dtype=tf.float32),
        "lengths": lambda tf, x: tf.nn.dynamic_rnn(lstm(tf), x, [[1]], dtype=tf.float32),
        "raw's cell": lambda tf, x: tf.nn.raw_rnn(3, lambda *_: None),
        "raw's function": lambda tf, x: tf.nn.raw_rnn(lstm(tf), 3),
    },
}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in BAD for name in BAD[kind]])
def test_bad_arguments(kind, name):
    def error(tf):
        with pytest.raises(Exception) as caught:
            BAD[kind][name](tf, tf.ones([3, 3, 2]))
        return type(caught.value).__name__

    theirs, ours = both(error)
    assert ours == theirs and ours in ("ValueError", "TypeError")
