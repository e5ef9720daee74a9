"""tf.nest: structures of lists, tuples and dicts as the list of their leaves."""

from dtflab.base.missing_names import missing_in as _missing_in
from dtflab.base.nest import assert_same_structure, flatten, is_nested, map_structure, pack_sequence_as

__getattr__ = _missing_in("tf.nest", globals())
