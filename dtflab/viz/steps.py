"""A step in hand as a picture with buttons, and what a set of it did as tables. The data is in `runtime/steps.py`."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dtflab.base import errors
from dtflab.graph.node_names import told_apart
from dtflab.runtime.steps import Record, Standing, Steps
from dtflab.viz.counters import MOST, Frame, counters, frames
from dtflab.viz.drawing import front_end
from dtflab.viz.drawing.palette import look, together
from dtflab.viz.drawing.picture import Table
from dtflab.viz.drawing.svg import Markup, join, tag
from dtflab.viz.drawing.tables import page

NEAR = 60  # nodes of a large step that are drawn
_drawn: weakref.WeakKeyDictionary[Steps, list[Frame]] = weakref.WeakKeyDictionary()
_SOME = (
    f"Of {{:,}} nodes the picture shows up to {NEAR}: those that ran last, those that are ready or asked, and those "
    "that wait for them. For fewer, fetch less, as the loss of one worker."
)
NO_SETS = "A real executor has no sets: it starts each op as soon as its inputs are there."


def steps_html(steps: Steps) -> Markup:
    """A step in hand: its nodes with counters, of a large one those where it stands, and buttons that run its sets."""
    return ShownSteps(steps).html()


class ShownSteps:
    """A step as it stands when it is shown. Once it has gone on, `html()` has its later sets, too."""

    def __init__(self, steps: Steps) -> None:
        self.steps, self.at = steps, len(steps.records)
        self._nodes = _standing(steps)
        self._head = str(steps).partition("\n")[0].capitalize()
        self._stood = "" if steps.error else self._head.removeprefix("Step")
        self._says = frames(steps)[-1].says if self._nodes else ""

    def html(self) -> Markup:
        """The picture with all sets until now, at the one where the step stood."""
        if not self._nodes:  # all are in loops
            return page(self._head, [NO_SETS], _tables(self.steps.records[-1]) if self.steps.records else [])
        live = _state(self.steps) | {"view": "steps", "at": self.at} | front_end.in_touch(_Answer(self.steps))
        front_end.begin()
        drawing = join([_of_still("p", self._says), Markup(counters(self._nodes, live).html)])
        head = join([self._head.removesuffix(self._stood), _of_still("span", self._stood)])
        count = len(self.steps.nodes)
        return page(head, [*[_SOME.format(count)] * (count > MOST), NO_SETS], [], drawing=drawing)


def _standing(steps: Steps) -> Sequence[Standing]:
    """The nodes to draw as the step stands: all, or those that are near."""
    nodes = steps.nodes
    return nodes if len(nodes) <= MOST else _near(nodes, steps.records[-1] if steps.records else None)


def _scenes(steps: Steps) -> list[Frame]:
    """The frames of a step; those of a large one have drawings, which are made once."""
    nodes = steps.nodes
    if len(nodes) <= MOST:
        return frames(steps)
    drawn = _drawn.setdefault(steps, [])
    lasts: list[Record | None] = [None, *steps.records]
    with together(node.device for node in nodes):
        for frame, last in list(zip(frames(steps), lasts, strict=True))[len(drawn) :]:
            states = zip(nodes, frame.states, frame.badges, strict=True)
            now = [node._replace(state=s, waits_for=int(n) if s == "waits" else 0) for node, s, n in states]
            near = _near(now, last)  # none, where a set ran in loops only
            drawing = counters(near, {}).inline if near else drawn[-1].drawing
            drawn.append(Frame([], [], frame.says, drawing))
    return drawn


def _near(nodes: Sequence[Standing], last: Record | None) -> list[Standing]:
    """The nodes of the last set, those that can go on, and those that wait for them, as far as they fit a page."""
    ran = {one.name for one in last.ran} if last else set()
    here = [node for node in nodes if node.name in ran or node.state in ("ready", "asked")]
    names = {node.name for node in here}
    behind = [node for node in nodes if node.name not in names and not names.isdisjoint(node.sources)]
    return [*sorted(here, key=lambda node: node.state != "ready"), *behind][:NEAR]


def _of_still(kind: str, text: str) -> Markup:
    """A remark on the picture as it was shown, hidden where it moves and says itself where it is."""
    return tag(kind, text, class_="dtf-of-still")


def _state(steps: Steps, first: int = 0) -> dict[str, Any]:
    """The sets from one on, whether more will come, and why not if the step has failed."""
    error = steps.error
    return {
        "first": first,
        "frames": [frame._asdict() for frame in _scenes(steps)[first:]],
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
        tell(_state(self._steps, asks["has"]) | said)


def record_html(record: Record) -> Markup:
    """A page on one set."""
    head = str(record).partition("\n")[0].capitalize()
    return page(head, record.outlook.split("\n"), _tables(record), unfolded=2)


def _tables(record: Record) -> list[Table]:
    called = told_apart(record.names)
    ran: list[Any] = [[look(r.device).label, called(r.name), r.op, r.result] for r in record.ran]
    falls: list[Any] = [[called(c.name), str(c), "ready" if c.after == 0 else ""] for c in record.counters]
    tables: list[Table] = [
        ("What ran", ("device", "node", "op", "result"), ran),
        ("Counters that fell", ("node", "waits for", ""), falls),
    ]
    return [table for table in tables if table[2]]
