"""AllReduceOptimizer: workers with their own variables make one step together, without parameter servers.

Stands for nothing in TensorFlow 1's core; Horovod's DistributedOptimizer is its model, next to SyncReplicasOptimizer.

Each worker computes gradients on its own data. They are joined into flat buckets, the last variables' first, as their
gradients come first; each bucket is averaged over the workers (`group.py`) as soon as it is complete, and
applied by each worker to its own variables. So equal variables stay equal, to the last bit. Gradients that are
IndexedSlices are not made dense: all workers' rows are gathered and divided by the number of workers.

Rule: a step is one step of the optimizer inside with the mean gradient, as if one worker had all the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dtflab.graph.indexed_slices import IndexedSlices
from dtflab.graph.scopes import device, name_scope
from dtflab.ops.arrays import functions as arrays
from dtflab.train.collectives.group import WorkerGroup
from dtflab.train.collectives.hook import AllReduceHook
from dtflab.train.collectives.schedule import schedule
from dtflab.train.optimizers.optimizer import Gradient, Optimizer, WrappingOptimizer, _checked_gradient

MEBIBYTE = 1 << 20


class AllReduceOptimizer(WrappingOptimizer):
    """An optimizer around another one, for workers that build the same graph, each on its own task.

        with tf.device(f"/job:worker/task:{task_index}"):                          # not replica_device_setter
            ...
            optimizer = tf.train.AllReduceOptimizer(optimizer, cluster, task_index)
            train = optimizer.minimize(loss, global_step=global_step)
        with tf.train.MonitoredTrainingSession(
            server.target, is_chief=True, hooks=[optimizer.make_session_run_hook()]  # each is its variables' chief
        ) as session:

    `cluster` is a ClusterSpec, the workers are the tasks of `job_name`. `algorithm` is "ring", "tree" or
    "halving_doubling". Gradients of one dtype and device travel together, up to `bucket_bytes` in one bucket; 0: each
    for itself. `timeout` is how many seconds workers wait for each other. Only the first one needs a `checkpoint_dir`.
    """

    def __init__(
        self,
        opt: Optimizer,
        cluster: Any,
        task_index: int,
        job_name: str = "worker",
        algorithm: str = "ring",
        bucket_bytes: int = 25 * MEBIBYTE,
        timeout: float = 600.0,
        use_locking: bool = False,
        name: str = "all_reduce",
    ) -> None:
        super().__init__(opt, use_locking, name)
        if bucket_bytes < 0:
            raise ValueError(f"bucket_bytes={bucket_bytes}: give the bytes of a bucket, or 0 for no buckets.")
        self._group = WorkerGroup(cluster, task_index, job_name)
        schedule(algorithm, self._group.size)  # raises if there is no such
        self._algorithm = algorithm
        self._bucket_bytes = bucket_bytes
        self._timeout = timeout

    def apply_gradients(  # type: ignore[override]
        self, grads_and_vars: Iterable[tuple[Gradient, Any]], global_step: Any = None, name: str | None = None
    ) -> Any:
        """The operation that averages the gradients over the workers, applies them, and counts the step.

        ValueError if a variable is not this worker's own, or a gradient's shape is not known.
        """
        pairs = [(_checked_gradient(grad), variable) for grad, variable in grads_and_vars]
        for _, variable in pairs:
            self._check_own(variable)
        with name_scope(None, self._name):
            averaged = self._averaged([pair for pair in pairs if pair[0] is not None])
        return self._opt.apply_gradients([(averaged.get(v), v) for _, v in pairs], global_step, name)

    def _check_own(self, variable: Any) -> None:
        if not self._group.owns(variable):
            raise ValueError(
                f"Each worker applies the mean gradient to variables of its own, but {variable.op.name} of "
                f"{self._group.device} is on {variable.device}: build the model in tf.device('{self._group.device}'), "
                "or leave shared variables to another optimizer."
            )

    def _averaged(self, pairs: Sequence[tuple[Gradient, Any]]) -> dict[Any, Gradient]:
        """The mean gradient of each variable that has one."""
        averaged: dict[Any, Gradient] = {}
        for number, bucket in enumerate(self._buckets(pairs)):
            with name_scope(f"bucket_{number}"):
                averaged.update(self._bucket_averaged(bucket))
        return averaged

    def _buckets(self, pairs: Sequence[tuple[Gradient, Any]]) -> list[list[tuple[Gradient, Any]]]:
        """Gradients that travel together, in the order in which backpropagation gives them; slices go alone."""
        buckets: list[list[tuple[Gradient, Any]]] = []
        filling: dict[Any, tuple[list[tuple[Gradient, Any]], int]] = {}
        for grad, variable in reversed(pairs):
            size = (variable.shape.num_elements() or 0) * grad.dtype.size
            key = (grad.dtype.base_dtype, variable.device)
            bucket, filled = filling.get(key, ([], 0))
            alone = isinstance(grad, IndexedSlices)
            if alone or not bucket or filled + size > self._bucket_bytes:
                bucket, filled = [], 0
                buckets.append(bucket)
            bucket.append((grad, variable))
            if not alone:
                filling[key] = (bucket, filled + size)
        return buckets

    def _bucket_averaged(self, bucket: Sequence[tuple[Gradient, Any]]) -> dict[Any, Gradient]:
        what = ", ".join(f"{v.op.name} {grad.dtype.base_dtype.name} {v.shape}" for grad, v in bucket)
        grads = [grad for grad, _ in bucket]
        with device(bucket[0][1].device):
            if isinstance(grads[0], IndexedSlices):
                return {bucket[0][1]: self._group.all_gather(grads[0], "mean", what=f"{what} rows")}
            flat = [arrays.reshape(grad, [v.shape.num_elements()], name="flat") for grad, v in bucket]
            joined = flat[0] if len(flat) == 1 else arrays.concat(flat, 0, name="joined")
            mean = self._group.all_reduce(joined, self._algorithm, "mean", what=what)
            parts = [mean] if len(flat) == 1 else arrays.split(mean, [part.shape[0].value for part in flat])
            return {v: arrays.reshape(part, v.shape) for part, (_, v) in zip(parts, bucket, strict=True)}

    def make_session_run_hook(self) -> AllReduceHook:
        """The hook that each worker's session needs: all start with the first one's variables, and end together."""
        return AllReduceHook(self._group, timeout=self._timeout, name=f"{self._name}_workers")
