"""The cluster panel: a table of its tasks with a Stop button; the same as HTML and text where widgets don't run.

Rules: a widget's callbacks come on another thread than cells do (JupyterLab's subshells), so a panel changes behind a
lock. Panels look again after each cell: whoever stopped the cluster, or whichever task crashed, the panel says so.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

from dtflab.cluster.cluster import Cluster
from dtflab.notebook import cluster_view

_WIDGET = "application/vnd.jupyter.widget-view+json"
_panels: weakref.WeakSet[Panel] = weakref.WeakSet()


class Panel:
    """An ipywidgets panel of a cluster; `widget` is what is displayed."""

    def __init__(self, cluster: Cluster) -> None:
        import ipywidgets

        self.cluster = cluster
        self._lock = threading.Lock()
        self.table = ipywidgets.HTML()
        self.stop = ipywidgets.Button(icon="stop", tooltip=f"End all tasks of {cluster.name}")
        self.look_again = ipywidgets.Button(
            description="Refresh", icon="refresh", tooltip="See whether all tasks still run"
        )
        self.stop.on_click(self._stop)
        self.look_again.on_click(self.refresh)
        self.widget = ipywidgets.VBox([self.table, ipywidgets.HBox([self.stop, self.look_again])])
        self.refresh()
        _panels.add(self)

    def refresh(self, _: Any = None) -> None:
        """Show the state of now; traits that are as before send nothing."""
        with self._lock:
            running = any(task.state == "running" for task in self.cluster.tasks)
            self.table.value = cluster_view.table(self.cluster)
            self.stop.disabled = self.look_again.disabled = not running
            self.stop.description = "Stop" if running else "Stopped"

    def _stop(self, _: Any) -> None:
        with self._lock:
            self.stop.disabled, self.stop.description = True, "Stopping…"
        try:
            self.cluster.stop()
        finally:
            self.refresh()


def refresh_all(_: Any = None) -> None:
    """Let every panel of a running cluster look again."""
    for panel in list(_panels):
        panel.refresh()
        if panel.stop.disabled:
            _panels.discard(panel)


def panel_bundle(cluster: Cluster) -> dict[str, Any]:
    """A Cluster in all the forms that a notebook can show; a saved notebook keeps the table."""
    bundle = {"text/plain": cluster_view.text(cluster), "text/html": cluster_view.table(cluster)}
    try:
        widget = Panel(cluster).widget._repr_mimebundle_()
    except ImportError:  # without ipywidgets
        widget = None
    return {**bundle, _WIDGET: widget[_WIDGET]} if widget and _WIDGET in widget else bundle
