"""Whatever an answer does is a result: a report with a mark, and nothing gets out."""

from __future__ import annotations

import copy
import functools
import json
import logging
import runpy
import sys
import threading
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import dtflab as tf
from dtflab.grading import catalogue, grade as grading, judge as judging, questions, watchdog
from dtflab.grading.catalogue import all_questions, find
from dtflab.grading.grade import check, chosen, grade, grade_all, next_hint
from dtflab.grading.judge import judge
from dtflab.grading.questions import Question, Wrong, register
from dtflab.grading.score import JSON, Score

Q1 = "placement/q1"


@pytest.fixture
def twice(monkeypatch):
    """A small question, double a number, as the only one that there is."""
    all_questions()  # once they are loaded, they are not loaded into the empty register below
    monkeypatch.setattr(questions, "_questions", {})
    question = register("numbers/q9", "Double it", answer="twice", hints=("Add it.", "Multiply by 2."))

    @question.check("Some number", points=3, seconds=1)
    def any_number(answer, random):
        number = random.randrange(1, 1000)
        if (got := answer(number)) != 2 * number:
            raise Wrong(f"twice({number}) gave {got!r}; expected: {2 * number}", evidence=(number, got))

    @question.check("Nothing", points=1, seconds=1)
    def nothing(answer, random):
        if answer(0) != 0:
            raise Wrong("twice(0) is 0")

    @question.mistake("That is the square.")
    def squares(seen):
        return seen[0] ** 2 == seen[1]

    return question


def report(question, answer):
    return judge(question, {question.answer: answer})


def test_a_right_answer_and_one_that_is_half_right(twice):
    assert report(twice, lambda n: n + n).points == 4
    half = report(twice, lambda n: n * n)
    assert [result.passed for result in half.results] == [False, True]
    assert half.points == 1 and half.results[0].hint == "That is the square."
    assert half.results[0].message.startswith("twice(") and "expected: " in half.results[0].message


FAILS_IN_CONTEXTLIB = """
import dtflab as tf

def twice(n):
    with tf.control_dependencies([len]):
        return 2 * n
"""


def from_a_cell(folder, source):
    """The answer in a file of its own: a line of this file is one of the check."""
    path = folder / "cell.py"
    path.write_text(source)
    return runpy.run_path(str(path))["twice"]


def test_an_error_is_told_with_the_line_of_the_answer_not_with_one_of_a_library_that_it_calls(twice, tmp_path):
    answer = from_a_cell(tmp_path, FAILS_IN_CONTEXTLIB)
    message = report(twice, answer).results[0].message
    assert "with tf.control_dependencies([len]):" in message and "raised TypeError" in message, message


def test_numbers_follow_from_seed_student_and_check_alone(twice, monkeypatch):
    seen = []
    report(twice, seen.append)
    report(twice, seen.append)
    assert seen[0] == seen[2]
    for name in ("DTFLAB_GRADE_SEED", "DTFLAB_STUDENT"):
        monkeypatch.setenv(name, "other")
        report(twice, seen.append)
    assert len({seen[0], seen[4], seen[6]}) == 3


def test_under_nbgrader_the_student_is_the_one_in_whose_folder_the_notebook_runs(twice, monkeypatch, tmp_path):
    seen = []
    for student in ("ada", "bob"):
        (tmp_path / student / "ex1").mkdir(parents=True)
        monkeypatch.chdir(tmp_path / student / "ex1")
        report(twice, seen.append)
        with monkeypatch.context() as patch:
            patch.setenv("NBGRADER_EXECUTION", "autograde")
            assert report(twice, seen.append).student == student
            patch.setenv("DTFLAB_STUDENT", "zoe")
            assert report(twice, seen.append).student == "zoe"
    assert seen[0] == seen[6] and seen[2] != seen[8] and seen[4] == seen[10]


ERRORS = {
    "an error": (lambda n: n / 0, "raised ZeroDivisionError: division by zero"),
    "the end of the program": (lambda n: sys.exit(3), "raised SystemExit: 3"),
    "an interrupt": (lambda n: (_ for _ in ()).throw(KeyboardInterrupt), "raised KeyboardInterrupt"),
    "another number of arguments": (lambda: 3, "raised TypeError"),
    "no function": (7, "raised TypeError: 'int' object is not callable"),
    "a wrong type": (lambda n: None, "gave None; expected: "),
}


@pytest.mark.parametrize("name", ERRORS)
def test_what_goes_wrong_in_an_answer_is_told(twice, name):
    answer, told = ERRORS[name]
    found = report(twice, answer)
    assert found.points == 0 and told in found.results[0].message
    assert not found.next_step


def test_deep_recursion_is_told(twice):
    def down(n):
        return down(n + 1)

    assert "RecursionError" in report(twice, down).results[0].message


def test_the_line_of_the_answer_is_shown(twice, tmp_path):
    answer = from_a_cell(tmp_path, 'def twice(n):\n    return n + "1"  # this line')
    told = report(twice, answer).results[0].message
    assert '`return n + "1"  # this line`, raised TypeError' in told


def test_an_endless_answer_ends_the_grade_after_the_check_that_it_does_not_finish(twice):
    """A student waits for one limit, not for one per check."""
    calls = []

    def stuck(n):
        calls.append(n)
        while n:
            pass
        return 0

    first, second = report(twice, stuck).results
    assert not first.passed and first.message == "Stopped after 1 s: twice does not come to an end."
    assert not second.passed and second.message == judging._ENDLESS and len(calls) == 1


def test_in_a_notebook_a_question_also_has_a_limit_by_the_clock(twice, monkeypatch):
    """Before an answer has had its own seconds: on a machine that is busy."""
    monkeypatch.setattr(judging, "CELL", 0.2)
    twice.checks[:] = [check._replace(seconds=20) for check in twice.checks]

    def stuck(n):
        while True:
            pass

    first, second = judge(twice, {"twice": stuck}).results
    assert first.message == second.message == judging.BUSY and first.message.startswith("Not judged, run it again")
    assert first.starved and second.starved and (first.points, second.points) == (0, 0)


def test_a_deaf_answer_is_told(twice, monkeypatch):
    monkeypatch.setattr(watchdog, "_ATTEMPTS", 2)
    release = threading.Event()
    found = report(twice, lambda n: release.wait())
    release.set()
    assert "did not react: in a notebook, restart the kernel" in found.results[0].message
    assert found.results[1].message == "Not tried, because the answer could not be stopped."
    assert Score([found]).text.count("FAIL") == 1 and "– NOT TRIED" in Score([found]).text


def test_what_an_answer_writes_is_kept_and_nothing_reaches_stderr(twice, capsys):
    handler = logging.StreamHandler(sys.stderr)
    logger = logging.getLogger("noisy")
    logger.addHandler(handler)
    stream = handler.stream

    def noisy(n):
        print("to stdout")
        print("to stderr", file=sys.stderr)
        warnings.warn("a warning", stacklevel=1)
        logger.error("a log line")
        return 2 * n

    try:
        found = report(twice, noisy)
    finally:
        logger.removeHandler(handler)
    assert found.points == 4 and capsys.readouterr() == ("", "")
    for text in ("to stdout", "to stderr", "a warning", "a log line"):
        assert text in found.results[0].output
    assert handler.stream is stream and sys.stderr is not None


def test_a_flood_of_text_is_cut(twice):
    found = report(twice, lambda n: print("x" * 1_000_000) or 2 * n)
    assert found.points == 4
    assert found.results[0].output.endswith("… and 996,001 characters more")


def test_a_score_is_a_number_that_nbgrader_reads(twice):
    score = grade_all([twice], {"twice": lambda n: n * n})
    bundle = score._repr_mimebundle_()
    assert float(bundle["text/plain"]) == score == 1.0
    assert bundle["text/plain"] == repr(score) and "1 of 4 points" in str(score)
    data = json.loads(json.dumps(bundle[JSON]))
    assert data["points"] == 1 and data["questions"][0]["checks"][0]["mistake"] == "squares"
    assert "✗ FAIL" in bundle["text/html"] and "✓ PASS" in bundle["text/html"]
    assert "<script" not in bundle["text/html"]


def test_what_an_answer_says_cannot_break_the_page(twice):
    score = grade_all([twice], {"twice": lambda n: "<b>&\x00"})
    assert "<b>&\\" not in score.html and "&lt;b&gt;&amp;" in score.html


def test_a_score_stays_in_its_range(twice):
    reports = [report(twice, lambda n: 2 * n)]
    reports[0].results[0].check = reports[0].results[0].check._replace(points=float("nan"))
    assert Score(reports) == 0.0


def test_several_questions_add_up(twice):
    score = grade_all([twice, twice], {"twice": lambda n: n * n})
    assert (score, score.max) == (2.0, 8.0)
    assert "All: 2 of 8 points" in score.text and "All: 2 of 8 points" in score.html


# ---- finding the question and the answer ----


@pytest.mark.parametrize("name", ["DTFLAB_CHECKS", "DTFLAB_GRADE_SEED"])
@pytest.mark.parametrize("shell, what", [(SimpleNamespace(kernel=1), "notebook"), (SimpleNamespace(), "IPython")])
def test_a_notebook_whose_environment_has_secrets_grades_nothing(twice, name, shell, what, monkeypatch):
    """Nor does IPython in a terminal: code there could read them. A script, in which a teacher tries checks, may."""
    monkeypatch.setattr(catalogue, "load_folder", lambda folder: None)
    monkeypatch.setenv(name, "secret")
    assert grade("numbers/q9", lambda n: 2 * n) == 4
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    for call in (lambda: grade("numbers/q9"), lambda: check("numbers/q9"), lambda: chosen("q9", False, {})):
        with pytest.raises(RuntimeError, match=f"{name} is set in this {what}'s environment.* dtflab grade FOLDER"):
            call()


def test_the_answer_is_found_where_grade_is_called(capsys):
    assert tf.grade(Q1) == 0
    assert "There is no balance_by_bytes yet" in capsys.readouterr().out

    def balance_by_bytes(ps_tasks, worker):
        return lambda op: worker

    assert balance_by_bytes and tf.grade(Q1) == 0
    assert "went to /job:worker" in capsys.readouterr().out


def test_a_wrong_id_lists_what_there_is(twice):
    with pytest.raises(LookupError, match=r"no question 'numbers/q8'. Did you mean numbers/q9\? There are: numbers/q9"):
        find("numbers/q8")
    assert find("q9") is find("numbers/q9") is twice
    with pytest.raises(TypeError, match=r'dtflab.grade\("numbers/q9"\), not function'):
        find(lambda: None)


def test_a_short_id_means_the_question_whose_answer_is_there(twice):
    other = register("letters/q9", "Shout", answer="shout", hints=("upper",))
    with pytest.raises(LookupError, match=r"'q9' is the end of several .*: letters/q9, numbers/q9$"):
        find("q9")
    assert find("q9", {"shout"}) is other


def notebook(**names):
    """The namespace of a notebook, of which this file is the only cell."""
    return {"__name__": __name__, **names}


def function(n):
    return n


def test_which_questions_are_meant(twice):
    space = notebook(twice=function)
    assert chosen("", False, space) == chosen("", True, {}) == chosen("q9", False, {}) == [twice]
    assert chosen("", False, notebook(twice=functools.cache(function))) == [twice]
    with pytest.raises(LookupError, match=r"None of the answers is here yet.*numbers/q9 \(twice\)"):
        chosen("", False, {})


@pytest.mark.parametrize("thing", [1, np.place, tf.train], ids=["value", "imported", "module"])
def test_what_only_has_the_name_of_an_answer_is_not_meant(twice, thing):
    """In a notebook of one's own `train`, `job` or `settings` is an op, a number, a function of somebody else."""
    other = register("letters/q9", "Shout", answer="shout", hints=("upper",))
    space = notebook(twice=thing)
    with pytest.raises(LookupError, match="no cell has defined a function of that name"):
        chosen("", False, space)
    assert chosen("q9", False, notebook(twice=thing, shout=function)) == [other]
    assert chosen("numbers/q9", False, space) == [twice], "who names it means it"


@pytest.fixture
def fresh(monkeypatch):
    """A session in which nothing was asked yet."""
    monkeypatch.setattr(grading, "_given", {})
    monkeypatch.setattr(grading, "_last", {})
    monkeypatch.setattr(grading, "_shown", {})
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)


def test_hints_come_in_steps_and_the_last_one_needs_a_try(twice, fresh):
    def ask():
        return str(grade("numbers/q9", hint=True))

    assert ask() == "Hint 1 of 2: Add it."
    held = ask()
    assert held.startswith("The last of 2 hints nearly gives the answer away. Write twice first")
    grade_all([twice], {})
    assert ask() == held, "an answer that is not there is no try"
    grade("numbers/q9", lambda n: n)
    assert [ask(), ask()] == [
        "Hint 2 of 2: Multiply by 2.",
        "There are no more hints. The last one was:\nHint 2 of 2: Multiply by 2.",
    ]
    assert repr(next_hint(twice)).endswith("\nHint 2 of 2: Multiply by 2.")


@pytest.fixture
def cured(twice):
    """A mistake whose text has a cure."""
    twice.mistakes[:] = []
    twice.mistake("That is the square. Add it to itself.")(lambda seen: seen[0] ** 2 == seen[1])
    return twice


def square(n):
    return n * n


def test_the_cure_of_a_mistake_comes_when_another_try_shows_it(cured, fresh):
    first, again = grade_all([cured], {"twice": square}), grade_all([cured], {"twice": square})
    for score in (first, again):
        assert (
            "Hint: That is the square. If your next try shows the same mistake, the report says how to fix it."
            in score.text
        )
        assert "Add it" not in score.html and "Add it" not in json.dumps(score.json)
    other = grade_all([cured], {"twice": lambda n: n**2})
    assert "Hint: That is the square. Add it to itself." in other.text
    assert other.json["questions"][0]["checks"][0]["cure"] == "Add it to itself."
    assert "Add it" not in grade_all([cured], {"twice": square}).text, "the try that showed it first"


WITH_LAMBDA = "def twice(n):\n    by = lambda m: m * n\n    return by(n)"


@pytest.mark.parametrize("another", [False, True], ids=["with comments", "with other code"])
def test_a_comment_or_a_blank_line_is_not_another_try(cured, fresh, tmp_path, another):
    """Lines are all that differ, in the function and in one inside it."""
    commented = "# first\n\n" + WITH_LAMBDA.replace("    by", "    # second\n\n    by").replace("    ret", "\n    ret")
    grade_all([cured], {"twice": from_a_cell(tmp_path, WITH_LAMBDA)})
    changed = commented.replace("m * n", "n * m") if another else commented
    second = grade_all([cured], {"twice": from_a_cell(tmp_path, changed)})
    assert ("Add it to itself." in second.text) is another


def test_the_feedback_of_nbgrader_has_the_cure_at_once(cured, fresh, monkeypatch):
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")
    assert "Hint: That is the square. Add it to itself." in grade_all([cured], {"twice": square}).text


def test_an_answer_that_cannot_be_compared_is_no_trouble(cured, fresh):
    for _ in range(2):
        assert grade_all([cured], {"twice": np.arange(3)}) == 0


def test_a_check_that_may_fail_by_the_mistake_of_another_says_so(cured):
    """The evidence shows the same mistake, or no mistake where another check shows one."""

    @cured.check("Two", points=1)
    def two(answer, random):
        raise Wrong("two failed", evidence=(3, 9))

    @cured.check("Three", points=1)
    def three(answer, random):
        raise Wrong("three failed")

    cured.checks.insert(0, cured.checks.pop())
    told = str(Score([report(cured, square)]))
    consequence = "This may be a consequence of the mistake in “Some number”. Fix that one first."
    assert f"three failed\n               {consequence}" in told
    assert "two failed\n               Caused by the same mistake as in “Some number”." in told
    assert told.count("Add it to itself.") == 1
    assert "consequence" not in str(Score([report(cured, lambda n: 3 * n)])).partition("three")[0]


def test_checks_that_are_called_one_at_a_time_are_one_try(cured, fresh, capsys):
    """The second check neither gives the cure nor repeats the hint: otter calls them like this."""

    @cured.check("Two", points=1)
    def two(answer, random):
        raise Wrong("two failed", evidence=(3, 9))

    def told(name, answer):
        assert not check("numbers/q9", name, answer)
        return capsys.readouterr().out

    same = "Caused by the same mistake as in “Some number”."
    for _ in range(2):
        assert grading._LATER in told("any_number", square)
        assert same in (second := told("two", square)) and "Hint: " not in second
    grade_all([cured], {"twice": square})
    assert grading._LATER in told("any_number", square), "a cell that grades comes before otter's tests"
    assert "Hint: That is the square. Add it to itself." in told("any_number", lambda n: n**2)
    assert same in told("two", lambda n: n**2)


def test_what_was_not_tried_follows_from_no_mistake(cured):
    def stuck(n):
        while n == 7:
            pass
        return n * n

    @cured.check("Seven", points=1, seconds=0.2)
    def seven(answer, random):
        return answer(7)

    @cured.check("More", points=1)
    def more(answer, random):
        raise Wrong("never reached")

    found = report(cured, stuck)
    assert [result.stopped for result in found.results] == [False, False, True, False]
    assert "consequence" not in str(Score([found]))


def test_a_question_is_checked_when_it_is_registered(twice):
    for id in ("numbers/q9", "q9", "a b/q1"):
        with pytest.raises(ValueError, match="must be unique and look like topic/name"):
            register(id, "", "", ())
    with pytest.raises(ValueError, match="at most 20 s, not 1 and 30"):
        Question("a/b", "", "", ()).check("long", 1, seconds=30)(print)
    with pytest.raises(ValueError, match="at least 1 point and at most 20 s, not 0 and"):
        Question("a/b", "", "", ()).check("free", 0)(print)


def test_grading_leaves_the_users_graph_and_streams_alone():
    before, out, shown = tf.get_default_graph(), sys.stdout, warnings.filters[:]
    tf.grade(Q1, lambda ps_tasks, worker: lambda op: worker)
    assert tf.get_default_graph() is before and sys.stdout is out and warnings.filters == shown


def test_a_score_can_be_copied(twice):
    score = Score([report(twice, lambda number: 2 * number)])
    other = copy.copy(score)
    assert (other, other.max, other.text) == (4.0, 4.0, score.text)


def test_of_a_long_error_the_first_line_and_what_to_do_are_told():
    def answer():
        raise ValueError("Cannot place it.\nColocation Debug Info:\n  a, b\nWhat to do: leave one open.\n\t [[node a]]")

    question = Question("numbers/q2", "Place it", "answer", ("Look.", "Look again."))
    question.check("It runs", points=1)(lambda answer, random: answer())
    (result,) = judge(question, {"answer": answer}).results
    assert result.message.endswith("raised ValueError: Cannot place it.\nWhat to do: leave one open.")
