"""The first examples of a Dataset as pictures with their labels, where a notebook would show only its size."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from dtflab.datasets.dataset import Dataset

MOST, SCALE = 12, 6  # examples shown, screen pixels per pixel
_EXAMPLE = "display:inline-block;margin:4px 12px 4px 0;text-align:center"


def dataset_html(dataset: Dataset) -> str | None:
    """HTML of the first examples; None if they are not square images, or there are none."""
    side = math.isqrt(int(np.prod(dataset.images.shape[1:])))
    if side < 2 or not dataset.num_examples or dataset.images[0].size != side * side:
        return None
    shown = "".join(
        _example(image.reshape(side, side), int(label.argmax() if label.ndim else label))
        for image, label in zip(dataset.images[:MOST], dataset.labels[:MOST])
    )
    return f'<div style="line-height:1.4"><div>{dataset.num_examples:,} examples, for instance:</div>{shown}</div>'


def _example(image: NDArray[Any], label: int) -> str:
    ink = 255 - np.rint(np.clip(image, 0, 1) * 255).astype(np.uint8)
    pixels = np.kron(ink, np.ones((SCALE, SCALE), np.uint8))
    source = base64.b64encode(png(pixels)).decode()
    return (
        f'<span style="{_EXAMPLE}"><img src="data:image/png;base64,{source}" alt="an image of the digit {label}" '
        f'width="{len(pixels)}" height="{len(pixels)}"><br>{label}</span>'
    )


def png(pixels: NDArray[np.uint8]) -> bytes:
    """A grey picture as a PNG file."""
    height, width = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)  # each row starts with its filter: none
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
