"""Call an answer that has to read a graph, and may not run it: a session would find out by itself."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from dtflab.base.events import Call
from dtflab.grading.questions import Wrong
from dtflab.machine.watch import watch


class Aided(NamedTuple):
    """The answer that opened a session: the evidence."""

    name: str


def opens_a_session(seen: Any) -> bool:
    """A session was opened, which finds out by itself what you should say beforehand. Leave it out: the graph, and what
    the function is given, say enough. Keep runs for cells of your own, to see if you were right."""
    return isinstance(seen, Aided)


class _Openers:
    """Listens for threads that open sessions: by number, since anybody may give a thread any name."""

    def __init__(self) -> None:
        self.threads: set[int] = set()

    def on_call(self, call: Call) -> None:
        if call.method == "CreateSession":
            self.threads.add(threading.get_ident())


def unaided(answer: Any, *args: Any) -> Any:
    """The answer's value for these arguments; Wrong if it, or a thread that it starts, opens a session on the way."""
    others = {thread.ident for thread in threading.enumerate()} - {threading.get_ident()}  # may run what they like
    openers = _Openers()
    with watch(openers):
        value = answer(*args)
    if openers.threads - others:
        name = getattr(answer, "__name__", "The answer")
        raise Wrong(f"{name} opened a session; expected: no session. The graph says all that is needed.", Aided(name))
    return value
