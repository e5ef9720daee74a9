"""ctc_loss and the decoders next to TensorFlow, over generated inputs; and what must be true of them by definition."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import dtflab
from tests.oracle.graph_defs import assert_same_graph, both

Labels = list[list[int]]
CASES: dict[str, tuple[tuple[int, int, int], Labels, list[int], dict[str, Any]]] = {
    "plain": ((6, 3, 5), [[0, 1, 1], [2], [3, 3, 0, 1]], [6, 4, 5], {}),
    "not merged": ((6, 3, 5), [[0, 1, 1], [2], [3, 3, 0, 1]], [6, 4, 5], {"ctc_merge_repeated": False}),
    "collapsed": ((6, 3, 5), [[0, 1, 1], [2], [3, 3, 0, 1]], [6, 4, 5], {"preprocess_collapse_repeated": True}),
    "both": ((6, 2, 5), [[0, 1, 1], [2, 2, 2]], [6, 4],
             {"preprocess_collapse_repeated": True, "ctc_merge_repeated": False}),
    "no path": ((3, 2, 3), [[0, 0, 0], [1]], [3, 3], {}),
    "blanks at the end": ((4, 2, 4), [[1, 0, 3, 3], [2]], [4, 1], {}),
    "longer than the input": ((4, 2, 4), [[1, 0, 2], [2, 1]], [2, 4], {"ignore_longer_outputs_than_inputs": True}),
    "no time": ((4, 2, 4), [[1], [2, 1]], [0, 4], {"ignore_longer_outputs_than_inputs": True}),
    "long": ((40, 4, 9), [[1, 0, 2, 2, 5, 6], [2], [7, 7, 7, 1, 2, 3, 4, 5], [1, 2]], [40, 17, 33, 2], {}),
}  # fmt: skip


def scores(seed: int, *shape: int, dtype: Any = np.float32, scale: float = 2) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, scale, shape).astype(dtype)


def sparse(tf: Any, rows: Labels) -> Any:
    places = [[b, t] for b, row in enumerate(rows) for t in range(len(row))]
    return tf.SparseTensor(places, tf.constant([x for row in rows for x in row], tf.int32), [len(rows), 99])


def losses(tf: Any, name: str, dtype: Any = np.float32, scale: float = 2) -> list[Any]:
    shape, rows, lengths, more = CASES[name]
    x = tf.constant(scores(len(name), *shape, dtype=dtype, scale=scale))
    loss = tf.nn.ctc_loss(sparse(tf, rows), x, lengths, **more)
    return [loss, *tf.gradients(loss, x, tf.constant(np.arange(1, len(rows) + 1).astype(dtype)))]


def run(tf: Any, tensors: Any) -> Any:
    with tf.Session() as sess:
        return sess.run(tensors)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_loss_and_gradient(name, dtype):
    assert_same_graph(lambda tf: losses(tf, name, dtype))
    for theirs, ours in zip(*both(lambda tf: run(tf, losses(tf, name, dtype))), strict=True):
        assert ours.dtype == theirs.dtype
        tolerance = 1e-2 if dtype == np.float16 else 1e-4
        np.testing.assert_allclose(ours, theirs, tolerance, tolerance / 10)


def test_logits_that_make_impossible_classes():
    """exp(-1000) is 0: TensorFlow's alpha and beta have infinities, and so have these."""
    for theirs, ours in zip(*both(lambda tf: run(tf, losses(tf, "plain", scale=1000))), strict=True):
        assert np.array_equal(np.isfinite(ours), np.isfinite(theirs))
        np.testing.assert_allclose(ours[np.isfinite(ours)], theirs[np.isfinite(theirs)], 1e-4, 1e-5)


def probability(y: np.ndarray, target: list[int], merge: bool) -> float:
    """By definition: the sum over all paths that become the target without repetitions and blanks."""
    classes, total = y.shape[1], 0.0
    for path in itertools.product(range(classes), repeat=len(y)):
        said = [c for i, c in enumerate(path) if not (merge and i and c == path[i - 1])]
        if [c for c in said if c != classes - 1] == target:
            total += float(np.prod([y[t, c] for t, c in enumerate(path)]))
    return total


@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize("target", [[0], [1, 0], [0, 0], [1, 1, 0]])
def test_the_loss_is_the_sum_over_all_paths(target, merge):
    x = scores(3, 5, 1, 3, dtype=np.float64)
    with dtflab.Graph().as_default():
        loss = dtflab.nn.ctc_loss(sparse(dtflab, [target]), x, [5], ctc_merge_repeated=merge)
        (found,) = run(dtflab, loss)
    y = np.exp(x[:, 0]) / np.exp(x[:, 0]).sum(1, keepdims=True)
    assert found == pytest.approx(-np.log(probability(y, target, merge)), rel=1e-12)


def test_the_gradient_is_the_slope():
    x, labels = scores(4, 6, 2, 4, dtype=np.float64), [[0, 1, 1], [2, 0]]
    with dtflab.Graph().as_default() as graph, dtflab.Session(graph=graph) as session:
        feed = dtflab.placeholder(dtflab.float64, x.shape)
        total = dtflab.reduce_sum(dtflab.nn.ctc_loss(sparse(dtflab, labels), feed, [6, 4]))
        slope = session.run(dtflab.gradients(total, feed)[0], {feed: x})
        for place in itertools.product(*map(range, x.shape)):
            ends = []
            for sign in (1, -1):
                moved = x.copy()
                moved[place] += sign * 1e-5
                ends.append(session.run(total, {feed: moved}))
            assert slope[place] == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-8)


BAD: dict[str, tuple[Labels, list[int], str]] = {
    "not enough time": ([[0, 1, 1]], [2], "Not enough time for target transition sequence"),
    "negative": ([[0, -1]], [4], "must be nonnegative"),
    "after a blank": ([[0, 2, 1]], [4], "Saw a non-null label"),
    "too long": ([[0]], [5], r"sequence_length\(0\) <= 4"),
    "before the start": ([[0]], [-1], r"seq_len\(0\) < 0|Not enough time"),
    "no labels": ([[], [0]], [4, 4], "Labels length is zero in batch 0"),
    "batches": ([[0]], [4, 4], r"len\(sequence_length\) != batch_size"),
}


@pytest.mark.parametrize("name", BAD)
def test_errors_in_a_step(name):
    rows, lengths, words = BAD[name]

    def program(tf):
        x, n = tf.placeholder(tf.float32), tf.placeholder(tf.int32)
        loss = tf.nn.ctc_loss(sparse(tf, rows), logits=x, sequence_length=n)
        with tf.Session() as sess, pytest.raises(tf.errors.InvalidArgumentError, match=words):
            sess.run(loss, {x: scores(0, 4, len(rows), 3), n: lengths})

    both(program)


def test_dense_labels_and_second_derivatives_are_refused():
    def program(tf):
        with pytest.raises(TypeError, match="Expected argument `labels` to be a SparseTensor"):
            tf.nn.ctc_loss([[0]], scores(0, 4, 1, 3), [4])
        x = tf.constant(scores(0, 1, 4, 3))
        loss = tf.nn.ctc_loss(sparse(tf, [[0]]), x, [4], time_major=False)
        with pytest.raises(LookupError, match="second  derivative of ctc_loss"):
            tf.gradients(tf.gradients(loss, x)[0], x)

    both(program)


# -- decoders ---------------------------------------------------------------------------------------------------------


def decoded(tf: Any, name: str, x: np.ndarray, lengths: list[int], **more: Any) -> Any:
    found, log_p = getattr(tf.nn, name)(tf.constant(x), lengths, **more)
    return [*found, log_p]


def same_decoding(name: str, x: np.ndarray, lengths: list[int], **more: Any) -> None:
    assert_same_graph(lambda tf: decoded(tf, name, x, lengths, **more))
    theirs, ours = both(lambda tf: run(tf, decoded(tf, name, x, lengths, **more)))
    for a, b in zip(ours[:-1], theirs[:-1], strict=True):
        for our_part, their_part in zip(a, b, strict=True):  # indices, values, shape
            assert np.array_equal(our_part, their_part)
    np.testing.assert_allclose(ours[-1], theirs[-1], 1e-4, 1e-5)


@pytest.mark.parametrize("more", [{}, {"merge_repeated": False}, {"blank_index": 0}])
def test_greedy_decoder(more):
    same_decoding("ctc_greedy_decoder", scores(1, 12, 3, 4), [12, 7, 0], **more)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("width", "paths"), [(1, 1), (3, 2), (5, 5), (25, 10), (100, 1)])
def test_beam_search(seed, width, paths):
    more = {"beam_width": width, "top_paths": paths, "merge_repeated": seed % 2 == 0}
    x = scores(seed, 9, 2, 4, dtype=[np.float32, np.float64][seed % 2], scale=1 + seed % 3)
    same_decoding("ctc_beam_search_decoder", x, [9, 6], **more)


def test_beam_search_v2_and_a_wide_alphabet():
    same_decoding("ctc_beam_search_decoder_v2", scores(7, 30, 2, 28), [30, 22], beam_width=16, top_paths=3)


def test_a_wide_beam_finds_the_likeliest_labels():
    x = scores(8, 5, 1, 3, dtype=np.float64, scale=1)
    with dtflab.Graph().as_default():
        found = run(dtflab, decoded(dtflab, "ctc_beam_search_decoder_v2", x, [5], beam_width=500, top_paths=3))
    y = np.exp(x[:, 0]) / np.exp(x[:, 0]).sum(1, keepdims=True)
    targets = [list(t) for n in range(6) for t in itertools.product(range(2), repeat=n)]
    best = sorted(((probability(y, t, True), t) for t in targets), reverse=True)[:3]
    assert [a.values.tolist() for a in found[:-1]] == [t for _, t in best]
    np.testing.assert_allclose(found[-1][0], np.log([p for p, _ in best]), 1e-12)


@pytest.mark.parametrize(("more", "words"), [
    ({"top_paths": 3, "beam_width": 2}, "requested more paths than the beam width"),
    ({"top_paths": 100}, "Less leaves in the beam search than requested"),
])  # fmt: skip
def test_more_paths_than_there_are(more, words):
    def program(tf):
        with pytest.raises(tf.errors.InvalidArgumentError, match=words):
            run(tf, decoded(tf, "ctc_beam_search_decoder", scores(0, 1, 1, 3), [1], **more))

    both(program)


@pytest.mark.parametrize("decoder", ["ctc_greedy_decoder", "ctc_beam_search_decoder"])
@pytest.mark.parametrize(
    ("shape", "lengths"), [((4, 2, 3), [5, 1]), ((4, 2, 3), [4]), ((0, 2, 3), [0, 0]), ((4, 2), [4])]
)
def test_errors_of_decoders(decoder, shape, lengths):
    def program(tf):
        x, n = tf.placeholder(tf.float32), tf.placeholder(tf.int32)
        found, _ = getattr(tf.nn, decoder)(x, n)
        with tf.Session() as sess, pytest.raises(tf.errors.OpError) as caught:
            sess.run(found[0], {x: scores(0, *shape), n: lengths})
        return type(caught.value).__name__

    theirs, ours = both(program)
    assert ours == theirs
