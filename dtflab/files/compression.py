"""Streams of deflated bytes: what is inside `.gz` files and compressed records.

Stands for `tsl/lib/io/zlib_inputstream.cc` and `zlib_outputbuffer.cc`. Left out: Snappy.
"""

from __future__ import annotations

import io
import re
import zlib
from typing import Any, BinaryIO

from dtflab.base import errors

WINDOW_BITS = {"ZLIB": zlib.MAX_WBITS, "GZIP": zlib.MAX_WBITS + 16}
_CHUNK = 1 << 18


def inflated(data: bytes, window_bits: int) -> bytes:
    """All of `data`, whose last stream may be unfinished; DataLossError if it is damaged."""
    whole = []
    while data:
        stream = zlib.decompressobj(window_bits)
        whole.append(_inflate(stream, data))
        data = stream.unused_data
    return b"".join(whole)


def _inflate(stream: Any, data: bytes) -> bytes:
    try:
        inflated: bytes = stream.decompress(data)
    except zlib.error as error:
        what = re.match(r"Error (-\d+) [^:]*: (.*)", str(error))
        said = f"{what[1]}: {what[2]}" if what else str(error)
        raise errors.DataLossError.of(f"inflate() failed with error {said}") from None
    return inflated


class InflatingFile:
    """A file of deflated streams, one after another, read as the inflated bytes."""

    def __init__(self, file: BinaryIO, window_bits: int) -> None:
        self._file = file
        self._window_bits = window_bits
        self._stream = zlib.decompressobj(window_bits)
        self._ready = b""

    def read(self, size: int = -1) -> bytes:
        """The next `size` bytes, all that are left if it is negative; fewer at the end."""
        parts, missing = [], size
        while size < 0 or missing > len(self._ready):
            parts.append(self._ready)
            missing -= len(self._ready)
            self._ready = self._more()
            if not self._ready:
                return b"".join(parts)
        parts.append(self._ready[:missing])
        self._ready = self._ready[missing:]
        return b"".join(parts)

    def _more(self) -> bytes:
        while True:
            data = self._stream.unused_data or self._file.read(_CHUNK)
            if not data:
                return b""
            if self._stream.eof:
                self._stream = zlib.decompressobj(self._window_bits)
            ready = _inflate(self._stream, data)
            if ready:
                return ready

    def close(self) -> None:
        self._file.close()


class _Inflated(io.RawIOBase):
    """An InflatingFile with the interface of `io.RawIOBase`."""

    def __init__(self, file: InflatingFile) -> None:
        super().__init__()
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def inflating(file: BinaryIO, window_bits: int) -> BinaryIO:
    """A file of deflated streams, to be read by lines."""
    return io.BufferedReader(_Inflated(InflatingFile(file, window_bits)), _CHUNK)
