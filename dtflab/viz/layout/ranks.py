"""The order of things in a layered drawing: which row each item stands in, and its place within the row.

The two combinatorial halves of Sugiyama's method: rows by longest path with a limit on their width, then
barycentre sweeps that keep the order with the fewest crossings. Pure functions of small dicts, deterministic:
ties go to the order in which items were given.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
Edges = Mapping[K, Sequence[K]]


def back_edges(keys: Sequence[K], after: Edges[K]) -> set[tuple[K, K]]:
    """Edges that close a cycle, such as a loop's NextIteration; without them the graph is acyclic."""
    state: dict[K, int] = {}  # 1: on the path from the root, 2: done
    found: set[tuple[K, K]] = set()
    for root in keys:
        todo = [(root, iter(after.get(root, ())))] if root not in state else []
        state.setdefault(root, 1)
        while todo:
            key, targets = todo[-1]
            target = next(targets, None)
            if target is None:
                state[key] = 2
                todo.pop()
            elif state.get(target) == 1:
                found.add((key, target))
            elif target not in state:
                state[target] = 1
                todo.append((target, iter(after.get(target, ()))))
    return found


def topological(keys: Sequence[K], after: Edges[K]) -> list[K]:
    """Keys with every edge pointing forward, as near to the given order as that allows."""
    place = {key: i for i, key in enumerate(keys)}
    waits = dict.fromkeys(keys, 0)
    for key in keys:
        for target in after.get(key, ()):
            waits[target] += 1
    ready = [place[key] for key in keys if waits[key] == 0]
    done: list[K] = []
    while ready:
        key = keys[ready.pop(0)]
        done.append(key)
        for target in after.get(key, ()):
            waits[target] -= 1
            if waits[target] == 0:
                bisect.insort(ready, place[target])
    return done


def assign_rows(keys: Sequence[K], after: Edges[K], width_of: Callable[[K], float], limit: float) -> dict[K, int]:
    """A row for every key: below all it depends on, near those that need it, no row wider than `limit`."""
    order = topological(keys, after)
    before: dict[K, list[K]] = {key: [] for key in keys}
    for key in keys:
        for target in after.get(key, ()):
            before[target].append(key)
    used: dict[int, float] = {}
    row: dict[K, int] = {}

    def settle(key: K, choices: Iterable[int]) -> None:
        width = width_of(key)
        row[key] = next(r for r in choices if not used.get(r) or used[r] + width <= limit)
        used[row[key]] = used.get(row[key], 0.0) + width

    for key in order:
        first = max((row[b] + 1 for b in before[key]), default=0)
        settle(key, range(first, len(keys) + first + 1))
    for key in reversed(order):  # sources move down to their users: shorter lines
        if after.get(key) and len(before[key]) < len(after[key]):
            last = min(row[target] for target in after[key]) - 1
            used[row[key]] -= width_of(key)
            settle(key, [*range(last, row[key], -1), row[key], *range(len(keys), 2 * len(keys))])
    numbers = {r: i for i, r in enumerate(sorted(set(row.values())))}
    return {key: numbers[r] for key, r in row.items()}


Links = Sequence[tuple[K, K, float, float]]  # upper slot, lower slot, and where on each the line is, -0.5..0.5


def order_rows(
    rows: list[list[K]],
    links: Sequence[Links[K]],
    fixed: frozenset[K],
    groups: Mapping[K, str] | None = None,
    sweeps: int = 12,
) -> None:
    """Reorder each row in place so that few lines cross; `links[r]` are the lines between rows r and r + 1.

    `fixed` slots stay at the left end of their row. Slots of one of `groups` keep to one side where that costs nothing.
    """
    best, fewest = [list(row) for row in rows], crossings(rows, links)
    for sweep in range(sweeps):
        down = sweep % 2 == 0
        for r in range(1, len(rows)) if down else range(len(rows) - 2, -1, -1):
            _sort_row(rows, r, links[r - 1] if down else links[r], down, fixed)
        count = crossings(rows, links)
        if count < fewest:
            best, fewest = [list(row) for row in rows], count
        if fewest == 0:
            break
    rows[:] = best
    _keep_sides(rows, links, fixed, groups or {})


def _keep_sides(rows: list[list[K]], links: Sequence[Links[K]], fixed: frozenset[K], groups: Mapping[K, str]) -> None:
    """Mirror all rows above one in which groups change sides, unless more lines cross then."""
    for r in range(1, len(rows)):
        if _changes(rows[r - 1], rows[r], groups) > 0:
            above = [[*(key for key in row if key in fixed), *(key for key in reversed(row) if key not in fixed)]
                     for row in rows[:r]]  # fmt: skip
            if crossings([*above, *rows[r:]], links) <= crossings(rows, links):
                rows[:r] = above


def _changes(upper: Sequence[K], lower: Sequence[K], groups: Mapping[K, str]) -> int:
    """How many pairs of groups stand the other way round in the lower row, less those that do not."""
    total = 0
    above, below = (_middles(row, groups) for row in (upper, lower))
    for a, b in itertools.combinations([group for group in above if group in below], 2):
        turn = (above[a] - above[b]) * (below[a] - below[b])
        total += (turn < 0) - (turn > 0)
    return total


def _middles(row: Sequence[K], groups: Mapping[K, str]) -> dict[str, float]:
    """The mean place of each group in a row."""
    places: dict[str, list[int]] = {}
    for i, key in enumerate(row):
        if key in groups:
            places.setdefault(groups[key], []).append(i)
    return {group: sum(own) / len(own) for group, own in places.items()}


def _sort_row(rows: list[list[K]], r: int, links: Links[K], down: bool, fixed: frozenset[K]) -> None:
    place = {key: i for i, key in enumerate(rows[r - 1 if down else r + 1])}
    pulls: dict[K, list[float]] = {key: [] for key in rows[r]}
    for upper, lower, at_upper, at_lower in links:
        if down:
            pulls[lower].append(place[upper] + at_upper - at_lower / 2)
        else:
            pulls[upper].append(place[lower] + at_lower - at_upper / 2)
    scale = max(len(place), 1) / max(len(rows[r]), 1)
    wish = {key: sum(pulls[key]) / len(pulls[key]) if pulls[key] else i * scale for i, key in enumerate(rows[r])}
    rows[r].sort(key=lambda key: (key not in fixed, wish[key]))


def crossings(rows: Sequence[Sequence[K]], links: Sequence[Links[K]]) -> int:
    """How many pairs of lines cross, over all pairs of neighbouring rows."""
    total = 0
    for upper, lower, between in zip(rows, rows[1:], links):
        up = {key: i for i, key in enumerate(upper)}
        low = {key: i for i, key in enumerate(lower)}
        lines = sorted((up[a] + at_a, low[b] + at_b) for a, b, at_a, at_b in between)
        seen: list[float] = []
        for _, end in lines:
            total += len(seen) - bisect.bisect_right(seen, end)
            bisect.insort(seen, end)
    return total
