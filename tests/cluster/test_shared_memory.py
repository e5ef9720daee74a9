"""Shared memory: filled, read, used again, refused, and gone with the processes that had it."""

from __future__ import annotations

import gc
import os
import signal
import socket
import subprocess
import sys
import threading
from subprocess import PIPE

import numpy as np
import pytest

import dtflab as tf
from dtflab.cluster import link as links, negotiation, shared_memory
from dtflab.cluster.addresses import free_addresses
from dtflab.cluster.link import Link
from dtflab.cluster.shared_memory import Arriving, Leaving
from tests.cluster.two_tasks import until

LARGE = 1 << 18
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="no anonymous files on this system")


def handed(leaving, arriving, data):
    """The message with these bytes, as it arrives in a segment."""
    segment = leaving.filled([data[:7], data[7:]], len(data))
    if segment.fd >= 0:
        arriving.open(segment.number, segment.fd)
    return segment.number, arriving.message(segment.number, len(data))


def random_bytes(size, seed=0):
    return np.random.default_rng(seed).integers(0, 256, size, np.uint8).tobytes()


@linux_only
@pytest.mark.parametrize("size", [shared_memory._LEAST, LARGE + 1, 5_000_003])
def test_a_message_arrives_as_it_was(size):
    data = random_bytes(size)
    _, message = handed(Leaving(), Arriving(lambda number: None), data)
    assert message == data and message.readonly


@linux_only
def test_a_small_message_takes_no_segment():
    assert Leaving().filled([bytes(shared_memory._LEAST - 1)], shared_memory._LEAST - 1) is None


@linux_only
def test_a_segment_is_written_again_only_when_nobody_reads_it():
    """Each array made of the message counts, also a part of it."""
    leaving, read = Leaving(), []
    arriving = Arriving(read.append)
    first, message = handed(leaving, arriving, random_bytes(LARGE, 1))
    part = np.frombuffer(message, np.uint8)[100:200]
    kept = part.copy()
    del message
    gc.collect()
    assert read == []
    second, other = handed(leaving, arriving, random_bytes(LARGE, 2))
    assert second != first and (part == kept).all()
    del part
    assert read == [first]
    leaving.freed(read.pop())
    third, again = handed(leaving, arriving, random_bytes(LARGE, 3))
    assert third == first and again == random_bytes(LARGE, 3) and other == random_bytes(LARGE, 2)


@linux_only
def test_free_segments_are_given_up_beyond_a_limit(monkeypatch):
    monkeypatch.setattr(shared_memory, "_KEPT", 3 * LARGE)
    leaving = Leaving()
    segments = [leaving.filled([bytes(LARGE)], LARGE) for _ in range(5)]
    for segment in segments:
        os.close(segment.fd)
    dropped = [number for segment in segments for number in leaving.freed(segment.number)]
    assert dropped == [segments[0].number, segments[1].number]
    assert sorted(leaving._memory) == [segment.number for segment in segments[2:]]


@linux_only
def test_segments_are_few_because_each_is_an_open_file(monkeypatch):
    """Arrays that stay there, as in a queue, must not take the files that the process needs."""
    monkeypatch.setattr(shared_memory, "_MOST", 2)
    leaving = Leaving()
    first, second = (leaving.filled([bytes(LARGE)], LARGE) for _ in range(2))
    assert leaving.filled([bytes(LARGE)], LARGE) is None
    leaving.freed(first.number)
    assert leaving.filled([bytes(LARGE)], LARGE).number == first.number
    leaving.freed(first.number)
    large = [leaving.filled([bytes(9 * LARGE)], 9 * LARGE) for _ in range(2)]
    assert large[0].number > second.number and large[1] is None
    assert [leaving.freed(n) for n in (second.number, large[0].number)] == [[], [first.number]]
    for segment in (first, second, large[0]):
        os.close(segment.fd)


@linux_only
def test_a_segment_that_could_shrink_is_refused():
    """To read where nothing is any more ends a process."""
    fd = os.memfd_create("any", os.MFD_ALLOW_SEALING)
    os.truncate(fd, LARGE)
    with pytest.raises(ValueError, match="could shrink"):
        Arriving(lambda number: None).open(1, fd)
    with pytest.raises(OSError):
        os.fstat(fd)  # it was closed


@linux_only
def test_a_segment_of_ours_cannot_shrink():
    segment = Leaving().filled([bytes(LARGE)], LARGE)
    with pytest.raises(PermissionError):
        os.ftruncate(segment.fd, 0)
    os.close(segment.fd)


@linux_only
@pytest.mark.parametrize("number, size", [(2, 10), (1, LARGE + 1), (1, 1 << 60)])
def test_a_message_that_is_not_in_its_segment_is_refused(number, size):
    arriving = Arriving(lambda number: None)
    handed(Leaving(), arriving, random_bytes(LARGE))
    with pytest.raises(ValueError, match="no segment"):
        arriving.message(number, size)


@pytest.mark.parametrize("how", ["absent", "full"])
def test_without_shared_memory_one_line_says_so_and_everything_goes_over_the_socket(how, monkeypatch, capsys):
    monkeypatch.setattr(shared_memory, "_told", threading.Event())
    if how == "absent":
        monkeypatch.delattr(os, "memfd_create", raising=False)
    else:

        def is_full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "posix_fallocate", is_full, raising=False)
    with echoing() as (left, _):
        before = open_files()
        for seed in range(3):
            data = random_bytes(LARGE, seed)
            assert left.ask("/echo", [data]) == (0, "", data)
        assert open_files() == before
    assert capsys.readouterr().err.count("No shared memory is to be had") == 1


def open_files():
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


class echoing:
    """Two ends of a link in this process, of which each answers with what it was asked."""

    def __enter__(self):
        class Echo(negotiation.Client):
            def answer(self, path, request, call):
                return 0, "", [request]

        ends = zip(socket.socketpair(), ("right", "left"), strict=True)
        self.links = [Link(end, Echo(), name) for end, name in ends]
        for link in self.links:
            link.open()
        return self.links

    def __exit__(self, *exc):
        for link in self.links:
            link.close()


@linux_only
def test_the_same_segments_carry_a_long_conversation():
    with echoing() as (left, right):
        for seed in range(200):
            data = random_bytes(LARGE, seed % 5)
            code, _, answer = left.ask("/echo", [data])
            assert code == 0 and isinstance(answer, memoryview) and answer == data
            del answer
        assert len(left._leaving._memory) <= 3 and len(right._leaving._memory) <= 3


@linux_only
def test_one_who_has_nothing_to_send_gives_segments_back():
    with echoing() as (left, _):
        for n in range(20):
            left.push(n, "key", [bytes(LARGE)])()
            if n:
                until(lambda: left._leaving._free, "the one before is free")
        assert len(left._leaving._memory) == 2


@linux_only
def test_a_lost_link_keeps_no_memory_and_no_files():
    with echoing() as links:
        before = open_files()  # of the two sockets
        assert links[0].ask("/echo", [bytes(LARGE)])[0] == 0
        assert open_files() > before
    for link in links:
        until(lambda link=link: link._stream.closed and link._socket.fileno() < 0, "it has ended")
        link.push(1, "key", [bytes(LARGE)])()
        link.tell("/echo", [bytes(LARGE)])
        assert not link._outbox
    gc.collect()
    until(lambda: open_files() <= before - 2, "the sockets and the segments are gone")


@linux_only
def test_many_threads_share_a_link():
    wrong = []

    def ask(link, seed):
        for n in range(20):
            data = random_bytes(shared_memory._LEAST - 5 + n, seed * 100 + n)  # some in segments, some not
            if bytes(link.ask("/echo", [data])[2]) != data:
                wrong.append((seed, n))

    with echoing() as both:
        threads = [threading.Thread(target=ask, args=(both[seed % 2], seed)) for seed in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    assert wrong == []


@linux_only
def test_nothing_is_left_of_a_task_that_is_killed_while_it_sends():
    """The link is lost; arrays that came in its segments stay, and no name of one is left."""
    (address,) = free_addresses(1)
    program = f"import dtflab as tf; tf.train.Server({{'w': ['{address}']}}, 'w', 0); print('up', flush=True); input()"
    seen = set(os.listdir("/dev/shm"))
    for kill_after in range(3):
        with subprocess.Popen([sys.executable, "-c", program], stdin=PIPE, stdout=PIPE, text=True) as task:
            assert task.stdout.readline() == "up\n"
            with tf.Graph().as_default(), tf.Session(f"grpc://{address}") as sess:
                size = tf.placeholder(tf.int32, [])
                large = tf.range(size)
                kept = [sess.run(large, {size: 1 << 18}) for _ in range(kill_after + 1)]
                link = until(lambda: negotiation.between("", address), "the link is up")
                kept += [sess.run(large, {size: 1 << 18}) for _ in range(kill_after)]
                running = threading.Thread(target=run_until_lost, args=(sess, large, {size: 1 << 18}))
                running.start()
                until(lambda link=link: link._arriving._memory, "a segment has come")
                task.send_signal(signal.SIGKILL)
                running.join(60)
                assert not running.is_alive() and link.lost
                assert all((array == np.arange(1 << 18)).all() for array in kept)
        assert set(os.listdir("/dev/shm")) == seen


def run_until_lost(sess, fetch, feed):
    try:
        while True:
            sess.run(fetch, feed)
    except tf.errors.UnavailableError:
        pass


def test_a_link_over_tcp_shares_nothing():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as connection:
        accepted, _ = server.accept()
        with accepted:
            assert Link(connection, negotiation.Client(), "any")._leaving is None
            assert not links.hands_over_files(connection)
