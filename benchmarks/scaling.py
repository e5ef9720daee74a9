"""Prints how costs grow with size: more operations, more workers, more simulated GPUs.

python -m benchmarks.scaling [--largest N] [--write]

Graphs of 1,000 to 100,000 additions are built and run. A parameter server trains with 1 to 16 workers in this process,
then with 1 to 64 in virtual time. The simulator estimates 1 to 500 GPUs. `--largest` leaves out what is larger.
`--write` rewrites the section `scaling` of docs/measured.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import dtflab as tf
from benchmarks.__main__ import machine
from benchmarks.measured import Report, add_write, load
from dtflab.sim.engine.layer_costs import Kernel, LayerCost, VariableCost
from dtflab.sim.engine.network_profile import Profile

OPS = (1_000, 10_000, 100_000)
WORKERS = (1, 2, 3, 4, 8, 16)
VIRTUAL = (1, 2, 3, 8, 16, 64)
GPUS = (1, 2, 3, 8, 50, 100, 500)
STEPS = 20


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__.splitlines()[0])
    parser.add_argument("--largest", metavar="N", type=int, default=max(OPS), help="leave out what is larger")
    add_write(parser)
    options = parser.parse_args(arguments)
    report = Report("scaling")
    report.print(machine())
    for table in (graphs, workers, virtual_workers, estimates):
        for line in table(options.largest):
            report.print(line)
    report.print(f"\n{load()}")
    if options.write:
        report.write()


def graphs(largest: int) -> Iterator[str]:
    """Building a graph of independent additions, its first run, and one more."""
    yield _line("\nadditions in one graph", "build", "first run", "next run", "next, µs/op")
    for count in (count for count in OPS if count <= largest):
        with tf.Graph().as_default(), tf.Session() as session:
            one = tf.constant(1.0)
            built = _seconds(lambda n=count, x=one: tf.group(*(tf.add(x, x) for _ in range(n)), name="all"))
            first, later = (_seconds(lambda s=session: s.run("all")) for _ in range(2))
        yield _line(f"{count:,}", *(f"{value:.3f} s" for value in (built, first, later)), f"{1e6 * later / count:.2f}")


def workers(largest: int) -> Iterator[str]:
    """Asynchronous training of a small perceptron, every task in this process."""
    yield _line("\nworkers of one parameter server", "global steps/s", "÷ one worker")
    with tf.Cluster(ps=1, worker=1) as cluster:  # what loads on first use has loaded
        cluster.run(lambda client: _train(client, 1))
    alone = None
    for count in (count for count in WORKERS if count <= largest):
        with tf.Cluster(ps=1, worker=count) as cluster:
            rate = 300 * count / _seconds(lambda c=cluster: c.run(lambda client: _train(client, 300)))
        alone = alone or rate
        yield _line(str(count), f"{rate:,.0f}", f"{rate / alone:.2f}")


def virtual_workers(largest: int) -> Iterator[str]:
    """Print the table of virtual time, with a K40 each and 10 Gb/s: processor time of this machine per virtual step."""
    yield _line(f"\nworkers in virtual time, {STEPS} steps each", "virtual", "CPU", "CPU per step")
    for count in (count for count in VIRTUAL if count <= largest):
        started = time.process_time()
        with tf.Cluster(ps=1, worker=count, gpus=1, gpu="K40", network="10Gb/s", clock="virtual") as cluster:
            cluster.run(lambda client: _train(client, STEPS, "gpu"))
            passed = cluster.now()
        used = time.process_time() - started
        yield _line(str(count), f"{passed:.4f} s", f"{used:.2f} s", f"{1e3 * used / count / STEPS:.2f} ms")


def estimates(largest: int) -> Iterator[str]:
    """A network of 16 equal layers on 16 servers, synchronously, estimated by both engines."""
    yield _line("\nGPUs, 16 servers, 100 estimated steps", "a step", "vectorized", "by events")
    forward, backward = ((Kernel("MatMul", "float32", flops, 1),) for flops in (3e9, 6e9))
    layers = [LayerCost(f"{i}", forward, backward, variables=(VariableCost(f"w{i}", 1_500_000),)) for i in range(16)]
    network = Profile("16 layers", 32, tuple(layers))
    for count in (count for count in GPUS if count <= largest):
        model, steps, seconds = tf.sim.cluster_model(count, 16), [], []
        for engine in ("vectorized", "events"):
            started = time.process_time()
            steps.append(tf.sim.estimate(network, model, 100, "ps_sync", engine=engine).record.seconds / 100)
            seconds.append(time.process_time() - started)
        assert abs(steps[0] - steps[1]) <= 1e-9 * steps[1], steps
        yield _line(str(count), f"{1e3 * steps[0]:.2f} ms", *(f"{value:.3f} s" for value in seconds))


def _train(client: Any, steps: int, kind: str = "cpu") -> None:
    """Steps of a worker, after the chief has initialized the variables."""
    cpu, mine = "/job:ps/cpu:0", f"{client.device}/{kind}:0"
    setter = tf.train.replica_device_setter(cluster=client.cluster_spec, ps_device=cpu, worker_device=mine)
    with tf.device(setter):
        hidden = tf.layers.dense(tf.ones([32, 64]), 32, tf.nn.relu)
        loss = tf.reduce_mean(tf.square(tf.layers.dense(hidden, 10)))
        train = tf.train.GradientDescentOptimizer(1e-3).minimize(loss, tf.train.get_or_create_global_step())
    with tf.train.MonitoredTrainingSession(client.target, client.is_chief) as session:
        for _ in range(steps):
            session.run(train)


def _seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _line(name: str, *cells: str) -> str:
    start = "\n" * name.startswith("\n")
    return f"{start}{name.strip():<42}" + "".join(f"{cell:>16}" for cell in cells)


if __name__ == "__main__":
    main()
