"""A class: copies, parts of an assignment, who handed in nothing, and whose file nobody knows."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from dtflab.grading import batch, cli, mark_sheets as sheets, marks_page
from dtflab.grading.batch import Graded
from dtflab.grading.catalogue import find
from dtflab.grading.journal import GradingJournal
from dtflab.grading.judge import Report, Result
from dtflab.grading.students import choose, read_list, with_class
from dtflab.grading.submissions import Submission, found, in_parts
from tests.grading.classroom import RIGHT, WRONG, grade, percent

Q1 = "placement/q1"


def graded(name, student="ada", assignment="ex1", points=0, failed="", id=Q1):
    """A file with that many points, as far as its checks allow."""
    question, results = find(id), []
    for check in question.checks:
        results.append(Result(check, passed := check.points <= points))
        points -= check.points * passed
    return Graded(Submission(Path(name), student, assignment, ""), [Report(question, results, "", "")], failed=failed)


def counting(*files):
    choose(files)
    return [one.submission.path.name for one in files if one.counts]


def test_the_best_of_a_students_files_counts():
    old, new = graded("ada/ex1.py", points=3), graded("ada/ex1 (1).py", points=10)
    assert counting(old, new) == ["ex1 (1).py"]
    assert old.notes == ["Does not count: ada/ex1 (1).py has more points."]
    assert new.notes == ["Counts: the best of 2 files for this assignment."]


def test_of_equals_the_original_counts_and_one_that_can_be_read():
    copy, original = graded("ada/ex1 (1).py"), graded("ada/ex1.py")
    assert counting(copy, original) == ["ex1.py"] and copy.notes[0].endswith("ada/ex1.py has as many points.")
    assert counting(graded("ex1.py", failed="It is not a notebook."), graded("ex1-Copy1.py")) == ["ex1-Copy1.py"]


def test_other_students_assignments_and_questions_are_no_copies():
    files = [graded("a.py"), graded("a.py", "bob"), graded("b.py", assignment="ex2"), graded("c.py", id="queues/q1")]
    assert len(counting(*files)) == 4 and not any(one.notes for one in files)


def test_what_does_not_count_is_in_the_table_and_not_in_the_sheet():
    files = [graded("ada/ex1.py", points=3), graded("ada/ex1 (1).py", points=10), graded("x.py", "bob")]
    choose(files)
    assert [row.split(",")[3] for row in sheets.csv_text(files).splitlines()[1:]] == ["ada", "bob"]
    assert [one["counts"] for one in sheets.data(files)["submissions"]] == [False, True, True]
    assert "Does not count: ada/ex1 (1).py" in sheets.text(files) and "Does not count" in marks_page.html(files)


LISTS = {
    "names": "Ada Lovelace\n\n  Hopper, Grace \nAda Lovelace\n",
    "nbgrader": 'id,first_name,last_name,email\nAda Lovelace,Ada,Lovelace,x\n"Hopper, Grace",Grace,Hopper,\n',
    "excel": "\ufeffName;ID\nAda;Ada Lovelace\nGrace;Hopper, Grace\nshort\n",
    "marks": 'assignment,student_id\nex1,Ada Lovelace\nex1,"Hopper, Grace"\nex2,Ada Lovelace\n',
}


@pytest.mark.parametrize("name", LISTS)
def test_class_lists(name, tmp_path):
    (tmp_path / "list").write_text(LISTS[name], encoding="utf-8")
    assert read_list(tmp_path / "list") == ["Ada Lovelace", "Hopper, Grace"]


def test_letters_are_compared_in_one_form_and_other_encodings_are_refused(tmp_path):
    path = tmp_path / "list"
    path.write_text("Zoe\u0308", encoding="utf-8")
    assert read_list(path) == ["Zo\u00eb"]
    path.write_bytes("Zo\u00eb".encode("cp1252"))
    with pytest.raises(ValueError, match="is not UTF-8 text"):
        read_list(path)


def test_who_handed_in_nothing_has_a_row_and_strangers_are_named():
    files = [graded("ada/ex1.py", points=10), graded("eve/ex1.py", "eve", points=3)]
    rows = with_class(files, ["ada", "bob"], "class.txt")
    assert [(one.submission.student, sheets.points_of(one), one.notes) for one in rows] == [
        ("ada", "10/10", []),
        ("eve", "3/10", ["eve is not in class.txt: whose file is it?"]),
        ("bob", "0/10", ["Nothing handed in."]),
    ]
    assert sheets.text(rows).endswith("2 files, 0 could not be graded")
    assert sheets.data(rows)["submissions"][2]["file"] == "" and "Nothing handed in." in marks_page.html(rows)
    assert sheets.csv_text(rows).splitlines()[3] == "ex1,,,bob,,,,0.0,0.0,0.0,10.0"


def test_a_whole_folder_of_one_student_is_no_homework_for_all():
    files = [graded(f"{name}/ex1.py", name) for name in ("ada", "bob", "eve")]
    files.append(graded("ada/ex2.py", assignment="ex2"))
    rows = with_class(files, ["ada", "bob", "eve", "dan"], "class.txt")
    assert [(one.submission.student, one.submission.assignment) for one in rows[4:]] == [("dan", "ex1")]


# -- parts ---------------------------------------------------------------------------------------------------


def hand_in(folder, *files):
    """Files `ada/hw1/part1: a/q1 b/q1`; as they are found, in parts."""
    for file in files:
        name, _, ids = file.partition(": ")
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.py").write_text(percent(*(f'dtflab.grade("{id}")' for id in ids.split())))
    taken, _ = found([folder])
    return in_parts(taken, ())


PARTS = (
    *(f"{student}/hw1/part1: placement/q1 placement/q3" for student in ("ada", "bob", "carol", "dan")),
    *(f"{student}/hw1/part2: queues/q1" for student in ("ada", "bob")),
    "eve/hw1/part1 (1): placement/q1",  # a cell deleted
)


def judged(submissions, chosen=()):
    tasks = cli._tasks(submissions, {}, cli._chosen(chosen), batch.Options(), GradingJournal(None, False))
    works = [task.run.args[0] for task in tasks]
    return {work.submission.path.stem: [question.id for question in work.questions] for work in works}


def test_parts_are_judged_by_themselves_though_some_students_leave_one_out(tmp_path):
    taken = hand_in(tmp_path, *PARTS)
    assert Counter(one.assignment for one in taken) == {"hw1/part1": 5, "hw1/part2": 2}
    both = ["placement/q1", "placement/q3"]
    assert judged(taken) == {"part1": both, "part1 (1)": both, "part2": ["queues/q1"]}


def test_names_of_their_own_are_no_parts(tmp_path):
    taken = hand_in(
        tmp_path, "ada/hw1/mine: queues/q1", "bob/hw1/hw_bob: queues/q1", "eve/hw1/work: queues/q1",
        "eve/hw1/scratch: placement/q1", "dan/hw1/work: queues/q1",
    )  # fmt: skip
    assert {one.assignment for one in taken} == {"hw1"}
    assert set(map(tuple, judged(taken).values())) == {("queues/q1",)}


def test_questions_are_named_for_a_part(tmp_path):
    taken = hand_in(tmp_path, *PARTS)
    named = judged(taken, ["part1=placement/q1,shared/q1", "memory/q1"])
    assert named["part1"] == named["part1 (1)"] == ["placement/q1", "shared/q1"] and named["part2"] == ["memory/q1"]
    assert judged(taken, ["part2=placement/q1"])["part1"] == ["placement/q1", "placement/q3"]


def test_a_class_from_the_command_line(folders, tmp_path):
    """Ada's copy is better, bob wrote nothing, carol handed in nothing, dan a slip, and nobody knows eve."""
    checks, _, _ = folders
    asks, stub = 'dtflab.grade("numbers/q9")', "def twice(n):\n    raise NotImplementedError()"
    slip = "def twice(n):\n    return 2 *"
    for name, answer in (
        ("ada/ex9", WRONG),
        ("ada/ex9 (1)", RIGHT),
        ("bob/ex9", stub),
        ("dan/ex9", slip),
        ("eve/ex9", RIGHT),
    ):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / f"{name}.py").write_text(percent(answer, asks))
    (tmp_path / "class.csv").write_text("id,first_name\nada,Ada\nbob,Bob\ncarol,Carol\ndan,Dan\n")
    files = ("--json", tmp_path / "m.json", "--csv", tmp_path / "m.csv")
    done = grade(tmp_path / "in", f"--checks={checks}", "--students", tmp_path / "class.csv", *files)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads((tmp_path / "m.json").read_text())["submissions"]
    notes = {(one["student"], one["points"], one["counts"]): one["notes"] for one in rows}
    assert notes == {
        ("ada", 4, True): ["Counts: the best of 2 files for this assignment."],
        ("ada", 1, False): ["Does not count: ada/ex9 (1).py has more points."],
        ("bob", 0, True): ["As shipped: no answer is written in it."],
        ("dan", 0, True): ["Cell 1: SyntaxError in its line 2: invalid syntax"],
        ("eve", 4, True): ["eve is not in class.csv: whose file is it?"],
        ("carol", 0, True): ["Nothing handed in."],
    }
    sheet = [line.split(",")[3] for line in (tmp_path / "m.csv").read_text().splitlines()[1:]]
    assert sheet == ["ada", "bob", "dan", "eve", "carol"]
