"""Steps by hand on a page that `dtflab export --run` writes: it has all their sets, though nobody presses a button.

Rule: a step goes on only after the notebook's last cell, so no cell sees another state than it would in JupyterLab.
"""

from __future__ import annotations

import contextlib
from typing import Any

from IPython.display import display

from dtflab.base import errors
from dtflab.runtime.steps import Steps
from dtflab.viz.steps import ShownSteps

_shown: list[tuple[ShownSteps, str, Any]] = []  # with its text, and the handle of its output


def show(steps: Steps) -> None:
    """Show a step in an output that `end` can replace."""
    shown, text = ShownSteps(steps), repr(steps)
    _shown.append((shown, text, display(_bundle(shown, text), raw=True, display_id=True)))


def end() -> None:
    """Run each step that was shown until it is over or waits for something outside; put its sets into its output."""
    for shown, text, handle in _shown:
        with contextlib.suppress(errors.OpError):  # its picture says it
            _run_on(shown.steps)
        if len(shown.steps.records) > shown.at:
            handle.update(_bundle(shown, text), raw=True)


def _run_on(steps: Steps) -> None:
    while not steps.over and steps.next().ran:
        pass


def _bundle(shown: ShownSteps, text: str) -> dict[str, str]:
    return {"text/plain": text, "text/html": shown.html()}
