"""The error for names that TensorFlow 1 has and dtflab does not.

`tf1_names.txt` lists TF1's public names; `docs/coverage_table.py` writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

_NEAR = 0.75  # of 1: how alike two names must be
_INSTEAD = {
    "tf.contrib": (
        "the same without tf.contrib, where it has become part of TensorFlow: tf.nn.rnn_cell and tf.nn.static_rnn for "
        "contrib.rnn, tf.lookup.StaticVocabularyTable for the index tables of contrib.lookup; and for contrib.seq2seq "
        "dtflab.attention, for regularizers of contrib.layers dtflab.regularizers"
    ),
    "tf.distribute": "tf.train.replica_device_setter, tf.train.SyncReplicasOptimizer or tf.train.AllReduceOptimizer",
    "tf.enable_eager_execution": "a session: sess.run(...); there is no eager execution",
    "tf.estimator": "tf.train.MonitoredTrainingSession, and your own function that builds the model",
    "tf.feature_column": "tf.lookup, tf.one_hot and tf.nn.embedding_lookup",
    "tf.function": "the graph itself: what you call outside of it builds it",
    "tf.keras": "tf.layers, tf.losses and tf.train's optimizers",
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
    from importlib.resources import files  # only after a mistake, as `difflib`

    return frozenset((files(__package__) / "tf1_names.txt").read_text(encoding="utf-8").split())


def missing(namespace: str, name: str, there: Iterable[str]) -> AttributeError:
    """The error for a missing `namespace.name`: whether TF1 has it, its replacement, similar names among `there`."""
    if name.startswith("__"):
        return AttributeError(f"module {namespace!r} has no attribute {name!r}")
    path = f"{namespace}.{name}"
    said = f"TensorFlow 1 has {path}, dtflab does not (yet)." if path in tf1_names() else f"There is no {path}."
    near = _near(name, [n for n in there if not n.startswith("_")])
    hint = f" The nearest here: {', '.join(near)}." if near else ""
    return AttributeError(said + (instead_of(path) or hint))


def missing_in(namespace: str, there: Iterable[str]) -> Callable[[str], Any]:
    """The `__getattr__` of the module that is `namespace`: raises `missing` for what is not among its names."""

    def module_getattr(name: str) -> Any:
        raise missing(namespace, name, there)

    return module_getattr


def _near(name: str, there: list[str]) -> list[str]:
    """The names in `there` that resemble `name`, whatever the case of letters, the most similar first."""
    import difflib

    alike = difflib.get_close_matches(name.lower(), {n.lower() for n in there}, n=3, cutoff=_NEAR)
    return [n for found in alike for n in there if n.lower() == found]
