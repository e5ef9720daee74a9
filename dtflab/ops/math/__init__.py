"""Arithmetic, element by element, with its special functions.

Programs: `functions` (add, exp, equal, …), `clipping` (values within bounds).
Ops: `elementwise` (kernels, op tables), `unary` (ops of one input), `binary` (sums, products, extremes), `division`
(quotients, remainders, 0 over NaN), `logic` (comparisons, bits, choices), `complex_numbers` (parts and angles),
`special` (special functions as ops).
Numbers of special functions: `gamma_functions` (gamma, zeta, beta), `approximations` (Bessel, inverse normal).
"""
