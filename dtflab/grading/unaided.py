"""Call an answer that has to find out itself: it may ask no rule of the checks, and perhaps run no graph."""

from __future__ import annotations

import functools
import os
import sys
import threading
from types import FrameType
from typing import Any

from dtflab.grading.questions import Wrong
from dtflab.runtime.session import BaseSession

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# Here stand rules that answer questions: the checks' own, and those of the library that an exercise has people write.
_PATHS = (
    "grading/checks/ grading/device_functions runtime/placer ops/queues/shared_accumulator train/collectives/".split()
)
_RULES = tuple(_HERE + path.replace("/", os.sep) for path in _PATHS)
_MODULES = tuple("dtflab." + path.replace("/", ".") for path in _PATHS)
_watching: list[list[tuple[str, str | None]]] = []  # what is found in the calls of now: sentences, and evidence
_CALLS = "The answer calls {}. Here you write the rule yourself."
_OPENS = BaseSession.__init__.__code__


AIDED = "opened a session"  # the evidence


def opens_a_session(seen: Any) -> bool:
    """A session was opened, which finds out by itself what you should say beforehand. Leave it out: the graph, and what
    the function is given, say enough. Keep runs for cells of your own, to see if you were right."""
    return seen is AIDED


def by_itself(answer: Any, *args: Any, may_run: bool = True) -> Any:
    """The answer's value; Wrong if it calls a rule that stands elsewhere, or opens a session though it may not.

    It may call what it was given, and functions that were made for it, inside of another one. Where it may not run
    anything, nor may threads that it starts. Threads that ran before, and those of `_thread`, are not watched.
    """
    found: list[tuple[str, str | None]] = []
    given = [getattr(one, "__code__", None) for one in args]

    def look(frame: FrameType, event: str, called: Any) -> None:
        code = frame.f_code
        if event == "call" and code not in given and _is_a_rule(frame):
            found.append((_CALLS.format(f"{code.co_name} of {frame.f_globals['__name__']}"), None))
        elif event == "call" and code is _OPENS and not may_run:
            name = getattr(answer, "__name__", "The answer")
            found.append((f"{name} {AIDED}; expected: no session. The graph says all that is needed.", AIDED))

    before, of_threads = sys.getprofile(), threading.getprofile()
    threading.setprofile(of_threads if may_run else look)
    sys.setprofile(look)
    _listen()
    _watching.append(found)
    try:
        return answer(*args)
    finally:
        _watching[:] = [each for each in _watching if each is not found]
        sys.setprofile(before)
        threading.setprofile(of_threads)
        if found:
            raise Wrong(*found[0])


def _is_a_rule(frame: FrameType) -> bool:
    """Whether a call is of a rule, also of a copy of its code, and comes from outside of the rule's room."""
    code, caller = frame.f_code, frame.f_back
    if not code.co_filename.startswith(_RULES) and not str(frame.f_globals.get("__name__")).startswith(_MODULES):
        return False
    room = os.path.dirname(code.co_filename) + os.sep
    is_within = room.startswith(_HERE) and caller is not None and caller.f_code.co_filename.startswith(room)
    return not (is_within or "<locals>" in code.co_qualname or code.co_name == "<module>")


@functools.cache
def _listen() -> None:
    """Hear from now on of the ways in which an answer might work unseen; a hook for that can't be taken away."""

    def hear(event: str, args: tuple[Any, ...]) -> None:
        if not _watching or event not in _UNSEEN:
            return
        if sys._getframe(1).f_code.co_filename in (threading.__file__, __file__):
            return
        for found in _watching:
            found.append((_CALLS.format(_UNSEEN[event]), None))

    sys.addaudithook(hear)


_UNSEEN = {"sys.setprofile": "setprofile of sys", "os.fork": "fork of os"}
