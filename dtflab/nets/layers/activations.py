"""Activations by name: `tf.layers.dense(x, 10, activation="relu")`.

Stands for `keras/activations.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtflab.ops.math import functions as math
from dtflab.ops.nn import cross_entropy, functions as nn

_NAMED: dict[str, Any] = {
    "elu": nn.elu,
    "exponential": math.exp,
    "linear": None,
    "relu": nn.relu,
    "selu": nn.selu,
    "sigmoid": math.sigmoid,
    "softmax": cross_entropy.softmax,
    "softplus": nn.softplus,
    "softsign": nn.softsign,
    "tanh": math.tanh,
}


def activation_of(given: Any) -> Callable[[Any], Any] | None:
    """The function that is given itself or by its name; None stays None."""
    if given is None or callable(given):
        return given
    if not isinstance(given, str):
        raise TypeError(f"Could not interpret activation function identifier: {given}")
    if given not in _NAMED:
        raise ValueError(f"Unknown activation function: '{given}'. Known are: {', '.join(_NAMED)}.")
    return _NAMED[given]
