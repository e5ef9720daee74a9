"""Phases: one program has the same phases in TensorFlow's graph and in dtflab's, op by op; also resource variables."""

from __future__ import annotations

import pytest

pytest.importorskip("tensorflow")
import tensorflow.compat.v1 as real_tf

import dtflab
from dtflab import viz
from tests.viz.training import PROGRAMS, SAID


def phases(tf, program):
    with tf.Graph().as_default() as graph:
        PROGRAMS[program](tf)
    return viz.phases(graph)


@pytest.mark.parametrize("program", PROGRAMS)
def test_same_phases_in_both_libraries(program):
    assert phases(dtflab, program) == phases(real_tf, program)


@pytest.mark.parametrize("program", PROGRAMS)
def test_phases_of_tensorflow_with_resource_variables(program):
    real_tf.enable_resource_variables()
    try:
        found = phases(real_tf, program)
    finally:
        real_tf.disable_resource_variables()
    said = {
        name.replace("/Apply", "/ResourceApply"): phase
        for phase, names in SAID[program].items()
        for name in names.split()
        if name.removesuffix("/read") not in names.split()  # a ref variable's: these read where they are used
    }
    assert {name: found[name] for name in said} == said
