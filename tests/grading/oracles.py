"""Independent oracles: whether a changed solution is another right answer, judged apart from the question's checks.

Each runs the answer by the public API and compares it with plain Python or NumPy; none imports the checks. A question
without an oracle has no equivalent mutants: those that no check catches are left out of the score, and counted.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import dtflab as tf

ORACLES: dict[str, Callable[[Any], bool]] = {}


def oracle(id: str) -> Callable[[Callable[[Any], bool]], Callable[[Any], bool]]:
    def add(agrees: Callable[[Any], bool]) -> Callable[[Any], bool]:
        ORACLES[id] = agrees
        return agrees

    return add


@oracle("queues/q1")
def batches(answer: Any) -> bool:
    """100 sentences go in before any is taken, and come out in batches of one kind: all of them full but three."""
    bounds, size, random = [4, 8], 4, np.random.RandomState(3)
    with tf.Graph().as_default(), tf.Session() as sess:
        sentence = tf.placeholder(tf.int32, [None])
        put, take, close = answer(sentence, bounds, size)
        sentences = [tuple(random.randint(1, 99, size=1 + 5 * i % 12).tolist()) for i in range(100)]
        for one in sentences:
            sess.run(put, {sentence: one})
        sess.run(close)
        found = []
        try:
            while True:
                found.append([tuple(int(word) for word in row if word) for row in sess.run(take)])
        except tf.errors.OutOfRangeError:
            pass
    kinds = [{int(np.searchsorted(bounds, len(row))) for row in batch} for batch in found]
    full = sum(len(batch) == size for batch in found)
    same = Counter(row for batch in found for row in batch) == Counter(sentences)
    return same and all(len(kind) == 1 for kind in kinds) and full >= len(found) - len(bounds) - 1


@oracle("input/q1")
def lines(answer: Any) -> bool:
    """The lines of three files as Python reads them, twice; and the error of a file that is not there."""
    with tempfile.TemporaryDirectory() as folder:
        names = [str(Path(folder, f"{i}.txt")) for i in range(3)]
        for i, name in enumerate(names):
            Path(name).write_text("".join(f"{i} {line}\n" for line in range(7 * i + 2)), encoding="utf-8")
        expected = Counter(
            line for name in names for line in Path(name).read_text(encoding="utf-8").split("\n")[:-1] * 2
        )
        if Counter(line.decode() for line in answer("", names, 2)) != expected:
            return False
        try:
            answer("", [*names, str(Path(folder, "none.txt"))], 1)
        except tf.errors.NotFoundError:
            return True
        return False


@oracle("data/q3")
def ring(answer: Any) -> bool:
    """NumPy's sum on each device, with 2(n − 1) tensors of an n-th sent by each, all to one neighbour."""
    for number in range(2, 6):
        devices = [f"/job:worker/task:{i}/cpu:0" for i in range(number)]
        values = [np.arange(12 * number, dtype=np.float32) ** (1 + 0.1 * i) for i in range(number)]
        with tf.Graph().as_default(), tf.Cluster(worker=number, clock="virtual") as cluster:
            tensors = []
            for place, value in zip(devices, values):
                with tf.device(place):
                    tensors.append(tf.constant(value))
            sums = answer(tensors, devices)
            with tf.Session(cluster.target) as sess:
                trace = tf.RunMetadata()
                sess.run(
                    [one.op for one in sums], options=tf.RunOptions(output_partition_graphs=True), run_metadata=trace
                )
                if not all(np.allclose(one, np.sum(values, axis=0)) for one in sess.run(sums)):
                    return False
        nodes = [node for graph in trace.partition_graphs for node in graph.node if node.op == "_Send"]
        ways = Counter((node.attr["send_device"].s, node.attr["recv_device"].s) for node in nodes)
        if len({start for start, _ in ways}) != len(ways) or set(ways.values()) != {2 * (number - 1)}:
            return False
    return True


@oracle("split/q1")
def halves(answer: Any) -> bool:
    """NumPy's product; each of two GPUs multiplies twice, by half of the weights."""
    random = np.random.RandomState(5)
    inputs, first, second = (random.randn(*shape).astype(np.float32) for shape in ((6, 8), (8, 40), (40, 4)))
    with tf.Graph().as_default() as graph, tf.Cluster(worker=1, gpus=2, clock="virtual") as cluster:
        with tf.device("/cpu:0"):
            x = tf.placeholder(tf.float32, inputs.shape)
        output = answer(x, first, second, ["/gpu:0", "/gpu:1"])
        with tf.Session(cluster.target) as sess:
            trace, options = tf.RunMetadata(), tf.RunOptions(output_partition_graphs=True)
            value = sess.run(output, {x: inputs}, options=options, run_metadata=trace)
    weights = Counter[str]()
    for part in trace.partition_graphs:
        for node in part.node:
            if node.op == "MatMul":
                weights[node.device] += graph.get_operation_by_name(node.name).inputs[1].shape.num_elements()
    right = np.shape(value) == (6, 4) and np.allclose(value, np.maximum(inputs @ first, 0) @ second, atol=1e-3)
    return right and sorted(weights.values()) == [240, 240] and all("GPU" in place for place in weights)
