"""Attributes in messages that no misfit in tests/graph/oracle/test_shape_rules.py has."""

from __future__ import annotations

import numpy as np

from dtflab.graph import attr_value, dtypes
from dtflab.graph.function_attr import FunctionAttr
from dtflab.graph.tensor_shape import TensorShape


def test_a_long_list_is_shown_by_its_ends():
    assert attr_value.summary(list(range(49))) == str(list(range(49)))
    assert attr_value.summary(list(range(60))) == "[0, 1, 2, 3, 4, ..., 55, 56, 57, 58, 59]"


def test_nested_values():
    function = FunctionAttr("f", {"T": dtypes.float32})
    assert attr_value.summary([function]) == "[f[T=DT_FLOAT]]"
    assert attr_value.summary(np.zeros([2, 3], np.int64)) == "Tensor<type: int64 shape: [2,3]>"
    assert attr_value.summary([TensorShape(None), TensorShape([]), TensorShape([None, 3])]) == "[<unknown>, [], [?,3]]"
    assert attr_value.summary_of_all({"b": False, "a": 1, "T": dtypes.half}) == "T=DT_HALF, a=1, b=false"
