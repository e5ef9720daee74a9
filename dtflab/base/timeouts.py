"""How long a program waits for a task of its cluster before it gets an error. Seconds.

TensorFlow waits forever. `dtflab.timeouts.tasks = 20` changes a value; the environment's `DTFLAB_TIMEOUT_TASKS` sets
it.
"""

from __future__ import annotations

import os


class Timeouts:
    """Waiting times: `connect` for a session's target, `tasks` for the others, `notice` between two reminders.

    `recovery` is how long at most a client that waits for its chief rests between two looks. A task that answers no
    ping for `silence` seconds is reported; after twice that it is given up.
    """

    def __init__(self) -> None:
        self.connect = _from_environment("CONNECT", 10.0)
        self.tasks = _from_environment("TASKS", 300.0)
        self.notice = _from_environment("NOTICE", 5.0)
        self.recovery = _from_environment("RECOVERY", 1.0)
        self.silence = _from_environment("SILENCE", 30.0)

    def as_environment(self) -> dict[str, str]:
        """The variables that give a child process the same values."""
        return {f"DTFLAB_TIMEOUT_{name.upper()}": str(value) for name, value in vars(self).items()}


def _from_environment(name: str, default: float) -> float:
    text = os.environ.get(f"DTFLAB_TIMEOUT_{name}", "")
    try:
        return float(text) if text else default
    except ValueError:
        raise ValueError(f"DTFLAB_TIMEOUT_{name} must be a number of seconds, not {text!r}") from None


timeouts = Timeouts()
