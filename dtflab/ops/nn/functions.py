"""The functions of `tf.nn` that put layers together, and those that stand for a single op.

Stands for `python/ops/nn_ops.py`, `nn_impl.py` and the quantization part of `array_ops.py`. The cross entropies are in
`cross_entropy.py`, moments in `moments.py`, embeddings in `embedding.py`; convolutions and pooling are families of
their own.
"""

from __future__ import annotations

import numbers
from math import pi
from typing import Any

import numpy as np

from dtflab.graph import dtypes, random_seed
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import control_dependencies, name_scope
from dtflab.graph.tensor_shape import TensorShape, as_shape
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.control.cond import cond
from dtflab.ops.functional.functions import custom_gradient
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.linalg import functions as linalg
from dtflab.ops.math import functions as math
from dtflab.ops.messages import renamed
from dtflab.ops.reduce import functions as reduce
from dtflab.ops.sampling import functions as sampling

# ---- activations ----


def relu(features: Any, name: str | None = None) -> Tensor:
    """max(x, 0)"""
    return apply_op("Relu", name, features=features)


def relu6(features: Any, name: str | None = None) -> Tensor:
    """min(max(x, 0), 6)"""
    with name_scope(name, "Relu6", [features]) as scope:
        return apply_op("Relu6", scope, features=convert_to_tensor(features, name="features"))


def crelu(features: Any, name: str | None = None, axis: int = -1) -> Tensor:
    """relu of the features and of their negatives, one after the other."""
    with name_scope(name, "CRelu", [features]) as scope:
        features = convert_to_tensor(features, name="features")
        return apply_op("Relu", features=arrays.concat([features, -features], axis, name=scope))


def elu(features: Any, name: str | None = None) -> Tensor:
    """exp(x) - 1 below zero, x above."""
    return apply_op("Elu", name, features=features)


def selu(features: Any, name: str | None = None) -> Tensor:
    """The scaled exponential linear unit: keeps mean 0 and variance 1 through layers."""
    return apply_op("Selu", name, features=features)


def leaky_relu(features: Any, alpha: Any = 0.2, name: str | None = None) -> Tensor:
    """x above zero, alpha·x below."""
    with name_scope(name, "LeakyRelu", [features, alpha]) as scope:
        features = convert_to_tensor(features, name="features")
        if features.dtype.is_integer:
            features = arrays.cast(features, dtypes.float32)
        alpha = alpha.item() if isinstance(alpha, np.ndarray) else alpha
        return apply_op("LeakyRelu", scope, features=features, alpha=alpha)


def swish(features: Any, beta: Any = 1.0) -> Tensor:
    """x · sigmoid(βx), also called silu. The gradient computes the sigmoid again, so that only x stays in memory."""
    features = convert_to_tensor(features, name="features")
    beta = arrays.cast(convert_to_tensor(beta, name="beta"), features.dtype)

    @custom_gradient
    def times_sigmoid(x: Tensor, beta: Tensor) -> Any:
        def grad(dy: Tensor) -> tuple[Tensor, Tensor]:
            with control_dependencies([dy]):
                sigmoid = math.sigmoid(beta * x)
            slope = sigmoid * (1.0 + beta * x * (1.0 - sigmoid))
            dbeta = reduce.reduce_sum(dy * math.square(x) * sigmoid * (1.0 - sigmoid))
            return dy * slope, dbeta

        return x * math.sigmoid(beta * x), grad

    return times_sigmoid(features, beta)


def softplus(features: Any, name: str | None = None) -> Tensor:
    """log(exp(x) + 1)"""
    return apply_op("Softplus", name, features=features)


def softsign(features: Any, name: str | None = None) -> Tensor:
    """x / (|x| + 1)"""
    return apply_op("Softsign", name, features=features)


def log_sigmoid(x: Any, name: str | None = None) -> Tensor:
    """log(1 / (1 + exp(-x))), without overflow."""
    with name_scope(name, "LogSigmoid", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        return apply_op("Neg", scope, x=apply_op("Softplus", features=-x))


# ---- layers ----


def xw_plus_b(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """x · weights + biases"""
    with name_scope(name, "xw_plus_b", [x, weights, biases]) as scope:
        return _sums(x, weights, biases, scope)


def relu_layer(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """relu(x · weights + biases)"""
    with name_scope(name, "relu_layer", [x, weights, biases]) as scope:
        return apply_op("Relu", scope, features=_sums(x, weights, biases))


def _sums(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    x, weights = convert_to_tensor(x, name="x"), convert_to_tensor(weights, name="weights")
    biases = convert_to_tensor(biases, name="biases")
    return bias_add(linalg.matmul(x, weights), biases, name=name)


def bias_add(value: Any, bias: Any, data_format: str | None = None, name: str | None = None) -> Tensor:
    """`value` with `bias` added to its channels: the last dimension, the second if `data_format` is `NC…`."""
    with name_scope(name, "BiasAdd", [value, bias]) as scope:
        if data_format is not None:
            first = data_format.startswith("NC")
            if not first and not (data_format.startswith("N") and data_format.endswith("C")):
                text = f"Received: data_format={data_format}"
                raise ValueError(f"`data_format` must be of the form `N...C` or `NC...`. {text}")
            data_format = "NCHW" if first else "NHWC"
        value = convert_to_tensor(value, name="input")
        bias = convert_to_tensor(bias, value.dtype, name="bias")
        return apply_op("BiasAdd", scope, value=value, bias=bias, data_format=data_format)


def dropout(
    x: Any,
    keep_prob: Any = None,
    noise_shape: Any = None,
    seed: int | None = None,
    name: str | None = None,
    rate: Any = None,
) -> Tensor:
    """Each element is zero with probability `rate` = 1 - `keep_prob`, else divided by `keep_prob`."""
    try:
        from_keep = None if keep_prob is None else 1.0 - keep_prob
    except TypeError:
        text = f"Received: keep_prob={keep_prob}"
        raise ValueError(f"`keep_prob` must be a floating point number or Tensor. {text}") from None
    rate = renamed("rate", rate, "keep_prob", from_keep)
    if rate is None:
        raise ValueError(f"`rate` must be provided. Received: rate={rate}")
    with name_scope(name, "dropout", [x]):
        if isinstance(rate, numbers.Real) and not 0 <= rate < 1:  # type: ignore[operator]
            raise ValueError(f"`rate` must be a scalar tensor or a float in the range [0, 1). Received: rate={rate}")
        x = convert_to_tensor(x, name="x")
        if not x.dtype.is_floating:
            text = f"Received: x_dtype={x.dtype}"
            raise ValueError(f"`x.dtype` must be a floating point tensor as `x` will be scaled. {text}")
        if isinstance(rate, numbers.Real) and rate == 0:
            random_seed.get_seed(seed)  # the op seeds after this one must not depend on the rate
            return x
        kept, rate = _scaled(x, rate)
        noise = sampling.random_uniform(_noise_shape(x, noise_shape), seed=seed, dtype=x.dtype)
        result = indexing.where_v2(math.greater_equal(noise, rate), kept, constant(0, x.dtype))
        result.set_shape(x.shape)
        return result


def _scaled(x: Tensor, rate: Any) -> tuple[Tensor, Any]:
    """x / (1 - rate), and the rate as it is to be compared with the noise."""
    if isinstance(rate, numbers.Real):
        scale = convert_to_tensor(1 / (1 - rate), x.dtype)  # type: ignore[operator]
        return apply_op("Mul", x=x, y=scale), rate
    if not isinstance(rate, Tensor):
        raise ValueError(f"`rate` must be a scalar or scalar tensor. Received: rate={rate}")
    rate.shape.assert_has_rank(0)
    if rate.dtype != x.dtype:
        text = f"Received: x.dtype={x.dtype} and rate.dtype={rate.dtype}"
        raise ValueError(f"`x.dtype` must be compatible with `rate.dtype`. {text}")
    return apply_op("RealDiv", x=x, y=apply_op("Sub", x=constant(1, x.dtype), y=rate)), rate


def _noise_shape(x: Tensor, noise_shape: Any) -> Any:
    """The shape of the random decisions; a None in it is the size of x there."""
    if noise_shape is None:
        return arrays.shape(x)
    try:
        wanted = as_shape(noise_shape)
    except (TypeError, ValueError):
        return noise_shape
    if x.shape.ndims is None or wanted.ndims != x.shape.ndims:
        return noise_shape
    return TensorShape([have if want is None else want for want, have in zip(wanted.as_list(), x.shape.as_list())])


def zero_fraction(value: Any, name: str | None = None) -> Tensor:
    """How large a part of the elements is 0; NaN of no elements. Counted in int32 while that is enough."""
    with name_scope(name, "zero_fraction", [value]):
        value = convert_to_tensor(value, name="value")
        size = arrays.size(value, out_type=dtypes.int64)
        nonzero = cond(
            size <= dtypes.int32.max,
            true_fn=lambda: arrays.cast(_count_nonzero(value, dtypes.int32), dtypes.int64),
            false_fn=lambda: _count_nonzero(value, dtypes.int64),
        )
        with name_scope("counts_to_fraction"):
            zero = arrays.cast(size - nonzero, dtypes.float32)
            fraction = zero / arrays.cast(size, dtypes.float32)
        return arrays.identity(fraction, "fraction")


def _count_nonzero(value: Tensor, dtype: dtypes.DType) -> Tensor:
    with name_scope("count_nonzero", values=[value]):
        nonzero = math.not_equal(value, arrays.zeros([], value.dtype))
        return reduce.reduce_sum(arrays.cast(nonzero, dtype), name="nonzero_count")


# ---- normalization and losses ----


def l2_normalize(x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None) -> Tensor:
    """x / sqrt(max(sum(x²), epsilon)), the sum along `axis` (`dim` is its old name)."""
    axis = renamed("axis", axis, "dim", dim)
    with name_scope(name, "l2_normalize", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        if x.dtype.is_complex:
            return _complex_l2_normalize(x, axis, epsilon, scope)
        total = reduce.reduce_sum(math.square(x), axis, keepdims=True)
        inverse_norm = math.rsqrt(math.maximum(total, epsilon))
        return math.multiply(x, inverse_norm, name=scope)


def _complex_l2_normalize(x: Tensor, axis: Any, epsilon: float, name: str) -> Tensor:
    squares = math.square(math.real(x)), math.square(math.imag(x))
    total = math.real(reduce.reduce_sum(squares[0] + squares[1], axis, keepdims=True))
    inverse_norm = math.rsqrt(math.maximum(total, epsilon))
    real, imag = (math.multiply(part(x), inverse_norm) for part in (math.real, math.imag))
    return math.complex(real, imag, name=name)


def fused_batch_norm(
    x: Any,
    scale: Any,
    offset: Any,
    mean: Any = None,
    variance: Any = None,
    epsilon: float = 0.001,
    data_format: str = "NHWC",
    is_training: bool = True,
    name: str | None = None,
    exponential_avg_factor: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """`x` normalized per channel, then times `scale` plus `offset`; and the running mean and variance.

    While training these follow from the batch (moved by `exponential_avg_factor` from `mean` and `variance`), else they
    are `mean` and `variance`. ValueError if these are needed and missing.
    """
    if (not is_training or exponential_avg_factor != 1.0) and (mean is None or variance is None):
        raise ValueError(
            "Both `mean` and `variance` must be a 1D tensor when `is_training` is False or `exponential_avg_factor` "
            f"!= 1.0. Received: `mean` {mean!r} and `variance` {variance!r}"
        )
    x = convert_to_tensor(x, name="input")
    scale, offset = convert_to_tensor(scale, name="scale"), convert_to_tensor(offset, name="offset")
    mean, variance = (constant([]) if v is None else v for v in (mean, variance))
    tensors = {"x": x, "scale": scale, "offset": offset, "mean": mean, "variance": variance}
    attrs = {"epsilon": epsilon, "data_format": data_format, "exponential_avg_factor": exponential_avg_factor}
    return apply_op("FusedBatchNormV3", name, **tensors, **attrs, is_training=is_training)[:3]


def local_response_normalization(
    input: Any, depth_radius: int = 5, bias: float = 1, alpha: float = 1, beta: float = 0.5, name: str | None = None
) -> Tensor:
    """input / (bias + alpha · Σ input²) ** beta, the sum over `depth_radius` channels to both sides.

    `input` is [batch, height, width, channels].
    """
    attrs = {"depth_radius": depth_radius, "bias": bias, "alpha": alpha, "beta": beta}
    return apply_op("LRN", name, input=input, **attrs)


def l2_loss(t: Any, name: str | None = None) -> Tensor:
    """Half the sum of the squares."""
    return apply_op("L2Loss", name, t=t)


def log_poisson_loss(targets: Any, log_input: Any, compute_full_loss: bool = False, name: str | None = None) -> Tensor:
    """exp(c) - z·c: how unlikely the counts z are, if they are Poisson's with means exp(c).

    The full loss adds what depends on z alone, log z! by Stirling's formula.
    """
    with name_scope(name, "log_poisson_loss", [log_input, targets]):
        log_input, targets = convert_to_tensor(log_input, name="log_input"), convert_to_tensor(targets, name="targets")
        if not targets.shape.is_compatible_with(log_input.shape):
            text = f"({log_input.shape} vs {targets.shape})"
            raise ValueError(f"`log_input` and `targets` must have the same shape, received {text}.")
        result: Tensor = math.exp(log_input) - log_input * targets
        return result + _log_factorial(targets) if compute_full_loss else result


def _log_factorial(z: Tensor) -> Tensor:
    """Stirling's z log z - z + log(2πz) / 2; 0 for 0 and 1."""
    half, two_pi = constant(0.5, z.dtype), constant(2 * pi, z.dtype)
    stirling = z * math.log(z) - z + half * math.log(two_pi * z)
    zeros, ones = arrays.zeros_like(z, dtype=z.dtype), arrays.ones_like(z, dtype=z.dtype)
    return indexing.where(math.logical_and(z >= zeros, z <= ones), zeros, stirling)


# ---- ranking ----


def in_top_k(predictions: Any, targets: Any, k: Any, name: str | None = None) -> Tensor:
    """For each example whether its target class is among the k with the largest predictions."""
    with name_scope(name, "in_top_k"):
        return apply_op("InTopKV2", name, predictions=predictions, targets=targets, k=k)


def top_k(input: Any, k: Any = 1, sorted: bool = True, index_type: Any = dtypes.int32, name: str | None = None) -> Any:
    """The k largest values along the last dimension, and where they are."""
    return apply_op("TopKV2", name, input=input, k=k, sorted=sorted, index_type=index_type)


# ---- quantization ----


def slice_axis(input: Any, axis: int | None) -> int:
    """`axis` as the quantizing ops want it: -1 for a single range, else not negative."""
    if axis is None or axis >= 0:
        return -1 if axis is None else axis
    if input.shape.ndims is None:
        raise ValueError("input should have known rank to use negative axis.")
    return axis % int(input.shape.ndims)


def quantize_v2(
    input: Any,
    min_range: Any,
    max_range: Any,
    T: Any,
    mode: str = "MIN_COMBINED",
    name: str | None = None,
    round_mode: str = "HALF_AWAY_FROM_ZERO",
    narrow_range: bool = False,
    axis: int | None = None,
    ensure_minimum_range: float = 0.01,
) -> Any:
    """(the integers of dtype `T` for `input`, both ends of the range that they cover).

    With an `axis`, each place on that axis has a range of its own. Floats outside the range become its ends.
    """
    attrs = {"mode": mode, "round_mode": round_mode, "narrow_range": narrow_range, "axis": slice_axis(input, axis)}
    attrs |= {"T": dtypes.as_dtype(T), "ensure_minimum_range": ensure_minimum_range}
    return apply_op("QuantizeV2", name, input=input, min_range=min_range, max_range=max_range, **attrs)


def quantize(
    input: Any,
    min_range: Any,
    max_range: Any,
    T: Any,
    mode: str = "MIN_COMBINED",
    round_mode: str = "HALF_AWAY_FROM_ZERO",
    name: str | None = None,
    narrow_range: bool = False,
    axis: int | None = None,
    ensure_minimum_range: float = 0.01,
) -> Any:
    """`quantize_v2` with its arguments in another order."""
    return quantize_v2(input, min_range, max_range, T, mode, name, round_mode, narrow_range, axis, ensure_minimum_range)


def dequantize(
    input: Any,
    min_range: Any,
    max_range: Any,
    mode: str = "MIN_COMBINED",
    name: str | None = None,
    axis: int | None = None,
    narrow_range: bool = False,
    dtype: Any = dtypes.float32,
) -> Tensor:
    """The floats that the quantized `input` stands for, given the range that `quantize` returned."""
    attrs = {"mode": mode, "narrow_range": narrow_range, "axis": slice_axis(input, axis)}
    dtype = dtypes.as_dtype(dtype)
    return apply_op("Dequantize", name, input=input, min_range=min_range, max_range=max_range, dtype=dtype, **attrs)


def quantize_and_dequantize(
    input: Any,
    input_min: Any,
    input_max: Any,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN",
    name: str | None = None,
    narrow_range: bool = False,
    axis: int | None = None,
) -> Tensor:
    """`input` rounded to what `num_bits` hold; the gradient passes everywhere. The range is the input's, or given."""
    attrs = {"signed_input": signed_input, "num_bits": num_bits, "range_given": range_given, "round_mode": round_mode}
    return _there_and_back("V2", input, input_min, input_max, name, narrow_range, axis, attrs)


def quantize_and_dequantize_v2(
    input: Any,
    input_min: Any,
    input_max: Any,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN",
    name: str | None = None,
    narrow_range: bool = False,
    axis: int | None = None,
) -> Tensor:
    """`quantize_and_dequantize` whose gradient passes only inside the range."""
    attrs = {"signed_input": signed_input, "num_bits": num_bits, "range_given": range_given, "round_mode": round_mode}
    return _there_and_back("V4", input, input_min, input_max, name, narrow_range, axis, attrs)


def _there_and_back(
    version: str,
    input: Any,
    low: Any,
    high: Any,
    name: str | None,
    narrow: bool,
    axis: int | None,
    attrs: dict[str, Any],
) -> Tensor:
    attrs |= {"input_min": low, "input_max": high, "narrow_range": narrow, "axis": slice_axis(input, axis)}
    return apply_op(f"QuantizeAndDequantize{version}", name, input=input, **attrs)


# ---- fake quantization: the gradient passes inside the range ----


def _range(min: Any, max: Any, num_bits: int, narrow_range: bool) -> dict[str, Any]:
    return {"min": min, "max": max, "num_bits": num_bits, "narrow_range": narrow_range}


def fake_quant_with_min_max_args(
    inputs: Any, min: float = -6, max: float = 6, num_bits: int = 8, narrow_range: bool = False, name: str | None = None
) -> Tensor:
    """`inputs` rounded to the 2**`num_bits` steps between `min` and `max`; the ends move so that 0 is a step."""
    return apply_op("FakeQuantWithMinMaxArgs", name, inputs=inputs, **_range(min, max, num_bits, narrow_range))


def fake_quant_with_min_max_args_gradient(
    gradients: Any,
    inputs: Any,
    min: float = -6,
    max: float = 6,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """`gradients` where `inputs` are between `min` and `max`, else 0."""
    ends = _range(min, max, num_bits, narrow_range)
    return apply_op("FakeQuantWithMinMaxArgsGradient", name, gradients=gradients, inputs=inputs, **ends)


def fake_quant_with_min_max_vars(
    inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False, name: str | None = None
) -> Tensor:
    """`fake_quant_with_min_max_args` with tensors for the ends, which get gradients."""
    return apply_op("FakeQuantWithMinMaxVars", name, inputs=inputs, **_range(min, max, num_bits, narrow_range))


def fake_quant_with_min_max_vars_gradient(
    gradients: Any,
    inputs: Any,
    min: Any,
    max: Any,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Any:
    """(for the inputs, for min, for max): the gradients of `fake_quant_with_min_max_vars`."""
    ends = _range(min, max, num_bits, narrow_range)
    return apply_op("FakeQuantWithMinMaxVarsGradient", name, gradients=gradients, inputs=inputs, **ends)


def fake_quant_with_min_max_vars_per_channel(
    inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False, name: str | None = None
) -> Tensor:
    """`fake_quant_with_min_max_vars` with a range for each place on the last axis."""
    ends = _range(min, max, num_bits, narrow_range)
    return apply_op("FakeQuantWithMinMaxVarsPerChannel", name, inputs=inputs, **ends)


def fake_quant_with_min_max_vars_per_channel_gradient(
    gradients: Any,
    inputs: Any,
    min: Any,
    max: Any,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Any:
    """The gradients of `fake_quant_with_min_max_vars_per_channel`."""
    ends = _range(min, max, num_bits, narrow_range)
    return apply_op("FakeQuantWithMinMaxVarsPerChannelGradient", name, gradients=gradients, inputs=inputs, **ends)
