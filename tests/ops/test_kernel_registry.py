"""The table of GPU kernels; `tests/ops/oracle/test_kernel_table.py` holds it against TensorFlow's."""

from __future__ import annotations

import subprocess
import sys

import pytest

import dtflab as tf
from dtflab.graph import op_registry
from dtflab.ops.kernel_registry import device_types, gpu_kernels, host_memory

BOTH, CPU_ONLY = ("GPU", "CPU"), ("CPU",)


@pytest.mark.parametrize("op, attrs, expected", [
    ("VariableV2", {"dtype": tf.float32}, BOTH),
    ("VariableV2", {"dtype": tf.int32}, CPU_ONLY),  # the book's example
    ("VariableV2", {"dtype": tf.string}, CPU_ONLY),
    ("AddV2", {"T": tf.int32}, BOTH),  # in host memory
    ("MatMul", {"T": tf.float32}, BOTH),
    ("MatMul", {"T": tf.int32}, CPU_ONLY),
    ("ControlTrigger", {}, BOTH),  # a DEFAULT kernel serves every device
    ("Print", {"T": tf.float32, "U": [tf.float32]}, CPU_ONLY),
    ("ReadFile", {}, CPU_ONLY),
])  # fmt: skip
def test_device_types(op, attrs, expected):
    assert device_types(op, attrs) == expected


@pytest.mark.parametrize("op, attrs, inputs, outputs", [
    ("AddV2", {"T": tf.float32}, [], []),
    ("AddV2", {"T": tf.int32}, [0, 1], [0]),
    ("Shape", {"T": tf.float32, "out_type": tf.int32}, [], [0]),
    ("Reshape", {"T": tf.float32, "Tshape": tf.int32}, [1], []),
    ("ConcatV2", {"T": tf.float32, "N": 3, "Tidx": tf.int32}, [3], []),  # a list takes as many places as it has items
    ("ShapeN", {"T": tf.float32, "N": 2, "out_type": tf.int32}, [], [0, 1]),
    ("Switch", {"T": tf.float32}, [1], []),
    ("VarHandleOp", {"dtype": tf.float32}, [], [0]),
    ("AssignVariableOp", {"dtype": tf.float32}, [0], []),
    ("Identity", {"T": tf.string}, [0], [0]),
    ("MatMul", {"T": tf.int32}, [0, 1], [0]),  # no kernel: what would be on the host with one is there anyway
])  # fmt: skip
def test_host_memory(op, attrs, inputs, outputs):
    assert host_memory(op, attrs, "GPU") == (frozenset(inputs), frozenset(outputs))
    assert host_memory(op, attrs, "CPU") == (frozenset(), frozenset())


def test_an_op_of_a_programs_own_runs_on_cpus():
    @op_registry.op("""OpOfTestKernelRegistry(x: T, n: int32) -> (y: T, name: string)
       T: type""")
    class OpOfTestKernelRegistry(op_registry.Op):
        pass

    try:
        assert device_types("OpOfTestKernelRegistry", {"T": tf.float32}) == CPU_ONLY
        found = host_memory("OpOfTestKernelRegistry", {"T": tf.float32}, "GPU")
        assert found == (frozenset({1}), frozenset({1}))
    finally:
        del op_registry._registry["OpOfTestKernelRegistry"]


def test_lines_for_error_texts():
    (float_only,) = [str(kernel) for kernel in gpu_kernels("Softmax")]
    assert float_only == "device='GPU'; T in [DT_BFLOAT16, DT_HALF, DT_FLOAT, DT_DOUBLE]"


def test_a_program_without_gpus_does_not_read_the_table():
    program = """if True:
        import dtflab as tf
        with tf.Session() as session:
            session.run(tf.constant(1.0) + tf.constant(2.0))
        from dtflab.ops import kernel_registry
        print(kernel_registry._table.cache_info().currsize)"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100)
    assert said.stdout == "0\n", said.stderr
