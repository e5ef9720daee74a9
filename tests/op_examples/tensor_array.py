"""Ops of TensorArrays, which only mean something several at a time."""

from __future__ import annotations

_OPS = ("", "Grad", "Write", "Read", "Gather", "Scatter", "Concat", "Split", "Size", "Close")
IN_PROGRAMS = dict.fromkeys(
    ("TensorArrayGradWithShape", *(f"TensorArray{what}V3" for what in _OPS)), "tests/ops/oracle/test_tensor_array.py"
)
