"""Catalogue: parts by name.

Stands for the makers' data sheets. Left out: prices.

    gpu("K40"), cpu("2x Xeon E5-2686 v4"), bus("pcie3"), nic("10Gb/s"), network("InfiniBand EDR", racks="40 at 4:1")

Rule: a part has one name, however it is spelled; an unknown name raises ValueError with the list of names. A Processor,
Bus, … of the program's own may be given wherever a name may; `add_hardware` adds it to the catalogue by its name.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any, TypeVar

from dtflab.base.suggestions import did_you_mean
from dtflab.hardware.catalogue_cpus import CPUS
from dtflab.hardware.catalogue_gpus import GPUS
from dtflab.hardware.catalogue_links import BUSES, NICS, RACKS, SWITCHES
from dtflab.hardware.parts import Bus, Network, Nic, Processor, Rack, Switch
from dtflab.machine import cards

_Part = TypeVar("_Part", Processor, Bus, Nic, Switch, Rack)


_PARTS: dict[str, dict[str, Any]]
_PARTS = {"GPU": GPUS, "CPU": CPUS, "Bus": BUSES, "Nic": NICS, "Switch": SWITCHES, "Rack": RACKS}
_added: set[tuple[str, str]] = set()  # kinds and names of the program's own parts


def add_hardware(part: Processor | Bus | Nic | Switch | Rack) -> None:
    """Add a part to the catalogue, so that `Cluster(gpu=…)` and other functions accept its name.

    An added part of that name is replaced. Raises ValueError if a shipped part has the name, or `part` is not a part.
    """
    kind = part.kind if isinstance(part, Processor) else type(part).__name__
    if kind not in _PARTS:
        raise ValueError(f"add_hardware takes a Processor, Bus, Nic, Switch or Rack, not {part!r}.")
    parts = _PARTS[kind]
    if (kind, part.name) in _added:  # a notebook's cell runs again, perhaps with another number
        cards.MODELS[:] = [model for model in cards.MODELS if kind != "GPU" or model.name != part.name]
    elif _plain(part.name) in map(_plain, parts) or (kind == "GPU" and cards.is_known(part.name)):
        raise ValueError(f"The catalogue has a {kind} named {part.name!r} already. Choose another name.")
    if isinstance(part, Processor) and kind == "GPU":
        cards.MODELS.append(_card(part))
    parts[part.name] = part
    _added.add((kind, part.name))


def _card(part: Processor) -> cards.CardModel:
    """The card as a driver would describe it; compute capability, power and clock are assumed."""
    return cards.CardModel(part.name, (part.name,), part.memory_bytes, (7, 5), 1.0, part.cores, 250)


def gpu(name: str | Processor) -> Processor:
    """The GPU of that name; ValueError lists the known ones. A Processor is taken as it is."""
    return _of_kind("GPU", name) if isinstance(name, Processor) else GPUS[cards.model(str(name)).name]


def cpu(name: str | Processor) -> Processor:
    """The CPUs of a host, "2x NAME" for two sockets; ValueError lists the known ones. A Processor is taken as it is."""
    if isinstance(name, Processor):
        return _of_kind("CPU", name)
    name = str(name)
    match = re.match(r"\s*(\d+)\s*[x×]\s*", name)
    one = _named("CPU", CPUS, name[match.end() :] if match else name)
    return _times(one, int(match[1])) if match else one


def _of_kind(kind: str, part: Processor) -> Processor:
    if part.kind != kind:
        raise ValueError(f"{part.name!r} is a {part.kind}; give a {kind} here.")
    return part


def _times(one: Processor, sockets: int) -> Processor:
    """Several sockets as one processor, with the sum of their cores, bandwidth and FLOP/s."""
    return dataclasses.replace(
        one,
        name=f"{sockets}x {one.name}",
        peak_flops={dtype: sockets * flops for dtype, flops in one.peak_flops.items()},
        memory_bandwidth=sockets * one.memory_bandwidth,
        cores=sockets * one.cores,
        sockets=sockets,
    )


def bus(name: str | Bus) -> Bus:
    """The bus of that name; ValueError lists the known ones. A Bus is taken as it is."""
    return name if isinstance(name, Bus) else _named("bus", BUSES, name)


_RATE = re.compile(r"(-?\d+(?:\.\d+)?) *([kmgt]?)(bits?|bytes?|b) *(?:/ *s(?:ec(?:onds?)?)?|ps)", re.IGNORECASE)


def nic(name: str | Nic) -> Nic:
    """The network card of that name, or of a rate: "10Gb/s", "25 Gbit/s", "1.2GB/s" (bits and bytes differ).

    A rate that is not in the catalogue gets the latency of the next faster Ethernet. ValueError for anything else.
    """
    if isinstance(name, Nic):
        return name
    text = str(name).strip()
    rate = _RATE.fullmatch(text)
    return _of_rate(text, _bytes_per_second(rate)) if rate else _named("network card", NICS, name)


def _bytes_per_second(rate: re.Match[str]) -> float:
    number, scale, unit = rate.groups()
    in_bytes = unit == "B" or unit.lower().startswith("byte")
    return float(number) * 10.0 ** (3 * " kmgt".index(scale.lower() or " ")) / (1 if in_bytes else 8)


def _of_rate(name: str, bandwidth: float) -> Nic:
    ethernet = [known for known in NICS.values() if known.name[0].isdigit()]
    if bandwidth <= 0:
        raise ValueError(f"A network of {name!r} carries no data. Give a rate above 0, for example '10Gb/s'.")
    next_faster = next((known for known in ethernet if known.bandwidth >= bandwidth), ethernet[-1])
    if next_faster.bandwidth == bandwidth:
        return next_faster
    return Nic(name, bandwidth, next_faster.latency_s, f"as requested; latency of {next_faster.name}")


def switch(name: str | Switch) -> Switch:
    """The switch of that name; ValueError lists the known ones. A Switch is taken as it is."""
    return name if isinstance(name, Switch) else _named("switch", SWITCHES, name)


def rack(name: str | Rack) -> Rack:
    """The kind of rack of that name; ValueError lists the known ones. A Rack is taken as it is."""
    return name if isinstance(name, Rack) else _named("rack", RACKS, name)


def network(
    name: str | Nic | Network = "10Gb/s", *, switch_: str | Switch | None = None, racks: str | Rack | None = None
) -> Network:
    """The network whose cards have that name. A Network is taken as it is.

    Its switches are InfiniBand's under such cards, Ethernet's under others, unless `switch_` says; `racks` says how
    many hosts stand under one (None: all).
    """
    if isinstance(name, Network):
        return name
    card = nic(name)
    kind = switch(switch_ or ("infiniband" if card.name.startswith("InfiniBand") else "ethernet"))
    if racks is None:
        return Network(card, kind.latency_s)
    under = rack(racks)
    return Network(card, kind.latency_s, under.hosts, under.oversubscription)


def _named(kind: str, known: Mapping[str, _Part], name: Any) -> _Part:
    wanted = _plain(str(name))
    for part in known.values():
        if _plain(part.name) == wanted:
            return part
    meant = did_you_mean(str(name), known)
    raise ValueError(f"Unknown {kind} {name!r}.{meant} Choose one of {', '.join(known)}, or give a part of your own.")


def _plain(name: str) -> str:
    return re.sub(r"intel|amd|\(r\)|[^\w:]|_", "", name.lower())
