"""Memory, the way to an out-of-memory error, calls and deadlocks in a real JupyterLab."""

from __future__ import annotations

from tests.browser.test_browser import complaints, look, pytestmark, write  # noqa: F401 (the fixture)
from tests.browser.test_live import CROSSWISE, TRACED

USED = [
    """
import os
os.environ.pop("CUDA_VISIBLE_DEVICES", None)  # tests have none
import dtflab as tf
tf.simulate_gpus(1, memory="120MiB")
with tf.device("/gpu:0"):
    w = tf.Variable(tf.ones([1024, 1024]), name="w")
    a = tf.matmul(tf.ones([1024, 1024]), w, name="a")
    c = tf.concat([a, tf.exp(a, name="b"), a], 0, name="c")
    big = tf.reduce_sum(tf.concat([c] * 6, 0, name="big"))
    total = tf.reduce_sum(c, name="total")
sess = tf.Session()
sess.run(w.initializer)
step = sess.trace(total)""",
    "tf.viz.memory(step, graph=sess.graph)",
    """
try:
    sess.run(big)
except tf.errors.ResourceExhaustedError as error:
    full = error
tf.viz.memory(full)""",
]
PLOT, OOM = '.dtf-picture[data-live="memory"]', '.dtf-picture[data-live="allocations"]'


def test_memory_answers_and_its_end_is_replayed(look, tmp_path):  # noqa: F811
    freed_at_its_peak = TRACED[0], "tf.viz.memory(step, graph=sess.graph)"
    report = look(
        write(tmp_path / "memory.ipynb", *USED, "tf.reset_default_graph()", *freed_at_its_peak), "run",
        {"on": f"{PLOT} .entry", "do": "hover", "see": "c = ConcatV2", "shot": "lit"},
        {"on": f"{PLOT} .dtf-said.above:text('Drag or')", "do": "hover", "see": "Drag or ← →: move in time"},
        {"on": f"{PLOT} svg", "do": "drag", "at": [0.2, 0.6], "to": [0.6, 0.6], "see": "GPU:0 holds"},
        {"on": PLOT, "do": "focus"},
        {"on": PLOT, "do": "press", "key": "p", "see": "variable w 4.00 MiB", "shot": "peak"},
        {"on": PLOT, "do": "press", "key": "ArrowDown", "see": "= ConcatV2", "shot": "key"},
        {"on": OOM, "do": "focus"},
        {"on": OOM, "do": "press", "key": "ArrowLeft", "see": "gives back", "shot": "before"},
        {"on": OOM, "do": "press", "key": "Home", "see": "Before the last", "shot": "home"},
        {"on": f"{OOM} .head .soft:not(.gone)", "do": "texts"},
        {"on": OOM, "do": "press", "key": "p", "see": "The allocation fails.", "shot": "full"},
        {"on": PLOT, "nth": 1, "do": "focus"},
        {"on": PLOT, "nth": 1, "do": "press", "key": "p", "see": "the peak of ps:0: ps:0 holds 3.66 MiB (",
         "shot": "of-ps"},
        {"on": PLOT, "nth": 1, "do": "press", "key": "p", "see": "the peak of worker:0 GPU:0: "},
    )  # fmt: skip
    assert complaints(report) == []
    assert report["measured"] == [[]], "what was free when it failed is not said of a moment before"


CALLED = [
    """
import dtflab as tf
def work(client):
    with tf.device("/job:ps/task:0"):
        w = tf.Variable(tf.ones([100]), name="w")
    y = tf.reduce_sum(w, name="y")
    with tf.Session(client.target) as sess:
        sess.run(w.initializer)
        sess.run(y)
with tf.Cluster(ps=1, worker=1, clock="virtual") as cluster, tf.watch() as seen:
    cluster.run(work)""",
    "tf.viz.wire(seen, step=-1)",
]
WIRE = '.dtf-picture[data-live="wire"]'


def test_messages_travel_along_the_chart(look, tmp_path):  # noqa: F811
    report = look(
        write(tmp_path / "wire.ipynb", *CALLED), "run",
        {"on": f"{WIRE} .message", "do": "hover", "see": "A call", "shot": "card"},
        {"on": WIRE, "do": "focus"},
        {"on": WIRE, "do": "press", "key": "Home", "see": "Nothing has been called yet."},
        {"on": WIRE, "do": "press", "key": "ArrowRight", "see": "asks worker:0: RunStep y", "shot": "first"},
        {"on": f"{WIRE} .dtf-slider", "do": "focus"},
        {"on": f"{WIRE} .dtf-slider", "do": "press", "key": "ArrowRight", "see": "Arrow 2 of ", "shot": "slider"},
        {"on": WIRE, "do": "focus"},
        {"on": WIRE, "do": "press", "key": "p"},
        {"on": WIRE, "do": "press", "key": "End", "see": "answers client", "shot": "end"},
    )  # fmt: skip
    assert complaints(report) == []


STUCK = [
    "import dtflab as tf\n%load_ext dtflab",
    CROSSWISE,
    """
with tf.Cluster(ps=1, worker=2, clock="virtual") as virtual:
    try:
        virtual.run(crosswise)
    except tf.errors.InternalError as error:
        deadlock = error""",
    "%dtf_queues deadlock",
]


def test_a_deadlock_is_a_circle_of_arrows(look, tmp_path):  # noqa: F811
    report = look(
        write(tmp_path / "deadlock.ipynb", *STUCK), "run",
        {"on": ".dtf-drawing svg .box", "do": "hover", "see": "in a circle", "shot": "circle"},
    )  # fmt: skip
    assert complaints(report) == []
