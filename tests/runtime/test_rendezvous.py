from __future__ import annotations

import numpy as np
import pytest

from dtflab.base import errors
from dtflab.graph import dtypes
from dtflab.ops.cell import Cell
from dtflab.runtime.rendezvous import DEAD, Rendezvous, RendezvousMgr, full_key
from dtflab.runtime.step_rendezvous import StepRendezvous

CPU = "/job:a/replica:0/task:0/device:CPU:0"
KEY = (CPU, 0x1234ABCD, "/job:a/replica:0/task:1/device:CPU:0", "edge_6_b")


class Box:
    """The results that a consumer got."""

    def __init__(self):
        self.results = []

    def __call__(self, value, error):
        self.results.append(value if error is None else type(error))


@pytest.fixture
def table():
    return Rendezvous()


def test_keys_are_tensorflows():
    text = full_key(KEY, "0:0")
    assert text == (
        "/job:a/replica:0/task:0/device:CPU:0;000000001234abcd;/job:a/replica:0/task:1/device:CPU:0;edge_6_b;0:0"
    )


@pytest.mark.parametrize("value", [1.5, DEAD, None])
def test_whoever_comes_first_waits(table, value):
    first, second = Box(), Box()
    table.recv_async("a", first)
    assert first.results == [] and table.waiting() == ["a"]
    table.send("a", value)
    table.send("b", value)
    table.recv_async("b", second)
    assert first.results == second.results == [value] and table.waiting() == []


def test_a_key_is_used_once_by_each(table):
    table.send("a", 1)
    with pytest.raises(errors.AbortedError, match="Duplicated send: a"):
        table.send("a", 2)
    first = Box()
    table.recv_async("b", first)
    with pytest.raises(errors.AbortedError, match="Duplicated recv: b"):
        table.recv_async("b", Box())
    table.send("b", 3)
    assert first.results == [3]  # who came first has lost nothing


def test_who_gives_up_makes_room_for_another(table):
    first, second = Box(), Box()
    table.recv_async("a", first)
    table.forget("a", first)
    table.recv_async("a", second)
    table.send("a", 1)
    assert (first.results, second.results) == ([], [1])


def test_a_key_may_be_used_again_once_it_was_served(table):
    box = Box()
    for value in (1, 2):
        table.send("a", value)
        table.recv_async("a", box)
    assert box.results == [1, 2]


def test_a_variable_is_read_when_it_is_taken(table):
    cell, box = Cell("v", dtypes.float32, ()), Box()
    cell.assign(np.float32(1))
    table.send("a", cell)
    cell.assign(np.float32(2))
    table.recv_async("a", box)
    table.recv_async("b", box)
    table.send("b", cell)
    assert box.results == [2, 2]


def test_an_error_reaches_all_who_wait_and_all_who_come(table):
    error, waits, late = errors.CancelledError(None, None, "why"), Box(), Box()
    table.send("sent", 1)
    table.recv_async("a", waits)
    table.abort(error)
    table.abort(errors.InternalError(None, None, "a second error changes nothing"))
    table.recv_async("a", late)
    table.recv_async("sent", late)
    assert waits.results == [errors.CancelledError] and late.results == [errors.CancelledError] * 2
    with pytest.raises(errors.CancelledError, match="why"):
        table.send("b", 1)


def test_a_consumer_may_come_before_its_step():
    task, box = RendezvousMgr(), Box()
    task.find(7).recv_async("a", box)
    assert task.waiting() == [(7, "a")]
    task.find(7).send("a", 5)
    assert box.results == [5] and task.find(7) is not task.find(8)


def test_a_step_that_has_ended_is_not_made_again():
    task, waits, late = RendezvousMgr(), Box(), Box()
    task.find(7).recv_async("a", waits)
    task.cleanup(7)
    task.find(7).recv_async("b", late)
    assert waits.results == late.results == [errors.AbortedError] and task._steps == {}
    task.cleanup(8, errors.UnknownError(None, None, "never begun"))
    for step in range(5000):
        task.cleanup(step)
    assert len(task._ended) == 4096  # nothing grows forever


def test_the_end_of_a_task():
    task, box = RendezvousMgr(), Box()
    for step in (1, 2):
        task.find(step).recv_async("a", box)
    task.abort_all(errors.UnavailableError(None, None, "stopped"))
    assert box.results == [errors.UnavailableError] * 2


def test_values_are_pulled_from_the_task_that_makes_them():
    table, pulled, box = Rendezvous(), [], Box()
    step = StepRendezvous("/job:a/replica:0/task:0", table, lambda *call: pulled.append(call))
    step.send(KEY, "0:0", 5)
    step.recv_async(KEY, "0:0", box)
    assert box.results == [5]
    elsewhere = ("/job:a/replica:0/task:00/device:CPU:0", *KEY[1:])
    step.recv_async(elsewhere, "3:1", box)
    assert pulled == [("/job:a/replica:0/task:00", full_key(elsewhere, "3:1"), box)]
