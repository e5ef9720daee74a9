"""The gradient of mirrored padding."""

from __future__ import annotations

import numpy as np

from dtflab.graph import dtypes
from tests.op_examples import Example, Values, examples


@examples("MirrorPadGrad")
def mirror_pad_grad(v: Values) -> list[Example]:
    if v.dtype in (dtypes.string, dtypes.bool):
        return []
    pads = np.array([[1, 0], [0, 2]], np.int32)
    return [v(v.array(4, 5), pads.astype(t), mode=m) for m in ("REFLECT", "SYMMETRIC") for t in (np.int32, np.int64)]
