"""One synchronous step as tasks of `hardware/schedule.py`, which knows no training, and as an estimate: equal."""

import numpy as np
import pytest

from dtflab.hardware.schedule import Task, simulate
from dtflab.sim.engine import messages, step_model
from dtflab.sim.engine.job import job
from dtflab.sim.engine.parameters import IDEAL
from tests.sim.networks import cluster, layered

SIZES = [400_000, 3_000_000, 50_000, 9_000_000, 1_200_000]


def tasks(ready, there, forward_s, backward_s):
    """Variables, each worker's layers forward and back, and one update for each gradient of each worker."""
    layers = range(len(ready.items.names))
    homes = [there.servers[server] for server in ready.items.server]
    for i in layers:
        yield Task(f"w{i}", homes[i], 0.0, outputs=[int(ready.items.pull_bytes[i])])
    for number, (device,) in enumerate(there.gpus):
        for i in layers:
            before = [f"{number}/f{i - 1}"] if i else []
            yield Task(f"{number}/f{i}", device, forward_s, [(f"w{i}", 0)], before)
        for i in reversed(layers):
            before = [f"{number}/b{i + 1}"] if i + 1 in layers else [f"{number}/f{i}"]
            yield Task(f"{number}/b{i}", device, backward_s, (), before, [int(ready.items.push_bytes[i])])
    for i in layers:
        for number in range(len(there.gpus)):
            yield Task(f"{number}/update{i}", homes[i], 0.0, [(f"{number}/b{i}", 0)])


@pytest.mark.parametrize(
    "options",
    [
        {"workers": 1},
        {"workers": 6, "ps_tasks": 2},
        {"workers": 6, "ps_tasks": 3, "racks": 3},
        {"workers": 5, "ps_tasks": 5, "ps_colocated": True},
        {"workers": 4, "ps_tasks": 2, "workers_per_host": 2, "bus": "pcie3-tree"},
    ],
)
@pytest.mark.parametrize(("forward_s", "backward_s"), [(0.1, 0.2), (0.003, 0.004), (0.0001, 0.05)])
def test_a_step_takes_as_long(options, forward_s, backward_s):
    there = cluster(**{"bandwidth": 1e8, "latency_s": 3e-5, **options})
    ready = job(layered(SIZES, forward_s, backward_s), there, IDEAL)
    expected = simulate(list(tasks(ready, there, forward_s, backward_s)), there.machines)
    for engine in (step_model, messages):
        record = engine.synchronous(ready, np.ones((1, ready.devices)), ready.workers)
        assert record.steps[0] == pytest.approx(expected.makespan, rel=1e-9)
