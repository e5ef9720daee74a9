"""A process of one kind, TensorFlow's or dtflab's: its servers, and its clients' programs (`programs/`).

TensorFlow is loaded there and not in the tests' own process: its servers can't be stopped, its v2 behaviour can't be
switched back, and some of its calls hold the interpreter's lock while they wait for an answer. dtflab has such
processes, too, so that both kinds do the same in the same way, and everything between them goes over the wire.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dtflab.cluster.addresses import free_addresses

ROOT = Path(__file__).parents[2]
PATIENCE = 300  # seconds; loading TensorFlow takes some when several do, a program one at most
MODULES = {"TensorFlow": "tensorflow.compat.v1", "TensorFlow v2": "tensorflow.compat.v1", "dtflab": "dtflab"}


class PeerError(Exception):
    """An error that a program raised there: the name of the class, and the text."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind
        self.text = text


class Peer:
    """The process, which ends when its standard input does. `kind` is one of MODULES, `python` begins its command."""

    def __init__(self, kind: str, python: Sequence[str] = (sys.executable,)) -> None:
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by `stop`
        self._process = subprocess.Popen(
            [*python, "-m", "tests.interop.peer", kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            cwd=ROOT,
        )
        self._is_up = False

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        in_time = select.select([self._process.stdout], [], [], PATIENCE)[0]
        if not in_time:
            self._process.kill()
        line = self._process.stdout.readline()
        if not line:
            self._log.seek(0)
            why = "ended" if in_time else f"did not answer within {PATIENCE} s"
            raise RuntimeError(f"The process {why}:\n{self._log.read()[-3000:]}")
        answer = json.loads(line)
        if "error" in answer:
            raise PeerError(*answer["error"])
        return answer["value"]

    def begin(self, program: str, **arguments: Any) -> None:
        """Start a program there; `end` gives its result."""
        if not self._is_up:
            self._answer()
            self._is_up = True
        assert self._process.stdin is not None
        print(json.dumps([program, arguments]), file=self._process.stdin, flush=True)

    end = _answer

    def run(self, program: str, **arguments: Any) -> Any:
        """Call a program there; PeerError if it raises."""
        self.begin(program, **arguments)
        return self._answer()

    def serve(self, cluster: dict[str, list[str]], job: str, index: int) -> str:
        """Start a server there that runs until the process ends; its address."""
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


def _main(kind: str) -> None:
    """The child: a line of JSON in, a line of JSON out."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever is printed
    os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="", GRPC_VERBOSITY="ERROR")
    tf = importlib.import_module(MODULES[kind])
    if kind == "TensorFlow":
        tf.disable_v2_behavior()
    from tests.interop import programs

    print(json.dumps({"value": None}), file=out, flush=True)
    for line in sys.stdin:
        name, arguments = json.loads(line)
        try:
            answer = {"value": programs.run(tf, name, arguments)}
        except Exception as error:
            answer = {"error": [type(error).__name__, str(error)]}
        print(json.dumps(answer), file=out, flush=True)
    os._exit(0)  # TensorFlow's servers know no other end


if __name__ == "__main__":
    _main(sys.argv[1])
