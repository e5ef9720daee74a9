"""tf.linalg: linear algebra, by the names that TF1 also has there."""

from __future__ import annotations

from typing import Any

from dtflab.graph.missing import missing as _missing
from dtflab.ops.clipping import global_norm
from dtflab.ops.decomposition import matrix_inverse as inv, qr
from dtflab.ops.diagonal import diag as tensor_diag, diag_part as tensor_diag_part, matrix_band_part as band_part
from dtflab.ops.einsum import einsum
from dtflab.ops.linalg import (
    eye,
    matrix_diag as diag,
    matrix_diag_part as diag_part,
    matrix_set_diag as set_diag,
    norm,
    trace,
)
from dtflab.ops.matmul import matmul, matvec
from dtflab.ops.nn import l2_normalize
from dtflab.ops.reshaping import matrix_transpose, matrix_transpose as transpose
from dtflab.ops.tensordot import tensordot


def __getattr__(name: str) -> Any:
    raise _missing("tf.linalg", name, globals())
