"""The magics about state and traffic, in IPython's shell."""

from __future__ import annotations

import re

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.utils.capture import capture_output

from dtflab.viz import Picture
from tests.notebook.cells import cell, magic


def test_dtf_vars_draws_what_the_newest_session_reaches_or_a_cluster(model):
    picture = magic(model, "%dtf_vars", "p")
    assert isinstance(picture, Picture) and "ps:0" in str(picture) and "v" in str(picture)
    assert str(magic(model, "%dtf_vars cluster", "q")) == str(picture)


def test_dtf_vars_without_variables_and_without_a_session_says_what_to_do(shell):
    assert "No session is open" in cell(shell, "%dtf_vars")
    magic(shell, "%dtf_cluster --worker 1", "cluster")
    assert "its initializer runs" in cell(shell, "%dtf_vars")  # the only cluster
    assert "Unknown option --all" in cell(shell, "%dtf_vars --all")
    assert "3 is neither a cluster nor a session, but a int" in cell(shell, "%dtf_vars 3")


def test_dtf_queues_shows_them_now_and_their_course(model):
    model.run_cell("""q = tf.FIFOQueue(3, [tf.float32], shared_name="letters")
put = q.enqueue(1.0)
with tf.Session(cluster.target) as other, tf.watch() as seen:
    other.run(put)
    other.run(put)
sess = tf.Session(cluster.target); _ = sess.run(q.size())""").raise_error()
    assert "2 of 3" in str(magic(model, "%dtf_queues", "now"))
    assert "2 of 3" in str(magic(model, "%dtf_queues cluster", "now"))
    course = str(magic(model, "%dtf_queues seen", "course"))
    assert "letters" in course and "waited to put" in course


def test_dtf_queues_without_a_queue_says_so(model):
    with capture_output() as shown:
        now = magic(model, "%dtf_queues", "now")
    assert str(now).startswith("No queue exists yet") and not shown.outputs, "one picture"


def test_dtf_wire_runs_once_and_draws(model):
    picture = magic(model, "%dtf_wire y --feed {x: [1.0, 2.0]}", "p")
    assert "RunStep" in str(picture) and "RecvTensor" in str(picture)
    assert "Name the fetches to run" in cell(model, "%dtf_wire")
    assert "a step of a watch" in cell(model, "%dtf_wire y --step 1")


def test_dtf_wire_draws_one_step_of_a_watch(model):
    model.run_cell("""with tf.watch() as seen:
    for _ in range(3): sess.run(y, {x: [1.0, 2.0]})""").raise_error()
    whole, last = (str(magic(model, f"%dtf_wire seen{step}", "p")) for step in ("", " --step -1"))
    assert re.search(r"RunStep +client +worker:0 +3  48\n", whole)
    assert re.search(r"RunStep +client +worker:0 +1  16\n", last)  # two float32 fed, two fetched
    assert "no step 7" in cell(model, "%dtf_wire seen --step 7")
    assert "--step x?" in cell(model, "%dtf_wire seen --step x")


def test_dtf_staleness_reads_the_log_of_an_optimizer(shell):
    magic(shell, "%dtf_cluster --ps 1 --worker 1", "cluster")
    shell.run_cell("""with tf.device("/job:ps/task:0"):
    step, v = tf.train.get_or_create_global_step(), tf.Variable(1.0)
optimizer = tf.train.StalenessOptimizer(tf.train.GradientDescentOptimizer(0.1), worker=0)
train = optimizer.minimize(v * v, global_step=step)
sess = tf.Session(cluster.target)
sess.run(tf.global_variables_initializer())
for _ in range(3): sess.run(train)""").raise_error()
    for line in ("%dtf_staleness", "%dtf_staleness optimizer", "%dtf_staleness optimizer.read(sess)"):
        assert "3 gradients" in str(magic(shell, line, "p"))
    assert "is neither a StalenessOptimizer nor" in cell(shell, "%dtf_staleness v.name")
    said = cell(shell, "%dtf_staleness --name other")
    assert "under the name 'other'" in said and "--name must name" in said and "--where the device" in said
    assert "name=" not in said and "where=" not in said


@pytest.mark.parametrize("name", ["vars", "queues", "wire", "staleness"])
def test_each_explains_itself_and_goes_with_the_extension(shell, name):
    assert f"%dtf_{name}" in cell(shell, f"%dtf_{name}?")
    magic(shell, "%unload_ext dtflab")
    assert "not found" in cell(shell, f"%dtf_{name}")


def test_completion_offers_the_options(shell):
    with provisionalcompleter():
        offered = {completion.text for completion in shell.Completer.completions("%dtf_wire --", 12)}
    assert {"--feed", "--session", "--step"} <= offered


def test_dtf_queues_and_dtf_smi_can_follow_what_cells_do(model):
    model.run_cell("""q = tf.FIFOQueue(3, [tf.float32], shared_name="letters")
sess = tf.Session(cluster.target); _ = sess.run(q.enqueue(1.0))""").raise_error()
    followed, cards = (magic(model, f"%dtf_{name} --live", name[:3]) for name in ("queues cluster", "smi"))
    assert "1 of 3" in followed.picture.svg
    model.run_cell("_ = sess.run(q.enqueue(1.0))").raise_error()
    assert "2 of 3" in followed.picture.svg
    for one in (followed, cards):
        assert '"view":"redrawn"' in one._repr_mimebundle_()["text/html"]
        one._ticker.end()
        one._ticker.join(60)
