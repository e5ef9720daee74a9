"""Hosts, their cards, and who may use them.

Stands for `core/common_runtime/gpu/gpu_init.cc`, the device half of `gpu_device.cc` (BaseGPUDeviceFactory), and the
CUDA driver under both.

A *host* is the host part of an address. A *program* is who holds memory of a card: an operating system process, or
one task of an in-process cluster. A *claim* is one program's use of one card.

Rules: an explicit request simulates cards; without one, real ones are used if CuPy sees some. Memory that a program
has grabbed is given back when the program ends, never before. Nobody imports CuPy here.
"""

from __future__ import annotations

import importlib
import importlib.util
import ipaddress
import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dtflab.machine import cards
from dtflab.machine.bfc_allocator import human_bytes
from dtflab.machine.cards import CardModel
from dtflab.machine.console import say
from dtflab.machine.visible import cuda_visible, listed

if TYPE_CHECKING:
    from dtflab.machine.memory import DeviceMemory

THIS_PROCESS = ""  # the program of local sessions and of servers that a program starts itself


@dataclass(frozen=True)
class Home:
    """Where a task lives: its host, the program whose part it is, and that program's CUDA_VISIBLE_DEVICES (or None)."""

    host: str
    program: str
    visible: str | None


@dataclass(frozen=True)
class HostCards:
    """What a host was said to have: `count` cards of one model; None: as many as were asked for by device_count."""

    model: CardModel
    memory_bytes: int
    count: int | None

    def __str__(self) -> str:
        many = "cards on demand:" if self.count is None else f"{self.count} x"
        return f"{many} {self.model.name} ({self.memory_bytes // cards.MIB} MiB)"


@dataclass(frozen=True, eq=False)
class Card:
    """One GPU of a host. `index` counts the host's cards; `memory_bytes` is all that it has."""

    host: str
    index: int
    model: CardModel
    memory_bytes: int
    pci_bus_id: str
    real: bool = False


class Claim:
    """One program's use of one card: the memory that it has grabbed, and how long its kernels ran.

    `ordinal` is the card's number as CUDA shows it to the program. `memory` is set by whoever uses the card first.
    """

    def __init__(self, card: Card, program: str) -> None:
        self.card = card
        self.program = program
        self.ordinal = card.index
        self.memory: DeviceMemory | None = None
        self.grabbed = 0
        self.busy_ns = 0
        self._lock = threading.Lock()

    @property
    def held(self) -> int:
        """Bytes of the card that the program keeps from others: what it grabbed, and its context."""
        return self.grabbed + cards.CONTEXT_BYTES if self.grabbed else 0

    @property
    def description(self) -> str:
        """The card as TensorFlow describes it."""
        model = self.card.model
        major, minor = model.compute_capability
        return (
            f"device: {self.ordinal}, name: {model.name}, pci bus id: {self.card.pci_bus_id}, "
            f"compute capability: {major}.{minor}"
        )

    def grab(self, nbytes: int) -> bool:
        """Take memory off the card; False, and CUDA's line, if so much is not free."""
        with _lock:
            context = 0 if self.grabbed else cards.CONTEXT_BYTES
            if nbytes + context > free_bytes(self.card):
                amount = human_bytes(nbytes).replace("iB", "")  # 3.66G
                say(f"failed to allocate {amount} ({nbytes} bytes) from device: CUDA_ERROR_OUT_OF_MEMORY")
                return False
            self.grabbed += nbytes
            return True

    def busy(self, seconds: float) -> None:
        """A kernel ran that long."""
        with self._lock:
            self.busy_ns += int(seconds * 1e9)

    def release(self) -> None:
        """The program ends: all that it held is free again."""
        with _lock:
            self.grabbed = 0
            for key in [key for key, claim in _claims.items() if claim is self]:
                del _claims[key]

    def __repr__(self) -> str:
        return f"<claim of {self.program or 'this process'} on card {self.card.index} of {self.card.host}>"


# ---- what this process knows ----

_lock = threading.RLock()
_asked: HostCards | None = None  # by simulate_gpus, for every host that has none of its own
_said: dict[str, HostCards] = {}  # for one host, by a cluster
_cards: dict[str, tuple[HostCards, list[Card]]] = {}
_claims: dict[tuple[str, str, int], Claim] = {}


def simulate_gpus(count: int | None, gpu: str | None = None, memory: int | str | None = None) -> None:
    """Give this host `count` simulated GPUs, new and free; sessions and servers that are open keep theirs.

    `gpu` is a model ("K40", "P100", …; by default the book's GRID K520), `memory` what each has, in bytes or as
    "4GiB". 0 takes all cards away, None forgets what was asked: then the environment and real cards count again.
    ValueError for a model that is not known and for memory that is no amount.
    """
    global _asked
    definition = None if count is None else definition_of(count, gpu, memory)
    with _lock:
        _asked = definition
        for host in [host for host in _cards if host not in _said]:
            _forget(host)


def definition_of(count: int | None, gpu: str | None = None, memory: int | str | None = None) -> HostCards:
    """Checked; what is not given comes from DTFLAB_GPU and DTFLAB_GPU_MEMORY, or is the default."""
    if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 0):
        raise ValueError(f"The number of GPUs must be 0 or more, not {count!r}.")
    name = gpu if gpu is not None else os.environ.get("DTFLAB_GPU")
    model = cards.model(name) if name else cards.DEFAULT
    amount = memory if memory is not None else os.environ.get("DTFLAB_GPU_MEMORY")
    nbytes = cards.parse_memory(amount) if amount not in (None, "") else model.memory_bytes
    if nbytes < cards.SMALLEST_CARD_BYTES:
        raise ValueError(f"A GPU needs {cards.SMALLEST_CARD_BYTES // cards.MIB} MiB or more, not {amount!r}.")
    return HostCards(model, nbytes, count)


def this_host() -> str:
    """The host of local sessions and of loopback addresses: DTFLAB_HOST, or localhost."""
    return os.environ.get("DTFLAB_HOST") or "localhost"


def this_home(address: str = "localhost:0", job: str = "") -> Home:
    """Where a task of this process lives that has that address; a `ps` task sees no card unless it is told to."""
    host = this_host() if is_loopback(address) else address.rpartition(":")[0]
    return Home(host, THIS_PROCESS, os.environ.get("CUDA_VISIBLE_DEVICES", "" if job == "ps" else None))


def is_loopback(address: str) -> bool:
    """True for an address that only this machine can reach."""
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _definition(host: str) -> HostCards | None:
    """What the host was said to have: by a cluster, by simulate_gpus, by the environment; None if nobody said."""
    count = os.environ.get("DTFLAB_GPUS")
    if host in _said:
        return _said[host]
    if _asked is not None or not count:
        return _asked
    if not count.strip().isdecimal():
        raise ValueError(f"DTFLAB_GPUS={count!r} is no number of GPUs.")
    return definition_of(int(count))


def cards_of(host: str, on_demand: int = 0) -> list[Card]:
    """The cards of a host: simulated if somebody asked for some, else the real ones; `on_demand` on a host without."""
    definition = _definition(host)
    if definition is None and (real := _real_cards()):
        return real
    if on_demand and (definition is None or definition.count == 0):
        definition = definition_of(None)
    if definition is None:
        return []
    with _lock:
        if host not in _cards or _cards[host][0] != definition:
            _forget(host)
            _cards[host] = (definition, [])
        count = on_demand if definition.count is None else definition.count
        found = _cards[host][1]
        found += [_card(host, i, definition) for i in range(len(found), count)]
        return found[:count]


def _card(host: str, index: int, definition: HostCards) -> Card:
    return Card(host, index, definition.model, definition.memory_bytes, f"0000:00:{index + 3:02x}.0")


def _real_cards() -> list[Card]:
    """The GPUs of this machine as CuPy sees them; none without CuPy."""
    if importlib.util.find_spec("cupy") is None:
        return []
    found: list[Card] = importlib.import_module("dtflab.machine.cuda").cards()
    return found


def _forget(host: str) -> None:
    """Other cards take the place of these. Who has claims on the old ones keeps them, apart from all others."""
    _cards.pop(host, None)
    for key in [key for key in _claims if key[0] == host]:
        del _claims[key]


# ---- programs ----


def visible_claims(host: str, program: str, visible: str | None, config: Any = None) -> list[Claim]:
    """The claims of a program on the cards that it sees, in the order of /gpu:0, /gpu:1, …

    `visible` is its CUDA_VISIBLE_DEVICES, None if there is none. Of what that leaves, the ConfigProto's
    `gpu_options.visible_device_list` chooses, and `device_count["GPU"]` takes the first ones. On a host without cards
    a `device_count["GPU"]` simulates as many.
    """
    limit = config.device_count["GPU"] if config is not None and "GPU" in config.device_count else None
    there = cards_of(host, max(0, limit or 0))
    if there and there[0].real and program == THIS_PROCESS:
        visible = None  # CUDA itself has obeyed it
    order = cuda_visible(visible, len(there))
    if limit == 0 or not order:
        return []
    chosen = listed(config.gpu_options.visible_device_list if config is not None else "", len(order))
    claims = [_claim(there[order[ordinal]], program, ordinal) for ordinal in chosen]
    return [claim for claim in claims if _able(claim)][:limit]


def _claim(card: Card, program: str, ordinal: int) -> Claim:
    with _lock:
        claim = _claims.setdefault((card.host, program, card.index), Claim(card, program))
        claim.ordinal = ordinal
        return claim


def _able(claim: Claim) -> bool:
    """False, and TensorFlow's line, for a card that is too old."""
    capability = claim.card.model.compute_capability
    if capability >= cards.MINIMUM_COMPUTE_CAPABILITY:
        return True
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
        for claim in [claim for claim in _claims.values() if claim.program == program]:
            claim.release()


def free_bytes(card: Card) -> int:
    """What nobody holds of a card."""
    with _lock:
        held = sum(claim.held for claim in _claims.values() if claim.card is card)
        return card.memory_bytes - cards.IDLE_BYTES - held
