"""Prints how much longer a training step takes while a cluster panel is looked at.

python -m benchmarks.panel [--seconds N] [--write]

The CPU time of a step is measured, in this process and in those of the tasks: on a shared machine seconds would measure
the others. Batches with and without the panel take turns; medians count, for the cost that of the ratios of neighbours.
`--write` rewrites the section `panel` of docs/measured.md.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import dtflab as tf
from benchmarks.__main__ import machine
from benchmarks.measured import Report, add_write, load
from dtflab.cluster.process import ProcessTask
from dtflab.notebook.cluster_live import EVERY_S, LiveCluster
from dtflab.viz.drawing import front_end
from dtflab.viz.drawing.ticker import Ticker

BATCH_S = 2 * EVERY_S
CASES = (("inprocess", 2), ("inprocess", 50), ("process", 2))


class Page:
    """A page without a browser: messages to it are written as to any."""

    def send(self, message: object) -> None:
        json.dumps(message).encode()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.panel", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", metavar="N", type=int, default=60, help="seconds per row (default: 60)")
    add_write(parser)
    options = parser.parse_args(arguments)
    report = Report("panel")
    report.print(f"{machine()}\n\n{_line('CPU of a training step', 'alone', 'watched', 'cost')}")
    for engine, workers in CASES:
        alone, watched = measured(engine, workers, options.seconds)
        cost = statistics.median(b / a for a, b in zip(alone, watched, strict=True)) - 1
        cells = (*(f"{statistics.median(each) * 1e3:.3f} ms" for each in (alone, watched)), f"{cost:+.1%}")
        report.print(_line(f"{engine}, 1 ps and {workers} workers", *cells))
    report.print(f"\n{load()}")
    if options.write:
        report.write()


def measured(engine: str, workers: int, seconds: float) -> list[list[float]]:
    """CPU seconds of a step per batch, without the panel and with it."""
    front_end._widgets.append(Page())
    with tf.Graph().as_default(), tf.Cluster(ps=1, worker=workers, engine=engine) as cluster:
        step = _training(cluster)
        ticker = Ticker("1", LiveCluster(cluster).look, every=EVERY_S)
        processes = [task.pid for task in cluster.tasks if isinstance(task, ProcessTask)]
        found: dict[bool, list[float]] = {False: [], True: []}
        for i in range(2 * max(1, round(seconds / BATCH_S / 2))):
            watched = bool(i % 2)
            ticker.begin() if watched else ticker.end()
            ticker.join(None if not watched else 0)
            found[watched].append(_batch(step, processes))
        ticker.end()
        ticker.join()
    front_end._widgets.clear()
    return list(found.values())


def _training(cluster: tf.Cluster) -> Callable[[], object]:
    """A step of a network of two layers on the first worker, its variables on the parameter server."""
    with tf.device(tf.train.replica_device_setter(cluster=cluster.spec, worker_device="/job:worker/task:0")):
        x, y = tf.placeholder(tf.float32, [100, 784]), tf.placeholder(tf.int32, [100])
        hidden = tf.layers.dense(x, 100, tf.nn.relu)
        loss = tf.losses.sparse_softmax_cross_entropy(y, tf.layers.dense(hidden, 10))
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    session = tf.Session(cluster.target)
    session.run(tf.global_variables_initializer())
    images, labels = np.random.default_rng(0).random((100, 784), np.float32), np.arange(100) % 10
    return lambda: session.run(train, {x: images, y: labels})


def _batch(step: Callable[[], object], processes: Sequence[int]) -> float:
    steps, began, cpu = 0, time.perf_counter(), _cpu(processes)
    while time.perf_counter() - began < BATCH_S:
        step()
        steps += 1
    return (_cpu(processes) - cpu) / steps


def _cpu(processes: Sequence[int]) -> float:
    """CPU seconds of this process and of some others so far."""
    stats = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in processes]
    return time.process_time() + sum(int(stat[11]) + int(stat[12]) for stat in stats) / os.sysconf("SC_CLK_TCK")


def _line(name: str, *cells: str) -> str:
    return f"{name:<32}" + "".join(f"{cell:>11}" for cell in cells)


if __name__ == "__main__":
    main()
