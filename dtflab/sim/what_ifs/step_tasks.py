"""A step as tasks of the simulated schedule, with the calls of its master.

Stands for what a master and its workers say to each other (`RunGraph`, 200 bytes each way). Left out: the first step,
in which partitions are registered.

Rules, those of the virtual runner (`virtual/`): a task of the cluster begins when its call has arrived; a value sets
out when it is made and its receiver, which has begun, asks for it; when all is done every task answers, and with the
last answer the step is over. The schedule knows devices alone: so calls come and go on two more "devices" of each task
on which nothing computes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dtflab.graph.node import Node
from dtflab.hardware.schedule import Fabric, Route, Task
from dtflab.sim.what_ifs.step_graph import StepGraph
from dtflab.virtual.wires import CALL_BYTES

_CALLS, _ENDS = "/device:CPU:1000", "/device:CPU:1001"  # where calls come and go, and where ends are counted
_CALL = (CALL_BYTES,)  # what a call, or its answer, sends
_AT_ONCE = Route((), (), 0.0, 0.0)


def computes(device: str) -> bool:
    """True for a device of the step, False for what stands for a task's calls."""
    return not device.endswith((_CALLS, _ENDS))


class StepFabric(Fabric):
    """The machines of a step. Only calls between tasks travel; a task keeps what it has received."""

    def route(self, source: int, target: int) -> Route:
        """The way from one device to another; none between what stands for calls and the rest."""
        ends = [self.devices[number].endswith(_CALLS) for number in (source, target)]
        if all(map(computes, (self.devices[source], self.devices[target]))) or all(ends):
            return super().route(source, target)
        return _AT_ONCE


class Replica(NamedTuple):
    """One of the workers that make the same step: the prefix of its names, and the task of the step's master."""

    prefix: str
    master: str


def copy_of(task: str, index: int) -> str:
    """Another task of the same job."""
    return f"{task.rpartition(':')[0]}:{index}"


def replicas(step: StepGraph, workers: int) -> list[Replica]:
    """The step itself, or as many copies of it as there are workers."""
    if workers == 1:
        return [Replica("", step.master)]
    return [Replica(f"{index} ", copy_of(step.master, index)) for index in range(workers)]


def plain(name: str) -> str:
    """The name of a task's node: without the replica."""
    return name.partition(" ")[2] or name


def tasks_of(step: StepGraph, replica: Replica, batch: int | None) -> list[Task]:
    """The step of one replica; the tasks that are called first, the end last."""
    prefix, master = replica
    helpers = step.tasks[1:]
    calls = [Task(f"{prefix}RunGraph:{task}", master + _CALLS, 0.0, outputs=_CALL) for task in helpers]
    begun = [Task(_begin(prefix, task), task + _CALLS, 0.0, [(f"{prefix}RunGraph:{task}", 0)]) for task in helpers]
    computed = [node for node in step.nodes if node.name not in step.constants]
    nodes = [task for node in computed for task in _tasks(step, node, replica, batch)]
    done = Task(f"{prefix}done", master + _ENDS, 0.0, controls=_last(nodes))
    answers = [Task(f"{prefix}answer:{task}", task + _CALLS, 0.0, (), [done.name], _CALL) for task in helpers]
    over = Task(f"{prefix}over", master + _CALLS, 0.0, [(answer.name, 0) for answer in answers])
    return [*calls, *begun, *nodes, done, *answers, over]


def _begin(prefix: str, task: str) -> str:
    return f"{prefix}begin:{task}"


def _tasks(step: StepGraph, node: Node, replica: Replica, batch: int | None) -> Iterator[Task]:
    """A node, whose time is for the machines to say; before what is received, that it is asked for."""
    prefix, master = replica
    inputs, controls = step.waits(node)
    edges = [(prefix + name, output) for name, output in inputs]
    waits = [prefix + name for name in controls]
    home = step.homes[node.device]
    begun = [_begin(prefix, home)] if home != step.master else []
    here = master if home == step.master else home
    other = step.crossings.get(node.name)
    if other is not None and node.name in step.sends:
        yield Task(_ask(prefix, node), here + _CALLS, 0.0, controls=waits or begun)
    elif not edges and not waits:
        waits = begun
    if other is not None and node.name not in step.sends:
        waits = [*waits, _ask(prefix, other)]
    yield Task(prefix + node.name, here + node.device[len(home) :], 0.0, edges, waits, step.output_bytes(node, batch))


def _ask(prefix: str, receive: Node) -> str:
    return f"{prefix}ask:{receive.name}"


def _last(tasks: list[Task]) -> list[str]:
    """The tasks that no other one waits for."""
    waited_for = {name for task in tasks for name in (*(edge[0] for edge in task.inputs), *task.controls)}
    return [task.name for task in tasks if task.name not in waited_for]
