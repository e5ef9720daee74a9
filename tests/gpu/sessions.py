"""Sessions on a GPU."""

from __future__ import annotations

from typing import Any

import dtflab as tf

GPU = "/gpu:0"


def session(target: str = "", **options: Any) -> tf.Session:
    """A session with these GPUOptions, which leaves memory of the card to others."""
    options = {"allow_growth": True} | options
    return tf.Session(target, config=tf.ConfigProto(gpu_options=tf.GPUOptions(**options)))
