"""The processes of a benchmark end with the one that started them, whatever either is doing."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading

import pytest

from benchmarks.players import Player
from benchmarks.servers import ServerProcess, free_cluster, set_up, started
from benchmarks.workloads import WORKLOADS
from tests.house import ROOT

pytestmark = pytest.mark.processes


def stuck(*_):
    """A program whose step never ends."""
    return threading.Event().wait


def counting(_, cluster, target, index):
    """A program that says what it got, and how many steps it ran."""
    steps = []
    print([*cluster], target == cluster["worker"][0], index, file=sys.stderr)
    return lambda: print(steps.append(None) or len(steps), file=sys.stderr)


_KILLED = """
import os, signal
from benchmarks.servers import free_cluster, started
from tests.test_benchmark_processes import stuck
ps, worker = started("", free_cluster(ps=1, worker=1), stuck)
worker.request(0)
worker.wait()
worker.request(1)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_player_leaves_no_server_and_no_stuck_worker():
    """All share one standard error, so `run` comes back only when the last of them has ended."""
    done = subprocess.run([sys.executable, "-c", _KILLED], cwd=ROOT, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == -9 and done.stderr == b""


def test_a_process_runs_the_steps_of_its_program_when_it_is_asked(capfd):
    processes = started("", free_cluster(ps=1, worker=1), counting)
    set_up(processes[1:])
    processes[1].request(2)
    assert processes[1].wait() == "2"
    for process in processes:
        process.stop()
    assert capfd.readouterr().err == "['ps', 'worker'] True 0\n1\n2\n"


def test_a_process_that_ends_by_itself_is_an_error(capfd):
    process = ServerProcess("", {}, "ps", 0)
    with pytest.raises(RuntimeError, match="ended before it answered"):
        process.wait()
    process.stop()
    assert "KeyError: 'ps'" in capfd.readouterr().err


def test_a_player_that_fails_says_why_and_ends():
    player = Player("bare")
    with pytest.raises(RuntimeError, match=r"bare ended while it ran 'nobody':[\s\S]*KeyError: 'nobody'"):
        player.measure("nobody")
    player.close()
    assert player._process.returncode is not None


@pytest.mark.parametrize("library", ["dtflab", "bare"])
@pytest.mark.parametrize("name", ["scalar-process", "crossing", "ps-processes", "counter", "start-processes"])
def test_a_workload_between_processes_runs(name, library):
    """The workload's own assertions hold: the tensor arrives whole, and every increment and step counts."""
    with contextlib.closing(Player(library)) as player:
        values = player.measure(name, "bare" if library == "bare" else "prepare")
    assert len(values) == len(WORKLOADS[name].rows) and all(value > 0 for value in values)
