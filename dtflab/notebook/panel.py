"""The cluster panel: a table of its tasks that is live while it is looked at, with buttons above it.

The table is HTML: so it is still there in a saved notebook, an untrusted one, and on a page that nbconvert made. In a
notebook the front end brings it to life (viz/page/src/views/cluster.ts) for as long as a task of the cluster runs; then
the table is all again.

Rules: a question of the page comes on another thread than cells do (JupyterLab's subshells), so it is only noted there:
a ticker looks at the tasks, and what is done to a task has a thread of its own. Panels look again after each cell, so a
saved notebook shows a stopped cluster or a crashed task.
"""

from __future__ import annotations

import _thread
import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from IPython.display import display

from dtflab.base import errors
from dtflab.cluster.cluster import Cluster
from dtflab.graph import device_spec
from dtflab.machine.clock import REAL
from dtflab.machine.console import in_notebook
from dtflab.notebook import cluster_view
from dtflab.notebook.cluster_live import AT_WORK, EVERY_S, LiveCluster
from dtflab.viz.drawing import front_end
from dtflab.viz.drawing.picture import Picture
from dtflab.viz.drawing.svg import Markup, tag
from dtflab.viz.drawing.ticker import Ticker

_panels: list[Panel] = []  # of running clusters
_shown: list[Cluster] = []  # by the cell that runs


class Panel:
    """A cluster in the output of a cell."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.live = LiveCluster(cluster)
        self.ticker: Ticker | None = None
        self._touch: dict[str, str] = {}
        self._note = ""  # what a button did, or why it could not
        self._lock = threading.Lock()
        if self.running:
            front_end.begin()
            self._touch = front_end.in_touch(self._answer)
            self.ticker = Ticker(self._touch["picture"], self._state, every=EVERY_S)
            self.live.look()
            _panels.append(self)
        self._broken: Picture | None = None  # the circle of waits that the last interrupt ended
        self._still = self._still_of_now()
        self._display = display(self._bundle(), raw=True, display_id=True)

    @property
    def running(self) -> bool:
        return any(task.state == "running" for task in self.cluster.tasks)

    def refresh(self, was_interrupted: bool = False) -> None:
        """Show the state of now where no front end does: the table of the output, if it has changed."""
        with self._lock:
            if was_interrupted:
                self._broken = self.live.circle.before_the_interrupt()
            found = self._still_of_now()
            over = not self.running and self in _panels
            if over:
                _panels.remove(self)
                assert self.ticker is not None
                self.ticker.end()
                self._touch = {}
            if found != self._still or over:
                self._still = found
                self._display.update(self._bundle(), raw=True)

    def _still_of_now(self) -> dict[str, str]:
        """The table, and below it the circle that an interrupt has broken."""
        text, table = cluster_view.text(self.cluster), cluster_view.table(self.cluster)
        circle = self._broken
        if circle is None:
            return {"text/plain": text, "text/html": table}
        return {"text/plain": f"{text}\n\n{circle.text}", "text/html": table + circle.html}

    def _bundle(self) -> dict[str, str]:
        parts = [tag("div", Markup(self._still["text/html"]), class_="dtf-drawing")]
        if self._touch:
            data = {"view": "cluster", "stops": self._stops()} | self.live.data() | self._touch
            parts.append(tag("script", front_end.written(data), type="application/json", class_="dtf-data"))
        return self._still | {"text/html": str(tag("div", *parts, class_="dtf-picture"))}

    def _stops(self) -> dict[str, str]:
        """The button that ends the cluster, or looking at it: its label, and what it does."""
        is_ours = len(self.cluster.attached) < len(self.cluster.tasks)
        word, what = ("Stop all", "End all") if is_ours else ("Detach", "Stop looking at the")
        return {"label": word, "says": f"{what} tasks of {self.cluster.name}"}

    # ---- what the page asks

    def _answer(self, asks: Mapping[str, str], tell: Callable[[Mapping[str, Any]], object]) -> None:
        """The page is there, or a button was pressed; called on the thread of the page's messages."""
        do = asks["do"]
        if self.ticker is None or self not in _panels:
            return
        if do == "interrupt":
            self._note = interrupt()
        elif do == "end":
            REAL.spawn(self._end, name=f"stop of {self.cluster.name}")
        elif do in AT_WORK:
            REAL.spawn(self._act, do, asks["task"], name=f"{do} of {asks['task']}")
        self.ticker.seen()

    def _state(self) -> dict[str, Any]:
        return self.live.look() | {"note": self._note}

    def _end(self) -> None:
        """Stop the cluster."""
        with self._noted("Stopping…"), contextlib.ExitStack() as each:
            for task in self.cluster.tasks:
                each.enter_context(self.live.at_work_on(task.name, "stop"))
            self.cluster.stop()

    def _act(self, do: str, name: str) -> None:
        """Pause, stop, kill, start or restart a task."""
        job, index = device_spec.job_and_index(name)
        task = self.cluster.task(job, index)
        begin_again = partial(self.cluster.restart, job, index)
        acts: dict[str, Callable[[], object]] = {
            "pause": task.pause, "resume": task.go_on, "stop": task.stop, "start": begin_again, "restart": begin_again,
            "kill": partial(self.cluster.kill, job, index),
        }  # fmt: skip
        with self._noted(""), self.live.at_work_on(name, do):
            acts[do]()

    @contextlib.contextmanager
    def _noted(self, meanwhile: str) -> Iterator[None]:
        """Let the panel say something while something is done; then, if it failed, why."""
        self._note = meanwhile
        try:
            yield
        except (errors.OpError, ValueError, OSError) as error:
            self._note = str(error)
        else:
            self._note = ""
        finally:
            self.refresh()


def interrupt() -> str:
    """End the cell that runs by a KeyboardInterrupt, as the kernel's interrupt does; returns what to say."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as ipykernel has it between cells
        return "No cell is running."
    thread = threading.main_thread().ident
    if thread is not None and hasattr(signal, "pthread_kill"):
        signal.pthread_kill(thread, signal.SIGINT)  # wakes a system call, too
    else:
        _thread.interrupt_main()
    return "The cell was interrupted."


def show(cluster: Cluster) -> None:
    """Display a cluster where it is the value of a cell, unless the cell has shown it; in a terminal, print it."""
    if not in_notebook():
        print(cluster_view.text(cluster))
    elif cluster not in _shown:
        show_now(cluster)


def show_now(cluster: Cluster) -> None:
    """In a notebook, display a cluster where a cell stands, also if its value is assigned to a name."""
    if in_notebook():
        Panel(cluster)
        _shown.append(cluster)


def begin_cell(_: Any = None) -> None:
    """A cell begins, which has shown nothing yet."""
    _shown.clear()


def refresh_all(result: Any = None) -> None:
    """Let every panel of a running cluster look again: a cell has ended, with IPython's `result`."""
    was_interrupted = isinstance(getattr(result, "error_in_exec", None), KeyboardInterrupt)
    for panel in list(_panels):
        panel.refresh(was_interrupted)
