"""Many values to few: sums and extremes over axes and segments, counts, sets.

Programs: `functions` (reduce_sum, argmax, segment_sum, tf.sets, …), `histograms` (counts of values), `confusion_matrix`
(labels against predictions).
Ops: `reduction` (over axes), `along_axis` (argmax, running sums), `segments` (rows with one number), `counting`
(bincount and histograms), `sets` (set operations).
"""
