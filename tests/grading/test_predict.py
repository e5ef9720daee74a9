"""`dtflab.predict`: what is said to right letters, wrong ones and missing ones, try by try; one table in two places."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import dtflab as tf
from dtflab.grading import choices
from dtflab.grading.catalogue import find
from dtflab.grading.questions import Question, register, teachers_own
from dtflab.grading.sources import student_version
from notebooks import build
from tests.grading.answers import QUESTIONS, source_of
from tests.house import ROOT

BOOK = {  # the book's exercises 1 to 7: their questions, and the letters that are right
    "memory/q1": "B",
    "placement/q2": "AC",
    "placement/q3": "CE",
    "placement/q4": "ABE",
    "parallel/q1": "ABC",
    "parallel/q2": "ABC",
    "shared/q1": "AC",
}
ASKED = [question for question in QUESTIONS if question.choices]
EACH = pytest.mark.parametrize("question", ASKED, ids=lambda question: question.id)
ROW = re.compile(r"^\| ([A-Z]) \| (.*) \|$", re.MULTILINE)
GIVEN = re.compile(r'dtflab\.predict\(\\"[^"]*", \\"(\w+)')
GIVEN_AWAY = re.compile(r"\b[A-F](?:, [A-F])* and [A-F]\b|\b[A-F] (?:is|are) (?:right|wrong)\b|\bIt is [A-F]\b")


@pytest.fixture(autouse=True)
def nothing_tried(monkeypatch):
    monkeypatch.setattr(choices, "_tried", {})


def right(question: Question) -> str:
    return "".join(choice.letter for choice in question.choices if choice.right)


def cells(text: str) -> list:
    import jupytext  # takes seconds to load

    return jupytext.reads(text, fmt="py:percent").cells


# -- the questions -------------------------------------------------------------------------------------------


def test_the_books_first_seven_have_a_choice_and_nobody_else():
    assert {question.id: right(question) for question in ASKED} == BOOK


@EACH
def test_each_letter_has_sentences_of_its_own(question):
    assert 0 < len(right(question)) < len(question.choices)
    for texts in zip(*question.choices):
        strings = [text for text in texts if isinstance(text, str)]
        assert all(strings) and len(set(strings)) == len(strings)
    for choice in question.choices:
        assert choice.look[-1] in "?." and choice.why[-1] in ".)"
        assert (choice.look + choice.why + choice.text).count("`") % 2 == 0 and "*" not in choice.look + choice.why


@EACH
def test_the_table_in_the_notebook_is_that_of_the_question(question):
    first = cells(source_of(question))[0].source
    assert ROW.findall(first) == [(choice.letter, choice.text) for choice in question.choices]


@EACH
def test_choice_run_and_task_come_in_this_order_and_the_text_gives_nothing_away(question):
    of_all = cells(source_of(question))
    call = f'dtflab.predict("{question.id}", "{right(question)}")'
    (chosen,) = (i for i, cell in enumerate(of_all) if cell.source == call)
    (task,) = (i for i, cell in enumerate(of_all) if "## Your task" in cell.source)
    run = [cell for cell in of_all[chosen + 1 : task] if cell.cell_type == "code"]
    assert run, "the run that proves it"
    assert all(cell.source.startswith("import") for cell in of_all[1:chosen] if cell.cell_type == "code")
    prose = "\n".join(cell.source for cell in of_all if cell.cell_type == "markdown")
    assert GIVEN_AWAY.findall(prose) == [] and "run it again" in of_all[task].source


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """The release that nbgrader gets."""
    folder = tmp_path_factory.mktemp("course")
    build.write_nbgrader(folder)
    return "\n".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.ipynb"))


@EACH
def test_neither_the_exercise_nor_nbgraders_source_has_the_letters(question, released):
    asks = f'dtflab.predict("{question.id}", "")'
    assert asks in student_version(source_of(question))
    assert asks.replace('"', '\\"') in released and right(question) not in GIVEN.findall(released)


# -- what is said ------------------------------------------------------------------------------------------


@EACH
def test_nothing_is_chosen_as_shipped(question):
    found = tf.predict(question.id, "")
    assert not found.right and f"{question.id}: choose first" in found.text and "no points" in found.text
    example = re.search(r'", "(\w+)"\)', found.text)[1]
    assert example != right(question)
    one = "Choose one," in cells(source_of(question))[0].source
    assert (len(example), len(right(question)) == 1) == ((1, True) if one else (2, False)), "as many as are asked for"
    assert ("Write the letter of the sentence" if one else "Write the letters of all sentences") in found.text
    own_cell = next(cell.source for cell in cells(source_of(question)) if "between the quotes" in cell.source)
    assert own_cell.startswith("Write your letter between" if one else "Write your letters between")
    assert [choice.letter for choice in question.choices if choice.text in found.text] == []


@EACH
def test_right_letters_are_right_at_once_and_get_every_reason(question):
    found = tf.predict(question.id, right(question))
    assert found.right and f"{right(question)} is right" in found.text
    assert all(choice.why in found.text for choice in question.choices)


@EACH
def test_a_wrong_letter_is_told_where_to_look_and_nothing_of_others(question):
    for wrong in (choice for choice in question.choices if not choice.right):
        choices._tried.clear()
        found = tf.predict(question.id, wrong.letter)
        assert not found.right and f"✗ {wrong.letter}  {wrong.text}" in found.text and wrong.look in found.text
        others = [choice for choice in question.choices if choice is not wrong]
        assert not any(part in found.text for one in others for part in (one.text, one.look, one.why))
        assert wrong.why not in found.text
        count = len(right(question))
        assert f"{count} right letter{' is' if count == 1 else 's are'} missing." in found.text


@EACH
def test_what_is_missing_is_counted_then_pointed_at_then_told(question):
    wrong = [choice for choice in question.choices if not choice.right]
    missing = [choice for choice in question.choices if choice.right]
    kept = right(question)[1:]  # the first right letter is forgotten
    tries = [kept + wrong[0].letter, "".join(choice.letter for choice in wrong), right(question) + wrong[0].letter]
    first, second, third = (tf.predict(question.id, letters) for letters in tries)
    assert "1 right letter is missing." in first.text and missing[0].look not in first.text
    assert all(f"Where to look: {choice.look}" in second.text for choice in missing)
    assert not any(
        part in second.text for choice in missing for part in (f"✓ {choice.letter}", choice.text, choice.why)
    )
    assert re.findall(r"(?<![:\w])[A-F](?![\w:])", "".join(choice.look for choice in missing)) == [], "no letters"
    assert f"{right(question)} is right, you chose {''.join(sorted(tries[2]))}" in third.text and not third.right
    assert all(choice.why in third.text for choice in question.choices)


def test_the_same_choice_again_is_no_new_try():
    for letters in ("AC", "ac", " C,A ", "c; a\n", "ACCA", ""):
        said = tf.predict("placement/q3", letters)
    assert said.tries == 1
    assert tf.predict("placement/q3", "B").tries == 2
    assert tf.predict("placement/q3", "AC").tries == 2
    assert tf.predict("placement/q2", "B").tries == 1, "each question has its own"


@pytest.mark.parametrize("letters", ["CE", "EC", "c e", " e, C ", "C,E,", "c;e", "CEC"])
def test_letters_are_read_in_any_order_and_case(letters):
    assert tf.predict("placement/q3", letters).right


def test_right_letters_with_a_wrong_one_are_not_right():
    found = tf.predict("placement/q3", "CED")
    assert not found.right and "missing" not in found.text
    assert "✓ C" in found.text and "✓ E" in found.text and "✗ D" in found.text


# -- what can't be answered ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, error, message",
    [
        (("placement/q3", "CX1"), ValueError, r'placement/q3 has no 1, X. Its letters are A, B, C, D, E: .*"AE"\)'),
        (("placement/q3", "C and E"), ValueError, "placement/q3 has no N"),
        (("placement/q3", ["C", "E"]), TypeError, "The letters are a text: .*, not list"),
        (("placement/q33", "C"), LookupError, "Did you mean placement/q3"),
        (
            ("placement/q1", "C"),
            LookupError,
            "placement/q1 has no letters to choose from. .* for memory/q1, .*shared/q1",
        ),
        ((3, "C"), TypeError, r'its id, a text: dtflab.predict\("memory/q1", "A"\), not int'),
    ],
)
def test_bad_input_says_what_there_is(call, error, message):
    with pytest.raises(error, match=message):
        tf.predict(*call)
    assert choices._tried.get("placement/q3", set()) == set()


def test_letters_of_a_question_follow_each_other():
    with pytest.raises(ZeroDivisionError), teachers_own():
        question = register("numbers/q7", "Numbers", answer="n", hints=("a", "b"))
        question.choice("A", "one", right=True, look="Look.", why="So.")
        with pytest.raises(ValueError, match="numbers/q7: the next letter to choose is B, not 'A'"):
            question.choice("A", "two", right=False, look="Look.", why="So.")
        find("placement/q3").choice("F", "more", right=False, look="Look.", why="So.")
        raise ZeroDivisionError
    assert len(find("placement/q3").choices) == 5, "what a teacher's file adds is taken back with it"


# -- how it is shown -------------------------------------------------------------------------------------------


def test_it_shows_itself_as_text_and_as_a_table():
    found = tf.predict("placement/q3", "CD")
    data = found._repr_mimebundle_()
    assert data["text/plain"] == found.text == repr(found) == str(found)
    assert data["text/html"] == found.html and found.html.count("<tr>") == 2
    assert "✓ right" in found.html and "✗ wrong" in found.html, "never colour alone"
    assert "<code>allow_soft_placement</code>" in found.html and "`" not in found.html


def test_markup_in_a_sentence_is_text():
    question = Question("numbers/q8", "Numbers", "n", ())
    question.choice("A", "x < `y` & <b>", right=True, look="Look.", why="<i>")
    assert "x &lt; <code>y</code> &amp; &lt;b&gt;" in choices.Prediction(question, frozenset("A"), 1).html


# -- marks -----------------------------------------------------------------------------------------------------


def test_no_guess_changes_a_mark(tmp_path):
    """A file for each guess, graded as a teacher does: `Z` is an error in its cell, and that is all."""
    source = source_of(find("placement/q3"))
    guesses = {"ada": "CE", "bob": "ABD", "cy": "", "dora": "Z"}
    for student, letters in guesses.items():
        text = source.replace('"placement/q3", "CE"', f'"placement/q3", "{letters}"')
        (tmp_path / f"{student}.py").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "dtflab", "grade", str(tmp_path), "--json", str(tmp_path / "marks.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.findall(r"^(\w+) +(\d+/\d+) ", done.stdout, re.MULTILINE) == [(name, "10/10") for name in guesses]
    assert "Cell 2: ValueError: placement/q3 has no Z." in done.stdout
    assert [path.name for path in tmp_path.iterdir() if path.suffix not in (".py", ".json", ".journal")] == []
