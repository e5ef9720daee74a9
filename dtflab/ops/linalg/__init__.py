"""Matrices and transforms: products, einsum, systems, factorizations, Fourier; and second derivatives.

Programs: `functions`, `lu_solve` (after an LU decomposition), `matrix_exponential`, `spectral` (Fourier transforms).
Ops: `matmul` (products of matrices), `matrices` (diagonals, cross products), `einsum` with `equations` (its labels),
`factorizations` (Cholesky, LU, QR, inverses), `solving` (systems of equations), `eigen` (eigenvalues, singular values),
`matrix_functions` (square roots, logarithms), `fourier`.
"""
