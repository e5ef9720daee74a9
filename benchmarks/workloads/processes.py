"""Steps that cross from one process to another: a client and its server, two workers, a parameter server.

The floor of each row is a bare socket between two Python processes with the same bytes, and NumPy for what is computed.
Rule: a measurement is the median of its calls, as what waits for other processes has no best case worth the name.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import threadpoolctl

from benchmarks.bare_wire import Wire
from benchmarks.servers import ServerProcess, free_cluster, seconds_together, set_up, started
from benchmarks.workloads.starting import step_on_all
from benchmarks.workloads.steps import scalar_add
from benchmarks.workloads.training import SMALL, examples, perceptron, perceptron_by_hand
from benchmarks.workloads.workload import KEPT, Measure, Row, median, workload

_CALL = 150  # bytes of a RunStep with a scalar, and of its answer


def _server(module: str) -> str:
    """The target of a server in another process."""
    spec = free_cluster(local=1)
    KEPT.append(started(module, spec))
    return spec["local"][0]


def _bare_call() -> Measure:
    wire = Wire(_server(""))
    return lambda: [1e6 * median(lambda: wire.round_trip(_CALL, _CALL), 1000)]


@workload("scalar-process", {"scalar add on a server in another process": Row("µs", 0.5)}, bare=_bare_call)
def scalar_other_process(tf: Any) -> Measure:
    step = scalar_add(tf, f"grpc://{_server(tf.__name__)}")
    return lambda: [1e6 * median(step, 1000)]


# ---- a tensor from one worker to another --------------------------------------------------------------------

_SIZES = {"4 KB": (1 << 12, 300), "1 MB": (1 << 20, 100), "64 MB": (1 << 26, 10)}  # bytes, calls to measure
_CROSSING_ROWS = {
    **{f"tensor from worker 0 to worker 1, {size}": Row("ms", 0.5) for size in _SIZES},
    **{f"the same without the crossing, {size}": Row("ms", {"64 MB": 1.0}.get(size, 0.6)) for size in _SIZES},
}


def _bare_crossing() -> Measure:
    """The client calls worker 0, which adds; then the sum goes to worker 1."""
    client, workers = Wire(_server("")), Wire(_server(""))

    def seconds(size: int, calls: int, crosses: bool) -> float:
        variable = np.arange(1, size // 4 + 1, dtype=np.float32)
        total = np.empty_like(variable)

        def step() -> None:
            client.round_trip(_CALL, _CALL)
            np.add(variable, 1, out=total)
            if crosses:
                workers.round_trip(_CALL, size)

        return median(step, calls)

    return lambda: [1e3 * seconds(*one, crosses) for crosses in (True, False) for one in _SIZES.values()]


@workload("crossing", _CROSSING_ROWS, bare=_bare_crossing)
def crossing(tf: Any) -> Measure:
    """Worker 0 adds 1 to a variable, and worker 1 (or worker 0) takes the sum; nothing goes back to the client."""
    spec = free_cluster(worker=2)
    KEPT.append(started(tf.__name__, spec))
    workers = ["/job:worker/task:0", "/job:worker/task:1"]
    with tf.Graph().as_default():
        taken = []
        for size, _ in _SIZES.values():
            with tf.device(workers[0]):
                total = tf.Variable(tf.range(1, size // 4 + 1, dtype=tf.float32)) + 1.0
            for worker in reversed(workers):
                with tf.device(worker):
                    taken.append(tf.identity(total))
        session = tf.Session(f"grpc://{spec['worker'][0]}")
        session.run(tf.global_variables_initializer())
        for tensor, (size, _) in zip(taken[::2], _SIZES.values(), strict=True):
            with tf.device(workers[1]):
                assert session.run(tensor[-1]) == np.float32(size // 4) + 1
    steps = [(tensor.op, calls) for i in (0, 1) for tensor, (_, calls) in zip(taken[i::2], _SIZES.values())]
    return lambda: [1e3 * median(lambda op=op: session.run(op), calls) for op, calls in steps]


# ---- a parameter server -------------------------------------------------------------------------------------

_PS_ROWS = {
    "MLP 784-100-10, batch 100, 1 ps + 2 workers as processes": Row("steps/s", 2),
    "same, SyncReplicasOptimizer": Row("steps/s", 2),
}
_STEPS = 40  # of each worker, in a batch


def asynchronous(tf: Any, spec: dict[str, list[str]], target: str, index: int, in_step: bool = False) -> Callable:
    """A worker's program: a step on its own server, with the variables on the ps."""
    hooks = []
    with (
        tf.Graph().as_default(),
        tf.device(tf.train.replica_device_setter(cluster=spec, worker_device=f"/job:worker/task:{index}")),
    ):
        step = tf.train.get_or_create_global_step()
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        if in_step:
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, len(spec["worker"]))
        x, labels, train = perceptron(tf, SMALL, optimizer, step)
        if in_step:  # with tokens from the start, the second step's gradients would come too late
            hooks.append(optimizer.make_session_run_hook(index == 0, num_tokens=0))
        session = tf.train.MonitoredTrainingSession(target, index == 0, hooks=hooks)
    feed = dict(zip((x, labels), examples(SMALL[0], 100), strict=True))
    return lambda: session.run(train, feed)


def synchronous(tf: Any, spec: dict[str, list[str]], target: str, index: int) -> Callable[[], Any]:
    """A worker's program that takes its steps together with the other workers."""
    return asynchronous(tf, spec, target, index, in_step=True)


def bare_worker(_: Any, spec: dict[str, list[str]], target: str, index: int) -> Callable[[], Any]:
    """The four variables come, the step is computed by NumPy, the four gradients go."""
    threadpoolctl.threadpool_limits(1)  # two workers and a ps need the cores that there are
    ps, compute = Wire(spec["ps"][0]), perceptron_by_hand(SMALL, 100)
    size = sum(4 * (rows + 1) * columns for rows, columns in itertools.pairwise(SMALL))

    def step() -> None:
        ps.round_trip(_CALL, size)
        compute()
        ps.round_trip(size, _CALL)

    return step


def _bare_training() -> Measure:
    workers = started("", free_cluster(ps=1, worker=2), bare_worker)[1:]
    set_up(workers)

    def measure() -> list[float]:
        rate = 2 * _STEPS / median(lambda: seconds_together(workers, _STEPS), 5)
        return [rate, rate / 2]  # in step, a step takes the gradients of both workers

    return measure


@workload("ps-processes", _PS_ROWS, bare=_bare_training)
def ps_processes(tf: Any) -> Measure:
    pairs = []
    for program in (asynchronous, synchronous):
        spec = free_cluster(ps=1, worker=2)
        _, *workers = processes = started(tf.__name__, spec, program)
        KEPT.append(processes)
        set_up(workers)
        seconds_together(workers, 5)
        counted = _value_on_ps(tf, spec, "global_step")
        assert counted == 5 if program is synchronous else 5 <= counted <= 10, counted  # without a lock, some get lost
        pairs.append((workers, _STEPS if program is synchronous else 2 * _STEPS))
    return lambda: [
        steps / median(lambda workers=workers: seconds_together(workers, _STEPS), 5) for workers, steps in pairs
    ]


def _value_on_ps(tf: Any, spec: dict[str, list[str]], name: str) -> int:
    """The value of a variable that other sessions have made."""
    with tf.Graph().as_default(), tf.device("/job:ps/task:0"), tf.Session(f"grpc://{spec['ps'][0]}") as session:
        return int(session.run(tf.get_variable(name, [], tf.int64, trainable=False)))


_COUNTER_ROWS = {"shared counter, two client processes, increments": Row("/s", 2)}


def counting(tf: Any, spec: dict[str, list[str]], target: str, index: int) -> Callable[[], Any]:
    """A client's program: count one up."""
    with tf.Graph().as_default(), tf.device("/job:ps/task:0"):
        counter = tf.get_variable("counter", [], tf.int64, tf.zeros_initializer(), trainable=False)
        session = tf.Session(target)
        if index == 0:
            session.run(counter.initializer)
        count = counter.assign_add(1, use_locking=True)
    return lambda: session.run(count)


def bare_counting(_: Any, spec: dict[str, list[str]], target: str, index: int) -> Callable[[], Any]:
    """A round trip, as an increment needs one."""
    wire = Wire(target)
    return lambda: wire.round_trip(_CALL, _CALL)


def _clients(module: str, spec: dict[str, list[str]], program: Callable) -> list[ServerProcess]:
    KEPT.append(started(module, spec))
    clients = [ServerProcess(module, spec, "", index, program) for index in (0, 1)]
    for client in clients:
        client.wait()
    set_up(clients)
    return clients


def _bare_counter() -> Measure:
    clients = _clients("", free_cluster(ps=1), bare_counting)
    return lambda: [2000 / median(lambda: seconds_together(clients, 1000), 5)]


@workload("counter", _COUNTER_ROWS, bare=_bare_counter)
def shared_counter(tf: Any) -> Measure:
    spec = free_cluster(ps=1)
    clients = _clients(tf.__name__, spec, counting)
    seconds_together(clients, 20)
    assert _value_on_ps(tf, spec, "counter") == 40
    return lambda: [400 / median(lambda: seconds_together(clients, 200), 5)]


# ---- starting -----------------------------------------------------------------------------------------------

_START_ROWS = {"start of 3 processes until the first step on all": Row("s", 0.3)}


def _start(module: str, first_step: Callable[[dict[str, list[str]]], Any]) -> Measure:
    def measure() -> list[float]:
        spec = free_cluster(ps=1, worker=2)
        start = time.perf_counter()
        servers = started(module, spec)
        first_step(spec)
        seconds = time.perf_counter() - start
        for server in servers:
            server.stop()
        return [seconds]

    return measure


def _bare_start() -> Measure:
    """Interpreters that import NumPy, and a round trip to each."""
    return _start("", lambda spec: [Wire(address).round_trip(_CALL, _CALL) for job in spec for address in spec[job]])


@workload("start-processes", _START_ROWS, rounds=3, bare=_bare_start)
def start_processes(tf: Any) -> Measure:
    return _start(tf.__name__, lambda spec: step_on_all(tf, f"grpc://{spec['worker'][0]}", spec))
