"""Call an answer that has to find out itself: it may ask no rule of the checks, and perhaps run no graph."""

from __future__ import annotations

import os
import sys
import threading
from types import FrameType
from typing import Any, NamedTuple

from dtflab.base.events import Call
from dtflab.grading.questions import Wrong
from dtflab.machine.watch import watch

_CHECKS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "checks") + os.sep


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


def by_itself(answer: Any, *args: Any) -> Any:
    """The answer's value for plain data; Wrong if it calls a function of a check: one may have the rule."""
    called: list[str] = []

    def look(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(_CHECKS) and code is not own and code.co_name != "<module>":
            called.append(code.co_name)

    own = getattr(answer, "__code__", None)  # a check may have wrapped it
    before = sys.getprofile()
    sys.setprofile(look)
    try:
        value = answer(*args)
    finally:
        sys.setprofile(before)
    if called:
        name = getattr(answer, "__name__", "The answer")
        raise Wrong(f"{name} calls {called[0]} of dtflab.grading.checks. Here you write the rule yourself.")
    return value


def unaided(answer: Any, *args: Any) -> Any:
    """The answer's value, by itself; Wrong if it, or a thread that it starts, opens a session on the way, too."""
    others = {thread.ident for thread in threading.enumerate()} - {threading.get_ident()}  # may run what they like
    openers = _Openers()
    with watch(openers):
        value = by_itself(answer, *args)
    if openers.threads - others:
        name = getattr(answer, "__name__", "The answer")
        raise Wrong(f"{name} opened a session; expected: no session. The graph says all that is needed.", Aided(name))
    return value
