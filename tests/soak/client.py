"""A client of the soak: it trains until a file asks it to stop, and writes down each step that came back.

`python -m tests.soak.client TARGET INDEX FOLDER`. What it writes survives its own end by SIGKILL.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import NamedTuple, TextIO

import dtflab as tf
from tests.soak.drawn import WORKERS

SLOPE, OFFSET = 3.0, -1.0
SAVE_EVERY = 200  # steps


class Model(NamedTuple):
    """All variables are on the parameter server."""

    step: tf.Variable
    weights: tf.Variable
    counts: list[tf.Variable]  # of each worker's steps


def model() -> Model:
    with tf.device("/job:ps/task:0"):
        counts = [tf.get_variable(f"count{i}", [], tf.int64, tf.zeros_initializer()) for i in range(WORKERS)]
        weights = tf.get_variable("weights", [2], initializer=tf.zeros_initializer())
        return Model(tf.train.get_or_create_global_step(), weights, counts)


def train_op(own: Model, index: int) -> tf.Tensor:
    """A step of gradient descent on SLOPE · x + OFFSET; its value is the worker's own count after it."""
    with tf.device(f"/job:worker/task:{index}"):
        x = tf.random_uniform([16], -1.0, 1.0)
        loss = tf.reduce_mean(tf.square(own.weights[0] * x + own.weights[1] - (SLOPE * x + OFFSET)))
        trained = tf.train.GradientDescentOptimizer(0.2).minimize(loss, own.step, var_list=[own.weights])
    with tf.control_dependencies([trained]):
        return tf.assign_add(own.counts[index], 1, use_locking=True)


def steps_file(folder: Path, index: int) -> Path:
    return folder / f"steps{index}"


class Restored(tf.train.SessionRunHook):
    """Writes down that the chief has a session, and the counts in the checkpoint that it began with."""

    def __init__(self, file: TextIO, folder: Path) -> None:
        self._file, self._folder = file, folder

    def after_create_session(self, session: tf.Session, coord: tf.train.Coordinator) -> None:
        """Before the hook that saves a first checkpoint of its own."""
        latest, counts = tf.train.latest_checkpoint(str(self._folder)), [0] * WORKERS
        if latest is not None:
            reader = tf.train.load_checkpoint(latest)
            counts = [int(reader.get_tensor(f"count{i}")) for i in range(WORKERS)]
        print("restored", time.monotonic(), *counts, file=self._file)


def main(target: str, index: int, folder: Path) -> None:
    op, stop = train_op(model(), index), folder / "stop"
    with (
        open(steps_file(folder, index), "a", buffering=1) as file,
        tf.train.MonitoredTrainingSession(
            target, index == 0, str(folder / "model"), chief_only_hooks=[Restored(file, folder / "model")],
            save_checkpoint_steps=SAVE_EVERY, save_checkpoint_secs=None, save_summaries_steps=0, log_step_count_steps=0,
        ) as session,
    ):  # fmt: skip
        while not stop.exists():
            began = time.monotonic()
            count = session.run(op)
            print("step", began, time.monotonic(), count, file=file)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
