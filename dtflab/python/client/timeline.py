"""`from tensorflow.python.client import timeline`."""

from dtflab.files.timeline import AllocationMaximum, StepStatsAnalysis, Timeline
