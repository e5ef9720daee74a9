"""Recurrent: one training step of a sequence-to-sequence network whose layers are spread over GPUs.

Stands for the graph that tensorflow/nmt builds: layers in turns over GPUs, gradients where the layers are, the
projection to the vocabulary on the last one. Left out: the cost of attention itself, and buckets of lengths.

Rule: only the order of cells decides. Cell (layer, time) waits for the layer below at that time and for itself one
time before. Attention for the top layer closes a circle: the bottom layer waits for the top one, too. It is
the same where only the bottom layer asks, but then nothing waits for the top.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from dtflab.sim.predictions.layers import TIMES
from dtflab.sim.predictions.points import Row

BACKWARD = 2  # the backward pass multiplies matrices twice as often


@dataclass(frozen=True)
class Network:
    """Cells of encoder and decoder in units of one; the projection at one time takes `projection` units."""

    layers: int
    projection: float
    circle: bool  # attention is computed for the top layer
    both_ways: bool  # the encoder's first layer reads in both directions


def is_split(setup: Row) -> bool:
    """Whether the setup's words say that the model, not the data, is spread over GPUs."""
    return setup.text("parallelism").lstrip().startswith("model")


def network(row: Row, attention: str) -> Network:
    """A row of the table of models, with `attention` in words if the setup has them."""
    units, layers = row.need("units"), row.layers
    words = attention or row.text("attention")
    bottom = "bottom" in words
    cell = 8 * units**2  # weights of an LSTM whose input is as wide as itself
    return Network(layers, row.need("vocab") * units / cell, circle=bool(words) and not bottom, both_ways=bottom)


def split_step_s(one_gpu_s: float, row: Row, attention: str, gpus: int, hop_s: float) -> float:
    """Seconds of a step on `gpus`, if it takes `one_gpu_s` on one; `hop_s` is what a tensor takes to another GPU."""
    shape = network(row, attention)
    cell_s = one_gpu_s / _both_ways(shape, 1, 1.0, 0.0)
    return _both_ways(shape, gpus, cell_s, hop_s)


def _both_ways(shape: Network, gpus: int, cell_s: float, hop_s: float) -> float:
    return sum(_pass(shape, gpus, times * cell_s, hop_s) for times in (1, BACKWARD))


def _pass(shape: Network, gpus: int, cell_s: float, hop_s: float) -> float:
    """Encoder, decoder, projection: one after the other, forward or backward."""
    homes = [layer % gpus for layer in range(shape.layers)]
    first = shape.both_ways * TIMES * cell_s  # the second direction, before the layers above can start
    encoder = wavefront(homes, TIMES, cell_s, hop_s)
    decoder = wavefront(homes, TIMES, cell_s, hop_s, shape.circle)
    return first + encoder + decoder + TIMES * shape.projection * cell_s


def wavefront(homes: Sequence[int], times: int, cell_s: float, hop_s: float, circle: bool = False) -> float:
    """Seconds of `times` × layers cells, layer i on GPU `homes[i]`; with a `circle` each time waits for the one before.

    A GPU computes one cell at a time, in the order in which they become ready.
    """
    layers = len(homes)
    free = dict.fromkeys(homes, 0.0)
    arrived: dict[tuple[int, int], list[float]] = {}  # when a cell had each of those that it waits for
    ready = [(0.0, 0, 0)]
    while ready:
        since, time, layer = heapq.heappop(ready)
        end = free[homes[layer]] = max(since, free[homes[layer]]) + cell_s
        for later in _followers(time, layer, layers, times, circle):
            there = end + hop_s * (homes[later[1]] != homes[layer])
            arrived.setdefault(later, []).append(there)
            if len(arrived[later]) == _waits_for(*later, circle, layers):
                heapq.heappush(ready, (max(arrived[later]), *later))
    return max(free.values())


def _followers(time: int, layer: int, layers: int, times: int, circle: bool) -> list[tuple[int, int]]:
    """The cells (time, layer) that wait for this one."""
    found = [(time + 1, layer), (time, layer + 1)]
    if circle and layer == layers - 1 > 0:
        found.append((time + 1, 0))
    return [(when, which) for when, which in found if when < times and which < layers]


def _waits_for(time: int, layer: int, circle: bool, layers: int) -> int:
    """How many cells this one waits for."""
    return (time > 0) + (layer > 0) + (circle and time > 0 and layer == 0 and layers > 1)
