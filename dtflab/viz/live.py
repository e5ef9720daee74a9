"""Live pictures of a block: the curves of a training, with a button that stops it, or any picture, drawn again.

    with tf.viz.live("loss", steps=600) as live:
        for _ in range(600):
            live(sess.run([loss, train])[0])

A report costs its caller about a microsecond; a ticker's thread draws. At the end the picture is a still. In a notebook
without anywidget the still is drawn again every two seconds; in a terminal there is a line of text every five.
"""

from __future__ import annotations

import functools
import math
import operator
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self, SupportsFloat, SupportsIndex, overload

from dtflab.graph import device_spec
from dtflab.machine.clock import REAL
from dtflab.machine.console import in_notebook, say
from dtflab.train.replicas.staleness import STALENESS
from dtflab.train.sessions.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from dtflab.viz.data.course import Course, Report
from dtflab.viz.drawing import front_end
from dtflab.viz.drawing.marks import heading
from dtflab.viz.drawing.picture import Picture, nothing_yet
from dtflab.viz.drawing.ticker import PATIENCE, Ticker
from dtflab.viz.live_curves import Labels, curves, in_order, summary, until

_NEWS_S, _STILL_S, _LINE_S = 0.2, 2.0, 5.0  # from one message to the next; between two stills, two lines of text
_NUMBERS = "live() draws numbers; {} is {!r}."
_LAST_S = 2.0  # the longest that the end of a block waits for the last state


@overload
def live(what: str, *, steps: int | None = None, over: str = ..., title: str = "", show: bool = True) -> Live: ...
@overload
def live(what: Callable[[], Picture], *, show: bool = True) -> Redrawn: ...
def live(
    what: str | Callable[[], Picture],
    *,
    steps: int | None = None,
    over: str = "step",
    title: str = "",
    show: bool = True,
) -> Live | Redrawn:
    """A picture for a `with` block, which changes while the block runs.

    With a name, the curves of what the block reports: `live(value, worker=0)`. `steps` is how many reports all workers
    make together, from which the time left follows; `over` names the x axis. The picture has a button that stops the
    training: ask `live.should_stop()`, or use `live.hook(loss)` in a MonitoredSession; `cluster.run(work, watch=live)`
    opens the block itself, and its clients report by `client.report(loss)`. `live.remark("sync, 2 of 3")` stands in the
    heading until the next one.

    With a function, the picture that it returns, five times a second at most: `tf.viz.live(lambda:
    tf.viz.queues_now(cluster))`. With `show=False` the object itself is the picture, to be shown elsewhere.
    """
    if callable(what):
        return Redrawn(what, show)
    if not isinstance(what, str) or not what:
        raise TypeError(f"live() needs the name of a value, as 'loss', or a function that draws, not {what!r}.")
    if steps is not None and (not isinstance(steps, SupportsIndex) or steps < 1):
        raise ValueError(f"steps={steps!r}: how many reports all workers make together, 1 or more; None if unknown.")
    return Live(Labels(title or what.capitalize(), what, over), steps, show)


class _Shown:
    """The common part of live pictures: a block, a ticker, a still at the end."""

    def __init__(self, show: bool) -> None:
        self._show = show
        self._touch = front_end.in_touch(self._answer)
        self._lock = threading.Lock()
        self._wants_all = True  # the page has nothing to add news to
        self._handle: Any = None
        self._ticker: Ticker | None = None
        self._done = False
        self._depth = 0  # a block may open it again: with live: cluster.run(work, watch=live)

    def __enter__(self) -> Self:
        if self._done:
            raise RuntimeError("A live picture is for one block. Make another one: tf.viz.live(…).")
        self._depth += 1
        if self._depth > 1:
            return self
        self._begin()
        self._ticker = self._new_ticker(math.inf)
        if self._show and in_notebook():
            from IPython.display import display

            self._handle = display(self, display_id=True)  # type: ignore[no-untyped-call]
        self._ticker.begin()
        return self

    def _new_ticker(self, patience: float) -> Ticker:
        front_end.begin()
        every = _NEWS_S if front_end.is_heard() else _STILL_S if in_notebook() else _LINE_S
        return Ticker(self._touch["picture"], self._state, every, patience)

    def _begin(self) -> None:
        """The block begins now."""

    def __exit__(self, *_: object) -> None:
        assert self._ticker is not None
        self._depth -= 1
        if self._depth:
            return
        self._done = True
        self._ticker.end()
        self._ticker.join(_LAST_S)
        if self._handle is not None:
            self._handle.update(self)

    @property
    def picture(self) -> Picture:
        """The picture as it is now."""
        raise NotImplementedError

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return self.picture._repr_mimebundle_()

    def _answer(self, asks: Mapping[str, str], tell: object) -> None:
        """Note a question of the page; called on the thread of its messages."""
        self._wants_all |= asks["do"] == "all"
        if self._ticker is not None:
            self._ticker.seen()

    def _state(self) -> Mapping[str, Any] | None:
        """The news for the page; without one, show them in another way."""
        if front_end.is_heard():
            return self._news()
        if self._handle is not None:
            self._handle.update(self)
        return None

    def _news(self) -> Mapping[str, Any]:
        raise NotImplementedError


class Redrawn(_Shown):
    """A picture that a function draws again and again while a block runs."""

    def __init__(self, draw: Callable[[], Picture], show: bool) -> None:
        super().__init__(show)
        self._draw = draw
        self._drawn = ""
        self._last: Picture | None = None

    def follow(self) -> Self:
        """Draw it again from now on without a block, for as long as a page shows it."""
        self._ticker = self._new_ticker(PATIENCE)
        self._ticker.begin()
        return self

    @property
    def picture(self) -> Picture:
        """The picture as it is now; when there is nothing to draw, as it was, or why."""
        try:
            self._last = self._draw()
        except (ValueError, RuntimeError, NotImplementedError) as error:
            self._last = self._last or nothing_yet(str(error))
        return self._last.living({"view": "redrawn", "done": self._done} | self._touch)

    def _news(self) -> Mapping[str, Any]:
        picture = self.picture
        drawn = picture.inline
        is_new, self._wants_all = drawn != self._drawn or self._wants_all, False
        self._drawn = drawn
        return (
            {"svg": drawn, "tables": picture.tables_html, "says": picture.sentence, "done": self._done}
            if is_new
            else {}
        )


class Live(_Shown):
    """The curves of a training that runs: call it to report, ask it whether to stop."""

    def __init__(self, labels: Labels, steps: int | None, show: bool) -> None:
        super().__init__(show)
        self._labels = labels
        self._course = Course(steps, REAL.now())
        self._reports: deque[Report] = deque()
        self._sent: dict[str, tuple[int, int]] = {}  # of each line: how often it was thinned, how many points are there
        self._stopping = self._is_asked = self._is_over = False

    def _begin(self) -> None:
        self._course = Course(self._course.steps, REAL.now())

    def __call__(
        self,
        value: SupportsFloat,
        worker: SupportsIndex | str = 0,
        step: SupportsFloat | None = None,
        staleness: SupportsFloat | None = None,
    ) -> None:
        """Report a value of a worker, a number or any name; `step` is its place on the x axis, else they are counted.

        `staleness` is the age of its gradient, where it is known: `optimizer.staleness` of a StalenessOptimizer.
        """
        if self._ticker is None or self._done:
            raise RuntimeError("live() reports within its block: with tf.viz.live('loss') as live: … live(loss).")
        who = worker if isinstance(worker, str) else _task(operator.index(worker))
        x = None if step is None else _finite(step, "step")
        age = None if staleness is None else _finite(staleness, "staleness")
        try:
            self._reports.append((who, float(value), x, age))
        except (TypeError, ValueError):
            raise TypeError(_NUMBERS.format(self._labels.value, value)) from None

    def remark(self, text: str) -> None:
        """Say in the heading what is being computed, until the next remark or the end of the block."""
        self._labels = self._labels._replace(remark=text)

    def should_stop(self) -> bool:
        """True once somebody has pressed *Stop*: end the loop."""
        self._is_asked = True
        return self._stopping

    def stop(self) -> None:
        """Ask the training to stop, as the button does."""
        self._stopping = True

    def hook(
        self, value: Any, worker: SupportsIndex | str | None = None, *, step: Any = None, staleness: Any = None
    ) -> SessionRunHook:
        """A hook for a MonitoredSession that reports tensors of each run, and ends the training at *Stop*.

        Without `worker` it is the task on which the program puts `value`, else worker 0; without `staleness` that of
        the graph's StalenessOptimizer, if it has one.
        """
        if worker is None:
            worker = _task_of(value)
        return _Hook(self, worker, {"value": value, "step": step, "staleness": staleness})

    @property
    def picture(self) -> Picture:
        """The picture as it is now."""
        with self._lock:
            return self._drawn()

    def _drawn(self) -> Picture:
        self._take()
        return curves(self._course, self._labels, self._is_over, self._stopping, self._data)

    def _take(self) -> None:
        """Under the lock: take what was reported; after the end of the block that is all."""
        self._is_over = self._done
        self._course.add(_taken(self._reports), REAL.now())

    def _data(self, plan: Mapping[str, Any]) -> dict[str, Any]:
        lines = [[0, *line.since(0)] for _, line in in_order(self._course)]
        return {"view": "live", "done": self._is_over, "lines": lines, **plan, **self._touch}

    def _answer(self, asks: Mapping[str, str], tell: object) -> None:
        super()._answer(asks, tell)
        if asks["do"] == "stop":
            self.stop()

    def _state(self) -> Mapping[str, Any] | None:
        if self._handle is not None or front_end.is_heard():
            return super()._state()
        with self._lock:
            self._take()
            if self._course.count:
                say(f"{self._labels.title}: {self._status()['status']}")
        return None

    def _news(self) -> Mapping[str, Any]:
        """The points that are new; all, with their axes, if there is another line, or if the page asks."""
        with self._lock:
            self._take()
            if not self._wants_all and self._sent.keys() == self._course.lines.keys():
                lines = [self._since(*item) for item in in_order(self._course)]
                return {"lines": lines, "done": self._is_over} | self._status()
            self._wants_all = False
            picture = self._drawn()
            self._sent = {who: (line.thinned, len(line.xs)) for who, line in self._course.lines.items()}
            return {**picture.living_data, "svg": picture.inline, **self._status()}

    def _since(self, who: str, line: Any) -> list[Any]:
        thinned, first = self._sent[who]
        first = first if thinned == line.thinned else 0
        self._sent[who] = line.thinned, len(line.xs)
        return [first, *line.since(first)]

    def _status(self) -> dict[str, Any]:
        unheard = self._stopping and not self._is_asked and not self._is_over
        words = ": the program does not ask live.should_stop(); interrupt the kernel instead" if unheard else ""
        status = summary(self._course, self._labels, self._is_over, self._stopping) + words
        head, end = heading(self._labels.title, status), until(self._course, self._labels.over, self._is_over)
        return {"status": status, "head": head, "until": end}


class _Hook(SessionRunHook):
    """Reports the values of tensors, and asks for an end."""

    def __init__(self, live: Live, worker: SupportsIndex | str, fetches: Mapping[str, Any]) -> None:
        self._live, self._worker = live, worker
        self._fetches = {name: fetch for name, fetch in fetches.items() if fetch is not None}

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        if "staleness" not in self._fetches:
            known = run_context.session.graph.get_collection(STALENESS)
            if len(known) == 1:  # of several, none is this worker's by its name
                self._fetches["staleness"] = known[0]
        return SessionRunArgs(self._fetches)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        self._live(worker=self._worker, **run_values.results)
        if self._live.should_stop():
            run_context.request_stop()


def _finite(value: SupportsFloat, name: str) -> float:
    if not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, not {value!r}.")
    return float(value)


@functools.cache
def _task(worker: int) -> str:
    return f"/job:worker/task:{worker}"


def _task_of(tensor: Any) -> str:
    """The task that a tensor's device names."""
    device = device_spec.parse(getattr(tensor, "device", ""))
    return _task(0) if device.job is None or device.task is None else f"/job:{device.job}/task:{device.task}"


def _taken(reports: deque[Report]) -> Iterator[Report]:
    """The reports that are there now; those that come meanwhile wait for the next time."""
    for _ in range(len(reports)):
        yield reports.popleft()
