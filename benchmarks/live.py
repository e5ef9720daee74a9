"""Prints how long live pictures of large cases take to answer in Chromium, in milliseconds.

python -m benchmarks.live [--ops N] [--events N] [--write]

A placement: from the click that opens a scope to a page whose layout is done. A timeline: from frame to frame while it
pans. CPU is the mean time that the page's thread worked for one of these, painting included; it does not depend on what
else the machine does. `--write` rewrites the section `live` of docs/measured.md.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import dtflab as tf
from benchmarks.__main__ import machine
from benchmarks.measured import ROOT, Report, add_write, load
from dtflab import viz
from dtflab.protos.step_stats_pb2 import StepStats
from dtflab.viz.drawing import front_end
from tests.browser.test_browser import CHROMIUM

OPS_OF_A_LAYER, DEVICES = 109, 4  # of `network`
HEADS = ("picture", "written", "page", "CPU", "median", "90%", "slowest")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live", description=__doc__.splitlines()[0])
    parser.add_argument("--ops", metavar="N", type=int, default=5000, help="ops of the graph, about (default: 5000)")
    parser.add_argument("--events", metavar="N", type=int, default=100_000, help="events of the step (default: 100000)")
    add_write(parser)
    options = parser.parse_args(arguments)
    report = Report("live")
    report.print(f"{machine()}\n\n{_line(*HEADS)}")
    graph = network(options.ops // OPS_OF_A_LAYER)
    count = len(graph.get_operations())
    report.print(_timed(f"{count:,} ops: open a scope", lambda: viz.placement(graph, max_boxes=9)))
    events = step(options.events)
    report.print(_timed(f"{options.events:,} events: pan, each frame", lambda: viz.timeline(events)))
    report.print(f"\n{load()}")
    if options.write:
        report.write()


def network(layers: int) -> tf.Graph:
    """Four towers of dense layers, their variables on a parameter server, trained by Adam."""
    with tf.Graph().as_default() as graph:
        with tf.device("/job:ps/task:0"):
            shared = [_variables(f"layer{i}") for i in range(layers)]
        losses = []
        for worker in range(DEVICES):
            with tf.device(f"/job:worker/task:{worker}"), tf.name_scope(f"tower{worker}"):
                x = tf.placeholder(tf.float32, [None, 8], name="x")
                for i, (weights, bias) in enumerate(shared):
                    with tf.name_scope(f"layer{i}"):
                        x = tf.nn.relu(tf.matmul(x, weights) + bias)
                losses.append(tf.reduce_mean(x))
        with tf.device("/job:ps/task:0"):
            tf.train.AdamOptimizer(0.1).minimize(tf.add_n(losses))
    return graph


def _variables(name: str) -> tuple[tf.Variable, tf.Variable]:
    with tf.variable_scope(name):
        return tf.get_variable("w", [8, 8]), tf.get_variable("b", [8])


def step(events: int) -> StepStats:
    """A trace of kernels of 5 to 50 microseconds, one after the other on each device; each tenth reads what is sent."""
    stats = StepStats()
    names = [f"/job:worker/replica:0/task:{device}/device:CPU:0" for device in range(DEVICES)]
    for device, name in enumerate(names):
        record, end = stats.dev_stats.add(device=name), 0
        for i in range(events // DEVICES):
            start, end = end + i % 3, end + 5 + (i * 7 + device) % 46
            read = f"op{device - 1}_{i - 2}" if device and i % 10 == 9 else ""
            node = record.node_stats.add(node_name=f"op{device}_{i}", timeline_label=f"op{device}_{i} = MatMul({read})")
            if i % 10 == 8 and device:
                sent = f"[4096B] op{device - 1}_{i - 1}:0 from {names[device - 1]} to {name}"
                node.node_name, node.timeline_label = "RecvTensor", sent
            node.all_start_micros, node.all_end_rel_micros = start, end - start
    return stats


def _timed(name: str, draw: Callable[[], viz.Picture]) -> str:
    begun = time.perf_counter()
    html = draw().html
    written = time.perf_counter() - begun
    module = front_end.MODULE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        page.write_text(
            f'<!doctype html><meta charset="utf-8"><body>{html}<script type="module">{module}</script>',
            encoding="utf-8",
        )
        command = ["node", ROOT / "tests" / "browser" / "time_page.mjs", page]
        environment = os.environ | {"CHROMIUM": CHROMIUM or ""}
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=600)
    found = json.loads(done.stdout)
    times = found["times"]
    shown = (found["cpu"], statistics.median(times), statistics.quantiles(times, n=10)[-1], max(times))
    return _line(name, f"{written:.1f} s", f"{len(html) / 1e3:.0f} KB", *(f"{each:.1f} ms" for each in shown))


def _line(name: str, *cells: str) -> str:
    return f"{name:<36}" + "".join(f"{cell:>10}" for cell in cells)


if __name__ == "__main__":
    main()
