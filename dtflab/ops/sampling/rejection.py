"""Random numbers that take a varying number of draws: gamma and Poisson numbers; and choices by weight.

Stands for `core/kernels/random_op.cc` (gamma), `random_poisson_op.cc` and `multinomial_op.cc`.

Rule: each output has its own place in the stream, 256 counters after the one before, so that how often one draws again
changes no other; all outputs that still want a number draw together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtflab.ops.philox import PhiloxStream, normal_double, uniform_double

_RESERVED = 256
_lgamma = np.frompyfunc(math.lgamma, 1, 1)


class _Draws:
    """Numbers of several kinds for many outputs, of each group from one counter the last one first."""

    def __init__(self, stream: PhiloxStream, count: int, **kinds: Callable[[Any], Any]) -> None:
        self._words = stream.stretch(count * _RESERVED)
        self._next = np.arange(count, dtype=np.uint64) * np.uint64(_RESERVED)
        self._kinds = kinds
        self._left = {kind: np.zeros(count, np.int64) for kind in kinds}
        self._numbers: dict[str, Any] = {}

    def take(self, kind: str, which: NDArray[Any]) -> Any:
        """The next number of that kind for the outputs `which`."""
        left = self._left[kind]
        empty = which[left[which] == 0]
        if len(empty):
            fresh = self._kinds[kind](self._words(self._next[empty]))
            self._next[empty] += np.uint64(1)
            numbers = self._numbers.setdefault(kind, np.empty((len(left), fresh.shape[1]), fresh.dtype))
            numbers[empty], left[empty] = fresh, fresh.shape[1]
        left[which] -= 1
        return self._numbers[kind][which, left[which]]


def gamma(stream: PhiloxStream, alphas: NDArray[Any], samples: int) -> Any:
    """`samples` rows of gamma numbers, a column for each of the `alphas`: Marsaglia and Tsang's method in float64."""
    alpha = np.repeat(alphas.astype(np.float64), samples)
    draws = _Draws(stream, len(alpha), normal=normal_double, uniform=uniform_double)
    d = alpha + np.where(alpha < 1, 2.0 / 3, -1.0 / 3)
    c = 1.0 / 3 / np.sqrt(d)
    out = np.full(len(alpha), np.nan)
    ones = np.flatnonzero(alpha == 1)
    out[ones] = -np.log1p(-draws.take("uniform", ones)) if len(ones) else 0
    todo = np.flatnonzero((alpha > 0) & (alpha != 1))
    while len(todo):
        x = draws.take("normal", todo)
        v = 1 + c[todo] * x
        above = v > 0
        tried, x, v = todo[above], x[above], v[above] * v[above] * v[above]
        u, d_here = draws.take("uniform", tried) if len(tried) else x, d[tried]
        good = (u < 1 - 0.0331 * (x * x) * (x * x)) | (np.log(u) < 0.5 * x * x + d_here * (1 - v + np.log(v)))
        out[tried[good]] = (d_here * v)[good]
        todo = np.concatenate([todo[~above], tried[~good]])
    small = np.flatnonzero((alpha > 0) & (alpha < 1))
    if len(small):
        out[small] *= draws.take("uniform", small) ** (1 / alpha[small])
    return out.reshape(len(alphas), samples).T


def poisson(stream: PhiloxStream, rates: NDArray[Any], samples: int) -> Any:
    """`samples` rows of Poisson numbers, a column for each of the `rates`, all of it in float64."""
    rate = np.repeat(rates.astype(np.float64), samples)
    draws = _Draws(stream, len(rate), uniform=uniform_double)
    out = np.where(rate == np.inf, rate, np.full_like(rate, np.nan))
    _few(draws, rate, np.flatnonzero((rate >= 0) & (rate < 10)), out)
    _many(draws, rate, np.flatnonzero((rate >= 10) & np.isfinite(rate)), out)
    return out.reshape(len(rates), samples).T


def _few(draws: _Draws, rate: Any, todo: Any, out: Any) -> None:
    """Knuth: how many uniform numbers can be multiplied before the product is below exp(-rate)."""
    limit, product = np.exp(-rate), np.ones_like(rate)
    out[todo] = 0
    while len(todo):
        product[todo] *= draws.take("uniform", todo)
        todo = todo[product[todo] > limit[todo]]
        out[todo] += 1


def _many(draws: _Draws, rate: Any, todo: Any, out: Any) -> None:
    """Hörmann's transformed rejection, for rates from 10 up."""
    while len(todo):
        r = rate[todo]
        b = 0.931 + 2.53 * np.sqrt(r)
        a = -0.059 + 0.02483 * b
        u, v = draws.take("uniform", todo) - 0.5, draws.take("uniform", todo)
        near = 0.5 - np.abs(u)
        k = np.floor((2 * a / near + b) * u + r + 0.43)
        at_once = (near >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2))
        never = (k < 0) | ((near < 0.013) & (v > near))
        inverse = 1.1239 + 1.1328 / (b - 3.4)
        s = np.log(v * inverse / (a / (near * near) + b))
        t = -r + k * np.log(r) - _lgamma(np.maximum(k, 0) + 1).astype(float)
        good = at_once | (~never & (s <= t))
        out[todo[good]] = k[good]
        todo = todo[~good]


def categorical(stream: PhiloxStream, logits: Any, samples: int, xp: Any) -> Any:
    """For each row of `logits`, `samples` columns chosen with probabilities as exp(logit)."""
    rows, groups = len(logits), (samples + 3) // 4 * 2
    words = stream.stretch(rows * groups * 4 * _RESERVED)
    numbers = uniform_double(words(np.arange(-(-rows * samples // 2), dtype=np.uint64)))
    finite = xp.isfinite(logits)
    shifted = logits.astype(np.float64) - xp.where(finite, logits, -np.inf).max(1, keepdims=True).astype(np.float64)
    sums = xp.cumsum(xp.where(finite, xp.exp(shifted), 0.0), 1)
    wanted = xp.asarray(numbers.reshape(-1)[: rows * samples].reshape(rows, samples)) * sums[:, -1:]
    if xp is np:
        return np.stack([np.searchsorted(s, w, side="right") for s, w in zip(sums, wanted)])
    return (sums[:, None, :] <= wanted[:, :, None]).sum(-1)
