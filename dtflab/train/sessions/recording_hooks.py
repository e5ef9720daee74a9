"""Hooks that write files while a model trains: checkpoints, summaries, steps per second, traces.

Stands for part of `python/training/basic_session_run_hooks.py`.

Rule: as in `hooks.py`, a hook reads the global step again before it writes under that step.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from dtflab.base import tf_logging
from dtflab.files.gfile import GFile
from dtflab.files.graph_io import write_graph
from dtflab.files.timeline import Timeline
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.scopes import get_default_graph
from dtflab.protos.config_pb2 import RunOptions
from dtflab.protos.event_pb2 import SessionLog
from dtflab.protos.summary_pb2 import Summary
from dtflab.runtime.session import Session
from dtflab.train import training_util
from dtflab.train.checkpoints.meta_graph import create_meta_graph_def
from dtflab.train.checkpoints.saver import collected_saver
from dtflab.train.input.coordinator import Coordinator
from dtflab.train.sessions.hooks import SecondOrStepTimer, global_step_read
from dtflab.train.sessions.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from dtflab.train.summaries.summary_writer import FileWriterCache

# -- checkpoints ---------------------------------------------------------------------------------------------------


class CheckpointSaverListener:
    """Code that goes along with each checkpoint of a CheckpointSaverHook; each method does nothing here."""

    def begin(self) -> None:
        """Called once, before the session is made."""

    def before_save(self, session: Session, global_step_value: int) -> None:
        """Called before a checkpoint is written."""

    def after_save(self, session: Session, global_step_value: int) -> bool | None:
        """Called after a checkpoint was written; True stops the training."""

    def end(self, session: Session, global_step_value: int) -> None:
        """Called once, when the training ends."""


class CheckpointSaverHook(SessionRunHook):
    """Saves a checkpoint at the start, every `save_secs` seconds or `save_steps` steps, and at the end.

    The saver is `saver`, or that of the `scaffold`, or the only one in the collection SAVERS. Also writes the graph,
    as `graph.pbtxt` and into the folder's event file. With `save_graph_def=False` no `graph.pbtxt` and no `.meta`.
    """

    def __init__(
        self,
        checkpoint_dir: str,
        save_secs: float | None = None,
        save_steps: int | None = None,
        saver: Any = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: Any = None,
        listeners: Sequence[CheckpointSaverListener] | None = None,
        save_graph_def: bool = True,
    ) -> None:
        tf_logging.info("Create CheckpointSaverHook.")
        if saver is not None and scaffold is not None:
            raise ValueError("You cannot provide both saver and scaffold.")
        self._saver = saver
        self._checkpoint_dir = checkpoint_dir
        self._save_path = os.path.join(checkpoint_dir, checkpoint_basename)
        self._scaffold = scaffold
        self._timer = SecondOrStepTimer(save_secs, save_steps)
        self._listeners = listeners or []
        self._steps_per_run = 1000000  # how many steps a run may make, at most: the step read with it is as old
        self._save_graph_def = save_graph_def

    def _set_steps_per_run(self, steps_per_run: int) -> None:
        self._steps_per_run = steps_per_run

    def begin(self) -> None:
        self._summary_writer = FileWriterCache.get(self._checkpoint_dir)
        self._global_step_tensor = global_step_read("CheckpointSaverHook")
        for listener in self._listeners:
            listener.begin()

    def after_create_session(self, session: Session, coord: Coordinator) -> None:
        step = session.run(self._global_step_tensor)
        graph = get_default_graph()
        graph_def = graph.as_graph_def(add_shapes=True)
        if self._save_graph_def:
            write_graph(graph_def, self._checkpoint_dir, "graph.pbtxt")
        saver = self._get_saver()
        self._summary_writer.add_graph(graph)
        self._summary_writer.add_meta_graph(
            create_meta_graph_def(graph_def=graph_def, saver_def=saver.saver_def if saver else None)
        )
        self._save(session, step)
        self._timer.update_last_triggered_step(step)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._global_step_tensor)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if not self._timer.should_trigger_for_step(run_values.results + self._steps_per_run):
            return
        step = run_context.session.run(self._global_step_tensor)
        if self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
            if self._save(run_context.session, step):
                run_context.request_stop()

    def end(self, session: Session) -> None:
        step = session.run(self._global_step_tensor)
        if step != self._timer.last_triggered_step():
            self._save(session, step)
        for listener in self._listeners:
            listener.end(session, step)

    def _save(self, session: Session, step: int) -> bool:
        """Write a checkpoint; whether a listener wants to stop."""
        tf_logging.info("Calling checkpoint listeners before saving checkpoint %d...", step)
        for listener in self._listeners:
            listener.before_save(session, step)
        tf_logging.info("Saving checkpoints for %d into %s.", step, self._save_path)
        self._get_saver().save(session, self._save_path, global_step=step, write_meta_graph=self._save_graph_def)
        self._summary_writer.add_session_log(
            SessionLog(status=SessionLog.CHECKPOINT, checkpoint_path=self._save_path), step
        )
        tf_logging.info("Calling checkpoint listeners after saving checkpoint %d...", step)
        should_stop = False
        for listener in self._listeners:
            if listener.after_save(session, step):
                tf_logging.info("A CheckpointSaverListener requested that training be stopped. listener: %s", listener)
                should_stop = True
        return should_stop

    def _get_saver(self) -> Any:
        if self._saver is None and self._scaffold is not None:
            return self._scaffold.saver
        if self._saver is None:
            self._saver = collected_saver()
            if self._saver is None:
                raise RuntimeError(
                    f"No items in collection {GraphKeys.SAVERS}. Please add a saver to the collection or provide a "
                    "saver or scaffold."
                )
        return self._saver


# -- summaries -----------------------------------------------------------------------------------------------------


_NOT_INCREASED = (
    "It seems that global step (tf.train.get_global_step) has not been increased. Current value (could be stable): %s "
    "vs previous value: %s. You could increase the global step by passing tf.train.get_global_step() to "
    "Optimizer.apply_gradients or Optimizer.minimize."
)


class StepCounterHook(SessionRunHook):
    """Logs how many global steps were made a second, and writes it as the summary `global_step/sec`."""

    def __init__(
        self,
        every_n_steps: int | None = 100,
        every_n_secs: float | None = None,
        output_dir: str | None = None,
        summary_writer: Any = None,
    ) -> None:
        if (every_n_steps is None) == (every_n_secs is None):
            raise ValueError("exactly one of every_n_steps and every_n_secs should be provided.")
        self._timer = SecondOrStepTimer(every_n_secs, every_n_steps)
        self._summary_writer = summary_writer
        self._output_dir = output_dir
        self._last_global_step: int | None = None
        self._steps_per_run = 1

    def _set_steps_per_run(self, steps_per_run: int) -> None:
        self._steps_per_run = steps_per_run

    def begin(self) -> None:
        if self._summary_writer is None and self._output_dir:
            self._summary_writer = FileWriterCache.get(self._output_dir)
        self._global_step_tensor = global_step_read("StepCounterHook")
        self._summary_tag = f"{training_util.get_global_step().op.name}/sec"

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._global_step_tensor)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        stale_step = run_values.results
        if self._timer.should_trigger_for_step(stale_step + self._steps_per_run):
            step = run_context.session.run(self._global_step_tensor)
            if self._timer.should_trigger_for_step(step):
                elapsed_time, elapsed_steps = self._timer.update_last_triggered_step(step)
                if elapsed_time is not None and elapsed_steps is not None:
                    self._log_and_record(elapsed_steps, elapsed_time, step)
        if stale_step == self._last_global_step:
            tf_logging.log_first_n(tf_logging.WARN, _NOT_INCREASED, 5, stale_step, self._last_global_step)
        self._last_global_step = stale_step

    def _log_and_record(self, elapsed_steps: int, elapsed_time: float, global_step: int) -> None:
        rate = elapsed_steps / elapsed_time
        if self._summary_writer is not None:
            summary = Summary(value=[Summary.Value(tag=self._summary_tag, simple_value=rate)])
            self._summary_writer.add_summary(summary, global_step)
        tf_logging.info("%s: %g", self._summary_tag, rate)


class SummarySaverHook(SessionRunHook):
    """Writes summaries of the first run, then every `save_steps` steps or `save_secs` seconds.

    `summary_op` is a summary or a list of them; else it is that of the `scaffold`. The writer is `summary_writer`, or
    that of the folder `output_dir`.
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: str | None = None,
        summary_writer: Any = None,
        scaffold: Any = None,
        summary_op: Any = None,
    ) -> None:
        if (scaffold is None) == (summary_op is None):
            raise ValueError("Exactly one of scaffold or summary_op must be provided.")
        self._summary_op = summary_op
        self._summary_writer = summary_writer
        self._output_dir = output_dir
        self._scaffold = scaffold
        self._timer = SecondOrStepTimer(save_secs, save_steps)

    def begin(self) -> None:
        if self._summary_writer is None and self._output_dir:
            self._summary_writer = FileWriterCache.get(self._output_dir)
        self._next_step: int | None = None
        self._global_step_tensor = global_step_read("SummarySaverHook")

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        self._request_summary = self._next_step is None or self._timer.should_trigger_for_step(self._next_step)
        requests = {"global_step": self._global_step_tensor}
        if self._request_summary and (summaries := self._get_summary_op()) is not None:
            requests["summary"] = summaries
        return SessionRunArgs(requests)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        if not self._summary_writer:
            return
        step = run_values.results["global_step"] + 1
        if self._request_summary:
            step = run_context.session.run(self._global_step_tensor)
        if self._next_step is None:
            self._summary_writer.add_session_log(SessionLog(status=SessionLog.START), step)
        if self._request_summary:
            self._timer.update_last_triggered_step(step)
            for summary in run_values.results.get("summary", ()):
                self._summary_writer.add_summary(summary, step)
        self._next_step = step + 1

    def end(self, session: Session | None = None) -> None:
        if self._summary_writer:
            self._summary_writer.flush()

    def _get_summary_op(self) -> list[Any] | None:
        found = self._scaffold.summary_op if self._summary_op is None else self._summary_op
        return found if found is None or isinstance(found, list) else [found]


# -- traces --------------------------------------------------------------------------------------------------------


class ProfilerHook(SessionRunHook):
    """Traces a run every `save_steps` steps or `save_secs` seconds, not the first.

    Each trace is a file `timeline-<step>.json` in `output_dir`, for `chrome://tracing`, and goes into the event file
    there as the run metadata `step_<step>`.
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: str = "",
        show_dataflow: bool = True,
        show_memory: bool = False,
    ) -> None:
        self._timer = SecondOrStepTimer(save_secs, save_steps)
        self._output_file = os.path.join(output_dir, "timeline-{}.json")
        self._file_writer = FileWriterCache.get(output_dir)
        self._show_dataflow = show_dataflow
        self._show_memory = show_memory

    def begin(self) -> None:
        self._next_step: int | None = None
        self._global_step_tensor = global_step_read("ProfilerHook")

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        self._request_summary = self._next_step is not None and self._timer.should_trigger_for_step(self._next_step)
        options = RunOptions(trace_level=RunOptions.FULL_TRACE) if self._request_summary else None
        return SessionRunArgs({"global_step": self._global_step_tensor}, options=options)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        stale_step = run_values.results["global_step"]
        if self._next_step is None:
            self._timer.update_last_triggered_step(stale_step)
        step = stale_step + 1
        if self._request_summary:
            step = run_context.session.run(self._global_step_tensor)
            self._timer.update_last_triggered_step(step)
            self._save(step, self._output_file.format(step), run_values.run_metadata.step_stats)
            self._file_writer.add_run_metadata(run_values.run_metadata, f"step_{step}")
        self._next_step = step + 1

    def _save(self, step: int, save_path: str, step_stats: Any) -> None:
        tf_logging.info("Saving timeline for %d into '%s'.", step, save_path)
        trace = Timeline(step_stats)
        with GFile(save_path, "w") as file:
            file.write(trace.generate_chrome_trace_format(self._show_dataflow, self._show_memory))
