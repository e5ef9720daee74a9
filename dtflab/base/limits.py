"""Limits on what a message or a file may make a process build, so that a small one does not become gigabytes.

TensorFlow has hardly any such limits. `dtflab.limits.sessions = 10` changes a value; the environment's
`DTFLAB_LIMIT_SESSIONS` sets it. What a program builds for itself is not limited.
"""

from __future__ import annotations

import os


class Limits:
    """The most that a graph or a tensor that was read may ask for, and that a server holds for its callers.

    `expanded_bytes`: of tensors that list fewer elements than their shapes have, beyond those listed; of a tensor, and
    of a graph. `list_length`: tensors in a list, elements of lists in attributes, and outputs of a graph beyond one per
    node. `graph_nodes`: nodes of a session's graph. `inlined_nodes`: nodes that the calls of functions become.
    `sessions` and `steps`: of a server's clients, and of its cluster's masters, at a time.
    """

    def __init__(self) -> None:
        self.expanded_bytes = _from_environment("EXPANDED_BYTES", 1 << 28)
        self.list_length = _from_environment("LIST_LENGTH", 1 << 20)
        self.graph_nodes = _from_environment("GRAPH_NODES", 1 << 20)
        self.inlined_nodes = _from_environment("INLINED_NODES", 1 << 18)
        self.sessions = _from_environment("SESSIONS", 10_000)
        self.steps = _from_environment("STEPS", 10_000)

    def as_environment(self) -> dict[str, str]:
        """The variables that give a child process the same values."""
        return {f"DTFLAB_LIMIT_{name.upper()}": str(value) for name, value in vars(self).items()}


def _from_environment(name: str, default: int) -> int:
    text = os.environ.get(f"DTFLAB_LIMIT_{name}", "")
    try:
        return int(text) if text else default
    except ValueError:
        raise ValueError(f"DTFLAB_LIMIT_{name} must be a whole number, not {text!r}") from None


limits = Limits()


def beyond(option: str, what: str) -> str:
    """The text of an error about `what`, which goes beyond a limit: with the limit, and how to raise it."""
    return (
        f"{what}: more than {getattr(limits, option)}, the limit of this process. If that is meant, set "
        f"dtflab.limits.{option} there, or DTFLAB_LIMIT_{option.upper()} in its environment."
    )
