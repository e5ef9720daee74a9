"""Examples of the ops on strings."""

from __future__ import annotations

import gzip
import zlib

import numpy as np

from dtflab.graph import dtypes
from tests.op_examples import Example, Values, examples
from tests.op_examples.decoding import strings

_LENGTHS = [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 100, 127, 128, 129, 200]


@examples("StringToHashBucket", "StringToHashBucketFast", "StringToHashBucketStrong")
def hash_buckets(v: Values) -> list[Example]:
    texts = strings(*(v.random.bytes(n) for n in _LENGTHS), "word", "wörd")
    key = {"key": [-12345, 98765]} if v.op.endswith("Strong") else {}
    found = [v(texts, num_buckets=n, **key) for n in (1, 10, 2**62 + 1)]
    return [*found, v(np.array(b"one", object), num_buckets=7, **key), v(texts[:0], num_buckets=7, **key)]


@examples("AsString")
def as_string(v: Values) -> list[Example]:
    fills = [{"fill": fill, "width": 9} for fill in (" ", "+", "-", "0", "#", "")]
    found = [v(v.array(2, 3)), v(v.array()), v(v.array(0, 2)), v(v.array(4), width=3)]
    if v.dtype == dtypes.string:
        return [*found, v(strings("a", "bcd"), width=5), v(strings("a", "bcd"), width=5, fill="-")]
    found += [v(v.array(4), **fill) for fill in fills]
    if v.dtype.is_floating or v.dtype.is_complex:
        found += [v(v.array(4), precision=n, scientific=e, width=12) for n in (0, 2, 9) for e in (True, False)]
        found += [v(v.special(), **how) for how in ({}, {"shortest": True}, {"fill": "0", "width": 8}, {"fill": "+"})]
    return found


@examples("Substr")
def substr(v: Values) -> list[Example]:
    kind = v.dtype.as_numpy_dtype
    texts, accents = strings("hello", "wonderful", "world!"), strings("héllo", "wörld", "日本語日本語")
    found = [v(texts, np.array(pos, kind), np.array(n, kind)) for pos, n in ((1, 2), (-3, 2), (5, 9), (0, 0), (2, -1))]
    found += [v(np.array(b"hello", object), np.array([0, 2], kind), np.array([1, 2], kind))]
    found += [v(texts, np.array([1, 2, 3], kind), np.array([2, 4, 9], kind))]
    found += [v(np.stack([texts, texts]), np.array([[1], [2]], kind), np.array([[1], [3]], kind))]
    places = ((1, 2), (-2, 1), (0, 99), (5, 1), (1, -1))
    return found + [v(accents, np.array(p, kind), np.array(n, kind), unit="UTF8_CHAR") for p, n in places]


@examples("StringLength")
def string_length(v: Values) -> list[Example]:
    texts = strings("", "abc", "é日本", b"\xff\xfe\x80", b"\x80\x80")
    return [v(texts, unit=unit) for unit in ("BYTE", "UTF8_CHAR")] + [v(np.array(b"ab", object))]


@examples("StringUpper", "StringLower")
def letters(v: Values) -> list[Example]:
    texts = strings("aBcÄöß", "", "x1")
    return [v(texts), v(texts, encoding="utf-8"), v(np.array(b"aB", object))]


@examples("StringStrip")
def strip(v: Values) -> list[Example]:
    return [v(strings(" a b\n", "\t\v", "", "c")), v(np.array(b" a", object))]


@examples("StringSplit")
def string_split(v: Values) -> list[Example]:
    texts = strings("a,b;c", "", ",d,,e;", ";")
    cuts = [np.array(cut, object) for cut in (b",", b",;", b"", b"]^-", b"xyz")]
    return [v(given, cut, skip_empty=skip) for given in (texts, texts[:0]) for cut in cuts for skip in (True, False)]


@examples("StringSplitV2")
def string_split_v2(v: Values) -> list[Example]:
    texts = strings("a, b,c ", "", " d ,, e", ",")
    cuts = [np.array(cut, object) for cut in (b",", b", ", b"", b"xyz")]
    return [v(given, cut, maxsplit=n) for given in (texts, texts[:0]) for cut in cuts for n in (-1, 1, 2)]


@examples("EncodeBase64")
def encode_base64(v: Values) -> list[Example]:
    texts = strings("", "a", "ab", "abc", b"\xff\xfe\xfd\xfb", b"\0")
    return [v(texts), v(texts, pad=True), v(np.array(b"one", object))]


@examples("DecodeBase64")
def decode_base64(v: Values) -> list[Example]:
    return [v(strings("", "YQ", "YQ==", "YWI=", "YWJj", "__79-w")), v(np.array(b"YX", object))]


@examples("DecodeCompressed")
def decode_compressed(v: Values) -> list[Example]:
    texts = [b"", b"abc", b"abc" * 1000]
    return [
        v(strings(*texts)), v(strings(*map(zlib.compress, texts)), compression_type="ZLIB"),
        v(strings(*map(gzip.compress, texts)), compression_type="GZIP"),
    ]  # fmt: skip


@examples("RegexReplace", "StaticRegexReplace")
def regex_replace(v: Values) -> list[Example]:
    texts = strings(b"aXbX", b"", b"abc", "ä b".encode(), b"john smith", b"x").reshape(2, 3)
    rules = [
        (b"X", rb"[\0]"), (rb"(\w+) (\w+)", rb"\2 \1"), (b"b*", b"-"), (b"", b"-"), (b".", b"x"), (b"b", rb"\\"),
        (b"b|c", b"$1"), (b"(a)|(b)", rb"<\1>"),
    ]  # fmt: skip
    if v.op == "StaticRegexReplace":
        return [v(texts, pattern=p, rewrite=r, replace_global=g) for p, r in rules for g in (True, False)]
    scalars = [[np.array(text, object) for text in rule] for rule in rules]
    return [v(texts, *rule, replace_global=g) for rule in scalars for g in (True, False)]


@examples("ReduceJoin")
def reduce_join(v: Values) -> list[Example]:
    texts = strings(*b"a b c d e f g h i j k l".split()).reshape(2, 3, 2)
    axes = ([0], [1], [-1], [0, 1], [1, 0], [2, 0, 1], [], 1)
    found = [v(texts, np.array(a, np.int32), keep_dims=k, separator=s) for a in axes for k in (0, 1) for s in ("", "-")]
    return [*found, v(texts[:0], np.array(0, np.int32)), v(texts[:0], np.array([2], np.int32))]


@examples("UnsortedSegmentJoin")
def unsorted_segment_join(v: Values) -> list[Example]:
    texts = strings(*b"a b c d e f".split())
    return [
        v(texts, np.array([2, 0, 2, 0, 0, 3], v.dtype.as_numpy_dtype), np.int32(4), separator=":"),
        v(texts.reshape(3, 2), np.array([1, 0, 1], v.dtype.as_numpy_dtype), np.int64(2)),
        v(texts.reshape(3, 2), np.array([[1, 0], [1, 1], [0, 0]], v.dtype.as_numpy_dtype), np.int32(3)),
        v(texts[:0], np.zeros(0, v.dtype.as_numpy_dtype), np.int32(2)),
    ]


@examples("StringFormat")
def string_format(v: Values) -> list[Example]:
    if v.dtype != dtypes.float32:
        # TensorFlow shows complex numbers as question marks, and loses count of them.
        return [] if v.dtype.is_complex else [v([v.array(2, 3)], template="%s")]
    values = [np.array([1.5, -2, 3, 4, 5], np.float32), np.array([[1, 2], [3, 4]], np.int32), np.array(True)]
    words = np.array([b"a", b"b"], object), np.array(b"a\n", object)
    found = [v([value], template="<%s>") for value in [*values, *words, np.array(2.25)]]
    return [
        *found,
        v(values, template="%s, %s; %s", summarize=2),
        v(values[:1], template="{}", placeholder="{}", summarize=-1),
    ]
