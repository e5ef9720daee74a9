"""The picture of staleness: bars and marks are the log's numbers, and nothing that was dropped is lost."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from dtflab.train.replicas.staleness_log import StalenessLog
from dtflab.viz import staleness

SVG = "{http://www.w3.org/2000/svg}"


def log_of(ages, workers=1, dropped=()):
    count = len(ages)
    rows = np.zeros([count, 6])
    rows[:, 0] = np.arange(count) % workers
    rows[:, 1] = 100
    rows[:, 2] = 100 + np.asarray(ages)
    rows[:, 3] = 1e9 + np.arange(count) * 0.5
    rows[:, 4] = [number not in dropped for number in range(count)]
    return StalenessLog.of_rows(rows)


def parts(picture, kind, **attributes):
    root = ElementTree.fromstring(picture.svg.split("\n", 1)[1])
    return [p for p in root.iter(SVG + kind) if all(p.get(name) == value for name, value in attributes.items())]


def counts(picture):
    return [title.text for title in parts(picture, "title")]


def test_a_bar_for_each_age_and_its_dropped_part():
    picture = staleness(log_of([0, 0, 0, 1, 3, 3], dropped={4}), title="Mine")
    assert counts(picture) == ["3 applied", "1 applied", "1 applied", "1 dropped"]
    heights = [float(rect.get("height")) for rect in parts(picture, "rect") if rect.find(SVG + "title") is not None]
    assert np.allclose(np.array(heights) / heights[0], [1, 1 / 3, 1 / 3, 1 / 3], atol=1e-3)
    assert picture.sentence == "Mine: 6 gradients, 1.2 steps old on average, 1 dropped."
    assert picture.tables[1][2] == [["0", 3, 0], ["1", 1, 0], ["2", 0, 0], ["3", 1, 1]]


def test_many_ages_share_bars_and_none_is_lost():
    picture = staleness(log_of(range(500)))
    ages = picture.tables[1][2]
    assert len(ages) <= 34 and sum(applied for _, applied, _ in ages) == 500
    assert ages[0][0] == "0 to 14"


def level(cross):
    """Whether the first line of a cross goes from left to right."""
    numbers = re.findall(r"-?[\d.]+", cross)
    return numbers[1] == numbers[3]


def test_workers_of_one_colour_have_different_marks():
    picture = staleness(log_of([0, 1] * 10, workers=20, dropped={1, 9}))
    drawn = {
        kind: [mark.get("style").rpartition(":")[2] for mark in parts(picture, kind, **of)]
        for kind, of in (("circle", {}), ("path", {"class": "diamond"}))
    }
    crosses = [cross.get("d") for cross in parts(picture, "path", **{"class": "lost"})]
    first, second = drawn["circle"][2:], drawn["path"][1:]
    assert len(first) == 11 and len(second) == 7, "two workers have dropped theirs"
    assert set(second) < set(first), "their colours are the same"
    slanted, upright = crosses[-2:]
    assert not level(slanted) and level(upright)
    texts = [text.text for text in parts(picture, "text")]
    assert {"worker:0 to 7, 16 to 19", "worker:8 to 15", "worker:15", "and 4 more workers"} < set(texts)


def test_few_workers_of_one_colour_have_different_lines():
    log = log_of([0, 1, 2, 3], workers=2)
    log.worker[:] *= 8
    picture = staleness(log)
    dashes = [trace.get("stroke-dasharray") for trace in parts(picture, "path", **{"class": "trace"})]
    assert dashes == [None, "4 3"] and len(parts(picture, "circle")) == 2 + 2
    assert "worker:8" in [text.text for text in parts(picture, "text")]


def test_traces_have_the_workers_colours_and_crosses_for_what_was_dropped():
    picture = staleness(log_of([0, 1, 2, 1, 0, 1], workers=3, dropped={2}))
    assert len(parts(picture, "circle")) == 5 + 1 and len(parts(picture, "path", **{"class": "lost"})) == 1 + 1
    assert len({circle.get("style") for circle in parts(picture, "circle")}) == 4, "one in the legend"
    assert len(parts(picture, "path", **{"class": "trace"})) == 3
    assert [row[:2] for row in picture.tables[0][2]] == [["worker:0", 2], ["worker:1", 2], ["worker:2", 2]]


def test_what_is_too_much_to_see_is_thinned_but_not_what_was_dropped():
    picture = staleness(log_of(np.arange(5000) % 40, workers=40, dropped=set(range(0, 5000, 100))))
    dots = len(parts(picture, "circle")) + len(parts(picture, "path", **{"class": "diamond"}))
    assert 400 < dots <= 900 and len(parts(picture, "path", **{"class": "lost"})) == 50 + 3, "and the legend's"
    assert parts(picture, "path", **{"class": "trace"}) == []


def words(picture):
    return [text.text for text in parts(picture, "text")]


def test_a_legend_says_whose_colour_is_whose_and_how_what_was_dropped_is_marked():
    named = words(staleness(log_of([0, 1, 2, 1, 0, 1], workers=3, dropped={2})))
    assert {"applied", "dropped", "worker:0", "worker:1", "worker:2"} <= set(named)
    assert "dropped" not in words(staleness(log_of([0, 1])))
    many = words(staleness(log_of([1] * 80, workers=40)))
    assert sum(bool(re.fullmatch(r"worker:\d+", word)) for word in many) == 16 and "and 24 more workers" in many


def test_numbers_on_axes_are_whole():
    picture = staleness(log_of([0, 1, 2]))
    numbers = {text.text for text in parts(picture, "text") if re.fullmatch(r"[\d.]+", text.text or "")}
    assert {"0", "1", "2"} <= numbers


def test_one_gradient_at_one_moment_and_none():
    assert counts(staleness(log_of([0]))) == ["1 applied"]
    with pytest.raises(ValueError, match="Run a training step first"):
        staleness(log_of([]))


def test_what_is_no_log_is_named():
    with pytest.raises(TypeError, match=r"draws a StalenessLog.*, not list\."):
        staleness([1, 2])


@pytest.mark.parametrize("age", [0, 3])
def test_the_mean_of_equal_ages_goes_through_the_middle_of_their_bar(age):
    picture = staleness(log_of([age] * 5))
    (bar,) = (rect for rect in parts(picture, "rect") if rect.find(SVG + "title") is not None)
    (mean,) = parts(picture, "path", **{"class": "mean"})
    x = float(re.match(r"M([\d.]+)", mean.get("d"))[1])
    assert x == pytest.approx(float(bar.get("x")) + float(bar.get("width")) / 2, abs=0.1)
