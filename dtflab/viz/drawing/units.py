"""Numbers with their units, as people write them. Every number that is shown has one."""

from __future__ import annotations

import math
from collections.abc import Iterator


def byte_size(count: float) -> str:
    """`512 B`, `25.6 kB`, `1.2 MB`: decimal units, as link speeds have."""
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
    """`680.6 µs`, `0`: a point in time with four digits. Halves go up, as in the live picture."""
    unit, name = time_unit(micros)
    return f"{micros / unit * (1 + 1e-12):.4g} {name}" if micros else "0"


def memory_size(count: float) -> str:
    """`512 B`, `25.6 KiB`, `1.00 MiB`: binary units, as memory has. Halves go up, as in the live picture."""
    if count < 1024:
        return f"{count:.0f} B"
    for unit in ("KiB", "MiB", "GiB"):
        count /= 1024
        if count < 1024 or unit == "GiB":
            digits = 0 if count >= 99.95 else 1 if unit == "KiB" or count >= 9.995 else 2
            return f"{count * (1 + 1e-12):.{digits}f} {unit}"
    raise AssertionError("unreachable")
