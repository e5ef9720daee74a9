"""The picture of kernels: which devices can run which ops of a graph, where they were placed, and what computes there.

Three layers, as a machine has them: ops with their kernels above, below them the library that a device's kernels
call, at the bottom the hardware. A device that has no kernel for an op can't run it, whatever the program asks for.
"""

from __future__ import annotations

import importlib
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from dtflab.base.text_table import plural, text_table
from dtflab.graph import dtypes
from dtflab.graph.node import Node
from dtflab.machine.devices import Device
from dtflab.machine.gpu import GPUDevice
from dtflab.ops import kernel_registry
from dtflab.runtime.session import BaseSession
from dtflab.viz.drawing import marks
from dtflab.viz.drawing.palette import Look, look, together
from dtflab.viz.drawing.picture import Picture
from dtflab.viz.drawing.style import room, rules
from dtflab.viz.drawing.svg import Markup, hatch_path, join, tag, text_width, wrapped

_ROW, _TOP, _LAYER_GAP, _GAP, _LINE = 26.0, 62.0, 12.0, 10.0, 14.0


class _Row(NamedTuple):
    """One kind of op: its type and dtype, the device types that have a kernel, how many are on each device."""

    kind: str
    types: Sequence[str]
    placed: Counter[str]


def kernels(fetches: Any, session: BaseSession, *, width: float | None = None, title: str = "Kernels") -> Picture:
    """Picture the kernels of what `fetches` need (None: of the session's whole graph) on the session's devices.

    A kind of op is a type with the dtype of its first output, since kernels are made for dtypes. NotImplementedError
    if the session's master is in another process, which does not report its devices.
    """
    rows = _rows(session.placed_nodes(fetches))
    devices = session.local_devices()
    with together(device.name for device in devices):
        layers = [("computed by", [_library(device) for device in devices]),
                  ("hardware", [_hardware(device) for device in devices])]  # fmt: skip
        heads = ("op", *(look(device.name).label for device in devices))
        table = [[row.kind, *(_word(row, device) for device in devices)] for row in rows]
        table += [[name, *words] for name, words in layers]
        drawing = _Drawing(rows, devices, layers, room(width))
        summary = f"{plural(len(rows), 'kind')} of ops on {plural(len(devices), 'device')}"
        parts = join([marks.heading(title, summary), *drawing.draw()])
        text = f"{summary}\n{text_table(heads, table)}"
        sentence = _sentence(rows, devices, layers)
        return Picture(parts, drawing.size, rules("kernels"), sentence, [(title, heads, table)], text)


# -- data -------------------------------------------------------------------------------------------------------


def _rows(nodes: Sequence[Node]) -> list[_Row]:
    rows: dict[str, _Row] = {}
    for node in nodes:
        dtype = f" {dtypes.as_dtype(node.output_types[0]).base_dtype.name}" if node.output_types else ""
        types = kernel_registry.device_types(node.op, node.attrs)
        row = rows.setdefault(node.op + dtype, _Row(node.op + dtype, types, Counter()))
        row.placed[node.device] += 1
    return list(rows.values())


def _library(device: Device) -> str:
    """The array module of a device's kernels, and what that calls itself."""
    if device.xp is not np:
        return f"CuPy {importlib.import_module('cupy').__version__}, CUDA"
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]["name"]
    return f"NumPy {np.__version__}, {blas.removeprefix('scipy-').replace('openblas', 'OpenBLAS')}"


def _hardware(device: Device) -> str:
    if not isinstance(device, GPUDevice):
        return f"CPU, {plural(os.cpu_count() or 1, 'core')}"
    return device.claim.card.model.name + ("" if device.claim.card.real else ", simulated")


def _word(row: _Row, device: Device) -> str:
    if row.placed[device.name]:
        return f"{plural(row.placed[device.name], 'op')} placed here"
    return "has a kernel" if device.type in row.types else "no kernel"


def _sentence(rows: Sequence[_Row], devices: Sequence[Device], layers: Sequence[tuple[str, list[str]]]) -> str:
    without = [row.kind for row in rows if "GPU" not in row.types]
    limits = f"No GPU kernel: {', '.join(without)}. " if without else "All have GPU kernels. "
    computers = zip(devices, layers[0][1], layers[1][1], strict=True)
    computing = "; ".join(f"{look(d.name).label}: {library} on {hardware}" for d, library, hardware in computers)
    return f"Kernels of {plural(len(rows), 'kind')} of ops. {limits}{computing}."


# -- drawing ----------------------------------------------------------------------------------------------------


class _Drawing:
    """A row for each kind of op, a column for each device, the two layers below."""

    def __init__(
        self, rows: Sequence[_Row], devices: Sequence[Device], layers: Sequence[tuple[str, list[str]]], width: float
    ) -> None:
        self.rows, self.devices, self.layers = rows, devices, layers
        kinds = max(text_width(row.kind) for row in rows)
        self.left = 10 + max(kinds, text_width("computed by", bold=True))
        self.column = (width - self.left) / len(devices) - _GAP
        self.below = _TOP + len(rows) * _ROW + _LAYER_GAP
        lines = max(len(self._lines(word)) for _, words in layers for word in words)
        self.layer = 12 + _LINE * lines
        self.size = (width, self.below + len(layers) * (self.layer + 4))

    def draw(self) -> Iterator[Markup]:
        places = [self.left + i * (self.column + _GAP) for i in range(len(self.devices))]
        columns = (part for i, x in enumerate(places) for part in self._column(x, self.devices[i], i))
        yield marks.stretch((self.left, self.size[0]), *columns)
        for i, row in enumerate(self.rows):
            yield tag("text", row.kind, x=0, y=_TOP + i * _ROW + 15)
        for i, (name, _) in enumerate(self.layers):
            yield tag("text", name, x=0, y=self.below + i * (self.layer + 4) + 17, class_="b")

    def _column(self, x: float, device: Device, number: int) -> Iterator[Markup]:
        one = look(device.name)
        yield tag("g", marks.badge(one, x, 30), *self._label(x, one), data_at=x)
        for i, row in enumerate(self.rows):
            yield self._cell(x, _TOP + i * _ROW, row, device, one)
        for i, (_, words) in enumerate(self.layers):
            yield from self._layer(x, self.below + i * (self.layer + 4), words[number])

    def _label(self, x: float, one: Look) -> Iterator[Markup]:
        """The text next to the badge, in lines; without the job, which the badge has, if a word would be cut."""
        indent = marks.badge_width(one) + 6
        room = self.column - indent
        whole = all(text_width(word, bold=True) <= room for word in one.label.split())
        lines = wrapped(one.label if whole else one.label.rpartition(" ")[2], room, bold=True)
        for i, line in enumerate(lines):
            yield tag("text", line, x=x + indent, y=43 + (i - (len(lines) - 1) / 2) * _LINE, class_="b")

    def _cell(self, x: float, y: float, row: _Row, device: Device, one: Look) -> Markup:
        word, shape = _word(row, device), {"x": x, "y": y, "width": self.column, "height": _ROW - 5, "rx": 3}
        at = {"x": x + self.column / 2, "y": y + 15, "class_": "s11 mid"}
        if row.placed[device.name]:
            ink = f"fill:{one.colour.ink}"
            return join(
                [tag("rect", fill=one.colour.fill, stroke=one.colour.rim, **shape), tag("text", word, style=ink, **at)]
            )
        if device.type in row.types:
            return join([tag("rect", class_="able", stroke=one.colour.line, **shape), tag("text", word, **at)])
        stripes = tag("path", d=hatch_path(x, y, self.column, _ROW - 5), class_="stripe")
        return join([stripes, tag("text", word, **{**at, "class_": "s11 mid soft halo"})])

    def _layer(self, x: float, y: float, word: str) -> Iterator[Markup]:
        yield tag("rect", x=x, y=y, width=self.column, height=self.layer, rx=3, class_="layer")
        for i, line in enumerate(self._lines(word)):
            yield tag("text", line, x=x + self.column / 2, y=y + 17 + i * _LINE, class_="s11 mid")

    def _lines(self, word: str) -> list[str]:
        return wrapped(word, self.column - 8, 11)
