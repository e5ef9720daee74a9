"""The law of a distributed runtime: however a graph is placed and run, its values are those of one device, bit for bit."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given, settings

import dtflab as tf
from dtflab.runtime import local, transport
from dtflab.runtime.runner import SeededStep
from tests.graphs import build, recipes, run

TASKS = ("/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1")


def one_device(recipe):
    built = build(recipe, lambda place: "")
    with tf.Session(graph=built.graph) as session:
        return run(built, session)


def assert_same(expected, found):
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


@settings(max_examples=150, deadline=None)
@given(recipes)
def test_many_devices_of_one_task(recipe):
    built = build(recipe, lambda place: f"/cpu:{place % 3}")
    with tf.Session(graph=built.graph, config=tf.ConfigProto(device_count={"CPU": 3})) as session:
        assert_same(one_device(recipe), run(built, session))


@pytest.fixture(scope="module")
def in_process():
    with tf.Cluster(ps=1, worker=2) as cluster:
        yield cluster


@settings(max_examples=150, deadline=None)
@given(recipe=recipes)
def test_tasks_of_one_process(in_process, recipe):
    built = build(recipe, lambda place: TASKS[place % 3])
    with tf.Session(in_process.target, graph=built.graph) as session:
        assert_same(one_device(recipe), run(built, session))
    tf.Session.reset(in_process.target)


@pytest.fixture(scope="module")
def processes():
    with tf.Cluster(ps=1, worker=2, engine="process") as cluster:
        yield cluster


@settings(max_examples=60, deadline=None)
@given(recipe=recipes)
def test_tasks_in_processes_of_their_own(processes, recipe):
    built = build(recipe, lambda place: TASKS[place % 3])
    with tf.Session(processes.target, graph=built.graph) as session:
        assert_same(one_device(recipe), run(built, session))
    tf.Session.reset(processes.target)


def seeded_master(target, config):
    """A local master whose steps pick the next ready node by the seed in `seeded://7`."""
    master = local.local_master("", config)
    master.new_step = functools.partial(SeededStep, seed=int(target.partition("://")[2]))
    return master


transport.register_scheme("seeded", seeded_master)


@settings(max_examples=60, deadline=None)
@given(recipe=recipes)
def test_any_order_that_the_graph_allows(recipe):
    expected = one_device(recipe)
    built = build(recipe, lambda place: f"/cpu:{place % 3}")
    for seed in range(5):
        config = tf.ConfigProto(device_count={"CPU": 3})
        with tf.Session(f"seeded://{seed}", graph=built.graph, config=config) as session:
            assert_same(expected, run(built, session))
