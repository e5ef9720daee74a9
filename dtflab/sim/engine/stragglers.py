"""Stragglers: how much longer than planned a device computes, drawn from a named distribution.

Stands for what shared clusters do to real steps (section 6.3 of the OSDI'16 paper). Left out: slowness that
lasts over many steps; for those, make a device slow (`Processor`), or pass your own factors.

Rule: a factor is ≥ 0 and multiplies the computing time of one device for one step; the same seed gives the same
factors, in whatever order they are asked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from dtflab.base.suggestions import did_you_mean


@dataclass(frozen=True)
class Stragglers:
    """Factors of a named distribution; the four functions below make the known ones.

    `size` is lognormal's σ, uniform's half width, the exponential's mean, or Pareto's shape.
    """

    name: str = "none"
    size: float = 0.0

    def __post_init__(self) -> None:
        if self.name not in _DRAWS:
            meant, known = did_you_mean(self.name, _DRAWS), ", ".join(_DRAWS)
            raise ValueError(f"Unknown distribution of stragglers {self.name!r}.{meant} Choose {known}.")
        size: Any = self.size  # or something taken for one
        if not (isinstance(size, Real) and math.isfinite(size)):
            raise ValueError(f"The size of {self.name} stragglers must be a finite number, not {size!r}.")
        if self.size < 0 or (self.name == "uniform" and self.size > 1):
            raise ValueError(f"{self.name.capitalize()} stragglers of size {self.size} would compute in negative time.")
        if self.name == "pareto" and self.size <= 1:
            raise ValueError(f"Pareto stragglers need a shape above 1, or their mean is infinite: not {self.size}.")

    def factors(self, steps: int, devices: int, seed: int) -> np.ndarray[Any, Any]:
        """float64 `[steps, devices]`, ≥ 0: by how much each device's computing is longer in each step."""
        drawn: np.ndarray[Any, Any] = _DRAWS[self.name](np.random.default_rng(seed), self.size, (steps, devices))
        return drawn


def lognormal(sigma: float) -> Stragglers:
    """exp(σ·N(0, 1)): the median step takes its time; a few take much longer."""
    return Stragglers("lognormal", sigma)


def uniform(width: float) -> Stragglers:
    """Between 1 − width and 1 + width."""
    return Stragglers("uniform", width)


def exponential(mean: float) -> Stragglers:
    """1 + an exponential of that mean: nothing is ever faster than planned."""
    return Stragglers("exponential", mean)


def pareto(shape: float) -> Stragglers:
    """Pareto from 1 up: heavy tailed; the smaller the shape, the worse the worst."""
    return Stragglers("pareto", shape)


_DRAWS: dict[str, Any] = {
    "none": lambda random, size, shape: np.ones(shape),
    "lognormal": lambda random, size, shape: np.exp(size * random.standard_normal(shape)),
    "uniform": lambda random, size, shape: random.uniform(1 - size, 1 + size, shape),
    "exponential": lambda random, size, shape: 1 + size * random.standard_exponential(shape),
    "pareto": lambda random, size, shape: 1 + random.pareto(size, shape),
}
