"""The picture of queues: how full each was over time, and which ops waited.

Every queue is a band. Its area is the number of elements that it held, a dashed line its capacity. Below, every line
belongs to one op of one client: a bar is a time in which it waited, hatched to put, plain to take.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dtflab.base.events import QueueEvent
from dtflab.base.grouping import grouped
from dtflab.base.text_table import plural, text_table
from dtflab.machine.watch import Watch
from dtflab.viz.data.queue_history import QueueHistory, Wait, queue_histories
from dtflab.viz.drawing import marks
from dtflab.viz.drawing.palette import GREY, together
from dtflab.viz.drawing.picture import Picture, Table, first_rows
from dtflab.viz.drawing.readings import Reading, read, reading
from dtflab.viz.drawing.style import room, rules
from dtflab.viz.drawing.svg import Markup, join, line_path, number, shorten, tag, text_width
from dtflab.viz.drawing.units import duration, moment, time_ticks
from dtflab.viz.layout.shapes import Point
from dtflab.viz.participants import client_label, party, watched

MOST_BANDS = 6  # queues that are drawn
_MOST_LANES = 6  # of waiting ops, per queue
_MOST_WAITS = 400  # on one line: not more than can be told apart
_MOST_EMPTY = 5  # times what was ever inside: a capacity above is only named
_HEAD, _PLOT, _LANE, _GAP = 28.0, 84.0, 19.0, 14.0


def queues(seen: Watch | Sequence[QueueEvent], *, width: float | None = None, title: str = "Queues") -> Picture:
    """Picture the queues that a watch saw (`with tf.watch() as seen:`): levels, capacities, and waiting ops.

    ValueError if nothing happened at a queue. Of more than six queues those with most events are drawn, and of more
    than six waiting ops at one, those that waited longest; of more than 400 waits of one, those that are still open or
    ended with an error, the longest, and each n-th of the others. The picture says so, and its tables have all.
    """
    found = queue_histories(seen if isinstance(seen, list | tuple) else watched(seen))
    with together(history.device for history in found):
        shown = sorted(sorted(found, key=lambda history: -len(history.events))[:MOST_BANDS], key=found.index)
        start = min(history.events[0].at for history in found)
        end = max(max([history.events[-1].at, *(wait.ended for wait in history.waits)]) for history in found)
        inner = room(width)
        head = marks.heading(title, _summary(found, shown, end - start), inner)
        legend, legend_height = marks.line_legend(_LEGEND, inner, head.height + 8)
        bands: list[_Band] = []
        y = head.height + 8 + legend_height + 26
        for history in shown:
            bands.append(_Band(history, y, inner, start, end, not bands))
            y += bands[-1].height + _GAP
        drawing = join([head, legend, *(part for band in bands for part in band.draw())])
        sentence = f"{title}: {_summary(found, shown, end - start)}. " + " ".join(map(_sentence, found))
        size, live = (inner, y - _GAP), read(band.reading() for band in bands)
        return Picture(drawing, size, rules("queues"), sentence, _tables(found, start), _text(found), live=live)


class _Band:
    """One queue: its level over time, and lines for the ops that waited."""

    def __init__(self, history: QueueHistory, y: float, width: float, start: float, end: float, first: bool) -> None:
        self.history, self.y, self.width = history, y, width
        self.most = history.most
        self._first = first  # it carries the times
        self._start, self._seconds = start, (end - start) or 1e-6
        self.left, self.right = min(212.0, max(width * 0.32, 172.0)), width - 16
        self.bottom = y + _HEAD + _PLOT
        by_who = grouped(((wait.client, wait.op, wait.wants), wait) for wait in history.waits)
        longest = sorted(by_who.items(), key=lambda item: -sum(wait.seconds for wait in item[1]))
        self.lanes, self._more = longest[:_MOST_LANES], longest[_MOST_LANES:]
        self._note = self._left_out()
        self.height = _HEAD + _PLOT + 10 + _LANE * (len(self.lanes) + bool(self._note))

    def x(self, moment: float) -> float:
        share = (moment - self._start) / self._seconds
        return self.left + (self.right - self.left) * share

    def level(self, elements: float) -> float:
        """The y of that many elements; the fullest it was, or could be, stays a little below the top."""
        top = self.history.capacity if self._shows_capacity() else max(self.most, 1)
        return self.bottom - elements / top * (_PLOT - 14)

    def _shows_capacity(self) -> bool:
        """A capacity far above what was ever there would leave nothing to see."""
        return self.history.capacity > 0 and not 0 < _MOST_EMPTY * self.most < self.history.capacity

    def draw(self) -> Iterator[Markup]:
        yield tag("rect", x=0, y=self.y, width=self.width, height=self.height, rx=6, class_="band wide")
        yield from self._head()
        lanes = (part for i, (who, waits) in enumerate(self.lanes) for part in self._lane(i, who, waits))
        yield marks.stretch((self.left, self.right), *self._grid(), *self._levels(), *self._closed(), *lanes)
        if self._note:
            yield tag("text", self._note, x=8, y=self._lane_y(len(self.lanes)) + 13, class_="s11 soft")

    def reading(self) -> Reading:
        """The level, and who waits, from each event to the next."""
        history = self.history
        box = self.left, self.y + _HEAD, self.right, self.bottom

        def says(i: int) -> list[str]:
            event, limit = history.events[i], f" of {history.capacity:,}" if history.capacity else ""
            at = event.at
            waits = [w for w in history.waits if w.began <= at and (at < w.ended or w.open)]
            words = [f"{client_label(w.client) if w.client else w.op} waits to {w.wants}" for w in waits]
            more = [f"and {len(words) - _MOST_LANES} more"] * (len(words) > _MOST_LANES)
            head = f"{plural(event.level, 'element')}{limit}"
            return [f"{head} from {moment((at - self._start) * 1e6)} on", *words[:_MOST_LANES], *more]

        return reading(box, [self.x(event.at) for event in history.events], says, holds=True)

    def _left_out(self) -> str:
        """The clients that waited without a line, and how many waits are on no line."""
        parts = []
        if self._more:
            seconds = _seconds(sum(wait.seconds for _, waits in self._more for wait in waits))
            parts.append(f"{len(self._more)} more waited, {seconds} in all")
        if waits := sum(len(waits) - len(_few(waits)) for _, waits in self.lanes):
            parts.append(f"{waits:,} short {'wait is' if waits == 1 else 'waits are'} not drawn")
        return "; ".join(parts)

    def _head(self) -> Iterator[Markup]:
        history, one = self.history, party(self.history.device)
        x = 8 + marks.badge_width(one) + 6
        yield marks.badge(one, 8, self.y + 6)
        remark = f"{history.put:,} put, {history.taken:,} taken"
        room_left = self.width - x - 24 - text_width(remark, 11)
        name = shorten(history.name, room_left, bold=True)
        yield tag("g", tag("title", f"{history.name} on {history.device}"),
                  tag("text", name, x=x, y=self.y + 19, class_="b"))  # fmt: skip
        yield tag("text", remark, x=self.width - 10, y=self.y + 19, class_="s11 soft end right")

    def _grid(self) -> Iterator[Markup]:
        for micros, text in time_ticks(self._seconds * 1e6, self.right - self.left):
            x = self.x(self._start + micros / 1e6)
            yield tag("path", d=f"M{number(x)} {number(self.y + _HEAD)}V{number(self.y + self.height)}", class_="grid")
            if self._first:
                yield tag("text", text, x=x, y=self.y - 8, class_="s11 soft mid")

    def _levels(self) -> Iterator[Markup]:
        history, colour = self.history, party(self.history.device).colour
        line = line_path(_thinned(list(self._corners())))
        base = number(self.bottom)
        yield tag("path", d=f"{line}V{base}H{number(self.left)}Z", class_="level", fill=colour.fill,
                  stroke="none")  # fmt: skip
        yield tag("path", d=line, class_="level", style="fill:none", stroke=colour.line)
        yield tag("path", d=f"M{number(self.left)} {base}H{number(self.right)}", class_="grid")
        high = self.most
        marked = {high: f"{high:,}", 0: "0 elements"}
        if self._shows_capacity():
            marked[history.capacity] = f"capacity {history.capacity:,}"
            y = number(self.level(history.capacity))
            yield tag("path", d=f"M{number(self.left)} {y}H{number(self.right)}", class_="limit")
        elif history.capacity and high:
            marked[high] = f"{high:,} of {history.capacity:,}"
        for elements, text in marked.items():
            if elements in (0, max(marked)) or self.level(elements) - self.level(max(marked)) > 13:
                yield tag("text", text, x=self.left - 8, y=self.level(elements) + 4, class_="s11 soft end")

    def _corners(self) -> Iterator[Point]:
        """The line of the level: it stays until something happens, also after the last event."""
        events = self.history.events
        y = self.level(_before(events[0]))
        yield self.left, y
        for event in events:
            yield self.x(event.at), y
            y = self.level(event.level)
            yield self.x(event.at), y
        yield self.right, y

    def _closed(self) -> Iterator[Markup]:
        for event in self.history.events:
            if event.what == "close":
                x = self.x(event.at)
                yield tag("path", d=f"M{number(x)} {number(self.y + _HEAD + 4)}V{number(self.bottom)}", class_="event")
                side = {"x": x - 4, "class_": "s11 halo end"} if x > self.right - 60 else {"x": x + 4}
                yield tag("text", "closed", **{"y": self.y + _HEAD + 9, "class_": "s11 halo"} | side)

    def _lane_y(self, lane: int) -> float:
        return self.bottom + 6 + lane * _LANE

    def _lane(self, lane: int, who: tuple[str, str, str], waits: Sequence[Wait]) -> Iterator[Markup]:
        client, op, wants = who
        y = self._lane_y(lane)
        label = self._label(client_label(client), op) if client else shorten(op, self.left - 16, 11)
        title = f"{op} · {client_label(client)}\nwaited {plural(len(waits), 'time')} to {wants}, "
        title += _seconds(sum(wait.seconds for wait in waits))
        text = tag("text", label, x=8, y=y + 13, class_="s11")
        yield tag("g", tag("title", title), text, *(part for wait in _few(waits) for part in self._bar(wait, y + 3)))

    def _label(self, client: str, op: str) -> str:
        """The client and op that waited, cut to the room there is: at least half of it is for the op."""
        space = self.left - 16
        client = client.removesuffix(f" {op}")  # a queue runner is called by its op
        client = shorten(client, max(space / 2, space - text_width(f"{op} · ", 11)), 11)
        return f"{shorten(op, space - text_width(f' · {client}', 11), 11)} · {client}"

    def _bar(self, wait: Wait, y: float) -> Iterator[Markup]:
        x, width = self.x(wait.began), max(1.5, self.x(wait.ended) - self.x(wait.began))
        yield _box(x, y, width, wait.wants == "put")
        end = f"{wait.error}" if wait.error else "still waits" if wait.open else ""
        if end:
            inside = text_width(end, 11, bold=True) + 8 < width
            before = inside or x + width + 8 + text_width(end, 11, bold=True) > self.right
            on_grey = inside and wait.wants == "take"  # where a halo would cover the bar
            at = x + width - 4 if inside else x - 4 if before else x + width + 4
            class_ = f"s11 b{' end' * before}{' halo' * (not on_grey)}"
            yield tag("text", end, x=at, y=y + 10, class_=class_, style=f"fill:{GREY.ink}" if on_grey else None)


def _box(x: float, y: float, width: float, hatched: bool) -> Markup:
    """A wait: to put hatched, to take filled."""
    rx = min(2.5, width / 3)
    if hatched:
        return marks.hatched_rect(x, y, width, 13, rx=rx)
    return tag("rect", x=x, y=y, width=width, height=13, rx=rx, stroke=GREY.line, fill=GREY.fill)


def _before(event: QueueEvent) -> int:
    """How many elements the queue held before its first event."""
    change = {"put": -event.elements, "take": event.elements}
    return max(0, event.level + change.get(event.what, 0))


def _few(waits: Sequence[Wait]) -> Sequence[Wait]:
    """As many as one line shows: those with a label (open, ended badly), the longest, and each n-th of the rest.

    Of open ones that are too many, those left out lie under the longest: all end where the watch does.
    """
    if len(waits) <= _MOST_WAITS:
        return waits
    first = sorted(waits, key=lambda wait: (wait.open, bool(wait.error), wait.seconds), reverse=True)
    half = _MOST_WAITS // 2
    rest = sorted(first[half:], key=lambda wait: wait.began)
    return sorted(first[:half] + rest[:: -(-len(rest) // half)], key=lambda wait: wait.began)


def _thinned(points: list[Point], apart: float = 0.5) -> list[Point]:
    """Keep only the highest, the lowest and the last of many corners within half a pixel."""
    if len(points) < 4000:
        return points
    kept: list[Point] = []
    for column in grouped((int(point[0] / apart), point) for point in points).values():
        low, high = min(column, key=lambda p: p[1]), max(column, key=lambda p: p[1])
        kept += [column[0], low, high, column[-1]]
    return kept


_LEGEND = (
    (tag("path", d="M0 16V10H10V4H28V16Z", class_="level", style="fill:var(--soft);stroke:var(--soft)"), "elements"),
    (tag("path", d="M0 9H28", class_="limit"), "capacity"),
    (_box(0, 3, 28, True), "waits to put: it is full"),
    (_box(0, 3, 28, False), "waits to take: not enough is there"),
)


# -- words ---------------------------------------------------------------------------------------------------


def _seconds(seconds: float) -> str:
    return duration(seconds * 1e6)


def _summary(found: Sequence[QueueHistory], shown: Sequence[QueueHistory], seconds: float) -> str:
    events = sum(len(history.events) for history in found)
    text = f"{plural(len(found), 'queue')} in {_seconds(seconds)}, {plural(events, 'event')}"
    return text if len(shown) == len(found) else f"{text} (the {len(shown)} with most events are drawn)"


def _sentence(history: QueueHistory) -> str:
    limit = f"capacity {history.capacity:,}" if history.capacity else "no limit"
    text = f"{history.name} ({limit}): {history.put:,} put, {history.taken:,} taken, at most {history.most:,} inside"
    waited = [f"{_seconds(history.waited(wants))} to {wants}" for wants in ("put", "take") if history.waited(wants)]
    text += f"; waited {' and '.join(waited)}" if waited else "; nobody waited"
    still = [f"{wait.op} still waits to {wait.wants}" for wait in history.waits if wait.open]
    return "; ".join([text, *still[:5]]) + "."


_HEADS = ("queue", "device", "capacity", "put", "taken", "most inside", "waited to put", "waited to take", "wait now")


def _rows(found: Sequence[QueueHistory]) -> list[list[object]]:
    return [
        [c.name, c.device, c.capacity or "no limit", c.put, c.taken, c.most, _seconds(c.waited("put")),
         _seconds(c.waited("take")), sum(wait.open for wait in c.waits)]
        for c in found
    ]  # fmt: skip


def _tables(found: Sequence[QueueHistory], start: float) -> list[Table]:
    waits = [
        [c.name, w.op, client_label(w.client) if w.client else "", w.wants, f"{(w.began - start) * 1e6:.1f}",
         f"{w.seconds * 1e6:.1f}", w.error or ("still waits" if w.open else "")]
        for c in found for w in c.waits
    ]  # fmt: skip
    events = [
        [f"{(e.at - start) * 1e6:.1f}", c.name, e.what, e.elements, e.level, e.op,
         client_label(e.client) if e.client else "", e.error]
        for c in found for e in c.events
    ]  # fmt: skip
    wait_heads = ("queue", "op", "client", "to", "since, µs", "waited, µs", "end")
    event_heads = ("at, µs", "queue", "event", "elements", "level", "op", "client", "error")
    return [
        ("Queues", _HEADS, _rows(found)),
        first_rows("Waits", wait_heads, waits),
        first_rows("Events", event_heads, events),
    ]


def _text(found: Sequence[QueueHistory]) -> str:
    return text_table(_HEADS, _rows(found))
