"""`%%dtf_chaos`: a cell in which tasks of a cluster fail on purpose.

Rule: the faults are those of `dtflab.chaos`, in the same words; apart from them it is a cell like any other.
"""

from __future__ import annotations

from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class

from dtflab.cluster.chaos import chaos
from dtflab.cluster.chaos_options import KINDS, short
from dtflab.cluster.faults import METHODS
from dtflab.notebook.arguments import argument, magic, words
from dtflab.notebook.cluster_magic import NAME, cluster_named, clusters_by_name
from dtflab.notebook.magics import DtfMagics
from dtflab.notebook.task_cell import run_cell


def _tasks(magics: ChaosMagics) -> list[str]:
    return sorted({short(task.name) for cluster in clusters_by_name(magics).values() for task in cluster.tasks})


def _calls(_: ChaosMagics) -> list[str]:
    return [f"{method}:0.1" for method in METHODS]


def _fault(kind: str, example: str, text: str) -> Any:
    values, text = _calls if kind == "drop" else _tasks, f"{text}; may be repeated"
    return argument(f"--{kind}", action="append", default=[], metavar=example, help=text, values=values)


@magics_class
class ChaosMagics(Magics):
    """The cell magic chaos; clusters are those of %dtf_cluster, or those that have a name in Python."""

    def __init__(self, shell: Any, lines: DtfMagics) -> None:
        super().__init__(shell)
        self.lines = lines

    @magic
    @_fault("kill", "worker:1@step5", "end a task as a crash would; =2s starts it again 2 s later")
    @_fault("stop", "worker:0=3s", "freeze a task")
    @_fault("slow", "ps:0=4x", "make a task compute several times slower")
    @_fault("drop", "RecvTensor:0.1", "lose calls of a method between tasks, with this probability")
    @_fault("partition", "ps|worker:2", "lose all calls between groups of tasks; put them in quotes")
    @argument("--seed", type=int, default=0, help="the seed that decides which calls are lost (default: 0)")
    @NAME
    @line_cell_magic
    def dtf_chaos(self, line: str, cell: str) -> None:
        """Run a cell while tasks of the cluster fail, then show what happened.

        %%dtf_chaos --kill worker:1@step5 --slow ps:0=4x
        for _ in range(10):
            sess.run(train)

        %%dtf_chaos --kill worker:1@2.5s=1s --drop RecvTensor:0.1 --partition "ps|worker:2" --stop worker:0=3s --seed 7

        Write ps:0 for a task, ps for a whole job, ps,worker:1 for several. A fault begins at once,
        before the fifth session.run of the cell (@step5), or 2.5 s after the cell began (@2.5s; virtual
        seconds in virtual time). It ends with the cell, or after a given time (=3s); without one, a
        killed task stays dead. The timeline of a step that the cell traces shows the faults. The same
        in plain Python:
        with dtflab.chaos(cluster, kill="worker:1@step5", slow="ps:0=4x") as happened: …
        """
        args = words(self.dtf_chaos, line)
        if not any(getattr(args, kind) for kind in KINDS):
            faults, example = ", ".join(f"--{kind}" for kind in KINDS), self.dtf_chaos.example
            raise UsageError(f"Name a fault: {faults}. For example: {example}")
        cluster = cluster_named(self, args.name)
        try:
            block = chaos(cluster, **{kind: _unquoted(getattr(args, kind)) for kind in KINDS}, seed=args.seed)
        except ValueError as error:
            text = f"--{error}".replace("For example: ", "For example: --")
            raise UsageError(text) from None
        try:
            with block:
                run_cell(self.shell, cell)
        finally:
            print(block)


def _unquoted(texts: list[str]) -> list[str]:
    return [text.strip("\"'") for text in texts]
