"""A program in a process of its own, with limits: whatever it does, its caller goes on, and nothing of it stays.

It is spawned, never forked, by a supervisor that leads a session: the parent that a program can kill is not its caller,
and when the caller is killed, so is the program. What belongs to it is everything of that session, whatever left the
session but still has its mark in the environment, and the descendants of both; all of that is measured, and killed at
the end. What it prints is read to the end and kept up to a limit, so that it neither fills memory nor waits for a
reader. A second pipe is for what it has to say to its caller, a third for what the caller says to it.

Rule: a limit that is passed is a sentence, not an exception. Where there is no /proc (macOS), memory and processes are
not measured, seconds are those on the wall, and only the process group is killed. Only in namespaces (`seclusion`) are
the network and hidden files out of its reach.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import secrets
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import FileIO
from pathlib import Path
from typing import IO, NamedTuple

from dtflab.grading import seclusion, supervisor
from dtflab.grading.meter import PROC, Meter, Process, Used, processes, threads
from dtflab.viz.drawing.units import memory_size

_PERIOD = 0.1  # seconds between two looks at time, memory and processes
_STOPPED = 10.0  # seconds without a look: this process was stopped (SIGSTOP, a laptop that sleeps)
DEAF = "It could not be stopped."
_MARK = "DTFLAB_ISOLATED"  # what it starts inherits it; a program inside of another has both marks
_PYTHON = (sys.executable, "-I", "-S")
_SET_DUMPABLE = 4
_MOST_HEARD = 16 * 2**20  # bytes that a program may say to its caller


class Limits(NamedTuple):
    """The limits of a program: seconds as `meter` counts them, bytes and number of processes, bytes of kept output."""

    seconds: float = 120.0
    memory: int = 4 * 2**30
    processes: int = 64
    output: int = 20_000


class Ended(NamedTuple):
    """The end of an attempt: `error` says what went wrong, empty after status 0; its output; its seconds that count.

    `unwatched`: it killed its supervisor, so what it did since then depends on how fast that was noticed. `starved`: it
    was stopped on a machine that was too busy to give it its seconds.
    """

    error: str
    output: str
    seconds: float
    unwatched: bool = False
    starved: bool = False


class _Kept:
    """The first bytes of a stream; the others are counted."""

    def __init__(self, most: int) -> None:
        self._parts = bytearray()
        self._most, self._dropped = most, 0

    def write(self, data: bytes) -> None:
        kept = data[: self._most - len(self._parts)]
        self._parts += kept
        self._dropped += len(data) - len(kept)

    @property
    def text(self) -> str:
        more = f"\n… and {self._dropped:,} bytes more" if self._dropped else ""
        return self._parts.decode("utf-8", errors="replace") + more


def run(
    command: Sequence[str],
    limits: Limits,
    folder: Path,
    *,
    environment: Mapping[str, str] | None = None,
    given: str = "",
    heard: Callable[[str], None] | None = None,
    talk: Callable[[Callable[[str], None]], None] | None = None,
    hidden: Sequence[Path] | None = None,
    stopped: Callable[[], bool] = lambda: False,
    late: Callable[[float], bool] = lambda seconds: False,
) -> Ended:
    """Run `command` in `folder`, with `given` as its standard input, until it ends or passes a limit.

    With `heard`, the number of a file descriptor is added to the command; each line that is written there is handed to
    `heard`. With `talk`, too, there is another one to read from; `talk` gets what writes a line there. With `hidden`,
    it runs in namespaces of its own (`seclusion`), and does not see these files. When `stopped` gets true, or `late`
    of the seconds that count so far, or an exception comes by, the program is killed. Needs Linux or macOS. OSError if
    it can't be started.
    """
    mark, meter = secrets.token_hex(8), Meter(limits.seconds, time.monotonic(), Used())
    kept, said = _Kept(limits.output), _Lines(heard)
    with contextlib.ExitStack() as stack:
        stdin, ready = stack.enter_context(tempfile.TemporaryFile()), stack.enter_context(selectors.DefaultSelector())
        (reads, writes), (lifeline, _), (calls, say) = (stack.enter_context(_pipe()) for _ in range(3))
        descriptors = [str(one.fileno()) for one, asked in ((writes, heard), (calls, talk)) if asked]
        stdin.write(given.encode("utf-8"))
        stdin.seek(0)
        secluded = stack.enter_context(_secluded(folder, hidden)) if hidden is not None else None
        around = [*_PYTHON, seclusion.__file__, str(secluded.fileno())] if secluded else []
        process = subprocess.Popen(
            [*_PYTHON, supervisor.__file__, str(lifeline.fileno()), *around, *command, *descriptors],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={**(os.environ if environment is None else environment), _MARK: f"{os.environ.get(_MARK, '')} {mark}"},
            pass_fds=[one.fileno() for one in (lifeline, writes, calls, secluded) if one],
            start_new_session=True,
        )
        calls.close()  # so that a write fails when the program has ended
        assert process.stdout is not None
        saying = _Saying(say)
        if talk:
            talk(saying.line)
        with process.stdout as stdout:
            ready.register(stdout, selectors.EVENT_READ, kept.write)
            ready.register(reads, selectors.EVENT_READ, said.write)
            try:
                error = _watched(process, ready, limits, mark, meter, stopped, late)
            finally:
                _kill(process, mark)
                saying.end()
            _drain(ready)
    if not error and process.returncode == supervisor.NOT_STARTED:
        raise OSError(f"it was not started: {kept.text.strip().rpartition(chr(10))[2][:200]}")
    unwatched = not error and process.returncode < 0
    starved = bool(error) and meter.seconds >= limits.seconds and meter.starved
    return Ended(error or _exit_error(process.returncode), kept.text, meter.seconds, unwatched, starved)


@contextlib.contextmanager
def _secluded(folder: Path, hidden: Sequence[Path]) -> Iterator[IO[bytes]]:
    """An order for `seclusion`, as an open file."""
    covered = [path for path in (*_own_places(), os.path.realpath(folder.parent)) if os.path.isdir(path)]
    with tempfile.TemporaryDirectory(prefix="dtflab-own-", dir=folder.parent) as own, tempfile.TemporaryFile() as order:
        for number in range(len(covered)):
            Path(own, str(number)).mkdir(mode=0o700)
        unseen = [os.path.realpath(path) for path in hidden]
        place = seclusion.Place(str(folder.resolve()), covered, own, _needed(), unseen)
        order.write(json.dumps(place._asdict()).encode())
        order.seek(0)
        yield order


def _own_places() -> list[str]:
    """Where programs write or listen, and the user's home: a program has empty ones of its own."""
    home = os.path.realpath(os.path.expanduser("~"))
    return ["/tmp", "/var/tmp", "/dev/shm", "/run", *([home] if home != "/" else [])]


def _needed() -> list[str]:
    """The files and folders without which no program runs."""
    here = str(Path(__file__).parents[2])
    named = filter(os.path.exists, (*sys.path, here, sys.prefix, sys.base_prefix, sys.executable))
    paths = {found for path in named for found in (os.path.abspath(path), os.path.realpath(path))}
    return sorted(paths - {*_own_places()})


def can_hide(path: Path) -> bool:
    """Whether nothing that a program needs is in a folder."""
    folder = path.resolve()
    return not any(Path(one).is_relative_to(folder) for one in (*_needed(), os.path.realpath(tempfile.gettempdir())))


def keep_to_itself() -> None:
    """Let no other program of this user read this one's environment and memory. (Root's can.)"""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)


def can_seclude(folder: Path, hidden: Sequence[Path]) -> bool:
    """Whether this system lets a program have namespaces of its own."""
    if sys.platform != "linux":
        return False
    try:
        return not run([sys.executable, "-c", "import dtflab"], Limits(seconds=60), folder, hidden=hidden).error
    except OSError:
        return False


@contextlib.contextmanager
def _pipe() -> Iterator[tuple[FileIO, FileIO]]:
    reads, writes = os.pipe()
    with FileIO(reads, "r") as output, FileIO(writes, "w") as given:
        yield output, given


class _Saying:
    """Writes lines to a program, on whichever thread. One that has ended does not read them."""

    def __init__(self, pipe: FileIO) -> None:
        self._pipe, self._writing = pipe, threading.Lock()

    def line(self, text: str) -> None:
        """Write a line, unless the end has come."""
        left = memoryview(f"{text}\n".encode())
        with self._writing, contextlib.suppress(BrokenPipeError):
            while left and not self._pipe.closed:
                left = left[self._pipe.write(left) :]

    def end(self) -> None:
        """Close the pipe, when nobody writes to it."""
        with self._writing:
            self._pipe.close()


class _Lines:
    """Hands on whole lines. A program that prints far too much is not read any further."""

    def __init__(self, heard: Callable[[str], None] | None) -> None:
        self._heard = heard
        self._rest = b""
        self._room = _MOST_HEARD

    def write(self, data: bytes) -> None:
        self._room -= len(data)
        if self._room < 0 or self._heard is None:
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._heard(line.decode("utf-8", errors="replace"))


def _watched(
    process: subprocess.Popen[bytes],
    ready: selectors.BaseSelector,
    limits: Limits,
    mark: str,
    meter: Meter,
    stopped: Callable[[], bool],
    late: Callable[[float], bool],
) -> str:
    """Read what it says until it has ended; why it must be killed, empty if it ended by itself."""
    looked = time.monotonic()
    while process.poll() is None:
        _read(ready, _PERIOD)
        if time.monotonic() - looked < _PERIOD:
            continue
        was_stopped = time.monotonic() - looked > _STOPPED
        found = members(process.pid, mark)
        looked = time.monotonic()  # on a busy machine a look takes longer than a period, and there is more to be read
        if stopped():
            return "Stopped by its caller."
        used = Used(sum(one.processor for one in found.values()), threads(found))
        if was_stopped:
            meter.go_on(looked, used)
        if meter.look(looked, used):
            return f"Stopped after {limits.seconds:g} s: it did not come to an end."
        if late(meter.seconds):
            return DEAF
        if error := _too_much(found, limits):
            return error
    return ""


def _read(ready: selectors.BaseSelector, seconds: float) -> bool:
    """Read once what is there, waiting for it so long; whether there was something."""
    found = ready.select(seconds)
    for key, _ in found:
        data = os.read(key.fd, 65536)
        key.data(data) if data else ready.unregister(key.fileobj)
    return bool(found)


def _drain(ready: selectors.BaseSelector) -> None:
    """Read the rest from the pipes; they are never longer than this."""
    for _ in range(64):
        if not ready.get_map() or not _read(ready, 0):
            return


def _too_much(found: Mapping[int, Process], limits: Limits) -> str:
    if len(found) > limits.processes:
        return f"Stopped: it started more than {limits.processes} processes."
    if sum(one.memory for one in found.values()) > limits.memory:
        return f"Stopped: it held more than {memory_size(limits.memory)} of memory."
    return ""


def _exit_error(code: int) -> str:
    if code < 0:
        return "It killed the process that watches it."
    with contextlib.suppress(ValueError):
        return f"It crashed: signal {signal.Signals(code - 128).name}."
    return f"It ended with exit status {code}." if code else ""


# -- what belongs to a program -------------------------------------------------------------------------------


def members(session: int, mark: str) -> dict[int, Process]:
    """Processes of a session, or with a mark in their environment, that have not ended, and their descendants."""
    every = processes()
    found = {pid: one for pid, one in every.items() if one.session == session or _is_marked(pid, mark)}
    while more := {pid: one for pid, one in every.items() if one.parent in found and pid not in found}:
        found |= more
    return found


def end_marked(mark: str) -> None:
    """Kill the processes that have a mark in their environment. What forks meanwhile is found the next time."""
    for _ in range(500):
        left = members(-1, mark)
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not left:
            return
        time.sleep(0.01)


def _is_marked(pid: int, mark: str) -> bool:
    try:
        return mark.encode() in (PROC / str(pid) / "environ").read_bytes()
    except OSError:  # it has ended meanwhile, or is not ours
        return False


def _kill(process: subprocess.Popen[bytes], mark: str) -> None:
    """End all processes that belong to it, even if interrupted. A process forked meanwhile is found the next time."""
    try:
        process.terminate()  # the supervisor kills the program's group, if it still can
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_PERIOD)
        for _ in range(500):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            left = members(process.pid, mark)
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if process.poll() is not None and not left:
                break
            time.sleep(0.01)
        process.wait()
    except BaseException:
        _kill(process, mark)
        raise
