"""The picture of an input pipeline: stages, queues, their speeds, and the bottleneck.

Elements go from top to bottom. Each stage has a bar for the whole time: what it worked is filled, what it waited to
take is grey, what it waited to put is hatched. Each queue has a bar for how full it was on average.

Rule for the bottleneck: the stage that was at work for the largest part of the time. In a long run the queue before it
fills up, and others wait to put; behind it others wait to take. What of this happened is said with its numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dtflab.base.text_table import plural, text_table
from dtflab.machine.watch import Watch
from dtflab.viz.data.pipeline import Pipeline, Stage, pipeline
from dtflab.viz.data.queue_history import QueueHistory
from dtflab.viz.drawing import marks
from dtflab.viz.drawing.palette import GREY, VIOLETS, Look, together
from dtflab.viz.drawing.picture import Picture, Table
from dtflab.viz.drawing.style import room, rules
from dtflab.viz.drawing.svg import Markup, arrow_head, join, number, shorten, tag, text_width, wrapped
from dtflab.viz.drawing.units import duration
from dtflab.viz.participants import party, watched

MOST_ROWS = 24  # of stages and queues; the tables have all
_STAGE, _QUEUE, _GAP, _GUTTER = 58.0, 46.0, 16.0, 26.0
_WORKED = VIOLETS[2]
_DOES = {"worked": "at work", "take": "waits to take", "put": "waits to put"}
Row = Stage | QueueHistory


def rates(seen: Watch, *, width: float | None = None, title: str = "Pipeline") -> Picture:
    """Picture the pipeline that a watch saw (`with tf.watch() as seen:`): elements/s, waits, the bottleneck.

    ValueError if nothing happened at a queue.
    """
    found = pipeline(watched(seen))
    with together(history.device for history in found.queues):
        slow = found.bottleneck()
        rows = _rows(found)
        inner = room(width)
        head = marks.heading(title, _summary(found, rows), inner)
        lines = wrapped(_verdict(found, slow), inner, bold=True)
        verdict = [tag("text", line, x=0, y=head.height + 16 + 17 * i, class_="b") for i, line in enumerate(lines)]
        top = head.height + 10 + 17 * len(lines)
        legend, legend_height = marks.line_legend(_legend(), inner, top)
        y = top + legend_height + 10
        places: list[tuple[Row, float, float]] = []
        for row in rows[:MOST_ROWS]:
            places.append((row, y, _STAGE if isinstance(row, Stage) else _QUEUE))
            y += places[-1][2] + _GAP
        boxes = [part for row, top, height in places for part in _box(found, row, row is slow, top, height, inner)]
        drawing = join([head, *verdict, legend, *_arrows(found, places), *boxes])
        stages = " ".join(_sentence(found, stage) for stage in found.stages)
        sentence = f"{title}: {_summary(found, rows)}. {_verdict(found, slow)} {stages}"
        return Picture(drawing, (inner, y - _GAP), rules("rates"), sentence, _tables(found), _text(found, slow))


def _rows(found: Pipeline) -> list[Row]:
    """Stages, each queue behind the first stage that puts into it; those into which nobody puts come first."""
    fed = {queue for stage in found.stages for queue in stage.puts}
    rows: list[Row] = [queue for number, queue in enumerate(found.queues) if number not in fed]
    seen: set[int] = set()
    for stage in found.stages:
        rows.append(stage)
        rows += [found.queues[number] for number in sorted(stage.puts - seen)]
        seen |= stage.puts
    return rows


def _arrows(found: Pipeline, places: Sequence[tuple[Row, float, float]]) -> Iterator[Markup]:
    """From stages to queues and on: straight down to the next row, in the gutter to a farther one."""
    at = {id(row): (i, top, height) for i, (row, top, height) in enumerate(places)}
    lane = 0
    for stage in found.stages:
        pairs: list[tuple[Row, Row]] = [(stage, found.queues[q]) for q in sorted(stage.puts)]
        pairs += [(found.queues[q], stage) for q in sorted(stage.takes)]
        for source, target in pairs:
            if id(source) not in at or id(target) not in at:
                continue
            (i, top, height), (j, below, other) = at[id(source)], at[id(target)]
            if j == i + 1:
                x, begin, end = _GUTTER + 40.0, top + height, below
                yield tag("path", d=f"M{number(x)} {number(begin)}V{number(end - 3)}", class_="flow")
                yield tag("path", d=arrow_head((x, end), (x, begin), 7), class_="tip")
            else:
                x, begin, end = 18.0 - lane % 4 * 5, top + height / 2, below + other / 2
                d = f"M{number(_GUTTER)} {number(begin)}H{number(x)}V{number(end)}H{number(_GUTTER - 3)}"
                yield tag("path", d=d, class_="flow")
                yield tag("path", d=arrow_head((_GUTTER, end), (x, end), 7), class_="tip")
                lane += 1


def _box(found: Pipeline, row: Row, slow: bool, y: float, height: float, width: float) -> Iterator[Markup]:
    """A row: its frame, its name, its speed, its bar."""
    wide = width - _GUTTER
    class_ = ("stage slow" if slow else "stage") if isinstance(row, Stage) else "queue"
    radius = 6 if isinstance(row, Stage) else height / 2
    yield tag("rect", x=_GUTTER, y=y, width=wide, height=height, rx=radius, class_=f"{class_} wide")
    if isinstance(row, Stage):
        yield from _stage(found, row, slow, y, wide)
    else:
        yield from _queue(found, row, y, wide)


def _stage(found: Pipeline, stage: Stage, slow: bool, y: float, wide: float) -> Iterator[Markup]:
    left, right = _GUTTER + 14, _GUTTER + wide - 14
    speed = _speed(found, stage)
    tags = "bottleneck" if slow else ""
    space = right - left - text_width(speed, 11) - (text_width(tags, bold=True) + 24 if slow else 0) - 20
    times = f" × {stage.workers}" if stage.workers > 1 else ""
    name = shorten(stage.name, space - text_width(times, bold=True), bold=True) + times
    yield tag("g", tag("title", f"{stage.name}\n{plural(stage.steps, 'step')}, {stage.workers} at a time"),
              tag("text", name, x=left, y=y + 19, class_="b"))  # fmt: skip
    if slow:
        x = left + text_width(name, bold=True) + 12
        long = text_width(tags, 11, bold=True) + 12
        yield tag("rect", x=x, y=y + 6, width=long, height=18, rx=9, style="fill:var(--fg)")
        yield tag("text", tags, x=x + long / 2, y=y + 19, class_="s11 b mid", style="fill:var(--bg)")
    yield tag("text", speed, x=right, y=y + 19, class_="s11 soft end right")
    yield marks.stretch((left, right), *_shares(found, stage, left, y + 28, right - left))


def _shares(found: Pipeline, stage: Stage, x: float, y: float, wide: float) -> Iterator[Markup]:
    yield tag("rect", x=x, y=y, width=wide, height=18, class_="whole")
    parts = (("worked", stage.worked), ("take", stage.waited_to_take), ("put", stage.waited_to_put))
    for kind, seconds in parts:
        share = found.share(stage, seconds)
        long = share * wide
        if long >= 0.5:
            does = f"{_DOES[kind]} {100 * share:.1f}% of the time, {duration(seconds * 1e6)} in all"
            yield tag("g", tag("title", f"{stage.name}\n{does}"), _piece(kind, x, y, long))
            text = f"{100 * share:.0f}%"
            if long > text_width(text, 11) + 10:
                ink = {"worked": _WORKED.ink, "take": GREY.ink}.get(kind, "var(--fg)")
                halo = {"stroke": "var(--bg)", "stroke_width": 3, "paint_order": "stroke"} if kind == "put" else {}
                yield tag("text", text, x=x + long / 2, y=y + 13, class_="s11 mid", style=f"fill:{ink}", **halo)
        x += long


def _piece(kind: str, x: float, y: float, wide: float) -> Markup:
    if kind == "put":
        return marks.hatched_rect(x, y, wide, 18)
    colour = {"worked": _WORKED, "take": GREY}[kind]
    return tag("rect", x=x, y=y, width=wide, height=18, fill=colour.fill, stroke=colour.line)


def _queue(found: Pipeline, history: QueueHistory, y: float, wide: float) -> Iterator[Markup]:
    one = party(history.device)
    left, right = _GUTTER + 18, _GUTTER + wide - 18
    yield marks.badge(one, left, y + 5)
    x = left + marks.badge_width(one) + 7
    remark = _fullness(history)
    name = shorten(history.name, right - x - text_width(remark, 11) - 16, bold=True)
    yield tag("g", tag("title", f"{history.name} on {history.device}"), tag("text", name, x=x, y=y + 18, class_="b"))
    yield tag("text", remark, x=right, y=y + 18, class_="s11 soft end right")
    yield marks.stretch((left, right), *_level(history, one, left, y + 29, right - left))


def _level(history: QueueHistory, one: Look, x: float, y: float, wide: float) -> Iterator[Markup]:
    top = history.capacity or max(history.most, 1)
    yield tag("rect", x=x, y=y, width=wide, height=8, rx=4, class_="whole")
    if long := history.mean() / top * wide:
        yield tag("rect", x=x, y=y, width=long, height=8, rx=min(4, long / 2), fill=one.colour.fill,
                  stroke=one.colour.rim)  # fmt: skip


def _legend() -> tuple[tuple[Markup, str], ...]:
    return (
        *((_piece(kind, 0, 0, 28), does) for kind, does in _DOES.items()),
        (tag("rect", x=0, y=0, width=28, height=18, class_="whole"), "not begun, or over"),
        (
            tag("rect", x=0, y=5, width=28, height=8, rx=4, style="fill:var(--soft)"),
            "queue: mean level, in its device's colour",
        ),
    )


# -- words ---------------------------------------------------------------------------------------------------


def _summary(found: Pipeline, rows: Sequence[Row]) -> str:
    text = f"{plural(len(found.stages), 'stage')} and {plural(len(found.queues), 'queue')} in "
    text += duration(found.seconds * 1e6)
    return text if len(rows) <= MOST_ROWS else f"{text} (the first {MOST_ROWS} of {len(rows)} are drawn)"


def _verdict(found: Pipeline, slow: Stage | None) -> str:
    """Which stage is the bottleneck, and by which rule."""
    if slow is None:
        why = "one stage alone" if len(found.stages) < 2 else "nobody waited"
        return f"No bottleneck: {why}."
    share = 100 * found.share(slow, slow.worked)
    words = f"The bottleneck is {slow.name}: it was at work {share:.0f}% of the time, more than any other stage."
    return " ".join([words, *_before(found, slow), *_behind(found, slow)])


def _before(found: Pipeline, slow: Stage) -> Iterator[str]:
    """The level of the queue from which a stage takes; of several, the fullest."""
    histories = [found.queues[number] for number in sorted(slow.takes - slow.puts)]
    if histories:
        history = max(histories, key=lambda history: history.mean() / (history.capacity or 1))
        fills = "a queue fills up" if 2 * history.mean() >= history.capacity else "no queue fills up"
        words = f"{history.name} holds {_mean(history)} on average."
        yield f"Before it, {fills}: {words}" if history.capacity else f"Before it, {words}"


def _behind(found: Pipeline, slow: Stage) -> Iterator[str]:
    """How long a stage waits for what another puts, of several the one that waits most."""
    takers = [stage for stage in found.stages if stage is not slow and stage.takes & slow.puts]
    if takers:
        share, name = max((100 * found.share(stage, stage.waited_to_take), stage.name) for stage in takers)
        waits = f"{name} waits {share:.0f}% of the time for more" if share >= 0.5 else "none waits"
        yield f"Behind it, {waits}."


def _speed(found: Pipeline, stage: Stage) -> str:
    """`120 elements/s in, 12 out`"""
    parts = [f"{_per_second(found, n)} {way}" for n, way in ((stage.taken, "in"), (stage.put, "out")) if n]
    return "elements/s: " + ", ".join(parts) if parts else "no element"


def _per_second(found: Pipeline, elements: int) -> str:
    rate = elements / found.seconds if found.seconds else 0.0
    return f"{rate:,.0f}" if rate >= 99.5 else f"{rate:.3g}"


def _fullness(history: QueueHistory) -> str:
    text = f"{_mean(history)} on average, empty {100 * history.share_at(0):.0f}% of the time"
    return f"{text}, full {100 * history.share_at(history.capacity):.0f}%" if history.capacity else text


def _mean(history: QueueHistory) -> str:
    return f"{history.mean():.3g}" + (f" of {history.capacity:,}" if history.capacity else "")


def _sentence(found: Pipeline, stage: Stage) -> str:
    shares = (100 * found.share(stage, s) for s in (stage.worked, stage.waited_to_take, stage.waited_to_put))
    return "{}: {}, {:.0f}% at work, {:.0f}% waiting to take, {:.0f}% waiting to put.".format(
        stage.name, _speed(found, stage), *shares
    )


_HEADS = ("stage", "at a time", "steps", "in/s", "out/s", "at work", "waits to take", "waits to put")


def _stage_rows(found: Pipeline) -> list[list[Any]]:
    return [
        [s.name, s.workers, s.steps, _per_second(found, s.taken), _per_second(found, s.put),
         *(f"{100 * found.share(s, part):.0f}%" for part in (s.worked, s.waited_to_take, s.waited_to_put))]
        for s in found.stages
    ]  # fmt: skip


def _tables(found: Pipeline) -> list[Table]:
    heads = ("queue", "device", "capacity", "put", "taken", "mean level", "empty", "full")
    rows = [
        [q.name, q.device, q.capacity or "no limit", q.put, q.taken, f"{q.mean():.3g}",
         f"{100 * q.share_at(0):.0f}%", f"{100 * q.share_at(q.capacity):.0f}%" if q.capacity else ""]
        for q in found.queues
    ]  # fmt: skip
    return [("Stages", _HEADS, _stage_rows(found)), ("Queues", heads, rows)]


def _text(found: Pipeline, slow: Stage | None) -> str:
    return f"{_verdict(found, slow)}\n{text_table(_HEADS, _stage_rows(found))}"
