"""The third question on data parallelism, data/q3: a ring all-reduce as a graph.

An answer builds a graph over several tasks. The checks run it in virtual time, compare each task's result with the sum,
and count the bytes that each task has sent and received: a ring needs 2(n−1)/n of a tensor, whatever n is. The tensors
are drawn, so what a device has of a part tells how often each of them was added to it; mistakes are known by that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np

from dtflab.grading.device_functions import shown
from dtflab.grading.questions import Wrong, from_toml
from dtflab.grading.simulated import PYTHON, Stage, stage
from dtflab.grading.unaided import by_itself
from dtflab.graph.convert import constant
from dtflab.graph.device_spec import label, parse
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import device
from dtflab.viz.drawing.picture import Picture
from dtflab.viz.drawing.units import byte_size
from dtflab.viz.loads import loads

CALL = 200  # bytes of a call between tasks

q3 = from_toml(__file__)


# -- a step --------------------------------------------------------------------------------------------------


class Seen(NamedTuple):
    """The results of a step and the bytes that passed: the evidence."""

    tensors: Sequence[Any]
    values: Sequence[Any]  # one for each device
    places: Sequence[str]  # of the results
    asked: Sequence[str]  # the devices
    passed: Mapping[tuple[int, int], int]  # bytes from a task to another
    largest: int  # message
    library: bool = False  # made the graph
    python: bool = False  # a function of it runs in the graph

    @property
    def number(self) -> int:
        return len(self.tensors)

    @property
    def nbytes(self) -> int:
        """Bytes of a tensor."""
        return int(self.tensors[0].nbytes)

    @property
    def bound(self) -> int:
        """Bytes that a device sends, and receives, in a ring."""
        return 2 * (self.number - 1) * self.nbytes // self.number

    def load(self, end: int) -> list[int]:
        """Bytes that each task has sent (0) or received (1)."""
        return [sum(count for pair, count in self.passed.items() if pair[end] == i) for i in range(self.number)]

    @property
    def all_passed(self) -> int:
        """Bytes between all devices."""
        return sum(self.passed.values())

    @property
    def least(self) -> int:
        """Bytes between all devices that a sum on each of them takes at least.

        Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.
        """
        return self.number * self.bound

    @property
    def counts(self) -> list[list[list[float]]]:
        """How often each tensor is in each part of each result; [] where that is not a sum of them."""
        return [[self._counts(value, part) for part in range(self.number)] for value in self.values]

    def _counts(self, value: Any, part: int) -> list[float]:
        if np.shape(value) != self.tensors[0].shape:
            return []
        got = np.split(value, self.number)[part]
        parts = np.stack([np.split(tensor, self.number)[part] for tensor in self.tensors], axis=1)
        times, *_ = np.linalg.lstsq(parts.astype(float), got, rcond=None)
        return [round(float(one), 3) for one in times] if np.allclose(parts @ times, got, atol=0.01) else []

    @property
    def total(self) -> Any:
        return np.sum(self.tensors, axis=0)

    @property
    def finished(self) -> list[int]:
        """How many parts of each result are those of the sum."""
        return [sum(part == [1] * self.number for part in parts) for parts in self.counts]

    @property
    def right(self) -> bool:
        """Whether each device has the sum."""
        at_home = [*map(label, self.places)] == [*map(label, self.asked)]
        return at_home and all(np.array_equal(value, self.total) for value in self.values)

    @property
    def ring(self) -> bool:
        """Whether each task sends to one other task at most."""
        return all(len({j for i, j in self.passed if i == task}) <= 1 for task in range(self.number))


def devices_of(number: int) -> list[str]:
    return [f"/job:worker/task:{i}/cpu:0" for i in range(number)]


def drawn(random: Random, number: int) -> list[Any]:
    """A vector of whole numbers for each device; its length can be cut into as many parts."""
    length = number * random.randint(400, 600)
    numbers = np.random.RandomState(random.randrange(2**31))
    return [numbers.randint(-99, 100, size=length).astype(np.float32) for _ in range(number)]


def run(answer: Any, tensors: Sequence[Any], places: Sequence[str]) -> Seen:
    """Build the answer's graph over these devices, and run a step. Wrong unless there is a tensor for each."""
    number = len(tensors)
    nothing = Seen(tensors, (), (), places, {}, 0)._replace  # was computed
    with stage(worker=number) as on:
        given = []
        for place, tensor in zip(places, tensors):
            with device(place):
                given.append(constant(tensor))
        try:
            made = by_itself(answer, list(given), list(places))
        except Wrong as error:
            raise Wrong(str(error), nothing(library=True)) from None
        if not isinstance(made, list | tuple) or len(made) != number or not all(isinstance(t, Tensor) for t in made):
            raise Wrong(f"{number} tensors, one for each device, are expected, not {shown(made)}.")
        if kinds := {op.type for op in on.graph.get_operations()}.intersection(PYTHON):
            message = f"The graph has {min(kinds)}, a function of Python; expected: ops, whose bytes can be counted."
            raise Wrong(message, nothing(python=True))
        on.session.run([tensor.op for tensor in made])
        passed, largest = _traffic(on, places)
        values = on.session.run(list(made))
        seen = Seen(tensors, values, [tensor.device for tensor in made], places, passed, largest)
        if bypasses_the_ring(seen):
            found = f"{byte_size(seen.all_passed)} passed between them; a sum takes {byte_size(seen.least)}"
            raise Wrong(f"Of {number} devices, each has the sum, but only {found}.", seen)
        return seen


def _traffic(on: Stage, places: Sequence[str]) -> tuple[Counter[tuple[int, int]], int]:
    """Bytes of tensors that went from place to place, and the largest of them."""
    passed, largest = Counter[tuple[int, int]](), 0
    number = {parse(place).task or 0: i for i, place in enumerate(places)}
    for line in on.cluster.log().lines:
        if line.nbytes > CALL:  # less is a call without a tensor
            passed[number[parse(line.where).task or 0], number[parse(line.target).task or 0]] += line.nbytes
            largest = max(largest, line.nbytes)
    return passed, largest


def _picture(seen: Seen) -> Picture:
    places = devices_of(seen.number)
    bound = dict.fromkeys(places, float(seen.bound))
    sent = {place: float(count) for place, count in zip(places, seen.load(0))}
    return loads(f"Bytes that each of {seen.number} tasks has sent", {"yours": sent, "a ring": bound})


# -- what is checked -----------------------------------------------------------------------------------------


@q3.check("Each device has the sum of all tensors", points=4)
def sums(answer: Any, random: Random) -> None:
    for number in (3, 2, random.choice((4, 5))):
        seen = run(answer, drawn(random, number), random.sample(devices_of(number), number))
        for i, (value, place) in enumerate(zip(seen.values, seen.asked)):
            total = seen.total
            if np.shape(value) != total.shape:
                found = f"{list(np.shape(value))}; expected: {list(total.shape)}"
                raise Wrong(f"Of {number} devices, the result of device {i} has shape {found}.", seen)
            if not np.array_equal(value, total):
                same = float(np.mean(value == total))
                raise Wrong(f"Of {number} devices, device {i} has the sum in {same:.0%} of its elements.", seen)
            if label(seen.places[i]) != label(place):
                found = f"is on {seen.places[i] or 'no device'}; expected: {place}"
                raise Wrong(f"Of {number} devices, the result of device {i} {found}.", seen)


@q3.check("No device sends or receives more than 2(n − 1)/n of a tensor", points=4)
def bytes_(answer: Any, random: Random) -> Picture:
    number = random.randint(4, 5)
    seen = run(answer, drawn(random, number), devices_of(number))
    most = max(*seen.load(0), *seen.load(1))
    if most > seen.bound:
        found = f"2(n − 1)/n of it are {byte_size(seen.bound)}; a device has sent or received {byte_size(most)}"
        raise Wrong(f"{seen.number} devices, tensors of {byte_size(seen.nbytes)}: {found}.", seen, _picture(seen))
    return _picture(seen)


@q3.check("Each device sends to one other device only, its neighbour", points=2)
def neighbours(answer: Any, random: Random) -> None:
    seen = run(answer, drawn(random, 4), devices_of(4))
    if not seen.ring or len(seen.passed) < seen.number:
        pairs = ", ".join(f"{i} → {j}" for i, j in sorted(seen.passed)) or "nowhere"
        raise Wrong(f"Tensors went {pairs}; expected: a ring through all 4 devices.", seen)


# -- mistakes ------------------------------------------------------------------------------------------------


@q3.mistake()
def leaves_it_to_the_library(seen: Seen) -> bool:
    """The library is asked for the sum, which is not allowed here. Write both rounds yourself, of tf.split, tf.add,
    tf.identity and tf.concat, each on its device."""
    return seen.library


@q3.mistake()
def runs_python(seen: Seen) -> bool:
    """A function of Python is in the graph, by which numbers reach another device unseen. Build the rounds of ops:
    tf.split, tf.add, tf.identity and tf.concat."""
    return seen.python


@q3.mistake()
def bypasses_the_ring(seen: Seen) -> bool:
    """The sums are right, but too little passed between the devices: the values were read while the graph was built, or
    sent as a smaller type. Let the step send the parts as they are, from op to op."""
    return seen.right and seen.all_passed < seen.least


@q3.mistake()
def results_in_one_place(seen: Seen) -> bool:
    """All results are on one device, so the parts travel there, too. Join the parts of a device on that device: with
    tf.device(device): tf.concat(…)."""
    return seen.number > 1 and len(set(map(label, seen.places))) == 1


@q3.mistake()
def results_elsewhere(seen: Seen) -> bool:
    """The sums are right, but they are on other devices than they should. Result i belongs on devices[i]: join its
    parts under tf.device(devices[i])."""
    right = all(np.array_equal(value, seen.total) for value in seen.values)
    return right and any(label(one) != label(other) for one, other in zip(seen.places, seen.asked))


@q3.mistake()
def sends_nothing(seen: Seen) -> bool:
    """Each device still has its own tensor only: nothing was sent to another one. An op under tf.device(…) of the next
    device, with a part of this one as its input, sends that part."""
    return not seen.passed and all(map(np.array_equal, seen.values, seen.tensors))


@q3.mistake()
def one_server(seen: Seen) -> bool:
    """All tensors were sent to one device, which added them and sent the sum back. Its link carries everything, while
    the others rest: that is a parameter server."""
    servers = [task for task in range(seen.number) if all(task in pair for pair in seen.passed)]
    return seen.number > 2 and bool(seen.passed) and len(servers) == 1


@q3.mistake()
def sends_whole_tensors(seen: Seen) -> bool:
    """Whole tensors travel. Cut each into n parts with tf.split; a device sends only one part at a time, and each part
    of the sum is made on another device."""
    return seen.largest >= seen.nbytes


@q3.mistake()
def takes_the_mean(seen: Seen) -> bool:
    """That is the mean of the tensors. Here the sum is asked for: leave out the division."""
    mean = [round(1 / seen.number, 3)] * seen.number
    return all(part == mean for parts in seen.counts for part in parts)


@q3.mistake()
def stops_half_way(seen: Seen) -> bool:
    """Each device has only a part of the sum: after the first round each has one part. A second round of n − 1 times
    sends the parts on, without adding."""
    half = max(seen.load(0)) <= seen.bound // 2 + 1
    return seen.number > 2 and set(seen.finished) == {1} and half and bool(seen.passed)


@q3.mistake()
def second_round_too_short(seen: Seen) -> bool:
    """Each device has some parts of the sum, but not all: the second round is too short. It takes n − 1 times, as the
    first one does."""
    some = set(seen.finished)
    return len(some) == 1 and some <= set(range(2, seen.number))


@q3.mistake()
def goes_round_once_too_often(seen: Seen) -> bool:
    """The sums are right, but a round is too long: parts travel back to a device that has them. Each of the two rounds
    takes n − 1 times, after which all have the part."""
    one_more = seen.bound + seen.nbytes // seen.number
    return seen.right and all(seen.bound < load <= one_more + 1 for load in (*seen.load(0), *seen.load(1)))


@q3.mistake()
def hands_out_its_own_part(seen: Seen) -> bool:
    """The second round hands out parts to which nothing was added: each device's own. Either the first round does not
    add, or the second begins elsewhere: after the first, device i has the whole of part (i + 1) % n."""
    own = [[float(i == part) for i in range(seen.number)] for part in range(seen.number)]
    return bool(seen.passed) and seen.number > 1 and all(parts == own for parts in seen.counts)


@q3.mistake()
def first_round_too_short(seen: Seen) -> bool:
    """No part of the sum is complete anywhere: the first round is too short. It takes n − 1 times until a part has
    been on every device."""
    counts = [count for parts in seen.counts for part in parts for count in part]
    return bool(seen.passed) and not any(seen.finished) and set(counts) == {0, 1} and not hands_out_its_own_part(seen)


@q3.mistake()
def joins_in_another_order(seen: Seen) -> bool:
    """All parts of the sum are there, but in another order. In a device's result, part 0 comes first, then part 1, and
    so on, whichever came first to the device."""
    if any(np.shape(value) != seen.total.shape for value in seen.values):
        return False
    parts = [sorted(part.tobytes() for part in np.split(value, seen.number)) for value in (seen.total, *seen.values)]
    return all(one == parts[0] for one in parts) and not any(np.array_equal(one, seen.total) for one in seen.values)


@q3.mistake()
def adds_at_the_sender(seen: Seen) -> bool:
    """In the first round each sum is made on the device that sends, so the parts of the next one travel to it, against
    the ring. Add on the device that receives: parts[next][c] + parts[i][c] under tf.device(devices[next])."""
    n = seen.number
    went = {pair: round(count * n / seen.nbytes) for pair, count in seen.passed.items()}
    ways = [{1: 2 * n - 3, -1: n - 1, 2: 1}, {-1: 2 * n - 3, 1: n - 1, -2: 1}]  # parts to the device that far away
    return any(went == {(i, (i + far) % n): count for i in range(n) for far, count in way.items()} for way in ways)


@q3.mistake()
def adds_again(seen: Seen) -> bool:
    """A tensor counts more than once in the sum: a part that had been added already was added again. In the second
    round take what comes, with tf.identity; it is not added any more."""
    counts = [count for parts in seen.counts for part in parts for count in part or [0]]
    return min(counts) >= 1 and max(counts) >= 2 and all(count == int(count) for count in counts)


@q3.mistake()
def meets_everybody(seen: Seen) -> bool:
    """The bytes are right, but some device sends to more than one other. In a ring each sends to its neighbour alone,
    in both rounds: the parts of a sum grow on their way round."""
    return not seen.ring and max(seen.load(0) + seen.load(1)) <= seen.bound + 1
