"""Shifts of integers; the other bitwise ops are among the binary ones."""

from __future__ import annotations

import numpy as np

from tests.op_examples import Example, Values, examples


@examples("LeftShift", "RightShift")
def shifts(v: Values) -> list[Example]:
    kind = v.dtype.as_numpy_dtype
    by = np.arange(0 if v.dtype.is_unsigned else -2, v.dtype.size * 8 + 3).astype(kind)
    return [v(v.special()[:, None], by), v(v.array(2, 3), v.array(3))]
