"""Targets that are names: tasks whose addresses change while their cluster lives.

Stands for a cluster manager's name service. An engine publishes each task under a name, and a session that is made with
this target gets the addresses of that moment: of its own master, and of all tasks, as a `cluster_def` that it brings.

Rule: the addresses of a session stay those with which it was made. When one of its tasks is lost, its steps fail, and
a new session with the same target, such as MonitoredTrainingSession makes, has the new addresses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from dtflab.base.credentials import Credentials
    from dtflab.protos.config_pb2 import ConfigProto
    from dtflab.runtime.transport import MasterInterface


class Moving(Protocol):
    """A task whose address changes."""

    def master(self, config: ConfigProto | None, credentials: Credentials | None) -> MasterInterface:
        """The master of the task where it is now, for one session.

        Waits until all tasks that the session's device filters let through answer; UnavailableError if they do not.
        """


_tasks: dict[str, Moving] = {}


def publish(name: str, task: Moving) -> None:
    """Let a target lead to a task; ValueError if it leads to another one."""
    if _tasks.setdefault(name, task) is not task:
        raise ValueError(f"grpc://{name} is a task of another cluster: stop that one, or give this one another name=….")


def withdraw(name: str, task: Moving) -> None:
    """End what `publish` began."""
    if _tasks.get(name) is task:
        del _tasks[name]


def find(name: str) -> Moving | None:
    """The task to which a target leads."""
    return _tasks.get(name)
