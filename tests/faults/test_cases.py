"""Every task may end at every moment: the program gets an error that it can retry after, and a new session works."""

from __future__ import annotations

import pytest

from tests.faults import cases
from tests.faults.moments import MOMENTS, VICTIMS

LOST = ("UnavailableError", "AbortedError")  # what a MonitoredSession recovers from


@pytest.fixture(scope="module", params=["inprocess", "virtual time"])
def of_this_process(request):
    with cases.cluster(request.param) as found:
        yield found


@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_task_of_this_process(of_this_process, moment, victim):
    seen = cases.seen(of_this_process, "killed", moment, victim)
    assert seen.what in LOST and not seen.afterwards
    assert "TASK" in seen.said or "ID is not found" in seen.said or "handle is not found" in seen.said


@pytest.mark.parametrize("fault", ["killed", "stopped"])
@pytest.mark.parametrize("moment", ["while it computes", "while it waits at another's queue"])
def test_a_process_that_is_killed_or_stopped(fault, moment):
    with cases.cluster("process") as found:
        seen = {victim: cases.seen(found, fault, moment, victim) for victim in VICTIMS}
    for each in seen.values():
        assert each.what in LOST and "TASK" in each.said and not each.afterwards
        assert ("silent for 2 s" in each.said) == (fault == "stopped")


def test_a_step_that_no_fault_hits_waits_or_goes_on(monkeypatch):
    monkeypatch.setattr(cases, "PATIENCE", 0.5)
    monkeypatch.setitem(cases.FAULTS, "hardly slower", cases.Fault("slow", "TASK=1.01x"))
    with cases.cluster("inprocess") as found:
        ends = {moment: cases.seen(found, "hardly slower", moment, "a ps") for moment in MOMENTS}
    assert not any(seen.afterwards for seen in ends.values())
    waits = {moment for moment, seen in ends.items() if seen.what == "waits"}
    assert waits == {"while it computes", "while it waits at another's queue", "while another waits at its queue"}
    assert {seen.what for seen in ends.values()} == {"waits", "goes on"}


def test_a_sentence_has_nothing_of_one_run_alone():
    message = "From /job:ps/replica:0/task:0:\nSession 0123456789abcdef at localhost:1234. It is. \n\t [[{{node x}}]]"
    assert cases.sentence(message, ("ps", 0)) == "From TASK: Session ID at ADDRESS"
    noise = 'From /job:ps/task:0:\nSocket closed\nAdditional GRPC error information from remote target x:{"grpc"}'
    assert cases.sentence(f"\n=====\nUNAVAILABLE:\n{noise}", ("ps", 0)) == "From TASK: Socket closed"
    assert cases.sentence("x.y of /job:ps/task:01 at ipv4:127.0.0.1:7", ("ps", 0)) == (
        "x.y of /job:ps/task:01 at ADDRESS"
    )
