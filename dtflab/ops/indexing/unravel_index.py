"""Places in arrays: from one number to one per axis, and gather inside each element of a batch.

Stands for `core/kernels/unravel_index_op.cc`, `batch_gather` and `batch_gather_nd` of `python/ops/array_ops.py`.
"""

from __future__ import annotations

import numpy as np

from dtflab.graph.op_registry import Op, op
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.messages import invalid


@op("""UnravelIndex(indices: Tidx, dims: Tidx) -> (output: Tidx)
       Tidx: {int32, int64} = int32""")
class UnravelIndex(Op):
    """For each number of an element its place: column i of the result, one row per axis."""

    def infer(op):
        indices, dims = op.inputs[0].shape, op.inputs[1].shape
        if indices.ndims is None or dims.ndims is None:
            return [TensorShape(None)]
        dims = dims.with_rank(1)
        if indices.ndims == 0:
            return [dims]
        return [TensorShape([dims[0].value, indices.num_elements()])]

    def bind(node, xp):
        def kernel(indices, dims):
            if np.ndim(indices) > 1:
                raise invalid("The indices can only be scalar or vector.")
            if np.ndim(dims) != 1:
                raise invalid("The indices can only be 1-D" if np.ndim(dims) else "dims must be a vector")
            if (dims == 0).any():
                raise invalid(
                    "Input dims cannot contain a dim of zero, but dims contains zero at index "
                    f"{int((dims == 0).argmax())}"
                )
            if ((indices < 0) | (indices >= dims.prod())).any():
                raise invalid("index is out of bound as with dims")
            return xp.stack(xp.unravel_index(indices, tuple(dims.tolist()))).astype(indices.dtype)

        return kernel
