"""`dtflab.conformance(fetches, feeds)`: one step on dtflab and on TensorFlow's servers, side by side.

Rules: what differs comes first and has a mark: ≠, or ≈ if it is a known difference (docs/differences.md), which is not
counted. Equal things are shown, too, because a table of differences alone does not say what was compared.
"""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dtflab.base.nest import leaves
from dtflab.base.text_table import plural, text_table
from dtflab.cluster.cluster import Cluster
from dtflab.graph import scopes
from dtflab.graph.device_spec import label
from dtflab.graph.graph import Graph
from dtflab.protos.config_pb2 import ConfigProto
from dtflab.viz.data.two_runs import (
    Run,
    Transfer,
    deviation,
    is_rounded,
    like_placement,
    like_transfer,
    run_both,
    tolerance,
    unseeded,
)
from dtflab.viz.drawing.picture import Table
from dtflab.viz.drawing.svg import tag
from dtflab.viz.drawing.tables import page
from dtflab.viz.drawing.units import byte_size

MOST_ROWS = 24  # of a table that is printed
_WIDTH, _NAME, _SIDE = 94, 30, 28  # letters of a line that is printed, and of its cells
_PAGE_NAME = 60  # letters of a name on a page, where long ones would push the others out of sight
_NOTHING = "–"
_ORDER = ("≠", "≈", "")

_TITLES = {
    "outcome": "Outcome of the step",
    "value": "Values that the step returns",
    "variable": "Variables after the step",
    "placement": "Placement: where each op ran",
    "transfer": "Transfers: what crosses between devices",
}


class Row(NamedTuple):
    """One thing that was compared, in words, as each of the two has it; `reason` is that of a known difference."""

    kind: str  # outcome, value, variable, placement or transfer
    name: str
    dtflab: str
    tensorflow: str
    same: bool
    reason: str = ""

    @property
    def mark(self) -> str:
        """How a table shows it."""
        return "" if self.same else "≈" if self.reason else "≠"


def conformance(
    fetches: Any,
    feeds: Any = None,
    graph: Graph | None = None,
    cluster: Cluster | None = None,
    *,
    config: ConfigProto | None = None,
    rtol: float | None = None,
    timeout: float = 60.0,
) -> Conformance:
    """Run `fetches` once on dtflab and on TensorFlow's servers, and compare values, placement and transfers.

    Both run on fresh clusters with CPUs only, of the shape of `cluster`, or of the jobs and tasks that the graph's
    devices name; a `cluster` with engine="tensorflow" is used as it is, and its variables get new values. Variables
    begin alike: the program's initializers run on dtflab, and TensorFlow gets the values. TensorFlow's graph optimizers
    are off, so that the ops that ran are those of the program. Differences that docs/differences.md knows are shown
    with the mark ≈ and a reason, and do not count.

    Integers, strings and devices must be equal, floats to `rtol` of the tensor's largest element, because kernels add
    in another order: by default 64 units in the last place (7.6e-6 of float32), of half precision 4. An error counts by
    its class, also that of a step that takes more than `timeout` seconds. Needs `pip install dtflab[tensorflow]`.
    """
    graph = graph or next((f.graph for f in leaves(fetches) if hasattr(f, "graph")), scopes.get_default_graph())
    return Conformance(graph, *run_both(graph, fetches, feeds, cluster, config, timeout), rtol)


class Conformance:
    """Both runs side by side: `print` it, look at it in a notebook, or ask for `.same`, `.differences`, `.rows`."""

    def __init__(self, graph: Graph, ours: Run, theirs: Run, rtol: float | None) -> None:
        self.rows = list(_rows(ours, theirs, rtol))
        self.remarks = [f"≈ {reason}" for reason in dict.fromkeys(row.reason for row in self.rows if row.mark == "≈")]
        self.remarks += _on_random(unseeded(graph, {**ours.devices, **theirs.devices}))

    @property
    def same(self) -> bool:
        """True if nothing differs."""
        return not self.differences

    @property
    def differences(self) -> list[Row]:
        """The rows in which the two differ, without the known differences."""
        return [row for row in self.rows if row.mark == "≠"]

    @property
    def headline(self) -> str:
        """The result in one sentence."""
        if self.same:
            known = sum(row.mark == "≈" for row in self.rows)
            but = f", apart from {plural(known, 'known difference')}" if known else ""
            return f"The same on dtflab and TensorFlow{but}: {_counts(self.rows)}."
        differ = plural(len(self.differences), "difference")
        return f"{differ} between dtflab and TensorFlow: {_counts(self.differences)}, of {_counts(self.rows)}."

    def __repr__(self) -> str:
        parts = textwrap.wrap(self.headline, _WIDTH)
        for line in self.remarks:
            parts += textwrap.wrap(line, _WIDTH, initial_indent="  ", subsequent_indent="    ")
        for title, heads, rows in self._tables():
            shown = [[mark, _cut(name, _NAME), *(_cut(side, _SIDE) for side in sides)] for mark, name, *sides in rows]
            more = len(shown) - MOST_ROWS
            shown[MOST_ROWS:] = [["", f"… {more} more: see .rows", "", ""]] if more > 0 else []
            parts += ["", title, text_table(heads, shown)]
        return "\n".join(parts)

    def _repr_html_(self) -> str:
        tables = [(title, heads, list(map(_on_page, rows))) for title, heads, rows in self._tables()]
        differ = {row.kind for row in self.differences}
        return page(self.headline, self.remarks, tables, unfolded=max(len(differ), 1))

    def _tables(self) -> list[Table]:
        """A table of each kind, those with differences first, and in each the differences."""
        kinds = {kind: [row for row in self.rows if row.kind == kind] for kind in _TITLES}
        ordered = (sorted(rows, key=lambda row: _ORDER.index(row.mark)) for rows in kinds.values() if rows)
        found = sorted(ordered, key=lambda rows: rows[0].mark != "≠")
        return [
            (_TITLES[rows[0].kind], ("", "name", "dtflab", "TensorFlow"), [[row.mark, *row[1:4]] for row in rows])
            for rows in found
        ]


def _on_page(cells: Sequence[str]) -> list[str]:
    mark, name, *sides = cells
    shown = [_cut(name, _PAGE_NAME), *sides]
    return [tag("mark", mark), *(tag("b", cell) for cell in shown)] if mark else [mark, *shown]


def _counts(rows: Iterable[Row]) -> str:
    """`2 values, 4 variables, 40 ops placed, 6 transfers`."""
    nouns = {"outcome": "outcome", "value": "value", "variable": "variable", "placement": "placed op"}
    counted = Counter(row.kind for row in rows)
    return ", ".join(plural(counted[k], nouns.get(k, k)) for k in _TITLES if counted[k]) or "nothing to compare"


def _on_random(random: Sequence[str]) -> list[str]:
    if not random:
        return []
    names = ", ".join(random[:3]) + ", …" * (len(random) > 3)
    return [f"Without a seed these ops draw other numbers in each run: {names}. tf.set_random_seed gives them one."]


# -- rows -------------------------------------------------------------------------------------------------------------


def _rows(ours: Run, theirs: Run, rtol: float | None) -> Iterator[Row]:
    if ours.error or theirs.error:
        same = type(ours.error) is type(theirs.error)
        yield Row("outcome", "step", _outcome(ours), _outcome(theirs), same)
        return
    yield from _numbers("value", ours.values, theirs.values, rtol)
    yield from _numbers("variable", ours.variables, theirs.variables, rtol)
    for name in {**ours.devices, **theirs.devices}:
        here, there = (", ".join(map(label, run.devices.get(name, ()))) or _NOTHING for run in (ours, theirs))
        yield Row("placement", name, here, there, *like_placement(ours, theirs, name))
    for transfer in {**ours.transfers, **theirs.transfers}:
        like = like_transfer(ours, theirs, transfer)
        yield Row("transfer", transfer[0], _sent(ours, transfer), _sent(theirs, transfer), *like)


def _outcome(run: Run) -> str:
    """The error's class and its first line; TensorFlow's masters say before it of which task it is."""
    if run.error is None:
        return "runs"
    lines = [line for line in run.error.message.splitlines() if not line.startswith("From /job:")]
    return f"{type(run.error).__name__}: {lines[0] if lines else ''}"


def _numbers(kind: str, ours: Mapping[str, Any], theirs: Mapping[str, Any], rtol: float | None) -> Iterator[Row]:
    for name in ours:
        a, b = np.asarray(ours[name]), np.asarray(theirs[name])
        apart = deviation(a, b)
        same = apart <= (tolerance(a) if rtol is None else rtol)
        there = _brief(b)
        if not same and not math.isinf(apart):  # their shapes are equal
            there = f"{there.rpartition(', ')[2]}, off by {apart:.1e}"
        yield Row(kind, name, _brief(a), there, same)


def _brief(array: Any) -> str:
    """A scalar, or the shape of an array and the root mean square of its elements."""
    if array.size == 1:
        return f"{array.item():.7g}" if is_rounded(array) else str(array.item())
    shape = "×".join(map(str, array.shape))
    if array.dtype.kind in "OSU" or not array.size:
        return f"{shape} {array.dtype.name}"
    size = np.abs(array.astype(complex if array.dtype.kind == "c" else float))
    return f"{shape}, rms {np.sqrt((size**2).mean()):.6g}"


def _sent(run: Run, transfer: Transfer) -> str:
    """`ps:0 → worker:1, 1.3 kB`; the size only if the run reports it, the number only if it is sent more than once."""
    tensor, source, target = transfer
    sizes = run.transfers.get(transfer)
    if sizes is None:
        return _NOTHING
    known = [size for size in sizes if size is not None]
    what = ["order only"] if tensor[0] == "^" else [byte_size(sum(known))] if len(known) == len(sizes) else []
    times = [f"{len(sizes)} times"] if len(sizes) > 1 else []
    return ", ".join([f"{label(source)} → {label(target)}", *what, *times])


def _cut(text: str, most: int) -> str:
    """The text, without its middle if it is too long."""
    return text if len(text) <= most else f"{text[: most // 2]}…{text[-((most - 1) // 2) :]}"
