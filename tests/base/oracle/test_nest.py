"""tf.nest: structures and their leaves, side by side with TensorFlow."""

from __future__ import annotations

import collections
from typing import Any, NamedTuple

import attr
import pytest

pytest.importorskip("tensorflow")
import tensorflow.compat.v1 as real_tf

import dtflab


class Pair(NamedTuple):
    a: Any
    b: Any


Other = collections.namedtuple("Other", "a b")
Twin = collections.namedtuple("Pair", "a b")


@attr.s(auto_attribs=True)
class Both:
    z: Any
    a: Any


STRUCTURES = [
    1, "text", None, [], (), {}, [1, [2, (3,)]], {"b": 1, "a": [2, (3,)]}, Pair(1, [2]), Both([1], 2), [None, ()],
    collections.OrderedDict([("z", 1), ("a", 2)]), collections.defaultdict(list, b=1, a=2),
    [{"k": Pair((1,), 2)}],
]  # fmt: skip


def tried(call):
    """The result of a call; for an error its class and, of the text, the sentence on the difference."""
    try:
        return repr(call())
    except Exception as error:
        return type(error).__name__, "don't have the same nested structure" in str(error), "is a sequence" in str(error)


def both(call):
    theirs, ours = call(real_tf), call(dtflab)
    assert ours == theirs


@pytest.mark.parametrize("structure", STRUCTURES, ids=repr)
def test_leaves(structure):
    both(lambda tf: tried(lambda: tf.nest.flatten(structure)))
    both(lambda tf: tried(lambda: tf.nest.map_structure(lambda x: (x,), structure)))
    both(lambda tf: tried(lambda: tf.nest.map_structure(lambda x, y: (x, y), structure, structure)))
    both(lambda tf: tf.nest.is_nested(structure))


@pytest.mark.parametrize("check_types", [True, False])
def test_the_same_structure(check_types):
    pairs = [
        ([1], (1,)), ([1], [1, 2]), (Pair(1, 2), Other(1, 2)), (Pair(1, 2), Twin(1, 2)), ({"a": 1}, {"b": 1}),
        ([1], 1), ([[1]], [1]), ({"a": 1}, collections.OrderedDict(a=2)), ({"a": 1}, [1]),
        ({"a": 1, "b": 2}, {"a": 1}), (1, "x"), ([1, (2,)], [3, (4,)]), (Both(1, 2), Both(3, 4)), (Both(1, 2), [1, 2]),
    ]  # fmt: skip
    for first, second in pairs:
        both(lambda tf, a=first, b=second: tried(lambda: tf.nest.assert_same_structure(a, b, check_types)))
        both(
            lambda tf, a=first, b=second: tried(
                lambda: tf.nest.map_structure(lambda x, y: (x, y), a, b, check_types=check_types)
            )
        )


def test_packing():
    for structure, flat in [
        ([1, 2], [3]),
        ((1, [2]), (3, 4)),
        (1, [2]),
        (1, 2),
        ([1], 5),
        ([], []),
        (Both(1, [2]), "xy"),
    ]:
        both(lambda tf, s=structure, f=flat: tried(lambda: tf.nest.pack_sequence_as(s, f)))
    both(lambda tf: tried(lambda: tf.nest.flatten({1: 2, "a": 3})))
    both(lambda tf: tried(lambda: tf.nest.map_structure(5, [1])))
    both(lambda tf: tried(lambda: tf.nest.map_structure(lambda: 1)))


def test_several_tensors_under_one_name():
    def parts(tf):
        with tf.Graph().as_default():
            slices = tf.IndexedSlices(tf.constant([1.0], name="v"), tf.constant([0], name="i"))
            sparse = tf.SparseTensor([[0]], [1.0], [2])
            structure = [slices, {"s": sparse}]
            names = [t.name for t in tf.nest.flatten(structure, expand_composites=True)]
            again = tf.nest.map_structure(tf.identity, structure, expand_composites=True)
            leaves = tf.nest.flatten(structure)
            return names, leaves == [slices, sparse], again[0].values.name, again[1]["s"].indices.op.inputs[0].name

    both(parts)
