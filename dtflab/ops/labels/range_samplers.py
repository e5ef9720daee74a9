"""Samplers of classes 0 … range - 1: uniform, log-uniform, and by how often a class was seen.

Stands for `core/kernels/range_sampler.cc`, `core/lib/random/{distribution_sampler,weighted_picker,simple_philox}`.

How: a sampler turns a stretch of random words into classes, all at once. For sets of distinct classes the first of
each counts, and how many draws that took gives the expected counts.

Rule: equal words give TensorFlow's classes. Integers below n are remainders of words, after the few words that would
make low numbers likelier have been thrown away.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtflab.ops.messages import invalid

Numbers = NDArray[Any]
Words = Callable[[int], Numbers]  # the first n words of a stretch


def _below(n: int, words: Numbers) -> Numbers:
    """Integers in [0, n), one for each word (of 32 or 64 bits) that is not thrown away."""
    if n & (n - 1) == 0:
        return words & words.dtype.type(n - 1)
    fair = words[words >= _unfair(n, words.dtype)]
    return fair % words.dtype.type(n)


def _unfair(n: int, dtype: Any) -> Any:
    """How many words are left over when they are shared out among n."""
    return dtype.type((int(np.iinfo(dtype).max) % n) + 1)


def _pairs(words: Numbers) -> Numbers:
    """Words of 64 bits, the lower half first."""
    low, high = words[0::2].astype(np.uint64), words[1::2].astype(np.uint64)
    return low | high << np.uint64(32)


class UniformSampler:
    """Each class with the same probability."""

    words_per_class = 2

    def __init__(self, range_max: int) -> None:
        self.range = range_max

    def classes(self, words: Numbers) -> Numbers:
        """The classes that the words draw."""
        return _below(self.range, _pairs(words)).astype(np.int64)

    def probability(self, classes: Numbers) -> Numbers:
        """The probability of each of these classes, float32."""
        return np.full(classes.shape, 1.0 / self.range, np.float32)


class LogUniformSampler:
    """Zipf's law: class i with probability log((i + 2) / (i + 1)) / log(range + 1)."""

    words_per_class = 2

    def __init__(self, range_max: int) -> None:
        self.range = range_max
        self._log_range = np.log1p(float(range_max))

    def classes(self, words: Numbers) -> Numbers:
        """The classes that the words draw."""
        bits = words[0::2].astype(np.uint64) & np.uint64(0xFFFFF)
        uniform = (np.uint64(1023 << 52) | bits << np.uint64(32) | words[1::2]).view(np.float64) - 1.0
        return (np.exp(uniform * self._log_range).astype(np.int64) - 1) % self.range

    def probability(self, classes: Numbers) -> Numbers:
        """The probability of each of these classes, float32."""
        return (np.log((classes + 2.0) / (classes + 1.0)) / self._log_range).astype(np.float32)


class UnigramSampler:
    """By how often a class was among the true ones so far, each once to begin with."""

    words_per_class = 1

    def __init__(self, range_max: int) -> None:
        self.range = range_max
        self._weights = np.ones(range_max, np.int64)

    def classes(self, words: Numbers) -> Numbers:
        """The classes that the words draw."""
        ends = np.cumsum(self._weights)
        return np.searchsorted(ends, _below(int(ends[-1]), words), side="right")

    def probability(self, classes: Numbers) -> Numbers:
        """The probability of each of these classes, float32."""
        return self._weights[classes].astype(np.float32) / np.float32(self._weights.sum())

    def update(self, classes: Numbers) -> None:
        """Count these classes, as long as the sum fits into an int32."""
        room = np.iinfo(np.int32).max - int(self._weights.sum())
        np.add.at(self._weights, classes[:room], 1)


class FixedUnigramSampler:
    """By given weights; a table of pairs of classes makes each draw one look."""

    words_per_class = 2

    def __init__(self, weights: Numbers) -> None:
        self.range = len(weights)
        self._weights = weights
        self._total = np.cumsum(weights, dtype=np.float32)[-1:].sum()
        self._first, self._other = _pairs_of_classes(weights.astype(np.float64))
        self.possible = int((weights > 0).sum())

    def classes(self, words: Numbers) -> Numbers:
        """The classes that the words draw: a number decides between the two of the pair that the next word picks."""
        pair_words = _without_unfair(words, self.range)
        uniform = ((pair_words[0::2] & np.uint32(0x7FFFFF)) | np.uint32(127 << 23)).view(np.float32) - np.float32(1)
        pair = _below(self.range, pair_words[1::2]).astype(np.int64)
        return np.where(uniform < self._first[pair], pair, self._other[pair])

    def probability(self, classes: Numbers) -> Numbers:
        """The probability of each of these classes, float32."""
        return self._weights[classes] / np.float32(self._total)


def _without_unfair(words: Numbers, n: int) -> Numbers:
    """The words without those at odd places that are thrown away; what follows such a one moves up."""
    if n & (n - 1):
        limit = _unfair(n, words.dtype)
        while (words[1::2] < limit).any():
            words = np.delete(words, 2 * int((words[1::2] < limit).argmax()) + 1)
    return words[: len(words) // 2 * 2]


def _pairs_of_classes(weights: Numbers) -> tuple[Numbers, Numbers]:
    """Walker's alias table: for each class how often it keeps its own place, and which class has the rest of it.

    A class with less than its share is filled up by one with more, the latest of both first.
    """
    count = len(weights)
    share = (weights * count / weights.sum()).tolist()
    other = list(range(count))
    less = [i for i in range(count) if share[i] < 1]
    more = [i for i in range(count) if share[i] >= 1]
    while more and less:
        low, high = less.pop(), more.pop()
        other[low] = high
        share[high] -= 1 - share[low]
        (less if share[high] < 1 else more).append(high)
    for i in less + more:  # what is left is 1 but for roundings
        share[i] = 1
    return np.array(share, np.float32), np.array(other, np.int64)


def unigram_weights(
    counts: Sequence[float], distortion: float, num_reserved_ids: int, num_shards: int, shard: int
) -> Numbers:
    """Counts to the power of `distortion`, of the classes that this shard has; reserved ones have 0."""
    reserved = sum(i % num_shards == shard for i in range(num_reserved_ids))
    numbers = np.arange(reserved, reserved + len(counts))
    kept = np.asarray(counts, np.float32)[numbers % num_shards == shard]
    return np.concatenate([np.zeros(reserved, np.float32), kept ** np.float32(distortion)])


def sample(sampler: Any, words: Words, count: int, unique: bool) -> tuple[Numbers, int]:
    """`count` classes, and how many were drawn to get them; if `unique` no class is there twice."""
    if unique and getattr(sampler, "possible", count) < count:
        raise invalid(f"{count} distinct classes are wanted, and only {sampler.possible} have a weight above 0.")
    size = 2 * count
    while True:
        drawn = sampler.classes(words(size * sampler.words_per_class))
        places = np.sort(np.unique(drawn, return_index=True)[1]) if unique else np.arange(len(drawn))
        if len(places) >= count:
            chosen = places[:count]
            return drawn[chosen], int(chosen[-1]) + 1
        size *= 2


def expected_count(probability: Numbers, count: int, tries: int) -> Numbers:
    """How often a class of that probability is expected among `count`: nearly 1 - (1 - p)^tries for distinct ones."""
    if tries == count:
        return probability * np.float32(count)
    return -np.expm1(np.float32(tries) * np.log1p(-probability))
