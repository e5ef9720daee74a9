"""Summaries and events in a form that can be compared."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from PIL import Image

from dtflab.protos.summary_pb2 import Summary


def shown(serialized: bytes) -> str:
    message = Summary.FromString(serialized)
    for value in message.value:
        if value.HasField("image"):
            pixels = decoded(value.image.encoded_image_string)
            assert pixels.shape == (value.image.height, value.image.width, value.image.colorspace)
            value.image.encoded_image_string = str(pixels.tolist()).encode()
    return str(message)


def decoded(png: bytes) -> np.ndarray:
    """The pixels of a PNG as [height, width, channels]; read by a third library, for both sides."""
    pixels = np.asarray(Image.open(io.BytesIO(png)))
    return pixels.reshape(*pixels.shape[:2], -1)


def facts(event: Any) -> Any:
    kind = event.WhichOneof("what")
    if kind == "summary":
        return event.step, shown(event.summary.SerializeToString())
    if kind in ("graph_def", "meta_graph_def", "tagged_run_metadata"):  # compared by other tests
        return event.step, kind, event.tagged_run_metadata.tag
    return event.step, kind, str(getattr(event, kind)) if kind else ""
