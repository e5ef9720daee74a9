"""Cells and lines in IPython's shell: what they give, print and show."""

from __future__ import annotations

import json
import re

from IPython.utils.capture import capture_output

WIDGET = "application/vnd.jupyter.widget-view+json"


def magic(shell, line, name="_"):
    """The value of one line. Raises the line's error."""
    shell.run_cell(f"{name} = {line}" if name != "_" else line, silent=True).raise_error()
    return shell.user_ns.get(name)


def cell(shell, text):
    """The output of a cell, and its display of an error."""
    with capture_output(display=False) as shown:
        shell.run_cell(text)
    return re.sub(r"\x1b\[[0-9;]*m", "", shown.stdout + shown.stderr)


MODEL = """with tf.device("/job:ps/task:0"):
    v = tf.Variable([1.0, 2.0], name="v")
with tf.device("/job:worker/task:1"):
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.multiply(v, x, name="y")
sess = tf.Session(cluster.target)
sess.run(v.initializer)
"""


def states(cluster):
    return {state for _, _, state in cluster.rows()}


def panel_of(shell, line):
    """The display of a cluster: the forms of its table."""
    with capture_output() as shown:
        shell.run_cell(line).raise_error()
    (table,) = [output.data for output in shown.outputs if not output.update]
    assert table.keys() == {"text/plain", "text/html"}
    return table


def live(table):
    """The data of the live panel in a cluster's display; None if it is only a table."""
    found = re.search(r'<script type="application/json" class="dtf-data">(.*)</script>', table["text/html"])
    return found and json.loads(found[1])
