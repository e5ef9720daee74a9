"""basic_train_loop: run a training step until a Supervisor says stop, through restarts of servers.

Stands for `python/training/basic_loops.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dtflab.base import errors


def basic_train_loop(
    supervisor: Any,
    train_step_fn: Callable[..., Any],
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    master: str = "",
) -> None:
    """Call `train_step_fn(session, *args, **kwargs)` until `supervisor.should_stop()`.

    The session is the supervisor's, on `master`. After an AbortedError, by which a server that was restarted
    announces itself, a new session goes on; any other exception ends the loop and is raised.
    """
    while True:
        try:
            with supervisor.managed_session(master) as session:
                while not supervisor.should_stop():
                    train_step_fn(session, *(args or ()), **(kwargs or {}))
            return
        except errors.AbortedError:
            continue
