"""Curves: how one cost grows with one size, written once for both libraries.

A curve is a function of the library's TF1 namespace and a size; it returns one value per line of the curve. Values are
per unit of work where there is one: a level line then means that the cost grows as the work does.
"""

from __future__ import annotations

import functools
import itertools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.servers import free_cluster, started
from benchmarks.workloads.steps import scalar_add
from benchmarks.workloads.training import ps_clients
from benchmarks.workloads.workload import KEPT, best, in_threads, median
from dtflab.sim.engine.layer_costs import Kernel, LayerCost, VariableCost
from dtflab.sim.engine.network_profile import Profile

Measure = Callable[[Any, int], Sequence[float]]


@dataclass(frozen=True)
class Curve:
    """A measurement in a sentence, its sizes, and its lines with the unit of their values."""

    name: str
    says: str
    size: str
    sizes: Sequence[int]
    unit: str
    lines: Sequence[str]
    measure: Measure
    in_tensorflow: float = math.inf  # the largest size that TensorFlow can run, or runs within a minute
    drawn: int = 0  # the first line of the picture; those before it are in the table only


CURVES: dict[str, Curve] = {}


def curve(
    name: str, says: str, size: str, sizes: Sequence[int], unit: str, *lines: str, **more: Any
) -> Callable[[Measure], Measure]:
    """Decorator: what follows measures the curve `name`."""

    def register(measure: Measure) -> Measure:
        CURVES[name] = Curve(name, says, size, sizes, unit, lines, measure, **more)
        return measure

    return register


# ---- larger graphs ------------------------------------------------------------------------------------------


@curve(
    "ops",
    "Scalar additions in one graph, half of them a chain, half of them independent and added up at the end: time to "
    "build them, for the first run of all, and for a further run of each half.",
    "additions", (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000), "µs per addition",
    "build", "first run", "chain", "independent", in_tensorflow=10_000, drawn=2,
)  # fmt: skip
def ops(tf: Any, count: int) -> list[float]:
    half = count // 2
    with tf.Graph().as_default(), tf.Session() as session:
        times = [time.perf_counter()]
        x = y = tf.placeholder(tf.float32, [])
        for _ in range(half):
            y = tf.add(y, x)
        total = tf.add_n([tf.add(x, float(i)) for i in range(half)])  # equal ones would be one for TensorFlow
        times.append(time.perf_counter())
        session.run([y, total], {x: 1.0})
        times.append(time.perf_counter())
        took = [(end - start) / count for start, end in itertools.pairwise(times)]
        turns = max(5, min(50, 100_000 // count))
        took += [best(lambda last=last: session.run(last, {x: 1.0}), 1, turns) / half for last in (y, total)]
    return [1e6 * seconds for seconds in took]


@curve(
    "growing",
    "A session's graph, of that many ops, grows by two; then the newer one runs for the first time.",
    "ops in the graph", (10, 100, 300, 1_000, 3_000, 10_000, 30_000), "ms per extension",
    "local", "server here", "server elsewhere", in_tensorflow=10_000,
)  # fmt: skip
def growing(tf: Any, count: int) -> list[float]:
    return [1e3 * _extension(tf, target, count) for target in ("", _server_here(tf), _server_elsewhere(tf))]


def _extension(tf: Any, target: str, count: int) -> float:
    with tf.Graph().as_default(), tf.Session(target) as session:
        x = tf.placeholder(tf.float32, [])
        for _ in range(count - 1):
            tf.add(x, x)

        def extend() -> None:
            session.run(tf.add(tf.add(x, x), x), {x: 1.0})

        extend()
        return best(extend, 1, 8)


@functools.cache
def _server_here(tf: Any) -> str:
    KEPT.append(tf.train.Server.create_local_server())
    return str(KEPT[-1].target)


@functools.cache
def _server_elsewhere(tf: Any) -> str:
    return _cluster_of_processes(tf, 1)


# ---- more tasks ---------------------------------------------------------------------------------------------


@curve(
    "tasks",
    "A step that adds up a random number from each of that many tasks, of a cluster of 64 tasks in one process.",
    "tasks", (1, 2, 3, 4, 7, 8, 16, 32, 64), "µs per task", "a step",
)  # fmt: skip
def tasks(tf: Any, count: int) -> list[float]:
    return [1e6 * _sum_over(tf, _cluster_here(tf, 64), count) / count]


@curve(
    "processes",
    "The same step, of a cluster of 8 tasks, each in a process of its own.",
    "processes", (1, 2, 3, 4, 5, 7, 8), "µs per task", "a step",
)  # fmt: skip
def processes(tf: Any, count: int) -> list[float]:
    return [1e6 * _sum_over(tf, _cluster_of_processes(tf, 8), count) / count]


@functools.cache
def _cluster_here(tf: Any, count: int) -> str:
    """The target of the first of that many servers in this process."""
    spec = free_cluster(worker=count)
    servers = [tf.train.Server(spec, job_name="worker", task_index=i) for i in range(count)]
    KEPT.append(servers)
    return str(servers[0].target)


@functools.cache
def _cluster_of_processes(tf: Any, count: int) -> str:
    """The target of the first of that many servers, each in a process of its own."""
    spec = free_cluster(worker=count)
    KEPT.append(started(tf.__name__, spec))
    return f"grpc://{spec['worker'][0]}"


def _on(tf: Any, task: int) -> Any:
    return tf.device(f"/job:worker/task:{task}")


def _sum_over(tf: Any, target: str, count: int) -> float:
    parts = []
    with tf.Graph().as_default():
        for i in range(count):
            with _on(tf, i):
                parts.append(tf.random_uniform([]))  # TensorFlow would fold constants together
        with _on(tf, 0):
            total = tf.add_n(parts).op
        with tf.Session(target) as session:
            session.run(total)
            return median(lambda: session.run(total), 50)


@curve(
    "tensor",
    "A step that makes a tensor of that many KiB and hands it to another op: on the same task, on another task of "
    "this process, in another process.",
    "KiB", (1, 10, 64, 300, 1_024, 7_000, 65_536), "MiB per second",
    "same task", "same process", "another process",
)  # fmt: skip
def tensor(tf: Any, size: int) -> list[float]:
    here, apart = _cluster_here(tf, 2), _cluster_of_processes(tf, 2)
    ways = ((here, 0), (here, 1), (apart, 1))
    return [size / 1024 / _crossing(tf, target, to, size * 256) for target, to in ways]


def _crossing(tf: Any, target: str, to: int, count: int) -> float:
    with tf.Graph().as_default():
        with _on(tf, 0):
            v = tf.Variable(tf.zeros([count]), name=f"v{count}")
            made = v + 1.0
        with _on(tf, to):
            used = tf.identity(made).op
        with tf.Session(target) as session:
            session.run(v.initializer)
            session.run(used)
            return median(lambda: session.run(used), max(9, min(200, 30_000_000 // count)))


# ---- more clients -------------------------------------------------------------------------------------------


@curve(
    "clients",
    "A scalar addition, fed and fetched, by that many sessions of one program at once, each on a thread of its own, on "
    "one server in another process.",
    "clients", (1, 2, 3, 4, 7, 8, 16, 32, 64), "steps per second", "all clients",
)  # fmt: skip
def clients(tf: Any, count: int) -> list[float]:
    turns = max(40, 200 // count)  # few would measure how threads start
    together = in_threads([scalar_add(tf, _server_elsewhere(tf)) for _ in range(count)], turns)
    return [count * turns / median(together, 9)]


@curve(
    "workers",
    "Asynchronous training of a perceptron 64-32-10, batch 32, by that many workers and a parameter server in one "
    "process.",
    "workers", (1, 2, 3, 4, 7, 8, 16), "global steps per second", "all workers",
)  # fmt: skip
def workers(tf: Any, count: int) -> list[float]:
    turns = max(20, 50 // count)
    together = in_threads(ps_clients(tf, count), turns)
    return [count * turns / median(together, 9)]


# ---- simulation, which only dtflab has ----------------------------------------------------------------------

_STEPS = 5


@curve(
    "virtual",
    "Such training in virtual time, with a K40 for each worker and 10 Gb/s: processor time of this machine until all "
    f"workers have run their first step, per worker, and for each of {_STEPS} further steps of a worker.",
    "workers", (10, 30, 100, 300, 1_000), "ms of CPU", "start", "step", in_tensorflow=0,
)  # fmt: skip
def virtual(tf: Any, count: int) -> list[float]:
    moments: list[float] = [time.process_time()]

    def client_program(client: Any) -> None:
        session, train = _virtual_client(tf, client)
        with session:
            session.run(train)
            moments.append(time.process_time())
            for _ in range(_STEPS):
                session.run(train)

    with tf.Cluster(ps=1, worker=count, gpus=1, gpu="K40", network="10Gb/s", clock="virtual") as cluster:
        cluster.run(client_program)
        moments.append(time.process_time())
    return [1e3 * (moments[-2] - moments[0]) / count, 1e3 * (moments[-1] - moments[-2]) / count / _STEPS]


def _virtual_client(tf: Any, client: Any) -> tuple[Any, Any]:
    """The session of a worker, and its training op."""
    mine = f"{client.device}/gpu:0"
    setter = tf.train.replica_device_setter(cluster=client.cluster_spec, ps_device="/job:ps/cpu:0", worker_device=mine)
    with tf.device(setter):
        hidden = tf.layers.dense(tf.ones([32, 64]), 32, tf.nn.relu)
        loss = tf.reduce_mean(tf.square(tf.layers.dense(hidden, 10)))
        train = tf.train.GradientDescentOptimizer(1e-3).minimize(loss, tf.train.get_or_create_global_step())
    return tf.train.MonitoredTrainingSession(client.target, client.is_chief), train


@curve(
    "estimates",
    "A network of 16 equal layers on 16 servers, synchronously: processor time to estimate 100 steps with each engine.",
    "GPUs", (1, 2, 3, 8, 50, 100, 500), "ms of CPU per GPU", "vectorized", "by events", in_tensorflow=0,
)  # fmt: skip
def estimates(tf: Any, count: int) -> list[float]:
    forward, backward = ((Kernel("MatMul", "float32", flops, 1),) for flops in (3e9, 6e9))
    layers = [LayerCost(f"{i}", forward, backward, variables=(VariableCost(f"w{i}", 1_500_000),)) for i in range(16)]
    network, model = Profile("16 layers", 32, tuple(layers)), tf.sim.cluster_model(count, 16)
    steps, used = [], []
    for engine in ("vectorized", "events"):
        started_at = time.process_time()
        steps.append(tf.sim.estimate(network, model, 100, "ps_sync", engine=engine).record.seconds)
        used.append(1e3 * (time.process_time() - started_at) / count)
    assert abs(steps[0] - steps[1]) <= 1e-9 * steps[1], steps
    return used
