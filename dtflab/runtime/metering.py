"""Metering: an iteration reports to the meter of its task when it computes, and with which error it fails."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dtflab.ops.messages import op_error
from dtflab.runtime import frames

if TYPE_CHECKING:
    from dtflab.runtime.executor import Iteration


def metered(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of an Iteration, in which its task computes."""

    @functools.wraps(method)
    def call(iteration: Iteration, *args: Any) -> Any:
        with iteration.executor.device.meter:
            return method(iteration, *args)

    return call


def fail(iteration: Iteration, n: int, error: Exception) -> None:
    """Node `n` has failed: so does its step. The first error of a step is the last one of the task."""
    iteration.ready.clear()
    if n < 0:  # not a node's fault but ours
        raise error
    executor, step = iteration.executor, iteration.step
    failed = op_error(error, executor.nodes[n], executor.device.name + frames.place_of(iteration))
    if step.error is None:
        executor.device.meter.error = f"{type(failed).__name__}: {failed}"
    step.fail(failed)
