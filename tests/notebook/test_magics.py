"""The magics and the panel, in IPython's shell without a kernel or a browser."""

from __future__ import annotations

import io
import re
import sys

import numpy as np
import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

import dtflab as tf
from dtflab.cluster.cluster import Cluster
from dtflab.datasets import Dataset
from dtflab.graph import errors
from dtflab.notebook import arguments, cluster_view, images, panel
from dtflab.runtime.session import last_session
from dtflab.viz import Picture

WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def shell(tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    shell = InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    shell.kernel = None  # as in a notebook, not as in a terminal
    shell.run_cell("import dtflab as tf\ntf.reset_default_graph()").raise_error()
    magic(shell, "%load_ext dtflab")
    yield shell
    magic(shell, "%unload_ext dtflab")
    while session := last_session():  # it would be the newest one of the next test
        session.close()
    tf.reset_default_graph()
    InteractiveShell.clear_instance()


def magic(shell, line, name="_"):
    """What one line gives; raises what it raises."""
    shell.run_cell(f"{name} = {line}" if name != "_" else line, silent=True).raise_error()
    return shell.user_ns.get(name)


def cell(shell, text):
    """What a cell prints and shows of an error."""
    with capture_output(display=False) as shown:
        shell.run_cell(text)
    return re.sub(r"\x1b\[[0-9;]*m", "", shown.stdout + shown.stderr)


MODEL = """with tf.device("/job:ps/task:0"):
    v = tf.Variable([1.0, 2.0], name="v")
with tf.device("/job:worker/task:1"):
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.multiply(v, x, name="y")
sess = tf.Session(cluster.target)
sess.run(v.initializer)
"""


@pytest.fixture
def model(shell):
    magic(shell, "%dtf_cluster --ps 1 --worker 2", "cluster")
    shell.run_cell(MODEL).raise_error()
    return shell


# ---- %load_ext ----


def test_loading_twice_and_reloading(shell):
    cluster = magic(shell, "%dtf_cluster --worker 1", "c")
    assert "already loaded" in cell(shell, "%load_ext dtflab")
    tf.load_ipython_extension(shell)  # by hand
    assert magic(shell, "%dtf_cluster status", "again") is cluster
    magic(shell, "%reload_ext dtflab")
    assert states(cluster) == {"stopped"}
    assert states(magic(shell, "%dtf_cluster --worker 1", "c")) == {"running"}


def test_unloading_stops_all_clusters_and_takes_the_magics_away(shell):
    clusters = [magic(shell, "%dtf_cluster --worker 1", "c"), Cluster(worker=1)]
    magic(shell, "%unload_ext dtflab")
    assert [states(cluster) for cluster in clusters] == [{"stopped"}] * 2
    assert "not found" in cell(shell, "%dtf_cluster")
    assert shell.display_formatter.format(clusters[0])[0].keys() == {"text/plain", "text/html"}, "the plain forms"
    tf.unload_ipython_extension(shell)  # once more


def states(cluster):
    return {state for _, _, state in cluster.rows()}


# ---- %dtf_cluster ----


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
    assert again.spec == loose.spec and again.tasks[0].server._service is not None


def test_stop(shell):
    cluster = magic(shell, "%dtf_cluster --worker 1", "c")
    assert cell(shell, "%dtf_cluster stop") == ""
    assert states(cluster) == {"stopped"}
    assert cell(shell, "%dtf_cluster stop") == "There is no cluster 'cluster' to stop.\n"
    with pytest.raises(UsageError, match=r"No cluster 'cluster' was started. Start it: %dtf_cluster --ps"):
        magic(shell, "%dtf_cluster status")
    magic(shell, "%dtf_cluster --worker 1 --name other")
    with pytest.raises(UsageError, match="There is --name other"):
        magic(shell, "%dtf_cluster restart")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("", "at least one task"),
        ("--ps 0", "at least one task"),
        ("--ps -1 --worker 2", "at least one task"),
        ("--ps x", "invalid int value: 'x'"),
        ("--ps", "expected one argument"),
        ("--pss 1", "unrecognized arguments: --pss"),
        ("begin", "begin? Say start, status, stop, restart"),
        ("start now", "unrecognized arguments: now"),
        ("--worker 1 --engine ray", "--engine ray? Choose inprocess or process"),
        ("--job chief", "--job chief? Write NAME=N"),
        ("--job chief=one", "for example --job chief=1"),
        ("--worker 1 --gpu K40", "describe the GPUs of --gpus"),
        ("--worker 1 --gpus 1 --gpu K41", "No GPU model 'K41' is known. Choose one of K520"),
        ("--worker 1 --gpus 1 --gpu-memory much", "'much' is no amount of memory"),
        ("--worker 1 --network 10Gb/s", "describes simulated hardware or chance: add clock='virtual'"),
        ("--worker 1 --clock virtuel", "clock='virtuel'? Choose 'real' or 'virtual'"),
        ("--worker 1 --clock virtual --engine process", "needs all tasks in this process"),
        ("--worker 1 --clock virtual --gpu K41", "No GPU model 'K41' is known"),
        ("--worker 1 --clock virtual --network wet", "'wet'"),
        ("--worker 1 --clock virtual --bus pcie9", "pcie9"),
        ("--worker 1 --clock virtual --stragglers often", "Write NAME(SIZE)"),
        ("--worker 1 --clock virtual --stragglers normal(1)", "no distribution 'normal'"),
        ("--worker 1 --clock virtual --seed x", "invalid int value: 'x'"),
        ("--worker 1 --gpus 1 --visible chief=0", "--visible chief=…? The jobs are worker."),
    ],
)
def test_wrong_arguments_say_what_is_right(shell, line, says):
    text = cell(shell, f"%dtf_cluster {line}")
    assert text.startswith("UsageError: ") and says in text and len(text.splitlines()) == 1
    assert re.search("[Ff]or example:? (%dtf_cluster|--job chief=1|--gpus 2)", text)


def test_a_task_that_does_not_come_up_is_named(shell):
    with Cluster(worker=1, name="taken"):
        text = cell(shell, "%dtf_cluster --worker 1 --name taken")
    assert "/job:worker/replica:0/task:0" in text and "in use" in text


@pytest.mark.parametrize(
    "name", ["dtf_cluster", "dtf_placement", "dtf_timeline", "dtf_memory", "dtf_grade", "dtf_smi", "dtf_style"]
)
def test_help_shows_an_example_and_all_options(shell, name):
    text = shell.find_line_magic(name).__doc__
    assert f"%{name} " in text and "--" in text and "::" in text


@pytest.mark.parametrize(
    ("line", "offers"),
    [
        ("%dtf_cluster --w", {"--worker"}),
        ("%dtf_cluster ", {"status", "stop", "--ps", "--engine"}),
        ("%dtf_cluster st", {"start", "status", "stop"}),
        ("%dtf_cluster --engine ", {"inprocess", "process"}),
        ("%dtf_cluster --gpu ", {"K40", "P100"}),
        ("%dtf_cluster --gpu", {"--gpus", "--gpu-memory"}),
        ("%dtf_cluster --clock ", {"real", "virtual"}),
        ("%dtf_smi --", {"--period"}),
        ("%dtf_timeline --color-by ", {"device", "job", "time", "phase"}),
        ("%dtf_style --", {"--projector", "--default"}),
        ("%dtf_cluster stop --name ", {"mine"}),
        ("%dtf_timeline y --", {"--feed", "--session"}),
        ("%dtf_placement y --s", {"--session"}),
        ("%dtf_grade ", {"placement/q1", "--all", "--hint"}),
        ("%dtf_grade pla", {"placement/q1"}),
        ("%dtf_grade placement/q1 --h", {"--hint"}),
    ],
)
def test_tab_completes(shell, line, offers):
    magic(shell, "%dtf_cluster --worker 1 --name mine")
    with provisionalcompleter():
        found = {completion.text for completion in shell.Completer.completions(line, len(line))}
    assert offers <= found


# ---- grading ----


def test_grade_finds_answers_in_the_notebook(shell):
    assert "None of the answers is here yet" in cell(shell, "%dtf_grade")
    shell.run_cell("def balance_by_bytes(ps_tasks, worker):\n    return lambda op: worker").raise_error()
    for line in ("%dtf_grade", "%dtf_grade placement/q1", "%dtf_grade q1", "%dtf_grade --all"):
        assert magic(shell, line, "score") == 0.0
    assert shell.user_ns["score"].max >= 10
    assert magic(shell, 'tf.grade("placement/q1")', "plain").text == magic(shell, "%dtf_grade q1", "by_magic").text


def test_a_grade_shows_a_table_and_a_number(shell):
    with capture_output() as shown:
        shell.run_cell("%dtf_grade placement/q1").raise_error()
    data, _ = shell.display_formatter.format(magic(shell, "%dtf_grade placement/q1", "score"))
    assert data["text/plain"] == "0.0" and "There is no balance_by_bytes yet" in data["text/html"]
    assert shown.stderr == "" and "of 10 points" not in shown.stdout


def test_hints_by_magic_come_in_steps(shell, monkeypatch):
    monkeypatch.setattr("dtflab.grading.grade._given", {})
    assert repr(magic(shell, "%dtf_grade placement/q1 --hint", "hint")).startswith("Hint 1 of 3: ")
    assert repr(magic(shell, "%dtf_grade placement/q1 --hint", "hint")).startswith("Hint 2 of 3: ")


def test_an_unknown_question_is_told(shell):
    assert "Did you mean placement/q1 or " in cell(shell, "%dtf_grade placment/q1")


# ---- the panel ----


def panel_of(shell, line):
    """What is displayed for a cluster: the table's forms, and below it the buttons."""
    with capture_output() as shown:
        shell.run_cell(line).raise_error()
    table, *below = [output.data for output in shown.outputs if not output.update]
    assert table.keys() == {"text/plain", "text/html"}
    assert [WIDGET in buttons for buttons in below] == ([True] if "● running" in table["text/html"] else [])
    return table


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


# ---- %dtf_placement and %dtf_timeline ----


def test_placement(model):
    picture = magic(model, "%dtf_placement", "picture")
    assert isinstance(picture, Picture)
    assert "v/Assign" in picture.text
    picture = magic(model, "%dtf_placement y", "picture")
    assert "v/Assign" not in picture.text and "2 devices" in picture.text


def test_timeline(model):
    feeds = ["{x: [1.0, -2.0]}", "{x: [ -1.0, float('1')]}", "feed", "{'x:0': (3, 4)}", "dict([(x, [1.0, 2.0])])"]
    model.user_ns["feed"] = {model.user_ns["x"]: [1.0, 2.0]}
    for feed in feeds:
        assert "transfer" in magic(model, f"%dtf_timeline y --feed {feed}", "picture").text
    picture = magic(model, "%dtf_timeline [y, v] --session sess --feed feed", "picture")
    assert "transfer" in picture.text
    model.run_cell("traced = sess.trace(y, feed)").raise_error()
    assert isinstance(magic(model, "%dtf_timeline traced", "picture"), Picture)
    assert magic(model, "%dtf_memory traced", "picture").sentence.startswith("Memory of one step")


def test_asking_another_process(shell):
    magic(shell, "%dtf_cluster --ps 1 --worker 2 --engine process", "cluster")
    shell.run_cell(MODEL).raise_error()
    for line in ("%dtf_placement", "%dtf_placement y"):
        assert "dtflab's rules place" in cell(shell, f"picture = {line}")
        text = shell.user_ns["picture"].text
        assert re.search(r"/job:ps/replica:0/task:0/device:CPU:0 .*v/read", text)
        assert re.search(r"/job:worker/replica:0/task:1/device:CPU:0 .*x, y", text)
        assert ("v/Assign" in text) == (line == "%dtf_placement")
    text = magic(shell, "%dtf_placement y --feed {x: [1.0, 2.0]}", "picture").text
    assert re.search(r"/job:ps/replica:0/task:0/device:CPU:0 .*v/read", text)
    assert re.search(r"/job:worker/replica:0/task:1/device:CPU:0 .*y", text)
    assert re.search(r"/job:worker/replica:0/task:0/device:CPU:0 .*x", text), "where the feed came in"
    assert "transfer" in magic(shell, "%dtf_timeline y --feed {x: [1.0, 2.0]}", "picture").text


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("%dtf_timeline", "Name what to run.*%dtf_timeline train --feed"),
        ("%dtf_timeline y --fed {x: [1.0, 2.0]}", "Unknown option --fed; there are --feed, --session"),
        ("%dtf_timeline y --feed", "--feed needs a value"),
        ("%dtf_timeline y --feed [1.0, 2.0]", r"--feed \[1.0, 2.0\] is no dict but a list"),
        ("%dtf_memory", "Name what to run.*%dtf_memory train --feed"),
        ("%dtf_placement y --session cluster", "--session cluster is not a session but a Cluster"),
        ("%dtf_timeline y", "You must feed.*fed like this: %dtf_timeline train --feed {"),
    ],
)
def test_pictures_that_cannot_be_drawn(model, line, says):
    assert re.search(says, cell(model, line).replace("\n", " "))


def test_without_a_session(shell):
    for name in ("placement", "timeline"):
        text = cell(shell, f"%dtf_{name} tf.constant(1)")
        assert text.startswith("UsageError: No session is open. Open one: sess = tf.Session(cluster.target)")
    cell(shell, "%dtf_cluster --worker 1")  # `cluster` is no name yet
    assert "Open one: cluster = %dtf_cluster status, then sess =" in cell(shell, "%dtf_placement tf.constant(1)")


def test_fetches_of_another_graph(model):
    model.run_cell("with tf.Graph().as_default():\n    z = tf.constant(1)\n    other = tf.Session()").raise_error()
    for name, feed in (("placement", ""), ("timeline", " --feed {x: [1.0, 2.0]}")):
        with pytest.raises(UsageError, match=r"another graph than \[y\]. Name the right one: \[y\] --session sess"):
            magic(model, f"%dtf_{name} [y]{feed}")
        assert isinstance(magic(model, f"%dtf_{name} [y]{feed} --session sess", "picture"), Picture)
        assert isinstance(magic(model, f"%dtf_{name} z", "picture"), Picture)


NAMED = """with tf.name_scope("conv1"):
    kernel = tf.placeholder_with_default([1.0, 2.0], [2], name="kernel")
    loss = tf.reduce_sum(kernel * 2.0, name="Sum")
step = tf.identity(loss, name="step")
conv1 = "in Python something else"
sess = tf.Session()
"""


@pytest.mark.parametrize("what", ["conv1/Sum", "conv1/Sum:0", "[conv1/Sum, step]", "conv1/Sum step", "loss, conv1/Sum"])
@pytest.mark.parametrize("name", ["explain", "placement", "timeline", "memory", "step"])
def test_names_of_the_picture_are_fetches(shell, name, what):
    shell.run_cell(NAMED).raise_error()
    shown = magic(shell, f"%dtf_{name} {what}", "shown")
    if name == "step":
        assert shown.ready == ["conv1/kernel"] and "conv1/Sum" in shown.counts
    elif name == "memory":
        assert shown.sentence.startswith("Memory of one step")
    else:
        assert "Sum" in repr(shown.ops if name == "explain" else shown.tables)


def test_python_comes_before_names(shell):
    shell.run_cell(NAMED + "step = loss").raise_error()
    assert magic(shell, "%dtf_explain step", "told").fetches == ["conv1/Sum:0"]
    assert magic(shell, "%dtf_explain step:0", "told").fetches == ["step:0"]


def test_two_fetches_need_no_brackets(shell):
    shell.run_cell(NAMED).raise_error()
    assert magic(shell, "%dtf_explain loss step", "told").fetches == ["conv1/Sum:0", "step:0"]
    text = cell(shell, "%dtf_timeline loss nobody")
    assert text.startswith("UsageError: ") and "'nobody' is no op or tensor of the graph" in text
    assert len(text.splitlines()) == 1


def test_names_in_the_graph_of_the_named_session(shell):
    shell.run_cell("with tf.Graph().as_default() as g:\n    tf.constant(1, name='a/b')\nsess = tf.Session(graph=g)")
    assert "a/b" in magic(shell, "%dtf_placement a/b --session sess", "picture").text
    text = cell(shell, "%dtf_timeline a/b --session sess")
    assert text == "UsageError: the trace has no length: all its times are equal, so there is nothing to draw\n"
    text = cell(shell, "%dtf_timeline a/b")
    assert text == "UsageError: In 'a/b': name 'a' is not defined. And 'a/b' is no op or tensor of the graph.\n"


def test_a_scope_that_is_not_there(model):
    text = cell(model, "%dtf_placement y --scope nope")
    assert text.startswith("UsageError: No op of this graph is in the scope 'nope'") and len(text.splitlines()) == 1


def test_split_leaves_python_as_typed():
    options = ("feed", "session")
    assert arguments.split("", options, "") == {"": ""}
    assert arguments.split("a, b --feed {x: -1, 'y  z': \"--session q\"}", options, "") == {
        "": "a, b",
        "feed": "{x: -1, 'y  z': \"--session q\"}",
    }
    assert arguments.split("--session=s f(1, --feed) --feed (a --session b)", options, "") == {
        "": "",
        "session": "s f(1, --feed)",
        "feed": "(a --session b)",
    }
    assert arguments.split("a--feed", options, "") == {"": "a--feed"}


# ---- examples ----


def test_a_dataset_shows_its_first_images(shell):
    digits = tf.datasets.digits()
    shown = shell.display_formatter.format(digits.train)[0]["text/html"]
    assert shown.startswith("<div") and "1,197 examples" in shown and shown.count("<img") == images.MOST
    labels = re.findall(r"<br>(\d)</span>", shown)
    assert labels == [str(label) for label in digits.train.labels[: images.MOST]]
    assert shown == images.dataset_html(tf.datasets.digits(one_hot=True).train)
    odd = Dataset(np.zeros((2, 3), np.float32), np.zeros(2))
    assert "text/html" not in shell.display_formatter.format(odd)[0]


def test_png():
    from PIL import Image  # matplotlib brings it

    pixels = np.arange(12, dtype=np.uint8).reshape(3, 4)
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(images.png(pixels)))), pixels)


# ---- errors ----


def test_an_error_is_short(model):
    text = cell(model, "def ask():\n    return sess.run(y)\nask()")
    assert text.startswith("InvalidArgumentError: You must feed a value for placeholder tensor 'x'")
    assert len(text.splitlines()) < 12 and "session.py" not in text and "{{node" not in text
    assert re.search(r"op +x\n", text)
    assert re.search(r"device +/job:worker/replica:0/task:1/device:CPU:0\n", text)
    assert re.search(r"made in +Cell In\[.*\], line 4: +x = tf.placeholder", text)
    assert re.search(r"run in +Cell In\[.*\], line 3: +ask\(\)\n +Cell In\[.*\], line 2, in ask: +return sess", text)


def test_every_frame_on_demand(model):
    cell(model, "sess.run(y)")
    for ask in ("%tb plain", "%tb verbose"):
        text = cell(model, ask)
        assert "session.py" in text and "You must feed" in text
    assert "session.py" not in cell(model, "%tb")


INTERRUPTED = """def hang(value):
    raise KeyboardInterrupt
sess = tf.Session()
z = tf.py_func(hang, [tf.constant(1.0)], tf.float32)
def ask():
    return {what}
ask()
"""


@pytest.mark.parametrize("what", ["sess.run(z)", "sess.step_through(z).finish()"])
def test_an_interrupt_shows_the_users_lines(shell, what):
    text = cell(shell, INTERRUPTED.replace("{what}", what))
    assert text.startswith("KeyboardInterrupt: The step was interrupted.\n\n  run in ") and "library" not in text
    ours = re.search(r"run in +Cell In.*, line 7: +ask\(\)\n +Cell In.*, line 6, in ask: +return sess\.", text)
    assert ours and "line 2, in hang:  raise KeyboardInterrupt" in text
    assert len(text.splitlines()) == 7 and ".py" not in text, text
    everything = cell(shell, "%tb plain")
    assert "dtflab" in everything and everything.rstrip().endswith("KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        shell.user_ns["sess"].run(shell.user_ns["z"])


def test_the_client_that_failed_is_named(model):
    text = cell(model, "cluster.run(lambda client: tf.Session(client.target).run(tf.placeholder(tf.float32)))")
    assert re.search(r"\(raised in the client of /job:worker/task:[01]\)", text)


def test_many_calls_are_cut_in_the_middle(model):
    text = cell(model, "def dig(n):\n    return dig(n - 1) if n else sess.run(y)\ndig(50)")
    assert "more" in text and len(text.splitlines()) < 20 and "dig(50)" in text


def test_no_op_no_device():
    error = errors.UnavailableError(None, None, "Task x does not answer.")
    assert error._render_traceback_() == [
        "\x1b[31mUnavailableError\x1b[0m: Task x does not answer.\n\nAll frames: %tb plain"
    ]


# ---- %dtf_explain, %dtf_step ----


def test_explain_tells_of_the_session_that_runs_the_graph(model):
    told = magic(model, "%dtf_explain y --feed [x]", "told")
    assert {(c.tensor, c.nbytes) for c in told.crossings} == {("v/read", 8), ("_arg_x_0_0", 8), ("y", 8)}
    assert "pinned to /job:worker/task:1" in magic(model, "%dtf_explain y --session sess", "told").everything
    data, _ = model.display_formatter.format(told)
    assert "Ready order" in data["text/html"] and "<script" not in data["text/html"]


def test_explain_without_a_session(shell):
    shell.run_cell("a = tf.constant(1.0)\nb = tf.negative(a, name='b')").raise_error()
    assert "A step for b: 2 of 2 ops on 1 device" in repr(magic(shell, "%dtf_explain b", "told"))
    assert "Name what the step would fetch" in cell(shell, "%dtf_explain")


def test_step_begins_goes_on_and_ends(model):
    begun = magic(model, "%dtf_step y --feed {x: [3.0, 4.0]}", "steps")
    assert "_arg_x_0_0" in begun.ready and begun.records == []
    assert magic(model, "%dtf_step", "steps") is begun and [r.number for r in begun.records] == [1]
    data, _ = model.display_formatter.format(begun)
    assert "Counters that fell" in data["text/html"] and "<script" not in data["text/html"]
    data, _ = model.display_formatter.format(begun.records[0])
    assert "What ran" in data["text/html"]
    assert magic(model, "%dtf_step --all", "value").tolist() == [3.0, 8.0]
    assert magic(model, "%dtf_step --all", "again").tolist() == [3.0, 8.0], "a step that is over keeps its values"
    assert "No step is under way" in cell(model, "%dtf_step")


def test_a_new_step_gives_the_old_one_up(model):
    old = magic(model, "%dtf_step y --feed {x: [3.0, 4.0]}", "old")
    new = magic(model, "%dtf_step y --feed {x: [1.0, 1.0]}", "new")
    assert old.over and not new.over
    magic(model, "%unload_ext dtflab")
    assert new.over


def test_step_says_what_it_needs(model):
    assert "No step is under way. Begin one: %dtf_step loss" in cell(model, "%dtf_step")
    assert "A step is fed when it begins" in cell(model, "%dtf_step --feed {x: [3.0, 4.0]}")
    assert "--all stands alone, without 3" in cell(model, "%dtf_step --all 3")
    assert "'y x=3' is no Python expression" in cell(model, "%dtf_step y x=3")
    assert "In 'nobody': name 'nobody' is not defined." in cell(model, "%dtf_step nobody")
    assert "Unknown option --every; there are --feed, --session, --all" in cell(model, "%dtf_step --every")


def test_a_style_is_that_of_all_pictures_from_then_on(model):
    magic(model, "%dtf_style --projector")
    try:
        assert "projector" in magic(model, "%dtf_placement", "p").svg
    finally:
        magic(model, "%dtf_style --default")
    assert "projector" not in magic(model, "%dtf_placement", "p").svg
    for line in ("%dtf_style", "%dtf_style --projector --default"):
        assert "Choose one: %dtf_style --projector or %dtf_style --default" in cell(model, line)


def test_colours_by_phase_job_or_time(model):
    model.run_cell("w = tf.Variable(2.0, name='w'); loss = tf.square(w - 1.0, name='loss')")
    model.run_cell("train = tf.train.GradientDescentOptimizer(0.1).minimize(loss); sess.run(w.initializer)")
    placed = magic(model, "%dtf_placement loss --color-by phase", "p")
    assert "loss 1 op" in placed.sentence  # of the whole graph: the gradients are not among what loss needs
    assert "By phase" in magic(model, "%dtf_timeline train --color-by phase", "p").sentence
    assert "/job:ps" in magic(model, "%dtf_placement --color-by job", "p").sentence
    timed = magic(model, "%dtf_placement y --color-by time --feed {x: [1.0, 2.0]}", "p")
    assert "By time" in timed.sentence and "less than" in timed.text
    model.run_cell("metadata = sess.trace(train)")
    assert "update" in magic(model, "%dtf_timeline metadata --color-by phase", "p").sentence
    assert "--color-by hue? Choose device, job, time, phase." in cell(model, "%dtf_placement --color-by hue")
    assert "Name what to run" in cell(model, "%dtf_placement --color-by time")
