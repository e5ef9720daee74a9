"""ResNet: blocks of three convolutions whose input is added to what they make of it.

Source: He et al., "Deep Residual Learning" (2015), table 1; Keras' `resnet.py`, whose parameters these are (its
convolutions have biases, the paper's have none).

Rule: where a stage halves the image, the paper and Keras do it in the first convolution of a block, which is 1×1;
later implementations (`stride_in=3`, called "v1.5") in the second, 3×3, at 6% more multiply-adds.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from dtflab.graph.operation import Tensor
from dtflab.ops.nn.functions import relu
from dtflab.ops.variables.variable_scope import variable_scope
from dtflab.sim.models import vision

_BLOCKS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}  # in each stage, by the number of layers
_conv = partial(vision.conv, normalized=True)


def resnet(batch: int, depth: int = 50, stride_in: int = 1, classes: int = 1000) -> Tensor:
    """The loss of ResNet-50, -101 or -152 on images of 224 × 224; ValueError for another depth or `stride_in`."""
    if depth not in _BLOCKS or stride_in not in (1, 3):
        raise ValueError(
            "ResNet has 50, 101 or 152 layers and strides in 1×1 or 3×3 convolutions (stride_in=1 or 3), "
            f"not {depth!r} and {stride_in!r}."
        )
    x = _conv(64, 7, 2, name="conv1")(vision.images(batch, 224))
    x = vision.max_pool(3, 2, "same")(x)
    for stage, blocks in enumerate(_BLOCKS[depth]):
        for block in range(blocks):
            with variable_scope(f"conv{stage + 2}_block{block + 1}"):
                x = _block(x, 64 << stage, 2 if stage and not block else 1, stride_in, widen=not block)
    x = vision.dense(classes, name="predictions")(vision.mean_image(x))
    return vision.loss(x, vision.labels(batch))


def _block(x: Any, filters: int, stride: int, stride_in: int, widen: bool) -> Any:
    """1×1, 3×3 and 1×1 convolutions; the way around them has one, too, if it must `widen` the input."""
    around = _conv(4 * filters, 1, stride, activation=None, name="shortcut")(x) if widen else x
    x = _conv(filters, 1, stride if stride_in == 1 else 1, name="a")(x)
    x = _conv(filters, 3, stride if stride_in == 3 else 1, name="b")(x)
    x = _conv(4 * filters, 1, activation=None, name="c")(x)
    return relu(x + around)
