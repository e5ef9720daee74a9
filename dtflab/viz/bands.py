"""Where the bars of a timeline go: a band for each device, in it rows for its threads and for what it received.

Geometry only, so that it can be tested as numbers; `timeline` draws it.
"""

from __future__ import annotations

import bisect
import dataclasses
import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from dtflab.base.grouping import grouped
from dtflab.graph.node_names import readable
from dtflab.viz.data.step_trace import MOVED, Event, Trace, Transfer
from dtflab.viz.drawing import marks
from dtflab.viz.drawing.names import forms
from dtflab.viz.drawing.palette import Look, in_order, look, natural
from dtflab.viz.drawing.svg import shorten, text_width

ROW, NAMES_ROW, RECEIVE_ROW, BAND_GAP, BAND_PADDING = 22.0, 14.0, 17.0, 10.0, 6.0
IDLE_ROOM, LABEL_GAP, LEAST_BAR = 78.0, 12.0, 1.5
LEAST_WIDTH = 400.0
MOST_RECEIVING = 16  # rows of a device for what it received
MANY_RECEIVED, MOST_RECEIVED = 500, 200  # transfers of a step; of more than the one about the other are drawn
FOLDED, QUIET = 14.0, 0.99  # height of the line into which threads fold that are idle for that share
MOST_OPEN = 4  # rows of a device for what it received; more fold into one
MANY_BARS, MOST_SINGLE = 2000, 1000  # of more bars than the one only the other are drawn singly, the longest
LEAST_NAMED, NAME_ROOM = 4.0, 90.0  # pixels of a bar that deserves a name below it, and of that name
LEAST_CUT = 48.0  # pixels in which a name cut short still says something

Span = TypeVar("Span", Event, Transfer)


@dataclasses.dataclass
class Row:
    """Bars that do not overlap, with names below for which there is no room inside.

    `label` stands next to the first row of a thread, `idle` is of the whole thread. A row of threads that are idle, or
    of many tensors that are received, has their rows as `folded`; these begin at its own `y`, one below the other.
    """

    label: str
    y: float
    height: float
    idle: float | None = None
    events: list[Event] = dataclasses.field(default_factory=list)
    transfers: list[Transfer] = dataclasses.field(default_factory=list)
    names: list[tuple[float, str]] = dataclasses.field(default_factory=list)
    folded: list[Row] = dataclasses.field(default_factory=list)

    @property
    def rows(self) -> list[Row]:
        """The rows that hold its bars: itself, or those that are folded in it."""
        return self.folded or [self]


@dataclasses.dataclass
class Band:
    """A device and its rows."""

    look: Look
    idle: float
    y: float
    height: float
    rows: list[Row]


def thread_label(event: Event) -> str:
    """The name of the row of an event: its thread; of what is on the wire, where it goes."""
    return f"to {look(event.device).label}" if event.is_sent else event.thread


def _is_thread(events: Sequence[Event]) -> bool:
    """Whether something runs in a row: neither faults nor tensors on the wire do."""
    return not (events[0].is_fault or events[0].is_sent)


def _height(row: Row) -> float:
    return row.height + (NAMES_ROW if row.names else 0)


class Bands:
    """A trace, laid out on a page of some width; `mark` gives the letter that a bar is to show, if any."""

    def __init__(self, step: Trace, width: float, mark: Callable[[Event], str] = lambda event: "") -> None:
        if width < LEAST_WIDTH:
            raise ValueError(f"A timeline needs a width of at least {LEAST_WIDTH:g} pixels, not {width:g}.")
        self.trace, self.width, self.mark = step, width, mark
        devices = in_order(step.devices())
        labels = [marks.badge_width(look(d)) + 6 + text_width(look(d).label, 12, bold=True) for d in devices]
        threads = {thread_label(event) for event in (*step.events, *step.details)}
        labels += [marks.BADGE_HEIGHT + 16 + text_width(name, 11) for name in [*threads, "receives"]]
        self.left = math.ceil(max(labels) + 2 * LABEL_GAP)
        self.right = width - IDLE_ROOM
        on = grouped((each.device, each.name) for each in (*step.events, *step.details))
        self.forms = {device: forms(names) for device, names in on.items()}  # they are read together
        self.sent = forms(each.producer.removesuffix("/read") for each in step.transfers)
        self.bands: list[Band] = []
        y = 0.0
        for device in devices:
            self.bands.append(self._make(device, y))
            y += self.bands[-1].height + BAND_GAP
        self.height = y - BAND_GAP
        rows = [row for band in self.bands for row in band.rows]
        self._row_of = {id(span): row for row in rows for span in (*row.events, *row.transfers)}
        self._makers = self._find_makers()

    @property
    def drawn(self) -> list[Transfer]:
        """The transfers for which there was room."""
        return [transfer for transfer in self.trace.transfers if id(transfer) in self._row_of]

    def left_out(self, band: Band) -> list[Row]:
        """The tensors of a device for which there is no room, in a row without height, if there are any."""
        device = band.look.device
        sent = [e for e in self.trace.details if e.device == device and id(e) not in self._row_of]
        received = [t for t in self.trace.transfers if t.device == device and id(t) not in self._row_of]
        return [Row("", band.y, 0.0, events=sent, transfers=received)] if sent or received else []

    def x(self, time: float) -> float:
        return self.left + time / self.trace.total * (self.right - self.left)

    def _make(self, device: str, top: float) -> Band:
        events = [event for event in (*self.trace.events, *self.trace.details) if event.device == device]
        sent = self._most_telling([event for event in events if event.is_sent])
        events = [event for event in events if not event.is_sent] + sent
        events.sort(key=lambda e: (e.start, -e.end))
        y = top + BAND_PADDING
        threads = grouped((event.thread, event) for event in events)
        y += ROW if len(threads) > 1 else 0  # the device's label gets a row of its own
        idle = {name: self._idle(own) for name, own in threads.items() if _is_thread(own)}
        busiest = min(idle, key=lambda name: (idle[name], natural(name)), default="")  # is seen, however idle
        quiet = [name for name in sorted(idle, key=natural) if idle[name] >= QUIET and name != busiest]
        rows: list[Row] = []
        for thread in sorted({*threads} - {*quiet}, key=natural) or [""]:
            rows += self._thread(threads.get(thread, []), len(threads) > 1, y)
            y = rows[-1].y + _height(rows[-1])
        received = [transfer for transfer in self.trace.transfers if transfer.device == device]
        y += 4 if received else 0
        waits = self._receiving(received, y)
        rows += waits
        y += RECEIVE_ROW * len(waits)
        if quiet:
            rows.append(self._fold([threads[name] for name in quiet], y))
            y += FOLDED
        return Band(look(device), self._idle(events), top, y + BAND_PADDING - top, rows)

    def _thread(self, events: list[Event], is_named: bool, y: float) -> list[Row]:
        """The rows of a thread, from `y` on."""
        rows: list[Row] = []
        for i, packed in enumerate(self._packed(events) or [[]]):
            named = is_named and i == 0
            idle = self._idle(events) if named and _is_thread(events) else None
            rows.append(Row(thread_label(events[0]) if named else "", y, ROW, idle, packed, names=self._names(packed)))
            y += _height(rows[-1])
        return rows

    def _receiving(self, received: list[Transfer], y: float) -> list[Row]:
        """The rows of what a device received; many as one, in which what comes first lies on top."""
        packed = self._packed(self._most_telling(received))
        rows = [
            Row("" if i else "receives", y + i * RECEIVE_ROW, RECEIVE_ROW, transfers=own)
            for i, own in enumerate(packed)
        ]
        if len(rows) <= MOST_OPEN:
            return rows
        every = sorted((each for own in packed for each in own), key=lambda each: (each.start, -each.end))
        return [Row("receives", y, RECEIVE_ROW, transfers=every, folded=rows)]

    def _fold(self, threads: Sequence[list[Event]], y: float) -> Row:
        """One line for all threads that are idle."""
        folded: list[Row] = []
        for events in threads:
            folded += self._thread(events, True, folded[-1].y + _height(folded[-1]) if folded else y)
        events = sorted((event for events in threads for event in events), key=lambda e: (e.start, -e.end))
        names = ", ".join(row.label for row in folded if row.label)
        label = names if text_width(names, 11) <= self.left - 2 * LABEL_GAP else f"{len(threads)} idle rows"
        return Row(label, y, FOLDED, self._idle(events), events, folded=folded)

    def _packed(self, spans: Sequence[Span]) -> list[list[Span]]:
        """As few rows as hold the bars without overlap; what overlaps by less than a pixel does not."""
        rows: list[list[Span]] = []
        for span in spans:
            free = (row for row in rows if self.x(row[-1].end) <= self.x(span.start) + 0.75)
            row = next(free, None)
            if row is None:
                rows.append([span])
            else:
                row.append(span)
        return rows

    def _most_telling(self, received: list[Span]) -> list[Span]:
        """As many as the rows hold, the largest first: a loop over two devices exchanges hundreds of small tensors."""
        rows: list[list[tuple[float, float]]] = [[] for _ in range(MOST_RECEIVING)]
        count, room = len(self.trace.transfers), 0.0
        if received and count > MANY_RECEIVED:  # of this device as many as are its share
            room = len(rows) * (self.right - self.left) * count / (MOST_RECEIVED * len(received))
        chosen = set()
        for transfer in sorted(received, key=lambda t: (-t.bytes, t.start)):
            start = self.x(transfer.start)
            end = max(self.x(transfer.end), start + room)
            for row in rows:
                i = bisect.bisect(row, (start, end))
                if (not i or row[i - 1][1] <= start + 0.75) and (i == len(row) or end <= row[i][0] + 0.75):
                    row.insert(i, (start, end))
                    chosen.add(id(transfer))
                    break
        return [transfer for transfer in received if id(transfer) in chosen]

    def _find_makers(self) -> dict[int, Event]:
        """The event that made each transfer's tensor: in a loop, that of the same turn."""
        events = sorted((e for band in self.bands for row in band.rows for e in row.events), key=lambda e: e.end)
        own = (event for event in events if not event.part and event.op not in MOVED.values())
        made = grouped(((event.device, event.name), event) for event in own)
        ends = {key: [event.end for event in events] for key, events in made.items()}
        makers, turns = {}, Counter[tuple[str, str]]()
        for transfer in sorted(self.trace.transfers, key=lambda t: t.end):
            key = (transfer.source, transfer.producer)
            turn = turns[transfer.tensor, transfer.device]
            turns[transfer.tensor, transfer.device] += 1
            # A tensor that is sent only in some turns: no later than it arrived.
            if key in made:
                last = bisect.bisect(ends[key], transfer.end) - 1
                makers[id(transfer)] = made[key][min(turn, max(last, 0))]
        return makers

    def single(self) -> set[int]:
        """The bars that are drawn singly, by their `id`; if there are too many, the longest that can be seen."""
        events = [event for band in self.bands for row in band.rows for event in row.events]
        if len(events) > MANY_BARS:
            seen = (event for event in events if event.is_fault or self.extent(event)[1] > LEAST_BAR)
            events = heapq.nlargest(MOST_SINGLE, seen, key=lambda e: (e.is_fault, e.duration))
        return {id(event) for event in events}

    def merged(self, events: Iterable[Event], of: Callable[[Event], Look]) -> dict[Look, list[list[int]]]:
        """The pixels that bars take, as runs (from, to), by the look of the longest bar in each."""
        longest: dict[int, Event] = {}
        for event in events:
            x, width = self.extent(event)
            for pixel in range(math.floor(x), math.ceil(x + width)):
                if pixel not in longest or longest[pixel].duration < event.duration:
                    longest[pixel] = event
        runs: dict[Look, list[list[int]]] = {}
        for pixel in sorted(longest):
            own = runs.setdefault(of(longest[pixel]), [])
            if own and own[-1][1] == pixel:
                own[-1][1] = pixel + 1
            else:
                own.append([pixel, pixel + 1])
        return runs

    def name_inside(self, event: Event) -> str | None:
        """The text in a bar: its mark, and its name if there is room for both."""
        mark = self.mark(event)
        fits = mark and text_width(mark, 11) <= self.extent(event)[1] - 2
        name = self._name_after_mark(event)
        return " ".join(filter(None, [mark, name])) if name else mark if fits else None

    def _name_after_mark(self, event: Event) -> str | None:
        """The longest form of an op's name for which its bar has room next to the mark, cut if need be."""
        mark = self.mark(event)
        room = self.extent(event)[1] - 8 - (text_width(f"{mark} ", 11) if mark else 0)
        cut = shorten(readable(event.name).rpartition("/")[2], room, 11) if room >= LEAST_CUT else ""
        kind = "" if event.op in MOVED.values() else event.op  # what moves is called by its name
        names = [event.called(name) for name in (*self.forms[event.device][event.name], kind, cut) if name]
        return next((name for name in names if text_width(name, 11) <= room), None)

    def _names(self, events: Sequence[Event]) -> list[tuple[float, str]]:
        """Names below the bars, of the longest ops first, for as long as they do not touch."""
        named: list[tuple[float, str]] = []
        taken: list[tuple[float, float]] = []
        for event in sorted(events, key=lambda e: (-e.duration, e.start)):
            x, width = self.extent(event)
            if width < LEAST_NAMED or self._name_after_mark(event):
                continue
            *_, last = names = self.forms[event.device][event.name]
            fitting = (name for name in names if text_width(name, 11) <= NAME_ROOM)
            name = event.called(next(fitting, shorten(last, NAME_ROOM, 11)))
            half = text_width(name, 11) / 2
            middle = max(self.left + half, min(x + width / 2, self.right - half))
            if all(middle + half + 6 <= low or high + 6 <= middle - half for low, high in taken):
                named.append((middle, name))
                taken.append((middle - half, middle + half))
        return sorted(named)

    def _idle(self, events: Iterable[Event]) -> float:
        """The share of the step in which none of the events was running; a tensor on the wire does not run."""
        busy, reached = 0.0, 0.0
        ran = sorted((event for event in events if not event.is_fault and not event.is_sent), key=lambda e: e.start)
        for event in ran:
            busy += max(0.0, event.end - max(event.start, reached))
            reached = max(reached, event.end)
        if ran and not busy:
            return math.nextafter(1.0, 0.0)  # all of it took less than a trace's resolution
        return 1 - busy / self.trace.total

    def extent(self, span: Event | Transfer) -> tuple[float, float]:
        x, end = self.x(span.start), self.x(span.end)
        width = end - x - (1.0 if end - x > 4 else 0.0)
        return min(x, self.right - LEAST_BAR), max(width, LEAST_BAR)

    def maker(self, transfer: Transfer) -> Event | None:
        """The event that made a transfer's tensor, if it is in the trace."""
        return self._makers.get(id(transfer))

    def arrival(self, transfer: Transfer) -> Row:
        """The row in which the wait for a transfer stands."""
        return self._row_of[id(transfer)]

    def origin(self, transfer: Transfer) -> tuple[float, Row]:
        """Where a transfer comes from: the end of the op that made it, or its device's first row."""
        maker = self.maker(transfer)
        if maker is not None:
            x, width = self.extent(maker)
            return x + width, self._row_of[id(maker)]
        band = next(b for b in self.bands if b.look.device == transfer.source)
        return self.x(transfer.start), band.rows[0]
