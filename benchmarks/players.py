"""Players: the processes in which the libraries run, one each, and how they are asked.

Run as `python -m benchmarks.players LIBRARY`, this module is such a process: it reads the name of a workload per line,
and which part of it, or of a curve and a size, measures that once more, and answers with a line of JSON. So two
libraries take turns without seeing each other's threads. What one workload keeps ends before the next one begins.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

# "bare" is what a workload costs without any of the two: NumPy, or a socket, by hand.
MODULES = {"dtflab": "dtflab", "TensorFlow": "tensorflow.compat.v1", "bare": ""}

_SET = {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_ENABLE_ONEDNN_OPTS": "1",
    "TF_USE_LEGACY_KERAS": "1",  # where TensorFlow 2 keeps tf.layers and tf.nn.rnn_cell
    "CUDA_VISIBLE_DEVICES": "",
    "PYTHONDONTWRITEBYTECODE": "",  # an installed library has its bytecode; a source tree gets it in the first round
}
# NumPy's products take the kernels that its BLAS finds best, as TensorFlow's do, no matter what the environment asks of
# older builds.
_UNSET = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


def environment() -> dict[str, str]:
    """The environment variables that every library is measured with."""
    return {**{name: value for name, value in os.environ.items() if name not in _UNSET}, **_SET}


class Player:
    """A library in a process of its own, out of reach of the terminal's Ctrl-C: only `close` ends it."""

    def __init__(self, library: str) -> None:
        self.library = library
        self._folder = tempfile.TemporaryDirectory()  # what the process leaves behind goes with it
        self._words = tempfile.TemporaryFile("w+")  # noqa: SIM115 - TensorFlow is talkative, to the end
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.players", library],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            text=True,
            env={**environment(), "TMPDIR": self._folder.name},
            start_new_session=True,
        )

    def measure(self, workload: str, part: str = "prepare") -> list[float]:
        """One value per row of that part of the workload; what it needs is set up the first time."""
        assert self._process.stdin is not None and self._process.stdout is not None
        print(workload, part, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            self._words.seek(0)
            raise RuntimeError(f"{self.library} ended while it ran {workload!r}:\n{self._words.read()[-3000:]}")
        values: list[float] = json.loads(answer)
        return values

    def close(self) -> None:
        """End the process at any moment; the servers that it started end with it."""
        with self._process:  # closes its pipes, and waits
            self._process.kill()
        self._words.close()
        self._folder.cleanup()


def load(library: str) -> Any:
    """The library's TF1 namespace; None for `bare`."""
    if not MODULES[library]:
        return None
    tf = importlib.import_module(MODULES[library])
    tf.disable_v2_behavior()
    return tf


def _play(library: str) -> None:
    """Answer until standard input ends."""
    from benchmarks.curves import CURVES
    from benchmarks.workloads import WORKLOADS
    from benchmarks.workloads.workload import KEPT

    answers, sys.stdout = sys.stdout, sys.stderr  # what a library prints is not an answer
    tf = load(library)
    ready: dict[str, dict[str, Callable[[], Any]]] = {}
    for line in sys.stdin:
        name, part = line.split()
        if name in CURVES:
            print(json.dumps(list(CURVES[name].measure(tf, int(part)))), file=answers, flush=True)
            continue
        if name not in ready:
            ready.clear()
            KEPT.clear()
        parts = ready.setdefault(name, {})
        if part not in parts:
            prepare = getattr(WORKLOADS[name], part)
            parts[part] = prepare(tf) if tf else prepare()
        print(json.dumps(list(parts[part]())), file=answers, flush=True)
    os._exit(0)  # TensorFlow's servers can't be stopped


if __name__ == "__main__":
    _play(sys.argv[1])
