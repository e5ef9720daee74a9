"""Files for programs that read: texts, and records plain, compressed and damaged."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import dtflab


def write_texts(texts: Mapping[str, bytes]) -> None:
    """Each under its name, in the working directory."""
    for name, text in texts.items():
        Path(name).write_bytes(text)


def write_records() -> None:
    """Three records as `r`, `r.gz` and `r.z`; in `r.bad` a byte of the second is wrong, and `r.cut` ends too early."""
    for name, kind in (("r", ""), ("r.gz", "GZIP"), ("r.z", "ZLIB")):
        with dtflab.python_io.TFRecordWriter(name, kind) as writer:
            for record in (b"one", b"", b"three"):
                writer.write(record)
    good = Path("r").read_bytes()
    Path("r.bad").write_bytes(good[:20] + b"!" + good[21:])
    Path("r.cut").write_bytes(good[:-3])
