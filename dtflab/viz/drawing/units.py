"""Numbers with their units, as people write them. Every number that is shown has one.

Rule: bytes that are held in memory have binary units (KiB, `memory_size`), as TensorFlow reports its allocators: the
panel, variables, memory maps, what an op makes. Bytes that travel have decimal units (kB, `byte_size`), as the speeds
of links have, so that one divides by the other: transfers, calls, tensors between devices. `viz.loads` is for both, and
has decimal units.
"""

from __future__ import annotations

import math
from collections.abc import Iterator


def byte_size(count: float) -> str:
    """`512 B`, `25.6 kB`, `1.2 MB`: decimal units, for bytes that travel."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" or count >= 99.95 else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError("unreachable")


def time_unit(total: float) -> tuple[float, str]:
    """Microseconds in the unit that gives readable numbers, and its name."""
    return (1.0, "µs") if total < 1000 else (1e3, "ms") if total < 1e6 else (1e6, "s")


def ticks(total: float, most: float) -> Iterator[float]:
    rough = total / max(most, 1)
    power = 10 ** math.floor(math.log10(rough))
    step = next(power * k for k in (1, 2, 2.5, 5, 10) if power * k >= rough)
    yield from (round(i * step, 12) for i in range(int(total / step) + 1))


def time_ticks(micros: float, wide: float) -> Iterator[tuple[float, str]]:
    """Round moments within this many microseconds, and how they are written: as many as an axis `wide` has room for."""
    unit, name = time_unit(micros)
    for tick in ticks(micros / unit, wide / 85):
        yield tick * unit, f"{tick:g} {name}" if tick else "0"


def duration(micros: float) -> str:
    """`0.8 µs`, `214 µs`, `2.23 ms`, `1.50 s`."""
    unit, name = time_unit(micros)
    value = micros / unit
    return f"{value:.{0 if value >= 99.5 else 1 if value >= 9.95 else 2}f} {name}"


def moment(micros: float) -> str:
    """`680.6 µs`, `0`: a point in time with four digits."""
    return exact(micros) if micros else "0"


def exact(micros: float, digits: int = 4) -> str:
    """`13.81 µs`, `1.38 ms`, `0 µs`: as the live picture says it, zeros at the end left out. Halves go up, as there."""
    unit, name = time_unit(micros)
    return f"{micros / unit * (1 + 1e-12):.{digits}g} {name}"


def span(start: float, end: float) -> str:
    """`from 1.366 ms to 1.38 ms`: with four digits, or as many as tell the end from the beginning."""
    digits = next((each for each in range(4, 10) if exact(start, each) != exact(end, each)), 4)
    return f"from {exact(start, digits)} to {exact(end, digits)}"


def memory_size(count: float) -> str:
    """`512 B`, `25.6 KiB`, `1.00 MiB`: binary units, for bytes that are held. Halves go up, as in the live picture."""
    if count < 1024:
        return f"{count:.0f} B"
    for unit in ("KiB", "MiB", "GiB"):
        count /= 1024
        if count < 1024 or unit == "GiB":
            digits = 0 if count >= 99.95 else 1 if unit == "KiB" or count >= 9.995 else 2
            return f"{count * (1 + 1e-12):.{digits}f} {unit}"
    raise AssertionError("unreachable")
