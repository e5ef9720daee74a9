"""The result of a call, with its types, or its error's text: in a form that both libraries have in common."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np


def seen(value: Any) -> Any:
    """A value with its types, in a form that can be compared."""
    if isinstance(value, np.ndarray):
        return "array", value.dtype.name, value.tolist()
    if isinstance(value, np.generic):
        return value.dtype.name, value.item()
    if isinstance(value, dict):
        return {key: seen(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [seen(item) for item in value]
    return value


def said(error: Exception) -> str:
    """Class and words of an error: without what surrounds them in TensorFlow, without numbers of queues."""
    text = getattr(error, "message", str(error))
    if node := re.search(r"Node: '[^']*'\n(.*)", text, re.S):
        text = node[1]
    text = re.split(r"\n\t \[\[|\nAdditional GRPC|\n\nOriginal stack", text)[0]
    text = text.removeprefix("Graph execution error:\n\n")
    return f"{type(error).__name__}: {re.sub(r'_[0-9]+_', '_N_', text)}"


def tried(call: Callable[[], Any]) -> Any:
    """The result of a call, or its error."""
    try:
        return seen(call())
    except Exception as error:
        return said(error)
