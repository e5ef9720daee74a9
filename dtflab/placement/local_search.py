"""Local search: improve a placement by moving one group, or two, to another device, as long as that helps.

Stands for nothing in TensorFlow. Rules: the judge is the simulated schedule. The groups that take most of the critical
path are moved first. The budget is a number of simulated events, not a time, so a placement is the same on any machine;
new starting points are drawn from a seed.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from dtflab.hardware.schedule import Schedule, Span
from dtflab.placement.problem import Problem, Verdict

PATIENCE = 12  # perturbed copies in a row without an improvement

Groups = Sequence[Sequence[int]]  # units that move together


class Search:
    """The best placement of a problem so far. `groups` are units that move together, with their candidates."""

    def __init__(self, problem: Problem, groups: Groups, candidates: Sequence[Sequence[int]], budget: int) -> None:
        self.problem, self.groups, self.candidates = problem, groups, candidates
        self._until = problem.spent + budget
        self._group_of = {unit: g for g, units in enumerate(groups) for unit in units}
        self._seen: set[tuple[int, ...]] = set()

    def spent(self) -> bool:
        """True once the budget is used up."""
        return self.problem.spent >= self._until

    def judge(self, where: Sequence[int]) -> tuple[Verdict, Schedule]:
        """The quality of a placement of the groups."""
        found = [0] * len(self.problem.units)
        for units, device in zip(self.groups, where, strict=True):
            for unit in units:
                found[unit] = device
        return self.problem.judge(found)

    def climb(self, where: Sequence[int]) -> tuple[Verdict, list[int]]:
        """The placement at the end of a sequence of improvements."""
        best = list(where)
        verdict, schedule = self.judge(best)
        moves = self._moves(best, schedule)
        while not self.spent() and (move := next(moves, None)):
            tried = list(best)
            for group, device in move:
                tried[group] = device
            if tuple(tried) not in self._seen:
                found, schedule = self.judge(tried)
                self._seen.add(tuple(tried))
                if found < verdict:
                    best, verdict = tried, found
                    moves = self._moves(best, schedule)
        return verdict, best

    def _moves(self, where: list[int], schedule: Schedule) -> Iterator[list[tuple[int, int]]]:
        """Moves of one group, then exchanges of two and moves of two; those on the critical path first."""
        weight = self._weights(schedule)
        order = sorted(range(len(where)), key=lambda g: (-weight[g], g))
        for g in order:
            yield from ([(g, device)] for device in self.candidates[g] if device != where[g])
        for i, g in enumerate(order):
            for h in order[:i]:
                if where[g] != where[h] and where[h] in self.candidates[g] and where[g] in self.candidates[h]:
                    yield [(g, where[h]), (h, where[g])]
        for i, g in enumerate(order):
            for h in order[:i]:
                both = [d for d in self.candidates[g] if d in self.candidates[h] and d not in (where[g], where[h])]
                yield from ([(g, device), (h, device)] for device in both)

    def _weights(self, schedule: Schedule) -> list[float]:
        """Seconds of the critical path that each group takes, its messages included."""
        found = [0.0] * len(self.groups)
        numbers = self.problem.plan.numbers
        for part in schedule.critical_path:
            name, seconds = (
                (part.name, part.end - part.start)
                if isinstance(part, Span)
                else (part.source, part.arrived - part.sent)
            )
            found[self._group_of[self.problem.unit_of[numbers[name]]]] += seconds
        return found

    def from_anywhere(self, best: tuple[Verdict, list[int]], seed: int = 0) -> tuple[Verdict, list[int]]:
        """Climb from perturbed copies of the best, until the budget is spent or `PATIENCE` of them brought nothing."""
        rng = random.Random(seed)
        free = [g for g, candidates in enumerate(self.candidates) if len(candidates) > 1]
        in_vain = 0
        while free and in_vain < PATIENCE and not self.spent():
            shaken = list(best[1])
            for g in rng.sample(free, min(len(free), 1 + rng.randrange(max(2, len(free) // 3)))):
                shaken[g] = rng.choice(self.candidates[g])
            found = self.climb(shaken)
            in_vain = 0 if found < best else in_vain + 1
            best = min(best, found)
        return best
