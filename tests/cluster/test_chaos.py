"""Faults on purpose: each kind on each engine, what the program sees, and that equal seeds make equal runs."""

from __future__ import annotations

import json
import math
import re
import threading

import numpy as np
import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.cluster import chaos_trace
from dtflab.cluster.chaos_trace import Shown
from dtflab.protos.step_stats_pb2 import StepStats
from dtflab.viz.data import step_trace
from tests.cluster.two_tasks import until
from tests.house import ROOT
from tests.viz.watched import texts

PS, WORKER_0, WORKER_1 = (f"/job:{task}/task:{n}" for task, n in (("ps", 0), ("worker", 0), ("worker", 1)))
ENGINES = {
    "inprocess": {"engine": "inprocess"},
    "process": {"engine": "process"},
    "virtual": {"clock": "virtual", "seed": 0},
}


class Program:
    """A counter on the ps to which worker 1 gives what is added, and a session of worker 0."""

    def __init__(self, cluster, **session):
        self.cluster = cluster
        self.graph = tf.Graph()
        with self.graph.as_default():
            with tf.device(PS):
                counter = tf.Variable(0.0)
            with tf.device(WORKER_1):
                # Two transfers: nothing here is known before the step.
                given = tf.Variable(1.0) * 1.0
            with tf.device(PS):
                self.add = tf.assign_add(counter, given)
            with tf.device(WORKER_0):
                self.alone = tf.Variable(5.0) + 1.0
            self.given = given
            self.init = tf.global_variables_initializer()
        self.session = tf.Session(cluster.target, self.graph, **session)
        self.session.run(self.init)
        self.session.run([self.add, self.alone])
        self.session.run(self.init)

    def run(self, fetch=None):
        """The value of a step, or the class of its error."""
        try:
            return float(self.session.run(self.add if fetch is None else fetch))
        except errors.OpError as error:
            self.error = error
            return type(error)


@pytest.fixture(scope="module", params=ENGINES)
def cluster(request):
    with tf.Cluster(ps=1, worker=2, **ENGINES[request.param]) as cluster:
        keeps_connections = Program(cluster)
        yield cluster
        keeps_connections.session.close()


@pytest.fixture(params=ENGINES)
def own_cluster(request):
    with tf.Cluster(ps=1, worker=2, **ENGINES[request.param]) as cluster:
        yield cluster


@pytest.fixture
def program(cluster):
    program = Program(cluster)
    yield program
    program.session.close()


def whats(chaos, *tasks):
    return [(event.what, event.task.replace("/replica:0", "")) for event in chaos.events if not tasks or event.task]


# ---- each fault on each engine ----


def test_a_task_is_killed_before_a_step(own_cluster):
    cluster, program = own_cluster, Program(own_cluster)
    with tf.chaos(cluster, kill="worker:1@step3") as chaos:
        assert [program.run() for _ in range(2)] == [1.0, 2.0]
        assert program.run() is errors.UnavailableError and "/job:worker/replica:0/task:1" in str(program.error)
        assert program.run(program.alone) == 6.0  # what needs no other task
        assert chaos.steps == 4
    assert whats(chaos) == [("killed", WORKER_1)]
    assert cluster.task("worker", 1).state != "running"  # it stays dead


def test_a_task_that_is_killed_for_a_while_is_started_again(own_cluster):
    cluster, program = own_cluster, Program(own_cluster)
    with tf.chaos(cluster, kill="worker:1=0.2s") as chaos:
        assert program.run() is errors.UnavailableError
        cluster.clock.sleep(0.3)
        if cluster.world is None:
            until(lambda: len(chaos.events) == 2, "it is started again")
        until(lambda: program.run() is errors.AbortedError, "the session learns that it is another task")
    assert whats(chaos) == [("killed", WORKER_1), ("restarted", WORKER_1)]
    assert Program(cluster).run() == 1.0


def test_a_block_that_ends_first_starts_the_task_again(own_cluster):
    with tf.chaos(own_cluster, kill="worker:1=1000s") as chaos:
        pass
    assert whats(chaos) == [("killed", WORKER_1), ("restarted", WORKER_1)]
    assert Program(own_cluster).run() == 1.0


def test_a_stopped_task_is_waited_for(cluster, program):
    began = cluster.now()
    with tf.chaos(cluster, stop="worker:1=0.3s") as chaos:
        assert program.run() == 1.0
        took = cluster.now() - began
    assert took >= 0.3
    assert whats(chaos) == [("stopped", WORKER_1), ("goes on", WORKER_1)]
    assert chaos.events[1].at - chaos.events[0].at >= 0.299999


def test_faults_that_end_while_their_task_is_stopped(cluster, program):
    with tf.chaos(cluster, stop="worker:1=0.3s", slow="ps=2x", partition="ps|worker:1=0.1s") as chaos:
        assert program.run() == 1.0
    assert program.run() == 2.0 and {"joined again", "goes on"} <= {event.what for event in chaos.events}


def test_a_stop_ends_with_the_block(cluster, program):
    with tf.chaos(cluster, stop="worker:1"):
        assert program.run(program.alone) == 6.0  # nothing of the stopped task is in it
    assert program.run() == 1.0


def test_a_stopped_master_runs_no_step(cluster, program):
    began = cluster.now()
    with tf.chaos(cluster, stop="worker:0=0.3s"):
        assert program.run(program.alone) == 6.0
        assert cluster.now() - began >= 0.3


def test_a_step_under_way_stands_still_with_its_task():
    with tf.Cluster(worker=1) as cluster, tf.Graph().as_default():
        (task,) = cluster.tasks
        waits = []

        def stops(x):
            task.pause()
            threading.Thread(target=goes_on).start()
            return x

        def goes_on():
            until(lambda: task.server.task.faults.pace.gate._waiting, "the next node is put aside")
            waits.append(task.name)
            task.go_on()

        y = tf.py_func(stops, [tf.Variable(1.0)], tf.float32) + 1.0
        with tf.Session(cluster.target) as session:
            session.run(tf.global_variables_initializer())
            assert session.run(y) == 2.0 and waits == [task.name]


@pytest.mark.parametrize("engine", ["inprocess", "process"])
def test_an_answer_under_way_is_held_at_the_cut(engine):
    with tf.Cluster(worker=2, engine=engine) as cluster, tf.Graph().as_default():
        with tf.device("/job:worker/task:1"):
            queue = tf.FIFOQueue(1, tf.float32, [[]], shared_name="queue")
            put, taken, again = queue.enqueue([1.0]), queue.dequeue(), queue.dequeue()
        with tf.device("/job:worker/task:0"):
            result, alone = taken + 1.0, tf.Variable(2.0)
        order = []
        with tf.Session(cluster.target) as session, tf.Session(cluster.target_of("worker", 1)) as other:
            session.run(alone.initializer)
            session.run([alone])
            other.run([put, again])  # a session that begins would be held, too
            other.run(put), other.run(again)
            thread = threading.Thread(target=lambda: order.append(float(session.run(result))))
            thread.start()
            until(lambda: [line for line in cluster.waits() if "queue" in line], "the dequeue waits")
            with tf.chaos(cluster, partition="worker:0|worker:1"):
                other.run(put)
                for _ in range(50):
                    session.run(alone)
                if engine == "inprocess":
                    until(lambda: any("held before" in thread.name for thread in threading.enumerate()), "it is held")
                order.append("joined again")
            thread.join(60)
        assert order == ["joined again", 2.0]


def test_a_task_that_restarts_has_the_faults_that_are_there():
    with tf.Cluster(ps=1, worker=2) as cluster:
        with tf.chaos(cluster, slow="ps:0=20x", partition="ps|worker"):
            cluster.restart("ps")
            faults = cluster.task("ps").server.task.faults
            assert faults.pace.factor == 20.0 and len(faults._gates) == 2 and not faults.is_quiet
        assert faults.pace.factor == 1.0 and faults.is_quiet


def test_a_slow_task_takes_several_times_as_long(cluster):
    graph = tf.Graph()
    with graph.as_default(), tf.device(WORKER_1):
        x = tf.Variable(tf.ones([600, 600]))
        work = tf.reduce_sum(tf.tanh(x))
    with tf.Session(cluster.target, graph) as session:
        session.run(x.initializer)

        def seconds():
            began = cluster.now()
            session.run(work)
            return cluster.now() - began

        def fastest(of):
            return min(seconds() for _ in range(of))

        fastest(2)
        plain = fastest(5)
        with tf.chaos(cluster, slow="worker:1=20x") as chaos:
            slow = fastest(1)
        assert slow > 4 * plain  # it is more, and messages are not slower
        assert whats(chaos) == [("slow", WORKER_1), ("as fast as usual", WORKER_1)]
        if cluster.world is not None:
            assert fastest(1) == pytest.approx(plain)


def test_lost_calls_fail_their_steps_and_are_the_same_with_the_same_seed(cluster):
    def run(seed):
        program = Program(cluster)
        with tf.chaos(cluster, drop="RecvTensor:0.5", seed=seed) as chaos:
            found = [program.run(program.given) for _ in range(12)]  # one transfer each
        lost = [event for event in chaos.events if event.what == "lost"]
        program.session.close()
        return found, [(event.task, event.detail) for event in lost], program

    found, lost, program = run(seed=1)
    assert set(found) == {1.0, errors.UnavailableError}
    assert "was lost, as if the connection broke (chaos)" in str(program.error) and "RecvTensor" in str(program.error)
    assert lost == [("/job:worker/replica:0/task:0", "RecvTensor to worker:1")] * found.count(errors.UnavailableError)
    assert run(seed=1)[:2] == (found, lost) and run(seed=2)[0] != found


def test_tasks_that_are_cut_off_wait_until_they_are_joined_again(cluster, program):
    began = cluster.now()
    with tf.chaos(cluster, partition="ps|worker:1=0.3s") as chaos:
        assert program.run(program.alone) == 6.0
        assert program.run() == 1.0
        took = cluster.now() - began
    assert took >= 0.3 and whats(chaos) == [("cut off", ""), ("joined again", "")]


@pytest.mark.parametrize("given", [{"partition": "ps|worker:1"}, {"stop": "worker:1"}], ids=["cut off", "stopped"])
def test_what_is_silent_for_too_long_is_given_up(given, monkeypatch, capfd):
    monkeypatch.setattr(tf.timeouts, "silence", 30.0)
    with tf.Cluster(ps=1, worker=2, clock="virtual") as cluster:
        program = Program(cluster)
        began = cluster.now()
        with tf.chaos(cluster, **given):
            assert program.run() is errors.UnavailableError
            assert cluster.now() - began == pytest.approx(60.0, abs=0.01)
            assert "silent for 60 s" in str(program.error) and "chaos" in str(program.error)
        program.session.run(program.init)
        assert program.run() == 1.0
    assert "silent for 30 s" in "".join(capfd.readouterr())


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("given", [{"stop": "ps"}, {"partition": "ps|worker"}, {"partition": "ps|worker:1"}])
def test_what_is_under_way_when_a_fault_begins_is_given_up(engine, given, monkeypatch):
    """A dequeue that has begun, and a transfer that waits for it: as if the network were cut, or the machine hung."""
    monkeypatch.setattr(tf.timeouts, "silence", 30.0 if engine == "virtual" else 1.0)
    begins = {kind: f"{text}@0.3s" for kind, text in given.items()}
    with tf.Cluster(ps=1, worker=2, **ENGINES[engine]) as cluster, tf.Graph().as_default():
        with tf.device(PS):
            queue, x = tf.FIFOQueue(1, tf.float32, [[]]), tf.fill([2], 1.5)
            put, element = queue.enqueue(1.0), queue.dequeue()
        with tf.device(WORKER_1):
            y, z = element + 1.0, tf.reduce_sum(x)
        with tf.Session(cluster.target) as session:
            session.run(put), session.run(y)
            began = cluster.now()
            with tf.chaos(cluster, **begins), pytest.raises(errors.UnavailableError, match=r"silent for (2|60) s"):
                session.run(y, options=tf.RunOptions(timeout_in_ms=90_000))
            if engine == "virtual":
                assert cluster.now() - began == pytest.approx(60.3, abs=0.01)
        with tf.Session(cluster.target) as again:  # at once, although its tasks could not reach each other
            assert again.run(z) == 3.0


def test_a_step_of_a_stopped_task_keeps_its_deadline():
    with tf.Cluster(worker=1) as cluster, tf.Graph().as_default(), tf.Session(cluster.target) as session:
        (task,) = cluster.tasks
        y = tf.random_uniform([])
        session.run(y)
        task.pause()
        with pytest.raises(errors.DeadlineExceededError):
            session.run(y, options=tf.RunOptions(timeout_in_ms=50))
        task.go_on()
        assert 0.0 <= session.run(y) < 1.0


def test_processes_that_are_cut_off_are_given_up(monkeypatch):
    monkeypatch.setattr(tf.timeouts, "silence", 0.2)
    with tf.Cluster(ps=1, worker=2, engine="process") as cluster:
        program = Program(cluster)
        with tf.chaos(cluster, partition="ps|worker:1"):
            assert program.run() is errors.UnavailableError and "can't reach" in str(program.error)
        assert program.run() == 1.0


# ---- moments ----


def test_a_fault_begins_at_a_moment_of_the_clusters_clock():
    with tf.Cluster(ps=1, worker=2, clock="virtual") as cluster:
        program = Program(cluster)
        began = cluster.now()
        with tf.chaos(cluster, stop="worker:1@2.5s=1s", slow="ps@step2=2x=4s") as chaos:
            for _ in range(6):
                program.run()
                tf.sim.sleep(1.0)
        moments = {event.what: round(event.at - began, 3) for event in chaos.events}
    assert moments == {"slow": 1.001, "stopped": 2.5, "goes on": 3.5, "as fast as usual": 5.001}


def test_a_fault_whose_moment_does_not_come_never_begins(cluster, program):
    with tf.chaos(cluster, kill=["ps@step9", "worker:0@1000s"]) as chaos:
        assert program.run() == 1.0
    assert chaos.events == []
    head, *rest = repr(chaos).split("\n")
    assert head == f"Chaos in {cluster.name}: 0 events, 1 steps"
    assert rest == ["did not begin: kill ps@step9", "did not begin: kill worker:0@1000s"]


def test_steps_of_other_clusters_do_not_count(program):
    with tf.Cluster(worker=1) as other, tf.chaos(program.cluster, kill="worker:1@step1") as chaos:
        with tf.Session(other.target, tf.Graph()) as session, session.graph.as_default():
            assert session.run(tf.constant(1.0)) == 1.0
        with tf.Session(graph=tf.Graph()) as session, session.graph.as_default():
            assert session.run(tf.constant(1.0)) == 1.0
    assert (chaos.steps, chaos.events) == (0, [])


# ---- in pictures ----


def test_a_traced_step_shows_what_chaos_did(cluster, program):
    program.run()  # then no part of it has to be registered, for which chaos would let it wait, too
    with tf.chaos(cluster, stop="worker:1=0.3s", slow="ps=4x", partition="ps|worker:0=0.01s") as chaos:
        metadata = program.session.trace(program.add)
    assert chaos.steps == 1
    read = step_trace.read(metadata)
    faults = {event.name: event for event in read.details if event.is_fault}
    devices = {name: event.device.replace("/replica:0", "") for name, event in faults.items()}
    assert devices["stopped"] == f"{WORKER_1}/device:CPU:0" and devices["slow 4x"] == f"{PS}/device:CPU:0"
    assert faults["slow 4x"].duration >= faults["stopped"].duration > 0.0
    assert all(0.0 <= event.start <= event.end <= read.total for event in faults.values())
    drawn = tf.viz.timeline(metadata)
    assert {"chaos", "stopped", "slow 4x", "fault of chaos"} <= set(texts(drawn))
    chrome = json.loads(tf.timeline.Timeline(metadata.step_stats).generate_chrome_trace_format())
    assert {"stopped", "slow 4x"} <= {event["name"] for event in chrome["traceEvents"] if event["ph"] == "X"}


def test_a_trace_has_no_faults_from_before_or_of_other_tasks():
    with tf.Cluster(ps=1, worker=2, clock="virtual") as cluster:
        program = Program(cluster)
        with tf.chaos(cluster, stop="worker:0=0.01s", slow="worker:1=4x"):
            tf.sim.sleep(1.0)
            metadata = program.session.trace(program.alone)
        after = program.session.trace(program.add)
    assert not [event for event in step_trace.read(metadata).details if event.is_fault]
    assert not [event for event in step_trace.read(after).details if event.is_fault]


def test_a_lost_call_is_a_moment_of_the_trace():
    stats = StepStats()
    node = stats.dev_stats.add(device="/job:ps/replica:0/task:0/device:CPU:0").node_stats.add(node_name="x")
    node.timeline_label, node.all_start_micros, node.all_end_rel_micros = "x = NoOp()", 5_000_000, 100
    ps = "/job:ps/replica:0/task:0"
    moments = [Shown("early", ps, 1.0, 1.99), Shown("lost", ps, 2.00005, 2.00005), Shown("goes on", ps, 0.0, math.inf)]
    chaos_trace.write(stats, moments, offset=3.0)
    read = step_trace.read(stats)
    assert [(e.name, round(e.start), round(e.end)) for e in read.details] == [("goes on", 0, 100), ("lost", 50, 50)]
    chaos_trace.write(StepStats(), moments, offset=3.0)  # a step without a trace


# ---- equal runs, and recovery ----


def train(cluster, folder, steps):
    """Train with a MonitoredTrainingSession, which goes on from its checkpoint after whatever happens."""

    def program(client):
        with tf.device(tf.train.replica_device_setter(cluster=client.cluster_spec)):
            step = tf.train.get_or_create_global_step()
            weights = tf.get_variable("weights", [2], initializer=tf.zeros_initializer())
        with tf.device(client.device):
            loss = tf.reduce_sum((weights - [1.0, 2.0]) ** 2)
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
        with tf.train.MonitoredTrainingSession(
            client.target,
            client.is_chief,
            checkpoint_dir=str(folder) if client.is_chief else None,
            save_checkpoint_steps=10,
            save_checkpoint_secs=None,
            log_step_count_steps=None,
            hooks=[tf.train.StopAtStepHook(last_step=steps)],
        ) as session:
            while not session.should_stop():
                value = session.run([weights, train_op])[0]
        return value

    return cluster.run(program)


def test_training_recovers(tmp_path, monkeypatch):
    monkeypatch.setattr(tf.timeouts, "silence", 5.0)
    hashes, logs = [], []
    for run in range(2):
        with tf.Cluster(ps=1, worker=2, clock="virtual", seed=3) as cluster:
            with tf.chaos(
                cluster,
                kill=["ps@0.02s=1s", "worker:1@step60=0.5s"],
                stop="worker:0@step80=1s",
                slow="ps:0=4x",
                drop="RecvTensor:0.005",
                partition="ps|worker:1@step90=20s",
                seed=7,
            ) as chaos:
                values = train(cluster, tmp_path / str(run), 100)
            hashes.append(cluster.log().hash())
            logs.append([event._replace(at=round(event.at, 9)) for event in chaos.events])
        tf.summary.FileWriterCache.clear()
    kinds = [event.what for event in logs[0]]
    assert kinds.count("killed") == kinds.count("restarted") == 2 and "lost" in kinds
    np.testing.assert_allclose(values, [[1.0, 2.0]] * 2, atol=0.05)
    assert logs[0] == logs[1] and hashes[0] == hashes[1]


def test_the_example_of_the_page(capsys):
    """In virtual time it prints the same everywhere; other lines are those of sessions that run a step again."""
    program, printed, _ = re.findall(r"```(?:python)?\n(.*?)```", (ROOT / "docs/chaos.md").read_text(), flags=re.S)
    exec(compile(program, "docs/chaos.md", "exec"), {})  # noqa: S102 our own page
    tf.summary.FileWriterCache.clear()
    shown = re.sub(r"cluster\d+", "cluster1", capsys.readouterr().out).splitlines()
    assert [line for line in shown if not line.startswith("MonitoredSession")] == printed.splitlines()


# ---- what is refused ----


def test_what_is_no_cluster_and_no_text_is_refused():
    with pytest.raises(TypeError, match=r"chaos needs a dtflab\.Cluster, not an object of type NoneType"):
        tf.chaos(None, kill="ps")
    with tf.Cluster(ps=1) as cluster:
        for given in (5, None, [1]):
            with pytest.raises(TypeError, match=r"kill=.*give a text, such as kill='worker:1@step5', or a list"):
                tf.chaos(cluster, kill=given)


def test_a_block_in_a_block_is_refused():
    with tf.Cluster(ps=1, worker=1) as cluster, tf.chaos(cluster):
        with pytest.raises(RuntimeError, match="in a block of chaos already"), tf.chaos(cluster):
            pass
        with pytest.raises(ValueError, match="seed='1'"):
            tf.chaos(cluster, seed="1")


def test_an_error_of_a_fault_comes_out_at_the_end_of_the_block(monkeypatch):
    with tf.Cluster(ps=1, worker=1) as cluster:
        monkeypatch.setattr(cluster, "restart", lambda *task: 1 / 0)
        with pytest.raises(ZeroDivisionError), tf.chaos(cluster, kill="ps=0.001s") as chaos:
            chaos._threads[0].join()
    assert cluster.chaos is None
