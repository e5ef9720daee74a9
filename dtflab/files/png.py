"""PNG: pixels as a file, and files as pixels.

Stands for `core/lib/png/png_io.cc`. Left out: interlaced files.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import numpy as np

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_COLOR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}  # channels → grey, grey and alpha, RGB, RGBA
_PALETTE = 3
_MOST = 1 << 29  # pixels, as in TensorFlow
_HEADER = struct.Struct(">IIBBBBB")  # width, height, bits of a channel, colours, and how it is packed
_CHANNELS = {0: 1, 4: 2, 2: 3, 6: 4, _PALETTE: 1}


def encode_png(image: np.ndarray, level: int = -1) -> bytes:
    """The file of an image of shape [height, width, channels], with 1 to 4 channels, of uint8 or uint16.

    `level` of compression is 0 to 9, or -1 for zlib's own choice.
    """
    height, width, channels = image.shape
    depth = 8 * image.dtype.itemsize
    header = _HEADER.pack(width, height, depth, _COLOR_TYPES[channels], 0, 0, 0)
    pixels = np.ascontiguousarray(image, image.dtype.newbyteorder(">")).view(np.uint8).reshape(height, -1)
    rows = np.zeros([height, 1 + pixels.shape[1]], np.uint8)  # each row begins with its filter, 0 for none
    rows[:, 1:] = pixels
    data = zlib.compress(rows.tobytes(), level)
    return _SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


# -- reading ------------------------------------------------------------------------------------------


def decode_png(file: bytes) -> np.ndarray:
    """The image of shape [height, width, channels] in a file: uint16 if it has 16 bits per channel, else uint8.

    Palettes become RGB, or RGBA if they are transparent. Raises ValueError for a file that is damaged or not a PNG.
    """
    chunks: dict[bytes, bytes] = {}
    for kind, data in _chunks(file):
        chunks[kind] = chunks.get(kind, b"") + data
    if b"IEND" not in chunks or len(chunks.get(b"IHDR", b"")) != _HEADER.size:
        raise ValueError("the end or the header is missing")
    width, height, depth, color, _, _, interlaced = _HEADER.unpack(chunks[b"IHDR"])
    if interlaced or color not in _CHANNELS or depth not in (1, 2, 4, 8, 16):
        raise ValueError("interlaced, or of an unknown kind")
    if width * height >= _MOST:
        raise ValueError(f"PNG size too large for int: {width} by {height}")
    channels = _CHANNELS[color]
    rows = _unfiltered(chunks, height, (width * channels * depth + 7) // 8, max(channels * depth // 8, 1))
    if depth == 16:
        return rows.view(">u2").astype(np.uint16).reshape(height, width, channels)
    if depth < 8:
        rows = _unpacked(rows, depth)[:, :width]
    if color == _PALETTE:
        return np.take(_palette(chunks), rows, 0)
    if depth < 8:
        rows = rows * (255 // ((1 << depth) - 1))
    return rows.astype(np.uint8).reshape(height, width, channels)


def _chunks(file: bytes) -> Iterator[tuple[bytes, bytes]]:
    if not file.startswith(_SIGNATURE):
        raise ValueError("not a PNG")
    at = len(_SIGNATURE)
    while at + 12 <= len(file):
        size, kind = struct.unpack_from(">I4s", file, at)
        data, check = file[at + 8 : at + 8 + size], file[at + 8 + size : at + 12 + size]
        if check != struct.pack(">I", zlib.crc32(kind + data)):
            raise ValueError(f"damaged chunk {kind!r}")
        yield kind, data
        at += 12 + size


def _unpacked(rows: np.ndarray, depth: int) -> np.ndarray:
    """Several pixels per byte → a byte for each."""
    shifts = np.arange(8 - depth, -1, -depth)
    found: np.ndarray = (rows[:, :, None] >> shifts & (1 << depth) - 1).reshape(len(rows), -1)
    return found


def _palette(chunks: dict[bytes, bytes]) -> np.ndarray:
    colors = np.frombuffer(chunks.get(b"PLTE", b""), np.uint8).reshape(-1, 3)
    if b"tRNS" not in chunks:
        return colors
    alpha = np.full((len(colors), 1), 255, np.uint8)
    given = np.frombuffer(chunks[b"tRNS"], np.uint8)
    alpha[: len(given), 0] = given
    return np.concatenate([colors, alpha], 1)


def _unfiltered(chunks: dict[bytes, bytes], height: int, width: int, step: int) -> np.ndarray:
    """The bytes of all rows; `step` is the size of a pixel."""
    size = height * (1 + width)
    try:
        data = zlib.decompressobj().decompress(chunks.get(b"IDAT", b""), max(1, size))
    except zlib.error as error:
        raise ValueError(f"damaged pixels: {error}") from None
    if len(data) < size:
        raise ValueError(f"{len(data)} bytes of pixels instead of {size}")
    lines = np.frombuffer(data, np.uint8)[:size].reshape(height, 1 + width)
    rows = np.zeros((height + 1, step + width), np.uint8)  # with zeros above and to the left
    for line, above, row in zip(lines, rows, rows[1:]):
        _unfilter(int(line[0]), line[1:], above, row, step)
    return np.ascontiguousarray(rows[1:, step:])


def _unfilter(kind: int, line: np.ndarray, above: np.ndarray, row: np.ndarray, step: int) -> None:
    """Undo a row's filter: each byte is stored as the difference from a prediction by its neighbours."""
    if kind == 0:
        row[step:] = line
    elif kind == 2:  # above
        row[step:] = line + above[step:]
    else:
        for at in range(step, len(row), step):
            here = slice(at, at + step)
            before = slice(at - step, at)
            left, up, corner = (part.astype(np.int64) for part in (row[before], above[here], above[before]))
            row[here] = line[before] + _expected(kind, left, up, corner).astype(np.uint8)


def _expected(kind: int, left: np.ndarray, up: np.ndarray, corner: np.ndarray) -> np.ndarray:
    if kind == 1:
        return left
    if kind == 3:  # the mean
        mean: np.ndarray = (left + up) // 2
        return mean
    if kind != 4:
        raise ValueError(f"unknown filter {kind}")
    guess = left + up - corner  # Paeth: the neighbour nearest to this prediction
    distances = np.abs([guess - left, guess - up, guess - corner])
    nearest: np.ndarray = np.choose(distances.argmin(0), [left, up, corner])
    return nearest
