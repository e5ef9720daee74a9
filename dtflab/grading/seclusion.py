"""A program in namespaces of its own: `python seclusion.py DESCRIPTOR PROGRAM ARGUMENT …`.

The program sees no process but its own, and can end no other. It has a loopback of its own and no other network, its
own /tmp, an empty home, and all else read-only; what is hidden from it is not there. When the first process of these
namespaces ends, Linux ends all others, whatever they have done to their sessions and environments. That first process
is this one, not the program: it starts the program, and waits for what the program leaves behind.

Linux only, and only where a user may make user namespaces. The descriptor is that of a JSON file, which says where the
program runs and what is hidden; the command line does not, because the program can read it. Exit status: the program's,
128 plus its signal, or NOT_STARTED.

Rules: only the standard library, since it starts for each attempt at a file. Before the program starts, all rights over
the namespaces are given up for good, so that nothing that was hidden can be uncovered.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import signal
import socket
import struct
import sys
from pathlib import Path
from typing import NamedTuple

NOT_STARTED = 125  # the same as the supervisor's, which passes it on and can't be imported here
_NEW = 0x10000000 | 0x00020000 | 0x20000000 | 0x40000000 | 0x08000000  # user, mount, pid, net and ipc namespaces
_BIND, _ALL_BELOW, _PRIVATE = 0x1000, 0x4000, 0x40000
_MOUNT_SETATTR, _HERE, _RECURSIVE, _READ_ONLY = 442, -100, 0x8000, 1
_PDEATHSIG, _CAPBSET_DROP, _NO_NEW_PRIVS = 1, 24, 38
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _UP = 0x8913, 0x8914, 1


class Place(NamedTuple):
    """Where a program runs: its folder; the folders that are covered; what it needs of them; what is hidden.

    `own` has an empty folder for each that is covered, by its number.
    """

    folder: str
    covered: list[str]
    own: str
    needed: list[str]
    hidden: list[str]


def main(descriptor: int, command: list[str]) -> int:
    """Run the command in new namespaces until it ends; the exit status."""
    with open(descriptor, encoding="utf-8") as file:
        place = Place(**json.load(file))
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        _unshare(libc)
        first = os.fork()
        if first == 0:
            _checked(libc.prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
            os._exit(_first_process(libc, place, command))
    except OSError as error:
        print(error, file=sys.stderr)
        return NOT_STARTED
    code = os.waitstatus_to_exitcode(os.waitpid(first, 0)[1])
    return code if code >= 0 else 128 - code


def _unshare(libc: ctypes.CDLL) -> None:
    """Enter new namespaces, as the same user. The pid namespace is for children."""
    user, group = os.geteuid(), os.getegid()
    _checked(libc.unshare(_NEW))
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def _first_process(libc: ctypes.CDLL, place: Place, command: list[str]) -> int:
    try:
        _open_loopback()
        _Mounts(libc).arrange(place)
        os.chdir(place.folder)
        _give_up_rights(libc)
        defaults = (signal.SIGPIPE, signal.SIGXFSZ)
        program = os.posix_spawn(command[0], command, os.environ, setpgroup=0, setsigdef=defaults)
    except OSError as error:
        print(error, file=sys.stderr)
        sys.stderr.flush()
        return NOT_STARTED
    while True:  # others are orphans, which end up here
        ended, how = os.wait()
        if ended == program:
            code = os.waitstatus_to_exitcode(how)
            return code if code >= 0 else 128 - code


def _open_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        asked = fcntl.ioctl(any_socket, _SIOCGIFFLAGS, struct.pack("16sH14x", b"lo", 0))
        flags = struct.unpack("16sH14x", asked)[1] | _UP
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags))


def _give_up_rights(libc: ctypes.CDLL) -> None:
    """No program that is started from here on, not even root's, has rights over these namespaces."""
    _checked(libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0))
    for right in range(64):
        libc.prctl(_CAPBSET_DROP, right, 0, 0, 0)  # fails for numbers without a meaning


class _Mounts:
    """The file tree of this namespace."""

    def __init__(self, libc: ctypes.CDLL) -> None:
        self._libc = libc

    def arrange(self, place: Place) -> None:
        """Make all read-only but the program's folder and what is its own, and cover what is hidden."""
        self._mount(None, "/", None, _PRIVATE | _ALL_BELOW)
        seen_again = [(path, os.open(path, os.O_PATH)) for path in self._in(place.covered, place.needed)]
        folder, own = os.open(place.folder, os.O_PATH), os.open(place.own, os.O_PATH)
        self._read_only("/")
        self._mount("proc", "/proc", "proc", 0)
        for number, path in enumerate(place.covered):
            if os.path.isdir(path):  # it may have been in one that is covered now
                self._writable(f"/proc/self/fd/{own}/{number}", path)
        for path, descriptor in seen_again:
            self._again(f"/proc/self/fd/{descriptor}", path)
        os.makedirs(place.folder, exist_ok=True)
        self._writable(f"/proc/self/fd/{folder}", place.folder)
        hidden = [path for path in place.hidden if os.path.exists(path)]
        for parent in sorted({*map(os.path.dirname, hidden)}):
            self._hide(parent, {os.path.basename(path) for path in hidden if os.path.dirname(path) == parent})
        for descriptor in (folder, own, *(descriptor for _, descriptor in seen_again)):
            os.close(descriptor)

    @staticmethod
    def _in(covered: list[str], needed: list[str]) -> list[str]:
        """The needed files that are in folders that are covered."""
        return [path for path in needed if any(path.startswith(f"{folder}/") for folder in covered)]

    def _hide(self, parent: str, names: set[str]) -> None:
        """Show all of a folder again but what has these names. A mount on these would tell where they are: a program
        can read the table of mounts. The root can't be shown again, nor what can't be listed: there they look empty.
        """
        if parent == "/" or not os.access(parent, os.R_OK):
            for path in filter(os.path.exists, (os.path.join(parent, name) for name in names)):
                kind, flags = ("tmpfs", _READ_ONLY) if os.path.isdir(path) else (None, _BIND)
                self._mount(os.devnull, path, kind, flags)
            return
        there, others = os.open(parent, os.O_PATH), {*os.listdir(parent)}.difference(names)
        self._mount("none", parent, "tmpfs", 0)
        for name in others:
            source, path = f"/proc/self/fd/{there}/{name}", f"{parent}/{name}"
            with contextlib.suppress(OSError):  # it has gone meanwhile, or belongs to somebody who shows it to nobody
                if os.path.islink(source):
                    os.symlink(os.readlink(source), path)
                else:
                    self._again(source, path)
        self._set(parent, 0, set=_READ_ONLY)
        os.close(there)

    def _again(self, source: str, path: str) -> None:
        """Show a file or folder again where it was, if it is not in one that is shown again."""
        if os.path.exists(path):
            return
        if os.path.isdir(source):
            os.makedirs(path, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            Path(path).touch()
        self._mount(source, path, None, _BIND | _ALL_BELOW)

    def _writable(self, source: str, target: str) -> None:
        self._mount(source, target, None, _BIND)
        self._set(target, 0, clear=_READ_ONLY)

    def _read_only(self, path: str) -> None:
        self._set(path, _RECURSIVE, set=_READ_ONLY)

    def _mount(self, source: str | None, target: str, kind: str | None, flags: int) -> None:
        texts = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
        _checked(self._libc.mount(*texts, ctypes.c_ulong(flags), None), target)

    def _set(self, path: str, how: int, *, set: int = 0, clear: int = 0) -> None:
        attributes = struct.pack("4Q", set, clear, 0, 0)
        size = ctypes.c_size_t(len(attributes))
        _checked(self._libc.syscall(_MOUNT_SETATTR, _HERE, os.fsencode(path), how, attributes, size), path)


def _checked(result: int, path: str = "") -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)


if __name__ == "__main__":
    status = main(int(sys.argv[1]), sys.argv[2:])
    sys.stderr.flush()
    os._exit(status)
