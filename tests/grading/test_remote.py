"""A hidden check and its answer in two processes: what travels, what stays, and which errors come back."""

from __future__ import annotations

import io
import json
import queue
import threading

import numpy as np
import pytest

import dtflab as tf
from dtflab.__main__ import main
from dtflab.grading import hidden, hidden_marks, plain, programs, watchdog
from dtflab.grading.answering import Answering
from dtflab.grading.batch import Graded
from dtflab.grading.device_functions import Variable, dense_net, watch
from dtflab.grading.judge import Report, Result
from dtflab.grading.otter import name_of
from dtflab.grading.questions import Question, Wrong, teachers_own
from dtflab.grading.remote import RUN_THERE, FunctionThere, Gone, Late, Link, NotPlain, RaisedThere, There, run_there
from dtflab.grading.submissions import Submission

PLAIN = [
    *(
        None,
        True,
        3,
        -(10**40),
        0.1,
        float("inf"),
        "ü\n",
        b"\x00\xff",
        [1, [2]],
        (1, "a", (2,)),
        {1, 2},
        frozenset({"a"}),
    ),
    *({"a": 1, (1, 2): [3]}, tf.float32, tf.string, Variable((3, 4), tf.int64, True)),
    *(programs.Ended(0, "out", ""), [{"there": 1}], {"here": 0}),
]


def nothing(value):
    raise AssertionError(f"{value!r} is plain")


@pytest.mark.parametrize("value", PLAIN, ids=repr)
def test_a_plain_value_arrives_as_it_was(value):
    found = plain.decode(json.loads(json.dumps(plain.encode(value, nothing))), nothing)
    assert found == value and type(found) is type(value)


ARRAYS = [np.arange(6.0).reshape(2, 3), np.array(7), np.float32(1.5), np.zeros((0, 2), np.int8), np.arange(6)[::2]]


@pytest.mark.parametrize("value", [*ARRAYS, np.array(["a", "bc"])], ids=repr)
def test_an_array_arrives_as_it_was(value):
    found = plain.decode(json.loads(json.dumps(plain.encode(value, nothing))), nothing)
    assert type(found) is type(value) and found.dtype == value.dtype and np.array_equal(found, value)


@pytest.mark.parametrize("value", [len, object(), np.array([object()]), range(3), type("Text", (str,), {})("a")])
def test_what_is_not_plain_stays(value):
    assert plain.encode(value, lambda found: ("kept", found)) == ("kept", value)


BAD = [{"record": ["os:stat_result", 1]}, {"dtype": "gone"}, {"a": 1, "b": 2}, {}]
BAD += [{"array": ["O", [1], False, "AAAAAAAAAAA="]}, {"array": ["<i4", [9**9], False, ""]}]


@pytest.mark.parametrize("bad", BAD)
def test_what_is_no_value_is_an_error_and_makes_nothing(bad):
    with pytest.raises((ValueError, KeyError, TypeError)):
        plain.decode(bad, lambda found: found["there"])


class Wire:
    """An answer's side on a thread of its own, and the link to it: all texts that pass are kept."""

    def __init__(self, answer):
        self.texts, calls = [], queue.SimpleQueue()

        class Lines(io.TextIOBase):
            readline = calls.get

        self.link = Link(lambda text: (self.texts.append(text), calls.put(text)))
        there = Answering(Lines(), self._reply)
        self.answer = self.link.value(there.kept(answer))
        self.thread = threading.Thread(target=there.serve)
        self.thread.start()

    def _reply(self, reply):
        self.texts.append(json.dumps(reply))
        self.link.hear(json.loads(self.texts[-1]))


@pytest.fixture
def wire():
    made = []

    def wire(answer):
        made.append(Wire(answer))
        return made[-1]

    yield wire
    for one in made:
        one.link.end()
        one.thread.join()


def ask(wire, *args, seconds=20.0, **kwargs):
    with wire.link.connected(seconds):
        return wire.answer(*args, **kwargs)


def test_an_answer_is_called_with_values_and_returns_one(wire):
    line = wire(lambda *args, **kwargs: (args, kwargs))
    assert ask(line, 1, [2.5], name="a") == ((1, [2.5]), {"name": "a"})
    assert isinstance(line.answer, FunctionThere) and "<lambda>" in repr(line.answer)
    assert 19 < line.link.seconds < 20, "what it took is taken away"


def test_a_function_stays_there_and_can_be_called_and_handed_back(wire):
    line = wire(lambda f=None: (lambda n: 2 * n) if f is None else f(4))
    double = ask(line)
    with line.link.connected(20):
        assert double(21) == 42 and line.answer(double) == 8


def test_an_object_stays_there_with_its_repr(wire):
    class Bad:
        def __repr__(self):
            raise ValueError

    line = wire(lambda bad: Bad() if bad else object())
    assert repr(ask(line, False)).startswith("<object object") and type(ask(line, False)) is There
    assert repr(ask(line, True)) == "<Bad, whose repr raises ValueError>"


def test_python_s_own_errors_are_raised_here_and_others_by_their_text(wire):
    def answer(kind):
        raise {
            "value": ValueError("no"),
            "stub": NotImplementedError(),
            "own": tf.errors.OutOfRangeError(None, None, "end"),
            "several": ExceptionGroup("two threads", [ValueError("one"), ValueError("two")]),
        }[kind]

    line = wire(answer)
    with pytest.raises(ValueError, match=r"^no$") as error:
        ask(line, "value")
    assert "test_remote.py" not in error.value.told and "raised ValueError: no" in error.value.told
    with pytest.raises(NotImplementedError):
        ask(line, "stub")
    with pytest.raises(RaisedThere, match="end"):
        ask(line, "own")
    with pytest.raises(RaisedThere, match=r"two threads \(2 sub-exceptions\)"):
        ask(line, "several")


def test_an_endless_answer_is_stopped_there(wire):
    def forever():
        while True:
            pass

    line = wire(forever)
    with pytest.raises(Late) as late:
        ask(line, seconds=0.2)
    assert (late.value.endless, late.value.deaf) == (True, False)


def test_what_an_answer_prints_comes_back(wire):
    line = wire(lambda: print("hello"))
    ask(line)
    assert line.link.output == "hello\n"


def test_an_answer_whose_process_has_ended_is_gone(wire):
    line = wire(lambda: 1)
    line._say = line.link._say
    line.link._say = lambda text: line.link.hear(None)
    with pytest.raises(Gone):
        ask(line)
    line.link._say = line._say


@pytest.mark.parametrize("thing", [len, tf.Graph(), object()], ids=["function", "graph", "object"])
def test_a_check_cannot_hand_over_what_is_not_plain(wire, thing):
    line = wire(lambda one: 1)
    with pytest.raises(NotPlain, match="hands numbers, texts"):
        ask(line, thing)


def test_a_function_of_the_package_runs_beside_the_answer(wire):
    """The device function is asked there, about a graph that is there; here is what was seen."""
    from random import Random

    line = wire(lambda ps, worker: lambda op: "/job:ps/task:1" if "V" in op.type else worker)
    with line.link.connected(20):
        seen = watch(line.answer(2, "/job:worker/task:0"), dense_net(Random(0)), 2, "/job:worker/task:0")
    assert set(seen.choices) == {1} and seen.variables == dense_net(Random(0))
    with line.link.connected(20), pytest.raises(Wrong, match="it returned 'nowhere:1'; expected"):
        watch(line.answer(2, "nowhere:1"), dense_net(Random(0)), 2, "/job:worker/task:0")


def test_a_forged_list_of_ops_does_not_shorten_what_is_judged(wire, monkeypatch):
    """An answer can replace the function that looks on next to it."""
    from random import Random

    monkeypatch.setitem(RUN_THERE, "dtflab.grading.device_functions:_asked", lambda *given: [])
    line = wire(lambda ps, worker: lambda op: worker)
    with line.link.connected(20), pytest.raises(Wrong, match="0 have asked for a device"):
        watch(line.answer(2, "/job:worker/task:0"), dense_net(Random(0)), 2, "/job:worker/task:0")


def test_beside_nothing_a_function_runs_here():
    assert run_there(lambda n: n + 1)(1) == 2


# -- the judge of hidden checks -------------------------------------------------------------------------------


@pytest.fixture
def question():
    question = Question("numbers/q9", "Double it", "twice", ("Add it.",))
    question.check("Public", points=1)(lambda answer, random: None)
    with teachers_own():

        @question.check("Secret number", points=3)
        def secret(answer, random):
            number = random.randrange(10**9)
            if (got := answer(number)) != 2 * number:
                raise Wrong(f"got {got}", evidence=(number, got))

        @question.check("More", points=2)
        def more(answer, random):
            assert answer(1) == 2, "expected: 2"

    @question.mistake("That is the square.")
    def squares(seen):
        return seen[1] == seen[0] ** 2

    return question


def report(wire, question, answer, public=None):
    line = wire(answer)
    return hidden.report(
        question.part(hidden=True), public, {"there": [0, "f", True, ""]}, line.link, "winter", "ada"
    ), line


def test_hidden_checks_are_those_that_a_teacher_registers(question):
    assert [check.name for check in question.part(hidden=True).checks] == ["secret", "more"]
    assert [check.name for check in question.part(hidden=False).checks] == ["<lambda>"]


def test_a_right_and_a_wrong_answer(wire, question):
    assert report(wire, question, lambda n: 2 * n)[0].points == 5
    found, line = report(wire, question, lambda n: n * n)
    assert found.points == 0 and found.results[0].hint == "That is the square."
    for secret in ("winter", "expected", "Secret", "square", "more"):
        assert not [text for text in line.texts if secret in text], "only numbers have passed"


def test_numbers_follow_from_the_seed_and_the_student(wire, question):
    def number(answer):
        return int(answer.results[0].message.split()[1])

    first, again = (number(report(wire, question, lambda n: n)[0]) for _ in range(2))
    assert first == again


def test_after_an_endless_check_no_other_is_tried(wire, question):
    def forever(n):
        while True:
            pass

    question.checks[1] = question.checks[1]._replace(seconds=0.2)
    first, second = report(wire, question, forever)[0].results
    assert first.message == "Stopped after 0.2 s: twice does not come to an end."
    assert second.message == "Not tried, because the answer did not come to an end in the check before."


def test_a_starved_answer_is_not_judged(wire, question, monkeypatch):
    outcome = watchdog.Outcome()
    outcome.stopped = outcome.starved = True
    call = watchdog.call
    monkeypatch.setattr(watchdog, "call", lambda f, s, *w: outcome if s < hidden.PATIENCE else call(f, s, *w))
    found, _ = report(wire, question, lambda n: 2 * n)
    assert [result.starved for result in found.results] == [True, True] and found.points == 0
    assert found.results[0].message.startswith("Not judged, run it again")


def test_a_check_that_hands_over_a_graph_is_the_teachers_mistake(wire, question):
    question.checks[1] = question.checks[1]._replace(judge=lambda answer, random: answer(tf.Graph()))
    first, second = report(wire, question, lambda n: 2 * n)[0].results
    assert first.broken and "not dtflab.graph.graph.Graph" in first.message and second.passed


def test_what_hands_over_a_graph_is_not_taken_for_an_error_of_the_answer(wire):
    line = wire(lambda one: 1)
    with line.link.connected(20), pytest.raises(NotPlain):
        try:
            line.answer([{"graph": tf.Graph()}])
        except Exception:
            raise AssertionError("a check that expects an error would have judged") from None


def a_graph(n):
    with tf.Graph().as_default() as graph:
        tf.constant(n, name="n")
    return graph


def a_tensor(n):
    return a_graph(n).get_tensor_by_name("n:0")


KINDS = {"graph": (a_graph, tf.Graph), "tensor": (a_tensor, tf.Tensor)}
KINDS["operation"] = (lambda n: a_tensor(n).op, tf.Operation)
KINDS["session"] = (lambda n: tf.Session(graph=a_graph(n)), tf.Session)
KINDS["own graph"] = (lambda n: type("Mine", (tf.Graph,), {})(), tf.Graph)


@pytest.mark.parametrize("name", KINDS)
def test_an_object_of_the_library_has_its_kind_and_nothing_else(wire, name):
    made, kind = KINDS[name]
    line = wire(made)
    found = ask(line, 3)
    assert (
        isinstance(found, kind) and not isinstance(found, tf.Variable | int) and type(found) in (There, FunctionThere)
    )
    with pytest.raises(NotPlain, match=r"asked for graph of .* returned\. .*plain values.*public one"):
        found.graph  # noqa: B018


def test_an_object_of_the_library_can_be_handed_back(wire):
    def answer(n, tensor=None):
        return a_tensor(n) if tensor is None else n + int(tf.Session(graph=tensor.graph).run(tensor))

    line = wire(answer)
    assert ask(line, 4, tensor=ask(line, 3)) == 7


def test_a_check_that_looks_into_a_graph_is_the_teachers_mistake(wire, question):
    def looks(answer, random):
        assert [op.name for op in answer(3).get_operations()] == ["n"]

    question.checks[1] = question.checks[1]._replace(judge=looks)
    first = report(wire, question, a_graph)[0].results[0]
    assert first.broken and "get_operations of <dtflab Graph: 1 operations>" in first.message, first.message


JUDGES = {
    "compares": lambda got: got == 6,
    "calculates": lambda got: abs(got - 6) < 1,
    "NumPy": lambda got: np.allclose(got, 6),
    "its kind": lambda got: isinstance(got, int),
    "a list": lambda got: list(got) == [6],
}


@pytest.mark.parametrize("name", JUDGES)
def test_a_tensor_in_the_place_of_its_value_is_the_answers_mistake(wire, question, name):
    def judge(answer, random):
        if not JUDGES[name](got := answer(3)):
            raise Wrong(f"got {got}")

    question.checks[1] = question.checks[1]._replace(judge=judge)
    first = report(wire, question, a_tensor)[0].results[0]
    assert not first.passed and not first.broken, first


def test_a_graph_travels_as_the_bytes_of_its_graphdef(wire):
    """The answer can import what it gets, and what it returns can be read without being run."""

    def answer(serialized):
        with tf.Graph().as_default() as graph:
            tf.import_graph_def(tf.GraphDef.FromString(serialized), name="")
            tf.constant(2, name="more")
        return graph.as_graph_def().SerializeToString()

    found = tf.GraphDef.FromString(ask(wire(answer), a_graph(1).as_graph_def().SerializeToString()))
    assert [node.name for node in found.node] == ["n", "more"]


def test_a_forged_kind_makes_nothing(wire):
    line = wire(lambda: 1).link
    for kind in ("os:system", "dtflab.grading.remote:run_there", "dtflab.nowhere:Graph", "sys:modules", "dtflab.:", 3):
        assert line.value({"there": [0, "f", False, kind]}).__class__ is There


def test_no_answer_gets_nothing_and_is_told_what_to_do(question):
    found = hidden.report(question.part(hidden=True), None, None, Link(nothing), "0", "ada")
    assert found.as_shipped and "There is no twice yet" in found.next_step


def test_otters_results_do_not_say_passed_of_a_check_that_had_no_answer(question, tmp_path):
    results = tmp_path / "results.json"
    results.write_text('{"tests": []}')
    found = hidden.report(question.part(hidden=True), None, None, Link(nothing), "0", "ada")
    hidden_marks.to_otter([Graded(Submission(tmp_path / "a.ipynb", "ada", "hw1", ""), [found])], results)
    (test,) = json.loads(results.read_text())["tests"]
    assert test["score"] == 0 and "passed" not in test["output"] and "There is no twice yet" in test["output"]


def test_what_was_not_judged_is_not_written_and_is_said(question, tmp_path):
    results = tmp_path / "results.json"
    results.write_text('{"tests": []}')
    part = question.part(hidden=True)
    (check, *_) = part.checks
    ada, bob, eve = (Submission(tmp_path / f"{name}.ipynb", name, "hw1", "") for name in ("ada", "bob", "eve"))
    judged, starved = (Report(question, [Result(check, True, starved=one)], "0", "") for one in (False, True))
    graded = [Graded(bob, [judged], failed="It is not a notebook."), Graded(eve, [starved]), Graded(ada, [judged])]
    said = hidden_marks.to_otter(graded, results)
    assert [text.partition(":")[0] for text in said] == ["bob", "eve"] and "not judged" in said[0]
    assert [test["score"] for test in json.loads(results.read_text())["tests"]] == [check.points]


def test_public_points_that_differ_are_said_with_the_student(question, tmp_path):
    results = tmp_path / "results.json"
    (check, *_) = question.part(hidden=False).checks
    graded = [
        Graded(Submission(tmp_path / "a.ipynb", "ada", "hw1", ""), [Report(question, [Result(check, True)], "0", "")])
    ]
    for theirs, told in ((check.points, []), (check.points + 2, [f"ada: otter has {check.points + 2} points for "])):
        results.write_text(json.dumps({"tests": [{"name": name_of(question), "score": theirs}]}))
        said = hidden_marks.to_otter(graded, results)
        assert [text[: len(told[0])] for text in said] == told, said


@pytest.mark.processes
def test_a_file_that_cannot_be_graded_keeps_no_hidden_points_back(monkeypatch, tmp_path):
    given = []
    monkeypatch.setattr(hidden_marks, "to_otter", lambda graded, results: given.extend(graded) or [])
    (tmp_path / "bob.ipynb").write_text("not a notebook")
    (tmp_path / "results.json").write_text('{"tests": []}')
    with pytest.raises(SystemExit, match="1"):
        main(["grade", str(tmp_path / "bob.ipynb"), "--otter-results", str(tmp_path / "results.json")])
    assert [one.submission.student for one in given] == ["bob"]


def test_a_secret_seed_is_not_told():
    assert hidden.seed_for("0", "ada") == "0"
    told = {hidden.seed_for("winter", name) for name in ("ada", "bob")}
    assert len(told) == 2 and not [text for text in told if "winter" in text or "ada" in text]
