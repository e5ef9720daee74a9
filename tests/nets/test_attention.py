"""Attention against plain NumPy and central differences; and a net that learns to reverse sequences of digits."""

from __future__ import annotations

import numpy as np
import pytest

import dtflab as tf
from dtflab import attention
from dtflab.machine.hosts import simulate_gpus

BATCH, TIME, DEPTH, UNITS = 3, 4, 2, 5
LENGTHS = [4, 1, 3]
MEMORY = np.sin(np.arange(BATCH * TIME * DEPTH) * 0.9).reshape(BATCH, TIME, DEPTH)
QUERY = np.cos(np.arange(BATCH * UNITS) * 0.7).reshape(BATCH, UNITS)
MECHANISMS = {
    "luong": lambda memory, lengths: attention.LuongAttention(UNITS, memory, lengths),
    "luong scaled": lambda memory, lengths: attention.LuongAttention(UNITS, memory, lengths, scale=True),
    "bahdanau": lambda memory, lengths: attention.BahdanauAttention(UNITS, memory, lengths),
    "bahdanau normalized": lambda memory, lengths: attention.BahdanauAttention(UNITS, memory, lengths, normalize=True),
}


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default(), tf.variable_scope("net", initializer=weights):
        yield


def weights(shape, dtype=None, partition_info=None):
    return tf.constant(np.sin(np.arange(np.prod(shape)) * 1.3 + 0.5).reshape(shape), dtype)


def run(fetches, feed=None):
    """Values, and the variables by the last two parts of their names."""
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        values = session.run(fetches, feed)
        variables = {"/".join(v.op.name.split("/")[-2:]): session.run(v) for v in tf.global_variables()}
    return values, variables


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def asked(name, memory, query, lengths, w):
    """The alignments, by loops over rows."""
    result = np.zeros(memory.shape[:2])
    for row, length in enumerate(lengths):
        keys = memory[row, :length] @ w["memory_layer/kernel"]
        if name.startswith("luong"):
            scores = keys @ query[row] * (w["luong_attention/attention_g"] if "scaled" in name else 1.0)
        else:
            v, sums = w["bahdanau_attention/attention_v"], keys + query[row] @ w["query_layer/kernel"]
            if "normalized" in name:
                v = w["bahdanau_attention/attention_g"] * v / np.sqrt((v**2).sum())
                sums = sums + w["bahdanau_attention/attention_b"]
            scores = np.tanh(sums) @ v
        result[row, :length] = softmax(scores)
    return result


@pytest.mark.parametrize("lengths", [None, LENGTHS], ids=["all", "lengths"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_alignments(name, lengths):
    mechanism = MECHANISMS[name](tf.constant(MEMORY), lengths)
    alignments = mechanism(tf.constant(QUERY))
    (found, context), w = run([alignments, mechanism.context(alignments)])
    want = asked(name, MEMORY, QUERY, lengths or [TIME] * BATCH, w)
    np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(context, np.einsum("bt,btd->bd", want, MEMORY), rtol=1e-9)


def test_a_query_of_another_size():
    mechanism = MECHANISMS["luong"](tf.constant(MEMORY), None)
    with pytest.raises(ValueError, match="Make num_units equal"):
        mechanism(tf.ones([BATCH, UNITS + 1], tf.float64))


STEPS = np.cos(np.arange(BATCH * 3 * 2) * 1.1).reshape(BATCH, 3, 2)


def wrapped(memory, name="bahdanau", size=None, output_attention=True):
    cell = tf.nn.rnn_cell.BasicRNNCell(UNITS)
    mechanism = MECHANISMS[name](memory, LENGTHS)
    return attention.AttentionWrapper(cell, mechanism, size, output_attention)


@pytest.mark.parametrize("size", [None, 4], ids=["context", "layer"])
@pytest.mark.parametrize("name", MECHANISMS)
def test_a_wrapper_over_time(name, size):
    cell = wrapped(tf.constant(MEMORY), name, size)
    outputs, state = tf.nn.dynamic_rnn(
        cell, tf.constant(STEPS), initial_state=cell.zero_state(BATCH, tf.float64), dtype=tf.float64
    )
    (outputs, state), w = run([outputs, state])
    h, attended = np.zeros((BATCH, UNITS)), np.zeros((BATCH, size or DEPTH))
    for step in range(STEPS.shape[1]):
        inputs = np.concatenate([STEPS[:, step], attended, h], 1)
        h = np.tanh(inputs @ w["basic_rnn_cell/kernel"] + w["basic_rnn_cell/bias"])
        alignments = asked(name, MEMORY, h, LENGTHS, w)
        attended = np.einsum("bt,btd->bd", alignments, MEMORY)
        if size:
            attended = np.concatenate([h, attended], 1) @ w["attention_layer/kernel"]
        np.testing.assert_allclose(outputs[:, step], attended, rtol=1e-9)
    np.testing.assert_allclose(state.cell_state, h, rtol=1e-9)
    np.testing.assert_allclose(state.alignments, alignments, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("new_attention", [False, True])
def test_only_the_bottom_layer_asks(new_attention):
    bottom = wrapped(tf.constant(MEMORY), output_attention=False)
    cell = attention.BottomAttentionCell(bottom, [tf.nn.rnn_cell.BasicRNNCell(UNITS)], new_attention)
    state = cell.zero_state(BATCH, tf.float64)
    found = []
    for step in range(3):
        output, state = cell(tf.constant(STEPS[:, step]), state)
        found.append(output)
    found, w = run(found)
    below, above = ({part: w0[part] for part in ("kernel", "bias")} for w0 in (_cell(0), _cell(1)))
    h, g, attended = np.zeros((BATCH, UNITS)), np.zeros((BATCH, UNITS)), np.zeros((BATCH, DEPTH))
    for step in range(3):
        h = np.tanh(np.concatenate([STEPS[:, step], attended, h], 1) @ below["kernel"] + below["bias"])
        new = np.einsum("bt,btd->bd", asked("bahdanau", MEMORY, h, LENGTHS, w), MEMORY)
        seen = new if new_attention else attended
        g = np.tanh(np.concatenate([h, seen, g], 1) @ above["kernel"] + above["bias"])
        attended = new
        np.testing.assert_allclose(found[step], g, rtol=1e-9)


def _cell(index):
    """The variables of a layer: all begin with the same numbers."""
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return {
            v.op.name.rpartition("/")[2]: session.run(v)
            for v in tf.global_variables()
            if f"cell_{index}" in v.op.name and "basic_rnn_cell" in v.op.name
        }


def ancestors(tensor):
    """The names of all operations that must run before `tensor` is there."""
    seen, waiting = set(), [tensor.op]
    while waiting:
        op = waiting.pop()
        if op.name not in seen:
            seen.add(op.name)
            waiting += [x.op for x in op.inputs] + list(op.control_inputs)
    return seen


def second_step(standard):
    """The nodes of upper layers that the bottom layer of the second step waits for."""
    cells = [tf.nn.rnn_cell.BasicRNNCell(UNITS) for _ in range(2)]
    mechanism = MECHANISMS["luong"](tf.constant(MEMORY), None)
    if standard:
        cell = attention.AttentionWrapper(tf.nn.rnn_cell.MultiRNNCell(cells), mechanism)
    else:
        bottom = attention.AttentionWrapper(cells[0], mechanism, output_attention=False)
        cell = attention.BottomAttentionCell(bottom, cells[1:])
    state = cell.zero_state(BATCH, tf.float64)
    for step in range(2):
        _, state = cell(tf.constant(STEPS[:, step]), state)
    of_bottom = state.cell_state[0] if standard else state[0].cell_state
    return {name for name in ancestors(of_bottom) if "cell_1" in name and "MatMul" in name}


def test_upper_layers_hold_up_the_bottom_one_only_with_standard_attention():
    assert second_step(standard=True)
    assert not second_step(standard=False)


@pytest.mark.parametrize("name", MECHANISMS)
def test_gradients(name):
    """By all weights, the memory and the inputs: central differences."""
    memory, steps = tf.placeholder(tf.float64, MEMORY.shape), tf.placeholder(tf.float64, STEPS.shape)
    cell = wrapped(memory, name, 3)
    outputs, _ = tf.nn.dynamic_rnn(cell, steps, [3, 2, 1], cell.zero_state(BATCH, tf.float64), dtype=tf.float64)
    loss = tf.reduce_sum(outputs * tf.sin(outputs))
    variables = tf.trainable_variables()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        feed = {memory: MEMORY, steps: STEPS}
        wanted = [memory, steps, *variables]
        points = session.run(wanted, feed)
        gradients = session.run(tf.gradients(loss, wanted), feed)
        tensors = [memory, steps, *(v.value() for v in variables)]
        for tensor, point, gradient in zip(tensors, points, gradients, strict=True):
            for index in [(0,) * point.ndim, tuple(size - 1 for size in point.shape)]:
                ends = []
                for change in (1e-5, -1e-5):
                    moved = np.array(point)
                    moved[index] += change
                    ends.append(session.run(loss, {**feed, tensor: moved}))
                assert gradient[index] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5, abs=1e-8)


def test_greedy_words_are_those_of_a_loop_in_numpy():
    words, end = 4, 3
    embedding = np.eye(words)[:, :2] * 3 - 1
    kernel = np.sin(np.arange(DEPTH * words) * 2.1).reshape(DEPTH, words) * 4
    cell = wrapped(tf.constant(MEMORY))
    result = attention.greedy(
        cell,
        embed=lambda ids: tf.gather(tf.constant(embedding), ids),
        start=[0, 1, 2],
        end_word=end,
        initial_state=cell.zero_state(BATCH, tf.float64),
        output_layer=lambda output: tf.matmul(output, tf.constant(kernel)),
        maximum=6,
    )
    found, w = run(result)
    for row in range(BATCH):
        h, attended, word = np.zeros(UNITS), np.zeros(DEPTH), row
        said, seen = [], []
        while len(said) < 6 and end not in said:
            inputs = np.concatenate([embedding[word], attended, h])
            h = np.tanh(inputs @ w["basic_rnn_cell/kernel"] + w["basic_rnn_cell/bias"])
            seen.append(asked("bahdanau", MEMORY[[row]], h[None], LENGTHS[row : row + 1], w)[0])
            attended = seen[-1] @ MEMORY[row]
            word = int(np.argmax(attended @ kernel))
            said.append(word)
        assert found.lengths[row] == len(said)
        assert found.words[row].tolist() == said + [0] * (found.words.shape[1] - len(said))
        np.testing.assert_allclose(found.alignments[row, : len(said)], seen, rtol=1e-9, atol=1e-12)
        assert not found.alignments[row, len(said) :].any()


@pytest.mark.parametrize("standard", [True, False], ids=["standard", "bottom"])
def test_layers_on_two_gpus(standard):
    """The same outputs and gradients as on one device."""

    def decoded(devices):
        make = tf.nn.rnn_cell.BasicRNNCell
        cells = [tf.nn.rnn_cell.DeviceWrapper(make(UNITS), device) for device in devices]
        with tf.variable_scope("decoder", reuse=tf.AUTO_REUSE):
            mechanism = MECHANISMS["bahdanau"](tf.constant(MEMORY), LENGTHS)
            if standard:
                cell = attention.AttentionWrapper(tf.nn.rnn_cell.MultiRNNCell(cells), mechanism)
            else:
                bottom = attention.AttentionWrapper(cells[0], mechanism, output_attention=False)
                cell = attention.BottomAttentionCell(bottom, cells[1:])
            outputs, _ = tf.nn.dynamic_rnn(
                cell, tf.constant(STEPS), initial_state=cell.zero_state(BATCH, tf.float64), dtype=tf.float64
            )
        names = ("kernel", "bias", "attention_v")
        return [outputs, *tf.gradients(outputs, [v for v in tf.trainable_variables() if v.op.name.endswith(names)])]

    with tf.Graph().as_default(), tf.variable_scope("net", initializer=weights):
        alone, _ = run(decoded(["/cpu:0", "/cpu:0"]))
    simulate_gpus(2)
    with tf.Graph().as_default(), tf.variable_scope("net", initializer=weights):
        split, _ = run(decoded(["/gpu:0", "/gpu:1"]))
    for mine, other in zip(split, alone, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-9)


# ---- a net that learns ----

DIGITS, START, END, LONGEST = 6, 0, 1, 5  # the digits are the words 2, 3, …


def sequences(random, count):
    """Digits [count, LONGEST] and their lengths, the words after START, and the reversed digits with END."""
    lengths = random.integers(2, LONGEST + 1, count)
    digits = random.integers(2, 2 + DIGITS, (count, LONGEST))
    targets = np.zeros((count, LONGEST + 1), np.int64)
    for row, length in enumerate(lengths):
        digits[row, length:] = 0
        targets[row, :length] = digits[row, :length][::-1]
        targets[row, length] = END
    before = np.concatenate([np.full((count, 1), START), targets[:, :-1]], 1)
    return digits, lengths, before, targets


@pytest.mark.timeout(300)
@pytest.mark.parametrize("standard", [True, False], ids=["standard", "bottom"])
def test_learns_to_reverse_digits(standard):
    tf.set_random_seed(1)
    tf.get_variable_scope().set_initializer(tf.glorot_uniform_initializer(seed=3))
    cells = tf.nn.rnn_cell
    digits, lengths = tf.placeholder(tf.int32, [None, LONGEST]), tf.placeholder(tf.int32, [None])
    before, targets = (tf.placeholder(tf.int64, [None, LONGEST + 1]) for _ in range(2))
    embedding = tf.get_variable("embedding", [2 + DIGITS, 16])
    memory, last = tf.nn.dynamic_rnn(
        cells.GRUCell(32), tf.nn.embedding_lookup(embedding, digits), lengths, dtype=tf.float32, scope="encoder"
    )
    mechanism = attention.LuongAttention(32, memory, lengths)
    if standard:
        cell = attention.AttentionWrapper(cells.MultiRNNCell([cells.GRUCell(32)]), mechanism, 32)
        start = cell.zero_state(tf.shape(digits)[0], tf.float32)._replace(cell_state=(last,))
    else:
        bottom = attention.AttentionWrapper(cells.GRUCell(32), mechanism, 32, output_attention=False)
        cell = attention.BottomAttentionCell(bottom, [cells.GRUCell(32)], new_attention=True)
        zeros = cell.zero_state(tf.shape(digits)[0], tf.float32)
        start = (zeros[0]._replace(cell_state=last), *zeros[1:])
    output_layer = tf.layers.Dense(2 + DIGITS)
    embed = lambda words: tf.nn.embedding_lookup(embedding, words)  # noqa: E731
    logits, _ = attention.teacher_forced(cell, embed(before), lengths + 1, start, output_layer)
    counted = tf.cast(tf.sequence_mask(lengths + 1, LONGEST + 1), tf.float32)
    loss = attention.sequence_loss(logits, targets, counted)
    train = tf.train.AdamOptimizer(0.02).minimize(loss)
    result = attention.greedy(cell, embed, tf.zeros_like(lengths), END, start, output_layer, maximum=LONGEST + 1)
    random = np.random.default_rng(7)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(100):
            session.run(train, dict(zip((digits, lengths, before, targets), sequences(random, 64))))
        asked_for = sequences(np.random.default_rng(8), 200)
        words, weights, said = session.run(result, {digits: asked_for[0], lengths: asked_for[1]})
    right = [
        np.array_equal(row[: n + 1], want[: n + 1]) and count == n + 1
        for row, count, want, n in zip(words, said, asked_for[3], asked_for[1])
    ]
    assert np.mean(right) >= 0.9
    np.testing.assert_allclose(weights[:, 0].sum(1), 1, rtol=1e-5)


def test_what_can_not_attend_is_refused():
    cell, memory = tf.nn.rnn_cell.GRUCell(3), tf.zeros([2, 4, 3])
    with pytest.raises(TypeError, match="needs a LuongAttention or BahdanauAttention"):
        attention.AttentionWrapper(cell, memory)
    with pytest.raises(TypeError, match="bottom layer must be an AttentionWrapper"):
        attention.BottomAttentionCell(cell, [cell])
    with pytest.raises(TypeError, match="greedy needs the state of an AttentionWrapper"):
        attention.greedy(cell, lambda w: memory[:, 0], tf.zeros([2], tf.int32), 1, memory[:, 0], tf.identity, 5)


def test_a_row_without_places_can_not_be_asked():
    lengths = tf.placeholder(tf.int32, [2])
    alignments = attention.LuongAttention(3, tf.ones([2, 4, 3]), lengths)(tf.ones([2, 3]))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match="memory_sequence_length must be greater than zero"):
            session.run(alignments, {lengths: [0, 2]})
    with pytest.raises(tf.errors.InvalidArgumentError, match="memory_sequence_length must be greater than zero"):
        attention.LuongAttention(3, tf.ones([2, 4, 3]), [0, 2])
