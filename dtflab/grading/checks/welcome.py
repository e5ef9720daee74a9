"""Questions on the first cluster.

q1: several workers count together, in one variable. The answer starts a cluster of its own; the checks watch it
(`tf.watch`): which client asked which task for how many steps, which variables these steps changed by which ops, and
what these held at the end. Clients run in real time, so the same mistake may give another number each time. Rule: where
it does, the checks judge by which task did what, which is the same each time.
"""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Iterable, Sequence
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple

import numpy as np

from dtflab.base import errors
from dtflab.base.events import Begins, Call, Use, client_name
from dtflab.base.text_table import plural
from dtflab.cluster import inprocess
from dtflab.cluster.cluster import Cluster, at_target
from dtflab.cluster.task import Task
from dtflab.grading.device_functions import shown
from dtflab.grading.questions import Wrong, from_toml
from dtflab.machine.clock import REAL
from dtflab.machine.watch import Watch
from dtflab.ops.cell import Cell
from dtflab.ops.resource_mgr import DEFAULT_CONTAINER

q1 = from_toml(__file__)


# Ops that read a variable, add and write in one; and those that write what was computed elsewhere.
_ADDS = frozenset(
    "AssignAdd AssignSub AssignAddVariableOp AssignSubVariableOp ScatterAdd ScatterSub ResourceScatterAdd CountUpTo "
    "ResourceScatterSub ResourceCountUpTo ApplyGradientDescent ResourceApplyGradientDescent".split()
)
_ASSIGNS = frozenset(("Assign", "AssignVariableOp"))
MANY = 200  # steps: clients that take them at the same time meet; with few, one may end before the next begins
LONGER = 0.002  # seconds, of a slow worker's step
LOOK = 0.02  # of a client's first: clients that look for a value before they give one all find none
LATE = 1.0  # before its first: who does not wait for the value that it gives, but sleeps for a while, finds none
_PS = "/job:ps/replica:0/task:0"
# What a session says of another graph.
_OTHER_GRAPH = ("graph is empty", "element of this graph", "from the same graph")


class Adding(NamedTuple):
    """The step that a client ran most often with the server of a worker, of those that change a variable."""

    worker: int
    client: str
    times: int
    assigns: bool  # it writes the counter with an op that does not add

    @property
    def of_another(self) -> bool:
        """Whether a client that `cluster.run` started for a worker asked the server of another one."""
        return self.client.startswith("client /job:worker") and _worker(self.client) != self.worker


class Counter(NamedTuple):
    """A variable that such a step changes, and the number that it held at the end; None if it was not a number."""

    task: str
    container: str
    name: str
    held: float | None

    def __str__(self) -> str:
        return f"'{self.name}'" + (f" in the container '{self.container}'" if self.container else "")


class Seen(NamedTuple):
    """The value that an answer counted to, and how: the evidence."""

    workers: int
    steps: int
    value: Any
    homes: Sequence[str]  # of the variables that steps needed: tasks
    counters: Sequence[Counter]
    adding: Sequence[Adding]
    began: int  # how many clients gave variables a value before they went on
    tasks: Sequence[str] = ()  # of all clusters that were asked
    left: Sequence[str] = ()  # of these, those that still run
    error: str = ""  # what it ended with
    spans: Sequence[tuple[int, int]] = ()  # the first and the last of the additions of each client

    @property
    def took_turns(self) -> bool:
        """Whether each client began after another one had added for the last time; not if all of them add once only."""
        spans = sorted(self.spans)
        in_turn = all(one[1] < other[0] for one, other in pairwise(spans))
        return len(spans) > 1 and in_turn and any(first < last for first, last in spans)

    @property
    def expected(self) -> int:
        return self.workers * self.steps

    @property
    def held(self) -> float | None:
        """The number that the counter held at the end; None unless there was one counter."""
        return self.counters[0].held if len(self.counters) == 1 else None

    @property
    def times(self) -> set[int]:
        """How often a worker added, if all of them did, each by one op; empty if not."""
        complete = {one.worker for one in self.adding} == {*range(self.workers)} and len(self.adding) == self.workers
        return {one.times for one in self.adding} if complete and not any(one.assigns for one in self.adding) else set()

    @property
    def did_all(self) -> set[int]:
        """The workers whose servers ran all steps that they should."""
        return {one.worker for one in self.adding if one.times >= self.steps}

    def __str__(self) -> str:
        return f"count_together({self.workers}, {self.steps})"


class _Watch(Watch):
    """Also keeps the variables of each cluster that a client asks: they can be read when it has stopped.

    One worker may be `slow`: it begins late, and its steps take longer, so it is the last to end.
    """

    def __init__(self, slow: int | None = None) -> None:
        super().__init__()
        self._slow = slow
        self._began: set[str] = set()
        self._clusters: list[Cluster] = []
        self._tasks: dict[str, Task] = {}
        self._cells: dict[tuple[str, str, str], Cell] = {}  # by device, container, name

    def on_begins(self, begins: Begins) -> None:
        cluster = at_target(begins.target)
        if cluster is not None and cluster not in self._clusters:
            self._clusters.append(cluster)
        found = (inprocess.find(one.address) for one in (cluster.tasks if cluster is not None else ()))
        self._tasks |= {task.name: task for task in found if task is not None}
        client = client_name()
        REAL.sleep(LATE * (_worker(client) == self._slow and client not in self._began))

    def on_call(self, call: Call) -> None:
        super().on_call(call)
        if call.method == "RunStep" and self._slow is not None:
            REAL.sleep(LONGER * (_worker(call.target) == self._slow) + LOOK * (call.source not in self._began))
            self._began.add(call.source)

    def on_use(self, use: Use) -> None:
        super().on_use(use)
        task = self._tasks.get(use.device.partition("/device:")[0])
        for device in task.devices if task is not None else ():
            for container, name, resource in device.resources.items():
                if isinstance(resource, Cell):
                    self._cells[device.name, container, name] = resource

    @property
    def tasks(self) -> list[str]:
        return sorted(self._tasks)

    def stop(self) -> list[str]:
        """Stop all clusters; the tasks that still ran."""
        left = [task.name for cluster in self._clusters for task in cluster.tasks if task.state == "running"]
        for cluster in self._clusters:
            cluster.stop()
        return left

    def counter(self, use: Use) -> Counter:
        cell = self._cells.get((use.device, use.container or DEFAULT_CONTAINER, use.variable))
        task = use.device.partition("/device:")[0]
        return Counter(task, use.container, use.variable, None if cell is None else _number(cell.value))


# -- what an answer does -------------------------------------------------------------------------------------


def _run(answer: Any, workers: int, steps: int, slow: int | None = None) -> Seen:
    """Let the answer count, and look at it."""
    value, error = None, ""
    with _Watch(slow) as seen:
        try:
            value = answer(workers, steps)
        except (errors.FailedPreconditionError, errors.InvalidArgumentError, RuntimeError, ValueError) as raised:
            error = getattr(raised, "message", str(raised))
            if not any(part in error for part in ("uninitialized value", "/job:localhost", *_OTHER_GRAPH)):
                raise
    found = _look(seen, workers, steps)._replace(value=value, error=error, left=seen.stop())
    if error:
        raise Wrong(f"{found} stopped with an error: {error.partition('. ')[0]}.", found)
    if not found.homes:
        raise Wrong(f"{found} returned {shown(value)}, and {_unseen(seen)}.")
    return found


def _unseen(seen: Watch) -> str:
    """Why no variable was seen in use."""
    if seen.calls:
        return "no check could look on: its tasks were processes of their own. Start the cluster without engine="
    return "no session has used any variable of a cluster"


def _look(seen: _Watch, workers: int, steps: int) -> Seen:
    calls = [call._replace(detail=_kind(call.detail)) for call in seen.calls if call.method == "RunStep"]
    homes = sorted({use.device.partition("/device:")[0] for use in seen.uses})
    adding = _adding(calls, _changing(calls, seen.uses, steps))
    kinds = {(one.client, step) for one, step in adding}
    counting = [use for use in seen.uses if (use.client, _kind(use.step)) in kinds and _ways(use)]
    counters = sorted({seen.counter(use) for use in counting}, key=lambda one: one[:3])
    turns = {(one.client, one.worker): _turns(calls, one, step) for one, step in adding}
    first = {pair: min(mine) for pair, mine in turns.items()}
    before = [call for call in calls if call.turn < first.get((call.source, _worker(call.target)), call.turn + 1)]
    reached = {call.step for call in seen.calls if call.method == "RunGraph" and _worker(call.target) < 0}
    began = {call.source for call in before if _runs_an_op(call) and (call.step in reached or _worker(call.target) < 0)}
    spans = [(min(mine), max(mine)) for mine in turns.values()]
    adds = [one for one, _ in adding]
    return Seen(workers, steps, None, homes, counters, adds, len(began), seen.tasks, spans=spans)


def _ways(use: Use) -> frozenset[str]:
    """The ops by which a step changes a variable."""
    return (_ADDS | _ASSIGNS).intersection(use.ops)


def _changing(calls: Sequence[Call], uses: Iterable[Use], steps: int) -> dict[tuple[str, str], bool]:
    """The steps of clients that change a variable, without initializers, and whether each of them assigns.

    An initializer assigns, too, but not as often as a worker adds.
    """
    times = Tally((call.source, call.detail) for call in calls)
    found: dict[tuple[str, str], bool] = {}
    for use in uses:
        key, ways = (use.client, _kind(use.step)), _ways(use)
        if ways & _ADDS or (ways and times[key] >= steps):
            found[key] = found.get(key, False) or not ways & _ADDS
    return found


def _kind(detail: str) -> str:
    """The kind of a step, without the numbers of ops: a loop that makes a new `assign_add` each time adds, too."""
    return re.sub(r"_\d+", "", detail)


def _runs_an_op(call: Call) -> bool:
    """Whether a step runs an op for its effect, as an initializer is run; a mere look fetches tensors: `name:0`.

    (Those of a MonitoredTrainingSession's workers initialize what is local, which is nothing: they reach no ps.)
    """
    return any(":" not in name for name in call.detail.split(", "))


def _adding(calls: Sequence[Call], changing: dict[tuple[str, str], bool]) -> list[tuple[Adding, str]]:
    """For each client and worker, its most frequent step of those that change a variable, and how often it ran."""
    counted = Tally((_worker(call.target), call.source, call.detail) for call in calls)
    most: dict[tuple[int, str], tuple[Adding, str]] = {}
    for (worker, client, step), times in counted.items():
        if (client, step) in changing and worker >= 0:
            one = (Adding(worker, client, times, changing[client, step]), step)
            most[worker, client] = max(one, most.get((worker, client), one), key=lambda pair: pair[0].times)
    return [most[pair] for pair in sorted(most)]


def _turns(calls: Sequence[Call], one: Adding, step: str) -> list[int]:
    """The turns at which that client added."""
    mine = [call for call in calls if (call.source, _worker(call.target)) == (one.client, one.worker)]
    return [call.turn for call in mine if call.detail == step]


def _worker(target: str) -> int:
    """The number of a worker by its full name, or that of its client; -1 for another task."""
    job, _, number = target.removeprefix("client ").rpartition("/task:")
    return int(number) if job.startswith("/job:worker") else -1


# -- what is checked -----------------------------------------------------------------------------------------


def _draw(random: Random) -> tuple[int, int]:
    return random.randint(2, 4), random.randint(5, 15)


def _demand_once(seen: Seen) -> None:
    if seen.began > 1:
        observed = f"In {seen}, {plural(seen.began, 'client')} gave the counter its first value"
        raise Wrong(f"{observed}; expected: one, before any worker adds.", seen)


def _demand_one_counter(seen: Seen) -> None:
    if seen.homes != [_PS]:
        observed = f"In {seen}, the counter was on {', '.join(seen.homes)}"
        raise Wrong(f"{observed}; expected: one counter, on {_PS}.", seen)
    if len(seen.counters) > 1:
        names = ", ".join(map(str, seen.counters))
        there = f"there were {len(seen.counters)} counters on the ps task: {names}"
        raise Wrong(f"In {seen}, {there}; expected: one.", seen)
    if more := [task for task in seen.tasks if task != _PS and not 0 <= _worker(task) < seen.workers]:
        expected = f"one ps task and {plural(seen.workers, 'worker')}"
        raise Wrong(f"In {seen}, the cluster has {more[0]}, too; expected: {expected}.", seen)


def _demand_own_steps(seen: Seen) -> None:
    for worker in range(seen.workers):
        times = max((one.times for one in seen.adding if one.worker == worker), default=0)
        if times != seen.steps:
            changed = f"the server of worker {worker} changed the counter in {plural(times, 'step')}"
            raise Wrong(f"In {seen}, {changed}; each worker should add {seen.steps} times.", seen)
    for one in seen.adding:
        if one.of_another:
            asked = f"the client of worker {_worker(one.client)} asked the server of worker {one.worker}"
            raise Wrong(f"In {seen}, {asked}; expected: its own.", seen)


def _demand_adds(seen: Seen) -> None:
    """Wrong where a value says nothing: it is right by luck, or nobody else could have changed it meanwhile."""
    for one in seen.adding:
        if one.assigns:
            text = f"In {seen}, worker {one.worker} wrote the counter with an op that does not add, {one.times} times"
            raise Wrong(f"{text}; expected: one op that reads, adds and writes.", seen)
    clients, servers = ({getattr(one, what) for one in seen.adding} for what in ("client", "worker"))
    if len(clients) < max(len(servers), min(2, seen.workers)):
        observed = f"In {seen}, {plural(len(clients), 'client')} changed the counter by steps of workers"
        raise Wrong(f"{observed}; expected: {seen.workers}, all at the same time.", seen)


def _demand_value(seen: Seen) -> None:
    number = _number(seen.value)
    if number is None:
        raise Wrong(f"{seen} returned {shown(seen.value)}; expected: the counter's value, a number.", seen)
    if number not in (seen.expected, sum(one.times for one in seen.adding)):
        each = f"{plural(seen.workers, 'worker')} with {seen.steps} each"
        raise Wrong(f"{seen} returned {number}; expected: {seen.expected}, {each}.", seen)
    if seen.held != number:
        observed = f"{seen} returned {number}, but the counter held {shown(seen.held)} at the end"
        raise Wrong(f"{observed}; expected: {seen.expected}, and that is what is returned.", seen)


def _number(value: Any) -> float | None:
    """The value as one number; None if it is not a number."""
    array = np.asarray(value)
    return array.item() if array.size == 1 and array.dtype.kind in "iuf" else None


@q1.check("There is one counter, on the ps task of a cluster that is stopped at the end", points=2)
def one_counter(answer: Any, random: Random) -> None:
    seen = _run(answer, *_draw(random))
    _demand_one_counter(seen)
    if seen.left:
        raise Wrong(f"{seen} has returned, and {plural(len(seen.left), 'task')} of its cluster still run.", seen)


@q1.check("Workers add with one op that loses no addition, at the same time", points=3)
def all_add(answer: Any, random: Random) -> None:
    workers = random.randint(3, 4)
    for steps in (MANY, 5 * MANY):
        _demand_adds(seen := _run(answer, workers, steps))
        if len(servers := {one.worker for one in seen.adding}) == 1:
            raise Wrong(f"In {seen}, only worker {min(servers)}'s server changed the counter; expected: all.", seen)
        if not seen.took_turns:
            return
    raise Wrong(f"In {seen}, no client began before another one had ended; all should add at the same time.", seen)


@q1.check("Each worker's own server runs all of its steps", points=2)
def own_steps(answer: Any, random: Random) -> None:
    _demand_own_steps(_run(answer, *_draw(random), slow=1))  # who adds up to the total leaves nothing to worker 1


@q1.check("The value at the end counts what all workers have added, with one worker, too", points=3)
def value(answer: Any, random: Random) -> None:
    workers, steps = random.randint(3, 4), random.randint(5, 15)
    for count, slow in ((workers, 0), (workers, workers - 1), (1, None)):  # who ends last
        seen = _run(answer, count, steps, slow)
        _demand_once(seen)
        _demand_adds(seen)
        _demand_value(seen)


# -- mistakes ------------------------------------------------------------------------------------------------


@q1.mistake()
def opens_a_local_session(seen: Seen) -> bool:
    """tf.Session() without a target is a cluster of its own, with one task. A client reaches the tasks of your cluster
    with tf.Session(client.target), or tf.Session(cluster.target)."""
    return any("/job:localhost" in text for text in (seen.error, *seen.homes))


@q1.mistake()
def leaves_the_cluster_running(seen: Seen) -> bool:
    """Nobody stops the cluster: its servers run on, with their ports and the memory of their variables, until the
    program ends. `with tf.Cluster(…) as cluster:` stops it at the end of the block, after an error, too."""
    return bool(seen.left) and not seen.error  # which kept it from the end


@q1.mistake()
def builds_one_graph_for_all(seen: Seen) -> bool:
    """The counter was built in another graph than that of the client that uses it. Each call of work begins with an
    empty graph: build the counter in there, with the same name on the same task, and it is the same counter."""
    return any(part in seen.error for part in _OTHER_GRAPH)


@q1.mistake()
def each_counts_alone(seen: Seen) -> bool:
    """Each worker counts alone: a variable without a pin lives on the task whose server is asked. Put it on the
    parameter server, with tf.device("/job:ps/task:0"), in each graph."""
    return len(seen.homes) == seen.workers > 1 and all(_worker(home) >= 0 for home in seen.homes)


@q1.mistake()
def forgets_the_initializer(seen: Seen) -> bool:
    """The counter had no value yet when somebody added to it. Run its initializer once, in one session on the cluster,
    before cluster.run begins."""
    return "uninitialized value" in seen.error and seen.homes == [_PS]


@q1.mistake()
def has_several_counters(seen: Seen) -> bool:
    """The workers do not add to the same counter. It is the same one only if its task, its name and its container are
    the same in every graph."""
    return len(seen.counters) > 1 and seen.homes == [_PS]


@q1.mistake()
def adds_in_several_ops(seen: Seen) -> bool:
    """Reading the counter, adding 1 and assigning the sum are three steps. If another worker adds between the first and
    the last of them, its addition is lost, now and then. tf.assign_add is one op that does all three."""
    return any(one.assigns for one in seen.adding)


@q1.mistake()
def initializes_in_each(seen: Seen) -> bool:
    """More than one client runs the initializer. A client that initializes later sets the counter to 0 again, and what
    the others have added until then is lost. One client does it, before all begin."""
    return seen.began > 1


@q1.mistake()
def one_worker_does_all(seen: Seen) -> bool:
    """One client adds for all. Let cluster.run(work) call your function for each worker: it runs them at the same time,
    and each adds `steps` times."""
    return seen.workers > 1 == len(seen.adding) and seen.adding[0].times == seen.expected


@q1.mistake()
def chief_only_looks_on(seen: Seen) -> bool:
    """Worker 0 gives the counter its first value, and then adds nothing. It is a worker like the others: it has to
    add, too."""
    return (
        seen.workers > 1
        and seen.did_all == {*range(1, seen.workers)}
        and {one.worker for one in seen.adding} == seen.did_all
    )


@q1.mistake()
def adds_in_one_go(seen: Seen) -> bool:
    """The sum is right, but each worker adds everything in one step. Let each run `steps` steps, and add 1 in each."""
    return seen.held == seen.expected and {one.times for one in seen.adding} == {1} and len(seen.adding) == seen.workers


@q1.mistake()
def asks_one_server(seen: Seen) -> bool:
    """All clients ask the same server, that of worker 0; the other workers do nothing. Each client has a server of its
    own: tf.Session(client.target)."""
    return len({one.worker for one in seen.adding}) == 1 and len(seen.adding) == seen.workers > 1


@q1.mistake()
def asks_the_neighbours_server(seen: Seen) -> bool:
    """Clients ask each other's servers: all workers add, but a client has the server of another worker run its steps.
    Its own is client.target: tf.Session(client.target)."""
    return seen.did_all == {*range(seen.workers)} and any(one.of_another for one in seen.adding)


@q1.mistake()
def one_after_another(seen: Seen) -> bool:
    """The workers add one after the other: a loop of yours waits for each of them. cluster.run(work) lets all of them
    work at the same time."""
    in_turn = len({one.client for one in seen.adding}) == 1 or (seen.took_turns and seen.steps >= MANY)
    return seen.workers > 1 and in_turn and len(seen.did_all) == seen.workers


@q1.mistake()
def reads_too_early(seen: Seen) -> bool:
    """Everybody added, but the value was read before all had ended. cluster.run returns when the last worker has ended:
    read the counter after it."""
    number = _number(seen.value)
    return number is not None and number < seen.expected == seen.held


@q1.mistake()
def adds_another_number(seen: Seen) -> bool:
    """Each step of a worker adds another number than 1. The counter holds how many steps all workers ran only if each
    adds exactly 1."""
    held = seen.held if seen.times == {seen.steps} else None
    return held is not None and held != seen.expected and held % seen.expected == 0


@q1.mistake()
def begins_with_another_number(seen: Seen) -> bool:
    """The counter was not 0 when the workers began. They ran all of their steps, and at the end it is off by what it
    held before: the variable's first value is 0, and nobody adds until then."""
    held = seen.held if seen.times == {seen.steps} else None
    return held is not None and held % seen.expected != 0 and seen.began == 1


@q1.mistake()
def adds_once_too_few(seen: Seen) -> bool:
    """Each worker adds once too few, or too many. A loop over range(1, steps), or a step before the loop, does not
    count to `steps`: range(steps) has as many numbers."""
    (times,) = seen.times if len(seen.times) == 1 else (seen.steps,)
    return abs(times - seen.steps) == 1 and seen.held == times * seen.workers


@q1.mistake()
def counts_outside_the_workers(seen: Seen) -> bool:
    """No step of a worker's server changes the counter, and yet the right number came out: it was counted elsewhere, in
    Python or by another server. Let each worker's own server, client.target, run an op that adds 1 to the variable."""
    return not seen.adding and _number(seen.value) == seen.expected and seen.homes == [_PS]


@q1.mistake()
def puts_it_on_a_worker(seen: Seen) -> bool:
    """The counter is on a worker. All can reach it there, too, but what workers share is kept by the parameter server:
    tf.device("/job:ps/task:0")."""
    return seen.workers > 1 == len(seen.homes) and _worker(seen.homes[0]) >= 0


@q1.mistake()
def starts_several_ps(seen: Seen) -> bool:
    """There are several ps tasks, where the exercise asks for one. tf.Cluster(ps=1, worker=workers) starts a single
    one, and the counter is there: tf.device("/job:ps/task:0")."""
    tasks = [task for task in {*seen.tasks, *seen.homes} if not 0 <= _worker(task) < seen.workers]
    counted = len(seen.did_all) == seen.workers and _number(seen.value) == seen.expected
    return counted and len(tasks) > 1 and all(task.startswith("/job:ps") for task in tasks)


@q1.mistake()
def returns_a_list(seen: Seen) -> bool:
    """A list came back, with what each worker returned. That is what cluster.run gives: run the counter in a session
    after it, and return that value."""
    return isinstance(seen.value, list | tuple) and len(seen.value) == seen.workers > 1 and seen.times == {seen.steps}
