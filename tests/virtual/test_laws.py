"""Laws of virtual time: values are those of real time, a seed makes a run, what may be permuted changes nothing."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings

import dtflab as tf
from tests.graphs import recipes
from tests.test_one_equals_many import TWO_CPUS, assert_same, on_cluster, one_device
from tests.virtual import small_program


@pytest.fixture(scope="module")
def cluster():
    with tf.Cluster(ps=1, worker=2, config=TWO_CPUS, clock="virtual", stragglers=tf.sim.lognormal(1.0)) as cluster:
        yield cluster


@pytest.mark.timeout(900)
@settings(max_examples=1000)
@given(recipe=recipes)
def test_a_thousand_programs_have_equal_values_in_real_and_in_virtual_time(cluster, recipe):
    before = cluster.now()
    assert_same(one_device(recipe), on_cluster(cluster, recipe))
    assert cluster.now() > before


# -- a run is a function of (program, cluster, seed) -----------------------------------------------------------------

# Of `small_program`, whose costs are in its file: if it changes on purpose, write the new one down here.
DIGEST = "89940decc8212bd700c00eaa558fe39d2b220707ed4ef3798260dc345dd01803"


def in_a_process(hash_seed):
    """The output of `small_program`: moments and hash, then the losses."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.virtual.small_program"],
        env=os.environ | {"PYTHONHASHSEED": hash_seed}, capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    return ran.stdout.splitlines()


def test_one_seed_gives_one_log_in_every_process_and_on_every_machine():
    first, second = in_a_process("1"), in_a_process("2")
    assert first == second
    assert first[0].split()[1] == DIGEST


def test_the_seed_of_the_cluster_is_where_numbers_without_seeds_come_from():
    first, again, other = small_program.run(1), small_program.run(1), small_program.run(2)
    assert first == again
    assert first[0] != other[0]


def test_slower_hardware_changes_no_random_number():
    """A worker's random numbers depend on its steps, not on when they are."""

    def alone(client):
        with tf.device(client.device), tf.Session(client.target) as session:
            numbers = tf.random_normal([3])
            return [session.run(numbers).tolist() for _ in range(4)]

    fast = small_program.run(program=alone)
    slow = small_program.run(program=alone, stragglers=tf.sim.exponential(3.0))
    assert fast[0] == slow[0] and fast[1] < slow[1]
    assert fast[0][0] != fast[0][1]  # each worker has its own


def test_seeds_of_graph_and_op_keep_their_values():
    def seeded(client):
        tf.set_random_seed(7)
        with tf.device(client.device), tf.Session(client.target) as session:
            return session.run([tf.random_normal([3]), tf.random_uniform([3], seed=5)])

    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(7)
        expected = session.run([tf.random_normal([3]), tf.random_uniform([3], seed=5)])
    for found in small_program.run(program=seeded)[0]:
        assert_same(expected, found)


def test_a_session_in_real_time_draws_from_the_system_again():
    def numbers():
        with tf.Graph().as_default(), tf.Session() as session:
            return session.run(tf.random_normal([3])).tolist()

    def program(client):
        with tf.device(client.device), tf.Session(client.target) as session:
            session.run(tf.random_normal([3]))
        return numbers()

    assert small_program.run(program=program)[0] != small_program.run(program=program)[0]
    assert numbers() != numbers()


def test_it_does_not_matter_which_worker_does_what():
    def times(sizes):
        def program(client):
            size = sizes[client.index]
            with tf.device(f"{client.device}/gpu:0"), tf.Session(client.target) as session:
                session.run(tf.reduce_sum(tf.matmul(*[tf.random_normal([size, size]) for _ in range(2)])))
            return tf.sim.now()

        return small_program.run(program=program)[0]

    first, second = times([100, 200, 300]), times([300, 100, 200])
    assert first == [second[1], second[2], second[0]]
    assert first == sorted(first)


def test_a_twice_as_fast_network_halves_the_time_of_what_only_waits_for_it():
    def seconds(bandwidth):
        network = dataclasses.replace(
            small_program.NETWORK, nic=dataclasses.replace(small_program.NETWORK.nic, bandwidth=bandwidth)
        )

        def program(client):
            with tf.device("/job:ps/task:0"):
                sent = tf.constant(np.zeros(2_000_000, np.float32))
            with tf.device(client.device), tf.Session(client.target) as session:
                session.run(tf.identity(sent).op)

        return small_program.run(program=program, network=network)[1]

    slow, fast, faster = map(seconds, (1e6, 2e6, 4e6))
    assert slow / fast == pytest.approx(2, rel=0.01) and fast / faster == pytest.approx(2, rel=0.02)
    assert slow > 3 * 8.0  # three workers share the egress of the ps
