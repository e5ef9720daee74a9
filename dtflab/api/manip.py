"""tf.manip: shapes and places, by the names that TF1 also has there."""

from dtflab.base.missing_names import missing_in as _missing_in
from dtflab.ops.arrays.functions import batch_to_space_nd, reshape, reverse, space_to_batch_nd, tile
from dtflab.ops.indexing.functions import gather_nd, roll, scatter_nd

__getattr__ = _missing_in("tf.manip", globals())
