"""The second question on queues, queues/q2: jobs that need two tokens each and must not deadlock.

An answer makes the ops of a job. The checks run jobs in a circle in one step; and a job whose second token is missing,
to see what it holds meanwhile. No deadlock can arise if no two tokens are ever waited for in opposite orders.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from random import Random
from typing import Any, NamedTuple

import numpy as np

from dtflab.grading.device_functions import shown
from dtflab.grading.questions import Wrong, from_toml
from dtflab.grading.simulated import Stage, stage
from dtflab.graph import dtypes
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import control_dependencies
from dtflab.ops.arrays.functions import stack
from dtflab.ops.queues.functions import FIFOQueue
from dtflab.virtual.deadlock import DeadlockError

q2 = from_toml(__file__)


# -- jobs at work --------------------------------------------------------------------------------------------


class Seen(NamedTuple):
    """The evidence: what jobs did."""

    sizes: Sequence[int] = ()  # tokens in each queue, after a job
    tokens: Sequence[int] = ()  # that were in the queues then, by queue
    times: int = 1  # that its work ran
    during: Sequence[int] = ()  # tokens of a job's own queues while it worked
    jobs: Sequence[tuple[int, int]] = ()
    held: Sequence[tuple[int, int]] = ()  # (a, b): token a is held by one of these jobs that waits for b
    twice: bool = False  # a job runs if one of its queues has two tokens, and the other none
    others: bool = False  # a job runs if all tokens are there, and waits if only its own two are
    behind: bool = False  # a job waits while another one does that needs other tokens, and runs if it is alone


def token(number: int) -> int:
    """The value of the token that is in a queue at first: what comes back is known by it."""
    return 10 * number + 7


class Shop:
    """Queues with a token each, and jobs that need two of them."""

    def __init__(self, on: Stage, count: int) -> None:
        self.on = on
        self.tokens = [FIFOQueue(2, [dtypes.int32], shapes=[[]], name=f"gpu{number}") for number in range(count)]
        self.fill = [queue.enqueue(token(number)) for number, queue in enumerate(self.tokens)]
        self.sizes = [queue.size() for queue in self.tokens]
        self.one_each = [queue.dequeue() for queue in self.tokens]
        self.worked = FIFOQueue(1000, [dtypes.int32], shapes=[[]], name="worked")  # an element per run of work()
        self.times = self.worked.size()

    def job(self, answer: Any, i: int, j: int) -> Any:
        """The tensor of a job; what it gives is how many tokens its queues had while it worked."""

        def work() -> Tensor:
            with control_dependencies([self.worked.enqueue(0)]):
                return stack([self.tokens[i].size(), self.tokens[j].size()])

        made = answer(list(self.tokens), i, j, work)
        if not isinstance(made, Tensor):
            raise Wrong(f"A tensor with the value of work() is expected, not {shown(made)}.")
        return made

    def put(self, numbers: Sequence[int]) -> None:
        self.on.session.run([self.fill[number] for number in numbers])

    def run(self, jobs: Sequence[Any]) -> list[Any] | None:
        """The results of jobs that run at the same time; None if they wait forever."""
        try:
            values: list[Any] = self.on.session.run(list(jobs))
        except DeadlockError:
            return None
        return values

    def left(self) -> list[int]:
        """Tokens in each queue."""
        return [int(size) for size in self.on.session.run(self.sizes)]


def runs_with(answer: Any, i: int, j: int, tokens: Sequence[int]) -> bool:
    """Whether a job that needs tokens i and j runs if these are there."""
    with stage(worker=1) as on:
        shop = Shop(on, 4)
        for number in tokens:  # of one queue there may be two
            shop.put([number])
        return shop.run([shop.job(answer, i, j)]) is not None


def why_it_waits(answer: Any, i: int, j: int) -> Seen:
    twice = any(runs_with(answer, i, j, [number, number]) for number in (i, j))
    return Seen(twice=twice, others=runs_with(answer, i, j, range(4)) and not runs_with(answer, i, j, [i, j]))


def holds(answer: Any, i: int, j: int, missing: int, may_work: bool = True) -> bool:
    """Whether a job that needs tokens i and j holds the other one while one is missing; Wrong if it ends."""
    with stage(worker=1) as on:
        shop = Shop(on, 4)
        other = j if missing == i else i
        shop.put([other])
        if shop.run([shop.job(answer, i, j)]) is not None or (not may_work and shop.on.session.run(shop.times)):
            message = f"A job for GPUs {i} and {j} ran though the token of GPU {missing} was missing."
            raise Wrong(message, Seen(during=(1, 0)))
        return shop.left()[other] == 0


def demand_tokens(answer: Any, i: int, j: int) -> None:
    """Wrong unless a job that is alone works once while it holds both tokens, and gives both back as they were."""
    with stage(worker=1) as on:
        shop = Shop(on, 3)
        one = shop.job(answer, i, j)
        shop.put(range(3))
        values = shop.run([one])
        sizes = shop.left()
        if values is None:
            raise Wrong(f"A job for GPUs {i} and {j} waits forever, though it is alone.", why_it_waits(answer, i, j))
        if np.shape(values[0]) != (2,):
            raise Wrong(f"The tensor of a job has the value of work(); this one is {shown(values[0])}.")
        during = [int(size) for size in values[0]]
        if during != [0, 0]:
            observed = f"While a job for GPUs {i} and {j} worked, their queues had {during} tokens; expected: none"
            raise Wrong(f"{observed}: [0, 0].", Seen(sizes=sizes, during=during))
        if sizes != [1, 1, 1]:
            message = f"After a job for GPUs {i} and {j} the queues have {sizes} tokens; expected: one each."
            raise Wrong(message, Seen(sizes=sizes))
        times = int(on.session.run(shop.times))
        tokens = [int(one) for one in on.session.run(shop.one_each)]
        if tokens != (expected := [token(number) for number in range(3)]):
            message = f"After a job for GPUs {i} and {j} the queues have the tokens {tokens}; expected: {expected}."
            raise Wrong(message, Seen(sizes, tokens, jobs=[(i, j)]))
        if times != 1:
            raise Wrong(f"A job for GPUs {i} and {j} did its work {times} times; expected: once.", Seen(times=times))


def what_they_hold(answer: Any, random: Random) -> Seen:
    """The tokens that each job of three GPUs holds while one of its tokens is missing."""
    jobs = list(permutations(random.sample(range(4), 3), 2))
    held = [(i if missing == j else j, missing) for i, j in jobs for missing in (i, j) if holds(answer, i, j, missing)]
    return Seen(jobs=jobs, held=held)


def demand_one_order(seen: Seen) -> None:
    """Wrong if two jobs can each hold the token that the other waits for, in some order of events."""
    for a, b in seen.held:
        if (b, a) in seen.held:
            order = f"One job may hold GPU {a} and wait for {b}, while another holds {b} and waits for {a}"
            raise Wrong(f"{order}: each forever.", seen)


def circles(random: Random) -> Iterator[list[tuple[int, int]]]:
    """Pairs of numbers, each of which is in two of them."""
    for count in (3, random.randint(4, 5)):
        ring = random.sample(range(count), count)
        yield [(one, ring[(k + 1) % count]) for k, one in enumerate(ring)]


# -- what is checked -----------------------------------------------------------------------------------------


@q2.check("No jobs in a circle wait for each other, in whatever order they get tokens", points=5)
def circle(answer: Any, random: Random) -> None:
    """Only a circle in which nobody works has the wrong order: else a token was not given back (`held_meanwhile`)."""
    if not runs_with(answer, 0, 1, range(4)):
        raise Wrong("A job for GPUs 0 and 1 waits forever, though it is alone.", why_it_waits(answer, 0, 1))
    seen = what_they_hold(answer, random)
    for pairs in circles(random):
        with stage(worker=1) as on:
            shop = Shop(on, len(pairs))
            jobs = [shop.job(answer, i, j) for i, j in pairs]
            shop.put(range(len(pairs)))
            if shop.run(jobs) is None and not on.session.run(shop.times):
                named = ", ".join(f"{i} and {j}" for i, j in pairs)
                raise Wrong(f"Jobs for GPUs {named}, started together: all wait forever.", seen)
    demand_one_order(seen)


@q2.check("A job works while it holds both tokens, and gives each back to its own queue", points=3)
def held_meanwhile(answer: Any, random: Random) -> None:
    for jobs in ([(0, 1), (0, 2)], [(2, 1), (1, 0)]):  # the lower number first, and last
        i, j = random.choice(jobs)
        demand_tokens(answer, i, j)
        for missing in (i, j):
            holds(answer, i, j, missing, may_work=False)


@q2.check("A job that waits stops no job that needs other GPUs", points=2)
def others_go_on(answer: Any, random: Random) -> None:
    with stage(worker=1) as on:
        shop = Shop(on, 4)
        shop.put([0, 2, 3])
        jobs = [shop.job(answer, 0, 1), shop.job(answer, 3, 2)]
        if shop.run([jobs[0]]) is not None:
            raise Wrong("A job for GPUs 0 and 1 ran though the token of GPU 1 was missing.", Seen(during=(1, 0)))
        if shop.run([jobs[1]]) is None:
            message = "While a job waits for GPU 1, a job for GPUs 2 and 3 does not run."
            seen = why_it_waits(answer, 3, 2)
            raise Wrong(message, seen._replace(behind=runs_with(answer, 3, 2, [3, 2])))
    for i, j in ((0, 3), (2, 0)):  # others lie in between
        if not runs_with(answer, i, j, [i, j]):
            message = f"A job for GPUs {i} and {j} waits, though both tokens are there; only those of others are not."
            raise Wrong(message, why_it_waits(answer, i, j))


# -- mistakes ------------------------------------------------------------------------------------------------


@q2.mistake()
def works_without(seen: Seen) -> bool:
    """A job works without both tokens: either it begins before it has them, or it gives them back before it has ended.
    Each stage needs tf.control_dependencies of the one before."""
    return any(seen.during)


@q2.mistake()
def keeps_a_token(seen: Seen) -> bool:
    """A token is not given back, so the next job waits forever. Enqueue both of them after the work; and let the tensor
    that you return wait for that, under tf.control_dependencies of both enqueues, or nobody runs them."""
    return len(seen.sizes) == 3 and sum(seen.sizes) < 3


@q2.mistake()
def swaps_the_tokens(seen: Seen) -> bool:
    """Each of the two tokens is in the queue of the other one now. A token goes back to the queue it was taken from:
    tokens[i].enqueue(one), if one = tokens[i].dequeue()."""
    found, jobs = seen.tokens, seen.jobs
    return bool(found) and all((found[i], found[j]) == (token(j), token(i)) for i, j in jobs)


@q2.mistake()
def works_twice(seen: Seen) -> bool:
    """A job does its work more than once: each call of work() makes ops of its own. Call it once, and keep what it
    returns."""
    return seen.times > 1


@q2.mistake()
def makes_other_tokens(seen: Seen) -> bool:
    """A value was put back that is not the token that was taken. Keep what dequeue() gives, and enqueue that."""
    return bool(seen.tokens) and sorted(seen.tokens) != [token(number) for number in range(3)]


@q2.mistake()
def gives_both_to_one(seen: Seen) -> bool:
    """Both tokens were put into one queue, so the other one has none. Each goes back to the queue that it was taken
    from."""
    return len(seen.sizes) == 3 and sum(seen.sizes) == 3 and max(seen.sizes) == 2


@q2.mistake()
def takes_one_twice(seen: Seen) -> bool:
    """Both tokens are taken from one queue, which has only one, so the second never comes. One dequeue is of tokens[i],
    the other of tokens[j]."""
    return seen.twice


@q2.mistake()
def takes_those_of_others(seen: Seen) -> bool:
    """A job takes tokens of GPUs that it does not need, and waits while another job has one of them. Take those of i
    and j only: one order for all is enough."""
    return seen.others


@q2.mistake()
def waits_for_other_jobs(seen: Seen) -> bool:
    """A job waits until another one is done that needs other GPUs: for the job made before it, or for a lock that all
    take. Tokens that all jobs take in one order are enough."""
    return seen.behind


@q2.mistake()
def orders_some_only(seen: Seen) -> bool:
    """Some pairs of tokens are taken in one order by all jobs, and with others it depends on the job. The order must
    decide between any two tokens: their numbers do."""
    ways = set(seen.held)
    both = {(a, b) for a, b in ways if (b, a) in ways}
    return len(seen.held) == len(seen.jobs) and both < ways and bool(both)


@q2.mistake()
def takes_as_named(seen: Seen) -> bool:
    """Each job takes the tokens in the order in which it names them, and waits for the other: in a circle, all have one
    and nobody has two. All jobs must take tokens in one order, for example by their numbers."""
    return bool(seen.held) and sorted(seen.held) in (sorted(seen.jobs), sorted((j, i) for i, j in seen.jobs))


@q2.mistake()
def takes_both_at_once(seen: Seen) -> bool:
    """Both tokens are taken at the same time, in whatever order they come: that goes well until two jobs get one each.
    The second dequeue must wait for the first: tf.control_dependencies."""
    return bool(seen.held) and sorted(seen.held) == sorted([*seen.jobs, *((j, i) for i, j in seen.jobs)])
