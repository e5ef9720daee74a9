"""Call an answer that has to read a graph, and may not run it: a session would find out by itself."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from dtflab.base.events import client_name
from dtflab.grading.questions import Wrong
from dtflab.machine.watch import watch


class Aided(NamedTuple):
    """The answer that opened a session: the evidence."""

    name: str


def opens_a_session(seen: Any) -> bool:
    """A session was opened, which finds out by itself what you should say beforehand. Leave it out: the graph, and what
    the function is given, say enough. Keep runs for cells of your own, to see if you were right."""
    return isinstance(seen, Aided)


def unaided(answer: Any, *args: Any) -> Any:
    """The answer's value for these arguments; Wrong if it, or a thread that it starts, opens a session on the way."""
    others = {thread.name for thread in threading.enumerate()} - {client_name()}  # may run what they like
    with watch() as seen:
        value = answer(*args)
    if any(call.method == "CreateSession" and call.source not in others for call in seen.calls):
        name = getattr(answer, "__name__", "The answer")
        raise Wrong(f"{name} opened a session; expected: no session. The graph says all that is needed.", Aided(name))
    return value
