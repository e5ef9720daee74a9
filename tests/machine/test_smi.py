"""The table of nvidia-smi."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import dtflab as tf
from dtflab.machine import cards, hosts, registry, smi

MIB = 1 << 20


class ByHand:
    """A clock that a test turns."""

    def __init__(self):
        self.seconds = 1_000_000.0
        self.during_sleep = lambda: None

    def time(self):
        return self.seconds

    def sleep(self, seconds):
        self.during_sleep()
        self.seconds += seconds


@pytest.fixture(autouse=True)
def first_look(tmp_path, monkeypatch):
    monkeypatch.setenv("DTFLAB_REGISTRY", str(tmp_path / "registry"))
    monkeypatch.setattr(smi, "_last", None)
    yield
    hosts.simulate_gpus(None)
    registry.registry().leave()


@pytest.fixture
def clock(monkeypatch):
    clock = ByHand()
    monkeypatch.setattr(hosts.REAL.__class__, "time", staticmethod(clock.time))
    return clock


def claim(program="", card=0, host="localhost"):
    return hosts.visible_claims(host, program, None)[card]


BOOK = """\
+-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|===============================+======================+======================|
|   0  GRID K520           Off  | 0000:00:03.0     Off |                  N/A |
| N/A   N/A   N/A    N/A / 125W |     11MiB /  4095MiB |      0%      Default |
+-------------------------------+----------------------+----------------------+

+-----------------------------------------------------------------------------+
| Processes:                                                       GPU Memory |
|  GPU       PID  Type  Process name                               Usage      |
|=============================================================================|
|  No running processes found                                                 |
+-----------------------------------------------------------------------------+"""


def test_an_idle_card_as_in_the_book():
    hosts.simulate_gpus(1)
    moment, host, *table = str(tf.smi()).split("\n", 3)
    assert moment.count(":") == 2 and host == ""
    heading, table = table[0], table[1]
    assert heading == "localhost: simulated GPUs: they compute with NumPy, so all times are NumPy's"
    assert table == BOOK
    assert {len(line) for line in table.splitlines()} == {0, 79}


def test_without_gpus_it_says_how_to_get_some():
    text = repr(tf.smi())
    assert "No GPUs, neither real nor simulated ones" in text and "dtflab.simulate_gpus(2)" in text


def test_two_programs_at_0_4_as_in_the_book():
    hosts.simulate_gpus(2)
    share = int(0.4 * cards.DEFAULT.memory_bytes)
    for program in ("a", "b"):
        for card in (0, 1):
            assert claim(program, card).grab(share)
    (host,) = tf.smi().hosts
    assert [(p.gpu, p.pid, p.name) for p in host.processes] == [
        (0, os.getpid(), "a"), (0, os.getpid(), "b"), (1, os.getpid(), "a"), (1, os.getpid(), "b"),
    ]  # fmt: skip
    lines = str(tf.smi()).splitlines()
    assert sum(line.endswith("   1677MiB |") for line in lines) == 4
    assert sum("|   3364MiB /  4095MiB |" in line for line in lines) == 2
    hosts.end_program("b")
    assert sum("|   1688MiB /  4095MiB |" in line for line in str(tf.smi()).splitlines()) == 2


def test_long_names_are_cut_and_the_table_stays_straight():
    hosts.simulate_gpus(1, "Titan X")
    assert claim("/job:a_job_with_a_long_name/task:100 of a_cluster_with_a_long_name").grab(MIB)
    text = str(tf.smi())
    assert "|   0  GeForce GTX TIT...  Off  |" in text and "| N/A   N/A   N/A    N/A / 250W |" in text
    assert "C   /job:a_job_with_a_long_name/task:100 of ..." in text
    assert {len(line) for line in text.splitlines() if line[:1] in "|+" and line} == {79}


# ---- utilization ----


def test_utilisation_is_the_share_of_time_since_the_last_look(clock):
    hosts.simulate_gpus(2)
    first, second = claim("a"), claim("b", 1)
    assert first.grab(MIB) and second.grab(MIB)

    def shown():
        return [card.utilization for card in smi.smi(clock=clock).hosts[0].cards]

    clock.seconds += 10
    first.busy(2.5)
    assert shown() == [0.25, 0], "at first: since the card was used"
    clock.seconds += 1
    first.busy(0.5)
    second.busy(1.0)
    assert shown() == [0.5, 1.0]
    clock.seconds += 1
    assert shown() == [0, 0]
    clock.seconds += 1
    for _ in range(4):
        first.busy(0.4)  # side by side, on four threads
    assert shown() == [1.0, 0]


def test_a_period_is_measured_while_it_passes(clock):
    hosts.simulate_gpus(1)
    mine = claim()
    assert mine.grab(MIB)
    mine.busy(1000.0)
    clock.during_sleep = lambda: mine.busy(0.2)
    shown = smi.smi(0.5, clock)
    assert shown.hosts[0].cards[0].utilization == pytest.approx(0.4) and "|     40%      Default |" in str(shown)


def test_programs_on_one_card_count_together(clock):
    hosts.simulate_gpus(1)
    found = [claim(name) for name in "ab"]
    assert all(each.grab(MIB) for each in found)
    clock.seconds += 1
    for each in found:
        each.busy(0.25)
    assert smi.smi(clock=clock).hosts[0].cards[0].utilization == 0.5


def test_what_a_step_does_is_seen():
    hosts.simulate_gpus(1)
    with tf.device("/gpu:0"):
        ones = tf.ones([256, 1024])
        kept = tf.get_variable("kept", initializer=tf.ones([256, 1024]))
    with tf.Session() as sess:
        sess.run(kept.initializer)
        sess.run(tf.matmul(ones, kept, transpose_b=True).op)
        (process,) = tf.smi().hosts[0].processes
    assert process.held == cards.grab_all_limit(cards.DEFAULT.memory_bytes) + cards.CONTEXT_BYTES
    assert process.in_use >= MIB and process.pid == os.getpid()
    (record,) = registry.registry().everyone()
    assert record.counters(record.holdings[0])[0] > 0


def test_a_program_that_begins_during_a_look_is_in_the_next_one(monkeypatch):
    hosts.simulate_gpus(1)
    assert claim("first").grab(MIB)
    look = smi._look

    def slow_look(records, clock):
        found = look(records, clock)
        assert claim("second").grab(MIB)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(smi, "_look", slow_look)
        assert [process.name for process in tf.smi().hosts[0].processes] == ["first"]
    assert [process.name for process in tf.smi().hosts[0].processes] == ["first", "second"]


# ---- notebook, command line, other processes ----


def another_process(folder, *holdings, **there):
    """The record of another living process: a folder has it as long as that is open."""
    other = registry.Registry(folder)
    other.publish({name: registry.HostCards("GRID K520", 4 << 30, count) for name, count in there.items()}, [])
    if holdings:
        slot, _ = other.take_slot()
        other.publish(other._record.hosts, [registry.Holding(*each, slot) for each in holdings])
    return other


def test_hosts_of_other_programs_stand_below_a_line(tmp_path):
    hosts.simulate_gpus(1)
    other = another_process(tmp_path / "registry", ("notebook-7", 0, "theirs", MIB, 1.0), **{"notebook-7": 2, "a": 1})
    try:
        shown = tf.smi()
        assert [(host.name, host.ours) for host in shown.hosts] == [
            ("localhost", True), ("a", False), ("notebook-7", False),
        ]  # fmt: skip
        ours, theirs = shown.text.split(f"{smi.OTHERS}:\n")
        assert "localhost: simulated" in ours and "notebook-7: simulated" in theirs and "theirs" in theirs
        assert f"<details><summary>{smi.OTHERS} (2 hosts)</summary>" in shown._repr_html_()
        hosts.simulate_gpus(None)
        alone = tf.smi()
        assert "No GPUs" not in alone.text and "No GPUs" in alone._repr_html_()  # a fold would hide all that there is
    finally:
        other.leave()


def test_programs_on_one_host_are_ours_whoever_they_are(tmp_path):
    hosts.simulate_gpus(1)
    other = another_process(tmp_path / "registry", ("localhost", 0, "theirs", MIB, 1.0), localhost=1)
    try:
        assert claim("mine").grab(MIB)
        shown = tf.smi()
        assert [process.name for process in shown.hosts[0].processes] == ["mine", "theirs"]
        assert shown.others == [] and smi.OTHERS not in shown.text + shown._repr_html_()
    finally:
        other.leave()


def test_a_notebook_shows_a_table():
    assert "<table>" not in tf.smi()._repr_html_() and "No GPUs" in tf.smi()._repr_html_()
    hosts.simulate_gpus(1, "Titan X")
    assert "No running processes found" in tf.smi()._repr_html_()
    assert claim("<b>&").grab(MIB)
    text = tf.smi()._repr_html_()
    assert "<td style=text-align:left>GeForce GTX TITAN X</td>" in text and "50MiB / 12287MiB" in text
    assert "&lt;b&gt;&amp;" in text and "<b>&" not in text and "NumPy&#x27;s" in text


CHILD = """
import sys
import dtflab as tf
options = tf.GPUOptions(per_process_gpu_memory_fraction=0.4)
with tf.device("/gpu:0"):
    value = tf.ones([1000])
with tf.Session(config=tf.ConfigProto(gpu_options=options)) as sess:
    sess.run(value.op)
    print("ready", flush=True)
    sys.stdin.read()
"""


def test_the_command_sees_other_processes(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(CHILD)
    env = {**os.environ, "DTFLAB_GPUS": "1", "DTFLAB_HOST": "machine-a"}
    with subprocess.Popen(
        [sys.executable, script], env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        try:
            assert child.stdout.readline() == "ready\n"
            command = [sys.executable, "-m", "dtflab", "smi", "--period", "0.01"]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        finally:
            child.communicate("")
    assert done.stderr == ""
    assert f"{smi.OTHERS}:\n\nmachine-a: simulated GPUs" in done.stdout and "|   1688MiB /  4095MiB |" in done.stdout
    (line,) = [line for line in done.stdout.splitlines() if "1677MiB" in line]
    assert line.split()[1:-1] == ["0", str(child.pid), "C", os.path.basename(sys.executable), "train.py", "1677MiB"]
    assert "No GPUs" in str(tf.smi()), "it has ended"
