"""An answer that may open no session can't let a thread open it; what ran before it may run as many as it likes."""

from __future__ import annotations

import sys
import threading

import pytest

import dtflab as tf
from dtflab.grading.catalogue import find
from dtflab.grading.checks import placement_pins, shared_lookup
from dtflab.grading.judge import judge
from dtflab.grading.questions import Wrong
from dtflab.grading.unaided import unaided


def runs():
    with tf.Graph().as_default():
        one = tf.constant(1)
        with tf.Session() as sess:
            return sess.run(one)


def in_a_thread():
    thread = threading.Thread(target=runs)
    thread.start()
    thread.join()


def under_the_name_of_another():
    thread = threading.Thread(target=runs, name=threading.main_thread().name)
    thread.start()
    thread.join()


@pytest.mark.parametrize("answer", [runs, in_a_thread, under_the_name_of_another])
def test_a_session_is_refused(answer):
    with pytest.raises(Wrong, match=f"{answer.__name__} opened a session"):
        unaided(answer)


def by_the_rule_of_the_check(pin, gpu_kernel, devices, master):
    case = placement_pins.Case(pin, gpu_kernel, devices, master)
    for device in [*devices, None]:
        seen = placement_pins.Seen([placement_pins.Given(case, device, None)])
        if placement_pins._best_of(seen, placement_pins.Case.may_be):
            return device


def by_the_check_s_map_of_rows(shards, ids, block_rows):
    task, number = shared_lookup.Case(len(shards), block_rows, None, ()).home(ids)
    which = tf.dynamic_partition(tf.range(tf.size(ids)), task, len(shards))
    rows = tf.dynamic_partition(number, task, len(shards))
    found = []
    for shard, mine in zip(shards, rows):
        with tf.colocate_with(shard):
            found.append(tf.gather(shard, mine))
    return tf.dynamic_stitch(which, found)


@pytest.mark.parametrize(
    "id, answer", [("placement/q2", by_the_rule_of_the_check), ("shared/q2", by_the_check_s_map_of_rows)]
)
def test_a_rule_that_stands_in_a_check_is_no_answer(id, answer):
    question = find(id)
    report = judge(question, {question.answer: answer}, "0", "")
    assert report.points == 0
    assert all("of dtflab.grading.checks. Here you write the rule" in result.message for result in report.results)
    assert sys.getprofile() is None


def test_the_session_of_a_thread_that_ran_before_is_not_the_answers():
    go, gone = threading.Event(), threading.Event()

    def meanwhile():
        go.wait()
        runs()
        gone.set()

    def answer():
        go.set()
        assert gone.wait(60)
        return 3

    thread = threading.Thread(target=meanwhile)
    thread.start()
    assert unaided(answer) == 3
    thread.join()
