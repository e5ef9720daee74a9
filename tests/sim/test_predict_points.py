"""Points: what is read of a file, and what is said of one that can't be read."""

from __future__ import annotations

import json

import pytest

from dtflab.sim.predictions import points
from dtflab.sim.predictions.points import PredictionError


def test_the_shipped_points_are_all_understood():
    read = points.read()
    assert len(read) == len(read.published) == 64
    assert read.refused == {}
    assert read.published["osdi-backup-t0"] == (2.23, 2.29), "a bracket"


@pytest.mark.parametrize(
    ("said", "meant"),
    [(64, 64), ("64 (recalled)", 64), ("~1000 (recalled ballpark)", 1000), ("1.5e3 B", 1500), ("2,744 img/s", 2744)],
)
def test_a_number_may_carry_a_remark(said, meant):
    assert points.number(said) == meant


@pytest.mark.parametrize("said", ["many", "", None, True, [1], ".", float("nan"), float("inf"), "1e400"])
def test_what_is_no_number_is_told_with_its_name(said):
    with pytest.raises(PredictionError, match="batch is"):
        points.number(said, "batch")


def test_a_row_reads_the_first_name_that_is_there():
    row = points.Row("the setup", {"nodes": "2 (recalled)", "gpus": None, "ratio": 1.5})
    assert row.number("gpus", "nodes") == row.count("nodes") == 2
    assert row.number("gpus") is None
    with pytest.raises(PredictionError, match="the setup has no positive 'gpus' or 'workers'"):
        row.need("gpus", "workers")
    with pytest.raises(PredictionError, match=r"1\.5, which can't be a count"):
        row.count("ratio")


def test_a_flag_may_carry_a_remark():
    row = points.Row("the setup", {"sync": False, "ps_colocated": "yes (assumed)", "other": "no (quoted)", "one": True})
    assert [row.flag(name) for name in ("sync", "ps_colocated", "other", "one", "none")] == [
        False,
        True,
        False,
        True,
        False,
    ]
    assert row.flag("none", default=True)


def entry(**changes):
    setup = {"platform": "p", "model": "m", "gpus": 2}
    return {"id": "a", "metric": "throughput", "unit": "images/s", "setup": setup, **changes}


def file(*entries, **changes):
    content = {"platforms": {"p": {"bus": "pcie3"}}, "models": {"m": {"params": 1}}, "points": list(entries)}
    return {"schema": points.SCHEMA, **content, **changes}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ([], "its schema should be"),
        ({"schema": "other/2", "points": []}, "'other/2'"),
        (file(points={}), "'points' should be a list"),
        (file(platforms=[]), "'platforms' should be a table"),
        (file(models={"m": 3}), "'models' should be a table"),
        (file(entry(id="")), "point 0 has no 'id'"),
        (file(entry(), entry()), "two points have the id 'a'"),
    ],
)
def test_a_file_that_is_none_is_an_error(content, why):
    with pytest.raises(ValueError, match=why):
        points.parse(content)


def test_a_file_that_is_no_json_is_an_error(tmp_path):
    path = tmp_path / "points.json"
    for text in ("{", "[" * 100_000):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"points\.json is not JSON"):
            points.read(path)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"setup": {"platform": "q", "gpus": 2}}, "no platform 'q'"),
        ({"setup": {"platform": "p", "model": "n"}}, "no model 'n'"),
        ({"metric": None}, "names no metric"),
        ({"given": 3}, "'given' is 3"),
    ],
)
def test_a_point_that_is_not_understood_is_refused_with_a_reason_and_the_others_go_on(changes, why):
    read = points.parse(json.loads(json.dumps(file(entry(**changes), entry(id="b")))))
    assert why in read.refused["a"]
    assert [point.id for point in read] == ["b"]


def test_what_was_published_is_no_part_of_a_point():
    (point,) = points.parse(file(entry(published=12345.678, note=12345.678))).points
    assert "12345.678" not in repr(point)
