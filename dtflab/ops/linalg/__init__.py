"""Matrices and transforms: products, einsum, systems, factorizations, Fourier; and second derivatives.

Pages: `cross`, `decomposition`, `eigen`, `einsum`, `equations`, `factorizations`, `fourier`, `hessians`,
`lu_solving`, `matmul`, `matrices`, `matrix_exponential`, `solving`, `sparse_matmul`, `tensordot`.
"""
