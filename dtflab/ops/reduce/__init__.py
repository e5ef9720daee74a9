"""Many values to few: sums and extremes over axes and segments, counts, sets.

Pages: `functions` (what programs call), `histograms` (counts of values), `confusion_matrix` (labels against
predictions), `reduction` (over axes), `along_axis` (argmax, running sums), `counting` (bincount and histograms as ops),
`segments` (rows with one number), `segment_kernels` (their kernels), `sets` (set operations).
"""
