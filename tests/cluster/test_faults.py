"""The faults of a task: who may set them, how they travel, and which calls they hit."""

from __future__ import annotations

import threading

import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.cluster.faults import METHODS, NONE, Faults, Setting, chance
from dtflab.machine.clock import REAL


def test_a_task_takes_no_faults_unless_a_cluster_started_it():
    server = tf.train.Server.create_local_server()
    try:
        with pytest.raises(errors.FailedPreconditionError, match="takes no faults"):
            server.task.faults.set(Setting(slow=2.0))
    finally:
        server.stop()


MALFORMED = [
    b"",
    b"[]",
    b"{",
    b"\xff",
    b'{"what": 1}',
    b'{"slow": null}',
    b'{"slow": 0.5}',
    b'{"slow": NaN}',
    b'{"drop": 3}',
]


@pytest.mark.parametrize("data", [*MALFORMED, b'{"seed": 1e999}', b"[" * 100_000], ids=range(11))
def test_malformed_faults_are_invalid(data):
    with pytest.raises(errors.InvalidArgumentError):
        Setting.from_json(data)


def test_faults_travel():
    setting = Setting(3, 2.5, ("/job:a/replica:0/task:0",), {"RecvTensor": 0.25})
    assert Setting.from_json(setting.as_json()) == setting


def test_the_chance_of_a_call_depends_on_all_that_names_it():
    calls = [(seed, a, b, method, n) for seed in (0, 1) for a, b in ("xy", "yx") for method in METHODS for n in (1, 2)]
    drawn = [chance(*call) for call in calls]
    assert len(set(drawn)) == len(calls) and all(0 <= x < 1 for x in drawn)
    many = [chance(0, "a", "b", "RecvTensor", n) for n in range(10_000)]
    assert sum(x < 0.1 for x in many) == pytest.approx(1000, abs=100)


def test_who_gives_up_a_held_call_gets_no_answer():
    faults = Faults("/job:a", REAL)
    faults.allow()
    faults.set(NONE._replace(cut_off=("/job:b",)))
    failed, begun = [], []
    give_up = faults.hold("RecvTensor", "/job:b", lambda: begun.append(1), failed.append)
    give_up()
    give_up()
    assert [type(error) for error in failed] == [errors.CancelledError]
    ended = [thread for thread in threading.enumerate() if thread.name == "held before /job:b"]
    faults.set(NONE)
    for thread in ended:
        thread.join(60)
    assert not begun and len(failed) == 1
