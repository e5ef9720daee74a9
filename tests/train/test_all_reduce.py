"""All-reduce: its schedules as data, and tensors of one client on several tasks."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dtflab as tf
from dtflab.train.collectives.schedule import ALGORITHMS, bounds, schedule

WORKERS = range(1, 18)


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default():
        yield


# -- schedules ----------------------------------------------------------------------------------------------------


def play(plan, data):
    """The values of each worker half-way and in the end, by NumPy."""
    held = data.copy()
    for messages in plan.reduce:
        for message, value in [(m, held[m.source, m.first : m.last].copy()) for m in messages]:
            held[message.target, message.first : message.last] += value
    half_way = held.copy()
    for messages in plan.gather:
        for message, value in [(m, held[m.source, m.first : m.last].copy()) for m in messages]:
            held[message.target, message.first : message.last] = value
    return half_way, held


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_everybody_gets_the_sum_and_each_piece_has_one_owner(algorithm, workers):
    plan = schedule(algorithm, workers)
    data = np.random.default_rng(workers).integers(0, 1000, (workers, plan.pieces))
    half_way, end = play(plan, data)
    assert (end == data.sum(0)).all()
    owners = [(w, piece) for w, (first, last) in enumerate(plan.owned) for piece in range(first, last)]
    assert sorted(piece for _, piece in owners) == list(range(plan.pieces))
    assert all(half_way[w, piece] == data[:, piece].sum() for w, piece in owners)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_nobody_sends_or_gets_two_messages_in_a_round(algorithm):
    for workers in WORKERS:
        plan = schedule(algorithm, workers)
        for messages in plan.reduce + plan.gather:
            for ends in ([m.source for m in messages], [m.target for m in messages]):
                assert len(set(ends)) == len(ends)


@pytest.mark.parametrize(
    ("algorithm", "rounds", "pieces"),
    [
        ("ring", lambda p: 2 * (p - 1), lambda p: 2 * (p - 1)),
        ("tree", lambda p: 2 * math.ceil(math.log2(p)), lambda p: 2 * math.ceil(math.log2(p)) * p),
        ("halving_doubling", lambda p: 2 * math.log2(p), lambda p: 2 * (p - 1)),
    ],
)
@pytest.mark.parametrize("workers", [2, 4, 8, 16])
def test_rounds_and_bytes_are_those_of_the_formulas(algorithm, rounds, pieces, workers):
    """The largest message of each round, in p-th parts of the tensor: what the link of one worker carries."""
    plan = schedule(algorithm, workers)
    assert len(plan.reduce + plan.gather) == rounds(workers)
    largest = [max(m.last - m.first for m in messages) for messages in plan.reduce + plan.gather]
    assert sum(largest) * workers / plan.pieces == pieces(workers)


def test_pieces_are_nearly_equal_and_may_be_empty():
    assert bounds(10, 4) == [0, 2, 5, 7, 10]
    assert bounds(2, 4) == [0, 0, 1, 1, 2]


def test_a_wrong_schedule_is_refused():
    with pytest.raises(ValueError, match=r"Unknown all-reduce algorithm 'star': choose one of ring, tree, halving_dou"):
        schedule("star", 4)
    with pytest.raises(ValueError, match="at least one worker, not 0"):
        schedule("ring", 0)


# -- one client ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster():
    with tf.Cluster(worker=5) as cluster:
        yield cluster


def on_workers(arrays):
    tensors = []
    for worker, array in enumerate(arrays):
        with tf.device(f"/job:worker/task:{worker}"):
            tensors.append(tf.constant(array, name=f"x{worker}"))
    return tensors


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
@pytest.mark.parametrize("workers", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_all_shapes_get_the_same_bits_everywhere(algorithm, workers, dtype, cluster):
    rng = np.random.default_rng(workers)
    cases = []
    for shape in [(), (1,), (3,), (2, 3, 4), (7, 11), (0, 3)]:
        arrays = [(rng.normal(size=shape) * 10).astype(dtype) for _ in range(workers)]
        tensors = on_workers(arrays)
        reduced = tf.train.all_reduce(tensors, algorithm)
        assert [r.device for r in reduced] == [t.device for t in tensors]
        cases.append((arrays, reduced))
    with tf.Session(cluster.target) as session:
        for arrays, reduced in cases:
            values = session.run(reduced)
            assert {(v.dtype.name, v.shape, v.tobytes()) for v in values} == {
                (dtype, arrays[0].shape, values[0].tobytes())
            }
            tolerance = 1e-2 if dtype == "float16" else 1e-5
            np.testing.assert_allclose(values[0], np.sum(np.float64(arrays), 0), rtol=tolerance, atol=tolerance * 10)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_mean(algorithm, cluster):
    arrays = [np.float32([1, 2, 3, 4]), np.float32([5, 6, 7, 8]), np.float32([0, 1, 2, 6])]
    means = tf.train.all_reduce(on_workers(arrays), algorithm, reduction="mean")
    with tf.Session(cluster.target) as session:
        for mean in session.run(means):
            assert mean.tolist() == [2, 3, 4, 6]


def test_every_message_can_be_read_in_the_graph(cluster):
    """A message leaves on the device of its source; what it is added to is on that of its target."""
    tf.train.all_reduce(on_workers([np.ones(9, np.float32)] * 3))
    graph = tf.get_default_graph()
    for source, target in ((0, 1), (1, 2), (2, 0)):
        left = graph.get_operation_by_name(f"ring_all_reduce/reduce_0/from_{source}_to_{target}")
        (added,) = left.outputs[0].consumers()
        assert left.type == "Slice" and left.device == f"/job:worker/task:{source}"
        assert added.type == "AddV2" and added.device == f"/job:worker/task:{target}"
    copies = [op for op in graph.get_operations() if op.name.startswith("ring_all_reduce/gather_1/")]
    assert [op.type for op in copies] == ["Identity"] * 3


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_messages_go_where_the_schedule_says(algorithm, cluster):
    """The calls between tasks are the messages, each once, with its bytes."""
    workers, elements = 4, 64
    reduced = tf.train.all_reduce(on_workers([np.ones(elements, np.float32)] * workers), algorithm)
    with tf.Session(cluster.target) as session:
        before = len(cluster.calls())
        session.run([r.op for r in reduced])
        sent = [call for call in cluster.calls()[before:] if call.method == "RecvTensor"]
    plan = schedule(algorithm, workers)
    piece = elements // plan.pieces * 4
    expected = [(m.last - m.first) * piece for messages in plan.reduce + plan.gather for m in messages]
    assert sorted(call.nbytes for call in sent) == sorted(expected)


def test_tensors_that_differ_are_refused_by_name():
    with pytest.raises(ValueError, match=r"x1:0 of worker 1 has shape \(3,\), and x0:0 of worker 0 has \(2,\)"):
        tf.train.all_reduce(on_workers([np.float32([1, 2]), np.float32([1, 2, 3])]))
    with pytest.raises(ValueError, match=r"x1_1:0 of worker 1 has dtype float64, and x0_1:0 of worker 0 has float32"):
        tf.train.all_reduce(on_workers([np.float32([1, 2]), np.float64([1, 2])]))
    unknown = [tf.placeholder(tf.float32, [None], name="fed")] * 2
    with pytest.raises(ValueError, match=r"but fed:0 has the shape \(\?,\): give it with set_shape"):
        tf.train.all_reduce(unknown)
    with pytest.raises(ValueError, match="Unknown reduction 'max': choose one of sum, mean"):
        tf.train.all_reduce(on_workers([np.float32([1])] * 2), reduction="max")
    with pytest.raises(ValueError, match="The mean of int32 is not an int32: cast the tensors"):
        tf.train.all_reduce(on_workers([np.int32([1])] * 2), reduction="mean")


def test_gradients_go_through(cluster):
    """Everybody's sum depends on everybody's tensor."""
    tensors = on_workers([np.float32([1, 2, 3])] * 3)
    reduced = tf.train.all_reduce(tensors)
    loss = tf.add_n([tf.reduce_sum(tf.square(r)) for r in reduced])
    with tf.Session(cluster.target) as session:
        for gradient in session.run(tf.gradients(loss, tensors)):
            assert gradient.tolist() == [18, 36, 54]  # 3 squares of a sum of 3, twice


def test_the_timeline_shows_the_messages(cluster):
    reduced = tf.train.all_reduce(on_workers([np.ones(9, np.float32)] * 3))
    traced, metadata = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), tf.RunMetadata()
    with tf.Session(cluster.target) as session:
        session.run([r.op for r in reduced], options=traced, run_metadata=metadata)
    drawn = tf.viz.timeline(metadata).svg
    for source, target in ((0, 1), (1, 2), (2, 0)):
        assert f"ring_all_reduce/reduce_0/from_{source}_to_{target}" in drawn
