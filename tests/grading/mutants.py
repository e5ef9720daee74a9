"""Mutants of a solution: one operator, constant, comparison changed or one line dropped, and whether the checks notice.

A mutant that gets full marks has escaped, unless it is equivalent, another right answer: not the checks say so, but an
oracle that is written apart from them (`oracles.py`). Where a question has none, it has escaped. All checks of a
question judge. Left out of the score, and named, is only what never ends (`SPINS`).

    python -m tests.grading.mutants [ID …]     all mutants, as a table; status 1 below 95%
"""

from __future__ import annotations

import ast
import contextlib
import copy
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from dtflab.grading.catalogue import all_questions, find
from dtflab.grading.judge import judge
from dtflab.grading.questions import Check, Question
from dtflab.grading.sources import BEGIN, END
from tests.grading.answers import answer, answer_cell
from tests.grading.oracles import ORACLES

SEED = "0"  # each mutant that loses marks loses them with any seed, or checks draw badly
SAMPLE = 24  # in CI
PATIENCE = 0.5  # of a check's seconds; right answers need less than a tenth of them
# Left out, by the text of the change: a client's loop that does nothing forever, so that no thread of ours can end it.
SPINS = {"data/q1": "'sess.run(step)' dropped"}
_SWAPS: dict[type[ast.AST], tuple[type[Any], ...]] = {
    ast.Add: (ast.Sub, ast.Mult),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Add, ast.FloorDiv),
    ast.FloorDiv: (ast.Mult,),
    ast.Div: (ast.Mult,),
    ast.Mod: (ast.Mult,),
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt,),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt,),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
    ast.Not: (ast.UAdd,),
}
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "sum": "len"}


class Mutant(NamedTuple):
    """A cell in which one thing is changed, and what that is."""

    change: str
    cell: str


def mutants(question: Question) -> list[Mutant]:
    """All mutants of the part of the solution that students write, but that of `SPINS`; LookupError if none is."""
    every = list(_every(question))
    kept = [one for one in every if one.change.partition(": ")[2] != SPINS.get(question.id)]
    if len(every) - len(kept) != (question.id in SPINS):
        count = len(every) - len(kept)
        raise LookupError(f"SPINS names {SPINS[question.id]!r} of {question.id}, and {count} mutants are that, not one")
    return kept


def _every(question: Question) -> Iterator[Mutant]:
    cell = answer_cell(question)
    lines = cell.split("\n")
    first, last = (next(i for i, line in enumerate(lines, 1) if mark in line) for mark in (BEGIN, END))
    tree = ast.parse(cell)
    for number, node in enumerate(ast.walk(tree)):
        for change, place, edit in _edits(node):
            if _inside(place, first, last):
                mutant = copy.deepcopy(tree)
                edit(list(ast.walk(mutant))[number])
                yield Mutant(change, ast.unparse(ast.fix_missing_locations(mutant)))


def _inside(node: ast.AST, first: int, last: int) -> bool:
    return all(first < child.lineno < last for child in ast.walk(node) if hasattr(child, "lineno"))


def _edits(node: ast.AST) -> Iterator[tuple[str, ast.AST, Any]]:
    """The changes that a node allows: a text, the part of it that changes, and a function that changes its copy."""
    for change, edit in _other_values(node):
        yield change, node, edit
    for i, one in enumerate(node.keywords if isinstance(node, ast.Call) else ()):
        yield f"line {one.lineno}: {one.arg}= dropped", one, lambda n, i=i: n.keywords.pop(i)
    for field in ("body", "orelse"):
        for i, one in enumerate(getattr(node, field, ()) if isinstance(node, ast.stmt) else ()):
            text = ast.unparse(one).partition("\n")[0]
            yield (
                f"line {one.lineno}: {text!r} dropped",
                one,
                lambda n, f=field, i=i: getattr(n, f).__setitem__(i, ast.Pass()),
            )


def _other_values(node: ast.AST) -> Iterator[tuple[str, Any]]:
    """Other operators, constants and functions in the place of a node's own."""
    match node:
        case ast.BinOp() | ast.AugAssign() | ast.BoolOp() | ast.UnaryOp():
            for other in _SWAPS.get(type(node.op), ()):
                yield _described(node, other), lambda n, other=other: setattr(n, "op", other())
        case ast.Compare():
            for other in _SWAPS.get(type(node.ops[0]), ()):
                yield _described(node, other), lambda n, other=other: n.ops.__setitem__(0, other())
        case ast.Constant(value=int() | float() as value):
            yield f"line {node.lineno}: {value} → {value + 1}", lambda n: setattr(n, "value", n.value + 1)
        case ast.Constant(value=str() as value) if value:
            yield f"line {node.lineno}: {value!r} → ''", lambda n: setattr(n, "value", "")
        case ast.Name(id=name) if name in _NAMES:
            yield f"line {node.lineno}: {name} → {_NAMES[name]}", lambda n: setattr(n, "id", _NAMES[n.id])


def _described(node: Any, other: type) -> str:
    return f"line {node.lineno}: {ast.unparse(node)!r} with {other.__name__}"


def sample(question: Question) -> list[Mutant]:
    """As many of them as CI has time for, always the same ones."""
    found = mutants(question)
    return Random(question.id).sample(found, min(len(found), SAMPLE))


class Tally:
    """How many mutants lost marks, which escaped, which are right by an oracle, and which never end."""

    def __init__(self, question: Question, folder: Path) -> None:
        self.question, self.folder = question, folder
        self.caught = 0
        self.escaped: list[str] = []
        self.equal: list[str] = []
        self.endless = [SPINS[question.id]] if question.id in SPINS else []

    @property
    def judged(self) -> int:
        return self.caught + len(self.escaped)

    @property
    def share(self) -> float:
        return self.caught / self.judged

    def judge(self, mutant: Mutant) -> None:
        if self._loses(mutant):
            self.caught += 1
        elif self._is_right(mutant):
            self.equal.append(mutant.change)
        else:
            self.escaped.append(mutant.change)

    def _is_right(self, mutant: Mutant) -> bool:
        """Whether there is an oracle that says so. A right answer raises nothing."""
        try:
            return ORACLES[self.question.id](answer(self.question, mutant.cell, self.folder))
        except Exception:
            return False

    def _loses(self, mutant: Mutant) -> bool:
        """Whether a check fails. Those after it are not tried, as a mutant that never ends takes all of its time."""
        try:
            work = answer(self.question, mutant.cell, self.folder)
        except Exception:
            return True  # the cell itself fails
        return any(not self._passes(check, work) for check in self.question.checks)

    def _passes(self, check: Check, work: Any) -> bool:
        part = self.question.only(check.name)
        part.checks = [check._replace(seconds=check.seconds * PATIENCE)]
        (result,) = judge(part, {part.answer: work}, SEED).results
        return result.passed

    def __str__(self) -> str:
        return (
            f"{self.question.id}: {self.caught} of {self.judged} mutants that behave differently lose marks "
            f"({self.share:.0%}); escaped {self.escaped}; right by an oracle {self.equal}; never end {self.endless}"
        )


ENOUGH = 0.95  # the share of mutants that must lose marks


def total(tallies: Sequence[Tally]) -> str:
    """The mutation score of all questions together, and what it leaves out."""
    caught, judged = sum(t.caught for t in tallies), sum(t.judged for t in tallies)
    equal, endless = sum(len(t.equal) for t in tallies), sum(len(t.endless) for t in tallies)
    score = f"{caught} of {judged} mutants of {len(tallies)} solutions lose marks ({caught / judged:.1%})"
    return f"{score}; left out: {equal} that are right by an oracle, {endless} that never ends"


def main(ids: Sequence[str]) -> int:
    """Judge every mutant, and print a line per question; the exit status."""
    tallies = []
    print(f"{'question':16} {'mutants':>8} {'equal':>6} {'endless':>7} {'caught':>7} {'score':>7} {'CPU':>7}")
    for question in [find(id) for id in ids] or all_questions():
        began = time.process_time()
        with tempfile.TemporaryDirectory() as folder:
            tally = Tally(question, Path(folder))
            for mutant in mutants(question):
                with contextlib.redirect_stdout(None):  # reports
                    tally.judge(mutant)
        tallies.append(tally)
        equal, endless, seconds = len(tally.equal), len(tally.endless), time.process_time() - began
        line = f"{tally.judged + equal + endless:8} {equal:6} {endless:7} {tally.caught:7} {tally.share:7.0%}"
        print(f"{question.id:16} {line} {seconds:5.1f} s  {', '.join(tally.escaped)}", flush=True)
    print(total(tallies))
    return int(any(tally.share < ENOUGH for tally in tallies))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
