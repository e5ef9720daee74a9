"""SessionManager: a session whose model is ready, made ready by this client or by another one.

Stands for `python/training/session_manager.py`. Left out: initializers of TensorFlow 2's SavedModels, TPUs.

Rules: the chief restores or initializes the model, everybody else waits until it has. A model is ready when
`ready_op` names no variable any more. A waiting worker checks again soon, then every `timeouts.recovery` seconds, and
TensorFlow's `recovery_wait_secs` is how often it says so (there: also how often it looks).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from dtflab.base import errors, tf_logging as logging
from dtflab.base.credentials import Credentials
from dtflab.base.timeouts import timeouts
from dtflab.graph.graph import Graph
from dtflab.graph.scopes import get_default_graph
from dtflab.machine.clock import CURRENT, Clock
from dtflab.protos.config_pb2 import ConfigProto, RunOptions
from dtflab.runtime.session import Session
from dtflab.train.checkpoints import checkpoint_management

Found = TypeVar("Found")


class SessionManager:
    """Makes sessions on a model that is initialized, restored from a checkpoint, or made ready by somebody else."""

    def __init__(
        self,
        local_init_op: Any = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        graph: Graph | None = None,
        recovery_wait_secs: float = 30,
        local_init_run_options: RunOptions | None = None,
        local_init_feed_dict: Any = None,
        *,
        clock: Clock = CURRENT,
        credentials: Credentials | None = None,
    ) -> None:
        """Take the operations that make a model ready, and those that report whether it is.

        Args:
          local_init_op: run in every new session, for tables and local variables.
          ready_op: a vector of strings, the names of what is not initialized; None for "always ready".
          ready_for_local_init_op: the same, asked before `local_init_op`.
          graph: the default graph if None.
          recovery_wait_secs: seconds between two lines that say that the model is not ready yet.
          local_init_run_options: RunOptions of `local_init_op`.
          local_init_feed_dict: its feeds.
          credentials: those of its sessions.

        Raises:
          ValueError: `ready_for_local_init_op` without `local_init_op`.
        """
        if ready_for_local_init_op is not None and local_init_op is None:
            raise ValueError(
                "If you pass a ready_for_local_init_op you must also pass a local_init_op , "
                f"ready_for_local_init_op [{ready_for_local_init_op}]"
            )
        self._local_init_op = local_init_op
        self._ready_op = ready_op
        self._ready_for_local_init_op = ready_for_local_init_op
        self._graph = graph if graph is not None else get_default_graph()
        self._recovery_wait_secs = recovery_wait_secs
        self._local_init_run_options = local_init_run_options
        self._local_init_feed_dict = local_init_feed_dict
        self._clock = clock
        self._credentials = credentials

    def prepare_session(
        self,
        master: str,
        init_op: Any = None,
        saver: Any = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: ConfigProto | None = None,
        init_feed_dict: Any = None,
        init_fn: Callable[[Session], Any] | None = None,
    ) -> Session:
        """A session on a model that is ready: the chief's way.

        The model is restored from `checkpoint_filename_with_path` or from the latest checkpoint in `checkpoint_dir`;
        where there is none (after `max_wait_secs`, if `wait_for_checkpoint`), `init_op` is run with `init_feed_dict`
        and `init_fn(session)` is called. Then `local_init_op` is run.

        Raises:
          RuntimeError: there is nothing to initialize with, or the model is not ready after it.
          ValueError: both kinds of checkpoint are given.
        """
        with self._session(master, config) as sess:
            where = checkpoint_dir, checkpoint_filename_with_path
            if not self._restore(sess, saver, where, wait_for_checkpoint, max_wait_secs):
                if init_op is None and not init_fn and self._local_init_op is None:
                    raise RuntimeError("Model is not initialized and no init_op or init_fn or local_init_op was given")
                if init_op is not None:
                    sess.run(init_op, feed_dict=init_feed_dict)
                if init_fn:
                    init_fn(sess)
            tried = f"Init op: {_name_of(init_op)}, init fn: {init_fn}, "
            why = self._run_local_init_op(sess)
            if why:
                raise RuntimeError(f"Init operations did not make model ready for local_init.  {tried}error: {why}")
            why = self._why_not_ready(sess)
            if why:
                tried += f"local_init_op: {self._local_init_op}, "
                raise RuntimeError(f"Init operations did not make model ready.  {tried}error: {why}")
        return sess

    def recover_session(
        self,
        master: str,
        saver: Any = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: ConfigProto | None = None,
    ) -> tuple[Session, bool]:
        """A session, and whether a checkpoint made its model ready; nothing is initialized but local variables.

        Raises:
          ValueError: both kinds of checkpoint are given.
        """
        with self._session(master, config) as sess:
            where = checkpoint_dir, checkpoint_filename_with_path
            restored = self._restore(sess, saver, where, wait_for_checkpoint, max_wait_secs)
            why, purpose = self._run_local_init_op(sess), "ready for local init"
            if not restored:
                return sess, False
            if not why:
                why, purpose = self._why_not_ready(sess), "ready"
            source = checkpoint_dir or checkpoint_filename_with_path
            if why:
                logging.info("Restoring model from %s did not make model %s: %s", source, purpose, why)
            else:
                logging.info("Restored model from %s", source)
        return sess, not why

    def wait_for_session(
        self, master: str, config: ConfigProto | None = None, max_wait_secs: float | None = math.inf
    ) -> Session:
        """A session on a model that another client makes ready: everybody's way but the chief's.

        Raises:
          DeadlineExceededError: the model is not ready after `max_wait_secs`; None waits forever.
        """
        max_wait_secs = math.inf if max_wait_secs is None else max_wait_secs
        found = self._wait(lambda: self._ready_session(master, config), max_wait_secs)
        if found is None:
            raise errors.DeadlineExceededError.of(f"Session was not ready after waiting {int(max_wait_secs)} secs.")
        return found

    # ---- parts

    @contextlib.contextmanager
    def _session(self, master: str, config: ConfigProto | None) -> Iterator[Session]:
        """A session that is closed if something is raised while its model is made ready."""
        sess = Session(master, graph=self._graph, config=config, credentials=self._credentials)
        try:
            yield sess
        except BaseException:
            self._safe_close(sess)
            raise

    def _ready_session(self, master: str, config: ConfigProto | None) -> tuple[Session | None, list[str], str]:
        """A session if the model is ready now, else None; what was done; and what to say if the wait goes on."""
        lines: list[str] = []
        with self._session(master, config) as sess:
            local, ready = self._run_local_init_op(sess, lines.append), None
            if not local:
                ready = self._why_not_ready(sess)
                if not ready:
                    return sess, lines, ""
        self._safe_close(sess)
        return None, lines, f"Waiting for model to be ready.  Ready_for_local_init_op:  {local}, ready: {ready}"

    def _restore(
        self, sess: Session, saver: Any, where: tuple[str | None, str | None], wait: bool, max_wait_secs: float
    ) -> bool:
        """Fill the variables from the checkpoint in a directory, or of a name; False if there is none."""
        directory, filename = where
        if directory and filename:
            raise ValueError("Can not provide both checkpoint_dir and checkpoint_filename_with_path.")
        if not saver or not (directory or filename):
            return False
        if filename:
            saver.restore(sess, filename)
            return True

        def latest() -> tuple[Any, list[str], str]:
            state = checkpoint_management.get_checkpoint_state(directory)
            there = state is not None and state.model_checkpoint_path
            return state if there else None, [], "Waiting for checkpoint to be available."

        state = self._wait(latest, max_wait_secs) if wait else latest()[0]
        if state is None:
            return False
        saver.restore(sess, state.model_checkpoint_path)
        saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
        return True

    def _wait(self, look: Callable[[], tuple[Found | None, list[str], str]], max_wait_secs: float) -> Found | None:
        """Look until there is something, or until `max_wait_secs` are over: then None. Not every look is logged."""
        start = self._clock.now()
        logged = -math.inf
        for pause in pauses(min(timeouts.recovery, self._recovery_wait_secs)):
            found, lines, why = look()
            now = self._clock.now()
            is_last = found is not None or now + pause - start > max_wait_secs
            if is_last or now - logged >= self._recovery_wait_secs:
                logged = now
                for line in lines if is_last else [*lines, why]:
                    logging.info(line)
            if is_last:
                break
            self._clock.sleep(pause)
        return found

    def _safe_close(self, sess: Session) -> None:
        """Close a session of which nobody will know: how that ends is of no interest."""
        with contextlib.suppress(Exception):
            sess.close()

    def _run_local_init_op(self, sess: Session, tell: Callable[[str], Any] = logging.info) -> str | None:
        """Run the local initializer, if there is one; the reason if it is too early for it."""
        if self._local_init_op is None:
            return None
        why = _why_not(self._ready_for_local_init_op, sess, "Model not ready for local init")
        if not why:
            tell("Running local_init_op.")
            sess.run(self._local_init_op, feed_dict=self._local_init_feed_dict, options=self._local_init_run_options)
            tell("Done running local_init_op.")
        return why

    def _why_not_ready(self, sess: Session) -> str | None:
        return _why_not(self._ready_op, sess, "Model not ready")


def pauses(longest: float) -> Iterator[float]:
    """Seconds to rest between two looks, without end: few at first, in one process others are quick; then `longest`."""
    pause = min(0.05, longest)
    while True:
        yield pause
        pause = min(2 * pause, longest)


def _why_not(ready_op: Any, sess: Session, purpose: str) -> str | None:
    """Ask `ready_op`: None if the model is ready, else the reason."""
    if ready_op is None:
        return None
    try:
        missing = sess.run(ready_op)
    except errors.FailedPreconditionError as error:
        if "uninitialized" not in str(error):
            logging.warning("%s : error [%s]", purpose, error)
            raise
        return str(error)
    # None and numbers are what `assert_variables_initialized` gives, which fails where something is missing.
    if missing is None or missing.dtype == np.int32 or missing.size == 0:
        return None
    return "Variables not initialized: " + ", ".join(name.decode() for name in missing)


def _name_of(op: Any) -> str:
    if op is None:
        return "None"
    return op.name if hasattr(op, "name") else f"<no name for {type(op)}>"
