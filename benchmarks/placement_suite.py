"""A fixed suite of graphs for placers, with what people do by hand, and small graphs on which all can be tried.

The networks are those of Mirhoseini et al., "Device Placement Optimization with Reinforcement Learning" (2017):
Inception-v3, RNNLM, sequence to sequence with and without attention; and random layered graphs. Each case places one
training step on one host with four K40 and two CPUs, whose time the simulated schedule tells.

Rule: every placement has the same judge. By hand means layer by layer over the GPUs, a gradient next to its op, the
embedding on the first and the projection on the last of them; networks of images are left on one.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from dtflab.graph import dtypes
from dtflab.graph.node import Node, by_name
from dtflab.graph.operation import Operation, Tensor
from dtflab.hardware.machines import Machines, machines_for
from dtflab.hardware.schedule import Fabric, Task, simulate
from dtflab.hardware.workload import Workload
from dtflab.nets.layers.core import Dense
from dtflab.nets.rnn_cell import LSTMCell, MultiRNNCell
from dtflab.nets.rnn_cell_wrappers import DeviceWrapper
from dtflab.nets.static_rnn import static_rnn
from dtflab.ops.arrays.functions import placeholder, reshape, stack, unstack
from dtflab.ops.nn.cross_entropy import sparse_softmax_cross_entropy_with_logits
from dtflab.ops.nn.embedding import embedding_lookup
from dtflab.ops.reduce.functions import reduce_mean
from dtflab.ops.variables.get_variable import get_variable
from dtflab.placement.colocation_graph import ColocationGraph
from dtflab.placement.dynamic import best_assignment
from dtflab.placement.problem import Assignment, Problem, Verdict
from dtflab.placement.units import problem_of
from dtflab.runtime.placer import place
from dtflab.runtime.prune import prune
from dtflab.sim import models
from dtflab.sim.models.inception import inception_v3
from dtflab.sim.models.seq2seq import seq2seq
from dtflab.train.optimizers.gradient_descent import GradientDescentOptimizer

TASK = "/job:worker/replica:0/task:0"
STEPS = 8  # in time: fewer than in practice, and the graphs have some thousand nodes


@dataclass(frozen=True)
class Case:
    """A graph to place; `by_hand` is the makespan of the placement by hand in seconds, if there is one."""

    name: str
    problem: Problem
    by_hand: float | None = None


class Outcome(NamedTuple):
    """Makespans in seconds of one training step."""

    dynamic: float
    single: float  # on the best single device
    in_turns: float  # op by op in turns over the GPUs
    by_hand: float | None


def outcome(case: Case) -> Outcome:
    """The dynamic placer next to others."""
    problem = case.problem
    singles = [problem.judge(problem.on_one(device))[0] for device in range(len(problem.devices))]
    dynamic = problem.judge(best_assignment(problem))[0]
    turns = problem.judge(in_turns(problem))[0]
    return Outcome(dynamic.makespan, min(singles).makespan, turns.makespan, case.by_hand)


def in_turns(problem: Problem) -> Assignment:
    """Units in turns over the GPUs, as far as each may be there."""
    gpus = [d for d, device in enumerate(problem.devices) if "GPU" in device]
    choices = [[d for d in gpus if d in found] or found for found in problem.candidates]
    return [found[unit % len(found)] for unit, found in enumerate(choices)]


# -- networks -------------------------------------------------------------------------------------------------------


def rnnlm(batch: int, devices: Sequence[Any] | None = None, units: int = 1024, vocabulary: int = 10_000) -> Tensor:
    """The loss of a language model: two LSTM layers over words (Zaremba et al., 2014; Józefowicz et al., 2016)."""
    words, following = (placeholder(dtypes.int32, [batch, STEPS], name=name) for name in ("words", "following"))
    table = get_variable("embedding", [vocabulary, units])
    cells: list[Any] = [LSTMCell(units) for _ in range(2)]
    if devices is not None:
        cells = [DeviceWrapper(cell, device) for cell, device in zip(cells, devices, strict=True)]
    inputs = unstack(embedding_lookup(table, words), axis=1)
    outputs, _ = static_rnn(MultiRNNCell(cells), inputs, dtype=dtypes.float32)
    logits = Dense(vocabulary, use_bias=False, name="projection")(reshape(stack(outputs, axis=1), [-1, units]))
    losses = sparse_softmax_cross_entropy_with_logits(labels=reshape(following, [-1]), logits=logits)
    loss: Tensor = reduce_mean(losses)
    return loss


def host(gpus: int = 4) -> Machines:
    """The machine of the suite."""
    return machines_for({TASK: "host"}, gpus=gpus, gpu="K40", bus="pcie3")


def _case(name: str, function: Callable[..., Tensor], batch: int, by_hand: int = 0, **options: Any) -> Case:
    """A network; by hand its `by_hand` layers are on GPUs, 0: all is on one."""
    machines = host()
    problem = _problem(_step(models.build(function, batch, name, **options)), machines)
    if not by_hand:
        return Case(name, problem, problem.schedule(problem.on_one(0)).makespan)
    devices = [f"/gpu:{layer * 4 // by_hand}" for layer in range(by_hand)]
    pinned = _step(models.build(function, batch, name, _by_hand, devices=devices, **options), colocate=True)
    where = place(pinned, machines.devices, TASK, allow_soft_placement=True)
    return Case(name, problem, simulate(Workload(pinned).tasks(where, machines), machines).makespan)


def _by_hand(op: Operation) -> str:
    """The device of an op outside of all layers: the last GPU for the words that come out, the first for all else."""
    last = op.name.startswith(("projection", "decoder/projection", "SparseSoftmax", "Mean", "Reshape"))
    return op.device or ("/gpu:3" if last else "/gpu:0")


def _step(model: models.Model, colocate: bool = False) -> list[Node]:
    """The nodes of a training step."""
    with model.graph.as_default():
        train = GradientDescentOptimizer(0.01).minimize(model.loss, colocate_gradients_with_ops=colocate)
    return prune(by_name(model.graph.nodes()), [], [], [train.name], f"{TASK}/device:CPU:0")


def _problem(nodes: Sequence[Node], machines: Machines) -> Problem:
    devices = sorted(machines.devices, key=lambda device: "CPU" in device)
    return problem_of(Workload(nodes), ColocationGraph(nodes, devices, False, {}), machines)


# -- random graphs --------------------------------------------------------------------------------------------------


def layered(seed: int, layers: int = 30, width: int = 10, gpus: int = 4) -> Case:
    """Layers of ops of about 1 ms, each of which reads some of the layer before."""
    rng = random.Random(seed)
    rows: list[list[str]] = []
    tasks: list[Task] = []
    for layer in range(layers):
        rows.append([f"layer{layer}_{i}" for i in range(width)])
        for name in rows[-1]:
            sources = rng.sample(rows[-2], min(rng.randint(1, 3), width)) if layer else []
            tasks.append(_task(rng, name, sources, sent=0.5))
    return Case(f"random layers, {layers} × {width}, seed {seed}", _random_problem(rng, tasks, gpus))


def random_problem(seed: int, count: int, sent: float | None = None, gpus: int = 2) -> Problem:
    """`count` ops of about 1 ms on a GPU, up to eight times as long on the CPU; transfers take `sent` times as long."""
    rng = random.Random(seed)
    sent = rng.choice([0.1, 0.5, 1.0, 3.0]) if sent is None else sent
    tasks: list[Task] = []
    for i in range(count):
        sources = [f"op{j}" for j in sorted(rng.sample(range(i), min(i, rng.randrange(4))))]
        tasks.append(_task(rng, f"op{i}", sources, sent))
    return _random_problem(rng, tasks, gpus)


def _task(rng: random.Random, name: str, sources: Sequence[str], sent: float) -> Task:
    nbytes = int(rng.expovariate(1.0) * sent * 1e-3 * 12e9)  # a bus carries about 12 GB/s
    return Task(name, f"{TASK}/device:GPU:0", 0.0, [(source, 0) for source in sources], outputs=(nbytes,))


def _random_problem(rng: random.Random, tasks: Sequence[Task], gpus: int) -> Problem:
    machines = host(gpus)
    devices = sorted(machines.devices, key=lambda device: "CPU" in device)
    gpu = [rng.expovariate(1.0) * 1e-3 for _ in tasks]
    cpu = [seconds * rng.uniform(1.0, 8.0) for seconds in gpu]
    everywhere = [range(gpus + 1)] * len(tasks)
    return Problem(tasks, Fabric(machines, devices), [gpu] * gpus + [cpu], range(len(tasks)), everywhere)


def best_of_all(problem: Problem) -> Verdict:
    """The verdict on the best assignment, found by trying all; GPU 0 and GPU 1 are twins: the first op is not on 1."""
    ways = itertools.product(*([d for d in found if i or d != 1] for i, found in enumerate(problem.candidates)))
    return min(problem.judge(way)[0] for way in ways)


CASES: dict[str, Callable[[], Case]] = {
    "Inception-v3": partial(_case, "Inception-v3", inception_v3, 32),
    "RNNLM": partial(_case, "RNNLM", rnnlm, 64, 2),
    **{
        name: partial(_case, name, seq2seq, 64, layers, layers=layers, steps=STEPS, attention=attention)
        for layers in (4, 8)
        for attention in (None, "standard")
        for name in (f"seq2seq, {layers} layers" + ", attention" * bool(attention),)
    },
    **{f"random layers {seed}": partial(layered, seed) for seed in range(3)},
}  # fmt: skip
