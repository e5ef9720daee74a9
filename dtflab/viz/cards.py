"""The picture of GPU memory: which program holds how much of each card, how much of that its tensors use, what is free.

A bar for each card, as long as its memory, with a piece for each program that holds some: pale what it only keeps from
others, full what tensors use. It is drawn from `smi()`, so it is of one moment, and of all programs of the host.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from dtflab.base.events import CardEvent
from dtflab.base.text_table import plural, text_table
from dtflab.machine.cards import MIB
from dtflab.machine.smi import NO_GPUS, CardState, HostState, Process, Smi
from dtflab.viz.drawing import marks
from dtflab.viz.drawing.palette import GREY, PROGRAMS, Look
from dtflab.viz.drawing.picture import Picture
from dtflab.viz.drawing.style import room, rules
from dtflab.viz.drawing.svg import Markup, hatch_path, join, tag, text_width
from dtflab.viz.drawing.units import memory_size

_BAR, _ROW, _BEHIND = 24.0, 36.0, 6.0


Program = tuple[int, str]  # its process and its name


class _Piece(NamedTuple):
    """A part of a card: whose (None: free), and how many bytes, of which tensors use some."""

    process: Process | None
    held: int
    in_use: int

    @property
    def size(self) -> str:
        """In MiB, as `smi` shows it: begun ones count as held, not as free."""
        return f"{self.held // MIB if self.process is None else -(-self.held // MIB):,} MiB"


_Pieces = dict[int, list[_Piece]]  # by card


def by_arrival(programs: Iterable[Program], events: Sequence[CardEvent]) -> list[Program]:
    """(pid, name) of programs in the order in which they came: process numbers start over now and then."""
    came = {(event.pid, event.program): i for i, event in reversed(list(enumerate(events)))}
    return sorted(programs, key=lambda who: (came.get(who, -1), who))  # who came long ago has no event any more


def cards(state: Smi, host: str = "", *, width: float | None = None, title: str = "GPU memory") -> Picture:
    """Picture which programs hold the memory of a host's cards, in the `state` that `smi()` gave.

    `host` is a name in `state.hosts`; by default the first, which is this one. Programs have letters in the order in
    which they came. ValueError without a GPU, or for a host that is not there.
    """
    there = host_of(state, host)
    programs = by_arrival({(process.pid, process.name) for process in there.processes}, state.events)
    looks = {program: program_look(number, *program) for number, program in enumerate(programs)}
    pieces = {card.index: list(_pieces(card, there.processes)) for card in there.cards}
    heads = ("card", "program", "held", "of it in tensors")
    rows = [[card.index, *_words(piece)] for card in there.cards for piece in pieces[card.index]]
    summary = f"{plural(len(there.cards), 'card')} of {there.name}, {plural(len(programs), 'program')}"
    head = marks.heading(title, summary, room(width))
    legend, height = marks.legend([(one, "") for one in looks.values()], room(width), head.height + 10)
    drawing = _Drawing(there.cards, pieces, looks, head.height + height + 18, room(width))
    parts = join([head, legend, *drawing.draw()])
    text = f"{summary}\n{text_table(heads, rows)}"
    return Picture(parts, drawing.size, rules("cards"), _sentence(there, pieces), [(title, heads, rows)], text)


# -- data -------------------------------------------------------------------------------------------------------


def host_of(state: Smi, name: str) -> HostState:
    """The host of that name, or the first of this process's own that has cards; ValueError if there is none."""
    found = [host for host in state.hosts if host.cards and (host.name == name if name else host.ours)]
    if found:
        return found[0]
    names = ", ".join(host.name for host in state.hosts)
    raise ValueError(f"No host named {name!r} has GPUs. Hosts: {names}." if names and name else NO_GPUS)


def program_look(number: int, pid: int, name: str) -> Look:
    """How program `number` of a picture is drawn and called."""
    letter = chr(ord("A") + number) if number < 26 else str(number)
    return Look("", PROGRAMS[number % len(PROGRAMS)], letter, f"{name} ({pid})", number % 2 == 1)


def _pieces(card: CardState, processes: Sequence[Process]) -> Iterator[_Piece]:
    for process in processes:
        if process.gpu == card.index:
            yield _Piece(process, process.held, process.in_use)
    yield _Piece(None, card.memory_bytes - card.used, 0)


def _words(piece: _Piece) -> list[str]:
    if piece.process is None:
        return ["free", piece.size, ""]
    return [f"{piece.process.name} ({piece.process.pid})", piece.size, memory_size(piece.in_use)]


def _free(piece: _Piece) -> str:
    return f"free {piece.size}"


def _sentence(host: HostState, pieces: _Pieces) -> str:
    lines = [f"card {index}: " + ", ".join(" ".join(_words(piece)[:2]) for piece in pieces[index]) for index in pieces]
    return f"Memory of the GPUs of {host.name}. {'; '.join(lines)}."


# -- drawing ----------------------------------------------------------------------------------------------------


class _Drawing:
    """A row for each card."""

    def __init__(
        self, states: Sequence[CardState], pieces: _Pieces, looks: dict[Program, Look], top: float, width: float
    ) -> None:
        self.states, self.pieces, self.looks, self.top = states, pieces, looks, top
        labels = [f"GPU {state.index}  {state.name}" for state in states]
        self.left = max(text_width(label) for label in labels) + 10
        most = max(state.memory_bytes for state in states)
        self.scale = (width - self.left) / most
        free = [own[-1] for own in pieces.values()]
        if narrow := [_free(piece) for piece in free if not self._has_room(_free(piece), piece)]:  # they stand behind
            self.scale = (width - self.left - max(map(text_width, narrow)) - _BEHIND) / most
        self.right = self.left + most * self.scale
        self.size = (width, top + len(states) * _ROW)

    def draw(self) -> Iterator[Markup]:
        for row, state in enumerate(self.states):
            y = self.top + row * _ROW
            yield tag("text", f"GPU {state.index}", x=0, y=y + 16, class_="b")
            yield tag("text", state.name, x=text_width("GPU 0  "), y=y + 16, class_="soft")
            yield marks.stretch((self.left, self.right), *self._row(self.pieces[state.index], y))

    def _row(self, pieces: Sequence[_Piece], y: float) -> Iterator[Markup]:
        x = self.left
        for piece in pieces:
            yield self._piece(piece, x, y)
            x += piece.held * self.scale

    def _piece(self, piece: _Piece, x: float, y: float) -> Markup:
        width = max(piece.held * self.scale, 1.0)
        if piece.process is None:
            text, bar = _free(piece), tag("rect", x=x, y=y, width=width, height=_BAR, class_="free")
            if self._has_room(text, piece):
                return join([bar, self._label((text,), x, y, width)])
            return join([bar, tag("text", text, x=x + width + _BEHIND, y=y + 16)])
        one = self.looks[piece.process.pid, piece.process.name]
        used = min(piece.in_use, piece.held) * self.scale
        title = tag("title", f"{one.label}: {piece.size} held, {memory_size(piece.in_use)} in tensors")
        shape: dict[str, Any] = {"x": x, "y": y, "height": _BAR, "fill": one.colour.fill}
        whole = tag("rect", width=width, class_="held", stroke=one.colour.line, **shape)
        parts = [title, whole, tag("rect", width=used, stroke=one.colour.rim, **shape)]
        if one.hatched:
            lines = hatch_path(x, y, width, _BAR, 7)
            parts.append(tag("path", d=lines, class_="hatch", stroke=GREY.line, stroke_opacity=0.5))
        return tag("g", *parts, self._label((f"{one.letter}  {piece.size}", one.letter), x, y, width))

    def _has_room(self, text: str, piece: _Piece) -> bool:
        return text_width(text) <= piece.held * self.scale - 2

    def _label(self, texts: Sequence[str], x: float, y: float, width: float) -> Markup:
        """The first of the texts that has room."""
        text = next((text for text in texts if text_width(text) <= width - 2), "")
        return tag("text", text, x=x + width / 2, y=y + 16, class_="mid halo")
