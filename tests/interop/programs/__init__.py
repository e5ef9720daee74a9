"""Programs of clients of either kind. Each exists once and gets `tf`, the module; arguments and results are JSON.

Those in `calls` get targets and devices. Those of the matrix (`test_matrix.py`) get a `Site`, and run in a graph and a
container of their own; the first line of their docstrings stands in `docs/interop.md`.
"""

from __future__ import annotations

from typing import Any

from tests.interop.programs import (
    calls,
    clusters,
    control,
    errors,
    input,
    parts,
    queues,
    rewriting,
    saving,
    state,
    tracing,
    training,
)
from tests.interop.programs.site import Site

# What one client does.
ALONE = (
    training.adam, training.momentum, training.monitored, input.csv_files, control.conditionals, control.loops,
    parts.all_dtypes, parts.large_tensors, parts.in_bfloat16, errors.typed_errors, tracing.traced, tracing.summaries,
    state.sessions_share, state.callables, state.partial_run, state.devices, state.reset,
    clusters.isolated, clusters.cluster_def, clusters.cluster_def_state,
)  # fmt: skip
# What two clients of different kinds do, the second of them at the same time or after the first.
HANDLES = state.handles  # TensorFlow's tasks have none
TOGETHER = ((queues.producer, queues.consumer), (training.replica, training.replica))
AFTERWARDS = ((saving.save, saving.restore),)
_BY_NAME = {
    f.__name__: f
    for f in (*ALONE, HANDLES, *(f for pair in (*TOGETHER, *AFTERWARDS) for f in pair), rewriting.rewritten)
}


def run(tf: Any, name: str, arguments: dict[str, Any]) -> Any:
    """Run a program."""
    if "site" not in arguments:
        return getattr(calls, name)(tf, **arguments)
    site = Site(**arguments.pop("site"))
    with tf.Graph().as_default(), tf.container(site.name):
        return _BY_NAME[name](tf, site, **arguments)
