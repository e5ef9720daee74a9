"""All-reduce next to TensorFlow's: its functions give the same sums, and it runs our graphs to the same bits."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tensorflow")
import tensorflow.compat.v1 as real_tf
from tensorflow.python.distribute.v1 import all_reduce as theirs

import dtflab
from dtflab.train.collectives.schedule import ALGORITHMS


def arrays(workers, shape, dtype="float32"):
    rng = np.random.default_rng(workers)
    return [rng.normal(size=shape).astype(dtype) for _ in range(workers)]


def reduced(tf, reduce, values):
    """`values` on as many CPUs, reduced there."""
    with tf.Graph().as_default() as graph:
        tensors = []
        for number, value in enumerate(values):
            with tf.device(f"/cpu:{number}"):
                tensors.append(tf.constant(value))
        results = reduce(tensors)
        devices = [result.device for result in results]
        with tf.Session(config=tf.ConfigProto(device_count={"CPU": len(values)})) as session:
            return devices, session.run(results), graph.as_graph_def(), [result.name for result in results]


THEIRS = {
    "ring": lambda tensors: theirs.build_ring_all_reduce(tensors, 1, 1, range(len(tensors)), real_tf.add),
    "halving_doubling": lambda tensors: theirs.build_recursive_hd_all_reduce(tensors, real_tf.add),
}


@pytest.mark.parametrize("shape", [(8,), (3, 4), (4,)])  # theirs halves without a rest
@pytest.mark.parametrize("workers", [2, 4])
@pytest.mark.parametrize("algorithm", THEIRS)
def test_the_same_sums(algorithm, workers, shape):
    values = arrays(workers, shape)
    devices, expected, *_ = reduced(real_tf, THEIRS[algorithm], values)
    ours, sums, *_ = reduced(dtflab, lambda tensors: dtflab.train.all_reduce(tensors, algorithm), values)
    assert len(set(map(str, devices))) == len(set(ours)) == workers
    for one, other in zip(expected, sums, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("workers", [2, 3, 5])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_tensorflow_runs_the_graph_to_the_same_bits(algorithm, workers, reduction, dtype):
    values = arrays(workers, (4, 3), dtype)
    _, ours, graph_def, names = reduced(
        dtflab, lambda tensors: dtflab.train.all_reduce(tensors, algorithm, reduction), values
    )
    with real_tf.Graph().as_default():
        message = real_tf.GraphDef.FromString(graph_def.SerializeToString())
        results = real_tf.import_graph_def(message, return_elements=names, name="")
        with real_tf.Session(config=real_tf.ConfigProto(device_count={"CPU": workers})) as session:
            expected = session.run(results)
    assert [value.tobytes() for value in ours] == [value.tobytes() for value in expected]
