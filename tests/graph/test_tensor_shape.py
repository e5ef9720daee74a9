from __future__ import annotations

import copy
from types import SimpleNamespace

import numpy as np
import pytest

from dtflab.graph.tensor_shape import (
    Dimension,
    TensorShape,
    broadcast_shape,
    infer_broadcast,
    matrix,
    scalar,
    unknown_shape,
    vector,
)


def test_an_unknown_size_makes_the_answer_unknown():
    unknown = Dimension(None)
    assert (unknown + 3).value is None
    assert (unknown == 3) is None
    assert (unknown == unknown) is None
    assert (Dimension(3) < unknown) is None


def test_a_dimension_is_used_as_a_number():
    assert np.zeros(Dimension(3)).shape == (3,)
    assert [0] * Dimension(2) == [0, 0]
    with pytest.raises(TypeError, match="please use // instead"):
        Dimension(6) / 2


def test_shapes_from_everything():
    dim = SimpleNamespace
    proto = SimpleNamespace(unknown_rank=False, dim=[dim(size=-1), dim(size=3)])
    assert TensorShape(proto) == TensorShape([None, 3]) == TensorShape((None, Dimension(3))) == [None, 3]
    assert TensorShape(SimpleNamespace(unknown_rank=True, dim=[])) == unknown_shape() == TensorShape(None)
    assert TensorShape(5) == vector(5)
    assert scalar() == []
    assert matrix(None, 2) == [None, 2]


def test_proto_both_ways():
    for shape in (unknown_shape(), scalar(), TensorShape([None, 0, 7])):
        assert TensorShape(shape.as_proto()) == shape


def test_elements_are_dimensions():
    shape = TensorShape([2, None])
    assert shape[0].value == 2
    assert [d.value for d in shape] == [2, None]
    assert shape[1:] == [None]
    assert unknown_shape()[1:3].rank == 2
    assert repr(shape) == "TensorShape([Dimension(2), Dimension(None)])"
    assert str(shape) == "(2, ?)"


def test_equal_shapes_are_one_key():
    assert len({TensorShape([1, None]), TensorShape([1, None]), TensorShape(None)}) == 2
    assert copy.deepcopy(TensorShape([1, None])) == [1, None]


def test_the_two_texts_of_a_bad_broadcast():
    a, b = TensorShape([2, 3]), TensorShape([4])
    with pytest.raises(ValueError, match=r"Incompatible shapes for broadcasting.*\(2, 3\) and \(4,\)"):
        broadcast_shape(a, b)
    with pytest.raises(ValueError, match=r"^Dimensions must be equal, but are 3 and 4$"):
        infer_broadcast(a, b)
