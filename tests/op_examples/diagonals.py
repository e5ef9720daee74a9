"""Bands of diagonals."""

from __future__ import annotations

import numpy as np

from tests.op_examples import Example, Values, examples


def _bands() -> list[tuple[int, int, int]]:
    """(lowest, highest, length of the longest) diagonals of a 3 by 4 matrix."""
    return [(0, 0, 3), (1, 1, 3), (-1, -1, 2), (-1, 1, 3), (0, 2, 3), (-2, -1, 2)]


_ALIGNMENTS = ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")


@examples("MatrixDiagV3")
def matrix_diag_v3(v: Values) -> list[Example]:
    rows, cols, free = np.array(3, np.int32), np.array(4, np.int32), np.array(-1, np.int32)
    found = [v(v.array(2, 3), np.array(0, np.int32), free, free, v.array())]
    for low, high, longest in _bands():
        stored = v.array(2, longest) if low == high else v.array(2, high - low + 1, longest)
        k = np.array([low, high], np.int32) if low != high else np.array(low, np.int32)
        found += [v(stored, k, rows, cols, v.array(), align=a) for a in _ALIGNMENTS]
    return found


@examples("MatrixDiagPartV3")
def matrix_diag_part_v3(v: Values) -> list[Example]:
    ks = [np.array([low, high], np.int32) for low, high, _ in _bands()] + [np.array(1, np.int32)]
    return [v(v.array(2, 3, 4), k, v.array(), align=a) for k in ks for a in _ALIGNMENTS]


@examples("MatrixSetDiagV3")
def matrix_set_diag_v3(v: Values) -> list[Example]:
    found = [v(v.array(3, 4), v.array(3), np.array(0, np.int32))]
    for low, high, longest in _bands():
        if low != high:
            stored = v.array(high - low + 1, longest)
            found += [v(v.array(3, 4), stored, np.array([low, high], np.int32), align=a) for a in _ALIGNMENTS]
    return found
