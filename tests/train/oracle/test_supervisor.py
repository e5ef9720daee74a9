"""Supervisor: its session, its threads, what it writes, and how it ends."""

from __future__ import annotations

import os
import threading

from tests.oracle.graph_defs import nodes
from tests.oracle.programs import Programs
from tests.oracle.trainings import both, failure, heard, local_server

program = Programs()


# Their threads log at the same time.
IN_THREADS = {"chief_and_worker", "the_end_of_the_input", "an_error_beside_queue_runners", "standard_services"}


@program.each()
def test_same_answer(run, tmp_path):
    expected, found = both(run, tmp_path, in_order=run.__name__ not in IN_THREADS)
    assert found == expected


def events(tf, folder):
    """The contents of a folder's event files, in order: kinds, steps, tags."""
    seen = []
    for name in sorted(name for name in os.listdir(folder) if name.startswith("events")):
        seen.append("file")
        for event in tf.train.summary_iterator(f"{folder}/{name}"):
            what = event.WhichOneof("what")
            if what == "summary":
                seen += [(event.step, value.tag) for value in event.summary.value]
            elif what == "session_log":
                log = event.session_log
                seen.append((event.step, tf.SessionLog.SessionStatus.Name(log.status), log.checkpoint_path))
            else:
                seen.append(what)
    return seen


def local(tf, value, name):
    return tf.Variable(value, name=name, trainable=False, collections=[tf.GraphKeys.LOCAL_VARIABLES])


# -- what it makes ----------------------------------------------------------------------------------------------


def pieces(sv):
    found = [sv.init_op, sv.ready_op, sv.ready_for_local_init_op, sv.summary_op, sv.global_step]
    names = [getattr(piece, "name", piece) for piece in found]
    return [*names, sv.saver is not None, sv.init_feed_dict, sv.save_path, sv.save_model_secs, sv.save_summaries_secs,
            sv.is_chief, sv.summary_writer is not None, type(sv.session_manager).__name__, type(sv.coord).__name__,
            sv._local_init_op and sv._local_init_op.name]  # fmt: skip


@program
def default_pieces(tf, home):
    tf.Variable(1, name="v")
    tf.Variable([2.0], name="r", use_resource=True)
    local(tf, 3, "w")
    tf.train.create_global_step()
    tf.summary.scalar("s", tf.constant(1.0))
    graph = tf.get_default_graph()
    sv = tf.train.Supervisor()
    keys = "INIT_OP READY_OP READY_FOR_LOCAL_INIT_OP LOCAL_INIT_OP SUMMARY_OP SAVERS GLOBAL_STEP".split()
    entered = [len(graph.get_collection(getattr(tf.GraphKeys, key))) for key in keys]
    again = tf.train.Supervisor(save_model_secs=5)
    return pieces(sv), pieces(again), sv.saver is again.saver, entered, nodes(graph.as_graph_def()), graph.finalized


@program
def pieces_of_an_empty_graph(tf, home):
    tf.constant(1.0)
    sv = tf.train.Supervisor(logdir=home + "/log")
    sv.stop()
    return pieces(sv), events(tf, home + "/log")


@program
def pieces_that_are_given(tf, home):
    with tf.Graph().as_default() as graph:
        v = tf.Variable(1, name="v")
        writer = tf.summary.FileWriter(home)
        given = {
            "init_op": v.initializer, "init_feed_dict": {}, "ready_op": None, "ready_for_local_init_op": None,
            "local_init_op": None, "saver": None, "summary_op": None, "global_step": None, "summary_writer": writer,
            "save_summaries_secs": 1, "save_model_secs": 2, "checkpoint_basename": "base", "logdir": home,
            "session_manager": tf.train.SessionManager(),
        }  # fmt: skip
    chief = tf.train.Supervisor(graph=graph, **given)
    writer.close()
    return pieces(chief), chief.summary_writer is writer, graph.finalized, tf.get_default_graph().finalized


@program
def who_is_not_the_chief(tf, home):
    with tf.device("/job:localhost"):
        tf.Variable(1, name="v")
    sv = tf.train.Supervisor(is_chief=False, logdir=home)
    with tf.Session() as sess:
        refused = [
            failure(lambda: sv.start_standard_services(sess)),
            failure(lambda: sv.summary_computed(sess, b"")),
        ]
    with tf.Graph().as_default():
        tf.Variable(1, name="without_device")
        kind, text = failure(lambda: tf.train.Supervisor(is_chief=False))
    with tf.Graph().as_default():
        tf.Variable(1, name="resources_need_none", use_resource=True)
        tf.train.Supervisor(is_chief=False)
    return pieces(sv), refused, kind, text.startswith("When using replicas, all Variables must have their device set")


@program
def global_steps(tf, home):
    answers = []
    for make in (
        lambda: tf.Variable(287, name="global_step"),
        lambda: tf.Variable(1.5, name="global_step"),
        lambda: tf.Variable([123], name="global_step"),
        lambda: tf.add_to_collection(tf.GraphKeys.GLOBAL_STEP, tf.Variable(3, name="other")),
        lambda: tf.constant(1, name="unrelated"),
    ):
        with tf.Graph().as_default():
            make()
            sv = tf.train.Supervisor()
            answers.append(getattr(sv.global_step, "name", None))
    return answers


@program
def several_pieces_in_a_collection(tf, home):
    v = tf.Variable(1, name="v")
    for name in ("first", "second"):
        tf.add_to_collection(tf.GraphKeys.INIT_OP, tf.group(v.initializer, name=name))
    return tf.train.Supervisor().init_op.name


# -- sessions ---------------------------------------------------------------------------------------------------


@program
def sessions_of_a_chief(tf, home):
    p = tf.placeholder(tf.float32, [2])
    v, w = tf.Variable(p, name="v"), local(tf, [3.0], "w")
    calls = []
    sv = tf.train.Supervisor(init_feed_dict={p: [1.0, 2.0]}, init_fn=lambda sess: calls.append(sess.run(v)))
    answers = []
    for _ in range(2):
        sess = sv.prepare_or_wait_for_session(config=tf.ConfigProto(device_count={"CPU": 2}))
        answers += [sess.run([v, w]), len(sess.list_devices()), sv.should_stop()]
        sv.stop()
        sess.close()
        answers.append(sv.should_stop())
    return answers, len(calls)


@program
def a_session_as_a_block_of_its_own(tf, home):
    """Many listings have it: the session is closed at the end of the block, the supervisor goes on until `stop`."""
    tf.Variable(0, name="global_step")
    sv = tf.train.Supervisor(logdir=home, save_summaries_secs=0, save_model_secs=0)
    with sv.prepare_or_wait_for_session() as sess:
        answers = [sess is tf.get_default_session(), sess.run("global_step:0"), sv.should_stop()]
    sv.stop()
    return answers, sv.should_stop(), failure(lambda: sess.run("global_step:0"))


@program
def initializations_that_do_not_suffice(tf, home):
    v = tf.Variable(1, name="v")
    tf.Variable(1, name="w")
    sv = tf.train.Supervisor(init_op=v.initializer)
    nothing = tf.train.Supervisor(init_op=None, local_init_op=None)
    return [failure(sv.prepare_or_wait_for_session), failure(nothing.prepare_or_wait_for_session)]


@program
def a_table_and_a_local_variable(tf, home):
    v = local(tf, [1.0], "v")
    table = tf.Variable([4], trainable=False, collections=[])
    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, table.initializer)
    answers = []
    for is_chief in (True, False):
        with tf.Graph().as_default():
            with tf.device("/job:localhost"):
                v = local(tf, [1.0], "v")
                table = tf.Variable([4], trainable=False, collections=[])
            tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, table.initializer)
            sv = tf.train.Supervisor(init_op=None, is_chief=is_chief)
            with sv.managed_session() as sess:
                answers.append(sess.run([v, table]))
    return answers


@program
def chief_and_worker(tf, home):
    """Both share a server; the worker asks first. Values that the chief restores are the worker's, too."""
    tf.Variable(10, name="shared")
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        tf.train.Saver().save(sess, home + "/model.ckpt")
    asked, done, answers = threading.Event(), threading.Event(), {}

    def run(is_chief, target):
        with tf.Graph().as_default() as graph:
            with tf.device("/cpu:0"):
                v = tf.Variable(1, name="shared")
                add = v.assign_add(1)
                w = local(tf, 2 * v, f"own_{is_chief}")
            ready = tf.report_uninitialized_variables(tf.global_variables())
        sv = tf.train.Supervisor(
            graph, is_chief=is_chief, logdir=home, recovery_wait_secs=0.01, ready_for_local_init_op=ready,
            save_model_secs=0,
        )  # fmt: skip
        sess = sv.prepare_or_wait_for_session(target)
        if is_chief:
            assert done.wait(60)
            answers["chief"] = sess.run(v)
        else:
            answers["worker"] = sess.run([add, w])
            done.set()
        sv.stop()
        sess.close()

    def chief(target):
        assert asked.wait(60)
        run(True, target)

    with local_server(tf) as target, heard("Waiting for model to be ready.", lambda line: asked.set()):
        thread = threading.Thread(target=chief, args=[target])
        thread.start()
        run(False, target)
        thread.join()
    return answers


@program
def a_worker_of_a_chief_that_does_not_come(tf, home):
    with tf.device("/job:localhost"):
        tf.Variable(1, name="v")
    sv = tf.train.Supervisor(is_chief=False)
    return failure(lambda: sv.prepare_or_wait_for_session(max_wait_secs=0))


# -- how it ends ------------------------------------------------------------------------------------------------


@program
def managed_sessions(tf, home):
    v = tf.Variable(1, name="v")
    sv = tf.train.Supervisor(logdir=home, save_model_secs=0, save_summaries_secs=0)
    with sv.managed_session() as sess:
        answers = [sess.run(v), sv.should_stop()]
    answers += [sv.should_stop(), failure(lambda: sess.run(v))]
    for error in (tf.errors.OutOfRangeError(None, None, "end"), RuntimeError("failing here"), ValueError("x")):
        reached = "no error"
        try:
            with sv.managed_session() as sess:
                raise error
        except Exception as raised:
            reached = str(raised)
        answers += [reached, sv.should_stop()]
    return answers


@program
def a_managed_session_that_can_not_be_made(tf, home):
    tf.Variable(1, name="v")
    sv = tf.train.Supervisor(init_op=tf.no_op())

    def use():
        with sv.managed_session():
            raise AssertionError("not reached")

    return failure(use)[0], sv.should_stop()


@program
def stopping(tf, home):
    tf.constant(1)
    sv = tf.train.Supervisor()
    answers = [sv.should_stop()]
    with sv.stop_on_exception():
        raise ValueError("in the block")
    answers += [sv.should_stop(), sv.wait_for_stop(), failure(sv.stop)]
    sv.coord.clear_stop()
    sv.request_stop()
    sv.stop()
    sv.coord.clear_stop()
    try:
        raise KeyError("requested")
    except KeyError as error:
        sv.request_stop(error)
    return answers, failure(sv.stop), tf.train.Supervisor.StopOnException is tf.train.Supervisor.stop_on_exception


@program
def loops(tf, home):
    tf.constant(1)
    sv = tf.train.Supervisor()
    often, calls = threading.Event(), []

    def target(*args, **kwargs):
        calls.append((args, kwargs))
        if len(calls) == 3:
            often.set()

    with sv.managed_session():
        thread = sv.loop(None, target, args=(1,), kwargs={"x": 2})
        assert often.wait(60)
    answers = [calls[:3], thread.is_alive(), thread.name != ""]

    def failing():
        raise ValueError("in a loop")

    def use():
        with sv.managed_session():
            sv.loop(60, failing)
            sv.wait_for_stop()

    return answers, failure(use)


@program
def the_end_of_the_input(tf, home):
    number = tf.train.range_input_producer(3, num_epochs=1, shuffle=False, capacity=1).dequeue()
    sv, got = tf.train.Supervisor(logdir=home, save_model_secs=0), []
    recorded = threading.Event()
    with heard("Recording summary at step None.", lambda line: recorded.set()), sv.managed_session() as sess:
        assert recorded.wait(60)  # a thread that begins when all is over does not record
        while not sv.should_stop():
            got.append(sess.run(number))
    return got, sv.should_stop()


@program
def an_error_beside_queue_runners(tf, home):
    number = tf.train.range_input_producer(3, shuffle=False).dequeue()
    sv = tf.train.Supervisor()

    def use():
        with sv.managed_session() as sess:
            sess.run(number)
            raise RuntimeError("in the program")

    return failure(use)


@program
def queue_runners(tf, home):
    number = tf.train.range_input_producer(3, shuffle=False).dequeue()
    sv = tf.train.Supervisor()
    sess = sv.prepare_or_wait_for_session(start_standard_services=False)
    with tf.Graph().as_default():
        other = tf.train.Supervisor()
        none = other.start_queue_runners(None)
    threads = sv.start_queue_runners(sess)
    answers = [sess.run(number), len(threads) > 0, none, sv.start_queue_runners(sess, [])]
    sv.stop(threads)
    sess.close()
    return answers


# -- what it writes ---------------------------------------------------------------------------------------------


@program
def summaries_of_the_program(tf, home):
    tf.Variable(7, name="global_step")
    summary = tf.summary.scalar("one", tf.constant(1.0))
    sv = tf.train.Supervisor(logdir=home, summary_op=None)
    for closing in (False, True):
        with sv.managed_session(close_summary_writer=closing, start_standard_services=False) as sess:
            sv.summary_computed(sess, sess.run(summary))
            sv.summary_computed(sess, sess.run(summary), global_step=3)
    return events(tf, home), sorted(name for name in os.listdir(home) if not name.startswith("events"))


@program
def without_a_place_to_write(tf, home):
    summary = tf.summary.scalar("one", tf.constant(1.0))
    sv = tf.train.Supervisor(logdir="")
    with sv.managed_session() as sess:
        answers = [failure(lambda: sv.summary_computed(sess, sess.run(summary))), sv.start_standard_services(sess)]
    unwritten = tf.train.Supervisor(logdir=home, summary_writer=None, save_model_secs=0)
    with unwritten.managed_session() as sess:
        answers.append(failure(lambda: unwritten.summary_computed(sess, sess.run(summary))))
    return answers, os.listdir(home)


@program
def a_writer_of_the_program(tf, home):
    summary = tf.summary.scalar("one", tf.constant(1.0))
    writer = tf.summary.FileWriter(home)
    sv = tf.train.Supervisor(logdir="", summary_op=None, summary_writer=writer)
    sess = sv.prepare_or_wait_for_session()
    sv.summary_computed(sess, sess.run(summary))
    sess.close()
    sv.stop()
    return events(tf, home)


@program
def standard_services(tf, home):
    """Each thread works once when it starts: the program waits for that, by what they log."""
    v = tf.Variable(123, name="global_step")
    tf.summary.scalar("v", v)
    sv = tf.train.Supervisor(logdir=home)
    recorded, counted = threading.Event(), threading.Event()
    with (
        heard("Recording summary at step 123.", lambda line: recorded.set()),
        heard("global_step/sec:", lambda line: counted.set()),
    ):
        sess = sv.prepare_or_wait_for_session()
        assert recorded.wait(60) and counted.wait(60)
    while not tf.train.latest_checkpoint(home):
        assert not sv.coord.wait_for_stop(0.01)
    sv.stop()
    answers = sess.run(v), tf.train.latest_checkpoint(home)
    sess.close()
    seen = events(tf, home)
    # Threads write in any order between the start and the stop.
    return answers, seen[:5], sorted(map(str, seen[5:-1])), seen[-1], sorted(set(os.listdir(home)) - events_of(home))


def events_of(folder):
    return {name for name in os.listdir(folder) if name.startswith("events")}


@program
def what_was_saved_is_restored(tf, home):
    answers = []
    for value in (1, 2):
        with tf.Graph().as_default():
            add = tf.Variable(value, name="v").assign_add(10)
            sv = tf.train.Supervisor(logdir=home, save_model_secs=0)
            with sv.managed_session() as sess:
                answers.append(sess.run(add))
                sv.saver.save(sess, sv.save_path)
    return answers, tf.train.latest_checkpoint(home)


@program
def old_names(tf, home):
    kind = tf.train.Supervisor
    return [
        kind.PrepareSession is kind.prepare_or_wait_for_session, kind.StartQueueRunners is kind.start_queue_runners,
        kind.StartStandardServices is kind.start_standard_services, kind.Stop is kind.stop,
        kind.RequestStop is kind.request_stop, kind.Loop is kind.loop, kind.ShouldStop is kind.should_stop,
        kind.WaitForStop is kind.wait_for_stop, kind.SummaryComputed is kind.summary_computed, kind.USE_DEFAULT,
    ]  # fmt: skip
