"""The error for names that TensorFlow 1 has and dtflab does not.

`tf1_names.txt` lists TF1's public names; `docs/coverage_table.py` writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from dtflab.base.suggestions import near

_NEAR = 0.75  # of 1: how alike two names must be
_SESSION = "a session, as in sess.run(y): there is no eager execution"
_INSTEAD = {
    "tf.contrib": (
        "the same without tf.contrib, where it has become part of TensorFlow: tf.nn.rnn_cell and tf.nn.static_rnn for "
        "contrib.rnn, tf.lookup.StaticVocabularyTable for the index tables of contrib.lookup; and for contrib.seq2seq "
        "dtflab.attention, for regularizers of contrib.layers dtflab.regularizers"
    ),
    "tf.GradientTape": "tf.gradients(loss, variables), or the compute_gradients of an optimizer",
    "tf.Module": "tf.variable_scope, and a class or function of your own",
    "tf.TensorSpec": "tf.placeholder",
    "tf.autograph": "tf.cond and tf.while_loop",
    "tf.compat.v2": "tf.compat.v1, which is tf itself",
    "tf.config": "tf.ConfigProto, the config of a session",
    "tf.distribute": "tf.train.replica_device_setter, tf.train.SyncReplicasOptimizer or tf.train.AllReduceOptimizer",
    "tf.enable_eager_execution": _SESSION,
    "tf.enable_v2_behavior": _SESSION,
    "tf.estimator": "tf.train.MonitoredTrainingSession, and your own function that builds the model",
    "tf.feature_column": "tf.lookup, tf.one_hot and tf.nn.embedding_lookup",
    "tf.function": "plain functions: each op that they call is added to the graph, and a session runs it",
    "tf.keras": "tf.layers, tf.losses and tf.train's optimizers",
    "tf.optimizers": "tf.train.GradientDescentOptimizer, tf.train.AdamOptimizer and the others of tf.train",
    "tf.ragged": "tf.SparseTensor, or a dense tensor that is padded",
    "tf.op_scope": "tf.name_scope",
    # Names of TensorFlow 0.x.
    "tf.audio_summary": "tf.summary.audio",
    "tf.batch_matmul": "tf.matmul",
    "tf.batch_matrix_diag": "tf.matrix_diag",
    "tf.batch_matrix_inverse": "tf.matrix_inverse",
    "tf.complex_abs": "tf.abs",
    "tf.concat_v2": "tf.concat",
    "tf.histogram_summary": "tf.summary.histogram",
    "tf.image_summary": "tf.summary.image",
    "tf.inv": "tf.reciprocal",
    "tf.listdiff": "tf.setdiff1d",
    "tf.merge_all_summaries": "tf.summary.merge_all",
    "tf.merge_summary": "tf.summary.merge",
    "tf.mul": "tf.multiply",
    "tf.neg": "tf.negative",
    "tf.pack": "tf.stack",
    "tf.scalar_summary": "tf.summary.scalar",
    "tf.select": "tf.where",
    "tf.sub": "tf.subtract",
    "tf.train.SummaryWriter": "tf.summary.FileWriter",
    "tf.unpack": "tf.unstack",
}


def instead_of(path: str) -> str:
    """A sentence that names the replacement of a missing name; empty if none is known."""
    return f" Use {_INSTEAD[path]}." if path in _INSTEAD else ""


@cache
def tf1_names() -> frozenset[str]:
    """`tf.nn.conv2d` and all other public names of TF1, and their namespaces."""
    from importlib.resources import files  # only after a mistake

    return frozenset((files(__package__) / "tf1_names.txt").read_text(encoding="utf-8").split())


def missing(namespace: str, name: str, there: Iterable[str]) -> AttributeError:
    """The error for a missing `namespace.name`: whether TF1 has it, its replacement, similar names among `there`."""
    if name.startswith("__"):
        return AttributeError(f"module {namespace!r} has no attribute {name!r}")
    path = f"{namespace}.{name}"
    said = f"TensorFlow 1 has {path}, dtflab does not (yet)." if path in tf1_names() else f"There is no {path}."
    names = [n for n in there if not n.startswith("_")]
    alike = near(name, names, 3, _NEAR) or [n for n in names if n.startswith(name)][:3]
    hint = f" The nearest here: {', '.join(alike)}." if alike else ""
    return AttributeError(said + (instead_of(path) or hint))


def missing_in(namespace: str, there: Iterable[str]) -> Callable[[str], Any]:
    """The `__getattr__` of the module that is `namespace`: raises `missing` for what is not among its names."""

    def module_getattr(name: str) -> Any:
        raise missing(namespace, name, there)

    return module_getattr
