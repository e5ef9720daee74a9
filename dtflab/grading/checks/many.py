"""Questions on many networks at once.

q1: the book's exercise 8, a client program that trains one net with what its command line says. The checks call it on a
simulated cluster and look at what it leaves there; one check starts it in processes of their own, on a real cluster.
What its steps do is seen by nets that were trained on one image alone, black or bright, with other labels in each part
of the digits: a first step can be undone, and what it was made of is left.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np

from dtflab import datasets
from dtflab.base.events import NodeRan
from dtflab.base.text_table import plural
from dtflab.cluster.cluster import Cluster
from dtflab.cluster.resources_held import HeldVariable
from dtflab.datasets.dataset import Dataset, Datasets
from dtflab.datasets.digits import digits
from dtflab.grading.checks.many_ensemble import softmax
from dtflab.grading.device_functions import shown
from dtflab.grading.programs import program_of, run_side_by_side
from dtflab.grading.questions import Wrong, from_toml
from dtflab.graph import device_spec, dtypes
from dtflab.graph.graph import Graph
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import container, device, get_default_graph
from dtflab.machine.watch import watch
from dtflab.nets.layers.core import dense
from dtflab.ops.arrays.functions import placeholder
from dtflab.ops.nn.functions import relu
from dtflab.ops.resource_mgr import DEFAULT_CONTAINER
from dtflab.ops.variables.get_variable import get_variable
from dtflab.ops.variables.variable_scope import variable_scope
from dtflab.runtime.session import Session

SECONDS = 7.0  # for the processes
LEARNED = 0.5  # of the training images, after some steps
MANY, MOST = 200, 0.84  # steps at a rate of 0.2, after which a net knows 94% of the training images; 86% at least
NEAR = 0.02  # how exactly a step can be undone
FOREIGN = 0.01  # a share of other images: a single one is 3% of a batch
PIXEL, WIDE = 4.0, 500  # a bright image and a wide net make large gradients of logits that are still small
ROUNDED = 6e-4  # a share may be rounded to three places; that of other images is not so near by chance, three times
WILD = {"steps": 25, "rate": 3.0}  # with these, the share of right answers goes up and down
BATCH = 32
MARK = np.arange(64) % 10  # the label of an image with that pixel
LABELS = 5, 1, 1  # that the training, the validation and the test images have, while all images are alike
_SLOT = re.compile("/(hidden|logits)/(kernel|bias)/")
_TRAINS = re.compile("Apply|Assign")

q1 = from_toml(__file__)


# -- a run of the program ------------------------------------------------------------------------------------


class Options(NamedTuple):
    """A command line."""

    server: str
    device: str
    container: str
    hidden: int
    rate: float
    steps: int

    @property
    def argv(self) -> list[str]:
        return [f"--{name}={value}" for name, value in zip(self._fields, self)]


class Undone(NamedTuple):
    """The effect of steps with one image, found by undoing them."""

    way: float = 0.0  # how far they went: for small steps, or a single one, the rate times their number
    shares: Any = ()  # of the images of a step, by label, if these are black
    frozen: Sequence[str] = ()  # variables that are as they were initialized
    plain: bool = False  # the variables have moved in the proportions of a gradient of the logits

    @property
    def others(self) -> Any:
        """The shares of validation and of test images."""
        return [share if share > FOREIGN else 0.0 for share in self.shares[LABELS[0] : sum(LABELS)]]


class Seen(NamedTuple):
    """The value that a run of the program returned, and the variables it left on the cluster: the evidence."""

    options: Options
    value: float
    held: Sequence[HeldVariable]
    steps: int | None = None  # the global step of its container
    train: float | None = None  # the share of right answers on the training images; and on the others
    validation: float | None = None
    test: float | None = None
    batch: int = 0  # the images of a step of training: another number than 32, if there is a step with it
    undone: Undone = Undone()  # what its steps were, if all images were alike
    turns: int = 1  # in which each batch was taken, if images were marked
    runs: Sequence[Seen] = ()  # all of these, if numbers of the command line are not obeyed
    paced: Sequence[Seen] = ()  # runs with images that are all alike, by way: fast, patient, slow, strong
    tried: Sequence[Seen] = ()  # all of these, if the value is another one
    callers_graph: bool = False  # was built in
    slots: Sequence[str] = ()  # variables of an optimizer
    products: Sequence[str] = ()  # the devices that computed products of matrices
    away: bool = False  # that were others than that of the command line

    @property
    def pace(self) -> float:
        """How far the steps went, as a multiple of what the rate says."""
        return self.undone.way / (self.options.rate * self.options.steps)

    def mine(self, one: HeldVariable) -> bool:
        """Whether a variable is in the container of the program."""
        return one.container == self.options.container

    def variable(self, name: str) -> HeldVariable | None:
        """A variable of the net, if it is in the container."""
        full = f"{self.options.container}/{name}"
        return next((one for one in self.held if one.name == full and self.mine(one)), None)


def net(images: Any, hidden: int, name: str) -> Tensor:
    """The net of the exercise."""
    with variable_scope(name):
        logits: Tensor = dense(dense(images, hidden, relu, name="hidden"), 10, name="logits")
        return logits


class Nodes:
    """Listens for the devices that compute products of matrices, and for the images of each step of training."""

    def __init__(self) -> None:
        self.products: set[str] = set()
        self._hidden: dict[int, set[int]] = defaultdict(set)  # rows of the hidden layer's values, by step
        self._training: set[int] = set()  # steps that change variables

    def on_node(self, ran: NodeRan) -> None:
        if ran.node.op == "MatMul":
            self.products.add(ran.device)
        if ran.node.op == "Relu":
            self._hidden[ran.step] |= {one.shape[0] for one in ran.outputs if len(one.shape) == 2}
        if _TRAINS.search(ran.node.op):
            self._training.add(ran.step)

    @property
    def batch(self) -> int:
        """The images in a step of training; if their number changes, one that is wrong. 0 if that is not seen."""
        found = {rows for step in self._training for rows in self._hidden[step]}
        return max(found - {BATCH} or found, default=0)


def run(answer: Any, cluster: Cluster, nodes: Nodes | None = None, turned: bool = False, **given: Any) -> Seen:
    """Call the answer, and look at what it has left in its container; Wrong if there is no net that works.

    With `turned`, its command line has another order. To hear of `nodes` doubles the time of a step.
    """
    options = Options(**({"server": cluster.target} | given))
    with watch(nodes) if nodes else contextlib.nullcontext(), Graph().as_default() as graph:
        value = answer(options.argv[::-1] if turned else options.argv)
        if get_default_graph() is not graph or graph.get_operations():
            observed = "train_net has built in the default graph of its caller, or replaced it"
            raise Wrong(f"{observed}; expected: a graph of its own.", Seen(options, 0.0, (), callers_graph=True))
    message = f"train_net must return the share of right answers, a number from 0 to 1, not {shown(value)}."
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise Wrong(message)
    seen = Seen(options, float(value), cluster.variables())
    if nodes:
        seen = seen._replace(batch=nodes.batch, products=sorted(nodes.products))
    if 0 <= value <= 1:
        return _looked_at(cluster, seen)
    with contextlib.suppress(Wrong):  # else without what the net says
        seen = _looked_at(cluster, seen)
    raise Wrong(message, seen)


@contextlib.contextmanager
def other_digits(change: Callable[[int, Any, Any], tuple[Any, Any]]) -> Iterator[None]:
    """While the block runs, the parts of the digits have the images and labels that `change` makes of part 1, 2, 3."""
    original = datasets.digits

    def changed(*arguments: Any, **given: Any) -> Datasets:
        parts = enumerate(original(*arguments, **given), 1)
        return Datasets(*(Dataset(*change(i, part.images, part.labels), given.get("seed", 0)) for i, part in parts))

    datasets.digits = changed
    try:
        yield
    finally:
        datasets.digits = original


def alike(pixel: float) -> Callable[[int, Any, Any], tuple[Any, Any]]:
    """Images with equal pixels alone, and labels 0 to 4, 5 and 6 in the three parts."""

    def changed(part: int, images: Any, labels: Any) -> tuple[Any, Any]:
        first, count = sum(LABELS[: part - 1]), LABELS[part - 1]
        numbers = first + (labels.argmax(1) if labels.ndim > 1 else labels) % count
        return images * 0 + np.float32(pixel), np.eye(10, dtype=labels.dtype)[numbers] if labels.ndim > 1 else numbers

    return changed


def marked(part: int, images: Any, labels: Any) -> tuple[Any, Any]:
    """Images with one bright pixel each, that says the label."""
    pixels = np.random.RandomState(part).randint(64, size=len(images))
    said = np.eye(10, dtype=labels.dtype)[MARK] if labels.ndim > 1 else MARK
    return np.eye(64, dtype=images.dtype)[pixels], said[pixels]


def _looked_at(cluster: Cluster, seen: Seen) -> Seen:
    """Run the net that the program left; Wrong if it is not there."""
    options = seen.options
    kernel = seen.variable("hidden/kernel")
    if kernel is None:
        there = ", ".join(sorted({f"'{one.name}' in container '{one.container}'" for one in seen.held})[:2])
        observed = f"There is no variable '{options.container}/hidden/kernel' in container '{options.container}'"
        raise Wrong(f"{observed} after the program. The cluster holds {there or 'no variables'}.", seen)
    data = digits()
    with Graph().as_default() as graph, container(options.container), device(kernel.device):
        images = placeholder(dtypes.float32, [None, 64])
        logits = net(images, kernel.shape[1], options.container)
        with Session(options.server, graph=graph) as session:
            found = [session.run(logits, {images: part.images}) for part in data]
    said = [one.argmax(1) for one in found]
    train, validation, test = (float(np.mean(one == part.labels)) for one, part in zip(said, data))
    steps = _value(seen, "global_step")
    return seen._replace(train=train, validation=validation, test=test, steps=None if steps is None else int(steps))


def _value(seen: Seen, name: str) -> Any:
    """The value of a variable in the container of the program; None if there is none."""
    held = next((one for one in seen.held if one.name == name and seen.mine(one)), None)
    if held is None:
        return None
    with Graph().as_default() as graph, container(held.container), device(held.device):
        variable = get_variable(name, held.shape, held.dtype)
        with Session(seen.options.server, graph=graph) as session:
            return np.asarray(session.run(variable), np.float64)


def undo(seen: Seen, pixel: float) -> Undone:
    """Take back what one step with equal images did, or many small ones with black images.

    Biases began with 0, so they say how they moved; a kernel has moved by the product of its inputs and this.
    """
    names = "hidden/kernel", "hidden/bias", "logits/kernel", "logits/bias"
    first, lift, second, bias = (_value(seen, f"{seen.options.container}/{name}") for name in names)
    hidden = np.maximum((first - pixel * lift).sum(0) * pixel, 0)
    before = second - np.outer(hidden, bias)
    chances = softmax(hidden @ before, axis=0)
    no_image = slice(sum(LABELS), None)  # has these labels
    way = -float(bias[no_image].sum() / chances[no_image].sum()) if bias.any() else 0.0
    most = [(6 / sum(one.shape)) ** 0.5 for one in (first, second)]  # that a kernel is at first
    still = abs(first).max() <= most[0], not lift.any(), abs(second).max() <= most[1], not bias.any()
    back = (hidden > 0) * (before @ bias)
    plain = np.abs(lift - back).max() <= NEAR * np.abs(back).max()
    if pixel:
        return Undone(way, chances * 0, [name for name, one in zip(names, still) if one], bool(plain))
    return Undone(way, bias / (way or 1) + chances * (way != 0), (), bool(plain))  # black images move biases alone


def turns(seen: Seen) -> int:
    """In how many steps each batch was taken: a factor of all numbers of images with the same mark.

    Small steps move the hidden layer's biases, which began with 0, by a sum over the images: 64 numbers make 500.
    """
    names = "hidden/kernel", "hidden/bias", "logits/kernel"
    first, lift, second = (_value(seen, f"{seen.options.container}/{name}") for name in names)
    hidden = np.maximum(first, 0)  # of each mark
    back = (hidden > 0) * ((softmax(hidden @ second) - np.eye(10)[MARK]) @ second.T)
    counts = np.linalg.lstsq(back.T, lift * -BATCH / seen.options.rate)[0]
    return math.gcd(*(round(one) for one in counts))


def _options(random: Random, **given: Any) -> dict[str, Any]:
    """A short command line."""
    task, number = random.randrange(3), random.randrange(100)
    there = {"device": f"/job:worker/task:{task}/cpu:0", "container": f"net{number}"}
    return {**there, "hidden": random.randint(16, 30), "rate": 0.1, "steps": 2, **given}


# -- what is checked -----------------------------------------------------------------------------------------


@q1.check("The net is where --server and --device say", points=2, seconds=2)
def placed(answer: Any, random: Random) -> None:
    task = random.randint(1, 2)
    with Cluster(clock="virtual", worker=3) as cluster:
        wanted = f"/job:worker/task:{task}/cpu:0"
        options = _options(random, device=wanted, server=cluster.target_of("worker", random.choice((0, 3 - task))))
        seen = run(answer, cluster, Nodes(), **options)
    if stray := [one for one in seen.held if not one.device.endswith(f"task:{task}/device:CPU:0")]:
        raise Wrong(f"With --device={wanted}, variable '{stray[0].name}' is on {stray[0].device}.", seen)
    if away := [device for device in seen.products if not device.endswith(f"task:{task}/device:CPU:0")]:
        raise Wrong(f"With --device={wanted}, {away[0]} computes.", seen._replace(away=True))


@q1.check("Two programs with containers of their own do not meet", points=2, seconds=3)
def contained(answer: Any, random: Random) -> None:
    with Cluster(clock="virtual", worker=3) as cluster:
        first = run(answer, cluster, **_options(random, container="left"))
        second = run(answer, cluster, turned=True, **_options(random, container="right"))
        if stray := [one for one in second.held if one.container not in ("left", "right")]:
            observed = f"Variable '{stray[0].name}' is in container '{stray[0].container}'; expected: left and right"
            raise Wrong(f"{observed}.", second)
        Session.reset(cluster.target, ["right"])
        left = {one.name for one in cluster.variables()}
        if left != {one.name for one in first.held}:
            raise Wrong("After container 'right' was reset, the net of container 'left' is not what it was.", second)


@q1.check("--hidden, --rate and --steps are obeyed, with batches of 32 training images", points=3, seconds=4)
def obeyed(answer: Any, random: Random) -> None:
    fewer, more, narrow, wide = random.randint(20, 30), random.randint(61, 65), random.randint(16, 22), 24
    idle = _options(random, container="idle", rate=1e-9, steps=fewer, hidden=wide)
    busy = _options(random, container="busy", rate=random.choice((0.4, 0.5)), steps=more, hidden=narrow)
    every = [(idle, None), (busy, Nodes()), ({**busy, "container": "long", "steps": MANY, "rate": 0.2}, None)]
    ways = {"fast": (random.uniform(0.22, 0.28), 1, 0.0), "patient": (3e-5, 30, 0.0)}
    ways |= {"slow": (random.uniform(0.02, 0.045), 1, PIXEL), "strong": (random.uniform(4, 5), 1, PIXEL)}
    paced = []
    with Cluster(clock="virtual", worker=3, seed=random.randrange(1000)) as cluster:
        runs = [run(answer, cluster, nodes, **options) for options, nodes in every]
        for seen in runs:
            _demand_shape(seen._replace(runs=runs))
        for name, (rate, steps, pixel) in ways.items():
            with other_digits(alike(pixel)):
                seen = run(answer, cluster, **_options(random, container=name, rate=rate, steps=steps, hidden=WIDE))
            _demand_shape(seen)
            paced.append(seen._replace(undone=undo(seen, pixel)))
        for seen in paced:
            _demand_plain(seen._replace(paced=paced))
        with other_digits(marked):
            seen = run(answer, cluster, **_options(random, container="marked", rate=3e-5, steps=30, hidden=WIDE))
        if (times := turns(seen)) > 1:
            observed = f"In {seen.options.steps} steps, each batch was taken {times} times"
            raise Wrong(f"{observed}; expected: a new one for each step.", seen._replace(turns=times))
    for seen in runs:
        _demand_learning(seen._replace(runs=runs))


def _demand_shape(seen: Seen) -> None:
    """Wrong unless the net has the width of the command line, and was trained for as many steps, with 32 images."""
    kernel, options = seen.variable("hidden/kernel"), seen.options
    if kernel and kernel.shape[1] != options.hidden:
        message = f"With --hidden={options.hidden} the net has {plural(kernel.shape[1], 'hidden unit')}."
        raise Wrong(message, seen)
    if seen.steps != options.steps:
        raise Wrong(f"With --steps={options.steps} the global step of the container is {seen.steps}.", seen)
    if slots := [one.name for one in seen.held if seen.mine(one) and _SLOT.search(one.name)]:
        message = f"The optimizer keeps variables of its own, '{slots[0]}'; a GradientDescentOptimizer has none."
        raise Wrong(message, seen._replace(slots=slots))
    if seen.batch not in (0, BATCH):
        raise Wrong(f"A step of training takes {plural(seen.batch, 'image')}; expected: {BATCH}.", seen)


def _demand_learning(seen: Seen) -> None:
    """Wrong unless the net has learned as much as its rate and its steps allow."""
    options, known = seen.options, seen.train or 0.0
    if (known > LEARNED) != (options.rate > 0.1):
        observed = f"after {options.steps} steps the net {'knows' if known > LEARNED else 'does not know'} half of"
        raise Wrong(f"With --rate={options.rate:g}, {observed} the training images.", seen)
    if options.steps >= MANY and known < MOST:
        observed = f"after {options.steps} steps the net is right on {known:.0%} of the training images"
        raise Wrong(f"With --rate={options.rate:g}, {observed}; expected: over {MOST:.0%}.", seen)


def _demand_plain(seen: Seen) -> None:
    """Wrong unless the steps are those of gradient descent on the mean cross entropy of training images."""
    undone = seen.undone
    if any(undone.others):
        part = ("validation", "test")[int(np.argmax(undone.others))]
        raise Wrong(f"Of the images of a step, {max(undone.others):.0%} are {part} images; expected: none.", seen)
    if frozen := seen.paced[-1].undone.frozen:
        observed = f"After training, variable '{frozen[0]}' of the net is as it was initialized"
        raise Wrong(f"{observed}; expected: all of them are trained.", seen)
    did = f"With --rate={seen.options.rate:.3g}, {plural(seen.options.steps, 'step')}"
    if not (undone.plain and _near(seen.pace, 1)):
        far = f"{seen.pace:.3g} times as far as" if undone.plain else "in other proportions than"
        raise Wrong(f"{did} moved the net {far} gradient descent on the mean cross entropy does.", seen)


def _near(one: float, other: float) -> bool:
    return abs(one - other) <= NEAR * abs(other)


@q1.check("train_net returns the share of right answers on the validation images", points=2, seconds=3)
def validated(answer: Any, random: Random) -> None:
    with Cluster(clock="virtual", worker=3, seed=random.randrange(1000)) as cluster:
        ways = {"steps": 20, "rate": 0.3}, {"steps": 3, "rate": 0.3}, WILD
        every = [_options(random, container=f"net{way['steps']}", **way) for way in ways]
        tried = [run(answer, cluster, **options) for options in every]
    for seen in tried:
        _demand_value(seen._replace(tried=tried))


def _demand_value(seen: Seen) -> None:
    """Wrong unless the program returned what the net that it left is worth."""
    if seen.validation is not None and abs(seen.value - seen.validation) > 0.002:
        observed = f"The net that the program left is right on {seen.validation:.1%} of the validation images"
        raise Wrong(f"{observed}; train_net returned {seen.value:.3f}.", seen)


@q1.check("Two processes run it at the same time, and their nets stay", points=1, seconds=8)
def processes(answer: Any, random: Random) -> None:
    with Cluster(clock="virtual", worker=3) as cluster:  # what fails here need not be started
        given = _options(random, device="/job:worker/task:2/cpu:0", rate=0.4, steps=40)
        seen = run(answer, cluster, Nodes(), **given)
        _demand_shape(seen._replace(runs=[seen]))
        _demand_value(seen)
        _demand_value(run(answer, cluster, **_options(random, container="wild", **WILD)))
    with Cluster(worker=2, listen=True) as cluster:
        every = [
            Options(cluster.target, **_options(random, device=f"/job:worker/task:{i}/cpu:0", container=f"net{i}"))
            for i in range(2)
        ]
        ended = run_side_by_side(program_of(answer), [options.argv for options in every], SECONDS)
        for options, process in zip(every, ended):
            if process.status:
                last = process.errors.strip().split("\n")[-1]
                raise Wrong(f"A process of the program ended with status {process.status}: {last}")
            value = float(process.output.strip().split("\n")[-1])
            _demand_value(_looked_at(cluster, Seen(options, value, cluster.variables())))


# -- mistakes ------------------------------------------------------------------------------------------------


@q1.mistake()
def builds_in_the_callers_graph(seen: Seen) -> bool:
    """The ops are in the default graph of the caller, whatever that holds, and a second call finds those of the first.
    Make a graph for each call: with tf.Graph().as_default()."""
    return seen.callers_graph


@q1.mistake()
def takes_another_optimizer(seen: Seen) -> bool:
    """The optimizer is another one: it keeps variables of its own for each variable of the net. The rate is that of a
    tf.train.GradientDescentOptimizer."""
    return bool(seen.slots)


@q1.mistake()
def computes_elsewhere(seen: Seen) -> bool:
    """The variables are on the device of the command line, and the net computes on another one, to which they travel in
    each step. `with tf.device(options.device):` around the whole graph."""
    return seen.away


@q1.mistake()
def trains_at_home(seen: Seen) -> bool:
    """The cluster holds nothing of the net: it was trained in a session of its own. tf.Session(options.server) is a
    session on the cluster."""
    return not seen.held


@q1.mistake()
def default_container(seen: Seen) -> bool:
    """The variables are in the default container, which all programs share: two of them with equal names are one
    variable. `with tf.container(options.container):` around the whole graph."""
    return any(one.container == DEFAULT_CONTAINER for one in seen.held)


@q1.mistake()
def ignores_the_device(seen: Seen) -> bool:
    """The net is not on the device of the command line. `with tf.device(options.device):` around the whole graph, the
    variables too."""
    wanted = device_spec.parse(seen.options.device)
    return any(device_spec.parse(one.device).task != wanted.task for one in seen.held if seen.mine(one))


@q1.mistake()
def calls_it_otherwise(seen: Seen) -> bool:
    """The net's variables are in the container, but under another name than the container's. Other programs find them
    by that name: net(images, options.hidden, options.container)."""
    kernels = [one for one in seen.held if seen.mine(one) and one.name.endswith("hidden/kernel")]
    return bool(kernels) and seen.variable("hidden/kernel") is None


@q1.mistake()
def returns_no_share(seen: Seen) -> bool:
    """That is the number of right answers, or their share in percent, not a number from 0 to 1. Return the share as it
    is: the mean of a 1 for each right answer and a 0 for each wrong one."""
    if seen.value <= 1 or seen.validation is None:
        return False
    return any(abs(seen.value / most - seen.validation) < 0.002 for most in (100, len(digits().validation.labels)))


@q1.mistake()
def counts_no_steps(seen: Seen) -> bool:
    """The steps are not counted in the container. Make the global step, tf.train.get_or_create_global_step(), inside of
    the `with` blocks, and give it to minimize."""
    return bool(seen.runs) and not any(one.steps for one in seen.runs)


@q1.mistake()
def miscounts_the_steps(seen: Seen) -> bool:
    """There is a step too many, or too few. range(options.steps) runs as many as are asked for; and one more is run
    where the step is fetched to try the net out."""
    return bool(seen.runs) and {abs((one.steps or 0) - one.options.steps) for one in seen.runs} == {1}


@q1.mistake()
def reports_training(seen: Seen) -> bool:
    """That is the share on the training images, which the net has seen. To choose between nets, ask for images that
    none was trained on: digits.validation."""
    return _is_share(seen, lambda one: one.train)


@q1.mistake()
def reports_test(seen: Seen) -> bool:
    """That is the share on the test images. They are kept for the very end: if nets are chosen by them, none are left
    for an honest test. Report digits.validation."""
    return _is_share(seen, lambda one: one.test)


@q1.mistake()
def reports_errors(seen: Seen) -> bool:
    """That is the share of wrong answers. The share of right ones is 1 minus that."""
    return _is_share(seen, lambda one: 1 - (one.validation or 0.0))


def _is_share(seen: Seen, share: Callable[[Seen], float | None]) -> bool:
    """Whether that share was returned each time, and at least once no other one, which may be equal by chance."""
    if seen.runs or seen.train is None:
        return False
    tried = seen.tried or [seen]
    alike = [[other for other in _shares(one) if abs(one.value - other) < ROUNDED] for one in tried]
    return all(share(one) in equal for one, equal in zip(tried, alike)) and any(len(set(equal)) == 1 for equal in alike)


def _shares(seen: Seen) -> list[float]:
    every = (seen.train, seen.validation, seen.test)
    return [one for one in every if one is not None] + [1 - (seen.validation or 0.0)]


@q1.mistake()
def tries_too_early(seen: Seen) -> bool:
    """The net was tried out before it was trained. Run the share of right answers after the last step."""
    return not seen.runs and seen.validation is not None and 0 < seen.value < min(0.3, seen.validation - 0.2)


@q1.mistake()
def updates_no_metric(seen: Seen) -> bool:
    """Nothing was counted: the share is 0, and the net knows many images. tf.metrics.accuracy makes a value and an op
    that updates it; run that op with the images, or take tf.reduce_mean of the right answers."""
    return not seen.runs and seen.value == 0 and (seen.validation or 0) > 0.2


@q1.mistake()
def trains_on_other_images(seen: Seen) -> bool:
    """The net was trained on images that are kept to try it out, so the share that it then returns tests nothing. Take
    batches of digits.train."""
    return any(any(one.undone.others) for one in seen.paced)


@q1.mistake()
def repeats_one_batch(seen: Seen) -> bool:
    """Steps have the batch of other steps, so the net was given fewer images. Take the next one in each turn of the
    loop, digits.train.next_batch(32)."""
    return seen.turns > 1


def _exact(seen: Seen) -> list[bool]:
    """Say of each run with images that are alike whether it went as far as the rate says, and the right way."""
    return [one.undone.plain and _near(one.pace, 1) for one in seen.paced]


@q1.mistake()
def other_batches(seen: Seen) -> bool:
    """The batches do not have the size that the exercise asks for. It is 32 images: digits.train.next_batch(32)."""
    obeys = [one for one in seen.runs if one.steps == one.options.steps]
    return len(obeys) == len(seen.runs) > 0 and seen.batch not in (0, BATCH)


@q1.mistake()
def own_numbers(seen: Seen) -> bool:
    """A number of the command line is not used: it changed, and nothing else did. Look where options.hidden,
    options.rate and options.steps should stand."""
    widths = [kernel.shape[1] for one in seen.runs if (kernel := one.variable("hidden/kernel"))]
    if seen.paced:
        return _near(seen.paced[0].undone.way, seen.paced[2].undone.way) and not seen.paced[2].undone.frozen
    return len(seen.runs) > 1 and 1 in (len({*widths}), len({one.steps for one in seen.runs}))


@q1.mistake()
def trains_a_part(seen: Seen) -> bool:
    """Some variables of the net are not trained. Without a list of variables, minimize(loss, step) changes all of
    them."""
    return any(0 < len(one.undone.frozen) < 4 for one in seen.paced[-1:])


@q1.mistake()
def lets_the_rate_fall(seen: Seen) -> bool:
    """The first step obeys the rate, and later ones are shorter: the rate falls. Give a GradientDescentOptimizer the
    same rate in all steps, options.rate as it is."""
    return _exact(seen) == [True, False, True, True] and seen.paced[1].pace < 1


@q1.mistake()
def multiplies_the_loss(seen: Seen) -> bool:
    """All steps are too long, or too short, by one factor: the loss has it, or the rate. Take the mean of the batch's
    cross entropies, not their sum, and options.rate as it is."""
    paces = [one.pace for one in seen.paced[:3]]  # the last one may be too far to be undone
    return bool(paces) and paces[0] > 0 and not _near(paces[0], 1) and all(_near(one, paces[0]) for one in paces)


@q1.mistake()
def changes_the_gradient(seen: Seen) -> bool:
    """The gradient is not that of the cross entropy alone: it is clipped, or the loss has another term, such as a
    penalty on large weights. Give minimize the mean cross entropy and nothing else."""
    return _exact(seen)[:2] == [True, True] and not all(_exact(seen))
