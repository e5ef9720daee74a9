"""Laws of virtual time: values are those of real time, a seed makes a run, what may be permuted changes nothing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

import dtflab as tf
from tests.graphs import recipes
from tests.test_one_equals_many import TWO_CPUS, assert_same, on_cluster, one_device


@pytest.fixture(scope="module")
def cluster():
    with tf.Cluster(ps=1, worker=2, config=TWO_CPUS, clock="virtual", stragglers=tf.sim.lognormal(1.0)) as cluster:
        yield cluster


@pytest.mark.timeout(300)
@settings(max_examples=1000)
@given(recipe=recipes)
def test_a_thousand_programs_have_equal_values_in_real_and_in_virtual_time(cluster, recipe):
    before = cluster.now()
    assert_same(one_device(recipe), on_cluster(cluster, recipe))
    assert cluster.now() >= before
