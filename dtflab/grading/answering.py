"""The answer's side of a hidden check: calls come in as lines of JSON, values go back. See `remote`.

Rule: a call has the seconds that the check gives it; what an answer prints meanwhile goes back with its value.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from typing import IO, Any

from dtflab.grading import judge, plain, watchdog
from dtflab.grading.capture import captured
from dtflab.grading.questions import Wrong
from dtflab.grading.remote import RUN_THERE

_TEXT = 2000  # characters of a repr


class Answering:
    """Answers calls from `lines` until one says that it was the last. `reply` sends what comes of each."""

    def __init__(self, lines: IO[str], reply: Callable[[Any], None]) -> None:
        self._lines, self._reply = lines, reply
        self._kept: list[Any] = []  # what the other side knows by its number

    def kept(self, value: Any) -> dict[str, Any]:
        """Keep an object that stays here; its description for the other side."""
        self._kept.append(value)
        try:
            text = repr(value)[:_TEXT]
        except Exception as error:
            text = f"<{type(value).__name__}, whose repr raises {type(error).__name__}>"
        library = (kind for kind in type(value).__mro__ if kind.__module__.startswith("dtflab."))
        kind = next((f"{kind.__module__}:{kind.__qualname__}" for kind in library), "")
        return {"there": [len(self._kept) - 1, text, callable(value), kind]}

    def serve(self) -> None:
        """Answer until the last call."""
        while (call := json.loads(self._lines.readline())) is not None:
            function, args, kwargs, seconds = call
            with captured() as printed:
                done = watchdog.call(functools.partial(self._run, function, args, kwargs), seconds)
            self._reply({**self._told(done), "seconds": done.seconds, "output": printed.text})

    def _run(self, function: str | int, args: Any, kwargs: Any) -> Any:
        """Call a function with its arguments; its value, encoded while the seconds last."""
        called = RUN_THERE[function] if isinstance(function, str) else self._kept[function]
        given = [plain.decode(one, self._here) for one in (args, kwargs)]
        return plain.encode(called(*given[0], **given[1]), self.kept)

    def _here(self, found: Mapping[str, Any]) -> Any:
        return self._kept[found["here"]]

    def _told(self, done: watchdog.Outcome) -> dict[str, Any]:
        error = done.error
        if done.stopped:
            return {"stopped": {"endless": not done.starved, "deaf": done.left_running}}
        if isinstance(error, Wrong):
            return {"wrong": [str(error), plain.encode(error.evidence, self.kept)]}
        if error is not None:
            return {"error": [type(error).__name__, str(error), judge.raised(error)]}
        return {"value": done.value}
