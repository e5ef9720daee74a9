"""The picture of one card over time: which program held how much of it, what was free, and which program was refused.

Time runs to the right, with a step for each event, however long nothing happened before it: programs begin within
milliseconds and then run for hours. Every program is a band, from when it takes memory to when it ends. Where one was
refused, a dashed frame shows what it wanted: it sticks out above the card's capacity. A list says when and what.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dtflab.base.events import CardEvent
from dtflab.base.text_table import plural, text_table
from dtflab.machine.cards import MIB
from dtflab.machine.smi import CardState, Smi
from dtflab.viz.cards import Program, by_arrival, host_of, program_look
from dtflab.viz.drawing import marks
from dtflab.viz.drawing.palette import GREY, Look
from dtflab.viz.drawing.picture import Picture, Table
from dtflab.viz.drawing.readings import Reading, read, reading
from dtflab.viz.drawing.style import room, rules
from dtflab.viz.drawing.svg import Markup, hatch_path, join, number, tag, text_width, wrapped
from dtflab.viz.drawing.units import duration

MOST_EVENTS = 20  # that are drawn
_PLOT, _LINE, _BELOW = 190.0, 18.0, 44.0
_HEADROOM = 1.35  # of the capacity: what was asked for may stick out so far
_Held = dict[Program, int]  # bytes of a card


class _Rect(NamedTuple):
    x: float
    y: float
    width: float
    height: float

    def word(self, *texts: str, class_: str) -> Iterator[Markup]:
        """In the middle, the first of the texts that has room."""
        fits = (text for text in texts if self.height > 12 and text_width(text, 11, bold=True) <= self.width - 4)
        if text := next(fits, ""):
            x, y = self.x + self.width / 2, self.y + self.height / 2 + 4
            yield tag("text", text, x=x, y=y, class_=f"s11 mid halo {class_}")


class _Moment(NamedTuple):
    """An event: which program held how much (bytes) just after it, and how many events it stands for."""

    event: CardEvent
    held: _Held
    smaller: int = 0  # pieces that the same program was refused right after the first

    @property
    def program(self) -> Program:
        return self.event.pid, self.event.program


def card_history(
    state: Smi, card: int = 0, *, host: str = "", since: Smi | None = None, width: float | None = None, title: str = ""
) -> Picture:
    """Picture the programs that held memory of a simulated card, one step for each event, and refusals; in MiB.

    `state` is what `smi()` gave: its events are drawn, with `since` only those after that earlier one, and of more
    than 20 the last. `card` counts the cards of the `host`, by default of the first that has some. ValueError without
    such a card, or if nothing happened to it.
    """
    there = host_of(state, host)
    if not 0 <= card < len(there.cards):
        raise ValueError(f"{there.name} has no card {card}, but {plural(len(there.cards), 'card')}, counted from 0.")
    after = since.moment if since is not None else 0.0
    events = [e for e in state.events if (e.host, e.card) == (there.name, card) and e.at > after]
    if not events:
        raise ValueError(f"Nothing happened to card {card} of {there.name}: no program took memory of it.")
    now = {(p.pid, p.name): p.held for p in there.processes if p.gpu == card}
    start, moments = _moments(events, now)
    programs = by_arrival({*start, *(moment.program for moment in moments)}, state.events)
    title = title or f"Memory of GPU {card} over time"
    drawing = _Drawing(there.cards[card], programs, start, moments, room(width), title)
    return drawing.picture(there.name)


# -- data -------------------------------------------------------------------------------------------------------


def _moments(events: Sequence[CardEvent], now: _Held) -> tuple[_Held, list[_Moment]]:
    """The programs' memory before the first event, and after each; consecutive refusals of one are one moment."""
    first = {(e.pid, e.program): e.before for e in reversed(events)}
    held = start = {who: size for who, size in (now | first).items() if size}
    moments: list[_Moment] = []
    for event in events:
        who = event.pid, event.program
        held = {**held, who: event.held}
        again = moments and event.what == "refused" == moments[-1].event.what and who == moments[-1].program
        if again:
            moments[-1] = moments[-1]._replace(smaller=moments[-1].smaller + 1)
        else:
            moments.append(_Moment(event, held))
    if len(moments) > MOST_EVENTS:
        start, moments = moments[-MOST_EVENTS - 1].held, moments[-MOST_EVENTS:]
    return start, moments


def _mib(nbytes: int, up: bool = True) -> str:
    """Memory in MiB: held or wanted memory is rounded up, free memory down, as `smi` does."""
    return f"{-(-nbytes // MIB) if up else nbytes // MIB:,} MiB"


# -- drawing ----------------------------------------------------------------------------------------------------


class _Drawing:
    """A plot of bands, a number below each event, and the list of events."""

    def __init__(
        self, card: CardState, programs: list[Program], start: _Held, moments: list[_Moment], width: float, title: str
    ) -> None:
        self.programs = programs
        self.card, self.moments, self.width, self.title = card, moments, width, title
        self.states = [start, *(moment.held for moment in moments)]
        self.looks = {who: program_look(i, *who) for i, who in enumerate(self.programs)}
        span = moments[-1].event.at - moments[0].event.at
        self.summary = f"{plural(len(self.programs), 'program')}, {plural(len(moments), 'event')}"
        self.summary += f" in {duration(span * 1e6)}" if span else ""
        self.head = marks.heading(title, self.summary, width)
        self.legend, height = marks.legend([(one, "") for one in self.looks.values()], width, self.head.height + 10)
        self.left = text_width(_mib(card.memory_bytes), 11) + 8
        self.top = self.head.height + 10 + height + 4
        self.bottom = self.top + _PLOT
        self.after = max(text_width(self._when(moment), 11) for moment in moments) + 46
        self.lines = [wrapped(self._words(moment), width - self.after, bold=True) for moment in moments]

    def picture(self, host: str) -> Picture:
        """All of it."""
        plot = (*self._axis(), *self._bands(), *self._free(), *self._refusals(), *self._capacity(), *self._numbers())
        parts = join([self.head, self.legend, marks.stretch((self.left, self.width), *plot), *self._list()])
        events = "; ".join(f"{i}: {self._words(moment)}" for i, moment in enumerate(self.moments, 1))
        sentence = f"{self.title}, {_mib(self.card.memory_bytes, up=False)}, on {host}: {self.summary}. "
        table, height = self._table(), self.bottom + _BELOW + _LINE * sum(map(len, self.lines)) - 8
        text = f"{self.title} ({self.summary})\n{text_table(*table[1:])}"
        size, live = (self.width, height), read([self._reading(table)])
        return Picture(parts, size, rules("card_history"), f"{sentence}{events}.", [table], text, live=live)

    def _reading(self, table: Table) -> Reading:
        """The memory that each program holds after each event."""
        _, heads, rows = table

        def says(i: int) -> list[str]:
            number, _, words, *held = rows[i]
            return [f"{number}: {words}", *(f"{label}: {size}" for label, size in zip(heads[3:], held, strict=True))]

        box = self.left, self.top, self.width, self.bottom
        return reading(box, [self.x(step) for step in range(1, len(rows) + 1)], says, holds=True)

    def x(self, step: int) -> float:
        """Where state `step` begins: the first is what was there before, half as wide as the others."""
        part = (self.width - self.left) / (len(self.moments) + 0.5)
        return self.left + max(0.0, step - 0.5) * part

    def y(self, nbytes: float) -> float:
        """The height of that many bytes above the card's first."""
        return self.bottom - nbytes / (self._most * MIB) * _PLOT

    @property
    def _most(self) -> float:
        """MiB at the top of the plot: the capacity, or what was wanted, as far as there is headroom for it."""
        wanted = [sum(m.held.values()) + m.event.asked for m in self.moments if m.event.what == "refused"]
        capacity = self.card.memory_bytes
        return min(max([capacity * 1.06, *wanted]), capacity * _HEADROOM) / MIB

    def _axis(self) -> Iterator[Markup]:
        for share in (0.0, 0.5):
            y = self.y(self.card.memory_bytes * share)
            yield tag("path", d=f"M{number(self.left)} {number(y)}H{number(self.width)}", class_="grid")
            text = _mib(int(self.card.memory_bytes * share), up=False) if share else "0"
            yield tag("text", text, x=self.left - 6, y=y + 4, class_="s11 soft end")

    def _bands(self) -> Iterator[Markup]:
        """Each program's band lies on those of the programs before it."""
        base = [0] * len(self.states)
        for who in self.programs:
            top = [below + state.get(who, 0) for below, state in zip(base, self.states, strict=True)]
            yield from self._band(self.looks[who], list(zip(base, top, strict=True)))
            base = top

    def _band(self, one: Look, levels: Sequence[tuple[int, int]]) -> Iterator[Markup]:
        """A rectangle for each time in which it stays where it is; wherever its size is new, its letter and that."""
        named = 0
        for (low, high), steps in itertools.groupby(range(len(levels)), key=lambda step: levels[step]):
            own = list(steps)
            rect = self._rect(own[0], own[-1], low, high)
            if high > low:
                yield tag("rect", **rect._asdict(), class_="held", fill=one.colour.fill, stroke=one.colour.line)
                if one.hatched:
                    yield tag("path", d=hatch_path(*rect, 7), class_="hatch", stroke=GREY.line, stroke_opacity=0.5)
                size = [f"{one.letter}  {_mib(high - low)}"] if high - low != named else []
                yield from rect.word(*size, one.letter, class_="b")
            named = high - low

    def _rect(self, first: int, last: int, low: int, high: int) -> _Rect:
        """From one state to another, between two amounts of bytes."""
        x, y = self.x(first), self.y(high)
        return _Rect(x, y, self.x(last + 1) - x, self.y(low) - y)

    def _free(self) -> Iterator[Markup]:
        """How much is free at the end, above the last state's bands."""
        free, last = self.card.memory_bytes - self.card.used, len(self.moments)
        rect = self._rect(last, last, self.card.used, self.card.memory_bytes)
        if self.moments[-1].event.what == "refused":  # the frame has the left half
            rect = rect._replace(x=rect.x + rect.width / 2, width=rect.width / 2)
        yield from rect.word(f"free {_mib(free, up=False)}", "free", class_="soft")

    def _refusals(self) -> Iterator[Markup]:
        """Each refused request on top of the memory in use, with a cross in it."""
        for step, moment in enumerate(self.moments, 1):
            if moment.event.what == "refused":
                held = sum(moment.held.values())
                whole = self._rect(step, step, held, held + moment.event.asked)
                yield from self._wanted(whole, self.looks[moment.program], self._words(moment))

    def _wanted(self, whole: _Rect, one: Look, words: str) -> Iterator[Markup]:
        """A frame of half the step's width, open above if it is higher than the plot; whose it is, and a cross."""
        top, limit = max(whole.y, self.top), self.y(self.card.memory_bytes)
        left, right, bottom = whole.x + 3, whole.x + whole.width / 2, whole.y + whole.height
        d = f"M{number(left)} {number(top)}V{number(bottom)}H{number(right)}V{number(top)}" + "Z" * (top == whole.y)
        yield tag("path", tag("title", words), d=d, class_="asked", stroke=one.colour.line)
        x, y = (left + right) / 2, (top + limit) / 2
        if right - left > 40:
            yield tag("text", one.letter, x=x - 4, y=y + 4, class_="s11 b end")
            x += 8
        yield tag("path", d=f"M{number(x - 5)} {number(y - 5)}l10 10m0 -10l-10 10", class_="cross", data_at=x)

    def _capacity(self) -> Iterator[Markup]:
        y = self.y(self.card.memory_bytes)
        yield tag("path", d=f"M{number(self.left)} {number(y)}H{number(self.width)}", class_="limit")
        yield tag("text", _mib(self.card.memory_bytes, up=False), x=self.left - 6, y=y + 4, class_="s11 b end")

    def _numbers(self) -> Iterator[Markup]:
        yield tag("text", "event", x=self.left - 6, y=self.bottom + 18, class_="s11 soft end")
        for step in range(1, len(self.moments) + 1):
            x = self.x(step)
            yield tag("path", d=f"M{number(x)} {number(self.bottom)}v6", class_="moment")
            yield tag("text", step, x=x, y=self.bottom + 18, class_="s11 b mid")

    def _list(self) -> Iterator[Markup]:
        """Time, program and event, in a line each, or several if they are long."""
        y = self.bottom + _BELOW
        for i, (moment, lines) in enumerate(zip(self.moments, self.lines, strict=True), 1):
            yield tag("text", i, x=20, y=y, class_="s11 b end")
            yield tag("text", self._when(moment), x=self.after - 12, y=y, class_="s11 soft end")
            for line in lines:
                yield tag("text", line, x=self.after, y=y, class_="b" if moment.event.what == "refused" else None)
                y += _LINE

    # -- words --------------------------------------------------------------------------------------------------

    def _when(self, moment: _Moment) -> str:
        seconds = moment.event.at - self.moments[0].event.at
        return f"+{duration(seconds * 1e6)}" if seconds else "0"

    def _words(self, moment: _Moment) -> str:
        event, letter = moment.event, self.looks[moment.program].letter
        if event.what == "refused":
            text = f"{letter} is refused: wants {_mib(event.asked)}, {_mib(event.free, up=False)} are free"
            return f"{text}; then {plural(moment.smaller, 'smaller piece')}" if moment.smaller else text
        if event.what == "ends":
            return f"{letter} ends, gives back {_mib(event.before)}"
        more = f" more, holds {_mib(event.held)}" if event.before else ""
        return f"{letter} takes {_mib(event.held - event.before)}{more}"

    def _table(self) -> Table:
        labels = [f"{one.letter}: {one.label}" for one in self.looks.values()]
        heads = ("", "at, s", "event", *labels, "free")
        rows = []
        for i, moment in enumerate(self.moments, 1):
            free = self.card.memory_bytes - self._unused - sum(moment.held.values())
            held = [_mib(moment.held.get(who, 0)) for who in self.programs]
            at = f"{moment.event.at - self.moments[0].event.at:.3f}"
            rows.append([i, at, self._words(moment), *held, _mib(free, up=False)])
        return self.title, heads, rows

    @property
    def _unused(self) -> int:
        """The driver's own bytes: in use, but no program's."""
        return self.card.used - sum(self.states[-1].values())
