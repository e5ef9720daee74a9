"""Sampled classes, each time with a seed: the samples are TensorFlow's."""

from __future__ import annotations

import numpy as np

from tests.op_examples import Example, Values, examples

_TRUE = np.array([[0, 2], [3, 4], [4, 4]], np.int64)


@examples("UniformCandidateSampler", "LogUniformCandidateSampler", "LearnedUnigramCandidateSampler",
          "ThreadUnsafeUnigramCandidateSampler")  # fmt: skip
def candidate_samplers(v: Values) -> list[Example]:
    found = []
    for i, (count, limit) in enumerate([(4, 5), (5, 5), (8, 8), (6, 1000), (300, 1000), (7, 2**20), (3, 3 * 2**29)]):
        if limit > 2**20 and "Unigram" in v.op:
            continue  # some gigabytes of counts
        attrs = {"num_sampled": count, "range_max": limit, "seed": i, "seed2": 7, "num_true": 2}
        found += [v(_TRUE, unique=unique, **attrs) for unique in (True, False)]
    return [*found, v(_TRUE[:0], num_true=2, num_sampled=3, unique=True, range_max=10, seed=3)]


@examples("FixedUnigramCandidateSampler")
def fixed_unigram(v: Values) -> list[Example]:
    counts = [1.0, 5.0, 0.5, 7.0, 3.0, 2.0, 2.0, 0.25]
    common = {"num_true": 2, "seed": 4}
    found = [
        v(_TRUE, unigrams=counts, range_max=8, distortion=power, num_sampled=n, unique=unique, seed2=n, **common)
        for power in (1.0, 0.75, 0.0) for n, unique in ((3, True), (8, True), (200, False))
    ]  # fmt: skip
    many = v.random.uniform(0, 9, 3000).round(3).tolist()
    return [
        *found,
        v(_TRUE, unigrams=many, range_max=3000, num_sampled=500, unique=True, **common),
        v(_TRUE, unigrams=counts, range_max=10, num_reserved_ids=2, num_sampled=8, unique=True, **common),
        v(_TRUE, unigrams=counts[:5] * 2, range_max=5, num_shards=2, shard=1, num_sampled=3, unique=True, **common),
    ]


@examples("AllCandidateSampler")
def all_candidates(v: Values) -> list[Example]:
    return [v(_TRUE, num_true=2, num_sampled=5, unique=unique) for unique in (True, False)]


@examples("ComputeAccidentalHits")
def accidental_hits(v: Values) -> list[Example]:
    sampled = [[4, 9, 0], [4, 4, 3, 4], [7], []]
    found = [v(_TRUE, np.array(some, np.int64), num_true=2) for some in sampled]
    return [*found, v(_TRUE[:0], np.array([1], np.int64), num_true=2)]
