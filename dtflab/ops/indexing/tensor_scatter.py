"""Copies of a tensor with slices at positions written: the TensorScatter family.

Stands for `core/kernels/scatter_nd_op.cc` and its part of `python/ops/array_grad.py`. `scatter_nd`, which writes into
zeros, is in `gathering.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtflab.graph.apply_op import apply_op
from dtflab.graph.op_registry import Op, elements, op
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.math import functions as math
from dtflab.ops.type_sets import NUMBER_BOOL
from dtflab.ops.variables import scatter
from dtflab.ops.variables.scatter_nd_shapes import check_static, check_tensor, check_variable


class _TensorScatter(Op):
    """A copy of the input, with slices at positions written."""

    how = ""
    check = staticmethod(check_tensor)

    def infer(operation: Any) -> list[TensorShape]:
        check_static(*(t.shape for t in operation.inputs))
        return [operation.inputs[0].shape]

    @classmethod
    def bind(cls, node: Any, xp: Any) -> Callable[..., Any]:
        write = scatter.writer(cls.how, xp, scatter.positions(cls.check))
        return lambda tensor, indices, updates: write(tensor, None, indices, updates)

    def flops(node: Any, ins: Any, outs: Any) -> int:
        return elements(ins[2])


_TENSOR = "(tensor: T, indices: Tindices, updates: T) -> (output: T)"
_PLAIN = """
       T: type
       Tindices: {int32, int64}
       bad_indices_policy: string = ''"""


@op(f"TensorScatterUpdate{_TENSOR}{_PLAIN}".replace("{int32, int64}", "{int16, int32, int64, uint16}"))
class TensorScatterUpdate(_TensorScatter):
    how = "update"

    def grad(op, dy):
        _, indices, updates = op.inputs
        blank = arrays.zeros_like(updates, dtype=dy.dtype)
        kept = apply_op("TensorScatterUpdate", tensor=arrays.identity(dy), indices=indices, updates=blank)
        return [kept, None, indexing.gather_nd(dy, indices)]


@op(f"TensorScatterAdd{_TENSOR}{_PLAIN}")
class TensorScatterAdd(_TensorScatter):
    how = "add"

    def grad(op, dy):
        return [arrays.identity(dy), None, indexing.gather_nd(dy, op.inputs[1])]


@op(f"""ScatterNdNonAliasingAdd(input: T, indices: Tindices, updates: T) -> (output: T)
       T: {NUMBER_BOOL}
       Tindices: {{int32, int64}}
       bad_indices_policy: string = ''""")
class ScatterNdNonAliasingAdd(TensorScatterAdd):
    """TensorScatterAdd under an older name."""

    check = staticmethod(check_variable)


@op(f"TensorScatterSub{_TENSOR}{_PLAIN}")
class TensorScatterSub(_TensorScatter):
    how = "sub"

    def grad(op, dy):
        return [arrays.identity(dy), None, -indexing.gather_nd(dy, op.inputs[1])]


class _TensorScatterExtreme(_TensorScatter):
    def grad(op: Any, dy: Any) -> list[Any]:
        """The gradient goes to the element that is the extreme; several share it."""
        (tensor, indices, updates), output = op.inputs, op.outputs[0]
        kept = arrays.cast(math.equal(tensor, output), dy.dtype)
        written = arrays.cast(math.equal(updates, indexing.gather_nd(output, indices)), dy.dtype)
        shape = arrays.shape(tensor, out_type=indices.dtype)
        share = dy / (kept + indexing.scatter_nd(indices, written, shape))
        return [share * kept, None, indexing.gather_nd(share, indices) * written]


@op(f"TensorScatterMin{_TENSOR}{_PLAIN}")
class TensorScatterMin(_TensorScatterExtreme):
    how = "min"


@op(f"TensorScatterMax{_TENSOR}{_PLAIN}")
class TensorScatterMax(_TensorScatterExtreme):
    how = "max"
