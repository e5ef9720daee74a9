"""An answer that may open no session can't let a thread open it; what ran before it may run as many as it likes."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import random
import sys
import threading
import types

import pytest

import dtflab as tf
from dtflab.grading import device_functions, watchdog
from dtflab.grading.catalogue import find
from dtflab.grading.checks import (
    data_rules,
    many,
    many_ensemble,
    memory,
    memory_batch,
    placement_pins,
    shared,
    shared_lookup,
)
from dtflab.grading.judge import judge
from dtflab.grading.questions import Wrong
from dtflab.grading.unaided import by_itself
from dtflab.ops.queues.shared_accumulator import DenseAccumulator, Take
from dtflab.runtime import placer


def runs():
    with tf.Graph().as_default():
        one = tf.constant(1)
        with tf.Session() as sess:
            return sess.run(one)


def in_a_thread():
    thread = threading.Thread(target=runs)
    thread.start()
    thread.join()


def under_the_name_of_another():
    thread = threading.Thread(target=runs, name=threading.main_thread().name)
    thread.start()
    thread.join()


@pytest.mark.parametrize("answer", [runs, in_a_thread, under_the_name_of_another])
def test_a_session_is_refused(answer):
    with pytest.raises(Wrong, match=f"{answer.__name__} opened a session"):
        by_itself(answer, may_run=False)


def by_the_rule_of_the_check(pin, gpu_kernel, devices, master):
    case = placement_pins.Case(pin, gpu_kernel, devices, master)
    for device in [*devices, None]:
        seen = placement_pins.Seen([placement_pins.Given(case, device, None)])
        if placement_pins._best_of(seen, placement_pins.Case.may_be):
            return device


def by_the_check_s_map_of_rows(shards, ids, block_rows):
    task, number = shared_lookup.Case(len(shards), block_rows, None, ()).home(ids)
    which = tf.dynamic_partition(tf.range(tf.size(ids)), task, len(shards))
    rows = tf.dynamic_partition(number, task, len(shards))
    found = []
    for shard, mine in zip(shards, rows):
        with tf.colocate_with(shard):
            found.append(tf.gather(shard, mine))
    return tf.dynamic_stitch(which, found)


def in_a_thread_of_its_own(*args):
    found = []
    thread = threading.Thread(target=lambda: found.append(by_the_rule_of_the_check(*args)))
    thread.start()
    thread.join()
    return found[0]


def while_nobody_looks(*args):
    sys.setprofile(None)
    return by_the_rule_of_the_check(*args)


def while_nobody_looks_by_way_of_c(*args):
    looks = sys.getprofile()
    list(map(sys.setprofile, [None]))
    found = by_the_rule_of_the_check(*args)
    functools.partial(sys.setprofile, looks)()
    return found


def by_way_of_the_watchdog(*args):
    case = placement_pins.Case(*args)
    for device in args[2]:
        if watchdog.call(functools.partial(case.may_be, device), 2.0, 2.0).value:
            return device
    return None


def by_a_copy_of_the_rule(*args):
    case, rule = placement_pins.Case(*args), placement_pins.Case.may_be
    copy = types.FunctionType(rule.__code__.replace(co_filename="mine.py"), rule.__globals__)
    return next((device for device in args[2] if copy(case, device)), None)


def in_a_child(*args):
    ours, theirs = os.pipe()
    if not os.fork():
        sys.setprofile(None)
        os.write(theirs, str(by_the_rule_of_the_check(*args)).encode())
        os._exit(0)
    os.wait()
    found = os.read(ours, 99).decode()
    return None if found == "None" else found


def by_the_placer_of_the_library(pin, gpu_kernel, devices, master):
    with tf.Graph().as_default() as graph, tf.device(pin):
        tf.zeros([]) if gpu_kernel else tf.constant("")
        nodes = graph.nodes()
    with contextlib.suppress(tf.errors.InvalidArgumentError):
        return placer.place(nodes, devices, master)[nodes[-1].name]


def by_bytes_of_the_check(ps_tasks, worker):
    held = [0] * ps_tasks

    def device(op):
        if "Var" not in op.type:
            return worker
        task = held.index(min(held))
        held[task] += device_functions.Variable(tf.TensorShape(op.get_attr("shape")), op.get_attr("dtype")).bytes
        return f"/job:ps/task:{task}"

    return device


def if_the_check_can_start_them(programs, cards, need, memory_bytes):
    case = memory.Case(programs, cards, need >> 20, memory_bytes >> 20)
    grows = tf.ConfigProto()
    grows.gpu_options.allow_growth = True
    pairs = [(str(program % cards), grows) for program in range(programs)]
    return pairs if memory._start(case, pairs) is None else None


def by_steps_that_nobody_counts(step, most):
    return next(number for number in range(most, -1, -1) if step.__self__.fits(number))


def by_the_check_s_best_three(results, images):
    members = [many_ensemble.Member(result, {}, None) for result in results]
    shares = []
    for one in (member.result for member in many_ensemble.best_three(members)):
        with tf.device(one.device), tf.container(one.container):
            shares.append(tf.nn.softmax(many.net(images, one.hidden, one.container)))
    return tf.argmax(tf.add_n(shares), axis=1)


def by_what_the_check_finds_left(target, build, path):
    left = shared._left(build.__self__, target)
    build()
    with tf.Session(target) as sess:
        tf.train.Saver([v for v in tf.global_variables() if v.op.name in left]).save(sess, path)
    return [v.op.name for v in tf.global_variables() if v.op.name not in left]


def by_the_accumulator_of_the_library():
    inside = DenseAccumulator("inside", tf.float64, tf.TensorShape(None), "MEAN")

    def take(required):
        means = [None]
        if inside.num_accumulated >= required:
            inside.take(Take(required, lambda mean, error: means.append(mean)))
        return means[-1]

    return lambda gradient, step: inside.apply(step, (gradient,)), take


def the_check_s_own_pair():
    """Functions of the checks themselves, made before anybody looks."""
    inside = data_rules.Library(tf.TensorShape([]))
    return inside.push, inside.take


ATTACKS = {
    "data/q2": [by_the_accumulator_of_the_library, the_check_s_own_pair],
    "many/q2": [by_the_check_s_best_three],
    "memory/q1": [if_the_check_can_start_them],
    "memory/q2": [by_steps_that_nobody_counts],
    "placement/q1": [by_bytes_of_the_check],
    "placement/q2": [
        *(by_the_rule_of_the_check, in_a_thread_of_its_own, while_nobody_looks, by_the_placer_of_the_library),
        *(while_nobody_looks_by_way_of_c, by_way_of_the_watchdog),
        *(by_a_copy_of_the_rule, in_a_child),
    ],
    "shared/q1": [by_what_the_check_finds_left],
    "shared/q2": [by_the_check_s_map_of_rows],
}


TRIED = [
    pytest.param(id, answer, marks=[pytest.mark.processes] * (answer is in_a_child))
    for id, answers in ATTACKS.items()
    for answer in answers
]


@pytest.mark.parametrize("id, answer", TRIED)
def test_a_rule_that_stands_elsewhere_is_no_answer(id, answer):
    question = find(id)
    report = judge(question.only(question.checks[0].name), {question.answer: answer}, "0", "", wall=math.inf)
    assert report.points == 0
    assert "The answer calls" in report.results[0].message
    assert ". Here you write the rule yourself." in report.results[0].message
    assert sys.getprofile() is threading.getprofile() is None


def test_what_an_answer_was_given_it_may_call():
    model = memory_batch.FakeModel(3)
    assert by_itself(lambda step: step(2), model.step) == 1.0
    with pytest.raises(Wrong, match=r"The answer calls fits of dtflab\.grading\.checks\.memory_batch"):
        by_itself(lambda step: model.fits(2), model.step)


def test_the_model_that_is_to_be_rescued_does_not_say_what_is_lost():
    case, told = shared._draw(random.Random(0), [*shared.ON_PS, *shared.ELSEWHERE]), []
    shared._asked(lambda target, build, path: told.append(build.__self__), case, "", "")
    assert case.lost and set(told[0].homes) == set(case.homes) and told[0].lost == []


def test_the_session_of_a_thread_that_ran_before_is_not_the_answers():
    go, gone = threading.Event(), threading.Event()

    def meanwhile():
        go.wait()
        runs()
        gone.set()

    def answer():
        go.set()
        assert gone.wait(60)
        return 3

    thread = threading.Thread(target=meanwhile)
    thread.start()
    assert by_itself(answer, may_run=False) == 3
    thread.join()
