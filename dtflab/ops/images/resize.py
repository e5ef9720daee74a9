"""The ops that resize images [batch, height, width, channels], and their gradients.

Stands for `core/kernels/image/resize_{bilinear,nearest_neighbor,bicubic,area}_op.cc` and `python/ops/image_grad.py`.
Left out: ScaleAndTranslate (Lanczos and its kin), which only TF2's functions use.

Rule: `resampling.py` says which old pixels a new one comes from. All but the nearest neighbour give float32, whatever
the images are.
"""

from __future__ import annotations

from typing import Any

from dtflab.graph.apply_op import apply_op
from dtflab.graph.dtypes import DType, float32, float64
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.operation import Operation
from dtflab.graph.static_value import folded_value
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops import shapes
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.costs import free, per_input, per_output
from dtflab.ops.images import resampling
from dtflab.ops.messages import invalid, shape_text

_PIXELS = "{int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double}"


def _sized(op: Operation) -> list[TensorShape]:
    """The shape of the images, with height and width from the second input."""
    batch, _, _, channels = op.inputs[0].shape.with_rank(4).as_list()
    op.inputs[1].shape.with_rank(1).assert_is_compatible_with([2])
    size = folded_value(op.inputs[1])
    height, width = (None, None) if size is None else (None if s < 0 else int(s) for s in size)
    return [TensorShape([batch, height, width, channels])]


def _axes(node: Node, before: Any, after: Any) -> tuple[resampling.Axis, resampling.Axis]:
    """Height and width, from and to."""
    ways = node.attrs.get("align_corners", False), node.attrs.get("half_pixel_centers", False)
    return resampling.Axis(int(before[0]), int(after[0]), *ways), resampling.Axis(int(before[1]), int(after[1]), *ways)


def _check_ways(node: Node) -> None:
    if node.attrs.get("half_pixel_centers") and node["align_corners"]:
        raise invalid("If half_pixel_centers is True, align_corners must be False.")


def _checked_axes(node: Node, images: Any, size: Any) -> tuple[resampling.Axis, resampling.Axis]:
    """Height and width of a forward op; InvalidArgumentError if the images or the size do not allow it."""
    _check_ways(node)
    if images.ndim != 4:
        raise invalid(f"input must be 4-dimensional{shape_text(images)}")
    if not images.shape[3]:
        raise invalid("image must have at least one channel")
    if not images.shape[1] or not images.shape[2]:
        raise invalid("input image must be of non-zero size")
    return _axes(node, images.shape[1:3], _checked_size(size, "output dimensions must be positive"))


def _checked_size(size: Any, positive: str) -> list[int]:
    if size.ndim != 1:
        raise invalid(f"shape_t must be 1-dimensional{shape_text(size)}")
    if len(size) != 2:
        raise invalid(f"shape_t must have two elements{shape_text(size)}")
    if min(size.tolist()) <= 0:
        raise invalid(positive)
    return size.tolist()


class _Resize(Op):
    """An op from images and a size to resized images."""

    infer = _sized
    flops = per_output(8)


_RESIZE = f"(images: T, size: int32) -> (resized_images: float) where T: {_PIXELS}, align_corners: bool = false"
_HALF_PIXELS = "half_pixel_centers: bool = false"


@op(f"""ResizeNearestNeighbor(images: T, size: int32) -> (resized_images: T)
        T: {_PIXELS}, align_corners: bool = false, {_HALF_PIXELS}""")
class ResizeNearestNeighbor(_Resize):
    """Each new pixel is an old one."""

    flops = free

    def kernel(node, xp, images, size):
        rows, columns = (resampling.nearest(xp, axis) for axis in _checked_axes(node, images, size))
        return images.take(rows, 1).take(columns, 2)

    def grad(op, dy):
        known = op.inputs[0].shape[1:3]
        sizes: Any = known if known.is_fully_defined() else arrays.shape(op.inputs[0])[1:3]
        return [apply_op("ResizeNearestNeighborGrad", grads=dy, size=sizes, **_ways(op)), None]


@op(f"""ResizeNearestNeighborGrad(grads: T, size: int32) -> (output: T)
        T: {{uint8, int8, int32, half, float, double, bfloat16}}, align_corners: bool = false, {_HALF_PIXELS}""")
class ResizeNearestNeighborGrad(_Resize):
    """The gradients added up at the old pixels."""

    def kernel(node, xp, grads, size):
        if grads.ndim != 4:
            raise invalid(f"input must be 4-dimensional{shape_text(grads)}")
        sizes = _checked_size(size, "shape_t's elements must be positive")
        one = xp.ones((), grads.dtype)
        taps = [[(resampling.nearest(xp, axis), one)] for axis in _axes(node, sizes, grads.shape[1:3])]
        return _back(xp, node["T"], grads, taps, sizes)


@op(f"""ResizeBilinear{_RESIZE}
        {_HALF_PIXELS}""")
class ResizeBilinear(_Resize):
    """Each new pixel lies between four old ones."""

    def kernel(node, xp, images, size):
        rows, columns = _checked_axes(node, images, size)
        return _between(xp, _between(xp, images, columns, 2), rows, 1)

    def grad(op, dy):
        return [_grad_of(op, "ResizeBilinearGrad", dy), None]


def _between(xp: Any, x: Any, way: resampling.Axis, axis: int) -> Any:
    """Written as low + (high - low) * part, one colour stays that colour to the last bit."""
    lower, upper, part = resampling.bilinear(xp, way)
    low, high = x.take(lower, axis).astype(xp.float32), x.take(upper, axis).astype(xp.float32)
    return low + (high - low) * resampling.along(part, axis)


@op(f"""ResizeBicubic{_RESIZE}
        {_HALF_PIXELS}""")
class ResizeBicubic(_Resize):
    """Each new pixel is a cubic function of sixteen old ones."""

    flops = per_output(40)

    def kernel(node, xp, images, size):
        rows, columns = _checked_axes(node, images, size)
        x = resampling.weighted(images, resampling.bicubic_taps(xp, rows), 1)
        return resampling.weighted(x, resampling.bicubic_taps(xp, columns), 2)

    def grad(op, dy):
        if op.inputs[0].dtype not in (float32, float64):
            return [None, None]
        return [_grad_of(op, "ResizeBicubicGrad", dy), None]


def _grad_of(op: Operation, grad_type: str, dy: Any) -> Any:
    return apply_op(grad_type, grads=dy, original_image=op.inputs[0], **_ways(op))


def _ways(op: Operation) -> dict[str, Any]:
    return {name: op.get_attr(name) for name in ("align_corners", "half_pixel_centers")}


@op(_RESIZE.replace("(images", "ResizeArea(images", 1))
class ResizeArea(_Resize):
    """Each new pixel is the mean of the area of old ones that it covers."""

    def kernel(node, xp, images, size):
        rows, columns = _checked_axes(node, images, size)
        x = resampling.weighted(images, resampling.area_taps(xp, columns), 2)
        x = resampling.weighted(x, resampling.area_taps(xp, rows), 1)
        return x * (1 / (rows.scale * columns.scale))


class _GradOfResize(Op):
    """An op from the gradients of resized images to those of the images."""

    infer = shapes.like(1)
    flops = per_input(8)


def _gradient_kernel(node: Node, xp: Any, taps_of: Any) -> Any:
    def kernel(grads, original):
        _check_ways(node)
        if grads.ndim != 4:
            raise invalid(f"input_grad must be 4-dimensional{shape_text(grads)}")
        if not grads.shape[1] or not grads.shape[2]:
            raise invalid("resized dimensions must be positive")
        if original.ndim != 4:
            raise invalid(f"original_image must be 4-dimensional{shape_text(original)}")
        sizes = original.shape[1:3]
        if not sizes[0] or not sizes[1]:
            raise invalid("original dimensions must be positive")
        taps = [taps_of(xp, axis) for axis in _axes(node, sizes, grads.shape[1:3])]
        return _back(xp, node["T"], grads, taps, sizes)

    return kernel


def _back(xp: Any, dtype: DType, grads: Any, taps: Any, sizes: Any) -> Any:
    """In float32 where the result has 16 bits, else in its type."""
    target = dtype.as_numpy_dtype
    work = xp.float32 if dtype.is_floating and dtype.size == 2 else target
    return resampling.back(xp, grads.astype(work), taps, sizes).astype(target)


@op(f"""ResizeBilinearGrad(grads: float, original_image: T) -> (output: T)
        T: {{float, bfloat16, half, double}}, align_corners: bool = false, {_HALF_PIXELS}""")
class ResizeBilinearGrad(_GradOfResize):
    grad = no_gradient

    def bind(node, xp):
        return _gradient_kernel(node, xp, resampling.bilinear_taps)


@op(f"""ResizeBicubicGrad(grads: float, original_image: T) -> (output: T)
        T: {{float, double}}, align_corners: bool = false, {_HALF_PIXELS}""")
class ResizeBicubicGrad(_GradOfResize):
    def bind(node, xp):
        return _gradient_kernel(node, xp, resampling.bicubic_taps)
