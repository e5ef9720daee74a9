"""Every kind of output as axe-core judges it, in light and dark, in JupyterLab and in an exported page."""

from __future__ import annotations

import pytest

from tests.browser.test_browser import HERE, look, pytestmark, write  # noqa: F401 (the fixture)
from tests.browser.test_live import PLACED, REPLAYED, TOWER, TRACED
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
        assert seen["svgs"] > 20 and "Stop" in " ".join(seen["buttons"])


@with_axe
def test_a_page_has_no_serious_findings(tmp_path):
    cells = [*USED, "tf.reset_default_graph()", *TRACED, FRESH, *PLACED, FRESH, *STEPPED, *REPLAYED, *CALLED, *STUCK]
    page = exported(write(tmp_path / "audited.ipynb", *cells, SLIDERS), tmp_path)
    report = visit(page, {"audit": True}, {"on": TOWER, "do": "click", "see": "tower0 is open."})
    views = ["memory", "allocations", "timeline", "placement", "steps", "replay", "wire", "sliders"]
    assert report["axe"] == [] and report["live"] == views


@with_axe
def test_the_audit_sees_a_button_without_a_name(look, tmp_path):  # noqa: F811
    bad = "display({'text/html': '<button></button>'}, raw=True)"
    report = look(write(tmp_path / "bad.ipynb", bad), "run", {"audit": True})
    assert [found.partition(":")[0] for found in report["themes"]["dark"]["axe"]] == ["button-name"]
