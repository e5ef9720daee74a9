"""TLS and tokens: who is admitted to a task, over gRPC and over a link, and what the others learn."""

from __future__ import annotations

import contextlib
import itertools
import socket
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest import mock

import grpc
import pytest

import dtflab as tf
from dtflab import __main__ as command
from dtflab.base import credentials as the_credentials, errors
from dtflab.base.credentials import PLAIN, Credentials
from dtflab.cluster import certs, handshake, inprocess, negotiation
from dtflab.cluster.addresses import free_addresses
from dtflab.cluster.worker_stub import WorkerStub
from tests.cluster.two_tasks import cluster_over

TOKEN, OTHER = Credentials(token="a-token-of-the-test"), Credentials(token="another-token-of-it")
WIRES = ["grpc", "link"]


@contextmanager
def serving(address: str, credentials: Credentials) -> Iterator[str]:
    """A server that sessions reach over a wire alone; its target."""
    server = tf.train.Server({"worker": [address]}, credentials=credentials)
    inprocess.withdraw(server.task.address, server.task)
    try:
        yield server.target
    finally:
        server.stop()


def one_plus_one(target: str, credentials: Credentials | None = None) -> float:
    """The sum that a session there computes."""
    with tf.Graph().as_default(), tf.Session(target, credentials=credentials) as session:
        return session.run(tf.constant(1.0) + 1.0)


def trained(target: str, credentials: Credentials | None = None) -> list[float]:
    """The weights of a line that a worker fits to two points, whose weights are on a parameter server."""
    with tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(ps_tasks=1)):
            weights = tf.Variable([0.0, 0.0])
            x = tf.constant([[1.0, 1.0], [-1.0, 1.0]])
            loss = tf.reduce_sum(tf.square(tf.linalg.matvec(x, weights) - [1.0, -3.0]))
            step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        with tf.Session(target, credentials=credentials) as session:
            session.run(weights.initializer)
            for _ in range(40):
                session.run(step)
            return session.run(weights).tolist()


LINE = pytest.approx([2.0, -1.0], abs=1e-3)


# ---- values and files ----


def test_what_is_secret_is_not_shown(tls):
    both = replace(tls.server, token=TOKEN.token)
    assert repr(both) == "<Credentials: TLS and a token>" and repr(TOKEN) == "<Credentials: a token>"
    assert (repr(tls.server), repr(PLAIN)) == ("<Credentials: TLS>", "<Credentials: none>")


@pytest.mark.parametrize(
    "given, words",
    [
        ({"ca": "-----BEGIN "}, "Credentials with ca alone: TLS takes ca, certificate and key"),
        ({"ca": "-----BEGIN ", "key": "-----BEGIN "}, "Credentials with ca and key alone"),
        ({"ca": "ca.pem", "certificate": "c.pem", "key": "k.pem"}, "ca must be PEM text"),
        ({"token": "too-short"}, "16 or more printable ASCII characters"),
        ({"token": "with a space in its middle"}, "without spaces"),
        ({"token": "with-a-line-break-at-its-end\n"}, "without spaces"),
    ],
)
def test_what_credentials_can_not_be(given, words):
    with pytest.raises(ValueError, match=words) as refused:
        Credentials(**given)
    assert given.get("token", "?!") not in str(refused.value)


def test_a_folder_holds_credentials(tmp_path, tls):
    both = replace(tls.client, token=TOKEN.token)
    both.save(tmp_path / "mine")
    assert Credentials.load(tmp_path / "mine") == both
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "mine").iterdir()}
    assert modes == {"ca.pem": 0o644, "certificate.pem": 0o644, "key.pem": 0o600, "token": 0o600}
    assert stat.S_IMODE((tmp_path / "mine").stat().st_mode) == 0o700
    TOKEN.save(tmp_path / "token")
    assert Credentials.load(tmp_path / "token") == TOKEN


def test_a_file_that_all_could_read_is_replaced(tmp_path):
    (tmp_path / "token").write_text("old")
    (tmp_path / "token").chmod(0o666)
    TOKEN.save(tmp_path)
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600 and Credentials.load(tmp_path) == TOKEN


def test_a_folder_without_credentials(tmp_path):
    with pytest.raises(errors.NotFoundError, match=r"has none of ca.pem, certificate.pem, key.pem, token"):
        Credentials.load(tmp_path)


def test_which_credentials_are_used(tmp_path, monkeypatch):
    assert the_credentials.at("here:1") is PLAIN
    OTHER.save(tmp_path)
    monkeypatch.setenv("DTFLAB_CREDENTIALS", str(tmp_path))
    assert the_credentials.at("here:1") == OTHER
    the_credentials.remember("here:1", TOKEN)
    try:
        assert the_credentials.at("here:1") is TOKEN and the_credentials.at("here:2") == OTHER
        assert the_credentials.at("here:1", PLAIN) is PLAIN
        the_credentials.forget("here:1", OTHER)  # of a task that had the address before
        assert the_credentials.at("here:1") is TOKEN
    finally:
        the_credentials.forget("here:1", TOKEN)
    assert the_credentials.at("here:1") == OTHER


def test_credentials_of_grpc_are_refused():
    with pytest.raises(TypeError, match=r"must be a dtflab.Credentials, but got \"ServerCredentials\""):
        tf.train.Server({"a": ["localhost:0"]}, credentials=grpc.local_server_credentials())


# ---- dtflab certs ----


def certs_command(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["dtflab"])
    command.main(["certs", *map(str, arguments)])


def test_the_command_makes_certificates(tls, tmp_path, monkeypatch, capsys):
    certs_command(monkeypatch, tmp_path, "--name", "127.0.0.2", "--name", "ps.example.com")
    assert f"{tmp_path / 'server'}: for tasks" in capsys.readouterr().out
    keys = {path.parent.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.glob("*/key.pem")}
    assert keys == dict.fromkeys(("authority", "server", "client"), 0o600)
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o700}
    server, client = (Credentials.load(tmp_path / who) for who in ("server", "client"))
    for host in ("localhost", "127.0.0.1", "127.0.0.2"):
        with serving(f"{host}:0", server) as target:
            assert one_plus_one(target, client) == 2


def test_an_authority_that_is_there_signs_again(tls, tmp_path):
    certs.make(tmp_path)
    before, key = Credentials.load(tmp_path / "server"), (tmp_path / "authority" / "key.pem").read_text()
    certs.make(tmp_path)
    after = Credentials.load(tmp_path / "client")
    assert (tmp_path / "authority" / "key.pem").read_text() == key and Credentials.load(tmp_path / "server") != before
    with serving("localhost:0", before) as target:
        assert one_plus_one(target, after) == 2


def test_a_client_can_not_pass_for_a_server(tls):
    with serving("localhost:0", tls.client) as target, pytest.raises(errors.UnauthenticatedError) as refused:
        one_plus_one(target, tls.server)
    assert "its certificate is refused here: unsuitable certificate purpose" in str(refused.value)


@pytest.mark.parametrize(
    "arguments, words", [(["--days", "0"], "--days must be 1 to 36500, not 0"), ([], "pip install 'dtflab[tls]'")]
)
def test_the_command_says_why_it_can_not(tmp_path, monkeypatch, arguments, words):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(SystemExit) as ended:
        certs_command(monkeypatch, tmp_path / "new", *arguments)
    assert words in str(ended.value)


@pytest.mark.parametrize("name", ["", "example.com:2222", "a b", "-a", "a..b", "a/b", "ü.de", ".".join(["a" * 60] * 5)])
def test_a_name_is_a_host(tls, tmp_path, monkeypatch, name):
    with pytest.raises(SystemExit, match="--name must be a host name or an IP address, without a port"):
        certs_command(monkeypatch, tmp_path / "new", f"--name={name}")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", ["*.example.com", "ps_0", "[::1]", "::1", "10.0.0.1", "a" * 63])
def test_names_of_hosts(tls, tmp_path, name):
    certs.make(tmp_path, [name], 36_500)
    assert Credentials.load(tmp_path / "server").is_tls


def test_days_that_no_calendar_has(tls, tmp_path, monkeypatch):
    with pytest.raises(SystemExit, match="--days must be 1 to 36500, not 1000000"):
        certs_command(monkeypatch, tmp_path, "--days", "1000000")


def test_folders_of_an_authority(tls, tmp_path, monkeypatch):
    """An empty one is filled; one of other files, or without the key, is refused by a sentence."""
    (folder := tmp_path / "authority").mkdir()
    certs_command(monkeypatch, tmp_path)
    (folder / "key.pem").unlink()
    with pytest.raises(SystemExit, match="with ca and certificate alone: TLS takes ca, certificate and key"):
        certs_command(monkeypatch, tmp_path)
    for path in folder.iterdir():
        path.unlink()
    (folder / "notes.txt").touch()
    with pytest.raises(SystemExit, match=r"authority' has none of ca\.pem"):
        certs_command(monkeypatch, tmp_path)


# ---- TLS ----


@pytest.mark.parametrize("wire", WIRES)
def test_a_cluster_trains_over_tls(tls, wire):
    """And no end asks for a link, which is plain text."""
    with (
        mock.patch.object(negotiation, "open_to", None),
        cluster_over(wire, ps=1, worker=1, credentials=tls.server) as cluster,
    ):
        assert trained(cluster.target, tls.client) == LINE
        calls = {call.method for call in cluster.calls()}
    assert {"RunGraph", "RecvTensor"} <= calls


def test_a_server_demands_a_certificate(tls):
    """A client of grpc that trusts the authority and shows nothing."""
    ca = tls.server.ca.encode()
    with serving("localhost:0", tls.server) as target:
        channel = grpc.secure_channel(target.removeprefix("grpc://"), grpc.ssl_channel_credentials(ca))
        with channel, pytest.raises(grpc.RpcError) as refused:
            channel.unary_unary("/tensorflow.WorkerService/GetStatus")(b"", timeout=60)
    assert refused.value.code() == grpc.StatusCode.UNAVAILABLE


@contextmanager
def no_patience() -> Iterator[None]:
    """Sessions wait without end, so a refusal that is waited for would not come."""
    with mock.patch.object(tf.timeouts, "connect", 1e6), mock.patch.object(tf.timeouts, "tasks", 1e6):
        yield


MISFITS = {
    "plain text to TLS": (lambda tls: (tls.server, PLAIN), "it speaks TLS, and this program has no certificates"),
    "TLS to plain text": (lambda tls: (PLAIN, tls.client), "it speaks plain text, and this program has certificates"),
    "another authority": (lambda tls: (tls.server, tls.stranger), "its certificate is refused here: "),
    "a certificate of another authority": (
        lambda tls: (tls.server, replace(tls.stranger, ca=tls.client.ca)),
        "it refuses the certificate that this program has shown",
    ),
}


@pytest.mark.parametrize("what", MISFITS)
def test_a_session_is_told_at_once_what_does_not_fit(tls, what):
    credentials, words = MISFITS[what]
    of_server, of_client = credentials(tls)
    unauthenticated = pytest.raises(errors.UnauthenticatedError)
    with serving("localhost:0", of_server) as target, no_patience(), unauthenticated as refused:
        one_plus_one(target, of_client)
    assert f"The server at {target.removeprefix('grpc://')} can't be used: {words}" in str(refused.value)


def test_a_certificate_for_another_host(tls):
    with serving("127.0.0.2:0", tls.server) as target, pytest.raises(errors.UnauthenticatedError) as refused:
        one_plus_one(target, tls.client)
    assert "`dtflab certs DIR --name 127.0.0.2` makes one" in str(refused.value)


def test_a_task_says_which_other_one_has_no_tls(tls):
    spec = {"ps": free_addresses(1), "worker": free_addresses(1)}
    with contextlib.ExitStack() as stop:
        ps = tf.train.Server(spec, "ps", 0)
        stop.callback(ps.stop)
        worker = tf.train.Server(spec, "worker", 0, credentials=tls.server)
        stop.callback(worker.stop)
        inprocess.withdraw(ps.task.address, ps.task)
        with no_patience(), pytest.raises(errors.UnauthenticatedError) as refused:
            one_plus_one(worker.target)
    text = str(refused.value)
    assert f"Task /job:ps/replica:0/task:0 at {spec['ps'][0]} can't be used: it speaks plain text" in text
    assert "/job:worker/task:0 has certificates for TLS" in text and "this program" not in text


def test_a_key_of_another_certificate_is_refused_at_once(tls):
    mixed = replace(tls.server, key=tls.client.key)
    with pytest.raises(ValueError, match="These credentials can't be used for TLS"):
        WorkerStub.at("", "localhost:1", mixed)
    with pytest.raises(ValueError, match="These credentials can't be used for TLS"):
        tf.train.Server({"worker": ["localhost:0"]}, credentials=mixed)


def test_no_reason_is_given_where_none_shows(tls):
    """Nobody is there; or somebody who says nothing, or hangs up."""
    assert handshake.mismatch(free_addresses(1)[0], tls.client) == ""
    with socket.create_server(("127.0.0.1", 0)) as silent, mock.patch.object(handshake, "_PATIENCE", 0.05):
        assert handshake.mismatch(f"localhost:{silent.getsockname()[1]}", tls.client) == ""
    for credentials in (PLAIN, tls.client):
        with socket.create_server(("127.0.0.1", 0)) as rude:
            thread = threading.Thread(target=hang_up, args=(rude,))
            thread.start()
            assert handshake.mismatch(f"localhost:{rude.getsockname()[1]}", credentials) == ""
            thread.join()


def hang_up(listening: socket.socket) -> None:
    """Take what a client says first, and close."""
    connection, _ = listening.accept()
    with connection:
        assert connection.recv(1 << 16)


def test_credentials_bind_any_address_only_with_tls(tls, capfd):
    for credentials, listens in ((tls.server, True), (TOKEN, False)):
        server = tf.train.Server({"worker": ["some.name.invalid:0"]}, bind="0.0.0.0:0", credentials=credentials)
        try:
            assert (server.task.endpoint is not None) is listens
        finally:
            server.stop()
    assert "is a name in this process" in capfd.readouterr().err


# ---- a token ----

NO_TOKEN = "Task /job:worker/replica:0/task:0 asks each caller for its token, and this call has none. "
NO_PROOF = "can't be used: it does not prove that it has the token that this program has. "


@pytest.mark.parametrize("wire", WIRES)
def test_a_token_admits_to_both_wires(wire):
    with cluster_over(wire, ps=1, worker=1, credentials=TOKEN) as cluster:
        assert trained(cluster.target, TOKEN) == LINE
        assert any(call.pushed for call in cluster.calls()) is (wire == "link")


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("credentials, words", [(PLAIN, NO_TOKEN), (OTHER, NO_PROOF), (None, NO_TOKEN)])
def test_a_session_without_the_token_is_refused(wire, credentials, words):
    """Also next to one that has it, and has a link."""
    with (
        cluster_over(wire, worker=2, credentials=TOKEN) as cluster,
        tf.Session(cluster.target, credentials=TOKEN) as admitted,
    ):
        two = tf.constant(1.0) + 1.0
        assert admitted.run(two) == 2
        with no_patience(), pytest.raises(errors.UnauthenticatedError) as refused:
            one_plus_one(cluster.target, credentials)
        assert admitted.run(two) == 2
    text = str(refused.value)
    assert words in text and TOKEN.token not in text and OTHER.token not in text


@pytest.mark.parametrize("wire", WIRES)
def test_no_method_answers_without_the_token(wire):
    paths = [negotiation.OPEN, negotiation.CONFIRM, "/tensorflow.WorkerService/GetStatus", "/no/such"]
    shown = [None, [("authorization", f"Bearer {OTHER.token}")], [("authorization", TOKEN.token)]]
    with (
        cluster_over(wire, worker=1, credentials=TOKEN) as cluster,
        grpc.insecure_channel(cluster.tasks[0].address) as channel,
    ):
        for path, metadata in itertools.product(paths, shown):
            with pytest.raises(grpc.RpcError) as refused:
                channel.unary_unary(path)(b"", timeout=60, metadata=metadata)
            assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize(
    "of_ps, of_worker, words",
    [
        (TOKEN, OTHER, "it does not prove that it has the token that /job:worker/task:0 has"),
        (TOKEN, PLAIN, "asks each caller for its token, and /job:worker/task:0 has shown none that fits"),
        (PLAIN, TOKEN, "it does not prove that it has the token that /job:worker/task:0 has"),
    ],
)
def test_tasks_of_one_cluster_need_one_token(of_ps, of_worker, words):
    spec = {"ps": free_addresses(1), "worker": free_addresses(1)}
    with contextlib.ExitStack() as stop:
        ps = tf.train.Server(spec, "ps", 0, credentials=of_ps)
        stop.callback(ps.stop)
        worker = tf.train.Server(spec, "worker", 0, credentials=of_worker)
        stop.callback(worker.stop)
        inprocess.withdraw(ps.task.address, ps.task)
        with no_patience(), pytest.raises(errors.UnauthenticatedError, match=words) as refused:
            one_plus_one(worker.target)
        assert "Start /job:worker/task:0 with tf.train.Server(…, credentials=…)" in str(refused.value)


def test_tasks_of_this_process_that_listen_ask_for_a_token_that_is_given():
    with tf.Cluster(worker=1, listen=True, token=TOKEN.token) as cluster:
        assert one_plus_one(cluster.target) == 2
        with pytest.raises(errors.UnauthenticatedError, match="asks each caller for its token"):
            WorkerStub.at("", cluster.tasks[0].address, PLAIN).get_status()
        assert WorkerStub.at("", cluster.tasks[0].address, TOKEN).get_status()


def test_without_one_they_admit_every_program_of_this_machine():
    """That is what they listen for."""
    with tf.Cluster(worker=1, listen=True) as cluster:
        assert WorkerStub.at("", cluster.tasks[0].address).get_status()


def test_sessions_are_reset_with_the_token_alone():
    with cluster_over("grpc", worker=1, credentials=TOKEN) as cluster:
        tf.Session.reset(cluster.target, credentials=TOKEN)
        with pytest.raises(errors.UnauthenticatedError):
            tf.Session.reset(cluster.target)
