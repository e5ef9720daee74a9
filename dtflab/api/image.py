"""tf.image: images as files, cut, turned and resized, changed in light and colours, measured."""

from __future__ import annotations

from typing import Any

from dtflab.base.missing_names import missing as _missing
from dtflab.ops.conv.functions import extract_image_patches, extract_patches
from dtflab.ops.images.functions import (
    adjust_brightness,
    adjust_contrast,
    adjust_gamma,
    adjust_hue,
    adjust_saturation,
    convert_image_dtype,
    crop_and_resize,
    decode_png,
    encode_png,
    flip_left_right,
    flip_up_down,
    grayscale_to_rgb,
    hsv_to_rgb,
    image_gradients,
    per_image_standardization,
    psnr,
    random_brightness,
    random_contrast,
    random_crop,
    random_flip_left_right,
    random_flip_up_down,
    random_hue,
    random_saturation,
    resize_area,
    resize_bicubic,
    resize_bilinear,
    resize_nearest_neighbor,
    rgb_to_grayscale,
    rgb_to_hsv,
    rot90,
    sobel_edges,
    total_variation,
    transpose,
)
from dtflab.ops.images.sizes import (
    ResizeMethod,
    central_crop,
    crop_to_bounding_box,
    pad_to_bounding_box,
    resize_image_with_crop_or_pad,
    resize_image_with_pad,
    resize_images,
)

resize = resize_images
resize_with_crop_or_pad = resize_image_with_crop_or_pad
transpose_image = transpose


def __getattr__(name: str) -> Any:
    raise _missing("tf.image", name, globals())
