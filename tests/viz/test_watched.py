"""All pictures of what a watch saw, on the narrow page of a projector and of one moment."""

from __future__ import annotations

import pytest

import dtflab as tf
from tests.viz.watched import W0, call, event, fits, held, line, seen_of, variable


def test_one_moment_is_enough_for_a_picture():
    assert fits(tf.viz.queues([event(1.0, "put", 1, 1)]))
    assert fits(tf.viz.rates(seen_of(queues=[event(1.0, "put", 1, 1)])))
    assert fits(tf.viz.wire([call(1.0, "RunStep", "client", W0)]))


@pytest.mark.parametrize("draw", ["wire", "queues", "clients", "rates"])
def test_what_is_no_watch_is_refused_with_the_way_to_one(draw):
    with (
        pytest.raises(TypeError, match=r"What a watch saw is needed, not Session: .*`with tf.watch"),
        tf.Session() as sess,
    ):
        getattr(tf.viz, draw)(sess)


@pytest.mark.parametrize("draw", ["wire", "queues", "clients", "rates", "variables", "queues_now"])
def test_all_fit_the_narrow_page_of_a_projector(draw, monkeypatch):
    seen = line(1)
    given = {"variables": [variable(), variable(W0, "x" * 80)], "queues_now": [held("q" * 80)]}
    tf.viz.style("projector")
    try:
        assert fits(getattr(tf.viz, draw)(given.get(draw, seen)))
    finally:
        tf.viz.style("default")
