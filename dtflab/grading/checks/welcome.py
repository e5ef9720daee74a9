"""Questions on the first cluster.

q1: several workers count together, in one variable. The answer starts a cluster of its own; the checks watch it
(`tf.watch`): which client asked which task for how many steps, and where the variables are that these steps needed.
Clients run in real time, so the same mistake may give another number each time. Rule: where it does, the checks judge
by which task did what, which is the same each time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np

from dtflab.base import errors
from dtflab.base.events import Call
from dtflab.base.text_table import plural
from dtflab.grading.device_functions import shown
from dtflab.grading.questions import Wrong, from_toml
from dtflab.machine.watch import Watch, watch

q1 = from_toml(__file__)


_ASSIGNS = frozenset(("Assign", "AssignVariableOp"))
# What a session says of another graph.
_OTHER_GRAPH = ("graph is empty", "element of this graph", "from the same graph")


class Adding(NamedTuple):
    """The step that a client ran most often with the server of a worker."""

    worker: int
    client: str
    times: int
    assigns: bool  # it writes the counter with an op that does not add


class Seen(NamedTuple):
    """The value that an answer counted to, and how: the evidence."""

    workers: int
    steps: int
    value: Any
    homes: Sequence[str]  # of the variables that steps needed: tasks
    adding: Sequence[Adding]
    began: int  # how many clients gave variables a value before they went on
    error: str = ""  # what it ended with

    def __str__(self) -> str:
        return f"count_together({self.workers}, {self.steps})"


# -- what an answer does -------------------------------------------------------------------------------------


def _run(answer: Any, workers: int, steps: int) -> Seen:
    """Let the answer count, and look at it."""
    value, error = None, ""
    with watch() as seen:
        try:
            value = answer(workers, steps)
        except (errors.FailedPreconditionError, errors.InvalidArgumentError, RuntimeError, ValueError) as raised:
            error = getattr(raised, "message", str(raised))
            if not any(part in error for part in ("uninitialized value", "/job:localhost", *_OTHER_GRAPH)):
                raise
    found = _look(seen, workers, steps)._replace(value=value, error=error)
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


def _look(seen: Watch, workers: int, steps: int) -> Seen:
    calls = [call._replace(detail=_kind(call.detail)) for call in seen.calls if call.method == "RunStep"]
    homes = sorted({use.device.partition("/device:")[0] for use in seen.uses})
    assigning = {(use.client, _kind(use.step)) for use in seen.uses if _ASSIGNS.intersection(use.ops)}
    adding = _adding(calls, assigning, steps)
    first = {(one.client, one.worker): _first(calls, one) for one in adding}
    before = [call for call in calls if call.turn < first.get((call.source, _worker(call.target)), call.turn + 1)]
    reached = {call.step for call in seen.calls if call.method == "RunGraph" and _worker(call.target) < 0}
    began = {call.source for call in before if _runs_an_op(call) and (call.step in reached or _worker(call.target) < 0)}
    return Seen(workers, steps, None, homes, adding, len(began))


def _kind(detail: str) -> str:
    """The kind of a step, without the numbers of ops: a loop that makes a new `assign_add` each time adds, too."""
    return re.sub(r"_\d+", "", detail)


def _runs_an_op(call: Call) -> bool:
    """Whether a step runs an op for its effect, as an initializer is run; a mere look fetches tensors: `name:0`.

    (Those of a MonitoredTrainingSession's workers initialize what is local, which is nothing: they reach no ps.)
    """
    return any(":" not in name for name in call.detail.split(", "))


def _adding(calls: Sequence[Call], assigning: Container[tuple[str, str]], steps: int) -> list[Adding]:
    """For each client and worker, how often its most frequent step ran; `assigning` are a client's steps that assign.

    An initializer assigns, too, but not as often as a worker adds.
    """
    counted = Counter((_worker(call.target), call.source, call.detail) for call in calls)
    most: dict[tuple[int, str], tuple[int, bool]] = {}
    for (worker, client, step), times in counted.items():
        before, assigns = most.get((worker, client), (0, False))
        most[worker, client] = max(times, before), assigns or ((client, step) in assigning and times >= steps)
    return [Adding(*pair, *found) for pair, found in sorted(most.items()) if pair[0] >= 0 and found[0] > 1]


def _first(calls: Sequence[Call], one: Adding) -> int:
    """The turn at which that client began to add: the first of the steps that it ran so often."""
    mine = [call for call in calls if (call.source, _worker(call.target)) == (one.client, one.worker)]
    counted = Counter(call.detail for call in mine)
    return min(call.turn for call in mine if counted[call.detail] == one.times)


def _worker(target: str) -> int:
    """The number of a worker by its full name, -1 for another task."""
    job, _, number = target.rpartition("/task:")
    return int(number) if job.startswith("/job:worker") else -1


# -- what is checked -----------------------------------------------------------------------------------------


def _draw(random: Random) -> tuple[int, int]:
    return random.randint(2, 4), random.randint(5, 15)


def _demand_once(seen: Seen) -> None:
    if seen.began > 1:
        observed = f"In {seen}, {plural(seen.began, 'client')} gave the counter its first value"
        raise Wrong(f"{observed}; expected: one, before any worker adds.", seen)


def _demand_one_op(seen: Seen) -> None:
    for one in seen.adding:
        if one.assigns:
            text = f"In {seen}, worker {one.worker} wrote the counter with an op that does not add, {one.times} times"
            raise Wrong(f"{text}; expected: one op that reads, adds and writes.", seen)


def _demand_home(seen: Seen) -> None:
    if seen.homes != ["/job:ps/replica:0/task:0"]:
        observed = f"In {seen}, the counter was on {', '.join(seen.homes)}"
        raise Wrong(f"{observed}; expected: one counter, on /job:ps/replica:0/task:0.", seen)


def _demand_all_add(seen: Seen) -> None:
    for worker in range(seen.workers):
        times = max((one.times for one in seen.adding if one.worker == worker), default=0)
        if times < seen.steps:
            ran = f"the server of worker {worker} ran {plural(times, 'step')} that add"
            raise Wrong(f"In {seen}, {ran}; each worker should add {seen.steps} times.", seen)
    if len({one.client for one in seen.adding}) < seen.workers:
        observed = f"In {seen}, {plural(seen.workers, 'worker')} were asked by one client, one after the other"
        raise Wrong(f"{observed}; all should add at the same time.", seen)


def _demand_value(seen: Seen) -> None:
    expected, number = seen.workers * seen.steps, _number(seen.value)
    if number is None:
        raise Wrong(f"{seen} returned {shown(seen.value)}; expected: the counter's value, a number.", seen)
    if number != expected:
        each = f"{plural(seen.workers, 'worker')} with {seen.steps} each"
        raise Wrong(f"{seen} returned {number}; expected: {expected}, {each}.", seen)


def _number(value: Any) -> float | None:
    """The value as one number; None if it is not a number."""
    array = np.asarray(value)
    return array.item() if array.size == 1 and array.dtype.kind in "iuf" else None


@q1.check("There is one counter, on the ps task", points=3)
def one_counter(answer: Any, random: Random) -> None:
    _demand_home(_run(answer, *_draw(random)))


@q1.check("Every worker adds, all at the same time", points=3)
def all_add(answer: Any, random: Random) -> None:
    _demand_all_add(_run(answer, *_draw(random)))


@q1.check("The value at the end counts what all have added, with one worker, too", points=4)
def value(answer: Any, random: Random) -> None:
    for workers, steps in (_draw(random), (1, random.randint(5, 15))):
        seen = _run(answer, workers, steps)
        _demand_one_op(seen)
        _demand_once(seen)
        _demand_value(seen)


# -- mistakes ------------------------------------------------------------------------------------------------


@q1.mistake()
def opens_a_local_session(seen: Seen) -> bool:
    """tf.Session() without a target is a cluster of its own, with one task. A client reaches the tasks of your cluster
    with tf.Session(client.target), or tf.Session(cluster.target)."""
    return any("/job:localhost" in text for text in (seen.error, *seen.homes))


@q1.mistake()
def forgets_the_initializer(seen: Seen) -> bool:
    """The counter had no value yet when somebody added to it. Run its initializer once, in one session on the cluster,
    before cluster.run begins."""
    return "uninitialized value" in seen.error


@q1.mistake()
def builds_one_graph_for_all(seen: Seen) -> bool:
    """The counter was built in another graph than that of the client that uses it. Each call of work begins with an
    empty graph: build the counter in there, with the same name on the same task, and it is the same counter."""
    return any(part in seen.error for part in _OTHER_GRAPH)


@q1.mistake()
def each_counts_alone(seen: Seen) -> bool:
    """Each worker counts alone: a variable without a pin lives on the task whose server is asked. Put it on the
    parameter server, with tf.device("/job:ps/task:0"), in each graph."""
    return any(home.startswith("/job:worker") for home in seen.homes)


@q1.mistake()
def adds_in_several_ops(seen: Seen) -> bool:
    """Reading the counter, adding 1 and assigning the sum are three steps. If another worker adds between the first and
    the last of them, its addition is lost, now and then. tf.assign_add is one op that does all three."""
    return any(one.assigns for one in seen.adding)


@q1.mistake()
def initializes_in_each(seen: Seen) -> bool:
    """More than one client runs the initializer. A client that comes later sets the counter to 0 again, and what the
    others have added until then is lost. One client does it, before all begin."""
    return seen.began > 1


@q1.mistake()
def one_worker_does_all(seen: Seen) -> bool:
    """One client adds for all. Let cluster.run(work) call your function for each worker: it runs them at the same time,
    and each adds `steps` times."""
    return len({one.worker for one in seen.adding}) == len(seen.adding) == 1 < seen.workers


@q1.mistake()
def asks_one_server(seen: Seen) -> bool:
    """All clients ask the same server, that of worker 0; the other workers do nothing. Each client has a server of its
    own: tf.Session(client.target)."""
    return len({one.worker for one in seen.adding}) == 1 < len({one.client for one in seen.adding})


@q1.mistake()
def one_after_another(seen: Seen) -> bool:
    """The workers add one after the other: a loop of yours waits for each of them. cluster.run(work) lets all of them
    work at the same time."""
    return len({one.client for one in seen.adding}) == 1 < len({one.worker for one in seen.adding})


@q1.mistake()
def reads_too_early(seen: Seen) -> bool:
    """Everybody added, but the value was read before all had ended. cluster.run returns when the last worker has ended:
    read the counter after it."""
    all_added = len([one for one in seen.adding if one.times >= seen.steps]) == seen.workers
    number = _number(seen.value)
    return all_added and number is not None and number < seen.workers * seen.steps
