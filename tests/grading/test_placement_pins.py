"""placement/q2 accepts every right answer, whichever way it is written, and says what is wrong with others."""

from __future__ import annotations

import re

import pytest

import dtflab as tf
from dtflab.graph import device_spec
from tests.grading.answers import full_marks

Q2 = "placement/q2"


def with_the_librarys_match(pin, gpu_kernel, devices, master):
    left = sorted(d for d in devices if device_spec.matches(pin, d) and (gpu_kernel or d.endswith("CPU:0")))
    for here in (lambda d: "GPU" in d and f"{master}/" in d, lambda d: "GPU" in d, lambda d: f"{master}/" in d, bool):
        for device in left:
            if here(device):
                return device


def by_sorting(pin, gpu_kernel, devices, master):
    order = sorted(devices)
    order.sort(key=lambda d: d.rpartition("/")[0] != master)
    order.sort(key=lambda d: tf.DeviceSpec.from_string(d).device_type, reverse=True)
    wish = tf.DeviceSpec.from_string(pin)
    for device in order:
        merged = tf.DeviceSpec.from_string(device)
        merged.merge_from(wish)
        if merged.to_string() == device and (gpu_kernel or merged.device_type == "CPU"):
            return device
    return None


def with_expressions(pin, gpu_kernel, devices, master):
    parts = re.findall(r"job:\w+|task:\d+|[cg]pu:\d+|device:GPU:\d+", pin)
    parts = [part.replace("device:", "").replace("cpu", "CPU").replace("gpu", "GPU") for part in parts]
    left = [d for d in devices if all(re.search(rf"{part}\b", d) for part in parts)]
    left = [d for d in left if gpu_kernel or ":GPU:" not in d]
    left.sort(key=lambda d: (0 if ":GPU:" in d else 1, 0 if re.match(rf"{master}\b", d) else 1, d))
    return left[0] if left else None


def by_points(pin, gpu_kernel, devices, master):
    spec = tf.DeviceSpec.from_string
    wish = {key: getattr(spec(pin), key) for key in ("job", "task", "device_type", "device_index")}
    left = {d for d in devices if all(v is None or getattr(spec(d), key) == v for key, v in wish.items())}
    left -= set() if gpu_kernel else {d for d in left if spec(d).device_type == "GPU"}
    points = {d: 2 * (spec(d).device_type == "GPU") + d.startswith(master + "/") for d in left}
    return min((d for d in left if points[d] == max(points.values())), default=None)


RIGHT = [with_the_librarys_match, by_sorting, with_expressions, by_points]


@pytest.mark.parametrize("answer", RIGHT)
def test_every_right_answer_gets_full_marks(answer, monkeypatch):
    full_marks(Q2, answer, monkeypatch, seeds="012")


def test_task_10_is_not_task_1():
    """The official solution once preferred every task whose name begins like the master's."""

    def by_the_beginning(pin, gpu_kernel, devices, master):
        left = [d for d in devices if device_spec.matches(pin, d) and (gpu_kernel or "CPU" in d)]
        return min(left, key=lambda d: ("CPU" in d, not d.startswith(master), d), default=None)

    score = tf.grade(Q2, by_the_beginning)
    message = "yours is '/job:worker/replica:0/task:10/device:GPU:0'; TensorFlow's is '/job:worker/replica:0/task:0/"
    assert score == 7 and message in score.text and "task:1 and task:10 begin alike" in score.text, score.text


BAD = {
    "a short name": (lambda p, k, d, m: "/gpu:0", "yours is '/gpu:0'; TensorFlow's is '/job:"),
    "nothing at all": (lambda p, k, d, m: None, "yours is None; TensorFlow's is"),
    "whatever": (lambda p, k, d, m: d[0], "other cases like this"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_told(name):
    answer, message = BAD[name]
    score = tf.grade(Q2, answer)
    assert score <= 2 and message in score.text, score.text
