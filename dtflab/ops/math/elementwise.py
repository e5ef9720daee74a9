"""Kernels of element-wise ops, and how one line of a table defines an op.

Stands for `core/kernels/cwise_ops_common.h`.

Rule: where NumPy's ufunc (or operator) does exactly what TensorFlow does, that *is* the kernel, with no Python
around it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, op
from dtflab.ops import shapes
from dtflab.ops.gradient_rules import Grad

Bind = Callable[[Any, Any], Callable[..., Any]]  # (node, xp) -> kernel


# With arrays an operator calls the ufunc of that name. With NumPy's scalars it gives the same bits in a tenth of the
# time (50 ns), but for complex products.
_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "negative": operator.neg,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}

LARGE = 1 << 18  # elements; fewer are never worth a second thread
LINE = 64  # elements: parts begin at multiples of it, where NumPy's vector instructions do, so that no bit differs
NANOSECONDS_PER_ELEMENT = 0.25  # exp of a float: 0.32, tanh: 0.19


def ufunc(name: str) -> Bind:
    """The kernel is that function of the array module, or the operator for it."""

    def bind(node: Node, xp: Any) -> Callable[..., Any]:
        if name in _OPERATORS and not node["T"].is_complex:
            return _OPERATORS[name]
        return getattr(xp, name)

    return bind


def into(name: str) -> Bind:
    """An `into` rule: that ufunc, whose result has the type of its inputs."""
    return lambda node, xp: getattr(xp, name)


def in_parts(rule: Bind) -> Bind:
    """The kernel is the function of one argument that `rule` gives, over a large array in parts."""

    def bind(node: Node, xp: Any, shard: Any = None) -> Callable[..., Any]:
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


def unary(op_name: str, types: str, kernel: str | Bind, grad: Grad | None, result: str = "T") -> None:
    """Register the op `op_name(x: T) -> (y: result)`, whose `kernel` is the name of a ufunc or a `bind` rule.

    `grad` is None where TensorFlow has no gradient.
    """
    members: dict[str, Any] = {"infer": shapes.unchanged, "bind": kernel, "grad": grad}
    if isinstance(kernel, str):
        members["bind"] = in_parts(ufunc(kernel))
        if result == "T":
            members |= {"into": in_parts(into(kernel)), "shards": True}
    op(f"{op_name}(x: T) -> (y: {result}) where T: {types}")(type(op_name, (Op,), members))


def binary(interface: str, kernel: str | Bind, grad: Grad | None, **members: Any) -> None:
    """Register a broadcasting op of this interface, whose `kernel` is the name of a ufunc or a `bind` rule."""
    rule = ufunc(kernel) if isinstance(kernel, str) else kernel
    members |= {"infer": shapes.broadcast, "bind": rule, "grad": grad}
    op(interface)(type(interface.partition("(")[0], (Op,), members))
