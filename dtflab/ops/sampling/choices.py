"""Random choices by weight, gamma and Poisson numbers.

Stands for their parts of `core/ops/random_ops.cc`, `python/ops/random_ops.py` and `random_grad.py`; the numbers are
made in `rejection.py`. Left out: ParameterizedTruncatedNormal.

Rule: as in `random.py`, an op has one stream per registered kernel, and equal seeds give TensorFlow's numbers. A
GPU's choices are those of a CPU, which in TensorFlow they are not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.graph import dtypes, random_seed
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import control_dependencies, name_scope
from dtflab.graph.static_value import folded_shape, folded_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.math import functions as math
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.reduce import functions as reduce
from dtflab.ops.sampling import rejection
from dtflab.ops.sampling.draws import sizes, stream_of

_SEEDS = "seed: int = 0\nseed2: int = 0"


def choices_shape(op: Any) -> list[TensorShape]:
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
        {_SEEDS}
        T: realnumbertype
        output_dtype: {{int32, int64}} = int64""")
class Multinomial(Op):
    """Indices chosen from each row, with probabilities as exp(logit)."""

    stateful = needs_ctx = True
    infer = choices_shape
    grad = no_gradient

    def bind(node, xp):
        stream, dtype = stream_of(node), node["output_dtype"].as_numpy_dtype
        return lambda ctx, logits, samples: choose(xp, stream(ctx), logits, samples, dtype)


def _appended(op: Any) -> list[TensorShape]:
    return [folded_shape(op.inputs[0]).concatenate(op.inputs[1].shape)]


def _rows(shape: Any, parameter: Any, draw: Any) -> Any:
    """Numbers of `shape` for each element of the parameter, which `draw(elements, count)` makes."""
    whole = (*sizes(shape), *parameter.shape)
    count = int(np.prod(sizes(shape)))
    if count == 0 or parameter.size == 0:
        return np.empty(whole)
    return draw(parameter.reshape(-1), count).reshape(whole)


@op(f"""RandomGamma(shape: S, alpha: T) -> (output: T)
        {_SEEDS}
        S: {{int32, int64}}
        T: {{half, float, double}}""")
class RandomGamma(Op):
    """Gamma numbers of scale 1: `shape` of them for each alpha."""

    stateful = needs_ctx = True
    infer = _appended

    def bind(node, xp):
        stream = stream_of(node)

        def kernel(ctx, shape, alpha):
            def draw(alphas, count):
                return rejection.gamma(stream(ctx), alphas, count)

            return _rows(shape, alpha, draw).astype(alpha.dtype)

        return kernel

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
        {_SEEDS}
        S: {{int32, int64}}
        R: {{half, float, double, int32, int64}} = double
        dtype: {{half, float, double, int32, int64}} = int64""")
class RandomPoissonV2(Op):
    """Poisson numbers: `shape` of them for each rate."""

    stateful = needs_ctx = True
    infer = _appended

    def bind(node, xp):
        stream, dtype = stream_of(node), node["dtype"].as_numpy_dtype

        def kernel(ctx, shape, rate):
            def draw(rates, count):
                return rejection.poisson(stream(ctx), rates, count)

            return _rows(shape, rate, draw).astype(dtype)

        return kernel


# -- functions ------------------------------------------------------------------------------------------------------


def output_dtype(dtype: Any) -> Any:
    """int64 unless given; ValueError for what choices can't be."""
    found = dtypes.as_dtype(dtype) if dtype else dtypes.int64
    if found not in (dtypes.int32, dtypes.int64):
        raise ValueError(f"Argument `dtype` got invalid value {found}. Accepted dtypes are (tf.int32, tf.int64).")
    return found


def _choices(logits: Any, num_samples: Any, dtype: Any, seed: int | None) -> Tensor:
    logits, dtype = convert_to_tensor(logits, name="logits"), output_dtype(dtype)
    seed1, seed2 = random_seed.get_seed(seed)
    return apply_op("Multinomial", logits=logits, num_samples=num_samples, seed=seed1, seed2=seed2, output_dtype=dtype)


def multinomial(
    logits: Any, num_samples: Any, seed: int | None = None, name: str | None = None, output_dtype: Any = None
) -> Tensor:
    """`num_samples` indices for each row of `logits`, chosen with probabilities as exp(logit)."""
    with name_scope(name, "multinomial", [logits]):
        return _choices(logits, num_samples, output_dtype, seed)


def categorical(
    logits: Any, num_samples: Any, dtype: Any = None, seed: int | None = None, name: str | None = None
) -> Tensor:
    """`multinomial` by its later name."""
    with name_scope(name, "categorical", [logits]):
        return _choices(logits, num_samples, dtype, seed)


def random_gamma(
    shape: Any, alpha: Any, beta: Any = None, dtype: Any = dtypes.float32, seed: int | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """`shape` gamma numbers for each of `alpha` and `beta`, which broadcast; their mean is alpha / beta."""
    with name_scope(name, "random_gamma", [shape, alpha, beta]):
        shape = convert_to_tensor(shape, dtypes.int32, name="shape")
        alpha, beta, spread = broadcast_alpha(alpha, beta, dtype)
        seed1, seed2 = random_seed.get_seed(seed)
        numbers = apply_op("RandomGamma", shape=shape, alpha=spread, seed=seed1, seed2=seed2)
        return math.maximum(np.finfo(alpha.dtype.as_numpy_dtype).tiny, numbers / beta)


def broadcast_alpha(alpha: Any, beta: Any, dtype: Any) -> tuple[Tensor, Tensor, Tensor]:
    """alpha, beta, and alpha in their common shape."""
    alpha = convert_to_tensor(alpha, dtype, name="alpha")
    beta = convert_to_tensor(1 if beta is None else beta, dtype, name="beta")
    shape = arrays.broadcast_dynamic_shape(arrays.shape(alpha), arrays.shape(beta))
    return alpha, beta, arrays.broadcast_to(alpha, shape)


def random_poisson(
    lam: Any, shape: Any, dtype: Any = dtypes.float32, seed: int | None = None, name: str | None = None
) -> Tensor:
    """`shape` Poisson numbers for each mean `lam`."""
    with name_scope(name, "random_poisson", [lam, shape]):
        shape = convert_to_tensor(shape, dtypes.int32, name="shape")
        seed1, seed2 = random_seed.get_seed(seed)
        return apply_op("RandomPoissonV2", shape=shape, rate=lam, dtype=dtypes.as_dtype(dtype), seed=seed1, seed2=seed2)
