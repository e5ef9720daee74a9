"""A cluster in a notebook: the table, the buttons below it, GPUs."""

from __future__ import annotations

import sys

from IPython.utils.capture import capture_output

from dtflab.notebook import panel
from tests.notebook.cells import MODEL, cell, magic, panel_of, states


def test_a_cluster_in_its_forms(shell):
    table = panel_of(shell, "%dtf_cluster --ps 1 --worker 1")
    for form in table.values():
        for part in ("/job:ps/task:0", "/job:worker/task:0", "CPU:0", "ps-0.cluster:2222", "running"):
            assert part in form
    assert "<script" not in table["text/html"]
    assert panel_of(shell, "%dtf_cluster status") == table
    assert panel_of(shell, "_") == table, "the Cluster is the cell's value"


def test_in_a_terminal_a_cluster_is_text(shell):
    del shell.kernel
    text = cell(shell, "%dtf_cluster --worker 1")
    assert text.removeprefix("Out[0]: ").splitlines() == [
        "cluster: 1 task, in this process",
        "  /job:worker/task:0  CPU:0  worker-0.cluster:2222  running",
    ]
    assert cell(shell, "%dtf_cluster stop") == ""


def test_names_in_the_table_are_text(shell):
    assert "&lt;b&gt;" in panel_of(shell, "%dtf_cluster --worker 1 --name <b>")["text/html"]


def test_without_ipywidgets_there_is_the_table(shell, monkeypatch):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    magic(shell, "%dtf_cluster --worker 1", "c")
    with capture_output() as shown:
        shell.run_cell("c").raise_error()
    assert len(shown.outputs) == 1 and panel._panels[-1].buttons == []


def test_the_panels_stop_button_stops(model):
    cluster = model.user_ns["cluster"]
    with capture_output():
        shown = panel.Panel(cluster)
    shown.buttons[0].click()
    assert states(cluster) == {"stopped"} and shown not in panel._panels
    assert "running" not in shown._shown["text/html"]
    assert "its cluster was stopped" in cell(model, "sess.run(y, {x: [1.0, 2.0]})")
    assert "stopped" in panel_of(model, "cluster")["text/plain"]


def test_a_panel_follows_what_cells_do(shell):
    magic(shell, "%dtf_cluster --worker 2", "c")
    with capture_output():
        shell.run_cell("c")
    shown = panel._panels[-1]
    cell(shell, "c.kill('worker', 1)")
    assert "○ stopped" in shown._shown["text/html"] and "● running" in shown._shown["text/html"]
    cell(shell, "%dtf_cluster stop")
    assert "running" not in shown._shown["text/html"] and shown not in panel._panels


def test_processes_have_devices_and_states_too(shell):
    magic(shell, "%dtf_cluster --worker 2 --engine process", "c")
    text = panel_of(shell, "c")["text/plain"]
    assert text.count("CPU:0") == 2 and "each in a process of its own" in text
    shell.user_ns["c"].kill("worker", 1)
    assert "ended (-9)" in panel_of(shell, "c")["text/plain"]


# ---- GPUs ----

GPUS = "%dtf_cluster --ps 1 --worker 2 --gpus 2 --gpu K40 --gpu-memory 4GiB --visible worker=1"


def test_a_cluster_with_gpus(shell):
    table = panel_of(shell, GPUS)
    for form in table.values():
        assert form.count("GPU:0 (Tesla K40m)") == 2 and "GPU:1" not in form
    cluster = magic(shell, "%dtf_cluster status", "cluster")
    claim = cluster.task("worker", 1).server.task.devices[1].claim
    assert claim.card.memory_bytes == 4 << 30 and claim.card.index == 1
    assert "/job:ps/replica:0/task:0  ps-0.cluster:2222  running  CPU:0\n" in cluster.status()
    assert cluster.status().count("CPU:0, GPU:0 (Tesla K40m)") == 2
    again = magic(shell, "%dtf_cluster restart", "again")
    assert panel_of(shell, "again")["text/plain"].count("GPU:0 (Tesla K40m)") == 2 and states(again) == {"running"}


def test_a_wrong_gpu_stops_nothing(shell):
    cluster = magic(shell, GPUS, "cluster")
    assert "UsageError" in cell(shell, GPUS.replace("K40", "K41"))
    assert states(cluster) == {"running"}


def test_smi_shows_clusters_and_this_process(shell):
    assert "No GPUs" in magic(shell, "%dtf_smi", "smi").text
    magic(shell, GPUS, "cluster")
    shell.run_cell("tf.simulate_gpus(1)\n" + MODEL + "sess.run(v.initializer)").raise_error()
    shell.run_cell("with tf.device('/job:worker/task:1/gpu:0'): z = v * 2.0").raise_error()
    shell.run_cell("sess.run(z)\npromise = cluster.allocate(memory='1GiB', holder='me')").raise_error()
    found = magic(shell, "%dtf_smi --period 0.01", "smi")
    assert [len(host.cards) for host in found.hosts] == [1, 2, 2]
    (process,) = [process for host in found.hosts for process in host.processes]
    assert process.name == "/job:worker/task:1 of cluster" and process.gpu == 1
    assert "cluster: me was promised 1024 MiB of /job:worker/replica:0/task:" in found.text
    assert "<table>" in shell.display_formatter.format(found)[0]["text/html"]
