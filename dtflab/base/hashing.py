"""TensorFlow's hash of names, where a number must be the same in tasks of both kinds.

Stands for `tsl/platform/hash.cc`: MurmurHash64A.
"""

from __future__ import annotations

_M, _MASK = 0xC6A4A7935BD1E995, (1 << 64) - 1


def combine(a: int, b: int) -> int:
    """TensorFlow's Hash64Combine."""
    return a ^ (b + 0x9E3779B97F4A7800 + (a << 10) + (a >> 4)) & _MASK


def hash64(data: bytes, seed: int = 0xDECAFCAFFE) -> int:
    """TensorFlow's Hash64 (MurmurHash64A): frame ids in rendezvous keys must agree between tasks of both kinds."""
    h = (seed ^ (len(data) * _M)) & _MASK
    whole = len(data) & ~7
    for i in range(0, whole, 8):
        k = (int.from_bytes(data[i : i + 8], "little") * _M) & _MASK
        k = ((k ^ (k >> 47)) * _M) & _MASK
        h = ((h ^ k) * _M) & _MASK
    if len(data) > whole:
        h = ((h ^ int.from_bytes(data[whole:], "little")) * _M) & _MASK
    h = ((h ^ (h >> 47)) * _M) & _MASK
    return h ^ (h >> 47)
