"""The marks of a class as a teacher sees them: no scripts, in light and dark, on a laptop and on a phone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dtflab.grading import batch, judge, report_pages as pages
from dtflab.grading.batch import SHIPPED, Graded
from dtflab.grading.catalogue import find
from dtflab.grading.marks_page import html
from dtflab.grading.submissions import Submission
from tests.browser.test_accessible import with_axe
from tests.browser.test_browser import pytestmark  # noqa: F401
from tests.browser.test_pages import visit
from tests.grading.answers import answer, answer_cell, student_version, wrong_answers

Q1 = find("placement/q1")
SCRIPT = "<script>document.title = 'broken'</script>"


def graded(student: str, value: object, cell: str = "", output: str = "") -> Graded:
    """A file as it comes from the process that judged it."""
    found = judge.judge(Q1, {Q1.answer: value}, "0", student)
    report = pages.report_of(json.loads(json.dumps(pages.sent(found))), Q1)
    answers = {Q1.id: cell}
    return Graded(Submission(Path(f"{student[:3]}.py"), student, "ex01", ""), [report], answers=answers, output=output)


@pytest.fixture
def page(tmp_path):
    """A class of one of each kind."""
    cell, wrong = answer_cell(Q1), wrong_answers(Q1)
    right = answer(Q1, cell, tmp_path)
    names = ("counts_elements", "counts_elements", "round_robin", "pins_everything", "measures_the_handle")
    all_graded = [
        *(graded(f"right {number}", right, cell, "step 1\nstep 2") for number in range(4)),
        *(graded(f"wrong {number}", wrong[name], f"# {name}\n{cell}") for number, name in enumerate(names)),
        graded(f"<b>&{SCRIPT}\n\u202ename of " + 30 * "many", lambda ps_tasks, worker: 1 / 0, SCRIPT, SCRIPT),
        graded("as shipped", answer(Q1, student_version(cell), tmp_path), student_version(cell)),
        batch.none(Submission(Path("x.ipynb"), "no notebook", "ex01", ""), [Q1], "It is not a notebook."),
    ]
    all_graded[-2].notes = [SHIPPED]
    path = tmp_path / "marks.html"
    path.write_text(html(all_graded), encoding="utf-8")
    return path


@with_axe
@pytest.mark.parametrize("width", [1280, 390])
def test_a_class_is_read_on_every_screen(page, width):
    page = page.rename(page.with_name(f"marks-{width}.html"))
    report = visit(
        page,
        {"audit": "main"},
        {"width": width},
        {"on": ".mistake summary", "do": "press", "key": "Tab", "see": "One example"},
        {"on": ".mistake summary", "do": "focus", "see": "One example"},
        {"on": ".mistake summary", "do": "press", "key": "Enter", "see": "The whole report", "shot": "example"},
    )
    assert report["axe"] == report["faint"] == [] and report["over"] <= 0
    scrolled = {title for title, needs, room in report["boxes"] if needs > room}
    pictures = {title for title, _, _ in report["boxes"] if title.startswith("Picture of")}
    assert scrolled == (pictures if width == 390 else set())
    assert {needs for title, needs, _ in report["boxes"] if title in pictures} == {700 if width == 390 else 800}
