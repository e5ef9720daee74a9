"""A report as text, as HTML that needs no script, and as data. Pure functions.

A mark never stands in colour alone: there is a sign and a word. Colours follow the theme.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from dtflab.base.text_table import plural
from dtflab.grading.judge import PUBLIC_SEED, Report, Result
from dtflab.grading.questions import Check, Question
from dtflab.viz.drawing.svg import Markup, join, tag

_WORDS = {True: ("✓", "PASS"), False: ("✗", "FAIL")}
_AGAIN = ("?", "NOT JUDGED")
ROOT = "color:var(--jp-content-font-color1,inherit);font-size:13px;line-height:1.5;max-width:860px"
CELL = "text-align:left;vertical-align:top;padding:4px 16px 4px 0;white-space:normal"
SOFT = "color:var(--jp-content-font-color2,inherit)"
NOTE = "border-left:3px solid #E69F00;padding:2px 0 2px 10px;margin:4px 0"
_FOLDED = 8  # lines that an answer may print before they are folded
# A tint under words in the theme's own colour: it is read in light and dark, with eyes of every kind.
_TINT = {True: "rgba(0,158,115,.22)", False: "rgba(213,94,0,.22)"}


def headline(report: Report) -> str:
    """`placement/q1: 8 of 10 points`."""
    return f"{report.question.id}: {report.points} of {report.question.points} points"


def _instance(report: Report) -> str:
    student = f", student {report.student}" if report.student else ""
    seed = f"seed {report.seed}" if report.seed == PUBLIC_SEED else "your teacher's seed"
    return f"numbers drawn from {seed}{student}"


# -- text ----------------------------------------------------------------------------------------------------


def text(reports: Sequence[Report]) -> str:
    """Lines for a terminal."""
    blocks = ["\n".join(_lines(report)) for report in reports]
    if len(reports) > 1:
        blocks.append(_total(reports))
    return "\n\n".join(blocks)


def _total(reports: Sequence[Report]) -> str:
    points, most = sum(r.points for r in reports), sum(r.question.points for r in reports)
    return f"All: {points} of {most} points"


def _lines(report: Report) -> Iterator[str]:
    yield f"{headline(report)} ({report.question.title})"
    if report.next_step:
        yield f"  {report.next_step}"
        return
    for result in report.results:
        yield f"  {' '.join(_words(result))}  {_points(result):>5}  {result.check.title}"
        for note in _notes(report, result):
            yield from (f"               {line}" for line in note.splitlines())
    picture = _picture(report)
    if picture is not None:
        yield from ("", *(f"  {line}" for line in picture.text.splitlines()))


def _words(result: Result) -> tuple[str, str]:
    return _AGAIN if result.starved else _WORDS[result.passed]


def _points(result: Result) -> str:
    return f"{result.points}/{result.check.points}"


def _notes(report: Report, result: Result) -> Iterator[str]:
    """The notes on a check: what was seen; which mistake that looks like; what was printed. Each once."""
    before = list(itertools.takewhile(lambda other: other is not result, report.results))
    if result.message:
        said = any(other.message == result.message for other in before)
        yield "The same as above." if said else result.message
    if result.hint and all(other.hint != result.hint for other in before):
        yield f"Hint: {result.hint}"
    if result.output and all(other.output != result.output for other in before):
        yield f"Printed: {result.output.strip()}"


def _picture(report: Report) -> Any:
    """The first of a check that failed; if all is well, the first."""
    failed = [result for result in report.results if not result.passed] or report.results
    return next((result.picture for result in failed if result.picture is not None), None)


# -- HTML ----------------------------------------------------------------------------------------------------


def html(reports: Sequence[Report]) -> str:
    """Tables, with the pictures below them."""
    parts = [_section(report) for report in reports]
    if len(reports) > 1:
        parts.append(tag("div", tag("b", _total(reports))))
    return tag("div", *parts, class_="dtf-score", style=ROOT)


def _section(report: Report) -> Markup:
    title = tag("div", tag("b", headline(report)), tag("span", f" · {report.question.title}", style=SOFT))
    if report.next_step:
        return join([title, tag("div", report.next_step, style=NOTE)])
    head = tag("tr", *(tag("th", name, style=CELL, scope="col") for name in ("result", "points", "check")))
    rows = join(_row(report, result) for result in report.results)
    table = tag("table", tag("thead", head), tag("tbody", rows), style="border-collapse:collapse;margin:6px 0")
    picture = _picture(report)
    drawn = Markup(picture.html) if picture is not None else ""
    return join([title, table, drawn, tag("div", _instance(report), style=f"{SOFT};font-size:11px")])


def _row(report: Report, result: Result) -> Markup:
    mark = badge(result.passed, " ".join(_words(result)))
    lines = [tag("div", result.check.title)]
    for note in _notes(report, result):
        lines.append(_note(note))
    cells = (mark, _points(result), join(lines))
    return tag("tr", *(tag("td", cell, style=CELL) for cell in cells))


def badge(good: bool, words: str) -> Markup:
    """A sign and a word, on green or on red."""
    style = f"background:{_TINT[good]};border-radius:4px;padding:1px 8px;font-weight:600;white-space:nowrap"
    return tag("span", words, style=style)


def _note(note: str) -> Markup:
    if note.startswith("Hint: "):
        return tag("div", note, style=NOTE)
    style = f"{SOFT};white-space:pre-wrap;overflow-wrap:anywhere"
    if note.startswith("Printed: ") and (lines := len(note.splitlines())) > _FOLDED:
        summary = tag("summary", f"Printed: {plural(lines, 'line')}", style=SOFT)
        return tag("details", summary, tag("div", note, style=style))
    return tag("div", note, style=style)


# -- data ----------------------------------------------------------------------------------------------------


def data(report: Report) -> dict[str, Any]:
    """The report as JSON can hold it."""
    return {
        "id": report.question.id,
        "points": report.points,
        "max": report.question.points,
        "next_step": report.next_step,
        "seed": report.seed,
        "student": report.student,
        "versions": report.versions,
        "checks": [_check_data(result) for result in report.results],
    }


def report_of(found: Any, question: Question) -> Report:
    """The report that `data` describes, as another process said it; ValueError if it is not one of this question.

    Only what was seen is taken from it. Points and titles are those of the question here, pictures do not travel.
    """
    try:
        checks = {check["id"]: check for check in found["checks"]}
        results = [_result_of(checks[check.name], check) for check in question.checks]
        seed, student, next_step = (str(found[name]) for name in ("seed", "student", "next_step"))
        versions = {str(name): str(version) for name, version in found["versions"].items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"no report on {question.id}: {type(error).__name__}: {error}") from None
    return Report(question, results, seed, student, next_step, versions)


def _result_of(found: dict[str, Any], check: Check) -> Result:
    message, mistake, hint, output = (str(found[name]) for name in ("message", "mistake", "hint", "output"))
    seconds, unwritten = float(found["seconds"]), found["unwritten"] is True
    result = Result(check, found["passed"] is True, message, mistake, hint, None, output, seconds, unwritten)
    result.broken, result.stopped, result.starved = (found[name] is True for name in ("broken", "stopped", "starved"))
    return result


_SAID = "passed unwritten stopped starved broken message mistake hint output".split()


def _check_data(result: Result) -> dict[str, Any]:
    return {
        "id": result.check.name,
        "title": result.check.title,
        "points": result.points,
        "max": result.check.points,
        **{name: getattr(result, name) for name in _SAID},
        "seconds": round(result.seconds, 3),
    }
