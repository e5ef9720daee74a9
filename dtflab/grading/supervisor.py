"""The process between a grader and a program that it runs: `python supervisor.py LIFELINE STATUS PROGRAM ARGUMENT …`.

A program that kills its parent kills this process, not the grader. And when the grader is gone, however it ended, so is
the only end of the pipe LIFELINE that is written to: then the program's process group is killed. To the pipe STATUS go
two lines: the program's number, which is that of its group, and how it ended, negative for a signal.

Rule: only the standard library, since it starts for each attempt at a file.
"""

from __future__ import annotations

import os
import select
import signal
import sys


def main(lifeline: int, status: int, command: list[str]) -> None:
    """Run the command in a process group of its own until it ends, or the caller does."""
    for descriptor in (lifeline, status):
        os.set_inheritable(descriptor, False)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # without a handler nothing is woken
    defaults = (signal.SIGPIPE, signal.SIGXFSZ)  # Python ignores them, and the command would inherit that
    program = os.posix_spawn(command[0], command, os.environ, setpgroup=0, setsigdef=defaults)
    os.write(status, b"%d\n" % program)
    while True:
        ready, _, _ = select.select([lifeline, woken], [], [])
        if lifeline in ready:
            os.killpg(program, signal.SIGKILL)
            return
        os.read(woken, 4096)
        ended, how = os.waitpid(program, os.WNOHANG)
        if ended:
            os.write(status, b"%d\n" % os.waitstatus_to_exitcode(how))
            return


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
