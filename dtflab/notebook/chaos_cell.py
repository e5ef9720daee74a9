"""`%%dtf_chaos`: a cell in which tasks of a cluster fail on purpose.

Rule: the faults are those of `dtflab.chaos`, in the same words; apart from them it is a cell like any other.
"""

from __future__ import annotations

from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from dtflab.cluster.chaos import chaos
from dtflab.cluster.chaos_options import KINDS, short
from dtflab.cluster.faults import METHODS
from dtflab.notebook.magics import DtfMagics
from dtflab.notebook.task_cell import cluster_named, run_cell

_EXAMPLE = "%%dtf_chaos --kill worker:1@step5"


def _fault(kind: str, example: str, text: str) -> Any:
    return argument(f"--{kind}", action="append", default=[], metavar=example, help=f"{text}; may be repeated")


@magics_class
class ChaosMagics(Magics):
    """The cell magic chaos; clusters are those of %dtf_cluster, or those that have a name in Python."""

    def __init__(self, shell: Any, lines: DtfMagics) -> None:
        super().__init__(shell)
        self._lines = lines

    @magic_arguments()
    @_fault("kill", "worker:1@step5", "end a task, as a crash would; with =2s it is started again 2 s later")
    @_fault("stop", "worker:0=3s", "let a task stand still")
    @_fault("slow", "ps:0=4x", "what a task computes takes several times as long")
    @_fault("drop", "RecvTensor:0.1", "lose calls of a method between tasks, with this probability")
    @_fault("partition", "ps|worker:2", "let nothing cross between groups of tasks; quote the |")
    @argument("--seed", type=int, default=0, help="from which it is drawn which calls are lost (default: 0)")
    @argument("--name", default="cluster", help="the cluster: its name, or a Python name that stands for it")
    @cell_magic
    def dtf_chaos(self, line: str, cell: str) -> None:
        """Run a cell while tasks of the cluster fail, then show what happened.

        %%dtf_chaos --kill worker:1@step5 --slow ps:0=4x
        for _ in range(10):
            sess.run(train)

        %%dtf_chaos --kill worker:1@2.5s=1s --drop RecvTensor:0.1 --partition "ps|worker:2" --stop worker:0=3s --seed 7

        A task is ps:0, a whole job ps, several ps,worker:1. A fault begins at once, before the fifth session.run of the
        cell (@step5), or 2.5 s after it has begun (@2.5s, in virtual time virtual seconds). It ends with the cell, or
        after the seconds that it says (=3s); a task that was killed stays dead without these. A step that is traced in
        the cell has the faults in its timeline. The same in plain Python:
        with dtflab.chaos(cluster, kill="worker:1@step5", slow="ps:0=4x") as happened: …
        """
        try:
            args = parse_argstring(self.dtf_chaos, line)
        except UsageError as error:
            raise UsageError(f"{error}. For example: {_EXAMPLE}") from None
        if not any(getattr(args, kind) for kind in KINDS):
            raise UsageError(f"Name a fault: {', '.join(f'--{kind}' for kind in KINDS)}. For example: {_EXAMPLE}")
        cluster = cluster_named(self.shell, self._lines, args.name)
        try:
            block = chaos(cluster, **{kind: _unquoted(getattr(args, kind)) for kind in KINDS}, seed=args.seed)
        except ValueError as error:
            text = f"--{error}".replace("For example: ", "For example: --")
            raise UsageError(text) from None
        __tracebackhide__ = True  # an error is the cell's
        try:
            with block:
                run_cell(self.shell, cell)
        finally:
            print(block)

    def complete(self, _: Any, event: Any) -> list[str]:
        """The completions of the line: options, and tasks or clusters after them."""
        words = event.line.split()
        before = words[-1] if event.line.endswith(" ") else words[-2] if len(words) > 1 else ""
        if before == "--name":
            return list(self._lines.clusters)
        if before == "--drop":
            return [f"{method}:0.1" for method in METHODS]
        if before.removeprefix("--") in KINDS:
            tasks = {task.name for cluster in self._lines.clusters.values() for task in cluster.tasks}
            return sorted(map(short, tasks))
        return [f"--{name}" for name in (*KINDS, "seed", "name")] if event.symbol.startswith("-") else []


def _unquoted(texts: list[str]) -> list[str]:
    return [text.strip("\"'") for text in texts]
