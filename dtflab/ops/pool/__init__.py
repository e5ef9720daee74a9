"""Pooling: the largest or the mean of what a window sees.

Pages: `functions` (all that programs call), `kernels` (over arrays of any number of dimensions).
Ops: `pooling` (over images and volumes), `fractional` (windows of two sizes in random order).
"""
