"""The picture of a replayed run: devices, links, queues and variables over virtual time, and a moment to move.

A live page steps through it; a fork is drawn below the original, over the same time.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dtflab.base.grouping import grouped
from dtflab.base.text_table import plural, text_table
from dtflab.cluster.chaos_options import short
from dtflab.cluster.cluster import Cluster
from dtflab.cluster.replay import Change, Replay, Run, Stop, first_difference, of_clients, of_step
from dtflab.machine.clock import REAL
from dtflab.runtime.session import BaseSession
from dtflab.viz import replay_live
from dtflab.viz.data.replayed import Row, busy_until, difference_text, error_text, moments_of, rows_of, sentences
from dtflab.viz.drawing import front_end, marks
from dtflab.viz.drawing.palette import look, together
from dtflab.viz.drawing.picture import Picture, Table, first_rows
from dtflab.viz.drawing.style import room, rules
from dtflab.viz.drawing.svg import Markup, join, number, shorten, tag, text_width
from dtflab.viz.drawing.ticker import Ticker
from dtflab.viz.drawing.units import duration, moment, time_ticks

# A device's row has its name over what it does, and waits below its bars; another row has both words on one line.
ROW, BAR, WAIT, LINE, THIN = 32.0, 19.0, 3.0, 19.0, 12.0
_BETWEEN, _GAP, _AXIS, _MOMENT, _TITLE = 3.0, 10.0, 20.0, 14.0, 22.0
_SAYS, _HALF = 110.0, 16.0  # room for what a row does at the moment; for half of the last moment's number
_APART = 4.0  # units of each of two bars that touch: a gap between them tells them apart


def replay(
    what: Any,
    where: Cluster | BaseSession | None = None,
    feed_dict: Any = None,
    *,
    job: str = "worker",
    title: str = "Replay",
) -> Replayed:
    """Run something in virtual time, and picture the run so that one can step through it and fork it.

    `what` is a function of a client, run as by `cluster.run(what, job)` on the cluster `where`; or what a step of the
    session `where` fetches, with `feed_dict`. It runs on a fresh copy of the cluster, from virtual time 0. A step has
    the values that the session's variables have now, and changes none of them; its random ops begin from their seeds.
    In real time ValueError, as for a step that needs more state than variables.
    """
    if callable(what) and isinstance(where, Cluster):
        return Replayed(Replay(of_clients(what, job), where), title)
    if not callable(what) and isinstance(where, BaseSession):
        return Replayed(Replay(*of_step(where, what, feed_dict)), title)
    wanted = "a cluster: tf.viz.replay(work, cluster)" if callable(what) else "a session: tf.viz.replay(train, sess)"
    raise TypeError(f"{'A function' if callable(what) else 'What a step fetches'} is replayed on {wanted}.")


class Replayed(Picture):
    """The picture of a run. `run` is its record; `fork` runs it again with another choice.

    Of a fork, `change` is the choice, `forked` its run, and `difference` the first event that differs.
    """

    def __init__(
        self, original: Replay, title: str = "Replay", change: Change | None = None, forked: Run | None = None
    ) -> None:
        self._replay, self._title = original, title
        self.run, self.change, self.forked = original.run, change, forked
        self.difference = first_difference(original.run, forked) if forked else None
        runs = [original.run, *([forked] if forked else [])]
        with together(_devices(runs)):
            drawing = _Drawing(runs, self._titles(), title, [at for at, _ in self._marks()])
            live = functools.partial(self._moving, drawing, [sentences(run) for run in runs])
            sentence, tables, text = self._sentence(drawing), self._tables(runs), self._text(runs, drawing)
            super().__init__(
                drawing.markup(self._marks()), drawing.size, rules("replay"), sentence, tables, text, live=live
            )

    def fork(self, at: float, **choice: Any) -> Replayed:
        """Compute the run again with another choice from virtual second `at` on, and picture both.

        `next="layer1/MatMul"`: of the kernels that wait for that processor then, this one goes first. `lose="w/read"`:
        the next message of that name between two tasks is lost. `network="worker:1=10x"`: from then on the network of
        that task's host is ten times as fast (0.1x: slower). `kill`, `slow`, `drop`, `partition`, `stop`: as in
        `dtflab.chaos`, without the moment. ValueError for what means nothing then.
        """
        return Replayed(self._replay, self._title, *self._replay.fork(at, **choice))

    # -- words ------------------------------------------------------------------------------------------------

    def _titles(self) -> list[str]:
        titles = [f"Original: {_end(self.run)}"]
        if self.change is not None and self.forked is not None:
            titles.append(f"Fork at {_time(self.change.at)}, {self.change.words}: {_end(self.forked)}")
        return titles

    def _sentence(self, drawing: _Drawing) -> str:
        counted = "It ends when clients have their answers."
        parts = [f"{self._title}: {drawing.summary}. {counted}", *(f"{title}." for title in self._titles())]
        parts += [f"{error_text(run.error)}." for run in drawing.runs if run.error]
        if self.forked is not None:
            parts.append(self._first())
        return " ".join(parts)

    def _first(self) -> str:
        if self.difference is None:
            return "No event differs."
        return f"The first difference is at {_time(self.difference.at)}: {difference_text(self.difference)}."

    def _tables(self, runs: Sequence[Run]) -> list[Table]:
        heads = ("virtual time", "what happens")
        names = ("What happens in the original", "What happens in the fork")
        return [
            first_rows(name, heads, [[_time(at), text] for at, text in sorted(sentences(run).items())])
            for name, run in zip(names, runs, strict=False)
        ]

    def _text(self, runs: Sequence[Run], drawing: _Drawing) -> str:
        lines = [f"{self._title}: {drawing.summary}", *self._titles(), *([self._first()] if self.forked else [])]
        _, heads, rows = self._tables(runs)[-1]
        return "\n".join([*lines, text_table(heads, rows[:20])])

    def _marks(self) -> list[tuple[float, str]]:
        """Moments that are marked, and as what."""
        found = [] if self.change is None else [(self.change.at, "fork")]
        if self.difference is not None and self.change is not None:
            found.append((self.difference.at, "first difference"))
        return found

    # -- live -------------------------------------------------------------------------------------------------

    def _moving(self, drawing: _Drawing, says: Sequence[Mapping[float, str]]) -> dict[str, Any]:
        with together(_devices(drawing.runs)):
            data = replay_live.data(drawing.runs, drawing.rows, says, drawing.moments)
        at = self.difference.at if self.difference else self.change.at if self.change else 0.0
        return (
            data
            | {
                "plot": drawing.plot,
                "at": drawing.moments.index(at),
                "marks": [[at * 1e6, words] for at, words in self._marks()],
                "notes": [self._first()] if self.forked else [],
                "tasks": [short(task.name) for task in self._replay.cluster.tasks],
            }
            | _Answer(self, drawing.moments).touch
        )


class _Answer:
    """The kernel's part in “Fork here”. It computes on a thread of its own, which a page can let go of at any time."""

    def __init__(self, picture: Replayed, moments: Sequence[float]) -> None:
        self._picture, self._moments = picture, moments
        self.touch = front_end.in_touch(self)
        self._stop: Stop | None = None  # of the fork that is being computed

    def __call__(self, asks: Mapping[str, Any], tell: Callable[[Mapping[str, Any]], object]) -> None:
        """Begin to compute a fork, or give it up."""
        before, self._stop = self._stop, None
        if before is not None:
            before.ask()
        if asks["kind"] != "cancel":
            self._stop = Stop()
            REAL.spawn(self._compute, asks, tell, self._stop, name="dtflab fork")

    def _compute(self, asks: Mapping[str, Any], tell: Callable[[Mapping[str, Any]], object], stop: Stop) -> None:
        """Send the picture of a fork, and until then how far it is; or say why there is none."""
        ticker = Ticker(
            self.touch["picture"], lambda: None if stop.is_asked else {"reached": duration(1e6 * stop.now)}, every=0.5
        )
        ticker.begin()
        try:
            says = {"html": self._forked(asks, stop).html}
        except ValueError as error:
            says = {"error": str(error)}
        except BaseException as error:  # also SystemExit: the thread ends here, and the page waits
            says = {"error": f"There is no fork: {error_text(error)}."}
        finally:
            ticker.end()
        if not stop.is_asked:
            tell(says)

    def _forked(self, asks: Mapping[str, Any], stop: Stop) -> Replayed:
        run, kind, what = self._picture.run, asks["kind"], asks["what"]
        choices: Mapping[str, Sequence[Any]] = {"next": run.kernels, "lose": run.messages}
        choice = {kind: choices[kind][what] if kind in choices else what}
        return self._picture.fork(self._moments[asks["at"]], stop=stop, **choice)


def _devices(runs: Sequence[Run]) -> list[str]:
    return [name for run in runs for one in run.messages for name in (one.where, one.target)] + [
        kernel.device for run in runs for kernel in run.kernels
    ]


def _time(seconds: float) -> str:
    return moment(seconds * 1e6)


def _end(run: Run) -> str:
    return f"ends at {_time(run.end)}" + (f" with {type(run.error).__name__}" if run.error else "")


# -- drawing ----------------------------------------------------------------------------------------------------


def _words(row: Row) -> str:
    return f"queue {row.label}" if row.kind == "queue" else row.label


def _height(row: Row) -> float:
    return ROW if row.kind == "device" else LINE


def _bar(row: Row) -> float:
    return BAR if row.kind == "device" else THIN


def _name_width(row: Row) -> float:
    if row.kind != "device":
        return text_width(_words(row)) + 14
    one = look(row.device)
    return marks.badge_width(one) + 6 + text_width(one.label, bold=True)


class _Drawing:
    """Where everything stands: for each run its title, then its rows; over the first ones the axis of all."""

    def __init__(self, runs: Sequence[Run], titles: Sequence[str], title: str, marked: Sequence[float]) -> None:
        self.runs, self._titles = runs, titles
        self.rows, left_out = rows_of(runs)
        self.moments = moments_of(runs, *marked)
        self.width = room()
        self.summary = self._summary(left_out)
        self.head = marks.heading(title, self.summary, self.width)
        # A fork that waits for seconds after a run of milliseconds would leave nothing to see of either.
        self.shown = min(max(map(busy_until, runs)), 2 * busy_until(runs[0])) or 1e-6
        widest = max((_name_width(row) + _SAYS * (row.kind != "device") for row in self.rows[0]), default=0.0)
        self.left, self.right = min(max(widest, _SAYS) + 14, 0.29 * self.width), self.width - _HALF
        legend, height = marks.line_legend(_LEGEND[: 2 * len(runs)], self.width, self.head.height + 6)
        self._legend = legend
        y = self.head.height + 14 + height
        self._tops: list[float] = []  # of the rows of each run; above them its title, and of the first the axis
        self._ys: list[list[float]] = []
        self._blocks: list[tuple[float, float]] = []  # from where to where the rows of a run are
        for i, rows in enumerate(self.rows):
            self._tops.append(y + _TITLE + _AXIS * (i == 0))
            *ys, y = itertools.accumulate(map(_height, rows), initial=self._tops[-1])
            self._ys.append(ys)
            self._blocks += [(ys[0], y - _BETWEEN)] if rows else []
            y += _GAP
        self.size = (self.width, y - _GAP + _MOMENT)

    def _summary(self, left_out: str) -> str:
        run = self.runs[0]
        text = f"{plural(len(run.kernels), 'op')} (those that take time) and {plural(len(run.messages), 'message')}"
        return f"{text} in {_time(run.end)} of virtual time" + (f" ({left_out} are drawn)" if left_out else "")

    @property
    def _bottom(self) -> float:
        return self.size[1] - _MOMENT

    @property
    def plot(self) -> dict[str, Any]:
        """Where the plot is in a live page."""
        return {
            "left": self.left,
            "right": self.right,
            "top": self._tops[0] - _AXIS,
            "bottom": self._bottom,
            "blocks": self._blocks,
            "places": [
                [[y, _height(row) - _BETWEEN, _bar(row)] for y, row in zip(ys, rows, strict=True)]
                for ys, rows in zip(self._ys, self.rows, strict=True)
            ],
            "apart": _APART,
            "shown": self.shown * 1e6,
        }

    def markup(self, marked: Sequence[tuple[float, str]]) -> Markup:
        """The whole drawing. What a live page draws again is in the group `moving`."""
        blocks = [part for i in range(len(self.runs)) for part in self._block(i)]
        titles = [self._run_title(i) for i in range(len(self.runs))]
        bars = [
            self._bars(row, y, min(self.shown, run.end))
            for run, rows, ys in zip(self.runs, self.rows, self._ys, strict=True)
            for row, y in zip(rows, ys, strict=True)
        ]
        moving = tag("g", *self._axis(), *bars, *self._marked(marked), class_="moving")
        return join([self.head, self._legend, *blocks, moving, *titles])

    def _x(self, seconds: float) -> float:
        return self.left + (self.right - self.left) * min(seconds, self.shown) / self.shown

    def _run_title(self, i: int) -> Markup:
        title = shorten(self._titles[i], self.width, 12, bold=True)
        y = self._tops[i] - 9 - _AXIS * (i == 0)
        return tag("g", tag("title", self._titles[i]), tag("text", title, x=0, y=y, class_="b"))

    def _block(self, i: int) -> Iterator[Markup]:
        """The names of a run's rows, and what was in them."""
        for row, y in zip(self.rows[i], self._ys[i], strict=True):
            height = _height(row) - _BETWEEN
            yield tag("rect", x=self.left, y=y, width=self.right - self.left, height=height, class_="whole wide")
            yield self._name(row, y)
            badge = marks.badge_width(look(row.device)) + 6
            x, line = (badge, y + 25) if row.kind == "device" else (_name_width(row), y + 12)
            yield tag("text", shorten(_in_all(row), self.left - 8 - x, 11), x=x, y=line, class_="s11 soft now")

    def _name(self, row: Row, y: float) -> Markup:
        if row.kind == "device":
            one = look(row.device)
            x = marks.badge_width(one) + 6
            others = [look(each.device).label for each in self.rows[0]]
            label = shorten(one.label, self.left - x - 8, bold=True, others=others)
            return join([marks.badge(one, 0, y - 2), tag("text", label, x=x, y=y + 11, class_="b")])
        text = tag("text", shorten(_words(row), self.left - 14), x=6, y=y + 12)
        return tag("g", tag("title", f"{row.kind} {row.label}"), text)

    def _bars(self, row: Row, y: float, end: float) -> Markup:
        """A row's events at their places, those under half a unit apart as one; a queue's as high as it is full."""
        colour = look(row.device).colour
        bars, bar = grouped((share, (self._x(a), self._x(b))) for share, a, b in _spans(row, end)), _bar(row)
        paths = [
            tag("path", d=_boxes(spans, y + 2 + bar * (1 - share), bar * share), fill=colour.fill, class_=row.kind)
            for share, spans in bars.items()
        ]
        if row.kind == "device":
            waits = [(self._x(k.ready), self._x(k.started)) for _, k in row.items if k.started > k.ready]
            paths.append(tag("path", d=_boxes(waits, y + 4 + BAR, WAIT), fill=colour.line))
        return join(paths)

    def _axis(self) -> Iterator[Markup]:
        for micros, text in time_ticks(self.shown * 1e6, self.right - self.left):
            x = self._x(micros / 1e6)
            yield tag("path", d=self._line(x), class_="grid")
            yield tag("text", text, x=x, y=self._tops[0] - 7, class_="s11 soft mid")

    def _line(self, x: float) -> str:
        """The `d` of a line that passes the rows of all runs, and no title."""
        return "".join(f"M{number(x)} {number(top)}V{number(bottom)}" for top, bottom in self._blocks)

    def _marked(self, marked: Sequence[tuple[float, str]]) -> Iterator[Markup]:
        for at, words in marked:
            title = tag("title", f"{words} at {_time(at)}")
            yield tag("path", title, d=self._line(self._x(at)), class_=f"mark {words.split()[0]}")


def _spans(row: Row, shown: float) -> Iterator[tuple[float, float, float]]:
    """The bars of a row: the share of its height, from when, to when."""
    if row.kind == "device":
        yield from ((1.0, k.started, min(k.ended, shown)) for _, k in row.items if k.started < shown)
    elif row.kind == "link":
        yield from ((1.0, m.started, min(m.ended, shown)) for _, m in row.items if m.started < shown)
    elif row.kind == "variable":
        yield from ((1.0, k.ended, k.ended) for k in row.items if k.ended <= shown)
    else:
        most = max([1, *(one.level for one in row.items)])
        ends = [*(one.at for one in row.items[1:]), shown]
        found = [(one, end) for one, end in zip(row.items, ends, strict=False) if one.level and one.at < shown]
        yield from ((one.level / most, one.at, end) for one, end in found)


def _boxes(spans: Sequence[tuple[float, float]], y: float, height: float) -> str:
    """The `d` of boxes, none thinner than a unit; those that touch are one, or have a gap if both are wide enough."""
    found: list[list[float]] = []
    for start, end in sorted(spans):
        before, last = found[-1] if found else (0.0, -1.0)
        touches = start <= last + 0.5
        if touches and (start < last - 0.5 or min(end - start, last - before) < _APART):
            found[-1][1] = max(end, last)
        else:
            found.append([start + touches, max(end, start + 1)])
    return "".join(f"M{number(a)} {number(y)}H{number(b)}v{number(height)}H{number(a)}z" for a, b in found)


def _in_all(row: Row) -> str:
    """A row's sums over the whole run."""
    if row.kind == "device":
        busy = sum(k.ended - k.started for _, k in row.items if math.isfinite(k.ended))
        return f"{plural(len(row.items), 'op')}, {_time(busy)} of work"
    if row.kind == "link":
        return f"{plural(len(row.items), 'message')}, {sum(m.nbytes for _, m in row.items):,} B"
    if row.kind == "variable":
        return f"version {len(row.items)}"
    most = f" of {row.capacity:,}" if row.capacity else ""
    return f"{row.items[-1].level if row.items else 0:,}{most} elements"


_LEGEND = [
    (tag("path", d="M0 3h28v12h-28z", class_="sample"), "runs, is on its way, holds elements"),
    (tag("path", d="M0 8h28v3h-28z", class_="sample"), "ready, waits for its processor"),
    (tag("path", d="M14 1v16", class_="mark fork"), "fork"),
    (tag("path", d="M14 1v16", class_="mark first"), "first difference"),
]
