"""Random numbers of TensorFlow's own streams."""

from __future__ import annotations

import numpy as np

from dtflab.graph import dtypes
from tests.op_examples import Example, Values, examples


@examples("RandomUniform", "RandomStandardNormal", "TruncatedNormal")
def random(v: Values) -> list[Example]:
    shapes = [np.array(s, t) for s in ([2, 3], [300], []) for t in (np.int32, np.int64)]
    return [v(s, dtype=v.dtype, seed=7, seed2=n) for n, s in enumerate(shapes)]


@examples("RandomUniformInt")
def random_uniform_int(v: Values) -> list[Example]:
    def limit(x):
        return np.array(x, np.int64)

    return [v(np.array([50], np.int32), limit(a).astype(t), limit(b).astype(t), seed=1, seed2=2)
            for a, b in ((0, 10), (-5, 6)) for t in (np.int32, np.int64)]  # fmt: skip


@examples("RandomShuffle", "Multinomial")
def random_order(v: Values) -> list[Example]:
    if v.op == "Multinomial":
        return [
            v(v.array(2, 3), np.array(20, np.int32), seed=3, seed2=4, output_dtype=d)
            for d in (dtypes.int32, dtypes.int64)
        ]
    return [v(v.array(7), seed=3, seed2=4), v(v.array(5, 2), seed=3, seed2=5)]
