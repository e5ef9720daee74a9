"""SessionRunHook: code that runs around each `run` of a monitored session, and the objects that it gets.

Stands for `python/training/session_run_hook.py`.

Rule: a hook asks for tensors before the run and gets their values after it; the requests of all hooks and of the
program become one `Session.run`. A hook ends the training by `run_context.request_stop()`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from dtflab.protos.config_pb2 import RunMetadata, RunOptions
from dtflab.runtime.session import Session
from dtflab.train.input.coordinator import Coordinator


class SessionRunHook:
    """Base of hooks; each method does nothing here. With `survives_loss = False`, a lost task ends the training.

    In order: `begin` (the graph may still be changed), `after_create_session` (each time that a new session is made),
    then `before_run` and `after_run` around every run, and `end` if the last run did not fail, else `fail`.
    """

    def begin(self) -> None:
        """Called once, before the session is made; the graph can be changed here for the last time."""

    def after_create_session(self, session: Session, coord: Coordinator) -> None:
        """Called when a session was made, and again when it was recreated after a failure.

        The graph is finalized. `coord` is the Coordinator of the session's threads.
        """

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Called before each run; returns what to add to it, or None."""

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Called after each run that did not fail, with the values of what `before_run` asked for."""

    def end(self, session: Session) -> None:
        """Called when the training ends, for example for a last checkpoint.

        Not called if a run raised anything but OutOfRangeError or StopIteration, which mean that the input ended.
        """

    def fail(self, session: Session) -> None:
        """Called instead of `end` when the training ends with an error. TensorFlow's hooks do not learn of it."""


class SessionRunArgs(NamedTuple):
    """The additions of a hook to a run: fetches, feeds and RunOptions, as `Session.run` takes them."""

    fetches: Any
    feed_dict: Any = None
    options: RunOptions | None = None


class SessionRunValues(NamedTuple):
    """The results of a run: the values of the hook's fetches in their form, the RunOptions used, the RunMetadata."""

    results: Any
    options: RunOptions
    run_metadata: RunMetadata


class SessionRunContext:
    """The run that a hook belongs to."""

    def __init__(self, original_args: SessionRunArgs, session: Session) -> None:
        self._original_args = original_args
        self._session = session
        self._stop_requested = False

    @property
    def original_args(self) -> SessionRunArgs:
        """The program's own fetches and feeds, as SessionRunArgs."""
        return self._original_args

    @property
    def session(self) -> Session:
        """The session that makes the run; a hook may run more with it."""
        return self._session

    @property
    def stop_requested(self) -> bool:
        """Whether a hook asked to stop."""
        return self._stop_requested

    def request_stop(self) -> None:
        """After this run, `should_stop()` of the monitored session is true."""
        self._stop_requested = True
