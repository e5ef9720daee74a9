"""Chaos: faults on purpose, at exact moments, in a cluster of any engine.

    with dtflab.chaos(cluster, kill="worker:1@step5", slow="ps:0=4x") as chaos:
        train()

Stands for nothing in TensorFlow.

Rules: every fault ends with the block; only a task that was killed stays dead, unless the fault says when it starts
again. Equal seeds lose equal calls. What happened is in `chaos.events`, in virtual time also in the log of events.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from dtflab.base import errors
from dtflab.base.events import PROCESS, Begins
from dtflab.base.text_table import text_table
from dtflab.base.timeouts import timeouts
from dtflab.cluster import chaos_trace
from dtflab.cluster.chaos_options import EXAMPLES, KINDS, Fault, fault, short
from dtflab.cluster.chaos_trace import Shown
from dtflab.cluster.faults import NONE, Setting
from dtflab.cluster.task import await_task
from dtflab.graph import device_spec
from dtflab.machine.clock import REAL

if TYPE_CHECKING:
    from dtflab.cluster.cluster import Cluster
    from dtflab.cluster.engines import RunningTask
    from dtflab.machine.clock import Thread

Texts = str | Iterable[str]
_OF_ALL = ("kill", "stop")  # faults that need nothing of the task itself


class ChaosEvent(NamedTuple):
    """Something that chaos did. `at` is seconds on the cluster's clock; `task` is "" if several are concerned."""

    at: float
    what: str  # killed, stopped, slow, cut off, …; restarted, goes on, as usual for its end; lost: a call
    task: str
    detail: str = ""


def chaos(
    cluster: Cluster,
    *,
    kill: Texts = (),
    slow: Texts = (),
    drop: Texts = (),
    partition: Texts = (),
    stop: Texts = (),
    seed: int = 0,
) -> Chaos:
    """Let tasks of a cluster fail in a `with` block: each argument is a text or a list of texts.

    `kill="worker:1@step5"`: a task ends, as in a crash; with `=2s` it is started again after 2 s. `stop="worker:0=3s"`:
    it stands still for 3 s, then goes on. `slow="ps:0=4x"`: what it computes takes 4 times as long.
    `drop="RecvTensor:0.1"`: a call of that method between two tasks is lost with probability 0.1, drawn from `seed`.
    `partition="ps|worker:2"`: nothing crosses between the groups.

    A task is `ps:0`, a whole job `ps`, several `ps,worker:1`. A fault begins at once, at `@2.5s` of the cluster's clock
    after the block has begun, or `@step5`: before the fifth `session.run` in the block that this process asks the
    cluster for. It ends with the block, or after the seconds that it says (`=3s`). Tasks of TensorFlow can be killed
    and stopped. ValueError for a text that is wrong, or a fault that the engine can't have.
    """
    given = {"kill": kill, "slow": slow, "drop": drop, "partition": partition, "stop": stop}
    from dtflab.cluster.cluster import Cluster  # which knows its chaos

    if not isinstance(cluster, Cluster):
        raise TypeError(f"chaos needs a dtflab.Cluster, not an object of type {type(cluster).__name__}.")
    tasks = [task.name for task in cluster.tasks]
    faults = [fault(kind, text, tasks) for kind in KINDS for text in _texts(kind, given[kind])]
    if not isinstance(seed, int):
        raise ValueError(f"seed={seed!r}: give a whole number.")
    unable = [one for one in faults if one.kind not in _OF_ALL] if not cluster.is_dtflab else []
    if unable:
        raise ValueError(
            f"{unable[0].kind}={unable[0].text!r}: the tasks of {cluster.name} are {cluster.are}, which can be killed "
            "and stopped only. Choose kill=… or stop=…, or a cluster with engine='process'."
        )
    return Chaos(cluster, faults, seed)


def _texts(kind: str, given: Texts) -> list[str]:
    """The texts of a kind of fault; TypeError for what is neither a text nor a list of some."""
    texts = [given] if isinstance(given, str) else given
    if not (isinstance(texts, Iterable) and all(isinstance(text, str) for text in texts)):
        raise TypeError(f"{kind}={given!r}: give a text, such as {kind}={EXAMPLES[kind]!r}, or a list of texts.")
    return list(texts)


@dataclasses.dataclass
class _Span:
    """A fault that has begun, and when it ended."""

    fault: Fault
    began: float
    ended: float = math.inf


class Chaos:
    """The faults of a block, and what has happened: `events`, and how many `steps` have begun."""

    def __init__(self, cluster: Cluster, faults: list[Fault], seed: int) -> None:
        self.steps = 0
        self.began = 0.0
        self._cluster = cluster
        self._clock = cluster.clock
        self._faults = faults
        self._seed = seed
        self._events: list[ChaosEvent] = []
        self._known_lost: dict[tuple[Any, ...], None] = {}  # rows of the tasks' views
        self._spans: list[_Span] = []
        self._changing = threading.RLock()
        self._over = self._clock.event()
        self._threads: list[Thread] = []
        self._failed: Exception | None = None

    # -- the block --------------------------------------------------------------------------------------------

    def __enter__(self) -> Chaos:
        if self._cluster.chaos is not None:
            raise RuntimeError(f"{self._cluster.name} is in a block of chaos already: give both their faults to one.")
        self._cluster.chaos = self
        self.began = self._clock.now()
        PROCESS.add(self)
        try:
            for one in self._faults:
                if one.at_seconds:
                    self._spawn(self._after, one.at_seconds, self._begin, one)
                elif not one.at_step:
                    self._begin(one)
        except BaseException:
            self._end_all()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        self._end_all()
        if self._failed is not None and error is None:
            raise self._failed

    def _end_all(self) -> None:
        PROCESS.remove(self)
        self._over.set()
        for thread in self._threads:
            thread.join()
        try:
            for span in reversed(self._spans):
                if math.isinf(span.ended):
                    self._end(span)
            self._ask_for_lost()
        finally:
            self._cluster.chaos = None

    def _spawn(self, target: Callable[..., object], *args: object) -> None:
        self._threads.append(self._clock.spawn(target, *args, name="chaos"))

    def _after(self, seconds: float, act: Callable[[Any], object], one: Fault | _Span) -> None:
        """Do something after some seconds, unless the block ends before."""
        try:
            if not self._over.wait(seconds):
                act(one)
        except Exception as error:  # the end of the block raises it
            self._failed = self._failed or error

    def on_begins(self, begins: Begins) -> None:
        """A client of this process is about to ask a master for a step."""
        if not self._is_ours(begins):
            return
        with self._changing:
            self.steps += 1
            due = [one for one in self._faults if one.at_step == self.steps]
        for one in due:
            self._begin(one)

    def _is_ours(self, step: Begins) -> bool:
        return step.target in {task.target for task in self._cluster.tasks}

    # -- faults -----------------------------------------------------------------------------------------------

    def _begin(self, one: Fault) -> None:
        span = _Span(one, self._clock.now())
        with self._changing:
            self._spans.append(span)
            self._note_all(one, begins=True)
            for task in one.tasks:
                self._act(one, task, begins=True)
        if math.isfinite(one.lasts):
            self._spawn(self._after, one.lasts, self._end, span)

    def _end(self, span: _Span) -> None:
        with self._changing:
            span.ended = self._clock.now()
            for task in span.fault.tasks:
                self._act(span.fault, task, begins=False)
            self._note_all(span.fault, begins=False)
        if span.fault.kind == "kill" and math.isfinite(span.fault.lasts):
            for name in span.fault.tasks:
                self._cluster.restart(*device_spec.job_and_index(name))
                self._note("restarted", name)

    def _active_at(self, name: str) -> list[Fault]:
        """The faults that concern a task now."""
        return [span.fault for span in self._spans if math.isinf(span.ended) and name in span.fault.tasks]

    def _act(self, one: Fault, name: str, begins: bool) -> None:
        """Let a fault begin or end at one of its tasks."""
        task = self._cluster.task(*device_spec.job_and_index(name))
        if one.kind == "kill":
            if begins:
                self._cluster.kill(*device_spec.job_and_index(name))
                self._note("killed", name)
        elif task.state != "running":
            return
        elif one.kind != "stop":
            if one.kind == "slow":
                self._note("slow" if begins else "as fast as usual", name, f"{one.factor:g}x" if begins else "")
            if not self._is_stopped(name):  # else it could not answer, and learns of it when it goes on
                self._set(task)
        elif begins:
            self._note("stopped", name)
            task.pause()
        elif not self._is_stopped(name):
            task.go_on()
            self._note("goes on", name)
            if self._cluster.is_dtflab:
                self._set(task)

    def _is_stopped(self, name: str) -> bool:
        return any(one.kind == "stop" for one in self._active_at(name))

    def _note_all(self, one: Fault, begins: bool) -> None:
        """Note the begin or the end of a fault between tasks, once for all of them."""
        if one.kind == "drop":
            self._note("calls are lost" if begins else "no call is lost", "", f"{one.method}:{one.probability:g}")
        elif one.kind == "partition":
            groups = " | ".join(" ".join(map(short, group)) for group in one.groups)
            self._note("cut off" if begins else "joined again", "", groups)

    def began_again(self, task: RunningTask) -> None:
        """A task has been started again: what is active holds for it, too."""
        with self._changing:
            if self._setting(task.name) != NONE:
                self._set(task)

    def _set(self, task: RunningTask) -> None:
        """Tell a task its faults; one that has just ended has none, and one that has just gone on counts as silent."""
        tell = partial(task.set_faults, self._setting(task.name))
        await_task(tell, task.name, task.address, REAL, timeouts.connect, lambda: task.state != "running")

    def _setting(self, name: str) -> Setting:
        """The faults of a task that are active now."""
        active = self._active_at(name)
        return NONE._replace(
            seed=self._seed if any(one.kind == "drop" for one in active) else 0,
            slow=math.prod(one.factor for one in active),
            cut_off=tuple(other for one in active if one.kind == "partition" for other in _others(one, name)),
            drop={one.method: one.probability for one in active if one.kind == "drop"},
        )

    # -- what happened ----------------------------------------------------------------------------------------

    def _note(self, what: str, task: str, detail: str = "") -> None:
        now = self._clock.now()
        self._events.append(ChaosEvent(now, what, task, detail))
        if self._cluster.world is not None:
            self._cluster.world.log.add(now, now, 0, f"chaos: {what} {detail}".rstrip(), task)

    def _ask_for_lost(self) -> None:
        """Ask the tasks which calls they have lost; what a task that ended had noted is gone."""
        if not any(one.kind == "drop" for one in self._faults):
            return
        for task in self._cluster.tasks:
            with contextlib.suppress(errors.UnavailableError):
                for row in task.view("Lost") if task.state == "running" else ():
                    self._known_lost[(task.name, *row)] = None

    def on_traced(self, step: Begins) -> None:
        """A step has ended well; if it was traced, what chaos did meanwhile belongs to its trace."""
        stats = getattr(step.metadata, "step_stats", None)
        if stats is not None and self._is_ours(step):
            self._ask_for_lost()
            chaos_trace.write(stats, self._shown(), self._clock.time() - self._clock.now())

    def _shown(self) -> list[Shown]:
        lost = [Shown(f"lost {m} to {short(to)}", task, at, at) for task, at, m, to, _ in self._known_lost]
        faults = [
            Shown(_label(span.fault, task), task, span.began, span.ended)
            for span in self._spans
            if span.fault.kind != "drop"
            for task in span.fault.tasks
        ]
        return lost + faults

    @property
    def events(self) -> list[ChaosEvent]:
        """The events so far, the oldest first."""
        if self._cluster.chaos is self:
            self._ask_for_lost()
        lost = [
            ChaosEvent(at, "lost", task, f"{method} to {short(target)}")
            for task, at, method, target, _ in self._known_lost
            if at >= self.began
        ]
        return sorted([*self._events, *lost], key=lambda event: event.at)

    def __repr__(self) -> str:
        rows = [[f"{e.at - self.began:.3f}", e.what, short(e.task), e.detail] for e in self.events]
        parts = [f"Chaos in {self._cluster.name}: {len(rows)} events, {self.steps} steps"]
        parts += [text_table(("seconds", "what", "task", "detail"), rows)] * bool(rows)
        begun = {id(span.fault) for span in self._spans}
        parts += [f"did not begin: {one.kind} {one.text}" for one in self._faults if id(one) not in begun]
        return "\n".join(parts)


def _label(one: Fault, name: str) -> str:
    """The words of a picture for a fault at one of its tasks."""
    if one.kind == "partition":
        return f"cut off from {', '.join(map(short, _others(one, name)))}"
    return {"kill": "killed", "stop": "stopped", "slow": f"slow {one.factor:g}x"}[one.kind]


def _others(one: Fault, name: str) -> list[str]:
    """The tasks on the other sides of a partition."""
    return [task for group in one.groups if name not in group for task in group]
