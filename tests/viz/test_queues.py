"""Queues over time and as they are now: levels, who waits, what is left out."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest

import dtflab as tf
from dtflab.machine.clock import current
from dtflab.viz.data import queue_history
from dtflab.viz.drawing.palette import GREY
from tests.viz.texts import texts as placed
from tests.viz.watched import SVG, event, fits, held, seen_of, texts


def a_wait(queue="q", start=0.0):
    return [
        event(start, "put", 4, 4, "put", "A", 1, queue=queue),
        event(start + 1.0, "wait", 0, 4, "put", "A", 2, False, "put", queue=queue),
        event(start + 3.0, "take", 1, 3, "take", "B", 3, queue=queue),
        event(start + 3.0, "put", 1, 4, "put", "A", 2, queue=queue),
    ]


def test_the_course_of_a_queue():
    (history,) = queue_history.queue_histories(a_wait())
    assert (history.put, history.taken, history.most, history.capacity) == (5, 1, 4, 4)
    assert [(wait.seconds, wait.wants, wait.op, wait.open) for wait in history.waits] == [(2.0, "put", "put", False)]
    assert history.waited("put") == 2.0 and history.waited("take") == 0.0
    assert history.mean() == 4.0 and history.share_at(4) == 1.0


def test_who_still_waits_does_so_until_the_watch_ended():
    seen = seen_of(queues=[event(1.0, "wait", 0, 0, "take", "B", 3, False, "take")])
    seen.began, seen.ended, seen._clock = 0.5, 9.0, current()
    (history,) = queue_history.queue_histories(seen)
    assert [(wait.seconds, wait.open) for wait in history.waits] == [(8.0, True)]
    assert "still waits" in texts(tf.viz.queues(seen)) and "take still waits to take" in tf.viz.queues(seen).sentence


def test_a_queue_is_drawn_with_its_capacity_and_who_waits():
    picture = tf.viz.queues([*a_wait(), event(5.0, "close", 0, 4, "q_Close", "A", 5)])
    words = texts(picture)
    assert {"capacity 4", "closed", "5 put, 1 taken", "put · A", "0 elements"} <= set(words)
    assert fits(picture)


def test_a_wait_that_ends_badly_says_how():
    events = [
        event(0.0, "wait", 0, 0, "take", "B", 3, False, "take"),
        event(1.0, "end", 0, 0, "take", "B", 3, error="CancelledError"),
    ]
    assert "CancelledError" in texts(tf.viz.queues(events))
    (label,) = re.findall("<text[^>]*>CancelledError<", tf.viz.queues(events).svg)
    assert "halo" not in label and f"fill:{GREY.ink}" in label, "its ground would cover the bar"


def test_no_limit_and_a_capacity_far_away():
    without = texts(tf.viz.queues([event(0.0, "put", 3, 3, cap=0), event(1.0, "put", 1, 4, cap=0)]))
    assert "4" in without and not any(word.startswith("capacity ") for word in without)
    assert "3 of 1,000" in texts(tf.viz.queues([event(0.0, "put", 3, 3, cap=1000), event(1.0, "take", 1, 2, cap=1000)]))


def test_a_queue_that_stays_empty_shows_no_level_that_it_never_had():
    wait = event(0.0, "wait", 0, 0, "take", "B", 3, False, "take", cap=100)
    words = texts(tf.viz.queues([wait, event(1.0, "close", 0, 0, cap=100)]))
    assert {"0 elements", "capacity 100"} <= set(words) and "1" not in words
    unlimited = texts(tf.viz.queues([wait._replace(capacity=0)]))
    assert "0 elements" in unlimited and "1" not in unlimited


def test_many_queues_events_and_waiters():
    many = [one for n in range(250) for one in a_wait(start=4.0 * n)]
    others = [one for n in range(9) for one in a_wait(f"queue_{n}", n)]
    crowd = [
        event(n / 10, "wait", 0, 4, f"put_{n}", f"client /job:worker/task:{n}", 1000 + n, False, "put")
        for n in range(60)
    ]
    picture = tf.viz.queues([*many, *others, *crowd])
    assert "(the 6 with most events are drawn)" in picture.sentence
    assert any("more waited" in word for word in texts(picture))
    assert "first 1,000 of 1,096" in picture.tables[2][0]
    assert fits(picture) and len(picture.svg) < 300_000


@pytest.mark.parametrize("short", [399, 599, 600, 601])
def test_of_very_many_waits_the_longest_and_the_open_one_are_drawn(short):
    """One op waits 3 s, then often for 1 ms, and waits still; what is left out are short ones, and they are counted."""
    events = []
    for n, seconds in enumerate([3.0, *[0.001] * short]):
        began = n if n == 0 else 3.0 + n * 0.01
        events += [event(began, "wait", 0, 0, "take", "B", n, False, "take"),
                   event(began + seconds, "take", 1, 0, "take", "B", n)]  # fmt: skip
    end = events[-1].at
    events += [event(end, "wait", 0, 0, "take", "B", -1, False, "take"), event(end + 2.0, "put", 1, 1, "put", "A", -2)]
    picture = tf.viz.queues(events)
    words, root = texts(picture), ET.fromstring(picture.svg.encode())
    assert words.count("still waits") == 1
    (lane,) = (g for g in root.iter(f"{SVG}g") if any("waited" in (t.text or "") for t in g.findall(f"{SVG}title")))
    bars = [(float(rect.get("x")), float(rect.get("width"))) for rect in lane.iter(f"{SVG}rect")]
    widths = sorted((width for _, width in bars), reverse=True)
    assert 200 < len(widths) <= 400 and widths[0] > 1.4 * widths[1] > 50 * widths[2]  # 3 s, 2 s (the open one), 1 ms
    assert all(b - (a + width) < 6 for (a, width), (b, _) in pairwise(bars))  # no time looks as if nobody waited
    assert f"{short + 2 - len(bars)} short waits are not drawn" in words
    assert fits(picture)


def test_nothing_at_queues_is_told():
    for draw in (tf.viz.queues, tf.viz.rates):
        with pytest.raises(ValueError, match="Nothing happened at a queue"):
            draw(seen_of())


# ---- queues now ----


def test_queues_as_they_are_now():
    waiting = (("put", "put", "client /job:worker/task:1"), ("other", "put", ""))
    picture = tf.viz.queues_now([held(waiting=waiting), held("empty", 0, 0, closed=True)])
    assert {"2 of 4", "put waits to put (client of worker:1)", "other waits to put", "0, no limit, closed"} <= set(
        texts(picture)
    )
    assert fits(picture)
    nothing = tf.viz.queues_now([])
    assert nothing.text == nothing.sentence == "No queue exists yet; it is created when its first op runs."
    assert "Nothing to draw yet" in texts(nothing) and fits(nothing)


def test_many_queues_now():
    waiting = tuple((f"op{n}", "take", "") for n in range(60))
    picture = tf.viz.queues_now([held("a_long_name_" * 9 + str(n), waiting=waiting) for n in range(50)])
    assert "the first 20 are drawn" in " ".join(texts(picture)) and "and 56 more" in texts(picture) and fits(picture)
    assert len(picture.tables[0][2]) == 50


def test_a_queues_highest_level_is_sought_a_few_times_whatever_happened(monkeypatch):
    """One search goes through all events; a search for each event would take minutes after a long watch."""
    sought = []
    most = queue_history.QueueHistory.most
    monkeypatch.setattr(
        queue_history.QueueHistory, "most", property(lambda history: sought.append(history) or most.fget(history))
    )
    tf.viz.queues(seen_of(queues=[event(float(n), "put", 1, n + 1, cap=500) for n in range(400)]))
    assert 0 < len(sought) < 10


def test_the_word_closed_stands_above_the_line_of_the_capacity():
    found = placed(tf.viz.queues([event(1.0, "put", 1, 4, cap=4), event(2.0, "close", 0, 4, cap=4)]).svg)[0]
    (closed,), (capacity,) = ([one for one in found if one.text == text] for text in ("closed", "capacity 4"))
    assert closed.bottom < (capacity.top + capacity.bottom) / 2 - 1  # the number is centred on its line
