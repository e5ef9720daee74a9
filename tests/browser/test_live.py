"""Live pictures in a real JupyterLab: what a person does to them, and what they answer."""

from __future__ import annotations

import nbformat

from tests.browser.test_browser import complaints, look, pytestmark, write  # noqa: F401 (the fixture)
from tests.house import ROOT


def traced(train):
    """Two cells: trace a step of two workers that share `w`, and show it. `train` is the code from losses to train."""
    return [
        f"""
import dtflab as tf
cluster = tf.Cluster(ps=1, worker=2, clock="virtual", gpu="K40")
with tf.device("/job:ps/task:0"):
    w = tf.get_variable("w", [400, 400], initializer=tf.ones_initializer())
losses = []{train}
sess = tf.Session(cluster.target)
sess.run(tf.global_variables_initializer())
step = sess.trace(train)""",
        "tf.viz.timeline(step, graph=sess.graph)",
    ]


TRACED = traced("""
for i in range(2):
    with tf.device(f"/job:worker/task:{i}"):
        losses.append(tf.reduce_mean(tf.matmul(tf.ones([300, 400]), w), name=f"loss{i}"))
with tf.device("/job:ps/task:0"):
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.add_n(losses))""")
PLOT = "canvas.dtf-plot"
OUTLINES = {"on": PLOT, "do": "outlines"}


def test_a_timeline_answers(look, tmp_path):  # noqa: F811
    report = look(
        write(tmp_path / "timeline.ipynb", *TRACED), "run",
        {"on": PLOT, "do": "click", "at": [0.01, 0.18], "see": "Idle for", "shot": "gap"},
        {"on": PLOT, "do": "press", "key": "Escape", "at": [0.01, 0.18]},
        OUTLINES,
        {"on": PLOT, "do": "press", "key": "c", "at": [0.01, 0.18], "see": "Critical path of ", "shot": "critical"},
        OUTLINES,
        {"on": PLOT, "do": "click", "at": [0.01, 0.18], "see": "Idle for"},
        {"on": ".dtf-search", "do": "type", "by": "matmul", "see": "Enter goes to the next"},
        {"on": ".dtf-search", "do": "press", "key": "Enter", "shot": "found"},
        OUTLINES,
        {"on": ".dtf-card[data-locked]", "do": "texts"},
        {"on": PLOT, "do": "drag", "at": [0.1, 0.5], "to": [0.9, 0.5], "held": "Shift", "see": "received",
         "shot": "sums"},
        {"on": PLOT, "do": "press", "key": "f"},
        {"on": PLOT, "do": "press", "key": "r", "see": "From 0 µs to 4.0", "shot": "all-sums"},
        {"on": ".dtf-said table", "do": "texts"},
        {"on": ".dtf-said table:nth-of-type(1) td:nth-child(2)", "do": "texts"},
        {"on": ".dtf-said table:nth-of-type(2) td:nth-child(2)", "do": "texts"},
        {"on": PLOT, "do": "press", "key": "Escape"},
        {"on": ".dtf-search", "do": "type", "by": "ones_1", "see": "1 awaited tensor;"},
        {"on": ".dtf-search", "do": "press", "key": "Escape"},
        {"on": ".fold text", "do": "click", "see": "▾ client", "shot": "unfolded"},
        {"on": PLOT, "do": "press", "key": "i", "see": "All rows are open."},
        {"on": PLOT, "do": "press", "key": "i", "see": "Rows are folded."},
        {"on": PLOT, "do": "wheel", "by": -600, "at": [0.9, 0.5], "shot": "zoomed"},
    )  # fmt: skip
    assert complaints(report) == []
    *outlines, (card,), (devices, ops), on_devices, of_types = report["measured"]
    assert sum(map(int, on_devices)) == sum(map(int, of_types)) == 38 + 2, "as the heading counts: no copies"
    assert "MatMul" in card, "the card of what was found takes the place of the one that was kept"
    assert devices.startswith("By device") and ops.startswith("By opoptimestookshareMatMul") and " others" in ops
    bold = [{*drawn} - {"thin"} for drawn in outlines]  # without the frame of a gap at the pointer
    assert bold[1:] == [{"dashed"}, {"dashed", "solid"}], "the critical path, alone and with a hit of the search"
    for seen in report["themes"].values():
        (canvas,) = seen["canvases"]
        assert canvas["view"] == "timeline" and canvas["painted"] > 0.03 and canvas["colours"] > 20


SHORT_THEN_LONG = [
    """
import dtflab as tf
from dtflab.protos.step_stats_pb2 import StepStats
step = StepStats()
device = step.dev_stats.add(device="/job:worker/task:0/device:CPU:0", thread_names={0: "client"})
for name, start, duration in [("longest", 0, 1), ("long", 2, 99_000), ("last", 99_998, 2)]:
    device.node_stats.add(node_name=name, timeline_label=f"{name} = NoOp()", all_start_micros=start,
                          all_end_rel_micros=duration)
other = step.dev_stats.add(device="/job:worker/task:1/device:CPU:0", thread_names={0: "client"})
other.node_stats.add(node_name="short", timeline_label="short = NoOp()", all_start_micros=50_000, all_end_rel_micros=1)
third = step.dev_stats.add(device="/job:worker/task:2/device:CPU:0", thread_names={0: "client"})
for i in range(6):
    third.node_stats.add(node_name=f"n{i}", timeline_label=f"n{i} = Type{i}()", all_start_micros=50_000)
tf.viz.timeline(step)""",
]


AWAITED = [  # five tensors, all asked for when the step begins
    """
import dtflab as tf
from dtflab.protos.step_stats_pb2 import StepStats
step, ps, worker = StepStats(), "/job:ps/task:0/device:CPU:0", "/job:worker/task:0/device:CPU:0"
device = step.dev_stats.add(device=worker, thread_names={0: "client"})
device.node_stats.add(node_name="end", timeline_label="end = NoOp()", all_start_micros=990, all_end_rel_micros=10)
for i in range(5):
    label = f"[9B] edge_{i}_t{i} from {ps} to {worker}"
    device.node_stats.add(node_name="RecvTensor", timeline_label=label, all_end_rel_micros=200 * i + 150)
tf.viz.timeline(step)""",
]


def test_tensors_that_are_awaited_together_fold_into_a_row(look, tmp_path):  # noqa: F811
    report = look(
        write(tmp_path / "awaited.ipynb", *AWAITED), "run",
        {"on": PLOT, "do": "click", "at": [0.3, 0.9], "see": "t1", "shot": "second"},
        {"on": PLOT, "do": "click", "at": [0.8, 0.9], "see": "t4", "shot": "last"},
        {"on": PLOT, "do": "press", "key": "Escape"},
        {"on": ".fold text", "do": "click", "see": "▾ receives", "shot": "open"},
        {"on": PLOT, "do": "click", "at": [0.3, 0.95], "see": "t4"},
        {"on": PLOT, "do": "press", "key": "i", "see": "Rows are folded.", "shot": "folded"},
        {"on": PLOT, "do": "press", "key": "Escape"},
        {"on": PLOT, "do": "press", "key": "o", "see": "First choose a bar of a row that folds"},
        {"on": PLOT, "do": "press", "key": "ArrowRight", "see": "1 of 1 in its row: Idle for"},
        {"on": PLOT, "do": "press", "key": "ArrowDown", "see": "1 of 2 in its row: Idle for"},
        {"on": PLOT, "do": "press", "key": "ArrowDown", "see": "5 of 5 in its row: t0, 9 B"},
        {"on": PLOT, "do": "press", "key": "o", "see": "Its row is open: t0, 9 B"},
        {"on": ".unfolded", "do": "hover", "see": "▾ receives", "shot": "by-key"},
        {"on": PLOT, "do": "press", "key": "ArrowDown", "see": "1 of 1 in its row: t1, 9 B"},
        {"on": PLOT, "do": "press", "key": "o", "see": "Its row is folded: t1, 9 B"},
        {"on": ".fold", "do": "hover", "see": "▸ receives"},
    )  # fmt: skip
    assert complaints(report) == []


def test_idle_shares_are_of_what_is_seen(look, tmp_path):  # noqa: F811
    shares = {"on": "text.right", "do": "texts"}
    report = look(
        write(tmp_path / "shares.ipynb", *AWAITED), "run",
        shares,
        {"on": ".dtf-search", "do": "type", "by": "end", "see": "1 bar and 0 awaited"},
        {"on": ".dtf-search", "do": "press", "key": "Enter", "see": "1 of 1: end = NoOp", "shot": "end"},
        shares,
        {"on": 'button:text("Fit")', "do": "click"},
        shares,
    )  # fmt: skip
    assert complaints(report) == []
    whole, end, again = report["measured"]
    assert whole == again == ["100% idle", "99% idle"] and end == ["100% idle", "88% idle"], "10 of 83 µs"


def test_a_long_bar_that_begins_in_the_pixel_of_a_short_one_is_drawn(look, tmp_path):  # noqa: F811
    report = look(
        write(tmp_path / "long.ipynb", *SHORT_THEN_LONG), "run",
        {"on": '[role="group"][aria-label$="ms: a picture with keys, which its buttons name"]', "do": "hover"},
        {"on": ".dtf-merged", "do": "hover", "see": "several bars in one pixel", "shot": "merged"},
        {"on": ".dtf-search", "do": "type", "by": "long", "see": "2 bars and 0 awaited tensors"},
        {"on": ".dtf-search", "do": "press", "key": "Enter", "see": "1 of 2: long = NoOp"},
        {"on": ".dtf-search", "do": "press", "key": "Escape"},
        {"on": ".dtf-search", "do": "type", "by": "short", "see": "1 bar and 0 awaited tensors"},
        {"on": ".dtf-search", "do": "press", "key": "Enter", "see": "1 µs, from 50 ms to 50.001 ms"},
        {"on": ".dtf-search", "do": "press", "key": "Escape"},
        {"on": PLOT, "do": "press", "key": "f"},
        {"on": PLOT, "do": "drag", "at": [0.1, 0.2], "to": [0.9, 0.2], "held": "Shift", "see": "1 µs\t>99%"},
        {"on": ".dtf-said table", "do": "hover", "see": "0 µs\t>99%"},
        {"on": ".dtf-said table", "nth": 1, "do": "hover", "see": "1 other\t"},
        {"on": PLOT, "do": "press", "key": "Escape"},
        {"on": PLOT, "do": "press", "key": "ArrowRight", "see": "1 of 4 in its row: longest = NoOp"},
        {"on": PLOT, "do": "press", "key": "ArrowRight", "see": "2 of 4 in its row: long = NoOp", "shot": "by-keys"},
        {"on": PLOT, "do": "press", "key": "ArrowRight", "see": "3 of 4 in its row: Idle for 996 µs", "shot": "gap"},
        {"on": PLOT, "do": "press", "key": "ArrowDown", "see": "3 of 3 in its row: Idle for 50 ms"},
        {"on": PLOT, "do": "press", "key": "ArrowLeft", "see": "2 of 3 in its row: short = NoOp"},
        {"on": PLOT, "do": "press", "key": "ArrowUp", "see": "2 of 4 in its row: long = NoOp"},
        {"on": PLOT, "do": "press", "key": "ArrowUp", "see": "There is no further row."},
    )  # fmt: skip
    assert complaints(report) == []
    for seen in report["themes"].values():
        (canvas,) = seen["canvases"]
        assert canvas["painted"] > 0.15, "the bar of 99 ms is missing"


TALL = [
    """
import dtflab as tf
%load_ext dtflab
ops = []
for i in range(80):
    with tf.device(f"/cpu:{i}"):
        ops.append(tf.square(float(i), name=f"op{i}"))
sess = tf.Session(config=tf.ConfigProto(device_count={"CPU": 80}))""",
    "%dtf_timeline ops --session sess",
]


def test_a_timeline_that_is_higher_than_the_window_speaks_above(look, tmp_path):  # noqa: F811
    report = look(
        write(tmp_path / "tall.ipynb", *TALL), "run",
        {"on": 'button:text("Critical path")', "do": "click", "see": "Critical path of ", "shot": "critical"},
        {"on": ".dtf-said + .dtf-drawing", "do": "measure"},
    )  # fmt: skip
    assert complaints(report) == []
    assert len(report["measured"][-1]) == 1, "the drawing is below what is said"


STEPPED = [
    """
import dtflab as tf
%load_ext dtflab
a = tf.placeholder(tf.float32, name="a")
with tf.device("/cpu:1"):
    b = tf.square(a, name="b")
loss = tf.negative(a * b, name="loss")
sess = tf.Session(config=tf.ConfigProto(device_count={"CPU": 2}))""",
    "%dtf_step loss --feed {a: 3.0}",
    "print('waiting for nobody')",
]


def test_a_step_goes_back_and_forth(look, tmp_path):  # noqa: F811
    report = look(
        write(tmp_path / "steps.ipynb", *STEPPED), "run",
        {"on": ".node", "do": "click", "see": "Set 0 of ?"},
        {"on": ".dtf-button", "nth": 2, "do": "click", "see": "Set 1 of ?", "shot": "one"},
        {"on": ".dtf-button", "nth": 2, "do": "press", "key": "End", "see": "The step is over", "shot": "over"},
        {"on": ".dtf-button", "nth": 2, "do": "press", "key": "ArrowLeft", "see": "Ready next: fetch loss",
         "shot": "back"},
        {"on": ".dtf-button", "nth": 2, "do": "press", "key": "Home", "see": "Set 0 of"},
    )  # fmt: skip
    assert complaints(report) == []


def test_a_step_that_a_later_cell_has_finished_is_still_gone_through_set_by_set(look, tmp_path):  # noqa: F811
    report = look(
        write(tmp_path / "finished.ipynb", *STEPPED[:2], "%dtf_step --all"), "run",
        {"on": ".node", "do": "click", "see": "Set 0 of ?"},
        {"on": ".dtf-button", "nth": 2, "do": "click", "see": "Set 1 of "},
        {"on": ".dtf-button", "nth": 2, "do": "click", "see": "Set 2 of ", "shot": "two"},
    )  # fmt: skip
    assert complaints(report) == []


PLACED = [
    """
import dtflab as tf
cluster = tf.Cluster(ps=1, worker=2)
with tf.device("/job:ps/task:0"):
    with tf.variable_scope("model"):
        w = tf.get_variable("w", [8, 8], initializer=tf.ones_initializer())
losses = []
for i in range(2):
    with tf.device(f"/job:worker/task:{i}"), tf.name_scope(f"tower{i}"):
        losses.append(tf.reduce_mean(tf.matmul(tf.ones([4, 8]), w, name="product")))
with tf.device("/job:ps/task:0"):
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.add_n(losses, name="loss"))
sess = tf.Session(cluster.target)""",
    "tf.viz.placement([losses, train], sess, max_boxes=9)",
]
TOWER = '.box-of[aria-label^="tower0"]'


def test_scopes_open_in_place_and_their_tensors_are_lit(look, tmp_path):  # noqa: F811
    report = look(
        write(tmp_path / "placement.ipynb", *PLACED), "run",
        {"on": TOWER, "do": "hover", "see": "from other devices", "shot": "lit"},
        {"on": TOWER, "do": "click", "see": "tower0 is open.", "shot": "open"},
        {"on": '.box-of[aria-label*="product = MatMul"]', "do": "click", "see": "product = MatMul", "shot": "card"},
        {"on": ".handle", "do": "press", "key": "Escape"},
        {"on": '.frame[aria-label^="tower0"] .handle', "do": "click", "at": [0.9, 0.5], "see": "tower0 is closed."},
        {"on": ".dtf-search", "do": "type", "by": "tower1/product"},
        {"on": ".dtf-search", "do": "press", "key": "Enter", "see": "1 of ", "shot": "found"},
        {"on": '.box-of[tabindex="0"]', "do": "focus"},
        {"on": '.box-of[tabindex="0"]', "do": "press", "key": "ArrowUp", "shot": "keys"},
        {"on": '.box-of[tabindex="0"]', "do": "press", "key": "c", "see": "5 boxes of 40 ops."},
        {"on": '.box-of[tabindex="0"]', "do": "press", "key": "o", "see": " boxes of 40 ops. No more fits into 1,400",
         "shot": "all"},
    )  # fmt: skip
    assert complaints(report) == []


TRAINED = [
    "import dtflab as tf",  # the first message of the page comes while the next cell runs
    """
cluster = tf.Cluster(ps=1, worker=2)


def work(client):
    with tf.device(tf.train.replica_device_setter(cluster=client.cluster_spec, worker_device=client.device)):
        w = tf.get_variable("w", [200], initializer=tf.ones_initializer(), use_resource=True)
        loss = tf.reduce_mean(tf.square(w))
        train = tf.train.GradientDescentOptimizer(0.02).minimize(loss)
    with tf.train.MonitoredTrainingSession(client.target, client.is_chief) as sess:
        while not client.should_stop():
            client.report(sess.run([loss, train])[0])
    return "ended"


print(cluster.run(work, watch=tf.viz.live("loss", steps=20_000)))""",
]
LINE = ".grown path[stroke]"


def test_curves_grow_while_the_cell_runs_and_the_button_ends_it(look, tmp_path):  # noqa: F811
    report = look(
        write(tmp_path / "trained.ipynb", *TRAINED), "start",
        {"on": LINE, "do": "change", "see": "updates/s", "shot": "growing"},
        {"on": '.dtf-button:text("Stop")', "do": "click", "see": "['ended', 'ended']"},
        {"on": ".grown", "do": "hover", "see": "worker:1", "shot": "read"},
    )  # fmt: skip
    assert complaints(report) == []
    (label,) = [svg["label"] for svg in report["themes"]["light"]["svgs"]]
    assert "stopped. worker:0: loss" in label


def small_race(path, seconds=0.2):
    """The demo of the race with four places of its sliders and that much virtual time."""
    notebook = nbformat.read(ROOT / "notebooks" / "demos" / "race.ipynb", as_version=4)
    *cells, sliders = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    assert sliders.startswith("explore(") and any("SECONDS = 1.5" in cell for cell in cells)
    few = """explore(
        race, workers=Slider([2, 3], 2, "More of them."), spares=Slider([0, 1], 1, "Thrown away.", "to spare"),
        stragglers=Slider([0.3], 0.3, "How much steps vary."), network=Slider(["100Mb/s"], "100Mb/s", "The wire."))"""
    return write(path, *(cell.replace("SECONDS = 1.5", f"SECONDS = {seconds}") for cell in cells), few)


def test_a_race_says_what_it_computes_while_its_curves_grow(look, tmp_path):  # noqa: F811
    report = look(
        small_race(tmp_path / "race_at_work.ipynb", seconds=1000.0), "start",
        {"on": ".dtf-picture", "do": "hover", "see": "async races until 1000.0 s (1 of 3)", "shot": "begins"},
        {"on": LINE, "do": "change", "shot": "growing"},
        {"on": '.dtf-button:text("Stop")', "do": "click", "see": "loss, 2 workers"},
    )  # fmt: skip
    assert complaints(report) == []


REPLAYED = [
    """
import dtflab as tf
%load_ext dtflab
cluster = tf.Cluster(ps=1, worker=3, clock="virtual", gpu="K40", network="1Gb/s")

def work(client):
    with tf.device("/job:ps/task:0"):
        w = tf.get_variable("w", [200, 100], initializer=tf.zeros_initializer())
        done = tf.FIFOQueue(20, tf.float32, shared_name="done")
    with tf.device(f"{client.device}/gpu:0"):
        x = tf.ones([300, 200])
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w, name="ahead/MatMul_1") - 1.0), name="loss")
    with tf.device("/job:ps/task:0"):
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    with tf.Session(client.target) as sess:
        sess.run(w.initializer) if client.is_chief else tf.sim.sleep(0.002)
        for _ in range(3):
            sess.run([train, done.enqueue(1.0)])""",
    "%dtf_replay work",
]
CHOICES = ".dtf-search[aria-label^='Another choice']"
SCRUB, FORK = ".dtf-scrub", 'button:has-text("Fork here")'


def test_a_run_is_stepped_through_and_forked(look, tmp_path):  # noqa: F811
    report = look(
        write(tmp_path / "replay.ipynb", *REPLAYED), "run",
        {"on": SCRUB, "do": "press", "key": "Home", "see": "W S: zoom"},
        {"on": f"{CHOICES} option", "do": "texts"},
        {"on": SCRUB, "do": "click", "at": [0.5, 0.5], "shot": "middle"},
        {"on": ".dtf-drawing", "do": "press", "key": "ArrowRight", "shot": "next"},
        {"on": SCRUB, "do": "focus"},
        {"on": SCRUB, "do": "press", "key": "Home", "see": "Moment 0 of"},
        {"on": SCRUB, "do": "press", "key": "ArrowRight", "see": "Moment 1 of"},
        {"on": SCRUB, "do": "press", "key": "ArrowLeft", "see": "Moment 0 of"},
        *[{"on": SCRUB, "do": "press", "key": "ArrowRight"}] * 18,
        {"on": SCRUB, "do": "focus", "see": "runs ahead/MatMul_1 "},  # ahead/MatMul_1_grad/MatMul_1 is another one
        {"on": SCRUB, "do": "click", "at": [0.5, 0.5]},
        {"on": f"{CHOICES} option", "do": "texts"},
        {"on": CHOICES, "do": "focus"},
        *[{"on": CHOICES, "do": "press", "key": "l"}] * 4,  # the fourth that begins so
        {"on": FORK, "do": "click", "see": "is lost: ends at", "shot": "forked"},
        {"on": f"{CHOICES} option:checked", "do": "texts"},
        {"on": SCRUB, "do": "press", "key": "s", "shot": "wide"},
        {"on": 'button:has-text("Without the fork")', "do": "click", "see": "Original: ends at"},
        {"on": SCRUB, "do": "focus"},
        {"on": SCRUB, "do": "press", "key": "End", "see": "The run ends.", "shot": "end"},
    )  # fmt: skip
    assert complaints(report) == []
    offered, halfway, chosen = report["measured"]
    assert offered[0].startswith(("Run ", "Network of ")) and offered[-1] == "Kill worker:2", "the least drastic first"
    before, lost = ([each for each in words if each.startswith("Lose ")] for words in (offered, halfway))
    assert before and all(", which leaves at " in words for words in before), "nothing is on its way at first"
    assert lost[0].startswith("Lose w/read, ps:0 → worker:0, which leaves at ")
    assert lost[3].startswith("Lose RunGraph, worker:0 → ps:0, on its way since ")
    assert chosen == [lost[3].partition(", on")[0]], "a fork begins where it sets out, and keeps the choice"


KILLED = [
    """
import dtflab as tf
%load_ext dtflab
cluster = tf.Cluster(ps=1, worker=2, clock="virtual", gpu="K40")

def trains(client):
    with tf.device(tf.train.replica_device_setter(cluster=client.cluster_spec, worker_device=client.device)):
        w = tf.get_variable("w", [10], initializer=tf.zeros_initializer())
        step = tf.train.get_or_create_global_step()
        loss = tf.reduce_sum(tf.square(w - 1.0))
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    hooks = [tf.train.StopAtStepHook(last_step=10)]
    with tf.train.MonitoredTrainingSession(client.target, client.is_chief, hooks=hooks) as sess:
        while not sess.should_stop():
            sess.run(train)
            while ENDLESS and client.cluster.task("worker", 1).state != "running":
                tf.sim.sleep(1.0)""",
    "ENDLESS = False",
    "%dtf_replay trains",
]


def test_a_fork_that_kills_a_task_ends_or_is_cancelled(look, tmp_path):  # noqa: F811
    kill = (
        {"on": SCRUB, "do": "click", "at": [0.5, 0.5]},
        {"on": CHOICES, "do": "focus"},
        {"on": CHOICES, "do": "press", "key": "End"},
    )
    report = look(
        write(tmp_path / "killed.ipynb", *KILLED), "run", *kill,
        {"on": FORK, "do": "click", "see": "with DeadlockError", "shot": "ended"},
        {"on": f"{CHOICES} option:checked", "do": "texts"},
        {"on": 'button:has-text("Without the fork")', "do": "click", "see": "Original: ends at"},
        {"replace": "ENDLESS = False", "by": "ENDLESS = True"}, *kill,
        {"on": FORK, "do": "click", "see": "of virtual time so far.", "shot": "computed"},
        {"on": 'button:has-text("Cancel")', "do": "click", "see": "Cancelled: there is no fork.", "shot": "cancelled"},
        {"on": FORK, "do": "click", "see": "of virtual time so far."},
        {"on": 'button:has-text("Cancel")', "do": "focus"},
        {"on": 'button:has-text("Cancel")', "do": "press", "key": "Enter", "see": "Cancelled: there is no fork."},
    )  # fmt: skip
    assert complaints(report) == []
    assert report["measured"] == [["Kill worker:1"]], "a fork keeps the choice that it was made with"


PANEL = [
    "import dtflab as tf\n%load_ext dtflab\ncluster = %dtf_cluster --ps 1 --worker 2",
    """
with tf.device("/job:ps/task:0"):
    w = tf.get_variable("w", [300, 300], initializer=tf.ones_initializer())
with tf.device("/job:worker/task:1"):
    loss = tf.reduce_sum(tf.matmul(w, w))
sess = tf.Session(cluster.target)
sess.run(w.initializer)
try:
    while True:
        sess.run(loss)
except KeyboardInterrupt:
    print("interrupted")""",
    "print('later:', cluster.task('worker', 1).state)",
]
MEASURED = {"on": ".dtf-tasks th", "do": "measure"}
TASK = "table.dtf-tasks tbody tr:not(.dtf-notes)"


def test_a_panel_is_live_in_the_first_busy_cell_and_interrupts_it(look, tmp_path):  # noqa: F811
    report = look(
        write(tmp_path / "panel.ipynb", *PANEL), "start",
        {"on": ".dtf-tasks tr:nth-child(5) path", "do": "change", "see": "MB/s", "shot": "live"},
        {"on": ".dtf-tasks th:last-child", "do": "texts"},
        {"on": ".dtf-help", "do": "hover", "see": "Click a task: pause, stop, kill or restart it"},
        {"on": TASK, "nth": 2, "do": "click", "see": "Pause worker:1"},
        {"on": TASK, "nth": 2, "do": "press", "key": "ArrowUp", "see": "Pause worker:0", "shot": "chosen"},
        MEASURED,
        {"on": ".dtf-button", "nth": 0, "do": "click", "see": "later: running"},
        {"on": TASK, "nth": 2, "do": "click", "see": "The cell was interrupted."},
        {"on": ".dtf-acts button:visible", "nth": 0, "do": "click", "see": "worker:1: paused.", "shot": "paused"},
        MEASURED,
        {"on": ".dtf-acts button:visible", "nth": 2, "do": "click", "see": "worker:1: killed.", "shot": "killed"},
        MEASURED,
        {"width": 1920, "shot": "1920"},
        MEASURED,
        {"width": 1280, "shot": "1280"},
        {"on": ".dtf-acts button:visible", "nth": 0, "do": "click", "see": "3 of 3 tasks run."},
    )  # fmt: skip
    assert complaints(report) == []
    heading, busy, *later = report["measured"]
    assert heading == ["variables, GPU memory"], "what the cells below count"
    assert len(busy) == 7 and all(columns == busy for columns in later), "columns stay where they are"
    assert "Stop all" in report["themes"]["light"]["buttons"]
    assert report["themes"]["light"]["stdout"] == ["interrupted\n", "later: running\n"]


CROSSWISE = """
def crosswise(client):
    with tf.device("/job:ps/task:0"):
        queues = [tf.FIFOQueue(1, [tf.float32], [[]], shared_name=name) for name in ("images", "labels")]
    take = queues[client.index].dequeue(name="take")
    put = queues[1 - client.index].enqueue(0.0, name="put")
    with tf.Session(client.target) as sess:
        sess.run(take)
        sess.run(put)
"""
DEADLOCK = [
    "import dtflab as tf\n%load_ext dtflab\ncluster = %dtf_cluster --ps 1 --worker 2",
    CROSSWISE,
    """
try:
    cluster.run(crosswise)
except KeyboardInterrupt:
    print("interrupted")""",
    "print('later')",
]


def test_a_deadlock_is_drawn_until_the_cell_is_interrupted(look, tmp_path):  # noqa: F811
    report = look(
        write(tmp_path / "hung.ipynb", *DEADLOCK), "start",
        {"on": ".dtf-tasks", "do": "hover", "see": "There is a circle of waits.", "shot": "circle"},
        {"on": ".dtf-button", "nth": 0, "do": "click", "see": "later"},
        {"on": ".dtf-tasks", "do": "hover", "see": "3 of 3 tasks run."},
    )  # fmt: skip
    assert complaints(report) == []


def test_two_hundred_workers_fold(look, tmp_path):  # noqa: F811
    cells = ["import dtflab as tf\n%load_ext dtflab\ncluster = %dtf_cluster --ps 2 --worker 200", "print('waiting')"]
    report = look(
        write(tmp_path / "many.ipynb", *cells), "run",
        {"on": TASK, "nth": 2, "do": "click", "see": "worker:0–199", "shot": "folded"},
        {"on": TASK, "nth": 2, "do": "press", "key": "Enter", "see": "worker:199", "shot": "open"},
        {"on": ".dtf-tasks, .dtf-drawing:has(.dtf-tasks)", "do": "measure"},
        {"on": TASK, "nth": 2, "do": "press", "key": "Enter", "see": "202 of 202 tasks run."},
    )  # fmt: skip
    assert complaints(report) == []
    ((output, table),) = report["measured"]
    assert table[2] <= output[2], "the last column ends within the output of a window of 1,280 pixels"
    assert output[3] < 1400 * 0.8 < table[3], "those that are open scroll within a page"
