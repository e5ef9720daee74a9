"""Questions on clusters: jobs, tasks, machines.

q1: from a list of machines, the ClusterSpec and what each server may see of the GPUs. The checks start the cluster (in
this process, with simulated cards), ask each task for its devices, and judge by what a machine can bear.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from dtflab.base.text_table import plural
from dtflab.cluster.cluster import Cluster
from dtflab.cluster.cluster_spec import ClusterSpec
from dtflab.grading.device_functions import shown
from dtflab.grading.questions import Wrong, from_toml

q1 = from_toml(__file__)


class Task(NamedTuple):
    """One task as it was planned: where, and as CUDA_VISIBLE_DEVICES what it may see (None: that is not set)."""

    job: str
    number: int
    machine: str
    port: str
    visible: str | None

    def __str__(self) -> str:
        visible = "no CUDA_VISIBLE_DEVICES" if self.visible is None else f"CUDA_VISIBLE_DEVICES={self.visible!r}"
        return f"/job:{self.job}/task:{self.number} on {self.machine}:{self.port} with {visible}"


class Case(NamedTuple):
    """The machines to plan for."""

    machines: Sequence[str]
    gpus: int
    ps_tasks: int

    def __str__(self) -> str:
        return f"plan({self.machines!r}, {self.gpus}, {self.ps_tasks})"


class Seen(NamedTuple):
    """The tasks, and the GPUs that each really sees: their places in the machine. None if the cluster did not start."""

    case: Case
    tasks: Sequence[Task]
    cards: Mapping[Task, Sequence[str]] | None = None

    def of(self, job: str) -> list[Task]:
        return [task for task in self.tasks if task.job == job]

    @property
    def ports_taken_twice(self) -> list[str]:
        counted = Counter(f"{task.machine}:{task.port}" for task in self.tasks)
        return [address for address, tasks in counted.items() if tasks > 1]


def _draw(random: Random, ps_tasks: int | None = None, least: int = 2, most: int = 4) -> Case:
    """Some machines, with 2 or 3 GPUs each; as many ps tasks as machines at most, if nothing else is asked for."""
    names = ("alder", "birch", "cedar", "elm", "fir", "hazel", "maple", "oak")
    machines = [f"{name}.example.com" for name in random.sample(names, random.randint(least, most))]
    return Case(machines, random.randint(2, 3), ps_tasks or random.randint(2, len(machines)))


def _draw_square(random: Random) -> Case:
    """As many GPUs as machines: an answer that counts texts by machine, and addresses by GPU, gives a card to two."""
    case = _draw(random)
    return case._replace(machines=case.machines[:2], gpus=2, ps_tasks=2)


def _tasks(case: Case, value: Any) -> list[Task]:
    """The tasks that an answer plans, in the order of jobs."""
    expected = "expected: a dict of addresses per job (or a ClusterSpec), and a dict of strings per job."
    if not isinstance(value, tuple | list) or len(value) != 2 or not isinstance(value[1], dict):
        given = "None" if value is None else f"a {type(value).__name__}"
        raise Wrong(f"{case} gave {given}; {expected}")
    jobs = value[0].as_dict() if isinstance(value[0], ClusterSpec) else value[0]
    if not isinstance(jobs, dict) or not all(isinstance(addresses, list | tuple) for addresses in jobs.values()):
        raise Wrong(f"{case} gave {shown(jobs)} as its jobs; {expected}")
    if set(jobs) != {"ps", "worker"} or not set(value[1]) <= set(jobs):
        keys = jobs if set(jobs) != {"ps", "worker"} else value[1]
        raise Wrong(f"{case} gave a dict with the keys {shown(list(keys))}; expected: ps and worker, in both dicts.")
    return [task for job in jobs for task in _of_job(case, job, jobs[job], value[1].get(job))]


def _of_job(case: Case, job: str, addresses: Sequence[Any], visible: Any) -> list[Task]:
    places = [_place(case, address) for address in addresses]
    texts = [visible] * len(places) if visible is None or isinstance(visible, str) else list(visible)
    if others := [text for text in texts if not (text is None or isinstance(text, str))]:
        raise Wrong(f"CUDA_VISIBLE_DEVICES of a {job} task must be a string, for example '0', not {shown(others[0])}.")
    if len(texts) != len(places):
        raise Wrong(f"{visible!r} is not a list of {len(places)} texts, one for each task of {job}.")
    return [Task(job, index, *place, text) for index, (place, text) in enumerate(zip(places, texts))]


def _place(case: Case, address: Any) -> tuple[str, str]:
    """The machine and the port of an address."""
    machine, _, port = str(address).rpartition(":")
    if machine not in case.machines or not port.isdecimal():
        example = f"{case.machines[0]}:2222"
        raise Wrong(f"{shown(address)} is not an address on one of the machines. An example of one: {example}.")
    if not 0 < int(port) < 2**16:
        raise Wrong(f"{address} has a port that no machine has: ports are numbered from 1 to 65535.")
    return machine, port


def _start(case: Case, tasks: Sequence[Task]) -> Seen:
    """Start the cluster, and ask each task which GPUs it has."""
    seen = Seen(case, tasks)
    _demand_ports(seen)
    here = {machine: f"{machine}.of-{os.getpid()}" for machine in case.machines}  # no other process has cards there
    jobs = {job: [f"{here[task.machine]}:{task.port}" for task in seen.of(job)] for job in ("ps", "worker")}
    visible = {job: [task.visible for task in seen.of(job)] for job in jobs}
    with Cluster(jobs, gpus=case.gpus, visible_devices=visible) as cluster:
        cards = {task: _cards(cluster.task(task.job, task.number).devices()) for task in tasks}
    return seen._replace(cards=cards)


def _demand_ports(seen: Seen) -> None:
    if taken := seen.ports_taken_twice:
        raise Wrong(f"Two tasks have the address {taken[0]}: the second server finds the port in use.", seen)


def _cards(devices: Sequence[Any]) -> list[str]:
    """Where in the machine the GPUs of a task are."""
    found = [device.physical_device_desc for device in devices if device.device_type == "GPU"]
    return [text.partition("pci bus id: ")[2].partition(",")[0] for text in found]


def _run(answer: Any, case: Case) -> Seen:
    return _start(case, _tasks(case, answer(list(case.machines), case.gpus, case.ps_tasks)))


def _demand_tasks(seen: Seen) -> None:
    """Wrong unless there are as many tasks as asked for, spread over the machines."""
    case, workers = seen.case, Counter(task.machine for task in seen.of("worker"))
    for machine in case.machines:
        if workers[machine] != case.gpus:
            raise Wrong(f"{case}: {machine} has {plural(workers[machine], 'worker')}; expected: {case.gpus}.", seen)
    if len(seen.of("ps")) != case.ps_tasks:
        raise Wrong(f"{case} has {plural(len(seen.of('ps')), 'ps task')}; expected: {case.ps_tasks}.", seen)
    counts = [sum(task.machine == machine for task in seen.of("ps")) for machine in case.machines]
    if max(counts) > min(counts) + 1:
        counted = ", ".join(f"{machine} {count}" for machine, count in zip(case.machines, counts))
        raise Wrong(f"{case}: the ps tasks are not spread over the machines: {counted}.", seen)


# -- what is checked -----------------------------------------------------------------------------------------


@q1.check("A worker for each GPU, and the ps tasks spread over the machines; the servers start", points=3)
def tasks(answer: Any, random: Random) -> None:
    case = _draw(random, least=3)
    _demand_tasks(_run(answer, case._replace(ps_tasks=len(case.machines) + 1)))


@q1.check("Each worker sees one GPU, which no other task sees", points=4)
def workers(answer: Any, random: Random) -> None:
    for case in (_draw(random), _draw_square(random)):
        _demand_own_cards(_run(answer, case))


def _demand_own_cards(seen: Seen) -> None:
    assert seen.cards is not None
    for worker in seen.of("worker"):
        if len(seen.cards[worker]) != 1:
            raise Wrong(f"{worker} sees {plural(len(seen.cards[worker]), 'GPU')}; expected: 1.", seen)
        (card,) = seen.cards[worker]
        for other in seen.of("worker"):
            if other != worker and other.machine == worker.machine and card in seen.cards[other]:
                raise Wrong(f"{worker} and {other} have the same GPU.", seen)


@q1.check("No ps task sees a GPU", points=2)
def parameter_servers(answer: Any, random: Random) -> None:
    seen = _run(answer, _draw(random))
    assert seen.cards is not None
    for ps in seen.of("ps"):
        if seen.cards[ps]:
            raise Wrong(f"{ps} sees {plural(len(seen.cards[ps]), 'GPU')}; expected: none.", seen)


@q1.check("One ps task, more of them than machines; one GPU, and many", points=1)
def edges(answer: Any, random: Random) -> None:
    for ps_tasks, machines in ((1, 4), (5, 4), (6, 4), (8, 3), (12, 2)):  # up to the sixth of a machine
        _demand_tasks(_run(answer, _draw(random, ps_tasks, machines, machines)))
    for gpus in (1, random.choice((11, 13, 15))):  # an odd number of two digits
        case = _draw(random, most=2)._replace(gpus=gpus)
        _demand_tasks(seen := _run(answer, case))
        _demand_own_cards(seen)
    case = case._replace(ps_tasks=20 * len(case.machines))  # more ports than anybody sets apart by eye
    _demand_ports(Seen(case, _tasks(case, answer(list(case.machines), case.gpus, case.ps_tasks))))


# -- mistakes ------------------------------------------------------------------------------------------------


@q1.mistake()
def takes_a_port_twice(seen: Seen) -> bool:
    """Servers on one machine share its ports: two can't listen at the same one. Count the ports up, for example 2222 +
    gpu for workers, and others for ps tasks."""
    return bool(seen.ports_taken_twice)


@q1.mistake()
def names_devices(seen: Seen) -> bool:
    """CUDA_VISIBLE_DEVICES does not understand names of devices: '/gpu:0' is what an op asks for once the server runs.
    It has the numbers of GPUs, '0' or '0,1'. Use str(gpu)."""
    return any(text and ":" in text for job in ("ps", "worker") for text in _visible(seen, job))


@q1.mistake()
def piles_up_the_ps(seen: Seen) -> bool:
    """All parameter servers are on one machine: its network card has to carry the traffic of all workers. Put ps task i
    on machines[i % len(machines)]."""
    return len({task.machine for task in seen.of("ps")}) == 1 < len(seen.of("ps")) == seen.case.ps_tasks


@q1.mistake()
def lets_workers_see_all(seen: Seen) -> bool:
    """Each worker sees all GPUs of its machine: the first takes the memory of all of them. Give the job 'worker' a list
    of texts, one GPU for each task."""
    return _visible(seen, "worker") == {None}


@q1.mistake()
def numbers_gpus_of_all_machines(seen: Seen) -> bool:
    """Some workers see no GPU. CUDA_VISIBLE_DEVICES counts the GPUs of one machine, from 0 on each: it is not the
    number of the task."""
    return [task.visible for task in seen.of("worker")] == [str(task.number) for task in seen.of("worker")]


@q1.mistake()
def counts_gpus_from_one(seen: Seen) -> bool:
    """The last worker of each machine sees no GPU. CUDA_VISIBLE_DEVICES counts GPUs from 0: with three there are 0, 1
    and 2."""
    return _visible(seen, "worker") == {str(gpu + 1) for gpu in range(seen.case.gpus)}


@q1.mistake()
def gives_a_gpu_twice(seen: Seen) -> bool:
    """Two workers of one machine have the same GPU, and its memory. The texts are in the order of the addresses: text i
    is for worker i. Let one loop make both lists."""
    mine = [(task.machine, task.visible) for task in seen.of("worker")]
    full = Counter(machine for machine, _ in mine) == dict.fromkeys(seen.case.machines, seen.case.gpus)
    return full and len(set(mine)) < len(mine) and all(text and text.isdecimal() for _, text in mine)


@q1.mistake()
def lets_the_ps_see_gpus(seen: Seen) -> bool:
    """A ps process that may see GPUs takes their memory when it starts, as any TensorFlow program does, and the workers
    find none left. An empty text hides them: {'ps': ''}."""
    cards = seen.cards or {}
    return all(len(cards.get(task, ())) == 1 for task in seen.of("worker")) and any(map(cards.get, seen.of("ps")))


@q1.mistake()
def makes_a_ps_for_each_machine(seen: Seen) -> bool:
    """Each machine has one parameter server, however many are asked for. The machines and `ps_tasks` are two numbers:
    with more tasks than machines begin at the first one again, with fewer some have none."""
    return _places(seen, "ps") == list(seen.case.machines) and len(seen.of("ps")) != seen.case.ps_tasks


@q1.mistake()
def makes_a_worker_for_each_machine(seen: Seen) -> bool:
    """Each machine has one worker. There should be one for each GPU: a loop over the GPUs inside of that over the
    machines."""
    return _places(seen, "worker") == list(seen.case.machines)


@q1.mistake()
def fills_machines_up(seen: Seen) -> bool:
    """The ps tasks fill one machine after the other, and the last ones get fewer, or none. Deal them out in turn: task
    i goes to machines[i % len(machines)]."""
    places = [seen.case.machines.index(machine) for machine in _places(seen, "ps")]
    counts = [places.count(place) for place in range(len(seen.case.machines))]
    return places == sorted(places) and max(counts) > min(counts) + 1 and len(set(places)) > 1


@q1.mistake()
def piles_up_the_workers(seen: Seen) -> bool:
    """All workers are on one machine, though it has only its own GPUs. A worker is on the machine of its GPU: those of
    each machine have its name in their addresses."""
    return len(set(_places(seen, "worker"))) == 1 < len(seen.case.machines)


@q1.mistake()
def lets_a_worker_see_several(seen: Seen) -> bool:
    """Some workers see more than one GPU. A text with a comma names several of them: give each worker one number."""
    full = Counter(_places(seen, "worker")) == dict.fromkeys(seen.case.machines, seen.case.gpus)
    return full and any(text is not None and "," in text for text in _visible(seen, "worker"))


def _places(seen: Seen, job: str) -> list[str]:
    """The machines of its tasks."""
    return [task.machine for task in seen.of(job)]


def _visible(seen: Seen, job: str) -> set[str | None]:
    return {task.visible for task in seen.of(job)}
