"""Sparse tensors: their class, their functions, their ops.

Programs: `sparse_tensor` (the class SparseTensor), `functions` (tf.sparse).
Ops: `layout_ops` (dense, sorted, reshaped), `part_ops` (slice, split, concat), `arithmetic_ops` (sums and products),
`reduction_ops` (over some axes), `segment_ops` (rows looked up and summed), `transport_ops` (as strings, or by number
through queues).
"""
