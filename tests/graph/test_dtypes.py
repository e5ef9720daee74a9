from __future__ import annotations

import copy

import numpy as np
import pytest

from dtflab.graph import dtypes
from dtflab.graph.dtypes import as_dtype


def test_a_dtype_is_one_object():
    assert as_dtype("float32") is as_dtype(np.float32) is as_dtype(1) is dtypes.DType(1) is dtypes.float32
    assert copy.deepcopy(dtypes.int64_ref) is dtypes.int64_ref


def test_it_is_found_by_what_it_equals():
    assert dtypes.float32 == "float32" == dtypes.float32
    assert np.dtype("float32") == dtypes.float32
    assert {dtypes.float32: "x"}[1] == "x"
    assert dtypes.float32 not in (None, dtypes.float32_ref, "nonsense", object())


def test_references():
    assert dtypes.float32_ref.base_dtype is dtypes.float32
    assert dtypes.float32._as_ref is dtypes.float32_ref
    assert dtypes.float32.is_compatible_with(dtypes.float32_ref)  # a value is wanted: a variable will do
    assert not dtypes.float32_ref.is_compatible_with(dtypes.float32)


@pytest.mark.parametrize("value", [int, str, "int", None, [1]])
def test_no_guessing(value):
    with pytest.raises(TypeError, match="Cannot convert the argument"):
        as_dtype(value)


def test_types_without_numpy_twin():
    assert not dtypes.resource.is_numpy_compatible
    with pytest.raises(KeyError):
        _ = dtypes.resource.as_numpy_dtype
    with pytest.raises(TypeError, match="minimum"):
        _ = dtypes.variant.min
