"""tf.image: images as files."""

from __future__ import annotations

from typing import Any

from dtflab.graph.missing import missing as _missing
from dtflab.ops.image import decode_png, encode_png
from dtflab.ops.patches import extract_image_patches, extract_patches
from dtflab.ops.random_crop import random_crop


def __getattr__(name: str) -> Any:
    raise _missing("tf.image", name, globals())
