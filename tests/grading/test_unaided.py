"""An answer that may open no session can't let a thread open it; what ran before it may run as many as it likes."""

from __future__ import annotations

import threading

import pytest

import dtflab as tf
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
