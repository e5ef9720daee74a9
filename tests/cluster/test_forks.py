"""Processes that `multiprocessing` starts, by fork (Linux's default before Python 3.14) and by spawn.

Each program has a process of its own: a fork of the tests' process would copy what other tests loaded into it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import dtflab as tf
from dtflab.cluster import negotiation
from tests.cluster.one_file_cluster import LAST_STEP, WORKERS
from tests.cluster.two_tasks import until
from tests.house import ROOT

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")

DRAWN = """
import json, multiprocessing
import dtflab as tf

FUNCTION = tf.py_func(lambda: 1.0, [], tf.float64)  # made before the fork, so that each child has it
SESSION = tf.Session()
SESSION.run(FUNCTION)  # the parent has drawn, too

def drawn():
    assert tf.Session(graph=FUNCTION.graph).run(FUNCTION) == 1.0
    with tf.Graph().as_default(), tf.Session() as session:
        queue = tf.RandomShuffleQueue(9999, 0, tf.int32, [[]])
        one, number = tf.constant(1), tf.random_uniform([], maxval=2**31 - 1, dtype=tf.int32)
        session.run(queue.enqueue_many(tf.range(9999)))
        return {
            "step": session.partial_run_setup([one + 1], [one]),
            "session": session.handle,
            "incarnation": session.list_devices()[0].incarnation,
            "function": tf.py_func(lambda: 2.0, [], tf.float64).op.get_attr("token").decode(),
            "random op": int(session.run(number)),
            "queue": session.run(queue.dequeue_many(9)).tolist(),
            "data set": session.run(
                tf.data.make_one_shot_iterator(tf.data.Dataset.range(9999).shuffle(9999).batch(9)).get_next()
            ).tolist(),
        }

def child(there):
    there.send(drawn())

if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    pipes = [context.Pipe() for _ in range(3)]
    children = [context.Process(target=child, args=(there,)) for _, there in pipes]
    for process in children:
        process.start()
    all_drawn = [drawn(), *(here.recv() for here, _ in pipes)]
    for process in children:
        process.join()
    print(json.dumps(all_drawn))
"""


def answer_of(*command: str) -> object:
    """The last line that a program prints, parsed. Its processes end with it, also if it does not end by itself."""
    program = subprocess.Popen(
        [sys.executable, *command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        out, said = program.communicate(timeout=120)  # it takes seconds; a machine may be busy
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        program.communicate()
    assert program.returncode == 0 and "has ended" not in said, f"{out}\n{said}"
    return json.loads(out.splitlines()[-1])


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_the_workers_of_one_program_train_together(method):
    result = answer_of(str(Path(__file__).parent / "one_file_cluster.py"), method)
    assert result["exits"] == [0] * WORKERS
    assert LAST_STEP <= result["global_step"] < LAST_STEP + WORKERS
    assert result["updates"] == result["global_step"] == sum(result["counted"].values())


def test_forked_processes_draw_different_ids_and_seeds(tmp_path):
    (tmp_path / "program.py").write_text(DRAWN)
    all_drawn = answer_of(str(tmp_path / "program.py"))
    assert len(all_drawn) == 4
    for what in all_drawn[0]:
        found = [str(drawn[what]) for drawn in all_drawn]
        assert len(set(found)) == len(found), f"{what}: {found}"


LINKED = """
import gc, json, os
import dtflab as tf
from dtflab.cluster import negotiation

with tf.Cluster(worker=1, engine="process") as cluster:
    x = tf.constant(2.0) + 3.0
    session = tf.Session(cluster.target)
    session.run(x)
    (link,) = negotiation._links.values()
    child = os.fork()
    if not child:
        seen = len(negotiation._links)
        link.close()
        os._exit(seen)
    _, status = os.waitpid(child, 0)
    print(json.dumps([os.waitstatus_to_exitcode(status), float(session.run(x)), link.lost, len(negotiation._links)]))
"""


def test_a_forked_child_leaves_its_parent_s_link_alone(tmp_path):
    (tmp_path / "program.py").write_text(LINKED)
    assert answer_of(str(tmp_path / "program.py")) == [0, 5.0, "", 1]


HELD = """
import os, sys
import dtflab as tf

with tf.Session(sys.argv[1]) as session:
    assert session.run(tf.constant(2.0) + 3.0) == 5.0
    if not os.fork():
        sys.stdin.read()
        os._exit(0)
    print("up", flush=True)
    sys.stdin.read()
"""


def test_a_forked_child_does_not_keep_the_link_of_a_parent_that_is_killed(tmp_path):
    """The task at the other end must learn that nobody waits for its answers."""
    (tmp_path / "program.py").write_text(HELD)
    server = tf.train.Server.create_local_server()
    command = [sys.executable, str(tmp_path / "program.py"), server.target]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as parent:
        assert parent.stdout.readline() == "up\n"
        links = [link for (own, _), link in negotiation._links.items() if own == server.task.address]
        assert links
        parent.kill()
        until(lambda: all(link.lost for link in links), "the task knows")
        parent.stdin.close()
    server.stop()
