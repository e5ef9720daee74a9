"""Figures of a class: the distribution of points, the checks that were lost, the mistakes behind that. Pure functions.

Rules: each student counts once, by the file that counts. Averages, lost checks and mistakes are those of answers that
could be judged: a file that was not handed in says nothing about a check. A failure without a known mistake counts only
if the answer shows no known mistake in another check, because it may be a consequence of that one.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dtflab.base.grouping import grouped
from dtflab.grading.batch import SHIPPED, Graded
from dtflab.grading.judge import NOT_TRIED, Report, Result
from dtflab.grading.questions import Check, Mistake, Question

ABSENT, ENDLESS, CRASHED, UNKNOWN = "no answer to judge", "does not end in time", "ends its process", "no known mistake"
_TEXTS = {
    ABSENT: "The cell of the answer failed, or is empty, or gives it another name.",
    ENDLESS: "The answer was stopped after the time that it has.",
    CRASHED: "The process in which the answer ran has ended: it called exit, ran out of memory, or crashed.",
    UNKNOWN: "The answer is wrong in a way that the catalogue of mistakes does not have.",
}
_LAST = {ENDLESS: 1, CRASHED: 1, UNKNOWN: 2, ABSENT: 3}  # of the mistakes: they explain little, or nothing
_BARS = 21  # at most, in a histogram


class Bar(NamedTuple):
    """The number of students with `least` to `most` points: those with a judged answer, and the others."""

    least: int
    most: int
    judged: int
    others: int


class Lost(NamedTuple):
    """A check, and the number of students who lost it, `of` those whose answer it judged; `unjudged` are the others.

    Of an answer that never ends, or ends its process, nothing is known about the check in which it does, nor about the
    later ones.
    """

    question: Question
    check: Check
    students: int
    of: int
    unjudged: int


class Shown(NamedTuple):
    """A file with a mistake, and the first check that shows it."""

    file: Graded
    report: Report
    result: Result

    @property
    def code(self) -> str:
        return self.file.answers.get(self.report.question.id, "")


class Made(NamedTuple):
    """A mistake, by its name in the question, and the files with it, of so many that ask the question."""

    question: Question
    name: str
    shown: Sequence[Shown]
    of: int

    @property
    def title(self) -> str:
        """A sentence: what was done."""
        return self._mistake.diagnosis if self._mistake else _TEXTS[self.name]

    @property
    def cure(self) -> str:
        """The sentences on how to fix it; empty where the question has no mistake of this name."""
        return self._mistake.cure if self._mistake else ""

    @property
    def _mistake(self) -> Mistake | None:
        return next((mistake for mistake in self.question.mistakes if mistake.name == self.name), None)

    @property
    def example(self) -> Shown:
        """The clearest case: one with code and few failures, and short."""

        def rank(one: Shown) -> tuple[bool, int, int]:
            return not one.code, sum(not result.passed for result in one.report.results), len(one.code)

        return min(self.shown, key=rank)


class Class(NamedTuple):
    """The files of an assignment that count."""

    assignment: str
    files: Sequence[Graded]

    @property
    def judged(self) -> list[Graded]:
        """The files with an answer that could be judged."""
        return [
            one for one in self._answered if any(not _is_unjudged(r) for report in one.reports for r in report.results)
        ]

    @property
    def _answered(self) -> list[Graded]:
        """The files with an answer, also one that never ends."""
        return [one for one in self.files if one.handed_in and not one.failed and SHIPPED not in one.notes]

    @property
    def most(self) -> int:
        """The points to be had."""
        return int(max(one.score.max for one in self.files))

    @property
    def mean(self) -> float:
        return statistics.fmean(map(float, (one.score for one in self.judged)))

    @property
    def median(self) -> float:
        return statistics.median(map(float, (one.score for one in self.judged)))

    def bars(self) -> Iterator[Bar]:
        """The distribution of points; above 20 points a bar covers several."""
        width = self.most // _BARS + 1
        judged, files = (Counter(int(one.score) // width for one in some) for some in (self.judged, self.files))
        for number in range(self.most // width + 1):
            least = number * width
            yield Bar(least, min(least + width - 1, self.most), judged[number], files[number] - judged[number])

    def lost(self) -> list[Lost]:
        """Every check, in the order of the questions, with the number of answers that lost it."""
        reports = [report for one in self._answered for report in one.reports]
        results = grouped(((r.question.id, result.check.name), result) for r in reports for result in r.results)
        questions = {report.question.id: report.question for report in reports}
        return [_lost(q, c, results[q.id, c.name]) for q in questions.values() for c in q.checks]

    def made(self) -> list[Made]:
        """The catalogue's mistakes, the commonest first; then answers without an end, unknown ones, and none at all."""
        reports = [(one, report) for one in self._answered for report in one.reports]
        questions = {report.question.id: report.question for _, report in reports}
        shown = grouped(
            ((report.question.id, name), Shown(one, report, result))
            for one, report in reports
            for name, result in _mistakes(report).items()
        )
        asked = Counter(report.question.id for _, report in reports)  # students
        found = [Made(questions[id], name, where, asked[id]) for (id, name), where in shown.items()]
        return sorted(found, key=lambda made: (_LAST.get(made.name, 0), -len(made.shown)))


def classes(all_graded: Sequence[Graded]) -> list[Class]:
    """The class of each assignment that two or more students handed in."""
    files = grouped((one.submission.assignment, one) for one in all_graded if one.counts and one.reports)
    return [Class(assignment, some) for assignment, some in files.items() if len(some) > 1]


def _lost(question: Question, check: Check, results: Sequence[Result]) -> Lost:
    known = [result for result in results if not _is_unjudged(result)]
    return Lost(question, check, sum(not one.passed for one in known), len(known), len(results) - len(known))


def _is_unjudged(result: Result) -> bool:
    return result.stopped or result.crashed or result.unwritten or result.message in NOT_TRIED


def no_end(report: Report) -> str:
    """How an answer kept its checks from judging it: `ABSENT`, `ENDLESS` or `CRASHED`; empty if it did not."""
    if report.as_shipped:
        return ABSENT
    ended = next((result for result in report.results if result.stopped or result.crashed), None)
    return "" if ended is None else ENDLESS if ended.stopped else CRASHED


def remarks(one: Graded) -> list[str]:
    """The notes on a file; and of each answer that was not judged to the end, why, if no note can have said it."""
    ends = [(report.question.answer, no_end(report)) for report in one.reports if one.handed_in and not one.failed]
    said = {"", ABSENT} if one.notes else {""}
    return [*one.notes, *(f"{answer}: {how}." for answer, how in ends if how not in said)]


def _mistakes(report: Report) -> dict[str, Result]:
    """The mistakes of an answer, by name, each with the first check that shows it."""
    if report.as_shipped:  # in a file that is not: its cell failed, or another question is answered
        return {ABSENT: report.results[0]}
    known = {mistake.name for mistake in report.question.mistakes}
    failed = [result for result in report.results if not result.passed]
    found = {result.mistake: result for result in reversed(failed) if result.mistake in known}
    if found or not failed:
        return found
    ended = next((result for result in failed if result.stopped or result.crashed), failed[0])
    return {no_end(report) or UNKNOWN: ended}
