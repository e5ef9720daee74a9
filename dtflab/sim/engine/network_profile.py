"""Profile: what a network costs, layer by layer: the one thing that estimates need to know of it.

TensorFlow has no such class; `core/grappler/costs/graph_properties.cc` and `virtual_scheduler.cc` come nearest.
`profile_of_graph` reads one off a graph, `profile_of_table` makes one up of a few published numbers.

Rule: pure data. Layers stand in the order of the way forward; the way back goes through them from the last to the
first. All costs are those of one step with `batch` examples. Bytes and seconds everywhere.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from numbers import Real
from typing import Any

from dtflab.base.text_table import plural, text_table
from dtflab.hardware import costs
from dtflab.hardware.parts import Processor
from dtflab.sim.engine.layer_costs import Kernel, LayerCost, LayerTime, VariableCost
from dtflab.sim.engine.profile_of_graph import costs_of_graph
from dtflab.sim.engine.profile_of_table import layers_of_table


@dataclass(frozen=True)
class Profile:
    """The layers of a network; see LayerCost. `step_seconds`: a measured step, forward and back, of one device."""

    name: str
    batch: int
    layers: tuple[LayerCost, ...]
    step_seconds: float | None = None

    # -- where profiles come from

    @staticmethod
    def from_graph(
        loss: Any, train_op: Any = None, batch: int | None = None, loop_turns: int | None = None, name: str = ""
    ) -> Profile:
        """The costs of a training step that a graph describes; see `profile_of_graph`."""
        batch, layers = costs_of_graph(loss, train_op, batch, loop_turns)
        return Profile(name or "graph", batch, tuple(layers))

    @staticmethod
    def from_table(
        params: float | None = None, largest_variable_MB: float | None = None, gmac_per_image: float | None = None,
        layers: int | None = None, units: int | None = None, vocab: int | None = None, attention: str | None = None,
        steps: int = 25, batch: int = 1, name: str = "table",
    ) -> Profile:  # fmt: skip
        """A network's profile from a few published numbers, in the terms of points.md.

        Either of images: how many parameters, MB (1e6 bytes of float32) of the largest variable, multiply-adds per
        image (1e9). Or of words: `layers` of LSTMs of `units` each way, words known, kind of attention as in
        `models.seq2seq`, `steps` words in a sentence; with `params`, too, all variables are scaled to that sum.
        `profile_of_table` states the assumptions about the rest. ValueError if neither is complete.
        """
        found = layers_of_table(
            params, largest_variable_MB, gmac_per_image, layers, units, vocab, attention, steps, batch, name
        )
        return Profile(name, batch, tuple(found))

    @staticmethod
    def from_json(text: str) -> Profile:
        """The profile that `to_json` wrote."""
        return _from_dict(json.loads(text))

    # -- sums

    @property
    def variables(self) -> tuple[VariableCost, ...]:
        return tuple(v for layer in self.layers for v in layer.variables)

    @property
    def variable_bytes(self) -> int:
        return sum(v.bytes for v in self.variables)

    @property
    def gradient_bytes(self) -> int:
        """The bytes that a worker sends in one step: gradients, and updates of averages."""
        return sum(v.gradient_bytes for v in self.variables)

    @property
    def forward_flops(self) -> int:
        return _flops(k for layer in self.layers for k in layer.forward)

    @property
    def backward_flops(self) -> int:
        return _flops(k for layer in self.layers for k in layer.backward)

    @property
    def memory_bytes(self) -> int:
        """Variables, dense gradients, and what the way forward leaves for the way back: the least that is needed."""
        return self.fetched_memory_bytes + sum(v.bytes - v.pull_bytes for v in self.variables)

    @property
    def fetched_memory_bytes(self) -> int:
        """The memory of a worker whose variables are on servers: of those that a step reads by rows, only the rows."""
        fetched = sum(v.pull_bytes + v.gradient_bytes * v.trainable for v in self.variables)
        return fetched + sum(layer.kept_bytes for layer in self.layers)

    # -- time

    def times(self, processor: Processor | None = None, efficiency: float = costs.EFFICIENCY) -> list[LayerTime]:
        """Seconds of each layer on `processor`, by the roofline of each kernel.

        A measured `step_seconds` takes the place of the sum of forward and backward: then the processor only decides
        each layer's share, by the flops if there is none. ValueError if there is neither.
        """
        modelled = [_layer_time(layer, processor, efficiency) for layer in self.layers]
        if self.step_seconds is None:
            if processor is None:
                raise ValueError(
                    f"Profile '{self.name}': how long it takes depends on a processor, as hardware.gpu('K40'), or on "
                    "the rate of one device, scaled(single_device_rate=…)."
                )
            return modelled
        total = sum(t.forward + t.backward for t in modelled)
        if not total:
            raise ValueError(f"Profile '{self.name}': a measured rate can't be shared out among layers without work.")
        factor = self.step_seconds / total
        return [LayerTime(t.forward * factor, t.backward * factor, t.update) for t in modelled]

    def scaled(self, single_device_rate: float) -> Profile:
        """The profile with the measured rate of one device, in examples per second at this batch size.

        The measured step is taken to be forward and backward; what updates cost is not taken out of it.
        """
        given: Any = single_device_rate  # or what somebody takes for one
        if not isinstance(given, Real) or not 0 < single_device_rate < math.inf:
            raise ValueError(f"A rate is a finite number of examples per second above 0, not {given!r}.")
        return replace(self, step_seconds=self.batch / single_device_rate)

    def with_batch(self, batch: int) -> Profile:
        """The same network with another batch size: flops and activations grow with it, variables don't.

        A measured `step_seconds` grows with it, too. ValueError for a batch without examples.
        """
        if batch < 1:
            raise ValueError(f"A batch has at least one example, not {batch!r}.")
        factor = batch / self.batch
        step = None if self.step_seconds is None else self.step_seconds * factor
        return Profile(self.name, batch, tuple(_layer_scaled(layer, factor) for layer in self.layers), step)

    # -- how it is shown

    def to_json(self) -> str:
        """The profile as text, which `from_json` reads."""
        return json.dumps(asdict(self))

    def table(self) -> str:
        """One line per layer: Mflop forward and back, MB of variables, of the cut behind it and of what is kept."""
        rows = [_row(layer) for layer in self.layers]
        sums = [_rounded(sum(row[i] for row in rows)) for i in (1, 2, 3)]
        total = ["sum", *sums, "", _rounded(sum(row[-1] for row in rows))]
        heads = ["layer", "forward Mflop", "backward Mflop", "variables MB", "output MB", "kept MB"]
        return f"{self!r}\n{text_table(heads, [*rows, total])}"

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        held = plural(len(self.variables), "variable")
        return (
            f"<Profile {self.name!r}: {plural(len(self.layers), 'layer')}, {held} of "
            f"{_rounded(self.variable_bytes / 1e6)} MB, batch of {self.batch}, "
            f"{_rounded(self.forward_flops / self.batch / 1e6)} Mflop forward per example>"
        )


def _flops(kernels: Iterable[Kernel]) -> int:
    return sum(kernel.flops * kernel.count for kernel in kernels)


def _layer_time(layer: LayerCost, processor: Processor | None, efficiency: float) -> LayerTime:
    """By the roofline; without a processor in units of a flop."""
    kernels = (layer.forward, layer.backward, layer.update)
    if processor is None:
        return LayerTime(_flops(layer.forward), _flops(layer.backward), 0.0)
    return LayerTime(*(sum(kernel.seconds(processor, efficiency) for kernel in each) for each in kernels))


def _layer_scaled(layer: LayerCost, factor: float) -> LayerCost:
    return replace(
        layer,
        forward=tuple(kernel.scaled(factor) for kernel in layer.forward),
        backward=tuple(kernel.scaled(factor) for kernel in layer.backward),
        update=tuple(kernel.scaled(factor) for kernel in layer.update),
        variables=tuple(_variable_scaled(v, factor) for v in layer.variables),
        output_bytes=None if layer.output_bytes is None else round(layer.output_bytes * factor),
        kept_bytes=round(layer.kept_bytes * factor),
    )


def _variable_scaled(variable: VariableCost, factor: float) -> VariableCost:
    if variable.rows_bytes is None:
        return variable
    return replace(variable, rows_bytes=round(variable.rows_bytes * factor))


def _row(layer: LayerCost) -> list[Any]:
    work = [_flops(layer.forward), _flops(layer.backward), layer.variable_bytes]
    output = "" if layer.output_bytes is None else _rounded(layer.output_bytes / 1e6)
    return [layer.name, *(_rounded(amount / 1e6) for amount in work), output, _rounded(layer.kept_bytes / 1e6)]


def _rounded(number: float) -> float:
    """To three digits, or to a whole number."""
    return float(f"{number:.3g}") if number < 100 else round(number)


def _from_dict(given: dict[str, Any]) -> Profile:
    layers = [
        LayerCost(**{
            **layer,
            **{phase: tuple(Kernel(**k) for k in layer[phase]) for phase in ("forward", "backward", "update")},
            "variables": tuple(VariableCost(**v) for v in layer["variables"]),
        })
        for layer in given["layers"]
    ]  # fmt: skip
    return Profile(**{**given, "layers": tuple(layers)})
