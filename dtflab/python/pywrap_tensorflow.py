"""`from tensorflow.python import pywrap_tensorflow`, as far as programs import it: to read checkpoints."""

from dtflab.train.checkpoints.checkpoint_utils import NewCheckpointReader
