"""Fractional pooling: windows of two sizes in random order, so that an image shrinks by less than a half.

Stands for `core/kernels/fractional_{pool_common,max_pool_op,avg_pool_op}.cc` and their functions in `tf.nn`.

Rule: the random numbers are TensorFlow's, and so are the windows; on CPUs only, as there. One pass over the images for
each place in the largest window.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dtflab.base.errors import UnimplementedError
from dtflab.graph.apply_op import apply_op
from dtflab.graph.dtypes import as_dtype
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Operation
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.costs import of_inputs
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.philox import PhiloxStream, stream_of, uniform_double

_ATTRS = """
    pooling_ratio: list(float) >= 4, pseudo_random: bool = false, overlapping: bool = false
    deterministic: bool = false, seed: int = 0, seed2: int = 0, T: {float, double, int32, int64}"""
_GRAD_ATTRS = "\noverlapping: bool = false, T: {float, double, int32, int64}"
_OUTPUTS = "(output: T, row_pooling_sequence: int64, col_pooling_sequence: int64)"


# -- where the windows are ------------------------------------------------------------------------------------


def _drawn(stream: PhiloxStream, count: int) -> Any:
    """That many words of 32 bits, in rows of four."""
    counters = -(-count // 4)
    return stream.stretch(counters)(np.arange(counters, dtype=np.uint64))


def _evenly(stream: PhiloxStream, size: int, windows: int) -> Any:
    """Widths that follow from one random number, and are spread evenly."""
    alpha, k = size / windows, size // windows
    limit = min((k + 2) / alpha - 1, (size + 1 - k) / alpha - (windows - 1))
    u = float(uniform_double(_drawn(stream, 2))[0, 0]) * limit
    return np.diff([1, *(math.ceil(alpha * (i + u)) for i in range(1, windows)), size + 1])


def _shuffled(stream: PhiloxStream, size: int, windows: int) -> Any:
    """Widths in any order."""
    widths = [size // windows + (i < size % windows) for i in range(windows)]
    words = _drawn(stream, windows).reshape(-1).tolist()
    for i in range(windows - 1):
        other = i + words[i] % (windows - i)
        widths[i], widths[other] = widths[other], widths[i]
    return np.array(widths)


def _starts(node: Node, stream: PhiloxStream, size: int, ratio: float) -> Any:
    """Where the windows along one dimension start, and where the last one ends."""
    widths = _evenly if node["pseudo_random"] else _shuffled
    return np.concatenate([[0], np.cumsum(widths(stream, size, math.floor(size / ratio)))]).astype(np.int64)


def _places(starts: Any, size: int, overlapping: bool) -> Iterator[tuple[Any, Any]]:
    """For each place in the largest window along one dimension: the elements there, and the windows that have it."""
    ends = np.minimum(starts[1:] + overlapping, size)
    for k in range(int((ends - starts[:-1]).max(initial=0))):
        here = np.flatnonzero(starts[:-1] + k < ends)
        yield starts[here] + k, here


def _positions(node: Node, shape: Any, rows: Any, columns: Any) -> Iterator[tuple[Any, Any]]:
    """The windows along both dimensions, as indices of the images and of the result."""
    overlapping = node["overlapping"]
    for r, in_rows in _places(rows, shape[1], overlapping):
        for c, in_columns in _places(columns, shape[2], overlapping):
            yield (slice(None), r[:, None], c), (slice(None), in_rows[:, None], in_columns)


def _counts(node: Node, shape: Any, rows: Any, columns: Any) -> Any:
    """How many elements each window has."""
    counts = np.zeros((1, len(rows) - 1, len(columns) - 1, 1), np.int64)
    for _, here in _positions(node, shape, rows, columns):
        counts[here] += 1
    return counts


# -- kernels --------------------------------------------------------------------------------------------------


def _bind(pool: Callable[..., Any]) -> Callable[[Any, Any], Callable[..., Any]]:
    """The kernel that draws the windows, and then pools."""

    def bind(node: Node, xp: Any) -> Callable[..., Any]:
        stream, ratios = stream_of(node), node["pooling_ratio"]

        def draw(ctx: Any, shape: Any) -> Any:
            return [_starts(node, stream(ctx), shape[i], ratios[i]) for i in (1, 2)]

        def kernel(ctx: Any, x: Any) -> list[Any]:
            _check_attrs(node)
            if x.ndim != 4:
                raise invalid(f"tensor_in must be 4-dimensional, got shape {shape_text(x)}")
            again, made = node["deterministic"], functools.partial(draw, ctx, x.shape)
            rows, columns = ctx.state(f"{node.name}/windows", made) if again else made()
            return [pool(node, x, rows, columns), rows, columns]

        return kernel

    return bind


def _check_attrs(node: Node) -> None:
    """An OpError if the attributes are none that TensorFlow takes."""
    ratios = node["pooling_ratio"]
    if ratios[0] != 1 or ratios[3] != 1:
        raise UnimplementedError.of("Fractional pooling is not yet supported on the batch nor channel dimension.")
    if not node["deterministic"] and (node["seed"] or node["seed2"]):
        raise invalid("Both seed and seed2 should be 0 if deterministic is false.")


def _largest(node: Node, x: Any, rows: Any, columns: Any) -> Any:
    y = np.full((len(x), len(rows) - 1, len(columns) - 1, x.shape[3]), as_dtype(x.dtype).min, x.dtype)
    for there, here in _positions(node, x.shape, rows, columns):
        y[here] = np.maximum(y[here], x[there])
    return y


def _mean(node: Node, x: Any, rows: Any, columns: Any) -> Any:
    y = np.zeros((len(x), len(rows) - 1, len(columns) - 1, x.shape[3]), x.dtype)
    for there, here in _positions(node, x.shape, rows, columns):
        y[here] += x[there]
    counts = _counts(node, x.shape, rows, columns).astype(x.dtype)
    return y / counts if x.dtype.kind == "f" else (y - np.fmod(y, counts)) // counts


def _output_shape(op: Operation) -> list[TensorShape]:
    """The images smaller by the ratios, and two lists of starts, longer by one than TensorFlow's rule says."""
    ratios = op.get_attr("pooling_ratio")
    if len(ratios) != 4:
        raise ValueError("pooling_ratio field must specify 4 dimensions")
    sizes = op.inputs[0].shape.with_rank(4).as_list()
    sizes = [None if n is None else math.floor(n / ratio) for n, ratio in zip(sizes, ratios)]
    return [TensorShape(sizes), *(TensorShape([n]) for n in sizes[1:3])]


class _Fractional(Op):
    """Base of the two."""

    flops = of_inputs
    needs_ctx = True
    infer = _output_shape


def _back(op: Operation, dy: Any, **given: Any) -> list[Any]:
    """The gradient op, with what both take."""
    given |= {"row_pooling_sequence": op.outputs[1], "col_pooling_sequence": op.outputs[2]}
    return [apply_op(f"{op.type}Grad", **given, out_backprop=dy, overlapping=op.get_attr("overlapping"))]


@op(f"FractionalMaxPool(value: T) -> {_OUTPUTS}{_ATTRS}")
class FractionalMaxPool(_Fractional):
    """The largest of each window."""

    bind = _bind(_largest)

    def grad(op, dy, *unused):
        return _back(op, dy, orig_input=op.inputs[0], orig_output=op.outputs[0])


@op(f"FractionalAvgPool(value: T) -> {_OUTPUTS}{_ATTRS}")
class FractionalAvgPool(_Fractional):
    """The mean of each window."""

    bind = _bind(_mean)

    def grad(op, dy, *unused):
        shape = op.inputs[0].shape
        if not shape.is_fully_defined():
            raise ValueError(f"The gradient of FractionalAvgPool needs a static shape, not {shape}")
        return _back(op, dy, orig_input_tensor_shape=shape.as_list())


@op(f"""FractionalMaxPoolGrad(orig_input: T, orig_output: T, out_backprop: T, row_pooling_sequence: int64,
                              col_pooling_sequence: int64) -> (output: T){_GRAD_ATTRS}""")
class FractionalMaxPoolGrad(Op):
    """Each output's gradient, at the place its value came from: the first of several equal ones."""

    grad = None

    def infer(op):
        return [op.inputs[0].shape.with_rank(4)]

    def kernel(node, xp, x, y, dy, rows, columns):
        _check(x.shape, dy, rows, columns)
        dx, free = np.zeros(x.shape, x.dtype), np.ones(y.shape, bool)
        for there, here in _positions(node, x.shape, rows, columns):
            chosen = (x[there] == y[here]) & free[here]
            free[here] &= ~chosen
            dx[there] += dy[here] * chosen
        return dx


@op(f"""FractionalAvgPoolGrad(orig_input_tensor_shape: int64, out_backprop: T, row_pooling_sequence: int64,
                              col_pooling_sequence: int64) -> (output: T){_GRAD_ATTRS}""")
class FractionalAvgPoolGrad(Op):
    """An equal part of each output's gradient for every value in its window."""

    grad = None
    infer = shapes.given(0, rank=4)

    def kernel(node, xp, sizes, dy, rows, columns):
        shape = tuple(int(n) for n in sizes)
        _check(shape, dy, rows, columns)
        counts = _counts(node, shape, rows, columns)
        shares, dx = dy / counts, np.zeros(shape)  # float64 for whole numbers, too
        for there, here in _positions(node, shape, rows, columns):
            dx[there] += shares[here]
        return dx.astype(dy.dtype)


def _check(shape: Any, dy: Any, rows: Any, columns: Any) -> None:
    """InvalidArgumentError unless the windows are those of images of this shape."""
    if len(shape) != 4 or dy.shape != (shape[0], len(rows) - 1, len(columns) - 1, shape[3]):
        raise invalid(f"out_backprop {shape_text(dy)} does not fit images of shape {shape_text(shape)} and the windows")
    for starts, size in ((rows, shape[1]), (columns, shape[2])):
        if starts[0] < 0 or starts[-1] > size or (np.diff(starts) < 1).any():
            raise invalid(f"a pooling sequence must go up from 0 to {size}, not {starts.tolist()}")
