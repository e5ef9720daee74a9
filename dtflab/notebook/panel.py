"""The cluster panel: tasks, devices and state, with a Stop button; the same as text and HTML where widgets don't run."""

from __future__ import annotations

import html
from typing import Any

from dtflab.cluster.cluster import Cluster

_WIDGET = "application/vnd.jupyter.widget-view+json"


def panel_bundle(cluster: Cluster) -> dict[str, Any]:
    """A Cluster in all the forms that a notebook can show; a saved notebook keeps the table."""
    bundle: dict[str, Any] = {"text/plain": cluster.status(), "text/html": cluster._repr_html_()}
    widget = panel(cluster)._repr_mimebundle_()
    return {**bundle, _WIDGET: widget[_WIDGET]} if widget and _WIDGET in widget else bundle


def panel(cluster: Cluster) -> Any:
    """An ipywidgets panel of the cluster."""
    import ipywidgets

    table = ipywidgets.HTML(_table(cluster))
    stop = ipywidgets.Button(description="Stop", icon="stop", tooltip=f"End all tasks of {cluster.name}")
    refresh = ipywidgets.Button(description="Refresh", icon="refresh", tooltip="Ask every task how it is")

    def show(_: Any = None) -> None:
        table.value = _table(cluster)
        stop.disabled = all(state != "running" for _, _, state in cluster.rows())

    def stop_all(_: Any) -> None:
        cluster.stop()
        show()

    stop.on_click(stop_all)
    refresh.on_click(show)
    show()
    return ipywidgets.VBox([table, ipywidgets.HBox([stop, refresh])])


def _table(cluster: Cluster) -> str:
    head = "".join(f"<th>{title}</th>" for title in ("task", "address", "state"))
    rows = "".join(_row(*row) for row in cluster.rows())
    return (
        f"<div style='color:var(--jp-ui-font-color1)'><b>{html.escape(cluster.name)}</b> · {cluster.engine}"
        f"<table class='dtf-cluster' style='border-spacing:14px 2px;text-align:left'><tr>{head}</tr>{rows}</table></div>"
    )


def _row(task: str, address: str, state: str) -> str:
    mark = "●" if state == "running" else "○"
    return f"<tr><td>{html.escape(task)}</td><td>{html.escape(address)}</td><td>{mark} {html.escape(state)}</td></tr>"
