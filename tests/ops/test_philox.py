"""The random streams against constants: Random123's for the generator, TensorFlow 2.21's for the ops."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st

from dtflab.base import errors
from dtflab.graph import dtypes
from dtflab.ops import philox as module
from dtflab.ops.philox import PhiloxStream, philox, philox_once

ONES = (1 << 128) - 1
KNOWN = [  # Random123's known answers for philox4x32-10: key, counter, words
    (0, 0, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    (ONES >> 64, ONES, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        0x299F31D0_A4093822,
        0x03707344_13198A2E_85A308D3_243F6A88,
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize("key, counter, words", KNOWN)
def test_generator(key, counter, words):
    assert tuple(philox_once(key, counter)) == words
    offsets = np.zeros(9, np.uint64)
    assert philox(key, counter, offsets).tolist() == [list(words)] * 9


@given(
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**128 - 1) | st.integers(0, 5).map(lambda i: ONES - i),
    st.integers(1, 99),
)
def test_both_ways_to_compute_it_agree(key, counter, stride):
    """Also where the lower half of the counter overflows into the upper, and where the whole wraps."""
    offsets = np.arange(7, dtype=np.uint64) * np.uint64(stride)
    expected = [philox_once(key, counter + offset & ONES) for offset in offsets.tolist()]
    assert philox(key, counter, offsets).tolist() == expected
    assert philox(key, counter, offsets[:3]).tolist() == expected[:3]


# Two runs of each op in TensorFlow with seed=87654321, seed2=42.
RUNS = {
    "uniform float32": [
        [0.9522714614868164, 0.6774077415466309, 0.7953182458877563, 0.7557817697525024, 0.475955605506897],
        [0.8127422332763672, 0.5974873304367065, 0.796147346496582, 0.5760071277618408, 0.13790011405944824],
    ],
    "uniform float64": [
        [0.6181726095777149, 0.36254602252651336, 0.8076457653772362],
        [0.4501597178423633, 0.27043256518756675, 0.47520519199618416],
    ],
    "uniform float16": [
        [0.0078125, 0.32421875, 0.2470703125, 0.3642578125, 0.0283203125],
        [0.984375, 0.6162109375, 0.0390625, 0.650390625, 0.677734375],
    ],
    "normal float32": [
        [-0.28077507, -0.1377521, -0.6763296, 0.024580413, -0.89358455],
        [-0.37023765, -0.5268839, -0.31035113, -0.59968674, 1.6946021],
    ],
    "normal float64": [
        [0.7456244549943906, -0.6371964266311646, 0.04856931364585292],
        [1.2530522119192382, -0.16175850984459766, -0.8392105123864506],
    ],
    "truncated_normal float32": [
        [-0.28077507, -0.1377521, -0.6763296, 0.0245804, -0.46845472, -0.0024663, -0.9745911, 0.66384917],
        [-0.13857655, 0.4728002, 0.83471936, -0.3172532, 1.2180098, -0.39854664, 0.63967335, -0.63211644],
    ],
}  # fmt: skip
INTEGERS = {
    (0, 100, "int32"): [[72, 44, 93, 89, 41, 88], [23, 37, 57, 89, 87, 51]],
    (-5, 2**40, "int64"): [
        [329322738298, 503435716935, 103144773695],
        [738612054805, 365275090780, 328746111330],
    ],
}
SHUFFLES = [[2, 0, 7, 8, 9, 3, 6, 4, 1, 5], [9, 6, 7, 5, 3, 2, 1, 8, 4, 0]]


@pytest.mark.parametrize("what", RUNS)
def test_recorded_numbers(what):
    method, dtype = what.split()
    stream = PhiloxStream(87654321, 42)
    for expected in RUNS[what]:
        numbers = getattr(stream, method)([len(expected)], dtype)
        assert numbers.dtype == dtype
        np.testing.assert_allclose(numbers, np.array(expected, dtype), rtol=0, atol=0 if method == "uniform" else 1e-6)


@pytest.mark.parametrize("what", INTEGERS, ids=str)
def test_recorded_integers(what):
    lo, hi, dtype = what
    stream = PhiloxStream(87654321, 42)
    for expected in INTEGERS[what]:
        assert stream.uniform_int(lo, hi, [len(expected)], dtype).tolist() == expected


def test_recorded_shuffles():
    stream = PhiloxStream(87654321, 42)
    for expected in SHUFFLES:
        assert stream.shuffle(np.arange(10)).tolist() == expected


@pytest.mark.parametrize("method", ["uniform", "normal", "truncated_normal"])
def test_the_block_size_does_not_show(method, monkeypatch):
    expected = getattr(PhiloxStream(3, 4), method)([1000])
    monkeypatch.setattr(module, "_BLOCK", 7)
    np.testing.assert_array_equal(getattr(PhiloxStream(3, 4), method)([1000]), expected)


def test_types_and_shapes():
    stream = PhiloxStream(1, 2)
    assert stream.uniform(np.array([2, 3], np.int32), dtypes.float64).dtype == np.float64
    assert stream.normal((), dtypes.bfloat16).dtype == ml_dtypes.bfloat16
    assert stream.truncated_normal([0, 5]).shape == (0, 5)
    assert stream.uniform([]).shape == ()
    assert stream.uniform_int(3, 3, [0]).size == 0  # TF does not look at the bounds either
    with pytest.raises(errors.InvalidArgumentError, match="Need minval < maxval, got 3 >= 3"):
        stream.uniform_int(3, 3, [1])


def test_uniform_is_below_one_and_truncated_below_two():
    stream = PhiloxStream(5, 6)
    for dtype in ("float16", "float32", "float64", ml_dtypes.bfloat16):
        numbers = stream.uniform([100_000], dtype).astype(np.float64)
        assert numbers.min() >= 0
        assert numbers.max() < 1
        assert np.abs(stream.truncated_normal([100_000], dtype).astype(np.float64)).max() <= 2


def test_normal_is_normal():
    numbers = PhiloxStream(5, 6).normal([200_000], "float64")
    assert abs(numbers.mean()) < 0.01
    assert abs(numbers.std() - 1) < 0.01


def test_shuffle_keeps_rows_together_and_its_input():
    rows = np.arange(20).reshape(10, 2)
    shuffled = PhiloxStream(1, 1).shuffle(rows)
    np.testing.assert_array_equal(shuffled[np.argsort(shuffled[:, 0])], rows)
    assert rows[0, 0] == 0
    words = np.array([b"a", b"b", b"c"], object)
    assert sorted(PhiloxStream(1, 1).shuffle(words)) == [b"a", b"b", b"c"]
    one = np.array([7])
    assert PhiloxStream(1, 1).shuffle(one) is not one


def test_equal_seeds_equal_numbers_no_seeds_new_numbers():
    def draw(*seeds):
        return PhiloxStream(*seeds).uniform([4]).tolist()

    assert draw(1, 2) == draw(1, 2) != draw(2, 1)
    assert draw(0, 5) == draw(0, 5)
    assert draw(0, 0) != draw(0, 0)
    assert draw(-1, -1) == draw(2**64 - 1, 2**64 - 1)


def test_threads_share_a_stream_without_repeating_it():
    stream, alone = PhiloxStream(1, 2), PhiloxStream(1, 2)
    with ThreadPoolExecutor(4) as pool:
        drawn = sorted(pool.map(lambda _: float(stream.uniform([])), range(64)))
    assert drawn == sorted(float(alone.uniform([])) for _ in range(64))
