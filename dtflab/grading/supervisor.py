"""The process between a grader and a program that it runs: `python supervisor.py LIFELINE PROGRAM ARGUMENT …`.

A program that kills its parent kills this process, not the grader. When the grader is gone, however it ended, so is the
only end of the pipe LIFELINE that is written to. Then the program's process group is killed, as it is at SIGTERM and
when the program has ended. The exit status is the program's, or 128 plus the number of the signal that ended it, or
NOT_STARTED.

Rules: only the standard library, since it starts for each attempt at a file. It reports nothing through a pipe, because
the program runs as the same user and could write to that, too.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys

NOT_STARTED = 125


def main(lifeline: int, command: list[str]) -> int:
    """Run the command in a process group of its own until it ends, or the caller does; returns the exit status."""
    os.set_inheritable(lifeline, False)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # without a handler nothing is woken
    defaults = (signal.SIGPIPE, signal.SIGXFSZ)  # Python ignores them, and the command would inherit that
    try:
        program = os.posix_spawn(command[0], command, os.environ, setpgroup=0, setsigdef=defaults)
    except OSError as error:
        print(error, file=sys.stderr)
        return NOT_STARTED
    signal.signal(signal.SIGTERM, lambda *_: _kill(program))
    while True:
        ready, _, _ = select.select([lifeline, woken], [], [])
        if lifeline in ready:
            _kill(program)
        os.read(woken, 4096)
        ended, how = os.waitpid(program, os.WNOHANG)
        if ended:
            _kill(program)
            code = os.waitstatus_to_exitcode(how)
            return code if code >= 0 else 128 - code


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # all of it has ended
        os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    status = main(int(sys.argv[1]), sys.argv[2:])
    sys.stderr.flush()
    os._exit(status)  # nothing else is to be ended
