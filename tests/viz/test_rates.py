"""The rates of a pipeline's stages, and which is its bottleneck."""

from __future__ import annotations

import pytest

import dtflab as tf
from dtflab.viz.data import pipeline
from tests.viz.watched import event, fits, line, seen_of, texts


@pytest.mark.parametrize("slow", [0, 1, 2])
def test_the_bottleneck_is_the_stage_that_works_most(slow):
    seen = line(slow)
    found = pipeline.pipeline(seen)
    name = ("read", "decode", "train")[slow]
    assert [stage.name for stage in found.stages] == ["read", "decode", "train"]
    assert found.bottleneck().name == name
    assert all(stage.steps == 12 and stage.workers == 1 for stage in found.stages)
    before, after = found.stages[:slow], found.stages[slow + 1 :]
    assert all(stage.waited_to_put > 5 * stage.waited_to_take for stage in before)
    assert all(stage.waited_to_take > 5 * stage.waited_to_put for stage in after)
    picture = tf.viz.rates(seen)
    assert f"The bottleneck is {name}: it was at work" in picture.sentence and "bottleneck" in texts(picture)
    assert picture.sentence.count("elements/s: 0.1") >= 3 and fits(picture)


def test_who_is_done_early_is_no_bottleneck():
    events = [event(0.1 * n, "put", 1, n + 1, "names", "A", n, queue="names", cap=10) for n in range(4)]
    for n in range(4):
        took = event(10.0 * n, "take", 1, 3 - n, "take", "B", 100 + n, queue="names", cap=10)
        events += [took, event(10.0 * n + 9.0, "put", 1, 1, "decode", "B", 100 + n)]
        events += [event(10.0 * n, "wait", 0, 0, "train", "C", 200 + n, False, "take"),
                   event(10.0 * n + 9.0, "take", 1, 0, "train", "C", 200 + n)]  # fmt: skip
    assert pipeline.pipeline(seen_of(queues=events)).bottleneck().name == "decode"


def test_steps_beside_each_other_are_workers_of_one_stage():
    events = []
    for n in range(3):
        events += [
            event(0.0, "wait", 0, 0, "take", f"T{n}", n, False, "take"),
            event(4.0 + n, "take", 1, 0, "take", f"T{n}", n),
        ]
    (stage,) = pipeline.pipeline(seen_of(queues=events)).stages
    assert stage.workers == 3 and stage.waited_to_take == 4 + 5 + 6
    assert "take × 3" in texts(tf.viz.rates(seen_of(queues=events)))


def test_no_bottleneck_where_nobody_waits_or_nobody_else_is():
    assert "No bottleneck: one stage alone" in str(tf.viz.rates(seen_of(queues=[event(0.0, "put", 1, 1)])))
    both = [event(0.0, "put", 1, 1, "a", "A", 1), event(1.0, "take", 1, 0, "b", "B", 2)]
    assert "No bottleneck: nobody waited" in str(tf.viz.rates(seen_of(queues=both)))


def test_a_circle_of_queues_and_many_stages():
    events = []
    for n in range(40):
        events += [
            event(n, "take", 1, 0, f"take{n}", "A", n, queue=f"q{n}"),
            event(n + 0.5, "put", 1, 1, f"stage{n}", "A", n, queue=f"q{(n + 1) % 40}"),
        ]
    picture = tf.viz.rates(seen_of(queues=events))
    assert "the first 24 of 80 are drawn" in picture.sentence and len(picture.tables[0][2]) == 40 and fits(picture)


def _waits_then_takes(n, level):
    """`train` waits 9 of 10 seconds for what `decode` puts; `level` is how many names are left before that."""
    return [
        event(10.0 * n, "take", 1, level, "take", "B", 100 + n, queue="names", cap=10),
        event(10.0 * n + 9.0, "put", 1, 1, "decode", "B", 100 + n),
        event(10.0 * n, "wait", 0, 0, "train", "C", 200 + n, False, "take"),
        event(10.0 * n + 9.0, "take", 1, 0, "train", "C", 200 + n),
    ]


@pytest.mark.parametrize(
    ("level", "capacity", "said"),
    [
        (9, 10, "Before it, a queue fills up: names holds 9 of 10 on average."),
        (0, 10, "Before it, no queue fills up: names holds 0 of 10 on average."),
        (3, 0, "Before it, names holds 3 on average."),
    ],
)
def test_the_verdict_says_what_the_levels_show(level, capacity, said):
    events = [one._replace(capacity=capacity) if one.queue == "names" else one
              for n in range(4) for one in _waits_then_takes(n, level)]  # fmt: skip
    picture = tf.viz.rates(seen_of(queues=events))
    assert said in str(picture) and said in picture.sentence
    assert "Behind it, train waits 92% of the time for more." in str(picture)  # 36 of 39 s


def test_of_the_first_and_the_last_stage_one_side_is_told():
    first, last = str(tf.viz.rates(line(0))), str(tf.viz.rates(line(2)))
    assert "Before it" not in first and "Behind it, decode waits" in first
    assert "Before it, a queue fills up" in last and "Behind it" not in last


def test_a_queue_is_empty_while_nothing_is_in_it():
    """Not while its last element is: 1 s of 10 s at one element, 3 s at none, 6 s at two and more."""
    moments = ((0.0, "put", 2), (6.0, "take", 1), (7.0, "take", 0), (10.0, "put", 1))
    events = [event(at, what, 1, level, what, what, n) for n, (at, what, level) in enumerate(moments)]
    picture = tf.viz.rates(seen_of(queues=events))
    assert "1.3 of 4 on average, empty 30% of the time, full 0%" in texts(picture)
    assert picture.tables[1][2][0][-2:] == ["30%", "0%"]
