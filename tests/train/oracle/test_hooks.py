"""Hooks of training: the same runs on both, on a clock that the test moves."""

from __future__ import annotations

import inspect
import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dtflab
from dtflab.base import tf_logging as our_logging
from dtflab.train import training_util as our_training_util
from dtflab.train.sessions import wrapped_session
from tests.oracle.answers import both, module_of
from tests.oracle.events import facts
from tests.oracle.graph_defs import assert_same_graph
from tests.oracle.programs import Programs

program = Programs()


def training_util(tf: Any) -> Any:
    return module_of(tf, "python.training.training_util", our_training_util)


class Lab:
    """The arguments of a program: `tf`, a clock, a folder, the lines that are logged."""

    def __init__(self, tf: Any, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.tf = tf
        self.folder = folder
        self.now = 1.0e9
        self.slept: list[float] = []
        self.on_sleep: Callable[[], Any] = lambda: None
        self.records: list[str] = []
        patch.setattr(time, "time", lambda: self.now)
        patch.setattr(time, "sleep", self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.on_sleep()

    def lines(self) -> list[str]:
        """The lines logged since the last call."""
        never_used = "ERROR: =========="  # what the garbage collector finds of an earlier test
        found = [line for line in self.records if "deprecated" not in line and not line.startswith(never_used)]
        self.records.clear()
        return [line.replace(str(self.folder), "FOLDER") for line in found]

    def step_and_train(self, by: int = 1) -> tuple[Any, Any]:
        """The global step, and an operation that increases it after hooks have read it."""
        step = self.tf.train.get_or_create_global_step()
        with self.tf.control_dependencies([training_util(self.tf)._get_or_create_global_step_read()]):
            return step, self.tf.assign_add(step, by)

    def hooked(self, session: Any, *hooks: Any, fresh: bool = True) -> Any:
        """The session with hooks, all of which know that it is there."""
        if fresh:
            session.run(self.tf.global_variables_initializer())
        for hook in hooks:
            hook.after_create_session(session, None)
        module = module_of(self.tf, "python.training.monitored_session", wrapped_session)
        return module._HookedSession(session, hooks)

    def events(self) -> list[Any]:
        """The contents of the event files, in their order, since all writers were closed."""
        self.tf.summary.FileWriterCache.clear()
        paths = sorted(self.folder.glob("*tfevents*"))
        return [facts(event) for path in paths for event in self.tf.train.summary_iterator(str(path))]

    def tried(self, call: Callable[[], Any]) -> Any:
        """The result of a call, or its error."""
        try:
            return call()
        except Exception as error:
            return type(error).__name__, str(error).split("\n")[0].split("<")[0]


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The lines that are logged, with those that come only a few times counted from nought."""
    monkeypatch.setattr(our_logging, "_calls", Counter())
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(f"{record.levelname}: {record.getMessage()}")
    logger = logging.getLogger("tensorflow")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield lines
    logger.setLevel(logging.NOTSET)
    logger.removeHandler(handler)


@program.each()
def test_same_answer(run, tmp_path, monkeypatch, logged):
    def answer(tf):
        if tf is not dtflab:
            logging_of_tf = module_of(tf, "python.platform.tf_logging", our_logging)
            monkeypatch.setattr(logging_of_tf, "_log_counter_per_token", {})
        folder = tmp_path / tf.__name__.split(".")[0]
        folder.mkdir()
        lab = Lab(tf, folder, monkeypatch)
        lab.records = logged
        logged.clear()
        with tf.Graph().as_default():
            found = run(lab, tf), lab.lines()
        tf.summary.FileWriterCache.clear()
        return found

    theirs, ours = both(answer)
    assert ours == theirs


# -- when to act ---------------------------------------------------------------------------------------------------


@program
def timers(lab, tf):
    found = [
        lab.tried(lambda: tf.train.SecondOrStepTimer()),
        lab.tried(lambda: tf.train.SecondOrStepTimer(every_secs=1.0, every_steps=2)),
    ]
    for timer in (tf.train.SecondOrStepTimer(every_secs=2.0), tf.train.SecondOrStepTimer(every_steps=3)):
        found.append(timer.last_triggered_step())
        for step in (1, 1, 2, 3, 4, 4, 6, 7):
            found.append(timer.should_trigger_for_step(step))
            if found[-1]:
                found.append(timer.update_last_triggered_step(step))
            lab.now += 0.75
        found.append(timer.last_triggered_step())
        timer.reset()
        found += [timer.last_triggered_step(), timer.should_trigger_for_step(7)]
    return found


# -- stopping ------------------------------------------------------------------------------------------------------


@program
def stop_at_a_step(lab, tf):
    found = [
        lab.tried(lambda: tf.train.StopAtStepHook()),
        lab.tried(lambda: tf.train.StopAtStepHook(num_steps=1, last_step=1)),
        lab.tried(lambda: tf.train.StopAtStepHook(1).begin()),
    ]
    for hook in (tf.train.StopAtStepHook(last_step=10), tf.train.StopAtStepHook(num_steps=10)):
        with tf.Graph().as_default(), tf.Session() as session:
            step, _ = lab.step_and_train()
            at, nothing = tf.placeholder(tf.int64, []), tf.no_op()
            set_step = tf.assign(step, at)
            hook.begin()
            session.run(set_step, {at: 5})
            hooked = lab.hooked(session, hook, fresh=False)
            for value in (5, 9, 10, 13, 14, 15, 16):
                session.run(set_step, {at: value})
                hooked.run(nothing)
                found.append(hooked.should_stop())
                hooked._should_stop = False
    return found


@program
def a_loss_that_is_nan(lab, tf):
    loss = tf.placeholder(tf.float32, [])
    found = []
    for fail in (True, False):
        with tf.Session() as session:
            hooked = lab.hooked(session, tf.train.NanTensorHook(loss, fail_on_nan_loss=fail))
            for value in (1.0, np.inf, np.nan):
                found.append(lab.tried(lambda v=value, h=hooked: h.run(loss * 1, {loss: v}) == v))
                found.append(hooked.should_stop())
    return [*found, issubclass(tf.train.NanLossDuringTrainingError, RuntimeError)]


@program
def waiting_for_a_step(lab, tf):
    step, _ = lab.step_and_train()
    at, nothing = tf.placeholder(tf.int64, []), tf.no_op()
    set_step = tf.assign(step, at)
    hooks = [tf.train.GlobalStepWaiterHook(0), tf.train.GlobalStepWaiterHook(wait_until_step=3000)]
    for hook in hooks:
        hook.begin()
    with tf.Session() as session:
        steps = iter([500, 1001, 2002, 2900, 3000])
        lab.on_sleep = lambda: session.run(set_step, {at: next(steps)})
        hooked = lab.hooked(session, *hooks)
        hooked.run(nothing)
        session.run(set_step, {at: 0})
        hooked.run(nothing)
    return lab.slept


# -- looking -------------------------------------------------------------------------------------------------------


@program
def logged_tensors(lab, tf):
    t, pair = tf.constant(0.1, name="foo"), tf.constant([[1e-5, 2.0]], name="pair")
    tf.split(pair, 2, axis=1, name="two")
    nothing = tf.no_op()
    hook = tf.train.LoggingTensorHook
    hooks = [
        hook([t.name], every_n_iter=3), hook(["foo"], every_n_iter=3, at_end=True), hook({"a": t, "b": pair}, 4),
        hook({"z": "foo", "y": "pair:0"}, every_n_secs=2.5), hook([t.name], at_end=True),
        hook([t.name], every_n_iter=5, formatter=lambda values: f"I say {values}"),
    ]  # fmt: skip
    for each in hooks:
        each.begin()
    with tf.Session() as session:
        hooked = lab.hooked(session, *hooks)
        for _ in range(7):
            hooked.run(nothing)
            lab.now += 1.0
        for each in hooks:
            each.end(session)
    found = [
        lab.tried(lambda: hook(["t"], every_n_iter=0)), lab.tried(lambda: hook(["t"], every_n_iter=-10)),
        lab.tried(lambda: hook(["t"], every_n_iter=5, every_n_secs=5)), lab.tried(lambda: hook(["t"])),
        lab.tried(lambda: hook(["two"], 1).begin()), lab.tried(lambda: hook(["nowhere:0"], 1).begin()),
    ]  # fmt: skip
    with tf.Graph().as_default():
        found += [lab.tried(lambda: hook([t], 1).begin())[0]]
    return found, np.get_printoptions()["suppress"]


@program
def final_values(lab, tf):
    p = tf.placeholder(tf.float32)
    counter = tf.Variable(0, use_resource=False)
    hooks = [
        tf.train.FinalOpsHook(tf.constant(4)), tf.train.FinalOpsHook({"a": p * 2, "b": [p]}, {p: [4, -3]}),
        tf.train.FinalOpsHook(None), tf.train.FinalOpsHook(tf.count_up_to(counter, 0)),
    ]  # fmt: skip
    with tf.Session() as session:
        lab.hooked(session, *hooks)
        found = [(hook.begin(), hook.final_ops_values) for hook in hooks]
        found += [lab.tried(lambda h=hook: h.end(session)) or str(hook.final_ops_values) for hook in hooks[:3]]
        found += [lab.tried(lambda: hooks[3].end(session))[0]]
    lines = lab.lines()
    return found, [line[:90] for line in lines]


@program
def feeding(lab, tf):
    x = tf.placeholder(tf.float32)
    y = x + 1
    values = iter([1.0, 2.0])
    hook = tf.train.FeedFnHook(feed_fn=lambda: {x: next(values)})
    hook.begin()
    with tf.Session() as session:
        hooked = lab.hooked(session, hook)
        return [float(hooked.run(y)), float(hooked.run(y)), hook.feed_fn is not None]


# -- recording -----------------------------------------------------------------------------------------------------


@program
def steps_a_second(lab, tf):
    found = [
        lab.tried(lambda: tf.train.StepCounterHook(every_n_steps=1, every_n_secs=1)),
        lab.tried(lambda: tf.train.StepCounterHook(every_n_steps=None)),
        lab.tried(lambda: tf.train.StepCounterHook().begin()),
    ]
    for by, arguments in ((1, {"every_n_steps": 4}), (1, {"every_n_steps": None, "every_n_secs": 1.0}), (5, {})):
        with tf.Graph().as_default(), tf.Session() as session:
            _, train = lab.step_and_train(by)
            hook = tf.train.StepCounterHook(output_dir=str(lab.folder), **arguments)
            hook._set_steps_per_run(by)
            hook.begin()
            hooked = lab.hooked(session, hook)
            for _ in range(13):
                hooked.run(train)
                lab.now += 0.25
            hook.end(session)
            found.append([fact for fact in lab.events() if fact[1] not in ("graph_def", "meta_graph_def")])
        for path in lab.folder.iterdir():
            path.unlink()
    return found


@program
def a_step_that_stays(lab, tf):
    _, train = lab.step_and_train(0)
    hook = tf.train.StepCounterHook(every_n_steps=1)
    hook.begin()
    with tf.Session() as session:
        hooked = lab.hooked(session, hook)
        for _ in range(3):
            hooked.run(train)


@program
def saved_summaries(lab, tf):
    hook, folder = tf.train.SummarySaverHook, str(lab.folder)
    found = [lab.tried(lambda: hook()), lab.tried(lambda: hook(save_steps=1, scaffold=1, summary_op=1))]
    for arguments in ({"save_secs": 1, "save_steps": 2}, {}):
        found.append(lab.tried(lambda a=arguments: hook(summary_op=tf.constant("a"), **a)))
    found.append(lab.tried(lambda: hook(save_steps=1, summary_op=1).begin()))

    class Pieces:
        summary_op = None

    for arguments in ({"save_steps": 4}, {"save_secs": 0.5}, {"save_secs": 2.0}):
        for form in (lambda s: {"summary_op": s[0]}, lambda s: {"summary_op": s}, lambda s: {"scaffold": Pieces}):
            with tf.Graph().as_default(), tf.Session() as session:
                value = tf.assign_add(tf.Variable(0.0, use_resource=False), 1.0)
                summaries = [tf.summary.scalar("one", value), tf.summary.scalar("two", value * 2)]
                _, train = lab.step_and_train()
                each = hook(output_dir=folder, **arguments, **form(summaries))
                each.begin()
                hooked = lab.hooked(session, each)
                for _ in range(9):
                    hooked.run(train)
                    lab.now += 0.75
                each.end(session)
                found.append(lab.events())
            for path in lab.folder.iterdir():
                path.unlink()
    return found


@program
def checkpoints_and_listeners(lab, tf):
    calls: list[Any] = []

    class Listener(tf.train.CheckpointSaverListener):
        def begin(self):
            calls.append("begin")

        def before_save(self, session, global_step_value):
            calls.append(("before", int(global_step_value)))

        def after_save(self, session, global_step_value):
            calls.append(("after", int(global_step_value)))
            return global_step_value == 8

        def end(self, session, global_step_value):
            calls.append(("end", int(global_step_value)))

        def __repr__(self):
            return "Listener"

    found = []
    for name, arguments in (
        ("steps", {"save_steps": 4}),
        ("secs", {"save_secs": 1.0}),
        ("few", {"save_steps": 100, "save_graph_def": False, "checkpoint_basename": "base"}),
    ):
        lab.now += 10
        folder = lab.folder / name
        with tf.Graph().as_default(), tf.Session() as session:
            _, train = lab.step_and_train()
            saver = tf.train.Saver()
            hook = tf.train.CheckpointSaverHook(
                str(folder), saver=saver, listeners=[Listener(), tf.train.CheckpointSaverListener()], **arguments
            )
            hook.begin()
            hooked = lab.hooked(session, hook)
            for _ in range(9):
                lab.now += 0.3
                hooked.run(train)
                calls.append(hooked.should_stop())
                hooked._should_stop = False
            hook.end(session)
        tf.summary.FileWriterCache.clear()
        (events,) = folder.glob("*tfevents*")
        written = [facts(event) for event in tf.train.summary_iterator(str(events))]
        found.append([str(fact).replace(str(lab.folder), "FOLDER") for fact in written])
        found.append(sorted(path.name for path in folder.iterdir() if "tfevents" not in path.name))
    return calls, found


@program
def which_saver(lab, tf):
    folder = str(lab.folder)
    hook = tf.train.CheckpointSaverHook
    step, train = lab.step_and_train()

    class Pieces:
        saver = tf.train.Saver([step])

    found = [
        lab.tried(lambda: hook(folder, saver=1, scaffold=1, save_steps=1)), lab.tried(lambda: hook(folder)),
        lab.tried(lambda: hook(folder, save_secs=1, save_steps=1)),
    ]  # fmt: skip
    with tf.Graph().as_default():
        found.append(lab.tried(lambda: hook(folder, save_steps=1).begin()))
    with tf.Session() as session:
        for arguments in ({}, {"scaffold": Pieces}):
            each = hook(folder, save_steps=1, **arguments)
            each.begin()
            found.append(lab.tried(lambda e=each: lab.hooked(session, e).run(train)))
        for _ in range(2):
            tf.add_to_collection(tf.GraphKeys.SAVERS, Pieces.saver)
            each = hook(folder, save_steps=1)
            each.begin()
            found.append(lab.tried(lambda e=each: lab.hooked(session, e).run(train)))
    return [str(answer) for answer in found], sorted(p.name for p in lab.folder.iterdir() if "events" not in p.name)


@program
def traces(lab, tf):
    found = []
    folder = str(lab.folder)
    found.append(lab.tried(lambda: tf.train.ProfilerHook(save_steps=1, save_secs=1, output_dir=folder)))
    found.append(lab.tried(lambda: tf.train.ProfilerHook(save_steps=1, output_dir=folder).begin()))
    _, train = lab.step_and_train()
    hooks = [
        tf.train.ProfilerHook(save_steps=2, output_dir=str(lab.folder)),
        tf.train.ProfilerHook(save_secs=2, output_dir=str(lab.folder / "secs"), show_dataflow=False, show_memory=True),
    ]
    for hook in hooks:
        hook.begin()
    with tf.Session() as session:
        hooked = lab.hooked(session, *hooks)
        for _ in range(5):
            hooked.run(train)
            found.append(sorted(path.name for path in lab.folder.rglob("timeline-*")))
            lab.now += 1.5
    for path in sorted(lab.folder.rglob("timeline-*")):
        names = {event["name"] for event in json.loads(path.read_text())["traceEvents"]}
        found.append("AssignAdd" in names)
    tags = [fact for fact in lab.events() if fact[1] == "tagged_run_metadata"]
    return found, tags


# -- all together --------------------------------------------------------------------------------------------------


@program
def a_hook_of_ones_own(lab, tf):
    """Everything that a hook is called with."""
    calls: list[Any] = []

    class Mine(tf.train.SessionRunHook):
        def begin(self):
            calls.append("begin")

        def before_run(self, run_context):
            args = run_context.original_args
            calls.append((args.fetches.name, args.feed_dict, args.options, run_context.stop_requested))
            options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
            return tf.train.SessionRunArgs({"more": [b, a]}, {b: 7.0}, options)

        def after_run(self, run_context, run_values):
            results = {key: [float(v) for v in values] for key, values in run_values.results.items()}
            calls.append((results, run_values.options.trace_level, len(run_values.run_metadata.step_stats.dev_stats)))
            calls.append(run_context.session is session)
            run_context.request_stop()
            calls.append(run_context.stop_requested)

    a, b = tf.constant(1.0, name="a"), tf.placeholder(tf.float32, [], name="b")
    with tf.Session() as session:
        hooked = lab.hooked(session, Mine(), tf.train.SessionRunHook())
        calls += [float(hooked.run(a)), hooked.should_stop()]
    calls += [tf.train.SessionRunArgs(1), tf.train.SessionRunValues(1, 2, 3)]
    calls += [tf.train.SessionRunArgs._fields, lab.tried(lambda: tf.train.SessionRunValues(1))[0]]
    base = tf.train.SessionRunHook()
    calls += [base.begin(), base.before_run(None), base.after_run(None, None), base.end(None)]
    return [str(call) for call in calls]


@pytest.mark.parametrize("use_resource", [False, True])
def test_the_step_is_read_and_increased_by_tensorflows_nodes(use_resource):
    def build(tf):
        with tf.variable_scope("scope", use_resource=use_resource):
            tf.train.get_or_create_global_step()
        with tf.name_scope("elsewhere"):
            read = training_util(tf)._get_or_create_global_step_read()
            training_util(tf)._increment_global_step(2)
        assert training_util(tf)._get_or_create_global_step_read() is read

    assert_same_graph(build)


def test_signatures_are_tensorflows(real_tf):
    names = [n for n in dir(real_tf.train) if n.endswith(("Hook", "Listener", "Timer")) or n.startswith("SessionRun")]
    assert len(names) >= 16
    for name in names:
        theirs, ours = getattr(real_tf.train, name), getattr(dtflab.train, name)
        for method in ["__init__", *(m for m in vars(theirs) if not m.startswith("_"))]:
            their, our = getattr(theirs, method), getattr(ours, method)
            if inspect.isfunction(their):
                assert arguments(our) == arguments(their), f"{name}.{method}"


def arguments(function: Any) -> list[tuple[str, Any]]:
    """Names and defaults; that a test can give the clock is ours."""
    found = inspect.signature(function).parameters.values()
    return [(p.name, p.default) for p in found if p.name != "clock" and p.kind is not p.VAR_POSITIONAL]
