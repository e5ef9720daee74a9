"""Questions on devices and placement.

q1: a device function that spreads variables over parameter servers by bytes. Every right answer obeys one rule: a
variable goes to a task that holds the fewest bytes at that moment, whichever it takes where several do. So the checks
build models, watch what the answer says of each op, and replay the rule; they never compare with one right placement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from dtflab.base.text_table import plural
from dtflab.grading.device_functions import Seen, Variable, dense_net, mixed_types, watch
from dtflab.grading.questions import Wrong, from_toml
from dtflab.viz.drawing.picture import Picture
from dtflab.viz.drawing.units import byte_size
from dtflab.viz.loads import loads

WORKER = "/job:worker/task:0"

q1 = from_toml(__file__)


# -- the rule ------------------------------------------------------------------------------------------------


def greedy(weights: Sequence[int], ps_tasks: int) -> list[int]:
    """The rule's own choices, the first of the lightest tasks each time."""
    held, choices = [0] * ps_tasks, []
    for weight in weights:
        choices.append(held.index(min(held)))
        held[choices[-1]] += weight
    return choices


def _first_break(choices: Sequence[int | None], weights: Sequence[int], ps_tasks: int) -> int | None:
    """The first variable that did not go to a lightest task; None if all did."""
    held = [0] * ps_tasks
    for i, (task, weight) in enumerate(zip(choices, weights)):
        if task is None or held[task] > min(held):
            return i
        held[task] += weight
    return None


def _obeys(seen: Seen, weights: Sequence[int]) -> bool:
    """Whether each variable went to a task that was lightest at that moment, if variables had these weights."""
    return _first_break(seen.choices, weights, seen.ps_tasks) is None


def _telling(
    random: Random, make: Callable[[Random], list[Variable]], ps_tasks: int, wrong: Callable[[Variable], int]
) -> list[Variable]:
    """A model with which an answer that weighs variables by `wrong` breaks the rule: luck earns no points."""
    while True:
        variables = make(random)
        choices = greedy([wrong(one) for one in variables], ps_tasks)
        if _first_break(choices, [one.bytes for one in variables], ps_tasks) is not None:
            return variables


def demand_rule(answer: Any, variables: Sequence[Variable], ps_tasks: int) -> Picture:
    """Wrong unless every variable goes to a task with the fewest bytes; the picture of how they lie."""
    seen = _watch(answer, variables, ps_tasks)
    weights = [one.bytes for one in variables]
    i = _first_break(seen.choices, weights, ps_tasks)
    if i is not None:
        message = _sentence(seen, i, _held(seen.choices[:i], weights, ps_tasks))
        raise Wrong(message, seen._replace(carried=_carries(answer)), _picture(seen, weights))
    return _picture(seen, weights)


def _carries(answer: Any) -> bool:
    """Whether a new function knows of a huge variable that went through an older one: then it goes elsewhere."""
    first, second = (_watch(answer, [Variable((100_000, 100_000))], 2) for _ in range(2))
    return first.choices != second.choices


def _sentence(seen: Seen, i: int, held: Sequence[int]) -> str:
    """The sentence on variable `i`, which went to the wrong task when the tasks held `held` bytes."""
    one, task = seen.variables[i], seen.choices[i]
    kind = "resource variable" if one.resource else "variable"
    went = "did not go to a ps task" if task is None else f"went to ps:{task}"
    before = ", ".join(f"ps:{t} {byte_size(size)}" for t, size in enumerate(held))
    return (
        f"Of {plural(seen.ps_tasks, 'ps task')}: {kind} number {i + 1} ({one.dtype.name} {list(one.shape)}, "
        f"{byte_size(one.bytes)}) {went}. The bytes until then: {before}. Expected is ps:{held.index(min(held))}."
    )


def _held(choices: Sequence[int | None], weights: Sequence[int], ps_tasks: int) -> list[int]:
    held = [0] * ps_tasks
    for task, weight in zip(choices, weights):
        if task is not None:
            held[task] += weight
    return held


def _picture(seen: Seen, weights: Sequence[int]) -> Picture:
    ways: dict[str, Sequence[int | None]] = {"yours": seen.choices, "by the rule": greedy(weights, seen.ps_tasks)}
    held = {name: _held(choices, weights, seen.ps_tasks) for name, choices in ways.items()}
    return loads(
        f"{len(seen.variables)} variables on {seen.ps_tasks} ps tasks",
        {name: {f"/job:ps/task:{t}": size for t, size in enumerate(sizes)} for name, sizes in held.items()},
    )


def _watch(answer: Any, variables: Sequence[Variable], ps_tasks: int, worker: str = WORKER) -> Seen:
    return watch(answer(ps_tasks, worker), variables, ps_tasks, worker)


# -- what is checked -----------------------------------------------------------------------------------------


@q1.check("Variables of both kinds go to ps tasks, all other ops to the worker", points=3)
def kinds(answer: Any, random: Random) -> None:
    worker = f"/job:worker/task:{random.randint(1, 9)}"
    seen = _watch(answer, [*dense_net(random), *dense_net(random, resource=True)], 3, worker)
    stray = [one for one in seen.asked if (one.ps is None if one.variable else one.task != worker and not one.wish)]
    if stray:
        one, more = stray[0], f" Of {len(seen.asked)} ops, {len(stray)} are where they should not be."
        expected = "a ps task" if one.variable else worker
        raise Wrong(f"{one.type} '{one.name}' went to {one.device}; expected: {expected}.{more}", seen)


@q1.check("Each variable goes to a ps task that holds the fewest bytes so far", points=3)
def balanced(answer: Any, random: Random) -> Picture:
    ps_tasks = random.randint(2, 4)
    return demand_rule(answer, _telling(random, dense_net, ps_tasks, lambda one: 1), ps_tasks)


@q1.check("Bytes count, not elements: a float64 has 8, a bool 1", points=2)
def types(answer: Any, random: Random) -> Picture:
    ps_tasks = random.randint(2, 4)
    return demand_rule(answer, _telling(random, mixed_types, ps_tasks, lambda one: one.elements), ps_tasks)


@q1.check("A resource variable weighs as much as any other", points=1)
def resources(answer: Any, random: Random) -> Picture:
    def make(random: Random) -> list[Variable]:
        return [one._replace(resource=random.random() < 0.7) for one in dense_net(random)]

    ps_tasks = random.randint(2, 3)
    variables = _telling(random, make, ps_tasks, lambda one: 4 if one.resource else one.bytes)
    return demand_rule(answer, variables, ps_tasks)


@q1.check("One ps task, more of them than variables, and two models one after the other", points=1)
def edges(answer: Any, random: Random) -> None:
    for ps_tasks in (1, 20, 2, 2):
        demand_rule(answer, dense_net(random), ps_tasks)


# -- mistakes ------------------------------------------------------------------------------------------------


@q1.mistake()
def pins_everything(seen: Seen) -> bool:
    """Ops that are not variables went to a ps task, too. Then the parameter servers compute, and the worker waits. Look
    at op.type first: everything that is not a variable goes to the worker."""
    return any(one.ps is not None for one in seen.asked if not one.variable and not one.wish)


@q1.mistake()
def forgets_resource_variables(seen: Seen) -> bool:
    """Variables made with use_resource=True stay on the worker. Their op has the type 'VarHandleOp'; reference
    variables are 'Variable' and 'VariableV2'."""
    return _on_ps(seen, resource=False) == {True} and _on_ps(seen, resource=True) == {False}


@q1.mistake()
def forgets_reference_variables(seen: Seen) -> bool:
    """Reference variables stay on the worker. Their ops have the types 'Variable' and 'VariableV2'; only a resource
    variable is a 'VarHandleOp'."""
    return _on_ps(seen, resource=True) == {True} and _on_ps(seen, resource=False) == {False}


def _on_ps(seen: Seen, resource: bool) -> set[bool]:
    """Whether the variables of a kind went to ps tasks: {True}, {False}, both, or none if there are none."""
    return {choice is not None for one, choice in zip(seen.variables, seen.choices) if one.resource == resource}


@q1.mistake()
def shared_state(seen: Seen) -> bool:
    """A new function still counts the variables of an older one. Each call of balance_by_bytes starts a new count: make
    the list inside it, not at the top of the notebook."""
    return seen.carried


@q1.mistake()
def state_made_again(seen: Seen) -> bool:
    """All variables went to the same ps task. Are the bytes per task reset at each call of the inner function? They
    must live outside of it, in balance_by_bytes. Is each variable's size added to its task, and the smallest taken?"""
    return seen.ps_tasks > 1 and len(set(seen.choices)) == 1 and None not in seen.choices


@q1.mistake()
def round_robin(seen: Seen) -> bool:
    """This is a fair deal of variables, one to each task in turn, as tf.train.replica_device_setter does it. But an
    embedding and a bias are one variable each. Weigh them in bytes."""
    return _obeys(seen, [1] * len(seen.variables))


@q1.mistake()
def counts_elements(seen: Seen) -> bool:
    """The fewest elements were looked for, not the fewest bytes: 1,000 float64 are 8,000 bytes, 1,000 bool are 1,000.
    Multiply by the size of the dtype."""
    return _obeys(seen, [one.elements for one in seen.variables])


@q1.mistake()
def measures_the_handle(seen: Seen) -> bool:
    """A resource variable was taken for a scalar: the output of a VarHandleOp is a handle. The variable's shape and
    dtype are the op's attributes, op.get_attr('shape') and op.get_attr('dtype')."""
    handles = ([size if one.resource else one.bytes for one in seen.variables] for size in (0, 1, 4, 8))
    return any(one.resource for one in seen.variables) and any(_obeys(seen, weights) for weights in handles)
