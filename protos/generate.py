"""Generates `dtflab/protos/*_pb2.py` and `.pyi` from the `.proto` files next to this script.

    python protos/generate.py            write
    python protos/generate.py --check    compare only; exit status 1 and the names of what is stale

Stands for TensorFlow's build rules (`tf_proto_library`). It needs grpcio-tools, the package itself does not.
Two rules:
- The files are compiled under a virtual path, `-I dtflab/protos=protos`, or else they would import each
  other as top-level modules.
- protoc stamps its own version into what it writes, and a runtime older than that refuses to load it. Every
  protoc since 31.1 writes the same code for these files, so the stamp says `OLDEST_RUNTIME`, the least
  that TensorFlow 2.21 asks for.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import tempfile
from pathlib import Path

OLDEST_RUNTIME = (6, 31, 1)
PROTOC = "7.35.1"  # the stamp of grpcio-tools 1.85; others write slightly different .pyi files

HERE = Path(__file__).resolve().parent
TARGET = HERE.parent / "dtflab" / "protos"

_STAMP = re.compile(r"# Protobuf Python Version: ([\d.]+)")
_GUARD = re.compile(r"(Domain\.PUBLIC,\n)    \d+,\n    \d+,\n    \d+,\n")
_BARE_MAPPING = re.compile(r"\b_Mapping(?=\])")
_DESCRIPTOR = re.compile(r"AddSerializedFile\((b'.*')\)")


def compiled() -> dict[str, str]:
    """The output of protoc for the `.proto` files: file name -> text."""
    sources = [f"dtflab/protos/{source.name}" for source in sorted(HERE.glob("*.proto"))]
    # A process of its own: protoc's C++ library and TensorFlow's abort when they meet in one.
    protoc = [sys.executable, "-m", "grpc_tools.protoc", f"-Idtflab/protos={HERE}"]
    with tempfile.TemporaryDirectory() as out:
        status = subprocess.run([*protoc, f"--python_out={out}", f"--pyi_out={out}", *sources]).returncode
        if status != 0:
            raise SystemExit(f"protoc failed with status {status}; its message stands above")
        return {path.name: path.read_text("utf-8") for path in sorted(Path(out).rglob("*_pb2.py*"))}


def protoc_version(code: dict[str, str]) -> str:
    """The version that protoc stamped into what it wrote."""
    return next(found[1] for text in code.values() if (found := _STAMP.search(text)))


def stamped(code: str) -> str:
    """`code` with the oldest runtime's version in place of protoc's own, and without implicit `Any`s in its types."""
    version = ".".join(map(str, OLDEST_RUNTIME))
    numbers = "".join(f"    {part},\n" for part in OLDEST_RUNTIME)
    code = _GUARD.sub(rf"\g<1>{numbers}", _STAMP.sub(f"# Protobuf Python Version: {version}", code))
    return _BARE_MAPPING.sub("_Mapping[str, object]", code)


def same(generated: str, committed: str, exactly: bool) -> bool:
    """Whether two files say the same: letter by letter, or only in the descriptor that they carry."""
    if exactly:
        return generated == committed
    descriptors = [_DESCRIPTOR.findall(text) for text in (generated, committed)]
    return [ast.literal_eval(d) for d in descriptors[0]] == [ast.literal_eval(d) for d in descriptors[1]]


def stale() -> list[str]:
    """Names of files that are missing, superfluous or different from what would be written now."""
    wanted = compiled()
    exactly = protoc_version(wanted) == PROTOC
    present = {path.name: path.read_text("utf-8") for path in TARGET.glob("*_pb2.py*")}
    odd = wanted.keys() ^ present.keys()
    both = wanted.keys() & present.keys()
    return sorted(odd | {name for name in both if not same(stamped(wanted[name]), present[name], exactly)})


def write() -> None:
    wanted = compiled()
    if (version := protoc_version(wanted)) != PROTOC:
        raise SystemExit(
            f"the installed protoc stamps {version}, the committed files come from {PROTOC}: "
            "install grpcio-tools 1.85, or change PROTOC here together with all generated files"
        )
    for path in TARGET.glob("*_pb2.py*"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (TARGET / name).write_text(stamped(text), "utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description="Generate dtflab/protos from protos/*.proto.")
    parser.add_argument("--check", action="store_true", help="compare only")
    if not parser.parse_args().check:
        write()
        return 0
    names = stale()
    for name in names:
        print(f"dtflab/protos/{name} is stale: run `python protos/generate.py`")
    return int(bool(names))


if __name__ == "__main__":
    sys.exit(main())
