"""Candidate sampling: a few classes to stand for all, so that a loss over many classes stays cheap.

Stands for `core/kernels/candidate_sampler_ops.cc` and `core/ops/candidate_sampling_ops.cc`. How classes are drawn is in
`range_samplers.py`.

Rule: one set of classes for the whole batch. Each op says how often it expects a class among its samples, for the
samples and for the true classes: the losses correct for it. Equal seeds give TensorFlow's samples.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from dtflab.files.env import Env
from dtflab.files.paths import reported
from dtflab.graph.node import Node
from dtflab.graph.op_registry import Op, op
from dtflab.graph.operation import Operation
from dtflab.graph.tensor_shape import TensorShape
from dtflab.ops.labels import range_samplers
from dtflab.ops.messages import invalid
from dtflab.ops.philox import PhiloxStream

_COUNTERS_PER_SAMPLE = 2048 // 4  # what TensorFlow sets aside for each sample, used or not


class _State:
    """The state that a kernel keeps from step to step: its random numbers, and its sampler, which may count."""

    def __init__(self, node: Node, make: Callable[[Node, Env], Any], env: Env) -> None:
        self._stream = PhiloxStream(node["seed"], node["seed2"])
        self._sampler = make(node, env)
        self._lock = threading.Lock()

    def draw(self, true_classes: Any, count: int, unique: bool) -> tuple[Any, Any, Any]:
        """Samples, expected counts of the true classes, expected counts of the samples."""
        sampler = self._sampler
        if unique and count > sampler.range:
            raise invalid("Sampler's range is too small.")
        _check_range(true_classes, sampler.range)
        at = self._stream.stretch(_COUNTERS_PER_SAMPLE * count)

        def words(n: int) -> Any:
            return at(np.arange(-(-n // 4), dtype=np.uint64)).reshape(-1)[:n]

        with self._lock:
            samples, tries = range_samplers.sample(sampler, words, count, unique)
            probabilities = [sampler.probability(classes) for classes in (true_classes, samples)]
            if isinstance(sampler, range_samplers.UnigramSampler):
                sampler.update(true_classes.reshape(-1))
        of_true, of_samples = (range_samplers.expected_count(p, count, tries) for p in probabilities)
        return samples, of_true, of_samples


def _check_range(true_classes: Any, limit: int) -> None:
    wrong = true_classes[(true_classes < 0) | (true_classes >= limit)]
    if len(wrong):
        raise invalid(f"`true_candidate` out of range [0, {limit}), received {wrong[0]}")


def _check_true_classes(true_classes: Any, num_true: int) -> None:
    if true_classes.ndim != 2:
        raise invalid("true_classes must be a matrix")
    if true_classes.shape[1] != num_true:
        raise invalid(f"true_classes must have num_true columns, expected: {true_classes.shape[1]} was: {num_true}")


class _CandidateSampler(Op):
    """Base of the samplers; `sampler(node, env)` makes the one that draws."""

    stateful = needs_ctx = True
    sampler: Callable[[Any, Any], Any]

    def infer(op: Operation) -> list[TensorShape]:
        true_classes = op.inputs[0].shape.with_rank(2)
        sampled = TensorShape([op.get_attr("num_sampled")])
        return [sampled, TensorShape([true_classes[0], op.get_attr("num_true")]), sampled]

    @classmethod
    def bind(cls, node: Node, xp: Any) -> Callable[[Any, Any], Any]:
        make, num_true, count, unique = cls.sampler, node["num_true"], node["num_sampled"], node["unique"]

        def kernel(ctx: Any, true_classes: Any) -> Any:
            _check_true_classes(true_classes, num_true)
            return ctx.state(node.name, lambda: _State(node, make, ctx.env)).draw(true_classes, count, unique)

        return kernel


_OUTPUTS = """(true_classes: int64) ->
       (sampled_candidates: int64, true_expected_count: float, sampled_expected_count: float)
       num_true: int >= 1, num_sampled: int >= 1, unique: bool"""
_SEEDS = "seed: int = 0, seed2: int = 0"
_IN_RANGE = f"{_OUTPUTS}\nrange_max: int >= 1\n{_SEEDS}"


def _of_range(sampler: Callable[[int], Any]) -> Callable[[Any, Any], Any]:
    return lambda node, env: sampler(node["range_max"])


def _unigram(node: Node, env: Env) -> range_samplers.UnigramSampler:
    limit = np.iinfo(np.int32).max
    if node["range_max"] >= limit:
        raise invalid(f"range_max must be less than {limit} for unigram samplers, got {node['range_max']}")
    return range_samplers.UnigramSampler(node["range_max"])


for _how, _sampler in {
    "Uniform": _of_range(range_samplers.UniformSampler),
    "LogUniform": _of_range(range_samplers.LogUniformSampler),
    "LearnedUnigram": _unigram,
    "ThreadUnsafeUnigram": _unigram,
}.items():
    _name = f"{_how}CandidateSampler"
    op(f"{_name}{_IN_RANGE}")(type(_name, (_CandidateSampler,), {"sampler": _sampler}))


@op(f"""FixedUnigramCandidateSampler{_OUTPUTS}
       range_max: int >= 1
       vocab_file: string = ""
       distortion: float = 1.0
       num_reserved_ids: int = 0
       num_shards: int >= 1 = 1
       shard: int >= 0 = 0
       unigrams: list(float) = []
       {_SEEDS}""")
class FixedUnigramCandidateSampler(_CandidateSampler):
    def sampler(node, env):
        path, unigrams = node["vocab_file"], node["unigrams"]
        if not path and not unigrams:
            raise invalid("Must provide either vocab_file or unigrams.")
        if path and unigrams:
            raise invalid("Must only provide one of vocab_file and unigrams.")
        counts = _last_fields(env, path.decode()) if path else unigrams
        ways = [node[name] for name in ("distortion", "num_reserved_ids", "num_shards", "shard")]
        weights = range_samplers.unigram_weights(counts, *ways)
        if len(weights) != node["range_max"]:
            raise invalid(f"range is {node['range_max']} must be equal to weights size  {len(weights)}")
        return range_samplers.FixedUnigramSampler(weights)


def _last_fields(env: Env, path: str) -> list[float]:
    """The numbers at the ends of the lines of a table."""
    with reported(path), env.open(path) as file:
        lines = file.read().decode().splitlines()
    counts = []
    for line in lines:
        try:
            counts.append(float(line.rpartition(",")[2]))
        except ValueError:
            raise invalid(f"Wrong vocabulary format at line: {line}") from None
    return counts


@op(f"AllCandidateSampler{_OUTPUTS}\n{_SEEDS}")
class AllCandidateSampler(Op):
    """No sampling at all: the first `num_sampled` classes, each expected once. To test the losses with."""

    stateful = True
    infer = _CandidateSampler.infer

    def kernel(node, xp, true_classes):
        count, num_true = node["num_sampled"], node["num_true"]
        _check_true_classes(true_classes, num_true)
        _check_range(true_classes, count)
        return np.arange(count), np.ones(true_classes.shape, np.float32), np.ones(count, np.float32)


@op(f"""ComputeAccidentalHits(true_classes: int64, sampled_candidates: int64) ->
       (indices: int32, ids: int64, weights: float)
       num_true: int, {_SEEDS}""")
class ComputeAccidentalHits(Op):
    """Where a sample is a true class of an example: the example, the sample's place, and the lowest float as weight."""

    def infer(op):
        num_true = op.get_attr("num_true")
        op.inputs[0].shape.with_rank(2)[1].assert_is_compatible_with(num_true)
        op.inputs[1].shape.with_rank(1)
        return [TensorShape([None])] * 3

    def kernel(node, xp, true_classes, sampled):
        num_true = node["num_true"]
        if true_classes.ndim != 2 or true_classes.shape[1] != num_true:
            raise invalid("true_candidates must be a batch_size * num_true matrix")
        if sampled.ndim != 1:
            raise invalid("sampled_candidates must be a vector, which is typically an output from CandidateSampler")
        order = np.argsort(sampled, kind="stable")
        last = np.searchsorted(sampled, true_classes.reshape(-1), side="right", sorter=order) - 1
        places = order[last] if len(order) else last
        hits = np.flatnonzero((last >= 0) & (sampled[places] == true_classes.reshape(-1))) if len(order) else order
        weights = np.full(len(hits), np.finfo(np.float32).min, np.float32)
        return (hits // num_true).astype(np.int32), places[hits].astype(np.int64), weights
