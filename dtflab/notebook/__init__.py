"""In the notebook: magics, the cluster panel, and how objects of the library show themselves there.

`%load_ext dtflab` comes here. Everything the magics do can be done from plain Python with the same names.
`notebook.explore` shows a picture below sliders.

Read `cluster_magic` (clusters), `magics` (graphs, steps), `state_magics` (variables, queues, calls), `task_cell` (a
cell for one task), `chaos_cell` (a cell in which tasks fail), `replay_magic` (a run in virtual time and its forks),
`panel` (a cluster with buttons), `cluster_live` (its tasks now), `circle_watch` (a deadlock among them),
`cluster_view` (the cluster as a table), `explorer` (sliders above a picture), `export` (a notebook as a page),
`whole_steps` (steps by hand on such a page), `images` (the first examples of a data set), `error_view` (an error that
was caught), `symbols` (a tensor or variable, shown or printed); their helpers `arguments` (the line of a magic),
`completion` (Tab in such a line), `hardware` (options of %dtf_cluster), `tracebacks` (short errors), `settings`
(`%config DtfLab.…`).

Design: docs/design/notebook.md
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from dtflab.base.missing_names import missing as _missing

if TYPE_CHECKING:  # what `__getattr__` loads on first use
    from dtflab.notebook.explorer import Slider, explore

__all__ = ["Slider", "explore"]

_DATASET = ("dtflab.datasets.dataset", "Dataset")  # by name: not loaded before it is used
_STEPS = ("dtflab.runtime.steps", "Steps"), ("dtflab.runtime.steps", "Record")
_SYMBOLS = ("dtflab.graph.operation", "Tensor"), ("dtflab.ops.variables.variable", "Variable")


def load(ipython: Any) -> None:
    """Register the magics and the rich view of a Cluster; loading twice changes nothing."""
    from dtflab.base.errors import OpError
    from dtflab.cluster.cluster import Cluster
    from dtflab.notebook import settings, symbols, tracebacks, whole_steps
    from dtflab.notebook.arguments import with_a_body
    from dtflab.notebook.chaos_cell import ChaosMagics
    from dtflab.notebook.cluster_magic import ClusterMagics
    from dtflab.notebook.completion import complete
    from dtflab.notebook.error_view import error_html, error_text
    from dtflab.notebook.export import EVERYWHERE
    from dtflab.notebook.images import dataset_html
    from dtflab.notebook.magics import DtfMagics
    from dtflab.notebook.panel import begin_cell, refresh_all, show
    from dtflab.notebook.replay_magic import ReplayMagics
    from dtflab.notebook.state_magics import StateMagics
    from dtflab.notebook.task_cell import TaskMagics
    from dtflab.viz.steps import record_html, steps_html

    if "DtfMagics" in ipython.magics_manager.registry:
        return
    settings.load(ipython)  # first: it raises if a configuration file is wrong
    clusters = ClusterMagics(ipython)
    lines = DtfMagics(ipython, clusters.clusters)
    others = (kind(ipython, lines) for kind in (StateMagics, TaskMagics, ChaosMagics, ReplayMagics))
    ipython.register_magics(clusters, lines, *others)
    ipython.input_transformers_cleanup.insert(0, with_a_body)
    ipython.Completer.custom_matchers.append(complete)
    ipython.display_formatter.ipython_display_formatter.for_type(Cluster, show)
    if os.environ.get(EVERYWHERE) == "1":
        ipython.display_formatter.ipython_display_formatter.for_type_by_name(*_STEPS[0], whole_steps.show)
    html = ipython.display_formatter.formatters["text/html"]
    forms = dataset_html, steps_html, record_html, symbols.symbol_html, symbols.symbol_html
    for kind, form in zip((_DATASET, *_STEPS, *_SYMBOLS), forms, strict=True):
        html.for_type_by_name(*kind, form)
    html.for_type(OpError, error_html)
    ipython.display_formatter.formatters["text/plain"].for_type(OpError, error_text)
    ipython.events.register("pre_run_cell", begin_cell)
    ipython.events.register("post_run_cell", refresh_all)
    symbols.load(ipython)
    tracebacks.load(ipython)


def unload(ipython: Any) -> None:
    """Stop all clusters and the step under way of this kernel, and take the magics away."""
    from dtflab.base.errors import OpError
    from dtflab.cluster.cluster import Cluster, stop_all
    from dtflab.notebook import settings, symbols, tracebacks
    from dtflab.notebook.arguments import with_a_body
    from dtflab.notebook.chaos_cell import ChaosMagics
    from dtflab.notebook.cluster_magic import ClusterMagics
    from dtflab.notebook.completion import complete
    from dtflab.notebook.magics import DtfMagics
    from dtflab.notebook.panel import begin_cell, refresh_all
    from dtflab.notebook.replay_magic import ReplayMagics
    from dtflab.notebook.state_magics import StateMagics
    from dtflab.notebook.task_cell import TaskMagics

    if "DtfMagics" not in ipython.magics_manager.registry:
        return
    stop_all()
    refresh_all()
    ipython.events.unregister("pre_run_cell", begin_cell)
    ipython.events.unregister("post_run_cell", refresh_all)
    symbols.unload(ipython)
    tracebacks.unload(ipython)
    settings.unload(ipython)
    ipython.input_transformers_cleanup.remove(with_a_body)
    ipython.Completer.custom_matchers.remove(complete)
    for name in ("ClusterMagics", "StateMagics", "ChaosMagics", "ReplayMagics"):
        ipython.magics_manager.registry.pop(name)
    ipython.magics_manager.registry.pop("DtfMagics").close_steps()
    ipython.magics_manager.registry.pop("TaskMagics").close_sessions()
    for magics in (ClusterMagics, DtfMagics, StateMagics, TaskMagics, ChaosMagics, ReplayMagics):
        for sort, names in magics.magics.items():
            for name in names:
                ipython.magics_manager.magics[sort].pop(name, None)
    ipython.display_formatter.ipython_display_formatter.pop(Cluster, None)
    ipython.display_formatter.ipython_display_formatter.pop(".".join(_STEPS[0]), None)
    html = ipython.display_formatter.formatters["text/html"]
    for kind in (_DATASET, *_STEPS, *_SYMBOLS):
        html.pop(".".join(kind), None)
    html.pop(OpError, None)
    ipython.display_formatter.formatters["text/plain"].pop(OpError, None)


def __getattr__(name: str) -> Any:
    """Names that need IPython, which is loaded when they are first used."""
    if name in __all__:
        from dtflab.notebook import explorer

        return getattr(explorer, name)
    raise _missing("tf.notebook", name, __all__)


def __dir__() -> list[str]:
    return __all__
