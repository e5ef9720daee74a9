"""Faults: the messages of one task to other tasks that are lost or held, kernels that are slow.

Stands for nothing in TensorFlow, where a network has faults of its own.

Rules: the task that calls decides, so a fault is set on each of the tasks concerned. A lost call fails at once, as over
a connection that breaks. A message that is held goes on as soon as it can, as over TCP; after twice `timeouts.silence`
it fails, and so does a call that was under way when the fault began: no sign of life crosses, either (`silence`).
Which calls are lost depends on the seed, and on how many of the same kind the task has made to the same task.
A task takes no fault unless its cluster allowed that when it started the task.
"""

from __future__ import annotations

import json
import threading
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import Any, NamedTuple

from dtflab.base import errors
from dtflab.base.timeouts import timeouts
from dtflab.graph import device_spec
from dtflab.machine.clock import Clock
from dtflab.machine.console import say
from dtflab.machine.pace import Gate, Pace

# The methods of a worker that other tasks call, and of which calls can be lost.
METHODS = (
    "GetStatus", "CreateWorkerSession", "DeleteWorkerSession", "RegisterGraph", "DeregisterGraph", "RunGraph",
    "RecvTensor", "CleanupGraph", "CleanupAll",
)  # fmt: skip
Go = Callable[[errors.OpError | None], object]  # goes on: with a message that crossed, or the error if it did not
UnderWay = Callable[[], Collection[Callable[[errors.OpError], object]]]  # how to end each call that is
_NO_DROPS: Mapping[str, float] = MappingProxyType({})


class Setting(NamedTuple):
    """The faults of a task at one time, as they travel to it."""

    seed: int = 0
    slow: float = 1.0
    cut_off: tuple[str, ...] = ()  # tasks that it can't reach
    drop: Mapping[str, float] = _NO_DROPS  # method → the probability that a call is lost

    def as_json(self) -> bytes:
        return json.dumps(self._asdict()).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Setting:
        """The setting that came over a wire; InvalidArgumentError for anything else."""
        try:
            found = cls(**json.loads(data))
            setting = found._replace(
                seed=int(found.seed), slow=float(found.slow), cut_off=tuple(map(str, found.cut_off)),
                drop={str(m): float(p) for m, p in found.drop.items()},
            )  # fmt: skip
        except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise errors.InvalidArgumentError.of(f"Not the faults of a task: {error}") from None
        if not 1 <= setting.slow <= MOST_SLOW:
            raise errors.InvalidArgumentError.of(
                f"A task can be slow by 1 to {MOST_SLOW:g} times, not {setting.slow:g}."
            )
        return setting


NONE = Setting()
disturbed: set[Faults] = set()  # of tasks here that are not quiet: mostly none, which is all that a call has to ask
MOST_SLOW = 1000.0


class Faults:
    """The faults of one task, and its calls to others under them.

    `other` is the other task's faults if that is in this process: nothing crosses to one that is stopped.
    """

    def __init__(self, task: str, clock: Clock) -> None:
        self.pace = Pace()
        self.is_quiet = True  # messages to other tasks are neither lost nor held
        self._are_allowed = False
        # The latest: moment, method, task that was called, number of the call.
        self.lost: deque[tuple[float, str, str, int]] = deque(maxlen=10_000)
        self._task = task
        self._clock = clock
        self._setting = NONE
        self._gates: dict[str, Gate] = {}  # by the task that can't be reached
        self._counts: Counter[tuple[str, str]] = Counter()
        self._told: set[str] = set()  # tasks whose silence was reported
        self._lock = threading.Lock()

    def allow(self) -> None:
        """Let faults be set from now on."""
        self._are_allowed = True

    def set(self, setting: Setting) -> None:
        """Replace the faults; what can cross now goes on."""
        if not self._are_allowed:
            raise errors.FailedPreconditionError.of(
                f"{self._task} takes no faults: dtflab.chaos works on tasks that a dtflab.Cluster of its own program "
                "has started."
            )
        if not self._setting.drop:  # a block of chaos begins: equal ones lose equal calls
            self._counts.clear()
        self._setting = setting
        if setting.slow != self.pace.factor:
            self.pace.slow_down(setting.slow)
        healed = [self._gates.pop(task) for task in list(self._gates) if task not in setting.cut_off]
        for task in setting.cut_off:
            self._gates.setdefault(task, Gate()).shut()
        self._note()
        for gate in healed:
            gate.open()

    def stop(self) -> None:
        """Hold all kernels and messages, as if the process had been stopped."""
        self.pace.stop()
        self._note()

    def go_on(self) -> None:
        """Let go what `stop` has held."""
        self.pace.go_on()
        self._note()

    def cuts(self, target: str) -> bool:
        """Whether nothing crosses between the task and another one, not even a sign of life."""
        return target in self._gates

    def clear(self) -> None:
        """End all faults: the task ends."""
        self.go_on()
        if self._setting != NONE:
            self.set(NONE)

    def _note(self) -> None:
        self.is_quiet = self._setting == NONE and self.pace.gate.is_open
        (disturbed.discard if self.is_quiet else disturbed.add)(self)
        self._told.clear()

    # -- calls to other tasks ---------------------------------------------------------------------------------

    def call(self, method: str, target: str, other: Faults | None = None) -> None:
        """Return when a call can begin; UnavailableError if it is lost, or held for too long."""
        if (lost := self._loses(method, target)) is not None:
            raise lost
        self._cross(target, other)

    def start(self, method: str, target: str, go: Go, other: Faults | None = None) -> None:
        """Go on when a call can begin: at once, or on another thread."""
        if (lost := self._loses(method, target)) is not None:
            go(lost)
        else:
            self.carry(target, go, other)

    def carry(self, target: str, go: Go, other: Faults | None = None) -> None:
        """Go on when a message can cross between the two: at once, or on another thread."""
        if self._shut(target, other) is None:
            go(None)
        else:
            self._clock.spawn(self._carry_later, target, go, other, name=f"held before {target}")

    def hold(
        self, method: str, target: str, begin: Callable[[], Callable[[], object]], failed: Go
    ) -> Callable[[], object]:
        """Begin a call that can be given up when it can: `begin()` returns what gives it up, and so does this."""
        call = _Held(begin, failed)
        self.start(method, target, call.go)
        return call.give_up

    def watch(self, target: str, under_way: UnderWay, other: Faults | None = None) -> None:
        """A fault has begun: once it has held for too long, end what is under way to `target` then."""
        self._clock.spawn(self._watch, target, under_way, other, name=f"silence of {target}")

    def _watch(self, target: str, under_way: UnderWay, other: Faults | None) -> None:
        try:
            self._cross(target, other, under_way)
        except errors.OpError as silent:
            for end in under_way():
                end(silent)

    def _carry_later(self, target: str, go: Go, other: Faults | None) -> None:
        try:
            self._cross(target, other)
        except errors.OpError as error:
            go(error)
        else:
            go(None)

    def _cross(self, target: str, other: Faults | None, awaited: Callable[[], object] = lambda: True) -> None:
        """Wait until nothing holds a message between the two any more; that is said if something is `awaited`."""
        end = self._clock.now() + timeouts.silence
        is_told = False
        while (gate := self._shut(target, other)) is not None:
            opened = self._clock.event()
            opened.what = f"a message between {self._task} and {target}, which chaos holds"
            gate.pass_through(opened.set)
            if opened.wait(max(0.0, end - self._clock.now())):
                continue
            if is_told:
                raise errors.UnavailableError.of(self._silence_of(target))
            is_told, end = True, end + timeouts.silence
            if target not in self._told and awaited():
                self._told.add(target)
                say(f"still waiting for {device_spec.plain(target)}, silent for {timeouts.silence:g} s")

    def _silence_of(self, target: str) -> str:
        silent = f"silent for {2 * timeouts.silence:g} s"
        if target == self._task:
            return f"Task {target} does not answer: {silent} (it is paused, by its panel or by chaos)."
        why = "one of them is paused, or chaos has cut them off from each other"
        return f"{self._task} can't reach {target}: {silent} ({why})."

    def _shut(self, target: str, other: Faults | None) -> Gate | None:
        """A gate that holds what goes from one of the two tasks to the other."""
        gates = [self.pace.gate, self._gates.get(target), None if other is None else other.pace.gate]
        return next((gate for gate in gates if gate is not None and not gate.is_open), None)

    def _loses(self, method: str, target: str) -> errors.OpError | None:
        probability = self._setting.drop.get(method)
        if probability is None:
            return None
        with self._lock:
            self._counts[method, target] += 1
            number = self._counts[method, target]
        if chance(self._setting.seed, self._task, target, method, number) >= probability:
            return None
        self.lost.append((self._clock.now(), method, target, number))
        self._log(f"chaos: {method} lost", target)
        return errors.UnavailableError.of(
            f"{method} number {number} from {self._task} to {target} was lost, as if the connection broke (chaos)."
        )

    def _log(self, what: str, target: str) -> None:
        """In virtual time, make a loss an event, so that equal runs have equal logs."""
        world: Any = getattr(self._clock, "world", None)
        if world is not None:
            now = self._clock.now()
            world.log.add(now, now, 0, what, self._task, target)


class _Held:
    """A call that has not begun, as chaos may hold it; its caller may give up first."""

    def __init__(self, begin: Callable[[], Callable[[], object]], failed: Go) -> None:
        self._begin, self._failed = begin, failed
        self._lock = threading.RLock()  # a call may fail while it begins, and its step give it up
        self._give_up: Callable[[], object] | None = None
        self._is_over = False

    def go(self, lost: errors.OpError | None) -> None:
        with self._lock:
            if self._is_over:
                return
            if lost is None:
                self._give_up = self._begin()
            self._is_over = lost is not None
        if lost is not None:
            self._failed(lost)

    def give_up(self) -> None:
        with self._lock:
            was_over, self._is_over = self._is_over, True
            give_up = self._give_up
        if give_up is not None:
            give_up()
        elif not was_over:
            self._failed(errors.CancelledError.of("The caller has given up."))


def chance(seed: int, caller: str, callee: str, method: str, number: int) -> float:
    """A number from 0 to 1, the same for the same call in each run."""
    digest = sha256(f"{seed} {caller} {callee} {method} {number}".encode()).digest()
    return int.from_bytes(digest[:7], "big") / 2**56
