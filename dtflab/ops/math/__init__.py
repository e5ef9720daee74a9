"""Arithmetic, element by element, with its special functions.

Pages: `functions` (what programs call), `clipping` (values within bounds), `elementwise` (kernels, op tables), `unary`
(ops of one input), `binary` (sums, products, extremes), `division` (quotients, remainders, 0 over
NaN), `logic` (comparisons, bits, choices), `complex_numbers` (parts and angles), `special` (special functions as ops);
their numbers: `gamma_functions` (gamma, zeta, beta), `approximations` (Bessel, inverse normal).
"""
