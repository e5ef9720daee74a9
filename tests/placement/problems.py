"""Random problems for a placer, small enough to try everything."""

from __future__ import annotations

import itertools
import random

from dtflab.hardware.machines import machines_for
from dtflab.hardware.schedule import Fabric, Task
from dtflab.placement.problem import Problem, Verdict

TASK = "/job:worker/replica:0/task:0"
MACHINES = machines_for({TASK: "host"}, gpus=2, gpu="K40", bus="pcie3")
DEVICES = [f"{TASK}/device:{name}" for name in ("GPU:0", "GPU:1", "CPU:0")]
BUS = 12e9  # bytes per second, about


def random_problem(seed: int, count: int, sent: float | None = None, devices: int = 3) -> Problem:
    """`count` ops of some 1 ms on a GPU, up to eight times as long on a CPU; transfers take `sent` times as long."""
    rng = random.Random(seed)
    sent = rng.choice([0.1, 0.5, 1.0, 3.0]) if sent is None else sent
    tasks = []
    for i in range(count):
        inputs = [(f"t{j}", 0) for j in sorted(rng.sample(range(i), min(i, rng.randrange(4))))]
        nbytes = int(rng.expovariate(1.0) * sent * 1e-3 * BUS)
        tasks.append(Task(f"t{i}", DEVICES[0], 0.0, inputs, outputs=(nbytes,)))
    gpu = [rng.expovariate(1.0) * 1e-3 for _ in tasks]
    cpu = [seconds * rng.uniform(1.0, 8.0) for seconds in gpu]
    candidates = [list(range(devices))] * count
    return Problem(tasks, Fabric(MACHINES, DEVICES[:devices]), [gpu, gpu, cpu][:devices], range(count), candidates)


def best_of_all(problem: Problem) -> Verdict:
    """The verdict on the best assignment, found by trying all; GPUs 0 and 1 are twins, so the first op is not on 1."""
    ways = itertools.product(*([d for d in c if i or d != 1] for i, c in enumerate(problem.candidates)))
    return min(problem.judge(way)[0] for way in ways)
