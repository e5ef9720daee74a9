"""Fused ops that TensorFlow has kernels for only where oneDNN's rewriting makes them."""

from __future__ import annotations

IN_PROGRAMS = dict.fromkeys(
    (
        "_MklFusedBatchMatMulV2", "_MklSwish", "_MklFusedMish", "_MklLayerNorm", "_FusedConv2D", "_FusedConv3D",
        "_FusedDepthwiseConv2dNative", "_FusedBatchNormEx",
    ),
    "tests/interop/test_rewrites.py",
)  # fmt: skip
