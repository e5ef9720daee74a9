"""The ops of stateless random numbers: the seed is an input, and says all.

Stands for `core/kernels/stateless_random_ops*.cc` and `stateless_random_gamma_op.cc`. Left out: ThreeFry, binomial and
parameterized truncated normal numbers, shuffles.

Rule: the two seeds are turned by Philox into the key and the counter from which the numbers are drawn as those of the
ops with state are. The later ops take key and counter as inputs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import control_dependencies
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.array_module import in_host_memory
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.costs import per_output
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.philox import PER_NUMBER, PhiloxStream, philox_once
from dtflab.ops.sampling import rejection
from dtflab.ops.sampling.draws import choices_shape, choose, of_alpha, sizes
from dtflab.ops.sampling.functions import _AUTO, _PHILOX

_SCRAMBLE = 0x02461E293EC8F720
_MASK64 = (1 << 64) - 1


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


@op("StatelessRandomGetKeyCounter(seed: Tseed) -> (key: uint64, counter: uint64) where Tseed: {int32, int64} = int64")
class StatelessRandomGetKeyCounter(Op):
    """Key and counter for a seed."""

    def infer(op):
        op.inputs[0].shape.assert_is_compatible_with([2])
        return [TensorShape([1]), TensorShape([2])]

    def kernel(node, xp, seed):
        key, counter = scrambled(seed)
        return np.array([key], np.uint64), np.array([counter & _MASK64, counter >> 64], np.uint64)


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

    infer = shapes.scalar

    def kernel(node, xp):
        return np.array(_PHILOX, np.int32)


# -- numbers: each kind as an op that takes a seed and as one that takes key and counter ------------------------------

_FLOATS = "dtype: {half, bfloat16, float, double} = float"
_INTS = "{int32, int64}"
_KEY = "key: uint64, counter: uint64, alg: int32"


class _Numbers(Op):
    """`draw(stream, shape, dtype, *more inputs)` makes them; `seeds` inputs after the shape say where the stream is."""

    grad = no_gradient
    infer = shapes.given(0)
    flops = per_output(PER_NUMBER)
    draw: Any = None
    stream: Any = None
    seeds = 1

    @classmethod
    def bind(cls, node: Node, xp: Any) -> Any:
        dtype, seeds = node["dtype"].as_numpy_dtype, cls.seeds

        def kernel(shape: Any, *inputs: Any) -> Any:
            stream = cls.stream(*inputs[:seeds])
            return xp.asarray(cls.draw(stream, sizes(shape), dtype, *inputs[seeds:]))

        return kernel


def _register(name: str, draw: Any, types: str, later_types: str, more: str = "") -> None:
    """Register `name`, from a seed, and `nameV2`, from key and counter."""
    default = "" if more else " = int32"
    seed_types = "{int32, int64, uint32, uint64}" if "Full" in name else _INTS
    by_seed = f"{name}(shape: T, seed: Tseed{more}) -> (output: dtype) where {types}, T: {_INTS}{default}"
    by_key = f"{name}V2(shape: Tshape, {_KEY}{more}) -> (output: dtype) where {later_types}"
    members = {"__doc__": f"{name}: numbers that depend on the seed alone.", "draw": draw}
    later = {**members, "stream": _placed, "seeds": 3}
    op(f"{by_seed}, Tseed: {seed_types} = int64")(type(name, (_Numbers,), {**members, "stream": _seeded, "seeds": 1}))
    op(f"{by_key}, Tshape: {_INTS} = int32")(type(f"{name}V2", (_Numbers,), later))


def _between(stream: PhiloxStream, shape: tuple[int, ...], dtype: Any, low: Any, high: Any) -> Any:
    return stream.uniform_int(int(low), int(high), shape, dtype)


_register("StatelessRandomUniform", PhiloxStream.uniform, _FLOATS, _FLOATS)
_register("StatelessRandomNormal", PhiloxStream.normal, _FLOATS, _FLOATS)
_register("StatelessTruncatedNormal", PhiloxStream.truncated_normal, _FLOATS, _FLOATS)
_FULL = "dtype: {int32, int64, uint32, uint64} = uint64"
_register("StatelessRandomUniformFullInt", PhiloxStream.integers, _FULL, _FULL)
_LIMITS = ", minval: dtype, maxval: dtype"
_register("StatelessRandomUniformInt", _between, f"dtype: {_INTS}", _FULL.removesuffix(" = uint64"), _LIMITS)


def _check_seed(shape: TensorShape) -> None:
    """ValueError unless the seed is, or may be, two numbers."""
    shape.with_rank(1).assert_is_compatible_with([2])


@op(f"""StatelessMultinomial(logits: T, num_samples: int32, seed: Tseed) -> (output: output_dtype)
        T: realnumbertype, Tseed: {_INTS} = int64, output_dtype: {_INTS} = int64""")
class StatelessMultinomial(Op):
    """Indices chosen from each row by the seed, with probabilities as exp(logit)."""

    grad = no_gradient

    def infer(op):
        _check_seed(op.inputs[2].shape)
        return choices_shape(op)

    def kernel(node, xp, logits, samples, seed):
        return choose(xp, _seeded(seed), logits, samples, node["output_dtype"].as_numpy_dtype)


def _per_parameter(draw: Any, stream: PhiloxStream, shape: Any, parameter: Any, dtype: Any) -> Any:
    """Numbers of `shape`, whose last axes are those of the parameter."""
    whole = sizes(shape)
    if whole[len(whole) - parameter.ndim :] != parameter.shape:
        raise invalid(f"Shape passed in must end with broadcasted shape: {shape_text(whole)}, {shape_text(parameter)}.")
    count = int(np.prod(whole[: len(whole) - parameter.ndim]))
    if count == 0 or parameter.size == 0:
        return np.empty(whole, dtype)
    return draw(stream, parameter.reshape(-1), count).reshape(whole).astype(dtype)


class _Gamma(Op):
    """Gamma numbers: of a shape, what says where the stream is, and alpha."""

    infer = shapes.given(0)
    stream: Any = None

    @classmethod
    def kernel(cls, node: Node, xp: Any, shape: Any, *place_and_alpha: Any) -> Any:
        *place, alpha = place_and_alpha
        stream, dtype = cls.stream(*place), node["dtype"].as_numpy_dtype
        return xp.asarray(_per_parameter(rejection.gamma, stream, shape, in_host_memory(xp, alpha), dtype))

    def grad(op: Operation, dy: Tensor) -> list[Any]:
        shape, *place, alpha = op.inputs
        with control_dependencies([dy]):
            dimensions = arrays.shape(shape)[0] - arrays.rank(alpha)
            return [None] * (1 + len(place)) + [of_alpha(dimensions, alpha, op.outputs[0], dy)]


@op(f"""StatelessRandomGammaV2(shape: T, seed: Tseed, alpha: dtype) -> (output: dtype)
        dtype: {{half, float, double}}, T: {_INTS}, Tseed: {_INTS} = int64""")
class StatelessRandomGammaV2(_Gamma):
    """Gamma numbers that depend on the seed alone."""

    stream = _seeded


@op(f"""StatelessRandomGammaV3(shape: shape_dtype, {_KEY}, alpha: dtype) -> (output: dtype)
        dtype: {{half, float, double}}, shape_dtype: {_INTS} = int32""")
class StatelessRandomGammaV3(_Gamma):
    """Gamma numbers that depend on key and counter alone."""

    stream = _placed


@op(f"""StatelessRandomPoisson(shape: T, seed: Tseed, lam: Rtype) -> (output: dtype)
        Rtype: {{half, float, double, int32, int64}}, dtype: {{half, float, double, int32, int64}}, T: {_INTS}
        Tseed: {_INTS} = int64""")
class StatelessRandomPoisson(Op):
    """Poisson numbers that depend on the seed alone."""

    grad = no_gradient

    def infer(op):
        _check_seed(op.inputs[1].shape)
        return _Numbers.infer(op)

    def kernel(node, xp, shape, seed, lam):
        return _per_parameter(rejection.poisson, _seeded(seed), shape, lam, node["dtype"].as_numpy_dtype)
