"""Metering: an iteration reports to the meter of its task when it computes, and with which error it fails."""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import TYPE_CHECKING, Any

from dtflab.ops.messages import op_error
from dtflab.runtime import frames

if TYPE_CHECKING:
    from dtflab.machine.meter import Meter
    from dtflab.runtime.executor import Iteration
    from dtflab.runtime.runner import Step


def driving(process: Callable[[Any], None]) -> Callable[[Any], None]:
    """`Iteration.process`, in which the task computes, on the thread that drives the step."""

    def metered(iteration: Any) -> None:
        iteration.thread = get_ident()
        with iteration.executor.device.meter:
            process(iteration)

    return metered


def on_a_pool(compute: Callable[..., Any]) -> Callable[..., Any]:
    """`Iteration._compute`, in which the task computes; on the thread that drives the step that is known."""

    def metered(iteration: Any, n: int, args: list[Any]) -> Any:
        if iteration.thread == get_ident():
            return compute(iteration, n, args)
        with iteration.executor.device.meter:
            return compute(iteration, n, args)

    return metered


def fail(iteration: Iteration, n: int, error: Exception) -> None:
    """Node `n` has failed: so does its step. The first error of a step is the last one of the task."""
    iteration.ready.clear()
    if n < 0:  # not a node's fault but ours
        raise error
    executor, step = iteration.executor, iteration.step
    failed = op_error(error, executor.nodes[n], executor.device.name + frames.place_of(iteration))
    fail_step(executor.device.meter, step, failed)


def fail_step(meter: Meter, step: Step, error: Exception) -> None:
    """Fail a step, and note why at a task, unless the step has failed before."""
    if step.error is None:
        meter.error = f"{type(error).__name__}: {error}"
    step.fail(error)
