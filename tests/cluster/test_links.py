"""Links: who gets one, what it carries, and what happens when it is lost."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import threading
from typing import ClassVar
from unittest import mock

import grpc
import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.cluster import grpc_transport, link as links_module, negotiation
from dtflab.cluster.addresses import free_addresses
from dtflab.cluster.endpoint import Endpoint
from dtflab.cluster.link import Link
from dtflab.cluster.outbox import Outbox
from dtflab.cluster.worker_stub import WorkerStub
from dtflab.machine.clock import REAL
from dtflab.protos.link_pb2 import OpenLinkRequest, OpenLinkResponse
from dtflab.runtime.runner import Step
from tests.cluster.two_tasks import Lab, lab_over, link_to_ps, never, until

_WELCOME = 33  # bytes


@pytest.fixture
def lab():
    with lab_over("link") as lab:
        yield lab


def offered(lab, **request):
    """The answer of task 0 to a process that asks it for a link over gRPC."""
    with grpc.insecure_channel(lab.addresses[0]) as channel:
        data = OpenLinkRequest(version=negotiation._VERSION, **request).SerializeToString()
        return OpenLinkResponse.FromString(channel.unary_unary(negotiation.OPEN)(data, timeout=60))


def ways_in(offer):
    """A connection to each of the places where the offered key opens a link."""
    yield socket.create_connection(("127.0.0.1", offer.port), 60)
    if offer.name:
        local = socket.socket(socket.AF_UNIX)
        local.settimeout(60)
        local.connect("\0" + offer.name)
        yield local


def test_steps_go_on_when_the_port_of_the_task_that_opened_the_link_refuses_everything(ps_elsewhere):
    """The worker opened a link to ps, over which ps pulls what the worker has computed."""
    server, spec = ps_elsewhere
    with tf.device("/job:ps"):
        w = tf.Variable([1.0, 2.0])
    with tf.device("/job:worker"):
        gradient = w * 2.0
    update = w.assign_add(gradient)
    with tf.Session(server.target) as sess:
        sess.run(w.initializer)
        assert sess.run(update).tolist() == [3.0, 6.0]
        until(lambda: link_to_ps(spec), "the link is up")
        server.task.endpoint._server.stop()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", int(spec["worker"][0].rpartition(":")[2])))
        for n in range(2, 5):
            assert sess.run(update).tolist() == [3.0**n, 2 * 3.0**n]


def test_a_task_whose_port_refuses_everything_is_asked_over_the_link_that_it_opened(ps_elsewhere):
    server, spec = ps_elsewhere
    with tf.device("/job:ps"):
        w = tf.Variable([1.0, 2.0])
    with tf.device("/job:worker"):
        y = w * 2.0
    with tf.Session(server.target) as sess:
        sess.run(w.initializer)
        until(lambda: link_to_ps(spec), "the link is up")
    server.task.endpoint._server.stop()
    with tf.watch() as seen, tf.Session(f"grpc://{spec['ps'][0]}") as sess:
        assert [sess.run(y).tolist() for _ in range(3)] == [[2.0, 4.0]] * 3
    assert [call.method for call in seen.calls if call.target == server.task.name].count("RunGraph") == 3


def test_a_task_that_cannot_be_asked_whether_it_opened_a_link_pulls(ps_elsewhere):
    """There is only the way to ps then, which does not know whom to push to; no step may wait for that."""
    server, spec = ps_elsewhere
    server.task.endpoint._server.stop()
    with tf.device("/job:ps"):
        w = tf.Variable([1.0, 2.0])
    with tf.device("/job:worker"):
        y = w * 2.0
    with tf.Session(server.target) as sess:
        sess.run(w.initializer)
        until(lambda: link_to_ps(spec), "the link is up")
        with tf.watch() as seen:
            assert [sess.run(y).tolist() for _ in range(3)] == [[2.0, 4.0]] * 3
        assert not link_to_ps(spec).is_known
    assert {call.pushed for call in seen.calls if call.method == "RecvTensor"} == {False}


@pytest.mark.parametrize("key", [b"", b"x" * 32, b"x" * 31])
def test_without_the_key_nobody_gets_in(lab, key):
    for connection in ways_in(offered(lab)):
        with connection:
            connection.sendall(key)
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(1) == b""


def test_a_key_opens_one_link(lab):
    offer = offered(lab)
    first, *others = *ways_in(offer), *ways_in(offer)
    with first:
        first.sendall(offer.key)
        assert first.recv(1) == b"\0"
        for connection in others:
            with connection:
                connection.sendall(offer.key)
                assert connection.recv(1) == b""


def test_a_claim_that_is_not_confirmed_gives_no_way_back(lab):
    """Else a client could take a worker's place."""
    (address,) = free_addresses(1)
    for claimed in (address, lab.addresses[1]):
        before = negotiation.between(lab.addresses[0], claimed)
        offer = offered(lab, address=claimed, token=b"mine")
        connection = next(ways_in(offer))
        with connection:
            connection.sendall(offer.key)
            assert connection.recv(1) == b"\0"
            assert negotiation.between(lab.addresses[0], claimed) is before


def test_a_server_that_is_asked_for_a_link_cannot_take_its_clients_place_at_another_one(lab, monkeypatch):
    """A token that confirmed more than one link would let it claim to be this task, and be pushed what is for it."""
    claims = []

    def claim(host, offer):
        other = lab.addresses[1]
        (token,) = negotiation._opening.values()
        with next(ways_in(offered(lab, address=other, token=token))) as connection:
            connection.sendall(offered(lab, address=other, token=token).key)
            claims.append(connection.recv(1))
        raise ConnectionRefusedError(host)

    (elsewhere,) = free_addresses(1)
    serving = Endpoint(Lab().tasks[0], elsewhere)
    monkeypatch.setattr(negotiation, "_connected", claim)
    try:
        for own in (lab.tasks[1], None):
            assert WorkerStub.at("", elsewhere, own=own).get_status()
    finally:
        serving.stop()
    assert claims == [b"\0", b"\0"]


@pytest.mark.parametrize("kind", [links_module._PUSH, links_module._PUSH_TO_ME, links_module._LOSE])
def test_a_client_neither_gets_tensors_nor_brings_any(lab, kind):
    """Else a client could take away what a worker waits for."""
    offer = offered(lab)
    with next(ways_in(offer)) as connection:
        connection.sendall(offer.key)
        assert connection.recv(_WELCOME, socket.MSG_WAITALL) == b"\0" + offer.welcome
        key = "/a/device:CPU:0;1;/b/device:CPU:0;x;0:0"
        connection.sendall(links_module._FRAME.pack(0, 1, len(key), kind) + key.encode())
        assert connection.recv(1) == b""
    assert lab.tasks[0].worker.rendezvous._pushes == {} and lab.steps() == 0


def test_a_task_of_another_version_is_asked_over_grpc(lab):
    with grpc.insecure_channel(lab.addresses[0]) as channel, pytest.raises(grpc.RpcError) as refused:
        channel.unary_unary(negotiation.OPEN)(
            OpenLinkRequest(version=negotiation._VERSION + 1).SerializeToString(), timeout=60
        )
    assert refused.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_keys_that_nobody_uses_are_forgotten(lab, monkeypatch):
    monkeypatch.setattr(negotiation, "_MOST_KEYS", 3)
    offers = [offered(lab) for _ in range(5)]
    for offer, welcome in zip(offers, (b"", b"", b"\0", b"\0", b"\0"), strict=True):
        connection = next(ways_in(offer))
        with connection:
            connection.sendall(offer.key)
            assert connection.recv(1) == welcome


@pytest.mark.parametrize("path", [negotiation.OPEN, negotiation.CONFIRM])
def test_a_request_for_a_link_that_is_none_is_refused_without_a_word_here(lab, path, caplog):
    with grpc.insecure_channel(lab.addresses[0]) as channel, pytest.raises(grpc.RpcError) as refused:
        channel.unary_unary(path)(b"\xff\xff", timeout=60)
    assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT and not caplog.records


def test_a_port_of_links_that_is_out_of_reach_is_tried_once(lab, monkeypatch):
    """A container may publish gRPC's port alone, and to try again with each call could cost seconds each time."""
    tried = []

    def out_of_reach(*address):
        tried.append(address)
        raise TimeoutError("timed out")

    monkeypatch.setattr(negotiation, "_connected", out_of_reach)
    for _ in range(3):
        assert lab.worker(0).get_status()
    assert len(tried) == 1


@pytest.mark.parametrize("error", [OSError(errno.EMFILE, "too many open files"), ConnectionResetError()])
def test_a_link_that_fails_to_open_once_is_opened_with_the_next_call(error, lab, monkeypatch):
    connected, failures = negotiation._connected, [error]

    def fails_once(*arguments):
        if failures:
            raise failures.pop()
        return connected(*arguments)

    monkeypatch.setattr(negotiation, "_connected", fails_once)
    stub = lab.worker(0)
    assert not failures and stub._wire.link is None
    assert stub.get_status() and stub._wire.link is not None


def test_a_task_that_is_started_again_is_asked_for_a_link_again(lab, monkeypatch):
    """Another program may be there."""
    with monkeypatch.context() as patch:
        patch.setattr(negotiation, "_connected", lambda *address: (_ for _ in ()).throw(TimeoutError("timed out")))
        stub = lab.worker(0)
    assert stub.get_status() and stub._wire.link is None
    lab.serving[0].stop()
    with pytest.raises(errors.UnavailableError):
        stub.get_status()
    lab.serving[0] = Endpoint(lab.tasks[0], lab.addresses[0])
    until(lambda: is_there(stub), "it is there again")
    assert stub._wire.link is not None


def is_there(stub):
    try:
        return stub.get_status()
    except errors.UnavailableError:
        return False


@pytest.mark.parametrize("own, welcome", [("here:1", b""), ("way:1", b"\1")])
def test_of_two_tasks_that_open_links_to_each_other_one_goes_on(own, welcome, monkeypatch):
    links = negotiation.Listener("127.0.0.1", own, Knowing(), lambda address: lambda path, request, seconds: b"")
    monkeypatch.setitem(negotiation._opening, (own, "there:1"), b"token")
    offer = OpenLinkResponse.FromString(
        links.open(OpenLinkRequest(version=negotiation._VERSION, address="there:1").SerializeToString())
    )
    here, there = socket.socketpair()
    with here:
        here.sendall(offer.key)
        links._admit(there)
        assert here.recv(1) == welcome
    links.close()
    until(lambda: negotiation.between(own, "there:1") is None, "it is closed")


def test_one_link_is_opened_at_a_time():
    key = "", "there:1"
    with mock.patch.dict(negotiation._opening, {key: b"token"}):
        assert negotiation.open_to("there:1", None, Knowing(), "") is None


def test_connections_that_bring_no_key_take_few_threads():
    def admitting():
        return sum(thread.name.startswith("admitting") for thread in threading.enumerate())

    most = negotiation._pool.limit
    links = listener(None)
    port = OpenLinkResponse.FromString(
        links.open(OpenLinkRequest(version=negotiation._VERSION).SerializeToString())
    ).port
    with contextlib.ExitStack() as connections:
        for _ in range(most + 20):
            connections.enter_context(socket.create_connection(("127.0.0.1", port), 60))
        until(lambda: admitting() == most and len(negotiation._pool._tasks) == 20, "the others wait")
    links.close()
    until(lambda: not negotiation._pool._tasks, "nobody waits any more")


def test_links_that_end_together_share_the_time_to_settle(monkeypatch):
    class Clock:
        time = 0.0

        def now(self):
            return self.time

    class Stuck:
        given: ClassVar[list[float]] = []

        def settle(self, seconds):
            self.given.append(seconds)
            clock.time += max(seconds, 0.0)

        def close(self):
            pass

    clock = Clock()
    monkeypatch.setattr(negotiation, "REAL", clock)
    with mock.patch.dict(negotiation._links, {("stuck:1", str(n)): Stuck() for n in range(3)}):
        negotiation.close("stuck:1", 1.0)
    assert Stuck.given == [1.0, 0.0, 0.0]


class Refusing:
    """A listening socket without a file to spare; the next connection comes; then it is closed."""

    def __init__(self, connection, then):
        self.events = [OSError(errno.EMFILE, "Too many open files"), (connection, "address"), then]

    def accept(self):
        event = self.events.pop(0)
        if callable(event):
            event()
            raise OSError(errno.EINVAL, "closed")
        if isinstance(event, OSError):
            raise event
        return event


class Knowing(negotiation.Client):
    """An end whose cluster has a task at each address."""

    def knows(self, address):
        return True


def listener(confirm, host="127.0.0.1", end=None):
    return negotiation.Listener(host, "here:1", end or Knowing(), lambda address: confirm)


def test_links_are_taken_again_when_there_are_files_again(monkeypatch):
    monkeypatch.setattr(negotiation, "_PAUSE", 0.0)
    links = listener(None)
    here, there = socket.socketpair()
    with here:
        here.settimeout(60)
        here.sendall(b"x" * 32)
        links._accept(Refusing(there, links.close))
        assert here.recv(1) == b""  # it was let in, and had no key


def test_a_link_that_opens_while_its_server_stops_is_closed():
    links = listener(lambda path, request, seconds: links.close())
    offer = OpenLinkResponse.FromString(
        links.open(OpenLinkRequest(version=negotiation._VERSION, address="there:1").SerializeToString())
    )
    here, there = socket.socketpair()
    with here:
        here.settimeout(60)
        here.sendall(offer.key)
        links._admit(there)
        assert here.recv(_WELCOME) == b"\1" + offer.welcome and here.recv(1) == b""
    assert negotiation.between("here:1", "there:1") is None


def test_a_key_may_come_in_pieces():
    class Pieces:
        left = [b"x" * 30, b"yy", b"rest"]
        settimeout = staticmethod(lambda seconds: None)

        def recv(self, size):
            return self.left.pop(0)

    assert negotiation._read(Pieces(), 32) == b"x" * 30 + b"yy"


def test_an_opener_that_cannot_be_asked_gets_its_link_while_it_waits_for_that():
    asked = []

    def confirm(path, request, seconds):
        asked.append(seconds)
        raise errors.DeadlineExceededError.of("no answer")

    links = listener(confirm)
    offer = OpenLinkResponse.FromString(
        links.open(OpenLinkRequest(version=negotiation._VERSION, address="there:1").SerializeToString())
    )
    here, there = socket.socketpair()
    with here:
        here.sendall(offer.key)
        links._admit(there)
        assert here.recv(_WELCOME) == b"\0" + offer.welcome and asked[0] < negotiation._PATIENCE
    links.close()
    assert negotiation.between("here:1", "there:1") is None


@pytest.mark.parametrize("end, welcome", [(Knowing(), b"\1"), (negotiation.Client(), b"\0")])
def test_only_tasks_of_its_own_cluster_are_known_to_a_task(end, welcome):
    """A value goes to a task by its name: one without a name would wait for it in vain."""
    links = listener(lambda path, request, seconds: b"", end=end)
    offer = OpenLinkResponse.FromString(
        links.open(OpenLinkRequest(version=negotiation._VERSION, address="there:1").SerializeToString())
    )
    here, there = socket.socketpair()
    with here:
        here.sendall(offer.key)
        links._admit(there)
        assert here.recv(_WELCOME) == welcome + offer.welcome
    links.close()
    until(lambda: negotiation.between("here:1", "there:1") is None, "the link is closed")


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6 on this system")
def test_links_of_all_addresses_take_both_kinds_as_grpc_does():
    links = listener(None, "::")
    port = OpenLinkResponse.FromString(
        links.open(OpenLinkRequest(version=negotiation._VERSION).SerializeToString())
    ).port
    for host in ("127.0.0.1", "::1"):
        socket.create_connection((host, port), 60).close()
    links.close()


def test_links_end_with_the_server_that_opened_them_and_are_forgotten(lab):
    """Else a task that was started again at that address would not be asked, but the one before it."""
    here, there = lab.addresses
    lab.worker(0, lab.tasks[1]).get_status()
    link, way_back = (
        until(lambda ends=ends: negotiation.between(*ends), "a link") for ends in ((there, here), (here, there))
    )
    lab.serving[1].stop()
    assert link.lost
    until(lambda: way_back.lost, "the other end knows")
    until(lambda: not {link, way_back} & set(negotiation._links.values()), "both are forgotten")


def test_a_link_that_a_server_opens_while_it_stops_is_closed(lab, monkeypatch):
    links, connected = [], negotiation._connected

    def stopped_meanwhile(*arguments):
        lab.serving[1].stop()
        return connected(*arguments)

    monkeypatch.setattr(negotiation, "_connected", stopped_meanwhile)
    monkeypatch.setattr(negotiation, "Link", lambda *a, **k: links.append(Link(*a, **k)) or links[-1])
    lab.worker(0, lab.tasks[1]).get_status()
    assert links
    until(lambda: all(link.lost for link in links), "both ends are closed")


@pytest.mark.parametrize("noise", [b"\0" * 17, b"\xff" * 400, os.urandom(4000)])
def test_what_is_no_frame_ends_that_link_alone(lab, noise):
    for offer in (offered(lab), offered(lab)):
        connection = next(ways_in(offer))
        with connection:
            connection.sendall(offer.key)
            assert connection.recv(1) == b"\0"
            connection.sendall(noise)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(1 << 16):
                pass
    assert lab.worker(0).get_status()


def test_calls_of_a_lost_link_are_unavailable_and_the_next_one_finds_a_way(lab):
    with lab.session() as sess:
        waits = never()
        failed = []

        def wait():
            try:
                sess.run(waits)
            except errors.UnavailableError as error:
                failed.append(error.message)

        thread = threading.Thread(target=wait)
        thread.start()
        until(lambda: lab.waiting() == 1, "it waits")
        negotiation.between("", lab.addresses[0]).close("the connection was cut")
        thread.join()
        assert "(the connection was cut)" in failed[0] and lab.addresses[0] in failed[0]
        until(lambda: lab.waiting() == 0, "the step has ended")
        assert lab.worker(0).get_status()


class Echo(negotiation.Client):
    def answer(self, path, request, call):
        return 0, "", [request]


@contextlib.contextmanager
def two_ends(end, shares=True, peers="ab"):
    links = [
        Link(connection, end, name, shares=shares) for connection, name in zip(socket.socketpair(), "ab", strict=True)
    ]
    for link in links:
        link.open()
    try:
        yield links
    finally:
        links[0].close()
        until(lambda: links[1].lost, "the other end knows")


@pytest.mark.parametrize("error", [OSError(errno.ETOOMANYREFS, "too many files under way"), KeyboardInterrupt()])
def test_a_link_that_has_sent_a_part_is_lost(error):
    """Else its calls would wait forever, or the other end would read the middle of a frame as its beginning."""

    class Failing:
        def __init__(self, connection):
            self.connection = connection

        def __getattr__(self, name):
            return getattr(self.connection, name)

        def sendmsg(self, *arguments):
            raise error

    with two_ends(Echo()) as (link, _):
        assert link.ask("/echo", [b"x"]) == (0, "", b"x")
        link._outbox._socket = Failing(link._outbox._socket)
        if isinstance(error, OSError):
            assert link.ask("/echo", [b"x"], 60)[0] == errors.UNAVAILABLE
        else:
            with pytest.raises(KeyboardInterrupt):
                link.ask("/echo", [b"x"])
        until(lambda: link.lost, "it is lost")


@pytest.mark.parametrize("method", ["ask", "request"])
def test_a_ctrl_c_while_a_request_is_sent_ends_it_at_the_other_end(method, monkeypatch):
    """Else the step would go on there, and could take an element of a queue."""
    ended, send_off = threading.Event(), Link.send_off

    class Waiting(negotiation.Client):
        def answer(self, path, request, call):
            call.on_end(lambda error: ended.set())
            ended.wait(60)
            return 0, "", []

    def interrupted(link):
        send_off(link)
        monkeypatch.setattr(Link, "send_off", send_off)
        raise KeyboardInterrupt

    with two_ends(Waiting()) as (link, _):
        monkeypatch.setattr(Link, "send_off", interrupted)
        with pytest.raises(KeyboardInterrupt):
            getattr(link, method)("/wait", [b"x"], *([] if method == "ask" else [lambda *answer: None]))
        assert ended.wait(60)


def test_a_frame_of_an_unknown_kind_ends_the_link():
    here, there = socket.socketpair()
    link = Link(here, negotiation.Client(), "any")
    link.open()
    with there:
        there.sendall(links_module._FRAME.pack(0, 1, 0, 99))
        until(lambda: "a frame of kind 99" in link.lost, "it is lost")


def test_a_name_of_any_length_crosses():
    with two_ends(Echo()) as (link, _):
        assert link.ask("/echo" * 20_000, [b"x"]) == (0, "", b"x")


def test_nobody_waits_for_what_a_request_does_that_comes_as_the_link_is_closed():
    ended = []

    class Noting(negotiation.Client):
        def answer(self, path, request, call):
            call.on_end(ended.append)
            return 0, "", []

    with two_ends(Noting()) as (link, _):
        link.close()
        link._arrived(links_module._REQUEST, 1, "/any", b"")()
    assert [type(error) for error in ended] == [errors.CancelledError]


def test_a_request_whose_link_is_lost_ends_as_unavailable_and_not_as_cancelled():
    """Another task of its step may hear of that first, and a training loop recovers from a lost task alone."""
    ended, begun = [], threading.Event()

    class Noting(negotiation.Client):
        def answer(self, path, request, call):
            call.on_end(ended.append)
            begun.set()
            return (until(lambda: ended, "it has ended") and 0), "", []

    with two_ends(Noting()) as (link, _):
        link.request("/any", [b""], lambda *answer: None)
        assert begun.wait(60)
        link.close()
        until(lambda: ended, "it ends")
    assert [type(error) for error in ended] == [errors.UnavailableError]


# ---- the place of the thread that reads ----


class Meeting(negotiation.Client):
    """`/wait` is answered once `/go` was: by waiting for an event of this kind."""

    def __init__(self, event):
        self.gone = event
        self.threads = []

    def answer(self, path, request, call):
        self.threads.append(threading.get_ident())
        if path == "/go":
            self.gone.set()
        elif path == "/wait":
            assert self.gone.wait(60)
        return 0, "", []


def meet(link):
    answers, both = [], threading.Event()

    def answered(*answer):
        answers.append(answer)
        if len(answers) == 2:
            both.set()

    for path in ("/wait", "/go"):
        link.request(path, [b""], answered)
    assert both.wait(60)
    return answers


def test_requests_that_take_no_time_are_answered_by_the_thread_that_reads(monkeypatch):
    monkeypatch.setattr(links_module._watch, "add", lambda place: None)
    end = Meeting(REAL.event())
    with two_ends(end) as (link, _):
        for _ in range(20):
            assert link.ask("/short", [b""]) == (0, "", b"")
    assert len(set(end.threads)) == 1


def test_a_request_that_waits_keeps_no_other_one_waiting(monkeypatch):
    monkeypatch.setattr(links_module._watch, "add", lambda place: None)
    with two_ends(Meeting(REAL.event())) as (link, _):
        for _ in range(3):
            assert meet(link) == [(0, "", b"")] * 2


def test_a_request_that_takes_long_keeps_no_other_one_waiting():
    """Whatever it does, as computing: here it waits in a way that nobody notices."""
    with two_ends(Meeting(threading.Event())) as (link, _):
        for _ in range(3):
            assert meet(link) == [(0, "", b"")] * 2


def test_a_request_whose_answer_fails_leaves_the_link_readable(monkeypatch):
    failed = []
    monkeypatch.setattr(threading, "excepthook", failed.append)

    class Failing(Echo):
        def answer(self, path, request, call):
            if path == "/fail":
                raise RuntimeError("a defect")
            return super().answer(path, request, call)

    with two_ends(Failing()) as (link, _):
        link.request("/fail", [b""], lambda *answer: None)
        assert link.ask("/echo", [b"x"], 60) == (0, "", b"x")
    assert len(failed) == 1


@pytest.mark.parametrize("shares", [True, False])
def test_both_ends_send_much_at_once(shares):
    """Neither waits for the other to read."""
    arrived, answers = threading.Event(), {}

    def answered(name, code, text, answer):
        answers[name] = code, len(answer)
        if len(answers) == 8:
            arrived.set()

    with two_ends(Echo(), shares) as links:
        for n in range(4):
            for link in links:
                name = link.peer, n
                link.request("/echo", [b"x" * (8 << 20)], lambda *answer, name=name: answered(name, *answer))
        assert arrived.wait(60)
    assert set(answers.values()) == {(0, 8 << 20)}


def test_a_server_with_tls_has_no_links(tls):
    """Links are plain text."""
    (task, _), (address,) = Lab().tasks, free_addresses(1)
    serving = Endpoint(task, address, tls.server)
    try:
        assert WorkerStub.at(task.name, address, tls.client).get_status()
        assert negotiation.between("", address) is None
        channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(*grpc_transport._for_grpc(tls.client)))
        with channel, pytest.raises(grpc.RpcError) as refused:
            channel.unary_unary(negotiation.OPEN)(
                OpenLinkRequest(version=negotiation._VERSION).SerializeToString(), timeout=60
            )
        assert refused.value.code() == grpc.StatusCode.UNIMPLEMENTED
    finally:
        serving.stop()


def test_a_server_with_tls_opens_no_links(lab, tls):
    """Over a link it would answer in plain text, whichever end opened it."""
    (_, task), (address,) = Lab().tasks, free_addresses(1)
    task.address = address
    serving = Endpoint(task, address, tls.server)
    try:
        stub = WorkerStub.at(lab.tasks[0].name, lab.addresses[0], own=task)
        for _ in range(2):
            assert stub.get_status()
        assert stub._wire.link is None and negotiation.between(address, lab.addresses[0]) is None
    finally:
        serving.stop()


def test_an_unknown_wire(monkeypatch):
    monkeypatch.setenv("DTFLAB_WIRE", "zmq")
    with pytest.raises(ValueError, match="DTFLAB_WIRE must be empty, socket or grpc, not 'zmq'"):
        WorkerStub.at("", "localhost:1")


def test_links_are_off(monkeypatch):
    with lab_over("grpc") as lab:
        assert lab.worker(0).get_status()
        assert negotiation.between("", lab.addresses[0]) is None
        with pytest.raises(grpc.RpcError):
            offered(lab)


def test_a_link_ends_with_its_server(lab):
    link = negotiation.between("", lab.addresses[0]) if lab.worker(0).get_status() else None
    lab.serving[0].stop()
    until(lambda: link.lost, "the link is closed")
    with pytest.raises(errors.UnavailableError):
        WorkerStub.at("t", lab.addresses[0]).get_status()


# ---- how many messages ----


@pytest.fixture
def frames(monkeypatch):
    """The kinds of the frames that links put into their outboxes."""
    kinds, put = [], Link._put
    monkeypatch.setattr(Link, "_put", lambda link, kind, *rest: kinds.append(kind) or put(link, kind, *rest))
    return kinds


def test_a_step_of_a_client_on_its_own_task_is_one_round_trip(lab, frames):
    x = tf.placeholder(tf.float32, [])
    y = x + 1.0
    with lab.session() as sess:
        sess.run(y, {x: 1.0})
        del frames[:]
        assert [sess.run(y, {x: n}) for n in (2.0, 3.0)] == [3.0, 4.0]
    assert frames[:4] == [links_module._REQUEST, links_module._ANSWER] * 2


def test_tensors_that_are_ready_together_travel_in_one_system_call(lab, frames, monkeypatch):
    """Twenty variables of another task; each sent by itself would wake a thread here."""
    monkeypatch.setattr(Step, "HELD_FOR", 60.0)
    calls, sent = [], Outbox._sent
    with tf.device("/job:lab/task:1"):
        variables = [tf.Variable(float(n)) for n in range(20)]
    with tf.device("/job:lab/task:0"):
        total = tf.add_n([v + 0.0 for v in variables])
    with lab.session() as sess:
        sess.run([v.initializer for v in variables])
        lab.worker(1, lab.tasks[0])
        for _ in range(3):
            sess.run(total)
        del frames[:]
        monkeypatch.setattr(
            Outbox, "_sent", lambda box, pieces, *rest: calls.append(pieces) or sent(box, pieces, *rest)
        )
        assert sess.run(total) == 190.0
        monkeypatch.setattr(Outbox, "_sent", sent)
    assert frames.count(links_module._PUSH) == 20
    kind = links_module._FRAME.size - 1
    assert sum(any(bytes(piece[kind : kind + 6]) == b"\5/job:" for piece in pieces) for pieces in calls) == 1
