"""The committed modules are what `protos/generate.py` writes, load alone, and load next to TensorFlow's."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import pathlib
import subprocess
import sys
from types import ModuleType

import pytest
from google.protobuf import descriptor_pb2

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMITTED = sorted(path.stem for path in (ROOT / "dtflab" / "protos").glob("*_pb2.py"))


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_protos", ROOT / "protos" / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.processes
def test_committed_modules_are_fresh(generator: ModuleType) -> None:
    pytest.importorskip("grpc_tools")
    assert generator.stale() == []


@pytest.mark.processes
def test_an_edited_module_is_found(generator: ModuleType, tmp_path: pathlib.Path, monkeypatch) -> None:
    pytest.importorskip("grpc_tools")
    for path in generator.TARGET.glob("*_pb2.py*"):
        (tmp_path / path.name).write_text(path.read_text("utf-8"), "utf-8")
    edited, missing, superfluous = (tmp_path / f"{name}_pb2.py" for name in ("graph", "types", "forgotten"))
    edited.write_text(edited.read_text("utf-8").replace("library", "bibliot"), "utf-8")
    missing.unlink()
    superfluous.write_text("", "utf-8")
    monkeypatch.setattr(generator, "TARGET", tmp_path)
    assert generator.stale() == ["forgotten_pb2.py", "graph_pb2.py", "types_pb2.py"]
    # Another protoc lays out its code differently: then only the descriptors are compared.
    monkeypatch.setattr(generator, "PROTOC", "another")
    assert generator.stale() == ["forgotten_pb2.py", "graph_pb2.py", "types_pb2.py"]


def test_stamp_is_the_oldest_runtime_that_tensorflow_asks_for(generator: ModuleType) -> None:
    try:
        wanted = importlib.metadata.requires("tensorflow") or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("TensorFlow is not installed")
    floor = ">=" + ".".join(map(str, generator.OLDEST_RUNTIME))
    assert any(line.startswith("protobuf") and floor in line for line in wanted), wanted


def test_every_proto_has_a_module() -> None:
    assert sorted(f"{path.stem}_pb2" for path in (ROOT / "protos").glob("*.proto")) == COMMITTED


def test_names_stay_out_of_tensorflows_way() -> None:
    for name in COMMITTED:
        descriptor = importlib.import_module(f"dtflab.protos.{name}").DESCRIPTOR
        assert descriptor.name == f"dtflab/protos/{name.removesuffix('_pb2')}.proto"
        assert descriptor.package.split(".")[0] == "dtflab"


def test_a_graph_loads_no_session_messages() -> None:
    code = "import sys, dtflab.protos.graph_pb2; print([m for m in sys.modules if m.endswith('config_pb2')])"
    assert python(code).strip() == "[]"


ALL_OF_DTFLAB = "; ".join(f"import dtflab.protos.{name}" for name in COMMITTED)
TOGETHER = """
from dtflab.protos.config_pb2 import ConfigProto, RunOptions
theirs = tf.compat.v1.ConfigProto(device_count={"CPU": 2}, log_device_placement=True)
ours = ConfigProto.FromString(theirs.SerializeToString())
assert ours == ConfigProto(device_count={"CPU": 2}, log_device_placement=True)
assert RunOptions(trace_level=RunOptions.FULL_TRACE).trace_level == tf.compat.v1.RunOptions.FULL_TRACE == 3
assert type(ours) is not type(theirs)
"""


@pytest.mark.oracle
@pytest.mark.timeout(300)  # a busy machine takes its time to load TensorFlow
@pytest.mark.parametrize("first", ["dtflab", "tensorflow"])
def test_lives_in_one_process_with_tensorflow(first: str) -> None:
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("TensorFlow is not installed")
    imports = [ALL_OF_DTFLAB, "import tensorflow as tf"]
    python("\n".join(imports if first == "dtflab" else reversed(imports)) + TOGETHER)


def test_nested_names_read_as_in_tensorflow() -> None:
    from dtflab.protos import config_pb2, error_codes_pb2, op_def_pb2, types_pb2

    assert config_pb2.RunOptions.TraceLevel.Name(config_pb2.RunOptions.FULL_TRACE) == "FULL_TRACE"
    assert config_pb2.OptimizerOptions.L0 == -1
    assert types_pb2.DT_FLOAT == types_pb2.DataType.Value("DT_FLOAT") == 1
    assert error_codes_pb2.UNAUTHENTICATED == 16
    argument = op_def_pb2.OpDef.ArgDef(name="x", type=types_pb2.DT_HALF)
    assert argument.DESCRIPTOR.fields_by_name["type"].type == descriptor_pb2.FieldDescriptorProto.TYPE_ENUM
