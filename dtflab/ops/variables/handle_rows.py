"""Rows of resource variables: ResourceGather and the ResourceScatter* ops.

Stands for the gather and scatter ops of `core/ops/resource_variable_ops.cc` and their kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import constant
from dtflab.graph.indexed_slices import IndexedSlices
from dtflab.graph.op_registry import Op, elements, op
from dtflab.graph.static_value import declared
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.costs import free, of_part, overwritten, updated
from dtflab.ops.handles import ResourceHandle
from dtflab.ops.variables import scatter
from dtflab.ops.variables.handle_ops import find


@op("""ResourceGather(resource: resource, indices: Tindices) -> (output: dtype)
       batch_dims: int = 0
       validate_indices: bool = true
       dtype: type
       Tindices: {int32, int64}""")
class ResourceGather(Op):
    stateful = True
    needs_ctx = True
    flops = free
    bytes = of_part

    def infer(operation):
        known, indices = declared(operation.inputs[0]), operation.inputs[1].shape
        if known is None or known[0].ndims is None or indices.ndims is None:
            return [TensorShape(None)]
        params, batch = known[0].with_rank_at_least(1), operation.get_attr("batch_dims")
        return [params[:batch].concatenate(indices[batch:]).concatenate(params[batch + 1 :])]

    def bind(node, xp):
        batch = node["batch_dims"]

        def gather(ctx, handle, indices):
            params = find(ctx, handle).read()
            scatter.check_range(indices, params.shape[batch])
            if batch == 0:
                return xp.take(params, indices, axis=0)
            rows = np.ogrid[tuple(slice(n) for n in params.shape[:batch])]
            places = [r.reshape(r.shape + (1,) * (indices.ndim - batch)) for r in rows]
            return params[(*places, indices)]

        return gather

    def grad(operation, dy):
        return [_rows(operation, dy), None]


def variable_shape(handle: Any, out_type: Any = dtypes.int32) -> Any:
    """The shape of the variable behind a handle: a constant where it is known now."""
    known = declared(handle)
    if known is not None and known[0].is_fully_defined():
        return constant(known[0].as_list(), out_type)
    return apply_op("VariableShape", None, input=handle, out_type=out_type)


def _rows(operation: Any, dy: Any) -> IndexedSlices:
    """The gradient of a gather: rows of the variable, as many as there are indices."""
    from dtflab.ops.arrays import identity as array, joining, reshaping

    handle, indices = operation.inputs
    params_shape = variable_shape(handle)
    count = reshaping.expand_dims(array.size(indices), 0)
    values_shape = joining.concat([count, params_shape[1:]], 0)
    values = reshaping.reshape(dy, values_shape)
    return IndexedSlices(values, reshaping.reshape(indices, count), params_shape)


class _ResourceScatter(Op):
    stateful = True
    needs_ctx = True
    how = ""
    bytes = staticmethod(updated)

    @staticmethod
    def infer(operation: Any) -> list[TensorShape]:
        known = declared(operation.inputs[0])
        if known is not None:
            scatter.check_static(known[0], operation.inputs[1].shape, operation.inputs[2].shape)
        return []

    @classmethod
    def bind(cls, node: Any, xp: Any) -> Callable[[Any, ResourceHandle, Any, Any], None]:
        write = scatter.writer(cls.how, xp)

        def update(ctx: Any, handle: ResourceHandle, indices: Any, updates: Any) -> None:
            find(ctx, handle).update(lambda old, out: write(old, out, indices, updates))

        return update

    @staticmethod
    def flops(node: Any, ins: Any, outs: Any) -> int:
        return elements(ins[2])


_SCATTER = """(resource: resource, indices: Tindices, updates: dtype) -> ()
       dtype: {}
       Tindices: {{int32, int64}}"""


@op(f"ResourceScatterUpdate{_SCATTER.format('type')}")
class ResourceScatterUpdate(_ResourceScatter):
    how = "update"
    bytes = overwritten


@op(f"ResourceScatterAdd{_SCATTER.format('numbertype')}")
class ResourceScatterAdd(_ResourceScatter):
    how = "add"


@op(f"ResourceScatterSub{_SCATTER.format('numbertype')}")
class ResourceScatterSub(_ResourceScatter):
    how = "sub"


@op(f"ResourceScatterMul{_SCATTER.format('numbertype')}")
class ResourceScatterMul(_ResourceScatter):
    how = "mul"


@op(f"ResourceScatterDiv{_SCATTER.format('numbertype')}")
class ResourceScatterDiv(_ResourceScatter):
    how = "div"


@op(f"ResourceScatterMin{_SCATTER.format('numbertype')}")
class ResourceScatterMin(_ResourceScatter):
    how = "min"


@op(f"ResourceScatterMax{_SCATTER.format('numbertype')}")
class ResourceScatterMax(_ResourceScatter):
    how = "max"
