"""SessionCreator: how a training program comes to its session, again and again if sessions are lost.

Stands for the session creators of `python/training/monitored_session.py`.

Rule: the chief prepares the model (restores it, or initializes it), workers wait until it is prepared.
"""

from __future__ import annotations

import abc
from typing import Any

from dtflab.base.credentials import Credentials
from dtflab.graph.scopes import get_default_graph
from dtflab.protos.config_pb2 import ConfigProto
from dtflab.runtime.session import Session
from dtflab.train.sessions.scaffold import Scaffold
from dtflab.train.sessions.session_manager import SessionManager


class SessionCreator(abc.ABC):
    """Makes sessions."""

    @abc.abstractmethod
    def create_session(self) -> Any:
        """A new session."""
        raise NotImplementedError(f"create_session is not implemented for {self}.")


class _ScaffoldSessionCreator(SessionCreator):
    """The common base of chief and worker: a Scaffold, and the SessionManager that uses its pieces."""

    def __init__(
        self, scaffold: Scaffold | None, master: str, config: ConfigProto | None, credentials: Credentials | None
    ) -> None:
        self._scaffold = scaffold or Scaffold()
        self._session_manager: SessionManager | None = None
        self._master = master
        self._config = config
        self._credentials = credentials

    def _get_session_manager(self) -> SessionManager:
        """The session manager; one, made when the Scaffold is complete."""
        if self._session_manager is None:
            pieces, graph = self._scaffold, get_default_graph()
            ops = pieces.local_init_op, pieces.ready_op, pieces.ready_for_local_init_op
            self._session_manager = SessionManager(
                *ops, graph, local_init_feed_dict=pieces.local_init_feed_dict, credentials=self._credentials
            )
        return self._session_manager


class ChiefSessionCreator(_ScaffoldSessionCreator):
    """Makes sessions of the chief: restored from the latest checkpoint, else initialized.

    `master` is the session's target, `config` a ConfigProto; `credentials` are those of tf.Session. The model is
    restored from the latest checkpoint in `checkpoint_dir` or from `checkpoint_filename_with_path`, not both.
    """

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: ConfigProto | None = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
        *,
        credentials: Credentials | None = None,
    ) -> None:
        super().__init__(scaffold, master, config, credentials)
        self._checkpoint_dir = checkpoint_dir
        self._checkpoint_filename_with_path = checkpoint_filename_with_path

    def create_session(self) -> Session:
        """A session on a model that is ready."""
        self._scaffold.finalize()
        pieces, manager = self._scaffold, self._get_session_manager()
        checkpoint = pieces.saver, self._checkpoint_dir, self._checkpoint_filename_with_path
        initial: dict[str, Any] = {"init_feed_dict": pieces.init_feed_dict, "init_fn": pieces.init_fn}
        return manager.prepare_session(self._master, pieces.init_op, *checkpoint, config=self._config, **initial)


class WorkerSessionCreator(_ScaffoldSessionCreator):
    """Makes sessions of a worker: they wait at most `max_wait_secs` for the chief's initialization."""

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: ConfigProto | None = None,
        max_wait_secs: float = 30 * 60,
        *,
        credentials: Credentials | None = None,
    ) -> None:
        super().__init__(scaffold, master, config, credentials)
        self._max_wait_secs = max_wait_secs

    def create_session(self) -> Session:
        """A session on the chief's model; DeadlineExceededError if it does not become ready."""
        self._scaffold.finalize()
        return self._get_session_manager().wait_for_session(
            self._master, config=self._config, max_wait_secs=self._max_wait_secs
        )
