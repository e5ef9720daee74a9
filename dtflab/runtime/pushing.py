"""Pushing: a value goes to the task of its consumer as soon as it is there, without having been asked for.

Stands for nothing in TensorFlow, where a consumer always asks. The second wire (`cluster/link.py`) pushes, because the
keys of a step tell the producer's task in advance where each value goes.

Rules: a value is pushed once; its entry in the table remains, so that nobody who asks later waits for it. If the
connection is lost, that entry becomes an error at both ends. Nothing is pushed in a session that brings a cluster: a
name in its keys may be that of another task here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from dtflab.base import errors
from dtflab.runtime.rendezvous import Failed, Rendezvous, RendezvousMgr, SendOff, hand_over, value_of

Push = Callable[[int, str, object], SendOff]  # push(step, key, value, DEAD or PUSHED): into the outbox to a task
PUSHED = Failed(
    lambda: errors.UnavailableError.of("The connection over which this tensor was pushed is lost.")
)  # in place of the value


class _Rendezvous(Rendezvous):
    """The table of one step; `pushes` maps tasks to what takes the values for them."""

    __slots__ = ("_over", "_pushes", "_step")

    def __init__(self, step_id: int, pushes: Mapping[str, Push]) -> None:
        super().__init__()
        self._step = step_id
        self._pushes: Mapping[str, Push] | None = pushes
        self._over: dict[str, Push] = {}  # key of a value that was pushed → over which connection

    def _kept(self, key: str, value: object) -> tuple[tuple[bool, object], Callable[[], SendOff] | None]:
        push = self._pushes.get(receiver(key)) if self._pushes else None
        if push is None:
            return (True, value), None
        self._over[key] = push
        return (True, PUSHED), lambda: push(self._step, key, value_of(value))

    @property
    def pushes(self) -> bool:
        """Whether its keys have the names by which this task knows the others."""
        return self._pushes is not None

    def never_push(self) -> None:
        """Keep all values until they are asked for."""
        self._pushes = None

    def push_what_is_there(self, task: str, push: Push) -> None:
        """Push the values for `task` that nobody has asked for.

        Say that those are lost that were pushed over an earlier connection; a step may just now push over this one.
        """
        with self._lock:
            ready = {
                key: value
                for key, (is_value, value) in self._table.items()
                if is_value and receiver(key) == task and self._over.get(key) is not push
            }
            self._table.update(dict.fromkeys(ready, (True, PUSHED)))
            self._over.update(dict.fromkeys(ready, push))
        for key, value in ready.items():
            push(self._step, key, value_of(value))()

    def lose(self, key: str) -> None:
        """Fail the consumer of a value that may have been pushed to here, and will not come again."""
        with self._lock:
            is_value, done = self._table.setdefault(key, (True, PUSHED))
            if not is_value:
                del self._table[key]
        if not is_value:
            hand_over(PUSHED, done)

    def receivers(self) -> set[str]:
        """The tasks to which values were pushed."""
        with self._lock:
            return {receiver(key) for key in self._over}

    def fail_where(self, is_lost: Callable[[str], bool], error: Exception) -> None:
        """Every consumer that waits for a value of such a key gets `error`."""
        with self._lock:
            waiting = [key for key, (is_value, _) in self._table.items() if not is_value]
            lost = [self._table.pop(key)[1] for key in waiting if is_lost(key)]
        for done in lost:
            done(None, error)


@lru_cache(4096)
def receiver(key: str) -> str:
    """The task of the device that a key's value is for."""
    return key.split(";", 3)[2].partition("/device:")[0]


class PushingRendezvousMgr(RendezvousMgr):
    """The rendezvous of a task, by step; other tasks may have it push."""

    def __init__(self) -> None:
        super().__init__()
        self._pushes: dict[str, Push] = {}  # by the task to which this one pushes

    def _new(self, step_id: int) -> Rendezvous:
        return _Rendezvous(step_id, self._pushes)

    def _tables(self) -> list[_Rendezvous]:
        with self._lock:
            return [table for table in self._steps.values() if isinstance(table, _Rendezvous) and table.pushes]

    def never_push(self, step_id: int) -> None:
        """A step about to begin here is of a session that has its own names for the tasks: it is not pushed for."""
        table = self.find(step_id)
        if isinstance(table, _Rendezvous):
            table.never_push()

    def push_to(self, task: str, push: Push) -> Callable[[], object]:
        """From now on push what is for `task`; the result ends that."""
        self._pushes[task] = push
        for table in self._tables():
            table.push_what_is_there(task, push)
        return lambda: self._pushes.pop(task) if self._pushes.get(task) is push else None

    def fail_from(self, task: str, error: Exception) -> None:
        """Fail with `error` what waits for a value of a task that pushed to this one, and is out of reach."""
        self._fail_where(lambda key: key.startswith(f"{task}/device:"), error)

    def fail_for(self, task: str, error: Exception) -> None:
        """Fail with `error` what a task has pulled from this one and waits for, as it is out of reach."""
        self._fail_where(lambda key: receiver(key) == task, error)

    def _fail_where(self, is_lost: Callable[[str], bool], error: Exception) -> None:
        for table in self._tables():
            table.fail_where(is_lost, error)

    def is_awaited_by(self, task: str) -> bool:
        """Whether a task waits for a value that it has pulled from this one."""
        return any(receiver(key) == task for table in self._tables() for key in table.waiting())

    def awaits(self, task: str) -> bool:
        """Whether a step here waits for a value that `task` pushes."""
        keys = [key for table in self._tables() for key in table.waiting()]
        return any(key.startswith(f"{task}/device:") for key in keys)

    def pushed_to(self, step_id: int) -> set[str]:
        """The tasks to which values of a step were pushed."""
        with self._lock:
            table = self._steps.get(step_id)
        return table.receivers() if isinstance(table, _Rendezvous) else set()

    def lose(self, step_id: int, key: str) -> None:
        """Fail the consumer of a value that may have been pushed, for a step that runs here, or will."""
        table = self.find(step_id)
        if isinstance(table, _Rendezvous):
            table.lose(key)
