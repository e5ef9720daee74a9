"""Links: buses, links between sockets, network cards, switches, racks.

Stands for the standards. Left out: headers of packets. A PCIe copy moves some 80% of what its lanes carry, and TCP 95%:
what a real platform reaches is a parameter of the estimates.

Rule: a bandwidth is that of the wire after its line code, in one direction. Latencies are assumed unless a source says
so; that of a bus is the time of an empty cudaMemcpy.
"""

from __future__ import annotations

from typing import TypeVar

from dtflab.hardware.parts import Bus, Nic, Rack, Switch

_Part = TypeVar("_Part", Bus, Nic, Switch, Rack)
_GB = 1e9
_COPY_S = 10e-6  # assumed: what cudaMemcpyAsync and its callback take besides the bytes


def _parts(*parts: _Part) -> dict[str, _Part]:
    return {part.name: part for part in parts}


def pcie(gigatransfers: float, code: float) -> float:
    """B/s of 16 lanes in one direction."""
    return gigatransfers * 1e9 * 16 / 8 * code


_PCIE2, _PCIE3, _PCIE4, _PCIE5 = pcie(5, 8 / 10), pcie(8, 128 / 130), pcie(16, 128 / 130), pcie(32, 128 / 130)

BUSES = _parts(
    Bus("pcie2", _PCIE2, _COPY_S, "PCI Express 2.0: 16 lanes of 5 GT/s, 8b/10b"),
    Bus("pcie3", _PCIE3, _COPY_S, "PCI Express 3.0: 16 lanes of 8 GT/s, 128b/130b"),
    Bus("pcie3-tree", _PCIE3, _COPY_S, "PCI Express 3.0; 4 GPUs behind a switch, as in 8-GPU servers", tree=4),
    Bus("pcie4", _PCIE4, _COPY_S, "PCI Express 4.0: 16 lanes of 16 GT/s, 128b/130b"),
    Bus("pcie5", _PCIE5, _COPY_S, "PCI Express 5.0: 16 lanes of 32 GT/s, 128b/130b"),
    Bus("nvlink1", _PCIE3, _COPY_S, "NVIDIA's NVLink page: 4 links of 20 GB/s; 2 GPUs per PCIe switch (recalled)",
        tree=2, peer_bandwidth=4 * 20 * _GB, peer_links=4),
    Bus("nvlink2", _PCIE3, _COPY_S, "NVIDIA's NVLink page: 6 links of 25 GB/s; 2 GPUs per PCIe switch (recalled)",
        tree=2, peer_bandwidth=6 * 25 * _GB, peer_links=6),
    Bus("nvswitch", _PCIE3, _COPY_S, "NVIDIA on DGX-2: 6 links of 25 GB/s into NVSwitches; PCIe recalled",
        tree=2, peer_bandwidth=6 * 25 * _GB, peer_links=6),
    Bus("nvlink3", _PCIE4, _COPY_S, "A100 white paper: 12 links of 25 GB/s; 2 GPUs per PCIe switch (recalled)",
        tree=2, peer_bandwidth=12 * 25 * _GB),
    Bus("nvlink4", _PCIE5, _COPY_S, "H100 data sheet: 18 links of 25 GB/s; a PCIe switch per GPU (recalled)",
        peer_bandwidth=18 * 25 * _GB),
)  # fmt: skip

# Between the two sockets of a host; copies between GPUs of different sockets cross it.
SOCKETS = Bus("qpi", 2 * 19.2 * _GB, 0.5e-6, "Intel QPI: two links of 9.6 GT/s, 2 bytes each (recalled)")


def _ethernet(gigabits: float, latency_s: float) -> Nic:
    source = f"IEEE 802.3: {gigabits:g} Gbit/s; latency of TCP through the kernel: assumed"
    return Nic(f"{gigabits:g}Gb/s", gigabits * 1e9 / 8, latency_s, source)


def _infiniband(name: str, gigabits: float, code: float, latency_s: float) -> Nic:
    source = f"InfiniBand roadmap: 4 lanes, {gigabits:g} Gbit/s on the wire; latency with RDMA: a table of the kinds"
    return Nic(f"InfiniBand {name}", gigabits * 1e9 / 8 * code, latency_s, source)


_SLOW = (1, 50e-6), (10, 25e-6), (20, 25e-6), (25, 20e-6), (40, 20e-6), (50, 20e-6)  # Gbit/s, latency
_FAST = (100, 15e-6), (200, 15e-6), (400, 15e-6)
NICS = _parts(
    *(_ethernet(gigabits, latency_s) for gigabits, latency_s in _SLOW + _FAST),
    Nic("RoCE 25Gb/s", 25e9 / 8, 2e-6, "IEEE 802.3by; latency with RDMA (recalled)"),
    Nic("RoCE 100Gb/s", 100e9 / 8, 1.5e-6, "IEEE 802.3bj; latency with RDMA (recalled)"),
    _infiniband("QDR", 40, 8 / 10, 1.3e-6),
    _infiniband("FDR", 56.25, 64 / 66, 0.7e-6),
    _infiniband("EDR", 103.125, 64 / 66, 0.5e-6),
    _infiniband("HDR", 206.25, 64 / 66, 0.5e-6),
    _infiniband("NDR", 412.5, 64 / 66, 0.5e-6),
)

SWITCHES = _parts(
    Switch("store-and-forward", 12e-6, "a whole frame of 1,500 bytes at 1 Gbit/s before it goes on"),
    Switch("ethernet", 1e-6, "data sheets of 10 Gbit/s top-of-rack switches, cut-through (recalled)"),
    Switch("infiniband", 0.1e-6, "data sheets of EDR switches: 90 to 130 ns a port (recalled)"),
    Switch("none", 0.0, "an ideal network: assumed"),
)

RACKS = _parts(
    Rack("40 at 1:1", 40, 1.0, "a folded Clos network with full bisection: assumed"),
    Rack("40 at 4:1", 40, 4.0, "40 hosts of 10 Gbit/s, uplinks of 2 x 40 Gbit/s and the like: assumed"),
    Rack("20 at 10:1", 20, 10.0, "an older datacentre, 20 hosts of 1 Gbit/s: assumed"),
)
