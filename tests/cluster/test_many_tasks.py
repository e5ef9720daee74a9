"""Clusters of many tasks: N sessions of N tasks share descriptions, comparisons and records."""

from __future__ import annotations

import gc

import dtflab as tf
from dtflab.graph import device_spec
from dtflab.graph.node import make_node
from dtflab.machine import hosts
from dtflab.machine.registry import Registry
from dtflab.placement.colocation_graph import ColocationGraph


def test_the_cards_of_a_cluster_are_published_once_at_its_start_and_once_at_its_end(monkeypatch):
    gc.collect()  # a cluster of an earlier test that nobody stopped
    others = set(hosts._cards)
    published: list[tuple[int, int]] = []
    monkeypatch.setattr(
        Registry,
        "publish",
        lambda self, known, holdings: published.append((len(known.keys() - others), len(holdings))),
    )
    with tf.Graph().as_default(), tf.Cluster(worker=5, gpus=1, clock="virtual") as cluster:
        assert published == [(5, 0)]
        for i in range(5):
            with tf.device(f"/job:worker/task:{i}/gpu:0"):
                tf.Variable(1.0)
        with tf.Session(cluster.target) as session:
            session.run(tf.global_variables_initializer())
        assert published[-1] == (5, 5)  # memory that a program takes is published when it takes it
        published.clear()
    assert [len(published), published[-1]] == [2, (0, 0)]  # the tasks' memory, then their cards


def test_the_sessions_of_a_cluster_share_what_a_device_says_of_itself():
    with tf.Graph().as_default(), tf.Cluster(ps=1, worker=2) as cluster:
        tf.constant(1.0)
        with tf.Session(cluster.target_of("worker", 0)) as a, tf.Session(cluster.target_of("worker", 1)) as b:
            ones, others = (session.master_session().devices for session in (a, b))
            assert len(ones) == 3 and all(one is other for one, other in zip(ones, others, strict=True))


def test_a_pin_to_a_task_is_compared_with_its_own_devices_only(monkeypatch):
    devices = [f"/job:{job}/replica:0/task:{i}/device:CPU:0" for job in ("ps", "worker") for i in range(100)]
    node = make_node("node", "NoOp", device="/job:worker/task:7")
    graph = ColocationGraph([node], devices, False, {})
    compared: list[str] = []
    monkeypatch.setattr(device_spec, "matches", lambda asked, full: compared.append(full) or "worker" in full)
    assert graph.devices_for(node) == [devices[107]]
    assert compared == [devices[7], devices[107]]
