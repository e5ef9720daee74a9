"""The parts of image networks: layers to put one after another or side by side, and a classifier's loss.

Rule: a layer is a function from images [batch, height, width, channels] to images; `chain` and `side_by_side` make
larger ones of them, each in a variable scope of its own, so that names show where in the network a variable is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.operation import Tensor
from dtflab.nets import layers
from dtflab.ops.arrays.functions import concat, placeholder
from dtflab.ops.nn.cross_entropy import sparse_softmax_cross_entropy_with_logits
from dtflab.ops.nn.functions import relu
from dtflab.ops.reduce.functions import reduce_mean
from dtflab.ops.variables.variable_scope import variable_scope

Layer = Callable[[Any], Any]


def images(batch: int, size: int) -> Tensor:
    """A placeholder for colour images, [batch, size, size, 3]."""
    return placeholder(dtypes.float32, [batch, size, size, 3], name="images")


def labels(batch: int) -> Tensor:
    """A placeholder for the numbers of the right classes, [batch]."""
    return placeholder(dtypes.int32, [batch], name="labels")


def conv(
    filters: int, size: Any, stride: int = 1, padding: str = "same", activation: Layer | None = relu,
    bias: bool = True, normalized: bool = False, scale: bool = True, name: str | None = None,
) -> Layer:  # fmt: skip
    """A convolution, batch normalization behind it (`scale`: with its factor, too) if `normalized`, an activation."""

    def layer(x: Any) -> Any:
        with variable_scope(name, default_name="conv"):
            x = layers.conv2d(x, filters, size, stride, padding, use_bias=bias)
            if normalized:
                x = layers.batch_normalization(x, scale=scale, training=True, fused=True)
            return x if activation is None else activation(x)

    return layer


def max_pool(size: int, stride: int, padding: str = "valid") -> Layer:
    """The largest of each window."""
    return lambda x: layers.max_pooling2d(x, size, stride, padding)


def mean_pool(size: int, stride: int, padding: str = "same") -> Layer:
    """The mean of each window."""
    return lambda x: layers.average_pooling2d(x, size, stride, padding)


def chain(*parts: Layer, name: str | None = None) -> Layer:
    """Layers one after the other."""

    def layer(x: Any) -> Any:
        with variable_scope(name, default_name="chain"):
            for part in parts:
                x = part(x)
            return x

    return layer


def side_by_side(*branches: Layer, name: str | None = None) -> Layer:
    """Layers of the same images; their channels are put side by side."""

    def layer(x: Any) -> Any:
        with variable_scope(name, default_name="side_by_side"):
            return concat([branch(x) for branch in branches], 3)

    return layer


def flat(x: Any) -> Any:
    """Each image as one row, [batch, height · width · channels]."""
    return layers.flatten(x)


def mean_image(x: Any) -> Any:
    """The mean of each channel, [batch, channels]."""
    return reduce_mean(x, [1, 2])


def dense(units: int, activation: Layer | None = None, name: str | None = None) -> Layer:
    """A fully connected layer, [batch, inputs] → [batch, units]."""
    return lambda x: layers.dense(x, units, activation, name=name)


def loss(logits: Any, classes: Any) -> Tensor:
    """The mean cross entropy of `logits` [batch, classes] and the right `classes` [batch]."""
    found: Tensor = reduce_mean(sparse_softmax_cross_entropy_with_logits(labels=classes, logits=logits))
    return found
