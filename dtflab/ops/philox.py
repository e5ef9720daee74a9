"""TensorFlow's random numbers: Philox4x32-10 and the distributions on top of it, in NumPy.

Stands for `core/lib/random/{philox_random,random_distributions}.h`, `core/util/guarded_philox_random.h` and
the shuffle of `core/kernels/random_shuffle_op.cc`. Draws that are repeated until one is good are in `rejection.py`.
The rule it obeys: number i of a run depends on seed, seed2, the runs before and i alone, never on threads;
and it is TensorFlow's: uniform numbers and integers to the bit, one normal in a hundred but for its last bit.

How the numbers are laid out: Philox turns a 128-bit counter and a 64-bit key into four 32-bit words. The key
is seed, the upper half of the counter seed2, and the lower half counts. One counter gives a *group*:
four numbers, or two of 64 bits.
"""

from __future__ import annotations

import functools
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from dtflab.base import errors
from dtflab.graph.node import Node
from dtflab.ops.entropy import SOURCE

Words = NDArray[np.uint32]  # one row of four words per counter

_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_MULTIPLIER_COLUMN = np.array([[m] for m in _MULTIPLIERS], np.uint64)
_WEYL = 0x9E3779B9, 0xBB67AE85  # added to the halves of the key in each round
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_MASK32, _MASK64, _MASK128 = (1 << 32) - 1, (1 << 64) - 1, (1 << 128) - 1

_RESERVED = 256  # counters that TF sets aside for each number of a run, used or not
PER_NUMBER = 20  # operations: ten rounds of two products, four exclusive ors and two sums make four words
_BLOCK = 8192  # counters worked on at a time: all ten rounds stay in the cache


def philox_once(key: int, counter: int) -> list[int]:
    """The four words for one counter: the algorithm as written down, and the fast way to a few numbers."""
    x0, x1, x2, x3 = (counter >> shift & _MASK32 for shift in (0, 32, 64, 96))
    k0, k1 = key & _MASK32, key >> 32 & _MASK32
    for _ in range(10):
        a, b = x0 * _MULTIPLIERS[0], x2 * _MULTIPLIERS[1]
        x0, x1, x2, x3 = b >> 32 ^ x1 ^ k0, b & _MASK32, a >> 32 ^ x3 ^ k1, a & _MASK32
        k0, k1 = k0 + _WEYL[0] & _MASK32, k1 + _WEYL[1] & _MASK32
    return [x0, x1, x2, x3]


def philox(key: int, counter: int, offsets: NDArray[np.uint64]) -> Words:
    """The words for the counters `counter + offsets`, a row for each."""
    if len(offsets) <= 4:
        rows = [philox_once(key, counter + offset) for offset in offsets.tolist()]
        return np.array(rows, np.uint32).reshape(-1, 4)
    low = offsets + np.uint64(counter & _MASK64)
    high = (low < offsets) + np.uint64(counter >> 64 & _MASK64)  # with the carry
    a = np.stack((low & _LOW, high & _LOW))  # words 0 and 2 of every counter
    b = np.stack((low >> _HALF, high >> _HALF))  # words 1 and 3
    for round_key in _round_keys(key):
        product = (a * _MULTIPLIER_COLUMN)[::-1]  # the two pairs of words cross over
        a = product >> _HALF
        a ^= b
        a ^= round_key
        b = product
        b &= _LOW
    words = np.empty((len(offsets), 4), np.uint32)
    words[:, 0::2] = a.T
    words[:, 1::2] = b.T
    return words


@functools.lru_cache(maxsize=1024)
def _round_keys(key: int) -> NDArray[np.uint64]:
    low, high = key & _MASK32, key >> 32 & _MASK32
    keys = [[low + i * _WEYL[0] & _MASK32, high + i * _WEYL[1] & _MASK32] for i in range(10)]
    return np.array(keys, np.uint64)[:, :, None]


# -- words to numbers: each function makes a row of numbers from a row of words --


def _uniform_half(words: Words) -> NDArray[Any]:
    return (words & 0x3FF | 15 << 10).astype(np.uint16).view(np.float16) - np.float16(1)


def _uniform_bfloat16(words: Words) -> NDArray[Any]:
    return (words & 0x7F | 127 << 7).astype(np.uint16).view(ml_dtypes.bfloat16) - ml_dtypes.bfloat16(1)


def uniform_float(words: Words) -> NDArray[Any]:
    return (words & 0x7FFFFF | 127 << 23).view(np.float32) - np.float32(1)


def uniform_double(words: Words) -> NDArray[Any]:
    high = words[:, 0::2].astype(np.uint64) & np.uint64(0xFFFFF)
    bits = np.uint64(1023 << 52) | high << _HALF | words[:, 1::2]
    return bits.view(np.float64) - 1.0


def _normal_float(words: Words) -> NDArray[Any]:
    """Box and Muller's transform, rounded to float32 where TF's C++ does; libm's own error is below that."""
    uniform = uniform_float(words)
    u = np.maximum(uniform[:, 0::2], np.float32(1e-7)).astype(np.float64)
    angle = (uniform[:, 1::2] * np.float64(2 * np.pi)).astype(np.float32).astype(np.float64)
    radius = np.sqrt(np.float32(-2) * np.log(u).astype(np.float32))
    out = np.empty(words.shape, np.float32)
    np.multiply(np.sin(angle).astype(np.float32), radius, out=out[:, 0::2])
    np.multiply(np.cos(angle).astype(np.float32), radius, out=out[:, 1::2])
    return out


def normal_double(words: Words) -> NDArray[Any]:
    uniform = uniform_double(words)
    radius = np.sqrt(-2.0 * np.log(np.maximum(uniform[:, 0::2], 1e-7)))
    angle = 2 * np.pi * uniform[:, 1::2]
    return np.concatenate([np.sin(angle) * radius, np.cos(angle) * radius], axis=1)


def _bits64(words: Words) -> NDArray[np.uint64]:
    return words[:, 0::2] | words[:, 1::2].astype(np.uint64) << _HALF


_UNIFORM: dict[Any, Callable[[Words], NDArray[Any]]] = {
    np.dtype(np.float16): _uniform_half,
    np.dtype(ml_dtypes.bfloat16): _uniform_bfloat16,
    np.dtype(np.float32): uniform_float,
    np.dtype(np.float64): uniform_double,
}


class PhiloxStream:
    """The generator of one random op: every run takes the next stretch of the counter. Safe under threads.

    seed = seed2 = 0 means that the program did not ask for repeatable numbers: both are then drawn by `entropy`.
    """

    def __init__(self, seed: int = 0, seed2: int = 0) -> None:
        if seed == 0 and seed2 == 0:
            seed, seed2 = SOURCE.draw(), SOURCE.draw()
        self._key = seed & _MASK64  # negative seeds are two's complement
        self._counter = (seed2 & _MASK64) << 64
        self._lock = threading.Lock()

    @classmethod
    def at(cls, key: int, counter: int) -> PhiloxStream:
        """A stream that begins at that place: what a stateless op draws from."""
        stream = cls(1)
        stream._key, stream._counter = key, counter
        return stream

    def stretch(self, counters: int) -> Callable[[NDArray[np.uint64]], Words]:
        """Take the next stretch: a function from places in it to their words."""
        start = self._reserve(counters)
        return lambda places: philox(self._key, start, places)

    def uniform(self, shape: Sequence[int], dtype: Any = np.float32) -> NDArray[Any]:
        """Numbers in [0, 1): `RandomUniform`."""
        target = _numpy_dtype(dtype)
        return self._plain(shape, target, _UNIFORM[target])

    def normal(self, shape: Sequence[int], dtype: Any = np.float32) -> NDArray[Any]:
        """Normal numbers of mean 0 and deviation 1: `RandomStandardNormal`."""
        target = _numpy_dtype(dtype)
        return self._plain(shape, target, normal_double if target == np.float64 else _normal_float)

    def uniform_int(self, lo: int, hi: int, shape: Sequence[int], dtype: Any = np.int32) -> NDArray[Any]:
        """Integers in [lo, hi): `RandomUniformInt`. Remainders of 32 or 64 bits, as in TF: not quite fair."""
        target, lo, hi = _numpy_dtype(dtype), int(lo), int(hi)
        if 0 in shape:
            return np.empty(shape, target)
        if hi <= lo:
            raise errors.InvalidArgumentError.of(f"Need minval < maxval, got {lo} >= {hi}")
        wide = target.itemsize == 8
        unsigned = np.uint64 if wide else np.uint32
        start, span = unsigned(lo & int(np.iinfo(unsigned).max)), unsigned(hi - lo)

        def integers(words: Words) -> NDArray[Any]:
            bits = _bits64(words) if wide else words
            return (bits % span + start).view(target)  # wraps round, as adding to a signed lo should

        return self._plain(shape, target, integers)

    def integers(self, shape: Sequence[int], dtype: Any = np.int32) -> NDArray[Any]:
        """Integers from all that the dtype has: `StatelessRandomUniformFullInt`."""
        target = _numpy_dtype(dtype)
        bits = _bits64 if target.itemsize == 8 else np.asarray
        return self._plain(shape, target, lambda words: bits(words).view(target))

    def truncated_normal(self, shape: Sequence[int], dtype: Any = np.float32) -> NDArray[Any]:
        """Normal numbers, those two deviations or more from the mean drawn again: `TruncatedNormal`."""
        target = _numpy_dtype(dtype)
        normal, width = (normal_double, 2) if target == np.float64 else (_normal_float, 4)
        stride = width * _RESERVED // 4  # room for a group to draw again, counted in words, not in counters

        def numbers(counter: int, groups: int) -> NDArray[Any]:
            starts = np.arange(groups, dtype=np.uint64) * np.uint64(stride)
            out = normal(philox(self._key, counter, starts))
            again, draws = np.flatnonzero((np.abs(out) >= 2).any(axis=1)), 2
            while len(again):
                draws *= 2
                offsets = np.add.outer(starts[again], np.arange(draws, dtype=np.uint64)).reshape(-1)
                drawn = normal(philox(self._key, counter, offsets)).reshape(len(again), -1)
                good = np.abs(drawn) < 2
                first = np.argsort(~good, axis=1, kind="stable")[:, :width]  # the first good ones, in order
                out[again] = np.take_along_axis(drawn, first, axis=1)
                again = again[good.sum(axis=1) < width]
            return out

        return self._fill(shape, target, numbers, stride)

    def shuffle(self, array: NDArray[Any]) -> NDArray[Any]:
        """The rows of `array` in random order, as a new array: `RandomShuffle`."""
        count = array.shape[0] if array.ndim else 0
        if count <= 1 or array.size <= 1:
            return array.copy()
        counters = -(-(count - 1) // 4)  # the last row has no choice
        offsets = np.arange(counters, dtype=np.uint64)
        words = philox(self._key, self._reserve(counters), offsets).reshape(-1)[: count - 1]
        jumps = (words % np.arange(count, 1, -1, dtype=np.uint32)).tolist()
        order = list(range(count))
        for i, jump in enumerate(jumps):
            order[i], order[i + jump] = order[i + jump], order[i]
        return array[order]

    def words(self) -> Iterator[int]:
        """32-bit integers without end, one after the other: TF's `SingleSampleAdapter`."""
        counters = 1
        while True:
            offsets = np.arange(counters, dtype=np.uint64)
            yield from philox(self._key, self._reserve(counters), offsets).reshape(-1).tolist()
            counters = min(2 * counters, 256)

    def _plain(self, shape: Sequence[int], dtype: np.dtype[Any], convert: Callable[[Words], Any]) -> NDArray[Any]:
        """Numbers of which every group needs one counter."""

        def numbers(counter: int, groups: int) -> NDArray[Any]:
            return convert(philox(self._key, counter, np.arange(groups, dtype=np.uint64)))

        return self._fill(shape, dtype, numbers, 1)

    def _fill(
        self, shape: Sequence[int], dtype: np.dtype[Any], numbers: Callable[[int, int], NDArray[Any]], stride: int
    ) -> NDArray[Any]:
        """An array of `numbers(first counter, groups)`, block by block; the last group may be cut."""
        shape = tuple(map(int, shape))  # the sizes of an int32 tensor would overflow in the product
        size, width = math.prod(shape), 2 if dtype.itemsize == 8 else 4
        start = self._reserve(size * _RESERVED)
        out = np.empty((-(-size // width), width), dtype)
        for first in range(0, len(out), _BLOCK):
            block = out[first : first + _BLOCK]
            block[:] = numbers(start + first * stride & _MASK128, len(block))
        return out.reshape(-1)[:size].reshape(shape)

    def _reserve(self, counters: int) -> int:
        """Take the next stretch; returns where it starts."""
        with self._lock:
            start = self._counter
            self._counter = start + counters & _MASK128
        return start


def _numpy_dtype(dtype: Any) -> np.dtype[Any]:
    return np.dtype(getattr(dtype, "as_numpy_dtype", dtype))


def stream_of(node: Node) -> Callable[[Any], PhiloxStream]:
    """How a kernel finds its stream: kept between the steps of a session, started again in the next."""
    seed, seed2 = node["seed"], node["seed2"]
    return lambda ctx: ctx.state(node.name, lambda: PhiloxStream(seed, seed2))
