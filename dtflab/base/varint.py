"""Numbers of one to ten bytes, seven bits each, the lowest first: protobuf's varints.

Stands for `core/lib/core/coding.h`.
"""

from __future__ import annotations

from typing import Any


def put_varint(value: int) -> bytes:
    """A number that is not negative, as bytes."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def get_varint(data: Any, position: int) -> tuple[int, int]:
    """The number that begins at `position`, and where it ends; ValueError if there is none."""
    value = shift = 0
    while shift < 70 and position < len(data):
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7
    raise ValueError("a number is cut off")
