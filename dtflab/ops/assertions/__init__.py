"""Assertions: checks of values, shapes and dtypes, when the graph is built or in a step.

Programs: `functions` (tf.debugging, tf.Assert).
The ops, Assert and CheckNumerics, are in `summaries/debug_ops.py`.
"""
