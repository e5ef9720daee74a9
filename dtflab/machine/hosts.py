"""Hosts, their cards, and the programs that may use them.

Stands for `core/common_runtime/gpu/gpu_init.cc`, the device half of `gpu_device.cc` (BaseGPUDeviceFactory), and the
CUDA driver under both.

A *host* is the host part of an address. A *program* holds memory of a card: an operating system process, or
one task of an in-process cluster. A *claim* is one program's use of one card.

Rules: an explicit request simulates cards; without one, real ones are used if CuPy sees some. Memory that a program
has grabbed is given back when the program ends, never before. Nobody imports CuPy here.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import ipaddress
import os
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dtflab.machine import cards
from dtflab.machine.bfc_allocator import human_bytes
from dtflab.machine.cards import Card
from dtflab.machine.clock import REAL, Clock
from dtflab.machine.console import in_notebook, say
from dtflab.machine.registry import CELLS, Holding, HostCards, Record, Registry, registry
from dtflab.machine.visible import cuda_visible, listed

if TYPE_CHECKING:
    from dtflab.machine.memory import DeviceMemory
    from dtflab.protos.config_pb2 import ConfigProto

THIS_PROCESS = ""  # the program of local sessions and of servers that a program starts itself


@dataclass(frozen=True)
class Home:
    """Where a task lives: its host, the program that it is part of, and its CUDA_VISIBLE_DEVICES (or None)."""

    host: str
    program: str
    visible: str | None


class Claim:
    """One program's use of one card: the memory that it has grabbed, and how long its kernels ran.

    `ordinal` is the card's number as CUDA shows it to the program. `memory` is set by the first user of the card.
    """

    def __init__(self, card: Card, program: str) -> None:
        self.card = card
        self.program = program
        self.ordinal = card.index
        self.memory: DeviceMemory | None = None
        self.grabbed = 0
        self._refused: set[int] = set()  # bytes
        self.ignored = False  # too old, which has been logged
        self._since = REAL.time()
        self._slot: tuple[Registry, int] | None = None  # where others see the counters: registry, slot
        self._cells = memoryview(bytearray(8 * CELLS)).cast("Q")
        self.clock: Clock = REAL  # on which its kernels take time
        self._lock = threading.Lock()
        _every.add(self)

    @property
    def held(self) -> int:
        """Bytes of the card that the program keeps from others: what it grabbed, and its context."""
        return self.grabbed + cards.CONTEXT_BYTES if self.grabbed else 0

    @property
    def description(self) -> str:
        """The card as TensorFlow describes it."""
        model = self.card.model
        return (
            f"device: {self.ordinal}, name: {model.name}, pci bus id: {self.card.pci_bus_id}, "
            f"compute capability: {_dotted(model.compute_capability)}"
        )

    def grab(self, nbytes: int) -> bool:
        """Take memory off the card; False, and CUDA's line, if it is not free."""
        with _lock, registry().locked():
            context = 0 if self.grabbed else cards.CONTEXT_BYTES
            if nbytes + context > (free := free_bytes(self.card)):
                amount = human_bytes(nbytes).replace("iB", "")  # 3.66G
                if nbytes not in self._refused:  # a program that asks again and again gets one message
                    say(f"failed to allocate {amount} ({nbytes} bytes) from device: CUDA_ERROR_OUT_OF_MEMORY")
                    card = self.card
                    registry().refused(card.host, card.index, self.program, self.held, nbytes + context, max(free, 0))
                self._refused.add(nbytes)
                return False
            self.grabbed += nbytes
            self._refused.clear()
            if self._slot is None:
                slot, self._cells = registry().take_slot()
                self._slot = registry(), slot
            _publish()
            return True

    def busy(self, seconds: float) -> None:
        """Count a kernel's time. Other processes see it without a system call."""
        with self._lock:
            self._cells[0] += int(seconds * 1e9)
            if self.clock is not REAL:
                self._tell_moment()
            if self.memory is not None:
                self._cells[1] = self.memory.allocator.stats.bytes_in_use

    def _tell_moment(self) -> None:
        self._cells[2] = int(self.clock.now() * 1e9)

    def other_holders(self) -> str:
        """A sentence for errors: the other programs that hold memory of the card. Empty if there are none."""
        held = [(claim.program or "this process", claim.held) for claim in claims_on(self.card) if claim is not self]
        held += [
            (holding.program or f"process {record.pid} ({record.command})", holding.held)
            for record, holding in _elsewhere(self.card)
        ]
        texts = [f"{who} holds {-(-nbytes // cards.MIB)} MiB" for who, nbytes in held if nbytes]
        return f"Of card {self.card.index} of {self.card.host}, {', '.join(texts)}." if texts else ""

    def let_go(self) -> None:
        """The registry forgets the claim; its holder keeps it."""
        with self._lock:
            if self._slot is not None:
                self._cells = memoryview(bytearray(self._cells)).cast("Q")
                self._slot[0].give_slot(self._slot[1])
                self._slot = None

    def holding(self) -> Holding:
        """The record for other processes."""
        assert self._slot is not None
        return Holding(self.card.host, self.card.index, self.program, self.held, self._since, self._slot[1])

    def __repr__(self) -> str:
        return f"<claim of {self.program or 'this process'} on card {self.card.index} of {self.card.host}>"


def tell_moments() -> None:
    """Before a look, report how far virtual time is; another process sees the state of the last finished kernel."""
    for claim in list(_every):
        if claim.clock is not REAL:
            claim._tell_moment()


# ---- what this process knows. `_lock` comes before the registry's ----

_lock = threading.RLock()
_asked: HostCards | None = None  # by simulate_gpus, for every host that has none of its own
_said: dict[str, list[HostCards]] = {}  # for one host, by clusters
_in_virtual_time: Counter[str] = Counter()  # clusters whose tasks see the cards of a host
_cards: dict[str, tuple[HostCards, list[Card]]] = {}
_claims: dict[tuple[str, str, int], Claim] = {}
_every: weakref.WeakSet[Claim] = weakref.WeakSet()  # also those on cards that were replaced
_blocks = 0  # of published_once
_unpublished = False  # something changed in them


def simulate_gpus(count: int | None, gpu: str | None = None, memory: int | str | None = None) -> None:
    """Give this host `count` simulated GPUs, new and free; sessions and servers that are open keep theirs.

    `gpu` is a model ("K40", "P100", …; by default the book's GRID K520), `memory` what each has, in bytes or as
    "4GiB". 0 takes all cards away, None forgets what was asked: then the environment and real cards count again.
    ValueError for a model that is not known, for memory that is not an amount, and if another process that lives has
    other cards on this host. A notebook, with all that it starts, is a host of its own unless DTFLAB_HOST names one:
    what another open notebook holds does not count here.
    """
    global _asked
    wanted = None if count is None else definition_of(count, gpu, memory)
    if in_notebook():
        os.environ.setdefault("DTFLAB_HOST", f"notebook-{os.getpid()}")
    with _lock:
        if wanted is not None and wanted.count:
            _check_with_others(this_host(), wanted)
        _asked = wanted
        _forget([host for host in _cards if host not in _said])
        if wanted is not None:
            cards_of(this_host())


def definition_of(count: int, gpu: str | None = None, memory: int | str | None = None, exact: bool = True) -> HostCards:
    """The cards asked for, checked; missing values come from DTFLAB_GPU and DTFLAB_GPU_MEMORY, or are defaults."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise ValueError(f"The number of GPUs must be 0 or more, not {count!r}.")
    name = gpu if gpu is not None else os.environ.get("DTFLAB_GPU")
    model = cards.model(name) if name else cards.DEFAULT
    amount = memory if memory is not None else os.environ.get("DTFLAB_GPU_MEMORY") or model.memory_bytes
    nbytes = cards.parse_memory(amount)
    if nbytes < cards.SMALLEST_CARD_BYTES:
        raise ValueError(f"A GPU needs {cards.SMALLEST_CARD_BYTES // cards.MIB} MiB or more, not {amount!r}.")
    return HostCards(model.name, nbytes, count, exact)


def give_cards(host: str, wanted: HostCards) -> None:
    """Give a host the cards of a cluster, until `take_cards`. ValueError if other clusters or processes differ."""
    with _lock:
        if any(not said.agrees(wanted) for said in _said.get(host, [])):
            raise _differ(host, wanted, _said[host][0], "another cluster of this process is running")
        _said.setdefault(host, []).append(wanted)
        try:
            cards_of(host)
        except ValueError:
            take_cards(host)
            raise


def take_cards(host: str) -> None:
    """Withdraw a cluster's cards from a host; with the last cluster they are gone."""
    with _lock:
        _said[host].pop()
        if not _said[host]:
            del _said[host]
            _forget([host])


def count_virtual_time(host: str, change: int) -> None:
    """Count a cluster in virtual time that sees the cards of the host; `change` is 1 at its start, -1 at the end."""
    with _lock:
        _in_virtual_time[host] += change
        if host in _cards:
            _publish()


def forget(host: str) -> None:
    """Forget a host that only a cluster had, with that cluster."""
    with _lock:
        if host in _cards:
            _forget([host])


def this_host() -> str:
    """The host of local sessions and of loopback addresses: DTFLAB_HOST, or localhost."""
    return os.environ.get("DTFLAB_HOST") or "localhost"


def this_home(address: str = "localhost:0", job: str = "") -> Home:
    """The home of this process's task at an address; a `ps` task sees only cards that CUDA_VISIBLE_DEVICES names."""
    return Home(host_of(address), THIS_PROCESS, os.environ.get("CUDA_VISIBLE_DEVICES", "" if job == "ps" else None))


def host_of(address: str) -> str:
    """The host part of an address; a loopback address is on this host, whatever that is called."""
    return this_host() if is_loopback(address) else address.rpartition(":")[0]


def is_loopback(address: str) -> bool:
    """True for an address that only this machine can reach."""
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def definition(host: str) -> HostCards | None:
    """The cards that a cluster, simulate_gpus or the environment gives the host; None if none of them does."""
    count = os.environ.get("DTFLAB_GPUS")
    if host in _said:
        return _said[host][0]
    if _asked is not None or not count:
        return _asked
    if not count.strip().isdecimal():
        raise ValueError(f"DTFLAB_GPUS={count!r} is not a number of GPUs.")
    return definition_of(int(count))


def cards_of(host: str, on_demand: int = 0) -> list[Card]:
    """The cards of a host: simulated if somebody asked for some, else the real ones; `on_demand` on a host without.

    ValueError if another live process has other cards on the host.
    """
    wanted = definition(host)
    if wanted is None and (real := _real_cards()):
        return real
    if wanted is None or wanted.count == 0:
        wanted = definition_of(on_demand, exact=False)
    with _lock:
        known, there = _cards.get(host, (wanted, []))
        if not known.agrees(wanted):
            _forget([host])
            there = []
        if len(there) < wanted.count:
            _check_with_others(host, wanted)
            there += [_card(host, i, wanted) for i in range(len(there), wanted.count)]
            _cards[host] = (wanted, there)
            _publish()
        return there[: wanted.count]


def _card(host: str, index: int, known: HostCards) -> Card:
    return Card(host, index, cards.model(known.model), known.memory_bytes, pci_bus_id(index))


def pci_bus_id(index: int) -> str:
    """Where the card is plugged in: the first as in the book."""
    return f"0000:00:{index + 3:02x}.0"


@functools.cache
def _cupy_is_installed() -> bool:
    return importlib.util.find_spec("cupy") is not None


def _real_cards() -> list[Card]:
    """The GPUs of this machine as CuPy sees them; none without CuPy."""
    if "cupy" not in sys.modules and not _cupy_is_installed():
        return []
    found: list[Card] = importlib.import_module("dtflab.machine.cuda").cards(this_host())
    return found


def _forget(hosts: list[str]) -> None:
    """Other cards take the place of these. Programs with claims on the old ones keep them, apart from all others."""
    for host in hosts:
        _cards.pop(host, None)
    _drop([key for key in _claims if key[0] in hosts], bool(hosts))


def _drop(keys: list[tuple[str, str, int]], tell: bool = False) -> None:
    """End claims; `tell` the other processes even if there are none."""
    for key in keys:
        _claims.pop(key).let_go()
    if keys or tell:
        _publish()


def _check_with_others(host: str, wanted: HostCards) -> None:
    for record in registry().others():
        there = record.hosts.get(host)
        if there is not None and not there.agrees(wanted):
            raise _differ(host, wanted, there, f"process {record.pid} ({record.command}) is running")


def _differ(host: str, wanted: HostCards, there: HostCards, why: str) -> ValueError:
    return ValueError(
        f"Host {host!r} can't have {wanted}: it has {there} while {why}. Ask for the same cards, end that, or "
        "name another host (DTFLAB_HOST)."
    )


@contextlib.contextmanager
def published_once() -> Iterator[None]:
    """In this block, changes are published together at its end: a record has all cards, so each would cost them all."""
    global _blocks
    with _lock:
        _blocks += 1
    try:
        yield
    finally:
        with _lock:
            _blocks -= 1
            if _unpublished and not _blocks:
                _publish()


def _publish() -> None:
    """Publish this process's record for the others."""
    global _unpublished
    _unpublished = _blocks > 0
    if _unpublished:
        return
    hosts = {}
    for host, (said, there) in _cards.items():
        hosts[host] = replace(said, count=len(there), virtual=_in_virtual_time[host] > 0)
    registry().publish(hosts, [claim.holding() for claim in _claims.values() if claim._slot])


# ---- programs ----


def visible_claims(host: str, program: str, visible: str | None, config: ConfigProto | None = None) -> list[Claim]:
    """The claims of a program on the cards that it sees, in the order of /gpu:0, /gpu:1, …

    `visible` is its CUDA_VISIBLE_DEVICES, None if there is none. Of what that leaves, the ConfigProto's
    `gpu_options.visible_device_list` chooses, and `device_count["GPU"]` takes the first ones. On a host without cards
    a `device_count["GPU"]` simulates as many.
    """
    limit = config.device_count["GPU"] if config is not None and "GPU" in config.device_count else None
    if visible == "" or (limit is not None and limit <= 0):
        return []
    there = cards_of(host, limit or 0)
    if there and there[0].real and program == THIS_PROCESS:
        visible = None  # CUDA itself has obeyed it
    order = cuda_visible(visible, len(there))
    if not order:
        return []
    chosen = listed(config.gpu_options.visible_device_list if config is not None else "", len(order))
    claims = [_claim(there[order[ordinal]], program, ordinal) for ordinal in chosen]
    return [claim for claim in claims if _able(claim)][:limit]


def _claim(card: Card, program: str, ordinal: int) -> Claim:
    with _lock:
        key = (card.host, program, card.index)
        if key in _claims and _claims[key].card is not card:  # real ones, before others were simulated
            _drop([key])
        claim = _claims.get(key) or _claims.setdefault(key, Claim(card, program))
        claim.ordinal = ordinal
        return claim


def _able(claim: Claim) -> bool:
    """False, and once TensorFlow's line, for a card that is too old."""
    capability = claim.card.model.compute_capability
    if capability >= cards.MINIMUM_COMPUTE_CAPABILITY:
        return True
    if claim.ignored:
        return False
    claim.ignored = True
    say(
        f"Ignoring visible gpu device ({claim.description}) with Cuda compute capability {_dotted(capability)}. "
        f"The minimum required Cuda capability is {_dotted(cards.MINIMUM_COMPUTE_CAPABILITY)}."
    )
    return False


def _dotted(capability: tuple[int, int]) -> str:
    return ".".join(map(str, capability))


def end_program(program: str) -> None:
    """Free all that a program holds."""
    with _lock:
        _drop([key for key in _claims if key[1] == program])
        for claim in [claim for claim in _every if claim.program == program]:
            claim.grabbed = 0


def free_bytes(card: Card) -> int:
    """The bytes of a card that no program holds."""
    with _lock:
        held = sum(claim.held for claim in claims_on(card)) + sum(holding.held for _, holding in _elsewhere(card))
        return card.memory_bytes - cards.IDLE_BYTES - held


def claims_on(card: Card) -> list[Claim]:
    """The claims of this process on a card."""
    with _lock:
        return [claim for claim in _every if claim.card is card]


def _elsewhere(card: Card) -> list[tuple[Record, Holding]]:
    """The holdings of other processes on a card; none on a card that was replaced."""
    if not any(card is there for there in _cards.get(card.host, (None, []))[1]):
        return []
    records = registry().others()
    return [(r, h) for r in records for h in r.holdings if (h.host, h.card) == (card.host, card.index)]


def _begin_again() -> None:
    """A forked child is a program of its own: it holds nothing yet. Sessions of its parent are of no use to it."""
    global _lock
    _lock = threading.RLock()  # another thread may have held it
    _cards.clear()
    _claims.clear()
    _every.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_again)
