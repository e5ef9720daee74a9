"""The picture of machines: tasks by host, services that were called, clients, tasks that have ended."""

from __future__ import annotations

import pytest

import dtflab as tf

SPEC = {"ps": ["a.example:2221"], "worker": ["a.example:2222", "b.example:2222"]}
SEES = {"ps": "", "worker": ["0,1", "0"]}
HEADS = ("task", "machine", "port", "devices", "called", "state")


@pytest.fixture
def cluster():
    with tf.Cluster(SPEC, gpus=2, visible_devices=SEES) as found:
        yield found


def rows(picture):
    ((_, heads, found),) = picture.tables
    assert tuple(heads) == HEADS
    return {row[0]: row[1:] for row in found}


def test_a_cluster_alone(cluster):
    picture = tf.viz.machines(cluster)
    assert rows(picture) == {
        "ps:0": ["a.example", "2221", "CPU:0", "", "running"],
        "worker:0": ["a.example", "2222", "CPU:0, GPU:0, GPU:1", "", "running"],
        "worker:1": ["b.example", "2222", "CPU:0, GPU:0", "", "running"],
    }
    assert picture.text.startswith("3 tasks on 2 machines\n")
    assert picture.svg.count(">a.example<") == 1 == picture.svg.count(">b.example<")
    assert picture.svg.count(">master service<") == 3 == picture.svg.count(">worker service<")
    assert "session" not in picture.text


def test_services_that_were_called(cluster):
    with tf.device("/job:ps/task:0"):
        a = tf.constant(1.0)
    with tf.device("/job:worker/task:0"):
        b = a + 1.0
    with tf.watch() as seen, tf.Session(cluster.target_of("worker", 1)) as session:
        session.run(b)
    picture = tf.viz.machines(cluster, seen)
    called = {task: row[3] for task, row in rows(picture).items()}
    assert called == {"ps:0": "worker service", "worker:0": "worker service", "worker:1": "master service"}
    assert "client has a session at worker:1" in picture.text
    assert "1 client" in picture.sentence and "client has a session at worker:1." in picture.sentence
    assert picture.svg.count('class="session"') == 1
    for task in ("ps:0", "worker:0"):  # these two send each other a tensor, too: that is not a master's call
        assert f"master worker:1 called the worker service of {task}." in picture.sentence
    assert picture.svg.count('class="asks"') == 2 == picture.text.count("called the worker service of")


def test_a_task_that_has_ended(cluster):
    cluster.kill("worker", 0)
    assert rows(tf.viz.machines(cluster))["worker:0"] == ["a.example", "2222", "", "", "killed"]
    assert ">killed<" in tf.viz.machines(cluster).svg


def test_calls_of_another_cluster_are_not_drawn(cluster):
    with tf.Cluster(chief=1) as other, tf.watch() as seen, tf.Session(other.target) as session:
        session.run(tf.constant(1.0))
    picture = tf.viz.machines(cluster, seen)
    assert "session" not in picture.text and not any(row[3] for row in rows(picture).values())


def test_of_many_tasks_the_first_are_drawn():
    with tf.Cluster(worker=30) as cluster:
        picture = tf.viz.machines(cluster)
    assert "30 tasks on 30 machines; the first 24 tasks are drawn" in picture.sentence
    assert picture.svg.count(">master service<") == 24
    assert len(rows(picture)) == 30
