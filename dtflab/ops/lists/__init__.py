"""Lists of tensors: TensorArrays, TensorFlow 2's lists, optional values.

TensorArrays: `tensor_array` (the class that programs use), `tensor_array_ops` (make, read, write),
`tensor_array_rows` (stack, unstack, join, cut), `state` (the elements during a step).
Values of dtype variant: `variants` (their classes), `tensor_list` (item by item), `tensor_list_rows` (as rows of a
tensor), `optional` (some values or none).
"""
