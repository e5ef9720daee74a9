"""tf.metrics next to TensorFlow's: nodes, variables and collections, and the values after each of several batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")

import tensorflow.compat.v1 as real_tf

import dtflab
from tests.oracle.graph_defs import assert_same_graph, both

Batch = dict[str, Any]
_random = np.random.default_rng(0)


def probabilities(n: int) -> np.ndarray:
    return _random.uniform(0, 1, n).astype(np.float32)


def classes(*shape: int, of: int = 4) -> np.ndarray:
    return _random.integers(0, of, shape)


def three(make: Callable[[], Batch]) -> list[Batch]:
    return [make() for _ in range(3)]


def binary() -> list[Batch]:
    return three(lambda: {"labels": classes(6, of=2), "predictions": probabilities(6)})


def of_classes() -> list[Batch]:
    return three(lambda: {"labels": classes(6), "predictions": classes(6)})


def floats(*shape: int) -> list[Batch]:
    return three(lambda: {"labels": _random.normal(size=shape).astype(np.float32),
                          "predictions": _random.normal(size=shape).astype(np.float32)})  # fmt: skip


def ranked(labels: int = 2, predictions: int = 5) -> list[Batch]:
    def make() -> Batch:
        scores = np.round(_random.normal(size=(4, predictions)), 3).astype(np.float32)
        return {"labels": classes(4, labels, of=predictions + 1), "predictions": scores}

    return three(make)


def top(labels: int = 2, k: int = 3) -> list[Batch]:
    return three(lambda: {"labels": classes(4, labels), "predictions_idx": classes(4, k)})


THRESHOLDS = {"thresholds": [0.2, 0.5, 0.9]}
# The name, its batches, its other arguments.
CASES: list[tuple[str, list[Batch], dict[str, Any]]] = [
    ("mean", [{"values": b["labels"]} for b in floats(2, 3)], {}),
    ("mean_tensor", [{"values": b["labels"]} for b in floats(2, 3)], {}),
    ("percentage_below", [{"values": b["labels"]} for b in floats(4)], {"threshold": 0.3}),
    ("accuracy", of_classes(), {}),
    ("accuracy", three(lambda: {"labels": classes(6), "predictions": classes(6, 1).astype(np.float32)}), {}),
    ("mean_absolute_error", floats(4), {}),
    ("mean_squared_error", floats(4), {}),
    ("root_mean_squared_error", floats(4), {}),
    ("mean_relative_error", floats(4), {"normalizer": np.float32([1, 0, 2, -3])}),
    ("mean_cosine_distance", floats(4, 3), {"dim": 1}),
    ("mean_per_class_accuracy", of_classes(), {"num_classes": 4}),
    ("mean_iou", of_classes(), {"num_classes": 4}),
    ("mean_iou", of_classes(), {"num_classes": 6}),
    *[(name, binary(), {}) for name in ("true_positives", "true_negatives", "false_positives", "false_negatives")],
    *[(name, three(lambda: {"labels": classes(6, of=2), "predictions": classes(6, of=2)}), {})
      for name in ("precision", "recall", "true_positives", "false_negatives")],
    *[(f"{name}_at_thresholds", binary(), THRESHOLDS) for name in
      ("true_positives", "true_negatives", "false_positives", "false_negatives", "precision", "recall")],
    ("sensitivity_at_specificity", binary(), {"specificity": 0.6}),
    ("specificity_at_sensitivity", binary(), {"sensitivity": 0.6, "num_thresholds": 20}),
    ("auc", binary(), {}),
    ("auc", binary(), {"thresholds": [0.7, 0.3], "summation_method": "careful_interpolation"}),
    *[("auc", binary(), {"curve": curve, "num_thresholds": 11, "summation_method": how}) for curve in ("ROC", "PR")
      for how in ("trapezoidal", "minoring", "majoring", "careful_interpolation")],
    *[(name, ranked(), {"k": k} | more) for name in ("precision_at_k", "recall_at_k", "sparse_precision_at_k")
      for k, more in ((1, {}), (3, {}), (2, {"class_id": 1}))],
    ("precision_at_k", [{**b, "labels": b["labels"][:, 0]} for b in ranked()], {"k": 2}),
    *[(name, top(), more) for name in ("precision_at_top_k", "recall_at_top_k")
      for more in ({}, {"k": 3}, {"class_id": 2}, {"k": 3, "class_id": 0})],
    *[(name, ranked(), {"k": k}) for name in ("average_precision_at_k", "sparse_average_precision_at_k")
      for k in (1, 3, 5)],
]  # fmt: skip
IDS = [f"{name}-{'-'.join(map(str, more))}{i}" for i, (name, _, more) in enumerate(CASES)]
each_case = pytest.mark.parametrize(("name", "batches", "more"), CASES, ids=IDS)


def built(tf: Any, metric: str, batch: Batch, known: bool = True, **more: Any) -> tuple[Any, dict[str, Any]]:
    """The metric, and the placeholders of its batches."""
    feeds = {key: tf.placeholder(value.dtype, value.shape if known else None, name=key) for key, value in batch.items()}
    return getattr(tf.metrics, metric)(**feeds, **more), feeds


def run(tf: Any, metric: str, batches: list[Batch], known: bool = True, **more: Any) -> list[Any]:
    """The value before all batches, after each the update and the value; and which variables there are."""
    (value, update), feeds = built(tf, metric, batches[0], known, **more)
    found = []
    with tf.Session() as sess:
        sess.run(tf.local_variables_initializer())
        found.append(sess.run(value))
        for batch in batches:
            found.append(sess.run(update, {feeds[key]: array for key, array in batch.items()}))
            found.append(sess.run(value))
    return [*found, *variables(tf)]


def variables(tf: Any) -> list[Any]:
    keys = "metric_variables", "local_variables", "variables", "trainable_variables", "mine", "updates"
    return [[(v.name, str(v.shape), v.dtype.name) for v in tf.get_collection(key)] for key in keys]


def same(ours: list[Any], theirs: list[Any]) -> None:
    for a, b in zip(ours, theirs, strict=True):
        if isinstance(b, list):
            assert a == b
        else:
            assert a.dtype == b.dtype and np.shape(a) == np.shape(b)
            np.testing.assert_allclose(a, b, 1e-5, 1e-6)


@each_case
def test_metric(name, batches, more):
    assert_same_graph(lambda tf: built(tf, name, batches[0], **more))
    theirs, ours = both(lambda tf: run(tf, name, batches, **more))
    same(ours, theirs)


@each_case
def test_with_weights_names_and_collections(name, batches, more):
    shape = next(iter(batches[0].values())).shape
    per_example = len(shape) - 1 if name.endswith("_k") and "labels" in batches[0] else len(shape)
    weights = np.random.default_rng(1).integers(0, 3, shape[: max(per_example, 1)]).astype(np.float32)
    if name == "mean_cosine_distance":
        weights = weights[:, :1]
    more = more | {"name": "named", "metrics_collections": ["mine"], "updates_collections": ["updates"]}

    def program(tf):
        return built(tf, name, batches[0], weights=tf.constant(weights), **more)

    assert_same_graph(program)
    theirs, ours = both(lambda tf: run(tf, name, batches, weights=tf.constant(weights), **more))
    same(ours, theirs)


# TensorFlow itself asks for ranks there.
NEEDS_SHAPES = ("mean_tensor", "mean_iou", "mean_per_class_accuracy", "average_precision_at_k",
                "sparse_average_precision_at_k")  # fmt: skip


@pytest.mark.parametrize(
    ("name", "batches", "more"), [c for c in CASES if c[0] not in NEEDS_SHAPES],
    ids=[i for i, c in zip(IDS, CASES, strict=True) if c[0] not in NEEDS_SHAPES],
)  # fmt: skip
def test_shapes_that_are_known_in_the_step_only(name, batches, more):
    assert_same_graph(lambda tf: built(tf, name, batches[0], False, **more))
    theirs, ours = both(lambda tf: run(tf, name, batches, False, **more))
    same(ours, theirs)


@pytest.mark.parametrize(
    "weights", [2.0, [[1.0]], [1.0, 0.0, 2.0, 1.0, 1.0, 0.0], np.ones((6, 1), np.float32)], ids=str
)
@pytest.mark.parametrize("name", ["mean_absolute_error", "true_positives", "auc", "accuracy"])
def test_weights_of_unknown_shape(name, weights):
    batches = [{k: v.astype(np.float32) for k, v in b.items()} for b in binary()]
    if name == "true_positives" and np.shape(weights) not in ((), (6,)):
        weights = weights[0] if np.shape(weights) == (1, 1) else weights[:, 0]

    def given(tf):
        return tf.placeholder_with_default(np.float32(weights), None)

    assert_same_graph(lambda tf: built(tf, name, batches[0], weights=given(tf)))
    if np.shape(weights) == (1, 1) and name != "true_positives":
        return  # fits no vector
    theirs, ours = both(lambda tf: run(tf, name, batches, weights=given(tf)))
    same(ours, theirs)


@pytest.mark.parametrize(("name", "more"), [
    ("precision_at_k", {"k": 3}), ("recall_at_k", {"k": 3}), ("precision_at_k", {"k": 2, "class_id": 1}),
    ("average_precision_at_k", {"k": 3}), ("average_precision_at_k", {"k": 1}),
])  # fmt: skip
@pytest.mark.parametrize("one_less", [False, True])
def test_sparse_labels(name, more, one_less):
    batches = ranked()

    def program(tf):
        predictions = tf.constant(batches[0]["predictions"])
        if one_less:
            labels = tf.SparseTensor([[0], [2], [3]], np.array([1, 9, 2], np.int64), [4])
        else:
            labels = tf.SparseTensor([[0, 0], [0, 1], [2, 0], [3, 4]], np.array([1, 3, 9, 2], np.int64), [4, 5])
        return getattr(tf.metrics, name)(labels, predictions, **more)

    def values(tf):
        metric = program(tf)
        with tf.Session() as sess:
            sess.run(tf.local_variables_initializer())
            return [*sess.run(metric[1:]), *sess.run(metric[:1])]

    assert_same_graph(program)
    if one_less and name.startswith("average"):
        return  # TensorFlow loses the static rank of such labels, and fails in the step
    theirs, ours = both(values)
    np.testing.assert_allclose(ours, theirs)


@pytest.mark.parametrize("name", ["mean", "accuracy", "auc", "precision", "mean_squared_error", "true_positives"])
def test_empty_batches_and_nan(name):
    kind = np.int64 if name == "accuracy" else np.float32
    batches: list[Batch] = [{"labels": np.zeros(0, kind), "predictions": np.zeros(0, kind)}]
    if name == "mean":
        batches = [{"values": np.zeros(0, kind)}, {"values": np.float32([np.nan])}]
    theirs, ours = both(lambda tf: run(tf, name, batches, False))
    same(ours, theirs)


def test_resource_variables():
    def program(tf):
        with tf.variable_scope("metrics", use_resource=True):
            built(tf, "accuracy", of_classes()[0])
            built(tf, "auc", binary()[0], num_thresholds=5)
            built(tf, "mean_iou", of_classes()[0], num_classes=4)

    assert_same_graph(program)


def test_a_metric_begins_again():
    def program(tf):
        value, update = tf.metrics.mean(tf.constant([1.0, 2.0]), name="m")
        reset = tf.variables_initializer(tf.get_collection(tf.GraphKeys.METRIC_VARIABLES, scope="m"))
        with tf.Session() as sess:
            sess.run(reset)
            found = [sess.run(update), sess.run(update)]
            sess.run(reset)
            return [*found, sess.run(value)]

    theirs, ours = both(program)
    assert ours == theirs == [1.5, 1.5, 0.0]


def trained(tf):
    x, y = tf.placeholder(tf.float32, [None, 3], name="x"), tf.placeholder(tf.int64, [None], name="y")
    logits = tf.matmul(x, tf.get_variable("w", [3, 4], initializer=tf.ones_initializer()))
    tf.losses.sparse_softmax_cross_entropy(y, logits)
    for tensor in tf.metrics.accuracy(y, tf.argmax(logits, 1), name="accuracy"):
        tf.add_to_collection("accuracy", tensor)


def test_losses_and_metrics_travel_in_meta_graphs_both_ways():
    def exported(tf):
        trained(tf)
        return tf.train.export_meta_graph()

    def imported(tf, meta_graph):
        with tf.Graph().as_default(), tf.Session() as sess:
            tf.train.import_meta_graph(tf.MetaGraphDef.FromString(meta_graph.SerializeToString()))
            metrics = tf.get_collection(tf.GraphKeys.METRIC_VARIABLES)
            sess.run([tf.global_variables_initializer(), tf.variables_initializer(metrics)])
            fetches = tf.get_collection("accuracy")[1], tf.get_collection(tf.GraphKeys.LOSSES)[0]
            return sess.run(fetches, {"x:0": np.ones((2, 3)), "y:0": [0, 1]})

    theirs, ours = both(exported)
    assert {k: str(v) for k, v in ours.collection_def.items()} == {k: str(v) for k, v in theirs.collection_def.items()}
    accuracy, loss = imported(dtflab, theirs)
    assert (accuracy, loss) == pytest.approx((0.5, np.log(4)))
    assert imported(real_tf, ours) == pytest.approx([accuracy, loss])


def test_metrics_of_a_worker_with_variables_on_parameter_servers():
    tf = dtflab
    with dtflab.Cluster(ps=2, worker=1) as cluster, tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(cluster=cluster.spec)):
            predictions = tf.placeholder(tf.float32, [None])
            value, update = tf.metrics.recall(tf.constant([1, 0, 1]), predictions)
        with tf.Session(cluster.target) as sess:
            sess.run(tf.local_variables_initializer())
            found = [sess.run(update, {predictions: batch}) for batch in ([1, 0, 0], [1, 1, 1])]
            assert [*found, sess.run(value)] == [0.5, 0.75, 0.75]
        assert {v.device for v in tf.local_variables()} == {"/job:ps/task:0", "/job:ps/task:1"}


# -- errors -----------------------------------------------------------------------------------------------------------

BAD: dict[str, Callable[[Any], Any]] = {
    "curve": lambda tf: tf.metrics.auc([1], tf.constant([1.0]), curve="X"),
    "summation": lambda tf: tf.metrics.auc([1], tf.constant([1.0]), summation_method="X"),
    "sensitivity": lambda tf: tf.metrics.specificity_at_sensitivity([1], tf.constant([1.0]), 1.5),
    "specificity": lambda tf: tf.metrics.sensitivity_at_specificity([1], tf.constant([1.0]), -0.5),
    "shapes": lambda tf: tf.metrics.accuracy(tf.constant([1, 2]), tf.constant([1, 2, 3])),
    "k": lambda tf: tf.metrics.average_precision_at_k([[1]], tf.constant([[1.0]]), 0),
    "ranks": lambda tf: tf.metrics.precision_at_top_k(tf.zeros([2], tf.int64), tf.zeros([2, 1, 1], tf.int64)),
    "weights": lambda tf: tf.metrics.mean(tf.constant([1.0, 2.0]), weights=[1.0, 2.0, 3.0]),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_errors_when_the_graph_is_built(name):
    def error(tf):
        with pytest.raises(ValueError) as caught:
            BAD[name](tf)
        return str(caught.value).partition(" Received")[0]

    theirs, ours = both(error)
    assert ours == theirs


@pytest.mark.parametrize("wrong", [-0.1, 1.1])
def test_predictions_that_are_no_probabilities(wrong):
    def program(tf):
        predictions = tf.placeholder(tf.float32, [1])
        _, update = tf.metrics.auc([1], predictions)
        with tf.Session() as sess:
            sess.run(tf.local_variables_initializer())
            with pytest.raises(tf.errors.InvalidArgumentError, match=r"predictions must be in \[0, 1\]"):
                sess.run(update, {predictions: [wrong]})

    both(program)
