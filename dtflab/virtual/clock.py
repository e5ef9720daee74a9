"""VirtualClock: threads that take turns, and waiting that costs nothing.

The clients of a cluster in virtual time are ordinary Python threads, but exactly one of them runs at a time, and what
it computes takes no virtual time. When it waits (for an event, a moment, a thread) it turns the engine, event after
event, until one of them wakes a thread; if that is another, it hands over and stands still.

Threads that the clock did not start are guests: a notebook's own, those of `threading.Thread`. A guest takes part
while it waits for something of the clock; between that it runs as it pleases, and virtual time stands still until it
comes back, or is not expected any more (guests.py). Only the main thread gets Ctrl-C; so it never turns the
engine itself, but lets a thread of a pool do it.

A thread that turns the engine may have to wait inside of an event: a kernel calls a function that waits, a py_func
sleeps. It then turns the engine again, on top of the event that it is in; a wake-up for what it waited for first comes
after that is over.

Rules: the thread that is woken first runs first. If no scheduled event can wake a thread, every waiting thread gets a
DeadlockError that says what it waits for, as does a thread that keeps polling for something nobody will do. An error in
an event goes to the guest that has waited longest.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from dtflab.base import errors
from dtflab.machine.clock import REAL, Pool, using
from dtflab.ops.entropy import SOURCE
from dtflab.runtime.standstill import Fact, Resting
from dtflab.virtual import critical
from dtflab.virtual.critical import AWAITED, CRITICAL
from dtflab.virtual.deadlock import DeadlockError, DeadlockWatch
from dtflab.virtual.engine import Engine
from dtflab.virtual.guests import Away

if TYPE_CHECKING:
    from dtflab.virtual.world import World

EPOCH = 1_451_606_400.0  # the first of January 2016, in seconds since 1970: virtual time 0 for what shows a date
STRETCH = 0.5  # real seconds after which the main thread looks for Ctrl-C
LOOKS = 100  # for something that another thread has to do, while nothing is due: then it is a deadlock


class _Turn:
    """A thread's place among those that take turns."""

    def __init__(self, name: str, guest: bool) -> None:
        self.name = name
        self.guest = guest
        self.thread: Any = threading.current_thread() if guest else None
        self.baton = threading.Lock()  # what holds the thread back; released when it may run
        self.baton.acquire()
        self.given = False  # it is its turn, or will be in a moment
        self.lost = False  # its thread went away without: another one does not give way
        self.number = 0  # of its waits: what would end an earlier one comes too late
        self.covered = 0  # waits of its thread, inside of events, that have to end before
        self.failed: BaseException | None = None  # instead of what it waits for
        self.in_vain = 0  # looks of its thread, one after the other, when nothing was due but more of them


class VirtualEvent:
    """An event at which threads wait in virtual time. `what` says in an error what it stands for.

    Without it, those who wait are at rest: threads of data sets, writers and coordinators until somebody wants
    something of them. They know nothing of deadlocks.
    """

    def __init__(self, clock: VirtualClock, what: str = "") -> None:
        self.what = what
        self._clock = clock
        self._is_set = False
        self._waiting: list[tuple[_Turn, int]] = []

    def is_set(self) -> bool:
        """True from `set` to `clear`."""
        return self._is_set

    @CRITICAL
    def set(self) -> None:
        """Wake all waiting threads, in their order."""
        self._is_set = True
        waiting, self._waiting = self._waiting, []
        for turn, number in waiting:
            self._clock._wake(turn, number)

    def clear(self) -> None:
        """Threads that come from now on have to wait."""
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        """True once the event is set; False after `timeout` virtual seconds."""
        if not self._is_set:
            self._clock._wait(self, timeout)
        return self._is_set


class VirtualThread:
    """A thread that takes turns. Its first one comes after those of all threads that are woken already."""

    def __init__(self, clock: VirtualClock, target: Callable[..., Any], args: tuple[Any, ...], name: str) -> None:
        self.name = name
        self._clock = clock
        self._turn = _Turn(name, guest=False)
        self._ended = VirtualEvent(clock, f"the end of thread {name!r}")
        self._real = REAL.thread(self._run, target, args, name=name)
        self._started = False
        self._draw = SOURCE.draw

    @property
    def ident(self) -> int | None:
        """The thread's number; see `threading.Thread.ident`."""
        return getattr(self._real, "ident", None)

    @CRITICAL
    def start(self) -> None:
        self._started = True
        self._clock._threads.add(self._turn)
        self._real.start()
        self._clock._wake(self._turn, 0)

    def is_alive(self) -> bool:
        """True from its start to its end."""
        return self._started and not self._ended.is_set()

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end, or `timeout` virtual seconds."""
        self._ended.wait(timeout)

    @CRITICAL
    def _run(self, target: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self._turn.baton.acquire()
        self._clock._here.turn = self._turn
        SOURCE.draw = self._draw  # that of the step that made the thread, if it is a data set's
        try:
            with using(self._clock):
                target(*args)
        except errors.CancelledError as error:
            if error is not self._clock._stopped:
                raise
        finally:
            self._ended.set()
            self._clock._end(self._turn)


class VirtualClock:
    """A clock whose time passes only while everybody waits.

    `waits()` gives lines for the text of a DeadlockError, `standstill()` the same as data; a cluster reports there
    which op waits for what.
    """

    def __init__(self, engine: Engine | None = None) -> None:
        self.engine = engine or Engine()
        self.world: World | None = None  # the simulated machines of a cluster
        self.waits: Callable[[], list[str]] = list
        self.standstill: Callable[[], list[Fact]] = list
        self._here = threading.local()  # .turn: the place of the thread that asks
        self._threads: set[_Turn] = set()  # that were started and have not ended
        self._waiting: dict[_Turn, VirtualEvent] = {}  # waiting threads and what they wait for, in order
        self._woken: deque[_Turn] = deque()
        self._resting = 0  # how many of those will look again
        self._arrival_lock = threading.Lock()  # over the two below
        self._inside = False  # the engine is being turned, or somebody takes a turn
        self._arrivals: deque[_Turn] = deque()  # guests that came meanwhile
        self._interrupted: _Turn | None = None
        self._stopped: errors.CancelledError | None = None
        self._watch = DeadlockWatch()
        self._away = Away()
        self._turner = Pool(REAL, "virtual time")
        self._turning: int | None = None  # which thread turns the engine now

    may_stop = staticmethod(critical.may_stop)  # of a thread, by its ident

    # -- what the library asks of time ------------------------------------------------------------------------

    def now(self) -> float:
        """Virtual seconds since the clock was made."""
        return self.engine.now

    def time(self) -> float:
        """Seconds since 1970, as if virtual time had begun on 2016-01-01."""
        return EPOCH + self.engine.now

    def sleep(self, seconds: float) -> None:
        """Let virtual seconds pass for the calling thread. ValueError for less than none, or forever."""
        if not 0 <= seconds < math.inf:
            raise ValueError(f"sleep({seconds!r}): give a finite number of seconds, 0 or more.")
        self._wait(VirtualEvent(self, f"{seconds:g} s to pass"), seconds)

    def rest(self, seconds: float, what: str) -> None:
        """Sleep between two looks for `what`. DeadlockError once nothing else has been due for LOOKS of them."""
        me = self._my_turn()
        me.in_vain = me.in_vain + 1 if self._all_rest(me) else 0
        if me.in_vain > LOOKS:
            me.in_vain = 0
            raise self._deadlock([(me.name, what)])
        self._resting += 1
        try:
            self._wait(VirtualEvent(self, what), seconds)
        finally:
            self._resting -= 1

    def event(self) -> VirtualEvent:
        return VirtualEvent(self)

    def thread(
        self, target: Callable[..., Any], *args: Any, name: str = "dtflab", daemon: bool = True
    ) -> VirtualThread:
        return VirtualThread(self, target, args, name)

    def spawn(self, target: Callable[..., Any], *args: Any, name: str = "dtflab", daemon: bool = True) -> VirtualThread:
        thread = self.thread(target, *args, name=name)
        thread.start()
        return thread

    @AWAITED
    def stop(self, seconds: float = 5.0) -> None:
        """Wake all waiting threads with a CancelledError, and let them end; give up after that many real seconds."""
        gone = self._stopped = errors.CancelledError.of("The cluster of this virtual time was stopped.")
        deadline = REAL.now() + seconds
        me = self._my_turn()
        with self._admitted(me):
            while self._threads - {me} and REAL.now() < deadline:
                for turn in [turn for turn in self._waiting if turn in self._threads]:
                    self._fail(turn, gone)
                self._waiting[me] = VirtualEvent(self, "the others to end")
                self._wake(me, me.number)
                self._stand_aside(me)
        self._turner.close()

    # -- waiting ----------------------------------------------------------------------------------------------

    def _my_turn(self) -> _Turn:
        """The place of the thread that asks; one that the clock did not start is a guest."""
        if not hasattr(self._here, "turn"):
            self._here.turn = _Turn(threading.current_thread().name, guest=True)
        turn: _Turn = self._here.turn
        return turn

    @CRITICAL
    def _wait(self, event: VirtualEvent, timeout: float | None) -> None:
        """Stand still until the event is set or the time is up."""
        if self._turning == threading.get_ident():
            self._wait_in_event(event, timeout)
            return
        me = self._my_turn()
        with self._admitted(me):
            if not event.is_set():  # meanwhile, before a guest was let in
                self._wait_inside(me, event, timeout)

    @AWAITED
    def _wait_in_event(self, event: VirtualEvent, timeout: float | None) -> None:
        """Wait in a thread that makes an event, while the wait that it interrupts goes on."""
        covered: _Turn | None = getattr(self._here, "turn", None)
        inner = self._here.turn = _Turn(threading.current_thread().name, guest=False)
        if covered is not None:
            covered.covered += 1
        try:
            self._wait_inside(inner, event, timeout)
        finally:
            self._here.turn = covered
            if covered is not None:
                covered.covered -= 1

    def _wait_inside(self, me: _Turn, event: VirtualEvent, timeout: float | None) -> None:
        place = me, me.number
        event._waiting.append(place)
        self._waiting[me] = event
        until = None if timeout is None else self._moment(timeout)
        timer = None if until is None else self.engine.at(until, self._woken_up, *place)
        try:
            self._stand_aside(me)
        finally:
            self._leave(event, place)
            if timer is not None and until is not None and self.engine.now < until:
                self.engine.cancel(timer)

    def _moment(self, seconds: float) -> float:
        """The moment `seconds` from now, always later than now."""
        now = self.engine.now
        return max(now + seconds, math.nextafter(now, math.inf)) if seconds > 0 else now

    def _leave(self, event: VirtualEvent, place: tuple[_Turn, int]) -> None:
        """Wait no longer, for whatever reason."""
        me, number = place
        self._waiting.pop(me, None)
        me.number = max(me.number, number + 1)
        if place in event._waiting:
            event._waiting.remove(place)

    @contextlib.contextmanager
    def _admitted(self, me: _Turn) -> Iterator[None]:
        """Let a guest in, perhaps after others, and out again; the clock's own threads are inside."""
        if me.guest:
            self._come_in(me)
        try:
            yield
        finally:
            if me.guest:
                self._go_out(me)

    def _come_in(self, me: _Turn) -> None:
        self._away.comes(me.thread)
        with self._arrival_lock:
            in_line, self._inside = self._inside, True
            if in_line:
                me.given = False
                self._arrivals.append(me)
            self._away.is_in(me.thread)  # not before: nobody would wait for it, and time would pass
        if not in_line:
            return
        try:
            self._stand_still(me)
        except BaseException:
            self._go_out(me)
            raise

    def _go_out(self, me: _Turn) -> None:
        """The next one comes in; or waiting guests get a thread that turns the engine for them."""
        self._away.leaves(me.thread)
        with self._arrival_lock:
            if me.lost:  # then another one is at it
                me.lost = False
            elif self._arrivals:
                self._give(self._arrivals.popleft()).baton.release()
            elif any(turn.guest for line in (self._waiting, self._woken) for turn in line):
                self._turner.submit(self._turn_for_another)
            else:
                self._inside = False

    def _stand_aside(self, me: _Turn) -> None:
        """Let the engine be turned until this thread is woken and all threads woken before it have had their turns."""
        me.given = False
        if threading.current_thread() is threading.main_thread():
            self._turner.submit(self._turn_for_another)
            self._stand_still(me)
        elif (chosen := self._choose()) is not me:
            chosen.baton.release()
            self._stand_still(me)
        if me.failed is not None:
            error, me.failed = me.failed, None
            raise error

    def _stand_still(self, me: _Turn) -> None:
        if threading.current_thread() is not threading.main_thread():
            critical.wait_for(me.baton)
            return
        try:
            while not me.baton.acquire(timeout=STRETCH):
                pass
        except KeyboardInterrupt:
            self._interrupted = me  # the thread that turns the engine gives the next turn to this one
            me.lost = not self._has_turn_soon(me)
            raise

    def _has_turn_soon(self, me: _Turn) -> bool:
        """Give the running thread a moment to yield, unless it is busy computing, or there is a second Ctrl-C."""
        with contextlib.suppress(KeyboardInterrupt):
            deadline = REAL.now() + STRETCH
            while not me.given and REAL.now() < deadline:
                REAL.sleep(0.001)
        with self._arrival_lock:
            if self._interrupted is me:
                self._interrupted = None
            if not me.given:
                self._forget(me)
                return False
        me.baton.acquire(timeout=STRETCH)  # if the interrupt came just after, it has been already
        return True

    # -- whose turn it is -------------------------------------------------------------------------------------

    def _wake(self, turn: _Turn, number: int) -> None:
        """Let a thread have its turn at this moment, after what is due before."""
        self.engine.at(self.engine.now, self._woken_up, turn, number)

    def _woken_up(self, turn: _Turn, number: int) -> None:
        if turn.number == number:
            turn.number += 1
            self._waiting.pop(turn, None)
            self._woken.append(turn)

    def _fail(self, turn: _Turn, error: BaseException) -> None:
        """Let a thread have its turn, with an error."""
        turn.failed = error
        self._woken_up(turn, turn.number)

    @CRITICAL
    def _turn_for_another(self) -> None:
        """On a turner's thread: turn the engine for one that only waits."""
        with using(self):
            self._choose().baton.release()

    def _end(self, turn: _Turn) -> None:
        """A thread has ended: on to the next one."""
        self._threads.discard(turn)
        self._choose().baton.release()

    @np.errstate(all="ignore")  # as when a step runs in real time: events make kernels compute
    def _choose(self) -> _Turn:
        """Make events until somebody is woken; whose turn it is then."""
        before, self._turning = self._turning, threading.get_ident()
        try:
            while True:
                if not self._interrupted and self._away.expects():
                    continue
                if (self._woken or self._arrivals or self._interrupted) and (turn := self._next()) is not None:
                    return turn
                self._turn_engine()
        finally:
            self._turning = before

    def _next(self) -> _Turn | None:
        """The turn that comes next, or None if no thread can run."""
        with self._arrival_lock:
            if (turn := self._interrupted) is not None:
                self._interrupted = None
                self._forget(turn)
                return self._give(turn)
            for turn in self._woken:
                if not turn.covered:
                    self._woken.remove(turn)
                    return self._give(turn)
            return self._give(self._arrivals.popleft()) if self._arrivals else None

    def _give(self, turn: _Turn) -> _Turn:
        turn.given = True
        return turn

    def _forget(self, turn: _Turn) -> None:
        """Take the turn out of everything that it waits for."""
        turn.number += 1
        self._waiting.pop(turn, None)
        for line in (self._woken, self._arrivals):
            while turn in line:
                line.remove(turn)

    def _turn_engine(self) -> None:
        """Make the next event; if there is none, nobody can be woken any more."""
        try:
            if self.engine.turn():
                return
        except Exception as error:
            self.tell(error)
            return
        self._stuck()

    def tell(self, error: Exception) -> None:
        """Raise an error that belongs to no thread in the guest that has waited longest: mostly the program itself."""
        if error is self._stopped:  # every thread has got it
            return
        guests = (turn for turn in self._waiting if turn.guest)
        failing = next(guests, None) or next(iter(self._waiting), None)
        if failing is None:
            raise error
        self._fail(failing, error)

    def _stuck(self) -> None:
        """Nothing is due. If nobody else can come in either, every wait raises DeadlockError."""
        if self._watch.somebody_may_come({turn.thread for turn in self._waiting}, self.engine.turned):
            REAL.sleep(0.001)
            return
        others = [turn for turn in self._waiting if turn.guest]  # which mostly wait for the others to end
        error = self._deadlock()
        for turn in self._own_waiting() or others or list(self._waiting):
            self._fail(turn, error.again())

    def _own_waiting(self) -> list[_Turn]:
        return [turn for turn, event in self._waiting.items() if event.what and not turn.guest]

    def _deadlock(self, also: Iterable[tuple[str, str]] = ()) -> DeadlockError:
        """The error that names every waiting thread, and what it waits for."""
        own = self._own_waiting()
        shown = [(turn.name, event.what) for turn, event in self._waiting.items() if event.what or not own]
        shown += also
        lines = [f"{name} waits for {what or 'somebody to wake it'}" for name, what in shown]
        resting = [Resting(name, what) for name, what in shown]
        return self._watch.error(self.engine.now, [*self.waits(), *lines], [*self.standstill(), *resting])

    def _all_rest(self, me: _Turn) -> bool:
        """True if nothing is due but looks of threads that rest, and no guest is free to change what they look at."""
        if self._woken or self._arrivals or len(self.engine) > self._resting:
            return False
        inside = {turn.thread for turn in (me, *self._waiting)}
        return not self._watch.somebody_may_come(inside, self.engine.turned)
