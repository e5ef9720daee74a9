"""A peer that does not answer is reported and given up; one that computes, or that nobody waits for, is not."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import subprocess
import sys
import threading
from subprocess import PIPE
from types import SimpleNamespace
from unittest import mock

import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.cluster import connection as connections, link as links
from dtflab.cluster.addresses import free_addresses
from dtflab.cluster.link import Link
from dtflab.cluster.silence import LOOKS, Lookout, Pulse
from tests.cluster.two_tasks import HERE, THERE, lab_over, never, until, using


@pytest.fixture(autouse=True)
def thirty_seconds(monkeypatch):
    monkeypatch.setattr(tf.timeouts, "silence", 30.0)


# ---- the rule, with a peer of the test's own ----


class Peer:
    """A peer for which somebody waits. It answers a ping at once if it is `there`."""

    def __init__(self, there: bool = True) -> None:
        self.there, self.pings, self.answers = there, 0, 0
        self.is_watched = self.is_used = False
        self.waiting = [self.tell]
        self.said: list[str] = []

    def tell(self, line):
        self.said.append(line)

    def who(self):
        return "/job:ps/task:0"

    def awaiting(self):
        return self.waiting

    def signs(self):
        return self.answers

    def ping(self):
        self.pings += 1
        self.answers += self.there

    def give_up(self, why):
        self.said.append(why)


def looks(pulse, peer, seconds, every=3.0):
    for _ in range(int(seconds / every)):
        pulse.look(peer, every)


REPORT = "still waiting for /job:ps/task:0, silent for 30 s"
END = "silent for 60 s: stopped, overloaded or out of reach"


def test_silence_is_reported_and_then_ends_the_wait():
    pulse, peer = Pulse(), Peer(there=False)
    looks(pulse, peer, 30)
    assert (peer.said, peer.pings) == ([], 1)
    looks(pulse, peer, 3)
    assert peer.said == [REPORT]
    looks(pulse, peer, 27)
    assert peer.said == [REPORT]
    looks(pulse, peer, 3)
    assert (peer.said, peer.pings) == ([REPORT, END], 1)


def test_a_peer_that_answers_may_take_as_long_as_it_likes():
    pulse, peer = Pulse(), Peer()
    looks(pulse, peer, 600)
    assert (peer.said, peer.pings) == ([], 200)


def test_a_peer_that_goes_on_is_accepted_again():
    pulse, peer = Pulse(), Peer(there=False)
    looks(pulse, peer, 33)
    peer.there, peer.answers = True, 1
    looks(pulse, peer, 300)
    assert peer.said == [REPORT, "/job:ps/task:0 answers again"]


def test_only_a_peer_that_is_awaited_is_asked():
    pulse, peer = Pulse(), Peer(there=False)
    peer.waiting = []
    looks(pulse, peer, 300)
    assert peer.pings == 0
    peer.waiting = [peer.tell]
    looks(pulse, peer, 30)
    peer.waiting = []
    looks(pulse, peer, 3)  # that wait has ended
    peer.waiting = [peer.tell]
    looks(pulse, peer, 30)
    assert (peer.said, peer.pings) == ([], 2)


def test_each_person_is_told_once_however_many_calls_wait():
    pulse, peer = Pulse(), Peer(there=False)
    peer.waiting = [peer.tell] * 3
    looks(pulse, peer, 33)
    assert peer.said == [REPORT]


def test_time_in_which_this_process_stood_still_does_not_count(monkeypatch):
    """Ten minutes between two looks are those of a process that was stopped: its peer had no chance to be heard."""
    watch, peer, now, rests = Lookout(), Peer(there=False), [0.0], iter([3.0, 3.0, 600.0, 3.0])

    def rest(seconds):
        assert seconds == 30.0 / LOOKS
        step = next(rests, None)
        if step is None:
            peer.waiting = []
        now[0] += step or 0.0

    watch._rest = rest
    monkeypatch.setattr("dtflab.cluster.silence._pool", SimpleNamespace(submit=lambda task: task()))
    monkeypatch.setattr("dtflab.cluster.silence.REAL", SimpleNamespace(now=lambda: now[0]))
    watch.uses(peer)
    assert peer.said == [] and not peer.is_watched


def test_a_call_that_begins_while_its_peer_is_let_go_is_watched():
    watch, peer = Lookout(), Peer()
    watch._runs = True  # this test looks itself
    watch.uses(peer)
    peer.waiting = []
    watch.look(3.0)
    assert peer.is_watched  # a call has begun since the last look, and may only now be on its way

    class Late(Pulse):
        def look(self, peer, elapsed):
            found = super().look(peer, elapsed)
            watch.uses(peer)  # it sees that the peer is watched
            return found

    watch._pulses = dict.fromkeys(watch._pulses, Late())
    watch.look(3.0)
    assert peer.is_watched and len(watch._pulses) == 1
    watch.look(3.0)
    watch.look(3.0)
    assert not peer.is_watched and not watch._pulses


def test_a_peer_that_nobody_refers_to_is_let_go():
    watch = Lookout()
    watch._runs = True
    watch.uses(Peer())
    gc.collect()
    watch.look(3.0)
    assert not watch._pulses


# ---- over a link ----


def pair():
    """A link, and the other end of its connection."""
    here, there = socket.socketpair()
    link = Link(here, SimpleNamespace(), "there:1", shares=False)
    link.open()
    return link, there


def frame(there):
    head = there.recv(links._FRAME.size, socket.MSG_WAITALL)
    size, number, length, kind = links._FRAME.unpack(head)
    return kind, number, there.recv(length + size, socket.MSG_WAITALL) if length + size else b""


def test_a_ping_is_answered_while_a_request_is():
    with lab_over("link") as lab:
        link = lab.worker(0)._wire.link
        x = never(HERE)
        with lab.session(number=1) as session:
            failed = []

            def run():
                with contextlib.suppress(errors.OpError):
                    session.run(x)
                failed.append(True)

            thread = threading.Thread(target=run)
            thread.start()
            until(lambda: lab.waiting(), "the request waits")
            before = link.signs
            link.ping()
            until(lambda: link.signs != before, "the ping is answered")
            assert not failed
        thread.join()


def test_a_large_message_under_way_is_a_sign_of_life():
    """The ping is behind it, and so is its answer; but somebody reads, and what comes is counted before it is whole."""
    link, there = pair()
    with there:
        before = link.signs
        there.sendall(links._FRAME.pack(1 << 20, 1, 0, links._ANSWER) + bytes(1000))
        until(lambda: link.signs != before, "a part has come")
        link.tell("/x", [bytes(8 << 20)])
        link.ping()
        until(lambda: link._outbox.is_behind, "the connection is full")
        before = link.signs
        there.recv(6 << 20, socket.MSG_WAITALL)
        until(lambda: link.signs != before, "the other end reads")
        link.close()


def test_what_this_end_sends_is_no_sign_of_life():
    link, there = pair()
    with there:
        before = link.signs
        link.ping()
        link.tell("/x", [b"y"])
        link.send_off()
        assert [frame(there)[0], frame(there)[0]] == [links._PING, links._TELL]
        assert link.signs == before
        link.close()


def test_news_of_a_call_reaches_the_one_who_waits_for_it():
    link, there = pair()
    news = []
    with there:
        link.request("/x", [b""], lambda *answer: news.append(answer), news.append)
        _, number, _ = frame(there)
        for at, text in ((number, "q is empty\n\x1b[2J" + "x" * 2000), (number + 1, "for nobody")):
            there.sendall(links._FRAME.pack(len(text), at, 0, links._NEWS) + text.encode())
        there.sendall(links._FRAME.pack(0, number, 0, links._ANSWER))
        until(lambda: len(news) == 2, "the answer has come")
        assert news[0] == ("q is empty  [2J" + "x" * 2000)[:1000] and news[1][0] == 0
        link.close()


# ---- a task that does not answer ----


@pytest.mark.parametrize("wire", ["link", "grpc"])
def test_every_call_that_waits_for_a_silent_task_ends(wire, capsys):
    with lab_over(wire) as lab, mock.patch.object(Link, "ping"), mock.patch.object(connections, "_PING", "/none"):
        stub = lab.worker(1, lab.tasks[0])
        connection = stub._wire._connection
        with lab.session(number=0) as session:
            with tf.device(THERE):
                x = never(THERE)
            failed = []

            def run():
                with pytest.raises(tf.errors.UnavailableError) as error:
                    session.run(x)
                failed.append(error.value.message)

            thread = threading.Thread(target=run)
            thread.start()
            who = 1 if wire == "grpc" else 2  # over a link the client hears of it, too, and says so in this process
            until(lambda: lab.waiting() and len(set(connection.awaiting())) == who, "the step waits there")
            pulse = Pulse()
            with mock.patch.object(connection, "signs", lambda: 0):
                looks(pulse, connection, 66)
            thread.join()
            assert f"Task {lab.tasks[1].name}" in failed[0] and f"({END})" in failed[0]
    said = capsys.readouterr().err.splitlines()
    assert said == ["still waiting for /job:lab/task:1, silent for 30 s"] * who


# ---- processes that are stopped ----

PROGRAM = """
import sys, dtflab as tf
server = tf.train.Server({spec}, {job!r}, 0)
print("up", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def process(spec, job, silence):
    """The task 0 of a job, as a process of its own."""
    env = {**os.environ, "DTFLAB_TIMEOUT_SILENCE": str(silence)}
    program = PROGRAM.format(spec=spec, job=job)
    with subprocess.Popen([sys.executable, "-c", program], stdin=PIPE, stdout=PIPE, text=True, env=env) as child:
        try:
            assert child.stdout.readline() == "up\n"
            yield child
        finally:
            child.send_signal(signal.SIGCONT)
            child.stdin.close()


@pytest.mark.parametrize("wire", ["link", "grpc"])
@pytest.mark.parametrize("victim", ["ps", "worker"])
def test_a_stopped_process_is_reported_given_up_and_accepted_again(victim, wire, monkeypatch, capfd):
    monkeypatch.setattr(tf.timeouts, "silence", 1.0)
    with using(wire):
        spec = dict(zip(("ps", "worker"), ([address] for address in free_addresses(2)), strict=True))
        with process(spec, "ps", 1.0) as ps, process(spec, "worker", 1.0) as worker:
            stopped = {"ps": ps, "worker": worker}[victim]
            with tf.device("/job:ps"):
                w, queue = tf.Variable(1.0), tf.FIFOQueue(1, tf.float32, shared_name="q")
                late = queue.dequeue()
            with tf.device("/job:worker"):
                y, z = late + 1.0, w + 1.0
            target = f"grpc://{spec['worker'][0]}"
            with tf.Session(target) as sess:
                sess.run(w.initializer)
                assert sess.run(z) == 2.0
                stopped.send_signal(signal.SIGSTOP)
                with pytest.raises(tf.errors.UnavailableError, match=rf"Task /job:{victim}.*silent for 2 s"):
                    sess.run(y)
            if victim == "worker" or wire == "link":
                assert f"still waiting for /job:{victim}/task:0, silent for 1 s" in capfd.readouterr().err
            stopped.send_signal(signal.SIGCONT)
            with tf.Session(target) as sess:
                assert sess.run(z) == 2.0


def test_a_process_that_goes_on_in_time_ends_no_step(monkeypatch, capfd):
    monkeypatch.setattr(tf.timeouts, "silence", 2.0)
    spec = {"ps": free_addresses(1)}
    with process(spec, "ps", 60.0) as ps:
        target = f"grpc://{spec['ps'][0]}"
        queue = tf.FIFOQueue(1, tf.float32, shared_name="q")
        x, put = queue.dequeue(), queue.enqueue(3.0)
        with tf.Session(target) as sess:
            sess.run(tf.no_op())
            values, said = [], []

            def told(line):
                said.append(capfd.readouterr().err)
                return line in "".join(said)

            thread = threading.Thread(target=lambda: values.append(sess.run(x)))
            thread.start()
            until(lambda: sess._master._wire.link.awaiting(), "the step is on its way")
            ps.send_signal(signal.SIGSTOP)
            until(lambda: told("still waiting for /job:ps/task:0, silent for 2 s"), "it is reported")
            ps.send_signal(signal.SIGCONT)
            until(lambda: told("/job:ps/task:0 answers again"), "it answers again")
            assert not values
            sess.run(put)
            thread.join()
            assert values == [3.0]


@pytest.mark.parametrize("seconds", [0.3, 6.0])
def test_a_stopped_process_is_told_from_one_that_was_not_started(seconds):
    spec = {"ps": free_addresses(1)}
    with process(spec, "ps", 60.0) as ps:
        ps.send_signal(signal.SIGSTOP)
        with (
            mock.patch.object(tf.timeouts, "connect", seconds),
            pytest.raises(tf.errors.UnavailableError, match=r"accepts connections but does not answer .* stopped or"),
            tf.Session(f"grpc://{spec['ps'][0]}") as sess,
        ):
            sess.run(tf.no_op())


@pytest.mark.parametrize("wire", ["link", "grpc"])
def test_a_client_is_told_what_its_masters_calls_wait_for(wire, monkeypatch, capfd):
    """A session opens, and a step runs for the first time. Over gRPC, the master's process says the lines."""
    monkeypatch.setattr(tf.timeouts, "silence", 1.0)
    monkeypatch.setattr(tf.timeouts, "notice", 1.0)
    said_by = "" if wire == "link" else "/job:worker/task:0: "
    with using(wire), tf.Cluster(ps=1, worker=1, engine="process") as cluster:
        with tf.device("/job:ps"):
            x = tf.constant(1.0) + 1.0
        with tf.Session(cluster.target) as session:
            session.run(tf.no_op())
            os.kill(cluster.task("ps").pid, signal.SIGSTOP)
            capfd.readouterr()
            with pytest.raises(tf.errors.UnavailableError, match=r"Task /job:ps.*silent for 2 s"):
                session.run(x)
            assert f"{said_by}still waiting for /job:ps/task:0, silent for 1 s" in capfd.readouterr().err.splitlines()
        with (
            pytest.raises(tf.errors.UnavailableError, match=r"/job:ps.*accepts connections but does not answer .*2 s"),
            tf.Session(cluster.target) as other,
        ):
            other.run(x)
        line = f"{said_by}CreateSession still waiting for response from worker: "
        assert any(said.startswith(line) for said in capfd.readouterr().err.splitlines())
        os.kill(cluster.task("ps").pid, signal.SIGCONT)
