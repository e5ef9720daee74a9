"""The two seeds of a random op, from the graph's seed and the op's own.

Stands for `python/framework/random_seed.py`. Left out: eager mode, op determinism.

Rule: (None, None) means a different sequence in every session; (0, 0) would mean the same to a kernel, so it is
never given to an op that has a seed.
"""

from __future__ import annotations

from dtflab.graph.scopes import get_default_graph

DEFAULT_GRAPH_SEED = 87654321
_MAX_INT32 = 2**31 - 1


def get_seed(op_seed: int | None) -> tuple[int | None, int | None]:
    """(graph seed, op seed) for an op of the default graph that was made with `seed=op_seed`.

    With a graph seed, an op without one gets the number of such ops before it: the same program, the same values.
    """
    graph = get_default_graph()
    if graph.seed is None:
        return (None, None) if op_seed is None else (DEFAULT_GRAPH_SEED, op_seed % _MAX_INT32)
    if op_seed is None:
        op_seed = graph._seeds_given
        graph._seeds_given += 1
    seeds = graph.seed % _MAX_INT32, op_seed % _MAX_INT32
    return (0, _MAX_INT32) if seeds == (0, 0) else seeds


def set_random_seed(seed: int) -> None:
    """Set the graph-level seed of the default graph."""
    get_default_graph().seed = seed
