"""Ask a device function about a model's ops: the evidence for questions on where variables go.

A model is a list of variables that the checks know by themselves, so that no attribute of an op is trusted; the graph
is built under the function, and never run.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

from dtflab.grading.plain import record
from dtflab.grading.questions import Wrong
from dtflab.grading.remote import run_there
from dtflab.grading.unaided import by_itself
from dtflab.graph import dtypes
from dtflab.graph.device_spec import DeviceName, DeviceSpec, parse
from dtflab.graph.graph import Graph
from dtflab.ops.arrays.functions import placeholder, placeholder_with_default
from dtflab.ops.math.functions import add
from dtflab.ops.variables.get_variable import get_variable
from dtflab.ops.variables.initializers import zeros_initializer

record(DeviceName)
VARIABLE_OPS = ("Variable", "VariableV2", "VarHandleOp")


@record
class Variable(NamedTuple):
    """A variable of a model, as the checks know it without asking TensorFlow's attributes."""

    shape: tuple[int, ...]
    dtype: Any = dtypes.float32
    resource: bool = False

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        return self.elements * int(self.dtype.size)


def dense_net(random: Random, resource: bool = False) -> list[Variable]:
    """Weights and biases of 4 to 6 layers, and a counter: all have 4 bytes for an element."""
    sizes = [random.randrange(8, 400) for _ in range(random.randint(5, 7))]
    layers = [shape for pair in itertools.pairwise(sizes) for shape in (pair, pair[1:])]
    return [*(Variable(shape, resource=resource) for shape in layers), Variable((), dtypes.int32, resource)]


def mixed_types(random: Random) -> list[Variable]:
    """An embedding, statistics in float64, counters, masks, waves: what elements cost differs sixteenfold."""
    usual = (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.bool, dtypes.float16)
    kinds = (*usual, dtypes.int8, dtypes.int16, dtypes.complex64, dtypes.complex128)
    rest = [Variable((random.randrange(20, 3000),), kind) for kind in random.sample(kinds * 2, 20)]
    return [Variable((random.randrange(50, 200), 64)), *rest, Variable((), dtypes.int32)]


@record
class Asked(NamedTuple):
    """An op that the answer was asked about, and the device that it named."""

    type: str
    name: str
    device: DeviceName
    wish: str  # the device that an inner block or the library asks for; a function may keep it

    @property
    def variable(self) -> bool:
        """Whether the op holds a variable."""
        return self.type in VARIABLE_OPS

    @property
    def task(self) -> str:
        """The task that was named, `/job:worker/task:3`."""
        return str(DeviceName(job=self.device.job, task=self.device.task))

    @property
    def ps(self) -> int | None:
        """The ps task, if it is one."""
        return self.device.task if self.device.job == "ps" else None


@record
class Seen(NamedTuple):
    """The devices that a function gave to a model's ops.

    `carried`: an older function's ops count, too. `stays`: huge variables all go to one task. `others` are those of
    other models, which the same answer was asked about for the same check.
    """

    variables: Sequence[Variable]
    ps_tasks: int
    worker: str
    asked: Sequence[Asked]
    carried: bool = False
    stays: bool = False
    others: Sequence[Seen] = ()

    @property
    def choices(self) -> list[int | None]:
        """The ps task of each variable, in the order in which they were made."""
        return [one.ps for one in self.asked if one.variable]


def watch(function: Any, variables: Sequence[Variable], ps_tasks: int, worker: str) -> Seen:
    """Make a graph of the variables under a device function, and note what it says of each op.

    Wrong if that is not a function, or names a device that a cluster of `ps_tasks` and the worker does not have.
    """
    # Where an answer runs, it can forge what is said of it, so only that comes from there.
    seen = Seen(variables, ps_tasks, worker, _asked(function, variables, ps_tasks, worker))
    if len(seen.choices) != len(variables):
        raise Wrong(f"Of {len(variables)} variables, {len(seen.choices)} have asked for a device; expected: all.")
    return seen


@run_there
def _asked(function: Any, variables: Sequence[Variable], ps_tasks: int, worker: str) -> list[Asked]:
    if not callable(function) or isinstance(function, DeviceSpec):
        raise Wrong(f"A function of an op is expected, for `with tf.device(…)`, not {shown(function)}.")
    asked: list[Asked] = []

    def noting(op: Any) -> str:
        wish = op.device
        asked.append(Asked(op.type, op.name, _named(op, by_itself(function, op), ps_tasks, worker), wish))
        return str(asked[-1].device)

    with Graph().as_default() as graph, graph.device(noting):
        for i, one in enumerate(variables):
            value = get_variable(f"v{i}", one.shape, one.dtype, zeros_initializer(), use_resource=one.resource)
            add(value, value) if one.dtype == dtypes.float32 else None
        add(placeholder(dtypes.float32, name="x"), placeholder_with_default(1.0, ()))  # both have a shape, as variables
    return asked


def _named(op: Any, device: Any, ps_tasks: int, worker: str) -> DeviceName:
    """The device that the answer named for an op; Wrong if it is not one of the cluster's."""
    tasks = " … ".join(f"'/job:ps/task:{task}'" for task in sorted({0, ps_tasks - 1}))
    message = f"For {op.type} '{op.name}' it returned {shown(device)}; expected: {tasks} or {worker!r}."
    if not isinstance(device, str | DeviceSpec):
        raise Wrong(message)
    try:
        name = parse(device if isinstance(device, str) else device.to_string())
    except ValueError:
        raise Wrong(message) from None
    if name.task is None or (name.job == "ps" and name.task >= ps_tasks):
        raise Wrong(message)
    return name


def shown(value: Any) -> str:
    """The value's repr, cut if it is too long."""
    text = repr(value)
    return text if len(text) < 80 else f"{text[:80]}…"
