"""Images as files: PNG.

Stands for `core/kernels/{decode_image_op,encode_png_op}.cc`. Left out: all other kinds of images.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtflab.files import png
from dtflab.graph import dtypes
from dtflab.graph.op_registry import Op, op
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.messages import invalid, shape_text


@op("DecodePng(contents: string) -> (image: dtype) where channels: int = 0, dtype: {uint8, uint16} = uint8")
class DecodePng(Op):
    def infer(operation):
        operation.inputs[0].shape.with_rank(0)
        return [TensorShape([None, None, operation.get_attr("channels") or None])]

    def kernel(node, xp, contents):
        channels, wide = node["channels"], node["dtype"] == dtypes.uint16
        if channels not in (0, 1, 3, 4):
            raise invalid(f"`channels` must be 0, 1, 3 or 4 but got {channels}")
        if contents.ndim:
            raise invalid(f"contents must be a scalar but got shape {shape_text(contents)}")
        try:
            image = png.decode_png(contents.item())
        except ValueError as error:
            raise invalid(f"Invalid PNG data, size {len(contents.item())}: {error}") from None
        return _in_depth(_in_channels(image, channels), wide)


def _in_channels(image: Any, channels: int) -> Any:
    """The image with grey as colours, colours as grey, transparency left out, or opaqueness added."""
    there = image.shape[2]
    if channels in (0, there):
        return image
    colors, alpha = (image, None) if there in (1, 3) else (image[:, :, :-1], image[:, :, -1:])
    if channels == 1:
        return _grey(colors) if colors.shape[2] == 3 else colors
    colors = np.broadcast_to(colors, (*image.shape[:2], 3))
    if channels == 3:
        return colors
    if alpha is None:
        alpha = np.full((*image.shape[:2], 1), np.iinfo(image.dtype).max, image.dtype)
    return np.concatenate([colors, alpha], 2)


def _grey(colors: Any) -> Any:
    """The grey of libpng: 0.299 red, 0.587 green, 0.114 blue, in whole numbers."""
    weights = np.array([9797, 19234, 3737], np.int64)
    half = 16384 if colors.dtype == np.uint16 else 0
    return ((colors.astype(np.int64) @ weights + half) >> 15).astype(colors.dtype)[:, :, None]


def _in_depth(image: Any, wide: bool) -> Any:
    if wide == (image.dtype == np.uint16):
        return np.array(image)
    return image.astype(np.uint16) * 257 if wide else (image >> 8).astype(np.uint8)


@op("EncodePng(image: T) -> (contents: string) where compression: int = -1, T: {uint8, uint16} = uint8")
class EncodePng(Op):
    def infer(operation):
        shape = operation.inputs[0].shape
        if shape.ndims is None:
            return [shape]
        if shape.ndims < 3:
            raise ValueError(f"Shape must be at least rank 3 but is rank {shape.ndims}")
        return [shape[:-3]]

    def kernel(node, xp, image):
        level = node["compression"]
        if not -1 <= level <= 9:
            raise invalid(f"compression should be in [-1,9], got {level}")
        if image.ndim < 3:
            raise invalid(f"image must be at least rank 3 but got shape {shape_text(image)}")
        if not 1 <= image.shape[-1] <= 4:
            raise invalid(f"image must have 1, 2, 3, or 4 channels, got {image.shape[-1]}")
        files = [png.encode_png(one, level) for one in image.reshape(-1, *image.shape[-3:])]
        return np.array(files, object).reshape(image.shape[:-3])
