"""Ops of lookup tables."""

from __future__ import annotations

IN_PROGRAMS = dict.fromkeys(
    (
        "HashTableV2",
        "InitializeTableFromTextFileV2",
        "InitializeTableV2",
        "LookupTableExportV2",
        "LookupTableFindV2",
        "LookupTableImportV2",
        "LookupTableInsertV2",
        "LookupTableRemoveV2",
        "LookupTableSizeV2",
        "MutableDenseHashTableV2",
        "MutableHashTableOfTensorsV2",
        "MutableHashTableV2",
    ),
    "tests/ops/oracle/test_lookup.py",
)
