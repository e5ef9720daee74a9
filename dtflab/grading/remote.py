"""An answer in another process, as a hidden check sees it: it can be called, and what it returns is a value.

    answer(3, workers=2)          runs there; numbers, texts, lists, arrays, dtypes go there and come back
    pick = answer(…)              a function or another object stays there: what is here can be called or handed back
    watch(pick, variables, 7)     a function with `@run_there` runs where the answer is; what it gets and gives is plain

So what a check knows, and how it judges, is never in the process of the code that is graded. Rule: an error of the
answer is raised here, too, as one of Python's own kinds if it is one; a check may expect a ValueError.
"""

from __future__ import annotations

import builtins
import functools
import json
import queue
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

from dtflab.grading import plain
from dtflab.grading.questions import Wrong

Args = ParamSpec("Args")
Value = TypeVar("Value")
RUN_THERE: dict[str, Callable[..., Any]] = {}  # functions that run where the answer is, by their names
_CURE = (
    "Let the question give and return plain values, such as names, devices, values that were run, or the bytes of a "
    "GraphDef; or make this check a public one"
)
_connected: ContextVar[Link | None] = ContextVar("_connected", default=None)


class NotPlain(BaseException):
    """A hidden check wanted what can't leave its process: a mistake of the check, whose `except` lets it pass."""


class Late(BaseException):
    """The answer was stopped there. Not an Exception: a check's `except` lets it pass."""

    def __init__(self, endless: bool, deaf: bool) -> None:
        self.endless, self.deaf = endless, deaf


class Gone(BaseException):
    """The answer's process has ended."""


class RaisedThere(Exception):
    """An error of the answer's that is not one of Python's own."""


def run_there(function: Callable[Args, Value]) -> Callable[Args, Value]:
    """Let a function run where the answer is, if a hidden check calls it. Anybody may read its source."""
    name = f"{function.__module__}:{function.__qualname__}"
    RUN_THERE[name] = function

    @functools.wraps(function)
    def run(*args: Args.args, **kwargs: Args.kwargs) -> Value:
        link = _connected.get()
        if link is None:
            return function(*args, **kwargs)
        value: Value = link.ask(name, args, kwargs)
        return value

    return run


class There:
    """An object in the answer's process. One of the library's is an instance of its class, by `kind`, and no more."""

    def __init__(self, link: Link, number: int, text: str, kind: str) -> None:
        self._link, self._number, self._text, self._kind = link, number, text, kind

    def __repr__(self) -> str:
        return self._text

    @property  # type: ignore[misc]  # nobody sets it
    def __class__(self) -> type:  # what isinstance(found, tf.Tensor) asks; type(found) is There
        module, _, name = self._kind.partition(":")
        found = getattr(sys.modules.get(module), name, None)
        return found if module.startswith("dtflab.") and isinstance(found, type) else type(self)

    def __getattr__(self, name: str) -> Any:
        if not self._kind or name.startswith("__"):  # __array__ is what NumPy asks any object for
            raise AttributeError(f"{self._text} has no {name} here")
        raise NotPlain(
            f"A hidden check asked for {name} of {self._text}, which the answer returned. A graph, a tensor or a "
            f"session stays in the answer's process, so nothing is known of it here but its kind. {_CURE}"
        )


class FunctionThere(There):
    """One that can be called."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._link.ask(self._number, args, kwargs)


class Link:
    """The line to the process of an answer. `say` sends a text there; what comes back is handed to `hear`."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._replies: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.seconds = 0.0  # that the check has left
        self.output = ""
        self.asks = False  # it waits for the answer

    @contextmanager
    def connected(self, seconds: float) -> Iterator[None]:
        """Let a check run, whose calls have `seconds`, all together."""
        self.seconds, self.output = seconds, ""
        before = _connected.set(self)
        try:
            yield
        finally:
            _connected.reset(before)

    def ask(self, function: str | int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function there: its value is returned here, its error is raised here."""
        if self.seconds <= 0:
            raise Late(endless=True, deaf=False)
        given = [plain.encode(one, self._here) for one in ([*args], kwargs)]
        self.asks = True
        self._say(json.dumps([function, *given, self.seconds]))
        reply = self._replies.get()
        self.asks = False
        if reply is None:
            self.hear(None)  # for others that wait
            raise Gone
        self.seconds -= float(reply["seconds"])
        self.output += str(reply["output"])
        return self.taken(reply)

    def taken(self, reply: Any) -> Any:
        """The value that the answer's process has sent, or its error; a reply of another form is a wrong answer."""
        if stopped := reply.get("stopped"):
            raise Late(**stopped)
        if wrong := reply.get("wrong"):
            raise Wrong(str(wrong[0]), self.value(wrong[1]))
        if error := reply.get("error"):
            raise _error(*map(str, error))
        return self.value(reply["value"])

    def value(self, found: Any) -> Any:
        """The value that was sent; Wrong for anything else."""
        try:
            return plain.decode(found, self._there)
        except (ValueError, TypeError, LookupError, RecursionError, OverflowError, MemoryError) as error:
            raise Wrong(f"It returned something that can't be read: {error}") from None

    def hear(self, reply: Any) -> None:
        """Take a reply; None: there will be no more."""
        self._replies.put(reply)

    def end(self) -> None:
        """Say that there will be no more calls."""
        self._say("null")

    def _here(self, value: Any) -> Any:
        if isinstance(value, There):
            return {"here": value._number}
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        raise NotPlain(
            f"A hidden check hands numbers, texts, lists, dicts, arrays and dtypes to an answer, not {kind}. {_CURE}"
        )

    def _there(self, found: Any) -> Any:
        number, text, called, kind = found["there"]
        return (FunctionThere if called else There)(self, int(number), str(text)[:2000], str(kind))


def _error(kind: str, message: str, told: str) -> Exception:
    """The error that was raised there; `told` is the sentence about it, with its line."""
    own = getattr(builtins, kind, None)
    error: Exception = RaisedThere(message)
    if isinstance(own, type) and issubclass(own, Exception) and not issubclass(own, UnicodeError | ExceptionGroup):
        error = own(message) if message else own()
    error.told = told  # type: ignore[attr-defined]
    return error
