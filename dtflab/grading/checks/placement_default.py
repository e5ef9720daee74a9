"""Question placement/q3: without any pin, what is placed on the first GPU, what is not, and why.

The answer builds a graph that shows it. A real session places it, on a task with two simulated GPUs; which op has which
kernels is read from the table of TensorFlow's own registry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

from dtflab.base.text_table import plural
from dtflab.cluster.cluster import Cluster
from dtflab.grading.device_functions import shown
from dtflab.grading.questions import Wrong, from_toml
from dtflab.graph.graph import Graph
from dtflab.graph.operation import Operation, Tensor
from dtflab.ops import kernel_registry
from dtflab.runtime.session import Session

q3 = from_toml(__file__)


KINDS = ("gpu", "cpu", "dragged")


class Shown(NamedTuple):
    """One op of an answer: the kind that the answer says, and the facts."""

    kind: str
    op: Operation
    device: str
    reason: str

    @property
    def on_gpu(self) -> bool:
        return self.device.endswith("/device:GPU:0")

    @property
    def on_cpu(self) -> bool:
        return "/device:CPU:" in self.device

    @property
    def has_kernel(self) -> bool:
        """Whether GPUs can run it."""
        return "GPU" in kernel_registry.device_types(self.op.type, self.op.attrs)

    @property
    def is_right(self) -> bool:
        if self.kind == "gpu":
            return self.on_gpu
        return self.on_cpu and self.has_kernel == (self.kind == "dragged") and not _is_queue(self.op)

    def __str__(self) -> str:
        kernel = "has a GPU kernel" if self.has_kernel else "has no GPU kernel"
        reason = "TensorFlow itself pins each queue to the CPU" if _is_queue(self.op) else self.reason
        return f"{self.op.type} '{self.op.name}' {kernel}, and is placed on {self.device} ({reason})"


class Seen(NamedTuple):
    """The ops of an answer, and those of its graph that have a pin."""

    ops: Sequence[Shown]
    pinned: Sequence[Operation]
    repeats: bool = False  # a list has one op several times
    pairs: bool = False  # there are too few 'dragged' ops: as many as 'cpu' ones


def _numbers(random: Random) -> list[int]:
    """The numbers of ops, by kind. More are dragged to the CPU than have to be there: one of these may drag two."""
    count = random.randint(2, 4)
    return [random.randint(2, 5), count, random.randint(count + 1, 5)]


def _run(answer: Any, numbers: Sequence[int]) -> Seen:
    """Let the answer build its graph, and a session place it."""
    with Cluster(worker=1, gpus=2) as cluster, Graph().as_default() as graph:
        found = _checked(answer(*numbers), dict(zip(KINDS, numbers)), graph)
        pinned = [op for op in graph.get_operations() if op.device and not _pinned_by_the_library(op)]
        if pinned:
            text = f"{pinned[0].type} '{pinned[0].name}' is pinned to {pinned[0].device}; no op may have a pin."
            raise Wrong(text, Seen([], pinned))
        with Session(cluster.target) as session:
            where = {node.name: str(node.device) for node in session.placed_nodes()}
            why = session.placement_reasons()
    ops_shown = [Shown(kind, op, where[op.name], why[op.name]) for kind, ops in found.items() for op in ops]
    return Seen(ops_shown, pinned)


def _is_queue(op: Operation) -> bool:
    return bool(op.type.endswith("QueueV2"))


def _pinned_by_the_library(op: Operation) -> bool:
    """Whether the op is a queue, which TensorFlow itself pins to a CPU, or is colocated with one and got its pin."""
    near = [op.graph.get_operation_by_name(group.decode().removeprefix("loc:@")) for group in op.colocation_groups()]
    return bool(op.device == "/device:CPU:*") and any(map(_is_queue, near))


def _checked(value: Any, numbers: dict[str, int], graph: Graph) -> dict[str, list[Operation]]:
    """The answer's ops by kind; Wrong if they are not ops."""
    expected = f"expected: a dict with lists of ops, for {', '.join(KINDS)}."
    if not isinstance(value, dict) or set(value) != set(KINDS):
        got = f"a dict with {', '.join(map(str, value))}" if isinstance(value, dict) else shown(value)
        raise Wrong(f"without_pins returned {got}; {expected}")
    found = {kind: [one.op if isinstance(one, Tensor) else one for one in value[kind]] for kind in KINDS}
    for kind, ops in found.items():
        if len(set(ops)) != numbers[kind] or len(ops) != numbers[kind]:
            pairs = kind == "dragged" and len(set(ops)) == len(ops) == numbers["cpu"]
            seen = Seen([], [], repeats=len(ops) == numbers[kind], pairs=pairs)
            raise Wrong(f"{kind!r} has {plural(len(set(ops)), 'op')}; expected: {numbers[kind]}, each once.", seen)
        if not all(isinstance(op, Operation) and op.graph is graph for op in ops):
            raise Wrong(f"{kind!r} has {shown(ops)}; expected: ops of the default graph, such as tf.square(2.0).op.")
    return found


def _demand(seen: Seen, kind: str) -> None:
    for one in seen.ops:
        if one.kind == kind and not one.is_right:
            raise Wrong(f"{one}. That does not count as {kind!r}.", seen)


# -- what is checked -----------------------------------------------------------------------------------------


@q3.check("'gpu': without a pin, placed on the first of two GPUs", points=2)
def gpu(answer: Any, random: Random) -> None:
    _demand(_run(answer, _numbers(random)), "gpu")


@q3.check("'cpu': without a GPU kernel, placed on the CPU; and no error is raised", points=4)
def cpu(answer: Any, random: Random) -> None:
    _demand(_run(answer, _numbers(random)), "cpu")


@q3.check("'dragged': with a GPU kernel, and yet on the CPU", points=4)
def dragged(answer: Any, random: Random) -> None:
    _demand(_run(answer, _numbers(random)), "dragged")
    _demand(_run(answer, [0, 0, random.randint(2, 5)]), "dragged")  # nobody asks for the op that they are next to


# -- mistakes ------------------------------------------------------------------------------------------------


def _all(seen: Seen, kind: str, shows: Callable[[Shown], bool]) -> bool:
    """Whether ops of the kind are wrong, and all of these show it."""
    wrong = [one for one in seen.ops if one.kind == kind and not one.is_right]
    return bool(wrong) and all(map(shows, wrong))


@q3.mistake()
def repeats_an_op(seen: Seen) -> bool:
    """A list names one op several times: `[op] * n` makes no new ops. Call the function that makes an op n times, in a
    loop."""
    return seen.repeats


@q3.mistake()
def pins(seen: Seen) -> bool:
    """A pin (tf.device, or a colocation with an op that has one) is your decision. Here the placer should decide: leave
    out all pins.
    """
    return bool(seen.pinned)


@q3.mistake()
def takes_integers_for_the_cpu(seen: Seen) -> bool:
    """Arithmetic on integers does have GPU kernels (those for int32 compute in host memory, as sizes and indices are
    needed there). There is none for int32 variables, and none for text."""
    return _all(seen, "cpu", lambda s: bool(s.on_gpu and s.op.outputs and s.op.outputs[0].dtype.is_integer))


@q3.mistake()
def makes_pairs(seen: Seen) -> bool:
    """Each 'dragged' op has a 'cpu' op of its own to be next to, so there are not enough of them. Several ops may be
    next to the same one."""
    return seen.pairs


@q3.mistake()
def drags_what_must_be_there(seen: Seen) -> bool:
    """'dragged' ops must have a GPU kernel, but these have none. They are on the CPU for that reason, not because of
    another op.
    """
    return _all(seen, "dragged", lambda one: one.on_cpu and not one.has_kernel and not _is_queue(one.op))


@q3.mistake()
def stands_beside_what_is_on_the_gpu(seen: Seen) -> bool:
    """These ops are next to another op, as they should be; but that op is on the GPU itself. Take one that has to stay
    on the CPU, because it has no GPU kernel."""
    return _all(seen, "dragged", lambda one: one.on_gpu and one.reason.startswith("colocated"))


@q3.mistake()
def follows_its_inputs(seen: Seen) -> bool:
    """An op does not follow its inputs: where a value is needed on another device, it is sent there. But an op that
    changes a variable must be next to it, and so must all that tf.colocate_with asks for."""
    return _all(seen, "dragged", lambda one: one.on_gpu and bool(one.op.inputs or one.op.control_inputs))


@q3.mistake()
def drags_them_to_the_cpu(seen: Seen) -> bool:
    """'cpu' ops must be on the CPU for want of a GPU kernel, but these have one. They are there because of another op,
    as the 'dragged' ones are."""
    return _all(seen, "cpu", lambda one: one.on_cpu and one.has_kernel)


@q3.mistake()
def wants_a_gpu_without_a_kernel(seen: Seen) -> bool:
    """GPUs have no kernel for the ops that were given as 'gpu': those stay on the CPU, however free a GPU is. Take
    arithmetic on floats."""
    return _all(seen, "gpu", lambda one: one.on_cpu and not one.has_kernel)
