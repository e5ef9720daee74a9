"""smi: which program holds how much of which card, as a table like that of `nvidia-smi`.

Stands for NVIDIA's program. Left out: fans, temperatures, clocks; a simulated card has none.

Rules: memory in use is rounded up to whole MiB, the total down, as the book's tables show it. GPU-Util is the share of
a period in which kernels ran: the time since the last look of this process, or since the card was first used; of a
card in virtual time, its modelled seconds since then, or since virtual time began. What this process and its clusters
use comes first; hosts that only other programs know of stand below a line that says so.
"""

from __future__ import annotations

import html
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dtflab.base.events import CardEvent
from dtflab.base.text_table import html_table
from dtflab.machine import cards, hosts
from dtflab.machine.clock import REAL, Clock, current
from dtflab.machine.registry import Holding, HostCards, Record, command_line, registry

NO_GPUS = (
    "No GPUs, neither real nor simulated ones. Simulate some: dtflab.simulate_gpus(2), DTFLAB_GPUS=2 in the "
    "environment, or dtflab.Cluster(..., gpus=2)."
)
SIMULATED = "simulated GPUs: they compute with NumPy, so all times are NumPy's"
IN_VIRTUAL_TIME = "simulated GPUs in virtual time: GPU-Util is of modelled seconds"
OTHERS = "Other programs on this computer"
REAL_CARDS = "real GPUs; of the processes, this one. NVIDIA's nvidia-smi knows the others, and how busy the cards are"


@dataclass(frozen=True)
class Process:
    """The memory that one program holds of one card: `held` bytes with its context, of which tensors have `in_use`."""

    gpu: int
    pid: int
    name: str
    held: int
    in_use: int


@dataclass(frozen=True)
class CardState:
    """One card: bytes, and the share of the period in which it was busy, from 0 to 1; None if we can't know."""

    index: int
    name: str
    pci_bus_id: str
    power_watts: int | None
    memory_bytes: int
    used: int
    utilization: float | None

    @property
    def busy(self) -> str:
        """The share as text."""
        return "N/A" if self.utilization is None else f"{self.utilization:.0%}"


@dataclass
class HostState:
    """One host with its cards and the programs that use them; `ours` if programs of this process could, too."""

    name: str
    cards: list[CardState] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    label: str = SIMULATED
    ours: bool = True


@dataclass(repr=False, eq=False)
class Smi:
    """The state of all cards at one moment: text in a terminal, a table in a notebook.

    `hosts` are this process's own, then those of other programs. `events` say how that came about, the oldest first:
    programs that took memory of a simulated card, were refused it, or ended.
    """

    hosts: list[HostState]
    moment: float
    notes: list[str]
    events: Sequence[CardEvent] = ()

    @property
    def others(self) -> list[HostState]:
        """The hosts that only other programs on this computer know of."""
        return [host for host in self.hosts if not host.ours]

    @property
    def text(self) -> str:
        """The table of `nvidia-smi`, once per host."""
        others = [_block(host) for host in self.others]
        blocks = [_block(host) for host in self.hosts if host.ours] or [NO_GPUS] * (not others)
        blocks += [f"{OTHERS}:", *others] if others else []
        return "\n\n".join([time.ctime(self.moment), *blocks, *filter(None, ["\n".join(self.notes)])])

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        own = "".join(_html_block(host) for host in self.hosts if host.ours)
        blocks = (own or f"<p>{html.escape(NO_GPUS)}</p>") + "".join(f"<p>{html.escape(n)}</p>" for n in self.notes)
        others = "".join(map(_html_block, self.others))
        count = f"{len(self.others)} host{'s' * (len(self.others) > 1)}"
        fold = f"<details><summary>{OTHERS} ({count})</summary>{others}</details>" if others else ""
        return f"<p>{time.ctime(self.moment)}</p>{blocks}{fold}"


_Claim = tuple[int, int, float]  # process, slot, since: never the same again


@dataclass(frozen=True)
class _Look:
    """A moment, how many nanoseconds the kernels of each claim had run then, and at which one of virtual time."""

    moment: float
    ran: dict[_Claim, int]
    virtual: dict[_Claim, int]  # nanoseconds since it began; 0 in real time

    def busy(self, claims: list[_Claim], before: _Look | None) -> float:
        """Share of the time since `before`, or since the first claim, in which their kernels ran: at most 1."""
        if not claims:
            return 0.0
        since = min(began for _, _, began in claims) if before is None else before.moment
        ran, virtual = ({}, {}) if before is None else (before.ran, before.virtual)
        seconds = sum(self.ran[claim] - ran.get(claim, 0) for claim in claims) / 1e9
        passed = max(self.virtual[claim] - virtual.get(claim, 0) for claim in claims) / 1e9
        if not self.is_virtual(claims):
            passed = self.moment - since
        return min(1.0, seconds / max(passed, 1e-9))

    def is_virtual(self, claims: list[_Claim]) -> bool:
        """True for claims of a cluster in virtual time."""
        return any(self.virtual[claim] for claim in claims)


_last: _Look | None = None
notes: list[Callable[[], list[str]]] = []  # upper rooms add what they know about which program may use what


def smi(period: float = 0.0, clock: Clock | None = None) -> Smi:
    """All cards that the processes of this machine know of, and the programs that hold their memory.

    GPU-Util is of the time since the last look; with a `period`, in seconds, of that time, which passes meanwhile: on
    `clock`, by default that of the caller, which may be a cluster's in virtual time.
    """
    global _last
    wall = clock or REAL
    hosts.cards_of(hosts.this_host())
    if period:
        _last = _look(registry().everyone(), wall)
        (clock or current()).sleep(period)
    records = registry().everyone()
    now = _look(records, wall)
    before, _last = _last, now
    states = [_state(name, there, records, before, now) for name, there in _known_hosts(records)] + _real_host()
    states.sort(key=lambda state: not state.ours)
    return Smi(states, wall.time(), [line for tell in notes for line in tell()], registry().events())


def _look(records: list[Record], clock: Clock) -> _Look:
    hosts.tell_moments()
    read = {_claim(r, h): r.counters(h) for r in records for h in r.holdings}
    return _Look(clock.time(), {c: busy for c, (busy, _, _) in read.items()}, {c: at for c, (_, _, at) in read.items()})


def _claim(record: Record, holding: Holding) -> _Claim:
    return record.pid, holding.slot, holding.since


def _known_hosts(records: list[Record]) -> list[tuple[str, HostCards]]:
    """The hosts that processes report, each with the largest number of cards reported; this one first, then by name."""
    found: dict[str, HostCards] = {}
    for record in records:
        for name, there in record.hosts.items():
            if name not in found or there.count > found[name].count:
                found[name] = there
    return sorted(found.items(), key=lambda item: (item[0] != hosts.this_host(), item[0]))


def _state(name: str, there: HostCards, records: list[Record], before: _Look | None, now: _Look) -> HostState:
    virtual = any(name in record.hosts and record.hosts[name].virtual for record in records)
    ours = name == hosts.this_host() or name in records[0].hosts  # the first is this process
    state = HostState(name, label=IN_VIRTUAL_TIME if virtual else SIMULATED, ours=ours)
    held = [(record, holding) for record in records for holding in record.holdings if holding.host == name]
    for index in range(there.count):
        here = [(record, holding) for record, holding in held if holding.card == index]
        used = cards.IDLE_BYTES + sum(holding.held for _, holding in here)
        share = now.busy([_claim(record, holding) for record, holding in here], before)
        watts = next((model.power_watts for model in cards.MODELS if model.name == there.model), None)
        bus = hosts.pci_bus_id(index)
        state.cards.append(CardState(index, there.model, bus, watts, there.memory_bytes, used, share))
        state.processes += [
            Process(index, record.pid, holding.program or record.command, holding.held, record.counters(holding)[1])
            for record, holding in here
        ]
    return state


def _real_host() -> list[HostState]:
    """The real cards of this machine: all that their driver says to be in use, and what this process has of it."""
    there = hosts.cards_of(hosts.this_host())
    if not (there and there[0].real):
        return []
    from dtflab.machine import cuda  # only where there is a card

    state = HostState(hosts.this_host(), label=REAL_CARDS)
    for card in there:
        used, ours = cuda.usage(card)
        state.cards.append(CardState(card.index, card.model.name, card.pci_bus_id, None, card.memory_bytes, used, None))
        if ours:
            in_use = sum(m.bytes_in_use for m in {claim.memory for claim in hosts.claims_on(card)} if m is not None)
            state.processes.append(Process(card.index, os.getpid(), command_line(), ours, in_use))
    return [state]


# ---- text ----

_RULE = f"+{'-' * 31}+{'-' * 22}+{'-' * 22}+"
_WIDE_RULE = f"+{'-' * 77}+"
_HEAD = (
    _RULE,
    "| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |",
    "| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |",
    f"|{'=' * 31}+{'=' * 22}+{'=' * 22}|",
)
_PROCESSES_HEAD = (
    _WIDE_RULE,
    "| Processes:                                                       GPU Memory |",
    "|  GPU       PID  Type  Process name                               Usage      |",
    f"|{'=' * 77}|",
)


def _block(host: HostState) -> str:
    lines = [f"{host.name}: {host.label}", *_HEAD]
    for card in host.cards:
        watts = "N/A" if card.power_watts is None else f"{card.power_watts}W"
        memory = f"{_begun(card.used)}MiB / {card.memory_bytes // cards.MIB:5}MiB"
        lines += [
            f"|{card.index:4}  {_cut(card.name, 18):<19} Off  | {card.pci_bus_id:<16} Off |                  N/A |",
            f"| N/A   N/A   N/A    N/A / {watts:>4} |{memory:>21} |{card.busy:>8}      Default |",
            _RULE,
        ]
    rows = [
        f"|{process.gpu:5}{process.pid:10}    C   {_cut(process.name, 43):<43}{_begun(process.held):>7}MiB |"
        for process in host.processes
    ]
    none = f"|  {'No running processes found':<75}|"
    return "\n".join([*lines, "", *_PROCESSES_HEAD, *(rows or [none]), _WIDE_RULE])


def _begun(nbytes: int) -> int:
    """MiB, begun ones count."""
    return -(-nbytes // cards.MIB)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


# ---- HTML ----


def _html_block(host: HostState) -> str:
    gpus = []
    for card in host.cards:
        memory = f"{_begun(card.used)}MiB / {card.memory_bytes // cards.MIB}MiB"
        gpus.append((card.index, card.name, card.pci_bus_id, memory, card.busy))
    processes = [
        (process.gpu, process.pid, process.name, f"{_begun(process.held)}MiB", f"{_begun(process.in_use)}MiB")
        for process in host.processes
    ]
    tables = html_table(("GPU", "Name", "Bus-Id", "Memory-Usage", "GPU-Util"), gpus)
    if processes:
        tables += html_table(("GPU", "PID", "Process", "GPU Memory", "of it in tensors"), processes)
    else:
        tables += "<p>No running processes found</p>"
    return f"<p><b>{html.escape(host.name)}</b>: {html.escape(host.label)}</p>{tables}"
