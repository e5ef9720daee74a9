"""Conditional accumulators on a device: the ops that make them, add gradients and take means, in both families.

Stands for `core/kernels/conditional_accumulator_op.cc`, `sparse_conditional_accumulator_op.cc` and their part of
`core/ops/data_flow_ops.cc`.

Rules: an accumulator with a `shared_name` stays in its container until that is reset; one without goes with the
session. Dense ones are found by a resource handle, sparse ones by a reference to two strings (as are dense ones of
old graphs). An op that takes holds no thread: it stands in a line (shared_accumulator.py) and leaves it if its step is
cancelled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.base import errors
from dtflab.graph.dtypes import DType
from dtflab.graph.op_registry import Op, elements, op
from dtflab.ops import shapes
from dtflab.ops.costs import FreeOp, StatefulOp, updated
from dtflab.ops.handles import new_or_shared, resource_of
from dtflab.ops.messages import dtype_text, invalid
from dtflab.ops.queues.shared_accumulator import Accumulator, DenseAccumulator, SparseAccumulator, Take

ACCUMULATOR_TYPE = "tensorflow::ConditionalAccumulatorBase"

# -- making accumulators --------------------------------------------------------------------------------


class _NewAccumulator(StatefulOp):
    """Gives the handle of an accumulator. The first op that names an accumulator makes it."""

    infer = shapes.fixed([2])

    def bind(node, xp):
        kind = SparseAccumulator if node.op.startswith("Sparse") else DenseAccumulator
        declared = node["dtype"], node["shape"], node["reduction_type"].decode()

        def check(found, name):
            if not isinstance(found, kind):
                raise errors.InternalError.of(f"An accumulator {name} is wanted, but {name} is {found!r}")

        return new_or_shared(node, Accumulator, ACCUMULATOR_TYPE, lambda ctx, name: kind(name, *declared), check)


_MAKERS = {"Resource": "resource", "": "Ref(string)", "Sparse": "Ref(string)"}
for _kind, _handle in _MAKERS.items():
    _name = f"{_kind}ConditionalAccumulator"
    op(f"""{_name}() -> (handle: {_handle})
       dtype: numbertype, shape: shape, container: string = '', shared_name: string = ''
       reduction_type: {{'MEAN', 'SUM'}} = 'MEAN'""")(type(_name, (_NewAccumulator,), {}))


# -- using them -----------------------------------------------------------------------------------------


def accumulator_of(ctx: Any, handle: Any, dtype: DType | None = None) -> Accumulator:
    """The accumulator that a handle of either family names.

    Raises NotFoundError if it is gone, InvalidArgumentError if its dtype is not `dtype`.
    """
    found = resource_of(ctx, handle, Accumulator)
    if dtype is not None and found.dtype != dtype:
        raise invalid(f"Signature mismatch, have: {dtype_text(dtype)} expected: {dtype_text(found.dtype)}")
    return found


class _Uses(FreeOp):
    needs_ctx = True

    def infer(operation):
        if len(operation.inputs) > 1:  # a step, or a number of gradients
            operation.inputs[1].shape.with_rank(0)
        return Op.infer(operation)


class _Apply(_Uses):
    def kernel(node, xp, ctx, handle, local_step, *gradient):
        dtype, without_shape = node["dtype"], not node.attrs.get("has_known_shape", True)
        accumulator = accumulator_of(ctx, handle, dtype)
        if local_step.ndim:
            raise invalid(f"Argument local_step must be scalar, but had bad shape {list(local_step.shape)}")
        if len(gradient) == 3:
            indices, values, shape = gradient
            gradient = indices, values, None if without_shape else shape.ravel()
        accumulator.apply(int(local_step), gradient)

    def flops(node, ins, outs):
        return elements(ins[3] if len(ins) > 3 else ins[2])  # of the values, not of their indices

    def bytes(node, ins, outs):
        return updated(node, ins[:4], outs)


class _Take(_Uses):
    is_async = True

    def kernel(node, xp, ctx, handle, num_required, done):
        accumulator = accumulator_of(ctx, handle, node["dtype"])
        forget = []  # emptied, as what it holds leads back to `finished`

        def finished(mean, error):
            forget.pop()()
            done(mean, error)

        attempt = Take(int(num_required), finished, node.name, ctx.step.step_id)
        forget.append(ctx.on_cancel(lambda error: accumulator.leave(attempt)))
        accumulator.take(attempt)


class _SetGlobalStep(_Uses):
    def bind(node, xp):
        return lambda ctx, handle, step: accumulator_of(ctx, handle).set_global_step(int(step))


class _NumAccumulated(_Uses):
    infer = shapes.scalar

    def bind(node, xp):
        return lambda ctx, handle: np.array(accumulator_of(ctx, handle).num_accumulated, np.int32)


_DTYPE = "\n       dtype: numbertype"
_USERS: list[tuple[str, str, str, type[Op]]] = [
    ("ApplyGradient", "local_step: int64, gradient: dtype", f"(){_DTYPE}", _Apply),
    ("TakeGradient", "num_required: int32", f"(average: dtype){_DTYPE}", _Take),
    ("SetGlobalStep", "new_global_step: int64", "()", _SetGlobalStep),
    ("NumAccumulated", "", "(num_accumulated: int32)", _NumAccumulated),
]
for _use, _inputs, _rest, _base in _USERS:
    for _family, _handle, _stateful in (("", "Ref(string)", False), ("Resource", "resource", True)):
        _name = f"{_family}Accumulator{_use}"
        op(f"{_name}(handle: {_handle}, {_inputs}) -> {_rest}")(type(_name, (_base,), {"stateful": _stateful}))


@op("""SparseAccumulatorApplyGradient(handle: Ref(string), local_step: int64, gradient_indices: int64,
                                      gradient_values: dtype, gradient_shape: int64) -> ()
       dtype: numbertype, has_known_shape: bool""")
class SparseAccumulatorApplyGradient(_Apply):
    pass


@op("""SparseAccumulatorTakeGradient(
           handle: Ref(string), num_required: int32) -> (indices: int64, values: dtype, shape: int64)
       dtype: numbertype""")
class SparseAccumulatorTakeGradient(_Take):
    pass
