"""The lines of the picture of waits: they run past boxes, not behind them, and end where the data says."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from typing import NamedTuple

import pytest

import dtflab as tf
from dtflab.runtime.standstill import Reserving
from dtflab.viz.data.waits_for import waits_for
from dtflab.viz.drawing.svg import text_width
from dtflab.viz.layout.around import Around
from dtflab.viz.layout.shapes import Rect
from tests.viz.test_waits import CIRCLE, W0, W1, W2, in_line, in_threads, program, three
from tests.viz.watched import SVG, fits, texts

OTHERS = tuple(W0.replace("task:0", f"task:{n}") for n in (3, 4, 5))
GPUS = [Reserving(f"client {name}", "2 GPUs", ("client A", "client B")) for name in "ABCD"]
CASES = {
    "two threads": in_threads(),
    "a third thread": in_threads(third=True),
    "a circle with a box next to it": CIRCLE,
    "three clients": three(),
    "two parts": [*three(), *three(10, OTHERS)],
    "itself": [Reserving("client A", "1 GPU", ("client A",))],
    "many on one box": GPUS,
    "a chain": [in_line(1, "q", "put"), program(W0, [1], "take:q"), program(W1, [], "put:q"), program(W2, [], "put:q")],
}


class Part(NamedTuple):
    """A part of a picture: boxes by title, lines as points that lie close together, words."""

    boxes: list[tuple[str, Rect]]
    lines: list[list[tuple[float, float]]]
    dashed: list[list[tuple[float, float]]]
    words: list[tuple[str, Rect]]


def parts_of(picture):
    for g in ET.fromstring(picture.svg.encode()).iter(f"{SVG}g"):
        boxes = [_box(child) for child in g if child.find(f"{SVG}title") is not None]
        if g.get("transform") and boxes:
            ways = [path for path in g.iter(f"{SVG}path") if "way" in path.get("class", "").split()]
            lines = [_points(path.get("d")) for path in ways]
            dashed = [line for path, line in zip(ways, lines) if path.get("class") == "way"]
            inside = {id(text) for child in g if child.find(f"{SVG}title") is not None for text in child.iter()}
            words = [_words(text) for text in g.iter(f"{SVG}text") if id(text) not in inside]
            yield Part(boxes, lines, dashed, words)


def _box(g):
    rect = next(r for r in g.iter(f"{SVG}rect") if r.get("class") == "box")
    title = g.find(f"{SVG}title").text.partition("\n")[0]
    return title, Rect(*(float(rect.get(side)) for side in ("x", "y", "width", "height")))


def _words(text):
    wide, x, y = text_width(text.text, 11), float(text.get("x")), float(text.get("y"))
    class_ = text.get("class").split()
    return text.text, Rect(x - wide * (1 if "end" in class_ else 0.5 if "mid" in class_ else 0), y - 8, wide, 8)


def _points(d):
    """The points of a path of straight lines and quadratic curves, at most a pixel apart."""
    found = []
    for command, numbers in re.findall(r"([MLQ])([^MLQ]*)", d):
        values = [float(number) for number in numbers.split()]
        ends = list(zip(values[::2], values[1::2]))
        if command == "M":
            found.append(ends[0])
            continue
        a, b, c = found[-1], ends[0], ends[-1]
        if command == "L":
            b = ((a[0] + c[0]) / 2, (a[1] + c[1]) / 2)
        steps = math.ceil(math.dist(a, b) + math.dist(b, c)) or 1
        for t in (k / steps for k in range(1, steps + 1)):
            found.append(tuple(p * (1 - t) ** 2 + 2 * q * t * (1 - t) + r * t**2 for p, q, r in zip(a, b, c)))
    return found


def within(point, r, margin=0.0):
    return r.x - margin < point[0] < r.right + margin and r.y - margin < point[1] < r.bottom + margin


@pytest.mark.parametrize("facts", CASES.values(), ids=CASES)
@pytest.mark.parametrize("width", [None, 480])
def test_no_line_runs_behind_a_box(facts, width):
    picture = tf.viz.waits(facts, width=width)
    assert fits(picture)
    for part in parts_of(picture):
        for line in part.lines:
            assert not [name for name, box in part.boxes for point in line if within(point, box, -1.5)]


@pytest.mark.parametrize("facts", CASES.values(), ids=CASES)
def test_each_line_leads_from_who_waits_to_whom_it_waits_for(facts):
    found = waits_for(facts)
    drawn = []
    for part in parts_of(tf.viz.waits(facts)):
        for line in part.lines:
            ends = [[name for name, box in part.boxes if within(end, box, 1.5)] for end in (line[0], line[-1])]
            drawn.append(tuple(name for (name,) in ends))
    title = {key: f"{waiter.name}: {waiter.about}" for key, waiter in found.waiters.items()}
    assert sorted(drawn) == sorted((title[arrow.source], title[arrow.target]) for arrow in found.arrows)


@pytest.mark.parametrize("facts", [in_threads(), in_threads(third=True)], ids=["two", "three"])
def test_what_hangs_on_a_circle_leaves_its_words_free_and_no_line_ends_where_another_begins(facts):
    (part,) = parts_of(tf.viz.waits(facts))
    assert not [text for text, place in part.words for line in part.dashed for point in line if within(point, place)]
    assert not {line[0] for line in part.dashed} & {line[-1] for line in part.dashed}


def test_a_box_that_hangs_on_a_circle_stands_at_the_side_of_what_it_waits_for():
    (part,) = parts_of(tf.viz.waits(in_threads()))
    at = {(name.partition(":")[0] if "take" in name else name[:8]): box for name, box in part.boxes}
    assert at["worker:0"].right < at["take_left1"].x and at["worker:0"].y == at["take_left1"].y
    assert at["worker:1"].x > at["take_right2"].right and at["worker:1"].y == at["take_right2"].y


def test_a_narrow_picture_puts_all_that_hangs_on_a_circle_in_words():
    said = texts(tf.viz.waits(in_threads(third=True), width=480))
    assert "right (0 of 5 elements) waits for take_left3: a put by a" in said
    assert "take_left3 (client of worker:0) waits for left: 1 more" in said


def test_a_line_goes_around_a_box_and_crosses_a_mark_only_to_save_a_long_way():
    row = {name: Rect(100.0 * i, 50, 60, 40) for i, name in enumerate("abc")}
    straight = Around({"a": row["a"], "c": row["c"]}, [], 300).way("a", "c")
    assert {y for _, y in straight} == {70.0}
    bent = Around(row, [], 300).way("a", "c")
    assert min(y for _, y in bent) < 50 or max(y for _, y in bent) > 90
    small, wall = Rect(120, 60, 20, 20), Rect(120, -5000, 20, 10000)
    ends = {"a": row["a"], "c": row["c"]}
    assert len(Around(ends, [small], 300).way("a", "c")) > 4
    assert {y for _, y in Around(ends, [wall], 300).way("a", "c")} == {70.0}


def test_many_that_hang_on_a_circle_are_put_in_words():
    waiting = [in_line(10 + i, "left", "put")._replace(op=f"take{i}") for i in range(9)]
    picture = tf.viz.waits([*in_threads(), *waiting])
    (part,) = parts_of(picture)
    assert len(part.boxes) == 4 and not part.dashed and fits(picture)
    assert sum(said.startswith("take") and " waits for left: 1 more" in said for said in texts(picture)) == 9
