"""Many wait on a wire, and give up: those who wait cost nobody anything, and leave nothing."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.cluster.answering import ServerCall
from dtflab.graph.apply_op import apply_op
from dtflab.protos import master_pb2 as master_messages, worker_pb2 as worker_messages
from tests.cluster.raw_client import a_session
from tests.cluster.two_tasks import HERE, THERE, edge_key, in_threads, never, until
from tests.runtime.ops import op


def test_two_hundred_waiting_calls_keep_nobody_from_being_served(lab, raw, fresh_graph):
    waits = never(HERE)
    quick = tf.constant(4.0) + 1.0
    handle = a_session(raw, fresh_graph)
    step = master_messages.RunStepRequest(session_handle=handle, fetch=[waits.name]).SerializeToString()
    answers = []
    gave_up = [
        raw.wire.start(raw.path("RunStep"), [step], lambda data, error: answers.append(error)) for _ in range(100)
    ]
    key = edge_key(lab.tasks[0])
    for number in range(100):
        gave_up.append(lab.worker(0).recv_tensor(1000 + number, key, lambda value, error: answers.append(error)))
    until(lambda: lab.waiting() == 200, "200 calls wait")
    with lab.session() as sess:
        assert sess.run(quick) == 5
    assert raw("GetStatus", worker_messages.GetStatusRequest()).device_attributes
    assert not answers
    for give_up in gave_up:
        give_up()
    until(lambda: len(answers) == 200, "all have given up")
    assert all(isinstance(error, errors.CancelledError) for error in answers)
    until(lambda: lab.waiting() == 0, "nothing waits for those who are gone")


def test_a_client_that_gives_up_ends_its_step_on_all_tasks(lab, raw, fresh_graph):
    waits = never(HERE)
    with tf.device(THERE):
        both = tf.group(waits, tf.identity(never(THERE)))
    handle = a_session(raw, fresh_graph)
    step = master_messages.RunStepRequest(session_handle=handle, target=[both.name]).SerializeToString()
    give_up = raw.wire.start(raw.path("RunStep"), [step])
    until(lambda: lab.waiting() >= 2, "both tasks wait")
    give_up()
    until(lambda: not lab.waiting() and not lab.steps(), "nobody waits")


@pytest.mark.parametrize("method", ["RunStep", "RegisterGraph"])
def test_a_graph_is_registered_only_as_long_as_somebody_waits(lab, raw, fresh_graph, monkeypatch, method):
    begun, gone, over, bound, answers = threading.Event(), threading.Event(), threading.Event(), [], []
    was_gone, was_answered = ServerCall.gone, ServerCall.answered

    def is_gone(call, why=None):
        was_gone(call, why)
        if call not in answers:  # gRPC also reports the end of a call that was answered
            gone.set()

    def answered(call):
        was_answered(call)
        answers.append(call)
        if call.is_gone:
            over.set()

    def bind(node, xp):
        bound.append(node.name)
        begun.set()
        assert gone.wait(60)
        return lambda: np.float32(0)

    monkeypatch.setattr(ServerCall, "gone", is_gone)
    monkeypatch.setattr(ServerCall, "answered", answered)
    with op("Slow() -> (y: float)", None, bind=staticmethod(bind)), tf.device(HERE):
        both = tf.group(*(apply_op("Slow") for _ in range(2)))
        if method == "RunStep":
            request = master_messages.RunStepRequest(session_handle=a_session(raw, fresh_graph), target=[both.name])
        else:
            raw("CreateWorkerSession", worker_messages.CreateWorkerSessionRequest(session_handle="s"))
            request = worker_messages.RegisterGraphRequest(session_handle="s", graph_def=fresh_graph.as_graph_def())
            for node in request.graph_def.node:
                node.device = "/job:lab/replica:0/task:0/device:CPU:0"
        give_up = raw.wire.start(raw.path(method), [request.SerializeToString()])
        assert begun.wait(60)
        give_up()
        assert over.wait(60)
    assert len(bound) == 1


def test_a_client_s_deadline_is_kept(lab, raw, fresh_graph):
    waits = never(HERE)
    step = master_messages.RunStepRequest(session_handle=a_session(raw, fresh_graph), fetch=[waits.name])
    with pytest.raises(errors.DeadlineExceededError):
        raw("RunStep", step, timeout=0.2)
    until(lambda: not lab.waiting(), "the step has ended there, too")


def test_stopping_a_task_tells_those_who_wait_there(lab, fresh_graph):
    waits = never(HERE)
    with lab.session() as sess:

        def client(number):
            with fresh_graph.as_default():
                return sess.run(waits)

        found = []
        thread = threading.Thread(target=lambda: found.extend(in_threads(3, client)), daemon=True)
        thread.start()
        until(lambda: lab.waiting() == 3, "three clients wait")
        lab.serving[0].stop()
        thread.join(60)
        assert [type(error) for error in found] == [errors.UnavailableError] * 3
        assert "/job:lab/replica:0/task:0" in str(found[0]) and "stopped" in str(found[0])
        with pytest.raises(errors.UnavailableError, match=r"does not answer.*\nIs it still running"):
            sess.run(tf.constant(1))


def test_ctrl_c_ends_a_step_elsewhere():
    """In a process of its own: the signal goes to its main thread, which waits for an answer."""
    program = (
        "import dtflab as tf, os, signal, threading\n"
        "from tests.cluster.two_tasks import *\n"
        "with lab_over('grpc') as lab, tf.Graph().as_default():\n"
        "    waits, quick = never(), tf.constant(5)\n"
        "    with lab.session() as sess:\n"
        "        def interrupt():\n"
        "            until(lambda: lab.waiting() == 1, 'it waits')\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "        threading.Thread(target=interrupt).start()\n"
        "        try: sess.run(waits)\n"
        "        except KeyboardInterrupt: print('interrupted')\n"
        "        until(lambda: lab.waiting() == 0, 'the step has ended')\n"
        "        print(sess.run(quick))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.stderr) == ("interrupted\n5\n", "")


@pytest.mark.parametrize("lab", ["grpc"], indirect=True)
def test_a_call_that_meets_a_server_as_it_stops(lab):
    """gRPC ends it with a bare CANCELLED, as if its caller had given up; code that recovers looks for UNAVAILABLE."""
    answers = []
    worker = lab.worker(0)
    worker.get_status()  # connected
    server = lab.serving[0]._server._server
    with server._state.lock:  # nobody takes calls while we hold it
        for step in range(3):
            worker.recv_tensor(step, "never sent", lambda value, error: answers.append(error))
        ended = server.stop(0)
        until(lambda: len(answers) >= 2, "the calls that nobody had taken are answered")
    assert [type(error) for error in answers[:2]] == [errors.UnavailableError] * 2
    ended.wait()
