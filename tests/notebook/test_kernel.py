"""The notebook's kernel as a process: what reaches stderr, Ctrl-C, and what is left when it ends."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from jupyter_client.manager import KernelManager

pytestmark = [pytest.mark.timeout(600), pytest.mark.processes]
PATIENCE_S = 200  # the machine may be busy; only who hangs is waited for so long


# Says so as soon as the kernel's main thread stands still in dtflab: an interrupt that comes before is another matter.
WAITING = """
def say_when_waiting():
    import sys, threading, time, traceback
    from dtflab.base.thread_frames import current_frames
    def place():
        frame = current_frames()[threading.main_thread().ident]
        return [(frame.f_code.co_filename, frame.f_lasti) for frame, _ in traceback.walk_stack(frame)]
    def look():
        places = []
        while not (places[9:] and places.count(places[-1]) == 10 and "dtflab" in str(places[-1])):
            places = [*places[-9:], place()]
            time.sleep(0.02)
        print("waiting", file=out, flush=True)
    out = sys.stdout  # which the grader takes from its answers
    threading.Thread(target=look).start()
"""


class Shown(NamedTuple):
    """The output of a cell."""

    stdout: str
    stderr: str
    value: str
    error: str


class Kernel:
    """A kernel with dtflab loaded; `do` runs a cell."""

    def __init__(self, folder):
        where = {"IPYTHONDIR": str(folder), "PYTHONPATH": os.pathsep.join(sys.path)}
        self.sockets = tempfile.TemporaryDirectory()  # a free port may be another program's when the kernel begins
        self.manager = KernelManager(transport="ipc", ip=f"{self.sockets.name}/k")
        self.manager.start_kernel(env=os.environ | where, cwd=folder)
        self.client = self.manager.client()
        self.client.start_channels()
        self.load()

    def load(self):
        self.client.wait_for_ready(timeout=PATIENCE_S)
        assert self.do("import dtflab as tf\n%load_ext dtflab" + WAITING) == Shown("", "", "", "")

    def do(self, code):
        shown = {"stdout": "", "stderr": "", "value": "", "error": ""}

        def hear(message):
            content = message["content"]
            if message["msg_type"] == "stream":
                shown[content["name"]] += content["text"]
            elif message["msg_type"] in ("execute_result", "display_data"):
                shown["value"] += content["data"]["text/plain"]
            elif message["msg_type"] == "error":
                shown["error"] = content["ename"]

        self.client.execute_interactive(code, timeout=PATIENCE_S, output_hook=hear, stop_on_error=False)
        return Shown(**shown)

    def tab(self, code):
        """The end of some code that Tab replaces, and what it offers for it, as JupyterLab asks."""
        reply = self.client.complete(code, reply=True, timeout=PATIENCE_S)["content"]
        return code[reply["cursor_start"] : reply["cursor_end"]], reply["matches"]

    def start(self, code):
        """Begin a cell that will not end by itself, and return once it says `waiting`."""
        number = self.client.execute(code, stop_on_error=False)  # else what follows an interrupt may be skipped
        while True:
            message = self.client.get_iopub_msg(timeout=PATIENCE_S)
            if message["msg_type"] == "stream" and "waiting" in message["content"]["text"]:
                return number

    def interrupt(self, number):
        """How a cell ended after Ctrl-C, and after how many seconds; what it shows is in `frames`."""
        began = time.monotonic()
        self.manager.interrupt_kernel()
        while True:
            reply = self.client.get_shell_msg(timeout=PATIENCE_S)
            if reply["parent_header"]["msg_id"] == number:
                self.frames = "\n".join(reply["content"].get("traceback", ()))
                return reply["content"].get("ename"), time.monotonic() - began

    def end(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()
        self.sockets.cleanup()


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    kernel = Kernel(tmp_path_factory.mktemp("kernel"))
    yield kernel
    kernel.end()


@pytest.fixture
def own_kernel(tmp_path):
    kernel = Kernel(tmp_path)
    yield kernel
    kernel.end()


MODEL = """
tf.reset_default_graph()
with tf.device("/job:ps/task:0"):
    x = tf.Variable([1.0, 2.0], name="x")
with tf.device("/job:worker/task:1"):
    y = tf.multiply(x, 2.0, name="y")
sess = tf.Session(c.target)
sess.run(x.initializer)
"""

FORKS = """
import multiprocessing, subprocess
!echo from a shell
print(subprocess.check_output("echo from a subprocess", shell=True, text=True), end="")
child = multiprocessing.get_context("fork").Process(target=print, args=("from a fork",), kwargs={"flush": True})
child.start(); child.join()
print(child.exitcode, sess.run(y))
"""

# ---- stderr ----


@pytest.mark.parametrize("how", ["--listen", "--engine process"])
def test_forks_say_nothing_on_stderr(kernel, how):
    kernel.do(f"c = %dtf_cluster --ps 1 --worker 2 {how}")
    kernel.do(MODEL)
    shown = kernel.do(FORKS)
    assert shown.stderr == "" and shown.error == ""
    for part in ("from a shell", "from a subprocess", "from a fork", "0 [2. 4.]"):
        assert part in shown.stdout.replace("\r", "")
    kernel.do("sess.close()\n%dtf_cluster stop")


def test_what_tensorflow_logs_goes_to_the_cell(kernel):
    kernel.do("c = %dtf_cluster --ps 1 --worker 2")
    kernel.do(MODEL)
    shown = kernel.do("tf.Session(c.target, config=tf.ConfigProto(log_device_placement=True)).run(x.initializer)")
    assert shown.stderr == "" and "y: (Mul): /job:worker/replica:0/task:1/device:CPU:0" in shown.stdout
    shown = kernel.do("print(sess.run(tf.Print(y, [y], 'y is ')))")
    assert shown.stderr == "" and "y is [2 4]" in shown.stdout
    shown = kernel.do(
        "tf.timeouts.notice, tf.timeouts.tasks = 0.1, 0.5\n"
        "lone = tf.train.Server({'a': ['localhost:0', 'localhost:1']}, 'a', 0)\n"
        "tf.Session(lone.target).list_devices()"
    )
    assert shown.stderr == "" and shown.error == "UnavailableError"
    assert "still waiting for response from worker: /job:a/replica:0/task:1 at localhost:1" in shown.stdout
    kernel.do("lone.stop()\ntf.timeouts.notice, tf.timeouts.tasks = 5, 300")


# ---- Tab ----


def test_tab_offers_a_magics_own_options(kernel):
    kernel.do("c = %dtf_cluster --ps 1 --worker 2\ntf.reset_default_graph()\ny = tf.constant(1.0)")
    for before in ("", "c = ", "x = 1\nc = "):
        assert kernel.tab(f"{before}%dtf_cluster --w") == ("--w", ["--worker"])
    assert kernel.tab("%dtf_cluster --engine ten") == ("ten", ["tensorflow"])
    assert kernel.tab("%%dtf_run --on /job:w") == ("/job:w", ["/job:worker/task:0", "/job:worker/task:1"])
    typed, offered = kernel.tab("%dtf_timeline y --")
    assert typed == "--" and {*offered} == {"--feed", "--steps", "--color-by", "--session", "--help"}
    assert kernel.tab("y.gra")[1] == ["graph"]
    kernel.do("%dtf_cluster stop")


# ---- Ctrl-C ----

PROMPT_BACK_S = 60  # it takes a tenth of a second, or 300 s without Ctrl-C; the machine may be busy

WAITS = {
    "clients": """
import threading
forever = threading.Event()
say_when_waiting()
c.run(lambda client: forever.wait())""",
    "a step that needs another process": """
import os, signal
forever.set()
other = c.task("worker", 1).pid
os.kill(other, signal.SIGSTOP)
say_when_waiting()
sess.run(y)""",
}


def test_ctrl_c_gives_the_prompt_back_and_leaves_the_rest_as_it_was(kernel):
    kernel.do("tf.timeouts.tasks = 300\nc = %dtf_cluster --ps 1 --worker 2 --engine process")
    kernel.do(MODEL)
    for what, code in WAITS.items():
        ended, seconds = kernel.interrupt(kernel.start(code))
        assert ended == "KeyboardInterrupt" and seconds < PROMPT_BACK_S, what
        line = r"c.run\(lambda client: forever.wait\(\)\)" if what == "clients" else r"sess.run\(y\)"
        assert re.search(rf"was interrupted\.\n\n +run in .*:  {line}\n\nAll frames", kernel.frames), kernel.frames
        assert kernel.do("print(sess.run(x))") == Shown("[1. 2.]\n", "", "", ""), what
    gone = kernel.do("os.kill(other, signal.SIGCONT)\nc.kill('worker', 1)\ntf.Session(c.target).list_devices()")
    assert gone.error == "UnavailableError"  # nobody waits for what has ended
    kernel.do("sess.close()\n%dtf_cluster stop")


def test_ctrl_c_in_a_step_that_waits_in_this_process(kernel):
    kernel.do("c = %dtf_cluster --worker 2\ntf.reset_default_graph()")
    ended, seconds = kernel.interrupt(kernel.start(NEVER_SENT))
    assert ended == "KeyboardInterrupt" and seconds < PROMPT_BACK_S
    assert re.search(r"line 11:  sess.run\(never\)\n\nAll frames: %tb plain$", kernel.frames), kernel.frames
    assert kernel.do("print(sess.run(tf.constant(7)))\nsess.close()\n%dtf_cluster stop") == Shown("7\n", "", "", "")


NEVER_SENT = """
graph_def = tf.GraphDef()
node = graph_def.node.add(name="never", op="_Recv", device="/job:worker/task:0")
node.attr["tensor_type"].type = tf.float32.as_datatype_enum
node.attr["tensor_name"].s = b"never"
node.attr["send_device"].s = b"/job:worker/replica:0/task:1/device:CPU:0"
node.attr["recv_device"].s = b"/job:worker/replica:0/task:0/device:CPU:0"
node.attr["send_device_incarnation"].i = 1
[never] = tf.import_graph_def(graph_def, return_elements=["never:0"], name="")
sess = tf.Session(c.target)
say_when_waiting()
sess.run(never)
"""


# ---- the end ----


def pids(kernel):
    shown = kernel.do("c = %dtf_cluster --worker 1 --engine process\nprint(c.tasks[0].pid)")
    assert shown.stderr == "" and running(int(shown.stdout))
    return [int(shown.stdout)]


def left(pids):
    """The processes that still run, after a wait for their end."""
    deadline = time.monotonic() + 60
    while alive := [pid for pid in pids if running(pid)]:
        if time.monotonic() > deadline:
            return alive
        time.sleep(0.05)
    return []


def running(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_nothing_is_left_when_the_kernel_restarts_or_dies(own_kernel):
    tasks = pids(own_kernel)
    own_kernel.manager.restart_kernel()
    assert left(tasks) == []

    own_kernel.load()
    tasks = pids(own_kernel)
    os.kill(own_kernel.manager.provisioner.pid, signal.SIGKILL)
    assert left(tasks) == []


def test_ctrl_c_in_a_grade_whose_answer_hangs(kernel):
    kernel.do("import dtflab\ndef balance_by_bytes(n, w):\n    while True: pass")
    code = "say_when_waiting()\ndtflab.grade('placement/q1')"
    ended, seconds = kernel.interrupt(kernel.start(code))
    assert ended == "KeyboardInterrupt" and seconds < PROMPT_BACK_S
    alone = "import threading; print([t.name for t in threading.enumerate() if t.name == 'dtflab-answer'])"
    assert kernel.do(alone) == Shown("[]\n", "", "", "")
