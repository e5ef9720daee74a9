"""placement/q4 accepts every right answer, whichever way it is written, and says what is wrong with others."""

from __future__ import annotations

import pytest

import dtflab as tf
from tests.grading.answers import full_marks

Q4 = "placement/q4"


def answer(home, devices, make=lambda: tf.Variable([1.0, 2.0]), double=lambda v: v * 2.0, update=None, **changed):
    with tf.device(home):
        variable = make()
    doubles = []
    for device in devices:
        with tf.device(device):
            doubles.append(double(variable))
    with tf.device(devices[-1]):
        changing = update(variable) if update else variable.assign_add(tf.ones([2]))
    found = {"doubles": doubles, "update": changing, "sent_to": set(devices) - {home}, "updated_on": home}
    return found | changed


def with_a_resource_variable(home, devices):
    """Each op reads it on its own: as many values are sent as ops read it elsewhere."""
    return answer(
        home, devices, lambda: tf.get_variable("v", initializer=tf.constant([1.0, 2.0]), use_resource=True),
        sent_to=[device for device in devices if device != home],
    )  # fmt: skip


def with_get_variable(home, devices):
    return answer(home, devices, lambda: tf.get_variable("v", [2], initializer=tf.constant_initializer([1.0, 2.0])))


def with_an_assignment(home, devices):
    return answer(home, devices, double=lambda v: tf.add(v, v), update=lambda v: tf.assign(v, v + 1.0).op)


def with_a_group(home, devices):
    return answer(home, devices, update=lambda v: tf.group(tf.assign_add(v, [1.0, 1.0])))


def with_a_number_of_another_device(home, devices):
    def update(variable):
        with tf.device(home):
            return tf.assign_add(variable, [1.0, 1.0])

    return answer(home, devices, update=update)


def sent_as_a_tuple(home, devices):
    return answer(home, devices, sent_to=tuple({device: 0 for device in devices if device != home}))


def with_a_copy_of_the_variable_first(home, devices):
    return answer(home, devices, double=lambda v: tf.identity(v) * tf.constant([2.0, 2.0]))


RIGHT = [
    answer,
    with_a_copy_of_the_variable_first,
    with_a_resource_variable,
    with_get_variable,
    with_an_assignment,
    with_a_group,
    sent_as_a_tuple,
]


@pytest.mark.parametrize("answer", RIGHT)
def test_every_right_answer_gets_full_marks(answer, monkeypatch):
    full_marks(Q4, answer, monkeypatch, seeds="012")


BAD = {
    "an update at home": (with_a_number_of_another_device, "expected: on the last device, /job:"),
    "nothing": (lambda h, d: None, "use_everywhere returned None; expected: a dict"),
    "no tensors": (lambda h, d: answer(h, d, doubles=d), "expected: a list with one tensor for each of"),
    "no update": (lambda h, d: answer(h, d, update=lambda v: None), "expected: an op, as tf.assign_add gives it"),
    "a text": (lambda h, d: answer(h, d, sent_to=h), "expected: a list of devices"),
    "short names": (lambda h, d: answer(h, d, sent_to=["GPU:1"]), "'sent_to' has 'GPU:1'; expected: full names"),
    "elsewhere": (lambda h, d: answer(h, d[::-1]) | {"updated_on": h}, "expected: /job:"),
    "thrice": (lambda h, d: answer(h, d, double=lambda v: v * 3.0), "expected: [2. 4.], twice the variable"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_told(name):
    wrong, message = BAD[name]
    score = tf.grade(Q4, wrong)
    assert score < 10 and message in score.text, score.text


def test_each_wrong_prediction_gets_its_own_hint():
    """No check has the hint of the other prediction, if both are wrong."""
    results = tf.grade(Q4, lambda h, d: answer(h, d, sent_to=list(d), updated_on=d[-1])).reports[0].results
    hints = {one.check.name: one.mistake for one in results}
    assert hints["updated"] == "updates_elsewhere" and hints["sent"] == hints["edges"] == "counts_the_ops"
