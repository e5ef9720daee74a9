"""Question parallel/q3: which ops are ready together.

The truth is the executor's own: a drawn graph runs through `session.step_through`, and the answer's sets are compared
with the sets that ran. Graphs are drawn so that each mistake gives other sets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from dtflab.base.text_table import plural
from dtflab.grading.device_functions import shown
from dtflab.grading.questions import Wrong, from_toml
from dtflab.graph.graph import Graph
from dtflab.graph.operation import Operation
from dtflab.ops.math.functions import add_n
from dtflab.ops.summaries.functions import timestamp
from dtflab.runtime.session import Session

Sets = list[frozenset[str]]
_SECONDS = 2.0  # for a check; a right answer needs some milliseconds

q3 = from_toml(__file__)


class Seen(NamedTuple):
    """The op's inputs, one name per edge; the ops it waits for without reading; the sets of the answer."""

    reads: Mapping[str, Sequence[str]]
    waits: Mapping[str, Sequence[str]]
    answered: Sets


# -- graphs, and the sets in which they run ------------------------------------------------------------------


def _draw(random: Random, controls: float) -> list[Operation]:
    """A graph of 9 to 12 ops, shuffled; `controls` is the share of ops that wait for one more without reading it.

    Its sources are timestamps, since constants are known before the step begins. One op reads a tensor twice.
    """
    ops = [timestamp(name=f"source{i}").op for i in range(random.randint(2, 3))]
    for i in range(random.randint(7, 9)):
        sources = random.sample(ops[-4:], random.randint(1, 2))
        values = [source.outputs[0] for source in (sources[:1] * 2 if i == 2 else sources)]
        others = [op for op in ops if op not in sources]
        waits = [random.choice(others)] if others and random.random() < controls else []
        with ops[0].graph.control_dependencies(waits):
            ops.append(add_n(values, name=f"sum{i}").op)
    return random.sample(ops, len(ops))


def _sets_of_the_executor(ops: Sequence[Operation]) -> Sets:
    """The sets in which a step really runs these ops."""
    with Session(graph=ops[0].graph) as session, session.step_through(list(ops)) as steps:
        return [frozenset(str(ran.name) for ran in record.ran) for record in steps]


def _levels(sources: Mapping[str, Sequence[str]], place: Callable[..., int] = max) -> Sets:
    """Ops by the `place` of their sources' levels, and one more."""
    level: dict[str, int] = {}
    while len(level) < len(sources):
        for name, names in sources.items():
            if name not in level and all(other in level for other in names):
                level[name] = place((level[other] for other in names), default=-1) + 1
    return [frozenset(n for n in level if level[n] == i) for i in range(max(level.values(), default=-1) + 1)]


def _edges(ops: Sequence[Operation]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    reads = {op.name: [tensor.op.name for tensor in op.inputs] for op in ops}
    return reads, {op.name: [other.name for other in op.control_inputs] for op in ops}


def _both(seen: Seen) -> dict[str, list[str]]:
    return {name: [*seen.reads[name], *seen.waits[name]] for name in seen.reads}


def _telling(random: Random, controls: float) -> list[Operation]:
    """A graph in which it matters which of its sources an op waits for, and that it waits for control inputs."""
    while True:
        with Graph().as_default():
            ops = _draw(random, controls)
        seen = Seen(*_edges(ops), [])
        both = _both(seen)
        ways = [_levels(both), _levels(both, min), *([_levels(seen.reads)] if controls else [])]
        if all(one not in ways[:i] for i, one in enumerate(ways)):
            return ops


# -- what is checked -----------------------------------------------------------------------------------------


def _demand_sets(answer: Any, ops: Sequence[Operation]) -> None:
    """Wrong unless the answer's sets are those that the executor runs."""
    answered, expected = _answered(answer(list(ops))), _sets_of_the_executor(ops)
    seen = Seen(*_edges(ops), answered)
    for number, (mine, its) in enumerate(zip(answered, expected), start=1):
        if mine != its:
            raise Wrong(f"Set {number} of yours is {_names(mine)}; the executor runs {_names(its)}. {_why(seen)}", seen)
    if len(answered) != len(expected):
        sets = f"Yours are {plural(len(answered), 'set')}, the executor's {len(expected)}"
        last = "" if len(answered) > len(expected) else f": then come {_names(expected[len(answered)])}"
        raise Wrong(f"{sets}{last}. {_why(seen)}", seen)


def _answered(value: Any) -> Sets:
    """The sets of an answer; its ops may be named, or be there themselves."""
    expected = 'expected: a list of sets, such as [["a", "b"], ["c"]].'
    if not isinstance(value, list | tuple):
        raise Wrong(f"ready_order returned {shown(value)}; {expected}")
    found: Sets = []
    for part in value:
        names = [getattr(one, "name", one) for one in part] if isinstance(part, list | tuple | set | frozenset) else []
        if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
            raise Wrong(f"One of the sets is {shown(part)}; {expected} Each has an op, and none twice.")
        found.append(frozenset(map(str, names)))
    return found


def _names(names: frozenset[str]) -> str:
    return ", ".join(sorted(names))


def _why(seen: Seen) -> str:
    """The graph, in a sentence."""
    lines = []
    for name in sorted(seen.reads):
        reads, waits = seen.reads[name], seen.waits[name]
        if reads or waits:
            lines.append(f"{name} reads {', '.join(reads)}" + (f" and waits for {', '.join(waits)}" if waits else ""))
    return f"The graph: {'; '.join(lines) or 'sources only'}."


@q3.check("Ops that read: each in the set after its last source", points=4, seconds=_SECONDS)
def reading(answer: Any, random: Random) -> None:
    _demand_sets(answer, _telling(random, controls=0.0))


@q3.check("Ops that wait for others without reading them", points=4, seconds=_SECONDS)
def waiting(answer: Any, random: Random) -> None:
    _demand_sets(answer, _telling(random, controls=0.5))


@q3.check("A graph of sources only, a chain, and no op at all", points=2, seconds=_SECONDS)
def edges(answer: Any, random: Random) -> None:
    with Graph().as_default():
        _demand_sets(answer, [timestamp(name=f"source{i}").op for i in range(random.randint(2, 5))])
    with Graph().as_default():
        chain = [timestamp(name="source").op]
        for i in range(random.randint(3, 6)):
            chain.append(add_n([chain[-1].outputs[0]] * 2, name=f"twice{i}").op)
        _demand_sets(answer, chain[::-1])
    if (got := answer([])) != [] and got != ():
        raise Wrong(f"ready_order([]) gave {shown(got)}; expected: [], no set at all.")


# -- mistakes ------------------------------------------------------------------------------------------------


@q3.mistake()
def forgets_control_inputs(seen: Seen) -> bool:
    """Control inputs are forgotten: an op also waits for those of op.control_inputs, although it reads nothing of them.
    They count as edges."""
    return any(seen.waits.values()) and seen.answered == _levels(seen.reads)


@q3.mistake()
def loses_ops(seen: Seen) -> bool:
    """Some ops never become ready. Is each edge counted, and each taken away once? An op that reads the same tensor
    twice has two edges from it: its counter begins with 2, and falls by 2."""
    return bool(set(seen.reads) - set().union(*seen.answered))


@q3.mistake()
def takes_the_first_source(seen: Seen) -> bool:
    """An op goes with the first of its sources that is done. It has to wait for the last one: it is ready when its
    counter is 0, not when it falls."""
    return seen.answered == _levels(_both(seen), min) or len(seen.reads) < sum(map(len, seen.answered))


@q3.mistake()
def one_at_a_time(seen: Seen) -> bool:
    """Each of your sets has one op. That is an order that is allowed, but all ops that are ready now could run side by
    side: they are one set."""
    return len(seen.reads) == len(seen.answered) > len(_levels(_both(seen)))


@q3.mistake()
def counts_down_too_early(seen: Seen) -> bool:
    """An op stands in the same set as one that it waits for. It is ready when that one is done: in the next set, not in
    this one. First find the whole set, then count down."""
    return any(set(_both(seen)[name]) & part for part in seen.answered for name in part if name in seen.reads)
