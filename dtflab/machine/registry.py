"""Registry: what the processes of this machine tell each other about the cards of simulated hosts.

Stands for what the GPU driver knows and `nvidia-smi` asks it: which process holds how much memory of which card.

A process has two files in the registry's folder. `<id>.json` says which hosts it knows and what its programs hold.
`<id>.live` is locked as long as the process lives: the operating system unlocks it whatever ends the process. Its
bytes are counters, mapped into memory, so that a kernel that has run costs no system call.

Rules: a record is replaced as a whole, under the registry's lock. A record whose `.live` can be locked belongs to a
dead process, and is removed by the next process that finds it. Records are data, and are checked like data from a
stranger.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import mmap
import os
import stat
import struct
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_type_hints
from urllib.parse import quote

from dtflab.base.events import PROCESS, CardEvent, Instrument
from dtflab.machine.clock import REAL
from dtflab.machine.console import say
from dtflab.machine.file_lock import FileLock
from dtflab.machine.journal import CardJournal, checked
from dtflab.ops.entropy import from_system

CELLS = 3  # per claim: nanoseconds of kernels, bytes in use, the moment in virtual time (ns; 0: it runs in real time)
_SLOTS = 1 << 14
_PATIENCE = 10.0  # seconds for the registry's lock


@dataclass(frozen=True)
class HostCards:
    """The cards of a host: `count` of one model; more, if they are made when somebody asks for them (not `exact`).

    `virtual` says that programs in virtual time may use them: what they take is modelled, not measured.
    """

    model: str
    memory_bytes: int
    count: int
    exact: bool = True
    virtual: bool = False

    def agrees(self, other: HostCards) -> bool:
        """True if both can be said of one host."""
        same = (self.model, self.memory_bytes) == (other.model, other.memory_bytes)
        return same and (self.count == other.count or not (self.exact and other.exact))

    def __str__(self) -> str:
        return f"{self.count} x {self.model} ({self.memory_bytes >> 20} MiB)"


@dataclass(frozen=True)
class Holding:
    """A program's memory on a card: `held` bytes, since `since` (seconds since 1970). `slot` has its counters."""

    host: str
    card: int
    program: str
    held: int
    since: float
    slot: int


@dataclass
class Record:
    """The entry of one process: its number, its command, its hosts, the holdings of its programs."""

    pid: int
    command: str
    hosts: dict[str, HostCards] = field(default_factory=dict)
    holdings: list[Holding] = field(default_factory=list)
    life: Path | None = None  # the file with its counters

    def counters(self, holding: Holding) -> tuple[int, int, int]:
        """(nanoseconds of kernels, bytes in use, nanoseconds of virtual time or 0) of one of its holdings."""
        if self.life is None:
            return 0, 0, 0
        try:
            with self.life.open("rb") as file:
                file.seek(holding.slot * CELLS * 8)
                busy, in_use, moment = struct.unpack(f"{CELLS}Q", file.read(CELLS * 8))
        except (FileNotFoundError, struct.error):  # it has ended since its record was read, and is being buried
            return 0, 0, 0
        return busy, in_use, moment


def parse(text: str) -> Record:
    """The record in the text of a file; ValueError if it is malformed."""
    try:
        data = json.loads(text)
        hosts = {checked(str, name): _made(HostCards, host) for name, host in data["hosts"].items()}
        holdings = [_made(Holding, holding) for holding in data["holdings"]]
        return Record(checked(int, data["pid"]), checked(str, data["command"]), hosts, holdings)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"it is not a record of a process ({type(error).__name__}: {error})") from None


_KINDS = {cls: get_type_hints(cls) for cls in (HostCards, Holding)}


def _made(cls: type[Any], data: dict[str, Any]) -> Any:
    return cls(**{name: checked(kind, data[name]) for name, kind in _KINDS[cls].items()})


class Registry:
    """The records of one folder, seen by this process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._pid = os.getpid()
        self._thread_lock = threading.RLock()
        self._depth = 0
        self._file_lock: FileLock | None = None
        self._life: FileLock | None = None
        self._counters: memoryview | None = None
        self._free_slots: list[int] = []
        self._base = folder / f"{self._pid}-{from_system() >> 32:08x}"
        self._record = Record(self._pid, command_line(), life=self._base.with_suffix(".live"))
        self._skipped: set[Path] = set()
        self._journal = CardJournal(folder / "journal")
        self._heard = Instrument(self._journal)

    def claim_card(self, name: str) -> FileLock | None:
        """Take a real card, by its name in CUDA_VISIBLE_DEVICES, until the lock is closed; None if it is taken."""
        _private(self.folder)
        lock = FileLock(self.folder / f"card-{quote(name, safe='')}.lock")
        if lock.acquire():
            return lock
        lock.close()
        return None

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the registry's lock: no other thread or process reads or writes."""
        with self._thread_lock:
            self._depth += 1
            try:  # Ctrl-C may come at any moment
                if self._depth == 1:
                    self._enter()
                yield
            finally:
                self._depth -= 1
                if self._depth == 0 and self._file_lock is not None:
                    self._file_lock.release()

    def _enter(self) -> None:
        _private(self.folder)
        self._file_lock = self._file_lock or FileLock(self.folder / "registry.lock")
        deadline = REAL.now() + _PATIENCE
        while not self._file_lock.acquire():
            if REAL.now() > deadline:
                raise TimeoutError(
                    f"The registry of simulated GPUs in {self.folder} stays locked. Is one of your processes "
                    "suspended? Resume it or end it, or set DTFLAB_REGISTRY to another folder."
                )
            REAL.sleep(0.001)

    # ---- what this process reports ----

    def publish(self, hosts: dict[str, HostCards], holdings: list[Holding]) -> None:
        """Report hosts and holdings to the other processes."""
        with self.locked():
            self._come_alive()
            self._note(hosts, holdings)
            self._record.hosts, self._record.holdings = hosts, holdings
            data = {name: value for name, value in vars(self._record).items() if name != "life"}
            draft = self._base.with_suffix(".new")
            draft.write_text(json.dumps(data, default=vars), encoding="utf-8")
            draft.replace(self._base.with_suffix(".json"))

    def _note(self, hosts: dict[str, HostCards], holdings: list[Holding]) -> None:
        """Write into the journal what is about to change. Hosts not reported before are new, even under an old name."""
        if new := hosts.keys() - self._record.hosts.keys():
            for host in new.difference(*(record.hosts for record in self.others())):
                self._journal.forget(host)
        self._tell_changes(self._record, holdings)

    def refused(self, host: str, card: int, program: str, held: int, asked: int, free: int) -> None:
        """A program of this process wanted `asked` bytes of a card, of which only `free` are."""
        with self.locked():
            self._tell(self._record, host, card, program, "refused", before=held, held=held, asked=asked, free=free)

    def _tell_changes(self, record: Record, holdings: list[Holding]) -> None:
        """Report the changes from a process's last record to its holdings now, the ends first."""
        held = {(h.host, h.card, h.program): h.held for h in record.holdings}
        now = {(h.host, h.card, h.program): h.held for h in holdings}
        for key in sorted(held.keys() | now.keys(), key=lambda key: (now.get(key, 0), key)):
            before, after = held.get(key, 0), now.get(key, 0)
            if before != after:
                self._tell(record, *key, "takes" if after > before else "ends", before=before, held=after)

    def _tell(self, record: Record, host: str, card: int, program: str, what: str, **nbytes: int) -> None:
        """Report to all listeners what happened to a card's memory; `nbytes` are the last fields of the event."""
        name, at = program or record.command, REAL.time()
        event = CardEvent(at=at, host=host, card=card, pid=record.pid, program=name, what=what, **nbytes)
        for hear in (*self._heard.card, *PROCESS.card):
            hear(event)

    def take_slot(self) -> tuple[int, memoryview]:
        """Counters for one claim, at zero: (slot, its cells)."""
        with self.locked():
            self._come_alive()
            assert self._counters is not None
            if not self._free_slots:
                raise RuntimeError(f"One process can have {_SLOTS} claims on simulated GPUs, not more.")
            slot = self._free_slots.pop()
            cells = self._counters[slot * CELLS : slot * CELLS + CELLS]
            for number in range(CELLS):
                cells[number] = 0
            return slot, cells

    def give_slot(self, slot: int) -> None:
        """The counters may be another claim's from now on."""
        with self._thread_lock:
            self._free_slots.append(slot)

    def _come_alive(self) -> None:
        """Make the two files, at the first word."""
        if self._life is not None:
            return
        path = self._base.with_suffix(".live")
        life = FileLock(path)
        if not life.acquire():
            hint = "Set DTFLAB_REGISTRY to another folder."
            raise RuntimeError(f"Somebody else has locked {path}, this process's own file. {hint}")
        os.ftruncate(life.descriptor, _SLOTS * CELLS * 8)  # a file with a hole: it takes no room on the disk
        with path.open("r+b") as file:  # opened again: a mapping keeps its file open, and with it would keep the lock
            self._counters = memoryview(mmap.mmap(file.fileno(), _SLOTS * CELLS * 8)).cast("Q")
        self._free_slots = list(range(_SLOTS - 1, -1, -1))
        self._life = life

    def leave(self) -> None:
        """The process ends: remove its files."""
        if self._life is not None:
            if self._record.holdings:
                with contextlib.suppress(TimeoutError), self.locked():  # somebody's stopped process is in the way
                    self._tell_changes(self._record, [])
            with contextlib.suppress(PermissionError):  # Windows keeps a mapped file; the next process removes it
                _bury(self._base.with_suffix(".live"))
            self._life.close()
            self._life = None

    def let_go(self) -> None:
        """In a forked child: close what it has of its parent's locks, which would else outlive the parent."""
        for lock in (self._file_lock, self._life):
            if lock is not None:
                lock.close()

    # ---- what others report ----

    def others(self) -> list[Record]:
        """The entries of the other living processes, by their numbers. Files of the dead are removed."""
        found = []
        with self.locked():
            for life in self.folder.glob("*.live"):
                if life == self._record.life:
                    continue
                if not _is_alive(life):
                    with contextlib.suppress(OSError, ValueError):  # a spoilt record goes with the others
                        text = life.with_suffix(".json").read_text(encoding="utf-8")
                        self._tell_changes(parse(text), [])
                    _bury(life)
                elif (record := self._read(life)) is not None:
                    found.append(record)
        return sorted(found, key=lambda record: record.pid)

    def events(self) -> list[CardEvent]:
        """The journal of the cards' memory, the oldest event first."""
        with self.locked():
            return self._journal.read()

    def everyone(self) -> list[Record]:
        """The entries of this process and of all others at this moment."""
        with self.locked():
            return [replace(self._record), *self.others()]

    def _read(self, life: Path) -> Record | None:
        path = life.with_suffix(".json")
        try:
            record = parse(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None  # it has not reported anything yet, or ends at this moment
        except (OSError, ValueError) as error:
            if path not in self._skipped:
                self._skipped.add(path)
                say(f"{path} is left out of the registry of simulated GPUs: {error}. End its process, or remove it.")
            return None
        record.life = life
        return record


def _is_alive(path: Path) -> bool:
    lock = FileLock(path)
    try:
        return not lock.acquire()
    finally:
        lock.close()


def _bury(life: Path) -> None:
    for suffix in (".json", ".new", ".live"):
        life.with_suffix(suffix).unlink(missing_ok=True)


def _private(folder: Path) -> None:
    """Make the folder; OSError if it can't be made, PermissionError if anybody else could change it.

    A link is refused, too: in the folder for temporary files anybody may make one that leads to a folder of yours.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(
            f"{folder}, the registry of simulated GPUs, can't be created ({error.strerror}). Set DTFLAB_REGISTRY "
            "to another folder."
        ) from None
    if not hasattr(os, "getuid"):
        return
    found = folder.lstat()
    if found.st_uid != os.getuid():
        raise PermissionError(f"The registry folder {folder} is not yours. Set DTFLAB_REGISTRY to a folder that is.")
    if stat.S_ISLNK(found.st_mode):
        raise PermissionError(
            f"The registry folder {folder} is a link. Remove it, or set DTFLAB_REGISTRY to the folder itself."
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(
            f"Other users may write in the registry folder {folder} (mode {stat.S_IMODE(found.st_mode):o}). Take that "
            f"right away (chmod 700 {folder}), or set DTFLAB_REGISTRY to another folder."
        )


def command_line() -> str:
    """The process's name in tables: `python train.py`; for a task, its name."""
    script = sys.argv[0] if sys.argv else ""
    if script.startswith("/job:"):
        return script
    return " ".join(filter(None, [Path(sys.executable).name or "python", Path(script).name]))


# ---- the one in use ----

_open: dict[Path, Registry] = {}


def registry() -> Registry:
    """The registry of DTFLAB_REGISTRY, or of this user in the folder for temporary files."""
    from tempfile import gettempdir  # 2 ms

    named = os.environ.get("DTFLAB_REGISTRY")
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    folder = Path(named) if named else Path(gettempdir()) / f"dtflab-{user}"
    # One, however many threads ask at the same time.
    return _open.get(folder) or _open.setdefault(folder, Registry(folder))


def _leave_all() -> None:
    for each in _open.values():
        each.leave()


def _begin_again() -> None:
    """A forked child is a process of its own."""
    for each in _open.values():
        each.let_go()
    _open.clear()


atexit.register(_leave_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_again)
