"""The picture of an estimate: a staircase without gaps, every number as a bar, as text and in a table."""

import re
from xml.etree import ElementTree

import pytest

from dtflab import viz
from dtflab.sim.engine.parameters import IDEAL
from dtflab.sim.estimates.estimate import estimate
from tests.sim.networks import cluster, layered

NETWORK = layered([4_000_000, 1_000_000, 9_000_000])


@pytest.fixture(scope="module")
def found():
    return estimate(NETWORK, cluster(4, 2, bandwidth=1e8), 12, parameters=IDEAL)


def bars(picture, height):
    root = ElementTree.fromstring(picture.svg.split("\n", 1)[1])
    return [
        (float(r.get("x")), float(r.get("width")))
        for r in root.iter("{http://www.w3.org/2000/svg}rect")
        if r.get("height") == height
    ]


def test_parts_of_the_path_follow_each_other(found):
    path = [part for part in found.critical_path if part.seconds > 0]
    stairs = bars(viz.estimate(found, path), "13")[: len(path)]
    assert len(stairs) == len(path) > 4
    total = sum(part.seconds for part in path)
    room = sum(width for _, width in stairs)
    for (x, width), (following, _), part in zip(stairs, stairs[1:], path, strict=False):
        assert x + width == pytest.approx(following, abs=2)
        assert width / room == pytest.approx(part.seconds / total, abs=0.01)


def test_all_that_is_drawn_stands_in_the_tables(found):
    picture = viz.estimate(found)
    assert picture.tables == found.tables and picture.text == str(found)
    assert re.search(r"layered, ps_sync, 4 devices", picture.sentence)
    for name, load in list(found.link_load.items())[:5]:
        assert name in picture.svg and f"{100 * load:.0f}%" in picture.svg


def test_asynchronous_workers_have_links_and_steps_but_no_path():
    picture = viz.estimate(estimate(NETWORK, cluster(3, 1), 4, "ps_async", parameters=IDEAL))
    assert "Critical path" not in picture.svg and "Links" in picture.svg and "Steps" in picture.svg


def test_a_step_is_a_timeline(found):
    picture = viz.timeline(found.step_stats(workers=[0, 1]))
    assert "forward" in picture.svg and "/job:ps/replica:0/task:1" in picture.text
