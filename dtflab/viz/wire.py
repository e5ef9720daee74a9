"""The picture of the wire: calls between tasks, one below the other, as a sequence chart.

Clients and tasks are columns, time goes down. A call is an arrow from caller to callee; an answer with data is a dashed
arrow. Calls of the same kind that follow each other are one arrow with a count. A RecvTensor whose tensor was pushed
has no request: its dashed arrow says so. A bar on a column is a step while its master works on it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from dtflab.base.events import Call
from dtflab.base.text_table import plural, text_table
from dtflab.machine.watch import Watch
from dtflab.viz.drawing import marks
from dtflab.viz.drawing.palette import together
from dtflab.viz.drawing.picture import Picture, Table
from dtflab.viz.drawing.style import room, rules
from dtflab.viz.drawing.svg import Markup, arrow_head, join, number, shorten, tag, text_width
from dtflab.viz.drawing.units import byte_size, duration
from dtflab.viz.layout.shapes import Point
from dtflab.viz.participants import in_line, is_task, party, watched

MOST_ROWS = 60  # of arrows; the tables know more
_MOST_TABLE_ROWS = 1000
_ROW, _LEFT, _LEAST_COLUMN = 28.0, 66.0, 96.0
_MOST_NAMES, _LEAST_NAME = 3, 12.0  # of tensors on one arrow; room for what is left of a long name: …
_ASIDE = 30.0  # length of an arrow among those that share a column
_OTHERS = "others"
# Calls whose answers carry data; the others are answered at once.
_ANSWERED = ("RecvTensor", "RunStep", "PartialRun", "PartialRunSetup", "CreateSession", "ExtendSession", "Reset")


def wire(seen: Watch | Sequence[Call], step: int | None = None, *, width: float | None = None,
         title: str = "Calls") -> Picture:  # fmt: skip
    """Picture the calls that a watch saw (`with tf.watch() as seen:`), or those of `cluster.calls()`.

    `step` is the number of one step, counted from 1, or from the end: -1 is the last. With it, only the calls between
    the beginning and the end of that step are drawn. ValueError if there was no such step, or no call at all. More than
    60 arrows are not drawn; the picture then says how many are left out, and its tables count them all.
    """
    given = seen if isinstance(seen, list | tuple) else watched(seen).calls
    calls = sorted(given, key=lambda call: (call.at, call.turn))
    if not calls:
        raise ValueError("Nothing was called while this was watched. Run something in the block: with tf.watch() as …")
    numbers = _step_numbers(calls)
    if step is not None:
        calls = _of_step(calls, step, numbers)
    with together(name for call in calls for name in (call.source, call.target) if is_task(name)):
        chart = _Chart(calls, numbers, room(width), title)
        sentence = f"{title}: {chart.summary()}. {_counts(calls)}."
        tables, text = _tables(calls, numbers), _text(calls, chart.summary())
        return Picture(chart.drawing, chart.size, rules("wire"), sentence, tables, text, live=chart.live())


def _step_numbers(calls: Sequence[Call]) -> dict[int, int]:
    """Ids of steps → their numbers, in the order in which they began."""
    steps = dict.fromkeys(call.step for call in calls if call.step)
    return {step: i + 1 for i, step in enumerate(steps)}


def _of_step(calls: Sequence[Call], step: int, numbers: dict[int, int]) -> list[Call]:
    """The calls of one step, and the graphs that its master registered for it, which is done within it."""
    wanted = len(numbers) + 1 + step if step < 0 else step
    ids = [each for each, number in numbers.items() if number == wanted]
    if not ids:
        were = "was" if len(numbers) == 1 else "were"
        raise ValueError(f"There is no step {step}: {plural(len(numbers), 'step')} {were} watched, counted from 1.")
    own = [call for call in calls if call.step == ids[0]]
    began, ended = min(call.at for call in own), max(call.ended for call in own)
    masters = {call.target for call in own if call.method == "RunStep"} or {call.source for call in own}
    return [
        call for call in calls
        if call.step == ids[0]
        or (call.method == "RegisterGraph" and began <= call.at <= ended and call.source in masters)
    ]  # fmt: skip


class _Arrow(NamedTuple):
    """A row of the chart: a call, or its answer; several of a kind that follow each other."""

    at: float
    calls: tuple[Call, ...]
    answer: bool

    def joins(self, other: _Arrow) -> bool:
        """True if `other`, which follows, can be part of it."""
        a, b = self.calls[0], other.calls[0]
        same = (self.answer, _kind(a), a.source, a.error, a.step) == (other.answer, _kind(b), b.source, b.error, b.step)
        return same and a.method != "RunStep"


def _arrows(calls: Sequence[Call]) -> list[_Arrow]:
    """Requests and answers in the order of time; consecutive ones of a kind are one row."""
    moments = [((call.at, call.turn), _Arrow(call.at, (call,), False)) for call in calls if not call.pushed]
    moments += [
        ((call.ended, call.answered), _Arrow(call.ended, (call,), True))
        for call in calls
        if call.method in _ANSWERED or call.error
    ]
    rows: list[_Arrow] = []
    for _, arrow in sorted(moments, key=lambda pair: pair[0]):
        if rows and rows[-1].joins(arrow):
            rows[-1] = rows[-1]._replace(calls=(*rows[-1].calls, *arrow.calls))
        else:
            rows.append(arrow)
    return rows


class _Chart:
    """Where everything stands."""

    def __init__(self, calls: Sequence[Call], numbers: dict[int, int], width: float, title: str) -> None:
        self.calls, self.width = calls, width
        self._numbers = numbers
        self.rows = _arrows(calls)
        self.drawn = self.rows[:MOST_ROWS]
        self._tensors = list(dict.fromkeys(filter(None, map(subject, calls))))[:MOST_ROWS]
        self._columns = self._places()
        head = marks.heading(title, self.summary(), width)
        legend, legend_height = marks.line_legend(_LEGEND, width, head.height + 8)
        self._top = head.height + 8 + legend_height + 50
        height = self._top + len(self.drawn) * _ROW + 6
        self.size = (width, height)
        chart = *self._lives(height), *self._work(), *self._draw_rows()
        self.drawing = join([head, legend, marks.stretch((_LEFT, width), *chart)])

    def summary(self) -> str:
        parties = {name for call in self.calls for name in (call.source, call.target)}
        clients = sum(not is_task(name) for name in parties)
        text = f"{plural(len(self.calls), 'call')} between {plural(clients, 'client')} and "
        text += plural(len(parties) - clients, "task")
        text += f", {byte_size(sum(call.nbytes for call in self.calls))} of tensors"
        if pushed := sum(call.pushed for call in self.calls):
            text += f" ({pushed:,} of them pushed)"
        if len(self.rows) > MOST_ROWS:
            text += f" (the first {MOST_ROWS} of {len(self.rows)} arrows are drawn)"
        if len(self._named) > len(self._shown):
            text += f" (the {len(self._shown)} that call most have columns of their own)"
        return text

    def _places(self) -> dict[str, float]:
        """The middle of each column; the least active participants share the last one."""
        counts = Counter(name for row in self.drawn for call in row.calls for name in (call.source, call.target))
        self._named = in_line(counts)
        most = max(2, int((self.width - _LEFT) / _LEAST_COLUMN))
        self._shown = self._named
        if len(self._named) > most:
            by_count = sorted(self._named, key=lambda name: -counts[name])
            clients = [name for name in by_count if not is_task(name)][: max(1, (most - 1) // 3)]
            tasks = [name for name in by_count if is_task(name)][: most - 1 - len(clients)]
            self._shown = [name for name in self._named if name in {*clients, *tasks}]
        heads = [*self._shown, *[_OTHERS] * (len(self._named) > len(self._shown))]
        self._gap = (self.width - _LEFT) / len(heads)
        places = {name: _LEFT + self._gap * (i + 0.5) for i, name in enumerate(heads)}
        return places | {name: places[_OTHERS] for name in self._named if name not in places}

    def _y(self, row: int) -> float:
        return self._top + row * _ROW + 20

    def _lives(self, height: float) -> Iterator[Markup]:
        """The head of each column, and the line below it."""
        others = len(self._named) - len(self._shown)
        for name, x in self._columns.items():
            if name not in self._shown and name != _OTHERS:
                continue
            one = party(name)
            label = shorten(f"{others} others" if name == _OTHERS else one.label, self._gap - 8, bold=True)
            yield tag("path", d=f"M{number(x)} {number(self._top)}V{number(height)}", class_="life")
            if name != _OTHERS:
                yield tag("g", marks.badge(one, x - marks.badge_width(one) / 2, self._top - 46), data_at=x)
            text = tag("text", label, x=x, y=self._top - 12, class_="b mid")
            yield tag("g", tag("title", one.label if name != _OTHERS else ", ".join(self._rest())), text)

    def _rest(self) -> list[str]:
        return [party(name).label for name in self._named if name not in self._shown]

    def _work(self) -> Iterator[Markup]:
        """A bar for each RunStep, from its request to its answer, or to the end of what is drawn."""
        for i, row in enumerate(self.drawn):
            call = row.calls[0]
            if call.method == "RunStep" and not row.answer and call.target in self._shown:
                ends = (j for j, other in enumerate(self.drawn) if other.answer and other.calls[0] is call)
                bottom = self._y(next(ends, len(self.drawn) - 1))
                x, colour = self._columns[call.target], party(call.target).colour
                size = {"x": x - 4, "y": self._y(i), "width": 8, "height": bottom - self._y(i)}
                yield tag("g", tag("rect", class_="work", fill=colour.fill, stroke=colour.line, **size), data_at=x)

    def _draw_rows(self) -> Iterator[Markup]:
        start = self.rows[0].at
        before = ""
        for i, row in enumerate(self.drawn):
            moment = _moment(row.at, start)
            if moment != before:
                yield tag("text", moment, x=_LEFT - 12, y=self._y(i) + 4, class_="s11 soft end")
            before = moment
            place = {"x": _LEFT - 8, "y": self._y(i) - 18, "width": self.width - _LEFT + 8, "height": _ROW - 2}
            hit = tag("rect", rx=3, fill_opacity=0, class_="hit", **place)
            title = tag("title", self._tooltip(row))
            yield tag("g", title, hit, *self._arrow(row, self._y(i)), class_="message")

    def live(self) -> dict[str, Any]:
        """The data of the view `wire`: of each arrow its ends, what it says and what its card says."""
        start = self.rows[0].at
        messages: list[dict[str, Any]] = []
        for i, row in enumerate(self.drawn):
            source, ends = self._ends(row)
            ways = [(end, source) for end in ends] if row.answer else [(source, end) for end in ends]
            words = {"says": _says(row, start), "card": _card(row, start)}
            messages.append({"ways": ways, "y": self._y(i), "colour": self._colour(row)} | words)
        before, span = "Nothing has been called yet.", [_LEFT, self.width]
        return {"view": "wire", "messages": messages, "before": before, "span": span}

    def _ends(self, row: _Arrow) -> tuple[float, list[float]]:
        """Where the callers' end of an arrow is, and its other ends; among those that share a column, next to it."""
        source = self._columns[row.calls[0].source]
        ends = list(dict.fromkeys(self._columns[each.target] for each in row.calls))
        return source, [source + _ASIDE] if ends == [source] else ends

    def _colour(self, row: _Arrow) -> str:
        call = row.calls[0]
        return party(call.target if row.answer else call.source).colour.line

    def _arrow(self, row: _Arrow, y: float) -> Iterator[Markup]:
        """One line to the farthest end on each side, with a head at each participant that it reaches."""
        call = row.calls[0]
        source, ends = self._ends(row)
        colour = self._colour(row)
        low, high = min(source, *ends), max(source, *ends)
        class_ = "call answer" if row.answer else "call"
        yield tag("path", d=f"M{number(low)} {number(y)}H{number(high)}", class_=class_, stroke=colour)
        for start in ends if row.answer else (source,):
            if low < start < high:  # not at an end of the line: a dot says from where
                yield tag("circle", cx=start, cy=y, r=3.5, fill=colour)
        for end in ends:
            tip, back = (source, end) if row.answer else (end, source)
            yield tag("g", tag("path", d=arrow_head((tip, y), (back, y), 7), fill=colour), data_at=tip)
        aside = ends == [source + _ASIDE]  # next to the last column there is no room
        bold = bool(row.answer and call.error)
        whole = low - 9 if aside else self.width - low - 9
        label = shorten(self._label(row, min(whole, max(high - low, self._gap) - 18)), whole, 11, bold)
        class_ = f"s11 halo{' b' * bold}{' end' * aside}"
        yield tag("text", label, x=low - 9 if aside else low + 9, y=y - 5, class_=class_)

    def _label(self, row: _Arrow, space: float) -> str:
        """The text on an arrow: a name is cut so that all fits into `space`; the event and its bytes stay whole."""
        call, times = row.calls[0], len(row.calls)
        few = call.method == "RecvTensor" and times <= _MOST_NAMES
        tensors = [name for each in row.calls if (name := subject(each))] if few else []
        many = f" × {times}" if times > 1 and not tensors else ""
        nbytes = sum(each.nbytes - each.sent if row.answer else each.sent for each in row.calls)
        size = f"  {byte_size(nbytes)}" if nbytes else ""
        about = ", ".join(tensors) or ("" if many or row.answer else subject(call))
        before = f"{'pushed' if call.pushed else call.method}{many}{'  ' * bool(about)}"
        if row.answer and call.error:
            before, size = f"{call.error}: {'' if about else f'{call.method} ended{many}'}", ""
        elif row.answer and about:
            before, way = "pushed " if call.pushed else f"tensor{'s' * (times > 1)} ", f": {_way(row)}"
            if text_width(before + about + way + size, 11) <= space:
                about += way
            elif not call.pushed and text_width(before + size, 11) + 4 * _LEAST_NAME > space:
                before = ""  # the name needs the room
        elif row.answer and not call.pushed:
            before = f"{call.method} ended{many}"
        room = max(_LEAST_NAME, space - text_width(before + size, 11))
        if text_width(about, 11) > room and times > 1 and tensors:
            each = (room - text_width(", ", 11) * (times - 1)) / times
            return f"{before}{', '.join(shorten(name, each, 11, others=self._tensors) for name in tensors)}{size}"
        return f"{before}{shorten(about, room, 11, others=self._tensors)}{size}"

    def _tooltip(self, row: _Arrow) -> str:
        lines = [f"{_kind(c)} {subject(c)}, {_way(row, c)}" for c in row.calls[:8]]
        return "\n".join([*lines, *(["…"] if len(row.calls) > 8 else [])])


def _way(row: _Arrow, *calls: Call) -> str:
    """From where to where an arrow goes, or some of its calls: ps:0, ps:1 → worker:0."""
    callers, called = (
        ", ".join(dict.fromkeys(party(name).label for name in names))
        for names in zip(*((call.source, call.target) for call in calls or row.calls), strict=True)
    )
    return f"{called} → {callers}" if row.answer else f"{callers} → {called}"


def _kind(call: Call) -> str:
    return f"{call.method} (pushed)" if call.pushed else call.method


def subject(call: Call) -> str:
    """The subject of a call, for people: the tensor of a RecvTensor, but not the handle of a graph."""
    if call.method == "RecvTensor" and call.detail:
        return re.sub(r"^edge_\d+_", "", call.detail.split(";")[3])
    return "" if call.method == "RunGraph" else call.detail


def _sample(line: str, class_: str, tip: Point, back: Point) -> Markup:
    head = tag("path", d=arrow_head(tip, back, 7), style="fill:var(--fg)")
    return join([tag("path", d=line, class_=class_, style="stroke:var(--fg)"), head])


_WORK = tag("rect", x=10, y=0, width=8, height=18, class_="work", style="fill:var(--soft);stroke:var(--soft)")
_LEGEND = (
    (_sample("M0 9H22", "call", (28, 9), (0, 9)), "a call; × 2: two in a row"),
    (_sample("M6 9H28", "call answer", (0, 9), (28, 9)), "its answer: what, from where to where, bytes"),
    (_WORK, "a master at work on a step"),
)


# -- words ---------------------------------------------------------------------------------------------------


def _says(row: _Arrow, start: float) -> str:
    """`At 1.2 ms, worker:0 asks ps:0: RecvTensor w.` An arrow in a sentence."""
    call, times = row.calls[0], len(row.calls)
    target = ", ".join(dict.fromkeys(party(each.target).label for each in row.calls))
    source = party(call.source).label
    names = [name for each in row.calls[:_MOST_NAMES] if (name := subject(each))]
    about = f" {', '.join(dict.fromkeys(names))}" if names else ""
    more = f" and {times - _MOST_NAMES} more" if names and times > _MOST_NAMES else ""
    what = f"{call.method}{about}{more}{f', {times} calls' if times > 1 else ''}"
    nbytes = sum(each.nbytes - each.sent if row.answer else each.sent for each in row.calls)
    size = f", {byte_size(nbytes)}" if nbytes else ""
    if not row.answer:
        text = f"{source} asks {target}: {what}{size}"
    elif call.pushed:
        text = f"{target} pushes to {source}:{about}{more}{size}"
    elif names and not call.error and call.method == "RecvTensor":
        several, took = len({each.target for each in row.calls}) > 1, duration(max(0.0, call.ended - call.at) * 1e6)
        text = f"{target} send{'' if several else 's'}{about}{more} to {source}{size}, {took} after the request"
    else:
        took = duration(max(0.0, call.ended - call.at) * 1e6)
        text = f"{target} answers {source} after {took}: {f'{call.error}, ' if call.error else ''}{what}{size}"
    return f"At {_moment(row.at, start)}, {text}."


def _card(row: _Arrow, start: float) -> list[str]:
    """The card of an arrow: method, tensor, bytes and times of its first calls."""
    lines = [_label_of(row)]
    for call in row.calls[:_MOST_NAMES]:
        size = f", {byte_size(call.nbytes)}" if call.nbytes else ""
        times = f"{_moment(call.at, start)} to {_moment(call.ended, start)}"
        lines.append(
            f"{_kind(call)} {subject(call)}\n  {_way(row, call)}{size}, {times}"
            + (f", {call.error}" if call.error else "")
        )
    return [*lines, *([f"… {len(row.calls) - _MOST_NAMES} more"] if len(row.calls) > _MOST_NAMES else [])]


def _label_of(row: _Arrow) -> str:
    return "A tensor that was pushed" if row.calls[0].pushed else "An answer" if row.answer else "A call"


def _moment(at: float, start: float) -> str:
    return duration((at - start) * 1e6) if at > start else "0"


def _counts(calls: Sequence[Call]) -> str:
    counted = Counter(call.method for call in calls)
    return ", ".join(f"{count:,} {method}" for method, count in counted.items())


def _by_kind(calls: Sequence[Call]) -> list[list[object]]:
    """Calls and bytes per method and pair."""
    counted: Counter[tuple[str, str, str]] = Counter()
    nbytes: Counter[tuple[str, str, str]] = Counter()
    for call in calls:
        key = (call.method, party(call.source).label, party(call.target).label)
        counted[key] += 1
        nbytes[key] += call.nbytes
    return [[*key, count, f"{nbytes[key]:,}"] for key, count in counted.items()]


_KIND_HEADS = ("call", "from", "to", "times", "bytes")


def _tables(calls: Sequence[Call], numbers: dict[int, int]) -> list[Table]:
    start = calls[0].at
    heads = ("at, µs", "took, µs", "call", "from", "to", "bytes", "step", "what", "error")
    rows = [
        [f"{(c.at - start) * 1e6:.1f}", f"{max(0.0, c.ended - c.at) * 1e6:.1f}", _kind(c), party(c.source).label,
         party(c.target).label, f"{c.nbytes:,}", numbers.get(c.step, ""), subject(c), c.error]
        for c in calls[:_MOST_TABLE_ROWS]
    ]  # fmt: skip
    title = "Calls" if len(calls) <= _MOST_TABLE_ROWS else f"Calls, the first {len(rows):,} of {len(calls):,}"
    return [("How often", _KIND_HEADS, _by_kind(calls)), (title, heads, rows)]


def _text(calls: Sequence[Call], summary: str) -> str:
    return f"{summary}\n{text_table(_KIND_HEADS, _by_kind(calls))}"
