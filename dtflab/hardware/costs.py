"""Costs: what an op computes and moves, and how long a processor takes for it.

Stands for `core/grappler/costs/op_level_cost_estimator.cc`. Left out: caches, and kernels that run side by side on one
GPU. The cost of an op is in its class: `flops` and `bytes`.

Rule: the roofline. A kernel is launched, then it waits for its arithmetic or for its memory, whichever takes longer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dtflab.graph import dtypes, op_registry
from dtflab.graph.dtypes import DType
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.tensor_shape import TensorShape
from dtflab.hardware.parts import Processor
from dtflab.ops.cell import Cell
from dtflab.ops.costs import free

EFFICIENCY = 0.5  # assumed: kernels of cuDNN and MKL reach 0.3 to 0.8 of a peak; no figure holds for all models


@dataclass(frozen=True)
class Cost:
    """Work of a kernel: `flops` operations (a fused multiply-add is two), `bytes` read and written in memory."""

    flops: int
    bytes: int

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.flops + other.flops, self.bytes + other.bytes)


@dataclass(frozen=True)
class Sized:
    """A tensor of which only shape and dtype are known: what the rules of ops take in place of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return op_registry.elements(self)

    @property
    def nbytes(self) -> int:
        return self.size * int(self.dtype.itemsize)


HANDLE = Sized((), np.dtype(object))  # a queue, a variable, a data set: not what is in it


def of_node(node: Node, ins: Sequence[Any], outs: Sequence[Any], batch: int | None = None) -> Cost:
    """The cost of one run of `node`, whose inputs and outputs are arrays, Tensors, TensorShapes or tuples of sizes.

    `batch` replaces an unknown first dimension. Raises ValueError naming the op if another dimension is unknown.
    """
    op = op_registry.get(node.op)
    given = [_sized(node, x, dtype, batch) for x, dtype in zip(ins, op.op_def.input_types(node.attrs), strict=True)]
    made = [_sized(node, x, dtype, batch) for x, dtype in zip(outs, node.output_types, strict=True)]
    return Cost(int(op.flops(node, given, made)), int(op.bytes(node, given, made)))


def of_op(operation: Operation, batch: int | None = None) -> Cost:
    """The cost of an operation of a graph by its static shapes, as of_node."""
    return of_node(operation.node(), list(operation.inputs), operation.outputs, batch)


def seconds(
    cost: Cost, processor: Processor, dtype: Any = "float32", efficiency: float = EFFICIENCY, cores: int = 1
) -> float:
    """Seconds that a kernel of that cost takes: launch + max(flops / (peak · efficiency), bytes / memory bandwidth).

    A GPU runs one kernel at a time, on all its multiprocessors. On a CPU a kernel has `cores` of the host's and that
    share of its bandwidth, so that kernels on all cores together are never faster than the host. A kernel that neither
    computes nor moves anything, such as a reshape, is not launched: 0 s. Raises ValueError unless efficiency is above
    0.
    """
    if not efficiency > 0:
        raise ValueError(f"efficiency is {efficiency!r}, but must be above 0: it is a share of the peak.")
    if not cost.flops and not cost.bytes:
        return 0.0
    share = min(cores / processor.cores, 1.0) if processor.kind == "CPU" else 1.0
    computing = cost.flops / (processor.peak(dtype) * share * efficiency)
    return processor.launch_s + max(computing, cost.bytes / (processor.memory_bandwidth * share))


def dtype_of(node: Node) -> str:
    """The name of the dtype in which a node computes, for `seconds`."""
    said = [node.attrs[attr] for attr in ("dtype", "T") if isinstance(node.attrs.get(attr), DType)]
    return next((dtype.base_dtype.name for dtype in [*said, *node.output_types]), "float32")


def is_free(op: type[Op]) -> bool:
    """True for an op class that takes no time on a device.

    Those are values that exist already (constants, feeds), control flow (NoOp, Switch, Merge, Enter, …), transfers,
    whose time is that of the links (_Send, _Recv), ops that wait for others (dequeue, take_grad, a data set's next),
    and ops that neither compute nor move anything (Reshape, Identity); the last need not wait for their device either.
    """
    return (op.flops is free and op.bytes is free) or bool(op.control_flow) or op.is_async


def _sized(node: Node, x: Any, dtype: DType, batch: int | None) -> Any:
    """The argument of an op's rules: an array as it is, else its shape."""
    if isinstance(x, Cell):  # a variable by reference
        return x.value if x.initialized else Sized((), _numpy_dtype(dtype))
    if not isinstance(x, Tensor | TensorShape | tuple | list):
        return x
    shape = x.shape if isinstance(x, Tensor) else TensorShape(x)
    sizes = [None] if shape.rank is None else shape.as_list()
    if shape.rank and sizes[0] is None:
        sizes = [batch, *sizes[1:]]
    known = tuple(size for size in sizes if size is not None)
    if len(known) < len(sizes):
        given = "Give `batch`, make" if batch is None else f"batch={batch} is a first dimension only: make"
        raise ValueError(
            f"The cost of op {node.name!r} ({node.op}) is unknown: one of its shapes is {shape}. {given} the shape "
            "static (set_shape, a placeholder with a shape), or pass the arrays themselves."
        )
    return Sized(known, _numpy_dtype(dtype))


def _numpy_dtype(dtype: DType) -> np.dtype[Any]:
    """The dtype of arrays; handles and variants are objects."""
    plain = dtype.base_dtype
    return np.dtype(object if plain in (dtypes.resource, dtypes.variant) else plain.as_numpy_dtype)
