"""BiasAdd: a vector added to the channels of a tensor.

Stands for `core/kernels/bias_op.cc` and its part of `nn_grad.py`.

Rule: unlike `+` it fits the bias to the channels, wherever `data_format` says they are, and so its gradient
is one op (BiasAddGrad) that knows what to sum over.
"""

from __future__ import annotations

from typing import Any

from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.op_registry import Op, elements, op
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.messages import invalid, shape_text

_TYPES = """
       T: numbertype
       data_format: {'NHWC', 'NCHW'} = 'NHWC'"""


def _channel(node: Any, ndims: int) -> int:
    """The axis of the channels."""
    return 1 if node.attrs.get("data_format") == b"NCHW" else ndims - 1


def _bias_shape(operation: Any) -> list[TensorShape]:
    value, bias = operation.inputs[0].shape.with_rank_at_least(2), operation.inputs[1].shape.with_rank(1)
    if value.ndims is None:
        return [value]
    dims, axis = list(value.dims), _channel(operation, value.ndims)
    channels = dims[axis]
    if not channels.is_compatible_with(bias[0]):
        raise ValueError(f"Dimensions must be equal, but are {channels} and {bias[0]}")
    dims[axis] = channels.merge_with(bias[0])
    return [TensorShape(dims)]


class _BiasAdd(Op):
    infer = _bias_shape

    def bind(node: Any, xp: Any) -> Any:
        def add(value: Any, bias: Any, out: Any = None) -> Any:
            if value.ndim < 2:
                raise invalid(f"Input tensor must be at least 2D: {shape_text(value)}")
            if bias.ndim != 1:
                raise invalid(f"Biases must be 1D: {shape_text(bias)}")
            axis = _channel(node, value.ndim)
            if bias.shape[0] != value.shape[axis]:
                raise invalid(
                    "Must provide as many biases as the last dimension of the input tensor: "
                    f"{shape_text(bias)} vs. {shape_text(value)}"
                )
            return xp.add(value, bias.reshape(bias.shape + (1,) * (value.ndim - 1 - axis)), out=out)

        return add

    into = bind


@op("BiasAdd(value: T, bias: T) -> (output: T)" + _TYPES)
class BiasAdd(_BiasAdd):
    def grad(op, dy):
        data_format = op.get_attr("data_format")
        return [dy, apply_op("BiasAddGrad", None, out_backprop=dy, data_format=data_format)]


@op("""BiasAddV1(value: T, bias: T) -> (output: T)
       T: numbertype""")
class BiasAddV1(_BiasAdd):
    def grad(op, dy):
        from dtflab.ops.arrays import constant, identity as array
        from dtflab.ops.reduce import reduction

        return [dy, reduction.reduce_sum(dy, constant.range(array.rank(dy) - 1))]


@op("BiasAddGrad(out_backprop: T) -> (output: T)" + _TYPES)
class BiasAddGrad(Op):
    def infer(op):
        shape = op.inputs[0].shape.with_rank_at_least(2)
        return [TensorShape([None if shape.ndims is None else shape[_channel(op, shape.ndims)]])]

    def bind(node, xp):
        def total(dy):
            if dy.ndim < 2:
                raise invalid(f"Input tensor must be at least 2D: {shape_text(dy)}")
            axis = _channel(node, dy.ndim)
            return dy.sum(axis=tuple(i for i in range(dy.ndim) if i != axis), dtype=dy.dtype)

        return total

    def grad(op, dz):
        """The sum's gradient: `dz` repeated along everything but the channels."""
        from dtflab.ops.arrays import constant, identity as array, joining, repeating, reshaping

        shape, bias_shape = array.shape(op.inputs[0]), array.shape(dz)
        if op.get_attr("data_format") == b"NCHW":
            ones = [constant.ones_like(shape[:1]), bias_shape, constant.ones_like(shape[2:])]
            repeats = [shape[:1], [1], shape[2:]]
        else:
            ones, repeats = [constant.ones_like(shape[:-1]), bias_shape], [shape[:-1], [1]]
        expanded_shape, multiples = joining.concat(ones, 0), joining.concat(repeats, 0)
        return [repeating.tile(reshaping.reshape(dz, expanded_shape), multiples)]

    def flops(node, ins, outs):
        return elements(ins[0])


def bias_add(value: Any, bias: Any, data_format: str | None = None, name: str | None = None) -> Tensor:
    """`value` with `bias` added to its channels: the last dimension, the second if `data_format` is `NC…`."""
    with name_scope(name, "BiasAdd", [value, bias]) as scope:
        if data_format is not None:
            if data_format.startswith("NC"):
                data_format = "NCHW"
            elif data_format.startswith("N") and data_format.endswith("C"):
                data_format = "NHWC"
            else:
                raise ValueError(
                    f"`data_format` must be of the form `N...C` or `NC...`. Received: data_format={data_format}"
                )
        value = convert_to_tensor(value, name="input")
        bias = convert_to_tensor(bias, value.dtype, name="bias")
        return apply_op("BiasAdd", scope, value=value, bias=bias, data_format=data_format)
