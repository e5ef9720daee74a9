"""Every gradient knows how old it is: scenes played by hand, then workers in virtual time."""

from __future__ import annotations

import contextlib
import re
import signal
import threading

import numpy as np
import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.train.replicas import worker_pace
from dtflab.train.replicas.staleness_log import LogQueue
from tests.cluster.two_tasks import is_in, until

RATE = 1.0


@pytest.fixture
def cluster():
    with tf.Cluster(ps=1, worker=2) as cluster:
        yield cluster


def model(client, use_resource=False, inner=None, ps=1, **cures):
    """One worker's graph: the gradient of w is what `given` gives, once somebody puts it there."""
    with tf.device(tf.train.replica_device_setter(cluster=client.cluster_spec, worker_device=client.device)):
        step = tf.train.get_or_create_global_step()
        w = tf.get_variable("w", [2], initializer=tf.zeros_initializer(), use_resource=use_resource)
        with tf.device("/job:ps/task:0"):
            given = tf.FIFOQueue(10, tf.float32, shapes=(), shared_name=f"given_{client.index}")
            begun = tf.FIFOQueue(10, tf.int32, shapes=(), shared_name=f"begun_{client.index}")
        optimizer = tf.train.StalenessOptimizer(inner or tf.train.GradientDescentOptimizer(RATE), client.index, **cures)
        train = optimizer.minimize(tf.reduce_sum(w) * given.dequeue(), global_step=step)
        with tf.control_dependencies([tf.get_default_graph().get_operation_by_name("staleness/computed")]):
            tell = begun.enqueue(0)
    return optimizer, w, step, tf.group(train, tell), given, begun


def late_by(cluster, steps, **how):
    """Worker 0's gradient of 8 arrives after worker 1 made `steps` steps with gradients of 1: (log, w, step, slots)."""

    def client_program(client):
        optimizer, w, step, train, given, _ = model(client, **how)
        with tf.Session(client.target) as session:
            if client.is_chief:
                session.run(tf.global_variables_initializer())
                session.run(given.enqueue(8.0) if not steps else tf.no_op())
                session.run(train)
                return optimizer.read(session), session.run(w)[0], session.run(step), session.run(optimizer.variables())
            with tf.device("/job:ps/task:0"):
                first_begun = tf.FIFOQueue(10, tf.int32, shapes=(), shared_name="begun_0").dequeue()
                first_given = tf.FIFOQueue(10, tf.float32, shapes=(), shared_name="given_0").enqueue(8.0)
            session.run(first_begun)
            for _ in range(steps):
                session.run(given.enqueue(1.0))
                session.run(train)
            session.run(first_given)

    return cluster.run(client_program)[0]


@pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])
@pytest.mark.parametrize("steps", [1, 3])
def test_a_gradient_is_as_stale_as_steps_were_applied_in_between(cluster, steps, use_resource):
    log, w, step, _ = late_by(cluster, steps, use_resource=use_resource)
    assert log.worker.tolist() == [1] * steps + [0]
    assert log.computed.tolist() == [*range(steps), 0]
    assert log.arrived.tolist() == [*range(steps), steps]
    assert log.staleness.tolist() == [0] * steps + [steps]
    assert (w, step, log.dropped) == (-RATE * (steps + 8), steps + 1, 0)
    assert np.all(np.diff(log.seconds) >= 0) and log.seconds[0] == 0


def test_the_log_is_in_the_graph_whoever_runs_it():
    with tf.Cluster(ps=1, worker=2, engine="process") as cluster:
        log, w, _, _ = late_by(cluster, 2)
        assert log.staleness.tolist() == [0, 0, 2] and w == -10
        again = tf.train.read_staleness(cluster.target)
        assert again.staleness.tolist() == tf.train.read_staleness(cluster.target).staleness.tolist() == [0, 0, 2]


@pytest.mark.parametrize(("above", "used"), [(1, False), (2, True)])
def test_what_is_too_stale_is_dropped_and_counts_as_no_step(cluster, above, used):
    log, w, step, _ = late_by(cluster, 2, drop_above=above)
    assert log.used.tolist() == [True, True, used]
    assert (w, step) == ((-10, 3) if used else (-2, 2))


def test_a_dropped_gradient_leaves_no_trace_in_an_optimizer(cluster):
    inner = tf.train.MomentumOptimizer(RATE, 0.5)
    _, _, _, slots = late_by(cluster, 2, drop_above=1, inner=inner)
    assert slots[0].tolist() == [1.5, 1.5]


def test_a_gradient_is_divided_by_its_staleness(cluster):
    _, w, step, _ = late_by(cluster, 4, scale=True)
    assert (w, step) == (-4 - 8 / 4, 5)


def test_what_is_fresh_is_not_scaled():
    for scale in (False, True):
        with tf.Graph().as_default(), tf.Session() as session:
            table = tf.Variable(np.ones([4, 2], np.float32))
            plain = tf.Variable(1.0)
            optimizer = tf.train.StalenessOptimizer(tf.train.GradientDescentOptimizer(0.5), scale=scale, drop_above=3)
            loss = tf.reduce_sum(tf.gather(table, [1, 1, 3])) + plain
            train = optimizer.minimize(loss, global_step=tf.train.create_global_step())
            session.run(tf.global_variables_initializer())
            session.run(train)
            rows, number = session.run([table, plain])
            assert rows[:, 0].tolist() == [1, 0, 1, 0.5] and number == 0.5


def test_the_newest_gradients_are_kept():
    with tf.Graph().as_default(), tf.Session() as session:
        optimizer = tf.train.StalenessOptimizer(tf.train.GradientDescentOptimizer(0.1), worker=7, keep=3)
        train = optimizer.minimize(tf.square(tf.Variable(1.0)), global_step=tf.train.create_global_step())
        staleness = optimizer.staleness
        session.run(tf.global_variables_initializer())
        assert len(optimizer.read(session)) == 0
        for _ in range(5):
            assert session.run([staleness, train])[0] == 0
        assert optimizer.read(session).computed.tolist() == [2, 3, 4]


def test_what_the_log_tells():
    rows = [[0, 0, 0, 50.0, 1, 0], [1, 0, 1, 50.5, 1, 0], [0, 1, 2, 51.0, 0, 0], [1, 1, 4, 52.0, 1, 0]]
    log = tf.train.StalenessLog.of_rows(np.array(rows))
    assert log.staleness.tolist() == [0, 1, 1, 3] and log.seconds.tolist() == [0, 0.5, 1, 2]
    assert log.histogram().tolist() == [1, 2, 0, 1]
    read_meanwhile = tf.train.StalenessLog.of_rows(np.array([rows[3], *rows[:3]]))  # readers put back behind what came
    assert read_meanwhile.arrived.tolist() == [0, 1, 2, 4] and read_meanwhile.seconds.tolist() == log.seconds.tolist()
    assert (log.mean(), log.dropped, log.workers, log.of(1).mean()) == (1.25, 1, [0, 1], 2.0)
    assert repr(log) == "<StalenessLog: 4 gradients of 2 workers, mean staleness 1.25, 1 dropped>"
    histogram, first, second = log.summary().value
    assert (histogram.histo.num, histogram.histo.sum, histogram.histo.sum_squares) == (4, 5, 11)
    assert list(histogram.histo.bucket) == [1, 2, 0, 1] and list(histogram.histo.bucket_limit) == [0, 1, 2, 3]
    assert (first.tag, first.simple_value, second.simple_value) == ("staleness/worker_0", 0.5, 2.0)


def test_tensorboard_gets_it_while_and_after(tmp_path):
    with tf.Graph().as_default():
        optimizer = tf.train.StalenessOptimizer(tf.train.GradientDescentOptimizer(0.1))
        train = optimizer.minimize(tf.square(tf.Variable(1.0)), global_step=tf.train.create_global_step())
        tf.summary.scalar("how_stale", optimizer.staleness)
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=str(tmp_path), save_summaries_steps=1, log_step_count_steps=None
        ) as session:
            for _ in range(3):
                session.run(train)
            log = optimizer.read(session)  # a run, too, for which the hook saves a summary
    tf.summary.FileWriterCache.clear()
    with tf.summary.FileWriter(str(tmp_path / "after"), graph=None) as writer:
        writer.add_summary(log.summary(), 3)
    assert [step for step, value in events(tmp_path, "how_stale") if value.simple_value == 0] == [1, 2, 3, 3]
    assert [(step, value.histo.num) for step, value in events(tmp_path / "after", "staleness")] == [(3, 3)]


def events(folder, tag):
    """Steps and values under `tag` in the event files of `folder`."""
    for path in sorted(folder.glob("events.out.*")):
        for event in tf.train.summary_iterator(str(path)):
            yield from ((event.step, value) for value in event.summary.value if value.tag == tag)


@pytest.mark.parametrize("hardware", [{}, {"clock": "virtual"}], ids=["real", "virtual"])
def test_an_interrupt_while_reading_loses_nothing(hardware, monkeypatch):
    def client_program(client):
        _, _, _, train, given, _ = model(client)
        with tf.Session(client.target) as session:
            session.run(tf.global_variables_initializer())
            session.run(given.enqueue_many([[1.0, 1.0]]))
            session.run(train)
            session.run(train)

    with tf.Cluster(ps=1, worker=1, **hardware) as cluster:
        cluster.run(client_program)
        with monkeypatch.context() as patch:
            patch.setattr(LogQueue, "read", interrupted_read)
            with pytest.raises(KeyboardInterrupt):
                tf.train.read_staleness(cluster.target)
        assert tf.train.read_staleness(cluster.target).computed.tolist() == [0, 1]


def interrupted_read(log):
    """As LogQueue.read(), but Ctrl-C comes when the rows are out of the queue."""
    main = threading.main_thread().ident

    def interrupt(rows):
        signal.pthread_kill(main, signal.SIGINT)
        return rows

    rows = log._queue.dequeue_many(log._queue.size())
    with tf.device("/job:worker/task:0"):
        seen = tf.py_func(interrupt, [rows], tf.float64)
    seen.set_shape(rows.shape)
    with tf.control_dependencies([log._queue.enqueue_many(seen)]):
        return tf.identity(seen)


def test_a_log_that_is_not_there_is_no_empty_log(cluster):
    late_by(cluster, 1)
    with pytest.raises(ValueError, match=r"on /job:ps/task:0 under the name 'stale'\. Has the training begun"):
        tf.train.read_staleness(cluster.target, name="stale")
    with pytest.raises(ValueError, match="no gradient was recorded on /job:worker/task:1"):
        tf.train.read_staleness(cluster.target, "/job:worker/task:1")


def test_accumulators_use_the_first_gradients_of_a_step():
    rows = [[0, 0, 0, 0, 1, 2], [1, 0, 0, 1, 1, 2], [2, 0, 0, 2, 1, 2], [1, 1, 1, 3, 1, 2], [2, 0, 3, 4, 1, 2]]
    log = tf.train.StalenessLog.of_rows(np.array(rows, float))
    assert log.used.tolist() == [True, True, False, True, False]
    assert log.staleness.tolist() == [0, 0, 1, 0, 3]


def test_an_empty_log():
    log = tf.train.StalenessLog.of_rows(np.zeros([0, 6]))
    assert (len(log), log.dropped, log.workers, log.histogram().tolist()) == (0, 0, [], [])
    assert np.isnan(log.mean()) and not log.summary().value


WRONG = [
    ({"drop_above": -1}, "drop_above must be a whole number of steps, 0 or more, not -1"),
    ({"drop_above": 1.5}, "drop_above must be a whole number of steps, 0 or more, not 1.5"),
    ({"warm_up_steps": "3"}, "warm_up_steps must be a whole number of steps, 0 or more, not '3'"),
    ({"worker": "0"}, "not '0'"),
    ({"worker": -1}, "not -1"),
    ({"keep": 0}, "keep=0"),
    ({"max_ahead": 2}, "num_workers=…"),
    ({"max_ahead": 2, "num_workers": 3, "worker": 3}, "worker=3 of num_workers=3"),
]


def test_without_a_training_op_there_is_no_log():
    optimizer = tf.train.StalenessOptimizer(tf.train.GradientDescentOptimizer(1.0))
    with tf.Session() as sess, pytest.raises(ValueError, match="call one of them first"):
        optimizer.read(sess)


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        tf.train.StalenessOptimizer(tf.train.GradientDescentOptimizer(1.0), **arguments)


def test_what_is_missing_is_named():
    with tf.Graph().as_default():
        optimizer = tf.train.StalenessOptimizer(tf.train.GradientDescentOptimizer(1.0))
        v = tf.Variable(1.0)
        with pytest.raises(ValueError, match="global_step="):
            optimizer.minimize(v * 1.0)
        with pytest.raises(ValueError, match="No gradients"):
            optimizer.apply_gradients([(None, v)], tf.train.create_global_step())
        with pytest.raises(ValueError, match="after apply_gradients"):
            _ = optimizer.staleness
        with pytest.raises(ValueError, match="after apply_gradients"):
            optimizer.read(None)
        sync = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(1.0), 2)
        with pytest.raises(ValueError, match="drop_above=1: SyncReplicasOptimizer drops"):
            tf.train.StalenessOptimizer(sync, drop_above=1)


# -- in virtual time ----------------------------------------------------------------------------------------------


class Failure(Exception):
    """The failure of a worker."""


VIRTUAL = {"clock": "virtual", "seed": 1}
REAL: dict[str, str] = {}


def train(
    workers, steps, sync=None, pause=0.0, inner=None, stragglers=None, hardware=VIRTUAL, watch=None, fate=None, **cures
):
    """`steps` steps of worker 0, as many of the others or as long as it takes: (log, global step, hash).

    `fate(client, made, session)` comes after each step and may be the failure of the worker.
    """

    def client_program(client):
        hooks = []
        with tf.device(tf.train.replica_device_setter(cluster=client.cluster_spec, worker_device=client.device)):
            step = tf.train.get_or_create_global_step()
            w = tf.get_variable("w", [8], initializer=tf.ones_initializer())
            optimizer = inner or tf.train.GradientDescentOptimizer(1e-3)
            if sync:
                optimizer = tf.train.SyncReplicasOptimizer(optimizer, sync, workers)
                hooks.append(optimizer.make_session_run_hook(client.is_chief))
            optimizer = tf.train.StalenessOptimizer(optimizer, client.index, **cures)
            train_op = optimizer.minimize(tf.reduce_sum(tf.square(w)), global_step=step)
            hooks.append(optimizer.make_session_run_hook())
        made = 0
        with (
            contextlib.suppress(Failure),
            tf.train.MonitoredTrainingSession(
                client.target, is_chief=client.is_chief, hooks=hooks, stop_grace_period_secs=1
            ) as session,
        ):
            while made < steps if client.is_chief or not sync else not session.should_stop():
                session.run(train_op)
                tf.sim.sleep(pause * client.index)
                made += 1
                if fate is not None:
                    fate(client, made, session)
            return session.run(step) if client.is_chief else None

    with tf.Cluster(ps=1, worker=workers, **hardware, stragglers=stragglers) as cluster:
        step = cluster.run(client_program)[0]
        log_hash = cluster.log().hash() if hardware else ""
        if watch is not None:
            watch += cluster.log().lines
        return tf.train.read_staleness(cluster.target), step, log_hash


def test_equal_seeds_make_equal_logs():
    (first, _, one), (second, _, other) = (train(3, 10, stragglers=tf.sim.lognormal(0.5)) for _ in range(2))
    assert one == other and np.array_equal(first.staleness, second.staleness)
    assert np.array_equal(first.seconds, second.seconds)


def test_without_stragglers_or_spares_synchronous_gradients_are_fresh():
    log, step, _ = train(3, 12, sync=3)
    begun = log.computed > 0  # the first tokens make a gradient more per worker, which is dropped
    assert log.staleness[begun].max() == 0 and log.used[begun].all()
    assert 0 <= np.count_nonzero(log.used) - 3 * step <= 3


def test_of_spare_replicas_the_last_gradients_are_dropped():
    log, step, _ = train(4, 12, sync=3, pause=1e-4, watch=(sent := []))
    assert log.dropped > 0 and log.staleness[log.used].max() == 0 and log.staleness[~log.used].min() == 1
    assert 0 <= np.count_nonzero(log.used) - 3 * step <= 3
    assert log.of(3).dropped == max(log.of(worker).dropped for worker in log.workers)
    gradients = [line for line in sent if line.target.startswith("/job:ps") and line.nbytes == 8 * 4]
    assert len(gradients) >= len(log) > len(log) - log.dropped  # what is dropped has travelled, too


@pytest.mark.parametrize("bound", [0, 2])
def test_nobody_is_further_ahead_than_the_bound(bound):
    log, _, _ = train(3, 10, pause=0.01, max_ahead=bound, num_workers=3)
    assert len(log) == 30
    assert furthest_ahead(log) == bound
    assert furthest_ahead(train(3, 10, pause=0.01)[0]) > 2


def test_in_real_time_the_bound_holds_as_well():
    log, _, _ = train(3, 20, hardware=REAL, max_ahead=1, num_workers=3)
    assert len(log) == 60 and furthest_ahead(log) <= 1


def test_a_session_that_is_made_again_gives_no_tokens_again():
    with tf.Graph().as_default() as graph, tf.Session() as session:
        optimizer = tf.train.StalenessOptimizer(tf.train.GradientDescentOptimizer(0.1), max_ahead=3, num_workers=1)
        optimizer.minimize(tf.square(tf.Variable(1.0)), global_step=tf.train.create_global_step())
        hook = optimizer.make_session_run_hook()
        tokens = tf.raw_ops.QueueSizeV2(handle=graph.get_tensor_by_name("staleness/token_0:0"))
        for _ in range(2):
            session.run(hook._pace.begin)
            assert session.run(tokens) == 3


def furthest_ahead(log, after=0):
    """By how many completed steps anybody who began a step was ahead of the slowest: counted as gradients arrive."""
    made, furthest = dict.fromkeys(log.workers, 0), 0
    for worker in log.worker[after:].tolist():
        furthest = max(furthest, made[worker] - min(made.values()))
        made[worker] += 1
    return furthest


def test_the_others_wait_until_the_first_has_warmed_up():
    log, _, _ = train(3, 20, warm_up_steps=6)
    assert log.worker[:6].tolist() == [0] * 6 and set(log.worker[6:12].tolist()) == {0, 1, 2}


@pytest.mark.parametrize("bound", [0, 2])
def test_the_bound_holds_from_the_end_of_a_warm_up(bound):
    log, step, _ = train(3, 20, warm_up_steps=6, max_ahead=bound, num_workers=3, pause=0.01)
    assert log.worker[:6].tolist() == [0] * 6 and step > 6
    assert furthest_ahead(log, after=6) == bound


def test_who_ends_lets_the_others_end():
    assert len(train(3, 5, pause=0.01, max_ahead=1, num_workers=3)[0]) == 15
    assert len(train(2, 3, warm_up_steps=100)[0]) == 6  # the first one never came so far


# -- workers that fail --------------------------------------------------------------------------------------------


def fails(worker, after):
    def fate(client, made, session):
        if (client.index, made) == (worker, after):
            raise Failure

    return fate


@pytest.mark.parametrize("hardware", [REAL, VIRTUAL], ids=["real", "virtual"])
def test_the_others_go_on_without_a_worker_that_failed(hardware):
    log, step, _ = train(3, 12, hardware=hardware, pause=0.001, max_ahead=1, num_workers=3, fate=fails(1, 4))
    assert [len(log.of(worker)) for worker in range(3)] == [12, 4, 12] and step >= 12 + 4
    assert furthest_ahead(log) > 1 >= furthest_ahead(of_two(log, 0, 2))


def of_two(log, *workers):
    own = np.isin(log.worker, workers)
    return tf.train.StalenessLog(*(getattr(log, name)[own] for name in log.__dataclass_fields__))


@pytest.mark.parametrize("hardware", [REAL, VIRTUAL], ids=["real", "virtual"])
@pytest.mark.parametrize(
    "cures", [{"max_ahead": 1}, {"max_ahead": 1, "warm_up_steps": 9}, {"warm_up_steps": 9}], ids=str
)
def test_without_the_first_worker_the_others_end(hardware, cures):
    log, _, _ = train(3, 12, hardware=hardware, num_workers=3, fate=fails(0, 4), **cures)
    assert len(log.of(0)) == 4
    assert all(len(log.of(worker)) <= (6 if "max_ahead" in cures else 12) for worker in (1, 2))


def test_the_first_workers_failure_makes_no_round_more(monkeypatch):
    """The mark that ends a round when a session is recreated comes before the first worker's goodbye here."""

    def fate(client, made, session):
        if (client.index, made) == (0, 4):
            until(
                lambda: len(tf.train.read_staleness(client.target)) == 4 + 6 + 6, "the others wait for the fifth round"
            )
            raise Failure

    def close_on_stop(runner, session, coord):
        marked[coord] = threading.Event()
        mark(runner, session, coord)
        marked[coord].set()

    def request_stop(coord, *error):
        stop(coord, *error)
        assert coord not in marked or marked[coord].wait(60)

    marked, mark, stop = {}, tf.train.QueueRunner._close_on_stop, tf.train.Coordinator.request_stop
    monkeypatch.setattr(tf.train.QueueRunner, "_close_on_stop", close_on_stop)
    monkeypatch.setattr(tf.train.Coordinator, "request_stop", request_stop)
    log, _, _ = train(3, 12, hardware=REAL, max_ahead=1, num_workers=3, fate=fate)
    assert [len(log.of(worker)) for worker in range(3)] == [4, 6, 6]


@pytest.mark.parametrize("hardware", [REAL, VIRTUAL], ids=["real", "virtual"])
@pytest.mark.parametrize("lost", [0, 1])
def test_who_gets_a_session_again_goes_on_and_the_others_wait_for_it(hardware, lost):
    def fate(client, made, session):
        def lose(step_context):
            if step_context.session not in old:
                old.append(step_context.session)
            if len(old) <= 2:
                raise errors.AbortedError(None, None, "the task was lost")

        if client.index == lost and made == 5:
            session.run_step_fn(lose)

    old = []
    log, _, _ = train(3, 12, hardware=hardware, pause=0.001, max_ahead=1, num_workers=3, fate=fate)
    without_step = 2 if lost == 0 else 0  # rounds that the first worker's two ends have ended
    assert len(old) == 3 and furthest_ahead(log) <= 1 + without_step
    made = [len(log.of(worker)) for worker in range(3)]
    assert max(made) == 12 and min(made) >= 12 - (1 + without_step)  # who ends lets the others end


@pytest.fixture
def two_workers():
    """A session on both workers' graph, `max_ahead=1`; (session, their parts of the pace, their steps, a round)."""
    with tf.Graph().as_default(), tf.Session() as session:
        step, w, paces, steps = tf.train.create_global_step(), tf.Variable(1.0), [], []
        for worker in range(2):
            inner = tf.train.GradientDescentOptimizer(0.1)
            optimizer = tf.train.StalenessOptimizer(inner, worker, max_ahead=1, num_workers=2)
            steps.append(optimizer.minimize(tf.square(w), global_step=step))
            paces.append(optimizer.make_session_run_hook()._pace)
        session.run(tf.global_variables_initializer())
        for pace in paces:
            session.run(pace.begin)
        yield session, paces, steps, paces[0].rounds.enqueue_ops[0]


def waits(session, op):
    """Whether a run of `op` comes to wait; then it is given up."""
    given_up = []

    def run():
        try:
            session.run(op)
        except errors.CancelledError as error:
            given_up.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    until(lambda: not thread.is_alive() or is_in(thread, "_wait"), "it waits, or has ended")
    for step in list(session._master.session(session.handle)._running.values()):
        step.cancel(errors.CancelledError(None, None, "given up"))
    thread.join(60)
    return bool(given_up)


def size(session, pace, queue):
    return session.run(pace._queue(queue).size())


def test_a_mark_stands_for_who_is_away_until_it_comes_back(two_workers):
    session, (_, other), (first_step, other_step), turn = two_workers
    session.run([other_step, first_step])
    session.run(turn)
    session.run(other.fail)
    for _ in range(5):
        session.run(first_step)
        session.run(turn)
    assert size(session, other, "token_1") == 1  # who is away gets no tokens, so the bound is the same when it is back
    session.run(other.begin)
    session.run(other.resume)
    session.run(first_step)
    session.run(turn)  # the round under way
    session.run(first_step)
    assert size(session, other, "done_1") == 0 and waits(session, first_step)


def test_a_token_that_a_lost_session_waited_for_is_the_next_ones(two_workers):
    session, (_, other), (first_step, other_step), turn = two_workers
    session.run(other_step)
    assert waits(session, other_step)
    session.run(other.begin)
    assert waits(session, other.resume)
    for _ in range(2):
        session.run(first_step)
        session.run(turn)
    session.run(other.resume)
    assert size(session, other, "token_1") == 1 and size(session, other, "owed_1") == 0


def test_who_waits_long_says_for_whom(monkeypatch):
    """A step that is slow on a busy machine is reported, too; worker 1 rests until it is named as the slowest."""

    def fate(client, made, session):
        if client.index == 1 and made == 3:
            assert reported.wait(60)

    def say(text):
        said.append(text)
        if text.startswith("Worker 0 ") and text.index("worker 1: ") < text.index("worker 0: "):
            reported.set()

    said, reported = [], threading.Event()
    monkeypatch.setattr(worker_pace, "_PATIENCE", 0.05)
    monkeypatch.setattr(worker_pace, "say", say)
    log, _, _ = train(2, 6, hardware=REAL, max_ahead=1, num_workers=2, fate=fate)
    assert len(log) == 12 and reported.is_set()
    assert all(
        re.match(r"Worker [01] has been in a step since \d\d:\d\d:\d\d\. With max_ahead=1 it waits", t) for t in said
    )
    assert all("it waits for the slowest worker. Last gradients of each, the oldest first: worker" in t for t in said)


def test_of_each_worker_its_last_moment_is_told():
    pace = worker_pace.WorkerPace(2, 3, 4, 0, "staleness")
    rows = np.array([[0, 0, 0, 86_400.0, 1, 0], [2, 0, 0, 86_403.0, 1, 0], [0, 1, 1, 86_402.0, 1, 0]])
    at = [worker_pace._clock_time(moment) for moment in (86_404, 86_402, 86_403)]
    text = pace.report(86_404, rows)
    assert text.startswith(f"Worker 2 has been in a step since {at[0]}. With max_ahead=4 it waits")
    assert f"the oldest first: worker 1: none yet, worker 0: {at[1]}, worker 2: {at[2]}. A worker" in text
