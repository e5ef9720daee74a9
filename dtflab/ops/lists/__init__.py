"""Lists of tensors: TensorArrays, TensorFlow 2's lists, optional values.

Pages: `functions`, `optional`, `state`, `tensor_array`, `tensor_array_rows`, `tensor_list`, `tensor_list_rows`,
`variants`.
"""
