"""Gradients that many ops share; each takes an Operation and the gradients of its outputs.

Stands for the helpers of `python/ops/math_grad.py`. Holds no op.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import control_dependencies
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.math import functions as math
from dtflab.ops.reduce import functions as reduce

Grad = Callable[..., list[Any]]  # (op, *dys) -> one tensor or None per input


def no_slope(op: Operation, *dys: Any) -> list[None]:
    """The gradient of a step function: none, wherever it has one."""
    return [None] * len(op.inputs)


def from_input(rule: Callable[[Tensor, Tensor], Any]) -> Grad:
    """The gradient `rule(x, dy)`, for complex numbers with the conjugate of x.

    Nothing of it runs before `dy` is there, as in TensorFlow: what would wait in memory is made later.
    """

    def grad(op: Operation, dy: Any) -> list[Any]:
        with control_dependencies([dy]):
            return [rule(math.conj(op.inputs[0]), dy)]

    return grad


def from_output(rule: Callable[[Tensor, Tensor], Any]) -> Grad:
    """The gradient `rule(y, dy)`, from the op's output; otherwise as `from_input`."""

    def grad(op: Operation, dy: Any) -> list[Any]:
        with control_dependencies([dy]):
            return [rule(math.conj(op.outputs[0]), dy)]

    return grad


def summed(grad: Any, axes: Any, shape: Any) -> Tensor:
    """The gradient of an input of that shape, which was repeated along these axes."""
    return arrays.reshape(reduce.reduce_sum(grad, axes), shape)


def reduce_to_inputs(x: Tensor, y: Tensor, dx: Any, dy: Any) -> list[Any]:
    """Sum the gradients of a broadcasting op's inputs over the axes along which each input was repeated."""
    if dx is None and dy is None:
        return [None, None]
    x_shape, y_shape = arrays.shape(x), arrays.shape(y)
    axes = _repeated_axes(x, y)
    if axes is None:
        x_axes, y_axes = arrays.broadcast_gradient_args(x_shape, y_shape)
        reduce_x = reduce_y = True
    else:
        x_axes, y_axes = axes
        x_rank, y_rank = x.shape.ndims, y.shape.ndims
        assert x_rank is not None and y_rank is not None  # else _repeated_axes had not known
        reduce_x, reduce_y = bool(x_axes) or x_rank < y_rank, bool(y_axes) or y_rank < x_rank

    def reduced(grad: Any, shape: Tensor, axes: Any, needed: bool) -> Any:
        if grad is None or not needed:
            return grad
        return arrays.reshape(reduce.reduce_sum(grad, axes, keepdims=True), shape)

    return [reduced(dx, x_shape, x_axes, reduce_x), reduced(dy, y_shape, y_axes, reduce_y)]


def _repeated_axes(x: Tensor, y: Tensor) -> tuple[list[int], list[int]] | None:
    """The axes of the result along which x and y were repeated, or None if the static shapes do not show it."""
    if x.shape.ndims is None or y.shape.ndims is None:
        return None
    rank = max(x.shape.ndims, y.shape.ndims)
    x_dims, y_dims = ([*[1] * (rank - len(t.shape)), *t.shape.as_list()] for t in (x, y))
    x_axes, y_axes = [], []
    for axis, (a, b) in enumerate(zip(x_dims, y_dims)):
        if a == 1 and b != 1:
            x_axes.append(axis)
        elif b == 1 and a != 1:
            y_axes.append(axis)
        elif a is None or b is None:
            return None
    return x_axes, y_axes


def same_static_shapes(*tensors: Any) -> bool:
    """True if all are tensors, not IndexedSlices, of one fully known shape."""
    if not all(isinstance(t, Tensor) for t in tensors):
        return False
    return tensors[0].shape.is_fully_defined() and all(t.shape == tensors[0].shape for t in tensors)
