"""Addresses: where the tasks of a cluster are, from what a program says of its jobs.

Rules: tasks that are only counted get names that mean nothing outside this process, or free ports of loopback. Port 0
is replaced by a free port, also in an address that is only a name, so no two servers have the same target.
"""

from __future__ import annotations

import atexit
import socket
import sys
from collections import deque
from typing import Any

from dtflab.base import errors
from dtflab.cluster.cluster_spec import ClusterSpec, members
from dtflab.machine.hosts import is_loopback


def spec_of(spec: Any, jobs: dict[str, Any], name: str, with_ports: bool) -> ClusterSpec:
    """The cluster's addresses: those given, loopback ports, or names in this process."""
    if spec is not None:
        if jobs:
            raise ValueError("Give either a cluster spec or jobs by name, not both.")
        return _each_once(_with_ports(ClusterSpec(spec)))
    if not jobs:
        raise ValueError("A cluster needs at least one task: Cluster(ps=1, worker=2).")
    members: dict[str, list[str]] = {}
    for job, tasks in jobs.items():
        if isinstance(tasks, bool) or not isinstance(tasks, int | list | tuple):
            raise TypeError(f"Job {job!r} needs a number of tasks or a list of addresses, not {tasks!r}.")
        if isinstance(tasks, int):
            if tasks < 0:
                raise ValueError(f"Job {job!r} can't have {tasks} tasks.")
            tasks = free_addresses(tasks) if with_ports else [f"{job}-{i}.{name}:2222" for i in range(tasks)]
        if tasks:
            members[job] = list(tasks)
    if not members:
        raise ValueError("A cluster needs at least one task: Cluster(ps=1, worker=2).")
    return _each_once(_with_ports(ClusterSpec(members)))


def with_port(address: str) -> str:
    """The address, with a free port of this machine in place of port 0."""
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or int(port):
        return address
    return f"{host}:{free_addresses(1)[0].rpartition(':')[2]}"


def of_one_family(address: str) -> str:
    """The address, with localhost as that of IPv4: else another user may have the same port of the other family."""
    host, _, port = address.rpartition(":")
    return f"127.0.0.1:{port}" if host == "localhost" else address


def check_address(address: str) -> None:
    """InvalidArgumentError unless it is a host and a port."""
    host, _, port = address.rpartition(":")
    if not (port.isdecimal() and int(port) < 65536 and "/" not in host):
        raise errors.InvalidArgumentError.of(f'Could not interpret "{address}" as a host-port pair ("localhost:2222").')


def _with_ports(spec: ClusterSpec) -> ClusterSpec:
    jobs: dict[str, dict[int, str]] = {job: {} for job in spec.jobs}
    for job, index, address in members(spec):
        jobs[job][index] = with_port(address)
    return ClusterSpec(jobs)


def _each_once(spec: ClusterSpec) -> ClusterSpec:
    """The cluster itself; ValueError if two of its tasks have one address, where only one server can be."""
    tasks: dict[str, str] = {}
    for job, index, address in members(spec):
        task = f"/job:{job}/task:{index}"
        if address in tasks:
            raise ValueError(
                f"The address {address} occurs twice in the cluster's spec: {tasks[address]} and {task} have it. "
                "Give each task its own port."
            )
        tasks[address] = task
    return spec


def counted(jobs: dict[str, Any]) -> set[str]:
    """The jobs whose tasks were only counted."""
    return {job for job, tasks in jobs.items() if isinstance(tasks, int)}


def check_loopback(spec: ClusterSpec, engine: str) -> None:
    """ValueError unless all tasks are on loopback, where an engine starts its processes."""
    for job, index, address in members(spec):
        if not is_loopback(address):
            raise ValueError(
                f"engine={engine!r} needs loopback addresses, but /job:{job}/task:{index} is at {address!r}. Use "
                "'localhost:<port>', numbers of tasks (ps=1, worker=2), or engine='inprocess', where it is a name."
            )


def check_hosts(spec: ClusterSpec, reaches: bool) -> None:
    """ValueError for a cluster of several hosts that does not say how its tasks may be reached, or has none here.

    A task of another host reaches no loopback of this one, and all must have addresses that all of them reach.
    """
    found = {address: f"/job:{job}/task:{index}" for job, index, address in members(spec)}
    local = [address for address in found if is_loopback(address)]
    if len(local) == len(found):
        return
    if local:
        raise ValueError(
            f"{found[local[0]]} is at {local[0]}, which tasks of other hosts can't reach: give it an address of this "
            "machine that they reach, or give all tasks loopback addresses."
        )
    if not reaches:
        raise ValueError(
            f"{next(iter(found))} is beyond loopback: give credentials=… (`dtflab certs` makes them) for TLS, or "
            "insecure=True for plain text; docs/security.md says what that gives away."
        )
    if not any(map(is_here, found)):
        raise ValueError(
            f"None of the addresses {', '.join(found)} is of this machine. To use tasks that run already, choose "
            "engine='attached'; for addresses that are only names, engine='inprocess'."
        )


def is_here(address: str) -> bool:
    """Whether a server of this machine can listen at an address."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(found[0]) as probe:
            probe.bind(found[4])
    except OSError:
        return False
    return True


def free_addresses(count: int) -> list[str]:
    """Addresses on this machine's loopback that nobody uses now; none is given away before its task is there.

    On Linux, a port that is bound without listening is not given to a process that asks for any port, but to one that
    asks for this port, if both sockets allow it, as servers' do. So the last ports that were found here stay bound.
    """
    sockets = [_bound() for _ in range(count)]
    addresses = [f"localhost:{s.getsockname()[1]}" for s in sockets]
    _kept.extend(sockets)
    _keep(max(_KEPT, count) if sys.platform == "linux" else 0)
    return addresses


_KEPT = 128
_kept: deque[socket.socket] = deque()


def _keep(count: int) -> None:
    """Let go of all but the last."""
    while len(_kept) > count:
        _kept.popleft().close()


atexit.register(_keep, 0)


def _bound() -> socket.socket:
    """A socket on a free port of loopback, which does not listen there."""
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    found.bind(("127.0.0.1", 0))
    return found
