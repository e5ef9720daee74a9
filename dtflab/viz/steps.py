"""A step in hand, and what each of its sets did, as tables for a notebook. The data is in `runtime/steps.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dtflab.graph.node_names import readable
from dtflab.runtime.steps import Record, Steps
from dtflab.viz.counters import MOST, counters
from dtflab.viz.drawing.palette import look, together
from dtflab.viz.drawing.picture import Table
from dtflab.viz.drawing.svg import Markup
from dtflab.viz.drawing.tables import page


def steps_html(steps: Steps) -> Markup:
    """Where a step stands: its nodes with their counters, what its last set did, which are ready."""
    last = steps.records[-1] if steps.records else Record(0, [], [], [], [])
    nodes, counts = steps.nodes, steps.counts
    head = str(steps).partition("\n")[0].capitalize()
    drawing = Markup(counters(nodes).html) if 0 < len(nodes) <= MOST else None
    now = last._replace(ready=steps.ready, waiting=steps.waiting)
    with together(node.device for node in nodes):
        return page(head, now.outlook.split("\n"), _tables(last, counts), unfolded=2, drawing=drawing)


def record_html(record: Record) -> Markup:
    """A page on one set."""
    head = str(record).partition("\n")[0].capitalize()
    return page(head, record.outlook.split("\n"), _tables(record, {}), unfolded=2)


def _tables(record: Record, counts: Mapping[str, int]) -> list[Table]:
    fell = {c.name for c in record.counters}
    ran: list[Any] = [[look(r.device).label, readable(r.name), r.op, r.result] for r in record.ran]
    falls: list[Any] = [[readable(c.name), str(c), "ready" if c.after == 0 else ""] for c in record.counters]
    others: list[Any] = [[readable(name), count] for name, count in counts.items() if name not in fell]
    tables: list[Table] = [
        ("What ran", ("device", "node", "op", "result"), ran),
        ("Counters that fell", ("node", "waits for", ""), falls),
        ("Other nodes that are not ready", ("node", "waits for"), others),
    ]
    return [table for table in tables if table[2]]
