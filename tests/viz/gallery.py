"""Every picture of the product, from small real runs: `python -m tests.viz.gallery DIR` writes them in three looks.

Light and dark differ by the variables of the page that a picture stands on, the projector by its style.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import dtflab as tf
from dtflab import sim, viz
from dtflab.base.events import CardEvent
from dtflab.machine.bfc_allocator import BFCAllocator, OutOfMemory
from dtflab.machine.memory import Buffer
from dtflab.machine.smi import CardState, HostState, Process, Smi
from dtflab.train.replicas.staleness_log import StalenessLog
from dtflab.viz.colouring import WAYS
from dtflab.viz.counters import counters
from tests.viz.training import PROGRAMS


class Maker(NamedTuple):
    """An op, as far as a buffer asks for it."""

    name: str


Draw = Callable[[], viz.Picture]
_DARK = (
    "body{background:#111}.dtf-picture,.dtf-page{color:#e6edf3;--jp-layout-color0:#111;"
    "--jp-content-font-color1:#e6edf3;--jp-content-font-color2:#9aa4af}"
)
_PAGE = '<!doctype html><meta charset="utf-8"><style>body{{font-family:sans-serif;margin:8px}}{}</style>{}'


@contextlib.contextmanager
def drawings(clock: str = "real") -> Iterator[dict[str, Draw]]:
    """A way to draw each picture again, by its name; what was run is closed at the end.

    With the virtual clock all times are the same in each run.
    """
    with contextlib.ExitStack() as stack:
        found: dict[str, Draw] = {}
        first = _deadlock, _queues, _training, _cluster, _on_gpus, _shared_card, _full
        for scene in (*first, _steps, _what_ifs, _searches, _replays, _logs):
            with tf.Graph().as_default():
                found |= scene(stack, clock)
        yield found


def _session(*target: str, **options: Any) -> contextlib.closing[tf.Session]:
    """A session that is closed at the end, and no default until then."""
    return contextlib.closing(tf.Session(*target, **options))


def _training(stack: contextlib.ExitStack, clock: str) -> dict[str, Draw]:
    """Programs of one device, placed and traced."""
    found: dict[str, Draw] = {}
    for program, build in PROGRAMS.items():
        with tf.Graph().as_default() as graph:
            build(tf)
            session = stack.enter_context(_session())
            found[f"placement_{program}"] = lambda g=graph, s=session: viz.placement(g, s, color_by="phase")
    with tf.Graph().as_default() as graph:
        PROGRAMS["dense"](tf)
        cluster = stack.enter_context(tf.Cluster(worker=1, clock=clock))
        session = stack.enter_context(_session(cluster.target))
        session.run(tf.global_variables_initializer())
        train = graph.get_operation_by_name("train")
        step = session.trace(train, {"x:0": np.ones([500, 4]), "labels:0": np.zeros(500, int)})
    for way in WAYS:
        found[f"placement_by_{way}"] = lambda way=way: viz.placement(train, session, color_by=way, step=step)
        found[f"timeline_by_{way}"] = lambda way=way: viz.timeline(step, color_by=way, graph=graph)
    return found


def _cluster(stack: contextlib.ExitStack, clock: str) -> dict[str, Draw]:
    """Two layers over a server and two workers, with their calls, variables and loads."""
    cluster = stack.enter_context(tf.Cluster(ps=2, worker=2, clock=clock))
    with tf.device("/job:ps/task:0"):
        w1 = tf.Variable(tf.ones([784, 300]), name="layer1/weights")
        b1 = tf.Variable(tf.zeros([300]), name="layer1/bias")
    with tf.device("/job:ps/task:1"):
        w2 = tf.Variable(tf.ones([300, 10]), name="layer2/weights")
    x = tf.placeholder(tf.float32, [None, 784], name="images")
    with tf.device("/job:worker/task:0"):
        hidden = tf.nn.relu(tf.matmul(x, w1) + b1, name="hidden")
    with tf.device("/job:worker/task:1"):
        loss = tf.reduce_mean(tf.square(tf.matmul(hidden, w2)), name="loss")
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
    session = stack.enter_context(_session(cluster.target))
    session.run(tf.global_variables_initializer())
    feed = {x: np.ones([200, 784])}
    with tf.watch() as seen:
        session.run(train, feed)
    step = session.trace(train, feed)
    ways = {
        "by size": {"/job:ps/task:0": 941_000, "/job:ps/task:1": 12_000, "/job:ps/task:2": 0},
        "in turn": {"/job:ps/task:0": 940_000, "/job:ps/task:1": 1_200, "/job:ps/task:2": 12_000},
    }
    found: dict[str, Draw] = {
        "cluster_placement": lambda: viz.placement(train, session),
        "cluster_variables": lambda: viz.variables(cluster),
        "cluster_wire": lambda: viz.wire(seen),
        "cluster_clients": lambda: viz.clients(seen),
        "cluster_machines": lambda: viz.machines(cluster, seen),
        "loads": lambda: viz.loads("Two ways to spread variables", ways),
    }
    with tf.chaos(cluster, slow="ps:1=3x", stop="worker:1=0.002s", partition="ps:0|worker:0=0.001s"):
        under_chaos = session.trace(train, feed)
    found["chaos_timeline"] = lambda: viz.timeline(under_chaos)
    for way in ("device", "job", "phase"):
        found[f"cluster_timeline_by_{way}"] = lambda way=way: viz.timeline(step, color_by=way, graph=loss.graph)
    return found


def _on_gpus(stack: contextlib.ExitStack, clock: str) -> dict[str, Draw]:
    """A training step on two simulated GPUs: its memory, who holds the cards, which kernels there are."""
    cluster = stack.enter_context(tf.Cluster(worker=1, gpus=2, clock=clock))
    with tf.device("/gpu:0"):
        x = tf.placeholder(tf.float32, [200, 784], name="images")
        weights = [tf.Variable(tf.ones([784, 784]) * 1e-3, name=f"layer{i}/weights") for i in range(3)]
        layer = x
        for i, each in enumerate(weights):
            layer = tf.nn.relu(tf.matmul(layer, each, name=f"layer{i}/product"), name=f"layer{i}/output")
    with tf.device("/gpu:1"):
        loss = tf.reduce_mean(tf.square(layer), name="loss")
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
    session = stack.enter_context(_session(cluster.target))
    session.run(tf.global_variables_initializer())
    step = session.trace(train, {x: np.ones([200, 784])})
    state = tf.smi()
    return {
        "memory": lambda: viz.memory(step, graph=loss.graph),
        "gpu_timeline": lambda: viz.timeline(step),
        "cards": lambda: viz.cards(state),
        "kernels": lambda: viz.kernels(loss, session),
    }


def _shared_card(stack: contextlib.ExitStack, clock: str) -> dict[str, Draw]:
    """Three programs that want 0.4 of a card each, as smi shows them: a run has other process numbers each time."""
    share, name, mib = 1677 << 20, "python program.py", 1 << 20
    events = [CardEvent(at, "laptop", 0, pid, name, "takes", 0, share) for pid, at in ((4711, 0.0), (4712, 0.5))]
    events.append(CardEvent(9.0, "laptop", 0, 4713, name, "refused", 0, 0, share, 730 * mib))
    card = CardState(0, "GRID K520", "0000:00:03.0", 125, 4095 * mib, 3365 * mib, 0.0)
    there = HostState("laptop", [card], [Process(0, pid, name, share, 0) for pid in (4711, 4712)])
    state = Smi([there], 10.0, [], events)
    return {"card_history": lambda: viz.card_history(state)}


def _full(stack: contextlib.ExitStack, clock: str) -> dict[str, Draw]:
    """An allocator whose free memory is in pieces that are too small."""
    allocator = BFCAllocator("GPU_0_bfc", 8 << 20, lambda nbytes: True)
    made = [Maker(name) for name in "abcd"]
    places = [allocator.allocate(2 << 20, Buffer(*[np.ones(1 << 19, np.float32)] * 2, one)) for one in made]
    for place in places[::2]:
        allocator.deallocate(place)
    error = tf.errors.ResourceExhaustedError(None, None, "full")
    try:
        allocator.allocate(3 << 20)
    except OutOfMemory as full:
        error.exhausted = full.exhausted
    return {"allocations": lambda: viz.memory(error)}


def _steps(stack: contextlib.ExitStack, clock: str) -> dict[str, Draw]:
    """A step that stands still after its second set of nodes."""
    x = tf.placeholder(tf.float32, [], name="x")
    with tf.device("/cpu:1"):
        y = tf.negative(tf.exp(x, name="grows") * 2.0, name="y")
    out = tf.cond(x > 0, lambda: tf.square(y, name="positive"), lambda: tf.sqrt(y, name="negative"))
    session = stack.enter_context(_session(config=tf.ConfigProto(device_count={"CPU": 2})))
    steps = stack.enter_context(contextlib.closing(session.step_through(out, {x: 1.0})))
    for _ in range(2):
        steps.next()
    nodes = steps.nodes
    return {
        "counters": lambda: counters(nodes),
        "counters of a wrong set": lambda: counters(nodes, marked=["x", "y"], meaning="your set differs here"),
    }


def _what_ifs(stack: contextlib.ExitStack, clock: str) -> dict[str, Draw]:
    """One step, asked about in virtual time; and an estimate of a training."""
    cluster = stack.enter_context(tf.Cluster(ps=1, worker=1, gpus=1, gpu="K40", clock="virtual"))
    with tf.device("/job:ps/task:0"):
        weights = tf.get_variable("weights", [500, 500])
    with tf.device("/job:worker/task:0/gpu:0"):
        x = tf.placeholder(tf.float32, [None, 500], name="x")
        loss = tf.reduce_mean(tf.square(tf.matmul(x, weights)))
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    question = sim.what_if([loss, train], cluster, batch=64)
    slower = [question.base, question.run(network="1Gb/s"), question.run(workers=4, gpu="V100")]
    nets = question.sweep(network=["1Gb/s", "10Gb/s", "100Gb/s"])
    found = sim.estimate("alexnet", sim.cluster_model(workers=4, ps_tasks=1), steps=20)
    return {
        "what_if": lambda: viz.what_if(slower),
        "sweep": lambda: viz.sweep(nets, "throughput", title="Throughput over the network").picture,
        "estimate": lambda: viz.estimate(found),
        "virtual_timeline": lambda: viz.timeline(question.base),
    }


def _searches(stack: contextlib.ExitStack, clock: str) -> dict[str, Draw]:
    """Three networks of other sizes, each on a GPU of its own, in virtual time."""
    cluster = stack.enter_context(tf.Cluster(worker=3, gpus=1, clock="virtual"))

    def train(client: Any) -> None:
        with tf.device(f"{client.device}/gpu:0"):
            size = 500 * (client.index + 1)
            product = tf.matmul(tf.ones([size, size]), tf.ones([size, size]))
        with tf.Session(client.target) as sess:
            for _ in range(4):
                sess.run(product.op)
                tf.sim.sleep(1e-3)

    cluster.run(train)
    log = cluster.log()
    return {"busy": lambda: viz.busy(log)}


def _replays(stack: contextlib.ExitStack, clock: str) -> dict[str, Draw]:
    """Two workers that add to one variable and put into one queue, in virtual time; one is killed in a fork."""

    def work(client: Any) -> None:
        with tf.device("/job:ps/task:0"):
            total = tf.get_variable("total", [100], initializer=tf.zeros_initializer())
            queue = tf.FIFOQueue(9, tf.float32, shared_name="done")
        with tf.device(client.device):
            part = tf.reduce_sum(tf.ones([100, 100]), axis=0, name="part")
        with tf.Session(client.target) as sess:
            sess.run(total.initializer) if client.is_chief else tf.sim.sleep(1e-4)
            for _ in range(3):
                sess.run([tf.assign_add(total, part).op, queue.enqueue(1.0)])

    cluster = stack.enter_context(tf.Cluster(ps=1, worker=2, clock="virtual"))
    run = viz.replay(work, cluster)
    half = run.run.end / 2
    return {
        "replay": lambda: viz.replay(work, cluster),
        "replay_fork": lambda: run.fork(half, kill="worker:1"),
    }


def _logs(stack: contextlib.ExitStack, clock: str) -> dict[str, Draw]:
    """The ages of gradients, and curves."""
    random = np.random.RandomState(0)
    rows = np.zeros([300, 6])
    rows[:, 0], rows[:, 1] = np.arange(300) % 3, 100
    rows[:, 2] = 100 + random.poisson(3, 300)
    rows[:, 3] = 1e9 + np.arange(300) * 0.1
    rows[:, 4] = rows[:, 2] < 108
    log = StalenessLog.of_rows(rows)
    rows[:, 0] = np.arange(300) % 16
    of_sixteen = StalenessLog.of_rows(rows)
    x = np.arange(1, 40)
    lines = {"synchronous": 2 / x, "asynchronous": 2.2 / x + 0.05, "with spares": 1.9 / x}
    with viz.live("loss", steps=120, show=False) as live:
        for step in range(39):
            for worker in range(3):
                live(2 / (step + worker + 1), worker, step, staleness=worker)
    return {
        "live": lambda: live.picture,
        "staleness": lambda: viz.staleness(log),
        "staleness_of_16": lambda: viz.staleness(of_sixteen),
        "curve": lambda: viz.curve(x, lines, "time (s)", "loss", title="Three ways to train").picture,
    }


def _deadlock(stack: contextlib.ExitStack, clock: str) -> dict[str, Draw]:
    """Two clients that wait for each other at two queues, as virtual time finds them."""
    cluster = stack.enter_context(tf.Cluster(ps=1, worker=2, clock="virtual"))

    def crosswise(client: Any) -> None:
        with tf.device("/job:ps/task:0"):
            queues = [tf.FIFOQueue(1, [tf.float32], [[]], shared_name=name) for name in ("images", "labels")]
        take = queues[client.index].dequeue(name="take")
        put = queues[1 - client.index].enqueue(0.0, name="put")
        with tf.Session(client.target) as sess:
            sess.run(take)
            sess.run(put)

    try:
        cluster.run(crosswise)
    except tf.errors.InternalError as error:
        found = error
    return {"waits": lambda: viz.waits(found)}


def _queues(stack: contextlib.ExitStack, clock: str) -> dict[str, Draw]:
    """A queue that is filled and emptied, watched."""
    queue = tf.FIFOQueue(3, [tf.float32], [[]], name="examples")
    put, take, size = queue.enqueue([1.0]), queue.dequeue(), queue.size()
    cluster = stack.enter_context(tf.Cluster(worker=1, clock=clock))
    session = stack.enter_context(_session(cluster.target))
    with tf.watch() as seen:
        for fetch in (put, put, take, put, put, take, size):
            session.run(fetch)
    return {
        "queues": lambda: viz.queues(seen),
        "queues_now": lambda: viz.queues_now(session),
        "rates": lambda: viz.rates(seen),
    }


# -- writing -------------------------------------------------------------------------------------------------


def page(drawn: viz.Picture, dark: bool) -> str:
    """A picture on a light or a dark page."""
    return _PAGE.format(_DARK if dark else "", drawn.html)


def main(folder: str) -> None:
    """Write `light`, `dark` and `projector` with an HTML page for each picture, and an index."""
    with drawings() as found:
        for kind in ("light", "dark", "projector"):
            viz.style("projector" if kind == "projector" else "default")
            target = Path(folder) / kind
            target.mkdir(parents=True, exist_ok=True)
            for name, draw in found.items():
                (target / f"{name}.html").write_text(page(draw(), kind == "dark"), encoding="utf-8")
    names = "".join(f"<li>{n}: {' '.join(_link(kind, n) for kind in ('light', 'dark', 'projector'))}" for n in found)
    (Path(folder) / "index.html").write_text(_PAGE.format("", f"<ul>{names}</ul>"), encoding="utf-8")


def _link(kind: str, name: str) -> str:
    return f'<a href="{kind}/{name}.html">{kind}</a>'


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tests.viz.gallery DIR")
    main(sys.argv[1])
