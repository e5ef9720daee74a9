"""Every kind of output as axe-core judges it, in light and dark, in JupyterLab and in an exported page."""

from __future__ import annotations

import pytest

from tests.browser.test_browser import HERE, look, pytestmark, write  # noqa: F401 (the fixture)
from tests.browser.test_live import PLACED, REPLAYED, TASK, TOWER, TRACED
from tests.browser.test_live_records import CALLED, STUCK, USED
from tests.browser.test_pages import FRESH, STEPPED, exported, visit
from tests.house import ROOT

PICTURES = [
    f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.viz.gallery import drawings
%load_ext dtflab
with drawings("virtual") as found:
    for name, draw in found.items():
        if not name.startswith(("placement_", "timeline_by", "cluster_timeline_by_")):  # one of each kind is enough
            display(draw())""",
    "cluster = %dtf_cluster --ps 1 --worker 2",
    "%dtf_cluster status",
    """
import dtflab as tf
tf.reset_default_graph()
with tf.device("/job:ps/task:0"):
    w = tf.get_variable("w", [3, 2], initializer=tf.ones_initializer())
loss = tf.reduce_mean(tf.square(w), name="loss")
train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
sess = tf.Session(cluster.target)
sess.run(tf.global_variables_initializer())""",
    "%dtf_step loss",
    "%dtf_explain train",
    "%dtf_vars",
    "%dtf_smi",
]


BUSY_PANEL = [
    """
import dtflab as tf
%load_ext dtflab
cluster = %dtf_cluster --ps 1 --worker 11""",
    """
cluster.kill("worker", 10)
with tf.device("/job:ps/task:0"):
    take = tf.FIFOQueue(3, tf.float32, shared_name="q").dequeue(name="take")
without_it = tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:0"])
try:
    tf.Session(cluster.target, config=without_it).run(take)
except KeyboardInterrupt:
    print("interrupted")""",
]
SLIDERS = """
from dtflab.notebook import Slider, explore
def load(n):
    return tf.viz.loads("Bytes", {"now": {"/job:ps/task:0": n}})
explore(load, n=Slider([1, 2], 1, "Look."))"""

with_axe = pytest.mark.skipif(
    not (HERE / "node_modules" / "axe-core").exists(), reason="missing: axe-core (npm install --prefix tests/browser)"
)


@with_axe
def test_outputs_have_no_serious_findings(look, tmp_path):  # noqa: F811
    report = look(write(tmp_path / "accessible.ipynb", *PICTURES), "run", {"audit": True})
    assert report["noise"] == []
    for theme in ("light", "dark"):
        seen = report["themes"][theme]
        assert seen["stderr"] == seen["notRun"] == seen["axe"] == []
        assert seen["svgs"] > 20 and "Stop all" in seen["buttons"]


@with_axe
def test_a_panel_at_work_has_no_serious_findings(look, tmp_path):  # noqa: F811
    """Several tasks in a line that is open, one of them chosen, a killed task, an op that waits."""
    report = look(
        write(tmp_path / "busy.ipynb", *BUSY_PANEL), "start",
        {"on": TASK, "do": "click", "see": "Ops wait at ps:0, worker:0."},
        {"on": TASK, "nth": 2, "do": "click", "see": "worker:1–9"},
        {"on": TASK, "nth": 2, "do": "press", "key": "Enter", "see": "worker:9"},
        {"on": TASK, "nth": 4, "do": "click", "see": "Pause worker:2"},
        {"width": 1920, "shot": "1920"},
        {"width": 1280, "shot": "1280"},
        {"on": 'button:text("Interrupt")', "do": "click", "see": "interrupted"},
        {"audit": True},
    )  # fmt: skip
    assert report["noise"] == []
    for seen in report["themes"].values():
        assert seen["axe"] == [] and {"Interrupt", "Stop all", "Kill worker:2"} <= {*seen["buttons"]}
        assert "worker:10: killed." in "".join(seen["shown"])


@with_axe
def test_a_page_has_no_serious_findings(tmp_path):
    cells = [*USED, "tf.reset_default_graph()", *TRACED, FRESH, *PLACED, FRESH, *STEPPED, *REPLAYED, *CALLED, *STUCK]
    page = exported(write(tmp_path / "audited.ipynb", *cells, SLIDERS), tmp_path)
    report = visit(page, {"audit": True}, {"on": TOWER, "do": "click", "see": "tower0 is open."})
    views = ["memory", "allocations", "timeline", "placement", "steps", "replay", "wire", *["still"] * 2, "sliders"]
    assert report["axe"] == [] and report["live"] == views


@with_axe
def test_the_audit_sees_a_button_without_a_name(look, tmp_path):  # noqa: F811
    bad = "display({'text/html': '<button></button>'}, raw=True)"
    report = look(write(tmp_path / "bad.ipynb", bad), "run", {"audit": True})
    assert [found.partition(":")[0] for found in report["themes"]["dark"]["axe"]] == ["button-name"]
