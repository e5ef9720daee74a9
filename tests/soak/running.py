"""The cluster and the clients of a soak, and the faults that they suffer."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import dtflab as tf
from tests.house import ROOT
from tests.soak import client
from tests.soak.accounts import Sample
from tests.soak.drawn import WITNESS, WORKERS, Fault

CLIENT = ("-m", "tests.soak.client")
SILENCE = 2.0  # seconds: a task that is stopped for longer than twice that is given up
PATIENCE = 60.0  # seconds for a client to make a step, or to end: more than any fault needs
_MARK = "DTFLAB_SOAK"  # in the environment of each process of a soak


class Running:
    """One parameter server and three workers with a client each; `folder` holds all that they write."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.complaints: list[str] = []
        self.cluster = tf.Cluster(ps=1, worker=WORKERS, engine="process")
        self.cluster.credentials.save(folder / "credentials")
        self.clients = {index: self._client(index) for index in range(WORKERS)}

    def _client(self, index: int) -> subprocess.Popen[bytes]:
        target = self.cluster.target_of("worker", index)
        with open(self.folder / f"client{index}.log", "a") as log:
            return subprocess.Popen(
                [sys.executable, *CLIENT, target, str(index), str(self.folder)],
                cwd=ROOT, env=os.environ | {"DTFLAB_CREDENTIALS": str(self.folder / "credentials")},
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def suffer(self, fault: Fault) -> None:
        """Do what the fault says, and undo it."""
        job, _, index = fault.what.partition(":")
        if job == "client":
            self._harm_client(int(index), fault)
        else:
            with tf.chaos(self.cluster, **{fault.kind: fault.what}):
                time.sleep(fault.lasts)
            if fault.kind == "kill":
                self.cluster.restart(job, int(index))
        self._look_at_clients()

    def _harm_client(self, index: int, fault: Fault) -> None:
        process = self.clients[index]
        process.send_signal(signal.SIGKILL if fault.kind == "kill" else signal.SIGSTOP)
        time.sleep(fault.lasts)
        if fault.kind == "kill":
            process.wait()
            self.clients[index] = self._client(index)
        else:
            process.send_signal(signal.SIGCONT)

    def _look_at_clients(self) -> None:
        """A client that has ended did so by itself; start it again, so that each is reported once."""
        for index, process in self.clients.items():
            if process.poll() is not None:
                why = f"status {process.returncode}; {self._last_words(index)}"
                self.complaints.append(f"client {index} ended by itself: {why}")
                self.clients[index] = self._client(index)

    def _last_words(self, index: int) -> str:
        lines = (self.folder / f"client{index}.log").read_text().split("\n")
        return next((line for line in reversed(lines) if "rror" in line), "it said nothing")

    def steps(self, index: int) -> str:
        """The lines that a client has written down."""
        path = client.steps_file(self.folder, index)
        return path.read_text() if path.exists() else ""

    def sample(self) -> dict[str, Sample]:
        """A sample of each process that lives as long as the soak."""
        pids = {"the program": os.getpid(), "the witness's server": self.cluster.task("worker", WITNESS).pid,
                "the witness's client": self.clients[WITNESS].pid}  # fmt: skip
        return {who: sample_of(pid) for who, pid in pids.items()}

    def finish(self) -> None:
        """Let each client make one more step, then end them all."""
        before, deadline = {index: len(self.steps(index)) for index in self.clients}, time.monotonic() + PATIENCE
        while stuck := [index for index, size in before.items() if len(self.steps(index)) == size]:
            if time.monotonic() > deadline:
                self.complaints += [f"client {index} does not go on" for index in stuck]
                break
            time.sleep(0.1)
        self._look_at_clients()
        (self.folder / "stop").touch()
        for index, process in self.clients.items():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE)
            if process.poll() != 0:
                self.complaints.append(
                    f"client {index} was asked to end: status {process.poll()}; {self._last_words(index)}"
                )

    def state(self) -> tuple[int, list[float], list[int]]:
        """The global step, the weights and the counts, as the parameter server has them."""
        with tf.Graph().as_default():
            own = client.model()
            with tf.Session(self.cluster.target) as session:
                step, weights, counts = session.run((own.step, own.weights, own.counts))
        return int(step), weights.tolist(), [int(count) for count in counts]

    def stop(self) -> None:
        """End all processes, whatever state they are in."""
        with contextlib.ExitStack() as each:
            each.callback(self.cluster.stop)
            for process in self.clients.values():
                each.callback(process.wait)
                each.callback(process.kill)


def sample_of(pid: int) -> Sample:
    """Look at what a process holds now."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    files = len(os.listdir(f"/proc/{pid}/fd"))
    return Sample(int(status["VmRSS"].split()[0]) / 1024, files, int(status["Threads"]))


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Running]:
    """A soak's processes, gone afterwards. All of them bear its mark, and have a temporary folder of their own."""
    (folder / "temporary").mkdir()
    with (
        mock.patch.dict(os.environ, {_MARK: str(folder), "TMPDIR": str(folder / "temporary")}),
        mock.patch.object(tf.timeouts, "silence", SILENCE),
        mock.patch.dict(os.environ, {"DTFLAB_TIMEOUT_SILENCE": str(SILENCE)}),
    ):
        run = Running(folder)
        try:
            yield run
        finally:
            run.stop()


def left(folder: Path) -> list[str]:
    """The processes and temporary files that a soak has left behind, a line each."""
    mark = f"{_MARK}={folder}".encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # it has ended meanwhile, or is another user's
            if mark in path.read_bytes().split(b"\0"):
                found.append(f"process {path.parent.name} is left")
    places = [*(folder / "temporary").rglob("*"), *(folder / "model").glob("*temp*")]
    return found + [f"{path.relative_to(folder)} is left" for path in places if path.is_file()]
