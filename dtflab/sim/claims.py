"""Claims: what was published of TensorFlow's scaling, next to what `estimate` says of it, with what is assumed.

`dtflab sim claims` prints the table of docs/simulator.md.

Rule: the claims name neither network nor servers, so each is asked for several networks. Nothing here was fitted: where
a claim does not come out, the table shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from dtflab.sim import models
from dtflab.sim.engine.cluster_models import cluster_model
from dtflab.sim.engine.network_profile import Profile
from dtflab.sim.estimates.answer import Estimate
from dtflab.sim.estimates.estimate import estimate

NETWORKS = ("10Gb/s", "40Gb/s")


@dataclass(frozen=True)
class Claim:
    """`published` is the speed-up over one GPU that was claimed; `cluster` and `options` are what is assumed."""

    name: str
    published: str
    model: str
    assumed: str
    cluster: dict[str, Any]
    options: dict[str, Any]
    model_options: dict[str, Any] = field(default_factory=dict)

    def predicted(self, network: str) -> Estimate:
        """The estimate on that network."""
        profile = _profile_of(self.model, self.options["batch"], **self.model_options)
        there = cluster_model(network=network, gpu="K40", **self.cluster)
        return estimate(profile, there, mode="ps_async", **self.options)


@cache
def _profile_of(model: str, batch: int, **options: Any) -> Profile:
    """One profile for all networks: the graph takes longer than most estimates."""
    return Profile.from_graph(models.get(model)(batch, **options).loss)


_DENSE: dict[str, Any] = {"workers": 50, "ps_tasks": 17}
_BATCH: dict[str, Any] = {"batch": 32, "steps": 10}
_RANKER = {"hidden": (4096, 2048, 1024), "depth": 32, "ids": 10}

CLAIMS = (
    Claim("Inception-v3, 50 GPUs", "32", "inception_v3", "17 servers, batch 32", _DENSE, _BATCH),
    Claim("seq2seq, 8 GPUs in one host", "6", "seq2seq_attention", "4 layers of 1,024, batch 64, variables on its CPU",
          {"workers": 1, "ps_tasks": 0, "gpus_per_worker": 8}, {"batch": 64, "steps": 10, "local_aggregation": False}),
    Claim("seq2seq, 8 GPUs in 8 hosts", "6", "seq2seq_attention", "the same, a server next to each worker, batch 128",
          {"workers": 8, "ps_tasks": 8, "ps_colocated": True}, {"batch": 128, "steps": 10}),
    Claim("ranker, 500 GPUs", "300", "ranker", "250 servers, tables cut, layers of 4,096 to 1,024, batch 4,096",
          {"workers": 500, "ps_tasks": 250}, {"batch": 4096, "steps": 4, "parts": 250, "most_items": 250}, _RANKER),
    Claim("dense: ResNet-50, 50 GPUs", "25 to 40", "resnet50", "17 servers, batch 32", _DENSE, _BATCH),
    Claim("dense: ResNet-152, 50 GPUs", "25 to 40", "resnet152", "17 servers, batch 32", _DENSE, _BATCH),
    Claim("dense: VGG-16, 50 GPUs", "25 to 40", "vgg16", "17 servers, batch 32, fc6 of 411 MB whole", _DENSE, _BATCH),
    Claim("the same, variables cut", "25 to 40", "vgg16", "17 servers, batch 32, each variable in 17 parts", _DENSE,
          {**_BATCH, "parts": 17}),
)  # fmt: skip


def claims(networks: Iterable[str] = NETWORKS) -> Iterator[tuple[Claim, dict[str, float]]]:
    """Each claim with the predicted speed-ups over one GPU, by network."""
    asked = list(networks)
    for claim in CLAIMS:
        yield claim, {network: claim.predicted(network).speedup for network in asked}


def row(claim: Claim, speedups: dict[str, float]) -> str:
    """A line of the table in docs/simulator.md."""
    predicted = [f"{speedup:.{0 if speedup >= 9.95 else 1}f}" for speedup in speedups.values()]
    return f"| {' | '.join([claim.name, claim.published, *predicted, claim.assumed])} |"


def table() -> Iterator[str]:
    """The lines of the table in docs/simulator.md, each as soon as it is known."""
    yield "| claim | published × | " + " | ".join(f"at {network} ×" for network in NETWORKS) + " | assumed |"
    yield "| --- | --- | " + "--- | " * len(NETWORKS) + "--- |"
    yield from (row(claim, speedups) for claim, speedups in claims())
