"""SparseTensors by number mean something only from step to step; `tests/train/oracle/test_input.py` runs them."""

from __future__ import annotations

IN_PROGRAMS = dict.fromkeys(
    ("AddSparseToTensorsMap", "AddManySparseToTensorsMap", "TakeManySparseFromTensorsMap"),
    "tests/train/oracle/test_input.py",
)
