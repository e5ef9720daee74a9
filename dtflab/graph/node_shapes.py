"""Static shapes of nodes that have left their graph, as the ops' own rules infer them.

Stands for `core/common_runtime/shape_refiner.cc`. Left out: what a program said by `set_shape`, which no node carries.

Rule: producers come first; the edge from a loop's NextIteration back to its Merge adds nothing new.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dtflab.graph import op_registry
from dtflab.graph.graph import Graph, infer_shapes
from dtflab.graph.loops import topological
from dtflab.graph.node import Node
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.tensor_shape import TensorShape


def static_shapes(nodes: Sequence[Node], known: Mapping[str, Any] | None = None) -> dict[str, list[TensorShape]]:
    """The shapes of all outputs, by name of the node; what can't be known is unknown.

    `known` are shapes of first outputs that the caller knows better, by name: of what it will feed.
    InvalidArgumentError for a cycle that is not a loop.
    """
    graph, ops = Graph(), dict[str, Operation]()
    for node in topological(nodes):
        inputs = [ops[name].outputs[output] if name in ops else None for name, output in node.inputs]
        op = graph._import_op(op_registry.get(node.op), node.name, _closed(inputs), dict(node.attrs), "")
        ops[node.name] = op
        infer_shapes(op)
        if known and node.name in known:
            op.outputs[0].set_shape(known[node.name])
    return {name: shapes_of(op) for name, op in ops.items()}


def shapes_of(op: Operation) -> list[TensorShape]:
    """The shapes of an op's outputs; the space reserved for cuDNN, whose size TensorFlow leaves open, is empty here."""
    shapes = [tensor.shape for tensor in op.outputs]
    for index, arg in enumerate(op.op_def.outputs):
        if arg.name.startswith("reserve_space") and shapes[index].rank is None:
            shapes[index] = TensorShape([0])
    return shapes


def _closed(inputs: Sequence[Tensor | None]) -> list[Tensor]:
    """The inputs of a Merge before its loop is closed: the first stands for what will come."""
    first = next((tensor for tensor in inputs if tensor is not None), None)
    return [tensor if tensor is not None else first for tensor in inputs]  # type: ignore[misc]
