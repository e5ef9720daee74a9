"""The functions of `tf.linalg` and the products of `tf.math`.

Stands for `python/ops/{linalg_ops,math_ops,special_math_ops,gradients_impl}.py` and `linalg/linalg_impl.py`. Uses of an
LU decomposition are in `lu_solve.py`, the exponential is in `matrix_exponential.py`, Fourier transforms are in
`spectral.py`.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.gradients import gradients
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.control.cond import cond
from dtflab.ops.control.while_loop import while_loop
from dtflab.ops.functional.functions import map_fn
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.linalg.equations import ordered_pairs, resolved
from dtflab.ops.lists.tensor_array import TensorArray
from dtflab.ops.math import functions as math
from dtflab.ops.messages import renamed
from dtflab.ops.reduce import functions as reduce

# ---- products ----


def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    output_type: Any = None,
    grad_a: bool = False,
    grad_b: bool = False,
    name: str | None = None,
) -> Tensor:
    """The matrix product a @ b; of arrays with more than two axes that of their last two.

    `a_is_sparse` and `b_is_sparse` make it a SparseMatMul, which may mix float32 and bfloat16.
    """
    with name_scope(name, "MatMul", [a, b]) as scope:
        for which, transpose, adjoint in (("a", transpose_a, adjoint_a), ("b", transpose_b, adjoint_b)):
            if transpose and adjoint:
                text = f"Received `transpose_{which}`={transpose}, `adjoint_{which}`={adjoint}."
                raise ValueError(f"Only one of `transpose_{which}` and `adjoint_{which}` can be True. {text}")
        a = convert_to_tensor(a, name="a")
        b = convert_to_tensor(b, dtype_hint=a.dtype.base_dtype, name="b")
        if output_type is not None and any(dtypes.as_dtype(output_type) != t.dtype.base_dtype for t in (a, b)):
            raise NotImplementedError("tf.matmul with an output_type other than its inputs' is not in dtflab.")
        if a.shape.ndims is None or a.shape.ndims > 2 or b.shape.ndims is None or b.shape.ndims > 2:
            a, b = math.conj(a) if transpose_a else a, math.conj(b) if transpose_b else b
            adjoints = {"adj_x": adjoint_a or transpose_a, "adj_y": adjoint_b or transpose_b}
            return apply_op("BatchMatMulV2", scope, x=a, y=b, **adjoints, grad_x=grad_a, grad_y=grad_b)
        a, b = math.conj(a) if adjoint_a else a, math.conj(b) if adjoint_b else b
        flags = {"transpose_a": transpose_a or adjoint_a, "transpose_b": transpose_b or adjoint_b}
        if _for_sparse(a, b, a_is_sparse or b_is_sparse):
            found = apply_op("SparseMatMul", scope, a=a, b=b, a_is_sparse=a_is_sparse, b_is_sparse=b_is_sparse, **flags)
            return arrays.cast(found, dtypes.bfloat16) if a.dtype == b.dtype == dtypes.bfloat16 else found
        return apply_op("MatMul", scope, a=a, b=b, **flags, grad_a=grad_a, grad_b=grad_b)


def _for_sparse(a: Tensor, b: Tensor, hinted: bool) -> bool:
    """True if SparseMatMul takes the operands, because of a hint or because only it mixes their types."""
    types = {a.dtype.base_dtype, b.dtype.base_dtype}
    return types <= {dtypes.float32, dtypes.bfloat16} and (hinted or len(types) == 2)


def _mat_mul(
    a: Tensor, b: Tensor, transpose_a: bool, transpose_b: bool, name: str | None = None, **grads: bool
) -> Tensor:
    return apply_op("MatMul", name, a=a, b=b, transpose_a=transpose_a, transpose_b=transpose_b, **grads)


def matvec(a: Any, b: Any, transpose_a: bool = False, adjoint_a: bool = False, name: str | None = None) -> Tensor:
    """The matrix `a` times the vector `b`."""
    with name_scope(name, "MatVec", [a, b]):
        output = matmul(a, arrays.expand_dims(b, axis=-1), transpose_a=transpose_a, adjoint_a=adjoint_a)
        return arrays.squeeze(output, axis=-1)


def sparse_matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """The matrix product a @ b in float32; the operands may be of float32 and bfloat16."""
    hints = {"a_is_sparse": a_is_sparse, "b_is_sparse": b_is_sparse}
    return apply_op("SparseMatMul", name, a=a, b=b, transpose_a=transpose_a, transpose_b=transpose_b, **hints)


def cross(a: Any, b: Any, name: str | None = None) -> Tensor:
    """The cross products of the vectors along the last axis, which has 3 elements."""
    return apply_op("Cross", name, a=a, b=b)


def einsum(equation: str, *inputs: Any, **kwargs: Any) -> Tensor:
    """The sum of products over labelled axes: `einsum("ij,jk->ik", a, b)` is the product of matrices.

    `...` stands for any axes, which broadcast. Three and more inputs are contracted in pairs, in an order that keeps
    results small. Named argument: `name`. Raises ValueError for an equation that doesn't fit the inputs.
    """
    name = kwargs.pop("name", None)
    kwargs.pop("optimize", None)  # other ways than the greedy one to find the order of pairs
    if kwargs:
        raise TypeError(f"Invalid keyword arguments for einsum: {', '.join(kwargs)}. Valid arguments: name, optimize.")
    with name_scope(name, "einsum", [equation, *inputs]):
        operands = list(inputs)
        shapes = [x.shape.as_list() if x.shape.ndims else None for x in map(_with_shape, operands)]
        full = resolved(equation, len(operands))
        if len(operands) <= 2:
            return apply_op("Einsum", inputs=operands, equation=full)
        for places, pair in ordered_pairs(full, shapes):
            operands.append(apply_op("Einsum", inputs=[operands.pop(i) for i in places], equation=pair))
        return operands[0]


def _with_shape(x: Any) -> Any:
    return x if isinstance(getattr(x, "shape", None), TensorShape) else convert_to_tensor(x)


# ---- products over any axes ----


def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """The sum of products over axes of `a` and `b`: the last and first `axes`, or those in a pair of lists."""
    with name_scope(name, "Tensordot", [a, b, axes]) as scope:
        a, b = convert_to_tensor(a, name="a"), convert_to_tensor(b, name="b")
        a_axes, b_axes = _contracted(a, axes)
        a_matrix, a_free, a_static = _as_matrix(a, a_axes, flipped=False)
        b_matrix, b_free, b_static = _as_matrix(b, b_axes, flipped=True)
        product = matmul(a_matrix, b_matrix)
        if isinstance(a_free, list) and isinstance(b_free, list):
            if product.shape.is_fully_defined() and product.shape.as_list() == a_free + b_free:
                return product
            return arrays.reshape(product, a_free + b_free, name=scope)
        a_free, b_free = convert_to_tensor(a_free, dtypes.int32), convert_to_tensor(b_free, dtypes.int32)
        product = arrays.reshape(product, arrays.concat([a_free, b_free], 0), name=scope)
        if a_static is not None and b_static is not None:
            product.set_shape(a_static + b_static)
        return product


def _contracted(a: Tensor, axes: Any) -> tuple[Any, Any]:
    """The axes of a and of b to sum over."""
    if isinstance(axes, int | np.integer):
        if axes < 0:
            raise ValueError(f"`axes` must be at least 0. Received: {axes}.")
        ndims = a.shape.ndims
        if ndims is None:
            rank = arrays.rank(a)
            return arrays.range(rank - axes, rank, dtype=dtypes.int32), arrays.range(axes, dtype=dtypes.int32)
        if axes > ndims:
            raise ValueError(f"`axes` must not be larger than the number of dimensions of tensor {a}.  Received {axes}")
        return list(builtins.range(ndims - axes, ndims)), list(builtins.range(axes))
    if isinstance(axes, list | tuple):
        if len(axes) != 2:
            raise ValueError(f"`axes` must be an integer or have length 2. Received {axes}.")
        a_axes, b_axes = ([x] if isinstance(x, int | np.integer) else x for x in axes)
        if len(a_axes) != len(b_axes):
            raise ValueError(f"Different number of contraction axes `a` and `b`, {len(a_axes)} != {len(b_axes)}.")
        return a_axes, b_axes
    axes = convert_to_tensor(axes, dtypes.int32, name="axes")
    return axes[0], axes[1]


def _as_matrix(a: Tensor, axes: Any, flipped: bool) -> tuple[Tensor, Any, Any]:
    """`a` as a matrix, its free axes before (or after) those to sum over; and the sizes of the free ones."""
    if not a.shape.is_fully_defined() or not isinstance(axes, list | tuple):
        return _as_matrix_later(a, axes, flipped)
    dims: list[Any] = a.shape.as_list()
    axes = [i % len(dims) for i in axes]
    free = [i for i in builtins.range(len(dims)) if i not in axes]
    free_dims = [dims[i] for i in free]
    shape = [int(np.prod(free_dims)), int(np.prod([dims[i] for i in axes]))]
    perm = [*axes, *free] if flipped else [*free, *axes]
    shape = shape[::-1] if flipped else shape
    if perm != list(builtins.range(len(dims))):
        a = arrays.transpose(a, perm)
    if a.shape.as_list() != shape:
        a = arrays.reshape(a, shape)
    return a, free_dims, free_dims


def _as_matrix_later(a: Tensor, axes: Any, flipped: bool) -> tuple[Tensor, Any, Any]:
    """The tensor as a matrix, with sizes that only the step knows."""
    static = None
    free: Any
    if a.shape.ndims is not None and isinstance(axes, list | tuple):
        dims = a.shape.as_list()
        axes = [i % len(dims) for i in axes]
        free = [i for i in builtins.range(len(dims)) if i not in axes]
        static = [dims[i] for i in free]
        axes = convert_to_tensor(axes, dtypes.int32, name="axes")
        free = convert_to_tensor(free, dtypes.int32, name="free")
        shape = arrays.shape(a)
    else:
        shape = arrays.shape(a)
        rank = arrays.rank(a)
        axes = convert_to_tensor(axes, dtypes.int32, name="axes")
        axes = indexing.where(axes >= 0, axes, axes + rank)
        free, _ = indexing.setdiff1d(arrays.range(rank), axes, dtypes.int32)
    free_dims, axes_dims = indexing.gather(shape, free), indexing.gather(shape, axes)
    free_size, axes_size = reduce.reduce_prod(free_dims), reduce.reduce_prod(axes_dims)
    if flipped:
        perm, size = arrays.concat([axes, free], 0), arrays.stack([axes_size, free_size])
    else:
        perm, size = arrays.concat([free, axes], 0), arrays.stack([free_size, axes_size])
    return arrays.reshape(arrays.transpose(a, perm), size), free_dims, static


# ---- diagonals ----


def matrix_diag(
    diagonal: Any,
    name: str = "diag",
    k: Any = 0,
    num_rows: Any = -1,
    num_cols: Any = -1,
    padding_value: Any = 0,
    align: Any = "RIGHT_LEFT",
) -> Tensor:
    """Matrices that have `diagonal` as their k-th diagonal and `padding_value` elsewhere."""
    band = {"diagonal": diagonal, "k": k, "padding_value": _of_bools(diagonal, padding_value), "align": align}
    return apply_op("MatrixDiagV3", name, num_rows=num_rows, num_cols=num_cols, **band)


def _of_bools(tensor: Any, padding: Any) -> Any:
    """The padding, which is written as a number even for bools."""
    return bool(padding) if isinstance(tensor, Tensor) and tensor.dtype.base_dtype == dtypes.bool else padding


def matrix_diag_part(
    input: Any, name: str = "diag_part", k: Any = 0, padding_value: Any = 0, align: Any = "RIGHT_LEFT"
) -> Tensor:
    """The k-th diagonal of each matrix."""
    padding_value = _of_bools(input, padding_value)
    return apply_op("MatrixDiagPartV3", name, input=input, k=k, padding_value=padding_value, align=align)


def matrix_set_diag(input: Any, diagonal: Any, name: str = "set_diag", k: Any = 0, align: Any = "RIGHT_LEFT") -> Tensor:
    """The matrices `input` with `diagonal` as their k-th diagonal."""
    return apply_op("MatrixSetDiagV3", name, input=input, diagonal=diagonal, k=k, align=align)


def eye(
    num_rows: Any,
    num_columns: Any = None,
    batch_shape: Any = None,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Ones on the diagonal, zeros elsewhere."""
    with name_scope(name, "eye", [num_rows, num_columns, batch_shape]):
        square = num_columns is None or (isinstance(num_rows, Tensor) and num_rows is num_columns)
        num_columns = num_rows if num_columns is None else num_columns
        batch: Any = [] if batch_shape is None else batch_shape
        size: Any
        if isinstance(num_rows, Tensor) or isinstance(num_columns, Tensor):
            size = math.minimum(num_rows, num_columns)
        else:
            square = num_rows == num_columns
            size = min(int(num_rows), int(num_columns))
        if isinstance(batch, Tensor) or isinstance(size, Tensor):
            batch = convert_to_tensor(batch, dtypes.int32, name="shape")
            diagonal_shape: Any = arrays.concat((batch, [size]), axis=0)
            shape: Any = None if square else arrays.concat((batch, [num_rows, num_columns]), axis=0)
        else:
            diagonal_shape = [*batch, size]
            shape = [*batch, num_rows, num_columns]
        diagonal = arrays.ones(diagonal_shape, dtype)
        if square:
            return matrix_diag(diagonal)
        return matrix_set_diag(arrays.zeros(shape, dtype), diagonal)


def trace(x: Any, name: str | None = None) -> Tensor:
    """The sum of the main diagonal of each matrix."""
    with name_scope(name, "Trace", [x]) as scope:
        return reduce.reduce_sum(matrix_diag_part(convert_to_tensor(x, name="x")), [-1], name=scope)


# ---- norms ----


def norm(
    tensor: Any,
    ord: Any = "euclidean",
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The norm of vectors (`axis` is None or an int) or matrices (`axis` is a pair)."""
    keepdims = bool(renamed("keepdims", keepdims, "keep_dims", keep_dims))
    of_matrix = isinstance(axis, tuple | list) and len(axis) == 2
    if not of_matrix and not (axis is None or isinstance(axis, int)):
        raise ValueError(f"'axis' must be None, an integer, or a tuple of 2 unique integers, got {axis}")
    supported = ["euclidean", "fro", 1, 2, np.inf] if of_matrix else ["euclidean", 1, 2, np.inf]
    if ord not in supported and (of_matrix or isinstance(ord, str) or ord <= 0):
        raise ValueError(f"'ord' must be a supported {'matrix' if of_matrix else 'vector'} norm, got {ord}")
    axes = tuple(axis) if of_matrix else None if axis is None else (axis,)
    with name_scope(name, "norm", [tensor]):
        x = convert_to_tensor(tensor)
        result = _spectral_norm(x, axes) if of_matrix and ord == 2 else _kept_norm(x, ord, axes, of_matrix)
        return result if keepdims else arrays.squeeze(result, None if axes is None else list(axes))


def _kept_norm(x: Tensor, ord: Any, axes: Any, of_matrix: bool) -> Tensor:
    """The norm, with its axes kept."""
    first = None if axes is None else axes[0]
    if ord in ("fro", "euclidean", 2):
        return math.sqrt(reduce.reduce_sum(x * math.conj(x), axes, keepdims=True))
    result = math.abs(x)
    if ord == 1:
        result = reduce.reduce_sum(result, first, keepdims=True)
        return reduce.reduce_max(result, axes[-1], keepdims=True) if of_matrix else result
    if ord == np.inf:
        result = reduce.reduce_sum(result, axes[1], keepdims=True) if of_matrix else result
        return reduce.reduce_max(result, first, keepdims=True)
    return math.pow(reduce.reduce_sum(math.pow(result, ord), axes, keepdims=True), 1.0 / ord)


def _spectral_norm(x: Tensor, axes: Any) -> Tensor:
    """The largest singular value of the matrices on `axes`, which are kept."""
    ndims = arrays.rank(x)
    last = map_fn(lambda i: cond(i >= 0, lambda: i, lambda: i + ndims), convert_to_tensor(axes))
    every = arrays.range(ndims)
    before = arrays.concat([indexing.setdiff1d(every, last, dtypes.int32)[0], last], axis=0)
    after = map_fn(lambda i: arrays.cast(_place(before, i), dtypes.int32), every)
    values = apply_op("Svd", input=arrays.transpose(x, perm=before), compute_uv=False)[0]
    largest = reduce.reduce_max(math.abs(values), axis=-1, keepdims=True)
    return arrays.transpose(arrays.expand_dims(largest, axis=-1), perm=after)


def _place(numbers: Tensor, number: Tensor) -> Tensor:
    """Where `number` stands among `numbers`."""
    return arrays.squeeze(indexing.where_v2(math.equal(numbers, number)))


def normalize(tensor: Any, ord: Any = "euclidean", axis: Any = None, name: str | None = None) -> tuple[Tensor, Tensor]:
    """(tensor divided by its norm, the norm)."""
    with name_scope(name, "normalize", [tensor]):
        tensor = convert_to_tensor(tensor)
        length = arrays.cast(norm(tensor, ord, axis, keepdims=True), tensor.dtype)
        return tensor / length, length


# ---- factorizations ----


def cholesky(input: Any, name: str | None = None) -> Tensor:
    """The lower triangle L of each positive definite matrix, L·Lᴴ = input; reads the input's lower triangle alone."""
    return apply_op("Cholesky", name, input=input)


def matrix_determinant(input: Any, name: str | None = None) -> Tensor:
    """The determinant of each matrix."""
    return apply_op("MatrixDeterminant", name, input=input)


def slogdet(input: Any, name: str | None = None) -> Any:
    """(sign, log of the magnitude) of each determinant."""
    return apply_op("LogMatrixDeterminant", name, input=input)


def logdet(matrix: Any, name: str | None = None) -> Tensor:
    """The logarithm of the determinant of each positive definite matrix."""
    with name_scope(name, "logdet", [matrix]):
        diagonal = matrix_diag_part(apply_op("Cholesky", input=matrix))
        return 2.0 * reduce.reduce_sum(math.log(math.real(diagonal)), axis=[-1])


def lu(input: Any, output_idx_type: Any = dtypes.int32, name: str | None = None) -> Any:
    """(L and U in one matrix, the order of rows) of each matrix: input[order] = L·U, L with ones on its diagonal."""
    return apply_op("Lu", name, input=input, output_idx_type=dtypes.as_dtype(output_idx_type))


def qr(input: Any, full_matrices: bool = False, name: str | None = None) -> Any:
    """(q, r) of each matrix in `input`."""
    return apply_op("Qr", name, input=input, full_matrices=full_matrices)


def matrix_inverse(input: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """The inverse of each matrix in `input`, or its adjoint; InvalidArgumentError for one that has none."""
    return apply_op("MatrixInverse", name, input=input, adjoint=adjoint)


def adjoint(matrix: Any, name: str | None = None) -> Tensor:
    """The conjugate transpose of each matrix."""
    with name_scope(name, "adjoint", [matrix]):
        matrix = convert_to_tensor(matrix, name="matrix")
        return arrays.matrix_transpose(matrix, conjugate=True)


# ---- systems of equations ----


def matrix_solve(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> Tensor:
    """The x with matrix·x = rhs; InvalidArgumentError for a singular matrix."""
    return apply_op("MatrixSolve", name, matrix=matrix, rhs=rhs, adjoint=adjoint)


def matrix_triangular_solve(
    matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """The x with matrix·x = rhs, for the lower or the upper triangle of `matrix`."""
    with name_scope(name, "triangular_solve", [matrix, rhs]):
        return apply_op("MatrixTriangularSolve", matrix=matrix, rhs=rhs, lower=lower, adjoint=adjoint)


def cholesky_solve(chol: Any, rhs: Any, name: str | None = None) -> Tensor:
    """The x with A·x = rhs, given the Cholesky decomposition of A."""
    with name_scope(name, "cholesky_solve", [chol, rhs]):
        y = apply_op("MatrixTriangularSolve", matrix=chol, rhs=rhs, adjoint=False, lower=True)
        return apply_op("MatrixTriangularSolve", matrix=chol, rhs=y, adjoint=True, lower=True)


_CACHE = 256_000  # bytes: larger batches of small matrices go to the op


def matrix_solve_ls(
    matrix: Any, rhs: Any, l2_regularizer: Any = 0.0, fast: bool = True, name: str | None = None
) -> Tensor:
    """The x for which matrix·x is nearest to rhs, by the normal equations if `fast`."""
    matrix = convert_to_tensor(matrix, name="matrix")
    if matrix.dtype == dtypes.complex128 and l2_regularizer != 0:
        text = "matrix_solve_ls is currently disabled for complex128 and l2_regularizer != 0 due to poor accuracy."
        raise NotImplementedError(text)
    if not fast or _many_small(matrix):
        return apply_op("MatrixSolveLs", name, matrix=matrix, rhs=rhs, l2_regularizer=l2_regularizer, fast=fast)
    with name_scope(name, "matrix_solve_ls", [matrix, rhs, l2_regularizer]):
        shape, given = matrix.shape[-2:], (matrix, rhs, l2_regularizer)
        if shape.is_fully_defined():
            return (_tall if shape[-2] >= shape[-1] else _wide)(*given)
        sizes = arrays.shape(matrix)[-2:]
        return cond(sizes[-2] >= sizes[-1], lambda: _tall(*given), lambda: _wide(*given))


def _many_small(matrix: Tensor) -> bool:
    shape = matrix.shape
    if not shape.is_fully_defined():
        return False
    large = (shape.num_elements() or 0) * matrix.dtype.size > _CACHE
    return large and (shape[:-2].num_elements() or 0) > min(shape[-2:].as_list())


def _tall(matrix: Tensor, rhs: Any, l2: Any) -> Tensor:
    return cholesky_solve(_gram_cholesky(matrix, l2, True), matmul(matrix, rhs, adjoint_a=True))


def _wide(matrix: Tensor, rhs: Any, l2: Any) -> Tensor:
    return matmul(matrix, cholesky_solve(_gram_cholesky(matrix, l2, False), rhs), adjoint_a=True)


def _gram_cholesky(matrix: Tensor, l2: Any, first_kind: bool) -> Tensor:
    gram = matmul(matrix, matrix, adjoint_a=first_kind, adjoint_b=not first_kind)
    if isinstance(l2, Tensor) or l2 != 0:
        shape = arrays.shape(matrix)
        batch, side = shape[:-2], -1 if first_kind else -2
        identity = eye(shape[side], batch_shape=batch, dtype=matrix.dtype)
        identity.set_shape(matrix.shape[:-2].concatenate([matrix.shape[side], matrix.shape[side]]))
        gram += l2 * identity
    return apply_op("Cholesky", input=gram)


# ---- eigenvalues and singular values ----


def self_adjoint_eig(tensor: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """(eigenvalues, rising; eigenvectors as columns) of Hermitian matrices, of which the lower triangle is read."""
    return tuple(apply_op("SelfAdjointEigV2", name, input=tensor, compute_v=True))


def self_adjoint_eigvals(tensor: Any, name: str | None = None) -> Tensor:
    """The eigenvalues of Hermitian matrices, rising."""
    return apply_op("SelfAdjointEigV2", name, input=tensor, compute_v=False)[0]


def eig(tensor: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """(eigenvalues, eigenvectors as columns) of square matrices, complex and in no order."""
    wide = tensor.dtype in (dtypes.float64, dtypes.complex128)
    kind = dtypes.complex128 if wide else dtypes.complex64
    return tuple(apply_op("Eig", name, input=tensor, compute_v=True, Tout=kind))


def svd(tensor: Any, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None) -> Any:
    """(s, u, v) with tensor = u · diag(s) · vᴴ, s falling; s alone without `compute_uv`."""
    s, u, v = apply_op("Svd", name, input=tensor, compute_uv=compute_uv, full_matrices=full_matrices)
    return (math.real(s), u, v) if compute_uv else math.real(s)


def matrix_square_root(input: Any, name: str | None = None) -> Tensor:
    """The matrix whose square is `input`."""
    return apply_op("MatrixSquareRoot", name, input=input)


def matrix_logarithm(input: Any, name: str | None = None) -> Tensor:
    """The matrix whose exponential is `input`, which is complex."""
    return apply_op("MatrixLogarithm", name, input=input)


def matrix_rank(a: Any, tol: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """How many singular values of each matrix are above `tol`, by default what rounding leaves of 0."""
    with name_scope(name or "matrix_rank"):
        a = _real_matrix(a)
        s = svd(a, compute_uv=False)
        if tol is None:
            sides = a.shape[-2:]
            largest = np.max(sides.as_list()) if sides.is_fully_defined() else reduce.reduce_max(arrays.shape(a)[-2:])
            eps = np.finfo(a.dtype.as_numpy_dtype).eps
            tol = eps * arrays.cast(largest, a.dtype) * reduce.reduce_max(s, axis=-1, keepdims=True)
        return reduce.reduce_sum(arrays.cast(s > tol, dtypes.int32), axis=-1)


def pinv(a: Any, rcond: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """Moore and Penrose's inverse; singular values below `rcond` times the largest count as 0."""
    with name_scope(name or "pinv"):
        a = _real_matrix(a)
        kind = a.dtype.as_numpy_dtype
        if rcond is None:
            sides: Any = [arrays.shape(a)[i] if (n := a.shape[i].value) is None else n for i in (-2, -1)]
            known = a.shape[-2:].is_fully_defined()
            largest = float(max(sides)) if known else arrays.cast(math.maximum(sides[0], sides[1]), a.dtype)
            rcond = 10.0 * largest * np.finfo(kind).eps
        rcond = convert_to_tensor(rcond, a.dtype, name="rcond")
        s, u, v = svd(a, full_matrices=False, compute_uv=True)
        cutoff = rcond * reduce.reduce_max(s, axis=-1)
        s = indexing.where_v2(s > arrays.expand_dims(cutoff, -1), s, np.array(np.inf, kind))
        found = matmul(v / arrays.expand_dims(s, -2), u, adjoint_b=True)
        if a.shape.ndims is not None:
            found.set_shape(a.shape[:-2].concatenate([a.shape[-1], a.shape[-2]]))
        return found


def _real_matrix(a: Any) -> Tensor:
    a = convert_to_tensor(a, name="a")
    if not a.dtype.is_floating:
        raise TypeError(f"Input `a` must have `float`-like `dtype` (saw {a.dtype.name}).")
    if a.shape.ndims is not None and a.shape.ndims < 2:
        raise ValueError(f"Input `a` must have at least 2 dimensions (saw: {a.shape.ndims}).")
    return a


# ---- second derivatives ----


def hessians(
    ys: Any,
    xs: Any,
    name: str = "hessians",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
) -> list[Tensor]:
    """For each of `xs` the second derivatives of the sum of `ys`: shape x.shape + x.shape.

    A loop differentiates the elements of the gradient one after the other. LookupError where an operation has no
    gradient.
    """
    del name  # TensorFlow ignores it
    xs = list(xs) if isinstance(xs, list | tuple) else [xs]
    ways: dict[str, Any] = {"gate_gradients": gate_gradients, "aggregation_method": aggregation_method}
    first = gradients(ys, xs, colocate_gradients_with_ops=colocate_gradients_with_ops, **ways)
    return [_hessian(gradient, x) for gradient, x in zip(first, xs, strict=True)]


def _hessian(gradient: Any, x: Any) -> Tensor:
    gradient = arrays.reshape(gradient, [-1])
    n = arrays.size(x)

    def body(j: Any, rows: TensorArray) -> Any:
        return j + 1, rows.write(j, gradients(gradient[j], x)[0])

    _, rows = while_loop(lambda j, _: j < n, body, [constant(0), TensorArray(x.dtype, n)])
    shape = arrays.shape(x)
    return arrays.reshape(rows.stack(), arrays.concat((shape, shape), 0))
