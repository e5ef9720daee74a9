"""WorkerGroup: clients that reduce together, each with its own graph.

Stands for what `python/ops/collective_ops.py` offers. Left out: its ops, whose messages no graph shows. Here each
message is ops that a reader knows: a queue on the receiver's task (`channel.py`).

Rule: graphs of all workers build the same collectives in the same order, under the same names; equal programs do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtflab.cluster.cluster_spec import ClusterSpec
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.device_spec import DeviceSpec
from dtflab.graph.indexed_slices import IndexedSlices
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import device, name_scope
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.control import functions as control
from dtflab.ops.math import functions as math
from dtflab.train.collectives.all_reduce import Buffer, play, play_rounds
from dtflab.train.collectives.channel import Channel
from dtflab.train.collectives.schedule import Rounds, schedule


class WorkerGroup:
    """The workers of a job, as the client of task `task_index` sees them.

        group = tf.train.WorkerGroup(cluster, task_index)
        mean = group.all_reduce(gradient, reduction="mean")

    `cluster` is a ClusterSpec or what makes one. ValueError if it has no such job or task. A session for more than a
    try needs `AllReduceHook(group)`, with which workers meet before the first step and learn of each other's end.
    """

    def __init__(self, cluster: Any, task_index: int, job_name: str = "worker") -> None:
        tasks = ClusterSpec(cluster).task_indices(job_name)
        if task_index not in tasks:
            raise ValueError(f"There is no /job:{job_name}/task:{task_index} in the cluster: it has tasks {tasks}.")
        self.devices = [f"/job:{job_name}/task:{task}" for task in tasks]
        self.index = tasks.index(task_index)
        self._channels: list[Channel] = []

    @property
    def size(self) -> int:
        """The number of workers."""
        return len(self.devices)

    @property
    def device(self) -> str:
        """This worker's task."""
        return self.devices[self.index]

    def owns(self, variable: Any) -> bool:
        """Whether the variable is this worker's own: on its task, or nowhere in particular."""
        there, here = DeviceSpec.from_string(variable.device or ""), DeviceSpec.from_string(self.device)
        return (there.job, there.task) in ((here.job, here.task), (None, None))

    def all_reduce(
        self, tensor: Any, algorithm: str = "ring", reduction: str = "sum", name: str | None = None, what: str = ""
    ) -> Tensor:
        """The sum (or "mean") of what all workers give, equal to the last bit for all.

        The others must give tensors of equal shape and dtype, by the same algorithm. ValueError if the shape is not
        known. A step with the result waits for all workers. `what` is how errors call the tensor.
        """
        tensor = convert_to_tensor(tensor)
        plan = schedule(algorithm, self.size)
        with name_scope(name, f"{algorithm}_all_reduce") as scope:
            channel = self._channel(scope, plan, [tensor], what or _described(tensor))
            buffer = Buffer(tensor, plan.pieces)
            play(plan, {self.index: buffer}, channel.carry, reduction)
            return channel.delivered(buffer.tensor())

    def broadcast(self, tensor: Any, name: str | None = None, what: str = "") -> Tensor:
        """The first worker's tensor, for all; down a tree. Shapes and dtypes must be equal."""
        tensor = convert_to_tensor(tensor)
        plan = schedule("tree", self.size)
        with name_scope(name, "broadcast") as scope:
            channel = self._channel(scope, plan, [tensor], what or _described(tensor))
            buffer = Buffer(tensor, plan.pieces)
            play_rounds("gather", plan.gather, {self.index: buffer}, channel.carry, Buffer.get)
            return channel.delivered(buffer.tensor())

    def all_gather(
        self, slices: IndexedSlices, reduction: str = "sum", name: str | None = None, what: str = ""
    ) -> IndexedSlices:
        """All workers' slices, one after the other in the order of workers; together they are the sum (or "mean").

        Each worker may have other rows, and another number of them. They go round a ring, p - 1 messages each.
        """
        with name_scope(name, "ring_all_gather") as scope:
            row = f"{slices.values.dtype.base_dtype.name} rows {slices.values.shape[1:]}"
            plan = schedule("ring", self.size)
            channel = self._channel(scope, plan, [slices.indices, slices.values], what or f"{slices.name} {row}")
            parts = {self.index: (slices.indices, slices.values)}
            before, after = (self.index - 1) % self.size, (self.index + 1) % self.size
            for hop in range(self.size - 1):
                with name_scope(f"gather_{hop}"):
                    channel.send(after, parts[(self.index - hop) % self.size])
                    parts[(before - hop) % self.size] = channel.receive_rows(before, slices.values.shape[1:])
            with device(slices.values.device):
                indices, values = (arrays.concat([parts[w][i] for w in range(self.size)], 0) for i in (0, 1))
                if reduction == "mean":
                    values = math.divide(values, constant(self.size, values.dtype), name="mean")
            return IndexedSlices(channel.delivered(values), indices, slices.dense_shape)

    def _channel(self, scope: str, plan: Rounds, parts: Sequence[Tensor], what: str) -> Channel:
        dtypes = [part.dtype.base_dtype for part in parts]
        channel = Channel(self.devices, self.index, scope.rstrip("/"), plan.ways, dtypes, what)
        self._channels.append(channel)
        return channel

    # -- for the hook -----------------------------------------------------------------------------------------

    def tensors(self) -> list[str]:
        """The purposes of this worker's collectives, to be compared with the others'."""
        return [f"{channel.name}: {channel.what}" for channel in self._channels]

    def clear_op(self) -> Operation:
        """Throw away what an earlier training left in the queues to this worker."""
        return control.group(*(op for channel in self._channels for op in channel.clear_ops()))

    def close_ops(self) -> list[Operation]:
        """An operation per neighbour, which notifies it that this worker has ended."""
        each = [channel.close_ops() for channel in self._channels]
        targets = sorted({target for ops in each for target in ops})
        return [control.group(*(ops[target] for ops in each if target in ops)) for target in targets]

    def fail_ops(self) -> list[Operation]:
        """Operations that notify all others that this worker has failed; a worker that has ended does not notice."""
        return [op for channel in self._channels for op in channel.fail_ops()]


def _described(tensor: Tensor) -> str:
    return f"{tensor.name} {tensor.dtype.base_dtype.name} {tensor.shape}"
