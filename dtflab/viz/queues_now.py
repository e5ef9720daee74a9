"""The picture of queues as they are now: how full each is, and which ops wait at it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dtflab.base.text_table import plural, text_table
from dtflab.cluster.cluster import Cluster
from dtflab.cluster.resources_held import HeldQueue, queues_on
from dtflab.runtime.session import BaseSession
from dtflab.viz.drawing import marks
from dtflab.viz.drawing.palette import together
from dtflab.viz.drawing.picture import Picture, nothing_yet
from dtflab.viz.drawing.style import room, rules
from dtflab.viz.drawing.svg import Markup, join, shorten, tag, text_width
from dtflab.viz.participants import client_label, party

MOST_QUEUES, _MOST_WAITING = 20, 4
_ROW, _LINE, _BAR = 30.0, 17.0, 16.0


def queues_now(
    held: Cluster | BaseSession | Sequence[HeldQueue], *, width: float | None = None, title: str = "Queues now"
) -> Picture:
    """Picture how full the queues of a cluster, of a session's tasks, or of `cluster.queues()` are, and which ops wait.

    If there is none yet, it says so: a queue is created when an op of it first runs. NotImplementedError for a session
    whose master is in another process: give its cluster.
    """
    found = held.queues() if isinstance(held, Cluster) else _of(held)
    if not found:
        return nothing_yet("No queue exists yet; it is created when its first op runs.")
    with together(queue.device for queue in found):
        inner = room(width)
        summary = plural(len(found), "queue") + (f" (the first {MOST_QUEUES} are drawn)" if found[MOST_QUEUES:] else "")
        head = marks.heading(title, summary, inner)
        rows, bottom = _rows(found[:MOST_QUEUES], head.height + 10, inner)
        heads = ("queue", "kind", "device", "container", "level", "closed", "waits")
        table = [
            [q.name, q.kind, q.device, q.container, _level(q), q.closed, "; ".join(map(_waits, q.waiting))]
            for q in found
        ]
        sentence = f"{title}: " + "; ".join(_sentence(queue) for queue in found) + "."
        tables, text = [(title, heads, table)], text_table(heads, table)
        return Picture(join([head, rows]), (inner, bottom), rules("queues_now"), sentence, tables, text)


def _of(held: BaseSession | Sequence[HeldQueue]) -> list[HeldQueue]:
    return queues_on(held.local_devices()) if isinstance(held, BaseSession) else list(held)


def _rows(found: Sequence[HeldQueue], y: float, width: float) -> tuple[Markup, float]:
    """All queues, one below the other, and where they end."""
    looks = [party(queue.device) for queue in found]
    left = 8 + max(map(marks.badge_width, looks))
    names = min(max(text_width(queue.name, bold=True) for queue in found) + 10, width * 0.36)
    remarks = max(text_width(_level(queue), 11) for queue in found) + 8
    parts: list[Markup] = []
    bars: list[Markup] = []
    for queue, one in zip(found, looks, strict=True):
        name = tag("text", shorten(queue.name, names - 10, bold=True), x=left, y=y + 14, class_="b")
        parts += [marks.badge(one, 0, y), tag("g", tag("title", f"{queue.name} on {queue.device}"), name)]
        bars += _bar(queue, left + names, y + 1, width - left - names - remarks)
        parts.append(tag("text", _level(queue), x=width - remarks + 8, y=y + 13, class_="s11 soft right"))
        for text in _waiting(queue):
            parts.append(tag("text", shorten(text, width - left, 11), x=left, y=y + _ROW, class_="s11"))
            y += _LINE
        y += _ROW
    return join([*parts, marks.stretch((left + names, width - remarks), *bars)]), y - (_ROW - _BAR - 6)


def _bar(queue: HeldQueue, x: float, y: float, width: float) -> Iterator[Markup]:
    """A bar for the level of a queue; without a limit, the bar has no frame, and is full."""
    full = queue.level / queue.capacity if queue.capacity else min(queue.level, 1)
    colour = party(queue.device).colour
    if queue.capacity:
        yield tag("rect", x=x, y=y, width=width, height=_BAR, rx=3, class_="whole")
    if full:
        yield tag("rect", x=x, y=y, width=width * full, height=_BAR, rx=3, fill=colour.fill, stroke=colour.rim)


def _level(queue: HeldQueue) -> str:
    limit = f" of {queue.capacity:,}" if queue.capacity else ", no limit"
    return f"{queue.level:,}{limit}" + (", closed" if queue.closed else "")


def _waits(waiting: tuple[str, str, str]) -> str:
    op, wants, client = waiting
    return f"{op} waits to {wants}" + (f" ({client_label(client)})" if client else "")


def _waiting(queue: HeldQueue) -> list[str]:
    lines = [_waits(waiting) for waiting in queue.waiting[:_MOST_WAITING]]
    more = len(queue.waiting) - _MOST_WAITING
    return [*lines, f"and {more} more"] if more > 0 else lines


def _sentence(queue: HeldQueue) -> str:
    return ", ".join([f"{queue.name} holds {_level(queue)}", *_waiting(queue)])
