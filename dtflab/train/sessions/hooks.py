"""Hooks that watch and steer a training: when to stop, what to log, what to feed.

Stands for part of `python/training/basic_session_run_hooks.py`; those that write files are in `recording_hooks.py`.
Left out: running several steps in one run (Estimator's loops on TPUs).

Rule: the global step that a hook gets with a run may be older or newer than the run's own update, so a hook decides
by it only roughly and reads the step again, after the run, before it acts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dtflab.base import errors, tf_logging
from dtflab.graph.scopes import get_default_graph
from dtflab.machine.clock import CURRENT, Clock
from dtflab.runtime.session import Session
from dtflab.train import training_util
from dtflab.train.input.coordinator import Coordinator
from dtflab.train.sessions.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues


def global_step_read(hook: str) -> Any:
    """The tensor that reads the global step for all hooks; RuntimeError that names `hook` if there is no step."""
    tensor = training_util._get_or_create_global_step_read()
    if tensor is None:
        raise RuntimeError(f"Global step should be created to use {hook}.")
    return tensor


# -- when a hook acts ----------------------------------------------------------------------------------------------


class SecondOrStepTimer:
    """Says yes at most once every `every_secs` seconds or once every `every_steps` steps; the first time always.

    ValueError unless exactly one of the two is given.
    """

    def __init__(
        self, every_secs: float | None = None, every_steps: int | None = None, *, clock: Clock = CURRENT
    ) -> None:
        if every_secs is None and every_steps is None:
            raise ValueError("Either every_secs or every_steps should be provided.")
        if every_secs is not None and every_steps is not None:
            raise ValueError("Can not provide both every_secs and every_steps.")
        self._every_secs = every_secs
        self._every_steps = every_steps
        self._clock = clock
        self.reset()

    def reset(self) -> None:
        """Reset the timer: its next step triggers."""
        self._last_triggered_step: int | None = None
        self._last_triggered_time: float | None = None

    def should_trigger_for_step(self, step: int) -> bool:
        """Whether enough steps or seconds have passed by `step` since the last trigger."""
        if self._last_triggered_step is None or self._last_triggered_time is None:
            return True
        if self._last_triggered_step == step:
            return False
        if self._every_secs is not None:
            return self._clock.time() >= self._last_triggered_time + self._every_secs
        return bool(step >= self._last_triggered_step + (self._every_steps or 0))

    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        """Note that `step` triggered. Returns the seconds and steps since the trigger before, (None, None) at first."""
        now = self._clock.time()
        elapsed: tuple[float | None, int | None] = None, None
        if self._last_triggered_step is not None and self._last_triggered_time is not None:
            elapsed = now - self._last_triggered_time, step - self._last_triggered_step
        self._last_triggered_step, self._last_triggered_time = step, now
        return elapsed

    def last_triggered_step(self) -> int | None:
        """The step of the last trigger, None before the first."""
        return self._last_triggered_step


class NeverTriggerTimer(SecondOrStepTimer):
    """Never says yes: for a hook that only acts at the end."""

    def __init__(self) -> None:
        super().__init__(every_steps=1)

    def should_trigger_for_step(self, step: int) -> bool:
        return False

    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        return None, None


# -- stopping ------------------------------------------------------------------------------------------------------


class StopAtStepHook(SessionRunHook):
    """Stops after `num_steps` steps more than there were at the start, or when the global step is `last_step`."""

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        if num_steps is None and last_step is None:
            raise ValueError("One of num_steps or last_step must be specified.")
        if num_steps is not None and last_step is not None:
            raise ValueError("Only one of num_steps or last_step can be specified.")
        self._num_steps = num_steps
        self._last_step = last_step

    def begin(self) -> None:
        self._global_step_tensor = global_step_read("StopAtStepHook")

    def after_create_session(self, session: Session, coord: Coordinator) -> None:
        if self._last_step is None:
            self._last_step = session.run(self._global_step_tensor) + self._num_steps

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._global_step_tensor)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        near = run_values.results + 1 >= self._last_step
        if near and run_context.session.run(self._global_step_tensor) >= self._last_step:
            run_context.request_stop()


class NanLossDuringTrainingError(RuntimeError):
    """The loss became NaN."""

    def __str__(self) -> str:
        return "NaN loss during training."


class NanTensorHook(SessionRunHook):
    """Stops when `loss_tensor` is NaN: with NanLossDuringTrainingError, or only so if not `fail_on_nan_loss`."""

    def __init__(self, loss_tensor: Any, fail_on_nan_loss: bool = True) -> None:
        self._loss_tensor = loss_tensor
        self._fail_on_nan_loss = fail_on_nan_loss

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._loss_tensor)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if np.isnan(run_values.results):
            message = "Model diverged with loss = NaN."
            if self._fail_on_nan_loss:
                tf_logging.error(message)
                raise NanLossDuringTrainingError
            tf_logging.warning(message)
            run_context.request_stop()


class GlobalStepWaiterHook(SessionRunHook):
    """Holds a worker's first run back until the global step is `wait_until_step`; looks twice a second.

    So workers of a cluster can start one after the other.
    """

    def __init__(self, wait_until_step: int, *, clock: Clock = CURRENT) -> None:
        self._wait_until_step = wait_until_step
        self._clock = clock

    def begin(self) -> None:
        self._worker_is_started = False
        self._global_step_tensor = global_step_read("_GlobalStepWaiterHook")

    def before_run(self, run_context: SessionRunContext) -> None:
        if not self._worker_is_started and self._wait_until_step > 0:
            self._wait(run_context.session)
        self._worker_is_started = True

    def _wait(self, session: Session) -> None:
        tf_logging.info("Waiting for global step %d before starting training.", self._wait_until_step)
        logged = 0
        while (step := session.run(self._global_step_tensor)) < self._wait_until_step:
            if step - logged > 1000:
                tf_logging.info(
                    "Waiting for global step %d before starting training. Current step is %d.",
                    self._wait_until_step,
                    step,
                )
                logged = step
            self._clock.sleep(0.5)


# -- looking -------------------------------------------------------------------------------------------------------


class LoggingTensorHook(SessionRunHook):
    """Logs the values of tensors, with level INFO, every `every_n_iter` runs, every `every_n_secs` seconds, at the end.

    `tensors` is a dict of tags and tensors (or their names), or an iterable of tensors or names. `formatter` makes the
    line out of a dict of tags and values. To see the lines: `tf.logging.set_verbosity(tf.logging.INFO)`.
    """

    def __init__(
        self,
        tensors: Any,
        every_n_iter: int | None = None,
        every_n_secs: float | None = None,
        at_end: bool = False,
        formatter: Callable[[dict[Any, Any]], str] | None = None,
    ) -> None:
        only_at_end = at_end and every_n_iter is None and every_n_secs is None
        if not only_at_end and (every_n_iter is None) == (every_n_secs is None):
            raise ValueError("either at_end and/or exactly one of every_n_iter and every_n_secs must be provided.")
        if every_n_iter is not None and every_n_iter <= 0:
            raise ValueError(f"invalid every_n_iter={every_n_iter}.")
        self._tag_order: Iterable[Any] = sorted(tensors) if isinstance(tensors, dict) else tensors
        self._tensors = tensors if isinstance(tensors, dict) else {item: item for item in tensors}
        self._formatter = formatter
        self._timer = NeverTriggerTimer() if only_at_end else SecondOrStepTimer(every_n_secs, every_n_iter)
        self._log_at_end = at_end

    def begin(self) -> None:
        self._timer.reset()
        self._iter_count = 0
        self._current_tensors = {tag: _as_graph_element(tensor) for tag, tensor in self._tensors.items()}

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        self._should_trigger = self._timer.should_trigger_for_step(self._iter_count)
        return SessionRunArgs(self._current_tensors) if self._should_trigger else None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if self._should_trigger:
            self._log_tensors(run_values.results)
        self._iter_count += 1

    def end(self, session: Session) -> None:
        if self._log_at_end:
            self._log_tensors(session.run(self._current_tensors))

    def _log_tensors(self, values: dict[Any, Any]) -> None:
        elapsed_secs, _ = self._timer.update_last_triggered_step(self._iter_count)
        with np.printoptions(suppress=True):
            if self._formatter:
                tf_logging.info(self._formatter(values))
                return
            line = ", ".join(f"{tag} = {values[tag]!s}" for tag in self._tag_order)  # str: 0.1, not all of its digits
        if elapsed_secs is None:
            tf_logging.info("%s", line)
        else:
            tf_logging.info("%s (%.3f sec)", line, elapsed_secs)


def _as_graph_element(value: Any) -> Any:
    """The tensor or operation that is meant; a name without a `:` is that of an operation with one output."""
    graph = get_default_graph()
    if not isinstance(value, str):
        if getattr(value, "graph", None) is not graph:
            raise ValueError(f"Passed {value} should have graph attribute that is equal to current graph {graph}.")
        return value
    if ":" in value:
        return graph.as_graph_element(value)
    element = graph.as_graph_element(f"{value}:0")
    if len(element.op.outputs) > 1:
        raise ValueError(f"Name {value} is ambiguous, as this `Operation` has multiple outputs (at least 2).")
    return element


class FinalOpsHook(SessionRunHook):
    """Runs `final_ops` when the training ends; their values are in `final_ops_values`, None before."""

    def __init__(self, final_ops: Any, final_ops_feed_dict: Any = None) -> None:
        self._final_ops = final_ops
        self._final_ops_feed_dict = final_ops_feed_dict
        self._final_ops_values: Any = None

    @property
    def final_ops_values(self) -> Any:
        return self._final_ops_values

    def end(self, session: Session) -> None:
        if self._final_ops is None:
            return
        try:
            self._final_ops_values = session.run(self._final_ops, feed_dict=self._final_ops_feed_dict)
        except (errors.OutOfRangeError, StopIteration):
            tf_logging.warning(
                "An OutOfRangeError or StopIteration exception is raised by the code in FinalOpsHook. This typically "
                "means the Ops running by the FinalOpsHook have a dependency back to some input source, which should "
                "not happen: the input has ended, so that nothing more can be read. Fetch only what depends on "
                "variables, for example the value of a metric and not its update."
            )
            raise


class FeedFnHook(SessionRunHook):
    """Feeds each run with what `feed_fn()` returns."""

    def __init__(self, feed_fn: Callable[[], dict[Any, Any]]) -> None:
        self.feed_fn = feed_fn

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(fetches=None, feed_dict=self.feed_fn())
