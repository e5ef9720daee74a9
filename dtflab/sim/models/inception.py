"""Inception: branches of convolutions of several sizes next to each other. GoogLeNet (v1) and v3.

Sources: Szegedy et al., "Going deeper with convolutions" (2014), table 1, and "Rethinking the Inception Architecture"
(2015); the layers of v3 are those of Keras' `inception_v3.py`, its second head that of TF-Slim. Left out: dropout, and
the two further heads of GoogLeNet.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from dtflab.graph.operation import Tensor
from dtflab.ops.nn.functions import local_response_normalization
from dtflab.sim.models import vision
from dtflab.sim.models.vision import Layer, chain, max_pool, mean_pool, side_by_side

# -- GoogLeNet --------------------------------------------------------------------------------------------------------

# In each module: 1×1; 3×3 and the 1×1 before it; 5×5 and the 1×1 before it; the 1×1 behind a pool.
_MODULES = {
    "3a": (64, 96, 128, 16, 32, 32),
    "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64),
    "4b": (160, 112, 224, 24, 64, 64),
    "4c": (128, 128, 256, 24, 64, 64),
    "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128),
    "5b": (384, 192, 384, 48, 128, 128),
}


def googlenet(batch: int, classes: int = 1000) -> Tensor:
    """The loss of GoogLeNet on images of 224 × 224."""
    conv, pool = vision.conv, max_pool(3, 2, "same")
    x = pool(conv(64, 7, 2, name="conv1")(vision.images(batch, 224)))
    x = conv(64, 1, name="conv2_reduce")(local_response_normalization(x))
    x = pool(local_response_normalization(conv(192, 3, name="conv2")(x)))
    for name, sizes in _MODULES.items():
        x = _module(*sizes, name=f"inception_{name}")(pool(x) if name in ("4a", "5a") else x)
    x = vision.dense(classes, name="predictions")(vision.mean_image(x))
    return vision.loss(x, vision.labels(batch))


def _module(one: int, before3: int, three: int, before5: int, five: int, pooled: int, name: str) -> Layer:
    conv = vision.conv
    by_3, by_5 = chain(conv(before3, 1), conv(three, 3)), chain(conv(before5, 1), conv(five, 5))
    return side_by_side(conv(one, 1), by_3, by_5, chain(max_pool(3, 1, "same"), conv(pooled, 1)), name=name)


# -- Inception-v3 -----------------------------------------------------------------------------------------------------

_conv = partial(vision.conv, bias=False, normalized=True, scale=False)


def inception_v3(batch: int, auxiliary_head: bool = False, classes: int = 1000) -> Tensor:
    """The loss of Inception-v3 on images of 299 × 299; the auxiliary head's counts 0.4 next to it."""
    x, right = _stem(vision.images(batch, 299)), vision.labels(batch)
    for index, pooled in enumerate((32, 64, 64)):
        x = _at_35(pooled, f"mixed{index}")(x)
    x = _from_35_to_17("mixed3")(x)
    for index, narrow in enumerate((128, 160, 160, 192), 4):
        x = _at_17(narrow, f"mixed{index}")(x)
    second = _auxiliary(x, classes) if auxiliary_head else None
    x = _from_17_to_8("mixed8")(x)
    for name in ("mixed9", "mixed10"):
        x = _at_8(name)(x)
    loss = vision.loss(vision.dense(classes, name="predictions")(vision.mean_image(x)), right)
    return loss if second is None else loss + 0.4 * vision.loss(second, right)


def _stem(x: Any) -> Any:
    return chain(
        _conv(32, 3, 2, "valid"),
        _conv(32, 3, 1, "valid"),
        _conv(64, 3),
        max_pool(3, 2),
        _conv(80, 1, 1, "valid"),
        _conv(192, 3, 1, "valid"),
        max_pool(3, 2),
        name="stem",
    )(x)


def _at_35(pooled: int, name: str) -> Layer:
    by_5, by_3_twice = chain(_conv(48, 1), _conv(64, 5)), chain(_conv(64, 1), _conv(96, 3), _conv(96, 3))
    return side_by_side(_conv(64, 1), by_5, by_3_twice, chain(mean_pool(3, 1), _conv(pooled, 1)), name=name)


def _from_35_to_17(name: str) -> Layer:
    by_3_twice = chain(_conv(64, 1), _conv(96, 3), _conv(96, 3, 2, "valid"))
    return side_by_side(_conv(384, 3, 2, "valid"), by_3_twice, max_pool(3, 2), name=name)


def _at_17(narrow: int, name: str) -> Layer:
    """7×7 convolutions as pairs of 1×7 and 7×1."""
    row, column = (1, 7), (7, 1)
    once = chain(_conv(narrow, 1), _conv(narrow, row), _conv(192, column))
    twice = chain(_conv(narrow, 1), *(_conv(narrow, s) for s in (column, row, column)), _conv(192, row))
    return side_by_side(_conv(192, 1), once, twice, chain(mean_pool(3, 1), _conv(192, 1)), name=name)


def _from_17_to_8(name: str) -> Layer:
    by_3 = chain(_conv(192, 1), _conv(320, 3, 2, "valid"))
    by_7 = chain(_conv(192, 1), _conv(192, (1, 7)), _conv(192, (7, 1)), _conv(192, 3, 2, "valid"))
    return side_by_side(by_3, by_7, max_pool(3, 2), name=name)


def _at_8(name: str) -> Layer:
    both = side_by_side(_conv(384, (1, 3)), _conv(384, (3, 1)))
    once, twice = chain(_conv(384, 1), both), chain(_conv(448, 1), _conv(384, 3), both)
    return side_by_side(_conv(320, 1), once, twice, chain(mean_pool(3, 1), _conv(192, 1)), name=name)


def _auxiliary(x: Any, classes: int) -> Any:
    """Logits of a second classifier, in the middle of the network."""
    x = chain(mean_pool(5, 3, "valid"), _conv(128, 1), _conv(768, 5, 1, "valid"), vision.flat, name="auxiliary")(x)
    return vision.dense(classes, name="auxiliary_predictions")(x)
