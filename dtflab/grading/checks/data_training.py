"""The first question on data parallelism, data/q1: the book's exercise 10, asynchronous and synchronous training.

An answer is what each worker runs. Each gets images of its own here, equally many, so synchronous training must end
with the weights of plain gradient descent over all images, to rounding; a stale gradient would show, and a worker whose
gradients are left out. The loss that the checks give counts how often it was computed, and on which devices its graph
was made.
"""

from __future__ import annotations

import contextlib
import functools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np

from dtflab.base import errors
from dtflab.base.text_table import plural
from dtflab.cluster.clients import Client
from dtflab.cluster.cluster import Cluster
from dtflab.datasets.digits import digits
from dtflab.grading.device_functions import shown
from dtflab.grading.questions import Wrong, from_toml
from dtflab.graph import device_spec, dtypes
from dtflab.graph.convert import constant
from dtflab.graph.device_spec import label
from dtflab.graph.graph import Graph
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import control_dependencies, device
from dtflab.graph.static_value import constant_value
from dtflab.ops.linalg.functions import matmul
from dtflab.ops.nn.cross_entropy import softmax, sparse_softmax_cross_entropy_with_logits
from dtflab.ops.reduce.functions import reduce_mean
from dtflab.ops.variables.functions import assign_add
from dtflab.ops.variables.get_variable import get_variable
from dtflab.ops.variables.initializers import zeros_initializer
from dtflab.runtime.session import Session
from dtflab.sim import lognormal, now, sleep

EXAMPLES = 60  # as many for each of up to four workers
LIMIT = 130.0  # virtual seconds, as the two below: when all has ended, after 120 s of grace, too
BEGIN = 5.0
LATE = 0.03  # after that, when the others have ended
BUSY = 5.13  # nobody computes any more; a session that waits for the chief looks at 5.05 s and 5.15 s
WAITS = "After 130 s of virtual time, where milliseconds are enough, workers still wait."
ENDLESS = "The workers go on and on: train_together does not come to an end."

q1 = from_toml(__file__)


# -- a training ----------------------------------------------------------------------------------------------


class Timed(NamedTuple):
    """The seconds that a worker returned, and those that may be right: not less than it computed for."""

    returned: Any
    least: float
    most: float  # until its function ended
    real: float  # seconds of this computer's clock until then

    @property
    def right(self) -> bool:
        return isinstance(self.returned, float) and max(self.least, 1e-9) <= self.returned <= self.most


class Seen(NamedTuple):
    """The workers' training: the evidence."""

    sync: bool
    steps: int  # asked for
    workers: int
    taken: int = 0  # by the global step
    computed: int = 0  # gradients
    off: float = 0.0  # from the weights of as many steps of gradient descent, or of the sum of the gradients
    other_rate: bool = False  # the weights are those of another rate
    loss: float = 0.0
    required: int | None = None  # gradients for a step, as the graph says; None if it does not
    strays: tuple[str, ...] = ()  # variables that are not on the ps, ops that are not on their worker
    end: str = ""  # why the training was stopped
    initialized: int = 0  # how often
    timed: Sequence[Timed] = ()  # by the workers, if one of them did so wrongly

    @property
    def most(self) -> int:
        """Steps without waiting. When the last one is reached, each worker is busy with a gradient; and what it then
        sees may be the global step that it read before that gradient: so it may begin one more."""
        return self.steps + 2 * self.workers

    @property
    def alone(self) -> bool:
        """Whether gradients became steps one by one."""
        return self.computed < self.workers * self.taken


class Loss:
    """The loss that the workers build, and the devices where they built it."""

    def __init__(self, random: Random) -> None:
        data = digits().train
        rows = random.sample(range(len(data.images)), EXAMPLES)
        self.images, self.labels = data.images[rows], data.labels[rows]
        self.initializer = ""
        self.built: dict[int, Tensor] = {}  # logits, by worker

    def build_for(self, worker: int, workers: int) -> Tensor:
        """A net of one layer with the worker's images; at each computation the variable `computed` grows by one, and
        `summed` by the gradient, which may be stale when it is applied.
        """
        weights = get_variable("weights", [64, 10], initializer=zeros_initializer())
        self.initializer = weights.initializer.name
        count = get_variable("computed", [], dtypes.int32, zeros_initializer(), trainable=False)
        summed = get_variable("summed", [64, 10], initializer=zeros_initializer(), trainable=False)
        with control_dependencies([assign_add(count, 1)]):
            images = constant(self.images[worker::workers])
        logits = self.built[worker] = matmul(images, weights)
        right = np.eye(10, dtype=np.float32)[self.labels[worker::workers]]
        error = (softmax(logits) - right) / len(right)
        with control_dependencies([assign_add(summed, matmul(images, error, transpose_a=True))]):
            labels = constant(self.labels[worker::workers])
        losses = sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        mean: Tensor = reduce_mean(losses)
        return mean

    def required(self) -> int | None:
        """The number of gradients that the workers' graphs take for a step; None if there is no such number."""
        every = (op for logits in self.built.values() for op in logits.graph.get_operations())
        takes = [constant_value(op.inputs[1]) for op in every if op.type.endswith("AccumulatorTakeGradient")]
        found = {None if number is None else int(number) for number in takes}
        return found.pop() if len(found) == 1 else None

    def value(self, weights: Any) -> float:
        right = self.probabilities(weights)[np.arange(EXAMPLES), self.labels]
        return float(-np.mean(np.log(right)))

    def probabilities(self, weights: Any) -> Any:
        powers = np.exp(self.images @ weights)
        return powers / powers.sum(axis=1, keepdims=True)


def run(answer: Any, random: Random, sync: bool, workers: int | None = None, comes_late: bool = False) -> Seen:
    """Let all workers train on a simulated cluster; Wrong if that does not end well.

    If one `comes_late`, the others have ended then, and they had more to do.
    """
    workers = workers or random.randint(2, 4)
    steps = random.choice([number for number in range(6, 11) if workers == 1 or number % workers])  # no equal shares
    steps += 10 * comes_late
    rate = random.choice((0.3, 0.35, 0.4))
    loss, seen = Loss(random), Seen(sync, steps, workers)

    def work(client: Client) -> Any:
        is_late = comes_late and client.index == workers - 1
        sleep(BEGIN + LATE * is_late)  # the time is not 0 when it begins
        began, real = now(), time.monotonic()
        seconds = answer(client, functools.partial(loss.build_for, client.index, workers), rate, sync, steps)
        return seconds, now() - began, time.monotonic() - real

    spread = lognormal(0.3)
    with Cluster(clock="virtual", ps=1, worker=workers, stragglers=spread, seed=random.randrange(999)) as cluster:
        with _limited(cluster, loss) as late:
            try:
                ended = cluster.run(work)
            except errors.OpError:
                if not late:
                    raise
                message, strays = late[0]
                raise Wrong(message, seen._replace(strays=strays, end=message)) from None
        timed = [Timed(value, _computing(cluster, loss, i), *most) for i, (value, *most) in enumerate(ended)]
        _demand_seconds(seen._replace(timed=timed))
        if strays := _strays(cluster, loss):
            message = f"Expected: variables on the ps and the rest on each worker; but {strays[0]}."
            raise Wrong(message, seen._replace(strays=strays))
        _demand_one_chief(cluster, loss, seen)
        every = (op for logits in loss.built.values() for op in logits.graph.get_operations())
        updates = {op.name for op in every if op.type.startswith(("Apply", "ResourceApply"))}
        if updates.isdisjoint(line.what for line in cluster.log().lines):
            raise Wrong("No optimizer has updated the weights; expected: tf.train.GradientDescentOptimizer.", seen)
        return _looked_at(cluster, loss, rate, seen)


def _computing(cluster: Cluster, loss: Loss, worker: int) -> float:
    """The seconds from a worker's first computation to its last."""
    name, task = loss.built[worker].op.name if worker in loss.built else "", f"/job:worker/replica:0/task:{worker}/"
    mine = [line for line in cluster.log().lines if line.what == name and line.where.startswith(task)]
    return mine[-1].ended - mine[0].started if mine else 0.0


def _demand_seconds(seen: Seen) -> None:
    """Wrong unless each worker has returned seconds that its session may have taken."""
    for worker, one in enumerate(seen.timed):
        if not one.right:
            rule = "train_together returns the virtual seconds of the training"
            took = f"it computed for {one.least:.3g} s, and ended after {one.most:.3g} s"
            raise Wrong(f"{rule}; that of worker {worker} returned {shown(one.returned)}, though {took}.", seen)


def _demand_one_chief(cluster: Cluster, loss: Loss, seen: Seen) -> None:
    """Wrong if the variables were initialized more than once, which a late worker would do to trained ones."""
    times = sum(line.what == loss.initializer for line in cluster.log().lines)
    if times > 1:
        message = f"The variables were initialized {times} times, by as many workers; expected: once, by the chief."
        raise Wrong(message, seen._replace(initialized=times))


@contextlib.contextmanager
def _limited(cluster: Cluster, loss: Loss) -> Iterator[list[tuple[str, tuple[str, ...]]]]:
    """Stop a cluster on which something waits or goes on forever; the list then has why, and what was astray."""
    late: list[tuple[str, tuple[str, ...]]] = []

    def give_up(message: str) -> None:
        late.append((message, _strays(cluster, loss)))
        cluster.stop()

    def look() -> None:
        lines = cluster.log().lines
        if lines and lines[-1].ended > BUSY - 0.05:
            give_up(ENDLESS)

    cluster.at(BUSY, look)
    cluster.at(LIMIT, give_up, WAITS)
    yield late


def _strays(cluster: Cluster, loss: Loss) -> tuple[str, ...]:
    """Variables of the model that are not on the ps, and computing that is not pinned to the worker's own task."""
    held = (one for one in cluster.variables() if one.name in ("weights", "computed", "global_step"))
    away = [f"variable '{one.name}' is on {label(one.device)}" for one in held if "/job:ps" not in one.device]
    products = [
        (worker, device_spec.parse(op.device))
        for worker, logits in sorted(loss.built.items())
        for op in logits.graph.get_operations()
        if op.type == "MatMul" and (op.device or op is logits.op)  # of gradients, those with a pin
    ]
    others = [f"worker {i} computes on '{spec}'" for i, spec in products if (spec.job, spec.task) != ("worker", i)]
    return (*away, *dict.fromkeys(others))


def _looked_at(cluster: Cluster, loss: Loss, rate: float, seen: Seen) -> Seen:
    """The evidence with the values that the training has left in the variables."""
    with Graph().as_default() as graph, device("/job:ps/task:0"), Session(cluster.target, graph=graph) as session:
        weights, computed = get_variable("weights", [64, 10]), get_variable("computed", [], dtypes.int32)
        count, summed = get_variable("global_step", [], dtypes.int64), get_variable("summed", [64, 10])
        trained, computed, taken, summed = session.run([weights, computed, count, summed])

    def off(rate: float) -> float:  # in here, so that no answer can have the weights from it
        if not seen.sync and seen.workers > 1:
            return float(np.abs(trained + rate * summed).max())
        weights = np.zeros((64, 10))
        for _ in range(int(taken)):
            error = loss.probabilities(weights) - np.eye(10)[loss.labels]
            weights -= rate * loss.images.T @ error / EXAMPLES
        return float(np.abs(trained - weights).max())

    fitted = -np.vdot(trained, summed) / max(np.vdot(summed, summed), 1e-9)
    others = {rate * seen.workers, rate / seen.workers, 0.001, 0.01, 0.1, 0.5, 1.0, fitted}
    other = off(rate) > 1e-4 and any(off(one) < 1e-4 for one in others)
    seen = seen._replace(taken=int(taken), computed=int(computed), off=off(rate), other_rate=other)
    return seen._replace(loss=loss.value(trained), required=loss.required())


# -- what is checked -----------------------------------------------------------------------------------------


@q1.check("Asynchronous: each gradient is a step, until there are enough", points=4, seconds=7)
def without_waiting(answer: Any, random: Random) -> None:
    seen = run(answer, random, sync=False)
    _demand_steps(seen)
    if not seen.alone and seen.workers > 1:
        raise Wrong(f"{seen.computed} gradients made {seen.taken} steps; expected: a step for each.", seen)
    if seen.computed == seen.taken and seen.off > 1e-4:
        raise Wrong(f"The weights are up to {seen.off:.2g} away from the sum of all gradients, times the rate.", seen)
    if seen.loss > 0.9 * np.log(10):
        raise Wrong(f"After {seen.taken} steps the loss is {seen.loss:.3f}; it began at {np.log(10):.3f}.", seen)
    _demand_steps(run(answer, random, sync=False, comes_late=True))


def _demand_steps(seen: Seen) -> None:
    if not seen.steps <= seen.taken <= seen.most:
        observed = f"{seen.steps} steps are asked for; {seen.taken} were taken by {plural(seen.workers, 'worker')}"
        observed = f"{observed}. Expected: {seen.steps} to {seen.most}"
        raise Wrong(f"{observed}: all may be busy when the last one is reached, and begin one more.", seen)


@q1.check("Synchronous: a step is the mean of a fresh gradient of each worker", points=5, seconds=7)
def with_waiting(answer: Any, random: Random) -> None:
    for workers in random.sample((2, 3, 4), 2):  # a number that stands in the answer is wrong for one of them
        _demand_synchronous(run(answer, random, sync=True, workers=workers))


def _demand_synchronous(seen: Seen) -> None:
    """Wrong unless the steps were those of gradient descent, with a gradient of each worker in each."""
    if seen.taken != seen.steps:
        raise Wrong(f"{seen.steps} steps are asked for; {seen.taken} were taken.", seen)
    if seen.alone:
        observed = f"{plural(seen.workers, 'worker')} computed {seen.computed} gradients for {seen.taken} steps"
        raise Wrong(f"{observed}; expected: {seen.workers} for each step.", seen)
    if seen.required is not None and seen.required != seen.workers:
        message = f"A step is made of {plural(seen.required, 'gradient')}; expected: {seen.workers}, one per worker."
        raise Wrong(message, seen)
    if seen.off > 1e-4:
        observed = "The weights are not those of gradient descent with the same steps"
        raise Wrong(f"{observed}; the largest difference is {seen.off:.2g}.", seen)


@q1.check("One worker alone, in both ways", points=1, seconds=6)
def one_worker(answer: Any, random: Random) -> None:
    for sync in (False, True):
        seen = run(answer, random, sync, workers=1)
        if seen.taken != seen.steps or seen.off > 1e-4:
            text = f"One worker, {seen.steps} steps: {seen.taken} were taken, and the weights are up to {seen.off:.2g}"
            raise Wrong(f"{text} away from those of gradient descent with as many steps.", seen)


# -- mistakes ------------------------------------------------------------------------------------------------


@q1.mistake()
def places_it_elsewhere(seen: Seen) -> bool:
    """The variables are not on the ps, or the computing is not on the worker: then the workers do not train one model,
    or one task does all the work. Build under tf.train.replica_device_setter with this worker's device."""
    return bool(seen.strays)


def _returned(seen: Seen, shows: Callable[[Timed, float], bool]) -> bool:
    """Whether wrong seconds were returned, and that is true of those of all workers."""
    return bool(seen.timed) and all(isinstance(one.returned, float) and shows(one, one.returned) for one in seen.timed)


@q1.mistake()
def returns_nothing(seen: Seen) -> bool:
    """train_together returns nothing. What it should return is tf.sim.now() after the session, minus tf.sim.now()
    before it."""
    return bool(seen.timed) and all(one.returned is None for one in seen.timed)


@q1.mistake()
def counts_gradients(seen: Seen) -> bool:
    """There were too few steps: `steps` was divided by the number of workers. With `sync`, too, it counts steps, each
    of as many gradients as there are workers."""
    shares = (seen.steps // seen.workers, math.ceil(seen.steps / seen.workers))
    return seen.sync and seen.workers > 1 and seen.taken in shares


@q1.mistake()
def takes_equal_shares(seen: Seen) -> bool:
    """Each worker takes as many steps, a share of `steps` that is rounded down; together they take fewer. Nobody counts
    for itself: train until the global step is reached, as tf.train.StopAtStepHook(last_step=steps) does."""
    return not seen.sync and seen.taken == seen.steps // seen.workers * seen.workers < seen.steps


@q1.mistake()
def tells_the_time(seen: Seen) -> bool:
    """That is the time at which the training ended, not how long it took. Ask tf.sim.now() before the session, too, and
    return the difference."""
    return _returned(seen, lambda one, value: BEGIN + one.least <= value <= BEGIN + one.most)


@q1.mistake()
def looks_at_another_clock(seen: Seen) -> bool:
    """These are seconds of this computer's clock, for which the simulation ran. In virtual time, tf.sim.now() tells
    what the training takes on the hardware that is simulated."""
    real = _returned(seen, lambda one, value: one.real / 2 <= value <= one.real)
    return real and any(one.returned > one.most for one in seen.timed)


@q1.mistake()
def measures_too_little(seen: Seen) -> bool:
    """The seconds are fewer than a worker has computed for. Ask tf.sim.now() before the session and after it, not in
    between, and return the later time minus the earlier one, as it is."""
    return _returned(seen, lambda one, value: value < one.least)


@q1.mistake()
def initializes_in_each(seen: Seen) -> bool:
    """Every worker initializes the variables, and one that begins later overwrites what the others have trained. Give
    the session client.is_chief, which is true for one worker; the others wait for it."""
    return seen.initialized > 1


@q1.mistake()
def forgets_the_hook(seen: Seen) -> bool:
    """The workers wait for tokens that nobody hands out. make_session_run_hook(client.is_chief) of the
    SyncReplicasOptimizer must be among the hooks of the session; the chief's starts the queue."""
    return seen.end == WAITS


@q1.mistake()
def never_ends(seen: Seen) -> bool:
    """Nobody ends the loop. tf.train.StopAtStepHook(last_step=steps) among the hooks makes sess.should_stop() true once
    the global step is there; the global step counts if minimize was given it."""
    return seen.end == ENDLESS


@q1.mistake()
def counts_for_itself(seen: Seen) -> bool:
    """Each worker counts for itself: together they took many more steps. The global step is the count of all; let
    tf.train.StopAtStepHook and sess.should_stop() end the loop."""
    return not seen.sync and seen.workers > 1 and seen.taken > seen.most


@q1.mistake()
def reads_the_step_too_early(seen: Seen) -> bool:
    """One step too many. A global step that is fetched together with the step of the training may still be the one
    before it. tf.train.StopAtStepHook(last_step=steps) looks at it afterwards."""
    return seen.sync and not seen.alone and seen.taken == seen.steps + 1


@q1.mistake()
def always_waits(seen: Seen) -> bool:
    """The workers wait for each other in asynchronous training, too. Use the SyncReplicasOptimizer only if sync is
    True."""
    return not seen.sync and seen.workers > 1 and seen.taken > 0 and not seen.alone


@q1.mistake()
def aggregates_too_few(seen: Seen) -> bool:
    """Each gradient becomes a step by itself, though the optimizer drops stale ones. replicas_to_aggregate is how many
    gradients make a step: give it the number of workers."""
    return seen.sync and seen.required == 1 < seen.workers


@q1.mistake()
def leaves_workers_out(seen: Seen) -> bool:
    """A step is made as soon as some of the workers have brought a gradient; those of the others are dropped as stale.
    replicas_to_aggregate is the number of all workers here."""
    return seen.sync and 1 < (seen.required or 0) < seen.workers


@q1.mistake()
def takes_more_than_there_are(seen: Seen) -> bool:
    """A step is made of more gradients than there are workers, so it takes longer, and a worker counts twice.
    replicas_to_aggregate is the number of workers."""
    return seen.sync and (seen.required or 0) > seen.workers


@q1.mistake()
def uses_another_rate(seen: Seen) -> bool:
    """The steps are those of gradient descent, but with another rate. Give the optimizer `rate` as it is: of gradients
    that are averaged already, a step needs no division."""
    return seen.other_rate and not (seen.sync and seen.alone)


@q1.mistake()
def never_waits(seen: Seen) -> bool:
    """That is asynchronous training: gradients are applied as they come, stale ones too. If sync is True, wrap the
    optimizer in a tf.train.SyncReplicasOptimizer."""
    return seen.sync and seen.alone
