"""A step in hand, and what each of its sets did, as tables for a notebook. The data is in `graph/steps.py`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dtflab.graph.node_names import readable
from dtflab.graph.steps import Record, Steps
from dtflab.viz.palette import look
from dtflab.viz.picture import Table
from dtflab.viz.svg import Markup
from dtflab.viz.tables import page
from dtflab.viz.units import plural


def steps_html(steps: Steps) -> Markup:
    """Where a step stands: what its last set did, who is ready, whose counters are not at zero yet."""
    if steps.records:
        return _page(steps.records[-1]._replace(ready=steps.ready, waiting=steps.waiting), steps.counts, str(steps))
    begun = Record(0, [], [], steps.ready, steps.waiting)
    return _page(begun, steps.counts, str(steps))


def record_html(record: Record) -> Markup:
    """What one set did."""
    return _page(record, {}, str(record))


def _page(record: Record, counts: Mapping[str, int], text: str) -> Markup:
    head = f"Set {record.number}: {plural(len(record.ran), 'node')}." if record.number else "The step has not begun."
    if text.startswith("step failed"):
        head = text
    return page(head, record.outlook.split("\n"), _tables(record, counts), unfolded=3)


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
