"""The figures of a folder of answers: what is accepted, which hints fit, and which a person has to read."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dtflab.grading.catalogue import find
from tests.grading.answers import answers_of_others
from tests.grading.figures import Figures, bars, details, main

BATCH = """
from solutions.wrong.memory.q2 import fitting, halving, hides_errors, never_tries, off_by_one, only_doubles

def right(step, most):
    return halving(lambda n: fitting(step, n), most)

def gives_a_float(step, most):
    return float(right(step, most))

RIGHT = [right]
WRONG = {never_tries: "never_tries", only_doubles: "off_by_one", gives_a_float: ""}
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "memory").mkdir()
    return tmp_path


def figures(folder, more=""):
    (folder / "memory/q2.py").write_text(BATCH + more)
    return Figures(find("memory/q2"), *answers_of_others("memory/q2", folder))


def names(some):
    return [one.name for one in some]


def test_a_hint_fits_if_the_file_names_its_mistake_and_no_hint_never_does(folder):
    found = figures(folder)
    assert names(found.wrong) == ["never_tries", "only_doubles", "gives_a_float"]
    assert (names(found.fit), names(found.other)) == (["never_tries"], ["only_doubles"])
    assert found.accepted == found.to_read == found.lose == [] and found.right == 1
    assert list(bars([found]).values()) == [True, True, False]
    assert "    only_doubles is off_by_one, hint: only_doubles" in details(found)
    assert "    gives_a_float gets no hint" in details(found)


def test_right_answers_that_lose_marks_and_wrong_ones_that_do_not_miss_their_bars(folder):
    found = figures(folder, 'WRONG = {right: "off_by_one", off_by_one: "off_by_one"}\nRIGHT = [only_doubles]')
    assert (names(found.accepted), found.lose, names(found.fit)) == (["right"], ["only_doubles"], ["off_by_one"])
    assert list(bars([found]).values()) == [False, False, False]
    assert "    only_doubles is right and loses marks" in details(found)
    assert "    right is wrong and has full marks: off_by_one" in details(found)


def test_answers_that_are_not_the_same_for_all_students_are_named(folder, capsys, monkeypatch):
    (folder / "memory/q2.py").write_text(BATCH)
    marks = iter((10, 10, 5, 5, 5, 7, 0, 0))
    monkeypatch.setattr("tests.grading.figures.wrong_answers", lambda question: {})
    monkeypatch.setattr(
        "tests.grading.figures.judge", lambda *given, wall: SimpleNamespace(points=next(marks), results=[])
    )
    assert main(["memory/q2", "--folder", str(folder), "--students", "2"]) == 1
    (head, line) = capsys.readouterr().out.splitlines()
    assert head == "memory/q2     1 of 4 answers differ from student to student"
    assert line == "    only_doubles: 1 × 5 ; 1 × 7 "


def test_a_sentence_is_printed_beside_the_hint_that_was_shown(folder, capsys):
    more = 'WRONG = {hides_errors: "Any error counts as too large.", off_by_one: "off_by_one"}'
    found = figures(folder, more)
    assert (names(found.to_read), names(found.fit)) == (["hides_errors"], ["off_by_one"])
    assert main(["--folder", str(folder)]) == 1
    printed = capsys.readouterr().out
    (text,) = (one.diagnosis for one in find("memory/q2").mistakes if one.name == "hides_errors")
    assert f"    hides_errors: Any error counts as too large.\n        shown: {text}\n" in printed
    assert "no  wrong answers with a hint that fits: 1 of 2 (50%), at least 80%" in printed


def test_where_all_bars_are_reached_the_status_says_so(folder, capsys):
    figures(folder, 'WRONG = {never_tries: "never_tries"}')
    assert main(["memory/q2", "--folder", str(folder)]) == 0
    assert "yes wrong answers with a hint that fits: 1 of 1 (100%)" in capsys.readouterr().out
