"""Discovery: what TensorFlow says of the GPUs that it finds when it starts.

Stands for the log lines of `core/common_runtime/gpu/gpu_device.cc` and `gpu_init.cc`, in the words of TensorFlow 1.0.
Left out: where they came from (files, numbers of lines, times).

Rule: nobody reads them unasked. They come with `dtflab.discovery()`, with TF_CPP_MIN_LOG_LEVEL=0 in the environment,
and, one per device, with `log_device_placement`. That a card is too old is always said.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dtflab.machine import cards
from dtflab.machine.bfc_allocator import human_bytes
from dtflab.machine.console import say
from dtflab.machine.hosts import Claim, free_bytes, this_home, visible_claims

if TYPE_CHECKING:
    from dtflab.protos.config_pb2 import ConfigProto


def discovery(config: ConfigProto | None = None) -> str:
    """The lines about all GPUs that a local session with this ConfigProto has; an empty text if it has none."""
    home = this_home()
    return "\n".join(lines(visible_claims(home.host, home.program, home.visible, config)))


def tell(claims: Sequence[Claim], config: ConfigProto | None) -> None:
    """Print what was asked for: all with TF_CPP_MIN_LOG_LEVEL=0, the devices for `config.log_device_placement`."""
    if os.environ.get("TF_CPP_MIN_LOG_LEVEL") == "0":
        asked = lines(claims)
    elif config is not None and config.log_device_placement:
        asked = _created(claims)
    else:
        return
    for line in asked:
        say(line)


def lines(claims: Sequence[Claim]) -> list[str]:
    """Properties of each card, which cards reach each other's memory, and the devices."""
    if not claims:
        return []
    numbers = [claim.ordinal for claim in claims]
    reach = [f"{number}:   {'Y ' * len(claims)}".rstrip() for number in numbers]
    found = [line for claim in claims for line in _properties(claim)]
    return [*found, f"DMA: {' '.join(map(str, numbers))}", *reach, *_created(claims)]


def _properties(claim: Claim) -> list[str]:
    card, model = claim.card, claim.card.model
    major, minor = model.compute_capability
    free = free_bytes(card) - (0 if claim.grabbed else cards.CONTEXT_BYTES)
    return [
        f"Found device {claim.ordinal} with properties:",
        f"name: {model.name}",
        f"major: {major} minor: {minor} memoryClockRate (GHz) {model.clock_ghz:g}",
        f"pciBusID {card.pci_bus_id}",
        f"Total memory: {human_bytes(card.memory_bytes)}",
        f"Free memory: {human_bytes(free)}",
    ]


def _created(claims: Sequence[Claim]) -> list[str]:
    return [
        f"Creating TensorFlow device (/gpu:{i}) -> ({claim.description.rpartition(', compute')[0]})"
        for i, claim in enumerate(claims)
    ]
