"""Checks inside a graph: Assert and CheckNumerics.

Stands for `kernels/logging_ops.cc` (Assert), `check_numerics_op.cc`, `python/ops/control_flow_assert.py`.
The functions of `tf.debugging` are made of Assert (assertions.py).

Rule: a check is an operation like any other. It runs only if something that runs depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.scopes import colocate_with, name_scope
from dtflab.ops import shapes
from dtflab.ops.control.cond import cond
from dtflab.ops.control.control_flow import no_op, with_dependencies
from dtflab.ops.costs import free
from dtflab.ops.messages import invalid, renamed
from dtflab.ops.summaries.summarize import summarize_value


@op("""Assert(condition: bool, data: T) -> ()
       T: list(type) >= 1
       summarize: int = 3""")
class Assert_(Op):
    stateful = True
    infer = shapes.none
    flops = bytes = free
    grad = no_gradient

    def bind(node, xp):
        def check(condition, *data):
            if not condition:
                said = " ".join(f"[{summarize_value(value, node['summarize'])}]" for value in data)
                raise invalid(f"assertion failed: {said}")

        return check


def Assert(condition: Any, data: Sequence[Any], summarize: int | None = None, name: str | None = None) -> Operation:
    """An operation that fails with InvalidArgumentError, showing `data`, if `condition` is false.

    It runs only if something depends on it: `with tf.control_dependencies([tf.Assert(...)]):`.
    """
    # As TensorFlow: a `cond` around the op, to spare the copy from a GPU of data that may lie there.
    with name_scope(name, "Assert", [condition, *data]):
        tensors = [convert_to_tensor(value) for value in data]

        def check() -> Operation:
            return apply_op("Assert", "Assert", condition=condition, data=list(data), summarize=summarize)

        if all(t.dtype in (dtypes.string, dtypes.int32) for t in tensors):
            return check()
        condition = convert_to_tensor(condition, name="Condition")
        guarded: Tensor = cond(condition, no_op, check, name="AssertGuard")
        return guarded.op


@op("""CheckNumerics(tensor: T) -> (output: T)
       T: {bfloat16, half, float, double}
       message: string""")
class CheckNumerics(Op):
    stateful = True
    aliasing = True
    infer = shapes.unchanged

    def bind(node, xp):
        def check(tensor):
            if not xp.isfinite(tensor).all():
                kinds = [
                    word for word, found in (("Inf", xp.isinf(tensor).any()), ("NaN", xp.isnan(tensor).any())) if found
                ]
                raise invalid(f"{node['message'].decode()} : Tensor had {' and '.join(kinds)} values")
            return tensor

        return check

    def grad(operation, dy):
        told = operation.get_attr("message").decode()
        message = f"Not a number (NaN) or infinity (Inf) values detected in gradient. {told}"
        return [check_numerics(dy, message)]


def verify_tensor_all_finite(
    t: Any = None, msg: str | None = None, name: str | None = None, x: Any = None, message: str | None = None
) -> Tensor:
    """`t` after the check that no element is infinite or no number; else InvalidArgumentError with `msg`.

    `x` and `message` are other names of these arguments.
    """
    x, message = renamed("x", x, "t", t), renamed("message", message, "msg", msg)
    with name_scope(name, "VerifyFinite", [x]):
        x = convert_to_tensor(x, name="x")
        with colocate_with(x):
            return with_dependencies([check_numerics(x, message or "")], x)


def check_numerics(tensor: Any, message: str, name: str | None = None) -> Tensor:
    """`tensor`, or InvalidArgumentError with `message` if an element is infinite or no number."""
    return apply_op("CheckNumerics", name, tensor=tensor, message=message)
