"""Cluster: starting, running clients, losing tasks, and that nothing is left of it."""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.cluster import inprocess
from dtflab.cluster.addresses import free_addresses
from dtflab.cluster.engines import InProcessTask
from dtflab.cluster.worker_stub import WorkerStub
from dtflab.machine.clock import REAL
from tests.cluster.two_tasks import never, until

ENGINES = ["inprocess", "process"]


def alive(pid):
    """True while the process runs; a zombie has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def ended(pids):
    return until(lambda: not any(map(alive, pids)), "all processes have ended")


# -- starting and stopping --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "options"),
    [
        ("localhost", {}), ("machine-a.example.com", {}), ("localhost", {"engine": "process"}),
        ("localhost", {"listen": True}), ("machine-a", {"clock": "virtual"}),
    ],
)  # fmt: skip
def test_each_task_with_port_0_gets_a_port_that_the_others_know(host, options):
    with tf.device("/job:ps/task:0"):
        v = tf.Variable([1.0, 2.0])
    with tf.device("/job:worker/task:2"):
        y = v * 2.0
    with tf.Cluster({"ps": [f"{host}:0"], "worker": [f"{host}:0"] * 3}, **options) as cluster:
        targets = [task.target for task in cluster.tasks]
        assert len(set(targets)) == 4 and not any(target.endswith(":0") for target in targets)
        with tf.Session(cluster.target) as session:
            session.run(v.initializer)
            assert session.run(y).tolist() == [2, 4]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_cluster_runs_a_graph_over_its_tasks(engine):
    with tf.device("/job:ps/task:0"):
        v = tf.Variable([1.0, 2.0])
    with tf.device("/job:worker/task:1"):
        y = v * 2.0
    with tf.Cluster(ps=1, worker=2, engine=engine) as cluster:
        with tf.Session(cluster.target) as session:
            session.run(v.initializer)
            assert session.run(y).tolist() == [2, 4]
        assert cluster.target == cluster.target_of("worker", 0) == cluster.task("worker").target
        assert [name for name, _, state in cluster.rows() if state == "running"] == [
            "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1",
        ]  # fmt: skip
        assert cluster.spec.as_dict().keys() == {"ps", "worker"}
    assert {state == "running" for _, _, state in cluster.rows()} == {False}
    cluster.stop()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_cluster_of_given_addresses(engine):
    ps, worker = free_addresses(2)
    with tf.Cluster({"ps": [ps], "worker": [worker]}, engine=engine) as cluster:
        assert cluster.target == f"grpc://{worker}" and cluster.task("ps").address == ps


def test_names_of_machines_stay_names():
    spec = tf.train.ClusterSpec({"worker": {3: "machine-a.example.com:2222", 5: "machine-b.example.com:2222"}})
    with tf.Cluster(spec) as cluster:
        assert cluster.target_of("worker", 5) == "grpc://machine-b.example.com:2222"
        assert inprocess.find("machine-a.example.com:2222") is not None
    assert inprocess.find("machine-a.example.com:2222") is None


def test_all_tasks_share_one_deadline(monkeypatch):
    limits = []
    monkeypatch.setattr(InProcessTask, "wait_ready", lambda task, *limit: limits.append(limit))
    with tf.Cluster(ps=1, worker=2, timeout=7) as cluster:
        cluster.restart()
    assert len(limits) == 6 and len({*limits[:3]}) == len({*limits[3:]}) == 1 and limits[0][0] == 7


def test_tasks_of_this_process_may_listen():
    with tf.Cluster(worker=2, listen=True) as cluster, tf.Cluster(worker=1) as other:
        host, port = cluster.task("worker", 1).address.split(":")
        assert host == "localhost"
        assert other.task("worker").address == f"worker-0.{other.name}:2222"
        program = f"import dtflab as tf; print(tf.Session('grpc://{host}:{port}').run(tf.constant(5)))"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
        assert done.stdout == "5\n", done.stderr


def test_a_cluster_replaces_another_when_that_has_stopped():
    first = tf.Cluster(worker=1, name="mine")
    with pytest.raises(errors.UnknownError, match=r"worker-0\.mine:2222 is in use by /job:worker/replica:0/task:0"):
        tf.Cluster(worker=2, name="mine")
    v = tf.Variable(1.0)
    with tf.Session(first.target) as session:
        session.run(v.initializer)
    first.stop()
    gone = pytest.raises(errors.FailedPreconditionError)  # a new cluster has no variables
    with tf.Cluster(worker=2, name="mine") as second, tf.Session(second.target) as session, gone:
        session.run(v)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_exception_leaves_nothing_running(engine):
    with pytest.raises(ZeroDivisionError), tf.Cluster(worker=2, engine=engine) as cluster:
        pids = [task.pid for task in cluster.tasks if hasattr(task, "pid")]
        1 / 0  # noqa: B018
    ended(pids)
    assert inprocess.find(cluster.task("worker").address) is None


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({}, ValueError, "at least one task"),
        ({"worker": 0}, ValueError, "at least one task"),
        ({"worker": -1}, ValueError, "can't have -1 tasks"),
        ({"worker": True}, TypeError, "number of tasks or a list"),
        ({"worker": "localhost:1"}, TypeError, "number of tasks or a list"),
        ({"spec": {"a": ["x:1"]}, "worker": 1}, ValueError, "not both"),
        (
            {"spec": {"ps": ["a:1"], "worker": ["a:1"]}},
            ValueError,
            "a:1 occurs twice.*: /job:ps/task:0 and /job:worker",
        ),
        ({"worker": ["a:1", "b:1", "a:1"]}, ValueError, "/job:worker/task:0 and /job:worker/task:2 have it. Give each"),
        ({"worker": 1, "engine": "cloud"}, ValueError, "one of inprocess, process, tensorflow"),
    ],
)
def test_arguments_that_are_refused(arguments, error, text):
    with pytest.raises(error, match=text):
        tf.Cluster(**arguments)


def test_a_task_that_is_not_there():
    with tf.Cluster(ps=1) as cluster:
        assert cluster.target == cluster.target_of("ps")
        with pytest.raises(
            ValueError, match="has no task /job:worker/replica:0/task:0; it has /job:ps/replica:0/task:0"
        ):
            cluster.target_of("worker")


def test_it_prints_well():
    with tf.Cluster(ps=1, worker=2, name="lesson") as cluster:
        assert repr(cluster) == "<Cluster lesson: 1 ps, 2 worker; inprocess; running>"
        assert len(cluster.status().splitlines()) == 4 and "<table>" in cluster._repr_html_()
        assert repr(cluster.client("worker", 1)) == "<client of /job:worker/task:1>"


# -- a task that does not come up -------------------------------------------------------------------------------


def test_a_task_that_can_t_start_is_named_with_its_address():
    with tf.Cluster(worker=1, engine="process") as running:
        taken = running.task("worker").address
        (free,) = free_addresses(1)
        with pytest.raises(errors.UnavailableError) as caught:
            tf.Cluster({"ps": [free], "worker": [taken]}, engine="process")
        text = caught.value.message
        assert f"Task /job:worker/replica:0/task:0 at {taken} ended with status 1" in text
        assert "Is its address taken?" in text and "Could not start gRPC server" in text


def test_a_task_that_takes_too_long_is_named(monkeypatch, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import time; print('thinking', flush=True); time.sleep(60)")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(errors.UnavailableError, match=r"task:0 at localhost:\d+ did not start within 0.5 s"):
        tf.Cluster(worker=1, engine="process", timeout=0.5)


# -- clients ----------------------------------------------------------------------------------------------------


def test_run_calls_one_client_per_task_each_with_its_own_graph():
    with tf.Cluster(ps=1, worker=3) as cluster:
        graphs = []

        def work(client):
            assert tf.get_default_session() is None
            graphs.append(tf.get_default_graph())
            with tf.device(client.device):
                x = tf.constant(float(client.index))
            with tf.Session(client.target) as session:
                assert x.op.name == "Const"  # names of other clients are not in the way
                return client.job, client.index, client.is_chief, float(session.run(x))

        assert cluster.run(work) == [("worker", i, i == 0, float(i)) for i in range(3)]
        assert len(set(graphs)) == 3
        assert cluster.run(lambda client: client.device, job="ps") == ["/job:ps/task:0"]


def test_clients_train_one_variable_together():
    def work(client):
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(0.0, name="v")
        more = v.assign_add(1.0, use_locking=True)
        with tf.Session(client.target) as session:
            if client.is_chief:
                session.run(v.initializer)
            else:
                until(lambda: session.run(tf.is_variable_initialized(v)), "the chief has begun")
            for _ in range(100):
                session.run(more)

    with tf.Cluster(ps=1, worker=3) as cluster:
        cluster.run(work)
        with tf.device("/job:ps/task:0"):
            v = tf.Variable(0.0, name="v")
        with tf.Session(cluster.target) as session:
            assert session.run(v) == 300


def test_the_first_error_of_a_client_is_raised_when_the_others_have_ended():
    others = []

    def work(client):
        if client.index == 1:
            raise KeyError("of client 1")
        until(client.should_stop, "somebody failed")
        others.append(client.index)

    with tf.Cluster(worker=3) as cluster:
        with pytest.raises(KeyError, match="of client 1") as caught:
            cluster.run(work)
        assert sorted(others) == [0, 2]
        assert caught.value.__notes__ == ["(raised in the client of /job:worker/task:1)"]
        assert cluster.run(lambda client: client.should_stop()) == [False] * 3


def test_clients_that_do_not_stop_are_left_behind_after_a_grace():
    go_on = threading.Event()

    def work(client):
        if client.index:
            raise ValueError("first")
        go_on.wait(60)

    with tf.Cluster(worker=2) as cluster:
        with pytest.raises(ValueError, match="first"):
            cluster.run(work, grace=0.01)
        go_on.set()


def test_ctrl_c_while_clients_are_being_started_stops_those_that_run(monkeypatch):
    begun, ended, spawn = threading.Event(), threading.Event(), REAL.spawn

    def work(client):
        begun.set()
        until(client.should_stop, "it is asked to stop")
        ended.set()

    def interrupted(target, *args, name="", **options):
        if name == "client /job:worker/task:1":
            assert begun.wait(60)
            raise KeyboardInterrupt
        return spawn(target, *args, name=name, **options)

    monkeypatch.setattr(REAL, "spawn", interrupted)
    with tf.Cluster(worker=2) as cluster, pytest.raises(KeyboardInterrupt):
        cluster.run(work)
    assert ended.wait(60)


# -- tasks that are lost ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_killing_a_worker_within_a_step(engine):
    far = "/job:worker/task:1"
    with tf.device(far):
        waits = never(far) + 1.0
    here = tf.negative(waits)
    with tf.Cluster(worker=2, engine=engine) as cluster:
        pids = [task.pid for task in cluster.tasks if hasattr(task, "pid")]
        found = []

        def client():
            try:
                session.run(here)
            except errors.OpError as error:
                found.append(error)

        with tf.Session(cluster.target) as session:
            session.run(tf.constant(1.0))
            thread = threading.Thread(target=client)
            thread.start()
            waiting = until(lambda: engine == "process" or cluster.waits(), "the step waits")
            cluster.kill("worker", 1)
            thread.join(60)
            assert isinstance(found[0], errors.UnavailableError | errors.AbortedError), found
            assert "/job:worker/replica:0/task:1" in str(found[0])
            assert session.run(tf.constant(2.0)) == 2  # what does not need the lost task goes on
        if engine == "inprocess":
            expected = "task:1/device:CPU:0 waits for never from /job:worker/replica:0/task:1"
            assert any(expected in line for line in waiting), waiting
        assert [state == "running" for _, _, state in cluster.rows()] == [True, False]
    ended(pids)


@pytest.mark.parametrize("master", [0, 1])
@pytest.mark.parametrize("when", ["before a node", "within a node"])
def test_a_step_that_runs_as_its_task_is_killed_is_lost(master, when):
    """Not that its variable is uninitialized, after which nobody would try again: the task's state goes later."""
    with tf.Cluster(worker=2) as cluster, tf.Graph().as_default(), tf.device("/job:worker/task:1"):

        def kill(x):
            cluster.kill("worker", 1)
            if when == "within a node":
                raise ValueError("as a kernel that meets a variable which is gone")
            return x

        variable = tf.Variable(1.0)
        with tf.control_dependencies([tf.py_func(kill, [1.0], tf.float32)]):
            read = variable.read_value()
        with tf.Session(cluster.target_of("worker", master)) as session:
            session.run(variable.initializer)
            with pytest.raises(errors.UnavailableError, match=r"job:worker.*task:1 .*was stopped"):
                session.run(read.op)  # nothing is on its way to the master


@pytest.mark.parametrize("engine", ENGINES)
def test_a_session_is_told_whether_a_lost_task_is_back(engine):
    with tf.device("/job:ps/task:0"):
        variable = tf.Variable(1.0)
    with tf.Cluster(ps=1, worker=1, engine=engine) as cluster, tf.Session(cluster.target) as session:
        session.run(variable.initializer)
        cluster.kill("ps")
        with pytest.raises(errors.UnavailableError, match="/job:ps/replica:0/task:0"):
            session.run(variable)
        cluster.restart("ps")
        until(lambda: error_class(session, variable) is not errors.UnavailableError, "its wire is connected again")
        with pytest.raises(errors.AbortedError, match=r"worker .*/job:ps/replica:0/task:0.* restarted"):
            session.run(variable)


def error_class(session, fetch):
    with pytest.raises(errors.OpError) as caught:
        session.run(fetch)
    return caught.type


def looked_at(engine):
    """The views of a cluster while one of its ops waits at a queue, and another for a tensor of that."""
    with tf.Graph().as_default(), tf.Cluster(ps=1, worker=1, engine=engine) as cluster:
        with tf.device("/job:ps/task:0"):
            w = tf.get_variable("w", initializer=[[1.0, 2.0]])
            queue = tf.FIFOQueue(3, [tf.float32], [[2]], shared_name="rows")
            row = queue.dequeue(name="row")
        with tf.device("/job:worker/task:0"):
            doubled = tf.multiply(row, 2.0, name="doubled")
            tf.get_variable("unset", [3], tf.int64)
        with tf.Session(cluster.target) as session:
            session.run(w.initializer)
            with tf.Session(cluster.target) as other:
                thread = threading.Thread(target=other.run, args=(doubled,), daemon=True)
                thread.start()
                until(lambda: any("row waits" in line for line in cluster.waits()), "it waits")
                waits = [re.sub(r"\(step …\d{6}\)", "(step)", line) for line in cluster.waits()]
                assert all(line.endswith(" (step)") for line in waits)
                found = [cluster.variables(), cluster.queues(), waits]
                session.run(queue.enqueue(w[0]))
                thread.join(60)
        until(lambda: not cluster.waits(), "nothing waits")
        found.append({(call.method, call.source, call.target) for call in cluster.calls()})
        return found


def test_a_cluster_of_processes_can_be_looked_at_like_one_in_this_process():
    variables, queues, waits, calls = looked_at("process")
    expected = looked_at("inprocess")
    assert variables == expected[0] and [(one.name, one.shape) for one in variables] == [("w", (1, 2))]
    assert queues == expected[1] and queues[0].waiting[0][:2] == ("row", "take")
    assert (
        [line for line in waits if "row waits" in line] == [line for line in expected[2] if "row waits" in line] != []
    )
    assert calls == expected[3] != set()


def placed_in(engine):
    with tf.Graph().as_default(), tf.Cluster(ps=1, worker=2, engine=engine) as cluster:
        with tf.device("/job:ps/task:0"):
            w = tf.get_variable("w", [2, 2])
        with tf.device("/job:worker/task:1"):
            y = tf.matmul(w, w, name="y")
        loss = tf.reduce_sum(y, name="loss")
        with tf.Session(cluster.target) as session:
            nodes, few = session.placed_nodes(), session.placed_nodes(y)
            assert {"y", "w"} <= {node.name for node in few} < {node.name for node in nodes}
            drawn = tf.viz.placement(
                loss, {node.name: node.device for node in nodes}, reasons=session.placement_reasons()
            )
            return [(n.name, n.op, n.inputs, n.device) for n in nodes], session.placement_reasons(), drawn.sentence


def test_the_master_of_another_process_reports_its_placement():
    assert placed_in("process") == placed_in("inprocess")


def test_waits_names_a_process_that_does_not_answer(monkeypatch):
    with tf.Cluster(ps=1, worker=1, engine="process") as cluster:
        ps = cluster.task("ps")
        os.kill(ps.pid, signal.SIGSTOP)
        monkeypatch.setattr(WorkerStub.view, "__defaults__", (0.5,))
        try:
            (line,) = cluster.waits()
            assert re.search(f"{ps.name} at .* (does|did) not answer", line)
            with pytest.raises(errors.UnavailableError, match=f"{ps.name} at .* (does|did) not answer"):
                cluster.variables()
        finally:
            os.kill(ps.pid, signal.SIGCONT)
        cluster.kill("ps")
        assert cluster.waits() == [] and cluster.variables() == []


@pytest.mark.parametrize("how", ["SIGKILL", "SIGTERM", "exit", "exception"])
def test_the_end_of_a_kernel_leaves_no_orphans(how):
    """Whatever ends the process that made the cluster, its tasks end, too; a busy one as well."""
    program = f"""
import dtflab as tf, os, sys, threading
cluster = tf.Cluster(ps=1, worker=1, engine="process")
from tests.runtime.test_frames import loop
with tf.device("/job:worker/task:0"):
    forever = loop([tf.constant(0)], lambda i: tf.less(i, 1), lambda i: (i * 1,))
threading.Thread(target=lambda: tf.Session(cluster.target).run(forever), daemon=True).start()
print(*[task.pid for task in cluster.tasks], flush=True)
how = "{how}"
if how == "exit": sys.exit()
if how == "exception": raise KeyError("an error")
sys.stdin.read()
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    pids = [int(pid) for pid in parent.stdout.readline().split()]
    assert len(pids) == 2
    if how.startswith("SIG"):
        os.kill(parent.pid, getattr(signal, how))
    parent.communicate(timeout=300)
    ended(pids)


def test_a_stopped_cluster_s_sessions_say_so(monkeypatch):
    with tf.Cluster(worker=2) as cluster:
        a = tf.constant(1.0)
        session = tf.Session(cluster.target)
        assert session.run(a) == 1
    with pytest.raises(errors.OpError, match=r"(?i)stop|restart"):
        session.run(a)
    session.close()
    with tf.Session(cluster.target) as late, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tf.timeouts, "connect", 3600.0)  # it says so at once
        words = rf"worker-0.* was a task of the cluster {cluster.name}, which this program has stopped"
        with pytest.raises(errors.UnavailableError, match=words):
            late.run(a)


def test_a_stopped_cluster_is_forgotten():
    cluster = tf.Cluster(worker=1)
    tasks = [weakref.ref(task.server.task) for task in cluster.tasks]
    with tf.Session(cluster.target) as session:
        session.run(tf.constant(1.0))
    cluster.stop()
    del cluster, session
    gc.collect()
    assert [task() for task in tasks] == [None]


def test_clients_of_a_run_that_failed_do_not_train_on():
    started = threading.Event()

    def work(client):
        if client.index == 0:
            started.wait()
            raise ValueError("enough")
        x = tf.constant(1.0)
        with tf.Session(client.target) as sess:
            while True:
                sess.run(x)
                started.set()

    with tf.Cluster(worker=2) as cluster, pytest.raises(ValueError, match="enough"):
        cluster.run(work, grace=0.0)  # the fixture `nothing_left_running` waits for the other client to end
