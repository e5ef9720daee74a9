"""`%dtf_conformance`: one line runs a step on dtflab and on TensorFlow's servers."""

from __future__ import annotations

import importlib.util

import pytest

from tests.notebook.cells import cell, magic


@pytest.mark.processes
def test_a_step_side_by_side_on_clusters_of_the_graphs_shape(model):
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("pip install dtflab[tensorflow]")
    found = magic(model, "%dtf_conformance [y, v] --feed {x: [3.0, 4.0]}", "found")
    assert found.same, found
    assert [row.name for row in found.rows if row.kind == "value"] == ["y:0", "v:0"]
    assert {row.tensorflow for row in found.rows if row.kind == "placement"} == {"ps:0", "worker:1", "worker:0"}
    assert "<mark>" not in found._repr_html_()


def test_wrong_lines_say_so_in_one(shell):
    shell.run_cell("import dtflab as tf\ntf.reset_default_graph()")
    assert cell(shell, "%dtf_conformance").startswith(
        "UsageError: Name what to run. For example: %dtf_conformance train"
    )
    shell.run_cell("y = tf.constant(1.0)")
    assert "--cluster 3 is not a cluster but a int." in cell(shell, "%dtf_conformance y --cluster 3")
    assert "--feed 3 must be a dict, not a int" in cell(shell, "%dtf_conformance y --feed 3")
