"""Pictures that change while a block runs: the curves of a training, its button, any picture drawn again."""

from __future__ import annotations

import json
import math
import queue
import re
import sys

import numpy as np
import pytest

import dtflab as tf
from dtflab.viz.data.course import MOST, Course
from dtflab.viz.drawing import front_end
from dtflab.viz.live_curves import Labels, Plan, curves, sentence, summary

SOON = 60.0
LOSS = Labels("Loss", "loss", "step")


@pytest.fixture
def page(monkeypatch):
    """The messages to a page: a queue."""

    class Page:
        heard = queue.Queue()

        def send(self, message):
            json.dumps(message, allow_nan=False)
            self.heard.put(message["says"])

    page = Page()
    monkeypatch.setattr(front_end, "_widgets", [page])
    return page.heard


def course_of(steps, *reports, seconds=2.0):
    course = Course(steps, 0.0)
    course.add(iter(reports), seconds)
    return course


def report(value, who="a", x=None, staleness=None):
    return who, value, x, staleness


def until(heard, wanted):
    """Read messages up to one that is wanted; the lines that a page has put together then, and that message."""
    lines: list = []
    while True:
        says = heard.get(timeout=SOON)
        if "svg" in says:
            lines = []
        for i, (first, xs, ys) in enumerate(says.get("lines", [])):
            lines[i:] = lines[i:] or [([], [])]
            assert len(lines[i][0]) >= first
            lines[i][0][first:], lines[i][1][first:] = xs, ys
        if wanted(says):
            return lines, says


# ---- what is kept


def test_a_long_line_keeps_values_that_were_there_and_the_newest():
    course = course_of(None, *(report(float(i)) for i in range(10 * MOST)))
    (line,) = course.lines.values()
    xs, ys = line.since(0)
    assert xs == ys and xs[0] == 0 and xs[-1] == 10 * MOST - 1
    assert MOST / 2 <= len(xs) <= MOST + 1
    assert set(np.diff(xs[:-1])) == {line.every}
    assert f"one of {line.every} points is drawn" in sentence(course, LOSS, True, False)


def test_speed_staleness_and_the_time_left():
    course = course_of(30, *(report(1.0, staleness=i) for i in (0, 1, 5)), *(report(1.0) for _ in range(7)))
    said = summary(course, LOSS, False, False)
    assert said == "10 of 30 updates, 5.0 updates/s, staleness 2.0, at most 5, 4.00 s left"
    picture = curves(course, LOSS, False, False, lambda data: data)
    assert (
        "4.00 s left" in re.sub('aria-label="[^"]*"', "", picture.svg) and "left" not in picture.sentence + picture.text
    )
    course.add(iter([report(1.0)] * 20), 3.0)
    assert summary(course, LOSS, True, False) == "30 of 30 updates in 3.00 s, 10 updates/s, staleness 2.0, at most 5"


def test_updates_are_counted_together_and_steps_for_each_worker():
    """One name for one thing: the heading counts what all report, the axis what each does."""

    def seen(*whos, x=None):
        course = course_of(12, *(report(1.0, who, x) for who in whos))
        picture = curves(course, LOSS, False, False, lambda data: data)
        return summary(course, LOSS, False, False).partition(",")[0], Plan(course, LOSS).data["over"], picture

    both = "/job:worker/task:0", "/job:worker/task:1"
    *words, picture = seen(*both, *both)
    assert words == ["4 of 12 updates", "steps of each worker"]
    assert ">steps of each worker<" in picture.svg and picture.tables[1][1] == ("", "steps of each worker", "loss")
    assert seen(both[0])[:2] == ("1 of 12 updates", "step")
    assert seen("sync", "async")[:2] == ("2 of 12 updates", "steps of each line")
    assert seen(*both, x=7.0)[:2] == ("2 of 12 updates", "step"), "the global step, as they said"


def test_the_x_axis_has_room_for_the_known_steps():
    def ends(*reports, steps=12, over="step", done=False):
        return Plan(course_of(steps, *reports), LOSS._replace(over=over), done).until

    a, b = [report(1.0, "a")], [report(1.0, "b")]
    assert ends(*a) == 11, "it begins at 0"
    assert ends(*a, *b) == ends(*a * 3, *b) == 5, "all workers together make them"
    both = [report(1.0, who, x) for x in range(100, 103) for who in "ab"]
    assert ends(*both) == 105, "each has said its own step"
    assert ends(*(report(1.0, who, 100 + i) for i, who in enumerate("abab"))) == 111, "the global step counts for both"
    assert ends() is ends(*a, steps=None) is ends(*a, over="virtual time (s)") is ends(*a, done=True) is None
    course = course_of(12, *a * 2)
    first, all_ = (curves(course, LOSS, done, False, lambda data: data).svg for done in (False, True))
    assert ">10</text>" in first and ">10</text>" not in all_ and ">0.8</text>" in all_, "the still has it, too"


def test_the_speed_is_that_of_the_last_seconds():
    course = Course(None, 0.0)
    for second in range(1, 21):
        course.add(iter([report(1.0)] * (100 if second <= 10 else 10)), float(second))
    assert course.rate == 10 and course.mean_rate == 55


def test_what_is_no_number_is_a_gap():
    course = course_of(None, report(2.0), report(math.nan), report(math.inf), report(1.0))
    assert course.lines["a"].since(0) == ([0, 1, 2, 3], [2.0, None, None, 1.0])
    (path,) = re.findall(
        r'd="([^"]*)"[^>]*stroke="var\(--fg\)"', "".join(Plan(course, Labels("", "loss", "step")).still())
    )
    assert path.count("M") == 2
    assert "loss 1, lowest 1" in sentence(course, LOSS, True, False)


# ---- the picture


def test_a_line_that_is_not_finite_any_more_is_named():
    nan, inf = math.nan, math.inf
    course = course_of(40, *(report(value) for value in (1.0, nan, 3.0, inf, nan, inf)), report(1.0, "b"))
    assert summary(course, LOSS, False, False) == "7 of 40 updates, a not finite since step 3"
    course.add(iter([report(nan, "b")]), 3.0)
    assert summary(course, LOSS, True, True).endswith(", a and 1 other not finite since step 3, stopped")
    course.add(iter([report(2.0), report(2.0, "b")]), 4.0)
    assert "finite" not in summary(course, LOSS, False, False), "both came back"


@pytest.mark.parametrize("count, end", [(4, "stopped"), (5, "1.2 updates/s")])
def test_a_training_that_did_all_its_steps_was_not_stopped(count, end):
    course = course_of(5, *[report(1.0)] * count, seconds=4.0)
    assert summary(course, LOSS, True, True).endswith(f", {end}")


def test_no_two_of_32_workers_look_alike():
    course = course_of(None, *(report(1.0, f"/job:worker/task:{i}") for i in range(32)))
    assert len({(pen.colour, pen.dash) for pen in Plan(course, LOSS).pens}) == 32


def test_workers_have_the_colours_of_their_tasks_and_a_line_each(page):
    with tf.viz.live("loss") as live:
        live(3.0, worker=1)
        live(2.0, worker="/job:worker/task:0")
        live(1.0, worker="another")
    picture = live.picture
    pens = picture.living_data["pens"]
    assert [pen["name"] for pen in pens] == ["worker:0", "worker:1", "another"]
    assert len({(pen["colour"], pen["dash"]) for pen in pens}) == 3
    assert pens[0]["colour"] == "#D55E00"
    assert picture.tables[0][2][1] == ["worker:1", 1, "3", "3", "3"]
    assert "worker:1: loss 3" in picture.sentence and "another" in picture.svg


def test_a_picture_without_a_step_is_a_picture():
    picture = tf.viz.live("loss").picture
    assert "0 updates" in picture.svg and picture.living_data["lines"] == []


def test_a_remark_says_what_is_computed_before_there_is_a_value(page):
    with tf.viz.live("loss", over="virtual time (s)", title="8 workers") as live:
        live.remark("async, 1 of 3")
        assert "virtual time 0 s: async, 1 of 3." in live.picture.sentence
        until(page, lambda says: says["status"] == "virtual time 0 s: async, 1 of 3")
        live(1.0, "async", step=0.5)
        live.remark("sync, 2 of 3")
        until(
            page, lambda says: says["status"] == "virtual time 0.5 s: sync, 2 of 3" and says["status"] in says["head"]
        )
    assert "sync, 2 of 3" not in live.picture.sentence


# ---- what the page hears


def test_a_page_gets_each_point_once_and_the_last_state(page):
    with tf.viz.live("loss", steps=6) as live:
        for i in range(3):
            live(float(i), worker=0)
        lines, says = until(page, lambda says: "3 of 6 updates" in says["status"])
        assert says["until"] == 5
        assert lines == [([0, 1, 2], [0.0, 1.0, 2.0])]
        for i in range(3):
            live(5.0 + i, worker=1)
    lines, last = until(page, lambda says: says["done"])
    assert last["until"] is None
    assert lines == [([0, 1, 2], [0.0, 1.0, 2.0]), ([0, 1, 2], [5.0, 6.0, 7.0])]
    assert "6 of 6 updates in" in last["status"] and page.empty()


def test_news_of_a_line_that_was_thinned_are_all_its_points(page):
    with tf.viz.live("loss") as live:
        live(0.0)
        until(page, lambda says: says.get("lines"))
        for i in range(1, MOST + 10):
            live(float(i))
    ((xs, ys),), _ = until(page, lambda says: says["done"])
    assert xs == ys == live.picture.living_data["lines"][0][1]


def test_a_page_that_asks_gets_all(page):
    with tf.viz.live("loss") as live:
        live(1.0)
        until(page, lambda says: says.get("lines"))
        front_end._answer(picture=live._touch["picture"], asks={"do": "all"})
        assert until(page, lambda says: "svg" in says)[0] == [([0], [1.0])]


def test_the_button_ends_a_loop(page):
    with tf.viz.live("loss") as live:
        front_end._answer(picture=live._touch["picture"], asks={"do": "stop"})
        until(page, lambda says: "does not ask live.should_stop()" in says.get("status", ""))
        while not live.should_stop():
            pass
    assert "stopped" in live.picture.sentence


def test_a_block_that_fails_still_has_its_picture(page):
    live = tf.viz.live("loss")
    with pytest.raises(ZeroDivisionError), live:
        live(1 / 1)
        live(1 / 0)
    assert until(page, lambda says: says["done"])[0] == [([0], [1.0])]


# ---- who reports


def test_clients_of_a_run_report_and_are_stopped(page):
    live = tf.viz.live("loss", steps=4)

    def work(client):
        client.report(client.index, staleness=1)
        if client.index == 1:
            live.stop()
        while not client.should_stop():
            tf.timestamp  # noqa: B018
        return client.index

    with tf.Cluster(worker=2) as cluster:
        assert cluster.run(work, watch=live) == [0, 1]
        assert cluster.run(lambda client: client.report(1.0) or client.should_stop()) == [False, False]
    assert sorted(live._course.lines) == ["/job:worker/task:0", "/job:worker/task:1"]
    assert "2 of 4 updates" in live.picture.sentence and "staleness 1.0" in live.picture.sentence


def test_reports_take_no_virtual_time(page):
    def work(client):
        client.report(1.0, step=client.cluster.now())
        return client.cluster.now()

    with tf.Cluster(worker=2, clock="virtual") as cluster:
        assert cluster.run(work, watch=tf.viz.live("loss", over="virtual time (s)")) == [0.0, 0.0]


def test_a_hook_without_a_worker_reports_for_the_task_of_its_tensor(page):
    with tf.Graph().as_default(), tf.Cluster(worker=3) as cluster, tf.viz.live("loss") as live:
        with tf.device("/job:worker/task:2"):
            there = tf.constant(2.0)
        hooks = [live.hook(there), live.hook(tf.constant(1.0))]
        with tf.train.MonitoredSession(tf.train.ChiefSessionCreator(master=cluster.target), hooks=hooks) as session:
            session.run(there)
    assert [*live._course.lines] == ["/job:worker/task:2", "/job:worker/task:0"]


@pytest.mark.parametrize(("optimizers", "words"), [(0, ""), (1, ", staleness 0.0, at most 0"), (2, "")])
def test_a_hook_finds_the_staleness_of_the_only_optimizer_that_knows(page, optimizers, words):
    loss = tf.Variable(2.0) * 1.0
    step = tf.train.get_or_create_global_step()
    plain = tf.train.GradientDescentOptimizer(0.1)
    train = [
        tf.train.StalenessOptimizer(plain, name=f"staleness_{i}").minimize(loss, global_step=step)
        for i in range(optimizers)
    ]
    with (
        tf.viz.live("loss") as live,
        tf.train.MonitoredSession(hooks=[live.hook(loss), live.hook(loss, worker=1)]) as session,
    ):
        for _ in range(3):
            session.run(train or loss)
    assert ("staleness" in live.picture.text) == bool(words) and words in live.picture.text


def test_a_hook_reports_each_run_and_ends_the_training(page):
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        loss = tf.cast(step, tf.float32) * 2
        train = tf.assign_add(step, 1)
        with tf.viz.live("loss") as live:
            hook = live.hook(loss, worker=3, step=step, staleness=tf.constant(4))
            runs = 0
            with tf.train.MonitoredSession(hooks=[hook]) as session:
                while not session.should_stop():
                    session.run(train)
                    runs += 1
                    if runs == 3:
                        live.stop()
                        session.run(train)
                        break
                assert session.should_stop()
    (line,) = live._course.lines.values()
    assert line.count == 4 and [*live._course.lines] == ["/job:worker/task:3"]
    assert "staleness 4.0" in live.picture.sentence


# ---- without a page


def test_a_terminal_has_lines_of_text(capsys):
    with tf.viz.live("loss", steps=2) as live:
        live(1.0)
        live(0.5)
    live._ticker.join(60)  # a busy machine may need longer than a block waits
    assert re.search(r"Loss: 2 of 2 updates in .*updates/s", capsys.readouterr().err)


# ---- any picture


def test_a_picture_is_drawn_again_and_told_only_if_it_changed(page):
    level = [0]

    def draw():
        return tf.viz.Picture(tf.viz.drawing.svg.tag("text", level[0]), (9, 9), "", f"level {level[0]}.", [], "")

    with tf.viz.live(draw) as live:
        assert ">0</text>" in page.get(timeout=SOON)["svg"]
        level[0] = 1
        until_new = iter(lambda: page.get(timeout=SOON), None)
        assert next(says for says in until_new if says)["says"] == "level 1."
    assert live.picture.living_data["view"] == "redrawn" and live.picture.living_data["done"]
    assert all(says == {} for says in iter(lambda: page.get_nowait() if not page.empty() else None, None))


def test_a_queue_is_seen_while_it_fills(page):
    with tf.Graph().as_default(), tf.Session() as session:
        filled = tf.FIFOQueue(3, tf.float32, shared_name="q")
        put = filled.enqueue(1.0)
        session.run(put)
        with tf.viz.live(lambda: tf.viz.queues_now(session)):
            assert "1 of 3" in page.get(timeout=SOON)["svg"]
            session.run(put)
            assert "2 of 3" in next(says for says in iter(lambda: page.get(timeout=SOON), None) if says)["svg"]


# ---- mistakes


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: tf.viz.live(3), "needs the name of a value"),
        (lambda: tf.viz.live(""), "needs the name of a value"),
        (lambda: tf.viz.live("loss", steps=0), "1 or more"),
        (lambda: tf.viz.live("loss", steps=2.5), "1 or more"),
        (lambda: tf.viz.live("loss")(1.0), "within its block"),
    ],
)
def test_mistakes_are_explained(make, words):
    with pytest.raises((TypeError, ValueError, RuntimeError), match=words):
        make()


def test_what_is_reported_is_a_number(page):
    with tf.viz.live("loss") as live:
        live(np.float32(1))
        with pytest.raises(TypeError, match=r"loss is array\(\[1., 2.\]\)"):
            live(np.array([1.0, 2.0]))
        with pytest.raises(ValueError, match="step must be a finite number, not nan"):
            live(1.0, step=math.nan)
        with pytest.raises(TypeError, match="integer"):
            live(1.0, worker=0.5)
    with pytest.raises(RuntimeError, match="for one block"), live:  # it has ended
        raise AssertionError
    with pytest.raises(RuntimeError, match="within its block"):
        live(1.0)
    assert live._course.count == 1


def test_a_block_within_a_block_is_the_same_picture(page):
    with tf.viz.live("loss") as live:
        with live:
            live(1.0)
        live(0.5)
    assert until(page, lambda says: says["done"])[0] == [([0, 1], [1.0, 0.5])]


def test_a_picture_without_anything_to_draw_says_why_and_keeps_the_last(page):
    held = [ValueError("No queue exists yet.")]

    def draw():
        if held:
            raise held[0]
        return tf.viz.Picture(tf.viz.drawing.svg.tag("text", "level 1"), (9, 9), "", "level 1.", [], "")

    with tf.viz.live(draw) as live:
        assert "No queue exists yet." in page.get(timeout=SOON)["svg"]
        del held[:]
        while "level 1" not in page.get(timeout=SOON).get("svg", ""):
            pass
        held.append(ValueError("gone"))
    assert live.picture.sentence == "level 1."


def test_a_picture_that_is_followed_rests_until_it_is_seen(page, monkeypatch):
    level = [0]
    live = tf.viz.live(lambda: tf.viz.Picture(tf.viz.drawing.svg.tag("text", level[0]), (9, 9), "", "l", [], ""))
    monkeypatch.setattr(sys.modules["dtflab.viz.live"], "PATIENCE", -1.0)
    live.follow()
    assert ">0</text>" in page.get(timeout=SOON)["svg"]
    live._ticker.join(SOON)  # at once, with this patience
    level[0] = 1
    front_end._answer(picture=live._touch["picture"], asks={"do": "seen"})
    assert ">1</text>" in page.get(timeout=SOON)["svg"]
    live._ticker.join(SOON)
    assert not live.picture.living_data["done"]
