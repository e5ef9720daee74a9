"""A race: several ways to train one model together, each on simulated workers of its own, over virtual time.

Stands for the experiments of "Revisiting Distributed Synchronous SGD" (Chen et al., 2016). Left out: test accuracy;
a program may return it in the place of a loss.

Rule: a race is a function of its arguments, and equal seeds make equal races: a task's stragglers are the same in all
of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from dtflab.base.text_table import plural
from dtflab.cluster.clients import Client, RunWatch
from dtflab.cluster.cluster import Cluster
from dtflab.train.replicas.staleness_log import StalenessLog, log_at

Program = Callable[[Client, Any], Sequence[tuple[float, float]]]


@dataclass(frozen=True, repr=False)
class Run:
    """How one way did: the first worker's losses over time, and what came over the wires of the parameter servers."""

    seconds: NDArray[np.float64]  # [points], of virtual time since the first of them
    losses: NDArray[np.float64]  # [points]
    staleness: StalenessLog
    pulls: NDArray[np.float64]  # [messages, 2]: when one from a parameter server to a worker has arrived, its bytes

    @property
    def steps(self) -> int:
        """How many steps were applied: a synchronous one takes the gradients of many workers."""
        return int(self.staleness.arrived.max(initial=-1)) + 1

    @property
    def steps_per_minute(self) -> float:
        """Steps applied per minute of virtual time; NaN if there are less than two gradients to count with."""
        return 60 * self.steps / float(self.staleness.seconds[-1]) if len(self.staleness) > 1 else float("nan")

    def reaches(self, loss: float) -> float:
        """Virtual seconds until the loss was as low as that for the first time; infinity if it never was."""
        low = self.seconds[self.losses <= loss]
        return float(low[0]) if len(low) else float("inf")

    def loss_at(self, seconds: Any) -> NDArray[np.float64]:
        """The last loss that was known at each of the moments; NaN before the first."""
        known = np.searchsorted(self.seconds, seconds, side="right") - 1
        return np.where(known < 0, np.nan, self.losses[known])

    def pulled(self, width: float, first: float, last: float) -> tuple[NDArray[Any], NDArray[Any]]:
        """Bytes that came from the parameter servers in each `width` between two moments, all in virtual seconds.

        Two arrays: when each piece of time begins, its bytes. A long run remembers only its end.
        ValueError unless `width` is above 0 and `last` not before `first`.
        """
        if not (width > 0 and first <= last):
            raise ValueError(f"pulled({width}, {first}, {last}): width is above 0, last not before first, in seconds.")
        edges = first + np.arange(round((last - first) / width) + 1) * width
        counts, _ = np.histogram(self.pulls[:, 0], edges, weights=self.pulls[:, 1])
        return edges[:-1], counts.astype(np.float64)

    def __repr__(self) -> str:
        return f"<Run of {plural(self.steps, 'step')} in {self.seconds[-1]:.3g} s, loss {self.losses[-1]:.4g}>"


def race(
    program: Program,
    ways: Mapping[str, Any],
    *,
    workers: int = 50,
    seed: int = 1,
    watch: RunWatch | None = None,
    **hardware: Any,
) -> dict[str, Run]:
    """Run `program(client, way)` on all workers, for each of `ways`: name → Run.

    `program` trains with a StalenessOptimizer, its global step on the first parameter server, and returns pairs
    (virtual seconds, loss); those of worker 0 count. `hardware` is described as for Cluster: `ps`, `gpus`, `gpu`,
    `network`, `stragglers`, …; but TypeError for `worker`: that is `workers` here. With
    `watch=tf.viz.live("loss", over="virtual time (s)")` a picture has a line for each way, of what worker 0 says by
    `client.report(loss, seconds)`.
    """
    if "worker" in hardware:
        raise TypeError(f"race() counts its workers with workers=, not worker={hardware['worker']!r}.")
    options = {"ps": 1, "worker": workers, "seed": seed, **hardware}
    with watch or nullcontext():
        laps = {name: watch and _Lap(watch, name) for name in ways}
        return {name: _run(program, way, options, laps[name]) for name, way in ways.items()}


class _Lap(AbstractContextManager[None]):
    """The watch over one way of a race: its line has the name of the way, and begins at 0 seconds."""

    def __init__(self, watch: RunWatch, name: str) -> None:
        self._watch, self._name = watch, name
        self._start: float | None = None
        self.should_stop = watch.should_stop

    def __exit__(self, *_: object) -> None:
        """The race goes on."""

    def __call__(
        self,
        value: SupportsFloat,
        worker: str,
        step: SupportsFloat | None = None,
        staleness: SupportsFloat | None = None,
    ) -> None:
        if worker.endswith("/task:0") and step is not None:
            self._start = float(step) if self._start is None else self._start
            self._watch(value, self._name, float(step) - self._start, staleness)


def _run(program: Program, way: Any, options: dict[str, Any], lap: RunWatch | None) -> Run:
    with Cluster(clock="virtual", **options) as cluster:
        points = _points(cluster.run(lambda client: program(client, way), watch=lap)[0], way)
        start = points[0, 0]
        return Run(points[:, 0] - start, points[:, 1], log_at(cluster.target), _pulls(cluster, start))


def _points(pairs: Any, way: Any) -> NDArray[np.float64]:
    try:
        points = np.array(pairs, dtype=float)
    except (TypeError, ValueError):
        points = np.empty(0)
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(f"program(client, {way!r}) must return pairs (seconds, loss); worker 0's are {pairs!r}.")
    return points


def _pulls(cluster: Cluster, start: float) -> NDArray[np.float64]:
    """The transfers from parameter servers to workers, as far as the log goes back; calls without tensors count."""
    lines = [line for line in cluster.log().lines if line.where.startswith("/job:ps/")]
    sent = [(line.ended - start, line.nbytes) for line in lines if line.target.startswith("/job:worker/")]
    return np.array(sent, dtype=float).reshape(-1, 2)
