"""Channel: how the pieces of one collective get from one client's graph into another's.

Stands for what `core/common_runtime/base_collective_executor.cc` does under CollectiveReduce.

A piece goes through a queue on the *receiver's* task: its sender puts it in, its receiver takes it. So a step ends
when all that it sends has arrived, and its task may go away then. The queue has its own name,
`all_reduce/bucket_0/from_0_to_1`: collective, sender, receiver. Pieces on one way keep their order, as nothing else
says which is which.

A worker that fails puts into all queues what nobody can take for a piece, so that all others fail, too. One that ends
closes its own, which is the end of the input for the others.

Rule: what arrives is checked before it is used; nothing waits for a worker of which it is known that it has left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant
from dtflab.graph.dtypes import DType
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import control_dependencies, device
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.assertions import functions as assertions
from dtflab.ops.math import functions as math
from dtflab.ops.queues.functions import FIFOQueue
from dtflab.ops.reduce import functions as reduce
from dtflab.train.collectives.schedule import Message

Way = tuple[int, int]  # from a worker to a worker


class Channel:
    """One worker's ends of the queues of a collective, which go the `ways` of a schedule.

    An element has a part for each of `dtypes`: a flat piece of a tensor, or the indices and values of rows. Errors call
    the tensor `what`.
    """

    def __init__(
        self, devices: Sequence[str], index: int, name: str, ways: Sequence[Way], dtypes: Sequence[DType], what: str
    ) -> None:
        self.name = name
        self._ways = ways
        self.what = what
        self._devices = devices
        self._index = index
        self._dtypes = dtypes
        self._queues: dict[Way, FIFOQueue] = {}
        self._latest: dict[Way, Operation] = {}

    def carry(self, message: Message, value: Tensor | None, size: int) -> Tensor | None:
        """This worker's part of a message: send `value`, or receive `size` elements."""
        if value is not None:
            self.send(message.target, [value])
            return None
        pieces = self._receive(message.source, lambda parts: math.equal(arrays.size(parts[0]), size))
        pieces[0].set_shape([size])
        return pieces[0]

    def send(self, target: int, parts: Sequence[Tensor]) -> None:
        """Put an element into the queue to `target`."""
        way = (self._index, target)
        queue = self._queue(way)
        with device(self._cpu(target)), control_dependencies(self._before(way)):
            self._latest[way] = queue.enqueue(list(parts), name=f"to_{target}")

    def receive_rows(self, source: int, row: TensorShape) -> tuple[Tensor, Tensor]:
        """Indices and values of rows of that shape that `source` sends."""
        indices, values = self._receive(source, _are_rows)
        indices.set_shape([None])
        values.set_shape(TensorShape([None]).concatenate(row))
        return indices, values

    def _receive(self, source: int, is_whole: Callable[[list[Tensor]], Tensor]) -> list[Tensor]:
        """The next element from `source`. InvalidArgumentError in the step if it is not whole."""
        way = (source, self._index)
        queue = self._queue(way)
        with device(self._cpu(self._index)), control_dependencies(self._before(way)):
            parts = queue.dequeue(name=f"from_{source}")
        parts = parts if isinstance(parts, list) else [parts]
        self._latest[way] = parts[0].op
        with device(self._cpu(self._index)):
            text = (
                f"{self._devices[source]} sent no part of {self.name}: it or another worker has failed, and its own "
                f"error says why, or its tensor differs from that of {self._devices[self._index]}, {self.what}"
            )
            check = assertions.Assert(is_whole(parts), [text], name=f"check_{source}")
            with control_dependencies([check]):
                return [arrays.identity(part, name=f"checked_{source}") for part in parts]

    def delivered(self, result: Tensor) -> Tensor:
        """`result` in a step in which all that is to be sent has arrived."""
        sent = [op for (source, _), op in self._latest.items() if source == self._index]
        with device(result.device), control_dependencies(sent):
            return arrays.identity(result, name="result")

    def _queue(self, way: Way) -> FIFOQueue:
        source, target = way
        if way not in self._queues:
            name = f"from_{source}_to_{target}"
            with device(self._cpu(target)):
                self._queues[way] = FIFOQueue(-1, self._dtypes, shared_name=f"{self.name}/{name}", name=name)
        return self._queues[way]

    def _before(self, way: Way) -> list[Operation]:
        """The operations that must have run before the next one on that way."""
        return [self._latest[way]] if way in self._latest else []

    def _cpu(self, worker: int) -> str:
        return f"{self._devices[worker]}/cpu:0"

    # -- beginning and ending -----------------------------------------------------------------------------------

    def clear_ops(self) -> list[Operation]:
        """Operations that throw away the queues to this worker, with what is left in them."""
        with device(self._cpu(self._index)):
            handles = [queue.queue_ref for (_, target), queue in self._queues.items() if target == self._index]
            return [apply_op("DestroyResourceOp", "clear", resource=handle) for handle in handles]

    def close_ops(self) -> dict[int, Operation]:
        """For each worker to which this one sends, the operation after which nothing more comes."""
        made = {}
        for (source, target), queue in self._queues.items():
            if source == self._index:
                with device(self._cpu(target)):
                    made[target] = queue.close(cancel_pending_enqueues=True)
        return made

    def fail_ops(self) -> list[Operation]:
        """Operations that make the steps of all other workers fail, one for each way on which somebody may wait.

        A worker that waits for a lost task may have sent everything that it owed it, and so not see that it does not
        answer. So a worker that sees it fails all others.
        """
        no_piece: list[list[int]] = [[]] if len(self._dtypes) == 1 else [[-1], []]  # no elements; a row -1
        parts = [constant(part, dtype) for part, dtype in zip(no_piece, self._dtypes, strict=True)]
        made = []
        for way in self._ways:
            if way[1] != self._index:
                queue = self._queue(way)
                with device(self._cpu(way[1])):
                    made.append(queue.enqueue(parts))
        return made


def _are_rows(parts: Sequence[Tensor]) -> Tensor:
    return reduce.reduce_all(parts[0] >= 0)
