"""Call an answer that has to find out itself: it may ask no rule of the checks, and perhaps run no graph."""

from __future__ import annotations

import os
import sys
import threading
from types import FrameType
from typing import Any

from dtflab.grading.questions import Wrong
from dtflab.runtime.session import BaseSession

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# Here stand rules that answer questions: the checks' own, and those of the library that an exercise has people write.
_RULES = tuple(
    _HERE + path.replace("/", os.sep)
    for path in "grading/checks/ grading/device_functions.py runtime/placer.py ops/queues/shared_accumulator.py "
    "train/collectives/".split()
)
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
    anything, nor may threads that it starts.
    """
    found: list[tuple[str, str | None]] = []  # sentences, and evidence
    given = [getattr(one, "__code__", None) for one in args]

    def look(frame: FrameType, event: str, called: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(_RULES):
            own = code in given or "<locals>" in code.co_qualname or code.co_name == "<module>"
            if not own and not _is_ours(frame.f_back):
                found.append((_CALLS.format(f"{code.co_name} of {frame.f_globals['__name__']}"), None))
        elif event == "c_call" and called is sys.setprofile and not _is_ours(frame):
            found.append((_CALLS.format("setprofile of sys"), None))  # so that nobody looks
        elif event == "call" and code is _OPENS and not may_run:
            name = getattr(answer, "__name__", "The answer")
            found.append((f"{name} {AIDED}; expected: no session. The graph says all that is needed.", AIDED))

    before, of_threads = sys.getprofile(), threading.getprofile()
    threading.setprofile(of_threads if may_run else look)
    sys.setprofile(look)
    try:
        return answer(*args)
    finally:
        sys.setprofile(before)
        threading.setprofile(of_threads)
        if found:
            raise Wrong(*found[0])


def _is_ours(frame: FrameType | None) -> bool:
    return frame is not None and frame.f_code.co_filename.startswith(_HERE)
