"""Write docs/coverage.md, which names of TF1 dtflab has, and dtflab/base/tf1_names.txt, these names.

`python docs/coverage_table.py` with TensorFlow installed. A function is «partly» there if it lacks arguments, a class
if it lacks methods; both are named. What is listed is the public surface of `tf.compat.v1`; of the namespaces that
dtflab leaves out as a whole (`tf.keras`, `tf.distribute`, `tf.lite`, …) only the name.
"""

from __future__ import annotations

import dis
import inspect
import os
import sys
import threading
import types
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

TARGET = Path(__file__).with_name("coverage.md")
NAMES = TARGET.parent.parent / "dtflab" / "base" / "tf1_names.txt"
NAMESPACES = ("", *(
    "app bitwise compat data data.experimental debugging dtypes errors flags gfile graph_util image initializers io "
    "layers linalg logging lookup losses manip math metrics nest nn nn.rnn_cell python_io queue random saved_model "
    "sets sparse strings summary test train version"
).split())  # fmt: skip
_GONE = {"contrib", "estimator"}  # namespaces of TF1 that TensorFlow 2 has dropped
_STRAY = {"flags.tf_decorator", "rnn_cell"}  # modules that stand there by importing or loading others
SUPPORTED, PARTLY, NOT = "supported", "partly", "not"
_INHERITED = set(dir(object)) | set(dir(Exception)) | set(dir(threading.Thread))
# What TensorFlow 2 has added to classes and functions of TF1, for its own purposes.
_LATER = set(
    "cast experimental_as_proto experimental_from_proto experimental_payloads experimental_ref experimental_set_type "
    "experimental_type_proto flatten from_tensors handle_data is_subtype_of layout most_specific_common_supertype "
    "placeholder_value ref to_tensors".split()
)


def lookup(root: Any, path: str) -> Any:
    """`root.a.b`; AttributeError if it lacks."""
    for part in filter(None, path.split(".")):
        root = getattr(root, part)
    return root


def names(tf: Any, namespace: str) -> list[str]:
    """Public names of a namespace that are no namespaces themselves."""
    return [name for name, value in _public(tf, namespace) if not isinstance(value, types.ModuleType)]


def namespaces_in(tf: Any, namespace: str) -> list[str]:
    """Namespaces in a namespace, with their paths: `nn.rnn_cell`."""
    found = [name for name, value in _public(tf, namespace) if isinstance(value, types.ModuleType)]
    return [path for path in (f"{namespace}.{name}".strip(".") for name in found) if path not in _STRAY]


def _public(tf: Any, namespace: str) -> Iterator[tuple[str, Any]]:
    module = lookup(tf, namespace)
    return ((name, getattr(module, name)) for name in sorted(dir(module)) if not name.startswith("_"))


def left_out(tf: Any, dtflab: Any) -> list[str]:
    """Namespaces that dtflab lacks as a whole and that get no table."""
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
    """What the methods of a class assign to its instances."""
    code = [f.__code__ for base in kind.__mro__ for f in vars(base).values() if isinstance(f, types.FunctionType)]
    return {i.argval for one in code for i in dis.get_instructions(one) if i.opname == "STORE_ATTR"}


def rows(tf: Any, dtflab: Any, namespace: str) -> list[tuple[str, str, str]]:
    """(name, status, what is missing) of each name of a namespace."""
    found = []
    for name in names(tf, namespace):
        path = f"{namespace}.{name}" if namespace else name
        found.append((name, *(status(lookup(tf, path), lookup(dtflab, path)) if _has(dtflab, path) else (NOT, ""))))
    return found


def page(tf: Any, dtflab: Any) -> str:
    """The whole page."""
    tables, counts, summary = [], dict.fromkeys((SUPPORTED, PARTLY, NOT), 0), []
    for namespace in filter(partial(_has, tf), NAMESPACES):
        found = rows(tf, dtflab, namespace)
        title = _title(namespace)
        number = {kind: sum(row[1] == kind for row in found) for kind in counts}
        for kind, n in number.items():
            counts[kind] += n
        summary.append(
            f"| [`{title}`](#{title.replace('.', '')}) | " + " | ".join(str(n) for n in number.values()) + " |"
        )
        tables.append(_table(title, found))
    head = [
        "# Which names of TF1 are here",
        "",
        f"Written by `docs/coverage_table.py` from TensorFlow {tf.__version__}'s `tf.compat.v1` and this package; a",
        "test holds it fresh. *Supported*: the name is here, with all arguments of TensorFlow's function, all methods",
        "of its class. *Partly*: it is here, and what lacks is named. Whether it does the same is another question,",
        "which `tests/oracle` asks TensorFlow itself.",
        "",
        f"Left out as a whole, and in no table: {', '.join(f'`tf.{path}`' for path in left_out(tf, dtflab))}.",
        "`tf.raw_ops` has the ops that are registered here (`dir(tf.raw_ops)`).",
        "",
        f"{counts[SUPPORTED]} supported, {counts[PARTLY]} partly, {counts[NOT]} not.",
        "",
        "| namespace | supported | partly | not |",
        "| --- | --- | --- | --- |",
        *summary,
    ]
    return "\n".join(head + tables) + "\n"


def _table(title: str, found: list[tuple[str, str, str]]) -> str:
    lines = ["", f"## {title}", "", "| name | status |", "| --- | --- |"]
    for name, kind, lacking in found:
        lines.append(f"| `{name}` | {kind}{f': {lacking} missing' if lacking else ''} |")
    return "\n".join(lines)


def all_names(tf: Any) -> str:
    """`tf.nn.conv2d` and all others, a line each."""
    found = {f"tf.{path}" for path in _all_namespaces(tf)}
    for namespace in filter(partial(_has, tf), (*NAMESPACES, "raw_ops")):
        found |= {f"{_title(namespace)}.{name}" for name in names(tf, namespace)}
    return "\n".join(sorted(found)) + "\n"


def _title(namespace: str) -> str:
    return f"tf.{namespace}" if namespace else "tf"


def main() -> None:
    """Write both files."""
    sys.path.insert(0, str(TARGET.parent.parent))
    os.environ["TF_USE_LEGACY_KERAS"] = "1"  # tf.layers and tf.nn.rnn_cell live in tf_keras
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow.compat.v1 as tf

    import dtflab

    NAMES.write_text(all_names(tf), encoding="utf-8")
    TARGET.write_text(page(tf, dtflab), encoding="utf-8")


if __name__ == "__main__":
    main()
