"""Graphs of dtflab's ops that a TensorFlow master rewrites run on dtflab's workers, and give the same values."""

from __future__ import annotations

import pytest

from tests.interop.lab import KINDS, Way
from tests.interop.programs import rewriting
from tests.interop.test_matrix import same


@pytest.mark.parametrize("client", KINDS)
@pytest.mark.parametrize("name", rewriting.MADE)
def test_a_tensorflow_master_rewrites(lab, name, client):
    def run(ps, worker):
        return lab.client(client).run("rewritten", site=lab.site(Way(client, ps, worker, "ps")), name=name)

    expected, written = run("dtflab", "dtflab")  # nothing is rewritten
    found, ops = run("TensorFlow", "dtflab")
    assert same(found, expected)
    made = rewriting.MADE[name][1]
    assert made <= set(ops)
    assert not {op for op in made if op.startswith("_")} & set(written)
