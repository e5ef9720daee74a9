"""Whether a record holds TensorFlow's answer: equal, but for what differs from run to run and from CPU to CPU.

Rule: types, dtypes, shapes and integers are equal, and texts with their numbers masked. Other numbers of an array
differ by less than a thousandth of its largest (a tenth where the dtype has 16 bits). A test whose answers come in the
order of a hash table is marked `unordered`: of these, items, and letters of a text, may stand in any order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

_NUMBER = re.compile(r"0x[0-9a-f]+|[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def differences(recorded: Any, asked: Any, at: str = "the answer") -> Iterator[str]:
    """Where two answers are not alike, and how."""
    if type(recorded) is not type(asked):
        yield f"{at}: {type(recorded).__name__}, not {type(asked).__name__}"
    elif isinstance(asked, np.ndarray | np.generic) and asked.dtype == object:
        yield from differences([recorded.shape, *recorded.ravel()], [asked.shape, *asked.ravel()], at)
    elif isinstance(asked, list | tuple):
        if len(recorded) != len(asked):
            yield f"{at}: {len(recorded)} items, not {len(asked)}"
        else:
            for i, pair in enumerate(zip(recorded, asked)):
                yield from differences(*pair, f"{at}[{i}]")
    elif isinstance(asked, dict):
        yield from differences([*recorded.items()], [*asked.items()], at)
    elif not _same(recorded, asked):
        yield f"{at}: {recorded!r}, not {asked!r}"


def unordered(recorded: Any, asked: Any) -> Iterator[str]:
    """The `differences` of answers that may come in any order."""
    found, wanted = sorted(map(_letters, _leaves(recorded))), sorted(map(_letters, _leaves(asked)))
    yield from differences(found, wanted, "the answer, in any order")


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | np.ndarray):
        value = value.items() if isinstance(value, dict) else value.ravel().tolist()
    if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
        yield value
    else:
        for item in value:
            yield from _leaves(item)


def _letters(leaf: Any) -> str:
    return "".join(sorted(_NUMBER.sub("0", repr(leaf))))


def _same(recorded: Any, asked: Any) -> bool:
    if isinstance(asked, str):
        return _NUMBER.sub("0", recorded) == _NUMBER.sub("0", asked)
    if isinstance(asked, np.ndarray | np.generic | float | complex):
        return _close(np.asarray(recorded), np.asarray(asked))
    return bool(recorded == asked)


def _close(recorded: Any, asked: Any) -> bool:
    if (recorded.dtype, recorded.shape) != (asked.dtype, asked.shape) or asked.dtype.kind in "biuSU":
        return recorded.dtype == asked.dtype and np.array_equal(recorded, asked)
    part = 0.1 if asked.dtype.itemsize < 4 else 1e-3  # float16 and bfloat16 have 11 and 8 bits
    a, b = (x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) for x in (recorded, asked))
    largest = np.max(np.abs(b[np.isfinite(b)]), initial=0.0)
    return np.allclose(a, b, rtol=0.0, atol=part * largest, equal_nan=True)
