"""Pooling: the largest or the mean of what a window sees.

Programs: `functions` (tf.nn.max_pool, avg_pool and their kin).
Ops: `pooling` (over images and volumes), `kernels` (over arrays of any number of dimensions), `fractional` (windows of
two sizes in random order).
"""
