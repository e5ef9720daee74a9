"""How conditional accumulators behave: gradients are summed until there are enough, then their mean is taken.

Stands for `core/kernels/conditional_accumulator_base.cc`, `typed_conditional_accumulator_base.h` and the two kinds,
`conditional_accumulator.h` and `sparse_conditional_accumulator.h`.

Rules: an accumulator has a step of its own; each take adds 1 to it. A gradient that was computed in an earlier step is
stale: it is dropped, and counted. Takes stand in line; the first gets the mean of all
gradients once there are as many as it requires, and the accumulator starts again with none.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dtflab.base import errors, tf_logging
from dtflab.graph.dtypes import DType
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.messages import check_rank, invalid, shape_text

Gradient = tuple[Any, ...]  # what one kind adds up: the value, or indices, values and shape


class Take(NamedTuple):
    """An op that waits for `required` gradients. `done(mean, error)` is called once."""

    required: int
    done: Callable[[Any, Exception | None], Any]
    op: str = ""
    step: int = 0


class Accumulator:
    """The sum of some gradients, their number, and the ops that wait for more."""

    def __init__(self, name: str, dtype: DType, shape: TensorShape, reduction: str) -> None:
        self.name, self.dtype, self.shape = name, dtype, shape
        self.dropped = 0  # stale gradients so far
        self._mean = reduction == "MEAN"
        self._sum: Any = None  # None while there are no gradients
        self._count = self._step = 0
        self._line: deque[Take] = deque()
        self._lock = threading.Lock()

    # -- what a kind decides --------------------------------------------------------------------------

    def check(self, gradient: Gradient, total: Any) -> None:
        """Raise InvalidArgumentError unless the gradient fits the accumulator's shape and the sum so far, if any."""
        raise NotImplementedError

    def add(self, total: Any, gradient: Gradient) -> Any:
        """The sum with one gradient more; `total` is None before the first."""
        raise NotImplementedError

    def result(self, total: Any, count: int | None) -> Any:
        """The result of a take: the sum, divided by the count if that is given."""
        raise NotImplementedError

    # -- what all do ------------------------------------------------------------------------------------

    def apply(self, local_step: int, gradient: Gradient) -> None:
        """Add a gradient computed in step `local_step`, unless it is stale."""
        with self._lock:
            if local_step < self._step:
                self.dropped += 1
                return
            self.check(gradient, self._sum)
            self._sum = self.add(self._sum, gradient)
            self._count += 1
            served = self._serve()
        _finish(served)

    def take(self, take: Take) -> None:
        """Join the line for the mean. Raises InvalidArgumentError if `take` requires no gradient."""
        if take.required <= 0:
            raise invalid(f"Argument num_required must be positive, but was {take.required}")
        with self._lock:
            self._line.append(take)
            served = self._serve()
        _finish(served)

    def leave(self, take: Take) -> None:
        """Remove `take` from the line, if it is still there: its step was cancelled."""
        with self._lock:
            if take not in self._line:
                return
            self._line.remove(take)
            served = self._serve()
        take.done(None, _cancelled())
        _finish(served)

    def close(self) -> None:
        """Cancel every take in line: the container is reset, so no more gradients will come."""
        with self._lock:
            gone = list(self._line)
            self._line.clear()
        for take in gone:
            take.done(None, _cancelled())

    def _serve(self) -> list[tuple[Take, Any]]:
        """The first take in line with its mean, if there is enough for it. Nothing is left for a second one."""
        if not self._line or self._count < self._line[0].required:
            return []
        mean = self.result(self._sum, self._count if self._mean else None)
        self._sum, self._count = None, 0
        self._step += 1
        return [(self._line.popleft(), mean)]

    def set_global_step(self, step: int) -> None:
        """Gradients of earlier steps are stale from now on."""
        with self._lock:
            before, self._step = self._step, step
        if step < before:
            tf_logging.warning(
                "Attempt to set current_global_step_ to smaller value: "
                f"current_global_step_ = {before} >= {step} = new_global_step."
            )

    def waits(self) -> list[str]:
        """One line for each op that waits: how many gradients there are, and how many it requires."""
        here = f"waits at accumulator '{self.name}' with {self._count} gradients for"
        return [f"{take.op} {here} {take.required} (step {take.step})" for take in self.waiting()]

    def waiting(self) -> list[Take]:
        """The ops that wait, in the order of their line."""
        with self._lock:
            return list(self._line)

    @property
    def num_accumulated(self) -> int:
        """How many gradients there are."""
        return self._count

    def __repr__(self) -> str:
        here = f"{self._count} gradients, step {self._step}, {len(self._line)} waiting, {self.dropped} came too late"
        return f"<accumulator {self.name}: {here}>"


def _finish(served: list[tuple[Take, Any]]) -> None:
    for take, mean in served:
        take.done(mean, None)


def _cancelled() -> errors.CancelledError:
    return errors.CancelledError.of("TakeGrad operation was cancelled")


class DenseAccumulator(Accumulator):
    """Adds up arrays of one shape."""

    def check(self, gradient: Gradient, total: Any) -> None:
        shape = gradient[0].shape
        if total is not None and total.shape != shape:
            raise invalid(f"Shape mismatch: expected {shape_text(total.shape)}, got {shape_text(shape)}")
        if not self.shape.is_compatible_with(shape):
            raise invalid(f"Shape mismatch: expected {shape_text(self.shape)}, got {shape_text(shape)}")

    def add(self, total: Any, gradient: Gradient) -> Any:
        return gradient[0] if total is None else total + gradient[0]

    def result(self, total: Any, count: int | None) -> Any:
        return total if count is None else total / total.dtype.type(count)


class Rows(NamedTuple):
    """A sum of rows: where they belong, what they sum to, and how many gradients had each."""

    indices: Any
    values: Any
    counts: Any


class SparseAccumulator(Accumulator):
    """Adds up gradients of rows, with increasing indices; a row is averaged over the gradients that have it."""

    def check(self, gradient: Gradient, total: Any) -> None:
        indices, values, shape = gradient
        check_rank(indices, 1, "Input indices should be vector but received shape: {}")
        if values.ndim == 0:
            raise invalid("Values cannot be 0-dimensional.")
        if values.shape[0] != len(indices):
            raise invalid(f"Expected {len(indices)} non-empty input values, got {values.shape[0]}")
        declared = self.shape.as_list() if self.shape.ndims is not None else []
        if shape is not None:
            _check_rank("shape", declared, shape)
            _check_sizes("shape", declared, shape)
        if declared and declared[0] is not None:
            _check_limits(indices, declared[0])
        if total is None:
            _check_rank("values", declared, values.shape)
        elif total.values.ndim != values.ndim:
            raise invalid(f"Shape mismatch: expected values rank {total.values.ndim}, got {values.ndim}")
        expected = declared if total is None else list(total.values.shape)
        _check_sizes("values", [None, *expected[1:]], values.shape)

    def add(self, total: Any, gradient: Gradient) -> Any:
        indices, values, _ = gradient
        ones = np.ones(len(indices), np.int64)
        if total is None:
            return Rows(indices, values, ones)
        merged, old, new = _merge(total.indices.tolist(), indices.tolist())
        sums, counts = np.zeros((len(merged), *values.shape[1:]), values.dtype), np.zeros(len(merged), np.int64)
        for places, part, times in ((old, total.values, total.counts), (new, values, ones)):
            sums[places] += part
            counts[places] += times
        return Rows(np.array(merged, np.int64), sums, counts)

    def result(self, total: Any, count: int | None) -> Any:
        values = total.values
        if count is not None:
            counts = total.counts.astype(values.dtype)
            values = values / counts.reshape((-1,) + (1,) * (values.ndim - 1))
        rows = self.shape[0].value if self.shape.ndims else None
        return total.indices, values, np.array([-1 if rows is None else rows, *values.shape[1:]], np.int64)


def _merge(a: Sequence[int], b: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
    """Two increasing sequences merged, and the places of the items of `a` and of `b` in the result."""
    merged: list[int] = []
    from_a: list[int] = []
    from_b: list[int] = []
    i = j = 0
    while i < len(a) or j < len(b):
        take_a = j == len(b) or (i < len(a) and a[i] <= b[j])
        take_b = i == len(a) or (j < len(b) and b[j] <= a[i])
        if take_a:
            from_a.append(len(merged))
        if take_b:
            from_b.append(len(merged))
        merged.append(a[i] if take_a else b[j])
        i, j = i + take_a, j + take_b
    return merged, from_a, from_b


def _check_rank(what: str, declared: Sequence[int | None], sizes: Sequence[int]) -> None:
    if len(declared) > len(sizes):
        raise invalid(f"Shape mismatch: expected {what} rank at least {len(declared)}, got {len(sizes)}")


def _check_sizes(what: str, declared: Sequence[int | None], sizes: Sequence[int]) -> None:
    for axis, (size, got) in enumerate(zip(declared, sizes)):
        if size is not None and size != got:
            raise invalid(f"Shape mismatch: expected {what} dim {axis} to be {size}, got {got}")


def _check_limits(indices: Any, rows: int) -> None:
    beyond = np.flatnonzero(indices >= rows)
    if len(beyond):
        at = int(beyond[0])
        raise invalid(
            f"Shape mismatch: index of slice {at} exceeded limits of shape; index is {indices[at]} exceeded {rows}"
        )
