"""The namespace `tf.data`: data sets as graphs that hand out one element after the other."""

from __future__ import annotations

from typing import Any

from dtflab.graph.missing import missing as _missing


def __getattr__(name: str) -> Any:
    raise _missing("tf.data", name, globals())
