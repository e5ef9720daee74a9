"""Examples of the ops on text that savers use; those that read and write files are run in programs."""

from __future__ import annotations

import numpy as np

from tests.op_examples import Example, Values, examples

_PROGRAMS = "tests/ops/oracle/test_save_restore_ops.py"
IN_PROGRAMS = dict.fromkeys(
    ("SaveV2", "RestoreV2", "MergeV2Checkpoints", "Save", "SaveSlices", "Restore", "RestoreSlice"), _PROGRAMS
) | {"DisableCopyOnRead": "tests/train/oracle/test_saver.py"}


def text(*items: bytes) -> np.ndarray:
    return np.array(items, object)


@examples("StringJoin")
def string_join(v: Values) -> list[Example]:
    one = np.array(b"x", object)
    return [
        v([text(b"a", b"b"), text(b"", b"\xff\0")]),
        v([text(b"a", b"b"), one, text(b"c", b"d")], separator="--"),
        v([one, one], separator="/"),
        v([np.full((2, 0), b"", object), one]),
        v([one]),
    ]


@examples("RegexFullMatch", "StaticRegexFullMatch")
def regex_full_match(v: Values) -> list[Example]:
    values = text(b"s3://bucket", b"xs3://", b"", b"abab").reshape(2, 2)
    patterns = (b"^s3://.*", b"(ab)+", b"", b"[a-z]*|s.*t$")
    if v.op == "StaticRegexFullMatch":
        return [v(values, pattern=pattern) for pattern in patterns]
    return [v(values, np.array(pattern, object)) for pattern in patterns]


@examples("ShardedFilename")
def sharded_filename(v: Values) -> list[Example]:
    return [
        v(np.array(b"a/b", object), *(np.array(n, np.int32) for n in pair)) for pair in ((0, 1), (3, 12), (7, 100000))
    ]


@examples("ShardedFilespec")
def sharded_filespec(v: Values) -> list[Example]:
    return [v(np.array(b"a/b", object), np.array(n, np.int32)) for n in (1, 123456)]
