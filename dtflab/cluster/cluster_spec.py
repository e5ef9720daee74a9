"""ClusterSpec: which jobs a cluster has, and at which address each of their tasks is.

Stands for `ClusterSpec` in `tensorflow/python/training/server_lib.py`. Left out: device filters.
The rule it obeys: a job's task numbers may have gaps; without them a job reads as a list, else as a dict.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dtflab.protos.cluster_pb2 import ClusterDef


class ClusterSpec:
    """The tasks of a cluster, by job.

    `cluster` maps names of jobs to lists of addresses, or to dicts from task number to address; or it is a
    ClusterDef or another ClusterSpec.

    >>> spec = ClusterSpec({"ps": ["localhost:2222"], "worker": {1: "localhost:2224"}})
    >>> spec.task_address("worker", 1)
    'localhost:2224'
    >>> spec.as_dict()
    {'ps': ['localhost:2222'], 'worker': {1: 'localhost:2224'}}

    Raises:
      TypeError: `cluster` is not one of these, or a name or an address is not a string.
    """

    def __init__(self, cluster: Any) -> None:
        if isinstance(cluster, ClusterSpec):
            cluster = cluster.as_cluster_def()
        if isinstance(cluster, ClusterDef):
            self._cluster_def = ClusterDef.FromString(cluster.SerializeToString())
            self._jobs: dict[str, dict[int, str]] = {job.name: dict(job.tasks) for job in cluster.job}
        elif isinstance(cluster, dict):
            self._jobs = {job: _numbered(job, tasks) for job, tasks in cluster.items()}
            self._cluster_def = _as_message(self._jobs)
        else:
            raise TypeError(
                "`cluster` must be a dictionary mapping one or more job names to lists of network addresses, "
                f"or a `ClusterDef` protocol buffer, not {cluster!r}"
            )

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs, in the order in which they were given."""
        return list(self._jobs)

    def num_tasks(self, job_name: str) -> int:
        """How many tasks the job has; ValueError if there is no such job, as everywhere below."""
        return len(self._job(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """The numbers of the job's tasks, in order."""
        return sorted(self._job(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """The address of one task; ValueError if the job has no such task."""
        tasks = self._job(job_name)
        try:
            return tasks[task_index]
        except KeyError:
            raise ValueError(f"No task with index {task_index!r} in job {job_name!r}") from None

    def job_tasks(self, job_name: str) -> list[str | None]:
        """The job's addresses in a list by task number, None where there is no such task."""
        tasks = self._job(job_name)
        return [tasks.get(i) for i in range(max(tasks, default=-1) + 1)]

    def as_dict(self) -> dict[str, Any]:
        """The constructor's argument: a list for each job, or a dict where task numbers have gaps."""
        return {job: self.job_tasks(job) if _is_dense(tasks) else tasks.copy() for job, tasks in self._sorted()}

    def as_cluster_def(self) -> ClusterDef:
        """The cluster as a ClusterDef, which must not be modified."""
        return self._cluster_def

    def _job(self, job_name: str) -> dict[int, str]:
        try:
            return self._jobs[job_name]
        except KeyError:
            raise ValueError(f"No such job in cluster: {job_name!r}") from None

    def _sorted(self) -> list[tuple[str, dict[int, str]]]:
        """The jobs as given, each with its tasks in order."""
        return [(job, dict(sorted(tasks.items()))) for job, tasks in self._jobs.items()]

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __eq__(self, other: object) -> bool:
        # A dict is equal if it numbers the tasks ({"ps": {0: …}}), as in TensorFlow.
        return self._jobs == (other._jobs if isinstance(other, ClusterSpec) else other)

    __hash__ = None  # type: ignore[assignment]  # as in TensorFlow

    def __repr__(self) -> str:
        jobs = self.as_dict()
        return "ClusterSpec({" + ", ".join(f"{job!r}: {jobs[job]!r}" for job in sorted(jobs)) + "})"


def members(spec: ClusterSpec) -> Iterator[tuple[str, int, str]]:
    """All tasks: job, number and address."""
    return ((job, index, spec.task_address(job, index)) for job in spec.jobs for index in spec.task_indices(job))


def _numbered(job: str, tasks: Any) -> dict[int, str]:
    if isinstance(tasks, list | tuple):
        return dict(enumerate(tasks))
    if isinstance(tasks, dict):
        return {int(i): address for i, address in tasks.items()}
    raise TypeError(f"The tasks for job {job!r} must be a list or a dictionary from integers to strings.")


def _is_dense(tasks: dict[int, str]) -> bool:
    return bool(tasks) and max(tasks) + 1 == len(tasks)


def _as_message(jobs: dict[str, dict[int, str]]) -> ClusterDef:
    """Sorted by name and number, so that equal clusters have equal messages."""
    message = ClusterDef()
    for name, tasks in sorted(jobs.items()):
        job = message.job.add(name=_text(name, "Job name"))
        for index, address in sorted(tasks.items()):
            job.tasks[index] = _text(address, "Task address")
    return message


def _text(value: Any, what: str) -> str:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, str):
        return value
    raise TypeError(f"{what} {value!r} must be bytes or unicode")
