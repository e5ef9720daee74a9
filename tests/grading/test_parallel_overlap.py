"""parallel/q1 accepts every right answer, whichever way it is written, and says what is wrong with others."""

from __future__ import annotations

import numpy as np
import pytest

import dtflab as tf
from tests.grading.answers import full_marks

Q1 = "parallel/q1"


def ancestors(op):
    """All that an op waits for, found with a stack."""
    found, stack = set(), [op]
    while stack:
        one = stack.pop()
        for source in {tensor.op for tensor in one.inputs} | set(one.control_inputs):
            if source not in found:
                found.add(source)
                stack.append(source)
    return found


def with_ancestors(first, second):
    if first in ancestors(second) or second in ancestors(first):
        return False
    return not (first.device == second.device and first.device.endswith(("GPU:0", "GPU:1")))


def with_device_specs(first, second):
    here, there = tf.DeviceSpec.from_string(first.device), tf.DeviceSpec.from_string(second.device)
    one_gpu = here.to_string() == there.to_string() and here.device_type == "GPU"
    return not one_gpu and not {first, second} & (ancestors(first) | ancestors(second))


def with_names(first, second):
    """The answer from the graph as data: NodeDefs and their inputs."""
    nodes = {node.name: node for node in first.graph.as_graph_def().node}

    def behind(name):
        for text in nodes[name].input:
            source = text.removeprefix("^").partition(":")[0]
            yield source
            yield from behind(source)

    needs = first.name in behind(second.name) or second.name in behind(first.name)
    return np.bool_(not needs and (nodes[first.name].device != nodes[second.name].device or "CPU" in second.device))


def with_extraction(first, second):
    graph_def = first.graph.as_graph_def()
    for one, other in ((first, second), (second, first)):
        if other.name in {node.name for node in tf.graph_util.extract_sub_graph(graph_def, [one.name]).node}:
            return False
    return "CPU" in second.device or first.device != second.device


def with_levels(first, second):
    devices = {first.device, second.device}
    free = len(devices) == 2 or ":CPU:" in devices.pop()
    return free and all(a not in ancestors(b) for a, b in ((first, second), (second, first)))


RIGHT = [with_ancestors, with_device_specs, with_names, with_extraction, with_levels]


@pytest.mark.parametrize("answer", RIGHT)
def test_every_right_answer_gets_full_marks(answer, monkeypatch):
    full_marks(Q1, answer, monkeypatch, seeds="012")


BAD = {
    "nothing": (lambda first, second: None, "may_overlap returned None; expected: True or False"),
    "always": (lambda first, second: True, "is True, but they did not run at the same time"),
    "never": (lambda first, second: False, "is False, but they ran at the same time"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_told(name):
    answer, message = BAD[name]
    score = tf.grade(Q1, answer)
    assert score < 10 and message in score.text, score.text
    assert "<svg" in score.html or name == "nothing"
