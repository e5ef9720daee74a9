"""The small marks that pictures share: a device's badge, a heading, a legend."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dtflab.viz.drawing.palette import Look
from dtflab.viz.drawing.style import room
from dtflab.viz.drawing.svg import Markup, arrow_head, hatch_path, join, number, tag, text_width, wrapped

BADGE_HEIGHT = 18.0
LEGEND_ROW = 24.0
LINE = 17.0  # from one line of text to the next
# The sample of a control dependency for `line_legend`, and what it means.
ORDER_ONLY = (
    join([tag("path", d="M0 9H22", class_="e c"), tag("path", d=arrow_head((28, 9), (0, 9), 6), class_="h")]),
    "order only",
)


def badge_width(look: Look) -> float:
    return max(24.0, round(text_width(look.letter, 11, bold=True) + 10))


def badge(look: Look, x: float, y: float, height: float = BADGE_HEIGHT, width: float | None = None) -> Markup:
    """The device's colour and letter; hatched below the letter if it is not a CPU."""
    width = badge_width(look) if width is None else width
    path = f"M{number(x + 4)} {number(y)}h{number(width - 4)}v{number(height)}h{number(4 - width)}"
    path += f"q-4 0-4-4v{number(8 - height)}q0-4 4-4z"
    shape = tag("path", d=path, fill=look.colour.fill, stroke=look.colour.rim)
    if look.hatched:
        lines = hatch_path(x, y, width, height, 5)
        shape = join([shape, tag("path", d=lines, class_="hatch", stroke=look.colour.ink, stroke_opacity=0.25)])
    return join([shape, _letter(look, x + width / 2, y + height / 2 + 4)])


def _letter(look: Look, x: float, y: float) -> Markup:
    halo = {"stroke": look.colour.fill, "stroke_width": 3, "paint_order": "stroke"} if look.hatched else {}
    return tag("text", look.letter, x=x, y=y, class_="s11 b mid", style=f"fill:{look.colour.ink}", **halo)


def hatched_rect(x: float, y: float, width: float, height: float, rx: float | None = None) -> Markup:
    """Stripes of the page's ink in a frame: somebody waits to put."""
    frame = tag("rect", x=x, y=y, width=width, height=height, rx=rx, fill="none", style="stroke:var(--fg)")
    return join([frame, tag("path", d=hatch_path(x, y, width, height, 5), style="stroke:var(--fg)")])


def stretch(span: tuple[float, float], *parts: Markup) -> Markup:
    """A group that a live page stretches until `span` takes the output's width: shapes grow, text and circles move.

    A group or a path within it that has `data_at` moves as a whole.
    """
    return tag("g", *parts, class_="stretch", data_span="{:g} {:g}".format(*span))


class Heading(Markup):
    """A heading and how high it is."""

    height: float


def heading(title: str, sentence: str, width: float | None = None) -> Heading:
    """A title and next to it a sentence, on a line 20 px high; if both are wider than the page, below it, in lines."""
    width = room() if width is None else width
    left = text_width(title, 14, bold=True) + 10
    fits = left + text_width(sentence) <= width
    lines = [sentence] if fits else wrapped(sentence, width)
    x, y = (left, 14) if fits else (0.0, 14 + LINE)
    head = tag("text", title, x=0, y=14, class_="b", style="font-size:14px")
    below = (tag("text", line, x=x, y=y + i * LINE, class_="soft") for i, line in enumerate(lines))
    found = Heading(join([head, *below]))
    found.height = 20.0 + (0 if fits else LINE * len(lines))
    return found


def legend(entries: Iterable[tuple[Look, str]], width: float, y: float) -> tuple[Markup, float]:
    """Badges with labels and a remark each, in rows; and the height they take."""
    parts: list[Markup] = []
    x, top = 0.0, y
    for look, remark in entries:
        badge_end = badge_width(look) + 6
        label_end = badge_end + text_width(look.label, 12, bold=True) + 6
        end = label_end + text_width(remark) + 22
        if x and x + end > width:
            x, top = 0.0, top + LEGEND_ROW
        parts += [
            badge(look, x, top),
            tag("text", look.label, x=x + badge_end, y=top + 13, class_="b"),
            tag("text", remark, x=x + label_end, y=top + 13, class_="soft"),
        ]
        x += end
    return join(parts), top - y + (LEGEND_ROW if parts else 0.0)


def line_legend(samples: Sequence[tuple[Markup, str]], width: float, y: float, size: int = 12) -> tuple[Markup, float]:
    """Samples of lines (drawn in 28 × 18 px) with what they mean in text of that size, 11 or 12, in rows."""
    parts: list[Markup] = []
    x, top = 0.0, y
    for sample, meaning in samples:
        end = 34 + text_width(meaning, size) + 20
        if x and x + end > width:
            x, top = 0.0, top + LEGEND_ROW
        parts += [
            tag("g", sample, transform=f"translate({number(x)} {number(top)})"),
            tag("text", meaning, x=x + 34, y=top + 13, class_="s11 soft" if size == 11 else "soft"),
        ]
        x += end
    return join(parts), top - y + (LEGEND_ROW if parts else 0.0)
