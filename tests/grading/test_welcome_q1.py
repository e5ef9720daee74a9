"""welcome/q1 accepts every right answer, whichever way it is written, and says what is wrong with others."""

from __future__ import annotations

import pytest

import dtflab as tf
from dtflab.grading.catalogue import find
from dtflab.machine.clock import REAL
from tests.grading.answers import mark, wrong_answers

Q1 = "welcome/q1"


def with_a_setter(workers, steps):
    """Lesson 00's way, with a resource variable; the largest value that a worker saw is the last one."""

    def build(client):
        setter = tf.train.replica_device_setter(cluster=client.cluster_spec, worker_device=client.device)
        with tf.device(setter):
            return tf.get_variable("counter", initializer=0, use_resource=True)

    def work(client):
        add = build(client).assign_add(1)
        with tf.Session(client.target) as sess:
            return [sess.run(add) for _ in range(steps)][-1]

    with tf.Cluster(ps=1, worker=workers) as cluster:
        with tf.Graph().as_default(), tf.Session(cluster.target) as sess:
            build(cluster.client("worker", 0))
            sess.run(tf.global_variables_initializer())
        return max(cluster.run(work))


def with_a_chief(workers, steps):
    """Worker 0 initializes, the others look until there is a value."""

    def work(client):
        with tf.device("/job:ps/task:0"):
            counter = tf.Variable(0.0, name="counter")
        missing = tf.report_uninitialized_variables()
        with tf.Session(client.target) as sess:
            if client.index == 0:
                sess.run(counter.initializer)
            while len(sess.run(missing)):
                REAL.sleep(0.001)
            for _ in range(steps):
                sess.run(counter.assign_add(1.0).op)

    with tf.Cluster(ps=1, worker=workers) as cluster:
        cluster.run(work)
        with tf.Graph().as_default(), tf.Session(cluster.target) as sess, tf.device("/job:ps/task:0"):
            return sess.run(tf.Variable(0.0, name="counter"))


def with_a_monitored_session(workers, steps):
    """The chief's session initializes; those of the others wait for it, and initialize what is local: nothing."""

    def build():
        with tf.device("/job:ps/task:0"):
            return tf.Variable(0, name="counter")

    def work(client):
        add = build().assign_add(1)
        with tf.train.MonitoredTrainingSession(client.target, client.is_chief) as sess:
            for _ in range(steps):
                sess.run(add)

    with tf.Cluster(ps=1, worker=workers) as cluster:
        cluster.run(work)
        with tf.Graph().as_default(), tf.Session(cluster.target) as sess:
            return sess.run(build())


@pytest.mark.parametrize("answer", [with_a_setter, with_a_chief, with_a_monitored_session])
def test_right_answers_of_other_kinds_have_full_marks(answer):
    score = tf.grade(Q1, answer)
    assert score == score.max, score.text


def by_assigning(add, use_resource):
    """An answer whose workers run `add(session, counter)`, which builds its ops when it is called with None first."""

    def build():
        with tf.device("/job:ps/task:0"):
            return tf.get_variable("counter", initializer=0, use_resource=use_resource)

    def work(client, steps):
        step = add(build())
        with tf.Session(client.target) as sess:
            for _ in range(steps):
                step(sess)

    def answer(workers, steps):
        with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default():
            counter = build()
            with tf.Session(cluster.target) as sess:
                sess.run(counter.initializer)
                cluster.run(lambda client: work(client, steps))
                sess.run(counter)
        return workers * steps  # as if no addition had been lost: in real time that is luck

    return answer


def in_the_graph(counter):
    both = tf.assign(counter, counter + 1)
    return lambda sess: sess.run(both)


def grouped(counter):
    both = tf.group(tf.assign(counter, counter + 1, name="add"))
    return lambda sess: sess.run(both)


def in_python(counter):
    value = tf.placeholder(tf.int32, [])
    write = tf.assign(counter, value).op
    return lambda sess: sess.run(write, {value: sess.run(counter) + 1})


def anew_each_time(counter):
    return lambda sess: sess.run(tf.assign(counter, counter + 1))


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("add", [in_the_graph, grouped, in_python, anew_each_time])
def test_an_addition_that_may_be_lost_loses_marks_even_if_none_was_lost(add, use_resource):
    score = tf.grade(Q1, by_assigning(add, use_resource))
    assert score == 4 and "worker 0 wrote the counter with an op that does not add" in score.text, score.text
    assert score.text.count("Hint:") == 1 and "adding 1 and assigning the sum are three steps" in score.text


@pytest.mark.parametrize(
    ("name", "points"),
    [
        ("one_worker_does_all", 2),  # nothing happens at the same time, and so the value shows nothing
        *((name, 4) for name in ("adds_in_several_ops", "one_after_another")),
        *((name, 5) for name in ("each_counts_alone", "has_several_counters", "chief_only_looks_on")),
        ("asks_one_server", 5),
        *((name, 7) for name in ("initializes_in_each", "reads_too_early", "returns_a_list", "adds_another_number")),
        *((name, 8) for name in ("adds_in_one_go", "adds_once_too_few", "puts_it_on_a_worker")),
    ],
)
def test_a_mistake_costs_what_it_spoils(name, points):
    assert mark(find(Q1), wrong_answers(find(Q1))[name]) == points


def test_workers_that_add_more_often_than_they_should_lose_marks():
    def twice_as_often(workers, steps):
        return with_a_setter(workers, 2 * steps)

    score = tf.grade(Q1, twice_as_often)
    assert score == 8 and "each worker should add" in score.text


def test_a_client_that_has_two_servers_add_in_turn_loses_marks():
    """Workers 0 and 1 by one client, the others by their own: not all add at the same time."""

    def add(target, steps):
        with tf.Graph().as_default(), tf.device("/job:ps/task:0"):
            step = tf.assign_add(tf.Variable(0, name="counter"), 1)
            with tf.Session(target) as sess:
                for _ in range(steps):
                    sess.run(step)

    def answer(workers, steps):
        with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default(), tf.device("/job:ps/task:0"):
            counter = tf.Variable(0, name="counter")
            with tf.Session(cluster.target) as sess:
                sess.run(counter.initializer)
                cluster.run(lambda client: client.index < 2 or add(client.target, steps))
                for worker in range(min(2, workers)):
                    add(cluster.client("worker", worker).target, steps)
                return sess.run(counter)

    assert not tf.check(Q1, "all_add", {"count_together": answer})


@pytest.mark.parametrize("given", [None, 30, "30"])
def test_an_answer_that_starts_nothing_has_no_marks(given):
    score = tf.grade(Q1, lambda workers, steps: given)
    assert score == 0 and "no session has used any variable of a cluster" in score.text


def test_tasks_that_no_check_can_look_into_are_told():
    def answer(workers, steps):
        nothing = tf.no_op()
        with tf.Cluster(ps=1, worker=1, engine="process") as cluster, tf.Session(cluster.target) as sess:
            sess.run(nothing)
        return workers * steps

    assert "tasks were processes of their own" in tf.grade(Q1, answer).text


def test_the_product_of_the_arguments_earns_nothing_for_who_adds():
    def answer(workers, steps):
        with tf.Cluster(ps=1, worker=workers) as cluster, tf.Graph().as_default(), tf.device("/job:ps/task:0"):
            counter = tf.Variable(0)
            with tf.Session(cluster.target) as sess:
                sess.run(counter.initializer)
        return workers * steps

    assert not tf.check(Q1, "all_add", {"count_together": answer})


@pytest.mark.parametrize(
    "use",
    [lambda counter: counter, lambda counter: tf.assign_add(counter, 1), lambda counter: counter + tf.constant(1)],
)
def test_however_the_graph_of_another_client_is_met_its_hint_comes(use):
    def answer(workers, steps):
        def work(client):
            tf.no_op()
            with tf.Session(client.target) as sess:
                sess.run(use(counter))

        with tf.Cluster(ps=1, worker=workers) as cluster:
            with tf.Graph().as_default():
                counter = tf.Variable(0, name="counter")
            cluster.run(work)

    assert "The counter was built in another graph" in tf.grade(Q1, answer).text
