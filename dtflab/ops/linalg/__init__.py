"""Matrices and transforms: products, einsum, systems, factorizations, Fourier; and second derivatives.

Programs: `functions` (tf.linalg, matmul, einsum, hessians), `lu_solve` (after an LU decomposition),
`matrix_exponential` (as a graph), `spectral` (Fourier transforms).
Ops: `matmul` (products of matrices), `matrices` (diagonals, cross products), `einsum` (sums over labelled axes),
`equations` (its labels), `factorizations` (Cholesky, LU, QR, inverses), `solving` (systems of equations), `eigen`
(eigenvalues, singular values), `matrix_functions` (square roots, logarithms), `fourier` (over one, two and three axes).
"""
