"""Write docs/coverage.json, which names of TF1 dtflab has, and docs/coverage.md, those that are partial or absent.

`python docs/coverage_table.py` with TensorFlow installed. All names go to dtflab/base/tf1_names.txt. A function counts
as partly supported if arguments are missing, a class if methods are; both are listed. The surface is that of
`tf.compat.v1`; of the namespaces that dtflab leaves out as a whole (`tf.keras`, `tf.distribute`, `tf.lite`, …) only the
name appears.
"""

from __future__ import annotations

import dis
import inspect
import json
import os
import sys
import textwrap
import threading
import types
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

TARGET = Path(__file__).with_name("coverage.md")
TABLE = TARGET.with_suffix(".json")
NAMES = TARGET.parent.parent / "dtflab" / "base" / "tf1_names.txt"
NAMESPACES = ("", *(
    "app bitwise compat data data.experimental debugging dtypes errors flags gfile graph_util image initializers io "
    "layers linalg logging lookup losses manip math metrics nest nn nn.rnn_cell python_io queue random saved_model "
    "sets sparse strings summary test train version"
).split())  # fmt: skip
_GONE = {"contrib", "estimator"}  # namespaces of TF1 that TensorFlow 2 has dropped
_STRAY = {"flags.tf_decorator", "rnn_cell"}  # modules that stand there by importing or loading others
ABOUT = (
    "Written by `docs/coverage_table.py` from TensorFlow {}'s `tf.compat.v1` and this package; a test holds it fresh. "
    "*Supported* means that the name exists with all arguments of TensorFlow's function and all methods of its class; "
    "*partly*, that it exists and what is missing is listed. Whether a name does the same is another question, which "
    "the tests ask TensorFlow itself. The full table is data: `docs/coverage.json`."
)
KINDS = SUPPORTED, PARTLY, NOT = "supported", "partly", "not"
Table = dict[str, dict[str, str]]  # namespace → name → status
_INHERITED = set(dir(object)) | set(dir(Exception)) | set(dir(threading.Thread))
# What TensorFlow 2 has added to classes and functions of TF1, for its own purposes.
_LATER = set(
    "cast experimental_as_proto experimental_from_proto experimental_payloads experimental_ref experimental_set_type "
    "experimental_type_proto flatten from_tensors handle_data is_subtype_of layout most_specific_common_supertype "
    "placeholder_value ref to_tensors".split()
)


def lookup(root: Any, path: str) -> Any:
    """`root.a.b`. Raises AttributeError if it is missing."""
    for part in filter(None, path.split(".")):
        root = getattr(root, part)
    return root


def names(tf: Any, namespace: str) -> list[str]:
    """Public names of a namespace that are not namespaces themselves."""
    return [name for name, value in _public(tf, namespace) if not isinstance(value, types.ModuleType)]


def namespaces_in(tf: Any, namespace: str) -> list[str]:
    """Namespaces in a namespace, with their paths: `nn.rnn_cell`."""
    found = [name for name, value in _public(tf, namespace) if isinstance(value, types.ModuleType)]
    return [path for path in (f"{namespace}.{name}".strip(".") for name in found) if path not in _STRAY]


def _public(tf: Any, namespace: str) -> Iterator[tuple[str, Any]]:
    module = lookup(tf, namespace)
    return ((name, getattr(module, name)) for name in sorted(dir(module)) if not name.startswith("_"))


def left_out(tf: Any, dtflab: Any) -> list[str]:
    """Namespaces that dtflab leaves out as a whole."""
    return sorted(path for path in _all_namespaces(tf) - set(NAMESPACES) if not _has(dtflab, path))


def _all_namespaces(tf: Any) -> set[str]:
    return {path for namespace in NAMESPACES if _has(tf, namespace) for path in namespaces_in(tf, namespace)} | _GONE


def _has(root: Any, path: str) -> bool:
    try:
        lookup(root, path)
    except AttributeError:
        return False
    return True


def status(theirs: Any, ours: Any) -> tuple[str, str]:
    """(status, what is missing) of a name that both have."""
    lacking = []
    if inspect.isclass(theirs):
        lacking = _methods(theirs, ours)
    elif inspect.isroutine(theirs):
        lacking = _arguments(theirs, ours)
    return (PARTLY, ", ".join(lacking)) if lacking else (SUPPORTED, "")


def _arguments(theirs: Any, ours: Any) -> list[str]:
    a, b = _parameters(theirs), _parameters(ours)
    if a is None or b is None or any(p.kind is p.VAR_KEYWORD for p in b.values()):
        return []
    named = [name for name, p in a.items() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    return [f"`{name}=`" for name in named if name not in b and name not in _LATER | {"self"}]


def _parameters(function: Any) -> Any:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return None


def _methods(theirs: Any, ours: Any) -> list[str]:
    if not inspect.isclass(ours) or hasattr(theirs, "DESCRIPTOR"):
        return []
    found = [name for name in dir(theirs) if not name.startswith("_") and name not in _INHERITED | _LATER]
    there = {name for kind in (ours, *ours.__subclasses__()) for name in (*dir(kind), *_attributes(kind))}
    return [f"`.{name}`" for name in found if name not in there] + _arguments(theirs, ours)


def _attributes(kind: type) -> set[str]:
    """The attributes that the methods of a class assign to its instances."""
    code = [f.__code__ for base in kind.__mro__ for f in vars(base).values() if isinstance(f, types.FunctionType)]
    return {i.argval for one in code for i in dis.get_instructions(one) if i.opname == "STORE_ATTR"}


def table(tf: Any, dtflab: Any) -> Table:
    """The status of each name by namespace: "supported", "partly: `b=` missing" or "not"."""
    there = filter(partial(_has, tf), NAMESPACES)
    return {_title(one): {name: _said(tf, dtflab, one, name) for name in names(tf, one)} for one in there}


def _said(tf: Any, dtflab: Any, namespace: str, name: str) -> str:
    path = f"{namespace}.{name}" if namespace else name
    if not _has(dtflab, path):
        return NOT
    kind, lacking = status(lookup(tf, path), lookup(dtflab, path))
    return f"{kind}: {lacking} missing" if lacking else kind


def as_json(found: Table) -> str:
    return json.dumps(found, indent=0) + "\n"


def page(tf: Any, dtflab: Any, found: Table) -> str:
    """How many names are supported, and namespace by namespace those that are partly supported or absent."""
    numbers = [sum(len(_names_of(kind, there)) for there in found.values()) for kind in KINDS]
    whole = [title for title, there in found.items() if set(there.values()) == {SUPPORTED}]
    head = [
        "# Which names of TF1 are missing",
        ABOUT.format(tf.__version__),
        f"Of {sum(numbers)} names, {{}} are supported, {{}} partly and {{}} not.".format(*numbers),
        f"Left out as a whole: {_quoted([f'tf.{path}' for path in left_out(tf, dtflab)])}.",
        f"Supported as a whole: {_quoted(whole)}.",
        "`tf.raw_ops` has the ops that are registered here (`dir(tf.raw_ops)`).",
    ]
    parts = [_section(title, there) for title, there in found.items() if title not in whole]
    return "\n\n".join([*map(_wrapped, head), *parts]) + "\n"


def _section(title: str, there: dict[str, str]) -> str:
    """A namespace: its counts, what is missing from its partial names (equal ones joined), its absent names."""
    numbers = ", ".join(f"{len(_names_of(kind, there))} {kind}" for kind in KINDS)
    alike: dict[str, list[str]] = {}
    for name in _names_of(PARTLY, there):
        alike.setdefault(there[name].partition(": ")[2], []).append(name)
    lacking = [f"- {_quoted(same)}: {text}" for text, same in alike.items()]
    absent = _names_of(NOT, there)
    return "\n".join(
        map(_wrapped, [f"## {title}", f"{numbers}.", *lacking, *[f"- Not: {_quoted(absent)}"] * bool(absent)])
    )


def _quoted(found: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in found)


def _names_of(kind: str, there: dict[str, str]) -> list[str]:
    return [name for name, said in there.items() if said.partition(":")[0] == kind]


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 110, break_on_hyphens=False, subsequent_indent="  " * text.startswith("- "))


def all_names(tf: Any) -> str:
    """`tf.nn.conv2d` and all others, a line each."""
    found = {f"tf.{path}" for path in _all_namespaces(tf)}
    for namespace in filter(partial(_has, tf), (*NAMESPACES, "raw_ops")):
        found |= {f"{_title(namespace)}.{name}" for name in names(tf, namespace)}
    return "\n".join(sorted(found)) + "\n"


def _title(namespace: str) -> str:
    return f"tf.{namespace}" if namespace else "tf"


def main() -> None:
    """Write the three files."""
    sys.path.insert(0, str(TARGET.parent.parent))
    os.environ["TF_USE_LEGACY_KERAS"] = "1"  # tf.layers and tf.nn.rnn_cell live in tf_keras
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow.compat.v1 as tf

    import dtflab

    found = table(tf, dtflab)
    NAMES.write_text(all_names(tf), encoding="utf-8")
    TABLE.write_text(as_json(found), encoding="utf-8")
    TARGET.write_text(page(tf, dtflab, found), encoding="utf-8")


if __name__ == "__main__":
    main()
