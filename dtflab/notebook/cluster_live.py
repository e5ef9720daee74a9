"""Data of a live cluster panel: what each task does per second, what it holds and waits for, and which lines fold.

Rules: sums become rates here, by the clock of the task that counted them; in virtual time these are virtual seconds.
A wait is shown once it has lasted from one look to the next, since each step waits for tensors.
A task that does not answer is left alone for a while: one question may take seconds then. Of one that has ended, the
last error is what the clients of this process got because of that.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from dtflab.base import errors
from dtflab.base.text_table import plural
from dtflab.cluster.attached import AttachedTask
from dtflab.cluster.cluster import Cluster
from dtflab.cluster.engines import RunningTask
from dtflab.cluster.vitals import Held, Vitals
from dtflab.graph import device_spec
from dtflab.machine.clock import REAL
from dtflab.machine.meter import LEASE_S
from dtflab.notebook.circle_watch import LONG_S, CircleWatch
from dtflab.notebook.cluster_view import alike, numbers, rows as rows_of, title
from dtflab.runtime.client import failures
from dtflab.viz.drawing.palette import look, together
from dtflab.viz.drawing.units import byte_size, memory_size

EVERY_S = 0.5  # between two looks
KEPT = 60  # looks that a line of busy shares shows: 30 seconds
LEFT_ALONE_S = 10.0
_MOST_NOTES = 3
_SILENT = "does not answer"
_STEP = re.compile(r" \(step \d+\)")
_TASK = re.compile(r"/job:(\w+)(?:/replica:0)?/task:(\d+)(?:/device:CPU:0)?")
AT_WORK = {  # what is done to a task, and the state that it has meanwhile
    "pause": "pausing…", "resume": "going on…", "stop": "stopping…", "kill": "ending…", "start": "starting…",
    "restart": "restarting…",
}  # fmt: skip


class Pulse(NamedTuple):
    """Rates of a task between two looks, per second; `busy` is a share."""

    steps: float = 0.0
    busy: float = 0.0
    received: float = 0.0
    sent: float = 0.0


class Line(NamedTuple):
    """A line of the panel: a task, or several that are alike."""

    key: str  # of the page; a task's full name
    name: str
    state: str
    pulse: Pulse | None  # None for what does not report
    memory: str
    shares: Sequence[float]  # the latest busy shares
    notes: Sequence[str]
    can: Sequence[str]
    size: int = 1
    within: str = ""  # the key of the line that it folds into
    held: Sequence[Held] = ()  # what `memory` says, if its tasks report


class Seen:
    """A task as it was seen: its latest vital signs, and the shares of the time in which it was busy."""

    def __init__(self) -> None:
        self.state = ""
        self.vitals: Vitals | None = None
        self.before: Vitals | None = None
        self.shares: deque[float] = deque(maxlen=KEPT)
        self.missed = 0  # questions in a row that it did not answer
        self.alone_until = 0.0
        self.waits_since: dict[str, float] = {}  # its lines on waits
        self.failures = 0  # the number of the last one before it was last seen to run
        self.error = ""  # of a step, here or because the task has ended

    def is_new(self, vitals: Vitals | None) -> None:
        """Take the vital signs of now; those of a task that has restarted are the first ones."""
        self.before, self.vitals = self.vitals, vitals
        now, waits = REAL.now(), vitals.waits if vitals else ()
        self.waits_since = {line: self.waits_since.get(line, now) for line in waits}
        if self.before and vitals and (vitals.at < self.before.at or vitals.steps < self.before.steps):
            self.before = None

    def since(self) -> Iterator[tuple[Vitals, Vitals, float]]:
        """The last two, if there are two, and the seconds between them."""
        if self.before and self.vitals and self.vitals.at > self.before.at:
            yield self.before, self.vitals, self.vitals.at - self.before.at


class LiveCluster:
    """A cluster as a live panel shows it; each `look` asks all its tasks."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.paused: set[str] = set()  # tasks that the panel has paused
        self.at_work: dict[str, str] = {}  # what is being done to which task
        self.circle = CircleWatch(cluster)
        self._seen: dict[str, Seen] = {}
        self._looked = -math.inf
        self._lines: list[Line] = []

    def look(self) -> dict[str, Any]:
        """Ask all tasks; what has changed in the data of the view `cluster`."""
        if REAL.now() - self._looked > LEASE_S:  # nobody measured meanwhile
            for seen in self._seen.values():
                seen.is_new(None)
        self._looked = REAL.now()
        for task in self.cluster.tasks:
            seen, so_far = self._seen.setdefault(task.name, Seen()), failures[-1].number
            seen.state = self._state(task, seen)
            seen.is_new(self._ask(task, seen))
            if seen.vitals is not None:
                seen.failures, seen.error = so_far, seen.vitals.error
            else:
                seen.error = next(_blaming(task, seen.failures), seen.error)
        self._lines = self._all_lines()
        self.circle.look(self._wait_long())
        return self.data(latest=1)

    def data(self, latest: int = KEPT) -> dict[str, Any]:
        """The data of the view `cluster` as it was found, with the `latest` busy shares."""
        with together(task.name for task in self.cluster.tasks):
            rows = [_row(line, latest) for line in folded(self._lines)]
        circle = self.circle.picture
        says = self._sentence() + " There is a circle of waits." * bool(circle)
        drawn = circle.inline if circle else ""
        return {"title": title(self.cluster), "rows": rows, "says": says, "kept": KEPT, "circle": drawn}

    @contextlib.contextmanager
    def at_work_on(self, name: str, do: str) -> Iterator[None]:
        """In the block, something is done to a task. Unless it fails, the task is paused after it, or not any more."""
        self.at_work[name] = AT_WORK[do]
        try:
            yield
            (self.paused.add if do == "pause" else self.paused.discard)(name)
        finally:
            self.at_work.pop(name, None)  # of a cluster that ends meanwhile

    def _state(self, task: RunningTask, seen: Seen) -> str:
        """The state of a task in a word or two."""
        state = task.state
        if task.name in self.at_work:
            return self.at_work[task.name]
        if state != "running":
            return state
        return "paused" if task.name in self.paused else _SILENT if REAL.now() < seen.alone_until else state

    def _ask(self, task: RunningTask, seen: Seen) -> Vitals | None:
        """The vital signs of a task that runs and answers."""
        if not self.cluster.is_dtflab or seen.state != "running":
            return None
        try:
            rows = task.view("Vitals")
        except errors.OpError:
            seen.missed += 1
            if seen.missed > 1 and task.state == "running":  # once, it may be busy
                seen.state, seen.alone_until = _SILENT, REAL.now() + LEFT_ALONE_S
            return seen.vitals if seen.missed == 1 else None
        seen.missed = 0
        if not rows:  # it has just ended
            return None
        vitals = Vitals.read(rows[0])
        return vitals if self.cluster.world is None else vitals._replace(busy=self._busy(vitals.held))

    def _busy(self, held: Iterable[Held]) -> float:
        """In virtual time: the busy seconds of a task's busiest processor, as a share of what that could do."""
        assert self.cluster.world is not None
        slots = [self.cluster.world.processor(each.device) for each in held]
        return max(each.busy / len(each.lanes) for each in slots)

    def _all_lines(self) -> list[Line]:
        pulses, waits = self._pulses(), self._waits()
        devices = {row.task: row.devices for row in rows_of(self.cluster)}
        found = []
        for task in self.cluster.tasks:
            seen, pulse = self._seen[task.name], pulses.get(task.name)
            seen.shares.append(pulse.busy if pulse is not None else 0.0)
            vitals = seen.vitals
            error = [f"Last error: {short(seen.error.splitlines()[0])}"] if seen.error else []
            held = vitals.held if vitals else ()
            memory = _memory(held) or devices[device_spec.plain(task.name)]
            found.append(
                Line(
                    task.name, short(task.name), seen.state, pulse, memory, list(seen.shares),
                    [*_few(waits.get(task.name, [])), *error], self._can(task, seen.state), held=held,
                )
            )  # fmt: skip
        return found

    def _pulses(self) -> dict[str, Pulse]:
        """The rates of the tasks since the look before; all are 0 of one that reports for the first time."""
        received: Counter[str] = Counter()
        found = {name: Pulse() for name, seen in self._seen.items() if seen.vitals}
        for name, seen in self._seen.items():
            for before, now, seconds in seen.since():
                sent = {to: (total - before.sent.get(to, 0)) / seconds for to, total in now.sent.items()}
                received.update(sent)
                found[name] = Pulse(
                    (now.steps - before.steps) / seconds,
                    min(1.0, (now.busy - before.busy) / seconds),
                    sent=sum(sent.values()),
                )
        return {name: pulse._replace(received=float(received[name])) for name, pulse in found.items()}

    def _waits(self) -> dict[str, list[str]]:
        """Lines on waits that have lasted since the look before, or longer, by the task that they are about."""
        found: dict[str, list[str]] = {}
        for name, seen in self._seen.items():
            if seen.before and seen.vitals:
                for line in seen.vitals.waits:
                    if line in seen.before.waits:
                        who = _TASK.match(line)
                        task = device_spec.name_of_task(who[1], int(who[2])) if who else name
                        found.setdefault(task, []).append(short(_STEP.sub("", line)))
        return found

    def _wait_long(self) -> bool:
        """Whether something waits that may be part of a circle; in virtual time that is an error."""
        now = REAL.now()
        since = [each for seen in self._seen.values() for each in seen.waits_since.values()]
        return self.cluster.world is None and any(now - each >= LONG_S for each in since)

    def _can(self, task: RunningTask, state: str) -> list[str]:
        """The buttons for a task in a state."""
        if isinstance(task, AttachedTask) or self.cluster.world is not None or state in AT_WORK.values():
            return []
        if state in ("running", "paused", _SILENT):
            return ["resume" if state == "paused" else "pause", "stop", "kill", "restart"]
        return ["start"]

    def _sentence(self) -> str:
        """A summary, which changes seldom, since it is read aloud."""
        lines = self._lines
        running = sum(line.state == "running" for line in lines)
        parts = [f"{running} of {plural(len(lines), 'task')} {'run' if running != 1 else 'runs'}."]
        others = [f"{line.name}: {line.state}" for line in lines if line.state != "running"]
        if 0 < len(others) < len(lines):
            parts.append(f"{'; '.join(_few(others))}.")
        waiting = [line.name for line in lines if line.notes and not line.notes[0].startswith("Last error")]
        if waiting:
            parts.append(f"Ops wait at {', '.join(_few(waiting))}.")
        if not self.cluster.is_dtflab:
            parts.append(f"{self.cluster.are} do not report what they do: there are only their states.".capitalize())
        if self.cluster.world is not None:
            parts.append(
                "Rates are per second of virtual time; faults there are planned, with %%dtf_chaos or cluster.at."
            )
        return " ".join(parts)


def _blaming(task: RunningTask, after: int) -> Iterator[str]:
    """Errors that clients got because a task had ended, the latest first, down to that number."""
    for number, target, text in reversed(list(failures)):
        is_of_session = target == task.target and text.startswith("AbortedError: ")
        if number > after and (is_of_session or f" at {task.address} " in text):
            yield text


def short(text: str) -> str:
    """A text in which tasks have the names that people say: worker:0, ps:0 GPU:0."""
    return _TASK.sub(r"\1:\2", text).replace("/device:", " ")


def folded(lines: Iterable[Line]) -> Iterator[Line]:
    """The lines, those of many tasks of a job that are alike after one line for all of them."""
    for group in alike(lines, lambda line: (line.name.partition(":")[0], line.state, bool(line.notes))):
        if len(group) == 1:
            yield group[0]
            continue
        total = _sum(group)
        yield total
        yield from (line._replace(within=total.key) for line in group)


def _sum(group: Sequence[Line]) -> Line:
    """The line of several: their sums, those of memory by device, and the mean of their busy shares."""
    job, state = group[0].name.partition(":")[0], group[0].state
    pulses = [line.pulse for line in group if line.pulse is not None]
    total = Pulse(*map(sum, zip(*pulses, strict=True))) if pulses else None
    shares = [sum(each) / len(group) for each in zip(*(line.shares for line in group), strict=True)]
    held: dict[str, Held] = {}
    for device, nbytes, limit in (each for line in group for each in line.held):
        name = device.rpartition("/device:")[2]
        so_far = held.get(name, Held(name, 0, 0))
        held[name] = Held(name, so_far.nbytes + nbytes, so_far.limit + limit)
    return Line(
        key=f"{job}, {state}{', waiting' * bool(group[0].notes)}",
        name=f"{job}:{numbers([line.name for line in group])}",
        state=state,
        pulse=total and total._replace(busy=total.busy / len(pulses)),
        memory=_memory(held.values()),
        shares=shares,
        notes=_few([f"{line.name}: {note}" for line in group for note in line.notes]),
        can=[],
        size=len(group),
    )


def _few(texts: Sequence[str]) -> list[str]:
    more = len(texts) - _MOST_NOTES
    return [*texts[:_MOST_NOTES], f"and {more} more"] if more > 0 else list(texts)


def _memory(held: Iterable[Held]) -> str:
    """The memory of some devices in words. A CPU has no limit, and only its variables are known."""
    parts = (
        f"{device.rpartition('/device:')[2]} {memory_size(nbytes)} "
        + (f"of {memory_size(limit)}" if limit else "in variables")
        for device, nbytes, limit in held
    )
    return ", ".join(parts)


def _row(line: Line, latest: int) -> dict[str, Any]:
    """A line as the page writes it."""
    seen = look(line.key if line.size == 1 else f"/job:{line.name.partition(':')[0]}/task:0")
    numbers = {"steps": "", "busy": "", "received": "", "sent": ""}
    if line.pulse is not None:
        numbers = {
            "steps": _rate(line.pulse.steps),
            "busy": f"{line.pulse.busy:.0%}",
            "received": f"{byte_size(line.pulse.received)}/s",
            "sent": f"{byte_size(line.pulse.sent)}/s",
        }
    return numbers | {
        "key": line.key, "name": line.name, "letter": seen.letter if line.size == 1 else f"{line.size}×",
        "fill": seen.colour.fill, "ink": seen.colour.ink, "line": seen.colour.line,
        "state": line.state, "runs": line.state.startswith("running"), "memory": line.memory,
        "shares": [round(100 * share) for share in line.shares[-latest:]], "notes": line.notes, "can": line.can,
        "size": line.size, "within": line.within,
    }  # fmt: skip


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 9.95 or not value else f"{value:.1f}"
