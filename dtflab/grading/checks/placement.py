"""Questions on devices and placement.

q1: a device function that spreads variables over parameter servers by bytes. Every right answer obeys one rule: a
variable goes to a task that holds the fewest bytes at that moment, whichever it takes where several do. So the checks
build models, watch what the answer says of each op, and replay the rule; they never compare with one right placement.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from dtflab.base.text_table import plural
from dtflab.grading.device_functions import Seen, Variable, dense_net, mixed_types, watch
from dtflab.grading.questions import Wrong, from_toml
from dtflab.grading.unaided import by_itself
from dtflab.graph import dtypes
from dtflab.viz.drawing.picture import Picture
from dtflab.viz.drawing.units import byte_size
from dtflab.viz.loads import loads

WORKER = "/job:worker/task:0"

q1 = from_toml(__file__)


# -- the rule ------------------------------------------------------------------------------------------------

Weigh = Callable[[Variable], int]
_WRONG: dict[str, Weigh] = {  # what mistakes take for a variable's bytes
    "round_robin": lambda one: 1,
    "counts_elements": lambda one: one.elements,
    "adds_up_the_dimensions": lambda one: max(sum(one.shape), 1) * int(one.dtype.size),
    "takes_scalars_for_nothing": lambda one: one.bytes if one.shape else 0,
    "measures_the_handle": lambda one: _as_a_handle(4, one),
    "counts_rows": lambda one: (one.shape or (1,))[0] * int(one.dtype.size),
    "counts_in_kilobytes": lambda one: one.bytes // 1024,
    "knows_none_above_8": lambda one: one.elements * min(int(one.dtype.size), 8),  # has no hint
    "knows_two_sizes": lambda one: one.elements * (8 if one.dtype in (dtypes.float64, dtypes.int64) else 4),
}


def _first_break(choices: Sequence[int | None], weights: Sequence[int], ps_tasks: int, adds: bool = True) -> int | None:
    """The first variable that did not go to a lightest task, if their weights are added up; None if all did."""
    held = [0] * ps_tasks
    for i, (task, weight) in enumerate(zip(choices, weights)):
        if task is None or held[task] > min(held):
            return i
        held[task] = weight + held[task] * adds
    return None


def _obeys(seen: Seen, weigh: Weigh, adds: bool = True) -> bool:
    """Whether each variable went to a task that was lightest at that moment, if `weigh` gave their weights."""
    return all(
        _first_break(one.choices, [weigh(variable) for variable in one.variables], one.ps_tasks, adds) is None
        for one in (seen, *seen.others)
    )


def _tells_apart(variables: Sequence[Variable], ps_tasks: int, weigh: Weigh, other: Weigh) -> bool:
    """Whether tasks that are chosen by one weight break the rule of another one."""
    believed, held = [0] * ps_tasks, [0] * ps_tasks
    for one in variables:
        task = believed.index(min(believed))
        if held[task] > min(held):
            return True
        believed[task] += weigh(one)
        held[task] += other(one)
    return False


def _telling(
    random: Random, make: Callable[[Random], list[Variable]], ps_tasks: int, mistakes: Sequence[str]
) -> list[Variable]:
    """A model with which each of these mistakes breaks the rule, and does not look like another of them."""
    ways = [_WRONG[name] for name in mistakes]
    while True:
        variables = make(random)
        pairs = [(way, other) for way in ways for other in (lambda one: one.bytes, *ways) if other is not way]
        if all(_tells_apart(variables, ps_tasks, way, other) for way, other in pairs):
            return variables


def _with_scalars(variables: Sequence[Variable], random: Random) -> list[Variable]:
    """The variables and some scalars, in any order: counters, rates and means are variables, too."""
    return random.sample([*variables, *[Variable(())] * 5], len(variables) + 5)


def _in_rows(variable: Variable, random: Random) -> Variable:
    """The variable, or a matrix with nearly as many elements in place of a vector."""
    rows, columns = sum(variable.shape) // 16, random.choice((1, 16))
    return variable._replace(shape=(rows, columns)) if columns > 1 and len(variable.shape) == 1 else variable


def demand_rule(answer: Any, variables: Sequence[Variable], ps_tasks: int) -> Picture:
    """Wrong unless every variable goes to a task with the fewest bytes; the picture of how they lie."""
    return _demand_rule(answer, [(variables, ps_tasks)])


def _demand_rule(answer: Any, models: Sequence[tuple[Sequence[Variable], int]]) -> Picture:
    """Wrong unless the answer keeps the rule with all of these models: luck with one of them earns no points."""
    all_seen = [_watch(answer, *model) for model in models]
    for number, seen in enumerate(all_seen):
        weights = [one.bytes for one in seen.variables]
        i = _first_break(seen.choices, weights, seen.ps_tasks)
        if i is not None:
            message = _sentence(seen, i, _held(seen.choices[:i], weights, seen.ps_tasks))
            others = [*all_seen[:number], *all_seen[number + 1 :]]
            raise Wrong(message, _tried(answer, seen._replace(others=others)), _picture(seen, weights))
    return _picture(seen, weights)


def _tried(answer: Any, seen: Seen) -> Seen:
    """The evidence, with what huge variables show: whether a new function knows of one that went through an older one
    (then it goes elsewhere), and whether all go to one task."""
    first, second = (_watch(answer, [Variable((100_000, 100_000))] * 3, 2) for _ in range(2))
    return seen._replace(carried=first.choices != second.choices, stays=len(set(first.choices)) == 1)


def _sentence(seen: Seen, i: int, held: Sequence[int]) -> str:
    """The sentence on variable `i`, which went to the wrong task when the tasks held `held` bytes."""
    one, task = seen.variables[i], seen.choices[i]
    kind = "resource variable" if one.resource else "variable"
    went = "did not go to a ps task" if task is None else f"went to ps:{task}"
    least = held.index(min(held))
    told = range(len(held)) if len(held) < 7 else sorted({least, least if task is None else task})
    before = ", ".join(f"ps:{t} {byte_size(held[t])}" for t in told)
    return (
        f"Of {plural(seen.ps_tasks, 'ps task')}: {kind} number {i + 1} ({one.dtype.name} {list(one.shape)}, "
        f"{byte_size(one.bytes)}) {went}. The bytes until then: {before}. Expected is ps:{least}."
    )


def _held(choices: Sequence[int | None], weights: Sequence[int], ps_tasks: int) -> list[int]:
    held = [0] * ps_tasks
    for task, weight in zip(choices, weights):
        if task is not None:
            held[task] += weight
    return held


def _picture(seen: Seen, weights: Sequence[int]) -> Picture:
    evenly = [sum(weights) // seen.ps_tasks] * seen.ps_tasks
    held = {"yours": _held(seen.choices, weights, seen.ps_tasks), "spread evenly": evenly}
    return loads(
        f"{len(seen.variables)} variables on {seen.ps_tasks} ps tasks",
        {name: {f"/job:ps/task:{t}": size for t, size in enumerate(sizes)} for name, sizes in held.items()},
    )


def _watch(answer: Any, variables: Sequence[Variable], ps_tasks: int, worker: str = WORKER) -> Seen:
    return watch(by_itself(answer, ps_tasks, worker), variables, ps_tasks, worker)


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


Model = tuple[list[Variable], int]


def _models(random: Random, make: Callable[[Random], list[Variable]], *others: str) -> list[Model]:
    """Models with which the usual mistakes and the others show, for 2 to 4 ps tasks."""
    mistakes = ("round_robin", "adds_up_the_dimensions", "counts_rows", *others)
    return [(_telling(random, make, ps_tasks, mistakes), ps_tasks) for ps_tasks in random.sample((2, 2, 3, 4), 4)]


@q1.check("Each variable goes to a ps task that holds the fewest bytes so far", points=3)
def balanced(answer: Any, random: Random) -> Picture:
    def make(random: Random) -> list[Variable]:
        return _with_scalars(dense_net(random), random)

    return _demand_rule(answer, _models(random, make, "takes_scalars_for_nothing", "counts_in_kilobytes"))


@q1.check("Bytes count, not elements: a float64 has 8, a bool 1", points=2)
def types(answer: Any, random: Random) -> Picture:
    def make(random: Random) -> list[Variable]:
        return _with_scalars([_in_rows(one, random) for one in mixed_types(random)], random)

    others = ["counts_elements", "takes_scalars_for_nothing", "counts_in_kilobytes"]
    return _demand_rule(answer, _models(random, make, *others, "knows_two_sizes", "knows_none_above_8"))


@q1.check("A resource variable weighs as much as any other", points=1)
def resources(answer: Any, random: Random) -> Picture:
    def make(random: Random) -> list[Variable]:
        usual = (dtypes.float32, dtypes.float64)
        made = [one._replace(resource=random.random() < 0.7) for one in dense_net(random)]
        return [one._replace(dtype=random.choice(usual) if one.shape else one.dtype) for one in made]

    return _demand_rule(answer, _models(random, make, "measures_the_handle", "counts_in_kilobytes", "counts_elements"))


@q1.check("One ps task, more of them than variables, and two models one after the other", points=1)
def edges(answer: Any, random: Random) -> None:
    large = [_with_scalars([*dense_net(random), *dense_net(random)], random) for _ in range(4)]
    _demand_rule(answer, [(_with_scalars(dense_net(random), random), 20), *zip(large, (1, 2, 3, 2))])
    one, other = (answer(2, WORKER) for _ in range(2))
    watch(other, [Variable((100_000, 100_000))], 2, WORKER)
    _demand_rule(lambda *_: one, [(large[1], 2)])


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
    several = [one for one in (seen, *seen.others) if one.ps_tasks > 1]
    return seen.stays and all(len(set(one.choices)) == 1 and None not in one.choices for one in several)


@q1.mistake()
def knows_one_worker(seen: Seen) -> bool:
    """The worker's name is written into the function. It is an argument, worker: next time it is another task."""
    others = {one.task for one in seen.asked if not one.variable and not one.wish}
    return others == {WORKER} != {seen.worker}


@q1.mistake()
def round_robin(seen: Seen) -> bool:
    """This is a fair deal of variables, one to each task in turn, as tf.train.replica_device_setter does it. But an
    embedding and a bias are one variable each. Weigh them in bytes."""
    return _weighs_like(seen) == {"round_robin"}


@q1.mistake()
def counts_elements(seen: Seen) -> bool:
    """The fewest elements were looked for, not the fewest bytes. 1,000 float64 are 8,000 bytes, 1,000 bool are 1,000:
    multiply by the size of the dtype."""
    return _weighs_like(seen) == {"counts_elements"}


@q1.mistake()
def adds_up_the_dimensions(seen: Seen) -> bool:
    """The dimensions of a shape were added up. A matrix of 100 × 50 has 5,000 elements, not 150: multiply them."""
    return _weighs_like(seen) == {"adds_up_the_dimensions"}


@q1.mistake()
def takes_scalars_for_nothing(seen: Seen) -> bool:
    """Scalars were taken for nothing. The shape [] has no dimension, and one element: a float32 of 4 bytes."""
    return _weighs_like(seen) == {"takes_scalars_for_nothing"}


@q1.mistake()
def measures_the_handle(seen: Seen) -> bool:
    """A resource variable was taken for a scalar: the output of a VarHandleOp is a handle. The variable's shape and
    dtype are the op's attributes, op.get_attr('shape') and op.get_attr('dtype')."""
    like = [_obeys(seen, functools.partial(_as_a_handle, size)) for size in (0, 1, 4, 8)]
    return _breaks(seen) and any(like) and _weighs_like(seen) <= {"measures_the_handle"}


def _as_a_handle(size: int, one: Variable) -> int:
    return size if one.resource else one.bytes


def _breaks(seen: Seen) -> bool:
    return not _obeys(seen, lambda one: one.bytes)


def _weighs_like(seen: Seen) -> set[str]:
    """The mistakes of weighing that explain every choice, where the right weights do not."""
    if not _breaks(seen):
        return set()
    forgets = {"forgets_what_lay_there"} if _obeys(seen, lambda one: one.bytes, adds=False) else set()
    return forgets.union(name for name, weigh in _WRONG.items() if _obeys(seen, weigh))


@q1.mistake()
def counts_rows(seen: Seen) -> bool:
    """Only the first dimension of a shape was counted. A matrix of 100 × 50 has 100 rows of 50 elements each: multiply
    all dimensions."""
    return _weighs_like(seen) == {"counts_rows"}


@q1.mistake()
def counts_in_kilobytes(seen: Seen) -> bool:
    """Bytes were rounded down to kilobytes, so what is smaller than one weighs nothing, and piles up. Count single
    bytes."""
    return _weighs_like(seen) == {"counts_in_kilobytes"}


@q1.mistake()
def knows_two_sizes(seen: Seen) -> bool:
    """Each number was taken for 4 bytes, or for 8. A float16 has 2, a bool 1, a complex128 16: look at
    op.get_attr('dtype').size."""
    return _weighs_like(seen) == {"knows_two_sizes"}


@q1.mistake()
def forgets_what_lay_there(seen: Seen) -> bool:
    """Only the last variable of a task was kept. Its bytes are added to those before, with +=, and don't replace
    them."""
    return _weighs_like(seen) == {"forgets_what_lay_there"}


@q1.mistake()
def fills_tasks_up(seen: Seen) -> bool:
    """One task was filled up before the next one got anything. How much there will be is not known in advance: compare
    all tasks each time, and take the one that holds the fewest bytes now."""
    several = [one.choices for one in (seen, *seen.others) if one.ps_tasks > 1]
    return _breaks(seen) and all(None not in one and one == sorted(one, key=lambda task: task or 0) for one in several)


@q1.mistake()
def sets_large_ones_apart(seen: Seen) -> bool:
    """Variables above some size all went to the last task, however much it holds already. No task is kept for large
    ones: a variable of any size goes to the one with the fewest bytes."""
    sizes = {variable.bytes for one in (seen, *seen.others) for variable in one.variables}
    return _breaks(seen) and any(all(_sets_apart(one, size) for one in (seen, *seen.others)) for size in sizes)


def _sets_apart(seen: Seen, size: int) -> bool:
    """Whether each variable above that size went to the last task, and each other to a lightest one."""
    held = [0] * seen.ps_tasks
    for task, one in zip(seen.choices, seen.variables):
        if task is None or (task < seen.ps_tasks - 1 if one.bytes > size else held[task] > min(held)):
            return False
        held[task] += one.bytes
    return True
