"""The picture of the system: clients on the left, tasks on the right with the variables and queues that they hold.

A dashed line is a session: it ends at the task whose master the client talks to. A line that ends in a dot: its steps
use that variable. An arrow to a queue: it puts; an arrow from a queue: it takes. Clients that do the same are one box.
Clients are grey, as everywhere; at both ends of a line stands whose it is: C1, C2, or a name of one or two letters.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dtflab.base.grouping import grouped
from dtflab.base.text_table import plural, text_table
from dtflab.graph.device_spec import task_name
from dtflab.machine.watch import Watch
from dtflab.ops.resource_mgr import DEFAULT_CONTAINER, plain_name
from dtflab.viz.drawing import marks
from dtflab.viz.drawing.palette import GREY, natural, together
from dtflab.viz.drawing.picture import Picture
from dtflab.viz.drawing.style import room, rules
from dtflab.viz.drawing.svg import Markup, arrow_head, join, number, shorten, tag, text_width, wrapped
from dtflab.viz.layout.shapes import Point
from dtflab.viz.participants import client_label, is_task, own_letters, party, watched

_MOST_EMPTY = 4  # tasks that hold nothing; more are one box
MOST_CLIENTS, MOST_TASKS, MOST_THINGS = 12, 12, 8  # of each, drawn
_CLIENT, _THING, _HEAD, _GAP, _PAD = 40.0, 30.0, 30.0, 16.0, 8.0


class Thing(NamedTuple):
    """A variable or a queue in a task; or several that the same clients use alike."""

    device: str
    kind: str  # variable or queue
    name: str
    others: int = 0  # how many more it stands for

    @property
    def task(self) -> str:
        return task_name(self.device)


class _Way(NamedTuple):
    """A client's use of a thing: use, put or take."""

    client: str
    does: str
    thing: Thing


def clients(seen: Watch, *, width: float | None = None, title: str = "Clients and tasks") -> Picture:
    """Picture the system that a watch saw (`with tf.watch() as seen:`): clients, tasks, and what they share.

    ValueError if no client did anything. Of many clients, tasks and things the first are drawn, those that do the same
    as one; the picture says what is left out, and its table has all.
    """
    system = _System(watched(seen))
    if not system.sessions:
        raise ValueError("No client asked for anything while this was watched. Run a session in the block.")
    with together(system.tasks):
        drawing = _Drawing(system, room(width), title)
        rows = system.rows()
        heads = ("client", "does", "what", "kind", "on")
        actions = "; ".join(f"{client} {does} {what}" for client, does, what, *_ in rows[:40])
        sentence = f"{title}: {system.summary()}. {actions}."
        text = f"{system.summary()}\n{text_table(heads, rows)}"
        return Picture(drawing.markup, drawing.size, rules("clients"), sentence, [(title, heads, rows)], text)


class _System:
    """Which clients were there, and what each did with which variable or queue."""

    def __init__(self, seen: Watch) -> None:
        calls = [call for call in seen.calls if not is_task(call.source)]
        self.sessions = dict.fromkeys((call.source, call.target) for call in calls)
        ways = [
            _Way(use.client, "uses", Thing(use.device, "variable", _called(use.container, use.variable)))
            for use in seen.uses
        ]
        ways += [
            _Way(event.client, {"put": "puts into", "take": "takes from"}[event.wants or event.what],
                 Thing(event.device, "queue", plain_name(event.queue)))
            for event in seen.queues
            if event.client and (event.wants or event.what) in ("put", "take")
        ]  # fmt: skip
        self.all_ways = list(dict.fromkeys(ways))
        self.ways = _merged(self.all_ways)
        self.things = list(dict.fromkeys(way.thing for way in self.ways))
        both = [task for call in seen.calls for task in (call.source, call.target) if is_task(task)]
        tasks = dict.fromkeys([*both, *(thing.task for thing in self.things)])
        self.tasks = sorted(tasks, key=lambda task: ("/job:ps/" not in task, natural(task)))
        self.groups = self._groups()

    def _groups(self) -> list[list[str]]:
        """Clients that do the same with the same things; their own masters may differ, if they have the same job."""
        names = dict.fromkeys([client for client, _ in self.sessions] + [way.client for way in self.ways])
        alike: dict[tuple[object, ...], list[str]] = {}
        active = {way.client for way in self.ways}
        for name in sorted(names, key=lambda name: (name not in active, name != "client", natural(name))):
            ways = frozenset((way.does, way.thing) for way in self.ways if way.client == name)
            jobs = frozenset(task.partition("/task:")[0] for client, task in self.sessions if client == name)
            alike.setdefault((ways, jobs), []).append(name)
        return [part for own in alike.values() for part in ([own] if len(own) > 3 else [[name] for name in own])]

    def rows(self) -> list[list[str]]:
        """The table."""
        sessions = [
            [client_label(client), "has a session at", party(task).label, "task", party(task).label]
            for client, task in self.sessions
        ]
        ways = [
            [client_label(way.client), way.does, way.thing.name, way.thing.kind, party(way.thing.device).label]
            for way in self.all_ways
        ]
        return sessions + ways

    def summary(self) -> str:
        kinds = Counter(thing.kind for thing in {way.thing for way in self.all_ways})
        count = sum(map(len, self.groups))
        parts = [plural(count, "client"), plural(len(self.tasks), "task")]
        parts += [plural(kinds[kind], kind) for kind in ("variable", "queue") if kinds[kind]]
        return ", ".join(parts)


def _merged(ways: Sequence[_Way]) -> list[_Way]:
    """The ways, with things as one that lie in one task and are used alike, if there are more than three of them."""
    users = grouped((way.thing, (way.client, way.does)) for way in ways)
    alike = grouped(((thing.task, thing.kind, *sorted(own)), thing) for thing, own in users.items())
    stands = {
        thing: own[0]._replace(others=len(own) - 1) if len(own) > 3 else thing
        for own in alike.values()
        for thing in own
    }
    return list(dict.fromkeys(way._replace(thing=stands[way.thing]) for way in ways))


def _called(container: str, name: str) -> str:
    return plain_name(name) if container in ("", DEFAULT_CONTAINER) else f"{container}/{plain_name(name)}"


class _Drawing:
    """Where everything stands."""

    def __init__(self, system: _System, width: float, title: str) -> None:
        self._system, self._width = system, width
        self._groups = system.groups[:MOST_CLIENTS]
        self._badges = _badges(self._groups)
        empty = [task for task in system.tasks if not self._held(task)]
        self._as_one = empty if len(empty) > _MOST_EMPTY else []
        full = [task for task in system.tasks if task not in self._as_one]
        self._tasks = full[:MOST_TASKS] + self._as_one[:1]
        left_out = len(system.groups) - len(self._groups), len(full) - len(full[:MOST_TASKS])
        notes = [f"{plural(n, what)} not drawn" for n, what in zip(left_out, ("client", "task"), strict=True) if n]
        head = marks.heading(title, ", ".join([system.summary(), *notes]), width)
        there = {"session", *(way.does for way in system.ways)}
        samples = [(sample, meaning) for does, sample, meaning in _LEGEND if does in there]
        legend, legend_height = marks.line_legend(samples, width, head.height + 8)
        top = head.height + 8 + legend_height + 10
        self._client_width, self._task_width = width * 0.3, max(width * 0.44, min(width * 0.54, 300.0))
        self._task_left = width - self._task_width
        heights = [self._height(task) for task in self._tasks]
        right = sum(heights) + _GAP * (len(heights) - 1)
        left = len(self._groups) * (_CLIENT + _GAP) - _GAP
        whole = max(left, right)
        self._things: dict[Thing, float] = {}
        self._heads: dict[str, float] = {}
        tasks = list(self._draw_tasks(top + (whole - right) / 2, heights))
        boxes = [(group, top + (whole - left) / 2 + i * (_CLIENT + _GAP)) for i, group in enumerate(self._groups)]
        lines = (part for group, y in boxes for part in self._lines(group, y))
        between = marks.stretch((self._client_width, self._task_left), *lines)
        cards = [tag("g", *self._client(group, y), data_key=f"by{y:g}") for group, y in boxes]
        self.size = (width, top + whole)
        self.markup = join([head, legend, tag("g", *tasks, class_="right"), between, *cards])

    def _held(self, task: str) -> list[Thing]:
        return [thing for thing in self._system.things if thing.task == task]

    def _height(self, task: str) -> float:
        held = len(self._held(task))
        rows = min(held, MOST_THINGS) + (held > MOST_THINGS)
        return _HEAD + rows * _THING + (_PAD if rows else 0)

    def _draw_tasks(self, y: float, heights: Sequence[float]) -> Iterator[Markup]:
        for task, height in zip(self._tasks, heights, strict=True):
            one, x = party(task), self._task_left
            head = y + 15
            size = {"width": self._task_width, "height": height, "rx": 6}
            yield tag("rect", x=x, y=y, **size, class_="task", data_key=_at(head))
            yield marks.badge(one, x + 10, y + 6)
            same = self._as_one if task in self._as_one else [task]
            at = x + 16 + marks.badge_width(one)
            guests = self._letters({client for client, master in self._system.sessions if master in same})
            space = self._width - 18 - text_width(guests, 11) - at
            some = f"{one.label} and {len(same) - 1} more"
            labels = [one.label] if len(same) == 1 else [f"{some}, all empty", some]
            label = next((each for each in labels if text_width(each, bold=True) <= space), labels[-1])
            text = tag("text", shorten(label, space, bold=True), x=at, y=y + 19, class_="b")
            yield tag("g", tag("title", ", ".join(party(each).label for each in same)), text)
            if guests:
                yield tag("text", guests, x=self._width - 10, y=y + 19, class_="s11 soft end")
            self._heads |= dict.fromkeys(same, head)
            held = self._held(task)
            for i, thing in enumerate(held[:MOST_THINGS]):
                drawn = [*self._thing(thing, y + _HEAD + i * _THING)]
                yield tag("g", *drawn, data_key=_at(self._things[thing]))
            if len(held) > MOST_THINGS:
                more = f"and {len(held) - MOST_THINGS} more"
                yield tag("text", more, x=x + 14, y=y + _HEAD + MOST_THINGS * _THING + 17, class_="s11 soft")
            y += height + _GAP

    def _thing(self, thing: Thing, y: float) -> Iterator[Markup]:
        """A variable is a box, a queue a pipe; both name their users, so that no line must be followed."""
        x, wide, high = self._task_left + 14, self._task_width - 26, _THING - 7
        users = self._letters({way.client for way in self._system.ways if way.thing == thing})
        self._things[thing] = y + high / 2
        radius = 4 if thing.kind == "variable" else high / 2
        space = wide - 42 - text_width(users, 11)
        word = f"{thing.kind} " if not thing.others else f"{thing.others + 1} {thing.kind}s "
        name = shorten(thing.name + (", …" if thing.others else ""), space - text_width(word, 11), 12)
        yield tag("rect", x=x, y=y, width=wide, height=high, rx=radius, class_="thing")
        if thing.kind == "queue":
            yield tag("path", d=f"M{number(x + wide - 14)} {number(y)}q-8 {number(high / 2)} 0 {number(high)}",
                      class_="thing")  # fmt: skip
        yield tag("text", word, x=x + 12, y=y + 16, class_="s11 soft")
        yield tag("title", f"{thing.kind} {thing.name} on {thing.device}")
        yield tag("text", name, x=x + 14 + text_width(word, 11), y=y + 16)
        yield tag("text", users, x=x + wide - 22, y=y + 16, class_="s11 soft end")

    def _letters(self, clients: set[str]) -> str:
        """`C1, C3`: those of them that are drawn."""
        letters = [badge for badge, group in zip(self._badges, self._groups, strict=True) if clients & set(group)]
        return ", ".join(letters) if len(letters) <= 4 else f"{len(letters)} clients"

    def _client(self, group: Sequence[str], y: float) -> Iterator[Markup]:
        badge = self._badges[self._groups.index(list(group))]
        wide = self._client_width
        label = client_label(group[0]) if len(group) == 1 else f"{len(group)} clients that do the same"
        if len(group) == 1 and not label.startswith(("client", "queue runner", "closer of")):
            label = f"client {label}"
        names = "\n".join([client_label(name) for name in group[:20]] + ["…"] * (len(group) > 20))
        yield tag("rect", x=0, y=y, width=wide, height=_CLIENT, rx=6, class_="card", stroke=GREY.line,
                  stroke_width=1.7)  # fmt: skip
        yield tag("rect", x=8, y=y + 11, width=28, height=18, rx=4, fill=GREY.fill)
        yield tag("text", badge, x=22, y=y + 24, class_="s11 b mid", style=f"fill:{GREY.ink}")
        lines = [label] if text_width(label, bold=True) <= wide - 54 else wrapped(label, wide - 54, bold=True)[:2]
        places = (y + 24 + (i - (len(lines) - 1) / 2) * 15 for i in range(len(lines)))
        yield tag("title", names)
        yield from (tag("text", line, x=44, y=at, class_="b") for line, at in zip(lines, places, strict=True))

    def _lines(self, group: Sequence[str], y: float) -> Iterator[Markup]:
        members, start = set(group), (self._client_width, y + _CLIENT / 2)
        masters = [task for client, task in self._system.sessions if client in members]
        for head in dict.fromkeys(self._heads[task] for task in masters if task in self._heads):
            line = tag("path", d=_bend(start, (self._task_left, head)), class_="way session", stroke=GREY.line)
            yield tag("g", line, data_of=f"by{y:g} {_at(head)}")
        for does, thing in dict.fromkeys((way.does, way.thing) for way in self._system.ways if way.client in members):
            if thing in self._things:
                end = self._task_left + 14, self._things[thing]
                of = f"by{y:g} {_at(end[1])} {_at(self._heads[thing.task])}"
                yield tag("g", *self._way(does, start, end), data_of=of)

    def _way(self, does: str, start: Point, end: Point) -> Iterator[Markup]:
        yield tag("path", d=_bend(start, end), class_="way", stroke=GREY.line)
        if does == "uses":
            yield tag("circle", cx=end[0], cy=end[1], r=4, fill=GREY.line)
        elif does == "puts into":
            yield _head((end[0] + 1, end[1]), start[0])
        else:
            yield _head((start[0] + 1, start[1]), end[0])


def _at(y: float) -> str:
    """The key of the thing or task at which lines end at that height."""
    return f"at{y:g}"


def _badges(groups: Sequence[Sequence[str]]) -> list[str]:
    """A short name of a client's own, or C and a number that nobody has as a name."""
    own = [own_letters(group[0]) if len(group) == 1 else "" for group in groups]
    numbered = (badge for number in itertools.count(1) if (badge := f"C{number}") not in own)
    return [letters or next(numbered) for letters in own]


def _bend(start: Point, end: Point) -> str:
    """A line that leaves and comes in level."""
    (x, y), (a, b) = start, end
    middle = (x + a) / 2
    points = " ".join(f"{number(p)} {number(q)}" for p, q in ((middle, y), (middle, b), (a, b)))
    return f"M{number(x)} {number(y)}C{points}"


def _head(tip: Point, back: float) -> Markup:
    """The arrow head of a line that comes in level."""
    return tag("path", d=arrow_head(tip, (back, tip[1]), 9), fill=GREY.line, data_at=tip[0])


def _sample(*parts: Markup, class_: str = "way") -> Markup:
    return join([tag("path", d="M0 9H26", class_=class_, style="stroke:var(--fg)"), *parts])


_LEGEND = (
    ("session", _sample(class_="way session"), "session, at this master"),
    ("uses", _sample(tag("circle", cx=26, cy=9, r=4, style="fill:var(--fg)")), "uses a variable"),
    ("puts into", _sample(tag("path", d=arrow_head((28, 9), (0, 9), 9), style="fill:var(--fg)")), "puts into a queue"),
    (
        "takes from",
        _sample(tag("path", d=arrow_head((0, 9), (28, 9), 9), style="fill:var(--fg)")),
        "takes from a queue",
    ),
)
