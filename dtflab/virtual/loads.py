"""Loads: how busy the processors and links of a cluster in virtual time have been since that began.

Stands for what `nvidia-smi`, `top` and a switch's counters show for real machines.

Rules: a share is of what the hardware can give: of all cores of a host, of one direction of a link. A kernel counts
when it is over, a message with its whole time when it sets out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dtflab.base.text_table import html_table, text_table
from dtflab.graph import device_spec

_MOST = 20  # rows that a text shows of each kind


class ProcessorLoad(NamedTuple):
    """A GPU, or all cores of a host: `busy` seconds of work, cores together, and the share of what they could do."""

    devices: tuple[str, ...]  # whose kernels it runs, by their full names
    hardware: str
    busy: float
    share: float

    def __str__(self) -> str:
        first, *others = map(_short, self.devices)
        return f"{first} and {len(others)} more" if others else first


class LinkLoad(NamedTuple):
    """One direction of a wire: what passed it, for how many seconds it was busy, and the share of the time."""

    name: str
    messages: int
    nbytes: int
    busy: float
    share: float


@dataclass(frozen=True, repr=False)
class Loads:
    """All of them after `seconds` of virtual time, the busiest first."""

    seconds: float
    processors: tuple[ProcessorLoad, ...]
    links: tuple[LinkLoad, ...]

    @property
    def text(self) -> str:
        """Two tables, of the busiest."""
        return "\n".join([self._title, *(_cut(text_table(heads, rows)) for heads, rows in self._tables)])

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f"<p>{self._title}</p>" + "".join(html_table(heads, rows) for heads, rows in self._tables)

    @property
    def _title(self) -> str:
        return f"{self.seconds:.6g} s of virtual time"

    @property
    def _tables(self) -> list[tuple[tuple[str, ...], Sequence[Sequence[Any]]]]:
        processors = [(str(load), load.hardware, f"{load.busy:.6f}", f"{load.share:.1%}") for load in self.processors]
        links = [(one.name, one.messages, one.nbytes, f"{one.busy:.6f}", f"{one.share:.1%}") for one in self.links]
        return [
            (("processor of", "hardware", "busy s", "share"), processors),
            (("link", "messages", "bytes", "busy s", "share"), links),
        ]


def share(busy: float, seconds: float, count: int = 1) -> float:
    """The busy share of `seconds` on `count` equal things; 0 before any have passed."""
    return min(1.0, busy / (seconds * count)) if seconds else 0.0


def _short(device: str) -> str:
    """`/job:ps/task:0/cpu:0`."""
    parsed = device_spec.parse(device)
    return f"/job:{parsed.job}/task:{parsed.task}/{str(parsed.type).lower()}:{parsed.id}"


def _cut(table: str) -> str:
    lines = table.split("\n")
    rest = len(lines) - 1 - _MOST
    return "\n".join([*lines[: _MOST + 1], f"… and {rest} more"] if rest > 0 else lines)
