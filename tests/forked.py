"""The small process of `forks.py`: `python -I -S forked.py SOCKET PROGRAM ARGUMENTS`. It imports what it must."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys


def run(path: str, *argv: str) -> int:
    """Have a program run; its status."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.connect(path)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda number, _: connection.send(bytes([number])))
        request = json.dumps([argv, os.getcwd(), dict(os.environ)])
        socket.send_fds(connection, [request.encode()], [0, 1, 2])
        return int(connection.recv(16))


def end(status: int) -> None:
    """End as the program did, which may be by a signal."""
    if status < 0:
        with contextlib.suppress(OSError):  # SIGKILL has no handler
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(status)


if __name__ == "__main__":
    end(run(*sys.argv[1:]))
