"""A process with a real TensorFlow in it: its servers, and its clients' programs (`tf_programs.py`).

TensorFlow is loaded there and not in the tests' own process: its servers can't be stopped, its v2 behaviour can't be
switched back, and some of its calls hold the interpreter's lock while they wait for an answer.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from dtflab.cluster.process import free_addresses

ROOT = Path(__file__).parents[2]


class TensorFlowError(Exception):
    """What a program raised there: the name of the class, and the text."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind
        self.text = text


class TensorFlow:
    """The process; it ends when its standard input does."""

    def __init__(self, v2: bool = False) -> None:
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by `stop`
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.interop.tf_process", "v2" if v2 else "v1"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            cwd=ROOT,
        )
        self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._log.seek(0)
            raise RuntimeError(f"TensorFlow's process ended:\n{self._log.read()[-3000:]}")
        answer = json.loads(line)
        if "error" in answer:
            raise TensorFlowError(*answer["error"])
        return answer["value"]

    def begin(self, program: str, **arguments: Any) -> None:
        """Start a function of `tf_programs`; `end` gives its result."""
        assert self._process.stdin is not None
        print(json.dumps([program, arguments]), file=self._process.stdin, flush=True)

    end = _answer

    def run(self, program: str, **arguments: Any) -> Any:
        """Call a function of `tf_programs` there; TensorFlowError if it raises."""
        self.begin(program, **arguments)
        return self._answer()

    def serve(self, cluster: dict[str, list[str]], job: str, index: int) -> str:
        """Start a TensorFlow server there that runs until the process ends; its address."""
        self.run("serve", cluster=cluster, job=job, index=index)
        return cluster[job][index]

    def kill(self) -> None:
        self._process.kill()
        self.stop()

    def stop(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._log.close()


def addresses(**jobs: int) -> dict[str, list[str]]:
    """A cluster of free loopback addresses."""
    found = iter(free_addresses(sum(jobs.values())))
    return {job: [next(found) for _ in range(count)] for job, count in jobs.items()}


def _main(mode: str) -> None:
    """The child: a line of JSON in, a line of JSON out."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever TensorFlow prints
    os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="", GRPC_VERBOSITY="ERROR")
    import tensorflow.compat.v1 as tf

    if mode == "v1":
        tf.disable_v2_behavior()
    from tests.interop import tf_programs

    print(json.dumps({"value": None}), file=out, flush=True)
    for line in sys.stdin:
        name, arguments = json.loads(line)
        try:
            answer = {"value": getattr(tf_programs, name)(**arguments)}
        except Exception as error:
            answer = {"error": [type(error).__name__, str(error)]}
        print(json.dumps(answer), file=out, flush=True)
    os._exit(0)  # its servers know no other end


if __name__ == "__main__":
    _main(sys.argv[1])
