"""Which files are submissions, whose, with which cells and questions; what a sheet and a terminal show of them."""

from __future__ import annotations

import gzip
import io
import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from dtflab import course
from dtflab.grading import batch, cli, mark_sheets as sheets, marks_page, report_pages as pages
from dtflab.grading.batch import Graded, none
from dtflab.grading.catalogue import find
from dtflab.grading.journal import GradingJournal
from dtflab.grading.submissions import Submission, Unreadable, asked, cells, found, in_parts, questions_of, same
from tests.house import ROOT

PERCENT = """# a line before the first cell is a cell

# %% [markdown]
# # A title: dtflab.grade("none/q1")

# %%
x = 1
# %load_ext dtflab
# cluster = %dtf_cluster --ps 1
# 100 % sure

# %% a name
# %%capture
y = 2

#%%
z = 3
# %% [raw]
raw
"""


@pytest.fixture
def odd(tmp_path):
    """A class folder in which some things are not files."""
    folder = tmp_path / "ex9"
    (folder / "dan.ipynb").mkdir(parents=True)
    (folder / "dan.ipynb/notes.txt").write_text("x")
    (folder / "ada.ipynb").symlink_to(tmp_path / "gone.ipynb")
    (folder / "eve.ipynb").symlink_to("eve.ipynb")
    os.mkfifo(folder / "bob.ipynb")
    os.mkfifo(folder / "gus.py")
    (folder / "zero.ipynb").symlink_to("/dev/zero")
    (folder / "cy\nd.py").write_text("# %%\n1")
    (folder / "fay.py").write_text("# %%\n1")
    (folder / "link.py").symlink_to(folder / "fay.py")
    return folder


def test_what_is_no_file_has_a_row_that_says_why(odd):
    taken, left = found([odd])
    why = {}
    for one in taken:
        try:
            why[one.student] = cells(one.path)
        except Unreadable as error:
            why[one.student] = str(error)
    assert why.pop("fay") == why.pop("link") == ["1"]
    assert why == {
        "ada": f"There is no file at {odd.parent / 'gone.ipynb'}, to which it is a link. Hand in the file itself.",
        "eve": "There is no file at eve.ipynb, to which it is a link. Hand in the file itself.",
        "bob": "It is not a file, but a pipe or a device. Hand in the file itself.",
        "gus": "It is not a file, but a pipe or a device. Hand in the file itself.",
        "zero": "It is not a file, but a pipe or a device. Hand in the file itself.",
        "dan": "It is a folder, not a file. Hand in the notebook itself.",
        "cy\\nd": "Its name has a line break or control character in it. Rename it, and hand it in again.",
    }
    assert [file.name for file in left] == ["notes.txt"]


def test_a_student_without_any_file_has_a_row_that_says_why(tmp_path):
    for folder in ("ada/ex01", "bob", "cyd", "dan", "eve/ex01", "fay"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "ada/ex01/any.py").write_text("# %%\n1")
    (tmp_path / "ada/data").symlink_to(tmp_path / "bob")
    (tmp_path / "bob/ex01").symlink_to(tmp_path / "ada/ex01")
    (tmp_path / "cyd/ex01").symlink_to("gone")
    (tmp_path / "fay/notes.txt").write_text("x")
    (tmp_path / "hal.py").write_text("# %%\n1")
    (tmp_path / "gus").symlink_to("ada")
    taken, left = found([tmp_path])
    right = [one for one in taken if one.student in ("ada", "hal")]
    assert len(right) == 2 and [file.name for file in left] == ["notes.txt"]
    why = {}
    for one in taken:
        if one not in right:
            with pytest.raises(Unreadable) as error:
                cells(one.path)
            why[one.student, one.assignment] = str(error.value)
    assert why == {
        (
            "bob",
            "ex01",
        ): f"There is no file at {tmp_path / 'ada/ex01'}, to which it is a link. Hand in the file itself.",
        ("cyd", "ex01"): "There is no file at gone, to which it is a link. Hand in the file itself.",
        ("dan", tmp_path.name): "It is a folder, not a file. Hand in the notebook itself.",
        ("eve", "ex01"): "It is a folder, not a file. Hand in the notebook itself.",
        ("gus", tmp_path.name): "There is no file at ada, to which it is a link. Hand in the file itself.",
    }
    (tmp_path / "fay/figures").mkdir()
    (tmp_path / "fay/ex02.py").write_text("# %%\n1")
    assert len(found([tmp_path / "fay"])[0]) == 1, "a student's own folder has no students in it"


def test_a_pipe_that_is_named_itself_has_a_row(odd):
    ((one,), _) = found([odd / "bob.ipynb"])
    with pytest.raises(Unreadable, match="a pipe or a device"):
        cells(one.path)


def test_python_that_asks_a_question_or_is_no_utf_8_is_no_module_of_a_student(tmp_path):
    answer = "def twice(n):\n    return 2 * n\n"
    (tmp_path / "ada.py").write_text(f'{answer}dtflab.grade("placement/q1")\n')
    (tmp_path / "bob.py").write_text(f"#%%\n{answer}")
    (tmp_path / "cyd.py").write_text(f"# %%\n{answer}", encoding="utf-16")
    (tmp_path / "helpers.py").write_text(answer)
    taken, left = found([tmp_path])
    assert [one.path.name for one in taken] == ["ada.py", "bob.py", "cyd.py"] and [file.name for file in left] == [
        "helpers.py"
    ]
    assert len(cells(taken[0].path)) == len(cells(taken[1].path)) == 1
    with pytest.raises(Unreadable, match="It is in UTF-16"):
        cells(taken[2].path)


@pytest.mark.processes  # when jupytext is loaded
def test_percent_files_have_the_cells_that_jupytext_finds(tmp_path):
    import jupytext  # takes seconds to load

    path = tmp_path / "a.py"
    for text in (PERCENT, *(file.read_text(encoding="utf-8") for file in sorted((ROOT / "solutions").glob("ex*.py")))):
        path.write_text(text)
        theirs = [cell.source for cell in jupytext.reads(text, fmt="py:percent").cells if cell.cell_type == "code"]
        assert [cell.strip("\n") for cell in cells(path)] == theirs


def test_notebooks_of_both_forms(tmp_path):
    path = tmp_path / "a.ipynb"
    code = [{"cell_type": "code", "source": source} for source in ("x = 1\ny = 2", ["x = 1\n", "y = 2"])]
    path.write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": "text"}, *code]}))
    assert cells(path) == ["x = 1\ny = 2"] * 2


def test_what_other_systems_do_to_files(tmp_path):
    """Windows writes a mark of its own before a text, old disks write names in capitals, macOS splits letters."""
    path = tmp_path / "Zoe\u0308" / "EX1.IPYNB"
    path.parent.mkdir()
    code = [{"cell_type": "code", "source": "x = 1"}]
    path.write_text(json.dumps({"cells": code}), encoding="utf-8-sig")
    (one,), left = found([tmp_path])
    assert (one.student, one.assignment, left) == ("Zo\u00eb", "EX1", []) and cells(path) == ["x = 1"]
    assert [same(os.fsdecode(name)) for name in (b"Zo\xeb", b"Zo\xe9")] == [r"Zo\xeb", r"Zo\xe9"], "two students"
    assert cli._few([Path(os.fsdecode(b"ada/\xfc.pdf"))]) == r"ada/\xfc.pdf", "a terminal can print it"


REFUSED = {
    "a.docx": ("x", "its name ends in '.docx'"),
    "a.ipynb": ('{"cells": [{"cell_type": "code", "source": 3}]}', r"TypeError: a cell's source is int"),
    "b.ipynb": ('{"cells": []}', "It has no code."),
    "a.py": ("# %%\n\n", "It has no code."),
    "zero.ipynb": ("", "^The file is empty. "),
    "zero.py": ("\n", "^The file is empty. "),
    "git.ipynb": (
        '{\n<<<<<<< HEAD\n"a": 1\n=======\n"a": 2\n>>>>>>> theirs\n}',
        "^Line 2 is '<<<<<<< HEAD': git has left two",
    ),
    "wide.ipynb": ("{}".encode("utf-16"), "^It is in UTF-16, and notebooks are in UTF-8"),
    "wide.py": (b"\xfe\xff" + "# %%\n1".encode("utf-16-be"), "^It is in UTF-16"),
    "packed.ipynb": (gzip.compress(b"{}"), "^It is compressed by gzip. Unpack it"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_cells_is_refused(name, tmp_path):
    content = REFUSED[name][0]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(Unreadable, match=REFUSED[name][1]):
        cells(tmp_path / name)


def test_what_a_file_asks():
    code = ['import dtflab\ndtflab.grade("a/q1")', "%dtf_grade b/q1", "tf.grade('a/q1'); tf.grade( 'c/q1', hint=True)"]
    assert asked(code) == ["a/q1", "b/q1", "c/q1"]


def test_most_files_decide_what_is_asked():
    assert questions_of([["a/q1", "a/q2"], ["a/q1"], ["a/q1", "b/q1"], []]) == ["a/q1"]
    assert questions_of([["a/q1"], ["a/q2"]]) == []
    assert questions_of([]) == []


def test_whose_a_file_is(tmp_path):
    names = ["bob.ipynb", "ada/ex1.ipynb", "eve/ex1/work.py", "eve/ex1/helper.py", ".hidden/x.ipynb", "ada/notes.pdf"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("# %%\n" if name.endswith("work.py") else "x")
    taken, left = found([tmp_path])
    assert [(one.student, one.assignment) for one in taken] == [
        ("ada", "ex1"), ("bob", tmp_path.name), ("eve", "ex1"),
    ]  # fmt: skip
    assert [path.name for path in left] == ["notes.pdf", "helper.py"]


PLACES = {  # named on the command line, file in it: student and assignment
    "one/ada/ex1_x.py": (".", "ada", "ex1_x"),
    "two/ada": ("ex1_x.py", "ada", "ex1_x"),
    "three": ("ada/ex1_x.py", "ada", "ex1_x"),
    "four/ada/ex1_x/ex1_x.py": (".", "ada", "ex1_x"),
    "five/ada": ("ex1_x/ex1_x.py", "ada", "ex1_x"),
    "six/ada/ex1_x": ("ex1_x.py", "ada", "ex1_x"),
    "seven/ex1_x": ("ada.py", "ada", "ex1_x"),
    "eight/ex1_x/ada.py": (".", "ada", "ex1_x"),
    "nine": ("ex1_x/ada.py", "ada", "ex1_x"),
    "ten/lab": ("ex1_x_ada.py", "ex1_x_ada", "lab"),
    "eleven/lab/ada.py": (".", "ada", "lab"),
    "twelve": ("ada/ex1_x (1).py", "ada", "ex1_x"),
    "thirteen": ("ada/ex1_x-Copy2.py", "ada", "ex1_x"),
    "fifteen": ("ada/exercises/ex1_x.py", "ada", "ex1_x"),
    "sixteen/ada/exercises": ("ex1_x.py", "ada", "ex1_x"),
    "fourteen": ("ada/mine (1).py", "ada", "mine (1)"),
    "seventeen": ("ada/ex1_x\n.py", "ada", "ex1_x"),
    "eighteen": ("ada/mi\nne.py", "ada", "mine"),
}
COPIES_BY = {
    "Jupyter": "ex1_x-Copy1",
    "a browser": "ex1_x (2)",
    "a mailer": "ex1_x(2)",
    "Windows": "ex1_x - Copy",
    "Windows again": "ex1_x - Copy (2)",
    "German Windows": "ex1_x - Kopie",
    "macOS": "ex1_x copy",
    "macOS again": "ex1_x copy 2",
    "a web drive": "Copy of ex1_x",
    "a German drive": "Kopie von ex1_x",
    "two of them": "Copy of ex1_x (1)",
}
COPIES = {"ada/mine.py": ("ada", "mine"), "ada/mine (1).py": ("ada", "mine"), "mine (1).py": ("mine (1)", "lab")}


@pytest.mark.parametrize("named", PLACES)
def test_the_name_of_an_exercise_is_no_students(named, tmp_path):
    inside, student, assignment = PLACES[named]
    file = tmp_path / named / inside
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("# %%\n")
    (one,), _ = found([tmp_path / named], {"ex1_x", "ex2_y"})
    assert (one.student, one.assignment) == (student, assignment)


@pytest.mark.parametrize("program", COPIES_BY)
def test_copies_of_other_programs_are_the_same_assignment(program, tmp_path):
    file = tmp_path / "ada" / f"{COPIES_BY[program]}.py"
    file.parent.mkdir()
    file.write_text("# %%\n")
    (one,), _ = found([tmp_path], {"ex1_x"})
    assert (one.student, one.assignment, one.name, one.is_copy) == ("ada", "ex1_x", "ex1_x", True)


@pytest.mark.parametrize("name", ["Copy of ", "(1)", "copycat", "Photocopy", "a-Copy"])
def test_what_is_no_copy_keeps_its_name(name):
    assert Submission(Path(f"{name}.py"), "ada", "ex1", "").name == name


def test_a_copy_beside_its_original_is_the_same_assignment_but_two_smiths_are_two(tmp_path):
    for name in (*COPIES, "ada/lone (1).py", "mine.py"):
        (tmp_path / "lab" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "lab" / name).write_text("# %%\n")
    taken, _ = found([tmp_path / "lab"])
    whose = {one.path.relative_to(tmp_path / "lab").as_posix(): (one.student, one.assignment) for one in taken}
    assert whose == COPIES | {"ada/lone (1).py": ("ada", "lone (1)"), "mine.py": ("mine", "lab")}


def test_of_an_exercise_whose_grading_cells_are_all_deleted_the_name_says_what_it_asks(tmp_path):
    for student in ("ada", "bob"):
        (tmp_path / student).mkdir()
        (tmp_path / student / "ex06_queues.py").write_text("# %%\nprint(1)\n")
    taken, _ = found([tmp_path], course.exercises())
    work = []
    journal = SimpleNamespace(task=work.append)
    cli._tasks(taken, course.exercises(), {}, batch.Options(), journal)
    assert [[question.id for question in one.questions] for one in work] == [["queues/q1"]] * 2


def test_the_courses_exercises_are_known():
    assert {path.stem for path in (ROOT / "solutions").glob("ex*.py")} == set(course.exercises())


@pytest.fixture
def graded():
    submission = Submission(Path("x.ipynb"), "=HYPERLINK(1)", "ex1", "2026-11-20")
    return none(submission, [find("placement/q1")], "<b>no</b>")


def test_a_link_is_its_place_not_its_target(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/x.ipynb").write_text("x")
    (tmp_path / "in").mkdir()
    (tmp_path / "in/ada.ipynb").symlink_to(tmp_path / "elsewhere/x.ipynb")
    (tmp_path / "in/bob.ipynb").symlink_to(tmp_path / "nowhere")
    taken, _ = found([tmp_path / "in"])
    assert [(one.student, one.assignment) for one in taken] == [("ada", "in"), ("bob", "in")]


LINES = ["[", "3", "null", '["t", "report", {"id": "x"}, null]', '["t", "cell", 9, null]', '["t", "judging", [], null]',
         '["t", "error", {}, 1]', '["t", "end"]', "[" * 99_999, '["other", "end", null, null]']  # fmt: skip


@pytest.mark.parametrize("line", LINES, ids=range(len(LINES)))
def test_what_a_submission_says_in_the_graders_name_is_nothing(line):
    work = batch._Work(Submission(Path("x"), "ada", "ex1", ""), ["x = 1"], [find("placement/q1")], batch.Options())
    work._token = "t"
    work._hear(line)
    assert not work.done and not work.reports and not work.errors and work._now[0] == ""


def test_a_submission_that_asks_for_hidden_checks_again_and_again_is_heard_once_and_never_waited_for(monkeypatch):
    begun = []

    def report(question, public, answer, link, *rest):
        begun.append(question.id)
        link.seconds = 9.0
        link.ask("f", (), {})  # whose reply never comes

    monkeypatch.setattr(batch.hidden, "report", report)
    questions = [find("placement/q1"), find("queues/q1")]
    work = batch._Work(Submission(Path("x"), "ada", "ex1", ""), ["x = 1"], questions, batch.Options())
    work._token = "t"
    work._talk(lambda text: None)
    for question in questions * 50:
        work._hear(json.dumps(["t", "hidden", question.id, None]))
    work._hang_up()
    assert sorted(begun) == ["placement/q1", "queues/q1"] and not work._asking


def test_what_a_submission_says_has_little_room_in_the_grader():
    work = batch._Work(Submission(Path("x"), "ada", "ex1", ""), ["x = 1"], [find("placement/q1")], batch.Options())
    work._token = "t"
    for i in range(3 * batch._NAMES):
        work._hear(json.dumps(["t", "replaced", f"dtflab.f{i}", 1]))
        work._hear(json.dumps(["t", "changed", f"dtflab.g{i}", None]))
        work._hear(json.dumps(["t", "reply", {"seconds": 1, "value": i}, None]))
    assert len(work.replaced) == len(work.changed) == batch._NAMES
    assert work._link._replies.empty(), "nobody asks"


def test_what_a_file_says_ends_no_line_of_a_terminal_and_moves_nothing():
    notes = ["Cell 1: ValueError: \nzed 12/12 ex01\r\x1b[1A\x1b[31mada\x07\u202e"]
    lines = sheets.text([Graded(Submission(Path("x"), "ada", "ex1", ""), notes=notes)]).split("\n")
    assert len(lines) == 3 and lines[1].isprintable()
    assert lines[1].endswith(r"ValueError: \nzed 12/12 ex01\r\x1b[1A\x1b[31mada\x07\u202e")


def test_each_exercise_of_an_assignment_has_its_own_questions(tmp_path):
    for name in ("a/hw/ex1_x", "b/hw/ex1_x", "c/hw/ex1_x", "a/hw/ex2_y", "b/hw/ex2_y", "a/lab/mine", "b/lab/other"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        question = "queues/q1" if "ex2" in name else "placement/q1"
        (tmp_path / f"{name}.py").write_text(f"# %%\ndtflab.grade('{question}')\n")
    taken, _ = found([tmp_path], names := {"ex1_x", "ex2_y"})
    tasks = cli._tasks(in_parts(taken, names), {}, {}, batch.Options(), GradingJournal(None, False))
    works = [task.run.args[0] for task in tasks]
    judged = [(work.submission.path.stem, [question.id for question in work.questions]) for work in works]
    assert all(ids == ["queues/q1" if stem == "ex2_y" else "placement/q1"] for stem, ids in judged), judged


def test_a_file_of_another_exercise_is_told():
    assert cli._other_exercise(["a/q1"], ["a/q1", "b/q1"]) == cli._other_exercise([], ["a/q1"]) == []
    assert cli._other_exercise(["b/q1"], ["a/q1"]) == [
        "It asks b/q1, and was judged on a/q1: is it another exercise by this name?"
    ]


def test_the_page_shows_the_first_note_and_folds_what_was_printed(graded):
    graded.failed, graded.notes, graded.output = "", ["Cell 2: ValueError", "Cell 3: TypeError"], "1\n2\n"
    page = marks_page.html([graded])
    assert "Cell 2: ValueError (and 1 more note)" in page
    assert "<summary>Printed: 2 lines</summary><pre>1\n2</pre></details>" in page


def test_what_an_answer_printed_is_folded_where_it_is_long():
    short, long = (str(pages._note("Printed: " + "x\n" * lines)) for lines in (3, 9))
    assert "<details" not in short and "<summary" in long and "Printed: 9 lines" in long


def test_a_name_is_no_formula_and_no_markup(graded):
    assert sheets.csv_text([graded]).splitlines()[1] == "ex1,,2026-11-20,'=HYPERLINK(1),,,,0.0,0.0,0.0,10.0"
    assert "<b>no" not in marks_page.html([graded]) and "&lt;b&gt;no" in marks_page.html([graded])


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_shown_in_place_in_a_terminal_only(graded, monkeypatch):
    for stream, shown in (
        (Terminal(), "\r\033[K1 of 2 graded: =HYPERLINK(1)\r\033[K"),
        (io.StringIO(), ""),
    ):
        monkeypatch.setattr("sys.stdout", stream)
        progress = cli._Progress(2)
        progress.done(graded)
        progress.end()
        assert stream.getvalue() == shown


def test_a_file_without_a_known_question_is_told():
    assert sheets.text([Graded(Submission(Path("x"), "ada", "ex1", ""), failed="It asks nothing.")]) == (
        "ada        0/0  ex1\n     Not graded: It asks nothing.\n1 file, 1 could not be graded"
    )
