"""Hashes of strings that are the same everywhere and forever: Fingerprint64 and SipHash-2-4.

Stands for FarmHash's `farmhashna::Hash64`, behind `tsl/platform/fingerprint.h`, and `tsl/platform/strong_hash.h`.
"""

from __future__ import annotations

import struct

_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F
_MASK = (1 << 64) - 1

Pair = tuple[int, int]


def _word(data: bytes, at: int) -> int:
    """The 64-bit word at an offset, which may be counted from the end."""
    word: int = struct.unpack_from("<Q", data, at)[0]
    return word


def _rotate(value: int, by: int) -> int:
    """A word rotated to the right."""
    value &= _MASK
    return (value >> by | value << (64 - by)) & _MASK


def _mix(value: int) -> int:
    value &= _MASK
    return value ^ value >> 47


def _of_two(u: int, v: int, multiplier: int) -> int:
    a = _mix((u ^ v) * multiplier)
    return _mix((v ^ a) * multiplier) * multiplier & _MASK


def fingerprint64(data: bytes) -> int:
    """FarmHash's fingerprint: an unsigned 64-bit number."""
    size = len(data)
    if size <= 16:
        return _of_few(data)
    if size <= 64:
        return _of_a_line(data)
    return _of_many(data)


def _of_few(data: bytes) -> int:
    size, multiplier = len(data), _K2 + len(data) * 2
    if size >= 8:
        a, b = _word(data, 0) + _K2 & _MASK, _word(data, -8)
        return _of_two(_rotate(b, 37) * multiplier + a & _MASK, (_rotate(a, 25) + b) * multiplier & _MASK, multiplier)
    if size >= 4:
        first, last = struct.unpack_from("<I", data)[0], struct.unpack_from("<I", data, -4)[0]
        return _of_two(size + (first << 3), last, multiplier)
    if not size:
        return _K2
    y, z = data[0] + (data[size >> 1] << 8), size + (data[-1] << 2)
    return _mix(y * _K2 & _MASK ^ z * _K0 & _MASK) * _K2 & _MASK


def _of_a_line(data: bytes) -> int:
    """17 to 64 bytes."""
    multiplier = _K2 + len(data) * 2
    if len(data) <= 32:
        a, b = _word(data, 0) * _K1, _word(data, 8)
        c, d = _word(data, -8) * multiplier, _word(data, -16) * _K2
        first = _rotate(a + b, 43) + _rotate(c, 30) + d & _MASK
        return _of_two(first, a + _rotate(b + _K2, 18) + c & _MASK, multiplier)
    a, b = _word(data, 0) * _K2, _word(data, 8)
    c, d = _word(data, -8) * multiplier, _word(data, -16) * _K2
    y = _rotate(a + b, 43) + _rotate(c, 30) + d & _MASK
    z = _of_two(y, a + _rotate(b + _K2, 18) + c & _MASK, multiplier)
    e, f = _word(data, 16) * multiplier, _word(data, 24)
    g, h = (y + _word(data, -32)) * multiplier, (z + _word(data, -24)) * multiplier
    return _of_two(_rotate(e + f, 43) + _rotate(g, 30) + h & _MASK, e + _rotate(f + a, 18) + g & _MASK, multiplier)


def _weak(data: bytes, at: int, a: int, b: int) -> Pair:
    """32 bytes with two seeds."""
    w, x, y, z = struct.unpack_from("<4Q", data, at)
    a += w
    b = _rotate(b + a + z, 21)
    c = a
    a += x + y
    return a + z & _MASK, b + _rotate(a, 44) + c & _MASK


def _of_many(data: bytes) -> int:
    x, y = 81, 81 * _K1 + 113 & _MASK
    z = _mix(y * _K2 + 113) * _K2 & _MASK
    v, w = (0, 0), (0, 0)
    x = x * _K2 + _word(data, 0) & _MASK
    for at in range(0, (len(data) - 1) // 64 * 64, 64):
        x, y, z, v, w = _round(data, at, x, y, z, v, w, _K1, 1)
    multiplier = _K1 + ((z & 0xFF) << 1)
    w = w[0] + (len(data) - 1 & 63), w[1]
    v = v[0] + w[0] & _MASK, v[1]
    w = w[0] + v[0] & _MASK, w[1]
    x, y, z, v, w = _round(data, len(data) - 64, x, y, z, v, w, multiplier, 9)
    return _of_two(
        _of_two(v[0], w[0], multiplier) + _mix(y) * _K0 + z & _MASK,
        _of_two(v[1], w[1], multiplier) + x & _MASK,
        multiplier,
    )


def _round(
    data: bytes, at: int, x: int, y: int, z: int, v: Pair, w: Pair, multiplier: int, nine: int
) -> tuple[int, int, int, Pair, Pair]:
    """64 bytes; `nine` is 1, or 9 in the last round."""
    x = _rotate(x + y + v[0] + _word(data, at + 8), 37) * multiplier & _MASK
    y = _rotate(y + v[1] + _word(data, at + 48), 42) * multiplier & _MASK
    x ^= w[1] * nine & _MASK
    y = y + v[0] * nine + _word(data, at + 40) & _MASK
    z = _rotate(z + w[0], 33) * multiplier & _MASK
    v = _weak(data, at, v[1] * multiplier, x + w[0])
    w = _weak(data, at + 32, z + w[1], y + _word(data, at + 16))
    return z, y, x, v, w


# -- SipHash ------------------------------------------------------------------------------------------


def siphash(key: Pair, data: bytes) -> int:
    """SipHash-2-4 with a key of two 64-bit numbers."""
    k0, k1 = key[0] & _MASK, key[1] & _MASK
    state = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]
    padded = data + bytes(-(len(data) + 1) % 8) + bytes([len(data) & 0xFF])
    for word in struct.unpack(f"<{len(padded) // 8}Q", padded):
        state[3] ^= word
        _sip_rounds(state, 2)
        state[0] ^= word
    state[2] ^= 0xFF
    _sip_rounds(state, 4)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


def _sip_rounds(state: list[int], count: int) -> None:
    a, b, c, d = state
    for _ in range(count):
        a, c = a + b & _MASK, c + d & _MASK
        b, d = _rotate(b, 64 - 13) ^ a, _rotate(d, 64 - 16) ^ c
        a = _rotate(a, 32)
        c, a = c + b & _MASK, a + d & _MASK
        b, d = _rotate(b, 64 - 17) ^ c, _rotate(d, 64 - 21) ^ a
        c = _rotate(c, 32)
    state[:] = a, b, c, d
