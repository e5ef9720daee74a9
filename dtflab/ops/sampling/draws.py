"""Ops that draw from a stream: uniform and normal numbers, shuffled rows, choices, gamma and Poisson numbers.

Stands for `core/ops/random_ops.cc`, `core/kernels/random_op.cc` and `random_grad.py`; numbers that take any number of
draws are made in `rejection.py`. Left out: ParameterizedTruncatedNormal.

Rule: an op has one stream per registered kernel, that is per session and node, kept by `ctx.state`. Equal seeds give
TensorFlow's numbers. A GPU's choices are those of a CPU, which in TensorFlow they are not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import control_dependencies
from dtflab.graph.static_value import folded_shape, folded_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.costs import per_output
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.philox import PER_NUMBER, PhiloxStream, stream_of
from dtflab.ops.reduce import functions as reduce
from dtflab.ops.sampling import rejection


def sizes(shape: Any) -> tuple[int, ...]:
    if shape.ndim != 1:
        raise invalid(f"shape must be a vector of {{int32,int64}}, got shape {list(shape.shape)}")
    if (shape < 0).any():
        raise invalid(f"Dimension {shape.min()} must be >= 0")
    return tuple(shape.tolist())


class _RandomNumbers(Op):
    stateful = needs_ctx = True
    grad = no_gradient
    infer = shapes.given(0)
    flops = per_output(PER_NUMBER)
    draw: Any = None  # the method of PhiloxStream

    @classmethod
    def bind(cls, node: Node, xp: Any) -> Callable[[Any, Any], Any]:
        draw, stream, dtype = cls.draw, stream_of(node), node["dtype"].as_numpy_dtype
        return lambda ctx, shape: xp.asarray(draw(stream(ctx), sizes(shape), dtype))


_NUMBERS = """(shape: T) -> (output: dtype)
       seed: int = 0, seed2: int = 0, dtype: {half, bfloat16, float, double}, T: {int32, int64}"""


for _name, _draw in {
    "RandomUniform": PhiloxStream.uniform,
    "RandomStandardNormal": PhiloxStream.normal,
    "TruncatedNormal": PhiloxStream.truncated_normal,
}.items():
    op(f"{_name}{_NUMBERS}")(type(_name, (_RandomNumbers,), {"draw": _draw}))


@op("""RandomUniformInt(shape: T, minval: Tout, maxval: Tout) -> (output: Tout)
       seed: int = 0, seed2: int = 0, Tout: {int32, int64}, T: {int32, int64}""")
class RandomUniformInt(Op):
    stateful = needs_ctx = True
    infer = shapes.given(0)
    flops = per_output(PER_NUMBER)

    def bind(node, xp):
        stream, dtype = stream_of(node), node["Tout"].as_numpy_dtype

        def draw(ctx, shape, minval, maxval):
            return xp.asarray(stream(ctx).uniform_int(int(minval), int(maxval), sizes(shape), dtype))

        return draw


@op("RandomShuffle(value: T) -> (output: T) where seed: int = 0, seed2: int = 0, T: type")
class RandomShuffle(Op):
    stateful = needs_ctx = True
    infer = shapes.unchanged
    grad = no_gradient

    def bind(node, xp):
        stream = stream_of(node)
        return lambda ctx, value: stream(ctx).shuffle(np.asarray(value))


# ---- choices by weight, gamma and Poisson numbers ----


_SEEDS = "seed: int = 0\nseed2: int = 0"


def choices_shape(op: Operation) -> list[TensorShape]:
    """One row per row of the logits, as many columns as samples."""
    count = folded_value(op.inputs[1])
    return [TensorShape([op.inputs[0].shape.with_rank(2)[0], None if count is None else int(count)])]


def choose(xp: Any, stream: Any, logits: Any, samples: Any, dtype: Any) -> Any:
    """The indices that Multinomial chooses, after its checks."""
    if logits.ndim != 2:
        raise invalid(f"logits should be a matrix, got shape {shape_text(logits)}")
    if samples < 0:
        raise invalid(f"num_samples should be non-negative, got {samples}")
    if logits.shape[1] == 0:
        raise invalid("num_classes should be positive, got 0")
    if logits.shape[0] == 0 or samples == 0:
        return xp.empty((logits.shape[0], int(samples)), dtype)
    return rejection.categorical(stream, logits, int(samples), xp).astype(dtype)


@op(f"""Multinomial(logits: T, num_samples: int32) -> (output: output_dtype)
        {_SEEDS}, T: realnumbertype, output_dtype: {{int32, int64}} = int64""")
class Multinomial(Op):
    """Indices chosen from each row, with probabilities as exp(logit)."""

    stateful = needs_ctx = True
    infer = choices_shape
    grad = no_gradient

    def bind(node, xp):
        stream, dtype = stream_of(node), node["output_dtype"].as_numpy_dtype
        return lambda ctx, logits, samples: choose(xp, stream(ctx), logits, samples, dtype)


def _appended(op: Operation) -> list[TensorShape]:
    return [folded_shape(op.inputs[0]).concatenate(op.inputs[1].shape)]


def _per_parameter(draw: Callable[..., Any], node: Node, dtype: Any) -> Callable[..., Any]:
    """The kernel of numbers for each element of the second input, which `draw(stream, elements, count)` makes."""
    stream, dtype = stream_of(node), dtype.as_numpy_dtype

    def kernel(ctx: Any, shape: Any, parameter: Any) -> Any:
        whole, count = (*sizes(shape), *parameter.shape), int(np.prod(sizes(shape)))
        if count == 0 or parameter.size == 0:
            return np.empty(whole, dtype)
        return draw(stream(ctx), parameter.reshape(-1), count).reshape(whole).astype(dtype)

    return kernel


@op(f"RandomGamma(shape: S, alpha: T) -> (output: T) where {_SEEDS}, S: {{int32, int64}}, T: {{half, float, double}}")
class RandomGamma(Op):
    """Gamma numbers of scale 1: `shape` of them for each alpha."""

    stateful = needs_ctx = True
    infer = _appended

    def bind(node, xp):
        return _per_parameter(rejection.gamma, node, node["T"])

    def grad(op, dy):
        shape, alpha = op.inputs
        with control_dependencies([dy]):
            return [None, of_alpha(arrays.shape(shape)[0], alpha, op.outputs[0], dy)]


def of_alpha(sample_dimensions: Any, alpha: Tensor, sample: Tensor, dy: Tensor) -> Tensor:
    """The gradient of gamma numbers' alpha: how each sample moves with it, summed over the samples."""
    ones = arrays.ones([sample_dimensions], dtype=dtypes.int32)
    alphas = arrays.reshape(alpha, arrays.concat([ones, arrays.shape(alpha)], axis=0))
    partial = apply_op("RandomGammaGrad", alpha=alphas, sample=sample)
    return reduce.reduce_sum(dy * partial, axis=arrays.range(sample_dimensions))


@op(f"""RandomPoissonV2(shape: S, rate: R) -> (output: dtype)
        {_SEEDS}, S: {{int32, int64}}, R: {{half, float, double, int32, int64}} = double
        dtype: {{half, float, double, int32, int64}} = int64""")
class RandomPoissonV2(Op):
    """Poisson numbers: `shape` of them for each rate."""

    stateful = needs_ctx = True
    infer = _appended

    def bind(node, xp):
        return _per_parameter(rejection.poisson, node, node["dtype"])
