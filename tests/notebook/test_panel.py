"""A cluster in a notebook: the table, the buttons below it, GPUs."""

from __future__ import annotations

import queue
import re
import signal
import threading

import pytest

import dtflab as tf
from dtflab.cluster.cluster import Cluster
from dtflab.notebook import circle_watch, panel
from dtflab.notebook.circle_watch import CircleWatch
from dtflab.notebook.cluster_live import LiveCluster
from dtflab.viz.drawing import front_end, ticker
from tests.notebook.cells import MODEL, cell, live, magic, panel_of, states
from tests.viz.test_waits import two_clients


def test_a_cluster_in_its_forms(shell):
    table = panel_of(shell, "%dtf_cluster --ps 1 --worker 1")
    for form in table.values():
        for part in ("/job:ps/task:0", "/job:worker/task:0", "CPU:0", "ps-0.cluster:2222", "running"):
            assert part in form
    assert [row["name"] for row in live(table)["rows"]] == ["ps:0", "worker:0"]
    for line in ("%dtf_cluster status", "_", "same = %dtf_cluster status"):
        assert panel_of(shell, line)["text/plain"] == table["text/plain"], "also if it is assigned"


def test_a_cluster_that_the_cell_names_again_is_shown_once(shell):
    assert live(panel_of(shell, "c = %dtf_cluster --worker 1\nc"))["title"].startswith("cluster: 1 task")


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


def test_without_anywidget_there_is_the_table(shell, monkeypatch):
    monkeypatch.setattr(front_end.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(front_end, "_widgets", [])
    assert "● running" in panel_of(shell, "%dtf_cluster --worker 1")["text/html"] and front_end._widgets == []


def test_a_panel_follows_what_cells_do(shell):
    shown = panel_in(shell, "c = %dtf_cluster --worker 2")
    cell(shell, "c.kill('worker', 1)")
    assert "○ killed" in shown._still["text/html"] and "● running" in shown._still["text/html"]
    cell(shell, "%dtf_cluster stop")
    assert "running" not in shown._still["text/html"] and shown not in panel._panels
    assert live(shown._bundle()) is None, "there is nothing to press any more"


def panel_in(shell, line):
    """The panel that a cell shows."""
    panel_of(shell, line)
    return panel._panels[-1]


class Page:
    """A front end, which shows a panel and waits until that says something."""

    def __init__(self, shown, monkeypatch):
        self.shown, self.heard = shown, queue.Queue()
        monkeypatch.setattr(ticker.front_end, "tell", lambda picture, says: self.heard.put(says))
        self.asks("look")

    def asks(self, do, task=""):
        self.shown._answer({"do": do, "task": device_spec_name(task)}, None)

    def sees(self, test):
        """The first words of the panel of which `test` is true."""
        while not test(says := self.heard.get(timeout=60)):
            pass
        return says


def device_spec_name(task):
    job, _, index = task.partition(":")
    return f"/job:{job}/replica:0/task:{index}" if task else ""


def row(says, name):
    return next(row for row in says["rows"] if row["name"] == name)


@pytest.mark.parametrize("engine", ["inprocess", "process"])
def test_a_panel_says_what_each_task_does(shell, monkeypatch, engine):
    magic(shell, f"%dtf_cluster --ps 1 --worker 2 --engine {engine}", "cluster")
    shell.run_cell(MODEL).raise_error()
    page = Page(panel._panels[-1], monkeypatch)
    over = threading.Event()

    def train():
        while not over.is_set():
            shell.user_ns["sess"].run("y:0", {"x:0": [1.0, 2.0]})

    thread = threading.Thread(target=train)
    thread.start()
    try:
        idle = ("", "0 B/s")
        says = page.sees(
            lambda says: row(says, "worker:1")["received"] not in idle and row(says, "ps:0")["sent"] not in idle
        )
        ps, master, worker = says["rows"]
        assert ps["received"] == "0 B/s", "it has the variable"
        assert float(ps["steps"].replace(",", "")) > 0 and re.fullmatch(r"\d+%", worker["busy"])
        assert (ps["memory"], master["memory"]) == ("CPU:0 8 B in variables", "CPU:0 0 B in variables")
        assert says["says"] == "3 of 3 tasks run." and len(worker["shares"]) == 1
    finally:
        over.set()
        thread.join()
    page.asks("end")
    assert "start" in page.sees(lambda says: all(row["can"] == ["start"] for row in says["rows"]))["rows"][0]["can"]
    page.shown.ticker.join()
    assert states(page.shown.cluster) <= {"stopped", "killed"}


@pytest.mark.parametrize("engine", ["inprocess", "process"])
def test_tasks_are_paused_killed_and_started_by_buttons(shell, monkeypatch, engine):
    page = Page(panel_in(shell, f"%dtf_cluster --worker 2 --engine {engine}"), monkeypatch)

    def state(of, is_):
        return page.sees(lambda says: row(says, of)["state"] == is_)

    page.asks("pause", "worker:1")
    says = state("worker:1", "paused")
    assert row(says, "worker:1")["can"] == ["resume", "stop", "kill", "restart"]
    assert says["says"] == "1 of 2 tasks runs. worker:1: paused."
    page.asks("resume", "worker:1")
    assert row(state("worker:1", "running"), "worker:1")["can"] == ["pause", "stop", "kill", "restart"]
    before = page.shown.cluster.task("worker", 1)
    for do, again, ended in (("kill", "start", "killed"), ("stop", "restart", "stopped")):
        page.asks(do, "worker:1")
        says = page.sees(lambda says: row(says, "worker:1")["can"] == ["start"])
        assert row(says, "worker:1")["state"] == ended and f"worker:1: {ended}." in says["says"]
        page.asks(again, "worker:1")
        page.sees(lambda says: "pause" in row(says, "worker:1")["can"])
    assert page.shown.cluster.task("worker", 1) is not before and states(page.shown.cluster) == {"running"}
    cell(shell, "%dtf_cluster stop")  # after a cell, a silent one left out, panels look again
    page.shown.ticker.join()


def test_what_waits_and_what_failed_is_said(shell, monkeypatch):
    panel_of(shell, "cluster = %dtf_cluster --ps 1 --worker 1")
    page = Page(panel._panels[-1], monkeypatch)
    shell.run_cell(BLOCKED).raise_error()
    says = page.sees(lambda says: "Ops wait" in says["says"])
    (note,) = row(says, "ps:0")["notes"]
    assert note == "ps:0: take waits at FIFOQueue 'q' with 0 of 3 elements to dequeue 1 more", (
        "and no number of the step"
    )
    shell.run_cell("sess.run(put)").raise_error()
    page.sees(lambda says: says["says"] == "2 of 2 tasks run.")
    cell(shell, "sess.run(wrong)")
    says = page.sees(lambda says: row(says, "worker:0")["notes"])
    assert "InvalidArgumentError: " in row(says, "worker:0")["notes"][0] and not row(says, "ps:0")["notes"]
    shell.run_cell("thread.join()\ncluster.stop()").raise_error()
    page.shown.ticker.join()


BLOCKED = """
import threading
with tf.device("/job:ps/task:0"):
    q = tf.FIFOQueue(3, tf.float32, shared_name="q")
    take, put = q.dequeue(name="take"), q.enqueue(1.0)
with tf.device("/job:worker/task:0"):
    wrong = tf.check_numerics(tf.divide(1.0, tf.placeholder_with_default(0.0, [])), "no number")
sess = tf.Session(cluster.target)
thread = threading.Thread(target=sess.run, args=(take,))
thread.start()
"""


@pytest.mark.parametrize("engine", ["inprocess", "process"])
@pytest.mark.parametrize("master", [0, 1])
def test_a_killed_task_has_the_error_that_steps_got(engine, master):
    graph = tf.Graph()
    with graph.as_default(), tf.device("/job:worker/task:1"):
        there, take = tf.constant(1.0) + 1.0, tf.FIFOQueue(1, tf.float32).dequeue()

    def notes(of):
        return row(live.look(), of)["notes"]

    with tf.Cluster(worker=2, engine=engine) as cluster:
        live, got = LiveCluster(cluster), list[Exception]()

        def program(fetch):
            with pytest.raises(tf.errors.OpError) as failed:
                sess.run(fetch)
            got.append(failed.value)

        with tf.Session(cluster.target_of("worker", master), graph=graph) as sess:
            sess.run(there)
            thread = threading.Thread(target=program, args=(take,))
            thread.start()
            while not cluster.waits():
                live.look()
            assert not any("Last error" in note for note in notes("worker:1"))
            cluster.kill("worker", 1)
            thread.join()
            (note,) = notes("worker:1")
            address = cluster.task("worker", 1).address
            assert note.startswith(f"Last error: UnavailableError: Task worker:1 at {address} ")
            assert notes("worker:0") == ([note] if master == 0 else []), "the master says it, too, if it is there"
            program(there)
            assert notes("worker:1")[0].startswith(f"Last error: {type(got[1]).__name__}: "), "of the next step"
        cluster.restart("worker", 1)
        assert notes("worker:1") == []
        cluster.task("worker", 1).stop()
        assert notes("worker:1") == [], "nobody has asked this one"


@pytest.mark.parametrize("engine", ["inprocess", "process"])
def test_a_circle_of_waits_is_drawn_while_it_lasts(shell, monkeypatch, engine):
    shown = panel_in(shell, f"cluster = %dtf_cluster --ps 1 --worker 2 --engine {engine}")
    page = Page(shown, monkeypatch)
    assert page.sees(lambda says: True)["circle"] == ""
    shell.run_cell(CROSSWISE).raise_error()
    says = page.sees(lambda says: says["circle"])
    assert says["says"].endswith("There is a circle of waits.")
    assert says["circle"].startswith("<svg") and says["circle"].count('class="way ring"') == 4 + 1, "and the legend"
    cell(shell, "raise KeyboardInterrupt")
    for form in shown._still.values():
        assert "images" in form and "A circle: " in form, "the still keeps it"
    assert "Waits before the interrupt" in shown._still["text/html"]
    shell.run_cell("with tf.Session(cluster.target) as other: other.run(put[0])").raise_error()
    assert "circle" not in page.sees(lambda says: not says["circle"])["says"]
    shell.run_cell("for thread in threads: thread.join()\ncluster.stop()").raise_error()
    shown.ticker.join()


CROSSWISE = """
import threading
graph = tf.get_default_graph()
with tf.device("/job:ps/task:0"):
    queues = [tf.FIFOQueue(1, tf.float32, [[]], shared_name=name) for name in ("images", "labels")]
    take, put = [q.dequeue() for q in queues], [q.enqueue(0.0) for q in queues]

def client(i):
    with tf.Session(cluster.target, graph=graph) as sess:
        sess.run(take[i])
        sess.run(put[1 - i])

threads = [threading.Thread(target=client, args=(i,), daemon=True) for i in range(2)]
for thread in threads: thread.start()
"""


def test_a_circle_is_looked_for_seldom_and_by_another_thread(monkeypatch):
    ask, asked = threading.Event(), []

    class Slow(Cluster):
        def standstill(self):
            asked.append(threading.current_thread())
            assert ask.wait(60)
            return []

    monkeypatch.setattr(circle_watch, "_EVERY_S", 1e9)
    with Slow(worker=1, name="slow") as cluster:
        watch = CircleWatch(cluster)
        watch.look(is_long=False)
        assert not asked, "nothing waits"
        for _ in range(3):
            watch.look(is_long=True)
        ask.set()
        watch._thread.join(60)
        watch.look(is_long=True)
        assert len(asked) == 1 and asked[0] is not threading.current_thread(), "and not again so soon"


@pytest.mark.parametrize("later, is_circle", [((1, 2), True), ((1, 3), False), ((), False)])
def test_a_circle_is_one_that_lasts(monkeypatch, later, is_circle):
    """Tasks are asked one after another: of quick steps, what two of them say may never have been so at once."""

    class Quick(Cluster):
        steps = iter([(1, 2), later])

        def standstill(self):
            return two_clients(*steps) if (steps := next(self.steps)) else []

    monkeypatch.setattr(circle_watch, "_AGAIN_S", 0.0)
    with Quick(worker=1, name="quick") as cluster:
        watch = CircleWatch(cluster)
        watch.look(is_long=True)
        watch._thread.join(60)
        assert (watch.picture is not None) is is_circle


def test_an_error_of_a_button_is_said(shell, monkeypatch):
    page = Page(panel_in(shell, "%dtf_cluster --worker 2"), monkeypatch)
    monkeypatch.setattr(page.shown.cluster, "restart", raising(OSError("no processes left")))
    page.asks("restart", "worker:0")
    assert page.sees(lambda says: says["note"])["note"] == "no processes left"
    cell(shell, "%dtf_cluster stop")  # after a cell, a silent one left out, panels look again
    page.shown.ticker.join()


def raising(error):
    def call(*args):
        raise error

    return call


def test_in_virtual_time_rates_are_of_virtual_seconds(shell):
    shown = panel_in(shell, "cluster = %dtf_cluster --ps 1 --worker 2 --clock virtual --gpu K40")
    shell.run_cell(MODEL).raise_error()
    shown.live.look()
    before = shown.cluster.now()
    shell.run_cell("for _ in range(10): sess.run(y, {x: [1.0, 2.0]})").raise_error()
    says = shown.live.look()
    worker = row(says, "worker:1")
    assert worker["steps"] == f"{10 / (shown.cluster.now() - before):,.0f}"
    assert worker["can"] == [] and "per second of virtual time" in says["says"]
    assert re.fullmatch(r"[1-9]\d*%", worker["busy"]) and worker["memory"].startswith("CPU:0 0 B in variables, GPU:0 ")


def test_tensorflows_servers_have_states_and_a_sentence(shell):
    class Silent(Cluster):
        is_dtflab = False

    with Silent(worker=2, name="silent") as cluster:
        says = LiveCluster(cluster).look()
    assert "do not report what they do" in says["says"]
    assert [(row["state"], row["steps"], row["memory"]) for row in says["rows"]] == [("running", "", "CPU:0")] * 2


def test_a_task_that_does_not_answer_is_left_alone(shell, monkeypatch):
    shown = panel_in(shell, "%dtf_cluster --worker 2")
    task, asked = shown.cluster.tasks[0], []

    def view(name):
        asked.append(name)
        raise tf.errors.UnavailableError(None, None, "no answer")

    shown.live.look()
    answers = task.view
    monkeypatch.setattr(task, "view", view)
    once = row(shown.live.look(), "worker:0")
    assert once["state"] == "running" and once["memory"], "it may be busy"
    twice = [row(shown.live.look(), "worker:0")["state"] for _ in range(3)]
    assert twice == ["does not answer"] * 3 and asked == ["Vitals"] * 2, "then it is left alone for a while"
    monkeypatch.setattr(task, "view", answers)
    monkeypatch.setattr(shown.live._seen[task.name], "alone_until", 0.0)
    assert row(shown.live.look(), "worker:0")["state"] == "running"
    monkeypatch.setattr(task, "view", view)
    assert row(shown.live.look(), "worker:0")["state"] == "running", "it has answered meanwhile"


def test_two_hundred_workers_are_one_line_that_opens(shell):
    table = panel_of(shell, "cluster = %dtf_cluster --ps 1 --worker 200")
    assert (
        table["text/html"].count("<details>") == 1
        and "/job:worker/task:0–199: 200 tasks, running" in table["text/html"]
    )
    shown = panel._panels[-1]
    shell.run_cell("cluster.kill('worker', 7)").raise_error()
    rows = shown.live.look()["rows"]
    lines = [(row["name"], row["state"], row["size"]) for row in rows if not row["within"]]
    assert lines == [
        ("ps:0", "running", 1), ("worker:0–6, 8–199", "running", 199), ("worker:7", "killed", 1)
    ]  # fmt: skip
    assert {row["within"] for row in rows if row["within"]} == {"worker, running"}


def test_a_fold_has_the_memory_of_its_tasks(shell):
    shown = panel_in(shell, "cluster = %dtf_cluster --worker 8 --gpus 1 --gpu K40 --gpu-memory 4GiB")
    shell.run_cell(OF_EACH).raise_error()
    fold, *rows = shown.live.look()["rows"]
    assert [row["memory"] for row in rows] == ["CPU:0 1.0 KiB in variables, GPU:0 16.0 MiB of 3.66 GiB"] * 8
    assert fold["memory"] == "CPU:0 8.0 KiB in variables, GPU:0 128 MiB of 29.3 GiB"
    shell.run_cell("for task in cluster.tasks: task.kill()").raise_error()
    fold, row, *_ = shown.live.look()["rows"]
    assert fold["memory"] == "" and row["memory"].startswith("CPU:0, GPU:0"), "nobody reports"


OF_EACH = """
for task in range(8):
    with tf.device(f"/job:worker/task:{task}/cpu:0"):
        tf.Variable(tf.zeros(256))
    with tf.device(f"/job:worker/task:{task}/gpu:0"):
        tf.Variable(tf.zeros(4 << 20))
tf.Session(cluster.target).run(tf.global_variables_initializer())
"""


def test_interrupt_ends_what_the_main_thread_runs(monkeypatch):
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as between cells
    try:
        assert panel.interrupt() == "No cell is running."
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with pytest.raises(KeyboardInterrupt):
            threading.Thread(target=panel.interrupt).start()
            threading.Event().wait(60)
    finally:
        signal.signal(signal.SIGINT, handler)


def test_processes_have_devices_and_states_too(shell):
    magic(shell, "%dtf_cluster --worker 2 --engine process", "c")
    text = panel_of(shell, "c")["text/plain"]
    assert text.count("CPU:0") == 2 and "each in a process of its own" in text
    shell.user_ns["c"].kill("worker", 1)
    assert "killed" in panel_of(shell, "c")["text/plain"]


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
