"""tf.bitwise: integers bit by bit."""

from dtflab.base.missing_names import missing_in as _missing_in
from dtflab.ops.math.functions import bitwise_and, bitwise_or, bitwise_xor, invert, left_shift, right_shift

__getattr__ = _missing_in("tf.bitwise", globals())
