"""Question placement/q4: which devices can use a variable that is pinned to one, and what travels for that.

The answer builds a graph and says beforehand what a step of it will do. The step runs for real, on a cluster of this
process with simulated GPUs; its trace shows which device received what.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np

from dtflab.cluster.cluster import Cluster
from dtflab.grading.device_functions import VARIABLE_OPS, shown
from dtflab.grading.questions import Wrong, from_toml
from dtflab.grading.unaided import by_itself, opens_a_session
from dtflab.graph.device_spec import label
from dtflab.graph.graph import Graph
from dtflab.graph.operation import Operation, Tensor
from dtflab.ops.variables.functions import global_variables_initializer
from dtflab.runtime.session import Session

q4 = from_toml(__file__)
q4.mistake()(opens_a_session)

KEYS = ("doubles", "update", "sent_to", "updated_on")


class Seen(NamedTuple):
    """The answer's sends and home of the update, the true ones, and what the updates changed.

    `changes` has for each of two updates what it added to the doubles. `ready_made` are the doubles whose value comes
    from another device, as it is.
    """

    home: str
    devices: Sequence[str]
    given: int = 0  # doubles; if they are not as many as the devices, nothing else is known
    said: Sequence[str] = ()
    sent: Sequence[str] = ()
    updated_on: Any = None
    update_is_on: str = ""
    adds_from: frozenset[str] = frozenset()  # the devices of what it adds
    changes: np.ndarray = np.zeros((2, 0, 2))
    variables: int = 0
    writers: int = 0  # ops that assign, initializers too
    ready_made: Sequence[str] = ()

    @property
    def wrong_prediction(self) -> bool:
        """Whether the graph sends what it should, and only the prediction is wrong."""
        return list(self.said) != list(self.sent) == sorted(set(self.elsewhere))

    @property
    def show_it(self) -> int:
        """How many doubles are 2.0 more after each update."""
        return int(np.all(self.changes == 2.0, axis=(0, 2)).sum())

    @property
    def elsewhere(self) -> list[str]:
        """The devices of the ops that are not where the variable is, each as often as an op is there."""
        return [device for device in self.devices if device != self.home]


class _Run(NamedTuple):
    """The graph of an answer, and a session that runs it."""

    found: dict[str, Any]
    session: Session

    @property
    def values(self) -> list[np.ndarray]:
        return list(self.session.run(self.found["doubles"]))

    def device_of(self, op: Operation) -> str:
        (device,) = (str(node.device) for node in self.session.placed_nodes() if node.name == op.name)
        return device

    def sources_of(self, update: Operation) -> frozenset[str]:
        """The devices of what an update reads besides the variable, or of what the updates that it waits for read."""
        read = [tensor for op in (update, *update.control_inputs) for tensor in op.inputs]
        return frozenset(self.device_of(tensor.op) for tensor in read if tensor.op.type not in VARIABLE_OPS)

    def received(self) -> list[str]:
        """The devices that got a value from another one in a step that computes all doubles: once per value."""
        stats = self.session.trace([tensor.op for tensor in self.found["doubles"]]).step_stats.dev_stats
        return sorted(str(one.device) for one in stats for node in one.node_stats if node.node_name == "RecvTensor")

    def ready_made(self) -> list[str]:
        """The names of doubles that only pass on what another device has computed."""
        doubles = [tensor.op for tensor in self.found["doubles"]]
        return [op.name for op in doubles if any(self._is_double(one) for one in self._arriving(op))]

    def _arriving(self, op: Operation) -> list[Tensor]:
        """The tensors from other devices for an op, and for all that it needs on its own device."""
        found: list[Tensor] = []
        for tensor in op.inputs:
            here = self.device_of(tensor.op) == self.device_of(op)
            found += self._arriving(tensor.op) if here else [tensor]
        return found

    def _is_double(self, tensor: Tensor) -> bool:
        return bool(tensor.dtype.is_floating and np.array_equal(self.session.run(tensor), [2.0, 4.0]))


def _draw(random: Random, cluster: Cluster) -> tuple[str, list[str]]:
    """A home, and devices: one of them twice, the home among them, a GPU or CPU and a CPU on another task."""
    known = [str(device.name) for task in cluster.tasks for device in task.devices()]
    home = random.choice([device for device in known if "GPU" in device])
    others = [device for device in known if device != home]
    elsewhere = [device for device in others if device.split("/")[1:4] != home.split("/")[1:4]]
    devices = [*random.sample(others, 2), random.choice(elsewhere)]
    devices = [home, *devices, random.choice(devices)]
    away = random.choice([device for device in elsewhere if "CPU" in device])
    return home, [*random.sample(devices, len(devices)), away]


def _draw_gpus(random: Random, cluster: Cluster) -> tuple[str, list[str]]:
    """All GPUs, and no CPU: a value that goes by way of a CPU is seen there; one of them twice, on the other task."""
    known = [str(device.name) for task in cluster.tasks for device in task.devices()]
    gpus = [device for device in known if "GPU" in device]
    home = random.choice(gpus)
    away = random.choice([gpu for gpu in gpus if _task(gpu) != _task(home)])
    return home, [*random.sample(gpus, len(gpus)), away]


def _draw_cpu(random: Random, cluster: Cluster) -> tuple[str, list[str]]:
    """The variable on a CPU, and GPUs of its own task and others."""
    home, devices = _draw_gpus(random, cluster)
    return f"{_task(home)}/device:CPU:0", devices


def _draw_own_cpu(random: Random, cluster: Cluster) -> tuple[str, list[str]]:
    """The variable on a GPU, and the CPU of its task among the devices."""
    home, devices = _draw_gpus(random, cluster)
    return home, random.sample([*devices, f"{_task(home)}/device:CPU:0"], len(devices) + 1)


def _task(device: str) -> str:
    return device.partition("/device:")[0]


def _run(answer: Any, random: Random, draw: Any = _draw) -> Seen:
    """Build the graph, compare its values with the variable's, and note what a step does."""
    with Cluster(ps=1, worker=2, gpus=2) as cluster, Graph().as_default() as graph:
        home, devices = draw(random, cluster)
        run = _Run(
            _checked(by_itself(answer, home, list(devices), may_run=False), Seen(home, devices)),
            Session(cluster.target),
        )
        with run.session:
            run.session.run(global_variables_initializer())
            _demand_doubles(run, devices)
            _demand_names(run.found["sent_to"], [str(one.name) for task in cluster.tasks for one in task.devices()])
            sent, update, ready_made = run.received(), run.found["update"], run.ready_made()
            after = [run.values]
            for _ in range(2):  # an assignment of what is right once is not an addition
                run.session.run(update)
                after.append(run.values)
            where, adds_from = run.device_of(update), run.sources_of(update)
        types = [op.type for op in graph.get_operations()]
    variables, writers = sum(map(VARIABLE_OPS.__contains__, types)), sum("Assign" in kind for kind in types)
    said = sorted(map(str, run.found["sent_to"]))
    return Seen(
        home,
        devices,
        len(devices),
        said,
        sent,
        run.found["updated_on"],
        where,
        adds_from,
        np.diff(after, axis=0),
        variables,
        writers,
        ready_made,
    )


def _checked(found: Any, asked: Seen) -> dict[str, Any]:
    """The answer as a dict; Wrong if it is not of the form that is asked for."""
    if not isinstance(found, dict) or set(found) != set(KEYS):
        raise Wrong(f"use_everywhere returned {shown(found)}; expected: a dict with {', '.join(KEYS)}.")
    doubles, update = found["doubles"], getattr(found["update"], "op", found["update"])
    tensors = isinstance(doubles, list | tuple) and all(isinstance(one, Tensor) for one in doubles)
    if not tensors or len(doubles) != len(asked.devices):
        expected = f"a list with one tensor for each of {len(asked.devices)} devices"
        seen = asked._replace(given=len(doubles) if tensors else 0)
        raise Wrong(f"'doubles' is {shown(doubles)}; expected: {expected}.", seen)
    if not isinstance(update, Operation):
        raise Wrong(f"'update' is {shown(found['update'])}; expected: an op, as tf.assign_add gives it.")
    if not isinstance(found["sent_to"], list | tuple | set | frozenset):
        raise Wrong(f"'sent_to' is {shown(found['sent_to'])}; expected: a list of devices.")
    return {**found, "doubles": list(doubles), "update": update}


def _demand_doubles(run: _Run, devices: Sequence[str]) -> None:
    for tensor, device, value in zip(run.found["doubles"], devices, run.values):
        if run.device_of(tensor.op) != device:
            raise Wrong(f"'{tensor.op.name}' is on {run.device_of(tensor.op)}; expected: {device}.")
        if not np.array_equal(value, [2.0, 4.0]):
            raise Wrong(f"'{tensor.op.name}' gives {value}; expected: [2. 4.], twice the variable.")


def _demand_names(said: Sequence[Any], known: Sequence[str]) -> None:
    for device in said:
        if str(device) not in known:
            raise Wrong(f"'sent_to' has {shown(device)}; expected: full names of devices, such as {known[0]!r}.")


def _demand_update(seen: Seen) -> None:
    seen = seen._replace(said=seen.sent)  # what is said of the sends explains nothing here
    if seen.show_it < len(seen.devices):
        observed = f"After `update` has run twice, {seen.show_it} of {len(seen.devices)} doubles are 2.0 more each time"
        raise Wrong(f"{observed}; expected: all, since one variable is 1.0 more.", seen)
    if seen.updated_on != seen.update_is_on:
        raise Wrong(f"'updated_on' is {shown(seen.updated_on)}, but `update` runs on {seen.update_is_on}.", seen)
    if seen.devices[-1] not in seen.adds_from:
        where = ", ".join(sorted(seen.adds_from)) or "no device"
        raise Wrong(f"What `update` adds is on {where}; expected: on the last device, {seen.devices[-1]}.", seen)


def _demand_sent(seen: Seen) -> None:
    if list(seen.said) != list(seen.sent):
        raise Wrong(
            f"A variable on {label(seen.home)} is read on {_listed(seen.devices)}. You say that its value is sent to "
            f"{_listed(seen.said)}. The step sent it to {_listed(seen.sent)}.",
            seen._replace(updated_on=seen.update_is_on),
        )


def _listed(devices: Sequence[str]) -> str:
    times = Counter(label(device) for device in devices)
    return ", ".join(f"{device} ×{n}" if n > 1 else device for device, n in times.items()) or "nobody"


# -- what is checked -----------------------------------------------------------------------------------------


@q4.check("Ops on GPUs, CPUs and other servers use the variable", points=3)
def used(answer: Any, random: Random) -> None:
    seen = _run(answer, random)
    if seen.ready_made:
        observed = f"'{seen.ready_made[0]}' gets twice the variable from another device, and computes nothing"
        raise Wrong(f"{observed}; each device should multiply the variable itself.", seen)


@q4.check("An update is seen by all, and runs where you say", points=2)
def updated(answer: Any, random: Random) -> None:
    _demand_update(_run(answer, random, _draw_gpus))


@q4.check("The value is sent to the devices that you say", points=3)
def sent(answer: Any, random: Random) -> None:
    for draw in (_draw_gpus, _draw_own_cpu, _draw_cpu, _draw):  # first those that tell mistakes apart
        _demand_sent(_run(answer, random, draw))


@q4.check("All ops are where the variable is, and all on one other device", points=2)
def edges(answer: Any, random: Random) -> None:
    def at_home(random: Random, cluster: Cluster) -> tuple[str, list[str]]:
        home, _ = _draw(random, cluster)
        return home, [home] * random.randint(2, 3)

    def elsewhere(random: Random, cluster: Cluster) -> tuple[str, list[str]]:
        home, devices = _draw_gpus(random, cluster)
        away = [device for device in devices if _task(device) != _task(home)]
        return home, [random.choice(away)] * random.randint(2, 4)

    def single(random: Random, cluster: Cluster) -> tuple[str, list[str]]:
        home, (device, *_) = elsewhere(random, cluster)
        return home, [device]

    for draw in (at_home, elsewhere, single, _draw_cpu):
        seen = _run(answer, random, draw)
        _demand_sent(seen)
        _demand_update(seen)


# -- mistakes ------------------------------------------------------------------------------------------------


@q4.mistake()
def computes_once(seen: Seen) -> bool:
    """The product is computed once, and its value copied: then no other device uses the variable. Multiply inside of
    each `with tf.device(device):` block."""
    return bool(seen.ready_made)


@q4.mistake()
def gives_each_device_once(seen: Seen) -> bool:
    """A device that is listed twice has only one double: they are kept in a dict or a set. `doubles` is a list with one
    tensor per entry of `devices`, in that order."""
    return seen.given == len(set(seen.devices)) < len(seen.devices)


@q4.mistake()
def makes_copies(seen: Seen) -> bool:
    """There is more than one variable: an update of one leaves the others as they are. Make one, and let all ops read
    it; its value travels by itself."""
    return seen.variables > 1 and seen.show_it < len(seen.devices)


@q4.mistake()
def changes_nothing(seen: Seen) -> bool:
    """`update` computes a sum, and leaves the variable as it was. tf.assign_add gives an op that changes it."""
    return seen.variables == 1 >= seen.writers


@q4.mistake()
def updates_elsewhere(seen: Seen) -> bool:
    """You took the pin of `update` for the place where it runs. An op that changes a variable must be next to it,
    whatever its pin. So `update` runs on the variable's device, and the number that is added travels there."""
    return bool(seen.updated_on == seen.devices[-1] != seen.update_is_on == seen.home)


@q4.mistake()
def updates_at_home(seen: Seen) -> bool:
    """`update` was made where the variable is, not where it was asked for. Make it inside of a block `with
    tf.device(devices[-1]):`, and say where it runs all the same."""
    right = seen.show_it == len(seen.devices) and seen.updated_on == seen.update_is_on
    return right and seen.adds_from == {seen.home} != {seen.devices[-1]}


@q4.mistake()
def counts_the_ops(seen: Seen) -> bool:
    """You count the ops that read. The value is sent once to each other device, in a step; all ops there share it."""
    return seen.wrong_prediction and list(seen.said) in (sorted(seen.elsewhere), sorted(seen.devices))


@q4.mistake()
def leaves_out_its_own_task(seen: Seen) -> bool:
    """You count the devices of other tasks only. Two devices of one task have memories of their own: between these a
    value is sent, too."""
    task = seen.home.partition("/device:")[0]
    others = sorted({device for device in seen.elsewhere if not device.startswith(f"{task}/")})
    return seen.wrong_prediction and others == list(seen.said)


@q4.mistake()
def sends_it_home(seen: Seen) -> bool:
    """You count the device where the variable is. Nothing is sent there: its ops read the variable in place."""
    return seen.wrong_prediction and sorted(set(seen.devices)) == list(seen.said) != [seen.home]


@q4.mistake()
def stays_on_the_server(seen: Seen) -> bool:
    """You count the devices of the variable's own server only. A variable can be used from all devices of the cluster:
    what is needed on other servers is sent over the network. (Only in another cluster, or a local session, is it not
    known.)"""
    here = {device for device in seen.elsewhere if _task(device) == _task(seen.home)}
    return seen.wrong_prediction and bool(here) and sorted(here) == list(seen.said)


@q4.mistake()
def reads_no_variable(seen: Seen) -> bool:
    """The doubles do not read the variable: nothing is sent to other devices, and no update shows. Compute each from
    the variable itself, 2.0 * variable."""
    return seen.variables == 1 and bool(seen.elsewhere) and not seen.sent and not np.any(seen.changes)


@q4.mistake()
def assigns_a_constant(seen: Seen) -> bool:
    """`update` gives the variable the same value each time, so that only its first run changes anything. It should add
    to what is there: tf.assign_add."""
    first, second = seen.changes
    return seen.variables == 1 and bool(first.all()) and not second.any()


@q4.mistake()
def adds_another_number(seen: Seen) -> bool:
    """`update` adds, but not 1. Each number of the variable becomes 1.0 more: tf.assign_add(variable, [1.0, 1.0])."""
    first, second = seen.changes
    return seen.variables == 1 and seen.show_it == 0 < np.abs(first).min() and np.array_equal(first, second)


@q4.mistake()
def updates_on_the_ps(seen: Seen) -> bool:
    """A parameter server was taken for the place where a variable is changed. It is so only if the variable is there,
    and this one is on `home`."""
    return "/job:ps" in str(seen.updated_on) and "/job:ps" not in seen.home == seen.update_is_on


@q4.mistake()
def goes_by_another_device(seen: Seen) -> bool:
    """The value makes a detour: the step sends it to a device where no double is, or from there back home. Let the
    doubles read the variable itself; nothing has to be copied before."""
    right = sorted(set(seen.elsewhere))
    return list(seen.said) == right and set(seen.sent) > set(right) and seen.variables == 1


@q4.mistake()
def sends_nothing(seen: Seen) -> bool:
    """You say that nothing is sent, though ops on other devices read the variable. They can't reach into another
    device's memory: TensorFlow sends them the value, in each step."""
    near = [device for device in seen.elsewhere if _task(device) == _task(seen.home) and "GPU" in device]
    return seen.wrong_prediction and bool(near) and not seen.said


@q4.mistake()
def sends_to_the_last_only(seen: Seen) -> bool:
    """You name the last device only, but ops on others read the variable, too. Go through the whole list: each device
    of it that is not the variable's own gets the value."""
    return seen.wrong_prediction and list(seen.said) == [seen.devices[-1]] and len(seen.sent) > 1


@q4.mistake()
def sends_to_gpus_only(seen: Seen) -> bool:
    """You name the GPUs only. A CPU, too, is a device with its own memory, even on the variable's server: an op there
    needs the value as well."""
    gpus = sorted({device for device in seen.elsewhere if "GPU" in device})
    return seen.wrong_prediction and list(seen.said) == gpus


@q4.mistake()
def counts_the_servers(seen: Seen) -> bool:
    """You count servers. The value is sent to each device that needs it: two GPUs of a server get it one by one."""
    tasks = [_task(device) for device in seen.said]
    reached = {_task(device) for device in seen.elsewhere}
    others = reached - {_task(seen.home)}
    return seen.wrong_prediction and len(set(tasks)) == len(tasks) and set(tasks) in (reached, others)
