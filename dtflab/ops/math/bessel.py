"""Modified Bessel functions of the first kind, orders 0 and 1, scaled by exp(-|x|); over whole arrays, in float64.

Stands for Eigen's `BesselFunctionsImpl.h`, of which it has these two.

Rule: the functions are means over a circle, I₀(x) = mean exp(x cos t) and I₁(x) = x mean exp(x cos t) sin² t, and for
such means equal steps are exact to the last bit as soon as there are √(80 x) of them; further out a series in 1/x is.
"""

from __future__ import annotations

import math
from typing import Any

_STEPS = 64
_FAR = 30.0


def i0e(xp: Any, x: Any) -> Any:
    """exp(-|x|) I₀(x)"""
    y = xp.abs(x)
    return xp.where(y < _FAR, _mean(xp, xp.minimum(y, _FAR), 0), _far(xp, y, 0))


def i1e(xp: Any, x: Any) -> Any:
    """exp(-|x|) I₁(x)"""
    y = xp.abs(x)
    found = xp.where(y < _FAR, y * _mean(xp, xp.minimum(y, _FAR), 1), _far(xp, y, 1))
    return xp.where(x < 0, -found, found)


def _mean(xp: Any, y: Any, order: int) -> Any:
    """The mean of exp(y (cos t - 1)), times sin² t for order 1, over the circle; half of it is enough."""
    total = 0 * y
    for k in range(_STEPS // 2 + 1):
        t = 2 * math.pi * k / _STEPS
        weight = (1 if k in (0, _STEPS // 2) else 2) * (math.sin(t) ** 2 if order else 1) / _STEPS
        total = total + weight * xp.exp(y * (math.cos(t) - 1))
    return total


def _far(xp: Any, y: Any, order: int) -> Any:
    """Hankel's series in 1/y."""
    y = xp.maximum(y, _FAR)
    term = total = xp.ones_like(y)
    for k in range(1, 25):
        term = -term * (4 * order - (2 * k - 1) ** 2) / (8 * k * y)
        total = total + term
    return total / xp.sqrt(2 * math.pi * y)
