"""Random tensors: uniform, normal, gamma and Poisson numbers, choices, shuffled rows; with state and without.

Stands for `python/ops/random_ops.py` and `stateless_random_ops.py`.

Rule: graph seed and op seed become the two of a kernel by `random_seed.get_seed`; equal ones give TensorFlow's numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph import dtypes, random_seed
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.graph.tensor_shape import dimension_value
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.math import functions as math

set_random_seed = random_seed.set_random_seed


def shape_tensor(shape: Any) -> Tensor:
    if not isinstance(shape, tuple | list):
        return convert_to_tensor(shape, name="shape")
    sizes = tuple(map(dimension_value, shape))
    return convert_to_tensor(sizes, None if sizes else dtypes.int32, name="shape")


# ---- uniform and normal numbers ----


def _normal(what: str, op_type: str, summary: str) -> Callable[..., Tensor]:
    def function(
        shape: Any,
        mean: Any = 0.0,
        stddev: Any = 1.0,
        dtype: Any = dtypes.float32,
        seed: int | None = None,
        name: str | None = None,
    ) -> Tensor:
        with name_scope(name, what, [shape, mean, stddev]) as scope:
            sizes_ = shape_tensor(shape)
            mean, stddev = convert_to_tensor(mean, dtype, name="mean"), convert_to_tensor(stddev, dtype, name="stddev")
            seed1, seed2 = random_seed.get_seed(seed)
            numbers = apply_op(op_type, shape=sizes_, dtype=dtype, seed=seed1, seed2=seed2)
            return apply_op("AddV2", scope, x=apply_op("Mul", "mul", x=numbers, y=stddev), y=mean)

    return arrays.described(function, what, summary)


random_normal = _normal("random_normal", "RandomStandardNormal", "Normal numbers of that mean and standard deviation.")
truncated_normal = _normal(
    "truncated_normal", "TruncatedNormal", "Normal numbers, those more than two deviations from the mean drawn again."
)


_FLOATS = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
_UNIFORM_TYPES = (*_FLOATS, dtypes.int32, dtypes.int64)


def random_uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Numbers in [minval, maxval), [0, 1) by default; integers need a `maxval`."""
    dtype = dtypes.as_dtype(dtype)
    if dtype not in _UNIFORM_TYPES:
        raise ValueError(f"Argument `dtype` got invalid value {dtype}. Accepted dtypes are {_UNIFORM_TYPES}.")
    if maxval is None:
        if dtype.is_integer:
            raise ValueError(f"Must specify maxval for integer dtype {dtype!r}")
        maxval = 1
    with name_scope(name, "random_uniform", [shape, minval, maxval]) as scope:
        return _uniform(shape_tensor(shape), minval, maxval, dtype, seed, scope)


def _uniform(shape: Tensor, minval: Any, maxval: Any, dtype: dtypes.DType, seed: int | None, scope: str) -> Tensor:
    from_zero = isinstance(minval, int) and minval == 0
    to_one = isinstance(maxval, int) and maxval == 1
    if not from_zero or not to_one or dtype.is_integer:
        minval = convert_to_tensor(minval, dtype, name="min")
        maxval = convert_to_tensor(maxval, dtype, name="max")
    seed1, seed2 = random_seed.get_seed(seed)
    if dtype.is_integer:
        return apply_op("RandomUniformInt", scope, shape=shape, minval=minval, maxval=maxval, seed=seed1, seed2=seed2)
    numbers = apply_op("RandomUniform", shape=shape, dtype=dtype, seed=seed1, seed2=seed2)
    if from_zero:
        return numbers if to_one else apply_op("Mul", x=numbers, y=maxval)
    width = apply_op("Sub", "sub", x=maxval, y=minval)
    return apply_op("AddV2", scope, x=apply_op("Mul", "mul", x=numbers, y=width), y=minval)


def random_shuffle(value: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """The rows of `value` in random order."""
    seed1, seed2 = random_seed.get_seed(seed)
    return apply_op("RandomShuffle", name, value=value, seed=seed1, seed2=seed2)


# ---- choices, gamma and Poisson numbers ----


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


def _choices(logits: Any, num_samples: Any, dtype: Any, seed: int | None) -> Tensor:
    logits, dtype = convert_to_tensor(logits, name="logits"), output_dtype(dtype)
    seed1, seed2 = random_seed.get_seed(seed)
    return apply_op("Multinomial", logits=logits, num_samples=num_samples, seed=seed1, seed2=seed2, output_dtype=dtype)


def output_dtype(dtype: Any) -> Any:
    """int64 unless given; ValueError for what choices can't be."""
    found = dtypes.as_dtype(dtype) if dtype else dtypes.int64
    if found not in (dtypes.int32, dtypes.int64):
        raise ValueError(f"Argument `dtype` got invalid value {found}. Accepted dtypes are (tf.int32, tf.int64).")
    return found


def random_gamma(
    shape: Any,
    alpha: Any,
    beta: Any = None,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
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


# ---- stateless: the seed is an argument, and says all ----


_PHILOX, _THREEFRY, _AUTO = 1, 2, 3
_TYPES = (*_UNIFORM_TYPES, dtypes.uint32, dtypes.uint64)


def stateless_random_uniform(
    shape: Any,
    seed: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = dtypes.float32,
    name: str | None = None,
    alg: Any = "auto_select",
) -> Tensor:
    """Numbers in [minval, maxval) that depend on the seed, two integers, alone; all integers if both are None."""
    dtype = dtypes.as_dtype(dtype)
    if dtype not in _TYPES:
        raise ValueError(f"Argument `dtype` got invalid value {dtype}. Accepted dtypes are {_TYPES}.")
    if dtype.is_integer and (minval is None) != (maxval is None):
        both = "argument `minval` and `maxval` must be both None or not None."
        raise ValueError(f"For integer `dtype` argument {dtype}, {both} Got `minval`={minval} and `maxval`={maxval}.")
    if dtype.is_unsigned and minval is not None:
        raise ValueError(f"Argument `dtype` got invalid value {dtype} when argument `minval` is not None.")
    maxval = 1 if maxval is None and not dtype.is_integer else maxval
    with name_scope(name, "stateless_random_uniform", [shape, seed, minval, maxval]) as scope:
        shape = shape_tensor(shape)
        if minval is None:
            return apply_op("StatelessRandomUniformFullIntV2", scope, shape=shape, **_place(seed, alg), dtype=dtype)
        low, high = convert_to_tensor(minval, dtype, name="min"), convert_to_tensor(maxval, dtype, name="max")
        place = _place(seed, alg)
        if dtype.is_integer:
            return apply_op("StatelessRandomUniformIntV2", scope, shape=shape, **place, minval=low, maxval=high)
        numbers = apply_op("StatelessRandomUniformV2", shape=shape, **place, dtype=dtype)
        return math.add(numbers * (high - low), low, name=scope)


def _stateless_normal(what: str, op_type: str, summary: str) -> Callable[..., Tensor]:
    def function(
        shape: Any,
        seed: Any,
        mean: Any = 0.0,
        stddev: Any = 1.0,
        dtype: Any = dtypes.float32,
        name: str | None = None,
        alg: Any = "auto_select",
    ) -> Tensor:
        with name_scope(name, what, [shape, seed, mean, stddev]) as scope:
            shape = shape_tensor(shape)
            mean, stddev = convert_to_tensor(mean, dtype, name="mean"), convert_to_tensor(stddev, dtype, name="stddev")
            numbers = apply_op(op_type, shape=shape, **_place(seed, alg), dtype=dtypes.as_dtype(dtype))
            return math.add(numbers * stddev, mean, name=scope)

    return arrays.described(function, what, summary)


stateless_random_normal = _stateless_normal(
    "stateless_random_normal", "StatelessRandomNormalV2", "Normal numbers that depend on the seed alone."
)
stateless_truncated_normal = _stateless_normal(
    "stateless_truncated_normal",
    "StatelessTruncatedNormalV2",
    "Normal numbers within two deviations of the mean that depend on the seed alone.",
)


def stateless_random_gamma(
    shape: Any, seed: Any, alpha: Any, beta: Any = None, dtype: Any = dtypes.float32, name: str | None = None
) -> Tensor:
    """Gamma numbers that depend on the seed alone; `shape` ends with that of alpha and beta."""
    with name_scope(name, "stateless_random_gamma", [shape, seed, alpha, beta]):
        shape = shape_tensor(shape)
        alpha, beta, spread = broadcast_alpha(alpha, beta, dtype)
        numbers = apply_op("StatelessRandomGammaV3", shape=shape, **_place(seed, _AUTO), alpha=spread)
        return math.maximum(np.finfo(alpha.dtype.as_numpy_dtype).tiny, numbers / beta)


def stateless_random_poisson(
    shape: Any, seed: Any, lam: Any, dtype: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """Poisson numbers that depend on the seed alone; `shape` ends with that of the means `lam`."""
    with name_scope(name, "stateless_random_poisson", [shape, seed, lam]):
        shape = shape_tensor(shape)
        return apply_op("StatelessRandomPoisson", shape=shape, seed=seed, lam=lam, dtype=dtypes.as_dtype(dtype))


def stateless_multinomial(
    logits: Any, num_samples: Any, seed: Any, output_dtype: Any = dtypes.int64, name: str | None = None
) -> Tensor:
    """`stateless_categorical` under its old name."""
    return _stateless_choices("stateless_multinomial", logits, num_samples, seed, output_dtype, name)


def stateless_categorical(
    logits: Any, num_samples: Any, seed: Any, dtype: Any = dtypes.int64, name: str | None = None
) -> Tensor:
    """Indices chosen from each row by the seed, with probabilities as exp(logit)."""
    return _stateless_choices("stateless_categorical", logits, num_samples, seed, dtype, name)


def _stateless_choices(what: str, logits: Any, num_samples: Any, seed: Any, dtype: Any, name: str | None) -> Tensor:
    with name_scope(name, what, [logits, seed]):
        given = {"logits": convert_to_tensor(logits, name="logits"), "num_samples": num_samples, "seed": seed}
        return apply_op("StatelessMultinomial", **given, output_dtype=output_dtype(dtype))


def _place(seed: Any, alg: Any) -> dict[str, Any]:
    alg = _algorithm(alg)
    if alg == _THREEFRY:
        raise NotImplementedError("dtflab has the algorithm 'philox' only, which 'auto_select' chooses, too.")
    key, counter = apply_op("StatelessRandomGetKeyCounter", seed=seed)
    return {"key": key, "counter": counter, "alg": alg}


def _algorithm(alg: Any) -> Any:
    if not isinstance(alg, str):
        return _AUTO if alg is None else alg
    names = {"philox": _PHILOX, "threefry": _THREEFRY, "autoselect": _AUTO}
    found = alg.strip().lower().replace("-", "").replace("_", "")
    if found not in names:
        raise ValueError(f"Argument `alg` got unsupported string value {alg}. Supported are {sorted(names)}.")
    return names[found]


def fold_in(seed: Any, data: Any, alg: Any = "auto_select") -> Tensor:
    """A seed made of a seed and a number, such as the number of a task."""
    data = convert_to_tensor(data)
    return arrays.stack([stateless_random_uniform([], seed, None, None, data.dtype, alg=alg), data])


def split_seed(seed: Any, num: Any = 2, alg: Any = "auto_select") -> Tensor:
    """`num` seeds made of one."""
    seed = convert_to_tensor(seed)
    return stateless_random_uniform([num, 2], seed, None, None, seed.dtype, alg=alg)
