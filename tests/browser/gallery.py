"""Moving pictures of dtflab's live views, for docs/gallery.md: `python -m tests.browser.gallery [NAME ...]`.

Each scene is a notebook and what a person does in it. It is run, exported and driven in Chromium; its screenshots
become an animated WebP in docs/gallery/. A scene that needs a kernel is driven in a JupyterLab while its cells run. A
new view gets an entry in SCENES.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image

from dtflab.__main__ import main as dtflab
from tests.browser.lab import jupyter_lab
from tests.browser.test_browser import CHROMIUM, HERE, MISSING, write
from tests.browser.test_live import PANEL, PLACED, PLOT, TASK, TOWER, traced
from tests.browser.test_live_records import CALLED, STUCK, WIRE
from tests.browser.test_pages import STEPPED
from tests.house import ROOT

FOLDER = ROOT / "docs" / "gallery"
PAGE = ROOT / "docs" / "gallery.md"
WIDTH = 900
Step = dict[str, Any]


class Scene(NamedTuple):
    """A view: what is shown, how one gets it, and what is done to it."""

    title: str
    says: str
    how: str
    cells: Sequence[str]
    height: int
    steps: Sequence[Step]
    in_lab: bool = False


BUTTON = '[data-live="steps"] .dtf-button'
REPLAY = '[data-live="replay"] .dtf-button'
MEMORY = '.dtf-picture[data-live="memory"]'
SLIDER = ".dtf-knob input"
LEVELS, JOINED = '[data-live="still"] svg', "g[data-key]"
ACT = ".dtf-acts button:visible"
STOP = '.dtf-button:text("Stop")'
STEP = traced("""
for i in range(2):
    with tf.device(f"/job:worker/task:{i}/gpu:0"):
        x = tf.random_normal([3000, 400], name=f"x{i}")
        losses.append(tf.reduce_mean(tf.square(tf.matmul(x, w)), name=f"loss{i}"))
train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.add_n(losses), colocate_gradients_with_ops=True)""")
KEPT = [
    """
import dtflab as tf
cluster = tf.Cluster(worker=1, clock="virtual", gpus=1, gpu="K40", gpu_memory="512MiB")
with tf.device("/job:worker/task:0/gpu:0"):
    layer = tf.random_normal([4096, 1024], name="images")
    for i, units in enumerate((1024, 512, 256)):
        w = tf.get_variable(f"w{i}", [layer.shape[1], units])
        layer = tf.nn.relu(tf.matmul(layer, w, name=f"layer{i}"))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(layer, name="loss"))
sess = tf.Session(cluster.target)
sess.run(tf.global_variables_initializer())
step = sess.trace(train)""",
    "tf.viz.memory(step, graph=sess.graph)",
]
TRAINED = [
    """
import dtflab as tf
tf.logging.set_verbosity(tf.logging.WARN)
cluster = tf.Cluster(ps=1, worker=2)


def work(client):
    with tf.device(tf.train.replica_device_setter(cluster=client.cluster_spec, worker_device=client.device)):
        w = tf.get_variable("w", [64, 10], initializer=tf.zeros_initializer(), use_resource=True)
        images, labels = tf.placeholder(tf.float32, [32, 64]), tf.placeholder(tf.int64, [32])
        loss = tf.losses.sparse_softmax_cross_entropy(labels, tf.matmul(images, w))
        train = tf.train.GradientDescentOptimizer(0.005).minimize(loss)
    batches = tf.datasets.digits(seed=client.index).train
    with tf.train.MonitoredTrainingSession(client.target, client.is_chief) as sess:
        while not client.should_stop():
            x, y = batches.next_batch(32)
            client.report(sess.run([loss, train], {images: x, labels: y})[0])""",
    'cluster.run(work, watch=tf.viz.live("loss", steps=20_000))',
]
FILLED = [
    "import dtflab as tf\n%load_ext dtflab\ncluster = tf.Cluster(ps=1, worker=2)",
    "%dtf_queues cluster --live",
    """
def work(client):
    with tf.device("/job:ps/task:0"):
        batches = tf.FIFOQueue(10, [tf.float32], [[]], shared_name="batches", name="batches")
    step = batches.enqueue(0.0, name="put") if client.is_chief else batches.dequeue(name="take")
    with tf.Session(client.target) as sess:
        for i in range(40):
            tf.sim.sleep(0.15 if client.is_chief else 0.35 if i < 12 else 0.02)
            sess.run(step)

cluster.run(work)""",
]
WATCHED = [
    """
import dtflab as tf
cluster = tf.Cluster(ps=1, worker=2, clock="virtual")

def work(client):
    with tf.device("/job:ps/task:0"):
        queue = tf.FIFOQueue(4, [tf.float32], [[]], shared_name="numbers")
    put, take = queue.enqueue(0.0, name="put"), queue.dequeue(name="take")
    with tf.Session(client.target) as sess:
        for i in range(24):
            tf.sim.sleep(0.2 if client.is_chief is False else 1.0 if i % 8 == 7 else 0.1)
            sess.run(put if client.is_chief else take)

with tf.watch() as seen:
    cluster.run(work)
tf.viz.queues(seen)""",
    "tf.viz.clients(seen)",
]
SCENES = {
    "timeline": Scene(
        "Timeline", "Zoom, ask a gap why it is there, look for an op, add up a range.",
        "`%dtf_timeline train` or `tf.viz.timeline(step)`", STEP, 930,
        [
            {"on": PLOT, "do": "click", "at": [0.2, 0.745], "see": "Idle for", "rest": 2200},
            {"on": PLOT, "do": "press", "key": "Escape", "rest": 200},
            *({"on": PLOT, "do": "wheel", "by": -250, "at": [0.2, 0.3], "rest": 150} for _ in range(4)),
            {"on": PLOT, "do": "drag", "at": [0.7, 0.6], "to": [0.3, 0.6], "rest": 700},
            {"on": ".dtf-button", "do": "click", "rest": 500},
            {"on": PLOT, "do": "press", "key": "Escape", "rest": 200},
            {"on": PLOT, "do": "press", "key": "c", "see": "Critical path of ", "rest": 1400},
            {"on": PLOT, "do": "press", "key": "Escape", "rest": 200},
            {"on": PLOT, "do": "drag", "at": [0.1, 0.5], "to": [0.6, 0.5], "held": "Shift", "rest": 2200},
        ],
    ),
    "placement": Scene(
        "Placement", "Scopes open and close where they stand; pointing at a box lights where its tensors go.",
        "`%dtf_placement train` or `tf.viz.placement(train, sess)`", PLACED, 820,
        [
            {"on": TOWER, "do": "hover", "see": "from other devices", "rest": 1600},
            {"on": TOWER, "do": "click", "see": "tower0 is open.", "rest": 1200},
            {"on": '.box-of[aria-label*="product = MatMul"]', "do": "click", "see": "product = MatMul", "rest": 1800},
            {"on": ".dtf-search", "do": "type", "by": "gradients", "rest": 500},
            {"on": ".dtf-search", "do": "press", "key": "Enter", "rest": 1200},
            {"on": ".dtf-button", "nth": 1, "do": "click", "see": "boxes of 40 ops", "rest": 1200},
        ],
    ),
    "steps": Scene(
        "A step by hand", "Forward and back through the sets of ops that are ready at the same time.",
        "`%dtf_step loss` or `sess.step_through(loss)`", ["import dtflab as tf", *STEPPED], 680,
        [
            {"on": BUTTON, "do": "click", "rest": 900},
            *({"on": BUTTON, "nth": 2, "do": "click", "rest": 800} for _ in range(7)),
        ],
    ),
    "what_if": Scene(
        "What if?", "Sliders over a simulated step, here in an exported page, without a kernel.",
        "[`demos/what_if.ipynb`](../notebooks/demos/what_if.ipynb), `dtflab export --run --html`", (), 470,
        [
            {"on": SLIDER, "nth": 1, "do": "focus", "rest": 300},
            *({"on": SLIDER, "nth": 1, "do": "press", "key": "ArrowRight", "rest": 900} for _ in range(2)),
            {"on": SLIDER, "do": "focus", "rest": 300},
            *({"on": SLIDER, "do": "press", "key": "ArrowRight", "rest": 900} for _ in range(3)),
            {"on": SLIDER, "nth": 2, "do": "focus", "rest": 300},
            *({"on": SLIDER, "nth": 2, "do": "press", "key": "ArrowRight", "rest": 900} for _ in range(4)),
        ],
    ),
    "replay": Scene(
        "Replay", "A run in virtual time, moment by moment: what every device, link and queue does then.",
        "`%dtf_replay train` or `tf.viz.replay(train, sess)`", [STEP[0], "tf.viz.replay(train, sess)"], 660,
        [
            {"on": REPLAY, "do": "click", "rest": 900},
            *({"on": REPLAY, "nth": 2, "do": "click", "rest": 450} for _ in range(12)),
            {"on": ".dtf-scrub", "do": "focus", "rest": 200},
            *({"on": ".dtf-scrub", "do": "press", "key": "ArrowRight", "rest": 250} for _ in range(12)),
        ],
    ),
    "memory": Scene(
        "Memory", "What a device holds over time, whose each block is, and the way to an out-of-memory error.",
        "`%dtf_memory train`, `tf.viz.memory(step)`, `tf.viz.memory(error)`", KEPT, 500,
        [
            {"on": f"{MEMORY} .entry", "do": "hover", "see": "= Mul", "rest": 1500},
            {"on": f"{MEMORY} .entry", "nth": 1, "do": "hover", "see": "= Relu", "rest": 1500},
            {"on": f"{MEMORY} svg", "do": "drag", "at": [0.14, 0.6], "to": [0.4, 0.6], "see": "GPU:0 holds"},
            {"on": MEMORY, "do": "focus", "rest": 500},
            *({"on": MEMORY, "do": "press", "key": "ArrowRight", "rest": 500} for _ in range(5)),
            {"on": MEMORY, "do": "focus", "rest": 100},
            {"on": MEMORY, "do": "press", "key": "p", "see": "KiB from before the step", "rest": 1500},
        ],
    ),
    "wire": Scene(
        "Calls", "Messages travel between client, master and workers as a slider moves.",
        "`%dtf_wire train` or `tf.viz.wire(seen)`", CALLED, 470,
        [
            {"on": f"{WIRE} .dtf-button", "do": "click", "rest": 700},
            *({"on": f"{WIRE} .dtf-button", "nth": 2, "do": "click", "rest": 800} for _ in range(8)),
        ],
    ),
    "panel": Scene(
        "The cluster's panel", "It changes while a cell runs: pause a task, let it go on, interrupt the cell.",
        "`%dtf_cluster --ps 1 --worker 2`", PANEL[:2], 640,
        [
            *({"on": ".dtf-tasks", "do": "hover", "at": [0.7, 0.95], "see": "MB/s", "rest": 300} for _ in range(9)),
            {"on": TASK, "nth": 2, "do": "click", "see": "Pause worker:1", "rest": 700},
            {"on": ACT, "do": "click", "see": "worker:1: paused.", "rest": 300},
            *({"on": ACT, "do": "hover", "rest": 300} for _ in range(8)),
            {"on": ACT, "do": "click", "rest": 300},
            *({"on": ACT, "do": "hover", "rest": 300} for _ in range(8)),
            {"on": ".dtf-button", "do": "click", "see": "The cell was interrupted.", "rest": 2000},
        ],
        in_lab=True,
    ),
    "live": Scene(
        "Training, live", "Curves grow while the cell runs, with the cluster's rate; a button ends it.",
        "`cluster.run(work, watch=tf.viz.live(\"loss\", steps=20_000))`", TRAINED, 560,
        [
            *({"on": STOP, "do": "hover", "rest": 300} for _ in range(16)),
            {"on": STOP, "do": "click", "see": "stopped", "rest": 1200},
            {"on": ".grown", "do": "hover", "see": "worker:1", "rest": 1800},
        ],
        in_lab=True,
    ),
    "queues": Scene(
        "Queues, live", "A queue fills, its producer waits; then it is emptied, and its consumer waits.",
        "`%dtf_queues --live`, and `%dtf_smi --live` for the cards' memory", FILLED, 620,
        [{"on": '.dtf-picture[data-live="redrawn"]', "do": "hover", "at": [0.9, 0.9], "rest": 300} for _ in range(24)],
        in_lab=True,
    ),
    "values": Scene(
        "Values at the pointer", "A plot says what holds there: a queue's level, who waits. A client shows its lines.",
        "`%dtf_queues seen`, `tf.viz.clients(seen)`, `tf.viz.curve`, `tf.viz.busy`, `tf.viz.staleness`", WATCHED, 620,
        [
            *({"on": LEVELS, "do": "hover", "at": [0.3 + i / 40, 0.6], "rest": 250} for i in range(20)),
            *({"on": JOINED, "nth": i, "do": "hover", "rest": 1300} for i in (1, 2, 0)),
        ],
    ),
    "deadlock": Scene(
        "A deadlock", "Two clients that wait for each other are a circle of arrows.",
        "`%dtf_queues` or `tf.viz.waits(cluster)`", STUCK, 450, (),
    ),
}  # fmt: skip


def record(name: str, scene: Scene) -> Path:
    """Run and drive a scene; its moving picture, or its still if nothing is done, is in docs/gallery/."""
    with (
        tempfile.TemporaryDirectory() as place,
        (_lab if scene.in_lab else _page_of)(Path(place), name, scene) as where,
    ):
        shots = Path(place) / "shots"
        shots.mkdir()
        command = [
            "node",
            HERE / "record.mjs",
            where,
            shots,
            str(WIDTH + 60 * scene.in_lab),
            str(scene.height),
            json.dumps(scene.steps),
        ]
        environment = os.environ | {"CHROMIUM": str(CHROMIUM)}
        done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, timeout=600)
        return _moving([*sorted(shots.glob("*.png"))], json.loads(done.stdout), FOLDER / f"{name}.webp")


@contextlib.contextmanager
def _lab(folder: Path, name: str, scene: Scene) -> Iterator[str]:
    """The address of the scene's notebook in a JupyterLab that shows nothing else."""
    notebooks, work = folder / "notebooks", folder / "work"
    notebooks.mkdir()
    write(notebooks / f"{name}.ipynb", *scene.cells)
    with jupyter_lab(notebooks, work) as lab:
        yield f"{lab.url.replace('/lab/', '/doc/')}{name}.ipynb?token={lab.token}&reset"


@contextlib.contextmanager
def _page_of(folder: Path, name: str, scene: Scene) -> Iterator[Path]:
    """The scene's notebook, run and exported."""
    notebook = folder / f"{name}.ipynb"
    if scene.cells:
        write(notebook, *scene.cells)
    else:
        shutil.copy(ROOT / "notebooks" / "demos" / notebook.name, notebook)
    with contextlib.suppress(SystemExit):
        dtflab(["export", "--html", str(notebook), "--run"])
    yield notebook.with_suffix(".html")


def _moving(shots: Sequence[Path], milliseconds: Sequence[int], path: Path) -> Path:
    first, *others = [Image.open(shot).convert("RGB") for shot in shots]
    path.parent.mkdir(exist_ok=True)
    # Screens are flat and repeat: without loss they are smaller than with, and nothing of a frame is left in the next.
    options = {"duration": [*milliseconds], "loop": 0, "lossless": True, "method": 6, "minimize_size": True}
    first.save(path, save_all=True, append_images=others, **options)
    return path


def page() -> str:
    """The text of docs/gallery.md."""
    parts = [_HEAD]
    for name, scene in SCENES.items():
        parts.append(
            f"## {scene.title}\n{scene.says}\n\n{scene.how}\n\n![{scene.title}: {scene.says}](gallery/{name}.webp)\n"
        )
    return "\n".join(parts)


_HEAD = """# Gallery

The live views, each driven in a browser by `python -m tests.browser.gallery`, which also writes this page. All of them
work with keys alone, in light and dark, in JupyterLab 4 and Notebook 7; and in pages of `dtflab export --html`, but for
the cluster's panel, training and queues that are live, which need a kernel.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="Record the moving pictures of docs/gallery.md")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these scenes, for example timeline")
    args = parser.parse_args()
    if unknown := {*args.names} - {*SCENES}:
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(SCENES)}")
    if MISSING:
        parser.error(f"missing: {', '.join(MISSING)}")
    for name, scene in SCENES.items():
        if not args.names or name in args.names:
            path = record(name, scene)
            print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1e3:.0f} kB", flush=True)
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
