"""The gamma function and its family, in float64 over whole arrays: functions of numbers, not ops.

Stands for the part of Eigen's `SpecialFunctionsImpl.h` that TensorFlow's ops are made of.

Rule: an argument is moved to where a short asymptotic series is exact to the last bits, and moved back by a recurrence;
an iteration runs for all elements until the last one has converged.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

_BERNOULLI = (1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6), (-3617, 510)  # B(2), B(4), …
_STIRLING = [n / (d * 2 * k * (2 * k - 1)) for k, (n, d) in enumerate(_BERNOULLI[:7], 1)]
_DIGAMMA = [n / (d * 2 * k) for k, (n, d) in enumerate(_BERNOULLI[:7], 1)]
_ZETA = [n / (d * math.factorial(2 * k)) for k, (n, d) in enumerate(_BERNOULLI, 1)]
_EPSILON = 2.0**-53
_ITERATIONS = 2000


def _series(coefficients: Any, x: Any) -> Any:
    """c0 + c1·x + c2·x² …"""
    result = 0 * x
    for c in reversed(coefficients):
        result = result * x + c
    return result


def _sin_pi(xp: Any, x: Any) -> Any:
    return xp.sin(math.pi * (x - 2 * xp.rint(x / 2)))


def lgamma(xp: Any, x: Any) -> Any:
    """log |Γ(x)|; infinite at 0, -1, -2 …"""
    y = xp.where(x < 0.5, 1 - x, x)
    product = xp.ones_like(y)
    for i in range(8):
        product = product * xp.where(y < 8, y + i, 1.0)
    z = xp.where(y < 8, y + 8, y)
    found = (z - 0.5) * xp.log(z) - z + 0.5 * math.log(2 * math.pi) + _series(_STIRLING, 1 / (z * z)) / z
    found = found - xp.log(product)
    for center in (1, 2):  # zeros of the function, where differences would have no digits
        near = y - center
        exact = _near_two(near) - (xp.log1p(near) if center == 1 else 0)
        found = xp.where(xp.abs(near) < 0.3, exact, found)
    found = xp.where(xp.isinf(x), np.inf, found)
    reflected = math.log(math.pi) - xp.log(xp.abs(_sin_pi(xp, x))) - found
    found = xp.where(x < 0.5, reflected, found)
    return xp.where(xp.isinf(x) | ((x <= 0) & (xp.floor(x) == x)), np.inf, found)


def _near_two(z: Any) -> Any:
    """log Γ(2 + z) for |z| < 0.3: z (1 - γ) + Σ (ζ(k) - 1) (-z)ᵏ / k."""
    return _series([0, 1 - np.euler_gamma, *((-1) ** k * _zeta_above_one(k) / k for k in range(2, 24))], z)


def _zeta_above_one(k: int) -> float:
    """ζ(k) - 1 = ζ(k, 2)"""
    return float(zeta(np, np.float64(k), np.float64(2)))


def digamma(xp: Any, x: Any) -> Any:
    """The derivative of log Γ(x); NaN at -1, -2 …"""
    y = xp.where(x <= 0, 1 - x, x)
    steps = xp.zeros_like(y)
    for i in range(10):
        steps = steps + xp.where(y < 10, 1 / (y + i), 0.0)
    z = xp.where(y < 10, y + 10, y)
    square = 1 / (z * z)
    found = xp.log(z) - 0.5 / z - square * _series(_DIGAMMA, square) - steps
    found = xp.where(x <= 0, found - math.pi / xp.tan(math.pi * (x - xp.rint(x))), found)
    return xp.where((x <= 0) & (xp.floor(x) == x), np.nan, found)


def zeta(xp: Any, x: Any, q: Any) -> Any:
    """Hurwitz's Σ 1 / (q + k)ˣ for x > 1, by Euler and Maclaurin."""
    x, q = xp.broadcast_arrays(x, q)
    lowest = float(xp.where(xp.isfinite(q), q, 0.0).min()) if q.size else 0.0
    total, a = xp.zeros_like(q), q
    for _ in range(10 + max(0, min(int(-lowest), 10_000))):
        todo = a < 10
        total = total + xp.where(todo, a**-x, 0.0)
        a = xp.where(todo, a + 1, a)
    power = a**-x
    factor, square = x * power / a, 1 / (a * a)
    tail = a * power / (x - 1) + 0.5 * power
    for k, c in enumerate(_ZETA):
        tail = tail + c * factor
        factor = factor * (x + 2 * k + 1) * (x + 2 * k + 2) * square
    found = xp.where(xp.isinf(q) & (x > 1), 0.0, total + tail)
    whole = q == xp.floor(q)
    found = xp.where((q <= 0) & (~whole & (x != xp.floor(x))), np.nan, found)
    even = (x == xp.floor(x)) & (x % 2 == 0)
    found = xp.where((q <= 0) & whole, xp.where(even, np.inf, np.nan), found)
    return xp.where(x == 1, np.inf, xp.where(x < 1, np.nan, found))


def polygamma(xp: Any, n: Any, x: Any) -> Any:
    """The n-th derivative of digamma, for whole n."""
    sign = xp.where(n % 2 == 0, -1.0, 1.0)
    found = sign * xp.exp(lgamma(xp, n + 1)) * zeta(xp, n + 1, x)
    found = xp.where(n == 0, digamma(xp, x), found)
    return xp.where((n < 0) | (n != xp.floor(n)), np.nan, found)


# -- incomplete gamma functions -------------------------------------------------------------------------------------


def _lower(xp: Any, a: Any, x: Any) -> tuple[Any, Any]:
    """Σ xⁿ / ((a+1) … (a+n)), and its derivative by a."""
    term, slope = xp.ones_like(a), xp.zeros_like(a)
    total, total_slope, r = term, slope, a
    for _ in range(_ITERATIONS):
        r = r + 1
        slope = (slope - term / r) * (x / r)
        term = term * (x / r)
        total, total_slope = total + term, total_slope + slope
        small = (xp.abs(term) <= _EPSILON * xp.abs(total)) & (xp.abs(slope) <= _EPSILON * xp.abs(total_slope))
        if not bool((~small & xp.isfinite(term)).any()):
            break
    return total, total_slope


def _upper(xp: Any, a: Any, x: Any) -> tuple[Any, Any]:
    """The continued fraction of Γ(a, x) eˣ / xᵃ, and its derivative by a: Legendre's, evaluated as quotients."""
    y, z = 1 - a, x + 2 - a
    p2, q2, p1, q1 = xp.ones_like(a), x, x + 1, z * x
    dp2, dq2, dp1, dq1 = xp.zeros_like(a), xp.zeros_like(a), xp.zeros_like(a), -x
    found, slope, end = p1 / q1, (dp1 - p1 / q1 * dq1) / q1, 0
    todo = xp.isfinite(found)
    for c in range(1, _ITERATIONS):
        y, z = y + 1, z + 2
        yc = y * c
        p, q = p1 * z - p2 * yc, q1 * z - q2 * yc
        dp = dp1 * z - p1 - dp2 * yc + p2 * c
        dq = dq1 * z - q1 - dq2 * yc + q2 * c
        new = xp.where(q != 0, p / q, found)
        new_slope = xp.where(q != 0, (dp - new * dq) / q, slope)
        todo = todo & (xp.abs(new - found) > 4 * _EPSILON * xp.abs(new))
        found, slope = new, new_slope
        big = xp.where(xp.abs(p) > 2.0**52, 2.0**-52, 1.0)  # only the quotients matter
        p2, p1, q2, q1 = p1 * big, p * big, q1 * big, q * big
        dp2, dp1, dq2, dq1 = dp1 * big, dp * big, dq1 * big, dq * big
        if bool(todo.any()):
            end = c + 10 + c // 4  # the derivative, a difference of large numbers, is a little later and never still
        elif c >= end:
            break
    return found, slope


def _split(xp: Any, a: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    """(a, x) where they have a value, else NaN; where the series serves; the factor xᵃ e⁻ˣ / Γ(a)."""
    a, x = xp.broadcast_arrays(a, x)
    good = (x >= 0) & (a > 0)
    a, x = xp.where(good, a, np.nan), xp.where(good, x, np.nan)
    return a, x, (x <= 1) | (x <= a), xp.exp(a * xp.log(x) - x - lgamma(xp, a))


def igamma(xp: Any, a: Any, x: Any) -> Any:
    """The lower incomplete gamma function over Γ(a)."""
    a, x, low, factor = _split(xp, a, x)
    by_series = factor / a * _lower(xp, a, xp.where(low, x, 0.0))[0]
    by_fraction = 1 - factor * _upper(xp, a, xp.where(low, a + 2, x))[0]
    return xp.where(x == 0, 0.0, xp.where(xp.isinf(x), 1.0, xp.where(low, by_series, by_fraction)))


def igammac(xp: Any, a: Any, x: Any) -> Any:
    """The upper incomplete gamma function over Γ(a): 1 - igamma."""
    a, x, low, factor = _split(xp, a, x)
    by_series = 1 - factor / a * _lower(xp, a, xp.where(low, x, 0.0))[0]
    by_fraction = factor * _upper(xp, a, xp.where(low, a + 2, x))[0]
    return xp.where(x == 0, 1.0, xp.where(xp.isinf(x), 0.0, xp.where(low, by_series, by_fraction)))


def _slope_over_density(xp: Any, a: Any, x: Any) -> tuple[Any, Any]:
    """(a⁻¹-free form of) ∂igamma/∂a as a factor of x times the density, and that product."""
    a, x, low, factor = _split(xp, a, x)
    log_x = xp.log(x)
    total, slope = _lower(xp, a, xp.where(low, x, 0.0))
    by_series = (total * (log_x - digamma(xp, a + 1)) + slope) / a
    value, slope = _upper(xp, a, xp.where(low, a + 2, x))
    by_fraction = -(value * (log_x - digamma(xp, a)) + slope)
    return xp.where(low, by_series, by_fraction), factor


def igamma_grad_a(xp: Any, a: Any, x: Any) -> Any:
    """The derivative of igamma by a."""
    slope, factor = _slope_over_density(xp, a, x)
    return xp.where((x == 0) | xp.isinf(x), 0.0 * a, factor * slope)


def random_gamma_grad(xp: Any, alpha: Any, sample: Any) -> Any:
    """How a gamma number moves with alpha, its place in the distribution being kept."""
    return -sample * _slope_over_density(xp, alpha, sample)[0]


# -- the incomplete beta function -----------------------------------------------------------------------------------


def betainc(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """The regularized incomplete beta function, by Lentz's continued fraction."""
    good = (a > 0) & (b > 0) & (x >= 0) & (x <= 1)
    a, b, x = (xp.where(good, value, np.nan) for value in (a, b, x))
    turned = x > (a + 1) / (a + b + 2)
    p, q, y = xp.where(turned, b, a), xp.where(turned, a, b), xp.where(turned, 1 - x, x)
    log_beta = lgamma(xp, a) + lgamma(xp, b) - lgamma(xp, a + b)
    log_y = xp.where(turned, xp.log1p(-x), xp.log(x))
    log_rest = xp.where(turned, xp.log(x), xp.log1p(-x))
    found = xp.exp(p * log_y + q * log_rest - log_beta) / p / _lentz(xp, p, q, y)
    found = xp.where(y == 0, 0.0 * p, found)
    return xp.where(turned, 1 - found, found)


def _lentz(xp: Any, a: Any, b: Any, x: Any) -> Any:
    """1 + d₁x / (1 + d₂x / (1 + …)), d as of the incomplete beta function."""
    tiny = 1e-300
    value = c = xp.ones_like(a)
    d = xp.zeros_like(a)
    for i in range(1, 400):
        m = i // 2
        if i % 2:
            step = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            step = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 + step * d
        c = 1 + step / c
        d, c = 1 / xp.where(d == 0, tiny, d), xp.where(c == 0, tiny, c)
        value = value * (c * d)
        if not bool((xp.abs(c * d - 1) > _EPSILON).any()):
            break
    return value
