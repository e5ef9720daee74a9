"""The rule for links: its cases, its laws, and next to it packets that wait one by one in front of each link."""

from __future__ import annotations

import itertools
import random
from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple

import pytest

from dtflab.hardware.cut_through import pass_link
from dtflab.hardware.machines import machines_for
from dtflab.hardware.schedule import Task, simulate


class Sent(NamedTuple):
    """A message: the links that it takes, its size, and when it sets out."""

    way: tuple[int, ...]
    size: float
    moment: float = 0.0


def by_rule(messages: Sequence[Sent], rates: Sequence[float]) -> list[float]:
    """When each message has arrived."""
    free, arrived = [0.0] * len(rates), [0.0] * len(messages)
    for i in sorted(range(len(messages)), key=lambda i: messages[i].moment):
        start = end = messages[i].moment
        for link in messages[i].way:
            start, end, free[link] = pass_link(start, end, free[link], messages[i].size / rates[link])
        arrived[i] = end
    return arrived


def by_packets(messages: Sequence[Sent], rates: Sequence[float], packet: float = 0.01) -> list[float]:
    """The arrivals with packets: each link has a queue, serves one packet at a time, and hands on whole ones."""
    queues: list[deque[tuple[int, int]]] = [deque() for _ in rates]  # of (message, place on its way)
    left, arrived = [round(message.size / packet) for message in messages], [0.0] * len(messages)
    numbers = itertools.count()
    events = [(message.moment, next(numbers), i, -1) for i, message in enumerate(messages)]
    events.sort()

    def queue(now: float, i: int, place: int) -> None:
        link = messages[i].way[place]
        queues[link].append((i, place))
        if len(queues[link]) == 1:
            heappush(events, (now + packet / rates[link], next(numbers), i, place))

    while events:
        now, _, i, place = heappop(events)
        if place < 0:
            for _ in range(left[i]):
                queue(now, i, 0)
            continue
        link = messages[i].way[place]
        queues[link].popleft()
        if queues[link]:
            heappush(events, (now + packet / rates[link], next(numbers), *queues[link][0]))
        if place + 1 < len(messages[i].way):
            queue(now, i, place + 1)
        else:
            left[i] -= 1
            arrived[i] = now
    return arrived


# ---- cases ----

PUSH_TO_A_FAST_SERVER = [Sent((i, 10), 1.0) for i in range(10)], [1.0] * 10 + [10.0]
PULL_FROM_A_FAST_SERVER = [Sent((10, i), 1.0) for i in range(10)], [1.0] * 10 + [10.0]
BETWEEN_RACKS = [Sent((i, 16, 17, 8 + i), 1.0) for i in range(8)], [1.0] * 16 + [8.0, 8.0]
HALF_AN_UPLINK = BETWEEN_RACKS[0], [1.0] * 16 + [4.0, 4.0]
ONE_SLOW_OF_FOUR = [Sent((4, i), 1.0) for _ in range(3) for i in range(4)], [1.0, 1.0, 1.0, 0.1, 1.0]


@pytest.mark.parametrize(
    ("case", "seconds"),
    [
        (PUSH_TO_A_FAST_SERVER, 1.0),  # 1.9 if a link were taken until a message's last byte is through
        (PULL_FROM_A_FAST_SERVER, 1.9),  # the last begins when nine have left
        (BETWEEN_RACKS, 1.0),  # 2.75 then, and 1.875 if who comes last to an uplink began later on the links behind
        (HALF_AN_UPLINK, 2.0),
        (ONE_SLOW_OF_FOUR, 33.0),
    ],
)
def test_messages_arrive_when_the_packets_do(case, seconds):
    messages, rates = case
    assert max(by_rule(messages, rates)) == pytest.approx(seconds, rel=1e-12)
    assert max(by_packets(messages, rates)) == pytest.approx(seconds, rel=0.03)


def test_a_slow_sender_does_not_delay_the_others():
    """Four send one after the other to a fast server; the second one's message trickles in for 10 s."""
    messages = [Sent((i, 4), 1.0, 0.1 * i) for i in range(4)]
    rates = [1.0, 0.1, 1.0, 1.0, 10.0]
    rule = by_rule(messages, rates)
    assert rule == pytest.approx([1.0, 10.1, 1.2, 1.3])
    assert rule == pytest.approx(by_packets(messages, rates), rel=0.02)


def test_who_waits_longer_than_it_trickles_goes_on_later():
    """A message comes in for 4 s to a link that it passes in 1 s: it may wait there for 3 s, and not for 5."""
    assert pass_link(0.0, 4.0, 0.0, 1.0) == (0.0, 4.0, 1.0)
    assert pass_link(0.0, 4.0, 3.0, 1.0) == (0.0, 4.0, 4.0)
    assert pass_link(0.0, 4.0, 5.0, 1.0) == (2.0, 6.0, 6.0)
    assert pass_link(0.0, 0.5, 5.0, 1.0) == (5.0, 6.0, 6.0)  # one that comes faster than it passes waits in full


# ---- laws ----


def traffic(seed: int) -> tuple[list[Sent], list[float]]:
    """Messages between hosts in two racks, some of whose cards are faster or slower than others."""
    draw = random.Random(seed)
    hosts = draw.choice([4, 8, 12])
    cards = [draw.choice([1.0, 1.0, 1.0, 10.0, 0.2]) for _ in range(2 * hosts)]
    uplink = hosts / 2 * max(cards) / draw.choice([1, 2, 4])
    messages = []
    for _ in range(draw.randint(10, 30)):
        here, there = draw.sample(range(hosts), 2)
        between = () if (here < hosts / 2) == (there < hosts / 2) else (2 * hosts, 2 * hosts + 1)
        messages.append(Sent((here, *between, hosts + there), draw.choice([0.1, 0.5, 1.0, 2.0]), 5 * draw.random()))
    return messages, [*cards, uplink, uplink]


@pytest.mark.parametrize("seed", range(50))
def test_no_link_carries_more_than_it_can_and_none_is_held_by_others(seed):
    messages, rates = traffic(seed)
    messages.sort(key=lambda message: message.moment)
    free, passed = [0.0] * len(rates), [list[tuple[float, float, float]]() for _ in rates]
    for message in messages:
        start = end = message.moment
        for link in message.way:
            seconds, before = message.size / rates[link], (start, end)
            start, end, done = pass_link(start, end, free[link], seconds)
            assert start >= before[0] and end >= max(before[1], before[0] + seconds)
            assert done == max(free[link], before[0]) + seconds  # its own seconds, from when its head is there
            free[link] = done
            passed[link].append((start, end, seconds))
    for hops in passed:
        for first, (start, _, _) in enumerate(hops):
            work = itertools.accumulate(seconds for _, _, seconds in hops[first:])
            assert all(end >= start + most - 1e-9 for (_, end, _), most in zip(hops[first:], work, strict=True))


def test_random_messages_take_about_as_long_as_their_packets():
    """All messages agree, except that a link serves in the order of sending, packets in that of coming."""
    late, off = [], []
    for seed in range(40):
        messages, rates = traffic(seed)
        rule, packets = by_rule(messages, rates), by_packets(messages, rates, 0.02)
        late.append(max(rule) / max(packets) - 1)
        off += [abs(one - other) / (other - m.moment) for one, other, m in zip(rule, packets, messages, strict=True)]
    assert sorted(off)[len(off) // 2] < 0.03
    assert min(late) > -0.02 and sum(late) / len(late) < 0.05


def test_more_bandwidth_never_hurts_and_that_of_one_link_seldom():
    """A message that reaches a link earlier is ahead of others on the next. With packets, 25 of 100 draws delay one."""
    hurt = 0
    for seed in range(300):
        messages, rates = traffic(seed)
        link = random.Random(-seed).randrange(len(rates))
        faster = [2 * rate if i == link else rate for i, rate in enumerate(rates)]
        before, after = by_rule(messages, rates), by_rule(messages, faster)
        assert max(after) <= 1.06 * max(before)
        hurt += any(new > old + 1e-9 for new, old in zip(after, before, strict=True))
        all_faster = by_rule(messages, [1.5 * rate for rate in rates])
        assert all(new <= old + 1e-9 for new, old in zip(all_faster, before, strict=True))
    assert hurt < 0.1 * 300


# ---- on machines ----


def cpu(task: str, index: int) -> str:
    return f"/job:{task}/replica:0/task:{index}/device:CPU:0"


def makespan(senders: int, receiver, nbytes: int, **machines) -> float:
    """Seconds until every sender's message is where `receiver(sender)` says."""
    makes = [Task(f"make {i}", cpu("worker", i), 0.0, outputs=(nbytes,)) for i in range(senders)]
    takes = [Task(f"take {i}", receiver(i), 0.0, [(f"make {i}", 0)]) for i in range(senders)]
    return simulate([*makes, *takes], machines_for(**machines)).makespan


def test_ten_slow_workers_fill_a_fast_server():
    tasks = {f"/job:worker/task:{i}": f"w{i}" for i in range(10)} | {"/job:ps/task:0": "p"}
    nic = {"/job:ps": "10Gb/s", "": "1Gb/s"}
    assert makespan(10, lambda _: cpu("ps", 0), 125_000_000, tasks=tasks, nic=nic) == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize("pairs", [2, 8])
def test_racks_without_oversubscription_delay_nobody(pairs):
    tasks = {f"/job:worker/task:{i}": f"w{i}" for i in range(2 * pairs)}
    sent = {"nbytes": 1_250_000_000, "tasks": tasks}
    one, two = (makespan(pairs, lambda i: cpu("worker", pairs + i), racks=racks, **sent) for racks in (1, 2))
    assert one == pytest.approx(1.0, rel=1e-3) and two == pytest.approx(one, rel=1e-5)
