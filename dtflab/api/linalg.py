"""tf.linalg: linear algebra, by the names that TF1 also has there."""

from dtflab.base.missing_names import missing_in as _missing_in
from dtflab.ops.arrays.functions import diag as tensor_diag, diag_part as tensor_diag_part
from dtflab.ops.arrays.functions import matrix_band_part as band_part, matrix_transpose, matrix_transpose as transpose
from dtflab.ops.linalg.functions import adjoint, cholesky, cholesky_solve, cross, einsum, eye, logdet, lu, matmul
from dtflab.ops.linalg.functions import matrix_determinant as det, matrix_diag as diag, matrix_diag_part as diag_part
from dtflab.ops.linalg.functions import matrix_inverse as inv, matrix_logarithm as logm, matrix_rank
from dtflab.ops.linalg.functions import matrix_set_diag as set_diag, matrix_solve as solve, matrix_solve_ls as lstsq
from dtflab.ops.linalg.functions import matrix_square_root as sqrtm, matrix_triangular_solve as triangular_solve, matvec
from dtflab.ops.linalg.functions import norm, normalize, pinv, qr, self_adjoint_eig as eigh
from dtflab.ops.linalg.functions import self_adjoint_eigvals as eigvalsh, slogdet, svd, tensordot, trace
from dtflab.ops.linalg.lu_solve import lu_matrix_inverse, lu_reconstruct, lu_solve
from dtflab.ops.linalg.matrix_exponential import matrix_exponential as expm
from dtflab.ops.math.clipping import global_norm
from dtflab.ops.nn.functions import l2_normalize

__getattr__ = _missing_in("tf.linalg", globals())
