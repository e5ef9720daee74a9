"""tf.math: the names that TF1 also has there."""

from __future__ import annotations

from typing import Any

from dtflab.base.missing_names import missing as _missing
from dtflab.ops.arrays.casting import angle, conj, imag, real
from dtflab.ops.arrays.reshaping import invert_permutation
from dtflab.ops.control.assertions import is_non_decreasing, is_strictly_increasing
from dtflab.ops.math.binary import (
    accumulate_n,
    add,
    add_n,
    atan2,
    maximum,
    minimum,
    multiply,
    polyval,
    pow,
    scalar_mul,
    squared_difference,
    subtract,
)
from dtflab.ops.math.division import (
    div_no_nan as divide_no_nan,
    divide,
    floordiv,
    floormod,
    floormod as mod,
    reciprocal_no_nan,
    truediv,
)
from dtflab.ops.math.logic import (
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_or,
    logical_xor,
    not_equal,
)
from dtflab.ops.math.special import (
    bessel_i0,
    bessel_i0e,
    bessel_i1,
    bessel_i1e,
    betainc,
    digamma,
    erfcinv,
    erfinv,
    igamma,
    igammac,
    lbeta,
    lgamma,
    ndtri,
    nextafter,
    polygamma,
    zeta,
)
from dtflab.ops.math.unary import (
    abs,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    ceil,
    cos,
    cosh,
    erf,
    erfc,
    exp,
    expm1,
    floor,
    is_finite,
    is_inf,
    is_nan,
    log,
    log1p,
    logical_not,
    negative,
    reciprocal,
    rint,
    round,
    rsqrt,
    sigmoid,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    tan,
    tanh,
)
from dtflab.ops.math.zero_times import multiply_no_nan, xdivy, xlog1py, xlogy
from dtflab.ops.nn.cross_entropy import log_softmax, softmax
from dtflab.ops.nn.functions import in_top_k, l2_normalize, log_sigmoid, softplus, softsign, top_k, zero_fraction
from dtflab.ops.reduce.along_axis import argmax, argmin, cumprod, cumsum
from dtflab.ops.reduce.confusion_matrix import confusion_matrix
from dtflab.ops.reduce.counting import bincount, cumulative_logsumexp
from dtflab.ops.reduce.functions import count_nonzero, reduce_logsumexp, reduce_std, reduce_variance
from dtflab.ops.reduce.reduction import (
    reduce_all,
    reduce_any,
    reduce_euclidean_norm,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_sum,
)
from dtflab.ops.reduce.segment_reductions import (
    segment_max,
    segment_mean,
    segment_min,
    segment_prod,
    unsorted_segment_max,
    unsorted_segment_mean,
    unsorted_segment_min,
    unsorted_segment_prod,
    unsorted_segment_sqrt_n,
)
from dtflab.ops.reduce.segments import segment_sum, unsorted_segment_sum


def __getattr__(name: str) -> Any:
    raise _missing("tf.math", name, globals())
