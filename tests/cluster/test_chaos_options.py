"""The words of chaos: what a text means, and what is said of a wrong one."""

from __future__ import annotations

import pytest

from dtflab.cluster.chaos_options import EXAMPLES, fault

TASKS = ["/job:ps/replica:0/task:0", "/job:ps/replica:0/task:1", "/job:worker/replica:0/task:0"]


def test_what_a_text_means():
    one = fault("kill", "worker:0 @ step5 = 2s", TASKS)
    assert (one.tasks, one.at_step, one.lasts) == (TASKS[2:], 5, 2.0)
    assert fault("stop", "ps", TASKS).tasks == TASKS[:2]
    assert fault("slow", "ps:1,worker=1.5x@.5s", TASKS)[2:6] == (
        (("/job:ps/replica:0/task:1", TASKS[2]),),
        0,
        0.5,
        float("inf"),
    )
    assert fault("partition", "ps:0|ps:1,worker:0", TASKS).groups == ((TASKS[0],), (TASKS[1], TASKS[2]))
    assert fault("drop", "RunGraph:1", TASKS)[-2:] == ("RunGraph", 1.0)
    for kind, example in EXAMPLES.items():
        assert fault(kind, example, [*TASKS, *(f"/job:worker/replica:0/task:{n}" for n in (1, 2))]).kind == kind


@pytest.mark.parametrize(
    ("kind", "text", "says"),
    [
        ("kill", "wroker:0", r"names the task 'wroker:0' \(did you mean worker:0\?\); there are ps:0, ps:1, worker:0"),
        ("kill", "", "names the task ''"),
        ("kill", "ps:0@step0", "the first step is step1"),
        ("kill", "ps:0@5", "the part '@5'"),
        ("stop", "worker:0=3", "the part '=3', but there are @step5 and @2.5s"),
        ("slow", "ps:0", "does not say how slow"),
        ("slow", "ps:0=0.5x", "must be above 1x"),
        ("stop", "ps:0=4x", "the part '=4x'"),
        ("drop", "RecvTensr:0.1", r"did you mean RecvTensor\?"),
        ("drop", "RECVTENSOR:0.1", r"did you mean RecvTensor\?"),
        ("drop", "RecvTensor:2", "the probability '2'"),
        ("drop", "RecvTensor", "does not say with which probability"),
        ("kill", "ps:0@1s@step3", "says twice when it begins: '@step3'"),
        ("slow", "ps:0=2x=3s=4s", "says twice how much: '=4s'"),
        ("stop", "ps:0=0s", "lasts 0 s"),
        ("partition", "ps", "is one group"),
        ("partition", "ps|ps:0", "has ps:0 on both sides"),
    ],
)
def test_a_wrong_text_names_what_there_is_and_an_example(kind, text, says):
    with pytest.raises(ValueError, match=says) as wrong:
        fault(kind, text, TASKS)
    assert str(wrong.value).startswith(f"{kind}={text!r} ")
    assert str(wrong.value).endswith(f"For example: {kind}={EXAMPLES[kind]!r}")
