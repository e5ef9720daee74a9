"""Forwarding: an element-wise kernel writes its result into an input's buffer that nobody else can see.

Stands for `OpKernelContext::forward_input` in `core/framework/op_kernel.cc`.

Rule: in TensorFlow, the buffer must have one reference, and so it must here. The interpreter counts: an array may be
overwritten if its only holders are the arguments of the running kernel, it owns its memory and has the result's shape.
Anything else that looks at a value, be it another node, a variable, a view, a trace or the client, holds a reference,
so that the kernel takes a new array. The bits are the same either way.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from numpy import ndarray

from dtflab.base.ownership import SOLE_ARGUMENT, holders
from dtflab.ops.cell import Cell


def forwarding(into: Callable[..., Any], kernel: Callable[..., Any], inputs: int) -> Callable[..., Any]:
    """`kernel` as the executor calls it: as `into(…, out=x)` if it may overwrite its input x, else as it is.

    Only for the executor's calls, which hand over what an edge holds; another caller's argument would be overwritten.
    """
    return _unary(into, kernel) if inputs == 1 else _binary(into, kernel)


def _unary(into: Callable[..., Any], kernel: Callable[..., Any]) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        if type(x) is ndarray and holders(x) <= SOLE_ARGUMENT and _is_own(x):
            return into(x, out=x)
        return kernel(x)

    return run


def _binary(into: Callable[..., Any], kernel: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    def run(x: Any, y: Any) -> Any:
        if type(x) is ndarray and holders(x) <= SOLE_ARGUMENT and _fits(y, x) and _is_own(x):
            return into(x, y, out=x)
        if type(y) is ndarray and holders(y) <= SOLE_ARGUMENT and _fits(x, y) and _is_own(y):
            return into(x, y, out=y)
        return kernel(x, y)

    run.reading = functools.partial(_reading, into, kernel)  # type: ignore[attr-defined]
    return run


def _reading(into: Callable[..., Any], kernel: Callable[..., Any], position: int) -> Callable[[Any, Any], Any]:
    """The kernel where the input at `position` is a variable: read here, since one call more would count as a holder.

    The variable's own array is never overwritten, only the other input.
    """

    def second(x: Any, y: Any) -> Any:
        y = y.read() if isinstance(y, Cell) else y
        if type(x) is ndarray and holders(x) <= SOLE_ARGUMENT and _fits(y, x) and _is_own(x):
            return into(x, y, out=x)
        return kernel(x, y)

    def first(x: Any, y: Any) -> Any:
        x = x.read() if isinstance(x, Cell) else x
        if type(y) is ndarray and holders(y) <= SOLE_ARGUMENT and _fits(x, y) and _is_own(y):
            return into(x, y, out=y)
        return kernel(x, y)

    return second if position else first


def reading(kernel: Callable[..., Any], positions: Sequence[int]) -> Callable[..., Any]:
    """`kernel` with the variables among its arguments read when it starts."""
    if len(positions) == 1 and hasattr(kernel, "reading"):
        return kernel.reading(positions[0])

    def run(*args: Any) -> Any:
        values = list(args)
        for p in positions:
            if isinstance(values[p], Cell):  # not so at a dead input of a Merge or a _Send
                values[p] = values[p].read()
        return kernel(*values)

    return run


def _fits(x: Any, out: Any) -> bool:
    """True if the result of x and `out` has the shape of `out`: x is repeated along its first axes, if at all."""
    shape = x.shape
    return bool(out.shape[out.ndim - len(shape) :] == shape)


def _is_own(x: Any) -> bool:
    return x.ndim > 0 and x.base is None and x.flags.writeable
