"""Laws of record files: what was written is read, and no damaged byte gets through."""

from __future__ import annotations

import gc
import os
import tempfile
import warnings
from pathlib import Path

import google_crc32c
import pytest
from hypothesis import given, strategies as st

from dtflab.base import errors
from dtflab.files import crc, env, sources
from dtflab.files.tfrecord import RecordReader, TFRecordWriter, tf_record_iterator

RECORDS = st.lists(st.binary(max_size=300), max_size=5)
KINDS = st.sampled_from(["", "GZIP", "ZLIB"])


def written(path: Path, records: list[bytes], kind: str, flushes: bool = False) -> bytes:
    with TFRecordWriter(str(path), kind) as writer:
        for record in records:
            writer.write(record)
            if flushes:
                writer.flush()
    return path.read_bytes()


@given(RECORDS, KINDS, st.booleans())
def test_what_is_written_is_read(records, kind, flushes):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f"
        written(path, records, kind, flushes)
        assert list(tf_record_iterator(str(path), kind)) == records


@given(RECORDS, RECORDS, st.sampled_from(["GZIP", "ZLIB"]))
def test_streams_may_follow_each_other(first, second, kind):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f"
        both = written(path, first, kind) + written(path, second, kind)
        path.write_bytes(both)
        assert list(tf_record_iterator(str(path), kind)) == first + second


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=4), st.data())
def test_a_damaged_byte_is_found(records, data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "f"
        good = written(path, records, "")
        at = data.draw(st.integers(0, len(good) - 1))
        path.write_bytes(good[:at] + bytes([good[at] ^ data.draw(st.integers(1, 255))]) + good[at + 1 :])
        seen = []
        with pytest.raises(errors.DataLossError):
            seen.extend(tf_record_iterator(str(path)))
        assert seen == records[: len(seen)]


@given(st.binary(), st.binary())
def test_checksums_of_parts(a, b):
    assert crc.crc32c(b, crc.crc32c(a)) == crc.crc32c(a + b) == google_crc32c.value(a + b)
    assert crc.unmask(crc.masked_crc32c(a)) == crc.crc32c(a)


def test_a_known_checksum():
    assert crc.crc32c(b"123456789") == 0xE3069283  # the check value of the polynomial


@pytest.mark.parametrize(
    "make", [RecordReader, lambda path: sources.Records(os.fsencode(path))], ids=["reader", "source"]
)
def test_a_reader_in_a_cycle_closes_its_file_though_the_file_is_the_older_garbage(tmp_path, monkeypatch, make):
    path = tmp_path / "records"
    path.write_bytes(b"")
    kept = [open(path, "rb")]  # noqa: SIM115 - before its owner, so that the collector comes to it first
    monkeypatch.setattr(env, "open", lambda *_, **__: kept.pop(), raising=False)
    cycle = [make(path)]
    cycle.append(cycle)
    del cycle
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gc.collect()
    assert [str(one.message) for one in caught] == []
