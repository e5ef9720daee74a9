"""How a call from another process is answered, whatever wire it came over.

Stands for the common part of `rpc/grpc_call.h`: the life of a call at its server.

Rules: an error crosses as TensorFlow's, by its canonical code and text. A call that nobody waits for any more wakes the
thread that works for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from google.protobuf.message import DecodeError

from dtflab.base import errors
from dtflab.base.events import PROCESS
from dtflab.cluster import stubs
from dtflab.cluster.services import Method, request_of
from dtflab.cluster.tensor_codec import Buffer, Pieces
from dtflab.machine.console import say

_MAX_TEXT = 3000  # TensorFlow's limit; metadata has 8 KiB
Answer = tuple[int, str, Pieces]  # a code of `errors` (0: well), its text, the pieces of the answer


class ServerCall:
    """A call that is being answered, as its service sees it (services.Answering).

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


def answer(task: str, name: str, method: Method, data: Buffer, call: ServerCall) -> Answer:
    """Let a method of the services of `task` answer a request. Errors become their codes; listeners hear of it."""
    seen = None
    if PROCESS.call:
        seen = stubs.wire_call(name, stubs.ELSEWHERE, task, request_of(name, data), len(data))
    failed: Exception | None = None
    found: Answer = 0, "", []
    try:
        response = method(data, call)
        found = 0, "", [response] if isinstance(response, bytes) else response
    except Exception as error:
        failed = error if seen is not None else None  # else it would keep the request until a collection
        found = *status_of(name, error), []
    finally:
        call.answered()
        if seen is not None:
            seen.received = sum(map(len, found[2]))
            seen.ended(failed)
    return found


def status_of(name: str, error: Exception) -> tuple[int, str]:
    """The canonical code and text that a caller gets for an error."""
    if isinstance(error, errors.OpError):
        code, text = error.error_code, error.message
    elif isinstance(error, DecodeError | UnicodeDecodeError):
        code, text = errors.INVALID_ARGUMENT, f"Unable to parse the request of {name}: {error}"
    elif isinstance(error, MemoryError):
        code, text = errors.RESOURCE_EXHAUSTED, f"Out of memory in {name}: {error}"
    else:
        code, text = errors.INTERNAL, f"{type(error).__name__} in {name}: {error}"
    return code, text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT] + "… [truncated]"
