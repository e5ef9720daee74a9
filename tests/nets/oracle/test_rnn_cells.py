"""tf.nn.rnn_cell: TensorFlow's nodes (tf_keras's legacy cells), one step and several, with gradients."""

from __future__ import annotations

import pytest

from tests.oracle.graph_defs import assert_same_graph, both

pytestmark = pytest.mark.filterwarnings("ignore:.*deprecated and will be:UserWarning")

CELLS = {
    "rnn": lambda cells: cells.BasicRNNCell(3),
    "rnn relu": lambda cells: cells.BasicRNNCell(3, activation="relu", name="mine"),
    "gru": lambda cells: cells.GRUCell(3),
    "basic lstm": lambda cells: cells.BasicLSTMCell(3),
    "basic lstm in one": lambda cells: cells.BasicLSTMCell(3, forget_bias=0.5, state_is_tuple=False),
    "lstm": lambda cells: cells.LSTMCell(3),
    "lstm in one": lambda cells: cells.LSTMCell(3, state_is_tuple=False, num_proj=2),
    "lstm peepholes": lambda cells: cells.LSTMCell(3, use_peepholes=True, cell_clip=0.1, forget_bias=2.0),
    "lstm projected": lambda cells: cells.LSTMCell(3, num_proj=2, proj_clip=0.1, activation="sigmoid"),
    "lstm in shards": lambda cells: cells.LSTMCell(4, num_unit_shards=2, num_proj=4, num_proj_shards=2),
    "two layers": lambda cells: cells.MultiRNNCell([cells.BasicLSTMCell(3), cells.GRUCell(4)]),
    "two layers in one": lambda cells: cells.MultiRNNCell(
        [cells.GRUCell(2), cells.BasicRNNCell(3)], state_is_tuple=False
    ),
    "two devices": lambda cells: cells.MultiRNNCell(
        [cells.DeviceWrapper(cells.BasicLSTMCell(3), f"/gpu:{i}") for i in range(2)]
    ),
    "residual": lambda cells: cells.ResidualWrapper(cells.GRUCell(4)),
    "residual product": lambda cells: cells.ResidualWrapper(cells.GRUCell(4), lambda i, o: i * o),
}


@pytest.mark.parametrize("name", CELLS)
def test_same_graph(name):
    def two_steps(tf):
        cell = CELLS[name](tf.nn.rnn_cell)
        x = tf.placeholder(tf.float32, [2, 4])
        with tf.variable_scope("net", initializer=tf.constant_initializer(0.1)):
            state = cell.zero_state(2, tf.float32)
            output, state = cell(x, state)
            output, state = cell(x, state)
        tf.gradients(output, [x, *tf.trainable_variables()])

    assert_same_graph(two_steps, gradients=True)


def dropout_of(tf, cell, **kwargs):
    cell = tf.nn.rnn_cell.DropoutWrapper(cell, seed=7, **kwargs)
    x = tf.ones([2, 4])
    state = cell.zero_state(2, tf.float32)
    for _ in range(2):
        output, state = cell(x, state)
    return tf.gradients(output, tf.trainable_variables())


DROPOUTS = {
    "nothing": {},
    "all": {"input_keep_prob": 0.5, "output_keep_prob": 0.6, "state_keep_prob": 0.7},
    "variational": {
        "input_keep_prob": 0.5,
        "state_keep_prob": 0.7,
        "variational_recurrent": True,
        "input_size": 4,
        "dtype": "float32",
    },
    "memory too": {"state_keep_prob": 0.5, "dropout_state_filter_visitor": lambda state: True},
    "no state": {"state_keep_prob": 0.5, "dropout_state_filter_visitor": lambda state: False},
}


@pytest.mark.parametrize("name", DROPOUTS)
def test_dropout_has_the_same_graph(name):
    def multi(tf):
        cells = [tf.nn.rnn_cell.BasicLSTMCell(3), tf.nn.rnn_cell.GRUCell(4)]
        dropout_of(tf, tf.nn.rnn_cell.MultiRNNCell(cells), **DROPOUTS[name])

    assert_same_graph(multi, gradients=True)


def test_keep_probabilities_may_be_tensors():
    def fed(tf):
        keep = tf.placeholder_with_default(0.5, [])
        dropout_of(tf, tf.nn.rnn_cell.LSTMCell(3), input_keep_prob=keep, state_keep_prob=keep)

    assert_same_graph(fed, gradients=True)


def test_batch_sizes():
    def states(tf):
        cell = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.BasicLSTMCell(3), tf.nn.rnn_cell.GRUCell(4)])
        x = tf.placeholder(tf.float64, [None, 5])
        found = [
            cell.zero_state(2, tf.float32),
            cell.zero_state(tf.shape(x)[0], tf.float64),
            cell.get_initial_state(x),
            cell.get_initial_state(batch_size=3, dtype=tf.float32),
        ]
        return [(t.shape.as_list(), t.dtype.name) for state in found for t in tf.nest.flatten(state)]

    theirs, ours = both(states)
    assert ours == theirs
    assert_same_graph(lambda tf: states(tf) and None)


def test_a_cell_of_ones_own():
    """A cell of one's own makes its variables in `call`, under scopes of its own or one that is given."""

    def program(tf):
        class Counting(tf.nn.rnn_cell.RNNCell):
            state_size = output_size = 3

            def call(self, inputs, state):
                w = tf.get_variable("w", [4, 3], initializer=tf.ones_initializer())
                n = tf.get_variable("n", [], trainable=False, initializer=tf.ones_initializer())
                output = tf.tanh(tf.matmul(inputs, w) + state * n)
                return output, output

        cell = Counting()
        x = tf.ones([2, 4])
        with tf.variable_scope("loop"):
            _, state = cell(x, cell.zero_state(2, tf.float32))
            _, state = cell(x, state)
        other = Counting()
        _, state = other(x, state, scope="here")
        return [[v.name for v in c.trainable_weights + c.non_trainable_weights] for c in (cell, other)]

    theirs, ours = both(program)
    assert ours == theirs
    assert_same_graph(lambda tf: program(tf) and None)


def test_weights_of_wrapped_cells():
    def names(tf):
        cells = tf.nn.rnn_cell
        cell = cells.MultiRNNCell([cells.BasicLSTMCell(3), cells.GRUCell(2)])
        cell(tf.ones([2, 4]), cell.zero_state(2, tf.float32))
        frozen = cell.trainable = False
        return [v.name for v in cell.weights], [v.name for v in cell.trainable_variables], frozen

    theirs, ours = both(names)
    assert ours == theirs


BAD = {
    "int inputs": lambda tf, c: c.BasicLSTMCell(3)(tf.ones([2, 4], tf.int32), c.LSTMStateTuple(*[tf.ones([2, 3])] * 2)),
    "int cell": lambda tf, c: c.GRUCell(3, dtype=tf.int32),
    "rank": lambda tf, c: c.GRUCell(3)(tf.ones([2, 4, 1]), tf.ones([2, 3])),
    "depth": lambda tf, c: c.GRUCell(3)(tf.placeholder(tf.float32, [2, None]), tf.ones([2, 3])),
    "no cells": lambda tf, c: c.MultiRNNCell([]),
    "not a list": lambda tf, c: c.MultiRNNCell(c.GRUCell(3)),
    "tuples in one": lambda tf, c: c.MultiRNNCell([c.BasicLSTMCell(3)], state_is_tuple=False),
    "not a tuple": lambda tf, c: c.MultiRNNCell([c.GRUCell(3)])(tf.ones([2, 4]), tf.ones([2, 3])),
    "no cell": lambda tf, c: c.DeviceWrapper(3, "/cpu:0"),
    "keep": lambda tf, c: c.DropoutWrapper(c.GRUCell(3), input_keep_prob=2.0),
    "no dtype": lambda tf, c: c.DropoutWrapper(c.GRUCell(3), variational_recurrent=True),
    "no input size": lambda tf, c: c.DropoutWrapper(
        c.GRUCell(3), input_keep_prob=0.5, variational_recurrent=True, dtype=tf.float32
    ),
    "visitor": lambda tf, c: c.DropoutWrapper(c.GRUCell(3), dropout_state_filter_visitor=3),
    "two dtypes": lambda tf, c: c.LSTMStateTuple(tf.ones([2, 3]), tf.ones([2, 3], tf.float64)).dtype,
    "no batch": lambda tf, c: c.GRUCell(3).get_initial_state(dtype=tf.float32),
    "other batch": lambda tf, c: c.GRUCell(3).get_initial_state(tf.ones([2, 3]), 3),
    "other dtype": lambda tf, c: c.GRUCell(3).get_initial_state(tf.ones([2, 3]), 2, tf.float64),
    "abstract": lambda tf, c: c.RNNCell().state_size,
    "residual shapes": lambda tf, c: c.ResidualWrapper(c.GRUCell(3))(tf.ones([2, 4]), tf.ones([2, 3])),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments(name):
    def error(tf):
        with pytest.raises(Exception) as caught:
            BAD[name](tf, tf.nn.rnn_cell)
        return type(caught.value).__name__

    theirs, ours = both(error)
    assert ours == theirs and ours in ("ValueError", "TypeError", "NotImplementedError")
