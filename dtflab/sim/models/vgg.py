"""VGG: blocks of 3×3 convolutions, and three dense layers that hold nine tenths of the parameters.

Source: Simonyan and Zisserman, "Very Deep Convolutional Networks" (2014), tables 1 and 2; Keras' `vgg16.py` and
`vgg19.py`. Left out: dropout, as in Keras.
"""

from __future__ import annotations

from dtflab.graph.operation import Tensor
from dtflab.ops.nn.functions import relu
from dtflab.sim.models import vision

_CONVOLUTIONS = {16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}  # in each block, by the number of layers with weights
_FILTERS = (64, 128, 256, 512, 512)


def vgg(batch: int, depth: int = 16, classes: int = 1000) -> Tensor:
    """The loss of VGG-16 or -19 on images of 224 × 224; ValueError for another depth."""
    if depth not in _CONVOLUTIONS:
        raise ValueError(f"VGG has 16 or 19 layers with weights, not {depth!r}.")
    x = vision.images(batch, 224)
    for block, (count, filters) in enumerate(zip(_CONVOLUTIONS[depth], _FILTERS, strict=True), 1):
        for index in range(1, count + 1):
            x = vision.conv(filters, 3, name=f"conv{block}_{index}")(x)
        x = vision.max_pool(2, 2)(x)
    x = vision.flat(x)
    for name in ("fc6", "fc7"):
        x = vision.dense(4096, relu, name)(x)
    return vision.loss(vision.dense(classes, name="fc8")(x), vision.labels(batch))
