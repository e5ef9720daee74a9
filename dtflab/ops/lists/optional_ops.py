"""Optional values: a value or none, as what a branch leaves for its gradient, which has no value if it was not taken.

Stands for `core/kernels/data/optional_ops.cc` and its part of `core/ops/dataset_ops.cc`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph.apply_op import apply_op
from dtflab.graph.node import Node
from dtflab.graph.op_registry import op
from dtflab.ops import shapes
from dtflab.ops.costs import FreeOp
from dtflab.ops.messages import invalid
from dtflab.ops.variants import Optional


class _OptionalOp(FreeOp):
    aliasing = True
    infer = shapes.scalar


@op("OptionalFromValue(components: Toutput_types) -> (optional: variant) where Toutput_types: list(type) >= 1")
class OptionalFromValue(_OptionalOp):
    def grad(operation, doptional):
        types, shapes = [t.dtype for t in operation.inputs], [t.shape for t in operation.inputs]
        return apply_op("OptionalGetValue", optional=doptional, output_types=types, output_shapes=shapes)

    def bind(node: Node, xp: Any) -> Callable[..., Optional]:
        return lambda *components: Optional(components)


@op("OptionalNone() -> (optional: variant)")
class OptionalNone(_OptionalOp):
    def bind(node: Node, xp: Any) -> Callable[[], Optional]:
        return lambda: Optional(None)


@op("OptionalHasValue(optional: variant) -> (has_value: bool)")
class OptionalHasValue(_OptionalOp):
    def bind(node: Node, xp: Any) -> Callable[[Optional], Any]:
        return lambda optional: np.bool_(optional.values is not None)


@op("""OptionalGetValue(optional: variant) -> (components: output_types)
       output_types: list(type) >= 1, output_shapes: list(shape) >= 1""")
class OptionalGetValue(_OptionalOp):
    def infer(operation):
        return list(operation.attrs["output_shapes"])

    def grad(operation, *dcomponents):
        return [apply_op("OptionalFromValue", components=list(dcomponents))]

    def kernel(node: Node, xp: Any, optional: Optional) -> Any:
        if optional.values is None:
            raise invalid("The given optional does not have a value.")
        return optional.values
