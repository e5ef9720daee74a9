"""Losses over very many classes and over sequences of labels, and functions of such labels.

Stands for `python/ops/{candidate_sampling_ops,ctc_ops}.py` and their part of `nn_impl.py` and `array_ops.py`.

Rule: `nce_loss` and `sampled_softmax_loss` are for training. The rows of the weights are looked up, so that their
gradients are IndexedSlices of those rows alone; log of how often a class is expected among the samples is taken off its
logit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dtflab.graph import dtypes, random_seed
from dtflab.graph.apply_op import apply_op
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import name_scope
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.linalg.functions import matmul
from dtflab.ops.math import functions as math
from dtflab.ops.messages import renamed
from dtflab.ops.nn.cross_entropy import sigmoid_cross_entropy_with_logits, softmax_cross_entropy_with_logits_v2
from dtflab.ops.nn.embedding import embedding_lookup
from dtflab.ops.reduce import functions as reduce
from dtflab.ops.sparse.sparse_tensor import SparseTensor, is_sparse
from dtflab.ops.variables.partitioned_variables import PartitionedVariable

# ---- candidate samplers ----


def _sampler(how: str, summary: str, largest: float = np.inf) -> Callable[..., Any]:
    """The function of an op that draws from the classes [0, range_max), of which there are at most `largest`."""

    def function(
        true_classes: Any,
        num_true: int,
        num_sampled: int,
        unique: bool,
        range_max: int,
        seed: Any = None,
        name: str | None = None,
    ) -> Any:
        if range_max > largest:
            raise ValueError(f"Value of range_max:{range_max} is too large to handle")
        return _sampled(how, true_classes, num_true, num_sampled, unique, seed, name, range_max=range_max)

    return arrays.described(function, f"{how}CandidateSampler", summary)


uniform_candidate_sampler = _sampler(
    "Uniform",
    "Classes of [0, range_max), all equally likely: (samples, expected counts of the true classes, and of those).",
)
log_uniform_candidate_sampler = _sampler(
    "LogUniform", "Classes by Zipf's law: for words that are numbered by how often they occur, the most frequent first."
)
learned_unigram_candidate_sampler = _sampler(
    "LearnedUnigram",
    "Classes by how often they were among the `true_classes` of earlier steps.",
    np.iinfo(np.int32).max,
)


def fixed_unigram_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    vocab_file: str = "",
    distortion: float = 1.0,
    num_reserved_ids: int = 0,
    num_shards: int = 1,
    shard: int = 0,
    unigrams: Sequence[float] = (),
    seed: Any = None,
    name: str | None = None,
) -> Any:
    """Classes by counts to the power of `distortion`: `unigrams`, or the last fields of the lines of `vocab_file`."""
    weights: dict[str, Any] = {"vocab_file": vocab_file, "distortion": distortion, "unigrams": list(unigrams)}
    weights |= {"num_reserved_ids": num_reserved_ids, "num_shards": num_shards, "shard": shard, "range_max": range_max}
    return _sampled("FixedUnigram", true_classes, num_true, num_sampled, unique, seed, name, **weights)


def all_candidate_sampler(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, seed: Any = None, name: str | None = None
) -> Any:
    """All classes of [0, num_sampled), each expected once."""
    return _sampled("All", true_classes, num_true, num_sampled, unique, seed, name)


def _sampled(
    how: str, true_classes: Any, num_true: int, num_sampled: int, unique: bool, seed: Any, name: Any, **attrs: Any
) -> Any:
    attrs |= {"num_true": num_true, "num_sampled": num_sampled, "unique": unique}
    attrs["seed"], attrs["seed2"] = random_seed.get_seed(seed)
    return apply_op(f"{how}CandidateSampler", name, true_classes=true_classes, **attrs)


def compute_accidental_hits(
    true_classes: Any, sampled_candidates: Any, num_true: int, seed: Any = None, name: str | None = None
) -> Any:
    """(examples, places, weights): where a sample is one of an example's true classes; the weights are -3.4e38."""
    seed1, seed2 = random_seed.get_seed(seed)
    classes = {"true_classes": true_classes, "sampled_candidates": sampled_candidates, "num_true": num_true}
    return apply_op("ComputeAccidentalHits", name, **classes, seed=seed1, seed2=seed2)


# ---- losses over the true classes and a few others ----


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
    `inputs` [batch, dim]. `sampled_values` is the result of a candidate sampler, by default the log-uniform one.
    """
    sampling = {"num_sampled": num_sampled, "num_true": num_true, "range_max": num_classes, "unique": True}
    ways = sampled_values, remove_accidental_hits, partition_strategy
    logits, targets = _compute_sampled_logits(weights, biases, labels, inputs, sampling, ways, name)
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
    classes = {"num_sampled": num_sampled, "num_true": num_true, "range_max": num_classes}
    sampling = {**classes, "unique": True, "seed": seed}
    ways = sampled_values, remove_accidental_hits, partition_strategy
    logits, targets = _compute_sampled_logits(weights, biases, labels, inputs, sampling, ways, name)
    targets = arrays.stop_gradient(targets, name="labels_stop_gradient")
    return softmax_cross_entropy_with_logits_v2(labels=targets, logits=logits)


def _compute_sampled_logits(
    weights: Any, biases: Any, labels: Any, inputs: Any, sampling: dict[str, Any], ways: tuple[Any, ...], name: str
) -> tuple[Tensor, Tensor]:
    """Logits and labels, [batch, num_true + num_sampled] each; `sampling` says how to sample if there are no values."""
    weights = list(weights) if isinstance(weights, PartitionedVariable | list) else [weights]
    num_true, (sampled_values, remove_accidental_hits, partition_strategy) = sampling["num_true"], ways
    with name_scope(name, "compute_sampled_logits", [*weights, biases, inputs, labels]):
        if labels.dtype != dtypes.int64:
            labels = arrays.cast(labels, dtypes.int64)
        flat = arrays.reshape(labels, [-1])
        if sampled_values is None:
            sampled_values = log_uniform_candidate_sampler(labels, **sampling)
        sampled, true_count, sampled_count = (arrays.stop_gradient(s) for s in sampled_values)
        sampled = arrays.cast(sampled, dtypes.int64)
        true, others = _logits(weights, biases, flat, sampled, inputs, num_true, partition_strategy)
        if remove_accidental_hits:
            others += _minus_infinity_at_hits(labels, sampled, num_true, sampling["num_sampled"], others.dtype)
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
    true_rows = indexing.slice(rows, [0, 0], arrays.stack([arrays.shape(flat)[0], -1]))
    sampled_rows = indexing.slice(rows, arrays.stack([arrays.shape(flat)[0], 0]), [-1, -1])
    others = matmul(inputs, sampled_rows, transpose_b=True)
    offsets = _looked_up(biases, ids, strategy, inputs.dtype)
    true_offsets = indexing.slice(offsets, [0], arrays.shape(flat))
    sampled_offsets = indexing.slice(offsets, arrays.shape(flat), [-1])
    true = _dot_products(inputs, true_rows, num_true) + arrays.reshape(true_offsets, [-1, num_true])
    return true, others + sampled_offsets


def _looked_up(params: Any, ids: Tensor, strategy: str, dtype: Any) -> Tensor:
    found = embedding_lookup(params, ids, partition_strategy=strategy)
    return arrays.cast(found, dtype) if found.dtype != dtype else found


def _dot_products(inputs: Any, true_rows: Tensor, num_true: int) -> Tensor:
    """[batch, num_true]: each input times the rows of its own true classes."""
    dim = arrays.shape(true_rows)[1:2]
    per_example = arrays.concat([[-1, num_true], dim], 0)
    products = math.multiply(arrays.expand_dims(inputs, 1), arrays.reshape(true_rows, per_example))
    matrix = arrays.reshape(products, arrays.concat([[-1], dim], 0))
    return arrays.reshape(_sum_rows(matrix), [-1, num_true])


def _sum_rows(x: Tensor) -> Tensor:
    """The sum of each row, as a product with ones, which was faster than a reduction."""
    ones = arrays.ones(arrays.stack([arrays.shape(x)[1], 1]), x.dtype)
    return arrays.reshape(matmul(x, ones), [-1])


def _minus_infinity_at_hits(labels: Tensor, sampled: Tensor, num_true: int, num_sampled: int, dtype: Any) -> Tensor:
    """[batch, num_sampled]: the lowest number where a sample is a true class of the example, else 0."""
    examples, places, lowest = compute_accidental_hits(labels, sampled, num_true=num_true)
    columns = arrays.reshape(examples, [-1, 1]), arrays.reshape(arrays.cast(places, dtypes.int32), [-1, 1])
    indices = arrays.concat(list(columns), 1, "sparse_indices")
    shape = arrays.concat([arrays.shape(labels)[:1], arrays.expand_dims(num_sampled, 0)], 0)
    if lowest.dtype != dtype:
        lowest = arrays.cast(lowest, dtype)
    where = {"sparse_indices": indices, "output_shape": shape, "validate_indices": False}
    return apply_op("SparseToDense", **where, sparse_values=lowest, default_value=0.0)


# ---- connectionist temporal classification ----


def ctc_loss(
    labels: Any,
    inputs: Any = None,
    sequence_length: Any = None,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False,
    time_major: bool = True,
    logits: Any = None,
) -> Tensor:
    """-log p(labels) of each example, [batch]; `labels` is a sparse int32 [batch, time].

    `inputs` (or `logits`) are [time, batch, classes], or [batch, time, classes] unless `time_major`; the last class is
    the blank.
    """
    if not isinstance(labels, SparseTensor):
        text = f"Received labels={labels} of type: {type(labels).__name__}"
        raise TypeError(f"Expected argument `labels` to be a SparseTensor. {text}")
    inputs = convert_to_tensor(renamed("logits", logits, "inputs", inputs), name="logits")
    if not time_major:
        inputs = arrays.transpose(inputs, [1, 0, 2])
    dtype = inputs.dtype
    short = dtype in (dtypes.float16, dtypes.bfloat16)
    inputs = arrays.cast(inputs, dtypes.float32) if short else inputs
    given = {"labels_indices": labels.indices, "labels_values": labels.values, "sequence_length": sequence_length}
    ways = {
        "preprocess_collapse_repeated": preprocess_collapse_repeated,
        "ctc_merge_repeated": ctc_merge_repeated,
        "ignore_longer_outputs_than_inputs": ignore_longer_outputs_than_inputs,
    }
    loss: Tensor = apply_op("CTCLoss", inputs=inputs, **given, **ways)[0]
    return arrays.cast(loss, dtype) if short else loss


Decoded = tuple[list[SparseTensor], Tensor]


def ctc_greedy_decoder(
    inputs: Any, sequence_length: Any, merge_repeated: bool = True, blank_index: int | None = None
) -> Decoded:
    """The best class of each step: ([sparse int64 [batch, labels]], [batch, 1] minus the sum of their logits).

    `inputs` are [time, batch, classes]; blanks are left out, and with `merge_repeated` a label that repeats itself
    without a blank between counts once.
    """
    blank = {} if blank_index is None else {"blank_index": blank_index}
    given = {"inputs": inputs, "sequence_length": sequence_length, "merge_repeated": merge_repeated}
    indices, values, shape, scores = apply_op("CTCGreedyDecoder", **given, **blank)
    return [SparseTensor(indices, values, shape)], scores


def ctc_beam_search_decoder(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1, merge_repeated: bool = True
) -> Decoded:
    """The `top_paths` likeliest sequences of labels: (a sparse tensor for each, [batch, top_paths] their log p).

    `beam_width` sequences are kept in each step. `merge_repeated` also merges repeated labels.
    """
    given = {"inputs": inputs, "sequence_length": sequence_length}
    ways = {"beam_width": beam_width, "top_paths": top_paths, "merge_repeated": merge_repeated}
    indices, values, shapes, scores = apply_op("CTCBeamSearchDecoder", **given, **ways)
    return [SparseTensor(*parts) for parts in zip(indices, values, shapes)], scores


def ctc_beam_search_decoder_v2(inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1) -> Decoded:
    """`ctc_beam_search_decoder` that keeps repeated labels."""
    return ctc_beam_search_decoder(inputs, sequence_length, beam_width, top_paths, merge_repeated=False)


def collapse_repeated(labels: Any, seq_length: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """[batch, time] labels of which runs of equal ones count once, shifted to the left, 0 behind; and their lengths."""
    with name_scope(name, "collapse_repeated_labels", [labels, seq_length]):
        labels, seq_length = convert_to_tensor(labels, name="labels"), convert_to_tensor(seq_length, name="seq_length")
        first = arrays.ones_like(labels[:, :1], dtypes.bool)
        kept = arrays.concat([first, math.not_equal(labels[:, 1:], labels[:, :-1])], axis=1)
        kept = math.logical_and(kept, indexing.sequence_mask(seq_length, maxlen=_size(labels, 1)))
        lengths = reduce.reduce_sum(arrays.cast(kept, dtypes.int32), axis=1)
        longest = reduce.reduce_max(lengths)
        moved = _moved(labels, kept, indexing.sequence_mask(lengths, maxlen=longest))
        return arrays.reshape(moved, [_size(labels, 0), longest]), arrays.cast(lengths, seq_length.dtype)


def _moved(labels: Tensor, kept: Tensor, goals: Tensor) -> Tensor:
    """The labels that are kept, at the places that are goals: both in the order of rows; as a vector."""
    labels, kept, goals = (arrays.reshape(x, [-1]) for x in (labels, kept, goals))
    places = arrays.range(_size(goals, 0))
    goal_rows = arrays.expand_dims(indexing.boolean_mask(places, goals), axis=1)
    return indexing.scatter_nd(goal_rows, indexing.boolean_mask(labels, kept), arrays.shape(goals))


def _size(tensor: Tensor, axis: int) -> Any:
    return tensor.shape[axis].value or arrays.shape(tensor)[axis]


# ---- edit distance ----


def edit_distance(
    hypothesis: SparseTensor, truth: SparseTensor, normalize: bool = True, name: str = "edit_distance"
) -> Tensor:
    """Levenshtein's distance of the sequences in the last dimension of two SparseTensors, float32.

    With `normalize` it is divided by the length of the truth: infinite if that is empty and the hypothesis is not.
    TypeError if one of them is not sparse.
    """
    for what, value in (("Hypothesis", hypothesis), ("Truth", truth)):
        if not is_sparse(value):
            raise TypeError(f"{what} must be a SparseTensor.")
    given: dict[str, Any] = {"normalize": normalize}
    for what, value in (("hypothesis", hypothesis), ("truth", truth)):
        sparse = value if isinstance(value, SparseTensor) else SparseTensor(*value)
        given |= {f"{what}_indices": sparse.indices, f"{what}_values": sparse.values}
        given[f"{what}_shape"] = sparse.dense_shape
    return apply_op("EditDistance", name, **given)
