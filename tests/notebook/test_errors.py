"""Errors in a notebook: few lines, and those are the user's."""

from __future__ import annotations

import re

import pytest

from dtflab.base import errors
from tests.notebook.cells import cell


def test_an_error_is_short(model):
    text = cell(model, "def ask():\n    return sess.run(y)\nask()")
    assert text.startswith("InvalidArgumentError: You must feed a value for placeholder tensor 'x'")
    assert len(text.splitlines()) < 12 and "session.py" not in text and "{{node" not in text
    assert re.search(r"op +x\n", text)
    assert re.search(r"device +/job:worker/replica:0/task:1/device:CPU:0\n", text)
    assert re.search(r"made in +Cell In\[.*\], line 4: +x = tf.placeholder", text)
    assert re.search(r"run in +Cell In\[.*\], line 3: +ask\(\)\n +Cell In\[.*\], line 2, in ask: +return sess", text)


def test_every_frame_on_demand(model):
    cell(model, "sess.run(y)")
    for ask in ("%tb plain", "%tb verbose"):
        text = cell(model, ask)
        assert "session.py" in text and "You must feed" in text
    assert "session.py" not in cell(model, "%tb")


INTERRUPTED = """def hang(value):
    raise KeyboardInterrupt
sess = tf.Session()
z = tf.py_func(hang, [tf.constant(1.0)], tf.float32)
def ask():
    return {what}
ask()
"""


@pytest.mark.parametrize("what", ["sess.run(z)", "sess.step_through(z).finish()"])
def test_an_interrupt_shows_the_users_lines(shell, what):
    text = cell(shell, INTERRUPTED.replace("{what}", what))
    assert text.startswith("KeyboardInterrupt: The step was interrupted.\n\n  run in ") and "library" not in text
    ours = re.search(r"run in +Cell In.*, line 7: +ask\(\)\n +Cell In.*, line 6, in ask: +return sess\.", text)
    assert ours and "line 2, in hang:  raise KeyboardInterrupt" in text
    assert len(text.splitlines()) == 7 and ".py" not in text, text
    everything = cell(shell, "%tb plain")
    assert "dtflab" in everything and everything.rstrip().endswith("KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        shell.user_ns["sess"].run(shell.user_ns["z"])


def test_the_client_that_failed_is_named(model):
    text = cell(model, "cluster.run(lambda client: tf.Session(client.target).run(tf.placeholder(tf.float32)))")
    assert re.search(r"\(raised in the client of /job:worker/task:[01]\)", text)


def test_many_calls_are_cut_in_the_middle(model):
    text = cell(model, "def dig(n):\n    return dig(n - 1) if n else sess.run(y)\ndig(50)")
    assert "more" in text and len(text.splitlines()) < 20 and "dig(50)" in text


def test_no_op_no_device():
    error = errors.UnavailableError(None, None, "Task x does not answer.")
    assert error._render_traceback_() == [
        "\x1b[31mUnavailableError\x1b[0m: Task x does not answer.\n\nAll frames: %tb plain"
    ]
