"""Measures a real GPU through dtflab, against bare CuPy and against the card's own limit.

python -m benchmarks.gpu [--sizes N …] [--seconds S] [--write]

Products of matrices in TFLOP/s: the floor is `cupy.matmul` on the same arrays, the ceiling what the card's cores can do
in float32 by their number and clock (tensor cores, which products of halves use, can do more). Then training steps of a
perceptron, against the same step written by hand in CuPy. Without a card it says why, and that is all. `--write`
rewrites the section `gpu` of docs/measured.md.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

import dtflab as tf
from benchmarks.measured import Report, add_write, processor
from dtflab.machine import cuda, hosts
from dtflab.machine.cards import CardModel

GPU = "/gpu:0"
# Cores for float32 of a multiprocessor, by compute capability; NVIDIA's programming guide, "Arithmetic Instructions".
CORES = {(3, 0): 192, (3, 5): 192, (3, 7): 192, (5, 0): 128, (5, 2): 128, (6, 0): 64, (6, 1): 128, (7, 0): 64,
         (7, 5): 64, (8, 0): 64, (8, 6): 128, (8, 9): 128, (9, 0): 128, (10, 0): 128, (12, 0): 128}  # fmt: skip
PERCEPTRONS = {
    "784-100-10, batch 100": ([784, 100, 10], 100),
    "784-1024-1024-10, batch 512": ([784, 1024, 1024, 10], 512),
}
RATE = 0.01


def main(argv: list[str] | None = None) -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("--sizes", type=int, nargs="+", default=[1024, 2048, 4096, 8192], help="of square matrices")
    arguments.add_argument("--seconds", type=float, default=0.5, help="per batch of a measurement")
    add_write(arguments)
    options = arguments.parse_args(argv)
    reason = cuda.problem()
    if reason is not None:
        print(f"No real GPU here, so nothing is measured: {reason}")
        return
    os.environ.pop("DTFLAB_GPUS", None)
    hosts.simulate_gpus(None)
    model = cuda.cards("localhost")[0].model
    peak = peak_flops(model)
    report = Report("gpu")
    cores = f"{model.name}: {model.multiprocessors} multiprocessors at {model.clock_ghz:.3f} GHz"
    report.print(f"{cores}; in float32 at most {peak / 1e12:.1f} TFLOP/s; its host: {processor()}\n")
    report.print(f"{'':40}{'dtflab':>10}{'CuPy':>10}{'÷ CuPy':>9}{'÷ peak':>9}")
    for dtype in (np.float32, np.float16):
        for size in options.sizes:
            work = 2 * size**3
            ours, bare = (run * work for run in product(size, dtype, options.seconds))
            rates = ours / 1e12, bare / 1e12, peak / 1e12
            report.print(_line(f"matmul {size} {np.dtype(dtype)}, TFLOP/s", *rates))
    for name, (widths, batch) in PERCEPTRONS.items():
        report.print(_line(f"train {name}, steps/s", *training(widths, batch, options.seconds)))
    if options.write:
        report.write()


def peak_flops(model: CardModel) -> float:
    """Additions and multiplications per second in float32 (a fused one is two); 0 if the model is not known."""
    return model.multiprocessors * CORES.get(model.compute_capability, 0) * 2e9 * model.clock_ghz


def _line(row: str, ours: float, bare: float, peak: float = 0) -> str:
    share = f"{ours / peak:9.2f}" if peak else ""
    return f"{row:40}{ours:10.2f}{bare:10.2f}{ours / bare:9.2f}{share}"


def best_rate(run: Callable[[], Any], seconds: float) -> float:
    """Runs per second in the best of three batches; a batch ends when the card has finished."""
    _batch(run, 1)  # kernels are compiled at their first use
    count = 1
    while _batch(run, count) < seconds:
        count *= 2
    return count / min(_batch(run, count) for _ in range(3))


def _batch(run: Callable[[], Any], count: int) -> float:
    started = time.perf_counter()
    for _ in range(count):
        run()
    import cupy

    cupy.cuda.Device(0).synchronize()
    return time.perf_counter() - started


def session() -> Any:
    """A session that leaves memory to bare CuPy."""
    return tf.Session(config=tf.ConfigProto(gpu_options=tf.GPUOptions(allow_growth=True)))


def product(size: int, dtype: Any, seconds: float) -> tuple[float, float]:
    """Products of two square matrices per second, by dtflab and by CuPy."""
    import cupy

    random = np.random.default_rng(0)
    a, b = (random.normal(size=(size, size)).astype(dtype) for _ in range(2))
    with tf.Graph().as_default(), tf.device(GPU):
        left, right = (tf.Variable(x, use_resource=True) for x in (a, b))
        multiply = tf.matmul(left, right).op
        with session() as sess:
            sess.run([left.initializer, right.initializer])
            ours = best_rate(sess.make_callable(multiply), seconds)
    with cupy.cuda.Stream(non_blocking=True):
        on_card = cupy.asarray(a), cupy.asarray(b)
        return ours, best_rate(lambda: cupy.matmul(*on_card), seconds)


def training(widths: list[int], batch: int, seconds: float) -> tuple[float, float]:
    """Steps of gradient descent per second, by dtflab and written by hand; the data are on the card."""
    import cupy

    random = np.random.default_rng(0)
    x = random.normal(size=(batch, widths[0])).astype(np.float32)
    labels = np.eye(widths[-1], dtype=np.float32)[random.integers(0, widths[-1], batch)]
    weights = [random.normal(size=s).astype(np.float32) / np.float32(s[0] ** 0.5) for s in pairwise(widths)]
    with tf.Graph().as_default(), tf.device(GPU), session() as sess:
        step = _graph(x, labels, weights)
        sess.run(tf.global_variables_initializer())
        ours = best_rate(sess.make_callable(step), seconds)
    with cupy.cuda.Stream(non_blocking=True):
        return ours, best_rate(_by_hand(cupy, x, labels, weights), seconds)


def _graph(x: Any, labels: Any, weights: list[Any]) -> Any:
    """The training step in dtflab."""
    layer: Any = tf.Variable(x, trainable=False, use_resource=True)
    targets: Any = tf.Variable(labels, trainable=False, use_resource=True)
    for i, w in enumerate(weights):
        bias = tf.Variable(np.zeros(w.shape[1], np.float32), use_resource=True)
        layer = tf.matmul(layer, tf.Variable(w, use_resource=True)) + bias
        layer = tf.nn.relu(layer) if i < len(weights) - 1 else layer
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=targets, logits=layer))
    return tf.train.GradientDescentOptimizer(RATE).minimize(loss)


def _by_hand(cupy: Any, x: Any, labels: Any, weights: list[Any]) -> Callable[[], None]:
    """The same step in CuPy."""
    x, labels = cupy.asarray(x), cupy.asarray(labels)
    ws = [cupy.asarray(w) for w in weights]
    biases = [cupy.zeros(w.shape[1], np.float32) for w in weights]

    def step() -> None:
        layers = [x]
        for w, b in zip(ws, biases):
            layers.append(cupy.matmul(layers[-1], w) + b)
            if w is not ws[-1]:
                layers[-1] = cupy.maximum(layers[-1], np.float32(0))
        e = cupy.exp(layers[-1] - layers[-1].max(axis=1, keepdims=True))
        slope = (e / e.sum(axis=1, keepdims=True) - labels) * np.float32(1 / len(x))
        for i in reversed(range(len(ws))):
            before = cupy.matmul(slope, ws[i].T) * (layers[i] > 0) if i else None
            ws[i] -= cupy.matmul(layers[i].T, slope) * np.float32(RATE)
            biases[i] -= slope.sum(axis=0) * np.float32(RATE)
            slope = before

    return step


if __name__ == "__main__":
    main()
