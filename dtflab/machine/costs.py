"""Costs: which kernels take long enough to be worth a thread of their own.

Stands for `KernelStats` and `OpKernel::IsExpensive` of TensorFlow's executor, which go by measured time. Here the sizes
of the arrays decide, so that a program runs the same way every time.

Rule: a hop to another thread costs some 10 µs, 90 on busy cores; what goes to a pool takes about 300 or more, or may
wait for something that another node does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dtflab.graph import op_registry
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op

COSTLY_FLOPS = 50_000_000  # of a matrix product; 300 to 500 µs on one core
COSTLY_ELEMENTS = 1 << 20  # of whatever else; 1 million exponentials take 350 µs

Rule = Callable[[Sequence[Any]], bool]  # arguments → is the kernel costly with them?


def known(node: Node, most: float = math.inf) -> Rule:
    """The rule of an op that has one before it runs: a product's shapes give its cost; the program's code may wait.

    A kernel of `most` operations keeps all cores busy, so that it is better off where it is.
    """
    op = op_registry.get(node.op)
    if op.calls_program:
        return lambda args: True
    return lambda args: COSTLY_FLOPS < op.flops(node, args, ()) < (most if op.shards else math.inf)


def is_learned(op: type[Op]) -> bool:
    """True if a run shows what a node of this op class costs: it makes one array of others and touches nothing else."""
    special = op.stateful or op.aliasing or op.needs_ctx or op.is_async or op.control_flow
    alone = len(op.op_def.outputs) == 1 and not op.op_def.outputs[0].is_list
    return alone and not special and not any(arg.is_ref for arg in op.op_def.inputs)


def learned(node: Node, args: Sequence[Any], value: Any) -> Rule | None:
    """The rule of a node that has just run; None if it is cheap."""
    op = op_registry.get(node.op)
    if op.blas:
        return known(node) if op.flops(node, args, ()) > COSTLY_FLOPS / 10 else None
    largest = _largest(args)
    if max(largest, np.size(value)) < COSTLY_ELEMENTS:
        return None
    if op.flops(node, args, (value,)) < COSTLY_ELEMENTS:
        return None
    return lambda args: _largest(args) >= min(largest, COSTLY_ELEMENTS)


def _largest(args: Sequence[Any]) -> int:
    return max((getattr(x, "size", 0) for x in args), default=0)
