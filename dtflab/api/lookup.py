"""tf.lookup: tables from keys to values."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from dtflab.base.missing_names import missing as _missing
from dtflab.ops.tables.functions import (
    DenseHashTable as _DenseHashTable,
    KeyValueTensorInitializer,
    MutableHashTable as _MutableHashTable,
    StaticHashTable,
    StaticVocabularyTable,
    TextFileIndex,
    TextFileInitializer,
)

experimental = SimpleNamespace(DenseHashTable=_DenseHashTable, MutableHashTable=_MutableHashTable)


def __getattr__(name: str) -> Any:
    raise _missing("tf.lookup", name, globals())
