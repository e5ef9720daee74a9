"""`%%dtf_run`: a cell for one task, as if it were that task's program: its device, a session with its server.

Rule: apart from the device and `sess` it is a cell like any other: names, errors, magics, the value of its last line,
which a semicolon hides. Left out: `await` outside of a function, for IPython runs a cell's magic next to its event
loop.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import re
from collections import deque
from types import CodeType, SimpleNamespace
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.display import display

from dtflab import viz
from dtflab.base.events import PROCESS
from dtflab.base.suggestions import did_you_mean
from dtflab.cluster.cluster import Cluster
from dtflab.cluster.engines import RunningTask
from dtflab.graph import device_spec, scopes
from dtflab.notebook.arguments import argument, magic, words
from dtflab.notebook.cluster_magic import NAME, cluster_named, clusters_by_name
from dtflab.notebook.magics import DtfMagics
from dtflab.protos.config_pb2 import RunMetadata, RunOptions
from dtflab.runtime.session import Session, open_sessions

_EXAMPLE = "%%dtf_run --on /job:worker/task:0"
_SHORT = re.compile(r"^(\w+):(\d+)$")  # worker:0, as pictures write it
_LOCAL = (
    "A session without a target ran in this process, not on the cluster: use `sess`, or tf.Session(cluster.target)."
)
_MOST_TRACES = 3  # timelines below a cell


class TaskSession(Session):
    """A session that keeps the traces of its latest steps, and counts its steps, while it `is_traced`."""

    is_traced = False

    def begin(self, traced: bool) -> None:
        """Forget the steps of an earlier cell."""
        self.is_traced, self.steps = traced, 0
        self.traces: deque[RunMetadata] = deque(maxlen=_MOST_TRACES)

    def run(
        self,
        fetches: object,
        feed_dict: object = None,
        options: RunOptions | None = None,
        run_metadata: RunMetadata | None = None,
    ) -> Any:
        """Run as any session; a step that asks for no trace of its own is traced here."""
        if not self.is_traced or options is not None or run_metadata is not None:
            return super().run(fetches, feed_dict, options, run_metadata)
        metadata = RunMetadata()
        values = super().run(fetches, feed_dict, RunOptions(trace_level=RunOptions.FULL_TRACE), metadata)
        self.steps += 1
        self.last_trace = metadata
        self.traces.append(metadata)
        return values

    def show(self) -> None:
        """Draw the steps of the cell that it traced: all of a few, else the last ones."""
        self.is_traced = False
        if not self.steps:
            print("No step of `sess` has run in this cell, so there is nothing to draw: sess.run(…), or y.eval().")
        for i, metadata in enumerate(self.traces):
            number = self.steps - len(self.traces) + i + 1
            with contextlib.suppress(ValueError):  # a step of nothing but feeds takes no time
                display(viz.timeline(metadata, title=f"Step {number} of {self.steps}", graph=self.graph))


def _tasks(magics: TaskMagics) -> list[str]:
    clusters = clusters_by_name(magics).values()
    return sorted({device_spec.plain(task.name) for cluster in clusters for task in cluster.tasks})


@magics_class
class TaskMagics(Magics):
    """The cell magic run; clusters are those of %dtf_cluster, or those that have a name in Python."""

    def __init__(self, shell: Any, lines: DtfMagics) -> None:
        super().__init__(shell)
        self.lines = lines
        self._sessions: dict[str, tuple[RunningTask, TaskSession]] = {}

    @magic
    @argument("--on", default="", help="a task: worker:0 or /job:worker/task:0", values=_tasks)
    @argument("--trace", action="store_true", help="show timelines of its last steps below")
    @NAME
    @line_cell_magic
    def dtf_run(self, line: str, cell: str) -> None:
        """Run a cell on one task: within its device, with `sess`, a session with its server.

        %%dtf_run --on /job:worker/task:0
        y = tf.square(x)                 # on worker 0, since it names no other device
        sess.run(y, {x: 3.0})            # by worker 0's server; y.eval({x: 3.0}) is the same

        %%dtf_run --on /job:worker/task:0 --trace    with timelines of the last 3 steps of `sess` below
        %%dtf_run --on /job:ps/task:0 --name other     a cluster with another name

        A semicolon at the end hides the last value. `await` works only inside an async function.
        What the cell assigns stays, and so does `sess`, until the next such cell. Cells of one task
        share a session as long as the task runs and the default graph stays the same. In plain Python:
        with tf.device("/job:worker/task:0"), tf.Session(cluster.target_of("worker", 0)).as_default() as sess: …
        """
        args = words(self.dtf_run, line)
        args.on = _SHORT.sub(r"/job:\1/task:\2", args.on)
        session = self._session(cluster_named(self, args.name), args.on)
        session.begin(args.trace)
        shell: Any = self.shell
        shell.user_ns["sess"] = session
        asked: set[str] = set()
        PROCESS.add(listener := SimpleNamespace(on_begins=lambda begins: asked.add(begins.target)))
        try:
            with scopes.device(args.on), session.as_default():
                run_cell(shell, cell)
        finally:
            PROCESS.remove(listener)
            if "" in asked:
                print(_LOCAL)
            session.show() if args.trace else None

    def close_sessions(self) -> None:
        """Give all sessions back."""
        for _, session in self._sessions.values():
            session.close()
        self._sessions.clear()

    def _session(self, cluster: Cluster, device: str) -> TaskSession:
        """The session with the task that `device` names; the one there was, if it still serves."""
        task = _task(cluster, device)
        graph = scopes.get_default_graph()
        known, session = self._sessions.get(task.target, (None, None))
        if known is task and session in open_sessions() and session.graph is graph:
            return session
        if session is not None:
            session.close()
        self._sessions[task.target] = task, TaskSession(task.target, graph=graph)
        return self._sessions[task.target][1]


def _task(cluster: Cluster, device: str) -> RunningTask:
    """The task of a device; UsageError if it does not name one."""
    tasks = {device_spec.plain(task.name): task for task in cluster.tasks}
    try:
        name = device_spec.parse(device)
        if name.job is None or name.task is None:
            raise ValueError(f"{device!r} does not name a task" if device else "Name a task")
        wanted = f"/job:{name.job}/task:{name.task}"
        if wanted not in tasks:
            raise ValueError(f"{cluster.name} has no task {wanted}")
    except ValueError as error:
        part_of = [f" Did you mean {task}?" for task in tasks if device and device in task]  # `worker`, `ps`
        meant, there = did_you_mean(device, tasks) or "".join(part_of[:1]), ", ".join(tasks)
        raise UsageError(f"{error}.{meant} The tasks are {there}. For example: {_EXAMPLE}") from None
    return tasks[wanted]


def run_cell(shell: Any, cell: str) -> None:
    """Run the code of a cell in the user's namespace; show what its last line gives."""
    for part in _compiled(shell, cell):
        exec(part, shell.user_global_ns, shell.user_ns)  # noqa: S102 as IPython does


def _compiled(shell: Any, cell: str) -> list[CodeType]:
    """The statements of a cell as IPython reads it; the last one shows its value, unless a semicolon ends it."""
    code = shell.transform_cell(cell)
    name = shell.compile.cache(code, shell.execution_count, raw_code=cell)
    body = shell.transform_ast(shell.compile.ast_parse(code, name)).body
    quiet = shell.displayhook.semicolon_at_end_of_expression(code)
    parts: list[CodeType] = []
    with shell.compile.extra_flags(ast.PyCF_ALLOW_TOP_LEVEL_AWAIT):
        for node in body:
            shown = node is body[-1] and isinstance(node, ast.Expr) and not quiet
            tree, mode = (ast.Interactive([node]), "single") if shown else (ast.Module([node], []), "exec")
            parts.append(shell.compile(tree, name, mode))
    if any(part.co_flags & inspect.CO_COROUTINE for part in parts):
        raise UsageError(
            "A cell with such a magic can't await. Put `await …` into a cell of its own, without the magic."
        )
    return parts
