"""Write dtflab/ops/gpu_kernels.txt: which ops have GPU kernels, for which types, with what in host memory.

`python docs/kernel_table.py` with the plain `tensorflow` wheel installed: it needs no GPU, for it registers the kernels
of one (`tensorflow-cpu` does not). One line is a family of kernels: op, device type, the values of each attribute that
they are for, and the arguments that they want, or leave, in host memory. DEFAULT kernels are for every device that has
none of its own for these types, so an op's GPU lines come first. An op that has neither is not listed, nor is one whose
CPU kernel has a priority, as those of iterators have: TensorFlow's placer takes that one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

TARGET = Path(__file__).parent.parent / "dtflab" / "ops" / "gpu_kernels.txt"


class Family(NamedTuple):
    """Kernels of one op: an (attribute, values) pair per constraint, each in order."""

    op: str
    device: str
    host: tuple[str, ...]
    attrs: tuple[tuple[str, tuple[str, ...]], ...]

    def __str__(self) -> str:
        words = [f"{name}={','.join(values)}" for name, values in self.attrs]
        return " ".join([self.op, self.device, *words, *([f"host:{','.join(self.host)}"] if self.host else [])])


def families(ops: Iterable[str]) -> list[Family]:
    """The kernels that the installed TensorFlow registers for `ops`, in as few families as possible."""
    from tensorflow.python.framework import kernels

    registered = kernels.get_all_registered_kernels().kernel
    rather_on_cpus = {kernel.op for kernel in registered if kernel.device_type == "CPU" and kernel.priority}
    wanted, found = set(ops) - rather_on_cpus, set()
    for kernel in registered:
        # Kernels with a label are for those who ask by name (`_kernel`), which nothing here does.
        if kernel.op in wanted and kernel.device_type in ("GPU", "DEFAULT") and not kernel.label:
            attrs = sorted((c.name, _values(c.allowed_values)) for c in kernel.constraint)
            host = tuple(sorted(kernel.host_memory_arg))
            found.add(Family(kernel.op, kernel.device_type, host, tuple(attrs)))
    return sorted(_joined(found), key=lambda f: (f.op, f.device == "DEFAULT", f))


def _values(allowed: Any) -> tuple[str, ...]:
    from tensorflow import dtypes

    if allowed.list.type:
        return tuple(sorted(dtypes.as_dtype(value).name for value in allowed.list.type))
    return tuple(sorted(repr(value.decode()) for value in allowed.list.s))


def _joined(found: set[Family]) -> set[Family]:
    """Families that differ in the values of one attribute are one family."""
    names = {name for family in found for name, _ in family.attrs}
    for name in sorted(names):
        alike: dict[Any, set[str]] = {}
        for family in found:
            others = tuple(pair if pair[0] != name else (name, ()) for pair in family.attrs)
            alike.setdefault(family._replace(attrs=others), set()).update(dict(family.attrs).get(name, ()))
        found = {
            family._replace(attrs=tuple(p if p[0] != name else (name, tuple(sorted(values))) for p in family.attrs))
            for family, values in alike.items()
        }
    return found


def main() -> None:
    os.environ.update(CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="3")
    import dtflab  # noqa: F401 - registers the ops
    from dtflab.graph import op_registry

    lines = [str(family) for family in families(op_registry.names())]
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{TARGET}: {len(lines)} lines")


if __name__ == "__main__":
    main()
