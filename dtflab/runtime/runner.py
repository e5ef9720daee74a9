"""Runner: where and when the nodes of a step run. The seam below the executor.

Stands for `Executor::Args::Runner` and the step state around it in `graph_mgr.cc` and `master_session.cc`.

Rules: all bookkeeping of a step happens on one thread, the one that calls `drive`; other threads only post to the
inbox. A node that waits for something (a `_Recv`, a queue, another task) holds no thread: it is a number in
`in_flight` and a post that will come. The first error of a step cancels the rest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from dtflab.base import errors
from dtflab.base.timeouts import timeouts
from dtflab.machine.clock import REAL, Clock
from dtflab.machine.console import say
from dtflab.machine.step_stats import StepStatsCollector
from dtflab.ops.blas import BLAS

if TYPE_CHECKING:
    from dtflab.runtime.executor import Executor
    from dtflab.runtime.steps import Elsewhere


class Work(Protocol):
    """A source of nodes that are ready to run: an iteration of a frame of a partition."""

    ready: deque[int]
    executor: Executor
    in_flight: int

    def process(self) -> None: ...
    def enqueue(self) -> None: ...


S_co = TypeVar("S_co", bound="Step", covariant=True)
T = TypeVar("T")


class NewStep(Protocol[S_co]):
    """Makes the runner of a step: a class of this room, or one that a test seeds."""

    def __call__(
        self, step_id: int, clock: Clock, timeout: float | None = None, trace: StepStatsCollector | None = None
    ) -> S_co: ...


class Step:
    """One step, as the process that drives it sees it: the ready nodes, the awaited results, the first error.

    `timeout` is in seconds; `trace` collects what ran when, if it is wanted.
    """

    error: Exception | None = None
    in_flight = 0
    multiplies = False  # has nodes that use BLAS
    inter_op = 0  # the device's inter-op pool that runs costly kernels; -1: none, this thread does
    _wake: Any = None
    _deadline: float | None = None
    _abandoned = False
    _cancelled_by: Exception | None = None
    tell: Callable[[str], object] = staticmethod(say)  # takes a line for the person who waits for the step
    when_blocked: Callable[[Step], object] | None = None  # called once, if this thread waits for `timeouts.notice`
    was_blocked = False
    elsewhere: Elsewhere | None = None  # if it is run by hand: its parts in other processes
    HELD_FOR = 0.001  # seconds that something may be held while products and loops run
    _held_since = 0.0

    def __init__(
        self, step_id: int, clock: Clock = REAL, timeout: float | None = None, trace: StepStatsCollector | None = None
    ) -> None:
        self.step_id = step_id
        self.clock = clock
        self.trace = trace
        if trace is not None:
            trace.step = step_id
        self.temporaries: dict[tuple[str, str], Any] = {}  # (name, frame and iteration) → a variable of this step
        self._queue: deque[Work] = deque()
        self._inbox: deque[tuple[Callable[..., Any], tuple[Any, ...]]] = deque()
        self._held: dict[Callable[[], object], None] = {}
        self._on_cancel: dict[Callable[[Exception], object], None] = {}
        self._aside: dict[tuple[Work, int], bool] = {}  # ready nodes that wait until their device goes on
        self._inner: set[Step] = set()  # of functions that kernels are calling now
        self.careful = trace is not None  # ask `holds_back` before each node
        if timeout is not None:
            self.allow(timeout)

    @property
    def traced(self) -> bool:
        """True if its trace is wanted; it may have one only for listeners."""
        return self.trace is not None and self.trace.wanted

    # -- called on the driving thread ---------------------------------------------------------------------

    def enqueue(self, work: Work) -> None:
        """`work` has ready nodes."""
        if self.error is None:
            self._queue.append(work)

    def order(self, ready: deque[T]) -> Callable[[], T]:
        """How the next of what is ready is picked: first in, first out."""
        return ready.popleft

    @property
    def idle(self) -> bool:
        """True if nothing else is ready or on its way: a costly kernel then gains nothing from another thread."""
        return not self._queue and not self._inbox and not self.in_flight

    @property
    def holds(self) -> bool:
        """True if there is something to send off."""
        return bool(self._held)

    def hold(self, send_off: Callable[[], object]) -> None:
        """Call `send_off` before this thread waits or is busy for long: what is ready together travels together."""
        if not self._held:
            self._held_since = self.clock.now()
        self._held[send_off] = None

    def send_off(self) -> None:
        """Send off what is held."""
        while self._held:
            self._held.popitem()[0]()

    def send_off_in_time(self) -> None:
        """Send off what has been held for long; asked before each node that is not a plain kernel."""
        if self._held and self.clock.now() - self._held_since > self.HELD_FOR:
            self.send_off()

    def expect(self) -> None:
        """Expect one more post."""
        self.in_flight += 1

    def on_cancel(self, callback: Callable[[Exception], object]) -> Callable[[], object]:
        """Call `callback(error)` when the step fails; at once if it already has. Calling the result takes that back."""
        self._on_cancel[callback] = None  # first, because the step may fail just now, on its own thread
        if self.error is not None:
            callback(self.error)
        return lambda: self._on_cancel.pop(callback, None)

    def fail(self, error: Exception) -> None:
        """The first error stays; nothing new is started, and every wait is cancelled."""
        if (reason := self._cancelled_by) is not None and error is not reason and self.error is None:
            self.fail(reason)  # it came first; what fails since then may do so because what it used is gone
        if self.error is not None:
            if self.error is self._cancelled_by or isinstance(self.error, errors.DeadlineExceededError):
                self.error = errors.of_cancelled(self.error, error)
            return
        self.error = error
        self._queue.clear()
        self._cancel_inner(error)
        for callback in list(self._on_cancel):
            callback(error)
        for work, n in list(self._aside):
            self._let_go(work, n)

    def drive(self, until: Callable[[], bool] = lambda: False) -> None:
        """Run the step on this thread to its end, or until it would have to wait although `until()` is true.

        Raises the first error of the step.
        A KeyboardInterrupt abandons the step: what it waited for is cancelled, late posts are dropped.
        """
        try:
            if self.multiplies:
                with BLAS:
                    self._loop(until)
            else:
                self._loop(until)
        except BaseException:
            self._abandoned = True
            self.fail(errors.CancelledError.of("Step was interrupted."))
            raise
        if self.error is not None:
            raise self.error

    def drive_inner(self, inner: Step) -> None:
        """Run the step of a function that a kernel calls: it has this step's deadline, and ends with it."""
        inner._deadline, inner.inter_op, inner.careful = self._deadline, self.inter_op, self.careful
        self._inner.add(inner)
        try:
            error = self.error or self._cancelled_by
            if error is not None:  # it came before the kernel could call
                inner.cancel(error)
            inner.drive()
        finally:
            self._inner.discard(inner)

    def allow(self, timeout: float | None) -> None:
        """From now on, the step has `timeout` seconds left; None: as long as it takes."""
        self._deadline = None if timeout is None else self.clock.now() + timeout
        self.careful = self.careful or timeout is not None

    def must_stop(self) -> bool:
        """True if no further node may run: the step failed, was cancelled, or its time is up."""
        if self._cancelled_by is not None:
            self.fail(self._cancelled_by)
        return self.error is not None or (self._deadline is not None and self._expired())

    def check(self) -> None:
        """Raise the error by which the step was cancelled, if it was, before it has begun."""
        if self._cancelled_by is not None:
            raise self._cancelled_by

    def holds_back(self, work: Work, n: int) -> bool:
        """True if ready node `n` of `work` may not run, now or at all. A careful step is asked before each node."""
        if self.must_stop():
            work.ready.clear()
            return True
        gate = work.executor.pace.gate
        if not gate.is_open:
            work.in_flight += 1
            self.expect()
            self._aside[work, n] = True
            gate.pass_through(lambda: self._let_go(work, n))
            return True
        return False

    def _let_go(self, work: Work, n: int) -> None:
        """A node's device goes on, or its step has failed (called on any thread)."""
        if self._aside.pop((work, n), False):
            self.post(self._take_up, work, n)

    def _take_up(self, work: Work, n: int) -> None:
        """A ready node need not wait any longer."""
        work.in_flight -= 1
        work.ready.append(n)
        work.enqueue()

    @np.errstate(all="ignore")  # as a decorator it costs half of what a `with` does
    def _loop(self, until: Callable[[], bool]) -> None:
        queue, inbox = self._queue, self._inbox
        take = self.order(queue)
        while True:
            if inbox:
                function, args = inbox.popleft()
                self.in_flight -= 1
                function(*args)
                args = ()  # nothing here holds on to a value
            elif queue:
                if self._deadline is None or not self._expired():
                    take().process()
            elif self._held:
                self.send_off()
            elif self.in_flight and not until():
                self._wait()
            else:
                return

    def _wait(self) -> None:
        """Sleep until something is posted or the deadline passes."""
        if self._wake is None:
            self._wake = self.clock.event()
        self._wake.clear()
        if self._inbox:  # posted before the poster could see the event
            return
        while self.when_blocked is not None and self.error is None:
            if self._wakes_soon(self.when_blocked):
                return
        if self._deadline is None or self.error is not None:
            self._wake.wait()
        elif not self._wake.wait(max(0.0, self._deadline - self.clock.now())):
            self._expired()

    def _wakes_soon(self, report: Callable[[Step], object]) -> bool:
        """Whether something is posted before the step counts as blocked; else it is reported, unless its time is up."""
        left = timeouts.notice if self._deadline is None else self._deadline - self.clock.now()
        if self._wake.wait(max(0.0, min(timeouts.notice, left))):
            return True
        self.when_blocked = None
        if left >= timeouts.notice:
            self.was_blocked = True
            report(self)
        return False

    def _expired(self) -> bool:
        """True once the deadline has passed; then the step has failed."""
        if self._deadline is None or self.clock.now() < self._deadline:
            return False
        self.fail(errors.DeadlineExceededError.of("Timed out waiting for notification (the step)."))
        return True

    # -- called on any thread -----------------------------------------------------------------------------

    def post(self, function: Callable[..., Any], *args: Any) -> None:
        """A pending result has come: the driving thread will call `function(*args)`."""
        if self._abandoned:
            return
        self._inbox.append((function, args))
        if self._wake is not None and not self._wake.is_set():
            self._wake.set()

    def cancel(self, error: Exception) -> None:
        """Fail the step from any thread, before its next node."""
        self._cancelled_by = self._cancelled_by or error  # the first reason stays, too
        self.careful = True
        self._cancel_inner(error)
        self.post(self._cancelled)

    def _cancel_inner(self, error: Exception) -> None:
        for inner in list(self._inner):
            inner.cancel(error)

    def _cancelled(self) -> None:
        self.in_flight += 1  # nobody expected this post
        self.must_stop()
