"""Call an answer that has to read a graph, and may not run it: a session would find out by itself."""

from __future__ import annotations

from typing import Any

from dtflab.base.events import client_name
from dtflab.grading.questions import Wrong
from dtflab.machine.watch import watch


def unaided(answer: Any, *args: Any) -> Any:
    """The answer's value for these arguments; Wrong if it opens a session on the way."""
    with watch() as seen:
        value = answer(*args)
    if any(call.method == "CreateSession" and call.source == client_name() for call in seen.calls):
        name = getattr(answer, "__name__", "The answer")
        raise Wrong(f"{name} opened a session; expected: no session. The graph says all that is needed.")
    return value
