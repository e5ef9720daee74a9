"""tf.nest: structures of lists, tuples and dicts as the list of their leaves."""

from dtflab.base.missing_names import missing as _missing
from dtflab.base.nest import assert_same_structure, flatten, is_nested, map_structure, pack_sequence_as


def __getattr__(name: str) -> None:
    raise _missing("tf.nest", name, globals())
