"""Arithmetic, element by element, with its special functions.

Pages: `bessel`, `binary`, `bitwise`, `clipping`, `division`, `elementwise`, `gamma_functions`, `logic`,
`normal_quantile`, `special`, `unary`, `zero_times`.
"""
