"""Tables: the catalogue as text, in a notebook and in docs/hardware.md.

Stands for nothing in TensorFlow. Left out: parts that were never added to the catalogue.

Rule: a column has one unit, in its head.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dtflab.base.text_table import html_table, text_table
from dtflab.hardware.catalogue_cpus import CPUS
from dtflab.hardware.catalogue_gpus import GPUS
from dtflab.hardware.catalogue_links import BUSES, NICS, RACKS, SOCKETS, SWITCHES
from dtflab.hardware.parts import Bus, Processor
from dtflab.machine import cards

Table = tuple[str, list[str], list[list[Any]]]  # title, heads, rows

_DTYPES = ("float32", "float64", "float16", "bfloat16", "tf32")


class Hardware:
    """The result of `dtflab.sim.hardware()`: `tables` (title, heads, rows); print it, or let a notebook show it."""

    @property
    def tables(self) -> list[Table]:
        """All kinds of parts, in the order of a message's way: processors, buses, network."""
        return [
            ("GPUs", *_processors(GPUS.values(), "SMs")),
            ("CPUs, one socket", *_processors(CPUS.values(), "cores")),
            ("Buses", *_buses()),
            ("Network cards", *_nics()),
            ("Switches", *_switches()),
            ("Racks", *_racks()),
        ]

    def __repr__(self) -> str:
        return "\n\n".join(f"{title}\n{text_table(heads, rows)}" for title, heads, rows in self.tables)

    def _repr_html_(self) -> str:
        form = "<details open><summary>{}</summary>{}</details>"
        return "".join(form.format(title, html_table(heads, rows)) for title, heads, rows in self.tables)


def hardware() -> Hardware:
    """The catalogue of hardware that can be simulated: `print(dtflab.sim.hardware())`."""
    return Hardware()


def _processors(parts: Iterable[Processor], cores: str) -> tuple[list[str], list[list[Any]]]:
    heads = ["name", *(f"{dtype} TFLOP/s" for dtype in _DTYPES), "memory GiB", "GB/s", "launch µs", cores, "source"]
    return heads, [_processor(part) for part in parts]


def _processor(part: Processor) -> list[Any]:
    memory = round(part.memory_bytes / cards.GIB, 2), round(part.memory_bandwidth / 1e9, 1)
    teraflops = [_tera(part, dtype) for dtype in _DTYPES]
    return [_called(part), *teraflops, *memory, _micros(part.launch_s), part.cores, part.source]


def _called(part: Processor) -> str:
    """A name and its short forms, without those that are evident because only one card's name contains them."""
    short = cards.model(part.name).short if part.kind == "GPU" else ()
    others = [name for name in short if sum(name in card.name for card in cards.MODELS) != 1]
    return f"{part.name} ({', '.join(others)})" if others else part.name


def _tera(part: Processor, dtype: str) -> str:
    return f"{part.peak_flops[dtype] / 1e12:.4g}" if dtype in part.peak_flops else "-"


def _buses() -> tuple[list[str], list[list[Any]]]:
    heads = ["name", "to the host GB/s", "among GPUs GB/s", "GPUs per switch", "latency µs", "source"]
    return heads, [_bus(bus) for bus in (*BUSES.values(), SOCKETS)]


def _bus(bus: Bus) -> list[Any]:
    rates = (round(rate / 1e9, 2) for rate in (bus.bandwidth, bus.peer_bandwidth or bus.bandwidth))
    return [bus.name, *rates, bus.tree or "-", _micros(bus.latency_s), bus.source]


def _nics() -> tuple[list[str], list[list[Any]]]:
    return ["name", "GB/s", "latency µs", "source"], [
        [nic.name, round(nic.bandwidth / 1e9, 3), _micros(nic.latency_s), nic.source] for nic in NICS.values()
    ]


def _switches() -> tuple[list[str], list[list[Any]]]:
    return ["name", "latency µs", "source"], [[s.name, _micros(s.latency_s), s.source] for s in SWITCHES.values()]


def _racks() -> tuple[list[str], list[list[Any]]]:
    heads = ["name", "hosts", "oversubscription", "source"]
    return heads, [[r.name, r.hosts, r.oversubscription, r.source] for r in RACKS.values()]


def _micros(seconds: float) -> float:
    return round(seconds * 1e6, 3)
