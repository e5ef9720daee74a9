"""When a hook acts: every N steps, or every N seconds.

Stands for `SecondOrStepTimer` in `python/training/basic_session_run_hooks.py`.
"""

from __future__ import annotations

from dtflab.machine.clock import CURRENT, Clock


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
