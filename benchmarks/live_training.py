"""Prints what a live picture costs the training that it shows, in a real kernel.

python -m benchmarks.live_training [--rounds N] [--write]

The network of lesson 00 trains on two workers of one process, 50 images a step, without a picture. Then as many losses
are reported in the same time, while nothing else runs: with a picture, and to nobody. The difference is the cost of the
picture: reports, the thread that draws, messages to the page, the still at the end. Both are processor times of all
threads of the kernel, which depend least on what else the machine does. `--write` rewrites the section `live-training`
of docs/measured.md.
"""

from __future__ import annotations

import argparse
import json
import statistics
from typing import Any

from nbclient import NotebookClient
from nbformat import v4

from benchmarks.__main__ import machine
from benchmarks.measured import ROOT, Report, add_write, load

LESSON = ROOT / "notebooks" / "src" / "00_welcome.py"
STEPS = 2000  # of each worker in a round
TIMED = f"""
import contextlib, json, time

def work(client):
    model = build(client)
    batches = tf.datasets.digits(one_hot=True, seed=client.index).train
    with tf.Session(client.target) as sess:
        for _ in range({STEPS}):
            images, labels = batches.next_batch(50)
            loss, _ = sess.run([model.loss, model.train], {{model.images: images, model.labels: labels}})
            client.report(loss)

def timed(call):
    began = time.process_time(), time.monotonic()
    call()
    return time.process_time() - began[0], time.monotonic() - began[1]

def alone(watch, seconds):
    with watch as report:
        for i in range(200):
            time.sleep(seconds / 200)
            for n in range({2 * STEPS} // 200):
                report(1 / (1 + i), n % 2)

def round_of():
    training, seconds = timed(lambda: cluster.run(work))
    live, _ = timed(lambda: alone(tf.viz.live("loss", steps={2 * STEPS}), seconds))
    nobody, _ = timed(lambda: alone(contextlib.nullcontext(lambda value, worker: None), seconds))
    return training / {2 * STEPS}, (live - nobody) / {2 * STEPS}, seconds
"""


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.live_training", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", metavar="N", type=int, default=8, help="trainings (default: 8)")
    add_write(parser)
    options = parser.parse_args(arguments)
    report = Report("live-training")
    report.print(f"{machine()}\n")
    found = measured(options.rounds)
    training, picture = (1e6 * statistics.median(times) for times in list(zip(*found, strict=True))[:2])
    costs = sorted(100 * picture / training for training, picture, _ in found)
    rate = 2 * STEPS / statistics.median(seconds for *_, seconds in found)
    report.print(f"a training step: {training:.0f} µs of the processor, {rate:,.0f} steps a second")
    report.print(
        f"its picture: {picture:.1f} µs a step, {100 * picture / training:.1f}% ({costs[0]:.1f}% to {costs[-1]:.1f}%)"
    )
    report.print(f"\n{load()}")
    if options.write:
        report.write()


def measured(rounds: int) -> list[tuple[float, float, float]]:
    """Seconds of the processor per step, those of its picture, and how long the training took, of each round."""
    texts = LESSON.read_text(encoding="utf-8").split("# %%\n")[1:]
    last = next(i for i, text in enumerate(texts) if "global_variables_initializer" in text)
    cells = [_cell(text) for text in texts[: last + 1]]
    cells += [TIMED, "round_of()", f"print(json.dumps([round_of() for _ in range({rounds})]))"]
    notebook = v4.new_notebook(cells=[v4.new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, timeout=1800, resources={"metadata": {"path": str(ROOT)}}).execute()
    return json.loads(_printed(notebook))


def _cell(text: str) -> str:
    """A cell of a lesson's source: its magics are comments there."""
    code = text.partition("# %% [markdown]")[0]
    return "\n".join(line.removeprefix("# ") if "%" in line[:14] else line for line in code.splitlines())


def _printed(notebook: Any) -> str:
    return "".join(output.text for output in notebook.cells[-1].outputs if output.output_type == "stream")


if __name__ == "__main__":
    main()
