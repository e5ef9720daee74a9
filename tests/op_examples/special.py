"""Special functions; Lgamma and Digamma are among the unary ones."""

from __future__ import annotations

import numpy as np

from tests.op_examples import Example, Values, examples


@examples("Erfinv", "Ndtri")
def inverse_distribution(v: Values) -> list[Example]:
    low = -0.99 if v.op == "Erfinv" else 0.01
    ends = np.array([0, 1, 0.5, 0.01, 0.75], v.dtype.as_numpy_dtype)
    return [v(v.within(low, 0.99, 2, 20)), v(v.within(0.3, 0.6)), v(ends, smooth=False)]


@examples("BesselI0", "BesselI0e", "BesselI1", "BesselI1e")
def bessel(v: Values) -> list[Example]:
    wide = v.within(-10, 10, 30) if v.dtype.size == 2 else v.within(-60, 60, 60)
    return [v(v.within(-9, 9, 2, 20)), v(wide, smooth=False), v(np.zeros(1, v.dtype.as_numpy_dtype), smooth=False)]


@examples("Igamma", "Igammac", "IgammaGradA", "RandomGammaGrad")
def incomplete_gamma(v: Values) -> list[Example]:
    high = 3 if v.dtype.size == 2 else 20
    found = [v(v.within(0.5, high, 2, 9), v.within(0.5, high, 2, 9)), v(v.within(0.5, 3, 3, 1), v.within(0.5, 3, 4))]
    if v.op in ("Igamma", "Igammac") and v.dtype.size > 2:
        edges = (
            np.array([1, 2, 0.5, -1, 1], v.dtype.as_numpy_dtype),
            np.array([0, 0, 30, 1, -1], v.dtype.as_numpy_dtype),
        )
        found.append(v(*edges, smooth=False))
    return found


@examples("Zeta")
def zeta(v: Values) -> list[Example]:
    edges = (
        np.array([1, 0.5, 2, 3, 2.5], v.dtype.as_numpy_dtype),
        np.array([2, 2, -3, -3, -2.5], v.dtype.as_numpy_dtype),
    )
    return [v(v.within(1.5, 6, 2, 9), v.within(0.3, 20, 2, 9)), v(v.within(2, 3, 2, 1), v.within(1, 5, 3)),
            v(*edges, smooth=False)]  # fmt: skip


@examples("Polygamma")
def polygamma(v: Values) -> list[Example]:
    order = np.array([0, 1, 2, 3, 5], v.dtype.as_numpy_dtype)
    odd = np.array([-1, 1.5], v.dtype.as_numpy_dtype)
    return [v(order, v.within(0.5, 12, 3, 5)), v(odd, v.within(0.5, 3, 2), smooth=False)]


@examples("Betainc")
def betainc(v: Values) -> list[Example]:
    two = v.within(0.5, 9, 2, 9), v.within(0.5, 9, 2, 9)
    edges = np.array([0, 1, 0.5, -1, 2], v.dtype.as_numpy_dtype)
    one = np.array(1.5, v.dtype.as_numpy_dtype)
    return [v(*two, v.within(0.05, 0.95, 2, 9)), v(one, one, edges, smooth=False), v(one, one, v.within(0.2, 0.8))]


@examples("NextAfter")
def nextafter(v: Values) -> list[Example]:
    return [v(v.array(2, 3), v.array(3), smooth=False), v(v.special()[:, None], v.special(), smooth=False)]
