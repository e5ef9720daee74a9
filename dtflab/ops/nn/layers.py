"""Layers and losses of `tf.nn` that are made of several ops, and L2Loss.

Stands for `python/ops/nn_ops.py` and `nn_impl.py`; softmax and the cross entropies are in `cross_entropy.py`, moments
in `moments.py`. Left out: convolutions, pooling, embeddings, which have files of their own.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from math import pi
from typing import Any

from dtflab.graph import dtypes, random_seed
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.op_registry import Op, elements, op
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import control_dependencies, name_scope
from dtflab.graph.tensor_shape import TensorShape, as_shape
from dtflab.ops import shapes
from dtflab.ops.arrays import casting, constant as constants, identity as array, joining
from dtflab.ops.control.cond import cond
from dtflab.ops.functional.custom_gradient import custom_gradient
from dtflab.ops.linalg import matmul
from dtflab.ops.math import binary as math, logic, unary
from dtflab.ops.messages import renamed
from dtflab.ops.nn import bias
from dtflab.ops.reduce import reduction
from dtflab.ops.sampling import draws as random


def xw_plus_b(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """x · weights + biases"""
    with name_scope(name, "xw_plus_b", [x, weights, biases]) as scope:
        x = convert_to_tensor(x, name="x")
        weights = convert_to_tensor(weights, name="weights")
        biases = convert_to_tensor(biases, name="biases")
        return bias.bias_add(matmul.matmul(x, weights), biases, name=scope)


def relu_layer(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """relu(x · weights + biases)"""
    with name_scope(name, "relu_layer", [x, weights, biases]) as scope:
        x = convert_to_tensor(x, name="x")
        weights = convert_to_tensor(weights, name="weights")
        biases = convert_to_tensor(biases, name="biases")
        sums = bias.bias_add(matmul.matmul(x, weights), biases)
        return apply_op("Relu", scope, features=sums)


def crelu(features: Any, name: str | None = None, axis: int = -1) -> Tensor:
    """relu of the features and of their negatives, one after the other."""
    with name_scope(name, "CRelu", [features]) as scope:
        features = convert_to_tensor(features, name="features")
        return apply_op("Relu", None, features=joining.concat([features, -features], axis, name=scope))


def swish(features: Any, beta: Any = 1.0) -> Tensor:
    """x · sigmoid(βx), also called silu. Backwards the sigmoid is computed anew, so that only x is kept in memory."""
    features = convert_to_tensor(features, name="features")
    beta = casting.cast(convert_to_tensor(beta, name="beta"), features.dtype)

    @custom_gradient
    def times_sigmoid(x: Tensor, beta: Tensor) -> Any:
        def grad(dy: Tensor) -> tuple[Tensor, Tensor]:
            with control_dependencies([dy]):
                sigmoid = unary.sigmoid(beta * x)
            slope = sigmoid * (1.0 + beta * x * (1.0 - sigmoid))
            dbeta = reduction.reduce_sum(dy * unary.square(x) * sigmoid * (1.0 - sigmoid))
            return dy * slope, dbeta

        return x * unary.sigmoid(beta * x), grad

    result: Tensor = times_sigmoid(features, beta)
    return result


def log_poisson_loss(targets: Any, log_input: Any, compute_full_loss: bool = False, name: str | None = None) -> Tensor:
    """exp(c) - z·c: how unlikely the counts z are, if they are Poisson's with means exp(c).

    The full loss adds what depends on z alone, log z! by Stirling's formula.
    """
    with name_scope(name, "log_poisson_loss", [log_input, targets]):
        log_input = convert_to_tensor(log_input, name="log_input")
        targets = convert_to_tensor(targets, name="targets")
        if not targets.shape.is_compatible_with(log_input.shape):
            raise ValueError(
                f"`log_input` and `targets` must have the same shape, received ({log_input.shape} vs {targets.shape})."
            )
        result: Tensor = unary.exp(log_input) - log_input * targets
        return result + _log_factorial(targets) if compute_full_loss else result


def _log_factorial(z: Tensor) -> Tensor:
    """Stirling's z log z - z + log(2πz) / 2; 0 for 0 and 1."""
    half, two_pi = constant(0.5, z.dtype), constant(2 * pi, z.dtype)
    stirling = z * unary.log(z) - z + half * unary.log(two_pi * z)
    zeros, ones = constants.zeros_like(z, dtype=z.dtype), constants.ones_like(z, dtype=z.dtype)
    return logic.where(logic.logical_and(z >= zeros, z <= ones), zeros, stirling)


def zero_fraction(value: Any, name: str | None = None) -> Tensor:
    """How large a part of the elements is 0; NaN of no elements. Counted in int32 while that is enough."""
    with name_scope(name, "zero_fraction", [value]):
        value = convert_to_tensor(value, name="value")
        size = array.size(value, out_type=dtypes.int64)
        nonzero = cond(
            size <= dtypes.int32.max,
            true_fn=lambda: casting.cast(_count_nonzero(value, dtypes.int32), dtypes.int64),
            false_fn=lambda: _count_nonzero(value, dtypes.int64),
        )
        with name_scope("counts_to_fraction"):
            zero = casting.cast(size - nonzero, dtypes.float32)
            fraction = zero / casting.cast(size, dtypes.float32)
        return array.identity(fraction, "fraction")


def _count_nonzero(value: Tensor, dtype: dtypes.DType) -> Tensor:
    with name_scope("count_nonzero", values=[value]):
        nonzero = logic.not_equal(value, constants.zeros([], value.dtype))
        return reduction.reduce_sum(casting.cast(nonzero, dtype), name="nonzero_count")


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
        raise ValueError(
            f"`keep_prob` must be a floating point number or Tensor. Received: keep_prob={keep_prob}"
        ) from None
    rate = renamed("rate", rate, "keep_prob", from_keep)
    if rate is None:
        raise ValueError(f"`rate` must be provided. Received: rate={rate}")
    with name_scope(name, "dropout", [x]):
        if isinstance(rate, numbers.Real) and not 0 <= rate < 1:  # type: ignore[operator]
            raise ValueError(f"`rate` must be a scalar tensor or a float in the range [0, 1). Received: rate={rate}")
        x = convert_to_tensor(x, name="x")
        if not x.dtype.is_floating:
            raise ValueError(
                f"`x.dtype` must be a floating point tensor as `x` will be scaled. Received: x_dtype={x.dtype}"
            )
        if isinstance(rate, numbers.Real) and rate == 0:
            random_seed.get_seed(seed)  # the op seeds after this one must not depend on the rate
            return x
        kept, rate = _scaled(x, rate)
        noise = random.random_uniform(_noise_shape(x, noise_shape), seed=seed, dtype=x.dtype)
        result = logic.where_v2(logic.greater_equal(noise, rate), kept, constant(0, x.dtype))
        result.set_shape(x.shape)
        return result


def _scaled(x: Tensor, rate: Any) -> tuple[Tensor, Any]:
    """x / (1 - rate), and the rate as it is to be compared with the noise."""
    if isinstance(rate, numbers.Real):
        scale = convert_to_tensor(1 / (1 - rate), x.dtype)  # type: ignore[operator]
        return apply_op("Mul", None, x=x, y=scale), rate
    if not isinstance(rate, Tensor):
        raise ValueError(f"`rate` must be a scalar or scalar tensor. Received: rate={rate}")
    rate.shape.assert_has_rank(0)
    if rate.dtype != x.dtype:
        raise ValueError(
            f"`x.dtype` must be compatible with `rate.dtype`. Received: x.dtype={x.dtype} and rate.dtype={rate.dtype}"
        )
    one = constant(1, x.dtype)
    return apply_op("RealDiv", None, x=x, y=apply_op("Sub", None, x=one, y=rate)), rate


def _noise_shape(x: Tensor, noise_shape: Any) -> Any:
    """The shape of the random decisions; a None in it is the size of x there."""
    if noise_shape is None:
        return array.shape(x)
    try:
        wanted = as_shape(noise_shape)
    except (TypeError, ValueError):
        return noise_shape
    if x.shape.ndims is None or wanted.ndims != x.shape.ndims:
        return noise_shape
    pairs = zip(wanted.as_list(), x.shape.as_list())
    return TensorShape([have if want is None else want for want, have in pairs])


def l2_normalize(x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None) -> Tensor:
    """x / sqrt(max(sum(x²), epsilon)), the sum along `axis` (`dim` is its old name)."""
    axis = renamed("axis", axis, "dim", dim)
    with name_scope(name, "l2_normalize", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        if x.dtype.is_complex:
            return _complex_l2_normalize(x, axis, epsilon, scope)
        total = reduction.reduce_sum(unary.square(x), axis, keepdims=True)
        inverse_norm = unary.rsqrt(math.maximum(total, epsilon))
        return math.multiply(x, inverse_norm, name=scope)


def _complex_l2_normalize(x: Tensor, axis: Any, epsilon: float, name: str) -> Tensor:
    squares = unary.square(casting.real(x)), unary.square(casting.imag(x))
    total = casting.real(reduction.reduce_sum(squares[0] + squares[1], axis, keepdims=True))
    inverse_norm = unary.rsqrt(math.maximum(total, epsilon))
    real, imag = (math.multiply(part(x), inverse_norm) for part in (casting.real, casting.imag))
    return casting.complex(real, imag, name=name)


@op("""L2Loss(t: T) -> (output: T)
       T: {half, bfloat16, float, double}""")
class L2Loss(Op):
    """sum(t²) / 2"""

    infer = shapes.scalar

    def bind(node: Any, xp: Any) -> Callable[[Any], Any]:
        dtype = node["T"].as_numpy_dtype

        def loss(t: Any) -> Any:
            wide = t.astype(xp.float32) if t.dtype.itemsize == 2 else t
            return (xp.square(wide).sum() / wide.dtype.type(2)).astype(dtype)

        return loss

    def grad(op: Any, dy: Any) -> list[Any]:
        return [op.inputs[0] * dy]

    def flops(node: Any, ins: Any, outs: Any) -> int:
        return 2 * elements(ins[0])


def l2_loss(t: Any, name: str | None = None) -> Tensor:
    """Half the sum of the squares."""
    return apply_op("L2Loss", name, t=t)
