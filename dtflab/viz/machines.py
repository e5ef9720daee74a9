"""The picture of a cluster: machines, the tasks on them, the two services of each task, and its devices.

A machine is a box: all tasks whose addresses have the same host. A service is a coloured box if it was called while a
watch saw it; a dashed line goes from each client to the master services that it called, a thin one, in the
master's colour, from each of these to the worker services that it called.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dtflab.base import errors
from dtflab.base.events import Call
from dtflab.base.grouping import grouped
from dtflab.base.text_table import plural, text_table
from dtflab.cluster.cluster import Cluster, device_label
from dtflab.cluster.engines import RunningTask
from dtflab.machine.watch import Watch
from dtflab.viz.drawing import marks
from dtflab.viz.drawing.palette import together
from dtflab.viz.drawing.picture import Picture
from dtflab.viz.drawing.style import room, rules
from dtflab.viz.drawing.svg import Markup, arrow_head, join, line_path, shorten, tag, text_width
from dtflab.viz.layout.shapes import Point
from dtflab.viz.participants import client_label, is_task, party

MOST_TASKS, MOST_CLIENTS = 24, 12  # drawn; the table knows all
_CLIENT, _TASK, _HEAD, _GAP, _PAD, _BOX = 40.0, 90.0, 28.0, 14.0, 8.0, 22.0
_SERVICES = ("master service", "worker service")


_Pair = tuple[str, str]  # caller, callee


class _Task(NamedTuple):
    """A task as it is drawn."""

    name: str
    host: str
    port: str
    state: str
    devices: tuple[str, ...]
    called: tuple[str, ...]  # its services that were called


def machines(
    cluster: Cluster, seen: Watch | None = None, *, width: float | None = None, title: str = "Machines and tasks"
) -> Picture:
    """Picture where the tasks of a cluster are, with their services and devices.

    With what a watch saw (`with tf.watch() as seen:`) also which services were called, and by which clients; what tasks
    in other processes call of each other is not seen. Of many tasks and clients the first are drawn; the table has all.
    """
    calls = seen.calls if seen is not None else []
    served = {(call.target, _SERVICES[is_task(call.source)]) for call in calls}
    tasks = [_task(task, served) for task in cluster.tasks]
    sessions = sorted({(call.source, call.target) for call in calls if not is_task(call.source)})
    sessions = [(client, task) for client, task in sessions if task in {task.name for task in tasks}]
    masters = {task for _, task in sessions}
    asked = sorted({(call.source, call.target) for call in calls if call.source in masters and _is_a_masters(call)})
    with together(task.name for task in tasks):
        drawing = _Drawing(tasks, sessions, asked, room(width), title)
        heads = ("task", "machine", "port", "devices", "called", "state")
        rows = [
            [party(t.name).label, t.host, t.port, ", ".join(t.devices), ", ".join(t.called), t.state] for t in tasks
        ]
        links = [f"{client_label(client)} has a session at {party(task).label}" for client, task in sessions]
        links += [f"master {party(one).label} called the worker service of {party(task).label}" for one, task in asked]
        sentence = f"{title}: {drawing.summary}. " + " ".join(f"{text}." for text in [*map(_sentence, tasks), *links])
        text = "\n".join([drawing.summary, text_table(heads, rows), *links])
        return Picture(drawing.markup, drawing.size, rules("machines"), sentence, [(title, heads, rows)], text)


def _is_a_masters(call: Call) -> bool:
    """Whether a task called another as its master does: workers only fetch tensors of each other."""
    return is_task(call.target) and call.target != call.source and call.method != "RecvTensor"


def _task(task: RunningTask, served: set[tuple[str, str]]) -> _Task:
    host, _, port = task.address.rpartition(":")
    called = tuple(service for service in _SERVICES if (task.name, service) in served)
    return _Task(task.name, host, port, task.state, _devices(task), called)


def _devices(task: RunningTask) -> tuple[str, ...]:
    """`CPU:0`, `GPU:1`; none of a task that does not answer."""
    try:
        found = task.devices() if task.state == "running" else []
    except errors.OpError:
        return ()
    return tuple(device_label(device).partition(" ")[0] for device in found)


def _sentence(task: _Task) -> str:
    return f"{party(task.name).label} on {task.host} has {', '.join(task.devices) or 'no devices'}"


class _Drawing:
    """Where everything stands: clients on the left, machines one below the other on the right."""

    def __init__(
        self, tasks: Sequence[_Task], sessions: Sequence[_Pair], asked: Sequence[_Pair], width: float, title: str
    ) -> None:
        clients = list(dict.fromkeys(client for client, _ in sessions))
        self.summary = f"{plural(len(tasks), 'task')} on {plural(len({t.host for t in tasks}), 'machine')}"
        if sessions:
            self.summary += f", {plural(len(clients), 'client')}; in colour: services that were called"
        if len(tasks) > MOST_TASKS:
            self.summary += f"; the first {MOST_TASKS} tasks are drawn"
        head = marks.heading(title, self.summary, width)
        self._client_width = width * 0.22
        self._left = width * 0.32 if sessions else 0.0
        self._wide = width - self._left
        self._masters: dict[str, float] = {}
        hosts = grouped((task.host, task) for task in tasks[:MOST_TASKS])
        y = head.height + 12
        boxes: list[Markup] = []
        for host, own in hosts.items():
            boxes += self._machine(host, own, y)
            y += _HEAD + len(own) * _TASK + _GAP
        drawn = clients[:MOST_CLIENTS]
        low, high = y - _GAP, head.height + 12 + len(drawn) * (_CLIENT + _GAP) - _GAP
        ways = list(self._sessions(drawn, sessions, head.height + 12 + max(0.0, low - high) / 2))
        self.size = (width, max(low, high))
        edge = self._left + self._wide - 20
        self.markup = join([head, *boxes, marks.stretch((edge - 20, edge), *self._asks(asked)), *ways])

    def _machine(self, host: str, tasks: Sequence[_Task], y: float) -> Iterator[Markup]:
        high = _HEAD + len(tasks) * _TASK
        yield tag("rect", x=self._left, y=y, width=self._wide, height=high, rx=6, class_="machine wide")
        yield tag("text", shorten(host, self._wide - 24, bold=True), x=self._left + 12, y=y + 19, class_="b")
        for i, task in enumerate(tasks):
            yield from self._task(task, y + _HEAD + i * _TASK)

    def _task(self, task: _Task, y: float) -> Iterator[Markup]:
        one, x = party(task.name), self._left + 12
        right = f"port {task.port}" if task.state == "running" else task.state
        yield tag("rect", x=x, y=y, width=self._wide - 24, height=_TASK - _PAD, rx=4, class_="task wide")
        yield marks.badge(one, x + 8, y + 6)
        yield tag("text", one.label, x=x + 14 + marks.badge_width(one), y=y + 19, class_="b")
        yield tag("text", right, x=x + self._wide - 34, y=y + 19, class_="s11 soft end right")
        self._masters[task.name] = y + 29 + _BOX / 2
        left, paint = x + 8, {"fill": one.colour.fill, "stroke": one.colour.rim}
        for service in _SERVICES:
            used = service in task.called
            wide = text_width(service, 11) + 16
            yield tag("rect", x=left, y=y + 29, width=wide, height=_BOX, rx=3,
                      **(paint if used else {"class_": "idle"}))  # fmt: skip
            yield tag("text", service, x=left + wide / 2, y=y + 44, class_="s11 mid" + (" b" if used else ""),
                      style=f"fill:{one.colour.ink}" if used else None)  # fmt: skip
            left += wide + 8
        devices = shorten("   ".join(task.devices), self._wide - 40)
        yield tag("text", devices, x=x + 8, y=y + 70, class_="soft")

    def _asks(self, asked: Sequence[_Pair]) -> Iterator[Markup]:
        """From below a master service along the right edge, where no text is, to the worker services."""
        start = self._left + 20 + (text_width(_SERVICES[0], 11) + 16) / 2
        end = self._left + 20 + sum(text_width(service, 11) + 24 for service in _SERVICES) - 7
        lanes = list(dict.fromkeys(master for master, _ in asked))
        for master, task in asked:
            if master in self._masters and task in self._masters:
                aside, colour = (0, -1, 1)[lanes.index(master) % 3], party(master).colour.line
                lane = self._left + self._wide - 6 + 3 * aside
                low, to = self._masters[master] + _BOX / 2, self._masters[task] + 6 * aside
                corners = [(start, low), (start, low + 4), (lane, low + 4), (lane, to), (end, to)]
                yield tag("path", d=line_path(corners, 4), class_="asks", stroke=colour)
                yield tag("path", d=arrow_head((end, to), (lane, to), 7), fill=colour)

    def _sessions(self, clients: Sequence[str], sessions: Sequence[_Pair], top: float) -> Iterator[Markup]:
        for i, client in enumerate(clients):
            y = top + i * (_CLIENT + _GAP)
            label = client_label(client)
            label = label if label.startswith("client") else f"client {label}"
            yield tag("rect", x=0, y=y, width=self._client_width, height=_CLIENT, rx=6, class_="task")
            yield tag("text", shorten(label, self._client_width - 20, bold=True), x=10, y=y + 24, class_="b")
            for j, task in enumerate(task for who, task in sessions if who == client and task in self._masters):
                start, bend = (self._client_width, y + _CLIENT / 2), self._client_width + 12 + 6 * (i + j)
                yield from _line(start, bend, (self._left + 19, self._masters[task]))


def _line(start: Point, bend: float, end: Point) -> Iterator[Markup]:
    corners = [start, (bend, start[1]), (bend, end[1]), end]
    yield tag("path", d=line_path(corners, 8), class_="session")
    yield tag("path", d=arrow_head(end, (bend, end[1]), 8), style="fill:var(--soft)")
