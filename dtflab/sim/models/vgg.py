"""AlexNet and VGG: convolutions, and three dense layers that hold most of the parameters.

AlexNet has five convolutions, and 96% of its 61,100,840 parameters in the dense layers; 0.71 G multiply-adds. Source:
Krizhevsky, "One weird trick for parallelizing convolutional neural networks" (2014), whose network has one tower of 64,
192, 384, 256, 256 filters. Left out: dropout, and the normalization of responses that the network of 2012 had.

VGG has blocks of 3×3 convolutions, and nine tenths of its parameters in the dense layers. Source: Simonyan and
Zisserman, "Very Deep Convolutional Networks" (2014), tables 1 and 2; Keras' `vgg16.py` and `vgg19.py`. Left out:
dropout, as in Keras.
"""

from __future__ import annotations

from typing import Any

from dtflab.graph.operation import Tensor
from dtflab.ops.nn.functions import relu
from dtflab.sim.models import vision

_CONVOLUTIONS = {16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}  # in each block, by the number of layers with weights
_FILTERS = (64, 128, 256, 512, 512)


def alexnet(batch: int, classes: int = 1000) -> Tensor:
    """The loss of AlexNet on images of 227 × 227 (224 with a border)."""
    x = vision.images(batch, 227)
    pool = vision.max_pool(3, 2)
    x = pool(vision.conv(64, 11, 4, "valid", name="conv1")(x))
    x = pool(vision.conv(192, 5, name="conv2")(x))
    for name, filters in (("conv3", 384), ("conv4", 256), ("conv5", 256)):
        x = vision.conv(filters, 3, name=name)(x)
    return _dense(pool(x), batch, classes)


def vgg(batch: int, depth: int = 16, classes: int = 1000) -> Tensor:
    """The loss of VGG-16 or -19 on images of 224 × 224; ValueError for another depth."""
    if depth not in _CONVOLUTIONS:
        raise ValueError(f"VGG has 16 or 19 layers with weights, not {depth!r}.")
    x = vision.images(batch, 224)
    for block, (count, filters) in enumerate(zip(_CONVOLUTIONS[depth], _FILTERS, strict=True), 1):
        for index in range(1, count + 1):
            x = vision.conv(filters, 3, name=f"conv{block}_{index}")(x)
        x = vision.max_pool(2, 2)(x)
    return _dense(x, batch, classes)


def _dense(x: Any, batch: int, classes: int) -> Tensor:
    """The loss of three dense layers behind the convolutions."""
    x = vision.flat(x)
    for name in ("fc6", "fc7"):
        x = vision.dense(4096, relu, name)(x)
    return vision.loss(vision.dense(classes, name="fc8")(x), vision.labels(batch))
