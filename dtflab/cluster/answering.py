"""How a call from another process is answered, whatever wire it came over.

Stands for the common part of `rpc/grpc_call.h`: the life of a call at its server.

Rules: a method takes the bytes of a request and gives those of the answer, or raises a class of `errors`; it may wait,
for it has a thread of its own. A call that nobody waits for any more wakes that thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from dtflab.base import errors
from dtflab.base.events import PROCESS
from dtflab.cluster.call_events import ELSEWHERE, call_event, request_of
from dtflab.cluster.status import status_of
from dtflab.cluster.tensor_codec import Buffer, Pieces
from dtflab.machine.console import say, tell_to

Answer = tuple[int, str, Pieces]  # a code of `errors` (0: well), its text, the pieces of the answer


class ServerCall:
    """A call that is being answered, as its service sees it. Its caller may be gone; then nobody waits for the answer.

    `notice(gone)` has `gone` called when the caller gives up, or says False if it has. `tell(line)` takes a line for
    the person who waits for the answer; where the wire carries none, it is said here.
    """

    def __init__(
        self, notice: Callable[[Callable[[], None]], bool] = lambda gone: True, tell: Callable[[str], object] = say
    ) -> None:
        self._notice = notice
        self.tell = tell
        self._callbacks: list[Callable[[errors.OpError], object]] | None = None
        self._lock = threading.Lock()
        self._why: errors.OpError | None = None
        self._over = False
        self.is_gone = False

    def on_end(self, callback: Callable[[errors.OpError], object]) -> None:
        """Call `callback(why)` if the caller gives up or the task stops; at once if that has happened."""
        with self._lock:
            first = self._callbacks is None
            self._callbacks = self._callbacks or []
            self._callbacks.append(callback)
            why = self._why
        if why is not None:
            callback(why)
        elif first and not self._notice(self.gone):
            self.gone()

    def gone(self, why: errors.OpError | None = None) -> None:
        """Note that nobody waits for the answer any more, and end the call."""
        self.is_gone = True
        self.end(why or errors.CancelledError.of("The caller has cancelled the call, or is gone."))

    def end(self, why: errors.OpError) -> None:
        """Wake the thread that works for this call, unless the call is answered."""
        with self._lock:
            if self._over or self._why is not None:
                return
            self._why = why
            callbacks = self._callbacks or []
        for callback in callbacks:
            callback(why)

    def answered(self) -> None:
        with self._lock:
            self._over = True


Method = Callable[[Buffer, ServerCall], bytes | Pieces]


def as_long_as(call: ServerCall) -> Callable[[], object]:
    """A check for long work, between two parts of it: raises an error once nobody waits for the answer to `call`."""
    ended: list[errors.OpError] = []
    call.on_end(ended.append)

    def going() -> None:
        if ended:
            raise ended[0]

    return going


def answer(task: str, name: str, method: Method, data: Buffer, call: ServerCall) -> Answer:
    """Let a method of the services of `task` answer a request. Errors become their codes; listeners hear of it."""
    seen = None
    if PROCESS.call:
        seen = call_event(name, ELSEWHERE, task, request_of(name, data), len(data))
    failed: Exception | None = None
    found: Answer = 0, "", []
    before = tell_to(call.tell)  # the caller waits for what this thread waits for
    try:
        response = method(data, call)
        found = 0, "", [response] if isinstance(response, bytes) else response
    except Exception as error:
        failed = error if seen is not None else None  # else it would keep the request until a collection
        found = *status_of(name, error), []
    finally:
        tell_to(before)
        call.answered()
        if seen is not None:
            seen.received = sum(map(len, found[2]))
            seen.ended(failed)
    return found
