"""Random numbers by rejection, and those that depend on a seed alone."""

from __future__ import annotations

import numpy as np

from dtflab.graph import dtypes
from tests.op_examples import Example, Values, examples

REAL = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
SHAPES = ([2, 3], [300], [])


def ints(values: object, kind: type = np.int32) -> np.ndarray:
    return np.array(values, kind)


@examples("RandomGamma")
def gamma(v: Values) -> list[Example]:
    alpha = np.array([0.3, 1, 2.5, 0.9, 40], v.dtype.as_numpy_dtype)
    seeds = {"seed": 5, "seed2": 6}
    return [
        v(ints([40]), alpha, **seeds),
        v(ints([3, 2], np.int64), alpha[:2], **seeds),
        v(ints([]), alpha[2], **seeds),
    ]


@examples("RandomPoissonV2")
def poisson(v: Values) -> list[Example]:
    rates = np.array([0, 0.5, 3, 9.9, 10, 25, 300])
    whole = (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64)
    return [v(ints([50]), rates.astype(v.dtype.as_numpy_dtype), dtype=d, seed=5, seed2=6) for d in whole]


@examples("StatelessMultinomial")
def choices(v: Values) -> list[Example]:
    seeds = [ints([3, 4]), ints([-3, 1 << 40], np.int64)]
    found = [v(v.array(2, 3), ints(20), s, output_dtype=d) for s in seeds for d in (dtypes.int32, dtypes.int64)]
    return [*found, v(v.array(3, 5), ints(7), seeds[0]), v(v.array(3, 5), ints(0), seeds[0])]


@examples("StatelessRandomGetKeyCounter", "StatelessRandomGetKeyCounterAlg")
def key_counter(v: Values) -> list[Example]:
    return [v(ints(s, v.dtype.as_numpy_dtype)) for s in ([1, 2], [-1, 7], [0, 0])]


@examples("StatelessRandomGetAlg")
def algorithm(v: Values) -> list[Example]:
    return [v()]


@examples("StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal",
          "StatelessRandomUniformFullInt")  # fmt: skip
def by_seed(v: Values) -> list[Example]:
    return [v(ints(s, t), ints([7, -n], t), dtype=v.dtype) for n, s in enumerate(SHAPES) for t in (np.int32, np.int64)]


_KEY = np.array([0x908502C96D2F7FBA], np.uint64), np.array([0, 0xF7734320619CB60B], np.uint64)


@examples("StatelessRandomUniformV2", "StatelessRandomNormalV2", "StatelessTruncatedNormalV2",
          "StatelessRandomUniformFullIntV2")  # fmt: skip
def by_key(v: Values) -> list[Example]:
    return [v(ints(s), *_KEY, ints(a), dtype=v.dtype) for s in SHAPES for a in (1, 3)]


@examples("StatelessRandomUniformInt", "StatelessRandomUniformIntV2")
def integers(v: Values) -> list[Example]:
    kind = v.dtype.as_numpy_dtype
    ends = [(0, 10)] if v.dtype.is_unsigned else [(0, 10), (-5, 6)]
    where = (ints([3, 4]),) if v.op == "StatelessRandomUniformInt" else (*_KEY, ints(1))
    return [v(ints([50]), *where, np.array(a, kind), np.array(b, kind)) for a, b in ends]


@examples("StatelessRandomGammaV2", "StatelessRandomGammaV3")
def stateless_gamma(v: Values) -> list[Example]:
    alpha = np.array([0.3, 1, 2.5], v.dtype.as_numpy_dtype)
    where = (ints([3, 4]),) if v.op == "StatelessRandomGammaV2" else (*_KEY, ints(3))
    return [v(ints([20, 3]), *where, alpha, smooth=False), v(ints([5]), *where, alpha[0], smooth=False)]


@examples("StatelessRandomPoisson")
def stateless_poisson(v: Values) -> list[Example]:
    rates = np.array([0.5, 3, 25]).astype(v.dtype.as_numpy_dtype)
    return [v(ints([20, 3]), ints([3, 4]), rates, dtype=d) for d in (dtypes.float32, dtypes.int32)]
