"""A minute of `make soak`, and its judgement of runs that something is wrong with."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys

from tests.soak import running
from tests.soak.__main__ import main
from tests.soak.accounts import Restored, Sample, Step, account, grown, restored_of, steps_of
from tests.soak.drawn import KINDS, WITNESS, faults


def test_a_minute_of_training_under_faults(capsys):
    assert main(["--seconds", "60", "--seed", "2"]) == 0, capsys.readouterr().out
    said = capsys.readouterr().out
    assert "drop RecvTensor" in said and "kill client" in said  # the first two of this seed
    assert "weights [3.0, -1.0]" in said and "WRONG: nothing" in said


def test_a_seed_means_the_same_faults():
    first, again, other = (list(itertools.islice(faults(seed), 600)) for seed in (1, 1, 2))
    assert first == again != other
    assert {(fault.kind, fault.what) for fault in first} == {(k.name, what) for k in KINDS for what in k.choices}
    assert not any(fault.kind == "kill" and fault.what.endswith(f":{WITNESS}") for fault in first)


# ---- the counts ----


def steps(*counts):
    return [Step(at, at + 0.5, count) for at, count in enumerate(counts, 1)]


def complaints(counts, final, *restored):
    return account(0, steps(*counts), restored, final).complaints


def test_steps_that_are_counted_once_or_more_often_are_right():
    assert account(0, steps(1, 2, 3), [], 3)[:3] == (3, 0, 0)
    assert account(0, steps(1, 3, 6), [], 7)[:3] == (3, 4, 0)
    assert complaints((1, 2, 3), 3) == complaints((1, 3, 6), 7) == []


def test_a_step_that_is_lost_is_found():
    assert complaints((1, 2, 2), 2) == ["worker 0: 2 steps were counted, then 2, but nothing was restored"]
    assert complaints((1, 2, 3), 2) == ["worker 0: 3 steps were counted, then 3, but nothing was restored"]


def test_only_a_checkpoint_undoes_steps_and_no_more_than_came_after_it():
    """The third step is over when the chief restores, and the fourth one is not."""
    counts, now = (1, 2, 3, 2, 3), Restored(3.6, 3.9, (1,))
    assert complaints(counts, 3, now) == []
    assert account(0, steps(*counts), [now], 3).undone == 2
    assert complaints(counts, 3, Restored(3.6, 3.9, (2,))) == [
        "worker 0: 3 steps were counted, then 2, but the checkpoint had 2"
    ]
    assert complaints(counts, 3, Restored(5.6, 5.9, (1,))) == [
        "worker 0: 3 steps were counted, then 2, but nothing was restored"
    ]


def test_what_a_client_writes_down_is_read_up_to_its_last_whole_line():
    text = "restored 1.5 0 0 0\nstep 2.0 2.25 1\nstep 3.0 3.25 2\nrestored 4.5 2 1 0\nstep 5.0 5."
    assert steps_of(text) == [Step(2.0, 2.25, 1), Step(3.0, 3.25, 2)]
    assert restored_of(text) == [Restored(0.0, 1.5, (0, 0, 0)), Restored(3.25, 4.5, (2, 1, 0))]


# ---- leaks ----


def test_what_grows_is_found():
    flat = [Sample(30.0, 9, 5)] + [Sample(70.0 + i % 3, 10, 9) for i in range(40)]
    assert list(grown("a server", flat)) == []
    leaks = [Sample(70.0 + 2 * i, 10 + 2 * i, 9) for i in range(40)]
    assert list(grown("a server", leaks)) == [
        "a server: MB grew from 99 to 139", "a server: files grew from 39 to 79"
    ]  # fmt: skip


def test_processes_and_temporary_files_that_are_left_are_found(tmp_path):
    (tmp_path / "temporary").mkdir()
    (tmp_path / "temporary" / "x").touch()
    waits = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"]
    with subprocess.Popen(
        waits, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | {"DTFLAB_SOAK": str(tmp_path)}
    ) as process:
        process.stdout.readline()
        assert running.left(tmp_path) == [f"process {process.pid} is left", "temporary/x is left"]
    assert running.left(tmp_path) == ["temporary/x is left"]


# ---- clients that fail ----


def test_clients_that_end_by_themselves_or_do_not_go_on_are_reported(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(running, "PATIENCE", 0.2)
    program = ["-c", "raise ValueError('no step')"]
    monkeypatch.setattr(running, "CLIENT", program)
    with running.running(tmp_path) as run:
        for process in run.clients.values():
            process.wait()
        run.finish()
        ended = [line for line in run.complaints if "ended by itself: status 1; ValueError: no step" in line]
        assert len(ended) >= 3
        assert [line for line in run.complaints if "does not go on" in line] == [
            f"client {index} does not go on" for index in range(3)
        ]
    assert running.left(tmp_path) == []
