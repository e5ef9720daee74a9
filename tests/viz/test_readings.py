"""The values that a plot says where it is pointed at: those of its data, one in each unit of the page."""

from __future__ import annotations

import pytest

import dtflab as tf
from dtflab.viz.drawing.readings import reading
from tests.viz.test_busy import ran
from tests.viz.test_card_history import THREE, state
from tests.viz.test_queues import a_wait
from tests.viz.test_staleness import log_of
from tests.viz.watched import event, live


def read(picture):
    """The plots of a picture that can be read, each with its box within the page, its places in order."""
    data = live(picture)
    assert data["view"] == "still"
    for plot in data["readings"]:
        left, top, right, bottom = plot["box"]
        assert left < right and top < bottom and len(plot["at"]) == len(plot["says"])
        assert all(left - 0.2 <= x <= right + 0.2 for x in plot["at"]) and plot["at"] == sorted(plot["at"])
    return data["readings"]


@pytest.mark.parametrize("log", [False, True])
def test_a_curve_says_the_values_of_all_its_lines_at_a_place(log):
    nan = float("nan")
    (plot,) = read(
        tf.viz.curve([1, 2, 4], {"a": [3, 1, 2], "b": [1, nan, 0.25]}, "workers", "s", log_values=log).picture
    )
    assert plot["says"] == [["workers: 1", "a: 3", "b: 1"], ["workers: 2", "a: 1"], ["workers: 4", "a: 2", "b: 0.25"]]
    first, second, third = plot["at"]
    assert second - first == pytest.approx(third - second, abs=0.2), "on this axis twice is as far as twice"
    assert not plot["holds"] and plot["box"][2] == third, "the names to the right are not of the plot"


def test_of_very_many_points_one_in_a_unit_of_the_page_is_said():
    (plot,) = read(tf.viz.curve(range(10_000), {"a": range(10_000)}, "step", "loss").picture)
    assert 500 < len(plot["says"]) < 720 and plot["says"][-1] == ["step: 9999", "a: 9999"]


def test_the_last_of_what_happens_in_a_unit_holds():
    plot = reading((0, 0, 9, 9), [1.0, 1.2, 1.9, 3.0], lambda i: [str(i)], holds=True)
    assert (plot.at, plot.says, plot.holds) == ([1.9, 3.0], [["2"], ["3"]], True)


def test_a_queue_says_its_level_and_who_waits_until_something_else_happens():
    waits = [event(5.0 + i / 10, "wait", 0, 4, "put", f"C{i}", 10 + i, False, "put") for i in range(8)]
    (plot, _) = read(tf.viz.queues([*a_wait(), *waits, event(9.0, "put", 1, 1, queue="another")]))
    says = plot["says"]
    assert plot["holds"] and says[0] == ["4 elements of 4 from 0 on"]
    assert says[1] == ["4 elements of 4 from 1 s on", "A waits to put"]
    assert says[2] == ["4 elements of 4 from 3 s on"], "what was taken and put at once: the last"
    assert says[-1][1:] == [*(f"C{i} waits to put" for i in range(6)), "and 2 more"]


def test_a_device_says_how_busy_it_is_for_as_long_as_that_is_the_same():
    first, second = read(tf.viz.busy([ran(0.0, 0.5), ran(0.75, 1.0), ran(0.0, 1.0, 1)]))
    assert second["says"] == [["worker:1 GPU:0: 100% busy", "from 0 µs to 1 s", "100% busy in all"]]
    assert first["says"][0] == ["worker:0 GPU:0: 100% busy", "from 0 µs to 500 ms", "75% busy in all"]
    assert len(first["at"]) == 3 and second["box"][1] > first["box"][3]


def test_a_card_says_who_holds_how_much_after_each_event():
    (plot,) = read(tf.viz.card_history(state(*THREE)))
    assert [says[0][:2] for says in plot["says"]] == ["1:", "2:", "3:", "4:"]
    first, last = plot["says"][0], plot["says"][3]
    assert first[1].endswith(": 400 MiB") and first[-1] == "free: 590 MiB" == last[-1]


def test_each_gradient_with_a_mark_says_its_worker_age_and_fate():
    (plot,) = read(tf.viz.staleness(log_of([0, 2, 1], workers=3, dropped={1})))
    assert plot["says"] == [
        ["worker:0: 0 steps old, applied", "at 0"],
        ["worker:1: 2 steps old, dropped", "at 500 ms"],
        ["worker:2: 1 step old, applied", "at 1 s"],
    ]
    low, high, middle = plot["ys"]
    assert low > middle > high, "older is higher on the page"


def test_of_very_many_gradients_those_with_a_mark_are_said():
    (plot,) = read(tf.viz.staleness(log_of([0, 1, 2] * 2000, workers=3)))
    assert 700 < len(plot["says"]) <= 900 and len(plot["ys"]) == len(plot["at"])
