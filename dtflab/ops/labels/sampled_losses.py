"""nce_loss and sampled_softmax_loss: losses over very many classes that look only at the true ones and a few others.

Stands for `_compute_sampled_logits`, `nce_loss` and `sampled_softmax_loss` of `python/ops/nn_impl.py`.

Rule: both are for training. The rows of the weights are looked up, so that their gradients are IndexedSlices of those
rows alone; log of how often a class is expected among the samples is taken off its logit.
"""

from __future__ import annotations

from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.apply_op import apply_op
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.arrays.functions import stack
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.labels.candidate_sampling import compute_accidental_hits, log_uniform_candidate_sampler
from dtflab.ops.linalg.functions import matmul
from dtflab.ops.math import functions as math
from dtflab.ops.nn.cross_entropy import sigmoid_cross_entropy_with_logits, softmax_cross_entropy_with_logits_v2
from dtflab.ops.nn.embedding import embedding_lookup
from dtflab.ops.variables.partitioned_variables import PartitionedVariable


def nce_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = False,
    partition_strategy: str = "mod",
    name: str = "nce_loss",
) -> Tensor:
    """Noise-contrastive estimation, [batch]: tell the true classes from sampled noise, one yes-or-no question each.

    `weights` are [num_classes, dim] (or a list of parts), `biases` [num_classes], `labels` [batch, num_true] int64,
    `inputs` [batch, dim]. `sampled_values` is what a candidate sampler gave, by default the log-uniform one.
    """
    logits, targets = _compute_sampled_logits(
        weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values, remove_accidental_hits,
        partition_strategy, name, None,
    )  # fmt: skip
    return _sum_rows(sigmoid_cross_entropy_with_logits(labels=targets, logits=logits, name="sampled_losses"))


def sampled_softmax_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
    partition_strategy: str = "mod",
    name: str = "sampled_softmax_loss",
    seed: Any = None,
) -> Tensor:
    """The softmax cross entropy over the true and the sampled classes alone, [batch]; arguments as of `nce_loss`."""
    logits, targets = _compute_sampled_logits(
        weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values, remove_accidental_hits,
        partition_strategy, name, seed,
    )  # fmt: skip
    targets = arrays.stop_gradient(targets, name="labels_stop_gradient")
    return softmax_cross_entropy_with_logits_v2(labels=targets, logits=logits)


def _compute_sampled_logits(
    weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: int, num_classes: int, num_true: int,
    sampled_values: Any, remove_accidental_hits: bool, partition_strategy: str, name: str | None, seed: Any,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Logits and labels, [batch, num_true + num_sampled] each."""
    weights = list(weights) if isinstance(weights, PartitionedVariable | list) else [weights]
    with name_scope(name, "compute_sampled_logits", [*weights, biases, inputs, labels]):
        if labels.dtype != dtypes.int64:
            labels = arrays.cast(labels, dtypes.int64)
        flat = arrays.reshape(labels, [-1])
        if sampled_values is None:
            sampled_values = log_uniform_candidate_sampler(
                true_classes=labels, num_true=num_true, num_sampled=num_sampled, unique=True, range_max=num_classes,
                seed=seed,
            )  # fmt: skip
        sampled, true_count, sampled_count = (arrays.stop_gradient(s) for s in sampled_values)
        sampled = arrays.cast(sampled, dtypes.int64)
        true, others = _logits(weights, biases, flat, sampled, inputs, num_true, partition_strategy)
        if remove_accidental_hits:
            others += _minus_infinity_at_hits(labels, sampled, num_true, num_sampled, others.dtype)
        true -= math.log(true_count)
        others -= math.log(sampled_count)
        logits = arrays.concat([true, others], 1)
        targets = [arrays.ones_like(true) / num_true, arrays.zeros_like(others)]
        return logits, arrays.concat(targets, 1)


def _logits(
    weights: list[Any], biases: Any, flat: Tensor, sampled: Tensor, inputs: Any, num_true: int, strategy: str
) -> tuple[Tensor, Tensor]:
    """Logits of the true classes, [batch, num_true], and of the samples, [batch, num_sampled]; one look-up for both."""
    ids = arrays.concat([flat, sampled], 0)
    rows = _looked_up(weights, ids, strategy, inputs.dtype)
    true_rows = indexing.slice(rows, [0, 0], stack([arrays.shape(flat)[0], -1]))
    sampled_rows = indexing.slice(rows, stack([arrays.shape(flat)[0], 0]), [-1, -1])
    others = matmul(inputs, sampled_rows, transpose_b=True)
    offsets = _looked_up(biases, ids, strategy, inputs.dtype)
    true_offsets = indexing.slice(offsets, [0], arrays.shape(flat))
    sampled_offsets = indexing.slice(offsets, arrays.shape(flat), [-1])
    true = _dot_products(inputs, true_rows, num_true) + arrays.reshape(true_offsets, [-1, num_true])
    return true, others + sampled_offsets


def _looked_up(params: Any, ids: Tensor, strategy: str, dtype: Any) -> Tensor:
    found = embedding_lookup(params, ids, partition_strategy=strategy)
    cast: Tensor = arrays.cast(found, dtype) if found.dtype != dtype else found
    return cast


def _dot_products(inputs: Any, true_rows: Tensor, num_true: int) -> Tensor:
    """[batch, num_true]: each input times the rows of its own true classes."""
    dim = arrays.shape(true_rows)[1:2]
    per_example = arrays.concat([[-1, num_true], dim], 0)
    products = math.multiply(arrays.expand_dims(inputs, 1), arrays.reshape(true_rows, per_example))
    matrix = arrays.reshape(products, arrays.concat([[-1], dim], 0))
    return arrays.reshape(_sum_rows(matrix), [-1, num_true])


def _sum_rows(x: Tensor) -> Tensor:
    """The sum of each row, as a product with ones, which was faster than a reduction."""
    ones = arrays.ones(stack([arrays.shape(x)[1], 1]), x.dtype)
    return arrays.reshape(matmul(x, ones), [-1])


def _minus_infinity_at_hits(labels: Tensor, sampled: Tensor, num_true: int, num_sampled: int, dtype: Any) -> Tensor:
    """[batch, num_sampled]: the lowest number where a sample is a true class of the example, else 0."""
    examples, places, lowest = compute_accidental_hits(labels, sampled, num_true=num_true)
    columns = arrays.reshape(examples, [-1, 1]), arrays.reshape(arrays.cast(places, dtypes.int32), [-1, 1])
    indices = arrays.concat(list(columns), 1, "sparse_indices")
    shape = arrays.concat([arrays.shape(labels)[:1], arrays.expand_dims(num_sampled, 0)], 0)
    if lowest.dtype != dtype:
        lowest = arrays.cast(lowest, dtype)
    result: Tensor = apply_op(
        "SparseToDense", None, sparse_indices=indices, output_shape=shape, sparse_values=lowest, default_value=0.0,
        validate_indices=False,
    )  # fmt: skip
    return result
