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
from dtflab.cluster import negotiation, shared_memory
from dtflab.cluster.addresses import free_addresses
from dtflab.cluster.link import Link
from dtflab.cluster.shared_memory import Arriving, Leaving
from tests.cluster.two_tasks import until

LARGE = 1 << 18
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="no anonymous files on this system")


def given(leaving, arriving, size):
    """The number of a new segment that was offered and taken."""
    number, fd = leaving.offer(size)
    assert arriving.take(number, fd)
    assert leaving.freed(number) == []
    return number


def handed(leaving, arriving, data):
    """The message with these bytes, as it arrives in a segment, and the segment's number."""
    pieces = [data[:7], data[7:]]
    number = leaving.filled(pieces)
    if number is None:
        given(leaving, arriving, len(data))
        number = leaving.filled(pieces)
    return number, arriving.message(number, len(data))


def random_bytes(size, seed=0):
    return np.random.default_rng(seed).integers(0, 256, size, np.uint8).tobytes()


@linux_only
@pytest.mark.parametrize("size", [shared_memory.LARGE, LARGE + 1, 5_000_003])
def test_a_message_arrives_as_it_was(size):
    data = random_bytes(size)
    _, message = handed(Leaving(), Arriving(lambda number: None), data)
    assert message == data and message.readonly


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
    leaving, arriving = Leaving(), Arriving(lambda number: None)
    offers = [leaving.offer(LARGE) for _ in range(5)]
    assert all(arriving.take(*offer) for offer in offers)
    dropped = [number for offer in offers for number in leaving.freed(offer.number)]
    assert dropped == [offers[0].number, offers[1].number]
    assert sorted(leaving._memory) == [offer.number for offer in offers[2:]]


@linux_only
def test_segments_are_few_because_each_is_an_open_file(monkeypatch):
    """Arrays that stay there, as in a queue, must not take the files that the process needs."""
    monkeypatch.setattr(shared_memory, "_MOST", 2)
    leaving, arriving = Leaving(), Arriving(lambda number: None)
    first, second = (given(leaving, arriving, LARGE) for _ in range(2))
    assert {leaving.filled([bytes(LARGE)]) for _ in range(2)} == {first, second}
    assert leaving.filled([bytes(LARGE)]) is None and leaving.offer(LARGE) is None
    assert leaving.freed(first) == []
    assert leaving.filled([bytes(9 * LARGE)]) is None
    third = given(leaving, arriving, 9 * LARGE)
    assert leaving.freed(second) == [first] and sorted(leaving._memory) == [second, third]


@linux_only
def test_half_of_the_files_of_a_process_are_left_to_others(monkeypatch, capsys):
    told(monkeypatch, capsys)
    closed, close = [], os.close
    monkeypatch.setattr(shared_memory.resource, "getrlimit", lambda which: (2, 0))
    monkeypatch.setattr(os, "close", lambda fd: closed.append(fd) or close(fd))
    assert Leaving().offer(LARGE) is None  # no file has a number below half of that but the standard input
    assert "Shared memory is not available ([Errno 24] Too many open files)" in told(monkeypatch, capsys)
    assert closed
    closed.clear()
    fd = os.memfd_create("any")
    assert not Arriving(lambda number: None).take(1, fd)
    assert not Arriving(lambda number: None).take(1, -1)  # the system had no file to spare
    assert closed.count(fd) == 1 and -1 not in closed


@linux_only
def test_segments_leave_a_process_most_of_its_memory(monkeypatch, capsys):
    """A container ends a process that has too much."""
    told(monkeypatch, capsys)
    gc.collect()
    monkeypatch.setattr(shared_memory, "_most_bytes", lambda: sum(shared_memory._sizes.values()) + (4 << 20))
    most = shared_memory._most_bytes()
    monkeypatch.setattr(shared_memory, "_most_bytes", lambda: most)
    one, other = Leaving(), Leaving()
    arriving = Arriving(lambda number: None)
    given(one, arriving, 3 << 20)
    assert other.offer(2 << 20) is None
    assert f"Shared memory is not available ([Errno 12] a process may have {most >> 20} MB" in told(monkeypatch, capsys)
    given(other, arriving, 1 << 20)
    del one
    gc.collect()
    given(other, arriving, 3 << 20)


@pytest.mark.parametrize(
    "files, limit",
    [
        ({"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "160000000\n"}, 20_000_000),
        ({"/proc/self/cgroup": "0::/a/b\n", "/sys/fs/cgroup/a/memory.max": "80000000\n"}, 10_000_000),
        (
            {
                "/proc/self/cgroup": "3:cpu:/\n2:memory:/docker/x\n",
                "/sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes": "9223372036854771712\n",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes": "800000000\n",
            },
            100_000_000,
        ),
        ({"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "max\n"}, None),
        ({}, None),
    ],
)
def test_a_container_s_memory_is_what_its_groups_allow(files, limit, monkeypatch):
    monkeypatch.setattr(shared_memory, "_text", lambda path: files.get(path.replace("//", "/"), ""))
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 8
    assert shared_memory._most_bytes.__wrapped__() == min(limit or whole, whole)


@linux_only
def test_messages_larger_than_what_is_kept_are_shared_too(monkeypatch):
    monkeypatch.setattr(shared_memory, "_KEPT", LARGE)
    with echoing() as (left, _):
        kinds = [type(left.ask("/echo", [bytes(2 * LARGE)])[2]) for _ in range(9)]
    assert kinds[4:] == [memoryview] * 5


@linux_only
def test_a_segment_that_was_not_offered_cannot_be_refused(monkeypatch, capsys):
    """Nor one that is in use: it was taken."""
    told(monkeypatch, capsys)
    leaving = Leaving()
    number = given(leaving, Arriving(lambda number: None), LARGE)
    for refused in (number, number + 1):
        leaving.refused(refused)
    assert leaving.filled([bytes(LARGE)]) == number and told(monkeypatch, capsys) == ""


@linux_only
def test_a_ctrl_c_while_a_segment_is_filled_leaves_it_free():
    leaving = Leaving()
    number = given(leaving, Arriving(lambda number: None), LARGE)

    class Piece(bytes):
        def __len__(self):
            if not leaving._free:
                raise KeyboardInterrupt
            return LARGE

    with pytest.raises(KeyboardInterrupt):
        leaving.filled([Piece()])
    assert leaving.filled([bytes(LARGE)]) == number


@linux_only
def test_a_segment_that_could_shrink_is_refused():
    """To read where nothing is any more ends a process."""
    fd = os.memfd_create("any", os.MFD_ALLOW_SEALING)
    os.truncate(fd, LARGE)
    with pytest.raises(ValueError, match="could shrink"):
        Arriving(lambda number: None).take(1, fd)
    with pytest.raises(OSError):
        os.fstat(fd)  # it was closed


@linux_only
def test_a_segment_of_ours_cannot_shrink():
    _, fd = Leaving().offer(LARGE)
    with pytest.raises(PermissionError):
        os.ftruncate(fd, 0)
    os.close(fd)


@linux_only
@pytest.mark.parametrize("number, size", [(2, 10), (1, LARGE + 1), (1, 1 << 60)])
def test_a_message_that_is_not_in_its_segment_is_refused(number, size):
    arriving = Arriving(lambda number: None)
    handed(Leaving(), arriving, random_bytes(LARGE))
    with pytest.raises(ValueError, match="no segment"):
        arriving.message(number, size)


def told(monkeypatch, capsys):
    """The line that was written; it can be written again from now on."""
    monkeypatch.setattr(shared_memory, "_told", threading.Event())
    return capsys.readouterr().err


@pytest.mark.parametrize("how", ["absent", "full", "tcp"])
def test_without_shared_memory_one_line_says_so_and_everything_goes_over_the_socket(how, monkeypatch, capsys):
    told(monkeypatch, capsys)
    if how == "absent":
        monkeypatch.delattr(os, "memfd_create", raising=False)
    elif how == "full":

        def is_full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "posix_fallocate", is_full, raising=False)
    with echoing(over_tcp() if how == "tcp" else socket.socketpair()) as (left, _):
        before = open_files()
        for seed in range(3):
            data = random_bytes(LARGE, seed)
            assert left.ask("/echo", [data]) == (0, "", data)
        assert open_files() <= before
    line = "Shared memory is not available ({}); large tensors go over sockets instead, more slowly.\n"
    why = {"full": "[Errno 28] No space left on device", "tcp": "no Unix socket joins the two processes"}
    assert line.format(why.get(how, "module 'os' has no attribute 'memfd_create'")) in told(monkeypatch, capsys)


def over_tcp():
    """Two ends of a TCP connection on this machine."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        connection = socket.create_connection(server.getsockname())
        return connection, server.accept()[0]


def test_a_link_that_is_to_share_nothing_says_nothing(monkeypatch, capsys):
    told(monkeypatch, capsys)
    with echoing(over_tcp(), shares=False) as (left, _):
        assert left.ask("/echo", [bytes(LARGE)]) == (0, "", bytes(LARGE))
    assert told(monkeypatch, capsys) == ""


FILES_RUN_OUT = """
import os, resource, sys
import dtflab as tf
server = tf.train.Server({"w": [sys.argv[1]]}, "w", 0)
resource.setrlimit(resource.RLIMIT_NOFILE, (200, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
print("up", flush=True)
for line in sys.stdin:
    taken = []
    try:
        while line == "take all\\n":
            taken.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        pass
    print("done", flush=True)
"""


@linux_only
def test_a_task_that_runs_out_of_files_gets_its_tensors_nevertheless(monkeypatch, capsys):
    told(monkeypatch, capsys)
    (address,) = free_addresses(1)
    command = [sys.executable, "-c", FILES_RUN_OUT, address]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True) as task:
        assert task.stdout.readline() == "up\n"
        with tf.Graph().as_default(), tf.Session(f"grpc://{address}") as sess:
            x = tf.placeholder(tf.float32, [None])
            total = tf.reduce_sum(x)
            assert sess.run(total, {x: [1.0]}) == 1.0
            link = until(lambda: negotiation.between("", address), "the link is up")
            assert sess.run(total, {x: np.ones(LARGE)}) == LARGE
            until(lambda: link._leaving._free, "a segment was taken")
            print("take all", file=task.stdin, flush=True)
            assert task.stdout.readline() == "done\n"
            assert sess.run(total, {x: np.ones(LARGE)}) == LARGE  # in the segment that it has
            for _ in range(3):
                assert sess.run(total, {x: np.ones(9 * LARGE)}) == 9 * LARGE
            assert len(link._leaving._memory) == 1 and not link.lost
        task.stdin.close()
    assert "(the other process can open no more files)" in told(monkeypatch, capsys)


@linux_only
def test_files_that_belong_to_no_frame_end_a_link():
    """A task of bad will could otherwise fill this one's table of files."""
    here, there = socket.socketpair()
    link = Link(here, negotiation.Client(), "any")
    link.open()
    before = open_files()
    with there:
        for _ in range(2):
            socket.send_fds(there, [b"\0"], [there.fileno()])
        until(lambda: link.lost and here.fileno() < 0, "it is lost")
        assert open_files() < before


def open_files():
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


class echoing:
    """Two ends of a link in this process, of which each answers with what it was asked."""

    def __init__(self, ends=None, shares=True):
        self.ends, self.shares = ends or socket.socketpair(), shares

    def __enter__(self):
        class Echo(negotiation.Client):
            def answer(self, path, request, call):
                return 0, "", [request]

        self.links = [Link(end, Echo(), name, shares=self.shares) for end, name in zip(self.ends, "ab", strict=True)]
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
            assert code == 0 and answer == data
            assert isinstance(answer, memoryview) or seed < 5  # a segment is offered with a message before its own
            del answer
        assert len(left._leaving._memory) <= 3 and len(right._leaving._memory) <= 3


@linux_only
def test_one_who_has_nothing_to_send_gives_segments_back():
    with echoing() as (left, _):
        for n in range(20):
            left.push(n, "key", [bytes(LARGE)])()
            if n > 1:
                until(lambda: left._leaving._free, "the one before is free")
        assert len(left._leaving._memory) <= 3  # the first messages may find none that the other end has taken


@linux_only
def test_a_lost_link_keeps_no_memory_and_no_files():
    with echoing() as links:
        before = open_files()  # of the two sockets
        assert links[0].ask("/echo", [bytes(LARGE)])[0] == 0
        assert all(link._leaving._memory and link._arriving._memory for link in links)
    for link in links:
        until(lambda link=link: link._stream.closed and link._socket.fileno() < 0, "it has ended")
        link.push(1, "key", [bytes(LARGE)])()
        link.tell("/echo", [bytes(LARGE)])
        assert not link._outbox._frames
    gc.collect()
    until(lambda: open_files() <= before - 2, "the sockets and the segments are gone")


@linux_only
def test_many_threads_share_a_link():
    wrong = []

    def ask(link, seed):
        for n in range(20):
            data = random_bytes(shared_memory.LARGE - 5 + n, seed * 100 + n)  # some in segments, some not
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
                del kept
                until(lambda: mapped_segments() == 0, "no segment is left here")
        assert set(os.listdir("/dev/shm")) == seen


def mapped_segments():
    gc.collect()
    with open("/proc/self/maps") as maps:
        return sum("memfd:dtflab" in line for line in maps)


def run_until_lost(sess, fetch, feed):
    try:
        while True:
            sess.run(fetch, feed)
    except tf.errors.UnavailableError:
        pass
