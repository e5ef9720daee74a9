"""Ownership: whether any other code can see an array. CPython's reference counts answer that.

Stands for `Tensor::RefCountIsOne` in `core/framework/tensor.h`.

Rule: an array may be written into, or handed out without a copy, if `holders(x)` is at most the limit for the place in
which the caller finds it. The limits are measured, since a call holds its arguments too. They are only used if the
interpreter counts every holder, as CPython with its global lock does up to 3.13. CPython 3.14 leaves local variables
out, and a build without the lock may take a reference at any time. There the limits are 0: each array is copied, and
programs compute the same, but slower.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from numpy import zeros

holders = sys.getrefcount  # an alias, not a wrapper function: a call would be one more holder

Keep = Callable[[Any], Any]


class _Place:
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def _count(x: Any) -> int:
    return holders(x)


def _argument(keep: Keep) -> int:
    """The count in a kernel that is called with a list, which is all that the executor keeps of its inputs."""
    inputs: list[Any] = [zeros(1), None]
    keep(inputs[0])
    args = inputs[0:1]
    inputs[0:1] = [None]
    return _count(*args)


def _element(keep: Keep) -> int:
    """The count in a function that is mapped over a list."""
    values = [zeros(1)]
    keep(values[0])
    return next(map(_count, values))


def _attribute(keep: Keep) -> int:
    """The count of an object's attribute, where no variable holds the value."""
    place = _Place(zeros(1))
    keep(place.value)
    return holders(place.value)


def _counts_every_holder() -> bool:
    """Whether a count is the number of holders and one for the count's own argument, as Python documents it."""
    x = zeros(1)
    counts = [holders(x)]
    others = [x]
    counts.append(holders(x))
    others.append(x[:])  # a view
    counts.append(holders(x))
    more = [measure([].append) - measure(id) for measure in (_argument, _element, _attribute)]
    return getattr(sys, "_is_gil_enabled", lambda: True)() and counts == [2, 3, 4] and more == [1, 1, 1]


_KNOWN = _counts_every_holder()

# The result of `holders` if nobody else holds the value; 0 where such a number means nothing.
_MEASURES = (_argument, _element, _attribute)
SOLE_ARGUMENT, SOLE_ELEMENT, SOLE_ATTRIBUTE = (measure(id) if _KNOWN else 0 for measure in _MEASURES)
