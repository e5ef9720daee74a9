"""The second question on many networks, many/q2: the book's exercise 9, an ensemble of the three best nets.

The checks leave nets in containers of a simulated cluster, each on a task of its own, and run the answer's graph there:
they look at where it computes, and what it says of the validation images.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from operator import attrgetter
from random import Random
from typing import Any, NamedTuple

import numpy as np

from dtflab.base import errors
from dtflab.datasets.digits import digits
from dtflab.grading.device_functions import VARIABLE_OPS, shown
from dtflab.grading.questions import Wrong, from_toml
from dtflab.grading.simulated import Stage, stage
from dtflab.grading.unaided import by_itself
from dtflab.graph import dtypes
from dtflab.graph.device_spec import label
from dtflab.graph.graph import Graph
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import container, device
from dtflab.ops.arrays.functions import placeholder
from dtflab.ops.variables.functions import global_variables_initializer
from dtflab.ops.variables.get_variable import get_variable
from dtflab.protos import config_pb2
from dtflab.runtime.session import Session

SPARES, CHOICES = 4, 100  # nets that are trained besides those that are needed; times that some are chosen

q2 = from_toml(__file__)


# -- nets that were trained ----------------------------------------------------------------------------------


class Result(NamedTuple):
    """A net as the search knows it."""

    container: str
    device: str
    hidden: int
    accuracy: float


class Member(NamedTuple):
    """A net as the checks know it: its result, its weights, its logits of the validation images."""

    result: Result
    weights: dict[str, Any]
    logits: Any

    def named(self, number: int) -> Member:
        """The net in a container and on a task with that number."""
        device = f"/job:worker/task:{number}/cpu:0"
        return self._replace(result=self.result._replace(container=f"net{number + 3}", device=device))


Choose = Callable[[Sequence[Member]], Sequence[Member]]
Combine = Callable[[Sequence[Any]], Any]


def mean_of_probabilities(logits: Sequence[Any]) -> Any:
    """The classes with the highest mean probability."""
    return sum(map(softmax, logits)).argmax(axis=1)


def softmax(logits: Any, axis: int = 1) -> Any:
    """Probabilities, which add up to 1 along the axis."""
    powers = np.exp(logits - logits.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


def sum_of_logits(logits: Sequence[Any]) -> Any:
    return np.sum(logits, axis=0).argmax(axis=1)


def most_votes(logits: Sequence[Any]) -> Any:
    """Each net has one vote; of classes with equally many the lowest wins."""
    return sum(np.eye(10)[one.argmax(axis=1)] for one in logits).argmax(axis=1)


def highest_probability(logits: Sequence[Any]) -> Any:
    """The class of which one net is surest."""
    return np.max([*map(softmax, logits)], axis=0).argmax(axis=1)


def flatter(logits: Sequence[Any]) -> Any:
    """The mean of probabilities that are nearer to each other."""
    return mean_of_probabilities([0.7 * one for one in logits])


def better_ones_count_more(made: Sequence[Member]) -> Combine:
    """The mean weighted with the accuracies of the three best."""
    weights = [one.result.accuracy for one in best_three(made)]
    return lambda logits: sum(weight * softmax(one) for weight, one in zip(weights, logits)).argmax(axis=1)


def shares_of_images(logits: Sequence[Any]) -> Any:
    """Probabilities along the images, in place of the classes."""
    return sum(softmax(one, axis=0) for one in logits).argmax(axis=1)


def last_three(members: Sequence[Member]) -> Sequence[Member]:
    return members[-3:]


def first_three(members: Sequence[Member]) -> Sequence[Member]:
    return members[:3]


def everyone(members: Sequence[Member]) -> Sequence[Member]:
    return members


def _last(count: int, name: str = "result.accuracy") -> Choose:
    """Choose that many nets with the largest values; the smallest, if the count is negative."""
    return lambda members: sorted(members, key=attrgetter(name), reverse=count < 0)[-abs(count) :]


last_by_name, widest_three = _last(3, "result"), _last(3, "result.hidden")
only_best, best_two, best_three, best_four, worst_three = map(_last, (1, 2, 3, 4, -3))
_THREES = (first_three, last_three, last_by_name, best_three, worst_three, widest_three)
_WAYS: list[tuple[Choose, Combine]] = [
    *((choose, mean_of_probabilities) for choose in (*_THREES, only_best, best_two, best_four, everyone)),
    *((best_three, combine) for combine in (sum_of_logits, most_votes, shares_of_images, highest_probability, flatter)),
]


def members(random: Random, count: int = 6) -> list[Member]:
    """Trained nets in any order, for which each wrong way to combine them says something else."""
    while True:  # to choose among trained nets takes far less than to train others
        trained = [_member(random) for _ in range(count + SPARES)]
        if made := next(filter(_tells, (_some(random, trained, count) for _ in range(CHOICES))), None):
            return made


def _some(random: Random, trained: Sequence[Member], count: int) -> list[Member]:
    """That many of the nets, each in a container and on a task of its own, in any order."""
    numbered = [one.named(number) for number, one in enumerate(random.sample(trained, count))]
    return random.sample(numbered, count)


def _tells(made: Sequence[Member]) -> bool:
    """Whether each way to combine the nets says something else."""
    if len({frozenset(one.result.container for one in choose(made)) for choose in _THREES}) < len(_THREES):
        return False
    said = [classes_of(made, *way) for way in (*_WAYS, (best_three, better_ones_count_more(made)))]
    return all(np.sum(one != other) > 2 for one, other in itertools.combinations(said, 2))


def _member(random: Random) -> Member:
    """A net with random hidden units, whose last layer fits some of the training images."""
    data, numbers = digits(), np.random.RandomState(random.randrange(2**31))
    width, scale = random.randint(10, 30), random.choice((3, 10, 30))
    rows = numbers.choice(len(data.train.images), size=300, replace=False)
    kernel, bias = numbers.standard_normal((64, width)) / 3, numbers.standard_normal(width) / 3

    def hidden(images: Any) -> Any:
        return np.maximum(images @ kernel + bias, 0)

    inputs = np.hstack([hidden(data.train.images[rows]), np.ones((300, 1))])
    last, *_ = np.linalg.lstsq(inputs, np.eye(10)[data.train.labels[rows]] - 0.1, rcond=None)
    logits = scale * (hidden(data.validation.images) @ last[:-1] + last[-1])
    right = float(np.mean(logits.argmax(axis=1) == data.validation.labels))
    weights = {"hidden/kernel": kernel, "hidden/bias": bias}
    weights |= {"logits/kernel": scale * last[:-1], "logits/bias": scale * last[-1]}
    return Member(Result("", "", width, right + 1e-4 * random.random()), weights, logits)


def _two_on_a_task(made: list[Member]) -> list[Member]:
    """The nets, the best one moved to the task of another of the best."""
    second, best = best_three(made)[-2:]
    moved = best._replace(result=best.result._replace(device=second.result.device))
    return [moved if one is best else one for one in made]


def classes_of(made: Sequence[Member], choose: Choose, combine: Combine) -> Any:
    return combine([one.logits for one in choose(made)])


# -- an ensemble ---------------------------------------------------------------------------------------------


class Seen(NamedTuple):
    """The answers of an ensemble, and where it computed: the evidence."""

    members: Sequence[Member]
    classes: Any = None
    devices: tuple[str, ...] = ()  # where products of matrices were computed
    containers: tuple[str, ...] = ()  # of the variables in its graph
    names: tuple[str, ...] = ()  # of these variables
    uninitialized: bool = False

    def are(self, choose: Choose, combine: Combine = mean_of_probabilities) -> bool:
        """Whether the classes are those of these members together, but for an image where two are nearly equal."""
        expected = classes_of(self.members, choose, combine)
        return np.shape(self.classes) == expected.shape and bool(np.sum(self.classes != expected) <= 1)

    def says(self, choose: Choose, combine: Combine = mean_of_probabilities) -> bool:
        """Whether that is what these members say together, each computing where it is."""
        devices = {label(one.result.device) for one in choose(self.members)}
        return set(map(label, self.devices)) == devices and self.are(choose, combine)


def run(answer: Any, made: Sequence[Member], images: Any = None) -> Seen:
    """Leave the nets on a cluster, and run the answer's graph there. Wrong if that can't be done."""
    fed = digits().validation.images if images is None else images
    with stage(worker=len(made)) as on:
        for member in made:
            _leave(on, member)
        given = placeholder(dtypes.float32, [None, 64])
        classes = by_itself(answer, [member.result for member in made], given)
        if not isinstance(classes, Tensor):
            raise Wrong(f"A tensor of classes, whole numbers, is expected, not {shown(classes)}.")
        variables = [op for op in on.graph.get_operations() if op.type in VARIABLE_OPS]
        containers = tuple({op.node_def.attr["container"].s.decode() for op in variables})
        seen = Seen(made, containers=containers, names=tuple(op.name for op in variables))
        seen = _traced(on, classes, {given: fed}, seen)
        if not classes.dtype.is_integer:
            raise Wrong(f"A tensor of classes, whole numbers, is expected, not {shown(classes)}.", seen)
        return seen


def _leave(on: Stage, member: Member) -> None:
    """Make a net's variables in its container."""
    result = member.result
    with Graph().as_default() as graph, container(result.container), device(result.device):
        for name, value in member.weights.items():
            get_variable(f"{result.container}/{name}", initializer=value.astype(np.float32))
        with Session(on.cluster.target, graph=graph) as session:
            session.run(global_variables_initializer())


def _traced(on: Stage, classes: Tensor, feed: Any, seen: Seen) -> Seen:
    trace, options = config_pb2.RunMetadata(), config_pb2.RunOptions(output_partition_graphs=True)
    try:
        value = on.session.run(classes, feed, options=options, run_metadata=trace)
    except errors.FailedPreconditionError as error:
        message = f"A variable is not there: {str(error.message).splitlines()[0]}"
        raise Wrong(message, seen._replace(uninitialized=True)) from None
    names = {op.name for op in on.graph.get_operations() if op.type == "MatMul" and any(map(_is_own, op.inputs))}
    where = [node.device for graph in trace.partition_graphs for node in graph.node if node.name in names]
    return seen._replace(classes=value, devices=tuple(sorted(set(where))))


def _is_own(tensor: Tensor) -> bool:
    """Whether a factor is a variable, perhaps in another shape. (A mean of three nets may be a product, too.)"""
    op = tensor.op
    while op.inputs and op.type != "MatMul":
        op = op.inputs[0].op
    return op.type in VARIABLE_OPS


def demand_best(answer: Any, made: Sequence[Member]) -> None:
    """Wrong unless the classes are those of the three best nets."""
    seen = run(answer, made)
    if not seen.are(best_three):
        labels = digits().validation.labels
        best = classes_of(made, best_three, mean_of_probabilities)
        if np.shape(seen.classes) != best.shape:
            observed = f"For {len(labels)} images the classes have shape {list(np.shape(seen.classes))}"
            raise Wrong(f"{observed}; expected: {list(best.shape)}, a class for each image.", seen)
        same = int(np.sum(best == seen.classes))
        ranks = ", ".join(f"{one.result.container} {one.result.accuracy:.3f}" for one in best_three(made)[::-1])
        observed = f"Of {len(labels)} validation images, your classes are theirs for {same}"
        raise Wrong(f"The three best are {ranks}. {observed}.", seen)


# -- what is checked -----------------------------------------------------------------------------------------


@q2.check("It says what the three best nets say together", points=4)
def together(answer: Any, random: Random) -> None:
    demand_best(answer, members(random))


@q2.check("Each of the three computes on the device where its variables are", points=3)
def apart(answer: Any, random: Random) -> None:
    made = members(random)
    seen = run(answer, made)
    expected = sorted({label(one.result.device) for one in best_three(made)})
    got = sorted({label(one) for one in seen.devices})
    if got != expected:
        raise Wrong(f"Matrices are multiplied on {', '.join(got)}; expected: {', '.join(expected)}.", seen)


@q2.check("More nets, as many as three, and a single image", points=3)
def other_numbers(answer: Any, random: Random) -> None:
    demand_best(answer, _two_on_a_task(members(random, count=8)))
    few = [_member(random).named(number) for number in range(3)]
    demand_best(answer, few)
    seen = run(answer, few, digits().validation.images[:1])
    if np.shape(seen.classes) != (1,):
        raise Wrong(f"For one image the classes have shape {list(np.shape(seen.classes))}; expected: [1].", seen)


# -- mistakes ------------------------------------------------------------------------------------------------


@q2.mistake()
def forgets_the_container(seen: Seen) -> bool:
    """The variables of the graph are not in the containers of the nets, so they are new ones, without values. Put
    tf.container(one.container) around each net."""
    return seen.uninitialized and not set(seen.containers) <= {one.result.container for one in seen.members}


@q2.mistake()
def calls_it_otherwise(seen: Seen) -> bool:
    """The variables of the graph have other names than those on the cluster, so they are new ones, without values. A
    net's name is that of its container: net(images, one.hidden, one.container)."""
    left = {f"{one.result.container}/{name}" for one in seen.members for name in one.weights}
    return seen.uninitialized and not set(seen.names) <= left


@q2.mistake()
def forgets_the_device(seen: Seen) -> bool:
    """A net was looked for on a task where it is not. Its variables are where it was trained: put tf.device(one.device)
    around each net."""
    return seen.uninitialized


@q2.mistake()
def returns_numbers_per_class(seen: Seen) -> bool:
    """For each image there is a number per class, where one class is asked for, the one with the highest number: let
    tf.argmax(…, axis=1) find it."""
    found = seen.classes
    return np.ndim(found) == 2 and seen._replace(classes=np.argmax(found, axis=1)).says(best_three)


@q2.mistake()
def adds_logits(seen: Seen) -> bool:
    """The logits of the nets were added, or probabilities multiplied, which comes to the same. The size of logits
    differs from net to net, so one may outvote the two others. Add what tf.nn.softmax makes of each net's logits."""
    return seen.says(best_three, sum_of_logits)


@q2.mistake()
def weighs_nets(seen: Seen) -> bool:
    """The better net counts for more. The plain mean of the three probabilities decides: the accuracies only say which
    nets are asked."""
    return seen.says(best_three, better_ones_count_more(seen.members))


@q2.mistake()
def counts_votes(seen: Seen) -> bool:
    """Each net has one vote, however sure it is. Let each say probabilities, tf.nn.softmax of its logits; the class
    with the highest mean of them wins."""
    return seen.says(best_three, most_votes)


@q2.mistake()
def believes_the_surest(seen: Seen) -> bool:
    """The net that is surest decides alone. The class with the highest mean of the three probabilities wins."""
    return seen.says(best_three, highest_probability)


@q2.mistake()
def adds_up_along_the_images(seen: Seen) -> bool:
    """Probabilities add up to 1 along the images here. They do so for each image, along the classes: tf.nn.softmax of
    the logits, without axis=0."""
    return seen.says(best_three, shares_of_images)


@q2.mistake()
def takes_the_first(seen: Seen) -> bool:
    """These are three that stand together in the list, which is in no order. Sort it by accuracy."""
    return len(seen.members) > 3 and (seen.says(first_three) or seen.says(last_three))


@q2.mistake()
def sorts_by_name(seen: Seen) -> bool:
    """These three come last by the name of their container, by which sorted() compares results that it gets without a
    key. Sort by accuracy: key=lambda one: one.accuracy."""
    return len(seen.members) > 3 and seen.says(last_by_name)


@q2.mistake()
def takes_the_widest(seen: Seen) -> bool:
    """These are the three widest nets. Sort by accuracy, not by width."""
    return len(seen.members) > 3 and seen.says(widest_three)


@q2.mistake()
def takes_two_or_four(seen: Seen) -> bool:
    """These are the best nets, but not three of them: a slice was one too short, or too long."""
    return len(seen.members) > 3 and (seen.says(best_two) or seen.says(best_four))


@q2.mistake()
def computes_in_one_place(seen: Seen) -> bool:
    """All nets compute on one device, and their variables travel there. Build each net, not only its variables, inside
    of `with tf.device(one.device)`."""
    return len(set(seen.devices)) == 1 and seen.are(best_three)


@q2.mistake()
def takes_the_worst(seen: Seen) -> bool:
    """These are the three worst nets: sorted() puts the smallest first."""
    return len(seen.members) > 3 and seen.says(worst_three)


@q2.mistake()
def takes_one(seen: Seen) -> bool:
    """That is the best net alone. Let all three say their probabilities, and add them."""
    return seen.says(only_best)


@q2.mistake()
def lets_all_compute(seen: Seen) -> bool:
    """The classes are those of the three best nets, but all nets compute them, and most of that is thrown away. Choose
    by the accuracies, in Python, before you build a net: only the three are in the graph."""
    return len(set(seen.devices)) == len(seen.members) > 3 and seen.are(best_three)


@q2.mistake()
def asks_everyone(seen: Seen) -> bool:
    """All nets were asked, the bad ones too. Take the three with the highest accuracy."""
    return len(seen.members) > 3 and seen.says(everyone)
