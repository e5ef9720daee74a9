"""The readers that are fuzzed: seeds, how these are mutated, and which errors are an answer.

Anything else that a reader raises is a finding.
"""

from __future__ import annotations

import gzip
import io
import json
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
from google.protobuf.message import DecodeError, Message

import dtflab as tf
from dtflab.base import errors
from dtflab.base.varint import put_varint
from dtflab.cluster import tensor_codec
from dtflab.cluster.faults import Setting
from dtflab.cluster.incoming import graph_of
from dtflab.datasets import mnist
from dtflab.files.bundle import BundleReader
from dtflab.files.bundle_writer import BundleWriter
from dtflab.files.checkpoint_v1 import V1Reader, write_v1
from dtflab.files.crc import crc32c, mask
from dtflab.files.events import summary_iterator
from dtflab.files.png import decode_png, encode_png
from dtflab.files.table import Table, write_table
from dtflab.files.tensor_slice import TensorSlice
from dtflab.files.tfrecord import RecordReader
from dtflab.ops.variants import Optional, TensorList
from dtflab.protos.event_pb2 import Event
from dtflab.protos.example_pb2 import Example
from dtflab.protos.graph_pb2 import GraphDef
from dtflab.protos.master_pb2 import RunStepRequest, RunStepResponse
from dtflab.protos.meta_graph_pb2 import MetaGraphDef
from dtflab.protos.saved_tensor_slice_pb2 import SavedTensorSlices
from dtflab.protos.tensor_bundle_pb2 import BundleEntryProto, BundleHeaderProto
from dtflab.protos.tensor_pb2 import TensorProto
from dtflab.sim.engine.fitted import load
from dtflab.sim.predictions import points
from dtflab.sim.predictions.predict import predict, predictor
from dtflab.train.checkpoints.checkpoint_management import get_checkpoint_state
from tests.fuzz import graphs, mutate, served

Mutate = Callable[[bytes, Random], bytes]
ANSWERS = (errors.InvalidArgumentError, errors.NotFoundError, errors.ResourceExhaustedError, errors.UnimplementedError)
DAMAGED = (errors.DataLossError, errors.InvalidArgumentError, errors.OutOfRangeError, errors.UnimplementedError)
FROM_A_TASK = (*ANSWERS, *DAMAGED, errors.AbortedError, errors.CancelledError, errors.DeadlineExceededError,
               errors.FailedPreconditionError, errors.AlreadyExistsError)  # fmt: skip


class Target(NamedTuple):
    """One reader."""

    seeds: list[bytes]
    mutate: Mutate
    read: Callable[[bytes], object]
    answers: tuple[type[Exception], ...]
    names: str = ""  # in the text of each of these
    share: int = 1  # of all inputs


class Finding(Exception):
    """An error of another class than the reader's own, or one that does not say which file is damaged."""


def outcome(target: Target, data: bytes) -> str:
    """The answer of a reader to these bytes: `read`, or the class of its error. Raises a Finding for any other."""
    try:
        found = target.read(data)
    except target.answers as error:
        if target.names not in str(error):
            raise Finding(f"the error does not name {target.names}: {error!r}") from error
        return type(error).__name__
    except Exception as error:
        raise Finding(f"{type(error).__name__}: {error}") from error
    return found if isinstance(found, str) else "read"


def mutated(target: Target, rng: Random) -> bytes:
    """An input: a seed, changed."""
    return target.mutate(rng.choice(target.seeds), rng)


# ---- tensors and graphs ----


def tensor_seeds() -> list[bytes]:
    """The first byte says what follows: a tensor, one in a request, an answer with two, or a pushed one."""
    values: list[Any] = [np.arange(6, dtype=np.float32).reshape(2, 3), np.array([b"a", b"bcd"], object), True, 2**40]
    values += [np.ones(3, np.float16), Optional([np.int32(1)]), np.array([1 + 2j], np.complex64)]
    values.append(TensorList([np.float32(1), None], tf.float32, tf.TensorShape([]), -1))
    values.append(np.zeros(10_000, np.int64))  # large: read without protobuf
    made = [tensor_codec.to_proto(value) for value in values]
    made += [tf.make_tensor_proto(1.5, shape=[3, 4]), tf.make_tensor_proto([1, 2], tf.int8)]
    tensors = [bytes([form]) + one.SerializeToString() for form in (0, 1) for one in made]
    answer = tensor_codec.serialize_named(RunStepResponse(), "tensor", [("x", values[0]), ("y", np.zeros(9000))])
    return [*tensors, b"\2" + b"".join(answer), b"\3" + b"".join(tensor_codec.framed(values[0]))]


def tensor_mutated(data: bytes, rng: Random) -> bytes:
    if data[0] == 3 or rng.random() < 0.1:
        return data[:1] + mutate.of_bytes(data[1:], rng)
    return data[:1] + mutate.of_message(RunStepResponse if data[0] == 2 else TensorProto, data[1:], rng)


def read_tensor(data: bytes) -> None:
    form, data = data[0] % 4 if data else 0, data[1:]
    if form == 0:
        value = tensor_codec.from_proto(TensorProto.FromString(data))
        if np.size(value) < 10_000:
            tensor_codec.to_proto(value)
    elif form == 1:
        tensor_codec.parse_named(RunStepRequest, wrapped(_FEED, wrapped(_TENSOR, data)), "feed")
    elif form == 2:
        tensor_codec.parse_named(RunStepResponse, data, "tensor")
    else:
        tensor_codec.unframed(data)


_FEED, _TENSOR = 2 << 3 | 2, 2 << 3 | 2  # keys of fields in RunStepRequest and NamedTensorProto


def wrapped(key: int, data: bytes) -> bytes:
    """The bytes of a field that holds a message."""
    return put_varint(key) + put_varint(len(data)) + data


def read_graph(data: bytes) -> None:
    graph_of(GraphDef.FromString(data), bool)


def import_graph(data: bytes) -> None:
    message = GraphDef.FromString(data)
    with tf.Graph().as_default():
        tf.import_graph_def(message)


# ---- files ----


class Files:
    """A folder, in which each reader has files of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.prefix = str(folder / "v2")
        with BundleWriter(self.prefix) as writer:
            writer.add("a", np.arange(4, dtype=np.float32))
            writer.add("s", np.array([b"x", b"yz"], object))
        write_v1(str(folder / "v1"), self._parts())
        self.v1 = (folder / "v1").read_bytes()
        self.v2 = (folder / "v2.index").read_bytes()
        for name in mnist.FILES:
            (folder / name).write_bytes(self.idx(name))

    @staticmethod
    def _parts() -> list[Any]:
        full = TensorSlice.full
        halves = [("p", (2, 2), TensorSlice.parse(f"{i},1:-"), np.ones([1, 2], np.int32)) for i in (0, 1)]
        return [("a", (3,), full(1), np.arange(3.0)), ("s", (1,), full(1), np.array([b"x"], object)), *halves]

    @staticmethod
    def idx(name: str) -> bytes:
        images = "images" in name
        sizes = (2051, 2, 28, 28) if images else (2049, 2)
        return struct.pack(f">{len(sizes)}I", *sizes) + bytes(2 * 28 * 28 if images else 2)

    def path(self, name: str, data: bytes) -> str:
        path = self.folder / name
        path.write_bytes(data)
        return str(path)

    def read_v2(self, data: bytes) -> None:
        self.path("v2.index", data)
        with BundleReader(self.prefix) as reader:
            for name, _ in list(reader.tensors()):
                reader.read(name)

    def read_v1(self, data: bytes) -> None:
        with V1Reader(self.path("v1", data)) as reader:
            for name, _ in list(reader.tensors()):
                reader.read(name)

    def read_records(self, data: bytes) -> None:
        reader = RecordReader(self.path("records", data[1:]), ("", "GZIP", "ZLIB")[data[0] % 3 if data else 0])
        try:
            for _ in reader:
                pass
        finally:
            reader.close()

    def read_events(self, data: bytes) -> None:
        list(summary_iterator(self.path("events", data)))

    def read_idx(self, data: bytes) -> None:
        self.path(mnist.FILES[0], data)
        mnist.read_data_sets(str(self.folder), validation_size=0)

    def read_state(self, data: bytes) -> str:
        self.path("checkpoint", data)
        return "ignored" if get_checkpoint_state(str(self.folder)) is None else "read"

    def import_meta(self, data: bytes) -> None:
        path = self.path("graph.meta", data)
        with tf.Graph().as_default():
            tf.train.import_meta_graph(path)


def table_mutated(kind_of: Callable[[bytes], type[Message]], data: bytes, rng: Random) -> bytes:
    """A table with changed bytes, or with changed entries and right checksums."""
    if rng.random() < 0.3:
        return mutate.of_bytes(data, rng)
    items = dict(Table(io.BytesIO(data)).items())
    key = rng.choice(sorted(items))
    if rng.random() < 0.2:
        items[mutate.of_bytes(key, rng)] = items.pop(key)
    else:
        items[key] = mutate.of_message(kind_of(key), items[key], rng)
    file = io.BytesIO()
    write_table(file, sorted(items.items()))
    return file.getvalue()


def record(data: bytes, length: int | None = None) -> bytes:
    head = struct.pack("<Q", len(data) if length is None else length)
    return head + struct.pack("<I", mask(crc32c(head))) + data + struct.pack("<I", mask(crc32c(data)))


def record_seeds() -> list[bytes]:
    plain = record(b"one") + record(b"") + record(b"three" * 50)
    return [b"\0" + plain, b"\1" + gzip.compress(plain, mtime=0), b"\2" + zlib.compress(plain)]


def record_mutated(data: bytes, rng: Random) -> bytes:
    """Changed bytes, or a length that is wrong and yet has a right checksum."""
    if data[0] or rng.random() < 0.6:
        return data[:1] + mutate.of_bytes(data[1:], rng)
    return data + record(rng.randbytes(rng.randrange(9)), rng.choice(mutate.NUMBERS) % (1 << 64))


def event_mutated(data: bytes, rng: Random) -> bytes:
    if rng.random() < 0.3:
        return mutate.of_bytes(data, rng)
    body = mutate.of_message(Event, data[12:-4], rng)
    return record(body)


def png_mutated(data: bytes, rng: Random) -> bytes:
    """Changed bytes, or a changed chunk with a right checksum."""
    if rng.random() < 0.4:
        return mutate.of_bytes(data, rng)
    at, chunks = 8, []
    while at + 12 <= len(data):
        (size,) = struct.unpack_from(">I", data, at)
        chunks.append((data[at + 4 : at + 8], data[at + 8 : at + 8 + size]))
        at += 12 + size
    n = rng.randrange(len(chunks))
    kind, body = chunks[n]
    if kind == b"IDAT" and rng.random() < 0.7:
        body = zlib.compress(mutate.of_bytes(zlib.decompress(body), rng))
    else:
        body = mutate.of_bytes(body, rng)
    chunks[n] = kind, body
    made = [struct.pack(">I", len(b)) + k + b + struct.pack(">I", zlib.crc32(k + b)) for k, b in chunks]
    return data[:8] + b"".join(made)


def png_seeds() -> list[bytes]:
    images = [np.arange(24, dtype=np.uint8).reshape(2, 3, 4), np.ones([3, 2, 1], np.uint16)]
    return list(map(encode_png, images))


def example_seeds() -> list[bytes]:
    made = Example()
    made.features.feature["x"].float_list.value.extend([1.0, 2.0])
    made.features.feature["n"].int64_list.value.append(3)
    made.features.feature["s"].bytes_list.value.append(b"text")
    return [made.SerializeToString(deterministic=True)]


class Parser:
    """`parse_single_example` and `decode_raw` in a session that stays open."""

    def __init__(self) -> None:
        with tf.Graph().as_default() as graph:
            self.text = tf.placeholder(tf.string, [])
            features = {"x": tf.FixedLenFeature([2], tf.float32), "n": tf.VarLenFeature(tf.int64)}
            features["s"] = tf.FixedLenFeature([], tf.string, default_value="")
            self.parsed = tf.parse_single_example(self.text, features)
        self.session = tf.Session(graph=graph)

    def __call__(self, data: bytes) -> None:
        self.session.run(self.parsed, {self.text: data})


# ---- points of the simulator ----


@cache
def known() -> tuple[Any, Any]:
    return points.read(), load()


def few_points() -> bytes:
    content = json.loads(Path(points.CALIBRATION).read_text(encoding="utf-8"))
    content["points"] = content["points"][::9]
    return json.dumps(content).encode()


def read_points(data: bytes) -> None:
    try:
        content = json.loads(data)
    except (UnicodeDecodeError, RecursionError) as error:
        raise ValueError("points: not JSON") from error
    asked = points.parse(content, "points")
    shipped, fitted = known()
    predict(asked, predictor(asked, fitted, shipped))


def meta_seeds() -> list[bytes]:
    with tf.Graph().as_default():
        graphs.state()
        tf.train.Saver()
        tf.add_to_collection("mine", 3)
        tf.add_to_collection("ops", tf.no_op("nothing"))
        return [tf.train.export_meta_graph().SerializeToString(deterministic=True)]


SETTING = Setting(7, 2.5, ("/job:ps/replica:0/task:0",), {"RecvTensor": 0.25}).as_json()
STATE = b'model_checkpoint_path: "m-2"\nall_model_checkpoint_paths: "m-1"\nall_model_checkpoint_paths: "m-2"\n'


@contextmanager
def targets(folder: Path) -> Iterator[dict[str, Target]]:
    """All of them, to be read inside the block; the readers of files work in `folder`."""
    files, parser, server = Files(folder), Parser(), served.Served()
    of_bundle = partial(table_mutated, lambda key: BundleEntryProto if key else BundleHeaderProto)
    of_v1 = partial(table_mutated, lambda key: SavedTensorSlices)
    event = record(Event(wall_time=1.0, step=2, file_version="brain.Event:2").SerializeToString())
    idx = files.idx(mnist.FILES[0])
    graph, where = (partial(mutate.of_message, kind) for kind in (GraphDef, MetaGraphDef))
    here, of_files = str(folder), (*DAMAGED, errors.NotFoundError, errors.ResourceExhaustedError)
    python = (ValueError, errors.NotFoundError, DecodeError)
    yield {
        "tensor": Target(
            tensor_seeds(), tensor_mutated, read_tensor, (errors.InvalidArgumentError, DecodeError), "", 30
        ),
        "graph": Target(graphs.seeds(), graph, read_graph, (*ANSWERS, DecodeError), "", 20),
        "import": Target(graphs.seeds(), graph, import_graph, python, "", 8),
        "services": Target(served.seeds(), served.mutated, server, FROM_A_TASK, "", 20),
        "checkpoint": Target([files.v2], of_bundle, files.read_v2, of_files, files.prefix, 5),
        "checkpoint_v1": Target([files.v1], of_v1, files.read_v1, (*of_files, errors.InternalError), here, 5),
        "records": Target(record_seeds(), record_mutated, files.read_records, DAMAGED, here, 5),
        "events": Target([event], event_mutated, files.read_events, DAMAGED, here, 4),
        "idx": Target([idx], mutate.of_bytes, files.read_idx, (ValueError,), here, 4),
        "png": Target(png_seeds(), png_mutated, decode_png, (ValueError,), "", 4),
        "example": Target(example_seeds(), partial(mutate.of_message, Example), parser, ANSWERS, "", 4),
        "state": Target([STATE], mutate.of_bytes, files.read_state, (ValueError,), here, 2),
        "meta_graph": Target(
            meta_seeds(), where, files.import_meta, (ValueError, OSError, errors.NotFoundError), "", 2
        ),
        "faults": Target([SETTING], mutate.of_json, Setting.from_json, (errors.InvalidArgumentError,), "", 1),
        "points": Target([few_points()], mutate.of_json, read_points, (ValueError,), "", 1),
    }
    parser.session.close()
    server.end()
