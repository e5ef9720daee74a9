"""Costs that ops share: the rules `flops` and `bytes` of those that do not touch all of their inputs and outputs.

Stands for the cases of `core/grappler/costs/op_level_cost_estimator.cc`. Holds no op, but the bases of ops that cost
nothing.

Rule: a kernel reads and writes each byte once, whatever the caches do. A value handed on by reference (a view, a
variable, a handle) is not moved.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, elements, nbytes


def free(node: Node, ins: Any, outs: Any) -> int:
    """Nothing."""
    return 0


class FreeOp(Op):
    """Base of ops that neither compute nor move what their tensors hold."""

    flops = bytes = free


class StatefulOp(FreeOp):
    """Base of free ops whose kernels keep or find something between steps, with the help of the step's context."""

    stateful = needs_ctx = True


def per_input(count: int, index: int = 0) -> Callable[..., int]:
    """`count` operations per element of that input."""
    return lambda node, ins, outs: count * elements(ins[index])


def per_output(count: int) -> Callable[..., int]:
    """`count` operations per element of the first output."""
    return lambda node, ins, outs: count * elements(outs[0])


def of_first(node: Node, ins: Any, outs: Any) -> int:
    """One operation per element of the first input."""
    return elements(ins[0])


def of_inputs(node: Node, ins: Any, outs: Any) -> int:
    """One operation per element that goes in."""
    return sum(map(elements, ins))


def of_part(node: Node, ins: Any, outs: Any) -> int:
    """Bytes where the first input is read only as far as outputs are made of it: a slice, a gather."""
    return sum(map(nbytes, ins[1:])) + 2 * sum(map(nbytes, outs))


def overwritten(node: Node, ins: Any, outs: Any) -> int:
    """Bytes where the last input replaces a part of the first, a variable."""
    return sum(map(nbytes, ins[1:])) + nbytes(ins[-1])


def updated(node: Node, ins: Any, outs: Any) -> int:
    """Bytes where a part of the first input, a variable, is read and written: as much as the last input has."""
    return sum(map(nbytes, ins[1:])) + 2 * nbytes(ins[-1])


def matrices(x: Any) -> tuple[int, int, int]:
    """The number of matrices in x, their rows and columns; all 0 for a vector, which the kernel refuses."""
    *batch, rows, columns = x.shape if len(x.shape) > 1 else (0, 0, 0)
    return math.prod(batch), rows, columns


def cubic(times: int, divisor: int = 1) -> Callable[..., int]:
    """`times / divisor` n³ operations per matrix of the first input, n x n."""

    def flops(node: Node, ins: Any, outs: Any) -> int:
        count, n, _ = matrices(ins[0])
        return count * times * n**3 // divisor

    return flops


def searched(among: int) -> int:
    """Comparisons that a binary search among that many needs."""
    return max(among, 1).bit_length()
