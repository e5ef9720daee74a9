"""The costs of a network's layer in one step: its variables, its kernels, and its outputs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from dtflab.hardware import costs
from dtflab.hardware.costs import Cost
from dtflab.hardware.parts import Processor


@dataclass(frozen=True)
class VariableCost:
    """A variable: its size, and for one of which a step only reads rows (an embedding) how many bytes those have."""

    name: str
    bytes: int
    trainable: bool = True
    rows_bytes: int | None = None  # of the rows that the batch touches, one that comes twice counted twice

    @property
    def is_sparse(self) -> bool:
        """Only rows of it travel: what is pulled are those, and its gradients are IndexedSlices."""
        return self.rows_bytes is not None

    @property
    def pull_bytes(self) -> int:
        """The bytes that a worker reads of the variable in one step."""
        return self.bytes if self.rows_bytes is None else self.rows_bytes

    @property
    def gradient_bytes(self) -> int:
        """The bytes that a worker sends back; batch normalization's averages get an update instead, equally large."""
        return self.pull_bytes


@dataclass(frozen=True)
class Kernel:
    """`count` runs of equal cost: `flops` and `bytes` of one; the `fixed_…` among these don't grow with the batch."""

    op: str
    dtype: str
    flops: int
    bytes: int
    fixed_flops: int = 0
    fixed_bytes: int = 0
    count: int = 1

    def seconds(self, processor: Processor, efficiency: float = costs.EFFICIENCY) -> float:
        """How long all runs take."""
        return self.count * costs.seconds(Cost(self.flops, self.bytes), processor, self.dtype, efficiency)

    def scaled(self, factor: float) -> Kernel:
        """The kernel for `factor` times as many examples."""
        flops = self.fixed_flops + round((self.flops - self.fixed_flops) * factor)
        return replace(self, flops=flops, bytes=self.fixed_bytes + round((self.bytes - self.fixed_bytes) * factor))


@dataclass(frozen=True)
class LayerCost:
    """A layer: variables and the kernels that use them, and what follows before the next layer.

    `output_bytes` is what leaves it and all before it for later layers: what would cross a cut behind it; None if
    nobody knows. `kept_bytes` is what its way forward leaves in memory for the way back. `update` are the optimizer's
    kernels, which run where the variables are.
    """

    name: str
    forward: tuple[Kernel, ...]
    backward: tuple[Kernel, ...]
    update: tuple[Kernel, ...] = ()
    variables: tuple[VariableCost, ...] = ()
    output_bytes: int | None = None
    kept_bytes: int = 0

    @property
    def variable_bytes(self) -> int:
        return sum(v.bytes for v in self.variables)


class LayerTime(NamedTuple):
    """Seconds of a layer's kernels in one step."""

    forward: float
    backward: float
    update: float
