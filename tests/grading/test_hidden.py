"""A teacher's own checks: from a folder, from a package; they count, and one that fails is never passed over."""

from __future__ import annotations

import importlib.metadata
import sys

import pytest

from dtflab.grading import catalogue, otter, questions
from dtflab.grading.catalogue import all_questions, find
from dtflab.grading.grade import check, chosen, grade
from dtflab.grading.questions import register

OWN = """
from dtflab.grading import Wrong, find, register

@find("numbers/q9").check("Large numbers, too", points=2)
def large(answer, random):
    if answer(10**20) != 2 * 10**20:
        raise Wrong("twice of a large number was not twice of it")

own = register("numbers/exam", "Halve it", answer="half", hints=("Divide.",))

@own.check("Four", points=1)
def four(answer, random):
    assert answer(4) == 2
"""


@pytest.fixture(autouse=True)
def registry(monkeypatch):
    """A question of the package, and no teacher."""
    all_questions()  # the package's own are registered once, when they are imported
    monkeypatch.setattr(questions, "_questions", {})
    monkeypatch.setattr(catalogue, "_loaded", set())
    monkeypatch.delenv("DTFLAB_CHECKS", raising=False)
    question = register("numbers/q9", "Double it", answer="twice", hints=("Add it.",))

    @question.check("One", points=3)
    def one(answer, random):
        assert answer(1) == 2, "expected: 2"


@pytest.fixture
def teacher(tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text(OWN)
    monkeypatch.setenv("DTFLAB_CHECKS", str(tmp_path))
    return tmp_path


def test_without_a_teacher_there_is_only_the_package():
    assert [question.id for question in all_questions()] == ["numbers/q9"]
    assert grade("numbers/q9", lambda n: 2 * n).max == 3


def test_a_folder_adds_checks_and_questions_once(teacher):
    for _ in range(2):
        assert [(question.id, question.points) for question in all_questions()] == [
            ("numbers/exam", 1),
            ("numbers/q9", 5),
        ]
    twice = grade("numbers/q9", lambda n: n + n if n < 100 else 0)
    assert (twice, twice.max) == (3.0, 5.0) and "Large numbers, too" in twice.text
    assert grade("numbers/exam", lambda n: n // 2) == 1.0


BROKEN = {
    "an error": ("1 / 0", "ZeroDivisionError"),
    "no Python": ("def (", "SyntaxError"),
    "a question that is not there": (OWN.replace("numbers/q9", "numbers/q8"), "no question 'numbers/q8'"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_cannot_be_loaded_is_an_error_each_time(name, teacher):
    (teacher / "own.py").write_text(BROKEN[name][0])
    for _ in range(2):
        with pytest.raises(catalogue.ChecksError, match=r"own.py can't be loaded: ") as error:
            grade("numbers/q9", lambda n: 2 * n)
        assert BROKEN[name][1] in str(error.value)


def test_what_failed_half_way_and_is_mended_counts_once(teacher):
    (teacher / "own.py").write_text(OWN + "1 / 0\n")
    with pytest.raises(catalogue.ChecksError):
        all_questions()
    assert [(question.id, question.points) for question in questions._questions.values()] == [("numbers/q9", 3)]
    (teacher / "own.py").write_text(OWN)
    assert [(question.id, question.points) for question in all_questions()] == [("numbers/exam", 1), ("numbers/q9", 5)]


def test_files_of_a_folder_are_loaded_in_the_order_of_their_names(teacher):
    """The first asks for a question itself, which must not bring the second one forward, nor keep it when it fails."""
    later = 'from dtflab.grading import find\nfind("numbers/exam").check("Five", points=4)(print)\n'
    (teacher / "own.py").write_text(OWN + "1 / 0\n")
    (teacher / "second.py").write_text(later)
    with pytest.raises(catalogue.ChecksError, match=r"own\.py"):
        all_questions()
    (teacher / "own.py").write_text(OWN)
    assert find("numbers/exam").points == 5 and find("numbers/q9").points == 5


def test_a_check_that_ends_the_program_is_an_error(teacher):
    (teacher / "own.py").write_text("import sys; sys.exit(0)")
    with pytest.raises(catalogue.ChecksError, match="SystemExit: 0"):
        all_questions()


def test_a_folder_without_checks_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("DTFLAB_CHECKS", str(tmp_path / "gone"))
    with pytest.raises(catalogue.ChecksError, match="has no Python files"):
        all_questions()


def test_a_package_brings_checks_by_its_entry_point(tmp_path, monkeypatch):
    (tmp_path / "exam_checks.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    entry = importlib.metadata.EntryPoint("exam", "exam_checks", catalogue.GROUP)
    monkeypatch.setattr(catalogue, "_installed", lambda: (entry,))
    assert find("numbers/exam").points == 1 and find("numbers/q9").points == 5


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An installed package of two modules; the second one is broken."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "exam_package"]:
        monkeypatch.delitem(sys.modules, name)
    folder = tmp_path / "exam_package"
    folder.mkdir()
    (folder / "__init__.py").write_text("from exam_package import first, second")
    (folder / "first.py").write_text(OWN)
    (folder / "second.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    entry = importlib.metadata.EntryPoint("exam", "exam_package", catalogue.GROUP)
    monkeypatch.setattr(catalogue, "_installed", lambda: (entry,))
    return folder


def test_a_broken_package_is_an_error_each_time_until_it_is_mended(package):
    for _ in range(2):
        with pytest.raises(catalogue.ChecksError, match=r"exam_package, .* can't be loaded: ZeroDivisionError"):
            grade("numbers/q9", lambda n: 2 * n)
    (package / "second.py").write_text("mended = True")
    for _ in range(2):
        assert find("numbers/exam").points == 1 and find("numbers/q9").points == 5


@pytest.mark.processes
def test_a_broken_package_stops_the_commands_with_a_sentence(package, tmp_path, monkeypatch, capsys):
    from dtflab.__main__ import main

    (tmp_path / "ada.py").write_text("# %%\n1")
    for command in (["grade", str(tmp_path / "ada.py")], ["export", "--otter", str(tmp_path / "tests")]):
        with pytest.raises(SystemExit) as ended:
            main(command)
        error = capsys.readouterr().err
        assert ended.value.code == 2 and error.startswith(f"dtflab {command[0]}: exam_package, ")
        assert error.count("\n") == 1


def test_a_test_of_otter_asks_public_checks_only(teacher):
    written = otter.text(find("numbers/q9"))
    assert '"one")' in written and "large" not in written


def test_check_is_true_or_says_what_is_wrong(capsys):
    assert check("numbers/q9", "one", lambda n: 2 * n) is check("numbers/q9", answer=lambda n: 2 * n) is True
    assert capsys.readouterr().out == ""
    twice = print
    assert twice and check("numbers/q9", "one") is False
    assert "numbers/q9: 0 of 3 points" in capsys.readouterr().out
    with pytest.raises(LookupError, match=r"numbers/q9 has no check 'two'. It has: one"):
        check("numbers/q9", "two")


def test_one_question_or_all_not_both():
    with pytest.raises(LookupError, match="not both"):
        chosen("q9", True, {})


def test_a_slow_answer_uses_up_the_time_of_the_question(monkeypatch):
    """More checks than fit into it are possible; what is left of the time decides how many are tried."""
    from dtflab.grading import judge

    question = find("numbers/q9")
    for name in ("two", "three"):
        question.check(name, points=1)(lambda answer, random: answer(3))
    call = judge.watchdog.call

    def slow(function, seconds, wall):
        outcome = call(function, seconds, wall)
        outcome.seconds = 12.0
        return outcome

    monkeypatch.setattr(judge.watchdog, "call", slow)
    *tried, last = judge.judge(question, {"twice": lambda n: 2 * n}).results
    assert [result.passed for result in tried] == [True, True]
    assert last.message == judge._LATE and not last.passed
