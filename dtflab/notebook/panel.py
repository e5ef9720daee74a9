"""The cluster panel: a table of its tasks, and below it buttons that stop it or look again.

The table is HTML that is replaced when something has changed, not a widget: so it is still there in a saved notebook,
an untrusted one, and on a page that nbconvert made. The buttons are there for as long as they can do something.

Rules: a button's callbacks come on another thread than cells do (JupyterLab's subshells), so a panel changes behind a
lock. Panels look again after each cell, so a panel shows a stopped cluster or a crashed task.
"""

from __future__ import annotations

import threading
from typing import Any

from IPython.display import display

from dtflab.cluster.cluster import Cluster
from dtflab.machine.console import in_notebook
from dtflab.notebook import cluster_view

_NOTHING = {"text/plain": ""}  # where widgets don't run
_panels: list[Panel] = []  # of running clusters


class Panel:
    """A cluster in the output of a cell."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.buttons: list[Any] = []
        self._lock = threading.Lock()
        self._shown = _bundle(cluster)
        self._table = display(self._shown, raw=True, display_id=True)
        self._below: Any = None
        if self.running:
            self._show_buttons()
            _panels.append(self)

    @property
    def running(self) -> bool:
        return any(task.state == "running" for task in self.cluster.tasks)

    def _show_buttons(self) -> None:
        try:
            import ipywidgets
        except ImportError:  # then there is the magic
            return
        is_ours = len(self.cluster.attached) < len(self.cluster.tasks)
        word, what = ("Stop", "End all") if is_ours else ("Detach", "Stop looking at the")
        stop = ipywidgets.Button(description=word, icon="stop", tooltip=f"{what} tasks of {self.cluster.name}")
        stop.on_click(self._stop)
        refresh = ipywidgets.Button(description="Refresh", icon="refresh", tooltip="See whether all tasks still run")
        refresh.on_click(self.refresh)
        self.buttons = [stop, refresh]
        bundle = ipywidgets.HBox(self.buttons)._repr_mimebundle_()
        self._below = display({**bundle, **_NOTHING}, raw=True, display_id=True)
        _hear_while_cells_run(self.buttons)

    def refresh(self, _: Any = None) -> None:
        """Show the state of now."""
        with self._lock:
            found = _bundle(self.cluster)
            if found != self._shown:
                self._shown = found
                self._table.update(found, raw=True)
            if not self.running and self in _panels:
                _panels.remove(self)
                if self._below is not None:
                    self._below.update(_NOTHING, raw=True)

    def _stop(self, button: Any) -> None:
        button.disabled, button.description = True, "Stopping…"
        try:
            self.cluster.stop()
        finally:
            self.refresh()


def show(cluster: Cluster) -> None:
    """Display a cluster where it is the value of a cell; in a terminal, print it."""
    if in_notebook():
        Panel(cluster)
    else:
        print(cluster_view.text(cluster))


def refresh_all(_: Any = None) -> None:
    """Let every panel of a running cluster look again."""
    for panel in list(_panels):
        panel.refresh()


def _bundle(cluster: Cluster) -> dict[str, str]:
    return {"text/plain": cluster_view.text(cluster), "text/html": cluster_view.table(cluster)}


def _hear_while_cells_run(widgets: list[Any]) -> None:
    """Take back that ipykernel answers a click where the widget was last written: in cells, which may be busy.

    JupyterLab then chooses, and has a subshell for it (`BaseComm._reply_subshell_for` of ipykernel 7.4).
    """
    for widget in widgets:
        getattr(widget.comm, "__dict__", {}).pop("_reply_subshell_id", None)
