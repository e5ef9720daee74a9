"""How good the checks are on answers by authors that have seen only the exercise: what is refused, and with which hint.

    python -m tests.grading.figures [ID …] [--folder DIR]     a table, and the bars; status 1 if one is missed
    python -m tests.grading.figures [ID …] --students 5       the answers with other marks or hints for some of them

An answer's hint fits if it is the mistake that its file names. Where the file has "", no mistake is catalogued that
explains the answer, and nothing fits. In a new batch, kept in a folder of its own, the file may say in a sentence what
is wrong instead: then the answer, that sentence and the hint are printed, and a person counts those that fit.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dtflab.grading.catalogue import find
from dtflab.grading.judge import Report, judge
from dtflab.grading.questions import Question
from tests.grading.answers import OTHERS, answers_of_others, hints_of, ids_of_others, wrong_answers

MOST_ACCEPTED, FEWEST_THAT_FIT = 0.02, 0.8  # of the wrong answers


class Judged(NamedTuple):
    """A wrong answer: what its file says of it, whether it has full marks, and its hints."""

    name: str
    said: str
    accepted: bool
    hints: set[str]
    texts: list[str]

    @property
    def named(self) -> set[str]:
        return set(self.said.split())


class Figures:
    """The figures of one question."""

    def __init__(self, question: Question, right: Sequence[Callable[..., Any]], wrong: dict[Any, str]) -> None:
        self.question = question
        self.lose = [one.__name__ for one in right if self._judge(one).points < question.points]
        self.right = len(right)
        self.wrong = [self._judged(one, said) for one, said in wrong.items()]
        names = {mistake.name for mistake in question.mistakes}
        self.to_read = [one for one in self.wrong if one.said and not one.named <= names]
        named = [one for one in self.wrong if one not in self.to_read and not one.accepted]
        self.accepted = [one for one in self.wrong if one.accepted]
        self.fit = [one for one in named if one.said and one.hints == one.named]
        self.other = [one for one in named if one.hints - one.named]

    def _judge(self, answer: Callable[..., Any]) -> Report:
        with contextlib.redirect_stdout(None):
            return judge(self.question, {self.question.answer: answer}, "0", "", wall=math.inf)

    def _judged(self, answer: Callable[..., Any], said: str) -> Judged:
        report = self._judge(answer)
        failed = [result for result in report.results if not result.passed]
        texts = [result.hint or f"(no hint) {result.message}" for result in failed]
        return Judged(answer.__name__, said, not failed, hints_of(report), list(dict.fromkeys(texts)))

    def __str__(self) -> str:
        return _line(self.question.id, [self])


def _line(name: str, some: Sequence[Figures]) -> str:
    columns = [sum(map(len, (getattr(one, what) for one in some))) for what in ("wrong", "accepted", "fit", "other")]
    columns += [sum(len(one.to_read) for one in some), sum(one.right for one in some), sum(len(f.lose) for f in some)]
    return f"{name:14}" + "".join(f"{column:>12}" for column in columns)


HEAD = f"{'question':14}" + "".join(
    f"{head:>12}" for head in ("wrong", "full marks", "hint fits", "other hint", "to read", "right", "right loses")
)


def details(figures: Figures) -> list[str]:
    """The answers that keep a question from its bars, and those that a person has to read."""
    lines = [f"    {one} is right and loses marks" for one in figures.lose]
    lines += [f"    {one.name} is wrong and has full marks: {one.said}" for one in figures.accepted]
    for one in figures.wrong:
        if one in figures.to_read:
            lines += [f"    {one.name}: {one.said}", *(f"        shown: {text}" for text in one.texts)]
        elif one in figures.other:
            lines.append(f"    {one.name} is {one.said or 'none of the catalogue'}, hint: {', '.join(one.hints)}")
        elif one not in figures.fit and not one.accepted:
            lines.append(f"    {one.name} gets no hint")
    return lines


def for_each_student(question: Question, answer: Callable[..., Any], students: int) -> Counter[tuple[float, str]]:
    """How many students get which points and hints for the answer: all get the same, or the checks draw badly."""
    found = Counter[tuple[float, str]]()
    for number in range(students):
        with contextlib.redirect_stdout(None):
            report = judge(question, {question.answer: answer}, "0", f"student {number}", wall=math.inf)
        found[report.points, " ".join(sorted(hints_of(report)))] += 1
    return found


def _varying(id: str, folder: Path, students: int) -> bool:
    """Print the answers to a question that are not the same for all students; True if there are any."""
    question, (right, wrong) = find(id), answers_of_others(id, folder)
    catalogued = wrong_answers(question).values()
    some = {one.__name__: for_each_student(question, one, students) for one in (*right, *wrong, *catalogued)}
    varying = {name: found for name, found in some.items() if len(found) > 1}
    print(f"{id:14}{len(varying)} of {len(some)} answers differ from student to student", flush=True)
    for name, found in varying.items():
        print(f"    {name}: {'; '.join(f'{n} × {points:g} {hints}' for (points, hints), n in found.items())}")
    return bool(varying)


def bars(some: Sequence[Figures]) -> dict[str, bool]:
    """Each bar, and whether the checks reach it. A hint that a person has to read does not fit yet."""
    wrong, right = sum(len(one.wrong) for one in some), sum(one.right for one in some)
    accepted, fit, lose = (sum(len(getattr(one, what)) for one in some) for what in ("accepted", "fit", "lose"))
    return {
        f"wrong answers with full marks: {accepted} of {wrong}, at most {MOST_ACCEPTED:.0%}": accepted
        <= MOST_ACCEPTED * wrong,
        f"right answers that lose marks: {lose} of {right}, at most none": not lose,
        f"wrong answers with a hint that fits: {fit} of {wrong} ({fit / max(wrong, 1):.0%}), "
        f"at least {FEWEST_THAT_FIT:.0%}": fit >= FEWEST_THAT_FIT * wrong,
    }


def main(arguments: Sequence[str]) -> int:
    """Print the figures; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.grading.figures", description=__doc__.partition("\n")[0])
    parser.add_argument("ids", nargs="*", metavar="ID", help="questions, by default all that the folder has")
    parser.add_argument("--folder", type=Path, default=OTHERS, help="where the answers are, as TOPIC/qN.py")
    parser.add_argument("--students", type=int, default=0, metavar="N", help="compare the marks of that many")
    options = parser.parse_args(arguments)
    ids, found = options.ids or ids_of_others(options.folder), []
    if options.students:
        varying = [id for id in ids if _varying(id, options.folder, options.students)]
        return int(bool(varying))
    print(HEAD)
    for id in ids:
        found.append(Figures(find(id), *answers_of_others(id, options.folder)))
        print("\n".join([str(found[-1]), *details(found[-1])]), flush=True)
    print(_line("total", found))
    for text, reached in bars(found).items():
        print(f"{'yes' if reached else 'no':4}{text}")
    return int(not all(bars(found).values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
