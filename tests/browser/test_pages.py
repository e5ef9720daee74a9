"""Exported notebooks in Chromium, opened as files without a network: their pictures respond all the same."""

from __future__ import annotations

import itertools
import json
import os
import subprocess

import nbformat
import pytest

from dtflab.__main__ import main
from dtflab.base.grouping import grouped
from dtflab.notebook import explorer
from dtflab.viz.drawing.picture import without_still
from tests.browser.test_browser import CHROMIUM, HERE, SHOTS, pytestmark, write  # noqa: F401 (the skip)
from tests.browser.test_live import FORK, PLACED, PLOT, REPLAYED, SCRUB, TOWER, TRACED, small_race
from tests.browser.test_live_records import CALLED, WIRE
from tests.house import ROOT


def exported(path, folder, runs=True):
    """The page of a notebook, run for it unless it has its outputs."""
    with pytest.raises(SystemExit) as end:
        main(["export", "--html", str(path), "--to", str(folder), *["--run"] * runs])
    assert end.value.code == 0
    return folder / f"{path.stem}.html"


def visit(page, *steps, expected=None, media=None):
    """Report what open_page.mjs sees in a page. Nothing else was asked for, and the browser has no complaint."""
    SHOTS.mkdir(exist_ok=True)
    command = ["node", HERE / "open_page.mjs", page, SHOTS, json.dumps(steps), *filter(None, [expected])]
    env = os.environ | {"CHROMIUM": CHROMIUM, "MEDIA": json.dumps(media or {})}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=1000)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["noise"] == [] and report["requests"] == [f"file://{page}"]
    return report


BUSY_AT_FIRST = """<script>  // a kernel to which the words of the first half second don't get through
let began, answered = 0, words = 0;
const word = ({ picture }) => {
  const say = says => document.dispatchEvent(new CustomEvent(`dtflab ${picture}`,
    { detail: { title: "cluster: busy", rows: [], says, kept: 60, circle: "" } }));
  const now = performance.now();
  words++;
  began ??= now;
  if (answered || now - began < 500) return;
  answered = words;
  say(now - began < 3000 ? "live at once" : "live too late");
  setTimeout(() => say(`then ${words - answered} words in 2 s`), 2000);
};
window[Symbol.for("dtflab kernels")] = { has: () => true, get: () => word };
</script>"""


def test_a_panel_repeats_its_first_word_until_the_kernel_answers(tmp_path):
    cells = ["import dtflab as tf\n%load_ext dtflab\ncluster = %dtf_cluster --ps 1 --worker 2"]
    page = exported(write(tmp_path / "panel.ipynb", *cells), tmp_path)
    page.write_text(page.read_text(encoding="utf-8").replace("<head>", f"<head>{BUSY_AT_FIRST}", 1), encoding="utf-8")
    panel = {"on": ".dtf-tasks", "do": "hover"}
    report = visit(page, panel | {"see": "live at once"}, panel | {"see": "then 0 words in 2 s"})
    assert report["live"] == ["cluster"]


REPLAY, ALL_THAT_FITS = "[data-live='replay']", '.dtf-button:text("Open all that fits")'
STEPPED = [
    """
%load_ext dtflab
tf.reset_default_graph()
a = tf.placeholder(tf.float32, name="a")
with tf.device("/cpu:1"):
    b = tf.square(a, name="b")
loss = tf.negative(a * b, name="loss")
sess = tf.Session(config=tf.ConfigProto(device_count={"CPU": 2}))""",
    """
steps = sess.step_through(loss, {a: 3.0})
while not steps.over:
    steps.next()
steps""",
]
FRESH = "cluster.stop()\ntf.reset_default_graph()"
CHAIN = """
tf.reset_default_graph()
y = tf.placeholder(tf.float32, [8, 8], name="y")
for i in range(24):
    y = tf.matmul(y, y)
tf.viz.placement(tf.get_default_graph())"""


def test_timeline_placement_and_steps_respond(tmp_path):
    cells = [*TRACED, FRESH, *PLACED, FRESH, *STEPPED, *REPLAYED, CHAIN]
    page = exported(write(tmp_path / "page.ipynb", *cells), tmp_path)
    report = visit(
        page,
        {"on": PLOT, "do": "click", "at": [0.01, 0.18], "see": "Idle for"},
        {"on": PLOT, "do": "press", "key": "c", "see": "Critical path of "},
        {"on": PLOT, "do": "press", "key": "Escape"},
        {"on": PLOT, "do": "wheel", "by": -600, "at": [0.9, 0.5], "shot": "zoomed"},
        {"on": TOWER, "do": "click", "see": "tower0 is open.", "shot": "open"},
        *({"on": ".box-of", "nth": nth, "do": "hover", "at": [0.5, 0.1]} for nth in (0, -1)),
        {"on": ALL_THAT_FITS, "nth": 1, "do": "click", "see": "25 ops. No more fits into 1,000 pixels of height."},
        {"on": ".counter", "do": "click", "see": "The step is over"},
        {"on": ".counter", "do": "hover", "see": "A real executor has no sets"},  # true of each set
        {"on": '[data-live="steps"] .dtf-button', "nth": 1, "do": "click", "see": "Ready next: fetch loss"},
        {"on": '[data-live="steps"] .dtf-button', "nth": 1, "do": "press", "key": "Home", "see": "Set 0 of 7"},
        {"on": '[data-live="steps"] .dtf-button', "nth": 2, "do": "click", "see": "Set 1 of 7", "shot": "one"},
        {"on": SCRUB, "do": "focus"},
        {"on": SCRUB, "do": "press", "key": "ArrowRight", "see": "Moment 1 of"},
        {"on": REPLAY, "do": "focus"},
        {"on": REPLAY, "do": "press", "key": "ArrowUp", "see": "variable w", "shot": "row"},
        {"on": REPLAY, "do": "press", "key": "Escape", "see": "Moment 1 of"},
        {"on": REPLAY, "do": "press", "key": "p", "see": "Moment 2"},
        {"on": REPLAY, "do": "press", "key": "p"},
        {"width": 700},
        *({"on": SCRUB, "do": "press", "key": "ArrowRight", "top": True} for _ in range(24)),
        {"width": 1280},
        {"on": SCRUB, "do": "click", "at": [0.5, 0.5], "see": "sets out from worker:2 GPU:0 to ps:0", "shot": "replay"},
    )  # fmt: skip
    assert len(set(report["tops"])) == 1, "the drawing does not jump from moment to moment"
    assert report["live"] == ["timeline", "placement", "steps", "replay", "placement"] and report["stills"] == 0
    assert report["cards"] == [False, False], "a card stands next to what it explains"


CROWDED = [  # 20 tensors, made one after the other and all awaited from the start on: there is room for 16
    """
import dtflab as tf
from dtflab.protos.step_stats_pb2 import StepStats
step, ps, worker = StepStats(), "/job:ps/task:0/device:CPU:0", "/job:worker/task:0/device:CPU:0"
makes = step.dev_stats.add(device=ps, thread_names={0: "client", 1: "inter-op 1", 2: "inter-op 2"})
takes = step.dev_stats.add(device=worker, thread_names={0: "client"})
for i, name in enumerate(["quick", "short"], 1):
    makes.node_stats.add(node_name=name, timeline_label=f"{name} = NoOp()", thread_id=i, all_end_rel_micros=2)
for i in range(20):
    made = makes.node_stats.add(node_name=f"t{i}", timeline_label=f"t{i} = Const()", all_start_micros=100 * i,
                                all_end_rel_micros=90)
    made.output.add().tensor_description.allocation_description.requested_bytes = 9
    label = f"[9B] edge_{i}_t{i} from {ps} to {worker}"
    takes.node_stats.add(node_name="RecvTensor", timeline_label=label, all_end_rel_micros=100 * i + 95)
takes.node_stats.add(node_name="sum", timeline_label="sum = AddN(t19)", all_start_micros=1996, all_end_rel_micros=4)
tf.viz.timeline(step)""",
]


def test_what_perfetto_gets_is_all_of_a_step_whatever_is_folded(tmp_path):
    save = {"on": 'button:text("For Perfetto")', "do": "click", "see": "Saved as timeline.json", "saves": True}
    page = exported(write(tmp_path / "crowded.ipynb", *CROWDED), tmp_path)
    report = visit(page, save, {"on": PLOT, "do": "press", "key": "i", "see": "All rows are open."}, save)
    folded, opened = report["saved"]
    assert folded == opened
    of = grouped((event["ph"], event) for event in json.loads(folded)["traceEvents"])
    process = {each["pid"]: each["args"]["name"] for each in of["M"] if each["name"] == "process_name"}
    thread = {each["tid"]: each["args"]["name"] for each in of["M"] if each["name"] == "thread_name"}
    assert [*process.values()] == ["ps:0", "worker:0"] and 0 not in {*process, *thread}
    where = {each["args"].get("tensor") or each["args"]["name"]: each for each in of["X"]}
    assert len(of["X"]) == 43 and {process[each["pid"]] for each in of["X"]} == {*process.values()}
    assert thread[where["t3"]["tid"]].startswith("receives") and thread[where["short"]["tid"]] == "inter-op 2"
    assert [each["args"]["bytes"] for each in of["X"]].count(9) == 40
    for slices in grouped((each["tid"], each) for each in of["X"]).values():
        slices.sort(key=lambda each: each["ts"])
        assert all(a["ts"] + a["dur"] <= b["ts"] for a, b in itertools.pairwise(slices)), "slices of a thread overlap"
    ends = [{each["id"]: each for each in of[phase]} for phase in "sf"]
    assert len(of["s"]) == len(of["f"]) == len(ends[0]) == 20 and ends[0].keys() == ends[1].keys()
    for sent, got in zip(ends[0].values(), ends[1].values(), strict=True):
        made, arrived = (within(each, of["X"]) for each in (sent, got))
        assert made["name"] == "Const" and made["args"]["name"] == sent["name"] == arrived["args"]["tensor"]


RECEIVES = """
import dtflab as tf
with tf.device("/job:ps/task:0"):
    shared = [tf.get_variable(f"w{i}", [8, 8]) for i in range(6)]
with tf.device("/job:worker/task:0"):
    total = tf.add_n([tf.matmul(each, each) for each in shared])
with tf.Cluster(ps=1, worker=1, clock="virtual") as cluster, tf.Session(cluster.target) as sess:
    sess.run(tf.global_variables_initializer())
    step = sess.trace(total.op)
tf.viz.timeline(step)"""


def test_an_open_row_of_a_timeline_moves_the_rows_below_it(tmp_path):
    report = visit(
        exported(write(tmp_path / "receives.ipynb", RECEIVES), tmp_path),
        {"on": 'button:text("Fit")', "do": "click", "see": "▸ receives", "folds": True},
        {"on": PLOT, "do": "press", "key": "i", "see": "▾ receives", "folds": True, "shot": "open"},
    )  # fmt: skip
    closed, opened = ([top for _, top in rows[-2:]] for rows in report["folds"])  # the worker's: receives, idle rows
    assert [label for label, _ in report["folds"][0]][-2:] == ["▸ receives", "▸ 5 idle rows"]
    assert (opened[1] - opened[0]) - (closed[1] - closed[0]) > 5 * 10  # six tensors in rows of their own


def within(event, slices):
    """The slice to which an arrow's end belongs: that of its thread and moment."""
    (found,) = (
        each for each in slices if each["tid"] == event["tid"] and each["ts"] <= event["ts"] < each["ts"] + each["dur"]
    )
    return found


UNTOUCHED = [
    "import dtflab as tf\n" + STEPPED[0],
    "%dtf_step loss --feed {a: 3.0}",
    "second = sess.step_through(loss, {a: 4.0})\nsecond.next()\nsecond",
    "print(second.records[1:])",
]


LARGE = """
tf.reset_default_graph()
y = tf.constant([[1.0] * 8], name="y")
for _ in range(70):
    y = tf.nn.relu(tf.matmul(y, tf.eye(8)))
tf.Session().step_through(y)"""


def test_a_step_that_nobody_touched_has_all_its_sets_on_a_page(tmp_path):
    first, second, large = ({"on": '[data-live="steps"] .dtf-button', "nth": nth} for nth in (2, 6, 10))
    report = visit(
        exported(write(tmp_path / "untouched.ipynb", *UNTOUCHED, LARGE), tmp_path),
        first | {"do": "focus", "see": "Set 0 of 7. Ready first", "shot": "begins"},
        second | {"do": "focus", "see": "Set 1 of 7. Ran: feed a"},
        first | {"do": "click", "see": "Ready next: "},
        first | {"do": "press", "key": "End", "see": "Set 7 of 7.", "shot": "over"},
        second | {"do": "focus", "see": "[]"},  # printed by the last cell: the step went on after it
        second | {"do": "press", "key": "End", "see": "= -64."},
        *(large | {"do": "click", "see": f"Set {i} of 1"} for i in range(1, 4)),
        large | {"do": "press", "key": "ArrowLeft", "see": "Set 2 of 1", "shot": "large"},
    )  # fmt: skip
    assert report["unavailable"] == [] and report["stills"] == 0


UNFINISHED = [  # and without an end: nobody puts anything in
    "import dtflab as tf\n" + STEPPED[0],
    "take = tf.FIFOQueue(1, tf.float32).dequeue(name='take')\nsess.step_through(take)",
]


def test_what_needs_a_kernel_is_seen_to_need_one(tmp_path):
    forward = {"on": '[data-live="steps"] .dtf-button', "nth": 2}
    report = visit(
        exported(write(tmp_path / "needs.ipynb", *UNFINISHED, FRESH.partition("\n")[2], *REPLAYED), tmp_path),
        {"on": FORK, "do": "focus", "see": "A fork needs a kernel: open the notebook", "shot": "fork"},
        {"on": FORK, "do": "press", "key": "Enter"},
        forward | {"do": "focus", "see": "Set 0 of ?."},
        forward | {"do": "press", "key": "End", "see": "Asked, and waiting: take.", "shot": "stuck"},
        forward | {"do": "focus", "see": "The next set needs a kernel: open the notebook"},
        forward | {"do": "press", "key": "ArrowRight"},
    )  # fmt: skip
    fork = "A fork needs a kernel: open the notebook and run its cells."
    further = "The next set needs a kernel: open the notebook and run its cells."
    assert dict(report["unavailable"]) == {
        "The next set": further, "To the end": further, "Fork here": fork,
        "Another choice at this moment": "Network of ps:0 10 times as fast",  # whole, where its field is too narrow
    }  # fmt: skip


FAR = "InvalidArgumentError: " + "Cannot assign a device for operation " * 8
PATH = "/somewhere/in/a/folder/with/a/rather/long/name/and/a/module/in/it.py:12 "


def test_an_error_breaks_between_its_words(tmp_path):
    path = write(tmp_path / "failed.ipynb", "1 / 0")
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[0].outputs = [
        nbformat.v4.new_output(
            "error", ename="InvalidArgumentError", evalue="", traceback=[PATH * 3, f"\x1b[31m{FAR}"]
        ),
        nbformat.v4.new_output("stream", name="stderr", text=FAR + "x" * 400),
    ]
    nbformat.write(notebook, path)
    report = visit(exported(path, tmp_path, runs=False), {"width": 700, "shot": "narrow"})
    assert report["broken"] == [] and report["over"] == 0


def test_a_system_may_ask_for_its_own_colours_and_for_less_motion(tmp_path):
    page = exported(write(tmp_path / "system.ipynb", *TRACED, FRESH, *PLACED, FRESH, *CALLED), tmp_path)
    report = visit(
        page,
        {"on": WIRE, "do": "focus"},
        {"on": WIRE, "do": "press", "key": "Home", "see": "Nothing has been called yet."},
        {"on": WIRE, "do": "press", "key": "p"},
        {"on": WIRE, "do": "press", "key": "ArrowRight", "see": "1 of "},
        {"on": f"{WIRE} .dtf-slider", "do": "click", "at": [0.36, 0.5], "shot": "between"},
        media={"reducedMotion": "reduce", "forcedColors": "active"},
    )
    assert report["live"] == ["timeline", "placement", "wire"]
    assert report["moves"] == 0 and "Play" not in report["buttons"] and "▶" in report["buttons"]
    assert [value for value in report["sliders"] if float(value) % 1] == []  # no message stands half-way
    assert report["faint"] == []


VIEWS = {"memory", "allocations", "timeline", "still", "redrawn", "placement", "steps", "replay", "wire", "live"}
REDRAWN = """
import dtflab as tf
tf.viz.live(lambda: tf.viz.queues_now(tf.Session()), show=False)"""
ALL = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.viz.gallery import drawings
with drawings("virtual") as found:
    for draw in found.values():
        display(draw())"""


def test_pictures_take_the_width_of_the_output(tmp_path):
    page = exported(write(tmp_path / "wide.ipynb", REDRAWN, *STEPPED, ALL), tmp_path)
    windows = 1422, 942, 2062  # in which outputs have 1,280, 800, and more than 1,800 pixels
    wide = visit(page, *({"width": width, "shot": str(width)} for width in windows))["wide"]
    for window, pictures in wide.items():
        assert {one["view"] for one in pictures} == VIEWS
        for one in pictures:
            room, width = one["room"], one["width"]
            assert 0.84 * int(window) < room and width <= room and one["needs"] <= room, f"scrolled: {one}"
            smallest, largest = one["texts"]  # of 11 to 14 pixels in a still
            assert smallest > 10 and largest < 14.1, one
            assert min(one["hints"], default=1) > 0.3, f"a word stands alone in a line: {one}"
            assert width > min(room, 1900) - 2 and one["outside"] == [], one


READ = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
import dtflab as tf
from dtflab.base.events import Use
from tests.viz.test_staleness import log_of
from tests.viz.watched import PS, W0, call, event, seen_of
tf.viz.curve(range(11), {{"one": range(11), "two": [4.5] * 11}}, "step", "loss")"""
LEVELS = """
waits = event(6.0, "wait", 0, 4, "put", "A", 9, False, "put")
puts = [event(float(i), "put", 1, i, "put", "A", i) for i in range(1, 5)]
tf.viz.queues([*puts, waits, event(11.0, "take", 1, 3, "take", "B", 8), event(6.0, "put", 1, 1, queue="other")])"""
JOINED = """
calls, cpu = [call(0.0, "RunStep", client, W0) for client in "AB"], f"{PS}/device:CPU:0"
tf.viz.clients(seen_of(calls, (), [Use("A", cpu, "", "x"), Use("B", cpu, "", "y")]))"""
PULLED = "tf.viz.staleness(log_of([0, 2, 1], workers=3, dropped={1}))"
VALUES, FAINT = '[data-live="still"]', '[data-live="still"]:has(.faint)'


def test_a_plot_says_its_values_where_it_is_pointed_at_and_with_keys(tmp_path):
    page = exported(write(tmp_path / "read.ipynb", READ, LEVELS, JOINED, PULLED), tmp_path)
    plot, keys = f"{VALUES} .dtf-drawing > svg", {"on": VALUES, "do": "press"}
    report = visit(
        page,
        {"on": plot, "do": "hover", "at": [0.5, 0.5], "see": "one: 5\ntwo: 4.5", "shot": "curve"},
        {"on": VALUES, "do": "focus"},
        keys | {"key": "Escape", "at": [0.99, 0.01]},
        *(keys | {"key": "ArrowRight", "at": [0.99, 0.01], "see": f"step: {i}"} for i in range(3)),
        keys | {"key": "ArrowLeft", "at": [0.99, 0.01], "see": "step: 1\none: 1"},
        {"on": plot, "nth": 1, "do": "hover", "at": [0.8, 0.35], "see": "4 elements of 4 from 5 s on\nA waits to put"},
        {"on": f"{plot} g[data-key]", "do": "hover", "see": "variable x on /job:ps", "shot": "joined"},
        {"on": FAINT, "do": "leave", "at": [0.01, 0.01]},
        {"on": f"{plot} .lost", "nth": 1, "do": "hover", "see": "worker:1: 2 steps old, dropped", "shot": "stale"},
        {"audit": ".dtf-picture"},
    )  # fmt: skip
    assert report["live"] == ["still"] * 4 and report["axe"] == []


def test_open_scopes_that_are_a_little_wider_than_the_output_fit_into_it(tmp_path):
    towers = """
import dtflab as tf
for i in range(2):
    with tf.name_scope(f"tower{i}"):
        ones = tf.ones([2])
        tf.add_n([tf.square(ones, name=f"square_of_it{j}") for j in range(12)])
tf.viz.placement(max_boxes=3)"""
    opens = {"on": "button[aria-keyshortcuts='o']", "do": "click", "see": "boxes of"}
    page = exported(write(tmp_path / "towers.ipynb", towers), tmp_path)
    (one,) = visit(page, opens, {"width": 942, "shot": "open"})["wide"]["942"]
    assert one["needs"] <= one["room"] and one["texts"][0] < 10.9, one  # it was scrolled by 31 pixels


def explorer_of(notebook, monkeypatch):
    """The sliders that a notebook's cells show, here and without a kernel."""
    found = []
    monkeypatch.setattr(explorer, "explore", lambda draw, **sliders: found.append(explorer.Explorer(draw, sliders)))
    names = {"__name__": notebook.stem}
    for cell in nbformat.read(notebook, as_version=4).cells:
        if cell.cell_type == "code" and not found:
            exec("\n".join(line for line in cell.source.splitlines() if not line.startswith("%")), names)  # noqa: S102
    return found[0]


def expected_of(one, path):
    """The code and the HTML that a kernel gives for each place of the sliders."""
    places = [
        dict(zip(one.sliders, values, strict=True))
        for values in itertools.product(*(slider.values for slider in one.sliders.values()))
    ]
    found = []
    for place in places:
        *_, last = one._pictures(place)
        code = f"{one._draw.__name__}({', '.join(f'{name}={value!r}' for name, value in place.items())})"
        found.append((code, without_still(explorer._bundle(last)["text/html"])))
    path.write_text(json.dumps(found))
    return path


def test_what_if_shows_for_all_places_what_a_kernel_would(tmp_path, monkeypatch):
    demo = ROOT / "notebooks" / "demos" / "what_if.ipynb"
    page = exported(demo, tmp_path)
    one = explorer_of(demo, monkeypatch)
    wanted = expected_of(one, tmp_path / "expected.json")
    slider = {"on": ".dtf-knob input", "nth": 1}
    moved = visit(
        page, slider | {"do": "focus", "see": "2.03 × the base"},
        slider | {"do": "press", "key": "ArrowRight", "see": "2.44 × the base", "shot": "moved"},
        expected=wanted,
    )  # fmt: skip
    assert moved["live"] == ["still", "sliders"] and moved["differ"] == []
    assert len(json.loads(wanted.read_text())) == 150


def test_an_exported_race_has_the_curves_of_all_its_places(tmp_path):
    workers, spares = ({"on": ".dtf-knob input", "nth": nth} for nth in (0, 1))
    report = visit(
        exported(small_race(tmp_path / "small_race.ipynb"), tmp_path),
        workers | {"do": "focus", "see": "loss, 2 workers", "shot": "first"},
        workers | {"do": "press", "key": "ArrowRight", "see": "loss, 3 workers", "shot": "moved"},
        spares | {"do": "focus", "see": "sync, 1 to spare"},
        spares | {"do": "press", "key": "ArrowLeft", "see": "race(workers=3, spares=0, stragglers=0.3, "},
        workers | {"do": "focus"},
        workers | {"do": "press", "key": "ArrowLeft", "see": "race(workers=2, spares=0"},
    )  # fmt: skip
    assert report["live"] == ["still", "sliders"]
