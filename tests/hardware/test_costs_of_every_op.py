"""Every op has a cost, and shapes alone tell it."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import dtflab
from dtflab.graph import dtypes, op_registry
from dtflab.graph.graph import Graph
from dtflab.hardware import costs
from tests.evaluate import as_outputs, evaluate, kernel
from tests.op_examples import EXAMPLES, Var, dtypes_of, examples_of
from tests.op_runs import build


def built(name):
    """The examples of one dtype, a floating one if the op takes any."""
    allowed = dtypes_of(op_registry.get(name).op_def)
    dtype = next((d for d in allowed if d.is_floating), allowed[0])
    return [build(name, example, f"e{i}") for i, example in enumerate(examples_of(name, dtype))]


def arrays_of(one):
    """Inputs and outputs of a run; a handle where there is no value."""
    op = one.op
    if op.op_class.needs_ctx or any(isinstance(v, Var) for v in one.example.inputs):
        tensors = [*op.inputs, *op.outputs]
        fetched = [t for t in tensors if t.dtype.base_dtype not in (dtypes.resource, dtypes.variant)]
        with dtflab.Session(graph=op.graph) as session:
            values = dict(zip(fetched, session.run([fetched, op])[0], strict=True))
        values = [values.get(t, costs.HANDLE) for t in tensors]
        return values[: len(op.inputs)], values[len(op.inputs) :]
    ins = evaluate(list(op.inputs))
    with np.errstate(all="ignore"):
        outs = as_outputs(op, kernel(op)(*ins))
    return ins, outs


@pytest.mark.parametrize("name", sorted({*EXAMPLES} & {*op_registry.names()}))
def test_costs_are_whole_numbers_and_shapes_tell_them(name):
    with Graph().as_default():
        for one in built(name):
            ins, outs = arrays_of(one)
            node = one.op.node()
            cost = costs.of_node(node, ins, outs)
            assert cost.flops >= 0 and cost.bytes >= 0
            for rule in (one.op.op_class.flops, one.op.op_class.bytes):
                assert isinstance(rule(node, ins, outs), int | np.integer), "no fractions, nothing that is not finite"
            if all(t.dtype not in (dtypes.string, dtypes.variant) for t in (*one.op.inputs, *one.op.outputs)):
                shapes = [[costs.HANDLE if x is costs.HANDLE else np.shape(x) for x in xs] for xs in (ins, outs)]
                assert costs.of_node(node, *shapes) == cost, one
