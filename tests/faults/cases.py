"""One case: a fault hits a task at a moment of a program. What does the program see, and when?"""

from __future__ import annotations

import contextlib
import io
import itertools
import re
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import Any, NamedTuple
from unittest import mock

import dtflab as tf
from tests.faults.moments import MOMENTS, VICTIMS, Program, Site, Task, device, partner, simple

SILENCE = 1.0  # seconds: short, so that a stopped task is given up after two
CREATION = 3.0  # seconds in which a task must answer a new session
NOTICE = 1.0  # seconds after which a blocked step says what it waits for
PATIENCE = 6.0  # seconds after which a step that has not ended "waits"
SETTLE = 0.1  # seconds from a step's signal to the moment that it announces
SOON = 0.01  # virtual seconds from a step's beginning to the fault
REPEATS = 2  # before the fault
_numbers = itertools.count()


ENGINES = ("inprocess", "process", "dask", "tensorflow", "virtual time")
OF_DTFLAB = ("inprocess", "process", "dask", "virtual time")  # chaos can stop, part and slow down the tasks of these
WITH_MESSAGES = ("before a step", "while it sends 100 MB", "while it receives 100 MB", "during a save of its variables")


class Fault(NamedTuple):
    """A fault: what dtflab.chaos is asked for, with TASK and the OTHERS; on which engines, at which moments."""

    kind: str
    text: str
    engines: tuple[str, ...] = OF_DTFLAB
    moments: tuple[str, ...] = tuple(MOMENTS)

    def of(self, task: Task) -> str:
        """The text for a victim."""
        others = ",".join(f"{job}:{index}" for job, index in VICTIMS.values() if (job, index) != task)
        return self.text.replace("TASK", f"{task[0]}:{task[1]}").replace("OTHERS", others)


FAULTS = {
    "killed": Fault("kill", "TASK", ENGINES),
    "stopped": Fault("stop", "TASK", (*OF_DTFLAB, "tensorflow")),
    "cut off from all others": Fault("partition", "TASK|OTHERS"),
    "tensors lost": Fault("drop", "RecvTensor:1", moments=WITH_MESSAGES),
    "calls for parts of steps lost": Fault("drop", "RunGraph:1", moments=WITH_MESSAGES),
    "4 times as slow": Fault("slow", "TASK=4x", moments=WITH_MESSAGES),
}


class Seen(NamedTuple):
    """The outcome of a case."""

    what: str  # an error's class, "waits", or "goes on"
    said: str  # the error's first sentence, or the last line that was printed
    seconds: float  # from the fault, or from the step that began after it
    afterwards: str = ""  # the error of a new session, once the fault is over


@contextlib.contextmanager
def cluster(engine: str) -> Iterator[tf.Cluster]:
    """The cluster of an engine that all of its cases happen to."""
    options: dict[str, Any] = {"clock": "virtual"} if engine == "virtual time" else {"engine": engine}
    with contextlib.ExitStack() as stack:
        stack.enter_context(_short_timeouts())
        if engine == "dask":
            from distributed import Client

            local = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 60}
            options["client"] = stack.enter_context(Client(n_workers=3, **local))
        yield stack.enter_context(tf.Cluster(ps=1, worker=2, **options))


@contextlib.contextmanager
def _short_timeouts(answer: float = CREATION) -> Iterator[None]:
    values = {"silence": SILENCE, "notice": NOTICE, "tasks": answer, "connect": answer}
    with contextlib.ExitStack() as stack:
        for name, seconds in values.items():
            stack.enter_context(mock.patch.object(tf.timeouts, name, seconds))
        yield


def seen(found: tf.Cluster, fault: str, moment: str, victim: str) -> Seen:
    """Let a fault hit a running cluster."""
    task, kind = VICTIMS[victim], Virtual if found.world is not None else Threaded
    with (
        tf.Graph().as_default(), _short_timeouts(),
        contextlib.redirect_stderr(io.StringIO()) as printed,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
    ):  # fmt: skip
        site = Site(device(task), device(partner(task)), folder, next(_numbers), kind.computes)
        client = kind(found, MOMENTS[moment](site), task)
        with client.meeting(FAULTS[fault], task):
            outcome = client.outcome(printed.getvalue())
        if FAULTS[fault].kind == "kill":
            found.restart(*task)
        client.end()
        return Seen(*outcome, _error_afterwards(found, site, task))


class Client:
    """A program, its session and what became of it."""

    def __init__(self, found: tf.Cluster, program: Program, victim: Task) -> None:
        self._cluster, self._program, self._graph = found, program, tf.get_default_graph()
        self._victim = victim
        self._session: tf.Session | None = None
        self._error: Exception | None = None
        self._steps = self._steps_before = 0
        self._since = self._until = 0.0  # the fault, and the error

    def _open(self) -> None:
        self._session = tf.Session(self._cluster.target, graph=self._graph)

    def _prepare(self) -> None:
        """All that comes before the moment, but for the step that begins before it."""
        if not self._program.in_new_session:
            self._open()
            initializer = self._program.initializer
            self._session.run(tf.no_op() if initializer is None else initializer)

    def _step(self) -> None:
        if self._session is None:
            self._open()
        self._program.step(self._session)
        self._steps += 1

    def _goes_on(self) -> bool:
        """Whether steps end well although the fault has come; one may have been over as it came."""
        return self._steps > self._steps_before + (2 if self._program.repeats else 0)

    def outcome(self, printed: str) -> tuple[str, str, float]:
        """(what the program saw, what was said, seconds)."""
        if self._error is not None:
            said = str(getattr(self._error, "message", self._error))
            return type(self._error).__name__, sentence(said, self._victim), round(self._until - self._since, 3)
        lines = printed.splitlines()
        return ("goes on" if self._goes_on() else "waits"), sentence(lines[-1] if lines else "", self._victim), PATIENCE


class Threaded(Client):
    """In real time: the program has a thread of its own."""

    computes = 1.5

    def __init__(self, found: tf.Cluster, program: Program, victim: Task) -> None:
        super().__init__(found, program, victim)
        self._ready, self._harmed, self._ended = threading.Event(), threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._main, daemon=True)

    def _main(self) -> None:
        try:
            with self._graph.as_default():
                self._run()
        except (tf.errors.OpError, ValueError) as error:
            self._error, self._until = error, time.monotonic()
        finally:
            self._ready.set()

    def _run(self) -> None:
        self._prepare()
        if self._program.begins_after:
            self._ready.set()
            self._harmed.wait()
            self._since = time.monotonic()
        while not self._ended.is_set():
            self._step()
            if not self._program.repeats:
                return
            if self._steps == REPEATS:
                self._ready.set()

    @contextlib.contextmanager
    def meeting(self, fault: Fault, task: Task) -> Iterator[None]:
        """In this block, the fault has come at the program's moment."""
        self._thread.start()
        if self._program.signal is not None:
            with tf.Session(self._cluster.target) as observer:
                observer.run(self._program.signal)
        else:
            self._ready.wait()
        time.sleep(SETTLE)
        self._steps_before, self._since = self._steps, time.monotonic()
        with tf.chaos(self._cluster, **{fault.kind: fault.of(task)}):
            self._steps_before = self._steps  # on a busy machine some end while the fault begins
            self._harmed.set()
            while self._thread.is_alive() and time.monotonic() < self._since + PATIENCE and not self._goes_on():
                self._thread.join(0.05)
            yield

    def end(self) -> None:
        """End a step that still waits."""
        self._ended.set()
        if self._session is not None:
            with contextlib.suppress(tf.errors.OpError):
                self._session.close()
        self._thread.join()


class Virtual(Client):
    """In virtual time: the fault comes at a moment of the cluster's clock."""

    computes = 2 * SOON

    @contextlib.contextmanager
    def meeting(self, fault: Fault, task: Task) -> Iterator[None]:
        """In this block, the fault has come at the program's moment."""
        self._prepare()
        self._since = self._cluster.now() + (0.0 if self._program.begins_after else SOON)
        moment = "" if self._program.begins_after else f"@{SOON}s"
        with tf.chaos(self._cluster, **{fault.kind: fault.of(task) + moment}):
            try:
                while self._cluster.now() < self._since + PATIENCE and not self._goes_on():
                    self._step()
                    self._steps_before += self._cluster.now() < self._since
            except (tf.errors.OpError, ValueError) as error:
                self._error, self._until = error, self._cluster.now()
            yield

    def end(self) -> None:
        """Close the session."""
        if self._session is not None:
            self._session.close()


def _error_afterwards(found: tf.Cluster, site: Site, task: Task) -> str:
    """The error of a new session that uses the task again; nothing if it works."""
    with tf.Graph().as_default(), _short_timeouts(answer=30.0):
        y = simple(site)
        try:
            with tf.Session(found.target) as session:
                value = float(session.run(y))
        except tf.errors.OpError as error:
            return f"{type(error).__name__}: {sentence(error.message, task)}"
        return "" if value == 3.0 else f"a wrong value, {value}"


def sentence(message: str, task: Task) -> str:
    """The first sentence, without what differs from run to run; `task` is TASK in it."""
    for pattern, name in (
        (rf"/job:{task[0]}(?:/replica:0)?/task:{task[1]}\b", "TASK"),
        (r"(?:ipv4:)?\b(?:localhost|127\.0\.0\.1|[\w-]+\.cluster\d+):\d+", "ADDRESS"),
        (r"\b[0-9a-f]{16}\b", "ID"),
        (r"'empty \d+'", "'empty'"),
        (r"^Deadlock at \S+ s of", "Deadlock at … s of"),
        (r"\s+", " "),
        (r"^ ?=+ UNAVAILABLE: ", ""),  # TensorFlow's, before the first of several errors
        (r" Additional GRPC error information.*", ""),
    ):
        message = re.sub(pattern, name, message.partition("[[")[0])
    return re.split(r"(?<=[\w)`])\. (?=[A-Z])", message)[0].strip(" .")[:200]


def all_cases(engine: str) -> Iterator[tuple[str, str, str]]:
    """(fault, moment, victim) of each case of an engine."""
    for name, fault in FAULTS.items():
        if engine in fault.engines:
            yield from ((name, moment, victim) for moment in fault.moments for victim in VICTIMS)
