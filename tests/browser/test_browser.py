"""Notebooks as a person sees them: in a real JupyterLab in Chromium, all cells run, in light and dark theme."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import nbclient
import nbformat
import pytest
from nbformat import v4
from nbformat.sign import NotebookNotary

from tests.browser.lab import jupyter_lab
from tests.grading.answers import QUESTIONS, answer_cell
from tests.house import ROOT

HERE = Path(__file__).parent
SHOTS = HERE / "shots"  # look at them; not in git

CHROMIUM = os.environ.get("CHROMIUM") or next(
    filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None
)
HOW_TO_GET = {
    "Chromium": (CHROMIUM, "apt install chromium"),
    "Node": (shutil.which("node"), "apt install nodejs npm"),
    "playwright-core": (
        (HERE / "node_modules" / "playwright-core").exists(),
        "npm install --prefix tests/browser",
    ),
}
MISSING = [f"{tool} ({how})" for tool, (there, how) in HOW_TO_GET.items() if not there]
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"missing: {', '.join(MISSING)}"),
    pytest.mark.timeout(1500),  # the machine may be busy
]


@pytest.fixture(scope="module")
def look(tmp_path_factory):
    yield from looking(tmp_path_factory, "jupyterlab")


def looking(tmp_path_factory, program):
    """Runs a copy of a notebook in the browser; gives what open_notebook.mjs saw."""
    folder, work = tmp_path_factory.mktemp("notebooks"), tmp_path_factory.mktemp("work")
    SHOTS.mkdir(exist_ok=True)
    with jupyter_lab(folder, work, program) as lab:

        def open_notebook(notebook: Path, action: str = "run", *steps: dict) -> dict:
            shutil.copy(notebook, folder)
            where = [lab.url, lab.token, notebook.name, SHOTS]
            command = ["node", HERE / "open_notebook.mjs", *where, action, json.dumps(steps)]
            environment = os.environ | {"CHROMIUM": CHROMIUM}
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1000)
            assert done.returncode == 0, done.stderr
            return json.loads(done.stdout)

        open_notebook.data_dir = work / "data"
        yield open_notebook


def complaints(report: dict) -> list[str]:
    """All that is wrong with what was seen; it says which picture, in which theme."""
    found = list(report["noise"])
    for theme, seen in report["themes"].items():
        for kind in ("stderr", "notRun", "notShown"):
            found += [f"{theme}: {kind}: {text}" for text in seen[kind]]
        found += [f"{theme}: image not drawn: {image}" for image in seen["images"] if not image["drawn"]]
        # Lab shows image/svg+xml as an <img>, which knows nothing of the theme; inline in text/html it follows.
        found += [f"{theme}: SVG as an <img>" for image in seen["images"] if image["type"] == "image/svg+xml"]
        for canvas in seen["canvases"]:
            if canvas["painted"] < 0.001 or canvas["colours"] < 2:
                found.append(f"{theme}: an empty canvas: {canvas}")
            if not canvas["isSharp"]:
                found.append(f"{theme}: a canvas with fewer pixels than it takes: {canvas}")
        shown = seen["images"] + seen["svgs"] + seen["canvases"]
        found += [f"{theme}: not in the window: {one}" for one in shown if not one["inWindow"]]
        for svg in seen["svgs"]:
            for kind in ("outside", "overlapping", "faint"):
                found += [f"{theme}: {svg['label']!r}: text {kind}: {text}" for text in svg[kind]]
            if not (svg["shapes"] and svg["texts"] and min(svg["size"]) > 40):
                found.append(f"{theme}: {svg['label']!r}: an empty picture, {svg}")
    return found


def brightness(seen: dict) -> float:
    return sum(map(float, re.findall(r"[\d.]+", seen["background"])[:3])) / 3


def test_welcome(look, record_property):
    grows = {"on": ".grown path[stroke]", "do": "change", "shot": "training"}
    report = look(ROOT / "notebooks" / "00_welcome.ipynb", "start", grows)
    record_property("run all, seconds", report["seconds"])
    assert complaints(report) == []
    light, dark = report["themes"]["light"], report["themes"]["dark"]
    assert brightness(light) > 200 and brightness(dark) < 60
    assert len(light["svgs"]) + len(light["images"]) >= 2, "placement and timeline"
    assert len(dark["svgs"]) == len(light["svgs"]) and len(dark["images"]) == len(light["images"])
    assert re.search(r"test accuracy 0\.9[5-9]", "\n".join(light["stdout"]))


def test_an_answer_that_is_typed_gets_full_marks(look):
    (question,) = [one for one in QUESTIONS if one.id == "placement/q1"]
    full = f"{question.points} of {question.points} points"
    written = {"replace": "# YOUR CODE HERE", "by": answer_cell(question), "see": full}
    report = look(ROOT / "exercises" / "ex01_placement.ipynb", "run", written)
    assert complaints(report) == []


def test_a_slider_is_moved_by_keyboard_and_the_picture_changes(look):
    moved = {"slider": 1, "key": "ArrowRight", "see": "2.44 × the base"}  # with 8 workers, 2.03 with 4
    report = look(ROOT / "notebooks" / "demos" / "what_if.ipynb", "run", moved)
    assert complaints(report) == []
    (code,) = [text for text in report["themes"]["light"]["shown"] if "in a cell:" in text]
    assert "what_if(network='10Gb/s', workers=8, gpu='K40')" in code and "drawing" not in code


BAD = """
import sys
from IPython.display import HTML, display
print("oh", file=sys.stderr)
display(HTML('''<svg width="300" height="100" aria-label="bad">
  <rect width="300" height="60" fill="#eee"/><text x="10" y="30" fill="#ddd">faint</text>
  <text x="10" y="80" fill="gray">one</text><text x="12" y="80" fill="gray">two</text>
  <text x="280" y="50" fill="black">outside</text></svg>'''))
display(HTML('<svg width="300" height="100" aria-label="empty"></svg>'))
display(HTML('<img src="data:image/png;base64,AAAA">'))
display(HTML('<canvas width="300" height="100" style="width:600px"></canvas>'))
display(HTML('''<div style="height:12000px"></div><svg width="300" height="100" aria-label="below">
  <rect width="300" height="40" fill="black"/><text x="10" y="30" fill="white">clear</text>
  <rect y="40" width="300" height="60" fill="#eee"/><text x="10" y="70" fill="#ddd">deep</text></svg>'''))
1 / 0
"""
WRONG = [
    "stderr: oh",
    "ZeroDivisionError",
    "notRun: ",
    "image not drawn",
    "an empty canvas",
    "a canvas with fewer pixels",
    "'empty': an empty picture",
    "'bad': text faint: faint (1.",
    "'below': text faint: deep (1.",
    "not in the window: {'label': 'below'",
    "overlapping: ['one', 'two']",
    "outside: outside",
]


def test_the_panels_stop_button_works_while_a_cell_runs(look, tmp_path):
    report = look(write(tmp_path / "stop.ipynb", *STOPPED), "Stop")
    assert complaints(report) == []
    assert report["themes"]["light"]["stdout"] == ["waiting\nended\n", "done\n"]
    assert report["themes"]["light"]["buttons"] == []


STOPPED = [
    "import dtflab as tf\n%load_ext dtflab\ncluster = %dtf_cluster --ps 1 --worker 1\ncluster",
    """
with tf.device("/job:ps/task:0"):
    x = tf.Variable(1.0)
sess = tf.Session(cluster.target)
sess.run(x.initializer)
print("waiting")
try:
    while True:
        sess.run(x)
except (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError):
    print("ended")
""",
    "print('done')",
]


PROJECTED = [
    """import dtflab as tf
tf.viz.style("projector")
cluster = tf.Cluster(worker=1, gpus=1, gpu_memory="256MiB")
with tf.device("/job:worker/task:0/gpu:0"):
    product = tf.matmul(tf.ones([200, 200]), tf.ones([200, 200]), name="product")
with tf.Session(cluster.target) as sess:
    step = sess.trace(product)""",
    "tf.viz.timeline(step)",
    "tf.viz.card_history(tf.smi())",
    "tf.viz.cards(tf.smi())",
]


def test_pictures_for_a_projector_fit_beside_the_file_browser(look, tmp_path):
    report = look(write(tmp_path / "projected.ipynb", *PROJECTED))
    assert complaints(report) == []
    for seen in report["themes"].values():
        assert len(seen["svgs"]) == 3
        for svg in seen["svgs"]:  # a page of 480 units, whose smallest text is 11 high
            width, _ = svg["size"]
            assert width < 860 and width / 480 * 11 > 18


@pytest.mark.parametrize("trusted", [True, False])
def test_a_saved_notebook_still_has_the_panels_table(look, tmp_path, trusted):
    notebook = nbformat.read(write(tmp_path / f"saved-{trusted}.ipynb", STOPPED[0]), as_version=4)
    nbclient.NotebookClient(notebook, store_widget_state=False).execute()
    if trusted:
        NotebookNotary(data_dir=str(look.data_dir)).sign(notebook)
    nbformat.write(notebook, tmp_path / f"saved-{trusted}.ipynb")
    seen = look(tmp_path / f"saved-{trusted}.ipynb", "look")["themes"]["light"]
    table, *rest = seen["shown"]
    assert table.startswith("cluster: 2 tasks") and "worker-0.cluster:2222" in table
    assert "".join(rest).strip() == "" and seen["buttons"] == []


def test_a_bad_notebook_is_seen_to_be_bad(look, tmp_path):
    report = look(write(tmp_path / "bad.ipynb", BAD, "'not run'"))
    found = "\n".join(line for line in complaints(report) if line.startswith("light"))
    for part in WRONG:
        assert part in found, f"{part!r} not in\n{found}"
    assert "clear (" not in found, "measured where it is not on the screen"


def write(path: Path, *cells: str) -> Path:
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    nbformat.write(v4.new_notebook(cells=[*map(v4.new_code_cell, cells)], metadata=kernel), path)
    return path
