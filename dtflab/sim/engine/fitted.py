"""Fitted: the parameters that `calibrate` found, as a file: 8 of the library, at most 3 of each platform.

Rule: a value has its unit and the range that physics allows next to it; one outside is an error. A platform that is not
in the file gets its nominal bandwidths times the library's efficiencies.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from dtflab.hardware.parts import Bus
from dtflab.sim.engine.parameters import Parameters

FILE = Path(__file__).with_name("parameters.json")  # shipped; `dtflab sim calibrate` writes it

LATENCY_S = 50e-6  # of a platform that was not calibrated: TCP through two kernels, assumed


@dataclass(frozen=True)
class PlatformParameter:
    """One of the three: `low` and `high` bound what physics allows."""

    unit: str
    low: float
    high: float
    why: str

    def as_json(self, value: float) -> dict[str, Any]:
        """A value of it in the file."""
        return {"value": value, "unit": self.unit, "range": [self.low, self.high]}


PLATFORM = {
    "nic_bandwidth": PlatformParameter("B/s", 0.01e9, 100e9, "what a host's network card streams in one direction"),
    "bus_bandwidth": PlatformParameter("B/s", 0.1e9, 300e9, "what a GPU copies to the host, or over NVLink in a ring"),
    "latency": PlatformParameter("s", 1e-6, 5e-3, "of one message, whatever its size"),
}


@dataclass(frozen=True)
class Fitted:
    """`platforms[name]` maps some of the names in PLATFORM to values."""

    library: Parameters = field(default_factory=Parameters)
    platforms: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for platform, values in self.platforms.items():
            for name, value in values.items():
                allowed = PLATFORM.get(name)
                if allowed is None:
                    known = ", ".join(PLATFORM)
                    raise ValueError(f"platform {platform!r} has a parameter {name!r}, but may have {known}")
                if not allowed.low <= value <= allowed.high:
                    span = f"between {allowed.low:g} and {allowed.high:g}"
                    raise ValueError(f"{name} of {platform!r} is {value:g} {allowed.unit}, but must lie {span}")

    def of(self, platform: str, nic: float, bus: Bus) -> tuple[float, float, float]:
        """Bandwidths of network card and bus, and latency, where the platform's own are nominally `nic` and `bus`."""
        own = self.platforms.get(platform, {})
        nominal = bus.peer_bandwidth / bus.peer_links or bus.bandwidth
        return (
            own.get("nic_bandwidth", nic * self.library.nic_efficiency),
            own.get("bus_bandwidth", nominal * self.library.bus_efficiency),
            own.get("latency", LATENCY_S),
        )

    def as_json(self) -> dict[str, Any]:
        """The contents of the file."""
        library = {one.name: {"value": getattr(self.library, one.name), **one.metadata} for one in fields(self.library)}
        platforms = {
            platform: {name: PLATFORM[name].as_json(value) for name, value in values.items()}
            for platform, values in self.platforms.items()
        }
        return {"library": library, "platforms": platforms}


def _values(entries: Mapping[str, Any]) -> dict[str, float]:
    return {name: entry["value"] for name, entry in entries.items()}


def load(path: str | Path = FILE) -> Fitted:
    """The parameters of a file. ValueError if it holds something else."""
    content = json.loads(Path(path).read_text(encoding="utf-8"))
    try:
        platforms = {platform: _values(entries) for platform, entries in content["platforms"].items()}
        return Fitted(Parameters(**_values(content["library"])), platforms)
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path} holds no parameters of the model: {error}") from None
