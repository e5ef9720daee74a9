"""A cluster that a session brings (`ConfigProto.cluster_def`): which task of it is this server?

Stands for the part of `master.cc` and `grpc_server_lib.cc` (WorkerCacheFactory) that TensorFlow calls ClusterSpec
propagation. `share_cluster_devices_in_session`, for functions with ops on several tasks, changes nothing: functions are
inlined before their ops are placed.

Rules: the master is the task whose address is the session's target. Each worker gets the name of its own task there,
and checks the port. Errors are TensorFlow's.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from dtflab.base import errors
from dtflab.cluster.addresses import check_address
from dtflab.cluster.cluster_spec import ClusterSpec, members

if TYPE_CHECKING:
    from dtflab.protos.cluster_pb2 import ClusterDef

_JOB = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)  # as in names of devices
_invalid = errors.InvalidArgumentError.of


def checked(cluster_def: ClusterDef) -> ClusterSpec:
    """The tasks of a cluster that came in a message; InvalidArgumentError for one that can't be."""
    for name, count in Counter(job.name for job in cluster_def.job).items():
        if not _JOB.fullmatch(name):
            raise _invalid(f"{name!r} can't be the name of a job, which has letters, digits and _, a letter first.")
        if count > 1:
            raise _invalid(f"Duplicate job ID in cluster specification: {name}")
    spec = ClusterSpec(cluster_def)
    for job, index, address in members(spec):
        if index < 0:
            raise _invalid(f"Job {job!r} can't have a task {index}: the first is task 0.")
        check_address(address)
    return spec


def master_in(spec: ClusterSpec, address: str, booted: tuple[str, int] | None) -> tuple[str, int]:
    """Job and number of the task at `address`, where the master is; InvalidArgumentError unless it is one.

    It can't be `booted`, the job and number with which the server was started, unless only sessions name the task.
    """
    found = [(job, index) for job, index, where in members(spec) if where == address]
    if not found:
        raise _invalid(
            f"The master (current machine) is not included in the provided cluster_def. {_text(spec)}\n"
            f"The session's target is {address}: give one of its tasks this address."
        )
    if len(found) > 1:
        raise _invalid(
            "Found multiple matching tasks that correspond to to the master. "
            f"Master target: 'grpc://{address}'. ClusterDef: {_text(spec)}"
        )
    if found[0] == booted:
        raise _invalid(
            "The ClusterSpec names the job and task index to be the same names that were provided when the server "
            f"booted. This is currently not allowed. Job: {booted[0]}, task index: {booted[1]}\nUse another name for "
            "the job in cluster_def."
        )
    return found[0]


def check_worker(spec: ClusterSpec, job: str, index: int, address: str) -> None:
    """InvalidArgumentError unless the server at `address` can be that task: the task exists, and has its port."""
    wanted = next((where for name, number, where in members(spec) if (name, number) == (job, index)), None)
    if wanted is None:
        raise _invalid(f"/job:{job}/task:{index} is not a task of the provided cluster_def. {_text(spec)}")
    port, bound = (where.rpartition(":")[2] for where in (wanted, address))
    if port != bound:
        raise _invalid(f"Requested port {port} differs from expected port {bound}")


def _text(spec: ClusterSpec) -> str:
    """The cluster on one line."""
    return ", ".join(f"/job:{job}/task:{index} at {where}" for job, index, where in members(spec))
