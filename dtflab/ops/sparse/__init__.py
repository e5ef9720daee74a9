"""Sparse tensors: their functions and ops.

Pages: `arithmetic`, `functions`, `math_ops`, `messages`, `places`, `segments`, `sparse_tensor`, `tensors_map`.
"""
