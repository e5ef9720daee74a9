"""Question placement/q2: from the pin of an op to the device where it is placed.

A pin is what the program asks for, a placement is what the placer decides. The truth is a session's: each case is one
op in a graph of its own, on a cluster of this process with simulated GPUs; the session reports where it was placed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

from dtflab.base import errors
from dtflab.base.text_table import plural
from dtflab.cluster.cluster import Cluster
from dtflab.grading.device_functions import shown
from dtflab.grading.questions import Wrong, from_toml
from dtflab.grading.unaided import by_itself, opens_a_session
from dtflab.graph import device_spec, dtypes
from dtflab.graph.graph import Graph
from dtflab.ops.arrays.functions import placeholder
from dtflab.ops.math.functions import square
from dtflab.ops.text.functions import string_join
from dtflab.runtime.session import Session

q2 = from_toml(__file__)
q2.mistake()(opens_a_session)


class Case(NamedTuple):
    """An op with a pin, in a session of a cluster with these devices, whose master is on that task."""

    pin: str
    gpu_kernel: bool
    devices: Sequence[str]
    master: str

    def __str__(self) -> str:
        kernel = "with a GPU kernel" if self.gpu_kernel else "without a GPU kernel"
        return f"An op {kernel}, pinned to {self.pin!r}, the master on {self.master}"

    def may_be(self, device: Any) -> bool:
        """Whether a device of the cluster keeps the pin and has a kernel."""
        return device in self.devices and device_spec.matches(self.pin, device) and self.has_kernel(device)

    def has_kernel(self, device: str) -> bool:
        return self.gpu_kernel or ":CPU:" in device


class Given(NamedTuple):
    """The device that an answer gave for a case, and the one where a session places the op; None if it refuses."""

    case: Case
    got: Any
    expected: str | None


class Seen(NamedTuple):
    """All that an answer gave for a check."""

    all: Sequence[Given]

    @property
    def wrong(self) -> list[Given]:
        return [one for one in self.all if one.got != one.expected]


def _devices(cluster: Cluster) -> list[str]:
    return [device.name for task in cluster.tasks for device in task.devices()]


def _cases(cluster: Cluster, pins: Sequence[str]) -> Iterator[Case]:
    """Each pin, for ops with and without a GPU kernel, from each master.

    The devices come in order for every other pin, else from the last to the first: so it shows who takes what comes
    first.
    """
    for number, pin in enumerate(pins):
        devices = sorted(_devices(cluster), reverse=number % 2 == 1)
        for task in cluster.tasks:
            for gpu_kernel in (True, False):
                yield Case(pin, gpu_kernel, devices, task.name)


def _placed(case: Case, target: str) -> tuple[str | None, str]:
    """Where a session with that target really places the op, and why; None if it refuses."""
    with Graph().as_default() as graph:
        x = placeholder(dtypes.float32 if case.gpu_kernel else dtypes.string, [])
        with graph.device(case.pin):
            op = (square(x) if case.gpu_kernel else string_join([x, x])).op
        with Session(target) as session:
            try:
                (where,) = (node.device for node in session.placed_nodes() if node.name == op.name)
                return where, session.placement_reasons()[op.name]
            except errors.InvalidArgumentError:
                return None, "it can't be placed, so TensorFlow raises InvalidArgumentError"


def _demand(answer: Any, random: Random, pins: Sequence[str], **wanted: Any) -> None:
    """Wrong unless the answer places ops with these pins as sessions do: those with this `gpu_kernel` or `refused`."""
    with Cluster(ps=random.randint(1, 2), worker=random.randint(2, 3), gpus=random.randint(2, 3)) as cluster:
        _demand_on(cluster, answer, _cases(cluster, pins), **wanted)


def _demand_number(answer: Any, random: Random) -> None:
    """Pose the cases with task 1, which sees no GPU, as the master; some tasks whose numbers begin with 1 have GPUs.

    Task 0 has one GPU, so of the second GPUs that of task 10 comes first, letter by letter.
    """
    workers = random.randint(11, 13)
    visible = {"worker": ["0", "", *["0,1"] * (workers - 2)]}
    with Cluster(ps=1, worker=workers, gpus=2, visible_devices=visible) as cluster:
        cases = _cases(cluster, ("", "/gpu:1", "/job:worker/task:1"))
        _demand_on(cluster, answer, cases, gpu_kernel=True, master=cluster.task("worker", 1).name)


def _demand_on(cluster: Cluster, answer: Any, cases: Iterable[Case], **wanted: Any) -> None:
    """Wrong unless the answer places the cases of which this is true as sessions of the cluster do."""
    targets = {task.name: task.target for task in cluster.tasks}
    given, first = [], ""
    for case in cases:
        about = {"gpu_kernel": case.gpu_kernel, "master": case.master}
        if any(about[name] != value for name, value in wanted.items() if name in about):
            continue
        expected, why = _placed(case, targets[case.master])
        if wanted.get("refused", expected is None) != (expected is None):
            continue
        got = by_itself(answer, case.pin, case.gpu_kernel, list(case.devices), case.master, may_run=False)
        given.append(Given(case, got, expected))
        if got != expected:
            first = first or f"{case}: yours is {shown(got)}; TensorFlow's is {expected!r} ({why})."
    if first:
        seen = Seen(given)
        more = f" And {plural(len(seen.wrong) - 1, 'other case')} like this." if len(seen.wrong) > 1 else ""
        raise Wrong(first + more, seen)


# -- what is checked -----------------------------------------------------------------------------------------

FULL = "/job:worker/task:1/gpu:1 /job:worker/task:0/cpu:0 /job:ps/task:0/cpu:0 /job:worker/task:1/device:GPU:0".split()
OPEN = ["", *"/gpu:1 /cpu:0 /job:worker /job:ps /task:1 /job:worker/task:1 /job:worker/gpu:0 /task:0".split()]
BAD = "/gpu:7 /job:ps/gpu:0 /job:worker/task:7 /job:chief /gpu:0 /job:worker/task:1/gpu:1".split()


@q2.check("Full pins, down to the device", points=2)
def full(answer: Any, random: Random) -> None:
    _demand(answer, random, FULL, gpu_kernel=True)


@q2.check("What the pin leaves open: GPUs before CPUs, the master's task before others", points=3)
def left_open(answer: Any, random: Random) -> None:
    _demand(answer, random, OPEN, gpu_kernel=True)
    _demand_number(answer, random)


@q2.check("Ops without a GPU kernel", points=3)
def without_kernel(answer: Any, random: Random) -> None:
    _demand(answer, random, OPEN, gpu_kernel=False, refused=False)


@q2.check("Pins that can't be kept: None, and a device for one that can", points=2)
def refused(answer: Any, random: Random) -> None:
    _demand(answer, random, BAD, refused=True)
    _demand(answer, random, FULL[:1], gpu_kernel=True)


# -- mistakes ------------------------------------------------------------------------------------------------


@q2.mistake()
def gives_the_pin(seen: Seen) -> bool:
    """That is the pin itself. A pin may be partial, even empty; the placement is always the full name of one device of
    the cluster."""
    return all(one.got == one.case.pin for one in seen.all)


@q2.mistake()
def forgets_the_kernels(seen: Seen) -> bool:
    """An op was put on a GPU for which it has no kernel. Only devices with a kernel come into question: without a GPU
    kernel, throw out all GPUs."""
    return all(_keeps_the_pin(one) and not one.case.has_kernel(one.got) for one in seen.wrong)


def _keeps_the_pin(one: Given) -> bool:
    return one.got in one.case.devices and device_spec.matches(one.case.pin, one.got)


@q2.mistake()
def looks_for_another(seen: Seen) -> bool:
    """Where a pin can't be kept, another device was taken. TensorFlow does that only with allow_soft_placement=True;
    else it raises an error. Return None."""
    refused = [one for one in seen.all if one.expected is None]
    return len(refused) == len(seen.wrong) and all(
        one.got in one.case.devices and not _keeps_the_pin(one) for one in refused
    )


@q2.mistake()
def own_task_first(seen: Seen) -> bool:
    """The master's own task was preferred to everything, even its CPU to a GPU elsewhere. GPUs come before CPUs first;
    the master's task counts among devices of the same type."""
    return _explained(seen, lambda case, d: (not d.startswith(f"{case.master}/"), ":CPU:" in d, d))


@q2.mistake()
def forgets_the_master(seen: Seen) -> bool:
    """An open request went to the first task by name. It goes to the master's own task, if a device there will do: that
    of the server that the session is connected to."""
    return _explained(seen, lambda case, d: (":CPU:" in d, d))


@q2.mistake()
def takes_task_10_for_1(seen: Seen) -> bool:
    """A task was taken for the master's because its name begins like it: as texts, task:1 and task:10 begin alike.
    Compare job and task number, or the text with the slash that follows it: f"{master}/"."""
    return _explained(seen, lambda case, d: (":CPU:" in d, not d.startswith(case.master), d))


@q2.mistake()
def takes_any_job_for_the_masters(seen: Seen) -> bool:
    """A task was taken for the master's because it has the same number. Task 1 of another job is another task: compare
    the job, too."""

    def is_near(case: Case, d: str) -> bool:
        return device_spec.parse(d).task == device_spec.parse(case.master).task

    return _explained(seen, lambda case, d: (":CPU:" in d, not is_near(case, d), d))


@q2.mistake()
def adds_the_masters_job(seen: Seen) -> bool:
    """A pin that names a task but no job was kept on the master's job. What the pin does not say is open: tasks of that
    number in all jobs come into question."""

    def may_be(case: Case, device: str) -> bool:
        spec = device_spec.parse(case.pin)
        of_master = spec.job is None and spec.task is not None
        pin = str(spec._replace(job=device_spec.parse(case.master).job)) if of_master else case.pin
        return device_spec.matches(pin, device) and case.has_kernel(device)

    return _best_of(seen, may_be)


@q2.mistake()
def wants_a_gpu(seen: Seen) -> bool:
    """An op with a GPU kernel was kept from CPUs. It has a CPU kernel, too: GPUs come first, and where none is left, a
    CPU does."""

    def may_be(case: Case, device: str) -> bool:
        needs = case.gpu_kernel and device_spec.parse(case.pin).type is None
        return case.may_be(device) and not (needs and ":CPU:" in device)

    return _best_of(seen, may_be)


@q2.mistake()
def compares_numbers(seen: Seen) -> bool:
    """The lowest number was taken for the first by name. Names are compared letter by letter: task:10 comes before
    task:2."""
    return _explained(seen, lambda case, d: (":CPU:" in d, not d.startswith(f"{case.master}/"), device_spec.parse(d)))


@q2.mistake()
def takes_zero_for_unsaid(seen: Seen) -> bool:
    """A 0 in a pin was ignored: task 0, or the first device. In Python 0 counts as false, like None; ask whether the
    field `is None`."""

    def may_be(case: Case, device: str) -> bool:
        spec = device_spec.parse(case.pin)
        pin = str(spec._replace(**{name: None for name, value in spec._asdict().items() if value == 0}))
        return device_spec.matches(pin, device) and case.has_kernel(device)

    return _best_of(seen, may_be)


@q2.mistake()
def gives_a_spec(seen: Seen) -> bool:
    """That is a DeviceSpec. Asked for is a text, the full name of a device: one of `devices`, as it is."""
    return all(isinstance(one.got, device_spec.DeviceSpec) for one in seen.wrong)


@q2.mistake()
def takes_what_comes_first(seen: Seen) -> bool:
    """The first in the list of several equally good devices was taken. But the list comes in any order, and the first
    one by its name counts: min(left), or sorted(left)[0]."""
    return _explained(seen, lambda case, d: (":CPU:" in d, not d.startswith(f"{case.master}/"), case.devices.index(d)))


@q2.mistake()
def takes_the_last_by_name(seen: Seen) -> bool:
    """The last by name of several equally good devices was taken. The first one counts: task 0 before task 1, GPU:0
    before GPU:1."""
    return _explained(seen, lambda case, d: (":CPU:" in d, not d.startswith(f"{case.master}/"), [-ord(c) for c in d]))


@q2.mistake()
def compares_texts(seen: Seen) -> bool:
    """The pin was looked for in the names as a text. But /gpu:1 is in none of them: the same field is written in
    several ways, and others may stand in between. Take both apart with tf.DeviceSpec.from_string, and compare the
    fields."""
    found = _best_of(seen, lambda case, device: case.pin in device and case.has_kernel(device))
    return found and any(one.got for one in seen.all)


@q2.mistake()
def compares_fields_as_texts(seen: Seen) -> bool:
    """Fields of the pin were looked for in the names as texts, where task:1 is found in task:10, too. Take both apart
    with tf.DeviceSpec.from_string, and compare numbers."""

    def may_be(case: Case, device: str) -> bool:
        return case.has_kernel(device) and all(part in device.lower() for part in case.pin.lower().split("/"))

    return _best_of(seen, may_be)


@q2.mistake()
def ignores_the_index(seen: Seen) -> bool:
    """The index in a pin was ignored. /gpu:1 is the second GPU of a task, and no other one will do: it is a field like
    the job and the task."""

    def may_be(case: Case, device: str) -> bool:
        pin = str(device_spec.parse(case.pin)._replace(id=None))
        return device_spec.matches(pin, device) and case.has_kernel(device)

    return _best_of(seen, may_be)


@q2.mistake()
def stays_with_the_master(seen: Seen) -> bool:
    """Only devices of the master's task came into question. Those of all tasks do: the master's are only preferred,
    among the devices of one type that the pin allows."""
    return _best_of(seen, lambda case, device: case.may_be(device) and device.startswith(f"{case.master}/"))


@q2.mistake()
def keeps_the_unpinned_at_home(seen: Seen) -> bool:
    """An op without a pin stayed on the master's task, though only other tasks have a GPU. No pin leaves everything
    open: GPUs of all tasks come before any CPU."""

    def may_be(case: Case, device: str) -> bool:
        return case.may_be(device) and (bool(case.pin) or device.startswith(f"{case.master}/"))

    return _best_of(seen, may_be)


@q2.mistake()
def sends_to_the_masters_cpu(seen: Seen) -> bool:
    """Each op without a GPU kernel went to the master's CPU, whatever its pin. The pin is kept for such an op, too:
    GPUs are thrown out, and then the same rules hold."""
    cpus = [one.expected if one.case.gpu_kernel else f"{one.case.master}/device:CPU:0" for one in seen.all]
    return [one.got for one in seen.all] == cpus


@q2.mistake()
def gives_something_empty(seen: Seen) -> bool:
    """Something empty came back for a pin that can't be kept, such as an empty text. As a pin, that would mean any
    device; return None."""
    return all(one.expected is None is not one.got and not one.got for one in seen.wrong)


def _explained(seen: Seen, key: Callable[[Case, str], Any], may_be: Callable[[Case, str], bool] = Case.may_be) -> bool:
    """Whether all that was given is the first by a wrong order of the devices that come into question."""
    return all(
        one.got
        == min((d for d in one.case.devices if may_be(one.case, d)), key=lambda d: key(one.case, d), default=None)
        for one in seen.all
    )


def _best_of(seen: Seen, may_be: Callable[[Case, str], bool]) -> bool:
    """Whether all that was given is the first of devices that wrongly come into question."""
    return _explained(seen, lambda case, d: (":CPU:" in d, not d.startswith(f"{case.master}/"), d), may_be)
