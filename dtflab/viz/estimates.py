"""An estimate as a picture: what the last step waited for, how long steps took, which links were busy.

The critical path is a staircase: each part begins where the one before it ends. Colours only repeat what the words say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dtflab.sim.engine.critical_path import Part
from dtflab.sim.estimates.answer import Estimate
from dtflab.viz.drawing.marks import heading, stretch
from dtflab.viz.drawing.palette import GREY, VIOLETS, Colour
from dtflab.viz.drawing.picture import Picture
from dtflab.viz.drawing.style import room
from dtflab.viz.drawing.svg import Markup, join, number, shorten, tag, text_width
from dtflab.viz.drawing.units import duration

_ROW, _BAR, _GAP, _HISTOGRAM = 18.0, 13.0, 18.0, 60.0
_WORDS, _RIGHT = 0.375, 70.0  # for words next to the bars, of the width; for numbers
_OF_KINDS = {
    "wait": VIOLETS[0], "input": VIOLETS[0], "pull": VIOLETS[2], "queue": GREY, "forward": VIOLETS[1],
    "backward": VIOLETS[3], "sum": VIOLETS[2], "push": VIOLETS[2], "update": VIOLETS[4],
}  # fmt: skip


def estimate(found: Estimate, path: Sequence[Part] | None = None, most: int = 12) -> Picture:
    """A picture of `sim.estimate(…)`.

    `path` is its critical path, by default what it says itself (asynchronous workers have none); of it, and of the
    links, the `most` largest are drawn.
    """
    own = () if found.mode == "ps_async" else found.critical_path
    parts = own if path is None else path
    rows: list[Markup] = []
    y = 0.0
    for title, sentence, drawn in (
        ("Critical path", "what the last step waited for", list(_stairs(parts, most))),
        ("Links", "part of the time for which they were busy", list(_loads(found.link_load, most))),
    ):
        if drawn:
            rows += [_at(heading(title, sentence), y), *(_at(row, y + 24 + i * _ROW) for i, row in enumerate(drawn))]
            y += 24 + len(drawn) * _ROW + _GAP
    rows += [_at(heading("Steps", "how many took how long"), y), _at(_histogram(found), y + 24)]
    size = (room(), y + 24 + _HISTOGRAM + 18)
    return Picture(join(rows), size, "", repr(found).strip("<>") + ".", found.tables, str(found))


def _at(markup: Markup, y: float) -> Markup:
    return tag("g", markup, transform=f"translate(0 {number(y)})")


def _stairs(parts: Sequence[Part], most: int) -> Iterator[Markup]:
    """A row for each of the longest parts, where it lies in the step."""
    total = sum(part.seconds for part in parts) or 1.0
    shown = sorted(parts, key=lambda part: -part.seconds)[:most]
    at = 0.0
    for part in parts:
        if any(part is one for one in shown):
            colour = _OF_KINDS.get(part.kind, GREY)
            text = f"{part.kind}  {part.what}"
            yield _row(text, at / total, part.seconds / total, duration(1e6 * part.seconds), colour)
        at += part.seconds


def _loads(loads: dict[str, float], most: int) -> Iterator[Markup]:
    for name, load in sorted(loads.items(), key=lambda pair: -pair[1])[:most]:
        if load > 0:
            yield _row(name, 0.0, min(load, 1.0), f"{100 * load:.0f}%", VIOLETS[2])


def _row(text: str, start: float, length: float, remark: str, colour: Colour) -> Markup:
    """Words, a bar from `start` on (parts of the width), and a number behind it."""
    left = _WORDS * room()
    longest = room() - left - _RIGHT
    x, width = left + start * longest, max(length * longest, 1.0)
    words = tag("text", shorten(text, left - 10, 11), x=0, y=11, class_="s11")
    bar = tag("rect", x=x, y=1, width=width, height=_BAR, fill=colour.fill, stroke=colour.rim)
    behind = tag("text", remark, x=number(x + width + 6), y=11.5, class_="s11 soft")
    return join([words, stretch((left, left + longest), bar, behind)])


def _histogram(found: Estimate) -> Markup:
    """Bars of counts, with the first and the last edge below."""
    counts, edges = found.histogram()
    highest, width = max(counts) or 1, room() / len(counts)
    bars = [
        tag("rect", x=i * width, y=_HISTOGRAM * (1 - count / highest), width=width - 2,
            height=_HISTOGRAM * count / highest, fill=VIOLETS[2].fill)
        for i, count in enumerate(counts.tolist()) if count
    ]  # fmt: skip
    first, last = (duration(1e6 * float(edge)) for edge in (edges[0], edges[-1]))
    ends = [
        tag("text", first, x=0, y=_HISTOGRAM + 14, class_="s11 soft"),
        tag("text", last, x=number(room() - text_width(last, 11)), y=_HISTOGRAM + 14, class_="s11 soft"),
    ]
    return stretch((0, room()), *bars, *ends)
