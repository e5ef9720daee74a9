"""Random tensors: uniform, normal and truncated normal numbers, shuffled rows.

Stands for `core/ops/random_ops.cc`, `core/kernels/random_op.cc` and `python/ops/random_ops.py`.
Multinomial, gamma and Poisson numbers are in `sampling.py`, stateless ops in `stateless.py`.

Rule: an op has one stream per registered kernel, that is per session and node, kept by `ctx.state`. Equal
seeds give TensorFlow's numbers; graph seed and op seed become the kernel's two by `random_seed.get_seed`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph import dtypes, random_seed
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.dtypes import DType
from dtflab.graph.op_registry import Op, elements, no_gradient, op
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.graph.static_value import folded_shape
from dtflab.graph.tensor_shape import TensorShape, dimension_value
from dtflab.ops import shapes
from dtflab.ops.messages import invalid
from dtflab.ops.sampling.philox import PER_NUMBER, PhiloxStream

set_random_seed = random_seed.set_random_seed


def stream_of(node: Any) -> Callable[[Any], PhiloxStream]:
    """How a kernel finds its stream: kept between the steps of a session, begun anew in the next."""
    seed, seed2 = node["seed"], node["seed2"]
    return lambda ctx: ctx.state(node.name, lambda: PhiloxStream(seed, seed2))


def sizes(shape: Any) -> tuple[int, ...]:
    if shape.ndim != 1:
        raise invalid(f"shape must be a vector of {{int32,int64}}, got shape {list(shape.shape)}")
    if (shape < 0).any():
        raise invalid(f"Dimension {shape.min()} must be >= 0")
    return tuple(shape.tolist())


class _RandomNumbers(Op):
    stateful = True
    needs_ctx = True
    grad = no_gradient
    draw: Any = None  # the method of PhiloxStream

    def infer(operation: Any) -> list[TensorShape]:
        return [folded_shape(operation.inputs[0])]

    @classmethod
    def bind(cls, node: Any, xp: Any) -> Callable[[Any, Any], Any]:
        draw, stream, dtype = cls.draw, stream_of(node), node["dtype"].as_numpy_dtype
        return lambda ctx, shape: xp.asarray(draw(stream(ctx), sizes(shape), dtype))

    def flops(node: Any, ins: Any, outs: Any) -> int:
        return PER_NUMBER * elements(outs[0])


_NUMBERS = """(shape: T) -> (output: dtype)
       seed: int = 0
       seed2: int = 0
       dtype: {half, bfloat16, float, double}
       T: {int32, int64}"""


@op(f"RandomUniform{_NUMBERS}")
class RandomUniform(_RandomNumbers):
    draw = PhiloxStream.uniform


@op(f"RandomStandardNormal{_NUMBERS}")
class RandomStandardNormal(_RandomNumbers):
    draw = PhiloxStream.normal


@op(f"TruncatedNormal{_NUMBERS}")
class TruncatedNormal(_RandomNumbers):
    draw = PhiloxStream.truncated_normal


@op("""RandomUniformInt(shape: T, minval: Tout, maxval: Tout) -> (output: Tout)
       seed: int = 0
       seed2: int = 0
       Tout: {int32, int64}
       T: {int32, int64}""")
class RandomUniformInt(Op):
    stateful = True
    needs_ctx = True
    infer = _RandomNumbers.infer
    flops = _RandomNumbers.flops

    def bind(node, xp):
        stream, dtype = stream_of(node), node["Tout"].as_numpy_dtype

        def draw(ctx, shape, minval, maxval):
            return xp.asarray(stream(ctx).uniform_int(int(minval), int(maxval), sizes(shape), dtype))

        return draw


@op("""RandomShuffle(value: T) -> (output: T)
       seed: int = 0
       seed2: int = 0
       T: type""")
class RandomShuffle(Op):
    stateful = True
    needs_ctx = True
    infer = shapes.unchanged
    grad = no_gradient

    def bind(node, xp):
        stream = stream_of(node)
        return lambda ctx, value: stream(ctx).shuffle(np.asarray(value))


# -- functions ----------------------------------------------------------------------------------------


def shape_tensor(shape: Any) -> Tensor:
    if not isinstance(shape, tuple | list):
        return convert_to_tensor(shape, name="shape")
    sizes = tuple(map(dimension_value, shape))
    return convert_to_tensor(sizes, None if sizes else dtypes.int32, name="shape")


def random_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Normal numbers of that mean and standard deviation."""
    return _normal("random_normal", "RandomStandardNormal", shape, mean, stddev, dtype, seed, name)


def truncated_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Normal numbers, those more than two deviations from the mean drawn again."""
    return _normal("truncated_normal", "TruncatedNormal", shape, mean, stddev, dtype, seed, name)


def _normal(
    what: str,
    op_type: str,
    shape: Any,
    mean: Any,
    stddev: Any,
    dtype: Any,
    seed: int | None,
    name: str | None,
) -> Tensor:
    with name_scope(name, what, [shape, mean, stddev]) as scope:
        sizes_ = shape_tensor(shape)
        mean = convert_to_tensor(mean, dtype, name="mean")
        stddev = convert_to_tensor(stddev, dtype, name="stddev")
        seed1, seed2 = random_seed.get_seed(seed)
        numbers = apply_op(op_type, shape=sizes_, dtype=dtype, seed=seed1, seed2=seed2)
        return apply_op("AddV2", scope, x=apply_op("Mul", "mul", x=numbers, y=stddev), y=mean)


_UNIFORM_TYPES = (
    dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64,
)  # fmt: skip


def random_uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Numbers in [minval, maxval), [0, 1) unless told otherwise; integers need a `maxval`."""
    dtype = dtypes.as_dtype(dtype)
    if dtype not in _UNIFORM_TYPES:
        raise ValueError(f"Argument `dtype` got invalid value {dtype}. Accepted dtypes are {_UNIFORM_TYPES}.")
    if maxval is None:
        if dtype.is_integer:
            raise ValueError(f"Must specify maxval for integer dtype {dtype!r}")
        maxval = 1
    with name_scope(name, "random_uniform", [shape, minval, maxval]) as scope:
        return _uniform(shape_tensor(shape), minval, maxval, dtype, seed, scope)


def _uniform(shape: Tensor, minval: Any, maxval: Any, dtype: DType, seed: int | None, scope: str) -> Tensor:
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
