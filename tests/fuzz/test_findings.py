"""Findings of fuzzing, each once, by name: from outside it was INTERNAL, a wrong exception, or gigabytes."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest

import dtflab as tf
from dtflab.base import errors
from dtflab.cluster import tensor_codec
from dtflab.cluster.incoming import graph_of
from dtflab.datasets import mnist
from dtflab.files.bundle import BundleReader
from dtflab.files.checkpoint_v1 import V1Reader
from dtflab.files.png import decode_png, encode_png
from dtflab.files.table import write_table
from dtflab.files.tfrecord import RecordReader
from dtflab.graph.node import parse_edge
from dtflab.ops.variants import TensorList
from dtflab.protos import master_pb2 as master, worker_pb2 as worker
from dtflab.protos.graph_pb2 import GraphDef
from dtflab.protos.meta_graph_pb2 import MetaGraphDef
from dtflab.protos.tensor_bundle_pb2 import BundleEntryProto, BundleHeaderProto
from dtflab.protos.tensor_pb2 import TensorProto
from dtflab.sim.predictions.points import PredictionError, number
from tests.fuzz import graphs, served
from tests.fuzz.targets import Files, record

HERE = "/job:lab/replica:0/task:0/device:CPU:0"
INVALID = errors.InvalidArgumentError


@pytest.fixture(scope="module")
def server():
    found = served.Served()
    yield found
    found.end()


def ask(server, request):
    server(bytes([served.REQUESTS.index(type(request))]) + request.SerializeToString())


def constant(dtype=1, **attrs):
    """A graph of a constant `c`, which the test then spoils, and an Identity `y` of it."""
    made = GraphDef()
    node = made.node.add(name="c", op="Const", device=HERE)
    node.attr["dtype"].type = node.attr["value"].tensor.dtype = dtype
    node.attr["value"].tensor.tensor_shape.SetInParent()
    node.attr["value"].tensor.float_val.append(1.0)
    other = made.node.add(name="y", op="Identity", device=HERE, input=["c"])
    other.attr["T"].type = 1
    return made


def of_reference_type():
    return constant(101)


def of_resource_type():
    return constant(20)


def of_variant_type():
    return constant(21)


def class_of_another_kind():
    made = constant()
    made.node[1].attr["_class"].shape.dim.add(size=3)
    return made


def class_of_one_name():
    made = constant()
    made.node[1].attr["_class"].s = b"loc:@c"
    return made


def class_that_is_no_text():
    made = constant()
    made.node[1].attr["_class"].list.s.append(b"loc:@\xff")
    return made


def function_type_attribute():
    made = constant()
    made.node[1].attr["T"].func.name = "f"
    return made


def called_with(change):
    """A node whose op is a function's name, which `change` spoils."""
    made = graphs.calls(1, 1)
    made.node[1].op = "f0"
    made.node[1].name = "y"
    made.node[1].ClearField("attr")
    change(made.library.function[0].signature.input_arg[0])
    return made


def call_of_a_function_without_the_attribute_of_its_list():
    return called_with(lambda argument: setattr(argument, "number_attr", "N"))


def call_of_a_function_with_a_type_that_is_none():
    return called_with(lambda argument: setattr(argument, "type", 1000))


def function_whose_node_waits_for_none():
    made = graphs.calls(1, 1)
    made.library.function[0].node_def[0].input.append("^y")
    return made


def function_whose_nodes_have_one_name():
    made = graphs.calls(1, 2)
    made.library.function[0].node_def[1].name = "n0"
    return made


def call_of_a_function_with_other_results():
    made = graphs.calls(1, 1)
    made.node[1].attr["Tout"].list.type.append(1)
    return made


def function_of_more_results_than_its_call_has():
    made = graphs.calls(1, 1)
    definition = made.library.function[0]
    definition.signature.output_arg.add(name="z", type=1)
    definition.ret["z"] = "n0:y:0"
    return made


IN_FUNCTIONS = [
    call_of_a_function_with_other_results,
    function_of_more_results_than_its_call_has,
    function_whose_node_waits_for_none,
    function_whose_nodes_have_one_name,
]


@pytest.mark.parametrize("make", IN_FUNCTIONS)
def test_a_malformed_node_of_a_function_is_an_invalid_argument_with_its_name(server, make):
    graph_def = make()
    for request in (
        master.CreateSessionRequest(graph_def=graph_def),
        worker.RegisterGraphRequest(session_handle="session", graph_def=graph_def),
    ):
        with pytest.raises(INVALID, match=r"Node 'call|in function f0\s.*node call"):
            ask(server, request)


MALFORMED = [of_reference_type, of_resource_type, of_variant_type, class_of_another_kind, class_of_one_name,
             class_that_is_no_text, function_type_attribute, call_of_a_function_without_the_attribute_of_its_list,
             call_of_a_function_with_a_type_that_is_none]  # fmt: skip


@pytest.mark.parametrize("make", MALFORMED)
def test_a_malformed_node_is_an_invalid_argument_with_its_name(server, make):
    graph_def = make()
    for request in (
        master.CreateSessionRequest(graph_def=graph_def),
        worker.RegisterGraphRequest(session_handle="session", graph_def=graph_def),
    ):
        with pytest.raises(INVALID, match=r"node [cy]\b"):
            ask(server, request)
    with pytest.raises(ValueError, match=r"node [cy]\b"):
        tf.import_graph_def(graph_def)


@pytest.mark.parametrize("device", ["a:99999999999", "/job:lab/task:x", "/device:CPU:" + "9" * 5000])
def test_a_device_that_is_none(server, device):
    graph_def = constant()
    graph_def.node[1].device = device
    requests = [
        master.CreateSessionRequest(graph_def=graph_def),
        worker.RegisterGraphRequest(session_handle="session", graph_def=graph_def),
    ]
    for request in requests:
        with pytest.raises(INVALID, match="Node 'y': Malformed device specification"):
            ask(server, request)


@pytest.mark.parametrize("filters", ["a:99999999999", "/job:lab/task:x"])
def test_a_device_filter_that_is_none(server, filters):
    request = master.CreateSessionRequest()
    request.config.device_filters.append(filters)
    with pytest.raises(INVALID, match="device_filters of the session: Malformed"):
        ask(server, request)


@pytest.mark.parametrize("name", ["y:0/", "y:", "y:x", "y:²", "y:-1", "y:99999999999", ":", "", "y:" + "9" * 5000])
def test_a_fetch_or_feed_that_is_no_tensor(server, name):
    with pytest.raises(errors.NotFoundError, match="FetchOutputs: unable to find tensor"):
        ask(server, master.RunStepRequest(session_handle="session", fetch=[name]))
    fed = master.RunStepRequest(session_handle="session", fetch=["y:0"])
    fed.feed.add(name=name).tensor.CopyFrom(tf.make_tensor_proto(1.0))
    with pytest.raises(INVALID, match="FeedInputs: unable to find tensor"):
        ask(server, fed)


def test_names_of_tensors():
    assert [parse_edge(text) for text in ("x", "x:1", "a:b:2", "x:", ":1", "x:0/", "x:²")] == [
        ("x", 0), ("x", 1), ("a:b", 2), ("x:", 0), ("", 1), ("x:0/", 0), ("x:²", 0),
    ]  # fmt: skip


def test_functions_nested_beyond_the_stack(server):
    with pytest.raises(errors.ResourceExhaustedError, match=r"node call.* nested too deep"):
        ask(server, master.CreateSessionRequest(graph_def=graphs.calls(2000, 1)))


def test_a_kernel_that_its_attributes_make_impossible(server):
    made = constant()
    made.node[1].op = "Cast"
    made.node[1].ClearField("attr")
    made.node[1].attr["SrcT"].type, made.node[1].attr["DstT"].type = 1, 20  # to a resource
    with pytest.raises(INVALID, match=r"KeyError: 20\s.*node y"):
        ask(server, worker.RegisterGraphRequest(session_handle="session", graph_def=made))


def test_a_range_of_tensors_is_refused_before_it_is_computed():
    """From two milliard equal starts: comparing them took 36 s."""
    made = GraphDef()
    for name, dims in (("start", [1 << 31]), ("limit", []), ("delta", [])):
        node = made.node.add(name=name, op="Const")
        node.attr["dtype"].type = node.attr["value"].tensor.dtype = 3
        node.attr["value"].tensor.int_val.append(1)
        for size in dims:
            node.attr["value"].tensor.tensor_shape.dim.add(size=size)
    made.node.add(name="range", op="Range", input=["start", "limit", "delta"]).attr["Tidx"].type = 3
    with pytest.raises(ValueError, match="start must be a scalar"):
        tf.import_graph_def(made)


# ---- tensors ----


def test_a_damaged_variant():
    value = TensorList([np.float32(1)], tf.float32, tf.TensorShape([]), -1)
    proto = tensor_codec.to_proto(value)
    proto.variant_val[0].metadata += b"\xff\xff"
    with pytest.raises(INVALID, match="Cannot parse tensor from proto: DecodeError"):
        tensor_codec.from_proto(proto)


def test_an_array_of_variants_comes_back():
    array = np.empty(2, object)
    array[:] = [TensorList([np.float32(1)], tf.float32, tf.TensorShape([]), -1)] * 2
    found = tensor_codec.from_proto(tensor_codec.to_proto(array))
    assert found.shape == (2,) and [list(one.items) for one in found] == [[1.0], [1.0]]


def test_a_small_message_of_a_large_tensor():
    for values in ([], [1.0], [1.0, 2.0]):
        proto = TensorProto(dtype=1, float_val=values)
        proto.tensor_shape.dim.add(size=1 << 31)
        with pytest.raises(INVALID, match="DTFLAB_LIMIT_EXPANDED_BYTES"):
            tensor_codec.from_proto(proto)


def test_a_shape_of_more_elements_than_there_are_numbers():
    proto = TensorProto(dtype=1, float_val=[1.0])
    for _ in range(5):
        proto.tensor_shape.dim.add(size=(1 << 63) - 1)
    with pytest.raises(INVALID, match="Cannot parse tensor from proto"):
        tensor_codec.from_proto(proto)


# ---- files ----


def write_index(path, items):
    with open(f"{path}.index", "wb") as file:
        write_table(file, sorted((key, message.SerializeToString()) for key, message in items.items()))


def test_texts_in_parts_that_are_not_there(tmp_path):
    """The array of two milliard objects was made first."""
    path = str(tmp_path / "m")
    entry = BundleEntryProto(dtype=7)
    entry.shape.dim.add(size=1 << 31)
    entry.slices.add().extent.add()
    write_index(path, {b"": BundleHeaderProto(num_shards=1), b"s": entry})
    with BundleReader(path) as reader, pytest.raises(errors.DataLossError, match=f"listed but not there.*{path}"):
        reader.read("s")


def test_a_checkpoint_for_later_readers_names_the_file(tmp_path):
    header = BundleHeaderProto(num_shards=1)
    header.version.min_consumer = 7
    write_index(tmp_path / "m", {b"": header})
    with pytest.raises(INVALID, match=f"min consumer version 7.*{tmp_path}"):
        BundleReader(str(tmp_path / "m"))


def test_a_damaged_block_names_the_file(tmp_path):
    path = tmp_path / "m.index"
    for content in (b"", b"x" * 60):
        path.write_bytes(content)
        with pytest.raises(errors.DataLossError, match=str(path)):
            BundleReader(str(tmp_path / "m"))
    (tmp_path / "v1").write_bytes(b"x" * 60)
    with pytest.raises(errors.DataLossError, match=str(tmp_path / "v1")):
        V1Reader(str(tmp_path / "v1"))


def test_a_record_whose_length_is_made_up(tmp_path):
    for length in (1 << 40, (1 << 64) - 1):
        (tmp_path / "r").write_bytes(record(b"abc", length))
        reader = RecordReader(tmp_path / "r")
        with pytest.raises(errors.DataLossError, match=f"truncated record at 0.*{tmp_path / 'r'}"):
            reader.read()
        reader.close()


def test_an_event_that_is_none(tmp_path):
    (tmp_path / "e").write_bytes(record(b"\xff"))
    with pytest.raises(errors.DataLossError, match=str(tmp_path / "e")):
        list(tf.train.summary_iterator(str(tmp_path / "e")))


def test_a_state_file_that_is_no_text(tmp_path):
    (tmp_path / "checkpoint").write_bytes(b'model_checkpoint_path: "\xff"')
    assert tf.train.latest_checkpoint(str(tmp_path)) is None


def test_a_meta_graph_with_a_damaged_variable(tmp_path):
    message = MetaGraphDef()
    message.collection_def["variables"].bytes_list.value.append(b"\xff\xff")
    path = tmp_path / "m.meta"
    path.write_bytes(message.SerializeToString())
    with pytest.raises(ValueError, match=f"Collection 'variables' holds what can't be read: DecodeError.*{path}"):
        tf.train.import_meta_graph(str(path))


def test_a_point_with_a_number_beyond_floats():
    with pytest.raises(PredictionError, match="a number was expected"):
        number(10**400)
    assert number(10**30) == 1e30


def test_a_meta_graph_whose_variables_are_numbers(tmp_path):
    message = MetaGraphDef()
    message.collection_def["variables"].int64_list.value.append(3)
    path = tmp_path / "m.meta"
    path.write_bytes(message.SerializeToString())
    with pytest.raises(ValueError, match=f"AttributeError.*; in file {path}"):
        tf.train.import_meta_graph(str(path))


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def test_idx_images_of_another_size_name_the_file(tmp_path):
    for name in mnist.FILES:
        (tmp_path / name).write_bytes(Files.idx(name))
    assert mnist.read_data_sets(str(tmp_path), validation_size=0).train.num_examples == 2
    path = tmp_path / mnist.FILES[0]
    path.write_bytes(struct.pack(">4I", 2051, 2, 0, 28))
    with pytest.raises(ValueError, match=f"{path} has images of 0 × 28 pixels"):
        mnist.read_data_sets(str(tmp_path), validation_size=0)


def test_a_png_without_its_header():
    good = encode_png(np.zeros([2, 2, 1], np.uint8))
    short = good[:8] + chunk(b"IHDR", good[16:20]) + good[33:]
    with pytest.raises(ValueError, match="the end or the header is missing"):
        decode_png(short)


def test_a_png_that_unpacks_to_gigabytes():
    pixels = zlib.compress(bytes(1 << 24), 9)
    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    file = encode_png(np.zeros([1, 1, 1], np.uint8))[:8] + chunk(b"IHDR", header) + chunk(b"IDAT", pixels)
    assert decode_png(file + chunk(b"IEND", b"")).shape == (1, 1, 1)
    huge = struct.pack(">IIBBBBB", 1 << 30, 1 << 30, 8, 0, 0, 0, 0)
    file = encode_png(np.zeros([1, 1, 1], np.uint8))[:8] + chunk(b"IHDR", huge) + chunk(b"IEND", b"")
    with pytest.raises(ValueError, match="PNG size too large"):
        decode_png(file)


def test_a_graph_that_is_well_is_read():
    """The graphs above are refused for what is spoilt in them."""
    assert [node.name for node in graph_of(constant(), bool).nodes] == ["c", "y"]
    assert len(graph_of(called_with(lambda argument: None), bool).inlined) > 3
