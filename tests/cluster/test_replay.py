"""A run in virtual time, recorded and computed again: nothing differs but what a fork changes, and what follows."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.base.events import Happened
from dtflab.cluster.replay import NotReplayable, Replay, Run, first_difference, of_clients, of_step
from dtflab.hardware.parts import Processor
from dtflab.virtual.deadlock import DeadlockError
from tests.virtual.small_program import CPU, GPU, MADE_UP, NETWORK, client_program

# Kernels of different lengths on one processor, so that their order matters.
CORE = Processor("a core", "CPU", {"float32": 1e9}, 1 << 36, 1e9, 1e-6, 1, MADE_UP)


def made(**options):
    return tf.Cluster(**{"ps": 1, "worker": 3, "cpu": CPU, "network": NETWORK, "clock": "virtual"} | options)


def adds(client):
    """Three steps that add to a variable on the ps."""
    with tf.device("/job:ps/task:0"):
        total = tf.get_variable("total", [200], initializer=tf.zeros_initializer())
    with tf.device(client.device):
        gradient = tf.reduce_sum(tf.ones([200, 200]), axis=0, name="gradient")
    add = tf.assign_add(total, gradient, name="add")
    with tf.Session(client.target) as sess:
        if client.is_chief:
            sess.run(total.initializer)
        else:
            tf.sim.sleep(1e-3)
        return [float(sess.run(add)[0]) for _ in range(3)]


@pytest.fixture
def three():
    with made() as cluster:
        yield Replay(of_clients(adds, "worker"), cluster)


def kernels(run: Run, name: str):
    return [kernel for kernel in run.kernels if kernel.name == name]


# ---- what is recorded ----


def test_a_run_of_three_workers_is_recorded(three):
    run = three.run
    assert sorted(value for values in run.results for value in values)[-1] == 9 * 200
    assert {task for kernel in run.kernels for task in [kernel.device.split("/device")[0]]} == {
        task.name for task in three.cluster.tasks
    }
    assert len(kernels(run, "add")) == 9 and {one.writes for one in kernels(run, "add")} == {"total"}
    assert all(one.ready <= one.started < one.ended <= run.end for one in run.kernels)
    assert [line.what for line in run.messages if line.what.endswith("gradient")] == ["edge_0_gradient"] * 9
    assert three.cluster.now() == 0.0 and three.cluster.log().count == 0, "the program's own cluster is left alone"


def test_a_kernel_that_finds_its_processor_busy_is_ready_before_it_begins():
    with made(cpu=CORE, ps=1, worker=1) as cluster, tf.Graph().as_default(), tf.Session(cluster.target) as sess:
        ones = tf.placeholder(tf.float32, [100])
        sums = [tf.square(ones, name=f"s{i}") for i in range(3)]
        run = Replay(*of_step(sess, sums, {ones: np.ones(100)})).run
    spans = [kernels(run, f"s{i}")[0] for i in range(3)]
    assert {one.ready for one in spans} == {spans[0].started}
    assert [one.started for one in spans[1:]] == [one.ended for one in spans[:2]]
    assert run.waiting(spans[0].started) == spans


def test_queues_and_functions_of_the_program_are_recorded():
    def work(client):
        queue = tf.FIFOQueue(2, tf.float32, shared_name="q")
        with tf.Session(client.target) as sess:
            sess.run(queue.enqueue(1.0))
            return sess.run(tf.py_func(lambda x: x + 1, [queue.dequeue()], tf.float32, name="own"))

    with made(worker=1) as cluster:
        run = Replay(of_clients(work, "worker"), cluster).run
    assert run.results == [2.0] and [event.level for event in run.queues] == [1, 0]
    assert len(kernels(run, "own")) == 1


# ---- forks ----


def test_a_fork_without_a_change_is_the_original_event_for_event():
    with made(gpu=GPU, gpus=1, seed=3, stragglers=tf.sim.uniform(0.5)) as cluster:
        replay = Replay(of_clients(client_program, "worker"), cluster)
        change, fork = replay.fork(replay.run.end / 2)
    assert fork == replay.run and fork.hash == replay.run.hash and len(fork.lines) > 1000
    assert first_difference(replay.run, fork) is None and change.words == "no change"


def test_a_task_is_killed_at_its_moment(three):
    at = kernels(three.run, "gradient")[4].started
    change, fork = three.fork(at, kill="worker:1")
    found = first_difference(three.run, fork)
    assert found is not None and at <= found.at <= fork.end and change.words == "kill worker:1"
    assert isinstance(fork.error, errors.UnavailableError) and "worker/replica:0/task:1" in fork.error.message
    assert [(line.what, line.where, line.started) for line in fork.faults] == [
        ("chaos: killed", "/job:worker/replica:0/task:1", at)
    ]
    same = [one for one in three.run.lines if one.ended < at and not one.target]
    assert [one for one in fork.lines if one.step and one.ended < at and not one.target] == same


def test_what_never_begins_is_the_first_difference_though_other_events_come_before_its_end():
    """An op of worker:0, for example, in a step that ends because worker:1 is lost."""
    line = Happened(1.0, 2.0, 1, "a", "/job:worker/task:0")
    longer, later = line._replace(ended=9.0), line._replace(started=4.0, ended=6.0, what="b")
    run = Run([], [line, later], [], 6.0, "")
    for lines, at, pair in (
        ([line], 4.0, (later, None)),
        ([longer, later], 2.0, (line, longer)),
        ([line._replace(ended=5.0)], 2.0, (line, line._replace(ended=5.0))),
        ([line._replace(ended=7.0), later._replace(started=1.5)], 1.5, (later, later._replace(started=1.5))),
    ):
        found = first_difference(run, dataclasses.replace(run, lines=lines, end=5.0))
        assert found is not None and (found.at, found.original, found.fork) == (at, *pair)
    assert first_difference(run, run) is None


def test_the_end_of_a_fork_is_the_first_difference_if_nothing_else_comes_before(three):
    fork = three.fork(0.0, kill="ps:0")[1]
    found = first_difference(three.run, fork)
    assert fork.end < three.run.end and found is not None and found.at <= fork.end and found.fork is None


def test_a_message_is_lost_as_over_a_connection_that_breaks(three):
    sent = [line for line in three.run.messages if line.what.endswith("gradient")][3]
    change, fork = three.fork(sent.started, lose=sent)
    lost = [line for line in fork.messages if line.what.startswith("lost: ")]
    assert [(line.started, line.where, line.target) for line in lost] == [(sent.started, sent.where, sent.target)]
    assert isinstance(fork.error, errors.UnavailableError) and "gradient" in fork.error.message
    assert change.words == "gradient is lost" and three.fork(sent.started, lose="gradient")[1].lines == fork.lines


@pytest.mark.parametrize("what", ["RunGraph", "RunGraph ended"])
def test_the_call_of_a_part_of_a_step_and_its_answer_can_be_lost(three, what):
    fork = three.fork(0.0, lose=what)[1]
    assert isinstance(fork.error, errors.UnavailableError) and what in fork.error.message


def test_a_faster_link_ends_sooner_and_a_slower_one_later(three):
    at = three.run.end / 2
    ends = [three.fork(at, network=f"ps:0={factor}x")[1] for factor in (10, 1, 0.1)]
    assert ends[0].end < ends[1].end == three.run.end < ends[2].end
    assert ends[1] == three.run
    found = first_difference(three.run, ends[0])
    assert found is not None and found.at >= at and found.original.what == found.fork.what


def chosen(first: str, at_kernel: str):
    """The order of four ready ops on one core, where `first` goes next when `at_kernel` begins."""
    with made(cpu=CORE, ps=1, worker=1) as cluster, tf.Graph().as_default(), tf.Session(cluster.target) as sess:
        given = tf.placeholder(tf.float32, [1000])
        ops = [
            tf.square(given, name="a"),
            tf.negative(given, name="b"),
            tf.abs(given, name="c"),
            tf.exp(given, name="d"),
        ]
        replay = Replay(*of_step(sess, ops, {given: np.ones(1000)}))
        assert [one.name for one in replay.run.kernels if one.name in "abcd"] == list("abcd")
        fork = replay.fork(kernels(replay.run, at_kernel)[0].started, next=first)[1]
        assert sorted(kernel.ended for kernel in fork.kernels)[-1] == pytest.approx(
            sorted(kernel.ended for kernel in replay.run.kernels)[-1]
        )
        return "".join(one.name for one in sorted(fork.kernels, key=lambda one: one.started) if one.name in "abcd")


def test_another_ready_op_goes_next():
    assert chosen("c", "b") == "acbd"
    assert chosen("d", "b") == "adbc"
    assert chosen("b", "b") == "abcd"
    assert chosen("d", "c") == "abdc"


def test_another_op_goes_first_of_those_that_become_ready_at_one_moment():
    assert chosen("d", "a") == "dabc" and chosen("b", "a") == "bacd"


def test_a_slow_task_and_chaos_in_its_own_words(three):
    fork = three.fork(0.0, slow="worker:2=50x", partition="ps|worker:1=1s")[1]
    assert fork.end > three.run.end and {line.what.split()[1] for line in fork.faults} >= {"slow", "cut"}


def test_a_deadlock_is_how_a_run_ends():
    def work(client):
        with tf.Session(client.target) as sess:
            sess.run([tf.FIFOQueue(2, tf.float32, name="empty").dequeue(), tf.square(tf.ones([9]))])

    with made(worker=1) as cluster:
        assert isinstance(Replay(of_clients(work, "worker"), cluster).run.error, DeadlockError)


# ---- a step of a session ----


def test_a_step_begins_with_the_values_of_its_session_and_changes_none():
    with made(worker=1, gpu=GPU, gpus=1) as cluster, tf.Graph().as_default(), tf.Session(cluster.target) as sess:
        with tf.device("/job:ps/task:0"):
            v = tf.get_variable("v", [], initializer=tf.constant_initializer(5.0))
            r = tf.get_variable("r", [2], initializer=tf.ones_initializer(), use_resource=True)
        with tf.device("/job:worker/task:0/gpu:0"):
            w = tf.get_variable("w", [300], initializer=tf.ones_initializer())
        sess.run(tf.global_variables_initializer())
        sess.run([v.assign_add(1.0), w.assign_add(tf.ones([300]))])
        train = [v.assign_add(w[0]), r.assign_add([1.0, 2.0])]
        replay = Replay(*of_step(sess, train))
        assert replay.run.results[0] == 8.0 and list(replay.run.results[1]) == [2.0, 3.0]
        sess.run(v.assign(100.0))
        assert replay.fork(replay.run.end / 2)[1].hash == replay.run.hash, "as it was when it was recorded"
        assert replay.fork(0.0)[1].results[0] == 8.0
        assert sess.run([v, r])[0] == 100.0 and list(sess.run(r)) == [1.0, 1.0]


def test_an_array_that_the_program_updates_in_place_stays_as_it_was_recorded():
    with made(worker=1) as cluster, tf.Graph().as_default(), tf.Session(cluster.target) as sess:
        w = tf.get_variable("w", [3], initializer=tf.zeros_initializer())
        sess.run(w.initializer)
        add = tf.scatter_add(w, [0], [1.0])
        replay = Replay(*of_step(sess, add))
        for _ in range(3):
            sess.run(add.op)
        assert list(replay.fork(0.0)[1].results) == [1.0, 0.0, 0.0]


def test_a_step_that_needs_the_elements_of_a_queue_is_refused():
    with made(worker=1) as cluster, tf.Graph().as_default(), tf.Session(cluster.target) as sess:
        queue = tf.FIFOQueue(3, tf.float32, name="examples")
        sess.run(queue.enqueue(1.0))
        with pytest.raises(NotReplayable, match=r"uses the .*'examples' on worker:0.*only variables are copied"):
            Replay(*of_step(sess, queue.dequeue()))


def test_a_session_with_a_placer_of_its_own_is_refused():
    with made(worker=2) as cluster, tf.Graph().as_default():
        x = tf.square(tf.ones([10]), name="x")

        def second(nodes, *_, **__):
            return {node.name: "/job:worker/replica:0/task:1/device:CPU:0" for node in nodes}

        with tf.Session(cluster.target, placer=second) as sess, pytest.raises(NotReplayable, match="placer of its own"):
            Replay(*of_step(sess, x))


# ---- what can't be ----


def test_real_time_is_refused():
    with tf.Session() as sess, pytest.raises(NotReplayable, match=r"Open one in virtual time"):
        of_step(sess, tf.constant(1.0))
    with tf.Cluster(worker=1) as cluster, pytest.raises(NotReplayable, match="clock='virtual'"):
        Replay(of_clients(adds, "worker"), cluster)
    with tf.Cluster(worker=1) as cluster, tf.Session(cluster.target) as sess:
        program, its = of_step(sess, tf.constant(1.0))
        with pytest.raises(NotReplayable, match="clock='virtual'"):
            Replay(program, its)


def test_what_is_not_the_same_twice_is_no_run_to_fork():
    lengths = itertools.count(1)

    def work(client):
        with tf.Session(client.target) as sess:
            sess.run(tf.square(tf.ones([1000 * next(lengths)])))

    with made(worker=1) as cluster:
        replay = Replay(of_clients(work, "worker"), cluster)
        with pytest.raises(NotReplayable, match="not the same when it is computed again, first at"):
            replay.fork(replay.run.end)


def test_a_program_that_uses_another_cluster_is_told_so():
    with made(worker=1) as cluster:

        def work(client):
            with tf.Session(cluster.target) as sess:
                sess.run(tf.square(3.0))

        with pytest.raises(NotReplayable, match=r"tf.Session\(client.target\)"):
            Replay(of_clients(work, "worker"), cluster)


def test_an_error_before_anything_runs_is_the_programs_own():
    with made(worker=1) as cluster, pytest.raises(ZeroDivisionError):
        Replay(of_clients(lambda client: 1 / 0, "worker"), cluster)


@pytest.mark.parametrize(
    "at, choice, error",
    [
        (-1.0, {}, "lasts from 0 to"),
        (99.0, {}, "lasts from 0 to"),
        (0.0, {"next": "nothing"}, "next='nothing': it does not wait for a processor at 0 s. There: "),
        (0.0, {"lose": "nothing"}, "lose='nothing': no message of that name.*The next ones: RunGraph"),
        (0.0, {"network": "ps=2x"}, "network='ps=2x'.*ps:0=10x"),
        (0.0, {"network": "ps:0=0x"}, "network='ps:0=0x'"),
        (0.0, {"kill": "worker:7"}, "names the task 'worker:7'.*For example: kill='worker:1'$"),
        (0.0, {"kill": "worker:1@2s"}, "leave it out"),
    ],
)
def test_a_choice_that_means_nothing_is_an_error(three, at, choice, error):
    with pytest.raises(ValueError, match=error):
        three.fork(at, **choice)


def test_an_unknown_choice_names_those_there_are(three):
    with pytest.raises(TypeError, match="no explode=…; there are next, lose, network, kill"):
        three.fork(0.0, explode="ps:0")
    with pytest.raises(TypeError, match=r"Did you mean kill\?"):
        three.fork(0.0, kil="ps:0")


# ---- the copy ----


def test_a_copy_has_the_tasks_the_hardware_and_the_shared_hosts_of_its_original():
    spec = {"ps": ["a:2222"], "worker": ["a:2223", "b:2222"]}
    with tf.Cluster(spec, gpus=1, gpu="K40", clock="virtual", seed=5, network="1Gb/s") as cluster:
        with cluster.fresh_copy() as copy:
            assert [task.name for task in copy.tasks] == [task.name for task in cluster.tasks]
            assert copy.machines.network.nic == cluster.machines.network.nic
            hosts = [copy.machines.place(f"{task.name}/device:CPU:0").host.name for task in copy.tasks]
            assert hosts[0] == hosts[1] != hosts[2]
        assert cluster.tasks[0].state == "running"
    with tf.Cluster(worker=1) as real, pytest.raises(ValueError, match="real time"):
        real.fresh_copy()
