"""gpu_kernels.txt is what `python docs/kernel_table.py` writes, and is read as TensorFlow reads its registry."""

from __future__ import annotations

import itertools
import random
import runpy

import pytest

pytest.importorskip("tensorflow")
from tensorflow import dtypes as their_dtypes
from tensorflow.python.framework import kernels

from dtflab.graph import dtypes, op_registry
from dtflab.ops import kernel_registry
from tests.house import ROOT

SCRIPT = runpy.run_path(str(ROOT / "docs" / "kernel_table.py"))
OPS = [name for name in op_registry.names() if op_registry.get(name).__module__.startswith("dtflab.")]


@pytest.fixture(scope="module")
def registered():
    """TensorFlow's kernels, by op."""
    found: dict[str, list] = {name: [] for name in OPS}
    for kernel in kernels.get_all_registered_kernels().kernel:
        if kernel.op in found:
            found[kernel.op].append(kernel)
    return found


def test_the_table_is_fresh():
    lines = "".join(f"{family}\n" for family in SCRIPT["families"](OPS))
    assert lines == SCRIPT["TARGET"].read_text(encoding="utf-8"), "run: python docs/kernel_table.py"


def rather_on_cpus(found):
    """True for iterators and the like: the placer takes their CPU kernels, and the table leaves out the others."""
    return any(kernel.priority for kernel in found if kernel.device_type == "CPU")


def test_a_cpu_kernel_with_a_priority_is_the_one_that_is_chosen(registered):
    for op, found in registered.items():
        if rather_on_cpus(found):
            highest = {kernel.device_type: kernel.priority for kernel in found}
            assert highest["CPU"] > highest["GPU"], op


def test_every_op_is_known_to_tensorflow(registered):
    """So that "not in the table" means "no GPU kernel", not "never heard of"."""
    assert [name for name, found in registered.items() if not found] == []


def takes(kernel, attrs) -> bool:
    for constraint in kernel.constraint:
        allowed = constraint.allowed_values.list
        values = attrs[constraint.name]
        values = values if isinstance(values, list) else [values]
        if allowed.type:
            names = {their_dtypes.as_dtype(value).name for value in allowed.type}
            if not all(value.name in names for value in values):
                return False
        elif not all(value in allowed.s for value in values):
            return False
    return True


def for_gpu(found, attrs):
    for device_type in () if rather_on_cpus(found) else ("GPU", "DEFAULT"):
        for kernel in found:
            if kernel.device_type == device_type and not kernel.label and takes(kernel, attrs):
                return kernel
    return None


def choices(attr):
    if attr.type in ("type", "list(type)"):
        types = attr.allowed or [d for d in map(dtypes.as_dtype, range(1, 24)) if not d._is_ref_dtype]
        return [[t] for t in types] + [types[:2]] if attr.type == "list(type)" else list(types)
    if attr.type == "int":
        return [max(2, attr.minimum or 0)]
    if attr.type == "string":
        return [b"", b"IGNORE", b"other"]
    return [attr.default]


def examples(op_def, count=40):
    """Attributes of nodes: all combinations if they are few, else some."""
    names = list(op_def.attrs)
    values = [choices(attr) for attr in op_def.attrs.values()]
    total = 1
    for options in values:
        total *= len(options)
    if total <= count:
        return [dict(zip(names, chosen)) for chosen in itertools.product(*values)]
    seeded = random.Random(op_def.name)
    return [{name: seeded.choice(options) for name, options in zip(names, values)} for _ in range(count)]


@pytest.mark.parametrize("initial", sorted({name[0] for name in OPS}))
def test_the_table_is_read_as_tensorflow_reads_its_registry(initial, registered):
    for name in (name for name in OPS if name[0] == initial):
        op_def = op_registry.get(name).op_def
        for attrs in examples(op_def):
            kernel = for_gpu(registered[name], attrs)
            assert kernel_registry.device_types(name, attrs) == (("GPU", "CPU") if kernel else ("CPU",)), attrs
            on_host = kernel_registry.host_memory(name, attrs, "GPU")
            assert on_host == (expected(op_def.inputs, attrs, kernel), expected(op_def.outputs, attrs, kernel)), attrs
            assert kernel_registry.host_memory(name, attrs, "CPU") == (frozenset(), frozenset())


def expected(args, attrs, kernel):
    """The rules of memory_types.cc for a GPU, written down once more."""
    types = [(arg.name, dtype) for arg in args for dtype in arg.types(attrs)]
    always = {"string", "string_ref", "resource"} | (set() if kernel else {"int32"})
    declared = set(kernel.host_memory_arg) if kernel else set()
    return frozenset(i for i, (name, dtype) in enumerate(types) if name in declared or dtype.name in always)
