"""Python with modules already imported, for programs in processes of their own: an import takes seconds, a fork none.

`with imported("dtflab") as python:` gives what stands in a command where `sys.executable` stood. It starts a small
process (`forked.py`) that lends its streams, folder, environment and signals to a fork of the one that has imported,
and ends as that fork does. Modules are found as by the importing process, in the root of the repository first.

Rule: the importing process lets no session or thread begin in itself, so that each program finds its modules as a
fresh import leaves them.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__)
_MOST = 1 << 18  # bytes of a request: arguments and environment
_ENDS_WITH_PARENT = 1  # PR_SET_PDEATHSIG


@contextlib.contextmanager
def imported(*modules: str, python: str = sys.executable) -> Iterator[list[str]]:
    """The beginning of a command. It works until the end of the block, as do the programs.

    `python` may be that of another environment.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/socket"
        command = [python, str(HERE), path, *modules]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin is not None and process.stdout is not None
            if process.stdout.readline() != b"ready\n":
                raise RuntimeError(f"{modules} can't be imported")
            yield [sys.executable, "-I", "-S", str(HERE.with_name("forked.py")), path]
            process.stdin.close()


# ---- the process that has imported ----


class Program(NamedTuple):
    argv: list[str]
    folder: str
    environment: dict[str, str]
    streams: list[int]


def serve(path: str, *modules: str) -> Program | None:
    """Fork for each request until standard input ends. Returns the program in its own process, else None."""
    for module in modules:
        importlib.import_module(module)
    gc.freeze()  # garbage is not looked for in them, which would copy their memory in each fork
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that attend
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
        listener.listen(64)
        print("ready", flush=True)
        while listener in select.select([listener, sys.stdin], [], [])[0]:
            connection, _ = listener.accept()
            if not os.fork():
                _end_with_parent()
                return attend(connection)
            connection.close()
    return None


def attend(connection: socket.socket) -> Program:
    """Fork for one program, hand on signals, and tell its status. Returns in the fork only."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    request, streams, _, _ = socket.recv_fds(connection, _MOST, 3)
    pid = os.fork()
    if not pid:
        connection.close()
        return Program(*json.loads(request), streams)
    for stream in streams:
        os.close(stream)
    ended = os.pidfd_open(pid)
    while ended not in select.select([ended, connection], [], [])[0]:
        number = connection.recv(1)  # none if the small process was killed
        os.killpg(pid, number[0]) if number else os.killpg(pid, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with contextlib.suppress(BrokenPipeError):  # nobody asks any more
        connection.send(str(status).encode())
    os._exit(0)


def become(program: Program) -> None:
    """Run a program in this process, which then ends as Python does."""
    os.setsid()
    _end_with_parent()
    os.chdir(program.folder)
    os.environ.clear()
    os.environ.update(program.environment)
    for number, stream in enumerate(program.streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdout.reconfigure(line_buffering=True)
    libc = ctypes.CDLL(None)
    libc.setlinebuf(ctypes.c_void_p.in_dll(libc, "stdout"))  # what C++ prints comes in its place
    if program.argv[0] == "-m":
        _, module, *arguments = program.argv
        sys.argv = [module, *arguments]
        sys.path.insert(0, program.folder)
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    else:
        sys.argv = program.argv
        sys.path.insert(0, str(Path(program.argv[0]).resolve().parent))
        runpy.run_path(program.argv[0], run_name="__main__")


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_ENDS_WITH_PARENT, signal.SIGKILL)


if __name__ == "__main__":
    sys.path[0] = str(HERE.parents[1])  # in the place of this folder
    mine = serve(*sys.argv[1:])
    if mine is not None:
        become(mine)
