"""tf.debugging: checks in a graph."""

from dtflab.base.missing_names import missing_in as _missing_in
from dtflab.ops.assertions.functions import Assert, assert_equal, assert_greater, assert_greater_equal, assert_integer
from dtflab.ops.assertions.functions import assert_less, assert_less_equal, assert_near, assert_negative
from dtflab.ops.assertions.functions import assert_non_negative, assert_non_positive, assert_none_equal, assert_positive
from dtflab.ops.assertions.functions import assert_proper_iterable, assert_rank, assert_rank_at_least, assert_rank_in
from dtflab.ops.assertions.functions import assert_same_float_dtype, assert_scalar, assert_shapes, assert_type
from dtflab.ops.assertions.functions import check_numerics, is_non_decreasing, is_numeric_tensor, is_strictly_increasing
from dtflab.ops.assertions.functions import verify_tensor_all_finite as assert_all_finite
from dtflab.ops.math.functions import is_finite, is_inf, is_nan

__getattr__ = _missing_in("tf.debugging", globals())
