"""Question parallel/q3: which ops are ready together.

The truth is a run: a drawn graph is stepped through, one set of ready ops after the other, and the answer's sets are
compared with these. (A real executor has no sets: they are an order of explanation.) Graphs are drawn so that each
mistake gives other sets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from dtflab.base.text_table import plural
from dtflab.grading.device_functions import shown
from dtflab.grading.questions import Wrong, from_toml
from dtflab.grading.unaided import by_itself, opens_a_session
from dtflab.graph.graph import Graph
from dtflab.graph.operation import Operation, Tensor
from dtflab.ops.arrays.functions import identity_n
from dtflab.ops.math.functions import add_n
from dtflab.ops.summaries.functions import timestamp
from dtflab.runtime.session import Session
from dtflab.viz.counters import counters
from dtflab.viz.drawing.picture import Picture

Sets = list[frozenset[str]]
_SECONDS = 2.0  # for a check; a right answer needs some milliseconds

q3 = from_toml(__file__)
q3.mistake()(opens_a_session)


class Plan(NamedTuple):
    """A graph to be made: for each op, in an order that is possible, what it reads and what it waits for."""

    reads: Mapping[str, Sequence[str]]
    waits: Mapping[str, Sequence[str]]

    def ops(self) -> list[Operation]:
        """Make it, in a new graph. Sources are timestamps, since constants are known before the step begins."""
        made: dict[str, Operation] = {}
        with Graph().as_default() as graph:
            for name, sources in self.reads.items():
                with graph.control_dependencies([made[other] for other in self.waits.get(name, ())]):
                    values = [_output(made[one], sources[:i].count(one)) for i, one in enumerate(sources)]
                    made[name] = self._made(name, values)
        return list(made.values())

    @staticmethod
    def _made(name: str, values: Sequence[Tensor]) -> Operation:
        """An op that reads these. `pair` has an output for each."""
        if not values:
            return timestamp(name=name).op
        return identity_n(values, name=name)[0].op if name == "pair" else add_n(values, name=name).op

    def sources(self, name: str) -> list[str]:
        return [*self.reads[name], *self.waits.get(name, ())]

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self.reads)

    def waiting(self, reads: bool) -> Plan:
        """The graph in which only those ops wait that read something, too, or only the others."""
        return self._replace(waits={name: on for name, on in self.waits.items() if bool(self.reads[name]) == reads})

    def turned(self) -> Plan:
        """The graph with its edges turned round: what needs an op, that reads."""
        after = {name: [other for other in self.reads if name in self.sources(other)] for name in self.reads}
        return Plan(dict(reversed(after.items())), {})


class Seen(NamedTuple):
    """The graph, its ops in the order in which the answer got them, the sets in which they are ready, and its own."""

    plan: Plan
    given: Sequence[str]
    ready: Sets
    answered: Sets


def _output(op: Operation, number: int) -> Tensor:
    """The last output; of an op with more, for another use, the one before."""
    return op.outputs[max(-1 - number, -len(op.outputs))]


# -- graphs, and the sets in which they are ready ------------------------------------------------------------


def _draw(random: Random, controls: bool) -> Plan:
    """A graph of 13 to 16 ops; with `controls` some of them wait for others without reading them.

    One op reads a source twice, and another one that is ready later; one is read by none, although it is ready early;
    one reads both outputs of another. With `controls` some wait for two others, and one that reads nothing has to wait.
    """
    sources = [f"source{i}" for i in range(random.randint(2, 3))]
    reads: dict[str, Sequence[str]] = dict.fromkeys(sources, ())
    waits: dict[str, Sequence[str]] = {}
    for i in range(random.randint(6, 7)):
        reads[f"sum{i}"] = random.sample(list(reads)[-4:], random.randint(1, 2))
    low = random.choice(sources)
    reads |= {"twice": [low, low, random.choice(list(reads)[-3:])], "after": ["twice"], "aside": [low]}
    reads |= {"pair": [low, random.choice(list(reads)[-5:-3])], "second": ["pair", "pair"]}  # both outputs
    for name in [one for one in reads if controls and reads[one] and random.random() < 0.5]:
        before = list(reads)[: list(reads).index(name)]
        if others := [other for other in before if other not in reads[name]]:  # what it reads it waits for anyway
            waits[name] = random.sample(others, min(len(others), 2))
    late = random.sample(["after", low], 2)
    return Plan({**reads, "late": ()}, {**waits, "late": late}) if controls else Plan(reads, waits)


def _ready(ops: Sequence[Operation]) -> Sets:
    """The sets in which ops are ready, if all of a set run before the next."""
    with Session(graph=ops[0].graph) as session, session.step_through(list(ops)) as steps:
        return [frozenset(str(ran.name) for ran in record.ran) for record in steps]


def _picture(ops: Sequence[Operation], sets: int, wrong: frozenset[str]) -> Picture:
    """The graph when that many sets have run, with these ops marked: what is ready then has the counter 0."""
    with Session(graph=ops[0].graph) as session, session.step_through(list(ops)) as steps:
        for _ in range(sets):
            steps.next()
        return counters(steps.nodes, marked=wrong, meaning="your set differs here")


def _by_the_first(plan: Plan) -> Sets:
    """The sets of an answer that lets an op go after the first of its sources."""
    level: dict[str, int] = {}
    for name in plan.reads:
        level[name] = 1 + min((level[other] for other in plan.sources(name)), default=-1)
    return _by_level(level)


def _by_level(level: Mapping[str, int]) -> Sets:
    return [frozenset(name for name in level if level[name] == i) for i in range(max(level.values()) + 1)]


def _reads_twice(reads: Sequence[str]) -> bool:
    return len(set(reads)) < len(reads)


def _reads_a_second_output(reads: Sequence[str]) -> bool:
    return "pair" in reads


def _without(plan: Plan, ready: Sets, is_lost: Callable[[Sequence[str]], bool] = _reads_twice) -> Sets:
    """The sets without ops of which that is true, and without all that needs these."""
    lost: set[str] = set()
    for name, reads in plan.reads.items():
        if is_lost(reads) or lost.intersection(plan.sources(name)):
            lost.add(name)
    return [left for part in ready if (left := part - lost)]


def _too_early(plan: Plan, exactly: bool) -> Sets:
    """The sets of an answer whose counters begin with the number of sources, and fall with each edge.

    If they are to be 0 `exactly`, an op whose counter falls from 1 to -1 never comes.
    """
    left = {name: len(set(plan.sources(name))) for name in plan.reads}
    found: Sets = [frozenset(name for name in left if not left[name])]
    while found[-1]:
        edges = [(name, source) for name in left for source in plan.sources(name) if source in found[-1]]
        counts = Counter(name for name, _ in edges)
        fallen = {name: n for name, n in counts.items() if 0 < left[name] <= n}
        found.append(frozenset(name for name, n in fallen.items() if left[name] == n or not exactly))
        left = {name: left[name] - counts[name] for name in left}
    return found[:-1]


def _in_one_pass(plan: Plan, given: Sequence[str]) -> Sets:
    """The sets of an answer that goes through its list once, and puts each op after those sources that came before."""
    level: dict[str, int] = {}
    for name in given:
        level[name] = 1 + max((level[other] for other in plan.sources(name) if other in level), default=-1)
    return _by_level(level)


def _after_the_last_set(plan: Plan) -> Sets:
    """The sets of an answer to which an op is ready only if all of its sources were in the set before."""
    found: Sets = [frozenset(name for name in plan.reads if not plan.sources(name))]
    while found[-1]:
        ready = (name for name in plan.reads if plan.sources(name) and found[-1].issuperset(plan.sources(name)))
        found.append(frozenset(ready))
    return found[:-1]


def _at_once(plan: Plan, given: Sequence[str]) -> Sets:
    """The sets of an answer that takes an op for done as soon as it has put it into a set."""
    done: set[str] = set()
    found: Sets = []
    while len(done) < len(given):
        before = frozenset(done)
        for name in given:
            if name not in done and done.issuperset(plan.sources(name)):
                done.add(name)
        found.append(frozenset(done - before))
    return found


def _telling(random: Random, controls: bool) -> Plan:
    """A graph in which it matters which of its sources an op waits for, and that it waits for control inputs; with as
    many sets for all students."""
    while True:
        plan = _draw(random, controls)
        ready = _ready(plan.ops())
        ways = [_without(plan, ready), _by_the_first(plan), _ready(_with_one_input(plan).ops())]
        lost = [ready[:-1], _without(plan, ready, _reads_a_second_output)]
        if controls:
            ways += [_ready(one.ops()) for one in (plan._replace(waits={}), *map(plan.waiting, (False, True)))]
            ways += [_ready(_with_one_control(plan, i).ops()) for i in (0, -1)]
        is_telling = len(ready) == 7 + controls and all(one not in [ready, *ways[:i]] for i, one in enumerate(ways))
        too_early = [_too_early(plan, exactly) for exactly in (True, False)]
        is_telling = is_telling and not any(one in too_early for one in [ready, *ways])
        if is_telling and lost[0] != lost[1] and all(_differ(way, ready, {"twice", "after"}) for way in ways[1:]):
            return plan


def _tells(plan: Plan, ready: Sets, given: Sequence[str]) -> bool:
    """Whether this order of the ops gives wrong sets to those who count down too early, or go through the list once."""
    known = ready, [plan.names], _by_the_first(plan)
    return _at_once(plan, given) not in known and _in_one_pass(plan, given) != ready


def _differ(mine: Sets, other: Sets, without: set[str]) -> bool:
    """Whether sets differ in more than these ops."""
    return any(one - without != two - without for one, two in zip(mine, other))


def _with_one_input(plan: Plan) -> Plan:
    return plan._replace(reads={name: reads[:1] for name, reads in plan.reads.items()})


def _with_one_control(plan: Plan, number: int = 0) -> Plan:
    return plan._replace(waits={name: [on[number]] for name, on in plan.waits.items()})


# -- what is checked -----------------------------------------------------------------------------------------


def _demand_sets(answer: Any, plan: Plan, random: Random) -> None:
    """Wrong unless the answer's sets are those in which the ops are ready."""
    ops = plan.ops()
    ready = _ready(ops)
    given = random.sample(ops, len(ops))
    while len(ready) > 1 and not _tells(plan, ready, [op.name for op in given]):
        given = random.sample(ops, len(ops))
    answered = _answered(by_itself(answer, list(given), may_run=False))
    seen = Seen(plan, [op.name for op in given], ready, answered)
    for number, (mine, right) in enumerate(zip(answered, ready)):
        if mine != right:
            ways = {"Not ready then": mine - right, "Missing": right - mine, "Ready then": right}
            told = " ".join(f"{way}: {_names(which)}." for way, which in ways.items() if which)
            text = f"Set {number + 1} of yours is wrong. {told}"
            raise Wrong(f"{text}{_why(plan, mine ^ right)}", seen, _picture(ops, number, mine ^ right))
    if len(answered) < len(ready):
        text = f"You have {plural(len(answered), 'set')}; then come {_names(ready[len(answered)])}."
        raise Wrong(text, seen, _picture(ops, len(answered), ready[len(answered)]))
    if len(answered) > len(ready):
        raise Wrong(f"You have {plural(len(answered), 'set')}; after {len(ready)} of them all ops have run.", seen)


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


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in sorted(names))


def _why(plan: Plan, names: frozenset[str]) -> str:
    """The edges that lead to these ops, in a few words."""
    found = []
    for name in sorted(names.intersection(plan.reads))[:2]:
        ways = {"reads": plan.reads[name], "waits for": plan.waits.get(name, ())}
        found += [f"'{name}' {' and '.join(f'{how} {_names(which)}' for how, which in ways.items() if which)}"]
    return "".join(f" {text}." for text in found if not text.endswith(" "))


@q3.check("Ops that read: each in the set after its last source", points=4, seconds=_SECONDS)
def reading(answer: Any, random: Random) -> None:
    _demand_sets(answer, _telling(random, controls=False), random)


@q3.check("Ops that wait for others without reading them", points=4, seconds=_SECONDS)
def waiting(answer: Any, random: Random) -> None:
    _demand_sets(answer, _telling(random, controls=True), random)


@q3.check("A graph of sources only, a chain, and no op at all", points=2, seconds=_SECONDS)
def edges(answer: Any, random: Random) -> None:
    _demand_sets(answer, Plan({f"source{i}": () for i in range(random.randint(2, 5))}, {}), random)
    names = ["source", *(f"link{i}" for i in range(9))]  # as long for all students
    chain = {name: names[:i][-1:] for i, name in enumerate(names)} | {names[2]: [names[1], names[0]]}
    _demand_sets(answer, Plan(chain, {}), random)
    if (got := answer([])) != [] and got != ():
        seen = Seen(Plan({}, {}), [], [], [])
        raise Wrong(f"ready_order([]) gave {shown(got)}; expected: [], no set at all.", seen)


# -- mistakes ------------------------------------------------------------------------------------------------


@q3.mistake()
def finds_a_set_without_ops(seen: Seen) -> bool:
    """A graph without ops has no set: the list is empty. Add a set to it only if there are ops in the set, and return
    the list in any case."""
    return not seen.plan.reads


@q3.mistake()
def forgets_control_inputs(seen: Seen) -> bool:
    """Control inputs are forgotten. An op also waits for those of op.control_inputs, although it reads nothing from
    them: they count as edges."""
    return bool(seen.plan.waits) and seen.answered == _ready(seen.plan._replace(waits={}).ops())


@q3.mistake()
def loses_ops(seen: Seen) -> bool:
    """Ops that read the same tensor twice never become ready. They have two edges from it: the counter begins with 2,
    and falls by 2."""
    return seen.answered == _without(seen.plan, seen.ready)


@q3.mistake()
def counts_sources_once(seen: Seen) -> bool:
    """An op that reads a tensor twice is ready too early: its source was counted once, and yet its counter falls by
    one for each of the two edges. Count edges in both places, or sources in both."""
    return seen.answered in [_too_early(seen.plan, exactly) for exactly in (True, False)]


@q3.mistake()
def loses_second_outputs(seen: Seen) -> bool:
    """Ops that read another output of an op than its first never become ready. An op may have several outputs, and an
    op that reads any of them has an edge from it: begin with op.inputs, each of which knows its op, tensor.op."""
    return seen.answered == _without(seen.plan, seen.ready, _reads_a_second_output)


@q3.mistake()
def takes_the_first_source(seen: Seen) -> bool:
    """An op goes with the first of its sources that is done. It has to wait for the last one: it is ready when its
    counter is 0, not when it falls."""
    return seen.answered == _by_the_first(seen.plan)


@q3.mistake()
def starts_all_that_read_nothing(seen: Seen) -> bool:
    """All ops that read nothing are in the first set. One of them waits for another op: an edge of a control input
    counts for it, too. In the first set are those without any edge that comes in."""
    return "late" in seen.plan.waits and seen.answered == _ready(seen.plan.waiting(reads=True).ops())


@q3.mistake()
def counts_either_kind(seen: Seen) -> bool:
    """Control inputs count only where an op reads nothing; those of ops that read were forgotten. Add up both kinds of
    edges for each op."""
    return "late" in seen.plan.waits and seen.answered == _ready(seen.plan.waiting(reads=False).ops())


@q3.mistake()
def waits_for_one_control(seen: Seen) -> bool:
    """Only the first of several control inputs counts. Each is an edge: the op waits for all of them."""
    return bool(seen.plan.waits) and seen.answered == _ready(_with_one_control(seen.plan).ops())


@q3.mistake()
def forgets_earlier_sets(seen: Seen) -> bool:
    """An op was taken for ready only if all of its sources were in the set before; others never came. An op that
    has run stays done: keep all of them in one set."""
    return seen.answered == _after_the_last_set(seen.plan)


@q3.mistake()
def repeats_ops(seen: Seen) -> bool:
    """Some ops come more than once. In a step an op runs once: when its counter falls to 0, and that happens once."""
    return len(frozenset().union(*seen.answered)) < sum(map(len, seen.answered))


@q3.mistake()
def one_at_a_time(seen: Seen) -> bool:
    """Each of your sets has one op. That is an order that is allowed, but all ops that are ready now could run side by
    side: they are one set."""
    done = [name for part in seen.answered for name in part]
    if not len(seen.answered) == len(done) == len(seen.plan.reads) or set(done) != set(seen.plan.reads):
        return False
    return all(done.index(other) < done.index(name) for name in done for other in seen.plan.sources(name))


@q3.mistake()
def counts_down_too_early(seen: Seen) -> bool:
    """An op stands in the same set as one that it waits for. It is ready when that one is done: in the next set, not in
    this one. First find the whole set, then count down."""
    return seen.answered == _at_once(seen.plan, seen.given)


@q3.mistake()
def goes_through_the_list_once(seen: Seen) -> bool:
    """The set of an op was found in one pass over the list, where an op may stand before those that it waits for. The
    list comes in any order: go through what is left again after each set."""
    return seen.answered == _in_one_pass(seen.plan, seen.given)


@q3.mistake()
def follows_one_input(seen: Seen) -> bool:
    """Only the first input of an op was followed. op.inputs is a list: the op waits for all of them."""
    return seen.answered == _ready(_with_one_input(seen.plan).ops())


@q3.mistake()
def ignores_inputs(seen: Seen) -> bool:
    """No op waits for what it reads: it stands in a set with its own sources. Each of op.inputs is an edge from the op
    that makes it, tensor.op."""
    without = seen.plan._replace(reads=dict.fromkeys(seen.plan.reads, ()))
    return seen.answered in ([seen.plan.names], _ready(without.ops()))


@q3.mistake()
def stops_too_early(seen: Seen) -> bool:
    """The sets are right as far as they go, but some ops come in none. Go on until all ops are done; the last set that
    is ready belongs to the order, too."""
    return 0 < len(seen.answered) < len(seen.ready) and seen.answered == seen.ready[: len(seen.answered)]


@q3.mistake()
def goes_backwards(seen: Seen) -> bool:
    """The order is turned round. The ops that wait for nothing come first: an edge leads from an op to those that need
    it."""
    return seen.answered == seen.ready[::-1]


@q3.mistake()
def puts_the_rest_together(seen: Seen) -> bool:
    """After the sources, all other ops are one set, although some of them wait for each other. Ask again after each set
    which ops are ready then."""
    return seen.answered == [seen.ready[0], seen.plan.names - seen.ready[0]]


@q3.mistake()
def waits_until_it_is_needed(seen: Seen) -> bool:
    """An op comes just before the first that needs it, or in the last set if none does. It is ready when its own
    sources are done, however late it is needed: count the edges that lead to it, not those from it."""
    return seen.answered == _ready(seen.plan.turned().ops())[::-1]


@q3.mistake()
def sorts_by_edges(seen: Seen) -> bool:
    """Ops with as many edges as each other were put together. How many edges an op has says nothing about when they are
    there: only those from ops that are not done yet count, and they get fewer with each set."""
    edges = {name: len(seen.plan.sources(name)) for name in seen.plan.reads}
    numbers = sorted(set(edges.values()))
    return seen.answered == [frozenset(name for name in edges if edges[name] == number) for number in numbers]
