"""all_reduce: tensors on several devices, each of which gets the sum or the mean of all. Written as ops of the graph.

Stands for `python/distribute/v1/all_reduce.py`. Left out: NCCL, several pieces on their way at once.

    with tf.device("/job:worker/task:0"): a = tf.constant([1.0, 2.0])
    with tf.device("/job:worker/task:1"): b = tf.constant([3.0, 4.0])
    on_a, on_b = tf.train.all_reduce([a, b])     # [4, 6] on each of both devices

The messages of schedule.py are built here: a Slice where a piece leaves, an Add where it arrives, a ConcatV2 at the
end, each on the device of its tensor. What crosses devices is an edge of the graph like any other, so placement,
timeline and virtual time show each message: `ring_all_reduce/reduce_1/from_0_to_1`.

Rule: shapes are known when the graph is built, so each piece's place is a constant and an empty piece is not sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import device, name_scope
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.math import functions as math
from dtflab.train.collectives.schedule import Message, Round, Rounds, bounds, schedule

REDUCTIONS = ("sum", "mean")

# Brings `size` elements of a source (None: another client's) to a target: what arrives, None if another client gets it.
Carry = Callable[[Message, Tensor | None, int], Tensor | None]


def all_reduce(
    tensors: Sequence[Tensor], algorithm: str = "ring", reduction: str = "sum", name: str | None = None
) -> list[Tensor]:
    """The sum (or "mean") of `tensors`, once on the device of each: equal to the last bit.

    `algorithm` is "ring", "tree" or "halving_doubling". ValueError if shapes or dtypes differ, or a shape is not known.
    """
    with name_scope(name, f"{algorithm}_all_reduce"):
        tensors = [convert_to_tensor(tensor) for tensor in tensors]
        plan = schedule(algorithm, len(tensors))
        _check_alike(tensors)
        buffers = {worker: Buffer(tensor, plan.pieces) for worker, tensor in enumerate(tensors)}
        play(plan, buffers, lambda message, value, size: value, reduction)
        return [buffers[worker].tensor() for worker in range(plan.workers)]


def _check_alike(tensors: Sequence[Tensor]) -> None:
    """ValueError that names the first tensor that is not like the first of all."""
    first = tensors[0]
    for worker, tensor in enumerate(tensors):
        for what in ("dtype", "shape"):
            own, theirs = getattr(tensor, what), getattr(first, what)
            if own != theirs:
                raise ValueError(
                    f"all_reduce adds tensors of one shape and dtype, but {tensor.name} of worker {worker} has {what} "
                    f"{_text(own)}, and {first.name} of worker 0 has {_text(theirs)}."
                )


def _text(value: object) -> str:
    return str(getattr(value, "name", value))


def play(plan: Rounds, buffers: Mapping[int, Buffer], carry: Carry, reduction: str) -> None:
    """Send and add what the schedule says, for the workers whose buffers are given. ValueError for other reductions."""
    if reduction not in REDUCTIONS:
        raise ValueError(f"Unknown reduction {reduction!r}: choose one of {', '.join(REDUCTIONS)}.")
    dtype = next(iter(buffers.values())).dtype
    if reduction == "mean" and dtype.is_integer:
        raise ValueError(f"The mean of {dtype.name} is not an {dtype.name}: cast the tensors, or ask for their sum.")
    play_rounds("reduce", plan.reduce, buffers, carry, Buffer.add)
    if reduction == "mean" and plan.workers > 1:
        for worker, buffer in buffers.items():
            buffer.divide(*plan.owned[worker], plan.workers)
    play_rounds("gather", plan.gather, buffers, carry, Buffer.get)


Arrive = Callable[["Buffer", int, int, Tensor], None]  # what a buffer does with a value for some of its pieces


def play_rounds(
    half: str, rounds: Sequence[Round], buffers: Mapping[int, Buffer], carry: Carry, arrive: Arrive
) -> None:
    """One half of a schedule. In a round all pieces leave before any arrives."""
    for number, messages in enumerate(rounds):
        with name_scope(f"{half}_{number}"):
            carried = [(message, _carried(message, buffers, carry)) for message in messages]
            for message, value in carried:
                if value is not None:
                    arrive(buffers[message.target], message.first, message.last, value)


def _carried(message: Message, buffers: Mapping[int, Buffer], carry: Carry) -> Tensor | None:
    """The part of a message that arrives at a worker of ours; None if nothing does."""
    ends = [buffers[worker] for worker in (message.source, message.target) if worker in buffers]
    size = ends[0].size(message.first, message.last) if ends else 0
    if not size:
        return None
    source = buffers.get(message.source)
    name = f"from_{message.source}_to_{message.target}"
    value = None if source is None else source.take(message.first, message.last, name)
    return carry(message, value, size)


class _Segment(NamedTuple):
    """Elements `start` … `stop - 1` of the flat tensor; `tensor` begins with element `origin`."""

    start: int
    stop: int
    tensor: Tensor
    origin: int

    def cut(self, start: int, stop: int, name: str) -> Tensor:
        """The elements from `start` to `stop` as far as they are here."""
        start, stop = max(start, self.start), min(stop, self.stop)
        if self.tensor.shape[0] == stop - start:
            return self.tensor
        return indexing.slice(self.tensor, [start - self.origin], [stop - start], name=name)

    def clip(self, start: int, stop: int) -> _Segment:
        return self._replace(start=max(start, self.start), stop=min(stop, self.stop))


class Buffer:
    """A worker's copy of the tensor while it is reduced: flat, in segments that arrive one after the other."""

    def __init__(self, tensor: Tensor, pieces: int) -> None:
        """ValueError if the tensor's shape is not fully known."""
        if not tensor.shape.is_fully_defined():
            raise ValueError(
                f"all_reduce cuts tensors in pieces of known size, but {tensor.name} has the shape {tensor.shape}: "
                "give it with set_shape()."
            )
        self.dtype = tensor.dtype
        self.device = tensor.device
        self._shape = tensor.shape
        with device(self.device):
            flat = tensor if tensor.shape.ndims == 1 else arrays.reshape(tensor, [-1], name="flat")
        size = tensor.shape.num_elements() or 0
        self._bounds = bounds(size, pieces)
        self._segments = [_Segment(0, size, flat, 0)]

    def size(self, first: int, last: int) -> int:
        """How many elements are in these pieces."""
        return self._bounds[last] - self._bounds[first]

    def take(self, first: int, last: int, name: str) -> Tensor:
        """The pieces as they are now, as one flat tensor."""
        start, stop = self._bounds[first], self._bounds[last]
        with device(self.device):
            parts = [s.cut(start, stop, name) for s in self._segments if s.start < stop and start < s.stop]
            if not parts:  # of a tensor without elements
                return self._segments[0].tensor
            return parts[0] if len(parts) == 1 else arrays.concat(parts, 0, name=name)

    def get(self, first: int, last: int, value: Tensor) -> None:
        """Take over what arrives: it is passed on from here, not from where it comes from."""
        with device(self.device):
            self._put(first, last, arrays.identity(value, name="copy"))

    def add(self, first: int, last: int, value: Tensor) -> None:
        """Add `value` to the pieces."""
        own = self.take(first, last, "own")
        with device(self.device):
            self._put(first, last, math.add(own, value, name="sum"))

    def divide(self, first: int, last: int, by: int) -> None:
        """Divide the pieces, if they are any."""
        if self.size(first, last):
            own = self.take(first, last, "total")
            with device(self.device):
                self._put(first, last, math.divide(own, constant(by, self.dtype), name="mean"))

    def tensor(self) -> Tensor:
        """All pieces, in the shape of the tensor."""
        flat = self.take(0, len(self._bounds) - 1, "reduced")
        with device(self.device):
            return flat if self._shape.ndims == 1 else arrays.reshape(flat, self._shape, name="shaped")

    def _put(self, first: int, last: int, value: Tensor) -> None:
        start, stop = self._bounds[first], self._bounds[last]
        before = [s.clip(s.start, start) for s in self._segments if s.start < start]
        after = [s.clip(stop, s.stop) for s in self._segments if s.stop > stop]
        self._segments = [*before, _Segment(start, stop, value, start), *after]
