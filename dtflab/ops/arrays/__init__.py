"""Values and their forms: constants and placeholders, shapes, casts, joining, padding.

Programs: `functions` (constants, shapes, casts, stack, pad, …).
Ops: `constant` (constants, placeholders, ranges), `identity` (handing on, shapes, casts), `reshaping` (reshape,
transpose), `joining` (concat), `stacking` (stack, unstack, split), `repeating` (broadcast, tile, pad), `diagonal`
(diagonals, bands), `space_batch` (blocks of images).
"""
