"""`%dtf_explain` and `%dtf_step`: a step explained, and a step taken in steps."""

from __future__ import annotations

import pytest
from IPython.utils.capture import capture_output

from dtflab.notebook import whole_steps
from tests.notebook.cells import cell, live, magic


def test_explain_tells_of_the_session_that_runs_the_graph(model):
    story = magic(model, "%dtf_explain y --feed [x]", "story")
    assert {(c.tensor, c.nbytes) for c in story.crossings} == {("v/read", 8), ("_arg_x_0_0", 8), ("y", 8)}
    assert "pinned to /job:worker/task:1" in magic(model, "%dtf_explain y --session sess", "story").everything
    data, _ = model.display_formatter.format(story)
    assert "Ready order" in data["text/html"] and "<script" not in data["text/html"]


def test_explain_without_a_session(shell):
    shell.run_cell("a = tf.constant(1.0)\nb = tf.negative(a, name='b')").raise_error()
    assert "A step for b: 2 of 2 ops on 1 device" in repr(magic(shell, "%dtf_explain b", "story"))
    assert "Name what the step would fetch" in cell(shell, "%dtf_explain")


def test_step_begins_goes_on_and_ends(model):
    begun = magic(model, "%dtf_step y --feed {x: [3.0, 4.0]}", "steps")
    assert "_arg_x_0_0" in begun.ready and begun.records == []
    assert magic(model, "%dtf_step", "steps") is begun and [r.number for r in begun.records] == [1]
    data, _ = model.display_formatter.format(begun)
    assert "Counters that fell" in data["text/html"]
    data, _ = model.display_formatter.format(begun.records[0])
    assert "What ran" in data["text/html"]
    assert magic(model, "%dtf_step --all", "value").tolist() == [3.0, 8.0]
    assert magic(model, "%dtf_step --all", "again").tolist() == [3.0, 8.0], "a step that is over keeps its values"
    assert "No step is under way" in cell(model, "%dtf_step")


def test_a_new_step_gives_the_old_one_up(model):
    old = magic(model, "%dtf_step y --feed {x: [3.0, 4.0]}", "old")
    new = magic(model, "%dtf_step y --feed {x: [1.0, 1.0]}", "new")
    assert old.over and not new.over
    magic(model, "%unload_ext dtflab")
    assert new.over


def test_step_says_what_it_needs(model):
    assert "No step is under way. Begin one: %dtf_step loss" in cell(model, "%dtf_step")
    assert "A step is fed when it begins" in cell(model, "%dtf_step --feed {x: [3.0, 4.0]}")
    assert "--all stands alone, without 3" in cell(model, "%dtf_step --all 3")
    assert "'y x=3' is not a Python expression" in cell(model, "%dtf_step y x=3")
    assert "In 'nobody': name 'nobody' is not defined." in cell(model, "%dtf_step nobody")
    assert "Unknown option --every. There are --feed, --session, --all, --help." in cell(model, "%dtf_step --every")


@pytest.fixture
def page(shell, monkeypatch):
    """The shell of a notebook that is run for a page."""
    monkeypatch.setenv("DTFLAB_EVERYWHERE", "1")
    monkeypatch.setattr(whole_steps, "_shown", [])
    magic(shell, "%reload_ext dtflab")
    return shell


def outputs(shell, text):
    with capture_output() as shown:
        shell.run_cell(text).raise_error()
    return [output.data for output in shown.outputs]


def test_a_step_that_is_shown_for_a_page_goes_on_after_the_last_cell(page):
    page.run_cell("q = tf.FIFOQueue(1, tf.float32)\nu = tf.negative(3.0, name='u')\nlocal = tf.Session()").raise_error()
    (first,) = outputs(page, "local.step_through(u)")
    (stuck,) = outputs(page, "local.step_through(q.dequeue(name='take'))")
    assert [(live(data)["at"], live(data)["over"]) for data in (first, stuck)] == [(0, False)] * 2
    replaced = outputs(page, "from dtflab.notebook import whole_steps\nwhole_steps.end()")
    ended, waits = (live(data) for data in replaced)
    assert (ended["at"], ended["over"], waits["at"], waits["over"]) == (0, True, 0, False)
    assert "u (float32 = -3.)" in " ".join(frame["says"] for frame in ended["frames"])
    assert "Asked, and waiting: take" in waits["frames"][-1]["says"]
    assert [data["text/plain"] for data in replaced] == [data["text/plain"] for data in (first, stuck)], "as shown"
    whole_steps.end()  # what has not gone on stays as it is


def test_a_step_that_is_shown_in_a_notebook_stays_where_it_is(model):
    data, _ = model.display_formatter.format(magic(model, "%dtf_step y --feed {x: [3.0, 4.0]}", "steps"))
    assert live(data)["at"] == 0 and not whole_steps._shown
