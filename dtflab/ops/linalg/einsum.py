"""Sums of products over labelled axes: Einsum, and the function that splits an equation into pairs.

Stands for `core/kernels/linalg/einsum_op_impl.h`, `einsum` in `python/ops/special_math_ops.py` and its gradient in
`python/ops/linalg_grad.py`. Left out: XLA's own form; ways to find an order of pairs other than the greedy one.

Rule: two operands are one product of matrices. Diagonals are taken and axes that only one operand has are summed
first; then each is transposed to (shared, own, summed) axes, and a label written twice in the result spreads over a
diagonal.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Operation, Tensor
from dtflab.graph.tensor_shape import TensorShape, infer_broadcast
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.linalg.equations import named, split
from dtflab.ops.math import functions as math
from dtflab.ops.messages import invalid, shape_text
from dtflab.ops.reduce import functions as reduce


@op("Einsum(inputs: N * T) -> (output: T) where equation: string, N: int >= 1, T: type")
class Einsum(Op):
    """The sum of products that the equation says, of one or two arrays."""

    blas = True

    def infer(op):
        return [_output_shape(op.get_attr("equation").decode(), [x.shape for x in op.inputs])]

    def bind(node, xp):
        inputs, output = split(node["equation"].decode(), node["N"])
        dtype = node["T"].as_numpy_dtype
        short = dtype if node["T"] in (dtypes.bfloat16, dtypes.float16) else None

        def kernel(*operands):
            labels, out = named(inputs, output, [x.ndim for x in operands])
            sizes = _sizes(labels, operands)
            if short is not None:
                operands = [x.astype(np.float32) for x in operands]
            unique = "".join(dict.fromkeys(out))
            one = len(operands) == 1
            found = _one(operands[0], labels[0], unique) if one else _two(xp, operands, labels, unique)
            found = _spread(xp, found, unique, out, sizes)
            return found if short is None else found.astype(short)

        return kernel

    def flops(node, ins, outs):
        inputs, output = split(node["equation"].decode(), node["N"])
        labels, out = named(inputs, output, [len(x.shape) for x in ins])
        sizes: dict[str, int] = {}
        for label, size in ((a, n) for names, x in zip(labels, ins) for a, n in zip(names, x.shape)):
            sizes[label] = max(sizes.get(label, 1), int(size))
        is_summed = not sizes.keys() <= set(out)
        return prod(sizes.values()) * (len(ins) - 1 + is_summed)

    def grad(op, dz):
        return _gradients(op, dz)


# -- the kernel: steps from operands to the result ------------------------------------------------------------------


def _sizes(labels: list[str], operands: Sequence[Any]) -> dict[str, int]:
    """The size of each axis by its label; InvalidArgumentError if a label has two sizes."""
    sizes: dict[str, int] = {}
    for names, x in zip(labels, operands, strict=True):
        if len(names) != x.ndim:
            raise invalid(f"Expected input with rank {len(names)} for '{names}', but got {shape_text(x)}")
        for label, size in zip(names, x.shape, strict=True):
            if sizes.setdefault(label, size) != size and (not label.isupper() or 1 not in (size, sizes[label])):
                raise invalid(f"Expected dimension {sizes[label]} at axis '{label}' but got dimension {size}")
            sizes[label] = max(sizes[label], size) if size and sizes[label] else 0
    return sizes


def _one(x: Any, labels: str, out: str) -> Any:
    """One array: diagonals, sums, transposed."""
    for label in {s for s in labels if labels.count(s) > 1}:
        while labels.count(label) > 1:
            first, second = [i for i, s in enumerate(labels) if s == label][:2]
            x = x.diagonal(0, first, second)
            labels = labels[:first] + labels[first + 1 : second] + labels[second + 1 :] + label
    lost = tuple(i for i, s in enumerate(labels) if s not in out)
    if lost:
        x = x.sum(lost, dtype=x.dtype)
        labels = "".join(s for s in labels if s in out)
    return x if labels == out else x.transpose([labels.index(s) for s in out])


def _two(xp: Any, operands: Sequence[Any], labels: list[str], out: str) -> Any:
    """Two operands as one product of matrices; capital labels are those of `...`, which broadcast."""
    a, b = labels
    shared = "".join(x for x in out if x.isupper() or (x in a and x in b))
    summed = "".join(x for x in dict.fromkeys(a) if x in b and x not in out)
    own_a = "".join(x for x in out if x in a and x not in shared)
    own_b = "".join(x for x in out if x in b and x not in shared)
    left = _group(operands[0], a, shared, own_a, summed)
    right = _group(operands[1], b, shared, summed, own_b)
    own = (*_dims(operands[0], a, own_a), *_dims(operands[1], b, own_b))
    product = xp.matmul(left, right)
    product = product.reshape((*product.shape[:-2], *own))
    made = shared + own_a + own_b
    return product.transpose([made.index(x) for x in out])


def _group(x: Any, labels: str, shared: str, rows: str, columns: str) -> Any:
    """The array as matrices of (rows, columns) for each place on the shared axes, 1 where it has none."""
    here = "".join(s for s in shared if s in labels)
    x = _one(x, labels, here + rows + columns)
    sizes = dict(zip(here + rows + columns, x.shape, strict=True))
    rows_size, columns_size = (int(np.prod([sizes[s] for s in group], dtype=int)) for group in (rows, columns))
    return x.reshape((*(sizes.get(s, 1) for s in shared), rows_size, columns_size))


def _dims(x: Any, labels: str, wanted: str) -> list[int]:
    return [x.shape[labels.index(s)] for s in wanted]


def _spread(xp: Any, x: Any, unique: str, out: str, sizes: dict[str, int]) -> Any:
    """Zeros with x on the diagonals of labels that are written twice."""
    if unique == out:
        return x
    result = xp.zeros([sizes[s] for s in out], x.dtype)
    places = [xp.arange(sizes[s]).reshape([-1 if s == u else 1 for u in unique]) for s in out]
    result[tuple(places)] = x
    return result


def _output_shape(equation: str, shapes: list[TensorShape]) -> TensorShape:
    inputs, output = split(equation, len(shapes))
    sizes: dict[str, Any] = {}
    dots: Any = TensorShape([])
    for i, (names, shape) in enumerate(zip(inputs, shapes, strict=True)):
        before, found, after = names.partition("...")
        if shape.ndims is None:
            dots = TensorShape(None) if found else dots
            continue
        if shape.ndims < len(before + after) or (not found and shape.ndims > len(before)):
            rank = len(before + after)
            where = f"\n\t for {i}th input and equation: {equation}"
            raise ValueError(f"Shape must be rank {rank} but is rank {shape.ndims}{where}")
        for label, size in zip(before + after, [*shape[: len(before)], *shape[shape.ndims - len(after) :]]):
            sizes[label] = _merged(sizes[label], size) if label in sizes else size
        dots = infer_broadcast(dots, shape[len(before) : shape.ndims - len(after)])
    return _from_labels(equation, output, sizes, dots)


def _merged(a: Any, b: Any) -> Any:
    if not a.is_compatible_with(b):
        raise ValueError(f"Dimensions must be equal, but are {a} and {b}")
    return a.merge_with(b)


def _from_labels(equation: str, output: str, sizes: dict[str, Any], dots: TensorShape) -> TensorShape:
    before, found, after = output.partition("...")
    if not found and dots.ndims:
        text = "without ellipsis (...) in the output subscripts where input(s) have non-empty broadcasting shape"
        where = f"for einsum equation '{equation}' {text}"
        raise ValueError(f"Shape must be at most rank 0 but is rank {dots.ndims}\n\t {where}")
    if found and dots.ndims is None:
        return dots
    middle = list(dots) if found else []
    return TensorShape([*(sizes.get(s) for s in before), *middle, *(sizes.get(s) for s in after)])


# -- the gradient: each input's is an einsum of the other and the result's ---------------------------------------


def _gradients(op: Operation, dz: Tensor) -> list[Any]:
    equation = op.get_attr("equation")
    subscripts, out = (equation.decode() if isinstance(equation, bytes) else equation).split("->")
    if len(op.inputs) == 1:
        shape = arrays.shape(op.inputs[0])
        lost = _only_in(subscripts, out)
        if lost:
            return [_repeated(dz, out, subscripts, shape, lost)]
        return [_apply([dz], f"{out}->{subscripts}")]
    x_subs, y_subs = (s + "..." if "..." in out and "..." not in s else s for s in subscripts.split(","))
    x, y = op.inputs
    if dz.dtype.is_complex:
        x, y = math.conj(x), math.conj(y)
    x_shape, y_shape = arrays.shape(x), arrays.shape(y)
    dx = _of_operand(dz, y, x_shape, x_subs, y_subs, out)
    dy = _of_operand(dz, x, y_shape, y_subs, x_subs, out)
    if "..." not in out:
        return [dx, dy]
    return _unbroadcast(x, y, x_shape, y_shape, dx, dy, _dots(x_subs), _dots(y_subs))


def _apply(inputs: list[Tensor], equation: str) -> Tensor:
    return apply_op("Einsum", inputs=inputs, equation=equation)


def _only_in(subscripts: str, others: str) -> str:
    return "".join(s for s in dict.fromkeys(subscripts) if s not in others + ".")


def _of_operand(dz: Tensor, other: Tensor, shape: Any, subs: str, other_subs: str, out: str) -> Tensor:
    lost = _only_in(subs, out + other_subs)
    left = "".join(s for s in subs if s not in lost)
    reduced = _apply([dz, other], f"{out},{other_subs}->{left}")
    return _repeated(reduced, left, subs, shape, lost) if lost else reduced


def _axis(subscripts: str, label: str) -> int:
    """Where a label stands first, counted from the end if that is behind `...`."""
    before, _, after = subscripts.partition("...")
    return before.index(label) if label in before else after.index(label) - len(after)


def _repeated(dz: Tensor, out: str, subs: str, shape: Any, lost: str) -> Tensor:
    """The gradient of a sum over the axes `lost`: dz again for each place on them."""
    axes = [_axis(subs, s) for s in lost]
    dims = arrays.stack([shape[axis] for axis in axes])
    twice = len(set(subs)) + len(set(out)) < len(subs) + len(out)
    if not twice and "".join(s for s in subs if s not in lost) == out:
        kept = reduce.reduced_shape(shape, convert_to_tensor(axes))
        return arrays.broadcast_to(arrays.reshape(dz, kept), shape)
    full = arrays.concat([dims, arrays.shape(dz)], axis=0)
    kept = arrays.concat([arrays.ones(len(lost), dtype=dtypes.int32), arrays.shape(dz)], axis=0)
    return _apply([arrays.broadcast_to(arrays.reshape(dz, kept), full)], f"{lost + out}->{subs}")


def _dots(subs: str) -> tuple[int, int | None]:
    """The slice of axes that `...` stands for."""
    before, found, after = subs.partition("...")
    if not found:
        return 0, 0
    return len(before), -len(after) if after else None


def _unbroadcast(
    x: Tensor, y: Tensor, x_shape: Any, y_shape: Any, dx: Tensor, dy: Tensor, x_dots: Any, y_dots: Any
) -> list[Any]:
    if x.shape.is_fully_defined() and y.shape.is_fully_defined() and x.shape[slice(*x_dots)] == y.shape[slice(*y_dots)]:
        return [dx, dy]
    rx, ry = arrays.broadcast_gradient_args(x_shape[slice(*x_dots)], y_shape[slice(*y_dots)])
    dx = arrays.reshape(reduce.reduce_sum(dx, x_dots[0] + rx), x_shape)
    dy = arrays.reshape(reduce.reduce_sum(dy, y_dots[0] + ry), y_shape)
    return [dx, dy]


# -- the function ---------------------------------------------------------------------------------------------------
