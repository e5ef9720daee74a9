"""Parallel lines in a channel: which runs on which track, so that few cross and none lie upon each other."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Protocol

TRACK = 7.0  # between parallel lines
SLANT = 4.0  # a step to the side as small as this is drawn as a slant, without a track


class Bend(Protocol):
    """A line that comes in at `tops`, runs along the channel over its `span`, and leaves at `bottoms`."""

    net: str
    track: int | None

    def tops(self) -> list[float]: ...
    def bottoms(self) -> list[float]: ...
    def span(self) -> tuple[float, float]: ...


def is_straight(bend: Bend) -> bool:
    low, high = bend.span()
    return high - low <= SLANT


def assign_tracks(bends: Sequence[Bend]) -> int:
    """Give every line that is not straight a track, so that few lines cross and none lie on each other."""
    bent = [bend for bend in bends if not is_straight(bend)]
    debt = dict.fromkeys(bent, 0)  # what it costs that others are still below
    for a, b in itertools.combinations(bent, 2):
        cost = _cost(a, b) - _cost(b, a)
        debt[a], debt[b] = debt[a] + cost, debt[b] - cost
    order: list[Bend] = []
    left = sorted(bent, key=lambda h: (h.span(), h.net))
    while left:  # the one that is cheapest above all others goes next
        bend = min(left, key=lambda h: debt[h])
        left.remove(bend)
        order.append(bend)
        for other in left:
            debt[other] -= _cost(other, bend) - _cost(bend, other)
    for i, bend in enumerate(order):
        low, high = bend.span()
        spans = [(other, *other.span()) for other in order[:i]]
        taken = [o.track or 0 for o, a, b in spans if a < high + TRACK and low < b + TRACK]
        bend.track = max(taken, default=-1) + 1
    return max((bend.track or 0 for bend in order), default=-1) + 1


def _cost(upper: Bend, lower: Bend) -> int:
    """The cost of running `upper` above `lower`: lines crossed, and dearly, lines laid upon each other."""
    (low, high), (low2, high2) = upper.span(), lower.span()
    crossed = sum(low < x < high for x in lower.tops()) + sum(low2 < x < high2 for x in upper.bottoms())
    overlaid = sum(abs(x - x2) < 4 for x in upper.bottoms() for x2 in lower.tops())
    return crossed + 50 * overlaid
