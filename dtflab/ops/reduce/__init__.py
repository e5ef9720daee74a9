"""Many values to few: sums and extremes over axes and segments, counts, sets.

Pages: `along_axis`, `confusion_matrix`, `counting`, `functions`, `reduction`, `segment_reductions`, `segments`,
`sets`.
"""
