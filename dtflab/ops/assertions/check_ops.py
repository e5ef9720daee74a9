"""Checks inside a graph, the ops: Assert and CheckNumerics.

Stands for `kernels/logging_ops.cc` (Assert) and `check_numerics_op.cc`. The functions of `tf.debugging` make Asserts.

Rule: a check is an operation like any other. It runs only if something that runs depends on it.
"""

from __future__ import annotations

from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.ops import shapes
from dtflab.ops.assertions.functions import check_numerics
from dtflab.ops.costs import FreeOp
from dtflab.ops.messages import invalid
from dtflab.ops.summaries.summarize import summarize_value


@op("Assert(condition: bool, data: T) -> () where T: list(type) >= 1, summarize: int = 3")
class Assert(FreeOp):
    """Nothing if `condition` is true; else the error that shows the first `summarize` elements of each of `data`."""

    stateful = True
    infer = shapes.none
    grad = no_gradient

    def kernel(node, xp, condition, *data):
        if not condition:
            said = " ".join(f"[{summarize_value(value, node['summarize'])}]" for value in data)
            raise invalid(f"assertion failed: {said}")


@op("CheckNumerics(tensor: T) -> (output: T) where T: {bfloat16, half, float, double}, message: string")
class CheckNumerics(Op):
    """The tensor; the error with `message` if an element is infinite or not a number."""

    stateful = True
    aliasing = True
    infer = shapes.unchanged

    def kernel(node, xp, tensor):
        if not xp.isfinite(tensor).all():
            found = {"Inf": xp.isinf(tensor).any(), "NaN": xp.isnan(tensor).any()}
            kinds = " and ".join(word for word, is_there in found.items() if is_there)
            raise invalid(f"{node['message'].decode()} : Tensor had {kinds} values")
        return tensor

    def grad(operation, dy):
        message = operation.get_attr("message").decode()
        found = "Not a number (NaN) or infinity (Inf) values detected in gradient."
        return [check_numerics(dy, f"{found} {message}")]
