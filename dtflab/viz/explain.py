"""`dtflab.explain(fetches)`: the story of a step, for a projector. What it says is found in `story.py`.

Rule: the most important comes first, and a long graph is summarized by its name scopes. Nothing is lost: `.everything`
and the notebook's tables have it all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dtflab.base.grouping import grouped
from dtflab.base.nest import leaves
from dtflab.base.text_table import plural, text_table
from dtflab.graph import default_stacks, scopes
from dtflab.graph.feeds import feed_tensors
from dtflab.graph.node_names import readable
from dtflab.runtime.session import BaseSession, Session, last_session
from dtflab.viz.data.story import StepOp, Story, story
from dtflab.viz.drawing.palette import look, together
from dtflab.viz.drawing.picture import Table
from dtflab.viz.drawing.tables import page
from dtflab.viz.drawing.units import byte_size

MOST_ROWS, MOST_NAMES = 24, 6  # of a table, in a cell, before it is abbreviated


def explain(fetches: Any, feed_dict: Any = None, session: BaseSession | None = None) -> Explanation:
    """Describe the step that `fetches` would need, without running it: pruning, placement, transfers, order.

    `fetches` and `feed_dict` are what `run` takes; values do not matter, a list of the tensors that are fed will do.
    `session` is by default the default session, or the newest one with the graph of the fetches, or a local one. If its
    master is in another process, ops are placed here by dtflab's rules.

    >>> import dtflab as tf
    >>> x = tf.placeholder(tf.float32, [2], name="x")
    >>> print(tf.explain(tf.negative(x, name="y"), {x: None}).sets)
    [['_arg_x_0_0'], ['y'], ['_retval_y_0_0']]
    """
    graph = next((fetch.graph for fetch in leaves(fetches) if hasattr(fetch, "graph")), scopes.get_default_graph())
    there = (default_stacks.get_default_session(), last_session())
    found = session or next((one for one in there if one and one.graph is graph), None)
    if found is not None:
        return Explanation(story(fetches, feed_tensors(graph, feed_dict or ()), found))
    with Session(graph=graph) as local:
        return Explanation(story(fetches, feed_tensors(graph, feed_dict or ()), local))


class Explanation:
    """The story of a step: `print` it, look at it in a notebook, or read its data: `.ops`, `.crossings`, `.sets`, …"""

    def __init__(self, found: Story) -> None:
        self.story = found

    def __getattr__(self, name: str) -> Any:
        if name not in Story._fields:  # nor `story` itself, which a copy that is being made does not have yet
            raise AttributeError(f"An explanation has no {name!r}. It has {', '.join(Story._fields)}.")
        return getattr(self.story, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *Story._fields})

    def __repr__(self) -> str:
        return self._text(_short)

    @property
    def everything(self) -> str:
        """The text with every node, however many there are."""
        return self._text(lambda rows: rows)

    def _text(self, cut: Callable[[list[list[Any]]], list[list[Any]]]) -> str:
        names = MOST_NAMES if cut is _short else None
        parts = [headline(self.story), *(f"  {line}" for line in remarks(self.story))]
        for title, heads, rows in tables(self.story, names, by_scope=cut is _short):
            parts += ["", title, text_table(heads, cut([list(row) for row in rows]))]
        return "\n".join(parts)

    def _repr_html_(self) -> str:
        return page(headline(self.story), remarks(self.story), tables(self.story, None, by_scope=False))


# -- in words ---------------------------------------------------------------------------------------------------


def headline(s: Story) -> str:
    """The step in one sentence."""
    devices = {op.device for op in s.ops}
    crossing = [c for c in s.crossings if not c.only_order]
    known = sum(c.nbytes or 0 for c in crossing)
    size = f" ({'at least ' if any(c.nbytes is None for c in crossing) else ''}{byte_size(known)})" if crossing else ""
    sent = f", {plural(len(crossing), 'tensor')} sent between them{size}" if len(devices) > 1 else ""
    wanted = _listed(name.removesuffix(":0") for name in s.fetches) or "nothing"
    return (
        f"A step for {wanted}: {len(s.kept):,} of {plural(s.graph_size, 'op')} on "
        f"{plural(len(devices), 'device')}{sent}, in {plural(len(s.sets), 'ready set')}."
    )


def remarks(s: Story) -> list[str]:
    """The remarks that a reader should know before the tables."""
    chain = " → ".join(map(readable, _middle_out(s.critical_path)))
    lines = [f"Feed {_listed(s.unfed)}: without a value the step fails." if s.unfed else ""]
    lines += [f"Pruned, {why}: {plural(n, 'op')} ({_listed(names, 3)})." for why, n, names in _by_reason(s.dropped)]
    lines += [f"Only waited for, so not computed: {_listed(s.unread)}." if s.unread else ""]
    lines += [f"Folded, known before the step (set 0): {_listed(s.folded)}." if s.folded else ""]
    lines += [f"Longest chain, {plural(len(s.critical_path), 'node')}: {chain}." if s.critical_path else ""]
    lines += ["Loops are shown as one turn: each turn has counters of its own." if s.loops else ""]
    lines += ["Both branches of a conditional are shown; a run takes one, the other is dead." if s.branches else ""]
    lines += ["" if s.from_master else "The master is TensorFlow's: devices are those that dtflab's rules give."]
    return [line for line in lines if line]


def _by_reason(dropped: Mapping[str, str]) -> list[tuple[str, int, list[str]]]:
    counted = Counter(dropped.values()).most_common()
    return [(why, count, [name for name, other in dropped.items() if other == why]) for why, count in counted]


def _middle_out(path: Sequence[str]) -> list[str]:
    return list(path) if len(path) <= 9 else [*path[:4], f"… {len(path) - 8} more …", *path[-4:]]


def _listed(names: Iterable[str], most: int | None = MOST_NAMES) -> str:
    said = list(map(readable, names))
    more = len(said) - most if most is not None else 0
    return ", ".join(said[:most] + ([f"… {more} more"] if more > 0 else []))


# -- as tables ------------------------------------------------------------------------------------------------------


def tables(s: Story, names: int | None, by_scope: bool) -> list[Table]:
    """Order, ops, crossings; at most `names` names in a cell, with `by_scope` many ops are summed up by scope."""
    with together(op.device for op in s.ops):
        device_of = {op.name: op.device for op in s.ops}
        order = [
            [number, look(device).label, _listed(group, names)]
            for number, ready in enumerate(s.sets, 1)
            for device, group in grouped((device_of[name], name) for name in ready).items()
        ]
        crossings = [[readable(c.tensor), look(c.source).label, look(c.target).label, _size(c)] for c in s.crossings]
        heads, ops = _op_rows(s.ops, by_scope)
        if "node" in heads:
            ops += [[look(o.device).label, readable(o.name), o.op, 0, 0, o.reason] for o in s.known]
    found: list[Table] = [
        ("Ready order: a set runs when the sets before it have", ("set", "device", "nodes"), order),
        ("Ops: where, why, and how many inputs each waits for", heads, ops),
        ("Crossings: what goes from device to device", ("tensor", "from", "to", "size"), crossings),
    ]
    return [table for table in found if table[2]]


def _size(crossing: Any) -> str:
    if crossing.only_order:
        return "order only"
    return "shape unknown" if crossing.nbytes is None else byte_size(crossing.nbytes)


def _op_rows(ops: Sequence[StepOp], by_scope: bool) -> tuple[tuple[str, ...], list[list[Any]]]:
    if not by_scope or len(ops) <= MOST_ROWS:
        rows = [[look(o.device).label, readable(o.name), o.op, o.waits_for, o.set or "?", o.reason] for o in ops]
        return ("device", "node", "op", "waits for", "set", "why there"), rows
    return ("device", "scope", "ops", "sets", "why there"), [_scope_row(*group) for group in _scopes(ops)]


def _scopes(ops: Sequence[StepOp]) -> Iterable[tuple[tuple[str, str], list[StepOp]]]:
    """The ops by device and scope; scopes are as deep as the table has room for."""
    for depth in (3, 2, 1):
        groups = grouped(((op.device, "/".join(readable(op.name).split("/")[:-1][:depth])), op) for op in ops)
        if len(groups) <= MOST_ROWS:
            break
    return groups.items()


def _scope_row(place: tuple[str, str], ops: Sequence[StepOp]) -> list[Any]:
    sets = sorted({op.set for op in ops})
    span = str(sets[0]) if len(sets) == 1 else f"{sets[0]}–{sets[-1]}"
    (reason, count), *others = Counter(op.reason for op in ops).most_common()
    scope = f"{place[1]}/…" if place[1] else f"({_listed([op.name for op in ops], 3)})"
    more = f" ({count} of {len(ops)})" if others else ""
    return [look(place[0]).label, readable(ops[0].name) if len(ops) == 1 else scope, len(ops), span, reason + more]


def _short(rows: list[list[Any]]) -> list[list[Any]]:
    """A table that is too long, without its middle."""
    if len(rows) <= MOST_ROWS:
        return rows
    left_out = ["…", f"{len(rows) - MOST_ROWS + 1} more rows: .everything has them"]
    gap = (left_out + [""] * len(rows[0]))[: len(rows[0])]
    return [*rows[: MOST_ROWS - 5], gap, *rows[-4:]]
