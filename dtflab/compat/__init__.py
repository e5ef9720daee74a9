"""`dtflab.compat.v1` is TF1, which is all of dtflab; next to it the helpers that TensorFlow keeps in `tf.compat`.

Design: docs/design/api.md
"""

from __future__ import annotations

import numbers
import os
import sys
from typing import Any

import numpy as np

from dtflab.base.missing_names import missing_in as _missing_in
from dtflab.graph.tensor_shape import dimension_at_index, dimension_value

__all__ = ["as_bytes", "as_str", "as_str_any", "as_text", "dimension_at_index", "dimension_value", "path_to_str"]

v1 = sys.modules["dtflab"]  # one module with two names
__getattr__ = _missing_in("tf.compat", globals())

integral_types = (numbers.Integral, np.integer)
real_types = (numbers.Real, np.integer, np.floating)
complex_types = (numbers.Complex, np.number)
bytes_or_text_types = (bytes, str)


def as_bytes(bytes_or_text: Any, encoding: str = "utf-8") -> bytes:
    """Text or bytes as bytes; TypeError for anything else."""
    if isinstance(bytes_or_text, bytearray):
        return bytes(bytes_or_text)
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


def as_text(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    """Text or bytes as text; TypeError for anything else."""
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text.decode(encoding)
    raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")


as_str = as_text


def as_str_any(value: Any, encoding: str = "utf-8") -> str:
    """Any value as text."""
    return as_text(value, encoding) if isinstance(value, bytes) else str(value)


def path_to_str(path: Any) -> Any:
    """A path object as text; anything else as it is."""
    return as_str_any(os.fspath(path)) if isinstance(path, os.PathLike) else path
