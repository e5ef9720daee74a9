"""The ops that read and write checkpoints, side by side with TensorFlow: values, files, errors; and damaged files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings, strategies as st

import dtflab
from dtflab.files.bundle import BundleReader
from dtflab.files.bundle_writer import BundleWriter
from dtflab.files.checkpoint_v1 import V1Reader, write_v1
from dtflab.files.tensor_slice import TensorSlice
from dtflab.graph.apply_op import apply_op
from tests.oracle.checkpoints import at_home, plain, tried
from tests.oracle.programs import Programs

program = Programs()


@program.each()
def test_same_answer(run, tmp_path):
    (theirs, their_files), (ours, our_files) = at_home(run, tmp_path)
    for i, (want, got) in enumerate(zip(theirs, ours, strict=True)):
        assert got == want, f"number {i}"
    assert our_files.keys() == their_files.keys()
    for name, data in their_files.items():
        assert our_files[name] == data, name


def run(tf: Any, name: str, **arguments: Any) -> Any:
    """Build one op and run it, in a graph of its own."""
    with tf.Graph().as_default(), tf.Session() as session:
        arguments = {
            key: [tf.constant(item) for item in value] if key in ("tensors", "data") else value
            for key, value in arguments.items()
        }
        made = apply_op(name, None, **arguments) if tf is dtflab else getattr(tf.raw_ops, name)(**arguments)
        return session.run(made)


def save(tf: Any, prefix: str, *parts: tuple[str, str, Any]) -> Any:
    names, slices, tensors = (list(items) for items in zip(*parts, strict=True))
    return run(tf, "SaveV2", prefix=prefix, tensor_names=names, shape_and_slices=slices, tensors=tensors)


def restore(tf: Any, prefix: str, name: str, block: str = "", dtype: str = "float32") -> Any:
    (value,) = run(tf, "RestoreV2", prefix=prefix, tensor_names=[name], shape_and_slices=[block],
                   dtypes=[getattr(tf, dtype)])  # fmt: skip
    return value


A = np.arange(6, dtype=np.float32).reshape(2, 3)
WORDS = (
    "Adding duplicate key: a", "does not match the shape of the tensor to  save", "Expected a pair of numbers or '-'",
    "Mismatching ranks", "Expected non-negative start", "out of bounds", "Non numerical dimension", "Need least two",
    "No such file or directory", "expected dtype double does not equal original dtype float", "not found in checkpoint",
    "in shape_and_slice spec [2,4] does not match the shape stored in checkpoint: [2,3]", "must be 1 but is 2",
    "Failed to find any matching files for", "Tensor name", "Expected to restore a tensor of type",
    "does not match the shape in the save file", "not yet supported",
)  # fmt: skip


@program
def saves(tf, home):
    calls = [
        lambda: save(tf, f"{home}/one", ("a", "", A), ("b", "", 1.5), ("s", "", ["x", "yy"])),
        lambda: save(tf, f"{home}/parts", ("p", "4 3 0,2:-", A), ("p", "4 3 2,2:0,3", A), ("q", "2 3 -:-", A)),
        lambda: save(tf, f"{home}/made/x", ("a", "", A)),
        lambda: save(tf, f"{home}/not/made/x", ("a", "", A)),
        lambda: save(tf, f"{home}/e", ("a", "", A), ("a", "", A)),
        lambda: save(tf, f"{home}/e", ("a", "3 3 0,1:-", A)),
        lambda: save(tf, f"{home}/e", ("a", "2 3 x", A)),
        lambda: save(tf, f"{home}/e", ("a", "2 3", A)),
        lambda: save(tf, f"{home}/e", ("a", "2 0,1:-", A)),
        lambda: save(tf, f"{home}/e", ("a", "2 3 -1,1:-", A)),
        lambda: save(tf, f"{home}/e", ("a", "2 3 1,2:-", A)),
        lambda: save(tf, f"{home}/e", ("a", "2 y -:-", A)),
        lambda: save(tf, f"{home}/e", ("a", "-", A)),
        lambda: run(tf, "SaveV2", prefix=f"{home}/e", tensor_names=["a"], shape_and_slices=["", ""], tensors=[A]),
        lambda: run(tf, "SaveV2", prefix=[home] * 2, tensor_names=["a"], shape_and_slices=[""], tensors=[A]),
        lambda: run(tf, "SaveV2", prefix=home, tensor_names=[["a"]], shape_and_slices=[""], tensors=[A]),
    ]
    return [tried(call, *WORDS) for call in calls]


@program
def restores(tf, home):
    path = f"{home}/m"
    save(tf, path, ("a", "", A), ("s", "", "text"), ("p", "4 3 0,2:-", A), ("p", "4 3 2,2:-", A + 10))
    calls = [
        *(lambda block=block: restore(tf, path, "a", block) for block in ("", "2 3 -:-", "2 3 0,1:-", "2 3 1,1:1,2")),
        *(lambda block=block: restore(tf, path, "p", block) for block in ("", "4 3 -:-", "4 3 1,2:-", "4 3 0,4:2,1")),
        lambda: restore(tf, path, "s", dtype="string"),
        lambda: restore(tf, path, "a", dtype="float64"),
        lambda: restore(tf, path, "z"),
        *(lambda block=block: restore(tf, path, "a", block) for block in ("2 4 0,1:-", "2 3 1,2:-", "2 3", "2 3 -")),
        lambda: restore(tf, f"{home}/none", "a"),
        lambda: restore(tf, f"{home}/none/none", "a"),
        lambda: restore(tf, home, "a"),
    ]
    return [tried(call, *WORDS) for call in calls]


@program
def merges(tf, home):
    os.mkdir(f"{home}/parts")
    os.mkdir(f"{home}/more")
    prefixes = [f"{home}/parts/part-{i}" for i in range(3)]
    save(tf, prefixes[0], ("a", "", A), ("p", "4 3 0,2:-", A))
    save(tf, prefixes[1], ("b", "", 1.5))
    save(tf, prefixes[2], ("p", "4 3 2,2:-", A + 10))
    found = [run(tf, "MergeV2Checkpoints", checkpoint_prefixes=prefixes, destination_prefix=f"{home}/m")]
    found += [restore(tf, f"{home}/m", name) for name in "abp"] + [sorted(os.listdir(home))]
    save(tf, f"{home}/more/x", ("a", "", A))
    save(tf, f"{home}/more/y", ("a", "", A))
    for names in (["x", "y"], ["x", "none"], ["x"]):
        given = [f"{home}/more/{name}" for name in names]
        found.append(tried(lambda given=given: run(
            tf, "MergeV2Checkpoints", checkpoint_prefixes=given, destination_prefix=f"{home}/again",
            delete_old_dirs=False), "uplicate", "No such file"))  # fmt: skip
    return [*found, sorted(os.listdir(f"{home}/more"))]


@program
def old_format(tf, home):
    path = f"{home}/m"

    def write(name: str, *parts: tuple[str, str, Any]) -> Any:
        names, slices, data = (list(items) for items in zip(*parts, strict=True))
        return run(tf, "SaveSlices", filename=name, tensor_names=names, shapes_and_slices=slices, data=data)

    def read(name: str, block: str | None = None, dtype: str = "float32", file: str = path) -> Any:
        kind = getattr(tf, dtype)
        if block is None:
            return run(tf, "Restore", file_pattern=file, tensor_name=name, dt=kind)
        return run(tf, "RestoreSlice", file_pattern=file, tensor_name=name, shape_and_slice=block, dt=kind)

    write(path, ("a", "", A), ("s", "", ["x", "yy"]), ("p", "4 3 0,2:-", A), ("p", "4 3 2,2:-", A + 10), ("n", "", 1.5))
    run(tf, "Save", filename=f"{home}/plain", tensor_names=["a", "b"], data=[A, [True, False]])
    for i in range(2):
        write(f"{home}/shard-0000{i}-of-00002", ("p", f"2 3 {i},1:-", A[i : i + 1]), (f"only{i}", "", [i]))
    calls = [
        lambda: read("a"), lambda: read("p"), lambda: read("s", dtype="string"), lambda: read("n"),
        lambda: read("p", "4 3 1,2:0,1"), lambda: read("a", ""), lambda: read("a", "2 3 1,1:-"),
        lambda: read("p", file=f"{home}/shard-?????-of-00002"),
        lambda: read("only1", dtype="int32", file=f"{home}/shard-?????-of-?????"),
        lambda: restore(tf, path, "p"), lambda: restore(tf, path, "p", "4 3 1,2:0,1"),
        lambda: restore(tf, path, "z"), lambda: restore(tf, path, "a", dtype="int32"),
        lambda: restore(tf, path, "a", "2 4 -:-"), lambda: read("z"), lambda: read("a", dtype="int32"),
        lambda: read("a", "2 4 -:-"), lambda: read("a", file=f"{home}/none"),
        lambda: write(f"{home}/e", ("a", "2 3 0,1:-", A)), lambda: write(f"{home}/e", ("a", "2 3 x", A)),
        lambda: write(f"{home}/e", ("p", "4 3 0,2:-", A), ("p", "5 3 2,2:-", A)),
        lambda: write(f"{home}/e", ("p", "4 3 0,2:-", A), ("p", "4 3 2,2:-", A.astype(int))),
    ]  # fmt: skip
    return [tried(call, *WORDS) for call in calls]


# -- damaged files --------------------------------------------------------------------------------------------


def flipped(data: bytes, position: int) -> bytes:
    changed = bytearray(data)
    changed[position] ^= 0x55
    return bytes(changed)


INDEX_DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda d: b"",
    "short": lambda d: d[:30],
    "cut": lambda d: d[:-5],
    "magic": lambda d: flipped(d, -1),
    "block": lambda d: flipped(d, 5),
    "index_block": lambda d: flipped(d, -60),
}
DATA_DAMAGE: dict[str, Callable[[bytes], bytes | None]] = {
    "numbers": lambda d: flipped(d, 2),
    "cut": lambda d: d[:4],
    "gone": lambda d: None,
    "text": lambda d: flipped(d, -1),
    "lengths": lambda d: flipped(d, 24),
    "checksum": lambda d: flipped(d, 27),
}


def damaged(name: str, suffix: str, damage: Callable[[bytes], bytes | None]) -> None:
    def run_it(tf: Any, home: str) -> Any:
        path = f"{home}/m"
        save(tf, path, ("a", "", A), ("s", "", ["x", "yy"]))
        file = Path(path + suffix)
        data = damage(file.read_bytes())
        file.unlink() if data is None else file.write_bytes(data)
        words = ("file is too short to be an sstable", "not an sstable (bad magic number)", "block checksum mismatch",
                 "Checksum does not match", "length checksum does not match", "ead less bytes than requested",
                 "No such file or directory", "TensorBundle at")  # fmt: skip
        return [
            tried(lambda n=n, d=d: restore(tf, path, n, dtype=d), *words)
            for n, d in (("a", "float32"), ("s", "string"))
        ]

    run_it.__name__ = f"damaged_{suffix[1:5]}_{name}"
    program(run_it)


for _name, _damage in INDEX_DAMAGE.items():
    damaged(_name, ".index", _damage)
for _name, _data_damage in DATA_DAMAGE.items():
    damaged(_name, ".data-00000-of-00001", _data_damage)


@program
def damaged_old_format(tf, home):
    path = f"{home}/m"
    run(tf, "Save", filename=path, tensor_names=["a"], data=[A])
    data = Path(path).read_bytes()
    found = []
    for changed in (b"abc", b"a" * 100, data[:-3], flipped(data, -60)):
        Path(path).write_bytes(changed)
        words = ("Unable to open table file", "file is too short to be an sstable", "bad magic number")
        found.append(tried(lambda: run(tf, "Restore", file_pattern=path, tensor_name="a", dt=tf.float32), *words))
    return found


ALLOWED = (dtflab.errors.DataLossError, dtflab.errors.OutOfRangeError, dtflab.errors.NotFoundError,
           dtflab.errors.InvalidArgumentError, dtflab.errors.UnimplementedError)  # fmt: skip


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_no_damage_is_taken_for_a_value(tmp_path_factory, data):
    """Any change of one byte, or a cut: either the right values come back, or an error of the right kind."""
    home = tmp_path_factory.mktemp("damage")
    values = {"a": A, "s": np.array([b"x", b"yy"], object), "t": np.float64(3)}
    with BundleWriter(str(home / "m")) as writer:
        for name, value in values.items():
            writer.add(name, value)
        writer.add_slice("p", (4, 3), TensorSlice.parse("1,2:-"), A)
    write_v1(str(home / "v1"), [("a", (2, 3), TensorSlice.full(2), A)])
    file = data.draw(st.sampled_from(sorted(home.iterdir())))
    content = file.read_bytes()
    position = data.draw(st.integers(0, len(content) - 1))
    bit = data.draw(st.integers(0, 8))
    file.write_bytes(
        content[:position]
        if bit == 8
        else content[:position] + bytes([content[position] ^ 1 << bit]) + content[position + 1 :]
    )
    for name, value in values.items():
        try:
            with BundleReader(str(home / "m")) as reader:
                assert plain(reader.read(name)) == plain(np.asarray(value))
        except ALLOWED:
            pass
    try:
        with V1Reader(str(home / "v1")) as old:
            assert plain(old.read("a")) == plain(A)
    except ALLOWED:
        pass
