"""A cluster as a table and as text: tasks, devices, addresses, states. Pure functions; the panel is made of them.

A task has the colour and the letter that it has in every picture.
"""

from __future__ import annotations

import html
import weakref
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import NamedTuple, TypeVar

from dtflab.base import errors
from dtflab.base.grouping import grouped
from dtflab.cluster import inprocess
from dtflab.cluster.cluster import Cluster, device_label
from dtflab.cluster.engines import RunningTask
from dtflab.graph import device_spec
from dtflab.viz.drawing.palette import look, together

_WHERE = {
    "inprocess": "in this process",
    "process": "each in a process of its own",
    "tensorflow": "each a TensorFlow server in a process of its own, which listens on all networks",
    "dask": "each in a process of its own on a worker of a Dask cluster",
    "attached": "started elsewhere",
}
_ROOT = "color:var(--jp-content-font-color1,inherit);font-size:13px;line-height:1.5"
_CELL = "text-align:left;padding:3px 16px 3px 0;white-space:nowrap"
_BADGE = (
    "display:inline-block;min-width:20px;padding:0 3px;margin-right:6px;border-radius:4px;text-align:center;"
    "font-size:11px;font-weight:600"
)
FOLD = 8  # tasks of a job that are alike, from which on they are one line
T = TypeVar("T")
_HEAD = "".join(f'<th style="{_CELL}">{name}</th>' for name in ("task", "devices", "address", "state"))
_devices: weakref.WeakKeyDictionary[Cluster, dict[str, str]] = weakref.WeakKeyDictionary()


class Row(NamedTuple):
    """A task as people should see it."""

    task: str
    devices: str
    address: str
    state: str


def rows(cluster: Cluster) -> list[Row]:
    """All tasks, in the order of the cluster."""
    known = _devices.setdefault(cluster, {})
    for task in cluster.tasks:
        if task.name not in known and task.state == "running":
            known[task.name] = ", ".join(_ask(task))
    return [Row(device_spec.plain(t.name), known.get(t.name, ""), t.address, t.state) for t in cluster.tasks]


def _ask(task: RunningTask) -> list[str]:
    """The devices of a running task, as CPU:0; none if it does not answer."""
    found = inprocess.find(task.address)
    try:
        if found is not None:
            return [device_label(d) for d in found.worker.get_status()]
        from dtflab.cluster.worker_stub import WorkerStub

        stub = WorkerStub.at(task.name, task.address)
        try:
            return [device_label(d) for d in stub.get_status(timeout=2)]
        finally:
            stub.close()
    except errors.OpError:
        return []


def text(cluster: Cluster) -> str:
    """A line per task."""
    found = rows(cluster)
    widths = [max(len(row[i]) for row in found) for i in range(len(Row._fields))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in found)
    return "\n".join([title(cluster), *(f"  {line}" for line in [*lines, *cluster.commands()])])


def table(cluster: Cluster) -> str:
    """The table as HTML that needs no script; its colours follow the theme. Tasks of a job that are alike fold."""
    name, _, rest = html.escape(title(cluster)).partition(": ")
    found = rows(cluster)
    with together(row.task for row in found):
        body = "".join(_part(group) for group in alike(found, lambda row: (_job(row), row.devices, row.state)))
    inside = f"<thead><tr>{_HEAD}</tr></thead><tbody>{body}</tbody>"
    tasks = f'<table style="border-collapse:collapse;margin:6px 0">{inside}</table>'
    commands = "".join(f"<div>{html.escape(line)}</div>" for line in cluster.commands())
    return f'<div class="dtf-cluster" style="{_ROOT}"><b>{name}</b>: {rest}{tasks}{commands}</div>'


def title(cluster: Cluster) -> str:
    """The name of a cluster, and what it is."""
    count = len(cluster.tasks)
    tasks = "1 task" if count == 1 else f"{count} tasks"
    where = _WHERE.get(cluster.engine, cluster.engine) if cluster.world is None else cluster.how
    return f"{cluster.name}: {tasks}, {where}"


def alike(rows: Iterable[T], kind: Callable[[T], object]) -> list[list[T]]:
    """The rows in groups: those of a kind, if they are `FOLD` or more, else each by itself; in order of the first."""
    numbered = grouped((kind(row), (i, row)) for i, row in enumerate(rows))
    parts = [part for own in numbered.values() for part in ([own] if len(own) >= FOLD else [[pair] for pair in own])]
    return [[row for _, row in part] for part in sorted(parts, key=lambda part: part[0][0])]


def numbers(tasks: Sequence[str]) -> str:
    """The numbers of tasks of one job, given names that end in them: 0–199; 0–2, 5, 7–9."""
    found = sorted(int(task.rpartition(":")[2]) for task in tasks)
    runs = [[n for _, n in run] for _, run in groupby(enumerate(found), lambda pair: pair[1] - pair[0])]
    texts = [f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]
    return ", ".join(texts[:4]) + ", …" * (len(texts) > 4)


def _job(row: Row) -> str:
    return row.task.rpartition("/task:")[0]


def _part(group: Sequence[Row]) -> str:
    """A row, or one that opens to show those that are alike."""
    lines = "".join(map(_table_row, group))
    if len(group) == 1:
        return lines
    first = group[0]
    tasks = f"{_job(first)}/task:{numbers([row.task for row in group])}"
    words = html.escape(f"{tasks}: {len(group)} tasks, {first.state}, each with {first.devices or 'no known device'}")
    return (
        f'<tr><td colspan="4" style="{_CELL}"><details><summary>{words}</summary>'
        f'<table style="border-collapse:collapse">{lines}</table></details></td></tr>'
    )


def _table_row(row: Row) -> str:
    seen = look(row.task)
    badge = f'<span style="{_BADGE};background:{seen.colour.fill};color:{seen.colour.ink}">{seen.letter}</span>'
    mark = "●" if row.state == "running" else "○"
    cells = [f"{badge}{html.escape(row.task)}", html.escape(row.devices), html.escape(row.address)]
    cells.append(f"{mark} {html.escape(row.state)}")
    return "<tr>" + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells) + "</tr>"
