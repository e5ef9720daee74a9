"""The picture of a replayed run: its rows, sentences and data, and what it answers a page."""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode

import pytest

import dtflab as tf
from dtflab import viz
from dtflab.cluster.replay import NotReplayable
from dtflab.viz.drawing import front_end
from dtflab.viz.drawing.units import duration
from tests.virtual.small_program import CPU, NETWORK


def work(client):
    with tf.device("/job:ps/task:0"):
        total = tf.get_variable("total", [100], initializer=tf.zeros_initializer())
        queue = tf.FIFOQueue(9, tf.float32, shared_name="done")
    with tf.device(client.device):
        part = tf.reduce_sum(tf.ones([100, 100]), axis=0, name="part")
    with tf.Session(client.target) as sess:
        sess.run(total.initializer) if client.is_chief else tf.sim.sleep(1e-3)
        for _ in range(3):
            sess.run([tf.assign_add(total, part, name="add").op, queue.enqueue(1.0)])


@pytest.fixture(scope="module")
def picture():
    with tf.Cluster(ps=1, worker=2, cpu=CPU, network=NETWORK, clock="virtual") as cluster:
        yield viz.replay(work, cluster)


def data(picture):
    (text,) = re.findall(r'class="dtf-data">(.*)</script>', picture.html)
    found = json.loads(text)
    return json.loads(zlib.decompress(b64decode(found))) if isinstance(found, str) else found


def test_each_device_link_queue_and_variable_has_a_row(picture):
    rows = data(picture)["runs"][0]["rows"]
    assert [(row["kind"], row["label"]) for row in rows] == [
        ("device", "ps:0"), ("device", "worker:0"), ("device", "worker:1"), ("link", "ps:0 → worker:0"),
        ("link", "ps:0 → worker:1"), ("link", "worker:0 → ps:0"), ("link", "worker:1 → ps:0"), ("queue", "done"),
        ("variable", "total"),
    ]  # fmt: skip
    assert rows[-2]["level"] == [1, 2, 3, 4, 5, 6] and rows[-2]["capacity"] == [9] and len(rows[-1]["from"]) == 7


def test_columns_refer_to_moments_texts_and_records(picture):
    live, run = data(picture), picture.run
    ps = live["runs"][0]["rows"][0]
    for i, n in enumerate(ps["n"]):
        kernel = run.kernels[n]
        assert live["texts"][ps["name"][i]] == kernel.name
        moments = [live["moments"][ps[column][i]] for column in ("ready", "from", "to")]
        assert moments == [round(1e6 * at, 6) for at in (kernel.ready, kernel.started, kernel.ended)]
    assert live["moments"] == sorted(set(live["moments"])) and live["runs"][0]["end"] == len(live["moments"]) - 1
    assert live["tasks"] == ["ps:0", "worker:0", "worker:1"] and live["at"] == 0


def test_each_moment_has_a_sentence(picture):
    live = data(picture)
    (run,) = live["runs"]
    assert run["said"] == sorted(run["said"]) and set(run["said"]) >= {*range(1, len(live["moments"]))}
    says = " ".join(run["says"])
    for text in ("worker:1 begins part.", "part (400 B) sets out from worker:1 to ps:0", "part arrives at ps:0",
                 "queue done has 6 elements", "The run ends."):  # fmt: skip
        assert text in says
    assert picture.tables[0][2][-1][1].endswith("The run ends.")


def test_a_fork_is_drawn_below_the_original_with_its_first_difference(picture):
    at = picture.run.end / 2
    fork = picture.fork(at, kill="worker:1")
    live = data(fork)
    assert len(live["runs"]) == 2 and [words for _, words in live["marks"]] == ["fork", "first difference"]
    assert live["moments"][live["at"]] == round(1e6 * fork.difference.at, 6)
    assert [row["label"] for row in live["runs"][1]["rows"]] == [row["label"] for row in live["runs"][0]["rows"]]
    assert f"Original: ends at {duration(1e6 * picture.run.end)}" in fork.sentence
    for text in ("kill worker:1: ends at", "UnavailableError", "The first difference is at", "in place of"):
        assert text in fork.sentence
    assert "worker:1 killed" in " ".join(live["runs"][1]["says"]) and len(fork.tables) == 2
    assert picture.fork(at).sentence.endswith("No event differs.")


def test_a_message_that_only_arrives_later_is_not_said_to_stand_in_its_own_place(picture):
    fork = picture.fork(0.0, network="ps:0=0.01x")
    before, after = fork.difference.original, fork.difference.fork
    assert before.started == after.started and before.ended < after.ended
    assert (
        f"begins alike, but ends at {duration(1e6 * after.ended)}, not at {duration(1e6 * before.ended)}."
        in fork.sentence
    )


def test_a_page_may_ask_for_forks(picture):
    answer, told = front_end._answers[data(picture)["picture"]], []
    rows = data(picture)["runs"][0]["rows"]
    link = next(row for row in rows if row["label"] == "worker:1 → ps:0")
    answer({"at": link["from"][-1], "kind": "lose", "what": link["n"][-1]}, told.append)
    answer({"at": 3, "kind": "network", "what": "ps:0=10x"}, told.append)
    answer({"at": 3, "kind": "network", "what": "nobody"}, told.append)
    lost, faster, wrong = told
    assert "is lost: ends at" in lost["html"] and "network ps:0=10x: ends at" in faster["html"]
    assert wrong["error"].startswith("network='nobody' does not say")


def test_a_kernel_that_waits_is_chosen_by_its_number(picture):
    waits = [n for n, kernel in enumerate(picture.run.kernels) if kernel.started > kernel.ready]
    assert not waits, "four cores are enough for this program: no choice"
    with pytest.raises(NotReplayable, match="does not wait for a processor"):
        picture.fork(picture.run.end, next=picture.run.kernels[0])


def test_a_fetch_needs_a_session_and_a_function_a_cluster(picture):
    cluster = picture._replay.cluster
    with tf.Graph().as_default(), tf.Session(cluster.target) as sess:
        shown = viz.replay(tf.square(tf.placeholder_with_default([3.0], [1]), name="nine"), sess)
        assert list(shown.run.results) == [9.0] and "nine" in str(shown)
        with pytest.raises(TypeError, match=r"A function is replayed on a cluster"):
            viz.replay(work, sess)
        with pytest.raises(TypeError, match=r"What a step fetches is replayed on a session"):
            viz.replay(tf.constant(1), cluster)


def test_the_busiest_rows_are_drawn_of_many():
    def fills(client):
        with tf.Session(client.target) as sess:
            for i in range(20):
                queue = tf.FIFOQueue(50, tf.float32, shared_name=f"q{i}")
                sess.run([queue.enqueue(1.0), tf.square(tf.ones([9]))])
                sess.run(queue.dequeue())

    with tf.Cluster(worker=1, cpu=CPU, network=NETWORK, clock="virtual") as cluster:
        shown = viz.replay(fills, cluster)
    rows = data(shown)["runs"][0]["rows"]
    assert shown.run.error is None
    assert sum(row["kind"] == "queue" for row in rows) == 8
    assert "the busiest 8 of 20 queues are drawn" in shown.sentence


def test_a_killed_task_is_so_until_it_is_started_again(picture):
    at = picture.run.end / 2
    live = data(picture.fork(at, kill=f"worker:1={at / 20:.9f}s"))
    dead = {row["label"]: row.get("dead") for row in live["runs"][1]["rows"] if row["kind"] == "device"}
    ((begin, end),) = dead.pop("worker:1")
    assert live["moments"][begin] == round(1e6 * at, 6) and 1.04e6 * at < live["moments"][end] < 1.06e6 * at
    assert set(dead.values()) == {None} and not any("dead" in row for row in live["runs"][0]["rows"])


def test_a_queue_is_drawn_as_high_as_it_is_full(picture):
    heights = re.findall(r'<path d="M[^"]*?v([\d.]+)H[^"]*" fill="[^"]*" class="queue"', picture.svg)
    assert sorted(map(float, heights)) == pytest.approx([13 * level / 6 for level in range(1, 7)], abs=0.01)
