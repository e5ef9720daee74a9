"""Each op with a GPU kernel in TensorFlow runs over CuPy, and gives what it gives over NumPy.

The inputs are those of `test_every_op.py`. Without a card a stand-in for CuPy runs them, which is not a GPU: it refuses
what CuPy refuses (tests/strict_arrays.py). Where there is a card, the same runs on it.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from dtflab.graph import dtypes, op_registry
from dtflab.graph.graph import Graph
from dtflab.machine import cuda, hosts
from dtflab.machine.devices import Device
from dtflab.ops import kernel_registry
from dtflab.ops.cell import Cell
from dtflab.protos.config_pb2 import ConfigProto
from tests import fake_cupy
from tests.evaluate import as_outputs
from tests.gpu.sessions import PLACES
from tests.op_examples import EXAMPLES, IN_PROGRAMS, dtypes_of, examples_of
from tests.op_runs import Built, build, difference

NAME = "/job:localhost/replica:0/task:0/device:GPU:0"


def has_kernel(name: str) -> bool:
    op = op_registry.get(name)
    return bool(kernel_registry.gpu_kernels(name)) and name in EXAMPLES and name not in IN_PROGRAMS and not op.is_async


NAMES = [name for name in op_registry.names() if has_kernel(name)]


@pytest.fixture(scope="module", params=PLACES)
def gpu(request):
    """A device on a card, or on the stand-in for one."""
    config = ConfigProto()
    config.gpu_options.allow_growth = True
    if request.param == "card":
        yield cuda.CudaGPU(NAME, hosts.Claim(cuda.cards("localhost")[0], "test"), config)
        return
    with fake_cupy.installed():
        yield cuda.CudaGPU(NAME, hosts.Claim(cuda.cards("localhost")[0], "test"), config)


def usable(built: Built) -> bool:
    """True if TensorFlow could place the op, and the variables that it needs, on a GPU."""
    ops = [op for op in in_order(built) if op is built.op or op.type in ("VarHandleOp", "VariableV2")]
    return all("GPU" in kernel_registry.device_types(op.type, op.attrs) for op in ops)


def in_order(built: Built) -> list[Any]:
    """All operations behind an example, producers first."""
    order: dict[Any, None] = {}
    todo = [(op, False) for op in (*(t.op for t in built.fetches), built.op)]
    while todo:
        op, ready = todo.pop()
        if op in order:
            continue
        if ready:
            order[op] = None
        else:
            todo += [(op, True), *((before, False) for before in (*(t.op for t in op.inputs), *op.control_inputs))]
    return list(order)


def run(built: Built, device: Device) -> list[Any]:
    """The example's values, each operation on `device`; its fetches in host memory."""
    ctx = SimpleNamespace(
        resources=device.resources, device=device.name, frame_iter="0:0", state=lambda name, make: make(),
        step=SimpleNamespace(temporaries={}, step_id=1, trace=None),
    )  # fmt: skip
    device.resources.cleanup([])
    values: dict[Any, Any] = {}
    for op in in_order(built):
        on_gpu = device.type == "GPU" and "GPU" in kernel_registry.device_types(op.type, op.attrs)
        on_host = kernel_registry.host_memory(op.type, op.attrs, "GPU" if on_gpu else "CPU")[0]
        refs = [t._is_ref_dtype for t in op.op_def.input_types(op.attrs)]
        args = [
            moved(values[t], device, on_gpu and i not in on_host, ref)
            for i, (t, ref) in enumerate(zip(op.inputs, refs, strict=True))
        ]
        kernel = (device if on_gpu else Device("/device:CPU:0")).bind(op.node())
        with np.errstate(all="ignore"):
            result = kernel(ctx, *args) if op.op_class.needs_ctx else kernel(*args)
        outs = as_outputs(op, result)
        if on_gpu:
            check_places(op, outs, device)
        values.update(zip(op.outputs, outs, strict=True))
    return [moved(values[t], device, False, False) for t in built.fetches]


def moved(value: Any, device: Any, to_device: bool, ref: bool) -> Any:
    """The value as the other end of an edge wants it: what `_Send` and `_Recv` do."""
    if isinstance(value, Cell) and not ref:
        value = value.read()
    if device.type == "CPU" or not hasattr(value, "dtype") or isinstance(value, Cell):
        return value
    if to_device:
        return value if isinstance(value, device.cupy.ndarray) else device.to_device(value)
    return device.to_host(value)


def check_places(op: Any, outs: list[Any], device: Any) -> None:
    on_host = kernel_registry.host_memory(op.type, op.attrs, "GPU")[1]
    for i, value in enumerate(outs):
        if getattr(value, "dtype", None) is not None and not isinstance(value, Cell):
            there = isinstance(value, device.cupy.ndarray)
            assert there == (i not in on_host and np.dtype(value.dtype).char in cuda.DTYPES), (op, i, type(value))


def examples(name: str) -> list[tuple[Any, Any]]:
    return [(d, e) for d in dtypes_of(op_registry.get(name).op_def) for e in examples_of(name, d)]


@pytest.mark.parametrize("name", NAMES)
def test_kernel_on_the_card_is_the_kernel_on_a_cpu(name, gpu):
    problems, count = [], 0
    for dtype, example in examples(name):
        with Graph().as_default():
            try:
                built = build(name, example, "x")
                if not usable(built):
                    continue
                expected = run(built, Device("/device:CPU:0"))
            except (TypeError, ValueError, NotImplementedError):
                continue  # no kernel for that type here either: test_every_op.py says which there must be
            count += 1
            try:
                found = run(built, gpu)
            except Exception as error:
                problems.append(f"{built} [{dtype.name}]: {type(error).__name__}: {error}")
                continue
            pairs = zip(built.fetches, found, expected, strict=True)
            problems += [f"{built}: {d}" for t, a, b in pairs if (d := difference(a, b, t.dtype.base_dtype))]
    assert not problems, f"{len(problems)} of {count}:\n" + "\n".join(problems[:5])
    assert count or all(d in (dtypes.string, dtypes.int32) for d, _ in examples(name)), "nothing was tried"
