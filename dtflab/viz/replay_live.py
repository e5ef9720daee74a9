"""Data of a live replay: events as columns of numbers, in the rows of the still.

Moments stand once, in microseconds, and are referred to by number; -1 is a moment that never came.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dtflab.cluster.replay import Run, plain_message
from dtflab.graph.device_spec import task_name
from dtflab.graph.node_names import readable
from dtflab.viz.data.replayed import Row
from dtflab.viz.drawing.columns import Numbers, colours, columns
from dtflab.viz.drawing.palette import look


def data(
    runs: Sequence[Run], rows: Sequence[Sequence[Row]], says: Sequence[Mapping[float, str]], moments: Sequence[float]
) -> dict[str, Any]:
    """The data of the view `replay`, without places."""
    texts = Numbers()
    number = {moment: i for i, moment in enumerate(moments)} | {math.inf: -1}
    return {
        "view": "replay",
        "moments": [round(moment * 1e6, 6) for moment in moments],
        "runs": [
            {
                "end": number[run.end],
                "rows": [_row(row, number, texts) | _dead(row, run, number) for row in own],
                "said": [number[at] for at in said],
                "says": [*said.values()],
            }
            for run, own, said in zip(runs, rows, says, strict=True)
        ],
        "texts": texts.values,
    }


def _dead(row: Row, run: Run, number: Mapping[float, int]) -> dict[str, Any]:
    """From when to when the task of a row was killed, by moments; -1 for never again."""
    found: list[list[int]] = []
    for line in run.faults if row.kind == "device" else ():
        if line.where == task_name(row.device) and line.what == "chaos: killed":
            found.append([number[line.ended], -1])
        elif line.where == task_name(row.device) and line.what == "chaos: restarted":
            found[-1][1] = number[line.ended]
    return {"dead": found} if found else {}


def _row(row: Row, number: Mapping[float, int], texts: Numbers) -> dict[str, Any]:
    """A row: `from` and `to` of what is in it, with a name, and what else its kind has."""
    base = {"kind": row.kind, "look": colours(look(row.device)), "label": row.label}
    if row.kind == "device":
        times = {n: (number[k.ready], number[k.started], number[k.ended]) for n, k in row.items}
        kernels = [(n, *times[n], texts.of(readable(k.name))) for n, k in row.items]
        found = columns(("n", "ready", "from", "to", "name"), kernels)
    elif row.kind == "link":
        found = columns(
            ("n", "from", "to", "name", "bytes"),
            [(n, number[m.started], number[m.ended], texts.of(plain_message(m.what)), m.nbytes) for n, m in row.items],
        )
    elif row.kind == "queue":
        found = columns(("from", "level"), [(number[level.at], level.level) for level in row.items])
        found["capacity"] = [row.capacity]
    else:
        found = columns(("from", "name"), [(number[k.ended], texts.of(readable(k.name))) for k in row.items])
    return base | found
