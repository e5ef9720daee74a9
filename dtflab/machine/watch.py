"""tf.watch: look at everything that happens between clients, tasks and queues of this process.

Rule: moments are those of the clock that counts for the thread to which something happens: virtual seconds in virtual
time, else seconds since some fixed moment.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Self

from dtflab.base import tf_logging
from dtflab.base.events import HEARD, PROCESS, Call, QueueEvent, Use
from dtflab.machine.clock import Clock, current


class Watch:
    """Sees everything that happens in this process from `__enter__` to `__exit__`.

    `calls` and `queues` are plain lists, in the order in which things became known: a call when its answer came. `uses`
    are the variables that the graphs of the steps contain, each client's once, where the master is in this process.
    """

    def __init__(self, listener: object = None) -> None:
        self._clock: Clock | None = None  # the one on which it began
        self._is_open = False
        self._listener = None if listener is None else _Listener(listener)
        self.calls: list[Call] = []
        self.queues: list[QueueEvent] = []
        self.uses: dict[Use, None] = {}  # in the order in which they were first seen
        self.began = self.ended = 0.0  # `ended` is 0 while it goes on

    def on_call(self, call: Call) -> None:
        self.calls.append(call)

    def on_queue(self, event: QueueEvent) -> None:
        self.queues.append(event)

    def on_use(self, use: Use) -> None:
        self.uses[use] = None

    def __enter__(self) -> Self:
        if self._is_open:
            raise RuntimeError("This watch is under way. To watch twice at once, open another one: tf.watch().")
        self._is_open = True
        self._clock = current()
        self.began, self.ended = self._clock.now(), 0.0
        PROCESS.add(self)
        if self._listener is not None:
            PROCESS.add(self._listener)
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        PROCESS.remove(self)
        PROCESS.remove(self._listener)
        self._is_open = False
        self.ended = self._clock.now() if self._clock is not None else 0.0
        if self._listener is not None and error is None:
            self._listener.check()

    def end_after(self, last: float) -> float:
        """When it ended, or now while it goes on; `last` if what happened then went by another clock."""
        if self._clock is None or self.began > last:
            return last
        return max(last, self.ended or self._clock.now())

    def __repr__(self) -> str:
        state = "" if self.ended else ", and goes on"
        return f"<Watch: {len(self.calls):,} calls, {len(self.queues):,} queue events{state}>"


class _Listener:
    """A program's listener. If it fails, it gets no more events; the reporting thread is not disturbed."""

    def __init__(self, listener: object) -> None:
        if isinstance(listener, type):
            raise TypeError(f"tf.watch(listener) needs an instance: tf.watch({listener.__name__}()).")
        self._listener = listener
        self._error: Exception | None = None
        heard = {kind: listener if callable(listener) else getattr(listener, kind, None) for kind in HEARD}
        for kind, hear in heard.items():
            if hear is not None:
                setattr(self, kind, partial(self._pass_on, hear))
        if not any(heard.values()) or hasattr(listener, "on_message"):
            wanted = f"a function, or an object with {' or '.join(HEARD)}, but without on_message"
            raise TypeError(f"tf.watch(listener) needs {wanted}, not {listener!r}.")

    def _pass_on(self, hear: Callable[[object], object], event: object) -> None:
        if self._error is None:
            try:
                hear(event)
            except Exception as error:
                self._error = error
                tf_logging.error("tf.watch: %r failed, and gets no more events: %r", self._listener, error)

    def check(self) -> None:
        """Raise the error with which it failed, if it did."""
        error, self._error = self._error, None
        if error is not None:
            raise error


def watch(listener: object = None) -> Watch:
    """Watch what happens in this process until the block ends, in real or in virtual time:

        with tf.watch() as seen:
            sess.run(train)
        tf.viz.wire(seen)

    `seen.calls` are the calls between clients and tasks, `seen.queues` what happened at queues, both plain lists of
    named tuples. What other processes do between themselves is not seen: `cluster.calls()` asks those of a cluster.
    Watches may be nested; each sees everything.
    What waits already when a watch begins is seen when it goes on, and what still waits at its end as waiting.

    A `listener` gets each event as soon as it is known: a function, which gets all of them (so steps take longer, as
    with `on_node`), or an object with methods for the events that it wants. These are `on_call`, `on_queue`, `on_use`
    (a client's step needs a variable), `on_node` (a node ran; steps take longer, as if they were traced), `on_card` (a
    program takes memory of a simulated GPU, gives it back, or is refused some) and `on_happened` (in virtual time, a
    kernel ran or a message set out). It is called on the thread to which the event happens, which may hold the lock of
    a queue or of the cards, so it must be quick and run no session. If it raises an error, the step goes on; the error
    is logged, the listener gets no more events, and the end of the block raises it.
    """
    return Watch(listener)
