"""hessians: all second derivatives, row by row.

Stands for `hessians` of `python/ops/gradients_impl.py`.
"""

from __future__ import annotations

from typing import Any

from dtflab.graph.convert import constant
from dtflab.graph.gradients import gradients
from dtflab.graph.operation import Tensor
from dtflab.ops.arrays import identity as array, joining, reshaping
from dtflab.ops.control.while_loop import while_loop
from dtflab.ops.lists.tensor_array import TensorArray


def hessians(
    ys: Any,
    xs: Any,
    name: str = "hessians",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: int | None = None,
) -> list[Tensor]:
    """For each of `xs` the second derivatives of the sum of `ys`: shape x.shape + x.shape.

    A loop differentiates the elements of the gradient one after the other. LookupError where an operation has no
    gradient.
    """
    del name  # TensorFlow takes no notice of it
    xs = list(xs) if isinstance(xs, list | tuple) else [xs]
    first = gradients(
        ys, xs, colocate_gradients_with_ops=colocate_gradients_with_ops, gate_gradients=gate_gradients,
        aggregation_method=aggregation_method,
    )  # fmt: skip
    return [_hessian(gradient, x) for gradient, x in zip(first, xs, strict=True)]


def _hessian(gradient: Any, x: Any) -> Tensor:
    gradient = reshaping.reshape(gradient, [-1])
    n = array.size(x)

    def body(j: Any, rows: TensorArray) -> Any:
        return j + 1, rows.write(j, gradients(gradient[j], x)[0])

    _, rows = while_loop(lambda j, _: j < n, body, [constant(0), TensorArray(x.dtype, n)])
    shape = array.shape(x)
    return reshaping.reshape(rows.stack(), joining.concat((shape, shape), 0))
