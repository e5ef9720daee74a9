"""tf.lookup: tables from keys to values."""

from types import SimpleNamespace

from dtflab.base.missing_names import missing_in as _missing_in
from dtflab.ops.tables.functions import DenseHashTable as _DenseHashTable, KeyValueTensorInitializer
from dtflab.ops.tables.functions import MutableHashTable as _MutableHashTable, StaticHashTable, StaticVocabularyTable
from dtflab.ops.tables.functions import TextFileIndex, TextFileInitializer

experimental = SimpleNamespace(DenseHashTable=_DenseHashTable, MutableHashTable=_MutableHashTable)

__getattr__ = _missing_in("tf.lookup", globals())
