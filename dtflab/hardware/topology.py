"""Topology: which links lie between two devices.

Stands for the discovery of links by NCCL and the driver. Left out: GPUDirect over the network, routes of the NVLink
mesh (a GPU reaches all others with all its links together), the socket at which a network card is plugged in.

Rules: pure. A link is one direction of one wire and one object, so all of its users wait for each other. Tasks talk
through the memory of their hosts, as gRPC does; only within a task does one GPU write to another.
"""

from __future__ import annotations

from dtflab.hardware.catalogue_links import SOCKETS
from dtflab.hardware.machines import Host, Link, Machines, Place, task_of

__all__ = ["Link", "path"]

Path = tuple[Link, ...]


def path(machines: Machines, source: str, target: str) -> Path:
    """The links that a message from device `source` to device `target` (full names) passes, in order.

    Empty within a device. ValueError for a device that does not exist.
    """
    here, there = machines.place(source), machines.place(target)
    if task_of(source) == task_of(target):
        return _within_a_task(machines, here, there)
    up, down = _to_memory(machines, here), _from_memory(machines, there)
    return up + _between_tasks(machines, here.host, there.host) + down


def _within_a_task(machines: Machines, here: Place, there: Place) -> Path:
    if here.card == there.card:
        return ()
    if here.card is None:
        return _from_memory(machines, there)
    if there.card is None:
        return _to_memory(machines, here)
    return _peers(machines, here.host, here.card, there.card)


def _between_tasks(machines: Machines, here: Host, there: Host) -> Path:
    if here.name == there.name:
        # Sender and receiver each touch every byte of the host's memory.
        return (machines.link(f"{here.name} loopback", here.cpu.memory_bandwidth / 2, 0.0),)
    out = machines.link(f"{here.name} egress", here.nic.bandwidth, here.nic.latency_s)
    into = machines.link(f"{there.name} ingress", there.nic.bandwidth, machines.network.switch_latency_s)
    return out, *_between_racks(machines, machines.rack_of(here), machines.rack_of(there)), into


def _between_racks(machines: Machines, here: int, there: int) -> Path:
    """The uplinks of both racks; the switch between them, and the second rack's, each add their latency."""
    if here == there:
        return ()
    network = machines.network
    bandwidth = network.hosts_per_rack * network.nic.bandwidth / network.oversubscription
    return (
        machines.link(f"rack {here} uplink", bandwidth, network.switch_latency_s),
        machines.link(f"rack {there} downlink", bandwidth, network.switch_latency_s),
    )


# ---- inside a host ----


def _to_memory(machines: Machines, place: Place) -> Path:
    """From a device to the memory of its host: the card's lanes, then the uplink of its switch."""
    host, card = place
    return () if card is None else (_lanes(machines, host, card, "up"), *_uplink(machines, host, card, "up"))


def _from_memory(machines: Machines, place: Place) -> Path:
    host, card = place
    return () if card is None else (*_uplink(machines, host, card, "down"), _lanes(machines, host, card, "down"))


def _peers(machines: Machines, host: Host, source: int, target: int) -> Path:
    """From GPU to GPU: over NVLink; else up to where both trees meet, across the sockets if there are two, and down."""
    if host.bus.peer_bandwidth:
        return tuple(
            machines.link(f"{host.name} GPU {card} NVLink {way}", host.bus.peer_bandwidth, latency_s)
            for card, way, latency_s in ((source, "out", host.bus.latency_s), (target, "in", 0.0))
        )
    first, last = _lanes(machines, host, source, "up"), _lanes(machines, host, target, "down")
    if host.bus.tree and source // host.bus.tree == target // host.bus.tree:
        return first, last
    up, down = _uplink(machines, host, source, "up"), _uplink(machines, host, target, "down")
    return first, *up, *_across_sockets(machines, host, source, target), *down, last


def _lanes(machines: Machines, host: Host, card: int, way: str) -> Link:
    return machines.link(f"{host.name} GPU {card} lanes {way}", host.bus.bandwidth, host.bus.latency_s)


def _uplink(machines: Machines, host: Host, card: int, way: str) -> Path:
    """The uplink that the cards behind one switch share; empty where each card has its own lanes to the CPU."""
    if not host.bus.tree:
        return ()
    return (machines.link(f"{host.name} PCIe switch {card // host.bus.tree} {way}", host.bus.bandwidth, 0.0),)


def _across_sockets(machines: Machines, host: Host, source: int, target: int) -> Path:
    """The cards are shared out evenly between the sockets, in their order."""
    here, there = (card * host.cpu.sockets // len(host.gpus) for card in (source, target))
    if here == there:
        return ()
    return (machines.link(f"{host.name} socket {here} to {there}", SOCKETS.bandwidth, SOCKETS.latency_s),)
