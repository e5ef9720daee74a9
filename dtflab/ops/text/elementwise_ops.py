"""Ops of each string by itself: length, case, base 64, inflated, a bucket by its hash.

Stands for `core/kernels/{string_length,string_upper,string_lower,string_strip,decode_compressed}_op.cc`,
`string_to_hash_bucket_op.h` and `tsl/platform/base64.cc`. Left out: ZSTD. The hashes are in `base/hashing.py` and
`base/fingerprint.py`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.base.fingerprint import fingerprint64, siphash
from dtflab.base.hashing import hash64
from dtflab.files.compression import WINDOW_BITS, inflated
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.ops import shapes
from dtflab.ops.messages import invalid

CHARACTER = re.compile(rb"[^\x80-\xbf][\x80-\xbf]*")  # of UTF-8: bytes after its first one begin with the bits 10


def each(strings: Any, function: Callable[[bytes], Any], kind: Any = object) -> Any:
    """`function` of every string."""
    return np.array([function(text) for text in strings.ravel().tolist()], kind).reshape(strings.shape)


class _Each(Op):
    """Gives for each string what the function `of(node)` returns."""

    infer = shapes.unchanged
    of: Callable[[Any], Callable[[bytes], Any]]
    kind: Any = object

    @classmethod
    def bind(cls, node, xp):
        function = cls.of(node)
        return lambda strings: each(strings, function, cls.kind)


@op("StringLength(input: string) -> (output: int32) where unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'")
class StringLength(_Each):
    kind = np.int32

    def of(node):
        return len if node["unit"] == b"BYTE" else lambda text: len(CHARACTER.findall(text))


# -- letters ------------------------------------------------------------------------------------------


@op("StringStrip(input: string) -> (output: string)")
class StringStrip(_Each):
    def of(node):
        return bytes.strip


@op(*(f"String{case}(input: string) -> (output: string) where encoding: string = ''" for case in ("Upper", "Lower")))
class StringInCase(_Each):
    def of(node):
        change = node.op.removeprefix("String").lower()
        if node["encoding"] not in (b"", b"utf-8"):
            raise invalid(f"only utf-8 or '' (no encoding) is supported, received {node['encoding'].decode()}")
        if not node["encoding"]:
            return getattr(bytes, change)
        return lambda text: getattr(text.decode(), change)().encode()


# -- encodings ----------------------------------------------------------------------------------------


@op("EncodeBase64(input: string) -> (output: string) where pad: bool = false")
class EncodeBase64(_Each):
    """Base64 with the characters that URLs allow."""

    grad = no_gradient

    def of(node):
        end = b"" if node["pad"] else b"="
        return lambda text: base64.urlsafe_b64encode(text).rstrip(end)


_BASE64 = re.compile(rb"[A-Za-z0-9_-]*={0,2}")


def _decoded(text: bytes) -> bytes:
    letters = text.rstrip(b"=")
    if not _BASE64.fullmatch(text) or (text != letters and len(text) % 4):
        raise invalid("Invalid character found in base64.")
    if len(letters) % 4 == 1:
        raise invalid("Base64 string length cannot be 1 modulo 4.")
    return base64.urlsafe_b64decode(letters + b"=" * (-len(letters) % 4))


@op("DecodeBase64(input: string) -> (output: string)")
class DecodeBase64(_Each):
    grad = no_gradient

    def of(node):
        return _decoded


@op("DecodeCompressed(bytes: string) -> (output: string) where compression_type: string = ''")
class DecodeCompressed(_Each):
    def of(node):
        kind = node["compression_type"].decode()
        if kind and kind not in WINDOW_BITS:
            raise invalid("Only ZLIB, GZIP or NONE are supported compressions")
        return (lambda data: inflated(data, WINDOW_BITS[kind])) if kind else bytes


# -- hashes -------------------------------------------------------------------------------------------


@op(
    "StringToHashBucket(string_tensor: string) -> (output: int64) where num_buckets: int >= 1",
    "StringToHashBucketFast(input: string) -> (output: int64) where num_buckets: int >= 1",
)
class StringToHashBucket(_Each):
    grad = no_gradient
    kind = np.int64

    def of(node):
        hashed, count = fingerprint64 if node.op.endswith("Fast") else hash64, node["num_buckets"]
        return lambda text: hashed(text) % count


@op("StringToHashBucketStrong(input: string) -> (output: int64) where num_buckets: int >= 1, key: list(int)")
class StringToHashBucketStrong(StringToHashBucket):
    def of(node):
        key, count = tuple(node["key"]), node["num_buckets"]
        if len(key) != 2:
            raise invalid("Key must have 2 elements")
        return lambda text: siphash(key, text) % count
