"""`%dtf_cluster`: one line starts, restarts and stops a cluster, and says what is wrong with a line."""

from __future__ import annotations

import re

import pytest
from IPython.core.error import UsageError

import dtflab as tf
from dtflab.base.credentials import Credentials
from dtflab.cluster.cluster import Cluster
from dtflab.notebook import cluster_view, panel
from tests.cluster.two_tasks import cluster_over
from tests.notebook.cells import MODEL, cell, magic, states


def test_a_cluster_in_one_line(shell):
    cluster = magic(shell, "%dtf_cluster --ps 1 --worker 2 --job chief=1", "cluster")
    assert isinstance(cluster, Cluster)
    assert cluster.spec.as_dict().keys() == {"ps", "worker", "chief"} and cluster.spec.num_tasks("worker") == 2
    assert magic(shell, "%dtf_cluster status", "same") is cluster
    with tf.Session(cluster.target) as sess:
        assert sess.run(tf.constant(7)) == 7


def test_a_cluster_in_virtual_time(shell):
    line = "--ps 1 --worker 2 --clock virtual --gpu K40 --network 1Gb/s --seed 1 --stragglers lognormal(0.3)"
    cluster = magic(shell, f"%dtf_cluster {line}", "cluster")
    assert [gpu.name for host in cluster.machines.hosts for gpu in host.gpus] == ["Tesla K40m"] * 2
    assert cluster.machines.network.nic.bandwidth == 1e9 / 8
    assert cluster.run(lambda client: tf.sim.sleep(2.5)) == [None, None]
    assert "3 tasks, 2.5 s of virtual time; 3 × 2x Xeon E5-2690 v3, 2 × Tesla K40m; 1Gb/s" in cluster_view.text(cluster)


def test_a_python_value_in_the_line(shell):
    shell.user_ns.update(n=3, title="mine")
    assert magic(shell, "%dtf_cluster --worker {n} --name $title", "c").spec.num_tasks("worker") == 3


def test_starting_again_replaces_and_old_sessions_say_so(model):
    old = model.user_ns["cluster"]
    new = magic(model, "%dtf_cluster --ps 1 --worker 2", "cluster")
    assert states(old) == {"stopped"} and states(new) == {"running"}
    text = cell(model, "sess.run(y, {x: [1.0, 2.0]})")
    assert re.match("(Unavailable|Aborted)Error: ", text) and "its cluster was stopped" in text
    model.run_cell(MODEL).raise_error()


def test_restart_keeps_addresses(model):
    old = model.user_ns["cluster"]
    new = magic(model, "%dtf_cluster restart", "cluster")
    assert new.spec == old.spec and states(new) == {"running"}
    loose = magic(model, "%dtf_cluster --worker 1 --listen --name loose", "loose")
    again = magic(model, "%dtf_cluster restart --name loose", "again")
    assert again.spec == loose.spec and again.tasks[0].server.task.endpoint is not None


def test_a_cluster_of_python_is_found_by_the_name_of_its_variable(shell):
    shell.run_cell("import dtflab as tf\nmine = tf.Cluster(worker=1)").raise_error()
    cluster = shell.user_ns["mine"]
    with pytest.raises(UsageError, match=r"No cluster named 'cluster' is running. Use --name mine\."):
        magic(shell, "%dtf_cluster status")
    assert magic(shell, "%dtf_cluster status --name mine", "same") is cluster
    assert "No cluster" not in cell(shell, "%dtf_cluster stop --name mine")
    assert states(cluster) == {"stopped"}
    with pytest.raises(UsageError, match=r"No cluster named 'mine' is running. Start one: "):
        magic(shell, "%dtf_cluster status --name mine")


def test_stop(shell):
    cluster = magic(shell, "%dtf_cluster --worker 1", "c")
    assert "No cluster" not in cell(shell, "%dtf_cluster stop")
    assert states(cluster) == {"stopped"}
    assert cell(shell, "%dtf_cluster stop") == "No cluster named 'cluster' is running: nothing to stop.\n"
    with pytest.raises(UsageError, match=r"No cluster named 'cluster' is running. Start one: %dtf_cluster --ps"):
        magic(shell, "%dtf_cluster status")
    magic(shell, "%dtf_cluster --worker 1 --name other")
    with pytest.raises(UsageError, match=r"is running\. Use --name other"):
        magic(shell, "%dtf_cluster restart")


@pytest.mark.parametrize(("option", "has_token"), [("", True), ("--no-token", False)])
def test_processes_ask_for_a_token_unless_told_not_to(shell, option, has_token):
    cluster = magic(shell, f"%dtf_cluster --worker 1 --engine process {option}", "c")
    assert bool(cluster.credentials.token) is has_token


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("", "at least one task"),
        ("--ps 0", "at least one task"),
        ("--ps -1 --worker 2", "--ps must be 0 or more tasks, not -1"),
        ("--ps x", "--ps must be a whole number, not 'x'. For example: %dtf_cluster"),
        ("--ps", "--ps needs a value. For example"),
        ("--pss 1", "Unknown option --pss. Did you mean --ps?"),
        ("begin", "The verb can't be 'begin'. Choose start, attach, status, stop, restart."),
        ("start now", "start takes no addresses: 'now'"),
        ("attach", "attach takes addresses of tasks: where do they run? For example: %dtf_cluster attach"),
        ("attach , ", "attach takes addresses of tasks"),
        ("attach localhost:1 --ps 1", "attach takes addresses of tasks, --name and --credentials, not --ps: these"),
        ("attach localhost:1 --engine process --gpus 0", "not --engine, --gpus: these tasks have been started"),
        ("attach localhost:1 --clock virtual", "not --clock: these"),
        ("attach localhost:1 --insecure --no-token", "not --insecure, --no-token: these"),
        ("--worker 1 --engine ray", "--engine can't be 'ray'. Choose inprocess, process, tensorflow, dask."),
        ("--engine proces", "--engine can't be 'proces'. Did you mean process?"),
        ("staus", "The verb can't be 'staus'. Did you mean status?"),
        ("--gpu-m 2", "Unknown option --gpu-m. Did you mean --gpu-memory?"),
        ("--wroker 2", "Unknown option --wroker. Did you mean --worker?"),
        ("--job chief", "--job must be NAME=N, not 'chief'"),
        ("--job chief=one", "For example: --job chief=1"),
        ("--worker 1 --gpu K40", "need --gpus, the number per host"),
        ("--worker 1 --gpus 1 --gpu K41", "No GPU model 'K41' is known. Did you mean K40? Choose one"),
        ("--worker 1 --gpus 1 --gpu K4O", "No GPU model 'K4O' is known. Did you mean K40? Choose one of K520, K20"),
        ("--worker 1 --gpus 1 --gpu a10O", "Did you mean A10?"),
        ("--worker 1 --gpus 1 --gpu-memory much", "'much' is not an amount of memory"),
        ("--worker 1 --network 10Gb/s", "describes simulated hardware or randomness: add clock='virtual'"),
        ("--worker 1 --clock virtuel", "clock can't be 'virtuel'. Did you mean virtual? Choose 'real' or"),
        ("--worker 1 --clock virtual --engine process", "needs all tasks in this process"),
        ("--worker 1 --clock virtual --gpu K41", "No GPU model 'K41' is known"),
        ("--worker 1 --clock virtual --network wet", "'wet'"),
        ("--worker 1 --clock virtual --bus pcie9", "Unknown bus 'pcie9'. Did you mean pcie"),
        ("--worker 1 --clock virtual --racks 0", "--racks must be 1 or more, not 0"),
        ("--worker 1 --clock virtual --stragglers often", "--stragglers must be NAME(SIZE)"),
        ("--worker 1 --clock virtual --stragglers normal(1)", "stragglers 'normal'. Did you mean lognormal?"),
        ("--worker 1 --clock virtual --seed x", "--seed must be a whole number, not 'x'"),
        ("--worker 1 --gpus 1 --visible chief=0", "--visible names 'chief'; the jobs are worker."),
    ],
)
def test_wrong_arguments_say_what_is_right_and_stop_nothing(shell, line, says):
    running = magic(shell, "%dtf_cluster --worker 1", "running")
    text = cell(shell, f"%dtf_cluster {line}")
    assert states(running) == {"running"}
    assert text.startswith("UsageError: ") and says in text and len(text.splitlines()) == 1
    assert re.search("[Ff]or example:? (%dtf_cluster|--job chief=1|--gpus 2)", text)


def test_attach(shell, tmp_path):
    token = Credentials(token="a-token-of-this-test")
    token.save(tmp_path)
    with cluster_over("", ps=1, worker=1, credentials=token) as theirs:
        before = magic(shell, "%dtf_cluster --worker 1", "before")
        text = cell(shell, f"%dtf_cluster attach {theirs.tasks[0].address}")
        assert "asks each caller for its token" in text and states(before) == {"running"}
        line = ",".join(task.address for task in theirs.tasks)
        cluster = magic(shell, f"%dtf_cluster attach {line} --credentials {tmp_path}", "cluster")
        assert states(before) == {"stopped"} and cluster.spec == theirs.spec
        shown = panel._panels[-1]
        assert "cluster: 2 tasks, started elsewhere" in cluster_view.text(cluster) and "CPU:0" in cluster_view.text(
            cluster
        )
        assert (
            '"stops":{"label":"Detach","says":"Stop looking at the tasks of cluster"}' in shown._bundle()["text/html"]
        )
        assert [row["can"] for row in shown.live.look()["rows"]] == [[], []]
        assert "can't be restarted from here" in cell(shell, "%dtf_cluster restart")
        text = cell(shell, "%dtf_cluster stop")
        assert text.startswith(
            "cluster is detached from /job:ps/task:0, /job:worker/task:0: started elsewhere, they run on.\n"
        )
        assert shown not in panel._panels and states(cluster) == {"detached"} and states(theirs) == {"running"}


def test_a_task_that_does_not_come_up_is_named(shell):
    with Cluster(worker=1, name="taken"):
        text = cell(shell, "%dtf_cluster --worker 1 --name taken")
    assert "/job:worker/replica:0/task:0" in text and "in use" in text


@pytest.mark.parametrize("period", ["-1", "nan", "inf"])
def test_a_period_that_is_none_is_told(shell, period):
    text = cell(shell, f"%dtf_smi --period {period}")
    assert text.startswith(f"UsageError: --period must be 0 or more seconds, not {period}.")
    assert len(text.splitlines()) == 1


def test_dtf_smi_says_virtual_time_before_the_first_step_and_nothing_after_the_end(shell):
    magic(shell, "%dtf_cluster --ps 1 --worker 3 --gpus 1 --clock virtual", "cluster")
    text = str(magic(shell, "%dtf_smi", "shown"))
    assert text.count("in virtual time: GPU-Util is of modelled seconds") == 3 and "NumPy" not in text
    magic(shell, "%dtf_cluster stop")
    assert "No GPUs" in str(magic(shell, "%dtf_smi", "shown"))
