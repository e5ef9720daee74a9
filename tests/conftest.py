"""The frame of every test: it begins without GPUs, in a fresh graph, and nothing is left running."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import hypothesis
import pytest

from dtflab.base.thread_frames import current_frames
from dtflab.graph import default_stacks, scopes
from dtflab.hardware import catalogue
from dtflab.machine import cards, clock, hosts

pytest_plugins = ["tests.rings", "tests.durations", "tests.oracle.tensorflow1", "tests.oracle.answers"]

# Before the first import of TensorFlow, by whichever test.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")  # tf.layers and tf.nn.rnn_cell live in tf_keras
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # else the CPU decides which kernels TensorFlow has
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

# No GPUs, neither real ones nor those that the user simulates: a test asks for what it needs.
for variable in ("DTFLAB_GPU", "DTFLAB_GPU_MEMORY", "DTFLAB_HOST"):
    os.environ.pop(variable, None)
os.environ["DTFLAB_GPUS"] = "0"

# Tests that are started in a shell's background get no Ctrl-C, nor does any process that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """No deadline, and no complaint that examples are slow to make: the machine may be busy.

    In CI and in the quick ring the same examples each time, else new ones.
    """
    hypothesis.settings.register_profile(
        "dtflab", deadline=None, derandomize=os.environ.get("CI") == "true" or config.getoption("quick"),
        print_blob=True, suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )  # fmt: skip
    hypothesis.settings.load_profile("dtflab")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report the measurements of tests (`record_property`): mutation scores, seconds of lessons."""
    reports = [report for found in ("passed", "failed") for report in terminalreporter.stats.get(found, [])]
    measured = {report.nodeid: report.user_properties for report in reports if report.user_properties}
    if measured:
        terminalreporter.section("measured")
    for test, properties in measured.items():
        for name, value in properties:
            terminalreporter.write_line(f"{test.rpartition('::')[2]}: {name}: {value}")


# ---- GPUs ----


@pytest.fixture(scope="session", autouse=True)
def gpu_registry(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The simulated hosts of the tests are not those of the user's notebooks."""
    os.environ["DTFLAB_REGISTRY"] = str(tmp_path_factory.mktemp("registry"))


@pytest.fixture(autouse=True)
def no_gpus(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A test begins without GPUs, and takes along those that it simulated. TensorFlow is kept off real ones."""
    if not {"oracle", "interop"} & {mark.name for mark in request.node.iter_markers()}:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    yield
    hosts.simulate_gpus(None)
    os.environ.pop("DTFLAB_HOST", None)  # a notebook that simulates GPUs is a host of its own from then on


# ---- nothing is left behind ----


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collected tests stay until the end: to look for garbage in it takes two thirds of the collection's time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def old_objects_are_not_looked_at_again() -> None:
    """Freeze the millions of objects of earlier modules: an allocator collects garbage before it is out of memory."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def fresh_default_graph() -> None:
    """A test may use the default graph; what others built in it is not there, in whatever order they run."""
    if not default_stacks.default_graph_stack.stack:  # a wider fixture is inside of a graph of its own
        scopes.reset_default_graph()


@pytest.fixture(autouse=True)
def own_hardware_goes() -> Iterator[None]:
    """Parts that a test adds to the catalogue, or hands to a cluster, are gone after it."""
    yield
    for _, name in catalogue._added:
        for shelf in (
            catalogue.GPUS,
            catalogue.CPUS,
            catalogue.BUSES,
            catalogue.NICS,
            catalogue.SWITCHES,
            catalogue.RACKS,
        ):
            shelf.pop(name, None)
        cards.MODELS[:] = [model for model in cards.MODELS if model.name != name]
    catalogue._added.clear()


@pytest.fixture(autouse=True)
def virtual_time_ends() -> Iterator[None]:
    """A virtual cluster that an answer left open is not the clock of the tests after it."""
    before = [*clock._of_program]
    yield
    clock._of_program[:] = [one for one in clock._of_program if one in before]


SETTLE_S = 60.0  # for threads and processes that are stopping


@pytest.fixture(autouse=True)
def nothing_left_running() -> Iterator[None]:
    """A test stops each thread and process that it started; wider fixtures start theirs earlier."""
    threads, children = set(threading.enumerate()), child_processes()
    yield
    deadline = time.monotonic() + SETTLE_S
    while left := _left(threads, children):
        if time.monotonic() > deadline:
            pytest.fail("left running after the test:\n" + "\n".join(left), pytrace=False)
        gc.collect()  # an error that a test has caught holds its frames, which may hold a channel and its thread
        time.sleep(0.01)


def _left(threads: set[threading.Thread], children: set[int]) -> list[str]:
    lines, new = [], set(threading.enumerate()) - threads
    frames = current_frames() if new else {}
    for thread in new:
        stack = [frame for frame, _ in traceback.walk_stack(frames[thread.ident])] if thread.ident in frames else []
        if not _idle_in_a_pool(stack):
            lines.append(f"thread {thread.name}\n" + "".join(traceback.format_stack(*stack[:1])))
    return lines + [f"process {pid}: {_command_line(pid)}" for pid in child_processes() - children]


def _idle_in_a_pool(stack: list[FrameType]) -> bool:
    """A thread of `machine/clock.py` that waits for a task goes away by itself; one with a task does not.

    Except for the one that looks for silent peers, and finds at its next look that none is awaited.
    """
    if any(frame.f_code.co_qualname == "Lookout._rest" for frame in stack):
        return True
    pool = [frame for frame in stack if frame.f_code.co_qualname == "Pool._work"]
    return bool(pool) and pool[0].f_locals.get("task", "not yet") is None


def child_processes() -> set[int]:
    """Children of this process, unreaped ones too. Linux only; elsewhere nothing is seen."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except (AttributeError, ChildProcessError):  # none: TensorFlow's hundreds of threads need not be asked
        return set()
    found = set()
    for task in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError):  # a thread that has ended meanwhile
            found.update(map(int, task.read_text().split()))
    return found


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return "(gone)"
