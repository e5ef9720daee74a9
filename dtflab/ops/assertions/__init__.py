"""Assertions: checks of values, shapes and dtypes, when the graph is built or in a step.

Pages: `functions` (tf.debugging, tf.Assert), `check_ops` (Assert and CheckNumerics).
"""
