"""The namespace `tf.layers`: functions that make a layer and call it once, and the classes behind them."""

from __future__ import annotations

from typing import Any

from dtflab.graph.missing import missing as _missing
from dtflab.nets.layers.base import Layer
from dtflab.nets.layers.core import Dense, Dropout, Flatten, dense, dropout, flatten
from dtflab.nets.layers.input_spec import InputSpec

__all__ = ["Dense", "Dropout", "Flatten", "InputSpec", "Layer", "dense", "dropout", "flatten"]


def __getattr__(name: str) -> Any:
    raise _missing("tf.layers", name, globals())
