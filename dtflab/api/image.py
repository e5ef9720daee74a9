"""tf.image: images as files, cut, turned and resized, changed in light and colours, measured."""

from __future__ import annotations

from typing import Any

from dtflab.base.missing_names import missing as _missing
from dtflab.ops.images.adjusting import (
    adjust_brightness,
    adjust_contrast,
    adjust_gamma,
    adjust_hue,
    adjust_saturation,
    grayscale_to_rgb,
    per_image_standardization,
    random_brightness,
    random_contrast,
    random_hue,
    random_saturation,
    rgb_to_grayscale,
)
from dtflab.ops.images.boxes import crop_and_resize
from dtflab.ops.images.colors import hsv_to_rgb, rgb_to_hsv
from dtflab.ops.images.crops import (
    central_crop,
    crop_to_bounding_box,
    pad_to_bounding_box,
    random_crop,
    resize_image_with_crop_or_pad,
)
from dtflab.ops.images.dtype import convert_image_dtype
from dtflab.ops.images.flips import (
    flip_left_right,
    flip_up_down,
    random_flip_left_right,
    random_flip_up_down,
    rot90,
    transpose,
)
from dtflab.ops.images.measures import image_gradients, psnr, sobel_edges, total_variation
from dtflab.ops.images.png import decode_png, encode_png
from dtflab.ops.images.resizing import (
    ResizeMethod,
    resize_area,
    resize_bicubic,
    resize_bilinear,
    resize_image_with_pad,
    resize_images,
    resize_nearest_neighbor,
)
from dtflab.ops.windows.patches import extract_image_patches, extract_patches

resize = resize_images
resize_with_crop_or_pad = resize_image_with_crop_or_pad
transpose_image = transpose


def __getattr__(name: str) -> Any:
    raise _missing("tf.image", name, globals())
