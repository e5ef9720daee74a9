"""Parts: what machines are built of, as plain values.

Stands for the data sheets. Left out: caches, clocks that rise and fall, power.

Rule: a number has its unit in its name or in the comment on its line, and every part names its source. Times are
seconds, sizes bytes, bandwidths bytes per second in one direction. "recalled" marks a number from memory, "assumed" one
without a source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dtflab.graph import dtypes

# What a processor without arithmetic of a type computes it in. Integers go at the speed of float32 (assumed).
_COMPUTED_IN = {"complex128": "float64"}


@dataclass(frozen=True)
class Processor:
    """A GPU, or all CPUs of a host.

    `peak_flops` is in FLOP/s by dtype, a fused multiply-add is two; `memory_bandwidth` in B/s. `launch_s` is what a
    kernel costs before it does anything. `cores` of a CPU are shared by all tasks of its host; of a GPU they are the
    multiprocessors, which one kernel at a time has for itself. `chips` such GPUs share a board, and its power.
    """

    name: str
    kind: str  # "GPU" or "CPU"
    peak_flops: Mapping[str, float]
    memory_bytes: int
    memory_bandwidth: float
    launch_s: float
    cores: int
    source: str
    sockets: int = 1
    chips: int = 1

    def __post_init__(self) -> None:
        if self.kind not in ("CPU", "GPU"):
            raise ValueError(f"Processor {self.name!r}: kind is 'CPU' or 'GPU', not {self.kind!r}.")
        if "float32" not in self.peak_flops:
            raise ValueError(f"Processor {self.name!r}: peak_flops must say at least float32, in FLOP/s.")
        _check_positive(self, "memory_bytes", "memory_bandwidth", "cores", "sockets", "chips", **self.peak_flops)
        _check_not_negative(self, "launch_s")

    def peak(self, dtype: Any = "float32") -> float:
        """FLOP/s in `dtype`: a DType, or a name of `peak_flops` such as "tf32". Other dtypes are as fast as float32."""
        name = dtype if isinstance(dtype, str) else dtypes.as_dtype(dtype).base_dtype.name
        stand_in = _COMPUTED_IN.get(name, "float32")
        return self.peak_flops.get(name) or self.peak_flops.get(stand_in) or self.peak_flops["float32"]

    def __hash__(self) -> int:
        return hash((self.name, self.kind))


@dataclass(frozen=True)
class Bus:
    """How the GPUs of a host reach its memory and each other.

    `bandwidth` is that of one GPU's lanes to the host. With `tree` GPUs behind a switch, they share the switch's
    uplink, which is as wide as the lanes of one. `peer_bandwidth` is what a GPU sends to all other GPUs together over
    NVLink; 0: copies between GPUs go over the lanes, too. These are `peer_links`, to different GPUs of a mesh or to
    different switches, of which a ring uses one.
    """

    name: str
    bandwidth: float
    latency_s: float
    source: str
    tree: int = 0
    peer_bandwidth: float = 0.0
    peer_links: int = 1

    def __post_init__(self) -> None:
        _check_positive(self, "bandwidth", "peer_links")
        _check_not_negative(self, "latency_s", "tree", "peer_bandwidth")


@dataclass(frozen=True)
class Nic:
    """A host's network card. `latency_s` is one way, from the memory of one host to that of another, switches apart."""

    name: str
    bandwidth: float
    latency_s: float
    source: str

    def __post_init__(self) -> None:
        _check_positive(self, "bandwidth")
        _check_not_negative(self, "latency_s")


@dataclass(frozen=True)
class Switch:
    """`latency_s` is added to every message that passes. The ports are as fast as the cards that are plugged in."""

    name: str
    latency_s: float
    source: str

    def __post_init__(self) -> None:
        _check_not_negative(self, "latency_s")


@dataclass(frozen=True)
class Rack:
    """`hosts` under one switch, whose uplink has the bandwidth of all of them divided by `oversubscription`."""

    name: str
    hosts: int
    oversubscription: float
    source: str

    def __post_init__(self) -> None:
        _check_positive(self, "hosts", "oversubscription")


@dataclass(frozen=True)
class Network:
    """The network between hosts; `nic` is the card of every host that does not have its own.

    `hosts_per_rack` 0: all hosts are under one switch. `per_message_cpu_s` is what a core of the sender's host, and one
    of the receiver's, is busy with a message between tasks, whatever its size.

    A rack's uplink has `hosts_per_rack` times the bandwidth of `nic`, divided by `oversubscription`; that hosts in it
    have cards of their own changes nothing there.
    """

    nic: Nic
    switch_latency_s: float
    hosts_per_rack: int = 0
    oversubscription: float = 1.0
    per_message_cpu_s: float = 50e-6  # assumed, for gRPC; calibration fits it

    def __post_init__(self) -> None:
        _check_positive(self, "oversubscription")
        _check_not_negative(self, "switch_latency_s", "hosts_per_rack", "per_message_cpu_s")


def _check_positive(part: Any, *fields: str, **values: float) -> None:
    for field, value in {**{field: getattr(part, field) for field in fields}, **values}.items():
        if not value > 0:
            raise ValueError(f"{_called(part)}: {field} must be more than 0, not {value!r}.")


def _check_not_negative(part: Any, *fields: str) -> None:
    for field in fields:
        if not getattr(part, field) >= 0:
            raise ValueError(f"{_called(part)}: {field} must be 0 or more, not {getattr(part, field)!r}.")


def _called(part: Any) -> str:
    return f"{type(part).__name__} {getattr(part, 'name', '')!r}"
