"""A writer that ends at any moment leaves the earlier checkpoint or the new one, whole."""

from __future__ import annotations

import os
import sys
import threading

import numpy as np
import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.files import atomic
from dtflab.files.bundle import BundleReader
from dtflab.files.bundle_writer import BundleWriter, merge_bundles
from dtflab.files.checkpoint_v1 import V1Reader, write_v1
from dtflab.files.tensor_slice import TensorSlice
from tests.files.kill_saves import kill_many


class Killed(BaseException):
    """A process's view of SIGKILL: from here on nothing it does has an effect."""


class Disk:
    """Counts what is done to files, and stops doing it after that many operations."""

    def __init__(self, patch, operations):
        self.left = operations
        for name in ("replace", "remove", "mkdir", "rmdir"):
            patch.setattr(os, name, self._counted(getattr(os, name)))
        patch.setattr(atomic, "open", self._counted(lambda *args: File(self, open(*args))), raising=False)  # noqa: SIM115

    def _counted(self, operation):
        def counted(*args):
            self.count()
            return operation(*args)

        return counted

    def count(self):
        if self.left == 0:
            raise Killed
        self.left -= 1


class File:
    """A file of which some data arrives before the end, and some never."""

    def __init__(self, disk, file):
        self._disk, self._file = disk, file
        self.name, self.tell = file.name, file.tell

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        if self._disk.left:
            self._disk.count()
        self._file.close()

    def write(self, data):
        data = bytes(data)
        self._disk.count()
        half = self._file.write(data[: len(data) // 2])
        self._file.flush()
        self._disk.count()
        return half + self._file.write(data[len(data) // 2 :])


def save_whole(prefix, value):
    with BundleWriter(prefix) as writer:
        for name in "abc":
            writer.add(name, np.full(5, value))


def save_shards(prefix, value, shards=3):
    """Save like a sharded Saver: one bundle per task, then one of them all."""
    parts = [f"{prefix}_temp/part-{i}" for i in range(shards)]
    for part, name in zip(parts, "abc", strict=False):
        with BundleWriter(part) as writer:
            writer.add(name, np.full(5, value))
            if name == "a":
                for late in "abc"[shards:]:
                    writer.add(late, np.full(5, value))
    merge_bundles(parts, prefix)
    os.rmdir(f"{prefix}_temp")


def save_v1(prefix, value):
    write_v1(prefix, [(name, (5,), TensorSlice.full(1), np.full(5, value)) for name in "abc"])


def found(prefix, reader=BundleReader):
    """The value of all that is saved there."""
    with reader(prefix) as reader:
        values = {float(one) for name in "abc" for one in reader.read(name)}
    (value,) = values
    return value


def files(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith("_temp"))


SAVES = [
    (save_whole, save_whole, ["m.data-00000-of-00001", "m.index"]),
    (save_shards, save_shards, [*(f"m.data-0000{i}-of-00003" for i in range(3)), "m.index"]),
    (save_shards, save_whole, [*(f"m.data-0000{i}-of-00003" for i in range(3)), "m.data-00000-of-00001", "m.index"]),
    (save_whole, lambda *args: save_shards(*args, 2), None),
    (save_v1, save_v1, ["m"]),
]


@pytest.mark.parametrize(("first", "second", "names"), SAVES, ids=["whole", "shards", "fewer", "more", "v1"])
def test_killed_after_any_operation(first, second, names, tmp_path):
    reader = V1Reader if second is save_v1 else BundleReader
    seen, operations, done = set(), 0, False
    while not done:
        (folder := tmp_path / str(operations)).mkdir()
        prefix = str(folder / "m")
        first(prefix, 1.0)
        with pytest.MonkeyPatch.context() as patch:
            Disk(patch, operations)
            try:
                second(prefix, 2.0)
                done = True
            except Killed:
                operations += 1
        value = found(prefix, reader)
        seen.add(value)
        assert value == 2.0 if done else value in (1.0, 2.0), f"after {operations} operations"
        second(prefix, 3.0)
        assert found(prefix, reader) == 3.0
        if names is not None:
            assert files(folder) == sorted(names), f"after {operations} operations"
    assert seen == {1.0, 2.0} and operations > 5


def test_a_first_save_that_is_killed_leaves_none_or_all(tmp_path):
    """TensorFlow's order, too: there is an index only once all of the data is in its place."""
    done, operations = False, 0
    while not done:
        (folder := tmp_path / str(operations)).mkdir()
        with pytest.MonkeyPatch.context() as patch:
            Disk(patch, operations)
            try:
                save_shards(str(folder / "m"), 1.0)
                done = True
            except Killed:
                operations += 1
        if (folder / "m.index").exists():
            assert found(str(folder / "m")) == 1.0
            assert {f"m.data-0000{i}-of-00003" for i in range(3)} < set(files(folder))


def test_writers_at_the_same_time(tmp_path):
    """Each finds the other's temporary files, locked, and lets them be; the last to finish counts."""
    prefix = str(tmp_path / "m")
    save_whole(prefix, 0.0)
    with BundleWriter(prefix) as slow:
        for name in "abc":
            slow.add(name, np.full(5, 1.0))
        for value in (2.0, 3.0):
            save_whole(prefix, value)
            assert found(prefix) == value
            assert len(files(tmp_path)) == 3
    assert found(prefix) == 1.0
    assert files(tmp_path) == ["m.data-00000-of-00001", "m.index"]


def test_many_writers(tmp_path):
    prefix = str(tmp_path / "m")
    threads = [
        threading.Thread(target=lambda i=i: [save_whole(prefix, 10.0 * i + j) for j in range(10)]) for i in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found(prefix) in {9.0, 19.0, 29.0}
    assert files(tmp_path) == ["m.data-00000-of-00001", "m.index"]


@pytest.mark.skipif(sys.platform == "win32", reason="no locks of this kind")
@pytest.mark.parametrize("save", [save_whole, save_shards])
def test_the_next_checkpoint_removes_what_savers_of_others_left(save, tmp_path):
    """Each has a number of its own, so that nobody saves under the name of the killed one again."""
    done, operations, lefts = False, 0, 0
    while not done:
        (folder := tmp_path / str(operations)).mkdir()
        first, second, third = (str(folder / f"m-{number}") for number in (1, 2, 3))
        save(first, 1.0)
        with pytest.MonkeyPatch.context() as patch:
            Disk(patch, operations)
            try:
                save(second, 2.0)
                save(first, 1.5)  # over a checkpoint: data may stay under the name that the index gives them
                done = True
            except Killed:
                operations += 1
        lefts += any("tempstate" in name for name in files(folder))
        readable = {prefix: found(prefix) for prefix in (first, second) if os.path.exists(f"{prefix}.index")}
        with BundleWriter(str(folder / "alive")) as alive:
            save(third, 3.0)
            assert {prefix: found(prefix) for prefix in readable} == readable and found(third) == 3.0
            known = [name for name in files(folder) if "tempstate" in name and not name.startswith("alive")]
            assert all(name.startswith("m-1.data-") and readable[first] == 1.5 for name in known), known
            alive.add("a", np.zeros(5))
        save(first, 4.0)
        assert not [name for name in files(folder) if "tempstate" in name]
    assert lefts > 5


@pytest.mark.skipif(sys.platform == "win32", reason="no locks of this kind")
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such locks")
@pytest.mark.parametrize("save", [save_whole, save_shards, save_v1])
def test_a_program_that_keeps_the_folder_locked_stops_no_save(save, tmp_path, monkeypatch):
    import fcntl

    monkeypatch.setattr(atomic, "_PATIENCE_S", 0.02)
    prefix, reader = str(tmp_path / "m"), V1Reader if save is save_v1 else BundleReader
    left = tmp_path / f"m{atomic.MARK}00"
    left.write_bytes(b"of a dead writer")
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        save(prefix, 1)
        assert found(prefix, reader) == 1 and left.exists(), "saved; nothing is removed without the lock"
    finally:
        os.close(folder)
    save(prefix, 2)
    assert found(prefix, reader) == 2 and not left.exists()


def test_a_checkpoint_is_deleted_with_what_its_dead_writers_left(tmp_path):
    prefix = str(tmp_path / "m")
    save_whole(prefix, 1.0)
    for name in ("m.index.tempstate-12", "m.data-00000-of-00001.tempstate-ab", "mm.index.tempstate-12"):
        (tmp_path / name).touch()
    (tmp_path / "m.index.tempstate12").touch()  # as TensorFlow calls it: it may be at work
    tf.train.remove_checkpoint(prefix)
    assert files(tmp_path) == ["m.index.tempstate12", "mm.index.tempstate-12"]


def test_an_error_while_data_are_moved_keeps_the_earlier_checkpoint(tmp_path, monkeypatch):
    prefix = str(tmp_path / "m")
    save_shards(prefix, 1.0)
    replace = os.replace

    def failing(old, new):
        if "00001-of-00003" in os.fspath(new):
            raise PermissionError(13, "no")
        replace(old, new)

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(errors.PermissionDeniedError):
        save_shards(prefix, 2.0)
    assert found(prefix) == 1.0


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_killed_by_a_signal(tmp_path):
    assert kill_many(5, tmp_path).unreadable == 0
