"""AlexNet on one device: five convolutions, and three dense layers that hold 96% of the parameters.

Source: Krizhevsky, "One weird trick for parallelizing convolutional neural networks" (2014), whose network has one
tower of 64, 192, 384, 256, 256 filters; 61,100,840 parameters and 0.71 G multiply-adds. Left out: dropout, and the
normalization of responses that the network of 2012 had.
"""

from __future__ import annotations

from dtflab.graph.operation import Tensor
from dtflab.ops.nn.functions import relu
from dtflab.sim.models import vision


def alexnet(batch: int, classes: int = 1000) -> Tensor:
    """The loss of AlexNet on images of 227 × 227 (224 with a border)."""
    x = vision.images(batch, 227)
    pool = vision.max_pool(3, 2)
    x = pool(vision.conv(64, 11, 4, "valid", name="conv1")(x))
    x = pool(vision.conv(192, 5, name="conv2")(x))
    for name, filters in (("conv3", 384), ("conv4", 256), ("conv5", 256)):
        x = vision.conv(filters, 3, name=name)(x)
    x = vision.flat(pool(x))
    for name in ("fc6", "fc7"):
        x = vision.dense(4096, relu, name)(x)
    return vision.loss(vision.dense(classes, name="fc8")(x), vision.labels(batch))
