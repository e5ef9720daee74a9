"""tf.math: the names that TF1 also has there."""

from dtflab.base.missing_names import missing_in as _missing_in
from dtflab.ops.arrays.functions import invert_permutation
from dtflab.ops.assertions.functions import is_non_decreasing, is_strictly_increasing
from dtflab.ops.math.functions import abs, accumulate_n, acos, acosh, add, add_n, angle, asin, asinh, atan, atan2, atanh
from dtflab.ops.math.functions import bessel_i0, bessel_i0e, bessel_i1, bessel_i1e, betainc, ceil, conj, cos, cosh
from dtflab.ops.math.functions import digamma, div_no_nan as divide_no_nan, divide, equal, erf, erfc, erfcinv, erfinv
from dtflab.ops.math.functions import exp, expm1, floor, floordiv, floormod, floormod as mod, greater, greater_equal
from dtflab.ops.math.functions import igamma, igammac, imag, is_finite, is_inf, is_nan, lbeta, less, less_equal, lgamma
from dtflab.ops.math.functions import log, log1p, logical_and, logical_not, logical_or, logical_xor, maximum, minimum
from dtflab.ops.math.functions import multiply, multiply_no_nan, ndtri, negative, nextafter, not_equal, polygamma
from dtflab.ops.math.functions import polyval, pow, real, reciprocal, reciprocal_no_nan, rint, round, rsqrt, scalar_mul
from dtflab.ops.math.functions import sigmoid, sign, sin, sinh, sqrt, square, squared_difference, subtract, tan, tanh
from dtflab.ops.math.functions import truediv, xdivy, xlog1py, xlogy, zeta
from dtflab.ops.nn.cross_entropy import log_softmax, softmax
from dtflab.ops.nn.functions import in_top_k, l2_normalize, log_sigmoid, softplus, softsign, top_k, zero_fraction
from dtflab.ops.reduce.confusion_matrix import confusion_matrix
from dtflab.ops.reduce.functions import argmax, argmin, count_nonzero, cumprod, cumsum, cumulative_logsumexp, reduce_all
from dtflab.ops.reduce.functions import reduce_any, reduce_euclidean_norm, reduce_logsumexp, reduce_max, reduce_mean
from dtflab.ops.reduce.functions import reduce_min, reduce_prod, reduce_std, reduce_sum, reduce_variance, segment_max
from dtflab.ops.reduce.functions import segment_mean, segment_min, segment_prod, segment_sum, unsorted_segment_max
from dtflab.ops.reduce.functions import unsorted_segment_mean, unsorted_segment_min, unsorted_segment_prod
from dtflab.ops.reduce.functions import unsorted_segment_sqrt_n, unsorted_segment_sum
from dtflab.ops.reduce.histograms import bincount

__getattr__ = _missing_in("tf.math", globals())
