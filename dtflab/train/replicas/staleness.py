"""StalenessOptimizer: each gradient knows how many steps were applied since its variables were read, and what for.

Stands for nothing in TensorFlow 1; the cures are those of the literature: dropping, as SyncReplicasOptimizer does;
dividing by the staleness (Zhang et al., 2015); bounded staleness (Ho et al., 2013, `worker_pace.py`). Left out:
estimates of what the gradient would be now.

A worker's step begins by reading variables; the global step is read with them. When its gradients have arrived at the
parameter servers, the global step is read again: the difference is their staleness. A row of the log and the cures
follow from it, all in the graph, before anything is applied.

Rule: a gradient of staleness s meets variables that s steps have changed since it was computed; only what is applied
counts as a step.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, SupportsIndex

from dtflab.graph import dtypes
from dtflab.graph.indexed_slices import IndexedSlices
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import add_to_collection, colocate_with, control_dependencies, name_scope
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.control import functions as control
from dtflab.ops.control.cond import cond
from dtflab.ops.math import functions as math
from dtflab.runtime.session import Session
from dtflab.train.optimizers.optimizer import Gradient, Optimizer, WrappingOptimizer, _checked_gradient
from dtflab.train.replicas.staleness_log import LogQueue, StalenessLog, log_of
from dtflab.train.replicas.sync_replicas import SyncReplicasOptimizer
from dtflab.train.replicas.worker_pace import PaceHook, WorkerPace

Pairs = list[tuple[Gradient, Any]]
STALENESS = "dtflab_staleness"  # a collection: the `staleness` of each such optimizer in the graph


class StalenessOptimizer(WrappingOptimizer):
    """An optimizer around another one, that measures the staleness of gradients and may do something about it.

    >>> optimizer = tf.train.StalenessOptimizer(tf.train.GradientDescentOptimizer(0.1), worker=task_index)
    >>> train = optimizer.minimize(loss, global_step=global_step)

    `worker` is the number of the task. The log of all workers: `optimizer.read(session)`, or from outside
    `tf.train.read_staleness(target)`; the newest `keep` gradients are in it. `optimizer.staleness` is this step's.

    Cures: gradients staler than `drop_above` are dropped; with `scale` they are divided by their staleness, if that is
    above 1. With `max_ahead` a worker waits if it is more than that many steps ahead of the slowest of `num_workers`;
    with `warm_up_steps` worker 0 makes that many steps before the others begin. The last two need
    `hooks=[optimizer.make_session_run_hook()]` in every worker's session. Nobody waits for a worker that failed, until
    it comes back; without worker 0, which makes the rounds, the others end.

    Around a SyncReplicasOptimizer it measures, and all cures but its own (spare replicas) are refused: ValueError.
    """

    def __init__(
        self,
        opt: Optimizer,
        worker: int = 0,
        *,
        drop_above: int | None = None,
        scale: bool = False,
        max_ahead: int | None = None,
        warm_up_steps: int = 0,
        num_workers: int | None = None,
        keep: int = 100_000,
        name: str = "staleness",
    ) -> None:
        super().__init__(opt, False, name)
        self._sync = opt if isinstance(opt, SyncReplicasOptimizer) else None
        cures = {"drop_above": drop_above, "scale": scale, "max_ahead": max_ahead, "warm_up_steps": warm_up_steps}
        for cure, value in cures.items():
            if self._sync and value not in (None, False, 0):
                raise ValueError(f"{cure}={value}: SyncReplicasOptimizer drops what is stale itself; leave this out.")
            if value is not None and not (isinstance(value, SupportsIndex) and value >= 0):
                raise ValueError(f"{cure} must be a whole number of steps, 0 or more, not {value!r}.")
        if not isinstance(worker, SupportsIndex) or worker < 0:
            raise ValueError(f"worker must be this task's number, 0 or more, not {worker!r}.")
        if keep < 1:
            raise ValueError(f"keep={keep}: the log needs room for at least one gradient.")
        self._worker = worker
        self._drop_above = drop_above
        self._scale = scale
        self._keep = keep
        self._pace = WorkerPace(worker, num_workers, max_ahead, warm_up_steps, name)
        self._staleness: Tensor | None = None
        self._rows: Tensor | None = None

    def apply_gradients(  # type: ignore[override]
        self, grads_and_vars: Iterable[tuple[Gradient, Any]], global_step: Any = None, name: str | None = None
    ) -> Any:
        """The operation that notes the gradients' staleness, then applies what the cures leave of them.

        ValueError without gradients or `global_step`, by which the age of a gradient is measured.
        """
        pairs = [(_checked_gradient(grad), variable) for grad, variable in grads_and_vars]
        if global_step is None:
            raise ValueError("StalenessOptimizer counts in global steps: minimize(loss, global_step=…).")
        if all(grad is None for grad, _ in pairs):
            raise ValueError(f"No gradients provided for any variable: {[str(v) for _, v in pairs]}.")
        with name_scope(None, self._name) as scope:
            arrived = _handed_on(pairs, [])
        if self._sync is not None:
            train = self._sync.apply_gradients(arrived, global_step, name)
            with name_scope(scope):  # tokens say which step a worker's gradients are of
                own_step, aggregated = self._sync._local_step, self._sync._replicas_to_aggregate
                return control.group(train, self._note(arrived, global_step, own_step, aggregated))
        with name_scope(scope):
            noted = self._note(arrived, global_step, global_step)
            cured = self._scaled(_handed_on(arrived, [noted]))
        train = self._apply(cured, global_step, name)
        with name_scope(scope), colocate_with(global_step):
            return self._pace.keep_step(train, global_step)

    @property
    def staleness(self) -> Tensor:
        """float64: the staleness of this worker's gradients in this step, as for `tf.summary.scalar`."""
        if self._staleness is None:
            raise ValueError("staleness is known after apply_gradients() or minimize().")
        return self._staleness

    def _note(self, arrived: Pairs, global_step: Any, own_step: Any, aggregated: int = 0) -> Operation:
        """Measure, when all gradients have arrived, and add a row to the log; they were computed at `own_step`."""
        with colocate_with(global_step):
            # A cast makes a copy: what a read hands out may be a buffer that later steps change in place.
            computed = arrays.cast(own_step.read_value(), dtypes.float64, name="computed")
            with control_dependencies([_operation(grad) for grad, _ in arrived if grad is not None]):
                now = arrays.cast(global_step.read_value(), dtypes.float64, name="arrived")
            self._staleness = math.subtract(now, computed, name="staleness")
            add_to_collection(STALENESS, self._staleness)
            self._fresh = self._staleness <= float("inf" if self._drop_above is None else self._drop_above)
            queue = LogQueue(self._keep, self._name)
            self._rows = queue.read()
            return queue.add(self._worker, computed, now, arrays.cast(self._fresh, dtypes.float64), aggregated)

    def _scaled(self, pairs: Pairs) -> Pairs:
        if not self._scale:
            return pairs
        with colocate_with(self.staleness):
            share = 1.0 / math.maximum(self.staleness, 1.0)
        return [(None if grad is None else _times(grad, share, variable), variable) for grad, variable in pairs]

    def _apply(self, pairs: Pairs, global_step: Any, name: str | None) -> Any:
        if self._drop_above is None:
            return self._opt.apply_gradients(pairs, global_step, name)
        apply = lambda: self._opt.apply_gradients(pairs, global_step, name)  # noqa: E731
        return cond(self._fresh, apply, control.no_op, name=f"{self._name}_if_fresh").op

    def read(self, session: Session) -> StalenessLog:
        """The log of all workers so far, read by `session`, which may be a MonitoredSession of this graph."""
        if self._rows is None:
            raise ValueError("The log exists only after apply_gradients() or minimize(); call one of them first.")
        return log_of(session, self._rows)

    def make_session_run_hook(self) -> PaceHook:
        """The hook that `max_ahead` and `warm_up_steps` need in every worker's session; harmless without them."""
        return PaceHook(self._pace, self._rows)


def _handed_on(pairs: Pairs, after: list[Operation]) -> Pairs:
    """The gradients, each on its variable's device, when `after` has run."""
    handed = []
    for grad, variable in pairs:
        with colocate_with(variable), control_dependencies(after):
            handed.append((None if grad is None else _copied(grad), variable))
    return handed


def _copied(grad: Gradient) -> Gradient:
    if isinstance(grad, IndexedSlices):
        return IndexedSlices(arrays.identity(grad.values), arrays.identity(grad.indices), grad.dense_shape)
    return arrays.identity(grad)


def _times(grad: Gradient, share: Tensor, variable: Any) -> Gradient:
    if isinstance(grad, IndexedSlices):
        return IndexedSlices(_times(grad.values, share, variable), grad.indices, grad.dense_shape)
    with colocate_with(variable):
        return grad * arrays.cast(share, grad.dtype)


def _operation(grad: Gradient) -> Operation:
    return (grad.values if isinstance(grad, IndexedSlices) else grad).op
