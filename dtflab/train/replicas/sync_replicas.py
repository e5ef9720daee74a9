"""SyncReplicasOptimizer: several workers make one step together.

Stands for `python/training/sync_replicas_optimizer.py`.

Each worker computes gradients on its own data and gives them to accumulators that stand with the variables. The chief
has a thread more: it takes the mean of `replicas_to_aggregate` gradients, applies it, which counts the global step, and
puts tokens with the new step's number into a queue, one for each worker. A worker's step ends when it has got a token;
its number is the worker's local step, which it marks its next gradients with. A gradient of an earlier step is dropped.

With more workers than gradients to aggregate (`total_num_replicas > replicas_to_aggregate`) the last ones are spare:
nobody waits for them, and what they bring too late is dropped: `late_gradients` says how much. With fewer, some workers
give several per step.

Rule: a worker that fails or is late costs time, never a wrong step: only gradients of the current step are summed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dtflab.base import tf_logging
from dtflab.cluster.cluster import Cluster
from dtflab.cluster.engines import InProcessTask
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.indexed_slices import IndexedSlices
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import control_dependencies, device, get_default_graph, name_scope
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.control import functions as control
from dtflab.ops.queues import functions as queues
from dtflab.ops.queues.shared_accumulator import Accumulator
from dtflab.ops.variables import functions as variables
from dtflab.ops.variables.variable import Variable
from dtflab.runtime.session import Session
from dtflab.train.input.coordinator import Coordinator
from dtflab.train.input.queue_runner import QueueRunner
from dtflab.train.optimizers.optimizer import Gradient, Optimizer, WrappingOptimizer
from dtflab.train.sessions.session_run_hook import SessionRunHook


class SyncReplicasOptimizer(WrappingOptimizer):
    """An optimizer around another one, for workers that build the same graph on shared parameter servers.

    >>> optimizer = tf.train.SyncReplicasOptimizer(
    ...     tf.train.GradientDescentOptimizer(0.1), replicas_to_aggregate=2, total_num_replicas=2)
    >>> train = optimizer.minimize(loss, global_step=global_step)
    >>> hooks = [optimizer.make_session_run_hook(is_chief)]

    `variable_averages` is an ExponentialMovingAverage that the chief applies to `variables_to_average` in each step.
    """

    def __init__(
        self,
        opt: Optimizer,
        replicas_to_aggregate: int,
        total_num_replicas: int | None = None,
        variable_averages: Any = None,
        variables_to_average: Sequence[Any] | None = None,
        use_locking: bool = False,
        name: str = "sync_replicas",
    ) -> None:
        super().__init__(opt, use_locking, name)
        total = replicas_to_aggregate if total_num_replicas is None else total_num_replicas
        tf_logging.info(f"SyncReplicasV2: replicas_to_aggregate={replicas_to_aggregate}; total_num_replicas={total}")
        self._replicas_to_aggregate = replicas_to_aggregate
        self._total_num_replicas = total
        self._tokens_per_step = max(total, replicas_to_aggregate)
        self._variable_averages = variable_averages
        self._variables_to_average = variables_to_average
        self._gradients_applied = False
        self._global_step: Any = None
        self._sync_token_queue: Any = None
        self._chief_queue_runner: QueueRunner | None = None
        self._accumulator_list: list[tuple[queues.ConditionalAccumulatorBase, str]] = []

    def apply_gradients(  # type: ignore[override]
        self, grads_and_vars: Iterable[tuple[Gradient, Any]], global_step: Any = None, name: str | None = None
    ) -> Any:
        """A worker's part of a step: give the gradients, wait for a token. The chief's part is its queue runner.

        ValueError without gradients or `global_step`, by which the age of a gradient is measured.
        """
        if not grads_and_vars:
            raise ValueError("Must supply at least one variable")
        if global_step is None:
            raise ValueError("Global step is required to check staleness")
        self._global_step = global_step
        self._make_local_step()
        chief_init_ops = [self.local_step_init_op]
        with name_scope(None, self._name):
            given, taken = self._through_accumulators(grads_and_vars)
            with device(global_step.device), name_scope(""):
                update = self._opt.apply_gradients(taken, global_step)
            train_op = self._exchange_tokens(given, update)
            for accumulator, where in self._accumulator_list:
                with device(where):
                    chief_init_ops.append(accumulator.set_global_step(global_step, name="SetGlobalStep"))
            self.chief_init_op = control.group(*chief_init_ops)
            self._gradients_applied = True
            return train_op

    def _make_local_step(self) -> None:
        """The step that this worker's next gradients are of."""
        anchor = control.no_op()  # on the worker's own device, no matter where variables go
        with get_default_graph().colocate_with(anchor, ignore_existing=True):
            local, dtype = [GraphKeys.LOCAL_VARIABLES], self._global_step.dtype.base_dtype
            self._local_step = Variable(0, trainable=False, collections=local, dtype=dtype, name="sync_rep_local_step")
        self.local_step_init_op = variables.assign(self._local_step, self._global_step)
        self.ready_for_local_init_op = variables.report_uninitialized_variables(variables.global_variables())

    def _through_accumulators(
        self, grads_and_vars: Iterable[tuple[Gradient, Any]]
    ) -> tuple[list[Operation], list[tuple[Gradient, Any]]]:
        """The operations that give gradients, and the pairs of what is taken and its variable."""
        given: list[Operation] = []
        taken: list[tuple[Gradient, Any]] = []
        for grad, var in grads_and_vars:
            with device(var.device):
                mean: Gradient = None
                if grad is not None:
                    accumulator, apply, mean = self._through_one(grad, var)
                    given.append(apply)
                    self._accumulator_list.append((accumulator, var.device))
                taken.append((mean, var))
        return given, taken

    def _through_one(self, grad: Gradient, var: Any) -> tuple[queues.ConditionalAccumulatorBase, Operation, Gradient]:
        shared_name = f"{var.name}/grad_accum"
        if isinstance(grad, Tensor):
            dense = queues.ConditionalAccumulator(grad.dtype, shape=var.shape, shared_name=shared_name)
            apply = dense.apply_grad(grad, local_step=self._local_step)
            return dense, apply, dense.take_grad(self._replicas_to_aggregate)
        if not isinstance(grad, IndexedSlices):
            raise ValueError("Unknown grad type!")
        rows = queues.SparseConditionalAccumulator(grad.dtype, shape=(), shared_name=shared_name)
        apply = rows.apply_indexed_slices_grad(grad, local_step=self._local_step)
        return rows, apply, rows.take_indexed_slices_grad(self._replicas_to_aggregate)

    def _exchange_tokens(self, given: Sequence[Operation], update: Operation) -> Any:
        """A worker waits for a token when it has given its gradients; the chief gives tokens after each update."""
        step = self._global_step
        where = step.device
        with device(where), name_scope(""):
            queue = queues.FIFOQueue(
                -1, step.dtype.base_dtype, shapes=(), name="sync_token_q", shared_name="sync_token_q"
            )
            self._sync_token_queue = queue
        with device(where), name_scope(""):
            with control_dependencies(given):
                token = queue.dequeue()
            train_op = variables.assign(self._local_step, token)
            with control_dependencies([update]):
                tokens = arrays.fill([self._tokens_per_step], step)
                sync_op = queue.enqueue_many((tokens,))
            if self._variable_averages is not None:
                with control_dependencies([sync_op]), name_scope(""):
                    sync_op = self._variable_averages.apply(self._variables_to_average)
            self._chief_queue_runner = QueueRunner(queue, [sync_op])
        return train_op

    def get_chief_queue_runner(self) -> QueueRunner | None:
        """The thread of the chief: takes gradients, applies their mean, gives tokens. After `apply_gradients`."""
        if not self._gradients_applied:
            raise ValueError("Should be called after apply_gradients().")
        return self._chief_queue_runner

    def get_init_tokens_op(self, num_tokens: int = -1) -> Operation:
        """An operation by which the chief puts the first tokens into the queue, by default one for each gradient.

        The workers' gradients of the step after these are dropped, once: they are of the same step as the tokens.
        ValueError if `num_tokens` are too few for the first step ever to end.
        """
        if not self._gradients_applied:
            raise ValueError("get_init_tokens_op() should be called after apply_gradients().")
        needed = self._replicas_to_aggregate - self._total_num_replicas
        if num_tokens == -1:
            num_tokens = self._replicas_to_aggregate
        elif num_tokens < needed:
            raise ValueError(f"Too few tokens to finish the first step: {num_tokens} (given) vs {needed} (needed)")
        if num_tokens <= 0:
            return control.no_op(name="no_init_tokens")
        with device(self._global_step.device), name_scope(""):
            tokens = arrays.fill([num_tokens], self._global_step)
            return self._sync_token_queue.enqueue_many((tokens,))

    def make_session_run_hook(self, is_chief: bool, num_tokens: int = -1) -> SessionRunHook:
        """The hook that a MonitoredSession needs to train by this optimizer."""
        return _SyncReplicasOptimizerHook(self, is_chief, num_tokens)


class _SyncReplicasOptimizerHook(SessionRunHook):
    """Sets local steps, and with the chief the accumulators' steps, the first tokens and the queue runner."""

    def __init__(self, sync_optimizer: SyncReplicasOptimizer, is_chief: bool, num_tokens: int) -> None:
        self._sync_optimizer = sync_optimizer
        self._is_chief = is_chief
        self._num_tokens = num_tokens

    def begin(self) -> None:
        optimizer = self._sync_optimizer
        if not optimizer._gradients_applied:
            raise ValueError("SyncReplicasOptimizer.apply_gradient should be called before using the hook.")
        self._ready_for_local_init_op = optimizer.ready_for_local_init_op
        self._local_init_op: Any = optimizer.local_step_init_op
        self._init_tokens_op: Operation | None = None
        self._q_runner: QueueRunner | None = None
        if self._is_chief:
            self._local_init_op = optimizer.chief_init_op
            self._q_runner = optimizer.get_chief_queue_runner()
            self._init_tokens_op = optimizer.get_init_tokens_op(self._num_tokens)

    def after_create_session(self, session: Session, coord: Coordinator) -> None:
        missing = session.run(self._ready_for_local_init_op)
        if len(missing):
            names = ", ".join(name.decode() for name in missing)
            raise RuntimeError(
                "Init operations did not make model ready for SyncReplicasOptimizer local_init. Init op: "
                f"{self._local_init_op.name}, error: Variables not initialized: {names}"
            )
        session.run(self._local_init_op)
        if self._init_tokens_op is not None:
            session.run(self._init_tokens_op)
        if self._q_runner is not None:
            self._q_runner.create_threads(session, coord=coord, daemon=True, start=True)


def late_gradients(cluster: Cluster) -> dict[str, int]:
    """How many gradients each accumulator of the cluster has dropped, as they came too late: `{"w:0/grad_accum": 3}`.

    It sees tasks of this process only; ValueError if the cluster has others.
    """
    late: dict[str, int] = {}
    for task in cluster.tasks:
        if not isinstance(task, InProcessTask):
            raise ValueError(f"{task.name} is in a process of its own, into which late_gradients() can't look.")
        for place in task.server.task.worker.devices:
            found = (resource for _, _, resource in place.resources.items() if isinstance(resource, Accumulator))
            late.update({accumulator.name: accumulator.dropped for accumulator in found})
    return late
