"""Bessel functions and inverses of the normal distribution and the error function, in float64 over whole arrays.

Stands for Eigen's `BesselFunctionsImpl.h` (I₀ and I₁, scaled by exp(-|x|)), and `ndtri` and `erfinv` of its
`SpecialFunctionsImpl.h`.

Rules: the Bessel functions are means over a circle, I₀(x) = mean exp(x cos t) and I₁(x) = x mean exp(x cos t) sin² t.
For such means, equal steps are exact to the last bit once there are √(80 x) of them; further out, a series in 1/x is.
The inverses are Wichura's algorithm AS 241, good to 16 digits. The middle and the tails go by what is small there,
so that nothing is lost near 0.5, 0 and 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

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


# -- the inverses of the normal distribution and of the error function --------------------------------------


def _table(text: str) -> list[list[float]]:
    return [[float(word) for word in row.split()] for row in text.strip().splitlines()]


# A row is a power, highest first: of the numerator, of the denominator.
_MIDDLE = _table("""
    2509.0809287301226727       5226.495278852854561
    33430.575583588128105       28729.085735721942674
    67265.770927008700853       39307.89580009271061
    45921.953931549871457       21213.794301586595867
    13731.693765509461125       5394.1960214247511077
    1971.5909503065514427       687.1870074920579083
    133.14166789178437745       42.313330701600911252
    3.387132872796366608        1.0
""")
_TAIL = _table("""
    7.7454501427834140764e-4    1.05075007164441684324e-9
    0.0227238449892691845833    5.475938084995344946e-4
    0.24178072517745061177      0.0151986665636164571966
    1.27045825245236838258      0.14810397642748007459
    3.64784832476320460504      0.68976733498510000455
    5.7694972214606914055       1.6763848301838038494
    4.6303378461565452959       2.05319162663775882187
    1.42343711074968357734      1.0
""")
_FAR_TAIL = _table("""
    2.01033439929228813265e-7   2.04426310338993978564e-15
    2.71155556874348757815e-5   1.4215117583164458887e-7
    0.0012426609473880784386    1.8463183175100546818e-5
    0.026532189526576123093     7.868691311456132591e-4
    0.29656057182850489123      0.0148753612908506148525
    1.7848265399172913358       0.13692988092273580531
    5.4637849111641143699       0.59983220655588793769
    6.6579046435011037772       1.0
""")


def _ratio(table: list[list[float]], r: Any) -> Any:
    above = below = 0 * r
    for numerator, denominator in table:
        above, below = above * r + numerator, below * r + denominator
    return above / below


def _quantile(xp: Any, distance: Any, tail: Any) -> Any:
    """From the distance to the middle, p - 0.5, and the smaller of p and 1 - p."""
    r = xp.sqrt(-xp.log(tail))
    outside = xp.where(r <= 5, _ratio(_TAIL, r - 1.6), _ratio(_FAR_TAIL, r - 5))
    outside = xp.where(tail == 0, np.inf, outside)
    inside = distance * _ratio(_MIDDLE, 0.180625 - distance * distance)
    return xp.where(xp.abs(distance) <= 0.425, inside, xp.where(distance < 0, -outside, outside))


def ndtri(xp: Any, p: Any) -> Any:
    """The number below which a normal number of mean 0 and deviation 1 is with probability p."""
    return _quantile(xp, p - 0.5, xp.minimum(p, 1 - p))


def erfinv(xp: Any, x: Any) -> Any:
    """The number whose error function is x."""
    return _quantile(xp, x / 2, (1 - xp.abs(x)) / 2) * math.sqrt(0.5)
