"""Lists of tensors: TensorArrays, TensorFlow 2's lists, optional values.

Programs: `tensor_array` (the class TensorArray).
Its ops: `tensor_array_ops` (make, read, write), `tensor_array_row_ops` (stack, unstack, join, cut), `state` (the
elements during a step).
Ops of variants: `tensor_list_ops` (item by item), `tensor_list_row_ops` (as rows of a tensor), `optional_ops` (some
values or none).
"""
