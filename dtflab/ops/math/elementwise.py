"""What element-wise ops share: their types, and how one line defines an op of one input.

Stands for `core/kernels/cwise_ops_common.h`. Holds no op itself.

Rule: where NumPy's ufunc (or operator) does exactly what TensorFlow does, that *is* the kernel, with no Python
around it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph.apply_op import apply_op
from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import control_dependencies
from dtflab.ops import shapes
from dtflab.ops.sparse.sparse_tensor import SparseTensor, of_values

Bind = Callable[[Any, Any], Callable[..., Any]]  # (node, xp) -> kernel
Grad = Callable[..., list[Any]]  # (op, *dys) -> one tensor or None per input
UnaryFunction = Callable[..., Tensor]


# With arrays an operator calls the ufunc of that name. With NumPy's scalars it gives the same bits in a tenth of the
# time (50 ns), but for complex products.
_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "negative": operator.neg,
    "less": operator.lt, "less_equal": operator.le, "greater": operator.gt, "greater_equal": operator.ge,
}  # fmt: skip

LARGE = 1 << 18  # elements; fewer are never worth a second thread
LINE = 64  # elements: parts begin at multiples of it, where NumPy's vector instructions do, so that no bit differs
NANOSECONDS_PER_ELEMENT = 0.25  # exp of a float: 0.32, tanh: 0.19


def ufunc(name: str) -> Bind:
    """The kernel is that function of the array module, or the operator for it."""

    def bind(node: Any, xp: Any) -> Callable[..., Any]:
        if name in _OPERATORS and not node["T"].is_complex:
            return _OPERATORS[name]
        return getattr(xp, name)

    return bind


def into(name: str) -> Bind:
    """An `into` rule: that ufunc, whose result has the type of its inputs."""
    return lambda node, xp: getattr(xp, name)


def in_parts(rule: Bind) -> Bind:
    """The kernel is the function of one argument that `rule` gives, over a large array in parts."""

    def bind(node: Any, xp: Any, shard: Any = None) -> Callable[..., Any]:
        function = rule(node, xp)
        if shard is None or not isinstance(function, np.ufunc):
            return function

        def kernel(x: Any, out: Any = None) -> Any:
            if x.size < LARGE or not x.flags.c_contiguous:
                return function(x, out=out)
            out = np.empty_like(x) if out is None else out
            source, target = x.ravel(), out.ravel()

            def work(first: int, last: int) -> None:
                function(source[first * LINE : last * LINE], out=target[first * LINE : last * LINE])

            shard(-(-x.size // LINE), LINE * NANOSECONDS_PER_ELEMENT, work)
            return out

        return kernel

    return bind


def unary(
    op_name: str, types: str, kernel: str | Bind, grad: Grad | None, summary: str, result: str = "T",
    sparse: bool = False,
) -> UnaryFunction:  # fmt: skip
    """Register the op `op_name(x: T) -> (y: T)` and return its Python function `f(x, name=None)`.

    `kernel` is the name of a ufunc or a `bind` rule; `grad` None means that TensorFlow has no gradient; a `sparse`
    function keeps zeros and so takes SparseTensors, too.
    """
    members: dict[str, Any] = {"__doc__": summary, "infer": shapes.unchanged, "bind": kernel, "grad": grad}
    if isinstance(kernel, str):
        members["bind"] = in_parts(ufunc(kernel))
        if result == "T":
            members |= {"into": in_parts(into(kernel)), "shards": True}
    op(f"{op_name}(x: T) -> (y: {result})\nT: {types}")(type(op_name, (Op,), members))

    def function(x: Any, name: str | None = None) -> Any:
        if sparse and isinstance(x, SparseTensor):
            return of_values(function, x, name, tried=op_name)
        result: Tensor = apply_op(op_name, name, x=x)
        return result

    function.__name__ = function.__qualname__ = op_name.lower()
    function.__doc__ = summary
    return function


def no_slope(op: Any, *dys: Any) -> list[None]:
    """The gradient of a step function: none, wherever it has one."""
    return [None] * len(op.inputs)


def from_input(rule: Callable[[Tensor, Tensor], Any]) -> Grad:
    """The gradient `rule(x, dy)`, for complex numbers with the conjugate of x.

    Nothing of it runs before `dy` is there, as in TensorFlow: what would wait in memory is made later.
    """
    from dtflab.ops.arrays import casting

    def grad(op: Any, dy: Any) -> list[Any]:
        with control_dependencies([dy]):
            return [rule(casting.conj(op.inputs[0]), dy)]

    return grad


def from_output(rule: Callable[[Tensor, Tensor], Any]) -> Grad:
    """The gradient `rule(y, dy)`, from the op's output; otherwise as `from_input`."""
    from dtflab.ops.arrays import casting

    def grad(op: Any, dy: Any) -> list[Any]:
        with control_dependencies([dy]):
            return [rule(casting.conj(op.outputs[0]), dy)]

    return grad


def reduce_to_inputs(x: Tensor, y: Tensor, dx: Any, dy: Any) -> list[Any]:
    """Sum the gradients of a broadcasting op's inputs over the axes along which each input was repeated."""
    if dx is None and dy is None:
        return [None, None]
    from dtflab.ops.arrays import identity as array, repeating, reshaping
    from dtflab.ops.reduce import reduction

    x_shape, y_shape = array.shape(x), array.shape(y)
    axes = _repeated_axes(x, y)
    if axes is None:
        x_axes, y_axes = repeating.broadcast_gradient_args(x_shape, y_shape)
        reduce_x = reduce_y = True
    else:
        x_axes, y_axes = axes
        x_rank, y_rank = x.shape.ndims, y.shape.ndims
        assert x_rank is not None and y_rank is not None  # else _repeated_axes had not known
        reduce_x, reduce_y = bool(x_axes) or x_rank < y_rank, bool(y_axes) or y_rank < x_rank

    def reduced(grad: Any, shape: Tensor, axes: Any, needed: bool) -> Any:
        if grad is None or not needed:
            return grad
        return reshaping.reshape(reduction.reduce_sum(grad, axes, keepdims=True), shape)

    return [reduced(dx, x_shape, x_axes, reduce_x), reduced(dy, y_shape, y_axes, reduce_y)]


def _repeated_axes(x: Tensor, y: Tensor) -> tuple[list[int], list[int]] | None:
    """The axes of the result along which x and y were repeated, or None if the static shapes do not tell."""
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
    """True if all are tensors (no IndexedSlices) of one fully known shape."""
    if not all(isinstance(t, Tensor) for t in tensors):
        return False
    return tensors[0].shape.is_fully_defined() and all(t.shape == tensors[0].shape for t in tensors)
