"""Conditional accumulators: they only mean something over several steps."""

from __future__ import annotations

IN_PROGRAMS = dict.fromkeys(
    (
        "AccumulatorApplyGradient AccumulatorNumAccumulated AccumulatorSetGlobalStep AccumulatorTakeGradient "
        "ConditionalAccumulator ResourceAccumulatorApplyGradient ResourceAccumulatorNumAccumulated "
        "ResourceAccumulatorSetGlobalStep ResourceAccumulatorTakeGradient ResourceConditionalAccumulator "
        "SparseAccumulatorApplyGradient SparseAccumulatorTakeGradient SparseConditionalAccumulator"
    ).split(),
    "tests/ops/oracle/test_accumulators.py",
)
