"""A step in hand, and what each of its sets did, as tables for a notebook. The data is in `runtime/steps.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dtflab.base import errors
from dtflab.graph.node_names import told_apart
from dtflab.runtime.steps import Record, Standing, Steps
from dtflab.viz.counters import MOST, counters, frames
from dtflab.viz.drawing import front_end
from dtflab.viz.drawing.palette import look, together
from dtflab.viz.drawing.picture import Table
from dtflab.viz.drawing.svg import Markup, join, tag
from dtflab.viz.drawing.tables import page

NEAR = 60  # nodes of a large step that are drawn
NO_SETS = "A real executor has no sets: it starts each op as soon as its inputs are there."


def steps_html(steps: Steps) -> Markup:
    """A step in hand: its nodes with counters, in a large one those where it stands, and buttons that run its sets."""
    return ShownSteps(steps).html()


class ShownSteps:
    """A step as it stands when it is shown. Once it has gone on, `html()` has its later sets, too."""

    def __init__(self, steps: Steps) -> None:
        self.steps, self.at = steps, len(steps.records)
        self._nodes = steps.nodes
        self._head = str(steps).partition("\n")[0].capitalize()
        self._stood = "" if steps.error else self._head.removeprefix("Step")
        self._says = "" if self._is_table else frames(steps)[-1].says
        self._table = _in_tables(steps, self._head) if self._is_table else Markup("")

    @property
    def _is_table(self) -> bool:
        return not 0 < len(self._nodes) <= MOST

    def html(self) -> Markup:
        """The picture with all sets until now, at the one where the step stood; or the tables of that one."""
        if self._is_table:
            return self._table
        live = _state(self.steps) | {"view": "steps", "at": self.at} | front_end.in_touch(_Answer(self.steps))
        front_end.begin()
        drawing = join([_of_still("p", self._says), Markup(counters(self._nodes, live).html)])
        head = join([self._head.removesuffix(self._stood), _of_still("span", self._stood)])
        return page(head, [NO_SETS], [], drawing=drawing)


def _in_tables(steps: Steps, head: str) -> Markup:
    """A step as tables; if it is a large one, with a picture of the nodes where it stands."""
    last = steps.records[-1] if steps.records else Record(0, [], [], [], [])
    now = last._replace(ready=steps.ready, waiting=steps.waiting)
    near = _near(steps.nodes, last)
    why = f"The picture shows {len(near)} of {len(steps.nodes)} nodes: what ran last, what is ready or asked, and then "
    why += f"what waits for these; it has {NEAR} at most. For fewer, fetch less, as the loss of one worker."
    with together(node.device for node in steps.nodes):
        remarks = [*[why] * bool(near), *now.outlook.split("\n"), NO_SETS]
        drawing = Markup(counters(near).html) if near else None
        return page(head, remarks, _tables(last, steps.counts), 0 if near else 2, drawing)


def _near(nodes: Sequence[Standing], last: Record) -> list[Standing]:
    """The nodes of the last set, those that can go on, and those that wait for them, as far as they fit a page."""
    ran = {one.name for one in last.ran}
    here = [node for node in nodes if node.name in ran or node.state in ("ready", "asked")]
    names = {node.name for node in here}
    behind = [node for node in nodes if node.name not in names and not names.isdisjoint(node.sources)]
    return [*sorted(here, key=lambda node: node.state != "ready"), *behind][:NEAR]


def _of_still(kind: str, text: str) -> Markup:
    """A remark on the picture as it was shown, hidden where it moves and says itself where it is."""
    return tag(kind, text, class_="dtf-of-still")


def _state(steps: Steps) -> dict[str, Any]:
    """Every set so far, whether more will come, and why not if the step has failed."""
    error = steps.error
    return {
        "frames": [frame._asdict() for frame in frames(steps)],
        "over": steps.over,
        "error": str(getattr(error, "message", error)) if error else "",
    }


class _Answer:
    """The kernel's part in the buttons of a step."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    def __call__(self, asks: Mapping[str, Any], tell: Callable[[Mapping[str, Any]], object]) -> None:
        """Run the next set, or all; then say what they did, and the error if there was one."""
        said = {}
        try:
            if not self._steps.over:
                self._steps.next() if asks["run"] == "next" else self._steps.finish()
        except errors.OpError as found:
            said = {"error": found.message}  # with what explains it
        tell(_state(self._steps) | said)


def record_html(record: Record) -> Markup:
    """A page on one set."""
    head = str(record).partition("\n")[0].capitalize()
    return page(head, record.outlook.split("\n"), _tables(record, {}), unfolded=2)


def _tables(record: Record, counts: Mapping[str, int]) -> list[Table]:
    fell, called = {c.name for c in record.counters}, told_apart([*record.names, *counts])
    ran: list[Any] = [[look(r.device).label, called(r.name), r.op, r.result] for r in record.ran]
    falls: list[Any] = [[called(c.name), str(c), "ready" if c.after == 0 else ""] for c in record.counters]
    others: list[Any] = [[called(name), count] for name, count in counts.items() if name not in fell]
    tables: list[Table] = [
        ("What ran", ("device", "node", "op", "result"), ran),
        ("Counters that fell", ("node", "waits for", ""), falls),
        ("Other nodes that are not ready", ("node", "waits for"), others),
    ]
    return [table for table in tables if table[2]]
