"""Where the tests of the GPU run, and sessions for them."""

from __future__ import annotations

from typing import Any

import dtflab as tf
from dtflab.machine import cuda

GPU = "/gpu:0"
# Why there is none. Where there is one, the other tests hide it, from TensorFlow; `make test-gpu` runs these with it.
NO_CARD = cuda.problem()
PLACES = ["stand-in"] if NO_CARD else ["stand-in", "card"]


def session(target: str = "", **options: Any) -> tf.Session:
    """A session with these GPUOptions, which leaves memory of the card to others."""
    options = {"allow_growth": True} | options
    return tf.Session(target, config=tf.ConfigProto(gpu_options=tf.GPUOptions(**options)))
