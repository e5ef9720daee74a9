"""Data sets and iterators need programs of several steps; `tests/data/oracle/test_data.py` runs those."""

from __future__ import annotations

from dtflab.graph import op_registry

_TEST = "tests/data/oracle/test_data.py"
_ITERATORS = (
    "Iterator", "IteratorV2", "OneShotIterator", "MakeIterator", "IteratorGetNext", "IteratorGetNextSync",
    "IteratorToStringHandle", "IteratorFromStringHandle", "IteratorFromStringHandleV2", "DatasetToSingleElement",
)  # fmt: skip

IN_PROGRAMS = dict.fromkeys(_ITERATORS, _TEST)
IN_PROGRAMS |= {name: _TEST for name in op_registry.names() if name.endswith(("Dataset", "DatasetV2", "DatasetV4"))}
