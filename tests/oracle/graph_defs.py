"""The same program on TensorFlow and on dtflab, as GraphDefs compared node by node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import dtflab
from tests.oracle import answers

NOT_COMPARED = {"_output_shapes", "_gradient_op_type"}  # the second is numbered by what ran before


def both(program: Callable[[Any], Any]) -> tuple[Any, Any]:
    """The results of the program in a fresh graph of each."""

    def answer(tf: Any) -> Any:
        with tf.Graph().as_default():
            return program(tf)

    return answers.both(answer)


def assert_same_graph(program: Callable[[Any], Any], gradients: bool = False) -> None:
    """The program adds the same nodes in both; those of gradient scopes count only if asked for."""
    want, got = both(lambda tf: (program(tf), nodes(tf.get_default_graph().as_graph_def(), gradients))[1])
    missing, extra = sorted(want.keys() - got.keys()), sorted(got.keys() - want.keys())
    assert not missing and not extra, f"missing {missing}, extra {extra}"
    for name, node in want.items():
        assert got[name] == node, f"{name}: {got[name]} instead of {node}"


def nodes(graph_def: Any, gradients: bool = False) -> dict[str, Any]:
    """name → what is compared of a node."""
    message = dtflab.GraphDef.FromString(graph_def.SerializeToString())
    return {
        node.name: facts(node)
        for node in message.node
        if gradients or not any(part.startswith("gradients") for part in node.name.split("/"))
    }


def facts(node: Any) -> dict[str, Any]:
    controls = sorted(i for i in node.input if i.startswith("^"))
    return {
        "op": node.op,
        "inputs": [_gradient_hidden(i) for i in node.input if not i.startswith("^")],
        "controls": sorted({_gradient_hidden(c) for c in controls}),
        "device": node.device,
        "attrs": {key: _attr(value) for key, value in sorted(node.attr.items()) if key not in NOT_COMPARED},
    }


def _gradient_hidden(name: str) -> str:
    """Which node of a gradient scope feeds an update is not compared."""
    return "gradients/…" if name.lstrip("^").startswith("gradients") else name


def _attr(value: Any) -> Any:
    if value.HasField("tensor"):
        array = dtflab.make_ndarray(value.tensor)
        return str(array.dtype), array.shape, repr(np.asarray(array).tolist())  # as text a NaN equals a NaN
    return str(value)
