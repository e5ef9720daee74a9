"""Kill a process that saves one checkpoint again and again, and read what it leaves.

    python -m tests.files.kill_saves [KILLS]

prints how many of the kills (200) found no whole checkpoint.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import NamedTuple

import dtflab as tf

SIZE = 50_000  # of each of 20 variables: 4 MB


class Outcome(NamedTuple):
    """The findings after the kills."""

    kills: int
    unreadable: int
    old: int  # the last save of which was heard
    new: int  # one after that
    leftovers: int  # most files besides those of a checkpoint, seen after a kill
    garbage: int  # of them, left after one more save


def save_forever(prefix: str) -> None:
    """The process that is killed: a line for each save that is done."""
    variables = [tf.Variable(tf.zeros([SIZE]), name=f"v{i}") for i in range(20)]
    steps = tf.group(*[v.assign_add(tf.ones([SIZE])) for v in variables])
    saver = tf.train.Saver()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        if tf.train.latest_checkpoint(str(Path(prefix).parent)):
            saver.restore(session, prefix)
        while True:
            session.run(steps)
            saver.save(session, prefix, write_meta_graph=False)
            print(int(session.run(variables[0][0])), flush=True)


def value_of(prefix: str) -> int | None:
    """The number in all elements of all variables; None if the checkpoint can't be read, or has more than one."""
    try:
        reader = tf.train.load_checkpoint(prefix)
        values = {float(one) for i in range(20) for one in set(reader.get_tensor(f"v{i}").tolist())}
    except (tf.errors.OpError, ValueError):
        return None
    return int(values.pop()) if len(values) == 1 else None


def kill_many(kills: int, folder: Path, seed: int = 1) -> Outcome:
    """`kills` processes, each killed within 0.1 s after its second save; each goes on from what the last one left."""
    chance = random.Random(seed)
    prefix = str(folder / "ckpt")
    found: list[int | None] = []
    old = leftovers = 0
    for _ in range(kills):
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.files.kill_saves", "--save", prefix], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        heard = [int(process.stdout.readline()) for _ in range(2)]
        threading.Event().wait(chance.uniform(0, 0.1))
        process.send_signal(signal.SIGKILL)
        heard += map(int, process.stdout.read().split())
        process.stdout.close()
        process.wait()
        found.append(value_of(prefix))
        old += found[-1] == heard[-1]
        leftovers = max(leftovers, _others(folder))
        if found[-1] is None:
            for path in folder.iterdir():
                path.unlink()
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(1.0)
        session.run(v.initializer)
        tf.train.Saver().save(session, prefix, write_meta_graph=False)
    unreadable = found.count(None)
    return Outcome(kills, unreadable, old, kills - unreadable - old, leftovers, _others(folder))


def _others(folder: Path) -> int:
    names = {path.name for path in folder.iterdir()}
    return len(names - {"checkpoint", "ckpt.index", "ckpt.data-00000-of-00001"})


if __name__ == "__main__":
    if sys.argv[1:2] == ["--save"]:
        save_forever(sys.argv[2])
    with tempfile.TemporaryDirectory() as place:
        print(kill_many(int(sys.argv[1]) if sys.argv[1:] else 200, Path(place)))
