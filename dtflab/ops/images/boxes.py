"""crop_and_resize: boxes cut out of images and resized to one size, and the gradients.

Stands for `core/kernels/image/crop_and_resize_op.cc` and its gradient in `python/ops/image_grad.py`.

Rule: a box [y1, x1, y2, x2] counts from 0 at the middle of the first pixel to 1 at the middle of the last one. Its
points lie evenly from one edge to the other; those outside of the image have the extrapolation value and no gradient.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from dtflab.base.errors import OutOfRangeError
from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.op_registry import Op, op
from dtflab.graph.static_value import folded_value
from dtflab.ops import shapes
from dtflab.ops.array_module import scatterer
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.costs import per_input, per_output
from dtflab.ops.messages import invalid, shape_text

_METHODS = "{'bilinear', 'nearest'} = 'bilinear'"


class _Points(NamedTuple):
    """The points [boxes, count] along one axis: the pixels around them, how far from the first, if in the image."""

    low: Any
    high: Any
    part: Any
    inside: Any


def _points(xp: Any, boxes: Any, first: int, count: int, size: int) -> _Points:
    begin, end = boxes[:, first, None], boxes[:, first + 2, None]
    if count > 1:
        places = begin * (size - 1) + xp.arange(count, dtype=xp.float32) * ((end - begin) * (size - 1) / (count - 1))
    else:
        places = 0.5 * (begin + end) * (size - 1)
    inside = (places >= 0) & (places <= size - 1)
    places = xp.where(inside, places, 0)
    low = xp.floor(places)
    return _Points(low.astype(xp.int64), xp.ceil(places).astype(xp.int64), places - low, inside)


def _grid(xp: Any, boxes: Any, crop: Any, image: Any) -> tuple[_Points, _Points, Any]:
    """The points down and across, so that they broadcast, and which of their crossings are in the image."""
    down, across = (_points(xp, boxes, i, int(crop[i]), int(image[i])) for i in (0, 1))
    down, across = (_Points(*(a[:, :, None] for a in down)), _Points(*(a[:, None, :] for a in across)))
    return down, across, (down.inside & across.inside)[..., None]


def _nearest(points: _Points) -> Any:
    return points.low + (points.part >= 0.5) * (points.high - points.low)


def _check(xp: Any, boxes: Any, box_ind: Any, batch: int) -> None:
    if boxes.ndim != 2:
        raise invalid(f"boxes must be 2-D, got: {shape_text(boxes)}")
    if box_ind.ndim != 1:
        raise invalid(f"box_indices must be rank 1 but is shape {shape_text(box_ind)}")
    if boxes.shape[1] != 4:
        raise invalid("boxes must have 4 columns")
    if len(boxes) != len(box_ind):
        raise invalid("box_index has incompatible shape")
    if bool(((box_ind < 0) | (box_ind >= batch)).any()):
        raise OutOfRangeError.of("box_index has values outside [0, batch_size)")
    if not bool(xp.isfinite(boxes).all()):
        raise invalid("Boxes contains at least one element that is not finite")


def _check_image(shape: tuple[int, ...], text: str) -> None:
    if len(shape) != 4:
        raise invalid(f"{text} must be 4-D{shape_text(shape)}")
    if min(shape[1:3]) <= 0:
        raise invalid("image dimensions must be positive")


@op(f"""CropAndResize(image: T, boxes: float, box_ind: int32, crop_size: int32) -> (crops: float)
        T: {{uint8, uint16, int8, int16, int32, int64, half, float, double}}, method: {_METHODS}
        extrapolation_value: float = 0""")
class CropAndResize(Op):
    """For each box its part of the image that `box_ind` names, in `crop_size`."""

    flops = per_output(8)

    def infer(op):
        image, boxes, box_ind, crop_size = (t.shape for t in op.inputs)
        depth, size = image.with_rank(4)[3], folded_value(op.inputs[3])
        crop_size.with_rank(1).assert_is_compatible_with([2])
        count = boxes.with_rank(2)[:1].merge_with(box_ind.with_rank(1))
        sizes = [None, None] if size is None else [int(s) for s in size]
        return [count.concatenate([*sizes, depth])]

    def kernel(node, xp, image, boxes, box_ind, crop_size):
        nearest, outside = node["method"] == b"nearest", node["extrapolation_value"]
        _check_image(image.shape, "input image")
        if crop_size.shape != (2,):
            raise invalid(f"crop_size must have two elements{shape_text(crop_size)}")
        if min(crop_size.tolist()) <= 0:
            raise invalid("crop dimensions must be positive")
        _check(xp, boxes, box_ind, len(image))
        down, across, inside = _grid(xp, boxes, crop_size, image.shape[1:3])
        which = box_ind[:, None, None]
        if nearest:
            values = image[which, _nearest(down), _nearest(across)].astype(xp.float32)
        else:
            corners = _corners(xp, image, which, down, across)
            values = _between(_between(*corners[:2], across.part), _between(*corners[2:], across.part), down.part)
        return xp.where(inside, values, xp.float32(outside))

    def grad(op, dy):
        image, boxes, box_ind, _ = op.inputs
        known = image.shape
        size: Any = known.as_list() if known.is_fully_defined() else arrays.shape(image)
        by_image = None
        if image.dtype in (dtypes.float16, dtypes.float32, dtypes.float64):
            given = {"grads": dy, "boxes": boxes, "box_ind": box_ind, "image_size": size}
            attrs = {"T": op.get_attr("T"), "method": op.get_attr("method")}
            by_image = apply_op("CropAndResizeGradImage", **given, **attrs)
        by_boxes = apply_op("CropAndResizeGradBoxes", grads=dy, image=image, boxes=boxes, box_ind=box_ind)
        return [by_image, by_boxes, None, None]


def _corners(xp: Any, image: Any, which: Any, down: _Points, across: _Points) -> list[Any]:
    """The pixels above left, above right, below left and below right of each point."""
    return [image[which, y, x].astype(xp.float32) for y in down[:2] for x in across[:2]]


def _between(low: Any, high: Any, part: Any) -> Any:
    return low + (high - low) * part[..., None]


@op(f"""CropAndResizeGradImage(grads: float, boxes: float, box_ind: int32, image_size: int32) -> (output: T)
        T: {{float, half, double}}, method: {_METHODS}""")
class CropAndResizeGradImage(Op):
    """The gradients of the crops, added up at the pixels that they came from."""

    flops = per_input(8)

    infer = shapes.given(3, rank=4)

    def kernel(node, xp, grads, boxes, box_ind, image_size):
        nearest, dtype = node["method"] == b"nearest", node["T"].as_numpy_dtype
        shape = tuple(image_size.tolist())
        _check_image(shape, "image_size")
        _check(xp, boxes, box_ind, shape[0])
        down, across, inside = _grid(xp, boxes, grads.shape[1:3], shape[1:3])
        which, grads = box_ind[:, None, None], xp.where(inside, grads, 0)
        out = xp.zeros(shape, dtype)
        if nearest:
            scatterer(xp, "add")(out, (which, _nearest(down), _nearest(across)), grads.astype(dtype))
            return out
        for y, by_y in ((down.low, 1 - down.part), (down.high, down.part)):
            for x, by_x in ((across.low, 1 - across.part), (across.high, across.part)):
                values = (by_x[..., None] * (by_y[..., None] * grads)).astype(dtype)
                scatterer(xp, "add")(out, (which, y, x), values)
        return out


@op("""CropAndResizeGradBoxes(grads: float, image: T, boxes: float, box_ind: int32) -> (output: float)
       T: {uint8, uint16, int8, int16, int32, int64, half, float, double}, method: {'bilinear'} = 'bilinear'""")
class CropAndResizeGradBoxes(Op):
    """How the crops change as the edges of the boxes move."""

    flops = per_input(20)
    infer = shapes.like(2)

    def kernel(node, xp, grads, image, boxes, box_ind):
        _check_image(image.shape, "input image")
        _check(xp, boxes, box_ind, len(image))
        down, across, inside = _grid(xp, boxes, grads.shape[1:3], image.shape[1:3])
        a, b, c, d = _corners(xp, image, box_ind[:, None, None], down, across)
        grads = xp.where(inside, grads, 0)
        by_y = (_between(c - a, d - b, across.part) * grads).sum((2, 3))
        by_x = (_between(b - a, d - c, down.part) * grads).sum((1, 3))
        edges = [_by_edges(xp, by, size) for by, size in ((by_y, image.shape[1]), (by_x, image.shape[2]))]
        return xp.stack([edges[0][0], edges[1][0], edges[0][1], edges[1][1]], -1)


def _by_edges(xp: Any, by_points: Any, size: int) -> tuple[Any, Any]:
    """The gradients of the points [boxes, count] along an axis as those of the box's two edges there."""
    count = by_points.shape[1]
    part = xp.arange(count, dtype=xp.float32) / (count - 1) if count > 1 else xp.full(1, 0.5, xp.float32)
    second = (by_points * part).sum(1) * (size - 1)
    return by_points.sum(1) * (size - 1) - second, second
