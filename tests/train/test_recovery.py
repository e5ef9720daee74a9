"""A training survives its tasks: a lost task is restarted, and goes on from the last checkpoint."""

from __future__ import annotations

import contextlib
import threading

import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.base.timeouts import timeouts
from dtflab.cluster.addresses import free_addresses
from dtflab.cluster.process import ProcessTask
from dtflab.train.sessions.session_manager import pauses
from dtflab.train.sessions.wrapped_session import _RecoverableSession

ENGINES = ["inprocess", "process"]


@pytest.fixture(autouse=True)
def fresh_graph():
    with tf.Graph().as_default():
        yield
    tf.summary.FileWriterCache.clear()


def counter():
    """A step to count, and a weight that grows with it, both on the ps."""
    with tf.device("/job:ps"):
        step = tf.train.get_or_create_global_step()
        weight = tf.Variable(0.0, name="weight")
    with tf.device("/job:worker/task:0"):
        gradient = tf.identity(tf.constant(-1.0))
    train = tf.train.GradientDescentOptimizer(0.5).apply_gradients([(gradient, weight)], global_step=step)
    return step, weight, train


# -- nothing is lost --------------------------------------------------------------------------------------------


def test_chief_and_workers_in_one_process(tmp_path):
    """The default arguments suffice: nobody waits for 30 seconds here, and all take part."""
    together = threading.Barrier(3)

    def work(client):
        with tf.device(tf.train.replica_device_setter(cluster=client.cluster_spec)):
            step = tf.train.get_or_create_global_step()
            count = step.assign_add(1)
        with tf.train.MonitoredTrainingSession(
            client.target,
            client.is_chief,
            checkpoint_dir=str(tmp_path),
            hooks=[tf.train.StopAtStepHook(last_step=30)],
            log_step_count_steps=None,
        ) as session:
            together.wait(60)
            done = 0
            while not session.should_stop():
                session.run(count)
                done += 1
        return done

    with tf.Cluster(ps=1, worker=3) as cluster:
        done = cluster.run(work)
    assert all(done) and 30 <= sum(done) < 40  # who has read an old step goes on once more
    assert tf.train.load_variable(str(tmp_path), "global_step") >= 30


def test_supervisors_in_one_process(tmp_path):
    def work(client):
        with tf.device(tf.train.replica_device_setter(cluster=client.cluster_spec)):
            count = tf.train.get_or_create_global_step().assign_add(1)
        supervisor = tf.train.Supervisor(is_chief=client.is_chief, logdir=str(tmp_path), save_model_secs=0)
        with supervisor.managed_session(client.target) as session:
            steps = [session.run(count) for _ in range(10)]
            if client.is_chief:
                supervisor.saver.save(session, supervisor.save_path, global_step=supervisor.global_step)
        return steps

    with tf.Cluster(ps=1, worker=2) as cluster:
        steps = cluster.run(work)
    assert sorted(steps[0] + steps[1]) == list(range(1, 21))
    assert tf.train.latest_checkpoint(str(tmp_path))


# -- tasks that are killed --------------------------------------------------------------------------------------


@pytest.mark.parametrize("job", ["ps", "worker"])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_training_goes_on_after_a_task_was_killed_and_restarted(engine, job, tmp_path):
    step, weight, train = counter()
    with tf.Cluster(ps=1, worker=1, engine=engine) as cluster:
        session = tf.train.MonitoredTrainingSession(
            cluster.target, checkpoint_dir=str(tmp_path), save_checkpoint_steps=2, log_step_count_steps=None
        )
        with session:
            for _ in range(5):
                session.run(train)
            saved = int(tf.train.latest_checkpoint(str(tmp_path)).rpartition("-")[2])
            cluster.kill(job)
            cluster.restart(job)
            session.run(train)
            # The ps comes back empty and is restored; after the worker, the chief restores all the same.
            assert session.run([step, weight]) == [saved + 1, (saved + 1) / 2]
            while not session.should_stop() and session.run(step) < 10:
                session.run(train)
        assert tf.train.load_variable(str(tmp_path), "weight") == 5.0


@pytest.mark.processes
def test_a_worker_with_its_own_server_goes_on_after_the_loss_of_its_ps(tmp_path):
    """Between-graph replication: the master is in the worker's process, the ps in another one."""
    addresses = free_addresses(2)
    spec = tf.train.ClusterSpec({"ps": addresses[:1], "worker": addresses[1:]})
    step, weight, train = counter()
    with contextlib.ExitStack() as tasks:

        def start_ps():
            ps = ProcessTask(spec, "ps", 0)
            tasks.callback(ps.stop)
            ps.wait_ready(60)
            return ps

        ps = start_ps()
        server = tf.train.Server(spec, job_name="worker", task_index=0)
        tasks.callback(server.stop)
        with tf.train.MonitoredTrainingSession(
            server.target, checkpoint_dir=str(tmp_path), save_checkpoint_steps=1, log_step_count_steps=None
        ) as session:
            for _ in range(3):
                session.run(train)
            for _ in range(2):
                ps.kill()
                ps = start_ps()
                session.run(train)
            assert session.run([step, weight]) == [5, 2.5]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_supervisor_ends_with_the_loss_and_can_begin_again(engine, tmp_path):
    step, weight, train = counter()
    supervisor = tf.train.Supervisor(logdir=str(tmp_path), save_model_secs=0)
    with tf.Cluster(ps=1, worker=1, engine=engine) as cluster:
        lost = pytest.raises((errors.AbortedError, errors.UnavailableError))
        with lost, supervisor.managed_session(cluster.target) as session:
            for _ in range(3):
                session.run(train)
            supervisor.saver.save(session, supervisor.save_path, global_step=step)
            cluster.kill("ps")
            cluster.restart("ps")
            session.run(train)
        assert supervisor.should_stop()
        with supervisor.managed_session(cluster.target) as session:
            session.run(train)
            assert session.run([step, weight]) == [4, 2.0]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_training_waits_for_a_task_that_is_away(engine, tmp_path, monkeypatch):
    """The task comes back only after the session has tried in vain, and has said so."""
    step, _, train = counter()
    monkeypatch.setattr(timeouts, "tasks", 0.05)
    with (
        tf.Cluster(ps=1, worker=1, engine=engine) as cluster,
        tf.train.MonitoredTrainingSession(
            cluster.target, checkpoint_dir=str(tmp_path), save_checkpoint_steps=1, log_step_count_steps=None
        ) as session,
    ):
        session.run(train)
        cluster.kill("ps")
        refused = threading.Event()
        monkeypatch.setattr(timeouts, "notice", 0.0)
        monkeypatch.setattr("dtflab.train.sessions.wrapped_session.say", lambda text: refused.set())
        helper = threading.Thread(target=lambda: refused.wait(60) and cluster.restart("ps"))
        helper.start()
        session.run(train)
        helper.join()
        assert session.run(step) == 2


def test_a_worker_comes_back_to_a_training_that_went_on(tmp_path):
    """The other client's session dies with its worker; the variables on the ps have grown meanwhile, and stay."""
    with tf.Cluster(ps=1, worker=2, engine="process") as cluster:

        def train_on(index):
            with tf.Graph().as_default():
                step, _, train = counter()
                creator = tf.train.WorkerSessionCreator if index else tf.train.ChiefSessionCreator
                config = tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{index}", "/job:worker/task:0"])
                manager = creator(master=cluster.target_of("worker", index), config=config)
                return tf.train.MonitoredSession(manager), step, train

        with contextlib.ExitStack() as both:
            chief, step, train = train_on(0)
            both.enter_context(chief)
            other, others_step, others_train = train_on(1)
            both.enter_context(other)
            chief.run(train)
            other.run(others_train)
            cluster.kill("worker", 1)
            cluster.restart("worker", 1)
            chief.run(train)
            other.run(others_train)
            assert other.run(others_step) == chief.run(step) == 4


def test_restarting_a_task_that_runs():
    with tf.device("/job:ps"):
        v = tf.Variable(1, name="v")
    with tf.Cluster(ps=1, worker=1) as cluster:
        with tf.Session(cluster.target) as session:
            session.run(v.initializer)
        cluster.restart("ps")
        with tf.Session(cluster.target) as session:
            assert not session.run(tf.is_variable_initialized(v))
        assert {state for _, _, state in cluster.rows()} == {"running"}


# -- waiting ----------------------------------------------------------------------------------------------------


class Slept:
    """A clock on which only sleeping takes time; at `moment` it calls `event`."""

    def __init__(self, moment=1e9, event=None):
        self.seconds = 0.0
        self.pauses = []
        self.moment, self.event = moment, event

    def now(self):
        return self.seconds

    def sleep(self, seconds):
        self.pauses.append(seconds)
        if self.seconds < self.moment <= self.seconds + seconds and self.event:
            self.event()
        self.seconds += seconds

    def rest(self, seconds, what):
        self.sleep(seconds)


def test_who_waits_looks_again_soon_and_says_so_as_often_as_tensorflow(caplog):
    v = tf.Variable(1, name="waits_v")
    with tf.Cluster(worker=1) as cluster:

        def initialize():
            with tf.Session(cluster.target, graph=v.graph) as session:
                session.run(v.initializer)

        clock = Slept(65.0, initialize)
        ready = tf.report_uninitialized_variables()
        manager = tf.train.SessionManager(local_init_op=tf.no_op(), ready_op=ready, clock=clock)
        with caplog.at_level("INFO", "tensorflow"), manager.wait_for_session(cluster.target) as session:
            assert session.run(v) == 1
    assert clock.pauses[:6] == [0.05, 0.1, 0.2, 0.4, 0.8, 1.0]
    assert set(clock.pauses[5:]) == {1.0} and 65 <= clock.seconds < 67
    local = ["Running local_init_op.", "Done running local_init_op."]
    expected = [*local, "Waiting for model to be ready."] * 3 + local  # at 0, 30 and 60 s, and at the end
    assert [record.message[:30] for record in caplog.records] == expected


def test_how_long_it_rests_is_the_users():
    clock = Slept()
    tf.Variable(1, name="v")
    ready = tf.report_uninitialized_variables()
    manager = tf.train.SessionManager(ready_op=ready, recovery_wait_secs=0.25, clock=clock)
    with pytest.raises(errors.DeadlineExceededError, match="not ready after waiting 2 secs"):
        manager.wait_for_session("", max_wait_secs=2)
    assert max(clock.pauses) == 0.25 and 1.75 <= clock.seconds <= 2


def test_pauses_grow():
    rests = pauses(0.3)
    assert [next(rests) for _ in range(5)] == [0.05, 0.1, 0.2, 0.3, 0.3]
    assert next(pauses(0.01)) == 0.01


def test_a_session_that_never_comes_is_told_of(monkeypatch):
    said, clock, tries = [], Slept(), iter(range(25))

    class Creator:
        def create_session(self):
            if next(tries) < 20:
                raise errors.UnavailableError(None, None, "the ps is away")
            return "a session"

    monkeypatch.setattr("dtflab.train.sessions.wrapped_session.say", said.append)
    assert _RecoverableSession(Creator(), clock=clock)._sess == "a session"
    assert said == ["MonitoredSession still waiting for a session: the ps is away"] * 2  # after 5 seconds and 10 more
    assert len(clock.pauses) == 20


def test_ctrl_c_ends_the_waiting():
    class Interrupted(Slept):
        def sleep(self, seconds):
            raise KeyboardInterrupt

    v = tf.Variable(1, name="v")
    manager = tf.train.SessionManager(ready_op=tf.report_uninitialized_variables(), clock=Interrupted())
    with pytest.raises(KeyboardInterrupt):
        manager.wait_for_session("")
    assert v.graph.finalized is False


def test_a_failed_preparation_leaves_no_session_behind():
    from dtflab.runtime.session import open_sessions

    tf.Variable(1, name="v")
    before = len(open_sessions())
    manager = tf.train.SessionManager(ready_op=tf.report_uninitialized_variables())
    with pytest.raises(RuntimeError):
        manager.prepare_session("", init_op=tf.no_op())
    with pytest.raises(errors.DeadlineExceededError):
        manager.wait_for_session("", max_wait_secs=0)
    assert len(open_sessions()) == before


# -- what TensorFlow does otherwise -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "error_at_end"),
    [(None, "end"), (StopIteration, "end"), (errors.OutOfRangeError, "end"), (ZeroDivisionError, "fail")],
)
def test_a_hook_is_told_how_the_training_ended(error, error_at_end):
    """TensorFlow reports only a good end. A hook of another family, which need not have `fail`, does no harm."""

    class Hook(tf.train.SessionRunHook):
        end = lambda self, session: calls.append(("end", session.run(c)))  # noqa: E731
        fail = lambda self, session: calls.append(("fail", session.run(c)))  # noqa: E731

    class Other:
        begin = end = lambda *_: None
        after_create_session = before_run = after_run = lambda *_: None

    c, calls = tf.constant(3), []
    with (
        contextlib.suppress(ZeroDivisionError),
        tf.train.SingularMonitoredSession(hooks=[Other(), Hook()]) as session,
    ):
        session.run(c)
        if error is not None:
            raise error(None, None, "the end") if error is errors.OutOfRangeError else error
    assert calls == [(error_at_end, 3)]


def test_after_a_loss_a_step_function_gets_the_new_session():
    """TensorFlow gives it the one that it has closed."""
    c = tf.constant(3)
    sessions = []

    def step(step_context):
        sessions.append(step_context.session)
        if len(sessions) == 1:
            raise errors.AbortedError(None, None, "lost")
        return step_context.session.run(c)

    with tf.train.MonitoredSession() as session:
        assert session.run_step_fn(step) == 3
    assert len(set(sessions)) == 2


def test_hooks_are_not_told_of_the_end_twice():
    ends = []

    class Hook(tf.train.SessionRunHook):
        def end(self, session):
            ends.append(session)

    session = tf.train.MonitoredSession(hooks=[Hook()])
    session.close()
    with pytest.raises(RuntimeError, match="already closed"):
        session.close()
    assert len(ends) == 1 and ends[0] is not None
