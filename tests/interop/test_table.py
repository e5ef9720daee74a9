"""docs/interop.md has a row for each program and a column for each cluster, and all of them run."""

from __future__ import annotations

import importlib.util
import itertools

from tests.house import ROOT
from tests.interop import programs
from tests.interop.lab import KINDS, MASTERS, WAYS
from tests.interop.programs import rewriting


def test_the_table_is_of_the_tests_that_there_are():
    path = ROOT / "docs" / "interop.py"
    spec = importlib.util.spec_from_file_location("interop_page", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rows = {(test, f"{program}-{way}"): "✓" for (test, program, _), way in itertools.product(module.tests(), WAYS)}
    rewritten = {
        ("test_a_tensorflow_master_rewrites", f"{name}-{kind}"): "✓" for name in rewriting.MADE for kind in KINDS
    }
    rows |= {("test_alone_over_tls", f"{f.__name__}-{m}"): "✓" for f in programs.ALONE for m in MASTERS}
    assert path.with_suffix(".md").read_text(encoding="utf-8") == module.page(rows | rewritten), (
        "python docs/interop.py"
    )
