"""Schedules of an all-reduce, ring, tree, recursive halving-doubling: which worker sends which piece to which.

Stands for the indices in `python/distribute/v1/all_reduce.py`. Left out: shuffles, NCCL, several rings at once.

A tensor lies flat in `pieces` pieces of nearly equal size. In the rounds of the first half, "reduce", a worker that
gets pieces adds them to its own; then each piece is whole at one worker, its owner. In those of the second half,
"gather", a worker that gets pieces keeps them instead of its own. With p workers, n bytes, latency α and bandwidth B a
tensor takes:

| algorithm | rounds | seconds | good for |
| --- | --- | --- | --- |
| ring | 2(p−1) | 2(p−1)α + 2(p−1)/p · n/B | large tensors: every link is busy all the time |
| tree | 2⌈log2 p⌉ | 2⌈log2 p⌉(α + n/B), less if p is not 2^k | small tensors: few rounds |
| halving_doubling | 2 log2 p | 2 log2(p) α + 2(p−1)/p · n/B for p = 2^k | both, if any two workers are one hop apart |

Rule: each piece is summed in one order, at one owner, and copied from there; so all workers get the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Message(NamedTuple):
    """Pieces `first` … `last - 1` go from one worker to another. Workers are numbers."""

    source: int
    target: int
    first: int
    last: int

    def back(self) -> Message:
        """The same pieces on their way back."""
        return Message(self.target, self.source, self.first, self.last)


Round = tuple[Message, ...]  # what is sent at the same time


class Rounds(NamedTuple):
    """The messages of an all-reduce. `owned[w]` are the pieces, from and below, that are whole at `w` half-way."""

    workers: int
    pieces: int
    reduce: tuple[Round, ...]
    owned: tuple[tuple[int, int], ...]
    gather: tuple[Round, ...]

    @property
    def ways(self) -> list[tuple[int, int]]:
        """Pairs of sender and receiver, in order and once each."""
        return sorted({(m.source, m.target) for messages in self.reduce + self.gather for m in messages})


def _ring(workers: int) -> Rounds:
    """Each piece goes round once to be summed, and once more to be known."""
    rounds = [
        tuple(_single(w, (w + 1) % workers, (w - step) % workers) for w in range(workers))
        for step in range(2 * (workers - 1))
    ]
    owned = tuple(((w + 1) % workers, (w + 1) % workers + 1) for w in range(workers))
    return Rounds(workers, workers, tuple(rounds[: workers - 1]), owned, tuple(rounds[workers - 1 :]))


def _single(source: int, target: int, piece: int) -> Message:
    return Message(source, target, piece, piece + 1)


def _tree(workers: int) -> Rounds:
    """Sums meet in pairs on their way to worker 0, which sends the total back the same way."""
    distances = [1 << level for level in range((workers - 1).bit_length())]
    reduce = tuple(tuple(_single(w, w - d, 0) for w in range(d, workers, 2 * d)) for d in distances)
    return Rounds(workers, 1, reduce, ((0, 1), *((0, 0),) * (workers - 1)), _backwards(reduce))


def _halving_doubling(workers: int) -> Rounds:
    """Partners swap halves of what they hold, then quarters, …; and the same backwards.

    This takes a power of two. Of other numbers the workers above it give theirs to one below first, and get the result
    in the end: two rounds of the whole tensor more.
    """
    pieces = 1 << (workers.bit_length() - 1)
    extra = tuple(Message(w, w - pieces, 0, pieces) for w in range(pieces, workers))
    distances = [pieces >> level for level in range(1, pieces.bit_length())]
    reduce = tuple(tuple(_half(w, d) for w in range(pieces)) for d in distances)
    rounds = ((extra,) if extra else ()) + reduce
    owned = tuple((w, w + 1) if w < pieces else (0, 0) for w in range(workers))
    return Rounds(workers, pieces, rounds, owned, _backwards(rounds))


def _half(worker: int, distance: int) -> Message:
    """The message of a worker to its partner at that distance: that half of their pieces in which the partner is."""
    partner = worker ^ distance
    first = partner // distance * distance
    return Message(worker, partner, first, first + distance)


def _backwards(rounds: tuple[Round, ...]) -> tuple[Round, ...]:
    return tuple(tuple(message.back() for message in messages) for messages in reversed(rounds))


ALGORITHMS: dict[str, Callable[[int], Rounds]] = {"ring": _ring, "tree": _tree, "halving_doubling": _halving_doubling}


def schedule(algorithm: str, workers: int) -> Rounds:
    """The messages among that many workers. ValueError for an unknown algorithm, or without workers.

    >>> schedule("tree", 2).reduce
    ((Message(source=1, target=0, first=0, last=1),),)
    """
    if algorithm not in ALGORITHMS:
        raise ValueError(f"Unknown all-reduce algorithm {algorithm!r}: choose one of {', '.join(ALGORITHMS)}.")
    if workers < 1:
        raise ValueError(f"An all-reduce needs at least one worker, not {workers}.")
    return ALGORITHMS[algorithm](workers)


def bounds(size: int, pieces: int) -> list[int]:
    """Where each piece of that many elements begins, and the end; with few elements some pieces are empty."""
    return [size * piece // pieces for piece in range(pieces + 1)]
