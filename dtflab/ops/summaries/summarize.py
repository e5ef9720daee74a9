"""The few first elements of a tensor as text: what Assert, Print and `tf.print` say.

Stands for `Tensor::SummarizeValue` in `core/framework/tensor.cc`. Left out: resources and variants.

Rule: two forms. `summarize_value` (Assert, Print) runs through the elements in order and stops after `count`;
`summarize_edges` (`tf.print`, StringFormat) shows `count` at both ends of every dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np


def summarize_value(value: Any, count: int) -> str:
    """`[[0 1 2]...]`: `count` elements (all if negative) in row order, brackets for inner dimensions."""
    array = np.asarray(value)
    limit = array.size if count < 0 else min(count, array.size)
    more = "..." if limit < array.size else ""
    shown = map(_formatter(array), array.reshape(-1)[:limit].tolist())
    if array.ndim == 0:
        return "".join(shown) + more
    return _nested(array.shape, shown, limit, top=True)[0] + more


def _nested(shape: tuple[int, ...], shown: Iterator[str], left: int, top: bool) -> tuple[str, int]:
    """The text of one dimension and how many elements may still be shown after it."""
    if len(shape) == 1:
        take = min(left, shape[0])
        cut = "..." if take < shape[0] and not top else ""
        return " ".join(next(shown) for _ in range(take)) + cut, left - take
    text = ""
    for _ in range(shape[0]):
        if left <= 0:
            break
        inner, left = _nested(shape[1:], shown, left, top=False)
        text += f"[{inner}]"
    return text, left


def summarize_edges(value: Any, count: int) -> str:
    """`[0 1 2 ... 7 8 9]`: at most `count` elements (all if negative) at each end of each dimension."""
    array = np.asarray(value)
    text = _formatter(array)
    if array.dtype == object:
        return _edges(array, count, lambda x: f'"{text(x)}"', depth=0)
    return _edges(array, count, text, depth=0)


def _edges(array: Any, count: int, text: Callable[[Any], str], depth: int) -> str:
    if array.ndim == 0:
        return text(array.item())
    between = " " if array.ndim == 1 else "\n" * (array.ndim - 1) + " " * (depth + 1)
    size = array.shape[0]
    cut = count >= 0 and size > 2 * count
    ends = [*range(count), *range(size - count, size)] if cut else range(size)
    parts = [_edges(array[i, ...], count, text, depth + 1) for i in ends]
    if cut:
        parts.insert(count, "...")
    return f"[{between.join(parts)}]"


def _formatter(array: Any) -> Callable[[Any], str]:
    kind = array.dtype
    if kind.kind == "O":
        return escaped
    if kind == np.bool_:
        return lambda x: str(int(x))
    if kind.kind in "iu":
        return str
    if kind.kind == "c":
        return lambda x: "?"  # as TensorFlow
    return _float_text(kind.type)


def _float_text(kind: Any) -> Callable[[float], str]:
    """The shorter of two fixed precisions that gives the number back: 6 or 9 digits, 15 or 17 for doubles."""
    few, many, back = (15, 17, float) if kind is np.float64 else (6, 9, np.float32)

    def text(x: float) -> str:
        if x != x:
            return "nan"
        short = f"{x:.{few}g}"
        return short if back(short) == x else f"{x:.{many}g}"

    return text


def escaped(text: bytes) -> str:
    """Bytes as C would write them in a literal; UTF-8 stays itself."""
    special = {9: b"\\t", 10: b"\\n", 13: b"\\r", 34: b'\\"', 39: b"\\'", 92: b"\\\\"}
    parts = (special.get(b) or (b"\\%03o" % b if b < 32 or b == 127 else bytes([b])) for b in text)
    return b"".join(parts).decode("utf-8", "replace")
