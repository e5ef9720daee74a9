"""docs/coverage.md and docs/coverage.json are what `python docs/coverage_table.py` writes."""

from __future__ import annotations

import runpy

import pytest

pytest.importorskip("tensorflow")
import tensorflow.compat.v1 as tf

import dtflab
from tests.house import ROOT

SCRIPT = runpy.run_path(str(ROOT / "docs" / "coverage_table.py"))


def test_the_page_and_the_table_are_fresh():
    found = SCRIPT["table"](tf, dtflab)
    assert SCRIPT["as_json"](found) == SCRIPT["TABLE"].read_text(), "run: python docs/coverage_table.py"
    assert SCRIPT["page"](tf, dtflab, found) == SCRIPT["TARGET"].read_text(), "run: python docs/coverage_table.py"
    names = ROOT / "dtflab" / "base" / "tf1_names.txt"
    assert SCRIPT["all_names"](tf) == names.read_text(), "run: python docs/coverage_table.py"


def test_what_lacks_is_named():
    class Theirs:
        def kept(self): ...
        def lost(self): ...

    class Ours:
        def __init__(self):
            self.kept = 1

    assert SCRIPT["status"](Theirs, Ours) == ("partly", "`.lost`")
    assert SCRIPT["status"](lambda a, b: 0, lambda a: 0) == ("partly", "`b=`")
    assert SCRIPT["status"](lambda a, b=1: 0, lambda a, **more: 0) == ("supported", "")


def test_the_page_lists_what_is_partial_or_absent_and_nothing_else():
    found = {
        "tf.a": {"f": "supported", "g": "partly: `b=` missing", "h": "not", "j": "partly: `b=` missing"},
        "tf.b": {"i": "supported"},
    }
    page = SCRIPT["page"](tf, dtflab, found)
    assert "Of 5 names, 2 are supported, 2 partly and 1 not." in page
    assert "Supported as a whole: `tf.b`." in page
    assert page.partition("## tf.a\n")[2] == "1 supported, 2 partly, 1 not.\n- `g`, `j`: `b=` missing\n- Not: `h`\n"


def test_every_namespace_of_tf1_has_a_table_or_is_named_as_left_out():
    left_out = SCRIPT["left_out"](tf, dtflab)
    assert {"keras", "lite", "distribute", "estimator", "contrib", "nn.experimental"} <= set(left_out)
    assert not set(left_out) & set(SCRIPT["NAMESPACES"])
    for path in SCRIPT["namespaces_in"](tf, ""):
        assert path in left_out or path in SCRIPT["NAMESPACES"] or hasattr(dtflab, path)
        assert f"tf.{path}" in SCRIPT["all_names"](tf).split()
