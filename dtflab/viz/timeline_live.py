"""Data of a live timeline: the bars of a step as columns of numbers, in the rows of its still.

Times are microseconds, rounded to nanoseconds; texts stand once, in a list, and are referred to by number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtflab.base.text_table import percent
from dtflab.graph.node_names import readable
from dtflab.graph.scopes import get_default_graph
from dtflab.viz.bands import Bands, thread_label
from dtflab.viz.data.graph_ops import ops_of
from dtflab.viz.data.step_trace import MOVED, Event, Transfer
from dtflab.viz.data.why_idle import Idle, Part
from dtflab.viz.drawing.columns import Numbers, colours, columns
from dtflab.viz.drawing.names import forms
from dtflab.viz.drawing.palette import Look, look
from dtflab.viz.drawing.style import MARGIN

AXIS = 22.0  # above the plot, for the numbers of its axis


def data(
    bands: Bands, of: Callable[[Event], Look], of_transfer: Callable[[Transfer], Look], top: float, graph: Any
) -> dict[str, Any]:
    """The data of the view `timeline`; `top` is where the plot of the still begins."""
    texts, looks = Numbers(), Numbers()
    rows = [(i, band.look, row) for i, band in enumerate(bands.bands) for row in band.rows]
    folds = [(i, row) for i, (_, _, row) in enumerate(rows) if row.folded]
    rows += [(*rows[i][:2], inner) for i, row in folds for inner in row.folded]
    rows += [(i, band.look, row) for i, band in enumerate(bands.bands) for row in bands.left_out(band)]
    bars = [(i, event) for i, (_, _, row) in enumerate(rows) if not row.folded for event in row.events]
    waits = [(i, transfer) for i, (_, _, row) in enumerate(rows) if not row.folded for transfer in row.transfers]
    number = {id(span): i for spans in (bars, waits) for i, (_, span) in enumerate(spans)}
    lines, idle = _Lines(graph), Idle(bands.trace)
    single = bands.single()  # where most bars are merged, these have their last input
    first = {one.device: i for i, (_, one, _) in reversed(list(enumerate(rows)))}
    gaps = [gap for gap in idle.gaps() if gap.device in first]
    return {
        "view": "timeline",
        "total": round(bands.trace.total, 3),
        "plot": {
            "x": MARGIN, "y": MARGIN + top - AXIS, "left": bands.left, "right": bands.right,
            "height": bands.height + AXIS,
        },
        "rows": [
            {
                "y": row.y + AXIS, "height": row.height, "band": band, "device": one.label, "below": bool(row.names),
                "label": row.label, "idle": None if row.idle is None else f"{percent(row.idle)} idle",
                "thread": thread_label(row.events[0]) if row.events else "",
            }
            for band, one, row in rows
        ],
        "folds": [{"row": i, "rows": [j for j, each in enumerate(rows) if each[2] in row.folded]} for i, row in folds],
        "bars": columns(
            ("start", "end", "row", "look", "name", "op", "kind", "part", "line", "bytes", "last", "had"),
            [
                (
                    *_span(event), row, looks.of(of(event)), texts.of(readable(event.name)), texts.of(event.op),
                    _kind(event), texts.of((event.part and f", part {event.part[0]} of {event.part[1]}") or ""),
                    texts.of(lines.of(event)), event.bytes,
                    *_last_input(idle.last_input(event) if id(event) in single else None, texts),
                )
                for row, event in bars
            ],
        ),
        "waits": columns(
            ("start", "end", "row", "look", "tensor", "bytes", "maker", "source", "target"),
            [
                (
                    *_span(each), row, looks.of(of_transfer(each)), texts.of(readable(each.tensor)), each.bytes,
                    number.get(id(bands.maker(each)), -1), texts.of(look(each.source).label),
                    texts.of(look(each.device).label),
                )
                for row, each in waits
            ],
        ),
        "gaps": columns(
            ("start", "end", "row", "why"),
            [(round(g.start, 3), round(g.end, 3), first[g.device], texts.of(g.why)) for g in gaps],
        ),
        "critical": columns(
            ("is_wait", "index", "start", "end"),
            [(int(isinstance(p.what, Transfer)), number[id(p.what)], *_span(p)) for p in idle.critical_path()],
        ),
        "forms": {
            texts.of(readable(name)): [texts.of(form) for form in own]
            for names in (*bands.forms.values(), forms(each.tensor for _, each in waits)) for name, own in names.items()
        },
        "texts": texts.values,
        "looks": [*map(colours, looks.values)],
    }  # fmt: skip


class _Lines:
    """The line of the program that made each op, where its graph is known."""

    def __init__(self, graph: Any) -> None:
        ops = get_default_graph().get_operations() if graph is None else None
        self._of = {(op.name, op.op): op.line for op in ops_of(graph)} if ops is None or ops else {}

    def of(self, event: Event) -> str:
        return self._of.get((event.name, event.op), "")


def _last_input(found: tuple[str, float] | None, texts: Numbers) -> tuple[int, float]:
    what, since = found or ("", 0.0)
    return texts.of(what), round(since, 3)


def _kind(event: Event) -> int:
    copied = event.op == MOVED["memcpy"]
    return 2 if event.is_fault else 3 if event.is_sent else 4 if copied else int(event.part is not None)


def _span(span: Event | Transfer | Part) -> tuple[float, float]:
    return round(span.start, 3), round(span.end, 3)
