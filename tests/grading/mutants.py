"""Mutants of a solution: one operator, constant, comparison changed or one line dropped, and whether the checks notice.

A mutant that gets full marks has escaped, unless it is equivalent, another right answer: not the checks say so, but an
oracle that is written apart from them (`oracles.py`). Where a question has none, a mutant that other seeds catch has
escaped, and one that none catches is left out of the score and counted. All checks of a question judge.

    python -m tests.grading.mutants [ID …]     all mutants and seeds, as a table; status 1 below 95%
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

OTHER_SEEDS = 20
SAMPLE, SAMPLE_SEEDS = 24, 6  # in CI
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
    """How many mutants lost marks, escaped, are right by an oracle, or are left out as there is no oracle."""

    def __init__(self, question: Question, folder: Path, seeds: int = OTHER_SEEDS) -> None:
        self.question, self.folder, self.seeds = question, folder, seeds
        self.caught = 0
        self.escaped: list[str] = []
        self.equal: list[str] = []
        self.left_out = [f"{SPINS[question.id]} spins"] if question.id in SPINS else []

    @property
    def share(self) -> float:
        return self.caught / (self.caught + len(self.escaped))

    def judge(self, mutant: Mutant) -> None:
        if self._loses(mutant, "0"):
            self.caught += 1
        elif agrees := ORACLES.get(self.question.id):
            right = agrees(answer(self.question, mutant.cell, self.folder))
            (self.equal if right else self.escaped).append(mutant.change)
        elif any(self._loses(mutant, str(seed)) for seed in range(1, 1 + self.seeds)):
            self.escaped.append(mutant.change)
        else:
            self.left_out.append(mutant.change)

    def _loses(self, mutant: Mutant, seed: str) -> bool:
        """Whether a check fails. Those after it are not tried, as a mutant that never ends takes all of its time."""
        try:
            work = answer(self.question, mutant.cell, self.folder)
        except Exception:
            return True  # the cell itself fails
        return any(not self._passes(check, work, seed) for check in self.question.checks)

    def _passes(self, check: Check, work: Any, seed: str) -> bool:
        part = self.question.only(check.name)
        part.checks = [check._replace(seconds=check.seconds * PATIENCE)]
        (result,) = judge(part, {part.answer: work}, seed).results
        return result.passed

    def __str__(self) -> str:
        judged = self.caught + len(self.escaped)
        return (
            f"{self.question.id}: {self.caught} of {judged} mutants that behave differently lose marks "
            f"({self.share:.0%}); escaped {self.escaped}; right by an oracle {self.equal}; "
            f"left out, without one {self.left_out}"
        )


ENOUGH = 0.95  # the share of mutants that must lose marks


def total(tallies: Sequence[Tally]) -> str:
    """The mutation score of all questions together."""
    caught, judged = sum(t.caught for t in tallies), sum(t.caught + len(t.escaped) for t in tallies)
    equal, left_out = sum(len(t.equal) for t in tallies), sum(len(t.left_out) for t in tallies)
    score = f"{caught} of {judged} mutants of {len(tallies)} solutions lose marks ({caught / judged:.1%})"
    return f"{score}; {equal} are right by an oracle; {left_out} are left out, as there is no oracle or they never end"


def main(ids: Sequence[str]) -> int:
    """Judge every mutant, and print a line per question; the exit status."""
    tallies = []
    print(f"{'question':16} {'mutants':>8} {'equal':>6} {'out':>4} {'caught':>7} {'score':>7} {'CPU':>7}")
    for question in [find(id) for id in ids] or all_questions():
        began = time.process_time()
        with tempfile.TemporaryDirectory() as folder:
            tally = Tally(question, Path(folder))
            for mutant in mutants(question):
                with contextlib.redirect_stdout(None):  # reports
                    tally.judge(mutant)
        tallies.append(tally)
        judged, seconds = tally.caught + len(tally.escaped), time.process_time() - began
        equal, out = len(tally.equal), len(tally.left_out)
        line = f"{judged + equal + out:8} {equal:6} {out:4} {tally.caught:7} {tally.share:7.0%} {seconds:5.1f} s"
        print(f"{question.id:16} {line}  {', '.join(tally.escaped)}", flush=True)
    print(total(tallies))
    return int(any(tally.share < ENOUGH for tally in tallies))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
