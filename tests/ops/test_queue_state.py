"""Laws of queues, without threads: nothing is lost or made, nobody is overtaken, order is kept."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, strategies as st

from dtflab.base import errors
from dtflab.ops.philox import PhiloxStream
from dtflab.ops.queues.queue_kinds import FIFOState, PaddingFIFOState, PriorityState, ShuffleState
from dtflab.ops.queues.queue_state import Close, Get, Put


def fifo(capacity=3):
    return FIFOState("q", capacity)


def shuffle(capacity=3, least=0):
    return ShuffleState("q", capacity, least, PhiloxStream(1, 2).words().__next__)


def put(queue, *numbers, op=""):
    attempt = Put([(n,) for n in numbers], len(numbers), op)
    queue.join(attempt)
    return attempt


def get(queue, count=1, up_to=False):
    attempt = Get(count, up_to)
    queue.join(attempt)
    return attempt


def numbers(attempt):
    return [element[0] for element in attempt.held]


def waits(queue, attempt):
    return attempt in queue.waiting()


KINDS = [fifo, shuffle, lambda capacity=3: PaddingFIFOState("q", capacity), lambda c=3: PriorityState("q", c)]
each_kind = pytest.mark.parametrize("make", KINDS, ids=["fifo", "shuffle", "padding", "priority"])


# -- laws for every kind ----------------------------------------------------------------------------------

actions = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(1, 6)),
        st.tuples(st.just("get"), st.integers(1, 6)),
        st.tuples(st.just("up to"), st.integers(1, 6)),
        st.tuples(st.just("leave"), st.integers(0, 9)),
        st.tuples(st.just("close"), st.booleans()),
    ),
    max_size=30,
)


def come(queue, action, number, fresh):
    """One of `actions` at a queue; the attempt, if somebody came, and those who are done now."""
    if action == "put":
        attempt = Put([(next(fresh),) for _ in range(number)], number)
    elif action in ("get", "up to"):
        attempt = Get(number, action == "up to")
    elif action == "leave":
        waiting = queue.waiting()
        return None, queue.leave(waiting[number % len(waiting)]) if waiting else []
    elif number:
        return None, queue.close("putters")
    else:
        attempt = Close()
    return attempt, queue.join(attempt)


@each_kind
@given(actions=actions, capacity=st.integers(1, 5))
def test_nothing_is_lost_or_made(make, actions, capacity):
    queue, fresh = make(capacity), itertools.count()
    wanted, finished = {}, []
    for action, number in actions:
        attempt, done = come(queue, action, number, fresh)
        if attempt is not None:
            wanted[attempt] = number
        finished += [a for a in done if not isinstance(a, Close)]  # which stays when it is not waited for any more
        assert len(queue) <= capacity or queue.closed  # then with what was given back
        assert len(set(finished)) == len(finished), "told twice"
        assert not set(finished) & set(queue.waiting())
        assert [*queue.serve(queue.putters), *queue.serve(queue.getters)] == [], "somebody could have gone on"
        assert not (queue.closed and queue.waiting()), "nobody waits at a closed queue"
    for attempt in finished:
        if attempt.error is None:
            assert attempt.wants == 0
    put_in = sum(before - a.wants for a, before in wanted.items() if isinstance(a, Put))
    held = [n for a in wanted if isinstance(a, Get) for n in numbers(a)]
    assert len(set(held)) == len(held), "taken twice"
    assert put_in == len(held) + len(queue)


@each_kind
@given(actions=actions, capacity=st.integers(1, 5), puts=st.booleans())
def test_what_moves_without_an_attempt_moves_as_with_one(make, actions, capacity, puts):
    one, other = make(capacity), make(capacity)
    for queue in (one, other):
        fresh = itertools.count()
        for action, number in actions:
            come(queue, action, number, fresh)
    element, served = one.put_at_once((99,)) if puts else one.take_at_once()
    attempt = Put([(99,)], 1) if puts else Get(1)
    finished = other.join(attempt)
    if element is None:
        assert served == [] and (finished == [] or attempt.error)
        one.join(Put([(99,)], 1) if puts else Get(1))
    else:
        assert finished[0] is attempt and attempt.error is None and attempt.held == ([] if puts else [element])
        assert [numbers(a) for a in served] == [numbers(a) for a in finished[1:]]
    assert [numbers(a) for a in one.waiting()] == [numbers(a) for a in other.waiting()]
    assert one.take(len(one)) == other.take(len(other))


@given(actions=actions, capacity=st.integers(1, 5))
def test_a_fifo_queue_keeps_the_order(actions, capacity):
    """Elements taken, in order, are a piece of those put, and so are those left, no matter which waiters gave up."""
    queue, fresh, everyone = fifo(capacity), itertools.count(), []
    for action, number in actions:
        attempt, _ = come(queue, action, number, fresh)
        everyone.append(attempt)
    for attempt in everyone:
        if isinstance(attempt, Get):
            assert numbers(attempt) == sorted(numbers(attempt))
    left = [n for (n,) in queue.take(len(queue))]
    assert left == sorted(left)


@each_kind
def test_nobody_is_overtaken(make):
    queue = make(3)
    large, small = get(queue, 3), get(queue, 1)
    put(queue, 1, 2)
    assert waits(queue, large) and waits(queue, small)
    put(queue, 3, 4)
    assert sorted(numbers(large)) == [1, 2, 3] and numbers(small) == [4]
    put(queue, 5, 6, 7)
    large, small = put(queue, 8, 9), put(queue, 10)
    get(queue)
    assert waits(queue, large) and waits(queue, small)
    get(queue, 2)
    assert not queue.waiting()


@each_kind
def test_those_who_leave_let_others_go_on(make):
    queue = make(2)
    greedy, modest = get(queue, 2), get(queue, 1)
    put(queue, 1)
    assert queue.leave(greedy) == ([greedy, modest] if make is KINDS[3] else [greedy])
    assert isinstance(greedy.error, errors.CancelledError)
    assert queue.leave(greedy) == []


@each_kind
def test_a_closed_queue_gives_what_it_has(make):
    queue = make(5)
    put(queue, 1, 2, 3)
    put(queue, *range(4, 9))  # waits with three of its five
    closing, late = Close("c"), Put([(9,)], 1)
    queue.join(closing)
    queue.join(late)
    assert waits(queue, closing) and not queue.closed
    assert len(get(queue, 3).held) == 3
    assert queue.closed and closing.error is None
    assert "is closed" in late.error.message and isinstance(late.error, errors.CancelledError)
    assert len(get(queue, 2).held) == 2
    too_many = get(queue, 4)
    assert "is closed and has insufficient elements (requested 4, current size 3)" in too_many.error.message
    assert isinstance(too_many.error, errors.OutOfRangeError) and len(queue) == 3
    assert len(get(queue, 4, up_to=True).held) == 3
    assert isinstance(get(queue, 1, up_to=True).error, errors.OutOfRangeError)
    again = Close()
    queue.join(again)
    assert "already closed" in again.error.message


@each_kind
def test_closing_at_once_sends_away_those_who_put(make):
    queue = make(2)
    waiting = put(queue, 1, 2, 3)
    queue.close("putters")
    assert "Enqueue operation was cancelled" in waiting.error.message
    assert len(queue) == 2 and queue.waiting() == []


def test_a_reset_sends_all_away():
    queue = fifo()
    waiting = get(queue, 2)
    assert queue.close("all") == [waiting]
    assert "Dequeue operation was cancelled" in waiting.error.message


def test_a_close_that_nobody_waits_for_still_comes():
    queue = fifo(1)
    put(queue, 1)
    second, closing = put(queue, 2), Close()
    queue.join(closing)
    finished = []
    closing.done = lambda held, error: finished.append(error)
    for attempt in queue.leave(closing):
        attempt.finish()
    assert finished == [closing.error] and not queue.closed
    assert numbers(get(queue)) == [1]
    assert queue.closed and not queue.waiting() and second.error is None
    assert numbers(get(queue)) == [2]


def test_each_is_told_once():
    finished = []
    attempt = Get(1, done=lambda *outcome: finished.append(outcome))
    attempt.finish()
    attempt.finish()
    assert finished == [([], None)]


# -- what a waiting Get holds ---------------------------------------------------------------------------


def test_a_get_holds_what_it_has_so_far_and_gives_it_back():
    queue = fifo(4)
    put(queue, 1, 2, 3)
    waiting = get(queue, 4)
    assert len(queue) == 0 and numbers(waiting) == [1, 2, 3] and waiting.wants == 1
    queue.join(Close())
    assert "requested 1, current size 0" in waiting.error.message
    assert [numbers(get(queue)) for _ in range(3)] == [[1], [2], [3]]


def test_what_one_held_who_left_is_gone():
    queue = fifo(4)
    put(queue, 1, 2, 3)
    waiting = get(queue, 4)
    queue.leave(waiting)
    assert len(queue) == 0 and numbers(waiting) == [1, 2, 3]


def test_more_than_the_capacity_goes_through_piece_by_piece():
    queue = fifo(1)
    giving = put(queue, *range(5))
    taking = get(queue, 7)
    assert giving.error is None and not waits(queue, giving)
    put(queue, 5, 6)
    assert numbers(taking) == list(range(7))


# -- the kinds ------------------------------------------------------------------------------------------


def test_shuffling_keeps_some_for_choice_until_it_is_closed():
    queue = shuffle(10, least=3)
    put(queue, *range(5))
    waiting = get(queue, 3)
    assert len(waiting.held) == 2 and len(queue) == 3
    queue.join(Close())
    assert sorted([*numbers(waiting), *numbers(get(queue, 2))]) == list(range(5))


def test_shuffling_gives_every_order():
    orders = set()
    for seed in range(60):
        queue = ShuffleState("q", 3, 0, PhiloxStream(7, seed).words().__next__)
        put(queue, 1, 2, 3)
        orders.add(tuple(numbers(get(queue, 3))))
    assert len(orders) == 6


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers()), min_size=1))
def test_priorities_come_out_sorted(elements):
    queue = PriorityState("q")
    queue.join(Put(elements, len(elements)))
    found = get(queue, len(elements)).held
    assert [p for p, _ in found] == sorted(p for p, _ in elements)
    assert sorted(found) == sorted(elements)


def test_a_priority_queue_waits_for_all_that_is_wanted():
    queue = PriorityState("q", 5)
    put(queue, 5, 4)
    waiting = get(queue, 3)
    assert waiting.held == [] and len(queue) == 2
    put(queue, 1)
    assert numbers(waiting) == [1, 4, 5]


def test_words_for_pictures():
    queue = fifo(2)
    put(queue, 1, 2, 3, op="a")
    queue.join(Close("c"))
    assert [f"{a.op}: {a}" for a in queue.waiting()] == ["a: enqueue 1 more", "c: close"]
    assert f"{queue}: {queue.level()}" == "FIFOQueue 'q': 2 of 2 elements"
    get(queue)
    assert queue.level() == "2 of 2 elements, closed"
    assert FIFOState("r").level() == "0 elements"
