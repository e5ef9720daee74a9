"""Many values to few: sums and extremes over axes and segments, counts, sets.

Programs: `functions`, `histograms` (counts of values), `confusion_matrix` (labels against predictions).
Ops: `reduction` (over axes), `along_axis` (argmax, running sums), `counting` (bincount and histograms), `segments`
(rows with one number), `sets` (set operations).
"""
