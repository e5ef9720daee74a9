"""Choosing elements of arrays: by slices, numbers, positions, masks, order.

Programs: `functions` (slice, gather, where, sort, …).
Ops: `getitem` (tensor[…]), `slicing` (slices of both kinds), `gathering` (gather, scatter), `tensor_scatter` (copies
with slices written), `partitioning` (stitch, partition, unique), `arranging` (roll, reversed sequences, bounds, one-hot
vectors).
"""
