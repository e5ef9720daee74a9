"""Clusters on the workers of a Dask cluster: one of processes of this machine, which the tests share."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from types import SimpleNamespace

import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.cluster import dask_engine, dask_worker, moving
from dtflab.cluster.dask_engine import Worker, choose
from dtflab.cluster.dask_task import DaskTask
from dtflab.machine.clock import REAL
from tests.cluster.dask_clusters import children_of, dask_client
from tests.cluster.test_chaos import Program
from tests.cluster.two_tasks import interrupt_main, until

PS, FIRST, SECOND = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1"
NO_GPUS = {"worker": ""}


@pytest.fixture(scope="module")
def client():
    with dask_client(workers=2, resources={"GPU": 1}) as client:
        yield client


@pytest.fixture(scope="module")
def calm(client):
    with one_of(client) as cluster:
        for task in cluster.tasks:
            task.devices()  # its connection stays, with its threads
        yield cluster
    assert children_of(client) == []


@pytest.fixture
def cluster(calm):
    """A cluster for tests that leave its tasks where they are."""
    yield calm
    tf.Session.reset(calm.target)


@pytest.fixture
def own(client):
    """A cluster for one test."""
    with one_of(client) as cluster:
        yield cluster


def one_of(client):
    return tf.Cluster(engine="dask", client=client, ps=1, worker=2, visible_devices=NO_GPUS)


def model():
    """A variable on the parameter server, and twice its value on the second worker."""
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(3.0, name="v", use_resource=False)
    with tf.device("/job:worker/task:1"):
        return v, v * 2.0


def refused(client, text, kind=errors.FailedPreconditionError, **arguments):
    """Check that a cluster is refused with that text, and that nothing of it stays."""
    before = client and children_of(client)
    with pytest.raises(kind, match=text):
        tf.Cluster(engine="dask", client=client, **{"worker": 1, "visible_devices": NO_GPUS, **arguments})
    assert (client and children_of(client)) == before


# ---- places


def test_tasks_go_to_the_host_and_then_the_worker_with_the_fewest():
    workers = [Worker("a1", "a", 0), Worker("a2", "a", 0), Worker("b1", "b", 0)]
    there, order = Counter[str](), []
    for _ in range(6):
        order.append(choose(workers, there, wants_gpu=False).address)
        there[order[-1]] += 1
    assert order == ["a1", "b1", "a2", "b1", "a1", "b1"]


def test_a_task_that_wants_a_gpu_goes_where_one_is_free():
    workers = [Worker("none", "a", 0), Worker("two", "b", 2)]
    assert choose(workers, Counter(two=1), wants_gpu=True).address == "two"
    assert choose(workers, Counter(two=2), wants_gpu=True) is None
    assert choose([], Counter(), wants_gpu=False) is None


# ---- a cluster


def test_a_cluster_is_like_one_of_any_other_engine(cluster, client):
    v, w = model()
    with tf.Session(cluster.target) as session:
        session.run(v.initializer)
        assert session.run(w) == 6.0 and session.master_task == FIRST
        names = {device.name for device in session.list_devices()}
        assert names == {f"{task}/device:CPU:0" for task in (PS, FIRST, SECOND)}
        with session.step_through(w) as steps:
            assert steps.finish() == 6.0
    with tf.Session(cluster.target_of("worker", 1)) as other:
        assert other.run(v) == 3.0
    assert [(held.task, held.name) for held in cluster.variables()] == [(PS, "v")]
    pulls = {(call.source, call.target) for call in cluster.calls() if call.method == "RecvTensor"}
    assert pulls == {(SECOND, PS), (FIRST, SECOND), (FIRST, PS), (SECOND, FIRST)} & pulls and (SECOND, PS) in pulls
    assert cluster.waits() == [] and cluster.queues() == []
    assert {state for _, _, state in cluster.rows()} == {"running"} and cluster.status().count("CPU:0") == 3
    assert len(children_of(client)) == len({address for _, address, _ in cluster.rows()}) == 3


def test_tasks_lie_on_all_workers(cluster, client):
    assert Counter(task.worker for task in cluster.tasks).keys() == client.scheduler_info()["workers"].keys()


def test_isolated_sessions_and_resets(cluster):
    v, _ = model()
    with (
        tf.Session(cluster.target) as shared,
        tf.Session(cluster.target, config=tf.ConfigProto(isolate_session_state=True)) as isolated,
    ):
        shared.run(v.initializer)
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized"):
            isolated.run(v)
    tf.Session.reset(cluster.target)
    assert cluster.variables() == []  # of the ps, although the target is a worker


def test_another_program_takes_the_cluster_def(cluster):
    """Use the addresses and the token: names mean nothing elsewhere."""
    v, w = model()
    with tf.Session(cluster.target) as session:
        session.run(v.initializer)
    config = tf.ConfigProto(cluster_def=cluster.cluster_def())
    config.experimental.share_session_state_in_clusterspec_propagation = True
    address = cluster.task("worker").address
    with tf.Session(f"grpc://{address}", config=config, credentials=cluster.credentials) as session:
        assert session.run(w) == 6.0
    with (
        pytest.raises(tf.errors.UnauthenticatedError),
        tf.Session(f"grpc://{address}", config=config, credentials=tf.Credentials()) as session,
    ):
        session.run(w)


def test_a_killed_task_is_started_again_and_new_sessions_find_it(own):
    v, w = model()
    old = own.task("ps").address
    with tf.Session(own.target) as session:
        session.run(v.initializer)
        own.kill("ps")
        assert own.task("ps").state in ("lost", "starting")
        with pytest.raises((tf.errors.UnavailableError, tf.errors.AbortedError)):
            session.run(w)
    with tf.Session(own.target) as session:  # waits for it
        with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized"):
            session.run(w)
        session.run(v.initializer)
        assert session.run(w) == 6.0
    assert own.task("ps").address != old and own.task("ps").state == "running"


def test_a_stopped_process_goes_on(cluster):
    task = cluster.task("worker", 1)
    task.send_signal("SIGSTOP")
    until(lambda: _state_of(task) == "T", "the process is stopped")
    task.send_signal("SIGCONT")
    v, w = model()
    with tf.Session(cluster.target) as session:
        session.run(v.initializer)
        assert session.run(w) == 6.0


def test_chaos_has_all_its_faults_there(cluster):
    program = Program(cluster)
    given = {"stop": "worker:1=0.2s", "slow": "ps=2x", "partition": "ps|worker:1=0.2s", "drop": "GetStatus:0.1"}
    with tf.chaos(cluster, **given) as chaos:
        assert program.run() == 1.0
    said = [event.what for event in chaos.events]
    assert {"slow", "as fast as usual", "cut off", "joined again", "stopped", "goes on", "calls are lost"} <= {*said}
    with tf.chaos(cluster, drop="RecvTensor:1"):
        assert program.run() is errors.UnavailableError and "(chaos)" in str(program.error)
    assert program.run(program.alone) == 6.0
    program.session.close()


def _state_of(task):
    (pid,) = children_of_life(task)
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def children_of_life(task):
    return task.engine.client.run(_pid_of, task.life, workers=[task.worker]).values()


def _pid_of(life):
    from dtflab.cluster import dask_worker

    return dask_worker._held[life].child.pid


def test_restart_gives_a_task_without_variables_under_the_same_target(own):
    v, w = model()
    with tf.Session(own.target) as session:
        session.run(v.initializer)
    own.restart("ps")
    with tf.Session(own.target) as session, pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized"):
        session.run(w)


def test_a_session_leaves_out_a_task_that_its_filters_exclude(cluster, monkeypatch):
    config = tf.ConfigProto(device_filters=["/job:ps"])
    with monkeypatch.context() as patch:
        patch.setattr(cluster.task("worker", 1), "state", "lost")
        with tf.Session(cluster.target, config=config) as session:
            names = {device.name for device in session.list_devices()}
    assert names == {f"{task}/device:CPU:0" for task in (PS, FIRST)}


def test_a_session_that_may_not_wait_says_which_task_it_waits_for(cluster, monkeypatch):
    model()
    config = tf.ConfigProto(operation_timeout_in_ms=1)
    with monkeypatch.context() as patch:
        patch.setattr(cluster.task("ps"), "state", "lost")
        patch.setattr(cluster.task("ps"), "obstacle", errors.UnavailableError.of("its host is gone"))
        with (
            pytest.raises(tf.errors.DeadlineExceededError, match=f"{PS} does not answer: its host is gone"),
            tf.Session(cluster.target, config=config) as session,
        ):
            session.list_devices()


# ---- what is refused


def test_what_a_program_must_give(client, monkeypatch):
    refused(None, "needs client=…, a distributed.Client")
    refused(client, "takes numbers of tasks", ValueError, worker=["localhost:2222"])
    with pytest.raises(ValueError, match="client=… is for engine='dask', not 'inprocess'"):
        tf.Cluster(client=client, worker=1)
    monkeypatch.setattr(dask_engine, "importlib", SimpleNamespace(util=SimpleNamespace(find_spec=lambda name: None)))
    refused(client, r"pip install 'dtflab\[dask\]'")


def test_more_tasks_than_gpus(client, capsys, monkeypatch):
    wait = DaskTask.wait_ready

    def third_at_its_deadline(task, timeout, since):
        wait(task, *((0.2, REAL.now()) if task.index == 2 else (timeout, since)))

    monkeypatch.setattr(tf.timeouts, "notice", 0.1)
    monkeypatch.setattr(DaskTask, "wait_ready", third_at_its_deadline)
    before = children_of(client)
    with pytest.raises(errors.ResourceExhaustedError, match=r"task:2 did not start.*offer 2 .*have 2"):
        tf.Cluster(engine="dask", client=client, worker=3)
    assert "still waiting for /job:worker/task:2: it waits for a GPU" in capsys.readouterr().err
    assert children_of(client) == before


def test_each_task_with_a_gpu_has_a_card_of_its_own(client):
    with tf.Cluster(engine="dask", client=client, ps=1, worker=2) as cluster:
        assert cluster.task("worker", 0).worker != cluster.task("worker", 1).worker
        assert [task.has_gpu for task in cluster.tasks] == [False, True, True]
        # Dask may still be taking back what the test before has had. The workers are on one host; the ps sees no card.
        until(lambda: set(client.run(_used).values()) == {1.0}, "each worker lends one GPU")
        until(lambda: _cards_of_all(client) == ["0", "1"], "each task has a card of its own")


def _cards_of_all(client):
    return sorted(card for cards in client.run(_cards).values() for card in cards if card)


def _cards():
    from dtflab.cluster import dask_worker

    found = []
    for held in dask_worker._held.values():
        with open(f"/proc/{held.child.pid}/environ") as file:
            variables = dict(each.split("=", 1) for each in file.read().split("\0") if each)
        found.append(variables["CUDA_VISIBLE_DEVICES"])
    return found


def test_a_card_is_claimed_once_on_a_host_and_free_again_afterwards(monkeypatch, tmp_path):
    monkeypatch.setenv("DTFLAB_REGISTRY", str(tmp_path / "registry"))
    with dask_worker._card() as first, dask_worker._card() as second:
        assert [first, second] == ["0", "1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,MIG-GPU-5/1/0")
    with dask_worker._card() as first, dask_worker._card() as second:
        assert [first, second] == ["1", "MIG-GPU-5/1/0"]
        monkeypatch.setattr(dask_worker, "_held", {"a life": SimpleNamespace(card="1")})
        with dask_worker._card() as shared:
            assert shared == "MIG-GPU-5/1/0"


def _used(dask_worker):
    return dask_worker.state.total_resources["GPU"] - dask_worker.state.available_resources["GPU"]


def test_simulated_gpus_need_none_of_dask(client):
    with tf.Cluster(engine="dask", client=client, ps=1, worker=3, gpus=1, gpu="K40") as cluster:
        assert not any(task.has_gpu for task in cluster.tasks)
        assert [device.device_type for device in cluster.task("worker", 2).devices()] == ["CPU", "GPU"]


def test_a_folder_that_workers_do_not_see(client, tmp_path, monkeypatch):
    monkeypatch.setattr(dask_engine.dask_worker, "sees", _sees_elsewhere)
    workers = client.scheduler_info()["workers"]
    refused(client, "(?s)" + ".*".join(sorted(workers)) + ".*mount it there", allow_files=tmp_path)
    assert list(tmp_path.iterdir()) == []
    refused(client, "is not a folder here: create it first", allow_files=tmp_path / "missing")


def _sees_elsewhere(file, content):
    from dtflab.cluster import dask_worker

    return dask_worker.sees(file + "-of-another-machine", content)


def test_tasks_open_the_files_of_the_folder_alone(client, tmp_path):
    inside, outside = tmp_path / "shared", tmp_path / "outside.txt"
    inside.mkdir()
    for path in (inside / "a.txt", outside):
        path.write_text("text")
    with (
        tf.Cluster(engine="dask", client=client, worker=1, visible_devices=NO_GPUS, allow_files=inside) as cluster,
        tf.Session(cluster.target) as session,
    ):
        assert session.run(tf.read_file(str(inside / "a.txt"))) == b"text"
        with pytest.raises(tf.errors.PermissionDeniedError, match="allow_files"):
            session.run(tf.read_file(str(outside)))


def test_a_worker_with_another_version(client, monkeypatch):
    versions = client.get_versions(packages=["dtflab"])
    first = min(versions["workers"])
    versions["workers"][first]["packages"] |= {"dtflab": "0.0.9"}
    monkeypatch.setattr(client, "get_versions", lambda packages: versions)
    refused(client, f"{first}: dtflab is 0.0.9, here {tf.__version__}: install the same")


def test_a_task_that_does_not_come_up_says_its_last_words(client, monkeypatch):
    monkeypatch.setattr(type(tf.timeouts), "as_environment", lambda _: {"DTFLAB_TIMEOUT_NOTICE": "soon"})
    words = f"(?s)Task {FIRST} ended on tcp://.*must be a number of seconds, not 'soon'"
    refused(client, words, errors.UnavailableError)


# ---- beyond loopback


@pytest.mark.parametrize(
    "credentials, insecure, encrypted, text",
    [
        ("token", False, True, "in plain text: give credentials="),
        ("token", True, False, ""),
        ("TLS", False, False, "the private key of credentials=… would be sent there in plain text"),
        ("TLS", False, True, ""),
    ],
)
def test_who_may_listen_beyond_loopback(tls, credentials, insecure, encrypted, text):
    engine = dask_engine.Dask(dask_engine_options(insecure, "tls" if encrypted else "tcp"))
    given = tls.server if credentials == "TLS" else tf.Credentials(token="a-token-of-the-test")
    engine.tasks["a task"] = WithCredentials(given)
    found = engine._exposed([Worker("far", "10.0.0.2", 0), Worker("near", "127.0.0.1", 0)])
    assert list(found) == ["far"] * bool(text) and text in found.get("far", "")


class WithCredentials:
    """A task as `_exposed` sees it."""

    def __init__(self, credentials):
        self.setup, self.credentials = self, credentials


def dask_engine_options(insecure, scheme):
    class Scheduler:
        address = f"{scheme}://10.0.0.1:8786"

    class Client:
        scheduler = Scheduler()

    from dtflab.cluster.engines import Options

    return Options(client=Client(), insecure=insecure)


# ---- ends


def test_ctrl_c_while_a_cluster_starts(client):
    before = children_of(client)
    interrupt = threading.Thread(target=interrupt_main, args=("wait_ready",))
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        tf.Cluster(engine="dask", client=client, ps=1, worker=2, visible_devices=NO_GPUS)
    interrupt.join()
    assert children_of(client) == before


def test_an_error_in_the_block_ends_all_tasks(client):
    before = children_of(client)
    with (
        pytest.raises(ZeroDivisionError),
        tf.Cluster(engine="dask", client=client, worker=2, visible_devices=NO_GPUS) as cluster,
    ):
        names = [task.stable for task in cluster.tasks]
        raise ZeroDivisionError
    assert children_of(client) == before and [moving.find(name) for name in names] == [None, None]


PROGRAM = """
import sys
import distributed
import dtflab as tf

client = distributed.Client(sys.argv[1])
cluster = tf.Cluster(engine="dask", client=client, worker=2, visible_devices={"worker": ""})
print("started", flush=True)
sys.stdin.read()
"""


def test_a_killed_program_leaves_no_task_behind(client):
    before = children_of(client)
    command = [sys.executable, "-c", PROGRAM, client.scheduler.address]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout.readline() == "started\n" and len(children_of(client)) == len(before) + 2
        os.kill(program.pid, signal.SIGKILL)
    until(lambda: children_of(client) == before, "its tasks have ended")


def test_a_client_that_is_closed_first_ends_the_tasks(client):
    before = children_of(client)
    with tf.Cluster(engine="dask", client=(own := _another(client)), worker=1, visible_devices=NO_GPUS):
        own.close()
        until(lambda: children_of(client) == before, "its task has ended")


def _another(client):
    import distributed

    return distributed.Client(client.scheduler.address, set_as_default=False)
