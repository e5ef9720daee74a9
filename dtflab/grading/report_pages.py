"""A report as text, as HTML that needs no script, and as data. Pure functions.

A mark never stands in colour alone: there is a sign and a word. Colours follow the theme.
Rule: a picture from another process is shown as an image, in which a browser runs and loads nothing.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from dtflab.base.text_table import plural
from dtflab.grading.judge import NOT_TRIED, PUBLIC_SEED, Report, Result
from dtflab.grading.questions import Check, Question
from dtflab.viz.drawing.svg import Markup, join, tag

_WORDS = {True: ("✓", "PASS"), False: ("✗", "FAIL")}
_AGAIN, _NOT_TRIED = ("?", "NOT JUDGED"), ("–", "NOT TRIED")
ROOT = "color:var(--jp-content-font-color1,inherit);font-size:13px;line-height:1.5;max-width:860px"
CELL = "text-align:left;vertical-align:top;padding:4px 16px 4px 0;white-space:normal"
SOFT = "color:var(--jp-content-font-color2,inherit)"
NOTE = "border-left:3px solid #B87F00;padding:2px 0 2px 10px;margin:4px 0"
_MOST = 200_000  # characters of a picture from another process
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
    return _AGAIN if result.starved else _NOT_TRIED if result.message in NOT_TRIED else _WORDS[result.passed]


def _points(result: Result) -> str:
    return f"{result.points}/{result.check.points}"


def _notes(report: Report, result: Result) -> Iterator[str]:
    """The notes on a check: what was seen; which mistake that looks like; what was printed. Each once."""
    before = list(itertools.takewhile(lambda other: other is not result, report.results))
    if result.message:
        said = any(other.message == result.message for other in before)
        yield "The same as above." if said else result.message
    if result.hint and (first := next(one for one in _with_hints(report) if one.hint == result.hint)) is not result:
        yield f"Caused by the same mistake as in “{first.check.title}”."
    elif result.hint:
        yield f"Hint: {result.hint} {result.cure}".rstrip()
    elif (cause := _cause(report, result)) is not None:
        yield f"This may be a consequence of the mistake in “{cause.check.title}”. Fix that one first."
    if result.output and all(other.output != result.output for other in before):
        yield f"Printed: {result.output.strip()}"


def _cause(report: Report, result: Result) -> Result | None:
    """The result with a known mistake that may explain a failure without one of its own."""
    is_known = result.hint or result.stopped or result.crashed or result.broken or result.unwritten
    if result.passed or is_known or result.message in NOT_TRIED:
        return None
    return next(_with_hints(report), None)


def _with_hints(report: Report) -> Iterator[Result]:
    """The results with a known mistake, those from other reports first."""
    return (result for result in (*report.earlier, *report.results) if result.hint)


def _picture(report: Report) -> Any:
    """The first of a check that failed; if all is well, the first."""
    failed = [result for result in report.results if not result.passed] or report.results
    return next((result.picture for result in failed if result.picture is not None), None)


# -- HTML ----------------------------------------------------------------------------------------------------


def html(reports: Sequence[Report]) -> str:
    """Tables, with the pictures below them."""
    parts = [join([table(report), drawn(report)]) for report in reports]
    if len(reports) > 1:
        parts.append(tag("div", tag("b", _total(reports))))
    return tag("div", *parts, class_="dtf-score", style=ROOT)


def table(report: Report) -> Markup:
    """A report without its picture."""
    title = tag("div", tag("b", headline(report)), tag("span", f" · {report.question.title}", style=SOFT))
    if report.next_step:
        return join([title, tag("div", with_code(report.next_step), style=NOTE)])
    head = tag("tr", *(tag("th", name, style=CELL, scope="col") for name in ("result", "points", "check")))
    rows = join(_row(report, result) for result in report.results)
    whole = tag("table", tag("thead", head), tag("tbody", rows), style="border-collapse:collapse;margin:6px 0")
    return join([title, whole, tag("div", _instance(report), style=f"{SOFT};font-size:11px")])


def drawn(report: Report) -> Markup:
    """The picture of a report; empty if it has none."""
    picture = None if report.next_step else _picture(report)
    return Markup(picture.html) if picture is not None else Markup("")


def _row(report: Report, result: Result) -> Markup:
    mark = badge(result.passed, " ".join(_words(result)))
    lines = [tag("div", result.check.title), *map(_note, _notes(report, result))]
    cells = (mark, _points(result), join(lines))
    return tag("tr", *(tag("td", cell, style=CELL) for cell in cells))


def badge(good: bool, words: str) -> Markup:
    """A sign and a word, on green or on red."""
    style = f"background:{_TINT[good]};border-radius:4px;padding:1px 8px;font-weight:600;white-space:nowrap"
    return tag("span", words, style=style)


def with_code(text: str) -> Markup:
    """Text whose parts in backquotes are code; as it is if one of them has no end."""
    parts = text.split("`")
    has_ends = len(parts) % 2
    return join(tag("code", part) if i % 2 else part for i, part in enumerate(parts)) if has_ends else join([text])


def _note(note: str) -> Markup:
    if note.startswith("Hint: "):
        return tag("div", with_code(note), style=NOTE)
    style = f"{SOFT};white-space:pre-wrap;overflow-wrap:anywhere"
    if note.startswith("Printed: ") and (lines := len(note.splitlines())) > _FOLDED:
        summary = tag("summary", f"Printed: {plural(lines, 'line')}", style=SOFT)
        return tag("details", summary, tag("div", note, style=style))
    return tag("div", note if note.startswith("Printed: ") else with_code(note), style=style)


# -- data ----------------------------------------------------------------------------------------------------


def data(report: Report) -> dict[str, Any]:
    """The report as JSON can hold it."""
    return {
        "id": report.question.id,
        "points": report.points,
        "max": report.question.points,
        **{name: getattr(report, name) for name in ("next_step", "seed", "student", "versions")},
        "checks": [_check_data(result) for result in report.results],
    }


class Still(NamedTuple):
    """A picture from another process: an image, and a sentence that says what it shows."""

    svg: str
    sentence: str

    @property
    def html(self) -> Markup:
        source = f"data:image/svg+xml;base64,{base64.b64encode(self.svg.encode()).decode()}"
        return tag("img", src=source, alt=self.sentence, style="height:auto")

    @property
    def text(self) -> str:
        return self.sentence


def sent(report: Report) -> dict[str, Any]:
    """The report for another process: `data`, and its picture."""
    picture = _picture(report)
    if picture is None or len(picture.svg) > _MOST:
        return data(report)
    (number,) = (i for i, result in enumerate(report.results) if result.picture is picture)
    found = data(report)
    found["checks"][number]["picture"] = [picture.svg, picture.sentence]
    return found


def report_of(found: Any, question: Question) -> Report:
    """The report that `sent` describes, as another process said it; ValueError if it is not one of this question.

    Only what was seen is taken from it. Points and titles are those of the question here.
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
    facts: dict[str, Any] = {name: found[name] is True for name in _FACTS}
    said: dict[str, Any] = {name: str(found[name]) for name in _SAID}
    return Result(check, **facts, **said, picture=_still(found.get("picture")), seconds=float(found["seconds"]))


def _still(found: Any) -> Still | None:
    """The picture that `sent` describes; TypeError or ValueError for anything else."""
    if found is None:
        return None
    svg, sentence = map(str, found)
    return Still(svg, sentence) if len(svg) <= _MOST else None


_SAID = ("message", "mistake", "hint", "cure", "output")
_FACTS = ("passed", "unwritten", "stopped", "starved", "crashed", "broken")


def _check_data(result: Result) -> dict[str, Any]:
    return {
        "id": result.check.name,
        "title": result.check.title,
        "points": result.points,
        "max": result.check.points,
        **{name: getattr(result, name) for name in (*_FACTS, *_SAID)},
        "seconds": round(result.seconds, 3),
    }
