"""Checksums of records, checkpoints and event files: CRC-32C, masked.

Stands for `tsl/lib/hash/crc32c.h`. A checksum that is stored next to the bytes that it covers is masked, since the
CRC of bytes that contain their own CRC detects errors badly.
"""

from __future__ import annotations

import google_crc32c

_DELTA, _WORD = 0xA282EAD8, 0xFFFFFFFF


def crc32c(data: bytes, crc: int = 0) -> int:
    """The checksum of bytes whose checksum is `crc`, followed by `data`."""
    value: int = google_crc32c.extend(crc, data)
    return value


def mask(crc: int) -> int:
    """A checksum in the form in which files hold it."""
    return ((crc >> 15 | crc << 17) + _DELTA) & _WORD


def unmask(masked: int) -> int:
    """The checksum that a file holds as `masked`."""
    rotated = (masked - _DELTA) & _WORD
    return (rotated >> 17 | rotated << 15) & _WORD


def masked_crc32c(data: bytes) -> int:
    """The masked checksum of `data`."""
    return mask(crc32c(data))
