"""Workloads: what is measured, written once for both libraries.

A workload is a function of the library's TF1 namespace that sets everything up and returns `measure`; each call of that
is one more measurement, and gives one value per row. Where there is a floor below both libraries, `bare` measures it
(NumPy or a socket by hand), or `empty` does (steps that do nothing).
"""

from __future__ import annotations

# In the order of the table.
# isort: off
from benchmarks.workloads import starting, steps, inputs, training, processes, simulator, collectives  # noqa: F401

# isort: on
from benchmarks.workloads.workload import WORKLOADS, Row, Workload

__all__ = ["WORKLOADS", "Row", "Workload"]
