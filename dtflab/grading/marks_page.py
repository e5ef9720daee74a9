"""The marks of a class as a page: the class, a table of all files, each report with its code. Pure functions.

Rules: no HTML comes from a submission: words are escaped, pictures are images, and a content security policy forbids
scripts and requests in any case. An example of a mistake names no student, because it may be shown in a lecture.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from pathlib import Path

from dtflab.base.grouping import grouped
from dtflab.base.text_table import plural
from dtflab.grading import report_pages as pages
from dtflab.grading.batch import SHIPPED, Graded
from dtflab.grading.class_figures import ABSENT, Bar, Class, Lost, Made, classes, no_end, remarks
from dtflab.grading.judge import Report
from dtflab.grading.mark_sheets import notes_on, points_of
from dtflab.grading.students import NOTHING
from dtflab.viz.drawing.svg import Markup, join, tag

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_COUNTED = "Cells of text do not count: cell 3 is the third cell of code."
_HIGH = 130.0  # pixels of the highest bar
_FOLDED = 60  # lines of code that are shown at once
_NAMED = 8  # files in a sentence at the top of the page
_NOTHING = "\N{NO-BREAK SPACE}"  # an element without a child would be left open
_TOP = Markup('<a href="#top">↑ to the top</a>')


def html(all_graded: Sequence[Graded]) -> str:
    """The whole page."""
    numbered = list(enumerate(all_graded))
    title = f"Marks of {plural(sum(one.handed_in for one in all_graded), 'file')}"
    found = list(enumerate(classes(all_graded)))
    of_class = [part for number, one in found for part in _class(one, number, numbered)]
    style = Markup(Path(__file__).with_suffix(".css").read_text(encoding="utf-8"))
    head = tag(
        "head",
        *(Markup('<meta charset="utf-8">'), Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">')),
        *(Markup('<meta name="viewport" content="width=device-width">'), tag("title", title), tag("style", style)),
    )
    links = join((tag("a", _name(one.assignment), href=f"#class-{number}") for number, one in found), ", ")
    contents = [tag("p", "Assignments: ", links)] * (len(found) > 1)
    top = [tag("h1", title, id="top"), *contents, *_first_of_all(numbered)]
    main = tag("main", *top, *of_class, *_all(numbered), *_reports(numbered))
    return f"<!DOCTYPE html>\n{tag('html', head, tag('body', main), lang='en')}\n"


def _first_of_all(numbered: Sequence[tuple[int, Graded]]) -> Iterator[Markup]:
    """Links to the files that need a look first: those that could not be graded, and those that changed the grader."""
    yield from _named([pair for pair in numbered if pair[1].failed], "could not be graded")
    yield from _named([pair for pair in numbered if pair[1].is_touched], "replaced or changed code of the grader")


def _named(some: Sequence[tuple[int, Graded]], what: str) -> Iterator[Markup]:
    if some:
        links = join((_link(number, one) for number, one in some[:_NAMED]), ", ")
        more = f" and {len(some) - _NAMED} more" if len(some) > _NAMED else ""
        yield tag("p", f"{plural(len(some), 'file')} {what}: ", links, f"{more}.", class_="failed")


def _link(number: int, one: Graded) -> Markup:
    return tag("a", _name(one.submission.student), href=f"#file-{number}")


def _name(text: str) -> Markup:
    """A name that keeps the direction of its script to itself."""
    return tag("bdi", text)


# -- the class -----------------------------------------------------------------------------------------------


def _class(one: Class, number: int, numbered: Sequence[tuple[int, Graded]]) -> Iterator[Markup]:
    yield tag("h2", "The class: ", _name(one.assignment), id=f"class-{number}")
    yield tag("p", _summary(one))
    yield _histogram(one)
    if one.judged:
        yield tag("h3", "Points lost, by check")
        yield tag("p", "Counted of the answers that the check judged. “Not judged”: they hang, exit, or are missing.")
        yield _lost(one)
    if made := one.made():
        yield tag("h3", "The commonest mistakes")
        yield tag("p", "Counted of all answers to the question, also of those that no check judged.")
        places = {id(file): number for number, file in numbered}
        yield from (_mistake(each, places[id(each.example.file)]) for each in made)


def _summary(one: Class) -> str:
    judged = one.judged
    text = f"{plural(len(one.files), 'student')}, {len(judged)} with an answer that could be judged"
    if judged:
        text += f": {one.mean:.1f} of {one.most} points on average, median {one.median:g}"
    reasons = Counter(_reason(file) for file in one.files if file not in judged)
    others = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
    return f"{text}. The others: {others}." if others else f"{text}."


def _reason(one: Graded) -> str:
    if one.failed:
        return "could not be graded"
    if SHIPPED in one.notes or not one.handed_in:
        return "as shipped" if one.handed_in else "handed in nothing"
    how = next(filter(None, map(no_end, one.reports)), ABSENT)
    return "without an answer" if how == ABSENT else f"with an answer that {how}"


def _histogram(one: Class) -> Markup:
    bars = list(one.bars())
    highest = max(bar.judged + bar.others for bar in bars)
    said = "; ".join(f"{_range(bar)} points: {bar.judged + bar.others}" for bar in bars)
    drawn = tag("div", *(_bar(bar, _HIGH / highest) for bar in bars), class_="bars", role="img", aria_label=said)
    others = " Outlined: no answer that could be judged." if any(bar.others for bar in bars) else ""
    return tag("figure", drawn, tag("figcaption", f"Students by points.{others}"))


def _bar(bar: Bar, scale: float) -> Markup:
    parts = [("others", bar.others), ("judged", bar.judged)]
    drawn = (tag("i", _NOTHING, class_=name, style=f"height:{count * scale:.1f}px") for name, count in parts if count)
    return tag("div", tag("b", bar.judged + bar.others or _NOTHING), *drawn, tag("span", _range(bar)))


def _range(bar: Bar) -> str:
    return f"{bar.least}" if bar.least == bar.most else f"{bar.least}–{bar.most}"


def _lost(one: Class) -> Markup:
    """A row for each check, under its question."""
    heads = [("check", ""), ("points", "number"), ("lost by", "number"), ("share", "shares"), ("not judged", "number")]
    rows = []
    for question, checks in grouped((lost.question, lost) for lost in one.lost()).items():
        title = f"{question.id} · {question.title}"
        rows.append(tag("tr", tag("th", title, class_="group", scope="rowgroup", colspan=len(heads))))
        rows += map(_check, checks)
    return _table("Points lost, by check", heads, rows)


def _check(lost: Lost) -> Markup:
    return tag(
        "tr",
        tag("td", lost.check.title, class_="check"),
        tag("td", lost.check.points, class_="number"),
        tag("td", f"{lost.students} of {lost.of}", class_="number"),
        tag("td", _share(lost) if lost.students else _NOTHING, class_="shares"),
        tag("td", lost.unjudged or _NOTHING, class_="number"),
    )


def _share(lost: Lost) -> Markup:
    return tag("span", _NOTHING, class_="share", style=f"width:{100 * lost.students / lost.of:.0f}%")


def _table(title: str, heads: Sequence[tuple[str, str]], rows: Sequence[Markup]) -> Markup:
    head = tag("tr", *(tag("th", name, scope="col", class_=kind or None) for name, kind in heads))
    return _scrolled(title, tag("table", tag("thead", head), tag("tbody", *rows), class_="wide"))


def _scrolled(title: str, content: Markup) -> Markup:
    """Content that scrolls in a narrow window, with the keyboard too."""
    return tag("div", content, class_="scroll", role="region", aria_label=title, tabindex="0")


def _mistake(made: Made, number: int) -> Markup:
    """A mistake, its text, and one example: the message of the check, and the code."""
    count = tag("span", f" · {len(made.shown)} of {made.of} answers · {made.question.id}", class_="soft")
    title = tag("h4", pages.with_code(made.title), count)
    example = made.example
    whose = tag("a", "The whole report", href=f"#file-{number}")
    seen = example.result.message or example.report.next_step or "The check has no message."
    parts = [tag("p", pages.with_code(seen)), *([_code(example.code)] if example.code else []), tag("p", whose)]
    where = f"One example: {made.question.answer} in the check “{example.result.check.title}”"
    shown = tag("details", tag("summary", where), *parts)
    cure = [tag("p", pages.with_code(made.cure))] if made.cure else []
    return tag("div", title, *cure, shown, class_="mistake")


# -- the files -----------------------------------------------------------------------------------------------


def _all(numbered: Sequence[tuple[int, Graded]]) -> Iterator[Markup]:
    yield tag("h2", "All marks")
    heads = [("student", ""), ("assignment", ""), ("points", "number"), ("remarks", "")]
    yield _table("All marks", heads, [_row(number, one) for number, one in numbered])


def _row(number: int, one: Graded) -> Markup:
    note = tag("div", f"Not graded: {one.failed}", class_="failed") if one.failed else _first(one)
    return tag(
        "tr",
        tag("td", _link(number, one), class_="name"),
        tag("td", _name(one.submission.assignment), class_="where"),
        tag("td", points_of(one), class_="number"),
        tag("td", note, class_="remark"),
    )


def _first(one: Graded) -> str:
    """The first remark, and the number of the others."""
    first, *others = remarks(one) or [""]
    return f"{first} (and {plural(len(others), 'more note')})" if others else first


def _reports(numbered: Sequence[tuple[int, Graded]]) -> Iterator[Markup]:
    yield tag("h2", "Reports")
    yield tag("p", _COUNTED, class_="soft")
    common = _common([one for _, one in numbered])
    yield from (_article(number, one, common) for number, one in numbered)


def _common(all_graded: Sequence[Graded]) -> set[tuple[str, str]]:
    """The cells that most files of an assignment have, with its name: those of the exercise, which a teacher knows."""
    files = Counter(one.submission.assignment for one in all_graded if one.others)
    cells = Counter((one.submission.assignment, cell) for one in all_graded for cell in {*one.others.values()})
    return {cell for cell, count in cells.items() if files[cell[0]] < 2 * count > 2}


def _article(number: int, one: Graded, common: Container[tuple[str, str]]) -> Markup:
    title = tag("h3", _name(one.submission.student), f" · {points_of(one)}")
    where = tag("span", _name(one.submission.assignment), class_="soft")
    notes = [tag("p", note, class_="failed" if one.failed else None) for note in notes_on(one)]
    reports = [] if NOTHING in one.notes else [_beside(report, one) for report in one.reports]
    head = tag("header", title, where, _TOP)
    parts = *notes, *reports, *_own(one, common), *_printed(one.output.strip())
    return tag("article", head, *parts, id=f"file-{number}")


def _beside(report: Report, one: Graded) -> Markup:
    """A report with the picture and the code next to it."""
    table = tag("div", pages.table(report), style=pages.ROOT)
    code = _answer(report.question.answer, one.answers.get(report.question.id, ""))
    picture = [_scrolled(f"Picture of {report.question.id}", drawn)] if (drawn := pages.drawn(report)) else []
    return tag("div", table, *([tag("div", *shown)] if (shown := [*picture, *code]) else []), class_="beside")


def _answer(name: str, code: str) -> Iterator[Markup]:
    if code:
        lines = len(code.splitlines())
        words = tag("summary", f"The cell of {name}: {plural(lines, 'line')}")
        is_open = "open" if lines <= _FOLDED else None
        yield tag("details", words, _code(code), class_="code", open=is_open)


def _code(text: str) -> Markup:
    """Code in which a line that is too long goes on below itself, further in."""
    lines = text.splitlines(keepends=True)
    return tag("pre", *(tag("span", line, style=f"--in:{len(line) - len(line.lstrip()) + 4}ch") for line in lines))


def _own(one: Graded, common: Container[tuple[str, str]]) -> Iterator[Markup]:
    """The file's other code, folded: what kills a grader or spies stands there."""
    cells = [(n, cell) for n, cell in one.others.items() if (one.submission.assignment, cell) not in common]
    if cells:
        shown = (part for number, cell in cells for part in (tag("div", f"cell {number}"), _code(cell)))
        words = f"{plural(len(cells), 'cell')} that few files have"
        yield tag("details", tag("summary", words), *shown, class_="printed")


def _printed(output: str) -> Iterator[Markup]:
    """The cells' printed output, folded: the exercise's own cells print the same for each student."""
    if output:
        words = tag("summary", f"Printed: {plural(len(output.splitlines()), 'line')}")
        yield tag("details", words, tag("pre", output), class_="printed")
