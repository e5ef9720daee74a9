"""A multi-layer perceptron: the smallest network that is worth distributing, or is not."""

from __future__ import annotations

from collections.abc import Sequence

from dtflab.graph import dtypes
from dtflab.graph.operation import Tensor
from dtflab.ops.arrays.functions import placeholder
from dtflab.ops.nn.functions import relu
from dtflab.sim.models import vision


def mlp(batch: int, inputs: int = 784, hidden: Sequence[int] = (100,), classes: int = 10) -> Tensor:
    """The loss of dense layers of `hidden` units between `inputs` numbers and `classes`; by default MNIST's."""
    x = placeholder(dtypes.float32, [batch, inputs], name="x")
    for index, units in enumerate(hidden):
        x = vision.dense(units, relu, f"hidden_{index}")(x)
    return vision.loss(vision.dense(classes, name="logits")(x), vision.labels(batch))
