"""data/q3 accepts every ring, whichever way it turns and is written."""

from __future__ import annotations

import pytest

import dtflab as tf
from tests.grading.answers import full_marks, hints_of

Q3 = "data/q3"


def ring(start, way):
    """A ring that turns by `way`, in which device i sends part i + `start` first."""

    def ring_all_reduce(tensors, devices):
        n = len(devices)
        parts = []
        for tensor, device in zip(tensors, devices):
            with tf.device(device):
                length = tensor.shape[0].value // n
                parts.append([tensor[k * length : (k + 1) * length] for k in range(n)])
        for step in range(2 * (n - 1)):
            for i in range(n):
                after, c = (i + way) % n, (i + start - way * step) % n
                with tf.device(devices[after]):
                    came = parts[i][c]
                    parts[after][c] = tf.identity(came) if step >= n - 1 else tf.add_n([came, parts[after][c]])
        sums = []
        for mine, device in zip(parts, devices):
            with tf.device(device):
                sums.append(tf.concat(mine, 0))
        return tuple(sums)

    return ring_all_reduce


def part_by_part(tensors, devices):
    """The way of one part at a time: it begins behind its owner, and goes round twice."""
    n = len(devices)
    cut = []
    for tensor, device in zip(tensors, devices):
        with tf.device(device):
            cut.append(tf.split(tensor, n))
    done = [[None] * n for _ in devices]
    for c in range(n):
        part = cut[(c + 1) % n][c]
        for k in range(2, n + 1):
            with tf.device(devices[(c + k) % n]):
                part = part + cut[(c + k) % n][c]
        done[c][c] = part
        for k in range(1, n):
            with tf.device(devices[(c + k) % n]):
                part = tf.identity(part)
            done[(c + k) % n][c] = part
    sums = []
    for mine, device in zip(done, devices):
        with tf.device(device):
            sums.append(tf.concat(mine, axis=0))
    return sums


RIGHT = {
    "as the solution": ring(0, 1),
    "the other way round": ring(0, -1),
    "another part first": ring(2, 1),
    "part by part": part_by_part,
}


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("seed", ["0", "3"])
def test_every_right_answer_gets_full_marks(name, seed, monkeypatch):
    full_marks(Q3, RIGHT[name], monkeypatch, seeds=[seed])


def test_what_is_no_list_of_tensors_is_told():
    for made in (None, [1, 2, 3]):
        score = tf.grade(Q3, lambda tensors, devices, made=made: made)
        assert score == 0 and "tensors, one for each device, are expected" in score.text


def test_tensors_that_stay_where_they_are_are_no_sum():
    score = tf.grade(Q3, lambda tensors, devices: tensors)
    assert score < 5 and "has the sum in" in score.text and "Tensors went nowhere" in score.text


def test_bytes_are_shown_beside_those_of_a_ring():
    def all_to_all(tensors, devices):
        sums = []
        for device in devices:
            with tf.device(device):
                sums.append(tf.add_n(tensors))
        return sums

    assert "a ring" in tf.grade(Q3, all_to_all).text


@pytest.mark.parametrize(
    "answer",
    [
        lambda tensors, devices: tf.train.all_reduce(tensors, devices),
        lambda tensors, devices: tf.train.all_reduce(tensors, reduction="add"),
        lambda tensors, devices: [tf.train.all_reduce(tensor) for tensor in tensors],
    ],
)
def test_the_library_is_not_allowed_however_wrongly_it_is_called(answer):
    (report,) = tf.grade(Q3, answer).reports
    assert report.points == 0 and hints_of(report) == {"leaves_it_to_the_library"}


def test_an_error_of_a_function_by_that_name_is_the_answers_own():
    def all_reduce(tensors):
        return tensors

    def answer(tensors, devices):
        return all_reduce(tensors, devices)

    (report,) = tf.grade(Q3, answer).reports
    assert hints_of(report) == set() and "all_reduce() takes 1 positional argument" in report.results[0].message
