"""How far from the exact answer a right one may be: by the condition number, not by experience with one CPU.

A good kernel gives the exact answer for inputs that differ from its own by a few roundings. So the answer is computed
in double precision, and again for inputs of which each element is moved by one rounding, up or down at random. How far
an element of the answer moves is one rounding times its condition number: little where the problem is
well-conditioned, much where terms cancel or a matrix is nearly singular.

Rule: a right answer is within some times this distance of the exact one, plus as many roundings of its own. dtflab's
and TensorFlow's both have to be. How many times is a property of the algorithm, the `roundings` of its examples: some
for sums of products and decompositions, more for functions of matrices, which are long chains of these.
An answer that does not depend on the input, as that of x·x⁻¹, has no condition number, and fits no example.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

MOVES = 16  # with fewer, the farthest of them depends on luck


@dataclasses.dataclass(frozen=True)
class Exact:
    """An answer in double precision, and for each element how far from it a right answer may be."""

    value: np.ndarray
    bound: np.ndarray

    def wrong(self, answer: Any, whose: str) -> str:
        """Empty if the answer is right; else what is wrong."""
        answer = np.asarray(answer)
        if answer.shape != self.value.shape:
            return f"{whose} shape {answer.shape}, of the exact answer {self.value.shape}"
        with np.errstate(all="ignore"):
            wide = widened(answer)
            far = ~(abs(wide - self.value) <= self.bound)
            far &= ~((wide == self.value) | (np.isnan(wide) & np.isnan(self.value)))  # infinities, NaN
        if not far.any():
            return ""
        at = tuple(int(i) for i in np.argwhere(far)[0])
        allowed = f"exact {self.value[at]!r}, allowed {self.bound[at]:.2g} to both sides"
        return f"at {at} {whose} {answer[at]!r}, {allowed} ({far.sum()} of {far.size} are wrong)"


def exact(
    compute: Callable[[list[np.ndarray]], Sequence[Any]], inputs: Sequence[np.ndarray], roundings: float
) -> list[Exact]:
    """The values of `compute` in double precision, and bounds for answers of the inputs' own precision.

    If that is double precision, too, the value is as good as the answers that are judged by it.
    """
    dtype = next(x.dtype for x in inputs if is_inexact(x.dtype))
    eps = float(ml_dtypes.finfo(dtype).eps)
    wide, random = [widened(x) for x in inputs], np.random.default_rng(0)
    values = [np.asarray(y) for y in compute(wide)]
    reach = [np.zeros(y.shape) for y in values]
    for _ in range(MOVES):
        others = compute([moved(x, eps, random) for x in wide])
        with np.errstate(all="ignore"):
            reach = [np.fmax(r, abs(other - y)) for r, other, y in zip(reach, others, values, strict=True)]
    return [Exact(y, roundings * (r + eps * abs(y))) for y, r in zip(values, reach, strict=True)]


def moved(x: np.ndarray, distance: float, random: np.random.Generator) -> np.ndarray:
    """Each element moved by `distance` times the largest in its matrix, or vector; integers stay."""
    if not is_inexact(x.dtype) or not x.size:
        return x
    largest = abs(x).max(tuple(range(-min(x.ndim, 2), 0)), keepdims=True)
    signs: Any = random.choice([-1.0, 1.0], x.shape)
    if x.dtype.kind == "c":
        signs = (signs + 1j * random.choice([-1.0, 1.0], x.shape)) / np.sqrt(2)
    return np.asarray(x + distance * largest * signs)


def widened(array: np.ndarray) -> np.ndarray:
    """Floating and complex numbers in double precision; others as they are."""
    if array.dtype.kind == "c":
        return array.astype(np.complex128)
    return array.astype(np.float64) if is_inexact(array.dtype) else array


def is_inexact(dtype: np.dtype) -> bool:
    return dtype.kind in "fc" or dtype == ml_dtypes.bfloat16
