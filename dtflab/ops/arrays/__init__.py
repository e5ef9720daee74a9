"""Values and their forms: constants and placeholders, shapes, casts, joining, slicing, gathering, sorting.

Pages: `arranging`, `casting`, `constant`, `diagonal`, `gathering`, `identity`, `indexing`, `joining`, `mirror_pad`,
`random_crop`, `repeating`, `reshaping`, `slicing`, `sorting`, `space_batch`, `stacking`, `tensor_scatter`.
"""
