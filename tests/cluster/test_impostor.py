"""Another user's program at the address of a task that is gone: it learns neither the token nor what is asked for."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager
from typing import Any

import grpc
import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.base.credentials import Credentials
from dtflab.cluster import grpc_transport, inprocess, negotiation, proof
from dtflab.cluster.addresses import free_addresses
from dtflab.cluster.grpc_transport import Channel
from dtflab.protos.link_pb2 import OpenLinkResponse
from tests.cluster.two_tasks import cluster_over, until, using

TOKEN = Credentials(token="a-token-of-the-test")
SECRET = "a constant of the program"
GET_STATUS = "/tensorflow.WorkerService/GetStatus"


class Recording(grpc.GenericRpcHandler):
    """A server that keeps all that comes, and answers as `reply` says."""

    def __init__(self, reply: Callable[[Any, Any], Iterator[bytes]]) -> None:
        self.came: list[bytes] = []
        self.methods: list[str] = []
        self._reply = reply

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        self.methods.append(details.method)
        self.came += [str(entry).encode() for entry in details.invocation_metadata]
        return grpc.stream_stream_rpc_method_handler(self._answer)

    def _answer(self, messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        return self._reply(self._kept(messages), context)

    def _kept(self, messages: Iterator[bytes]) -> Iterator[bytes]:
        for message in messages:
            self.came.append(message)
            yield message


@contextmanager
def serving(address: str, handler: grpc.GenericRpcHandler) -> Iterator[None]:
    port = address.rpartition(":")[2]
    server = grpc.server(futures.ThreadPoolExecutor(16), [handler], options=[("grpc.so_reuseport", 0)])
    assert server.add_insecure_port(f"127.0.0.1:{port}") == int(port)
    server.start()
    try:
        yield
    finally:
        server.stop(0).wait()


def all_there_is(messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
    """Send a proof that proves nothing, take every message, and answer well."""
    context.send_initial_metadata(((proof.PROOF, b"x" * 64),))
    list(messages)
    yield b""


def at_once(messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
    """Answer well before anything has come."""
    yield b""


def nothing(messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
    """Say neither who this is nor anything else, as long as the client waits."""
    context.send_initial_metadata(())
    list(messages)
    yield from ()


@pytest.mark.parametrize("reply", [all_there_is, at_once, nothing])
@pytest.mark.parametrize("wire", ["grpc", "link"])
def test_a_lost_tasks_address_learns_nothing(wire, reply, monkeypatch):
    """Neither from a session that had it in its steps, nor from a new one."""
    monkeypatch.setattr(grpc_transport, "_PATIENCE", 0.05)
    impostor = Recording(reply)
    with using(wire), contextlib.ExitStack() as stop:
        spec = {"ps": free_addresses(1), "worker": free_addresses(1)}
        ps, worker = (tf.train.Server(spec, job, 0, credentials=TOKEN) for job in spec)
        for server in (ps, worker):
            stop.callback(server.stop)
            inprocess.withdraw(server.task.address, server.task)
        with tf.device("/job:ps"):
            text = tf.constant(SECRET) + ""
            more = text + SECRET
        session = stop.enter_context(tf.Session(worker.target, credentials=TOKEN))
        assert session.run(text) == SECRET.encode()
        ps.stop()
        with serving(spec["ps"][0], impostor):
            until(lambda: is_refused(session, more), "the connection to the impostor is there")
            assert is_refused(stop.enter_context(tf.Session(ps.target, credentials=TOKEN)), more)
    assert set(impostor.methods) == {proof.CALL}
    came = b"\n".join(impostor.came)
    assert TOKEN.token.encode() not in came and SECRET.encode() not in came
    assert all(b"tf-rpc" in part or b"user-agent" in part or proof.CHALLENGE.encode() in part for part in impostor.came)


def is_refused(session: tf.Session, fetch: tf.Tensor) -> bool:
    try:
        session.run(fetch)
    except errors.UnauthenticatedError as error:
        return "does not prove" in str(error)
    except errors.UnavailableError:
        return False
    return False


class Relay(grpc.GenericRpcHandler):
    """A server that hands all on to another one, and its answers back."""

    def __init__(self, address: str) -> None:
        self.channel = grpc.insecure_channel(address)
        self.ended: list[grpc.StatusCode] = []

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        return grpc.stream_stream_rpc_method_handler(
            lambda messages, context: self._relay(details.method, messages, context)
        )

    def _relay(self, path: str, messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        shown = tuple((name, value) for name, value in context.invocation_metadata() if name == proof.CHALLENGE)
        call = self.channel.stream_stream(path)(messages, metadata=shown)
        context.send_initial_metadata(tuple(call.initial_metadata()))
        try:
            yield from call
        except grpc.RpcError as error:
            self.ended.append(error.code())
            context.abort(error.code(), error.details())


def test_another_task_proves_nothing_for_a_lost_one():
    """The impostor asks it for the proof that its own client waits for."""
    (lost,) = free_addresses(1)
    with cluster_over("grpc", worker=1, credentials=TOKEN) as cluster:
        relay = Relay(cluster.tasks[0].address)
        with serving(lost, relay), relay.channel:
            code, text, answer = Channel(lost, TOKEN).ask(GET_STATUS, b"", 60)
        code_of_task, _, status = Channel(cluster.tasks[0].address, TOKEN).ask(GET_STATUS, b"", 60)
    assert (code, text, answer) == (errors.UNAUTHENTICATED, grpc_transport.UNPROVEN, b"")
    assert relay.ended == [grpc.StatusCode.UNAUTHENTICATED] and code_of_task == 0 and status


def a_call(channel: grpc.Channel, metadata: Any, *messages: bytes) -> Any:
    return channel.stream_unary(proof.CALL).with_call(iter(messages), timeout=60, metadata=metadata)


def test_a_proof_is_good_once():
    """And neither for another method, nor as the proof of the other end."""
    with cluster_over("grpc", worker=1, credentials=TOKEN) as cluster:
        address = cluster.tasks[0].address
        asking, sent, given = proof.Asking(TOKEN.token, address.rpartition(":")[2]), [], threading.Event()

        def messages() -> Iterator[bytes]:
            given.wait()
            sent.append(asking.proof(GET_STATUS, call.initial_metadata()))
            yield from (sent[0], b"")

        with grpc.insecure_channel(address) as channel:
            call = channel.stream_unary(proof.CALL).future(messages(), metadata=asking.metadata)
            given.set()
            assert call.result(60)
            of_server = dict(call.initial_metadata())[proof.PROOF][32:]
            for first in (
                sent[0],
                sent[0][:32] + b"/tensorflow.MasterService/Reset",
                of_server + GET_STATUS.encode(),
                b"",
            ):
                with pytest.raises(grpc.RpcError) as refused:
                    a_call(channel, asking.metadata, first, b"")
                assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED


def test_calls_that_prove_nothing_are_let_go_of(monkeypatch):
    """Else another user could take all threads of a task by opening calls."""
    monkeypatch.setattr(grpc_transport, "_MOST_UNPROVEN", 3)
    held = threading.Event()

    def never() -> Iterator[bytes]:
        held.wait()
        yield from ()

    with cluster_over("grpc", worker=1, credentials=TOKEN) as cluster, contextlib.ExitStack() as stop:
        address = cluster.tasks[0].address
        channel = stop.enter_context(grpc.insecure_channel(address))
        stop.callback(held.set)
        calls = []
        for _ in range(5):
            asking = proof.Asking(TOKEN.token, address.rpartition(":")[2])
            calls.append(channel.stream_unary(proof.CALL).future(never(), metadata=asking.metadata))
            calls[-1].initial_metadata()
        until(lambda: sum(call.done() for call in calls) == 2, "two calls are let go of")
        assert Channel(address, TOKEN).ask(GET_STATUS, b"", 60)[0] == 0


def test_a_ctrl_c_ends_a_call_that_waits_for_the_proof(monkeypatch):
    monkeypatch.setattr(grpc_transport, "_PATIENCE", 600.0)
    impostor = Recording(nothing)
    (address,) = free_addresses(1)

    def interrupt() -> None:
        until(lambda: impostor.methods, "the call is there")
        os.kill(os.getpid(), signal.SIGINT)

    helper = threading.Thread(target=interrupt)
    with serving(address, impostor), pytest.raises(KeyboardInterrupt):
        helper.start()
        Channel(address, TOKEN).ask(GET_STATUS, b"")
    helper.join()


@pytest.mark.parametrize("moment", ["the call has begun", "its end is watched"])
def test_a_ctrl_c_while_a_call_begins_leaves_no_thread(moment, monkeypatch):
    """One that comes between two lines: grpc's thread has asked for the first message by then."""
    impostor = Recording(nothing)
    (address,) = free_addresses(1)

    class Interrupted:
        """A method of grpc whose caller is interrupted at that moment."""

        def __init__(self, method: Any) -> None:
            self._method = method

        def future(self, *args: Any, **kwargs: Any) -> Any:
            self._call = self._method.future(*args, **kwargs)
            until(lambda: impostor.methods, "the call is there")
            if moment == "the call has begun":
                raise KeyboardInterrupt
            return self

        def add_done_callback(self, callback: Callable[[object], None]) -> None:
            raise KeyboardInterrupt

        def cancel(self) -> object:
            return self._call.cancel()

    with serving(address, impostor), pytest.raises(KeyboardInterrupt):
        begin = grpc_transport._ProvingCall.__init__
        monkeypatch.setattr(
            grpc_transport._ProvingCall,
            "__init__",
            lambda call, method, *args: begin(call, Interrupted(method), *args),
        )
        Channel(address, TOKEN).ask(GET_STATUS, b"")


@pytest.mark.parametrize("welcome", [b"", b"\1", b"\1" + b"x" * 32])
def test_a_link_is_open_once_the_welcome_has_come(welcome, monkeypatch):
    """Another process may have taken the port of the links, whose task has ended since."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        offered = OpenLinkResponse(port=listening.getsockname()[1], key=b"k" * 32, welcome=b"w" * 32)

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                assert connection.recv(32, socket.MSG_WAITALL) == b"k" * 32
                connection.sendall(welcome)
                connection.shutdown(socket.SHUT_WR)
                assert connection.recv(1) == b""

        helper = threading.Thread(target=answer)
        helper.start()
        given = negotiation.open_to("localhost:1", lambda *asked: offered.SerializeToString(), negotiation.Client(), "")
        helper.join()
    assert given is None
