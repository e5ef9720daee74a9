"""Fourier transforms."""

from __future__ import annotations

import numpy as np

from dtflab.graph import dtypes
from tests.op_examples import Example, Values, examples


@examples("FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D")
def of_complex(v: Values) -> list[Example]:
    return [v(v.array(2, 3, 4)), v(v.array(2, 2, 3, 5)), v(v.array(1, 1, 1))]


@examples("RFFT", "RFFT2D", "RFFT3D")
def of_real(v: Values) -> list[Example]:
    rank = 1 if v.op == "RFFT" else int(v.op[4])
    kind = {"Tcomplex": dtypes.complex64 if v.dtype == dtypes.float32 else dtypes.complex128}
    # TensorFlow's gradient of a cut input has another shape than the input.
    cases = [((2, 3, 4), True), ((2, 2, 3, 5), True)]
    found = [v(v.array(*s), np.array(s[-rank:], np.int32), gradient=g, **kind) for s, g in cases]
    return [*found, v(v.array(4, 4, 4), np.array([3, 2, 2][-rank:], np.int32), gradient=False, **kind)]


@examples("IRFFT", "IRFFT2D", "IRFFT3D")
def to_real(v: Values) -> list[Example]:
    rank = 1 if v.op == "IRFFT" else int(v.op[5])
    real = dtypes.float32 if v.dtype == dtypes.complex64 else dtypes.float64
    found = []
    for shape, length in (((2, 3, 3), [2, 3, 4]), ((2, 3, 3), [2, 3, 5]), ((4, 4, 4), [3, 2, 2])):
        whole = length != [3, 2, 2]
        x = v.array(*shape)
        found.append(v(x, np.array(length[-rank:], np.int32), Treal=real, gradient=whole, smooth=False))
    return found
