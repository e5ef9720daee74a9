"""Pooling: the largest or the mean of what a window sees.

Programs: `functions`.
Ops: `pooling` (over images and volumes), `fractional` (windows of two sizes in random order), with their `kernels`
(over arrays of any number of dimensions).
"""
