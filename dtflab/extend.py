"""The names that a program needs to extend dtflab: its own ops (docs/engineer.md) and placers (docs/placers.md)."""

from dtflab.base.missing_names import missing_in as _missing_in
from dtflab.graph.apply_op import apply_op
from dtflab.graph.op_registry import Op, elements, op
from dtflab.ops import shapes
from dtflab.ops.kernel_registry import device_types
from dtflab.placement.dynamic import DynamicPlacer
from dtflab.runtime.placer import place

__all__ = ["DynamicPlacer", "Op", "apply_op", "device_types", "elements", "op", "place", "shapes"]

__getattr__ = _missing_in("tf.extend", __all__)
