"""Choosing elements of arrays: by slices, numbers, positions, masks, order.

Pages: `functions` (what programs call), `getitem` (tensor[…]), `strides` (masks as NumPy's index), `slicing` (slices
of both kinds), `gathering` (gather, scatter, one-hot), `tensor_scatter` (copies with slices written), `unravel_index`
(numbers to positions), `arranging` (roll, reversed sequences), `searching` (bounds in sorted rows).
"""
