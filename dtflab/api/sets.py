"""tf.sets: sets in the last dimension of dense or sparse tensors."""

from dtflab.base.missing_names import missing_in as _missing_in
from dtflab.ops.reduce.functions import set_difference, set_difference as difference, set_intersection
from dtflab.ops.reduce.functions import set_intersection as intersection, set_size, set_size as size, set_union
from dtflab.ops.reduce.functions import set_union as union

__getattr__ = _missing_in("tf.sets", globals())
