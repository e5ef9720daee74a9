"""Strings in other clothes: base 64, and compressed.

Stands for `tsl/platform/base64.cc` and `core/kernels/decode_compressed_op.cc`. Left out: ZSTD.
"""

from __future__ import annotations

import base64
import re
from typing import Any

from dtflab.files.compression import WINDOW_BITS, inflated
from dtflab.graph.apply_op import apply_op
from dtflab.graph.op_registry import Op, no_gradient, op
from dtflab.graph.operation import Tensor
from dtflab.ops import shapes
from dtflab.ops.messages import invalid
from dtflab.ops.text.substrings import each


@op("""EncodeBase64(input: string) -> (output: string)
       pad: bool = false""")
class EncodeBase64(Op):
    """With the letters that may stand in URLs."""

    grad = no_gradient
    infer = shapes.unchanged

    def bind(node, xp):
        end = b"" if node["pad"] else b"="
        return lambda strings: each(strings, lambda text: base64.urlsafe_b64encode(text).rstrip(end))


_BASE64 = re.compile(rb"[A-Za-z0-9_-]*={0,2}")


def _decoded(text: bytes) -> bytes:
    letters = text.rstrip(b"=")
    if not _BASE64.fullmatch(text) or (text != letters and len(text) % 4):
        raise invalid("Invalid character found in base64.")
    if len(letters) % 4 == 1:
        raise invalid("Base64 string length cannot be 1 modulo 4.")
    return base64.urlsafe_b64decode(letters + b"=" * (-len(letters) % 4))


@op("DecodeBase64(input: string) -> (output: string)")
class DecodeBase64(Op):
    grad = no_gradient
    infer = shapes.unchanged

    def bind(node, xp):
        return lambda strings: each(strings, _decoded)


@op("""DecodeCompressed(bytes: string) -> (output: string)
       compression_type: string = ''""")
class DecodeCompressed(Op):
    infer = shapes.unchanged

    def bind(node, xp):
        kind = node["compression_type"].decode()
        if kind and kind not in WINDOW_BITS:
            raise invalid("Only ZLIB, GZIP or NONE are supported compressions")
        if not kind:
            return lambda strings: strings
        return lambda strings: each(strings, lambda data: inflated(data, WINDOW_BITS[kind]))


def encode_base64(input: Any, pad: bool = False, name: str | None = None) -> Tensor:
    """Each string in base 64 with letters for URLs; `pad` fills it up by `=` to a multiple of four letters."""
    return apply_op("EncodeBase64", name, input=input, pad=pad)


def decode_base64(input: Any, name: str | None = None) -> Tensor:
    """What `encode_base64` gave, with or without padding; InvalidArgumentError for what it can't have given."""
    return apply_op("DecodeBase64", name, input=input)


def decode_compressed(bytes: Any, compression_type: str = "", name: str | None = None) -> Tensor:
    """Each string inflated; `compression_type` is 'ZLIB', 'GZIP' or '' for none. DataLossError for damaged ones."""
    return apply_op("DecodeCompressed", name, bytes=bytes, compression_type=compression_type)
