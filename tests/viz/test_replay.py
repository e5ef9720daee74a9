"""The picture of a replayed run: its rows, sentences and data, and what it answers a page."""

from __future__ import annotations

import contextlib
import itertools
import json
import queue
import re
import threading
import zlib
from base64 import b64decode

import pytest

import dtflab as tf
from dtflab import viz
from dtflab.cluster.replay import NotReplayable
from dtflab.machine.clock import current
from dtflab.viz.data import step_trace as trace
from dtflab.viz.drawing import front_end, ticker
from dtflab.viz.drawing.style import room
from dtflab.viz.drawing.units import moment
from dtflab.viz.replay import THIN, _boxes
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


def test_a_replay_and_a_timeline_say_why_they_count_differently():
    with tf.Cluster(ps=1, worker=1, cpu=CPU, network=NETWORK, clock="virtual") as cluster, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            w = tf.get_variable("w", [50, 50], initializer=tf.ones_initializer())
        with tf.device("/job:worker/task:0"):
            loss = tf.reduce_sum(tf.matmul(w, tf.reshape(w, [50, 50])))
        with tf.Session(cluster.target) as sess:
            sess.run(w.initializer)
            step = trace.read(sess.trace(loss))
            timeline, replay = viz.timeline(sess.trace(loss)), viz.replay(loss, sess)
    took = {event.name for event in step.events if event.duration > 0}
    assert {kernel.name for kernel in replay.run.kernels} == took < {event.name for event in step.events}
    assert 0 < step.total < 1e6 * replay.run.end, "the answer has a way to the client"
    assert "ops that take no time count, too" in timeline.sentence
    assert f"{len(took)} ops (those that take time) and " in replay.sentence and "those that take time" in replay.svg
    assert "It ends when clients have their answers." in replay.sentence


def test_rows_of_a_narrow_picture_have_names_that_differ():
    viz.style("projector")
    try:
        with tf.Cluster(ps=1, worker=3, gpu="K40", clock="virtual") as cluster, tf.Graph().as_default():
            ones = []
            for task in range(3):
                with tf.device(f"/job:worker/task:{task}/gpu:0"):
                    ones.append(tf.matmul(tf.ones([50, 50]), tf.ones([50, 50])))
            with tf.Session(cluster.target) as sess:
                svg = viz.replay(ones, sess).svg
    finally:
        viz.style("default")
    names = re.findall(r'class="b"[^>]*>([^<]*(?:GPU|…)[^<]*)<', svg)
    assert len(names) == len({*names}) == 3


def test_a_fork_is_drawn_below_the_original_with_its_first_difference(picture):
    at = picture.run.end / 2
    fork = picture.fork(at, kill="worker:1")
    live = data(fork)
    assert len(live["runs"]) == 2 and [words for _, words in live["marks"]] == ["fork", "first difference"]
    assert live["moments"][live["at"]] == round(1e6 * fork.difference.at, 6)
    assert [row["label"] for row in live["runs"][1]["rows"]] == [row["label"] for row in live["runs"][0]["rows"]]
    assert f"Original: ends at {moment(1e6 * picture.run.end)}" in fork.sentence
    for text in ("kill worker:1: ends at", "UnavailableError", "The first difference is at", "in place of"):
        assert text in fork.sentence
    assert live["notes"] == ["The first difference" + fork.sentence.partition("The first difference")[2]]
    assert "worker:1 killed" in " ".join(live["runs"][1]["says"]) and len(fork.tables) == 2
    assert picture.fork(at).sentence.endswith("No event differs.")


def test_a_message_that_only_arrives_later_is_not_said_to_stand_in_its_own_place(picture):
    fork = picture.fork(0.0, network="ps:0=0.01x")
    before, after = fork.difference.original, fork.difference.fork
    assert before.started == after.started and before.ended < after.ended
    assert (
        f"begins alike, but ends at {moment(1e6 * after.ended)}, not at {moment(1e6 * before.ended)}." in fork.sentence
    )


class Page:
    """A page that shows a picture: it asks for forks, and hears what comes of them."""

    def __init__(self, picture, monkeypatch):
        touch = data(picture)["picture"]
        self.answer, self.heard = front_end._answers[touch], queue.Queue()
        monkeypatch.setattr(ticker.front_end, "tell", lambda picture, says: self.tell(says))

    def tell(self, says):
        self.heard.put(says)

    def asks(self, **asks):
        self.answer(asks, self.tell)

    def hears(self, of):
        """The next word of that kind; those before it say how far the fork is."""
        while of not in (says := self.heard.get(timeout=60)):
            assert says.keys() == {"reached"}, says
        return says[of]


def test_a_page_may_ask_for_forks(picture, monkeypatch):
    page = Page(picture, monkeypatch)
    rows = data(picture)["runs"][0]["rows"]
    link = next(row for row in rows if row["label"] == "worker:1 → ps:0")
    page.asks(at=link["from"][-1], kind="lose", what=link["n"][-1])
    assert "is lost: ends at" in page.hears("html")
    page.asks(at=3, kind="network", what="ps:0=10x")
    assert "network of ps:0 10 times as fast: ends at" in page.hears("html"), "in the words of the choice"
    page.asks(at=3, kind="network", what="ps:0=0.1x")
    assert "network of ps:0 10 times slower: ends at" in page.hears("html")
    page.asks(at=3, kind="network", what="nobody")
    assert page.hears("error").startswith("network='nobody' does not say")


def trained(client):
    with tf.device(tf.train.replica_device_setter(cluster=client.cluster_spec, worker_device=client.device)):
        w = tf.get_variable("w", [10], initializer=tf.zeros_initializer())
        step = tf.train.get_or_create_global_step()
        loss = tf.reduce_sum(tf.square(w - 1.0))
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    last = tf.train.StopAtStepHook(last_step=10)
    with tf.train.MonitoredTrainingSession(client.target, client.is_chief, hooks=[last]) as sess:
        while not sess.should_stop():
            sess.run(train)


def test_a_fork_that_kills_a_task_of_a_monitored_session_ends(monkeypatch):
    with tf.Cluster(ps=1, worker=2, cpu=CPU, network=NETWORK, clock="virtual") as cluster:
        page = Page(viz.replay(trained, cluster), monkeypatch)
        page.asks(at=100, kind="kill", what="worker:1")
        html = page.hears("html")
    assert "kill worker:1: ends at" in html and "with DeadlockError" in html
    why = "client /job:worker/task:1 waits for a session: The cluster of"
    assert why in html and "has lost /job:worker/task:1" in html, "and says why"


def endless(way):
    """A program that goes on forever once worker:1 is killed, and an event of the moment at which it does."""
    begun = threading.Event()

    def work(client):
        begun.clear()
        total = tf.reduce_sum(tf.ones([100, 100]))
        with tf.Session(client.target) as sess:
            sess.run(total)
            tf.sim.sleep(1.0)
            alive = client.cluster.task("worker", 1).state == "running"
            for _ in itertools.count() if not alive else range(1):
                way(sess, total)
                begun.set()

    return work, begun


def tries_again(sess, total):
    with contextlib.suppress(tf.errors.OpError):
        sess.run(total)


def polls(sess, total):
    tf.sim.sleep(1.0)


@pytest.mark.parametrize("way", [tries_again, polls])
def test_a_fork_without_an_end_is_cancelled(monkeypatch, way):
    work, begun = endless(way)
    with tf.Cluster(ps=1, worker=2, cpu=CPU, network=NETWORK, clock="virtual") as cluster:
        page = Page(viz.replay(work, cluster), monkeypatch)
        page.asks(at=1, kind="kill", what="worker:1")
        assert begun.wait(60) and page.hears("reached")
        page.asks(kind="cancel")
        (fork,) = [thread for thread in threading.enumerate() if thread.name == "dtflab fork"]
        fork.join(60)
        assert not fork.is_alive()
        page.asks(at=1, kind="network", what="ps:0=10x")
        assert "10 times as fast: ends" in page.hears("html"), "and nothing is said of the one that was cancelled"


def test_any_failure_of_a_fork_is_said(monkeypatch):
    class Ends(BaseException):
        pass

    def work(client):
        with tf.Session(client.target) as sess:
            sess.run(tf.reduce_sum(tf.ones([100, 100])))
            if forks:
                raise Ends("enough\nof it.")

    forks = []
    with tf.Cluster(ps=1, worker=1, cpu=CPU, network=NETWORK, clock="virtual") as cluster:
        page = Page(viz.replay(work, cluster), monkeypatch)
        forks.append(1)
        page.asks(at=1, kind="network", what="ps:0=10x")
        assert page.hears("error") == "There is no fork: Ends: enough."


def test_a_fork_leaves_the_clock_of_the_program_alone(monkeypatch):
    clocks, begun, go_on = [], threading.Event(), threading.Event()

    def work(client):
        with tf.Session(client.target) as sess:
            sess.run(tf.reduce_sum(tf.ones([100, 100])))
        clocks.append(current())
        begun.set()
        assert go_on.wait(60)

    with tf.Cluster(worker=1, cpu=CPU, network=NETWORK, clock="virtual") as cluster:
        go_on.set()
        page = Page(viz.replay(work, cluster), monkeypatch)
        begun.clear()
        go_on.clear()
        page.asks(at=1, kind="network", what="worker:0=10x")
        assert begun.wait(60)
        assert current() is cluster.clock and clocks[-1] is not cluster.clock, "while the fork is computed"
        go_on.set()
        page.hears("html")


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


def test_the_plot_takes_most_of_the_page_and_no_line_crosses_a_title(picture):
    fork = picture.fork(picture.run.end / 2, kill="worker:1")
    plot = data(fork)["plot"]
    assert plot["right"] - plot["left"] > 0.68 * room()
    lines = re.findall(r'd="([^"]*)" class="(?:grid|mark fork|mark first)"', fork.svg)
    spans = {tuple(map(float, span)) for line in lines for span in re.findall(r"M[\d.]+ ([\d.]+)V([\d.]+)", line)}
    titles = [float(y) for y in re.findall(r'y="([\d.]+)"[^>]*>(?:Original|Fork at)', fork.svg)]
    assert len(lines) > 2 and len(titles) == 2
    assert not [(span, y) for span in spans for y in titles if span[0] < y and y - 12 < span[1]]


@pytest.mark.parametrize(
    "second, boxes",
    [
        ((10.0, 20.0), [(0.0, 10.0), (11.0, 20.0)]),  # touches: a gap
        ((10.0, 12.0), [(0.0, 12.0)]),  # touches, too narrow for one
        ((8.0, 20.0), [(0.0, 20.0)]),  # overlaps
        ((12.0, 12.2), [(0.0, 10.0), (12.0, 13.0)]),  # apart, and a unit wide
    ],
)
def test_bars_that_touch_are_told_apart_where_there_is_room(second, boxes):
    path = _boxes([(0.0, 10.0), second], y=5.0, height=THIN)
    assert [(float(a), float(b)) for a, b in re.findall(r"M([\d.]+) 5H([\d.]+)v12H", path)] == boxes


def test_a_queue_is_drawn_as_high_as_it_is_full(picture):
    heights = re.findall(r'<path d="M[^"]*?v([\d.]+)H[^"]*" fill="[^"]*" class="queue"', picture.svg)
    assert sorted(map(float, heights)) == pytest.approx([THIN * level / 6 for level in range(1, 7)], abs=0.01)
