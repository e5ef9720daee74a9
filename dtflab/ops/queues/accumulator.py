"""Conditional accumulators on a device: the ops that make them, give them gradients, take and ask, in both families.

Stands for `core/kernels/conditional_accumulator_op.cc`, `sparse_conditional_accumulator_op.cc` and their part of
`core/ops/data_flow_ops.cc`.

Rules: an accumulator with a `shared_name` stays in its container until that is reset; one without goes with the
session. Dense ones are found by a resource handle, sparse ones by a reference to two strings (as are dense ones of
old graphs). Who takes holds no thread: it stands in a line (accumulator_state.py) and leaves it if its step is
cancelled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.base import errors
from dtflab.graph.dtypes import DType
from dtflab.graph.op_registry import Op, elements, op
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.costs import free, updated
from dtflab.ops.handles import by_reference, resource_of
from dtflab.ops.messages import dtype_text, invalid
from dtflab.ops.queues.accumulator_state import Accumulator, DenseAccumulator, SparseAccumulator, Take
from dtflab.ops.resource_mgr import name_for
from dtflab.ops.variables.cell import Cell
from dtflab.ops.variables.handle_ops import DEFAULT_CONTAINER, ResourceHandle

ACCUMULATOR_TYPE = "tensorflow::ConditionalAccumulatorBase"

# -- making accumulators --------------------------------------------------------------------------------


class _AccumulatorOp(Op):
    """Gives the handle of an accumulator, which it makes if it is the first to name it."""

    stateful = True
    needs_ctx = True
    flops = bytes = staticmethod(free)
    kind: type[Accumulator] = DenseAccumulator

    @staticmethod
    def infer(operation: Any) -> list[TensorShape]:
        return [TensorShape([2])]

    @classmethod
    def bind(cls, node: Any, xp: Any) -> Callable[[Any], ResourceHandle]:
        container, shared_name = node["container"].decode() or DEFAULT_CONTAINER, node["shared_name"].decode()
        declared = node["dtype"], node["shape"], node["reduction_type"].decode()

        def find(ctx: Any) -> ResourceHandle:
            name = name_for(ctx, node.name, container, shared_name, Accumulator)
            found = ctx.resources.lookup_or_create(container, name, Accumulator, lambda: cls.kind(name, *declared))
            if not isinstance(found, cls.kind):
                raise errors.InternalError.of(f"An accumulator {name} is wanted, but {name} is {found!r}")
            return ResourceHandle(ctx.device, container, name, ACCUMULATOR_TYPE)

        return find


class _AccumulatorRefOp(_AccumulatorOp):
    """Gives a reference to two strings instead: container and name."""

    @classmethod
    def bind(cls, node: Any, xp: Any) -> Callable[[Any], Cell]:
        return by_reference(super().bind(node, xp))


_DECLARED = """
       dtype: numbertype
       shape: shape
       container: string = ''
       shared_name: string = ''
       reduction_type: {'MEAN', 'SUM'} = 'MEAN'"""


@op("ResourceConditionalAccumulator() -> (handle: resource)" + _DECLARED)
class ResourceConditionalAccumulator(_AccumulatorOp):
    pass


@op("ConditionalAccumulator() -> (handle: Ref(string))" + _DECLARED)
class ConditionalAccumulatorRef(_AccumulatorRefOp):
    pass


@op("SparseConditionalAccumulator() -> (handle: Ref(string))" + _DECLARED)
class SparseConditionalAccumulatorRef(_AccumulatorRefOp):
    kind = SparseAccumulator


# -- using them -----------------------------------------------------------------------------------------


def accumulator_of(ctx: Any, handle: Any) -> Accumulator:
    """The accumulator that a handle of either family names; NotFoundError if it is gone."""
    return resource_of(ctx, handle, Accumulator)


def _checked(accumulator: Accumulator, dtype: DType) -> Accumulator:
    if accumulator.dtype != dtype:
        raise invalid(f"Signature mismatch, have: {dtype_text(dtype)} expected: {dtype_text(accumulator.dtype)}")
    return accumulator


def _checked_step(step: Any) -> int:
    if step.ndim:
        raise invalid(f"Argument local_step must be scalar, but had bad shape {list(step.shape)}")
    return int(step)


def _scalar_input(operation: Any) -> None:
    operation.inputs[1].shape.with_rank(0)


class _Apply(Op):
    needs_ctx = True

    @staticmethod
    def infer(operation: Any) -> list[TensorShape]:
        _scalar_input(operation)
        return []

    @staticmethod
    def bind(node: Any, xp: Any) -> Callable[..., None]:
        dtype = node["dtype"]

        def apply(ctx: Any, handle: Any, local_step: Any, gradient: Any) -> None:
            _checked(accumulator_of(ctx, handle), dtype).apply(_checked_step(local_step), (gradient,))

        return apply

    bytes = staticmethod(updated)

    @staticmethod
    def flops(node: Any, ins: Any, outs: Any) -> int:
        return elements(ins[2])


class _Take(Op):
    is_async = True
    flops = bytes = staticmethod(free)

    @staticmethod
    def infer(operation: Any) -> list[TensorShape]:
        _scalar_input(operation)
        return [TensorShape(None)] * len(operation.outputs)

    @staticmethod
    def bind(node: Any, xp: Any) -> Callable[..., None]:
        dtype, name = node["dtype"], node.name

        def take(ctx: Any, handle: Any, num_required: Any, done: Any) -> None:
            accumulator = _checked(accumulator_of(ctx, handle), dtype)

            def finished(mean: Any, error: Exception | None) -> None:
                forget()
                done(mean, error)

            attempt = Take(int(num_required), finished, f"{name} {{}} (step {ctx.step.step_id})")
            forget = ctx.on_cancel(lambda error: accumulator.leave(attempt))
            accumulator.take(attempt)

        return take


class _SetGlobalStep(Op):
    needs_ctx = True
    flops = bytes = staticmethod(free)

    @staticmethod
    def infer(operation: Any) -> list[TensorShape]:
        _scalar_input(operation)
        return []

    @staticmethod
    def bind(node: Any, xp: Any) -> Callable[..., None]:
        return lambda ctx, handle, step: accumulator_of(ctx, handle).set_global_step(int(step))


class _NumAccumulated(Op):
    needs_ctx = True
    flops = bytes = staticmethod(free)
    infer = staticmethod(shapes.scalar)

    @staticmethod
    def bind(node: Any, xp: Any) -> Callable[..., Any]:
        return lambda ctx, handle: np.array(accumulator_of(ctx, handle).num_accumulated, np.int32)


_DTYPE = "\n       dtype: numbertype"
_USERS: list[tuple[str, str, str, type[Op]]] = [
    ("ApplyGradient", "local_step: int64, gradient: dtype", f"(){_DTYPE}", _Apply),
    ("TakeGradient", "num_required: int32", f"(average: dtype){_DTYPE}", _Take),
    ("SetGlobalStep", "new_global_step: int64", "()", _SetGlobalStep),
    ("NumAccumulated", "", "(num_accumulated: int32)", _NumAccumulated),
]
for _name, _inputs, _rest, _base in _USERS:
    op(f"Accumulator{_name}(handle: Ref(string), {_inputs}) -> {_rest}")(type(_name, (_base,), {}))
    _stateful = type(_name, (_base,), {"stateful": True})
    op(f"ResourceAccumulator{_name}(handle: resource, {_inputs}) -> {_rest}")(_stateful)


@op("""SparseAccumulatorApplyGradient(handle: Ref(string), local_step: int64, gradient_indices: int64,
                                      gradient_values: dtype, gradient_shape: int64) -> ()
       dtype: numbertype
       has_known_shape: bool""")
class SparseAccumulatorApplyGradient(_Apply):
    def bind(node, xp):
        dtype, has_shape = node["dtype"], node["has_known_shape"]

        def apply(ctx, handle, local_step, indices, values, shape):
            accumulator = _checked(accumulator_of(ctx, handle), dtype)
            accumulator.apply(_checked_step(local_step), (indices, values, shape.ravel() if has_shape else None))

        return apply

    def flops(node, ins, outs):
        return elements(ins[3])

    def bytes(node, ins, outs):
        return updated(node, ins[:4], outs)


@op("""SparseAccumulatorTakeGradient(
           handle: Ref(string), num_required: int32) -> (indices: int64, values: dtype, shape: int64)
       dtype: numbertype""")
class SparseAccumulatorTakeGradient(_Take):
    pass
