"""What input/q1 says of answers that return no list of lines, or do not read all."""

from __future__ import annotations

import pytest

import dtflab as tf

Q1 = "input/q1"


def by_python(server, filenames, epochs):
    lines = []
    for name in filenames * epochs:
        lines += open(name).read().splitlines()  # noqa: SIM115 - left open, as beginners do
    return lines


@pytest.mark.parametrize(
    ("answer", "told", "untold"),
    [
        (lambda *_: None, "A list of lines is expected; returned was None", "Lines at the end"),
        (lambda *_: [], "lines should come; 0 came. 'file 0 line 0", "are expected"),
        (by_python, "raised FileNotFoundError", "ResourceWarning"),
        (by_python, "No queue was used on `server`", "PASS"),
    ],
)
def test_what_is_told(answer, told, untold, monkeypatch):
    monkeypatch.setenv("DTFLAB_GRADE_SEED", "0")
    text = tf.grade(Q1, answer).text
    assert told in text and untold not in text
