"""Laws of tables, slices and bundles; `tests/train/oracle/test_saver.py` tests that TensorFlow reads them."""

from __future__ import annotations

import io
import itertools
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dtflab.base import errors
from dtflab.base.varint import get_varint, put_varint
from dtflab.files import env, table as tables
from dtflab.files.bundle import BundleReader
from dtflab.files.bundle_writer import BundleWriter, merge_bundles
from dtflab.files.checkpoint_reader import CheckpointReader
from dtflab.files.checkpoint_v1 import V1Reader, write_v1
from dtflab.files.crc import masked_crc32c
from dtflab.files.table import Table, write_table
from dtflab.files.tensor_slice import TensorSlice, parse_shape_and_slice
from dtflab.protos.tensor_bundle_pb2 import BundleEntryProto, BundleHeaderProto


@given(st.integers(0, 2**64 - 1), st.binary(max_size=3))
def test_a_varint_comes_back(value, rest):
    data = put_varint(value)
    assert get_varint(data + rest, 0) == (value, len(data))
    for cut in range(len(data)):
        with pytest.raises(ValueError, match="cut off"):
            get_varint(data[:cut], 0)


# -- tables -------------------------------------------------------------------------------------------------------


def written(items):
    file = io.BytesIO()
    write_table(file, sorted(items.items()))
    return Table(file)


@pytest.mark.parametrize("block_size", [40, 300, 262144])
@settings(deadline=None)
@given(items=st.dictionaries(st.binary(max_size=12), st.binary(max_size=40), max_size=60), key=st.binary(max_size=12))
def test_a_table_has_what_was_written(block_size, items, key):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "_BLOCK_SIZE", block_size)
        table = written(items)
    assert list(table.items()) == sorted(items.items())
    assert list(table.items(key)) == sorted(item for item in items.items() if item[0] >= key)
    assert table.get(key) == items.get(key)
    assert {k: table.get(k) for k in items} == items


def test_an_entry_that_says_more_than_there_is():
    """A block whose checksum is right and whose content is not."""
    bodies = (b"\x05\x01\x01ab", b"\x00\x7f\x01ab", b"\x00\x01\x7fab", b"\xff" * 12, b"")
    ends = (struct.pack("<II", 0, 1), struct.pack("<I", 1000), b"")
    for body, restarts in itertools.product(bodies, ends):
        block = body + restarts
        if body or restarts != ends[0]:  # else an empty block, which is sound
            index = b"\x00\x01" + bytes([len(put_varint(0) + put_varint(len(block)))]) + b"z"
            index += put_varint(0) + put_varint(len(block)) + struct.pack("<II", 0, 1)
            file, handles = b"", b""
            for part in (block, struct.pack("<II", 0, 1), index):
                handles += put_varint(len(file)) + put_varint(len(part)) if file else b""
                file += part + b"\0" + struct.pack("<I", masked_crc32c(part + b"\0"))
            data = file + handles.ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57)
            with pytest.raises(errors.DataLossError, match="bad entry in block"):
                list(Table(io.BytesIO(data)).items())


def test_a_compressed_block_is_refused():
    file = io.BytesIO()
    write_table(file, [(b"a", b"b")])
    data = bytearray(file.getvalue())
    size = data.index(b"\0\0\0\0\1\0\0\0") + 8
    data[size] = 1
    data[size + 1 : size + 5] = struct.pack("<I", masked_crc32c(bytes(data[: size + 1])))
    with pytest.raises(errors.UnimplementedError, match="compressed"):
        list(Table(io.BytesIO(bytes(data))).items())


# -- slices -------------------------------------------------------------------------------------------------------

extents = st.one_of(st.none(), st.tuples(st.integers(0, 2**40), st.integers(1, 2**40)))
slices = st.lists(extents, max_size=4).map(TensorSlice)


@given(slices)
def test_a_slice_comes_back(block):
    assert TensorSlice.parse(block.text()) == block
    assert TensorSlice.from_proto(block.to_proto()) == block


@given(st.text(max_size=5), st.text(max_size=5), slices, slices)
def test_keys_of_slices_sort_by_name_and_place(a, b, first, second):
    def order(name, block):
        return name.encode(), len(block), [extent or (0, -1) for extent in block]

    smaller = order(a, first) < order(b, second)
    assert (first.key(a) < second.key(b)) == smaller


@given(st.data())
def test_any_block_is_made_of_any_parts(data):
    rows, columns = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 6))
    whole = np.arange(rows * columns).reshape(rows, columns)
    cuts = sorted({0, rows, *data.draw(st.lists(st.integers(0, rows), max_size=3))})
    parts = [TensorSlice([(a, b - a), None]) for a, b in itertools.pairwise(cuts)]
    start = data.draw(st.integers(0, rows - 1)), data.draw(st.integers(0, columns - 1))
    size = data.draw(st.integers(1, rows - start[0])), data.draw(st.integers(1, columns - start[1]))
    wanted = TensorSlice(zip(start, size, strict=True))
    value = np.full(size, -1)
    for part in parts:
        common = wanted.overlap(part, whole.shape)
        if common is not None:
            value[common[0]] = whole[part.cut()][common[1]]
    np.testing.assert_array_equal(value, whole[wanted.cut()])


def test_shape_and_slice():
    assert parse_shape_and_slice("4 3 0,2:-") == ((4, 3), TensorSlice([(0, 2), None]), (2, 3))
    assert parse_shape_and_slice("5 1,4") == ((5,), TensorSlice([(1, 4)]), (4,))


# -- bundles ------------------------------------------------------------------------------------------------------


def test_nothing_is_left_of_a_write_that_fails(tmp_path):
    with pytest.raises(ZeroDivisionError), BundleWriter(str(tmp_path / "m")) as writer:
        writer.add("a", np.ones(3))
        raise ZeroDivisionError
    with (
        pytest.raises(errors.InvalidArgumentError, match="without a name"),
        BundleWriter(str(tmp_path / "m")) as writer,
    ):
        writer.add("", np.ones(3))
    assert list(tmp_path.iterdir()) == []


def test_an_earlier_checkpoint_stays_until_the_next_is_complete(tmp_path):
    prefix = str(tmp_path / "m")
    with BundleWriter(prefix) as writer:
        writer.add("a", np.ones(3))
    with pytest.raises(ZeroDivisionError), BundleWriter(prefix) as writer:
        writer.add("a", np.zeros(3))
        raise ZeroDivisionError
    with BundleReader(prefix) as reader:
        assert reader.read("a").tolist() == [1, 1, 1]


def test_written_on_a_machine_of_the_other_byte_order(tmp_path):
    """A checkpoint that says it is big-endian: numbers, and the lengths of strings, are turned."""
    values = {"f": np.array([1.5, -2.0], ">f4"), "i": np.array([[1], [256]], ">i8"), "c": np.array(1 + 2j, ">c8")}
    prefix = str(tmp_path / "m")
    with BundleWriter(prefix) as writer:
        for name, value in values.items():
            writer.add(name, value.view(value.dtype.newbyteorder("<")))
    with open(prefix + ".index", "rb") as file:
        items = dict(Table(file).items())
    header = BundleHeaderProto.FromString(items[b""])
    header.endianness = BundleHeaderProto.BIG
    items[b""] = header.SerializeToString()
    with open(prefix + ".index", "wb") as file:
        write_table(file, sorted(items.items()))
    with BundleReader(prefix) as reader:
        for name, value in values.items():
            np.testing.assert_array_equal(reader.read(name), value)


def rewritten(prefix, change):
    with open(prefix + ".index", "rb") as file:
        items = dict(Table(file).items())
    change(items)
    with open(prefix + ".index", "wb") as file:
        write_table(file, sorted(items.items()))


def dims(*sizes, dtype=1):
    """An entry for the 12 bytes of the tests, of another shape."""
    message = BundleEntryProto(size=12, dtype=dtype, crc32c=masked_crc32c(np.ones(3, np.float32).tobytes()))
    for size in sizes:
        message.shape.dim.add(size=size)
    return message.SerializeToString()


def test_an_index_that_says_what_is_not_so(tmp_path):
    """The table is sound, its entries are not: an error says so, nothing is read from elsewhere."""
    prefix = str(tmp_path / "m")

    def entry(**fields):
        def change(items):
            message = BundleEntryProto.FromString(items[b"a"])
            for name, value in fields.items():
                setattr(message, name, value)
            items[b"a"] = message.SerializeToString()

        return change

    for change, error, words in (
        (entry(shard_id=7), errors.DataLossError, "Shard 7 of 1"),
        (entry(shard_id=-1), errors.DataLossError, "Shard -1 of 1"),
        (entry(offset=10**15), errors.OutOfRangeError, "read less bytes"),
        (entry(offset=-4), errors.OutOfRangeError, "read less bytes"),
        (entry(size=10**15), errors.OutOfRangeError, "read less bytes"),
        (entry(size=-1), errors.OutOfRangeError, "read less bytes"),
        (entry(size=8), errors.DataLossError, "Checksum does not match"),
        (entry(dtype=2), errors.DataLossError, "Invalid size in bundle entry"),
        (entry(dtype=0), errors.DataLossError, "can't have been saved"),
        (entry(dtype=20), errors.DataLossError, "can't have been saved"),
        (lambda items: items.update({b"a": dims(-1, -3)}), errors.DataLossError, "can't have been saved"),
        (lambda items: items.update({b"a": dims(10**9, 10**9)}), errors.DataLossError, "Invalid size"),
        (lambda items: items.update({b"a": dims(10**15, dtype=7)}), errors.DataLossError, "Invalid string lengths"),
        (lambda items: items.update({b"a": b"\xff\xff"}), errors.DataLossError, "not parseable"),
        (lambda items: items.update({b"": b"\xff\xff"}), errors.DataLossError, "not parseable"),
        (lambda items: items.pop(b""), errors.DataLossError, "no header"),
    ):
        with BundleWriter(prefix) as writer:
            writer.add("a", np.ones(3, np.float32))
        rewritten(prefix, change)
        with pytest.raises(error, match=words), BundleReader(prefix) as reader:
            reader.read("a")


def test_a_checkpoint_of_the_future(tmp_path):
    prefix = str(tmp_path / "m")
    with BundleWriter(prefix) as writer:
        writer.add("a", np.ones(3))

    def later(items):
        header = BundleHeaderProto.FromString(items[b""])
        header.version.min_consumer = 9
        items[b""] = header.SerializeToString()

    rewritten(prefix, later)
    with pytest.raises(errors.InvalidArgumentError, match="min consumer version 9 above current version 1"):
        BundleReader(prefix)


def test_slices_from_several_bundles(tmp_path):
    whole = np.arange(12.0).reshape(4, 3)
    for i in range(2):
        with BundleWriter(str(tmp_path / f"part{i}")) as writer:
            writer.add_slice("v", (4, 3), TensorSlice([(2 * i, 2), None]), whole[2 * i : 2 * i + 2])
            writer.add(f"own{i}", np.array(["text"] * i, object))
    merge_bundles([str(tmp_path / f"part{i}") for i in range(2)], str(tmp_path / "m"))
    with BundleReader(str(tmp_path / "m")) as reader:
        np.testing.assert_array_equal(reader.read("v"), whole)
        assert reader.read("own1").tolist() == [b"text"]
        assert [name for name, _ in reader.tensors()] == ["own0", "own1", "v"]
    with BundleWriter(str(tmp_path / "odd")) as writer:
        writer.add_slice("v", (4, 4), TensorSlice([(0, 1), None]), np.zeros((1, 4)))
    with pytest.raises(errors.InvalidArgumentError, match="disagree"):
        merge_bundles([str(tmp_path / "m"), str(tmp_path / "odd")], str(tmp_path / "n"))


def test_debug_string_of_parts(tmp_path):
    parts = [("v", (4, 3), TensorSlice([(2 * i, 2), None]), np.zeros((2, 3), "f")) for i in range(2)]
    with BundleWriter(str(tmp_path / "m")) as writer:
        for part in parts:
            writer.add_slice(*part)
    write_v1(str(tmp_path / "old"), parts)
    for name in ("m", "old"):
        assert CheckpointReader(str(tmp_path / name)).debug_string() == b"v (DT_FLOAT) [4,3], 2 slices\n"


def test_shards_of_the_old_format_that_disagree(tmp_path):
    write_v1(str(tmp_path / "m-0"), [("v", (2, 3), TensorSlice([(0, 1), None]), np.zeros((1, 3), "f"))])
    with (
        V1Reader(str(tmp_path / "m-?")) as reader,
        pytest.raises(errors.InvalidArgumentError, match="sufficient slices"),
    ):
        reader.read("v")


def test_a_reader_opens_each_file_once(tmp_path, monkeypatch):
    with BundleWriter(str(tmp_path / "m")) as writer:
        for name in "abc":
            writer.add(name, np.zeros(3))
    opened = []

    def counting(path, *args):
        opened.append(open(path, *args))  # noqa: SIM115 - who asked closes it
        return opened[-1]

    monkeypatch.setattr(env, "open", counting, raising=False)
    reader = CheckpointReader(str(tmp_path / "m"))
    for name in reader.get_variable_to_shape_map():
        assert reader.get_tensor(name).tolist() == [0.0] * 3
    assert [Path(file.name).suffix for file in opened] == [".index", ".data-00000-of-00001"]
    del reader
    assert all(file.closed for file in opened)
