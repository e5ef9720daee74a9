"""A disk that is full: an error that says so, the earlier files as they were, and no leftovers."""

from __future__ import annotations

import contextlib
import errno
import gc
import io
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.files import atomic, gfile, tfrecord
from dtflab.files.bundle import BundleReader
from dtflab.files.checkpoint_v1 import V1Reader
from tests.files.test_killed_saves import files, found, save_shards, save_v1, save_whole

ADVICE = "What to do: free some space in that file system, or write to another one."


class Disk:
    """A file system with room for `room` more bytes; it takes the part of a write that fits, as real ones do."""

    def __init__(self, room, error=errno.ENOSPC):
        self.room, self.error = room, error

    def open(self, path, mode="rb", *args):
        disk = self

        class File(io.FileIO):
            def write(self, data):
                size = min(len(data), disk.room)
                if not size:
                    raise OSError(disk.error, os.strerror(disk.error))
                disk.room -= size
                return super().write(bytes(data)[:size])

        return io.BufferedWriter(File(path, mode)) if mode != "rb" else open(path, mode, *args)


@pytest.mark.parametrize("save", [save_whole, save_shards, save_v1])
def test_a_save_without_room_leaves_the_last_checkpoint(save, tmp_path):
    """Whatever fits: none of it, the data alone, all but the last byte."""
    reader, room, done, refusals = V1Reader if save is save_v1 else BundleReader, 0, False, 0
    while not done:
        (folder := tmp_path / str(room)).mkdir()
        prefix = str(folder / "m")
        save(prefix, 1.0)
        before = files(folder)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(atomic, "open", Disk(room).open, raising=False)
            try:
                save(prefix, 2.0)
                done = True
            except errors.ResourceExhaustedError as error:
                assert str(folder / "m") in error.message and "; No space left on device" in error.message
                assert error.message.endswith(ADVICE)
                refusals += 1
        assert found(prefix, reader) == (2.0 if done else 1.0), f"room for {room} bytes"
        assert files(folder) == before
        assert not [*folder.rglob("*.tempstate*")], f"room for {room} bytes"
        save(prefix, 3.0)
        assert found(prefix, reader) == 3.0 and files(folder) == before
        room += 11
    assert refusals > 10


def test_a_quota_is_a_full_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic, "open", Disk(10, errno.EDQUOT).open, raising=False)
    with pytest.raises(errors.ResourceExhaustedError, match=re.escape(ADVICE)):
        save_whole(str(tmp_path / "m"), 1.0)
    assert files(tmp_path) == []


def test_a_saver_says_which_file_and_goes_on_from_the_last_checkpoint(tmp_path, monkeypatch):
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(np.zeros(1000, np.float32))
        session.run(v.initializer)
        saver = tf.train.Saver(max_to_keep=1)
        first = saver.save(session, str(tmp_path / "model"), global_step=1)
        with monkeypatch.context() as patch:
            patch.setattr(atomic, "open", Disk(1500).open, raising=False)
            with pytest.raises(errors.ResourceExhaustedError, match=r"model-2\.data-.*No space left on device") as it:
                saver.save(session, str(tmp_path / "model"), global_step=2)
            assert ADVICE in str(it.value) and it.value.op.type == "SaveV2"
        assert tf.train.latest_checkpoint(str(tmp_path)) == first
        saver.restore(session, first)
        third = saver.save(session, str(tmp_path / "model"), global_step=3)
    assert tf.train.latest_checkpoint(str(tmp_path)) == third
    assert not [name for name in os.listdir(tmp_path) if "tempstate" in name or "model-2" in name]


@pytest.mark.parametrize("compression", [None, "GZIP"])
def test_records_and_texts(compression, tmp_path, monkeypatch):
    path = str(tmp_path / "records")
    for module in (tfrecord, gfile):
        monkeypatch.setattr(module, "open", Disk(20).open, raising=False)
    for size, finish in ((100_000, "flush"), (100, "flush"), (100, "close")):
        writer = tf.python_io.TFRecordWriter(path, compression)
        with pytest.raises(errors.ResourceExhaustedError, match="records; No space left on device"):
            writer.write(os.urandom(size))
            getattr(writer, finish)()
        with contextlib.suppress(errors.ResourceExhaustedError):  # of what it could not write before
            writer.close()
        writer.close()
    for size in (100_000, 100):
        file = tf.gfile.GFile(str(tmp_path / "text"), "w")
        with pytest.raises(errors.ResourceExhaustedError, match="text; No space left on device"):
            file.write("x" * size)
            file.close()
        file.close()


def test_a_writer_that_nobody_closes_says_what_is_lost(tmp_path, monkeypatch):
    lines = []
    monkeypatch.setattr(tfrecord.logging, "warning", lambda text, *values: lines.append(text % values))
    monkeypatch.setattr(tfrecord, "open", Disk(20).open, raising=False)
    writer = tf.python_io.TFRecordWriter(str(tmp_path / "records"))
    writer.write(bytes(100))
    del writer  # an exception would be printed with a traceback: pytest makes an error of that
    gc.collect()
    (line,) = lines
    assert line.startswith("The last records of a writer that was not closed are lost") and "records; No space" in line


def test_a_picture(tmp_path, monkeypatch):
    with tf.Graph().as_default():
        picture = tf.viz.placement(tf.constant(1.0) + 1.0)
    picture.save(path := tmp_path / "x.svg")
    whole = path.read_bytes()
    monkeypatch.setattr(atomic, "open", Disk(20).open, raising=False)
    with pytest.raises(errors.ResourceExhaustedError, match=r"x\.svg.*No space left on device"):
        picture.save(path)
    assert files(tmp_path) == ["x.svg"] and path.read_bytes() == whole


def test_a_sharded_save_leaves_no_folder(tmp_path, monkeypatch):
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(np.zeros(1000, np.float32))
        session.run(v.initializer)
        saver = tf.train.Saver(sharded=True)
        monkeypatch.setattr(atomic, "open", Disk(1500).open, raising=False)
        with pytest.raises(errors.ResourceExhaustedError, match="No space left on device"):
            saver.save(session, str(tmp_path / "model"), write_meta_graph=False)
    assert files(tmp_path) == []


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 1 MiB."""
    if sys.platform != "linux" or os.geteuid():
        pytest.skip("only root may mount a file system; the other tests of this page need none")
    (folder := tmp_path / "disk").mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_real_file_system(small_disk):
    """The second checkpoint does not fit next to the first one, which TensorFlow's saver leaves as well."""
    with tf.Graph().as_default(), tf.Session() as session:
        v = tf.Variable(tf.zeros([150_000]))
        session.run(v.initializer)
        saver = tf.train.Saver()
        path = saver.save(session, str(small_disk / "model"))
        names = sorted(os.listdir(small_disk))
        for _ in range(2):
            session.run(tf.assign_add(v, tf.ones([150_000])))
            with pytest.raises(errors.ResourceExhaustedError, match="No space left on device"):
                saver.save(session, str(small_disk / "model"))
            assert sorted(os.listdir(small_disk)) == names
        saver.restore(session, path)
        assert session.run(v).sum() == 0
