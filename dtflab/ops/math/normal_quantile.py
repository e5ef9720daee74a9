"""The inverses of the normal distribution and of the error function, in float64 over whole arrays.

Stands for `ndtri` and `erfinv` of Eigen's `SpecialFunctionsImpl.h`. Wichura's algorithm AS 241, good to 16 digits.

Rule: the middle and the tails are asked for by what is small there, so that nothing is lost near 0.5, 0 and 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

# Numerators and denominators, highest power first: the middle, the tails, the far tails.
_MIDDLE = (
    (2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
     13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608),
    (5226.495278852854561, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
     5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0),
)  # fmt: skip
_TAIL = (
    (7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177, 1.27045825245236838258,
     3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959, 1.42343711074968357734),
    (1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966, 0.14810397642748007459,
     0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187, 1.0),
)  # fmt: skip
_FAR = (
    (2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386, 0.026532189526576123093,
     0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699, 6.6579046435011037772),
    (2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5, 7.868691311456132591e-4,
     0.0148753612908506148525, 0.13692988092273580531, 0.59983220655588793769, 1.0),
)  # fmt: skip


def _ratio(tables: Any, r: Any) -> Any:
    above = below = 0 * r
    for numerator, denominator in zip(*tables, strict=True):
        above, below = above * r + numerator, below * r + denominator
    return above / below


def _quantile(xp: Any, distance: Any, tail: Any) -> Any:
    """From the distance to the middle, p - 0.5, and the smaller of p and 1 - p."""
    r = xp.sqrt(-xp.log(tail))
    outside = xp.where(r <= 5, _ratio(_TAIL, r - 1.6), _ratio(_FAR, r - 5))
    outside = xp.where(tail == 0, np.inf, outside)
    inside = distance * _ratio(_MIDDLE, 0.180625 - distance * distance)
    return xp.where(xp.abs(distance) <= 0.425, inside, xp.where(distance < 0, -outside, outside))


def ndtri(xp: Any, p: Any) -> Any:
    """The number below which a normal number of mean 0 and deviation 1 is with probability p."""
    return _quantile(xp, p - 0.5, xp.minimum(p, 1 - p))


def erfinv(xp: Any, x: Any) -> Any:
    """The number whose error function is x."""
    return _quantile(xp, x / 2, (1 - xp.abs(x)) / 2) * math.sqrt(0.5)
