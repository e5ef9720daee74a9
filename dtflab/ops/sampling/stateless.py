"""Stateless random numbers: the seed is an input, and says all.

Stands for `core/kernels/stateless_random_ops*.cc`, `stateless_random_gamma_op.cc` and
`python/ops/stateless_random_ops.py`. Left out: ThreeFry, binomial and parameterized truncated normal numbers, shuffles.

Rule: the two seeds are turned by Philox into the key and the counter from which the numbers are drawn as those of the
ops with state are. The later ops take key and counter as inputs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.op_registry import Op, elements, no_gradient, op
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import control_dependencies, name_scope
from dtflab.graph.static_value import folded_shape
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.array_module import in_host_memory
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.math import functions as math
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.sampling import rejection
from dtflab.ops.sampling.choices import broadcast_alpha, choices_shape, choose, of_alpha, output_dtype
from dtflab.ops.sampling.draws import shape_tensor, sizes
from dtflab.ops.sampling.philox import PER_NUMBER, PhiloxStream, philox_once

_SCRAMBLE = 0x02461E293EC8F720
_MASK64 = (1 << 64) - 1
_PHILOX, _THREEFRY, _AUTO = 1, 2, 3


def scrambled(seed: Any) -> tuple[int, int]:
    """Key and counter for a seed of two integers."""
    if seed.shape != (2,):
        raise invalid(f"seed must have shape [2], not {shape_text(seed)}")
    low, high = (int(s) & _MASK64 for s in seed)
    words = philox_once(_SCRAMBLE, low | high << 64)
    return words[0] | words[1] << 32, (words[2] | words[3] << 32) << 64


def _seeded(seed: Any) -> PhiloxStream:
    return PhiloxStream.at(*scrambled(seed))


def _placed(key: Any, counter: Any, alg: Any) -> PhiloxStream:
    if alg not in (_PHILOX, _AUTO):
        raise invalid(f"Unsupported algorithm id: {alg}; dtflab has Philox (1), and 3 to choose it.")
    if counter.shape != (2,) or key.shape != (1,):
        shapes = f"{shape_text(key)} and {shape_text(counter)}"
        raise invalid(f"key and counter must have shapes [1] and [2], not {shapes}")
    return PhiloxStream.at(int(key[0]), int(counter[0]) | int(counter[1]) << 64)


@op("""StatelessRandomGetKeyCounter(seed: Tseed) -> (key: uint64, counter: uint64)
       Tseed: {int32, int64} = int64""")
class StatelessRandomGetKeyCounter(Op):
    """Key and counter for a seed."""

    def infer(op):
        op.inputs[0].shape.assert_is_compatible_with([2])
        return [TensorShape([1]), TensorShape([2])]

    def bind(node, xp):
        def kernel(seed):
            key, counter = scrambled(seed)
            return np.array([key], np.uint64), np.array([counter & _MASK64, counter >> 64], np.uint64)

        return kernel


@op("""StatelessRandomGetKeyCounterAlg(seed: Tseed) -> (key: uint64, counter: uint64, alg: int32)
       Tseed: {int32, int64} = int64""")
class StatelessRandomGetKeyCounterAlg(Op):
    """Key and counter for a seed, and the algorithm."""

    def infer(op):
        return [*StatelessRandomGetKeyCounter.infer(op), TensorShape([])]

    def bind(node, xp):
        both = StatelessRandomGetKeyCounter.bind(node, xp)
        return lambda seed: (*both(seed), np.array(_PHILOX, np.int32))


@op("StatelessRandomGetAlg() -> (alg: int32)")
class StatelessRandomGetAlg(Op):
    """The algorithm of this device."""

    stateful = True

    def infer(op):
        return [TensorShape([])]

    def bind(node, xp):
        return lambda: np.array(_PHILOX, np.int32)


# -- numbers: each kind as an op that takes a seed and as one that takes key and counter ------------------------------

_FLOATS = "dtype: {half, bfloat16, float, double} = float"
_INTS = "{int32, int64}"


class _Numbers(Op):
    """`draw(stream, shape, dtype, *more inputs)` makes them; `seeds` inputs after the shape say where the stream is."""

    grad = no_gradient
    draw: Any = None
    stream: Any = None
    seeds = 1

    def infer(operation: Any) -> list[TensorShape]:
        return [folded_shape(operation.inputs[0])]

    @classmethod
    def bind(cls, node: Any, xp: Any) -> Any:
        dtype, seeds = node["dtype"].as_numpy_dtype, cls.seeds

        def kernel(shape: Any, *inputs: Any) -> Any:
            stream = cls.stream(*inputs[:seeds])
            return xp.asarray(cls.draw(stream, sizes(shape), dtype, *inputs[seeds:]))

        return kernel

    def flops(node: Any, ins: Any, outs: Any) -> int:
        return PER_NUMBER * elements(outs[0])


def _register(name: str, draw: Any, types: str, later_types: str, more: str = "") -> None:
    """Register `name`, from a seed, and `nameV2`, from key and counter."""
    default = "" if more else " = int32"
    seed_types = "{int32, int64, uint32, uint64}" if "Full" in name else _INTS
    by_seed = f"{name}(shape: T, seed: Tseed{more}) -> (output: dtype)\n{types}\nT: {_INTS}{default}"
    by_key = (
        f"{name}V2(shape: Tshape, key: uint64, counter: uint64, alg: int32{more}) -> (output: dtype)\n{later_types}"
    )
    members = {"__doc__": f"{name}: numbers that depend on the seed alone.", "draw": draw}
    first = {**members, "stream": _seeded, "seeds": 1}
    later = {**members, "stream": _placed, "seeds": 3}
    op(f"{by_seed}\nTseed: {seed_types} = int64")(type(name, (_Numbers,), first))
    op(f"{by_key}\nTshape: {_INTS} = int32")(type(f"{name}V2", (_Numbers,), later))


def _between(stream: PhiloxStream, shape: tuple[int, ...], dtype: Any, low: Any, high: Any) -> Any:
    return stream.uniform_int(int(low), int(high), shape, dtype)


_register("StatelessRandomUniform", PhiloxStream.uniform, _FLOATS, _FLOATS)
_register("StatelessRandomNormal", PhiloxStream.normal, _FLOATS, _FLOATS)
_register("StatelessTruncatedNormal", PhiloxStream.truncated_normal, _FLOATS, _FLOATS)
_FULL = "dtype: {int32, int64, uint32, uint64} = uint64"
_register("StatelessRandomUniformFullInt", PhiloxStream.integers, _FULL, _FULL)
_register("StatelessRandomUniformInt", _between, f"dtype: {_INTS}", "dtype: {int32, int64, uint32, uint64}",
          ", minval: dtype, maxval: dtype")  # fmt: skip


def _check_seed(shape: TensorShape) -> None:
    """ValueError unless the seed is, or may be, two numbers."""
    shape.with_rank(1).assert_is_compatible_with([2])


@op(f"""StatelessMultinomial(logits: T, num_samples: int32, seed: Tseed) -> (output: output_dtype)
        T: realnumbertype
        Tseed: {_INTS} = int64
        output_dtype: {_INTS} = int64""")
class StatelessMultinomial(Op):
    """Indices chosen from each row by the seed, with probabilities as exp(logit)."""

    grad = no_gradient

    def infer(op):
        _check_seed(op.inputs[2].shape)
        return choices_shape(op)

    def bind(node, xp):
        dtype = node["output_dtype"].as_numpy_dtype
        return lambda logits, samples, seed: choose(xp, _seeded(seed), logits, samples, dtype)


def _per_parameter(draw: Any, stream: PhiloxStream, shape: Any, parameter: Any, dtype: Any) -> Any:
    """Numbers of `shape`, whose last axes are those of the parameter."""
    whole = sizes(shape)
    if whole[len(whole) - parameter.ndim :] != parameter.shape:
        raise invalid(f"Shape passed in must end with broadcasted shape: {shape_text(whole)}, {shape_text(parameter)}.")
    count = int(np.prod(whole[: len(whole) - parameter.ndim]))
    if count == 0 or parameter.size == 0:
        return np.empty(whole, dtype)
    return draw(stream, parameter.reshape(-1), count).reshape(whole).astype(dtype)


def _gamma_gradient(op: Any, dy: Tensor, position: int) -> list[Any]:
    shape, alpha = op.inputs[0], op.inputs[position]
    with control_dependencies([dy]):
        dimensions = arrays.shape(shape)[0] - arrays.rank(alpha)
        return [None] * position + [of_alpha(dimensions, alpha, op.outputs[0], dy)]


@op(f"""StatelessRandomGammaV2(shape: T, seed: Tseed, alpha: dtype) -> (output: dtype)
        dtype: {{half, float, double}}
        T: {_INTS}
        Tseed: {_INTS} = int64""")
class StatelessRandomGammaV2(Op):
    """Gamma numbers that depend on the seed alone."""

    infer = _Numbers.infer

    def bind(node, xp):
        dtype = node["dtype"].as_numpy_dtype

        def kernel(shape, seed, alpha):
            numbers = _per_parameter(rejection.gamma, _seeded(seed), shape, in_host_memory(xp, alpha), dtype)
            return xp.asarray(numbers)

        return kernel

    def grad(op, dy):
        return _gamma_gradient(op, dy, 2)


@op(f"""StatelessRandomGammaV3(shape: shape_dtype, key: uint64, counter: uint64, alg: int32, alpha: dtype) -> \
(output: dtype)
        dtype: {{half, float, double}}
        shape_dtype: {_INTS} = int32""")
class StatelessRandomGammaV3(Op):
    """Gamma numbers that depend on key and counter alone."""

    infer = _Numbers.infer

    def bind(node, xp):
        dtype = node["dtype"].as_numpy_dtype

        def kernel(shape, key, counter, alg, alpha):
            stream = _placed(key, counter, alg)
            return xp.asarray(_per_parameter(rejection.gamma, stream, shape, in_host_memory(xp, alpha), dtype))

        return kernel

    def grad(op, dy):
        return _gamma_gradient(op, dy, 4)


@op(f"""StatelessRandomPoisson(shape: T, seed: Tseed, lam: Rtype) -> (output: dtype)
        Rtype: {{half, float, double, int32, int64}}
        dtype: {{half, float, double, int32, int64}}
        T: {_INTS}
        Tseed: {_INTS} = int64""")
class StatelessRandomPoisson(Op):
    """Poisson numbers that depend on the seed alone."""

    grad = no_gradient

    def infer(op):
        _check_seed(op.inputs[1].shape)
        return _Numbers.infer(op)

    def bind(node, xp):
        dtype = node["dtype"].as_numpy_dtype
        return lambda shape, seed, lam: _per_parameter(rejection.poisson, _seeded(seed), shape, lam, dtype)


# -- functions ------------------------------------------------------------------------------------------------------


def _algorithm(alg: Any) -> Any:
    if isinstance(alg, str):
        names = {"philox": _PHILOX, "threefry": _THREEFRY, "autoselect": _AUTO}
        found = names.get(alg.strip().lower().replace("-", "").replace("_", ""))
        if found is None:
            raise ValueError(f"Argument `alg` got unsupported string value {alg}. Supported are {sorted(names)}.")
        return found
    return _AUTO if alg is None else alg


def _place(seed: Any, alg: Any) -> dict[str, Any]:
    alg = _algorithm(alg)
    if alg == _THREEFRY:
        raise NotImplementedError("dtflab has the algorithm 'philox' only, which 'auto_select' chooses, too.")
    key, counter = apply_op("StatelessRandomGetKeyCounter", seed=seed)
    return {"key": key, "counter": counter, "alg": alg}


_TYPES = (
    dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.uint32,
    dtypes.uint64,
)  # fmt: skip


def stateless_random_uniform(
    shape: Any, seed: Any, minval: Any = 0, maxval: Any = None, dtype: Any = dtypes.float32, name: str | None = None,
    alg: Any = "auto_select",
) -> Tensor:  # fmt: skip
    """Numbers in [minval, maxval) that depend on the seed, two integers, alone; all integers if both are None."""
    dtype = dtypes.as_dtype(dtype)
    if dtype not in _TYPES:
        raise ValueError(f"Argument `dtype` got invalid value {dtype}. Accepted dtypes are {_TYPES}.")
    if dtype.is_integer and (minval is None) != (maxval is None):
        raise ValueError(f"For integer `dtype` argument {dtype}, argument `minval` and `maxval` must be both None or "
                         f"not None. Got `minval`={minval} and `maxval`={maxval}.")  # fmt: skip
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


def _normal(
    what: str, op_type: str, shape: Any, seed: Any, mean: Any, stddev: Any, dtype: Any, name: Any, alg: Any
) -> Tensor:
    with name_scope(name, what, [shape, seed, mean, stddev]) as scope:
        shape = shape_tensor(shape)
        mean, stddev = convert_to_tensor(mean, dtype, name="mean"), convert_to_tensor(stddev, dtype, name="stddev")
        numbers = apply_op(op_type, shape=shape, **_place(seed, alg), dtype=dtypes.as_dtype(dtype))
        return math.add(numbers * stddev, mean, name=scope)


def stateless_random_normal(
    shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32, name: str | None = None,
    alg: Any = "auto_select",
) -> Tensor:  # fmt: skip
    """Normal numbers that depend on the seed alone."""
    kind = "StatelessRandomNormalV2"
    return _normal("stateless_random_normal", kind, shape, seed, mean, stddev, dtype, name, alg)


def stateless_truncated_normal(
    shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32, name: str | None = None,
    alg: Any = "auto_select",
) -> Tensor:  # fmt: skip
    """Normal numbers within two deviations of the mean that depend on the seed alone."""
    kind = "StatelessTruncatedNormalV2"
    return _normal("stateless_truncated_normal", kind, shape, seed, mean, stddev, dtype, name, alg)


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


def _choices(what: str, logits: Any, num_samples: Any, seed: Any, dtype: Any, name: str | None) -> Tensor:
    with name_scope(name, what, [logits, seed]):
        logits = convert_to_tensor(logits, name="logits")
        kind = output_dtype(dtype)
        return apply_op("StatelessMultinomial", logits=logits, num_samples=num_samples, seed=seed, output_dtype=kind)


def stateless_multinomial(
    logits: Any, num_samples: Any, seed: Any, output_dtype: Any = dtypes.int64, name: str | None = None
) -> Tensor:
    """`stateless_categorical` under its old name."""
    return _choices("stateless_multinomial", logits, num_samples, seed, output_dtype, name)


def stateless_categorical(
    logits: Any, num_samples: Any, seed: Any, dtype: Any = dtypes.int64, name: str | None = None
) -> Tensor:
    """Indices chosen from each row by the seed, with probabilities as exp(logit)."""
    return _choices("stateless_categorical", logits, num_samples, seed, dtype, name)


def fold_in(seed: Any, data: Any, alg: Any = "auto_select") -> Tensor:
    """A seed made of a seed and a number, such as the number of a task."""
    data = convert_to_tensor(data)
    first = stateless_random_uniform([], seed, None, None, data.dtype, alg=alg)
    return arrays.stack([first, data])


def split_seed(seed: Any, num: Any = 2, alg: Any = "auto_select") -> Tensor:
    """`num` seeds made of one."""
    seed = convert_to_tensor(seed)
    return stateless_random_uniform([num, 2], seed, None, None, seed.dtype, alg=alg)
