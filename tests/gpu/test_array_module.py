"""CuPy has everything that kernels ask of their array module, and the bridges agree with NumPy."""

from __future__ import annotations

import re

import numpy as np
import pytest

from dtflab.ops.array_module import reducer, scatterer
from tests import house
from tests.strict_arrays import API, StrictArray, module as strict

NAMES = set().union(*(API[kind] for kind in ("constant", "function", "ufunc")))


def test_every_name_that_kernels_use_is_in_cupy():
    used = [
        (house.name(path), name)
        for path in house.sources(house.PACKAGE / "ops")
        for name in re.findall(r"\bxp\.((?:linalg\.)?\w+)", path.read_text(encoding="utf-8"))
    ]
    assert len(used) > 500
    assert {f"{page}: xp.{name}" for page, name in used if name not in NAMES | {"linalg"}} == set()


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint8, np.float16, np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("ufunc", ["add", "subtract", "multiply", "maximum", "minimum"])
def test_scatters_are_numpys_also_of_types_without_atomic_operations(ufunc, dtype):
    random = np.random.default_rng(3)
    for shape, places in [
        ((5, 2), np.array([1, 4, 1, 0, 1])),
        ((5,), np.array([[3, 3], [0, 3]])),
        ((4,), np.zeros(0, int)),
    ]:
        array = random.integers(0, 7, shape).astype(dtype)
        values = random.integers(0, 7, (*places.shape, *shape[1:])).astype(dtype)
        expected = array.copy()
        getattr(np, ufunc).at(expected, places, values)
        found = StrictArray(array.copy())
        scatterer(strict, ufunc)(found, StrictArray(places), StrictArray(values))
        assert np.array_equal(found.get(), expected)


def test_a_scatter_by_two_axes_and_of_one_value_for_all():
    array = StrictArray(np.ones((3, 3), np.int64))
    rows, columns = StrictArray(np.array([0, 2, 0])), StrictArray(np.array([1, 2, 1]))
    scatterer(strict, "multiply")(array, (rows, columns), StrictArray(np.array(3)))
    assert array.get().tolist() == [[1, 9, 1], [1, 1, 1], [1, 1, 3]]


def test_a_scatter_without_places_is_the_operation():
    array = StrictArray(np.array([1, 2]))
    scatterer(strict, "multiply")(array, (), StrictArray(np.array([3, 4])))
    assert array.get().tolist() == [3, 8]


@pytest.mark.parametrize("ufunc", ["maximum", "minimum", "logical_and", "logical_or"])
def test_reductions_are_numpys(ufunc):
    x = np.random.default_rng(4).integers(0, 2, (3, 4, 2)).astype(bool if "logical" in ufunc else np.float32)
    for axes, keep in [((0,), False), ((0, 2), True), ((), False)]:
        expected = reducer(np, ufunc)(x, axes, keep)
        found = reducer(strict, ufunc)(StrictArray(x), axes, keep).get()
        assert np.array_equal(found, expected) and found.dtype == expected.dtype


# -- what the stand-in refuses, as CuPy does ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "mix",
    [
        lambda a: a + np.ones(3),
        lambda a: np.ones(3) + a,
        lambda a: np.asarray(a),
        lambda a: np.array([a, a]),
        lambda a: range(a.sum()),
        lambda a: a[np.array([0])],
        lambda a: strict.concatenate([a, np.ones(3)]),
        lambda a: strict.sum(a, where=a > 1),
        lambda a: np.maximum.reduce(a),
        lambda a: strict.maximum.reduce(a),
        lambda a: strict.insert(a, 0, 1),
        lambda a: strict.multiply.at(a, strict.asarray(np.array([0])), 2),
        lambda a: strict.asarray(np.array(["text"])),
        lambda a: strict.invert(a),
    ],
)
def test_the_stand_in_refuses(mix):
    with pytest.raises((TypeError, NotImplementedError, AttributeError, ValueError)):
        mix(StrictArray(np.arange(3.0)))


def test_the_stand_in_says_where_cupy_would_wrap_an_index_round():
    with pytest.raises(AssertionError, match="CuPy would not say"):
        StrictArray(np.arange(3.0))[StrictArray(np.array([7]))]


def test_the_stand_in_has_no_scalars():
    assert isinstance(strict.sum(StrictArray(np.arange(3.0))), StrictArray)
    assert isinstance(StrictArray(np.arange(3.0))[1], StrictArray)
