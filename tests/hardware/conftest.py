"""What tests of the catalogue share."""

from __future__ import annotations

import pytest

from dtflab.hardware import catalogue
from dtflab.machine import cards


@pytest.fixture
def shelves(monkeypatch):
    """Copies, so that what a test adds is gone after it."""
    monkeypatch.setattr(cards, "MODELS", [*cards.MODELS])
    monkeypatch.setattr(catalogue, "_added", set(catalogue._added))
    for name in ("GPUS", "CPUS", "BUSES", "NICS", "SWITCHES", "RACKS"):
        monkeypatch.setattr(catalogue, name, {**getattr(catalogue, name)})
