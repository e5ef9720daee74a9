"""Clusters: units that are moved together.

Stands for nothing in TensorFlow. Left out: a hierarchy of clusters; one level serves graphs of some thousand nodes.

Rule: the units that exchange most bytes are joined first, as long as a cluster has at most its share of the work. So a
layer becomes one cluster: its weights, the ops at all time steps that read them, and the ops that update them.
"""

from __future__ import annotations

import numpy as np

from dtflab.base.grouping import grouped
from dtflab.placement.problem import Assignment, Problem

TINY = 0.05  # of the limit: a smaller cluster is joined to another one in any case


class Clusters:
    """The units of a problem in clusters."""

    def __init__(self, problem: Problem, parts: float) -> None:
        """Clusters of at most one of `parts` equal parts of the work."""
        self.problem = problem
        self._work = [problem.work(unit) for unit in range(len(problem.units))]
        self._allowed = [frozenset(found) for found in problem.candidates]
        self._parent = list(range(len(problem.units)))
        self._limit = sum(self._work) / parts
        self._between = _bytes_between(problem)
        heaviest_first = sorted(self._between, key=lambda pair: (-self._between[pair], pair))
        for tiny in (0.0, TINY * self._limit):
            for a, b in heaviest_first:
                self._join(a, b, tiny)
        self.members = self._members()
        self.work = [self._work[self._root(units[0])] for units in self.members]
        self.candidates = [self._common(units) for units in self.members]

    def _root(self, unit: int) -> int:
        while self._parent[unit] != unit:
            self._parent[unit] = unit = self._parent[self._parent[unit]]
        return unit

    def _join(self, a: int, b: int, tiny: float) -> None:
        """Join two clusters if they have a common candidate and are small enough together, or one of them is tiny."""
        a, b = self._root(a), self._root(b)
        work, allowed = self._work[a] + self._work[b], self._allowed[a] & self._allowed[b]
        if a != b and allowed and (work <= self._limit or min(self._work[a], self._work[b]) <= tiny):
            self._parent[b], self._work[a], self._allowed[a] = a, work, allowed

    def _members(self) -> list[list[int]]:
        """The units of each cluster."""
        return list(grouped((self._root(unit), unit) for unit in range(len(self._parent))).values())

    def _common(self, units: list[int]) -> list[int]:
        return [device for device in self.problem.candidates[units[0]] if device in self._allowed[self._root(units[0])]]

    def assignment(self, devices: list[int]) -> Assignment:
        """The device of each unit, from those of the clusters."""
        found = [0] * len(self.problem.units)
        for units, device in zip(self.members, devices, strict=True):
            for unit in units:
                found[unit] = device
        return found

    def bytes_between(self) -> np.ndarray:
        """Bytes that each cluster exchanges with each other one, in both directions."""
        found = np.zeros((len(self.members), len(self.members)))
        cluster = self.assignment(list(range(len(self.members))))
        for (a, b), nbytes in self._between.items():
            found[cluster[a], cluster[b]] += nbytes
        np.fill_diagonal(found, 0.0)
        return found + found.T


def _bytes_between(problem: Problem) -> dict[tuple[int, int], int]:
    """For pairs of units: the bytes of all tensors that the first hands to the second."""
    plan, unit_of = problem.plan, problem.unit_of
    between: dict[tuple[int, int], int] = {}
    for task, consumers in enumerate(plan.consumers):
        seen = set()
        for consumer, output in consumers:
            pair = unit_of[task], unit_of[consumer]
            if pair[0] != pair[1] and (output, pair[1]) not in seen:
                seen.add((output, pair[1]))
                between[pair] = between.get(pair, 0) + plan.bytes_of(task, output)
    return between
