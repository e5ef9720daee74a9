"""Networks as graphs: those whose speed on many GPUs was published, and a user's own.

`get("resnet50")` is a function of the batch size that builds a network; `build(function, batch)` makes one of any
function that returns a loss.

Pages: `model` (what a network is), `vision` (the parts of networks for images), `vgg` (large dense layers: VGG and
AlexNet), `resnet` (blocks that add their input), `inception` (branches side by side), `seq2seq` (an encoder and a
decoder), `language_model` (the next word), `ranker` (large tables), `mlp` (the smallest).

Rule: what a network costs is said nowhere but in its graph.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from dtflab.graph.operation import Tensor
from dtflab.sim.models.inception import googlenet, inception_v3
from dtflab.sim.models.language_model import language_model
from dtflab.sim.models.mlp import mlp
from dtflab.sim.models.model import Model, build, train_op
from dtflab.sim.models.ranker import ranker
from dtflab.sim.models.resnet import resnet
from dtflab.sim.models.seq2seq import seq2seq
from dtflab.sim.models.vgg import alexnet, vgg

__all__ = ["Model", "build", "get", "names", "train_op"]

_NETWORKS = (alexnet, googlenet, inception_v3, language_model, mlp, ranker, seq2seq)
# name → (function that builds the loss, its options)
_MODELS: dict[str, tuple[Callable[..., Tensor], dict[str, Any]]] = {
    **{network.__name__: (network, {}) for network in _NETWORKS},
    "inception_v3_aux": (inception_v3, {"auxiliary_head": True}),
    "language_model_sampled": (language_model, {"sampled": 512}),
    **{f"resnet{depth}": (resnet, {"depth": depth}) for depth in (50, 101, 152)},
    **{f"resnet{depth}_v1.5": (resnet, {"depth": depth, "stride_in": 3}) for depth in (50, 101, 152)},
    "seq2seq_attention": (seq2seq, {"attention": "standard"}),
    "seq2seq_gnmt": (seq2seq, {"attention": "gnmt"}),
    **{f"vgg{depth}": (vgg, {"depth": depth}) for depth in (16, 19)},
}


def names() -> list[str]:
    """The names that `get` knows."""
    return sorted(_MODELS)


def get(name: str) -> Callable[..., Model]:
    """The function `build(batch, **options) -> Model` of a network; ValueError lists the known ones.

    Options are those of the network's own function, and `device`, what `tf.device` takes.
    """
    if name not in _MODELS:
        known = ", ".join(names())
        raise ValueError(f"There is no model '{name}'. Known are {known}; build(function, batch) makes others.")
    function, options = _MODELS[name]
    return partial(build, function, name=name, **options)
