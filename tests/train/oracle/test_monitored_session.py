"""MonitoredSession: its Scaffold, its hooks, its threads, and how it comes back after the loss of a task."""

from __future__ import annotations

import functools
import inspect
import os
import threading

import pytest

import dtflab
from tests.oracle.graph_defs import nodes
from tests.oracle.programs import Programs
from tests.oracle.trainings import both, failure, heard, local_server

program = Programs()


# What they log, and in which order, differs from run to run in TensorFlow itself.
BY_CHANCE = {"a_worker_waits_for_its_chief", "summaries_of_a_training"}


@program.each()
def test_same_answer(run, tmp_path):
    expected, found = both(run, tmp_path, in_order=run.__name__ not in BY_CHANCE)
    assert found == expected


NAMES = ("ChiefSessionCreator MonitoredSession MonitoredTrainingSession Scaffold SessionManager "
         "SingularMonitoredSession Supervisor WorkerSessionCreator").split()  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_same_signatures(name, real_tf):
    expected, found = getattr(real_tf.train, name), getattr(dtflab.train, name)
    methods = [m for m, f in inspect.getmembers(expected, inspect.isfunction) if not m.startswith("_")]
    assert arguments(found) == arguments(expected)
    for method in methods:
        assert arguments(getattr(found, method)) == arguments(getattr(expected, method)), method


def arguments(function):
    """Names and defaults, without what only dtflab has (by keyword); a sentinel is a sentinel."""
    parameters = inspect.signature(function).parameters.values()
    return [
        (p.name, "sentinel" if type(p.default) is object else p.default)
        for p in parameters
        if p.kind is not inspect.Parameter.KEYWORD_ONLY
    ]


# -- the pieces around a model ----------------------------------------------------------------------------------


def pieces(scaffold):
    return [scaffold.init_op, scaffold.init_feed_dict, scaffold.init_fn, scaffold.ready_op,
            scaffold.ready_for_local_init_op, scaffold.local_init_op, scaffold.local_init_feed_dict,
            scaffold.summary_op, scaffold.saver]  # fmt: skip


@program
def nothing_is_made_before_finalize(tf, home):
    return pieces(tf.train.Scaffold()), nodes(tf.get_default_graph().as_graph_def())


@program
def default_pieces(tf, home):
    tf.Variable(1, name="v")
    tf.Variable([2.0], name="r", use_resource=True)
    tf.Variable(3, name="w", collections=[tf.GraphKeys.LOCAL_VARIABLES])
    tf.summary.scalar("s", tf.constant(1.0))
    table = tf.no_op(name="table")
    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, table)
    scaffold = tf.train.Scaffold(saver=tf.train.Saver())
    assert scaffold.finalize() is scaffold
    graph = tf.get_default_graph()
    keys = "INIT_OP READY_OP READY_FOR_LOCAL_INIT_OP LOCAL_INIT_OP SUMMARY_OP SAVERS".split()
    entered = [[element.name for element in graph.get_collection(getattr(tf.GraphKeys, key))] for key in keys]
    with tf.Session() as sess:
        missing = [sess.run([scaffold.ready_op, scaffold.ready_for_local_init_op])]
        sess.run(scaffold.init_op)
        missing.append(sess.run([scaffold.ready_op, scaffold.ready_for_local_init_op]))
        sess.run(scaffold.local_init_op)
        missing.append(sess.run([scaffold.ready_op, scaffold.ready_for_local_init_op]))
    return nodes(graph.as_graph_def()), entered, missing


@program
def pieces_of_an_empty_graph(tf, home):
    scaffold = tf.train.Scaffold(saver=tf.train.Saver(allow_empty=True)).finalize()
    with tf.Session() as sess:
        return (
            nodes(tf.get_default_graph().as_graph_def()),
            scaffold.summary_op,
            sess.run([scaffold.ready_op, scaffold.init_op]),
        )


@program
def the_default_saver_is_sharded(tf, home):
    tf.Variable(1, name="v")
    scaffold = tf.train.Scaffold().finalize()
    saver = scaffold.saver
    return isinstance(saver, tf.train.Saver), saver.saver_def.sharded, tf.get_collection("savers") == [saver]


@program
def a_second_scaffold_finds_the_same_pieces(tf, home):
    tf.Variable(1)
    first, second = (tf.train.Scaffold().finalize() for _ in range(2))
    return pieces(first) == pieces(second), tf.get_default_graph().finalized


@program
def pieces_that_are_given(tf, home):
    tf.Variable(1)
    saver, calls = tf.train.Saver(), []
    given = {"init_op": 2, "init_feed_dict": 3, "ready_op": 5, "ready_for_local_init_op": 6, "local_init_op": 7,
             "summary_op": 8, "local_init_feed_dict": 9}  # fmt: skip
    first = tf.train.Scaffold(saver=saver, init_fn=lambda *args: calls.append(args), **given)
    copy = tf.train.Scaffold(init_op=4, copy_from_scaffold=first)
    other = tf.train.Scaffold(init_fn=lambda *args: None, copy_from_scaffold=first)
    copy.finalize()
    for scaffold in (first, copy, other):
        scaffold.init_fn("session")
    own = [call == (scaffold, "session") for call, scaffold in zip(calls, (first, copy))]
    seen = [[getattr(s, name) for name in given] + [s.saver is saver] for s in (first, copy, other)]
    return seen, own, len(calls), tf.get_collection(tf.GraphKeys.INIT_OP)


@program
def pieces_that_are_refused(tf, home):
    tf.Variable(1)
    refused = [failure(lambda: tf.train.Scaffold(copy_from_scaffold=1))]
    for _ in range(2):
        tf.add_to_collection(tf.GraphKeys.SAVERS, tf.train.Saver())
        tf.add_to_collection(tf.GraphKeys.READY_OP, tf.constant([], tf.string))
    refused.append(failure(lambda: tf.train.Scaffold(ready_op=tf.constant(["x"])).finalize())[0])
    refused.append(failure(lambda: tf.train.Scaffold().finalize())[0])
    return refused


@program
def get_or_default(tf, home):
    make = functools.partial(tf.train.Scaffold.get_or_default, "piece", "my_key")
    return make(lambda: None), make(lambda: 5), make(lambda: 6), tf.get_collection("my_key")


# -- hooks ------------------------------------------------------------------------------------------------------


def diary(tf, entries, name="", **does):
    """A hook that writes down its calls; `does` says what its methods do besides."""

    class Hook(tf.train.SessionRunHook):
        def begin(self):
            entries.append((name, "begin", tf.get_default_graph().finalized))
            return does.get("begin", lambda: None)()

        def after_create_session(self, session, coord):
            entries.append((name, "after_create_session", type(session).__name__, type(coord).__name__))

        def before_run(self, run_context):
            asked = run_context.original_args
            fetched = getattr(asked.fetches, "name", str(asked.fetches))
            entries.append((name, "before_run", fetched, asked.feed_dict, run_context.stop_requested))
            return does.get("before_run", lambda context: None)(run_context)

        def after_run(self, run_context, run_values):
            entries.append((name, "after_run", run_values.results, run_values.options.timeout_in_ms))
            return does.get("after_run", lambda context: None)(run_context)

        def end(self, session):
            entries.append((name, "end", type(session).__name__))

    return Hook()


@program
def hooks_are_told_everything_in_order(tf, home):
    entries = []
    v = tf.Variable(5, name="v")
    ask = tf.train.SessionRunArgs({"v": v, "twice": [2 * v]}, options=tf.RunOptions(timeout_in_ms=70_000))
    hooks = [diary(tf, entries, "a"), diary(tf, entries, "b", before_run=lambda context: ask)]
    with tf.train.MonitoredSession(hooks=hooks) as sess:
        answers = [sess.run(v), sess.run({"x": [v]}, options=tf.RunOptions(timeout_in_ms=80_000)), sess.run([])]
    return entries, answers


@program
def a_hook_may_add_to_the_graph_when_it_begins(tf, home):
    made = []
    hook = diary(tf, [], begin=lambda: made.append(tf.Variable(5, name="late")))
    with tf.train.MonitoredSession(hooks=[hook]) as sess:
        return sess.run(made[0]), failure(lambda: tf.constant(1))


@program
def feeds_of_hooks(tf, home):
    a, b, c = (tf.constant([0], name=name) for name in "abc")
    total = a + b + c

    def feeding(feeds):
        return diary(tf, [], before_run=lambda context: tf.train.SessionRunArgs(None, feeds))

    own = {c: [20]}
    hooks = [feeding({a: [5]}), feeding({b: [10]})]
    with tf.train.MonitoredSession(hooks=hooks) as sess:
        answers = [sess.run(total), sess.run(total, own), len(own), failure(lambda: sess.run(total, {b: [1]}))[0]]
    clash = tf.train.MonitoredSession(hooks=[feeding({a: [5]}), feeding({a: [6]})])
    kind, text = failure(lambda: clash.run(total))
    clash.close()
    return answers, kind, text.split(" Conflict")[0]


@program
def run_options_of_hooks_and_caller(tf, home):
    seen = []

    def wishing(**fields):
        def before_run(context):
            return tf.train.SessionRunArgs(None, options=tf.RunOptions(**fields))

        return diary(tf, [], before_run=before_run)

    class Reader(tf.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            options, metadata = run_values.options, run_values.run_metadata
            seen.append([options.trace_level, options.timeout_in_ms, options.output_partition_graphs,
                         options.report_tensor_allocations_upon_oom, options.inter_op_thread_pool,
                         len(metadata.partition_graphs) > 0, len(metadata.step_stats.dev_stats) > 0,
                         str(options.debug_options)])  # fmt: skip

    watches = [{"node_name": "c", "debug_ops": ["DebugIdentity"], "output_slot": slot} for slot in (0, -1)]
    hooks = [
        wishing(trace_level=2, timeout_in_ms=30_000, debug_options={"debug_tensor_watch_opts": watches[:1]}),
        wishing(trace_level=3, timeout_in_ms=60_000, output_partition_graphs=True),
        wishing(debug_options={"debug_tensor_watch_opts": watches[1:], "reset_disk_byte_usage": True}),
        Reader(),
    ]
    c = tf.constant(42, name="c")
    caller, metadata = tf.RunOptions(timeout_in_ms=90_000, report_tensor_allocations_upon_oom=True), tf.RunMetadata()
    with tf.train.MonitoredSession(hooks=hooks) as sess:
        answers = [sess.run(c), sess.run(c, options=caller, run_metadata=metadata)]
    return answers, seen, caller.timeout_in_ms, len(metadata.step_stats.dev_stats) > 0


@program
def a_hook_stops_the_training(tf, home):
    step = tf.train.get_or_create_global_step()
    count, entries = tf.assign_add(step, 1), []
    stop = diary(tf, entries, "b", after_run=lambda context: context.request_stop())
    answers = []
    for hooks in ([tf.train.StopAtStepHook(last_step=3)], [tf.train.StopAtStepHook(num_steps=2)], [stop]):
        with tf.train.MonitoredSession(hooks=hooks) as sess:
            while not sess.should_stop():
                answers.append(sess.run(count))
            answers.append(failure(lambda sess=sess: sess.run(count)))
        answers.append(sess.should_stop())
    return answers, entries


# -- how it ends ------------------------------------------------------------------------------------------------


def raising(tf, at, error, entries=None):
    """A hook that raises `error` before the run number `at`, once."""
    runs = iter(range(1, 1_000_000))

    def before_run(context):
        if next(runs) == at:
            raise error

    return diary(tf, [] if entries is None else entries, before_run=before_run)


@program
def ends_of_input_are_clean(tf, home):
    step = tf.train.get_or_create_global_step()
    answers = []
    for error in (tf.errors.OutOfRangeError(None, None, "end of input"), StopIteration):
        for kind in (tf.train.MonitoredSession, tf.train.SingularMonitoredSession):
            entries = []
            sess = kind(hooks=[raising(tf, 2, error, entries)])
            with sess:
                sess.run(step)
                sess.run(step)
                entries.append("not reached")
            answers.append((entries[-1], sess.should_stop(), sess.graph))
    return answers


@program
def other_errors_pass_through(tf, home):
    step = tf.train.get_or_create_global_step()
    answers = []
    for error in (RuntimeError("regular"), tf.errors.InvalidArgumentError(None, None, "bad"), KeyboardInterrupt()):
        entries = []
        sess = tf.train.MonitoredSession(hooks=[raising(tf, 2, error, entries)])
        try:
            with sess:
                sess.run(step)
                sess.run(step)
        except BaseException as raised:
            answers.append((raised is error, "end" in str(entries), sess.should_stop()))
    entries = []
    try:
        with tf.train.MonitoredSession(hooks=[diary(tf, entries)]) as sess:
            raise ValueError("in the body")
    except ValueError:
        answers.append(("end" in str(entries), sess.should_stop(), tf.get_default_graph().finalized))
    return answers


@program
def an_error_in_a_run(tf, home):
    bad = tf.check_numerics(tf.constant([float("nan")]), "broken")
    sess = tf.train.MonitoredSession()
    answers = [failure(lambda: sess.run(bad))[0], sess.should_stop()]
    sess.close()
    return answers, sess.should_stop()


@program
def closing(tf, home):
    c = tf.constant(1)
    sess = tf.train.MonitoredSession()
    answers = [sess.run(c), sess.graph is tf.get_default_graph(), sess.should_stop()]
    sess.close()
    answers += [sess.should_stop(), sess.graph, failure(sess.close)]

    def closed_inside():
        with tf.train.MonitoredSession() as sess:
            sess.close()

    return answers, failure(closed_inside)


@program
def the_graph_is_final_while_it_is_open(tf, home):
    graph = tf.get_default_graph()
    v = tf.Variable(1)
    with tf.train.MonitoredSession() as sess:
        answers = [sess.run(v), graph.finalized]
    answers.append(graph.finalized)
    tf.train.Scaffold().finalize()
    with tf.train.SingularMonitoredSession() as sess:
        answers += [sess.run(v), graph.finalized]
    return [*answers, graph.finalized]


@program
def singular_session(tf, home):
    v = tf.Variable(1)
    with tf.train.SingularMonitoredSession() as sess:
        raw = sess.raw_session()
        answers = [isinstance(raw, tf.Session), raw.run(v), sess.run(v)]
    aborted = tf.errors.AbortedError(None, None, "lost")
    once = tf.train.SingularMonitoredSession(hooks=[raising(tf, 1, aborted)])
    answers += [sess.raw_session(), failure(lambda: once.run(v)), once.run(v)]
    once.close()
    return answers


# -- threads next to it ------------------------------------------------------------------------------------------


class Coordinated:
    """A hook that keeps the coordinator, and starts a thread that reports `error` to it on request."""

    def __new__(cls, tf, error):
        class Hook(tf.train.SessionRunHook):
            def after_create_session(self, session, coord):
                self.coord = coord

            def report(self):
                def run():
                    try:
                        raise error
                    except Exception as raised:
                        self.coord.request_stop(raised)

                thread = threading.Thread(target=run)
                thread.start()
                thread.join()

        return Hook()


@program
def an_error_in_a_thread_is_raised_at_the_end(tf, home):
    step = tf.train.get_or_create_global_step()
    answers = []
    for kind in (tf.train.MonitoredSession, tf.train.SingularMonitoredSession):
        hook = Coordinated(tf, RuntimeError("a thread wants to stop"))
        sess = kind(hooks=[hook])
        try:
            with sess:
                answers.append(sess.run(step))
                hook.report()
                answers.append(sess.run(step))  # goes well
                if kind is tf.train.MonitoredSession:
                    answers.append(sess.should_stop())
                else:
                    answers.append(failure(sess.should_stop))
        except RuntimeError as error:
            answers.append(str(error))
        answers.append(sess.should_stop())
    return answers


@program
def a_task_lost_in_a_thread(tf, home):
    step = tf.train.get_or_create_global_step()
    count, created = tf.assign_add(step, 1), []
    hook = Coordinated(tf, tf.errors.UnavailableError(None, None, "lost"))
    counting = diary(tf, created)
    with tf.train.MonitoredSession(hooks=[hook, counting]) as sess:
        answers = [sess.run(count), sess.run(count)]
        hook.report()
        answers += [sess.should_stop(), sess.run(count)]
    return answers, [entry for entry in created if "after_create_session" in entry]


@program
def a_run_fails_because_a_thread_lost_its_task(tf, home):
    step = tf.train.get_or_create_global_step()
    count = tf.assign_add(step, 1)
    hook = Coordinated(tf, tf.errors.AbortedError(None, None, "lost"))

    def fail(context):
        if not getattr(hook, "failed", False):
            hook.failed = True
            hook.report()
            raise tf.errors.CancelledError(None, None, "because of it")

    with tf.train.MonitoredSession(hooks=[hook, diary(tf, [], before_run=fail)]) as sess:
        return sess.run(count), sess.should_stop(), sess.run(count)


@program
def queue_runners_end_with_the_input(tf, home):
    numbers = tf.train.range_input_producer(3, num_epochs=2, shuffle=False, capacity=1)
    number, got = numbers.dequeue(), []
    sess = tf.train.MonitoredSession()
    with sess:
        while not sess.should_stop():
            got.append(sess.run(number))
    return got, sess.should_stop()


@program
def queue_runners_end_when_it_closes(tf, home):
    number = tf.train.range_input_producer(3, shuffle=False).dequeue()
    with tf.train.MonitoredSession() as sess:
        return [sess.run(number) for _ in range(4)]


# -- recovery ---------------------------------------------------------------------------------------------------


@program
def a_lost_session_starts_again(tf, home):
    step = tf.train.get_or_create_global_step()
    count, answers, entries = tf.assign_add(step, 1), [], []
    for error in (tf.errors.AbortedError(None, None, "lost"), tf.errors.UnavailableError(None, None, "lost")):
        with tf.train.MonitoredSession(hooks=[raising(tf, 3, error, entries)]) as sess:
            answers += [sess.run(count), sess.run(count), sess.run(count), sess.should_stop(), sess.run(count)]
    return answers, entries


@program
def a_lost_session_goes_on_from_its_checkpoint(tf, home):
    step = tf.train.get_or_create_global_step()
    count = tf.assign_add(step, 1)
    lost = raising(tf, 4, tf.errors.AbortedError(None, None, "lost"))
    scaffold = tf.train.Scaffold()
    saving = tf.train.CheckpointSaverHook(home, save_steps=1, scaffold=scaffold)
    creator = tf.train.ChiefSessionCreator(scaffold, checkpoint_dir=home)
    with tf.train.MonitoredSession(creator, hooks=[lost, saving]) as sess:
        answers = [sess.run(count) for _ in range(6)]
    latest = tf.train.latest_checkpoint(home)
    by_name = tf.train.ChiefSessionCreator(tf.train.Scaffold(), checkpoint_filename_with_path=latest)
    with tf.train.MonitoredSession(by_name) as sess:
        return answers, sess.run(step)


@program
def a_session_that_is_lost_while_it_is_made(tf, home):
    step = tf.train.get_or_create_global_step()
    calls = []

    def init_fn(scaffold, sess):
        calls.append(isinstance(scaffold, tf.train.Scaffold))
        if len(calls) < 3:
            raise tf.errors.AbortedError(None, None, "lost")

    creator = tf.train.ChiefSessionCreator(tf.train.Scaffold(init_fn=init_fn))
    with tf.train.MonitoredSession(creator) as sess:
        return sess.run(step), calls


@program
def an_own_session_creator(tf, home):
    made = []

    class Creator(tf.train.SessionCreator):
        def create_session(self):
            made.append(tf.Session())
            return made[-1]

    c = tf.constant(1)
    error = tf.errors.UnavailableError(None, None, "lost")
    with tf.train.MonitoredSession(Creator(), hooks=[raising(tf, 2, error)]) as sess:
        answers = [sess.run(c), sess.run(c), len(made), failure(lambda: made[0].run(c))]
    return answers, failure(lambda: tf.train.SessionCreator())[0]


# -- step functions ---------------------------------------------------------------------------------------------


@program
def step_functions(tf, home):
    c = tf.placeholder(tf.float32)
    twice, entries = 2.0 * c, []

    def with_hooks(step_context):
        return step_context.run_with_hooks(twice, {c: 4.0})

    def without(step_context):
        return step_context.session.run(twice, {c: 5.0}), isinstance(step_context.session, tf.Session)

    class Model:
        def step(self, step_context):
            return step_context.run_with_hooks(fetches=twice, feed_dict={c: 6.0})

        def other(self, step_context, more):
            return more

        def __call__(self, step_context):
            return "called"

    with tf.train.MonitoredSession(hooks=[diary(tf, entries)]) as sess:
        forms = [with_hooks, without, Model().step, functools.partial(with_hooks), lambda step_context: "value"]
        answers = [sess.run_step_fn(form) for form in forms]
        wrong = [lambda: 1, lambda context: 1, lambda step_context, more: 1, Model().other]
        answers += [failure(lambda form=form: sess.run_step_fn(form)) for form in wrong]
    return answers, [entry[1] for entry in entries]


@program
def step_functions_that_stop(tf, home):
    entries = []

    def stop(step_context):
        step_context.request_stop()

    sess = tf.train.MonitoredSession(hooks=[diary(tf, entries)])
    answers = [failure(lambda: sess.run_step_fn(stop)), sess.should_stop()]
    with sess:
        while not sess.should_stop():
            sess.run_step_fn(stop)
            answers.append("not reached")
    return answers, sess.should_stop(), [entry[1] for entry in entries]


@program
def a_step_function_is_called_again_after_a_loss(tf, home):
    c = tf.constant(3)
    calls = []

    def step(step_context):
        calls.append(step_context)
        value = step_context.run_with_hooks(c)
        if len(calls) in (1, 3):
            raise tf.errors.AbortedError(None, None, "lost")
        return value

    with tf.train.MonitoredSession() as sess:
        answers = [sess.run_step_fn(step), len(calls)]
    with tf.train.SingularMonitoredSession() as sess:
        answers += [failure(lambda: sess.run_step_fn(step)), len(calls)]
    return answers


# -- training ---------------------------------------------------------------------------------------------------


def hooks_of(sess):
    return [type(hook).__name__ for hook in sess._hooks]


@program
def hooks_of_a_training_session(tf, home):
    tf.train.get_or_create_global_step()
    own, chiefs = tf.train.StopAtStepHook(last_step=1), tf.train.FeedFnHook(dict)
    answers = []
    for arguments in (
        {},
        {"checkpoint_dir": home},
        {"checkpoint_dir": home, "hooks": [own], "chief_only_hooks": [chiefs]},
        {"checkpoint_dir": home, "save_checkpoint_secs": None, "save_summaries_steps": None},
        {"checkpoint_dir": home, "save_checkpoint_secs": 0, "log_step_count_steps": None},
        {"checkpoint_dir": home, "save_checkpoint_steps": 5, "save_summaries_secs": 1},
        {"checkpoint_dir": home, "save_checkpoint_steps": None, "log_step_count_steps": 0, "save_summaries_secs": 0},
        {"checkpoint_dir": home, "save_checkpoint_secs": 7, "save_summaries_steps": 0},
        {"summary_dir": home + "/other"},
    ):
        with tf.train.MonitoredTrainingSession(**arguments) as sess:
            answers.append(hooks_of(sess))
    return answers


@program
def a_training_goes_on_where_it_was(tf, home):
    step = tf.train.get_or_create_global_step()
    count, answers = tf.assign_add(step, 1), []
    for _ in range(2):
        with tf.train.MonitoredTrainingSession(checkpoint_dir=home, hooks=[tf.train.StopAtStepHook(num_steps=2)]) as s:
            answers.append(s.run(step))
            while not s.should_stop():
                answers.append(s.run(count))
    files = sorted(name for name in os.listdir(home) if not name.startswith("events"))
    return answers, files, tf.train.latest_checkpoint(home)


@program
def a_training_without_checkpoints(tf, home):
    step = tf.train.get_or_create_global_step()
    count = tf.assign_add(step, 1)
    for _ in range(2):
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=home, save_checkpoint_secs=0, log_step_count_steps=2
        ) as s:
            answers = [s.run(step), s.run(count), s.run(count)]
    return answers, sorted(name.split(".")[0] for name in os.listdir(home))[:1]


@program
def summaries_of_a_training(tf, home):
    step = tf.train.get_or_create_global_step()
    count = tf.assign_add(step, 1)
    tf.summary.scalar("twice", 2 * count)
    arguments = {"checkpoint_dir": home, "save_summaries_steps": 10, "log_step_count_steps": 10}
    with tf.train.MonitoredTrainingSession(**arguments) as sess:
        for _ in range(21):
            sess.run(count)
    tf.summary.FileWriterCache.clear()
    tags = set()
    for name in os.listdir(home):
        if name.startswith("events"):
            for event in tf.train.summary_iterator(f"{home}/{name}"):
                tags |= {value.tag for value in event.summary.value}
    return tags


@program
def a_worker_waits_for_its_chief(tf, home):
    """Chief and worker are threads that share a server; the worker asks first, and counts when the chief has."""
    asked, counted, answers = threading.Event(), threading.Event(), {}

    def train(name, creator, target):
        with tf.Graph().as_default():
            count = tf.assign_add(tf.train.get_or_create_global_step(), 1)
            manager = creator(tf.train.Scaffold().finalize(), master=target)
            manager._get_session_manager()._recovery_wait_secs = 0.01  # TensorFlow looks again after 30 s
            with tf.train.MonitoredSession(manager) as sess:
                assert name == "chief" or counted.wait(60)
                answers[name] = sess.run(count)

    def chief(target):
        assert asked.wait(60)
        train("chief", tf.train.ChiefSessionCreator, target)
        counted.set()

    with local_server(tf) as target, heard("Waiting for model to be ready.", lambda line: asked.set()):
        thread = threading.Thread(target=chief, args=[target])
        thread.start()
        train("worker", functools.partial(tf.train.WorkerSessionCreator, max_wait_secs=60), target)
        thread.join()
    return answers


@program
def a_worker_of_a_chief_that_does_not_come(tf, home):
    tf.train.get_or_create_global_step()
    return failure(lambda: tf.train.MonitoredTrainingSession(is_chief=False, max_wait_secs=0))
