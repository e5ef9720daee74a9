"""Cards: a GPU of a host, the models that can be simulated, and what TensorFlow takes of their memory.

Stands for what the CUDA driver reports about a card (`stream_executor/device_description.h`), and for MinSystemMemory
of `core/common_runtime/gpu/gpu_device.cc`. Left out: speeds; `hardware/catalogue_gpus.py` has them.

Rule: a number has its unit in its name, and its source next to it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dtflab.base.suggestions import did_you_mean

MIB = 1 << 20
GIB = 1 << 30

MINIMUM_COMPUTE_CAPABILITY = (3, 0)  # of TensorFlow 1.x; it ignores older cards

# The book's GRID K520: nvidia-smi shows 11 MiB in use on an idle card. A program that has all of it holds 3928915968
# bytes for tensors; with the 300 MiB that TensorFlow leaves, 38816 KiB are missing: what CUDA takes for a program.
IDLE_BYTES = 11 * MIB
CONTEXT_BYTES = 38816 * 1024

SMALLEST_CARD_BYTES = 64 * MIB  # below that nothing is left next to the two


@dataclass(frozen=True)
class CardModel:
    """A model of GPU as its driver describes it; `clock_ghz` is the core's, which TensorFlow calls memoryClockRate.

    A board may carry several `chips`, each a GPU of its own, under one limit of power.
    """

    name: str
    short: tuple[str, ...]
    memory_bytes: int
    compute_capability: tuple[int, int]
    clock_ghz: float
    multiprocessors: int
    power_watts: int
    chips: int = 1


@dataclass(frozen=True, eq=False)
class Card:
    """One GPU of a host. `index` counts the host's cards; `memory_bytes` is all that it has."""

    host: str
    index: int
    model: CardModel
    memory_bytes: int
    pci_bus_id: str
    real: bool = False


def _about(gib: float) -> int:
    """Bytes of a card of which only TensorFlow's `totalMemory`, with two digits, or the data sheet is known."""
    return int(gib * GIB) // 4096 * 4096


# Bytes, multiprocessors and clocks as NVIDIA's deviceQuery and TensorFlow 1.x print them; power as nvidia-smi caps it.
# fmt: off
MODELS = [
    CardModel("GRID K520", ("K520",), 4294770688, (3, 0), 0.797, 8, 125, chips=2),  # the book; 4 GiB less 192 KiB
    CardModel("Tesla K20m", ("K20",), 5032706048, (3, 5), 0.7055, 13, 225),
    CardModel("Tesla K20Xm", ("K20X",), 6039339008, (3, 5), 0.732, 14, 235),
    CardModel("Tesla K40m", ("K40",), 12079136768, (3, 5), 0.745, 15, 235),
    CardModel("Tesla K80", ("K80", "K80-die"), 11995578368, (3, 7), 0.8235, 13, 149, chips=2),  # one of the board's two
    CardModel("GeForce GTX TITAN", ("Titan",), 6405685248, (3, 5), 0.8755, 14, 250),
    CardModel("GeForce GTX TITAN X", ("Titan X",), 12884705280, (5, 2), 1.076, 24, 250),  # 12 GiB less 192 KiB
    CardModel("Tesla M40", ("M40",), _about(11.18), (5, 2), 1.112, 24, 250),
    CardModel("GeForce GTX 1080 Ti", ("1080 Ti",), 11721506816, (6, 1), 1.582, 28, 250),
    CardModel("Tesla P4", ("P4",), _about(7.43), (6, 1), 1.1135, 20, 75),
    CardModel("Tesla P40", ("P40",), _about(22.38), (6, 1), 1.531, 30, 250),
    CardModel("Tesla P100-PCIE-16GB", ("P100", "P100-PCIe"), 17066885120, (6, 0), 1.3285, 56, 250),
    CardModel("Tesla P100-SXM2-16GB", ("P100-SXM2",), 17071734784, (6, 0), 1.4805, 56, 300),
    CardModel("Tesla V100-PCIE-16GB", ("V100-PCIe",), _about(15.78), (7, 0), 1.38, 80, 250),
    CardModel("Tesla V100-SXM2-16GB", ("V100", "V100-SXM2"), 16945512448, (7, 0), 1.53, 80, 300),
    CardModel("Tesla V100-SXM2-32GB", ("V100-32GB",), _about(31.74), (7, 0), 1.53, 80, 300),
    CardModel("Tesla V100-SXM3-32GB", ("V100-SXM3",), _about(31.72), (7, 0), 1.597, 80, 350),
    CardModel("Tesla T4", ("T4",), 15843721216, (7, 5), 1.59, 40, 70),
    CardModel("GeForce RTX 2080 Ti", ("2080 Ti", "RTX 2080 Ti"), _about(10.76), (7, 5), 1.545, 68, 250),
    CardModel("A100-PCIE-40GB", ("A100", "A100-40GB", "A100-PCIe"), 42505273344, (8, 0), 1.41, 108, 250),
    CardModel("A100-SXM4-40GB", ("A100-SXM", "A100-SXM4"), 42505273344, (8, 0), 1.41, 108, 400),
    CardModel("NVIDIA A100 80GB PCIe", ("A100-80GB-PCIe",), _about(79.15), (8, 0), 1.41, 108, 300),
    CardModel("NVIDIA A100-SXM4-80GB", ("A100-80GB", "A100-80GB-SXM"), 85198045184, (8, 0), 1.41, 108, 400),
    CardModel("NVIDIA A10", ("A10",), _about(22.06), (8, 6), 1.695, 72, 150),
    CardModel("NVIDIA L4", ("L4",), _about(22.05), (8, 9), 2.04, 58, 72),
    CardModel("NVIDIA H100 PCIe", ("H100-PCIe",), _about(79.1), (9, 0), 1.755, 114, 350),
    CardModel("NVIDIA H100 80GB HBM3", ("H100", "H100-SXM"), 85520809984, (9, 0), 1.98, 132, 700),
    CardModel("Tesla C2075", ("C2075",), 5636292608, (2, 0), 1.147, 14, 225),  # too old for TensorFlow
]
# fmt: on
DEFAULT = MODELS[0]


def model(name: str) -> CardModel:
    """The model of that full or short name, in any case; ValueError lists all of them."""
    if (found := _find(name)) is not None:
        return found
    known = [m.short[0] for m in MODELS]
    raise ValueError(f"No GPU model {name!r} is known.{did_you_mean(name, known)} Choose one of {', '.join(known)}.")


def is_known(name: str) -> bool:
    """True if some model has that name."""
    return _find(name) is not None


def _find(name: str) -> CardModel | None:
    wanted = _plain(name)
    return next((known for known in MODELS if wanted in map(_plain, (known.name, *known.short))), None)


def _plain(name: str) -> str:
    """A name without what people write in different ways: `GTX Titan-X` is `titanx`."""
    return re.sub(r"nvidia|geforce|tesla|grid|gtx|[\W_]", "", name.lower())


def parse_memory(memory: int | str) -> int:
    """Bytes from a number of bytes or a text: "4GiB", "4G" (the same), "4096MB"; ValueError says what is accepted."""
    match = re.fullmatch(r"(\d+) *b?|(\d+(?:\.\d+)?) *([kmgt])(i?b|)", str(memory).strip(), re.IGNORECASE)
    if match is None:
        raise ValueError(f"{memory!r} is not an amount of memory. Write a number of bytes, or for example '4GiB'.")
    plain, number, unit, binary = match.groups()
    if plain:
        return int(plain)
    return int(float(number) * (1000 if binary.lower() == "b" else 1024) ** " kmgt".index(unit.lower()))


def min_system_memory(available_bytes: int) -> int:
    """The bytes that TensorFlow leaves free on a card: 225 MiB of less than 2 GiB, else 300 MiB or a twentieth."""
    return 225 * MIB if available_bytes < 2 * GIB else max(300 * MIB, int(available_bytes * 0.05))


def grab_all_limit(memory_bytes: int) -> int:
    """Bytes for tensors that a program takes of a card which it has for itself, unless it asks for less."""
    available = memory_bytes - IDLE_BYTES - CONTEXT_BYTES
    reserve = min_system_memory(available)
    return available - reserve if reserve < available else available
