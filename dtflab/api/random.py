"""tf.random: random values, by the names that TF1 also has there."""

from __future__ import annotations

from typing import Any

from dtflab.base.missing_names import missing as _missing
from dtflab.graph.random_seed import get_seed, set_random_seed
from dtflab.ops.labels.functions import (
    all_candidate_sampler,
    fixed_unigram_candidate_sampler,
    learned_unigram_candidate_sampler,
    log_uniform_candidate_sampler,
    uniform_candidate_sampler,
)
from dtflab.ops.sampling.functions import (
    categorical,
    fold_in,
    multinomial,
    random_gamma as gamma,
    random_normal as normal,
    random_poisson as poisson,
    random_shuffle as shuffle,
    random_uniform as uniform,
    split_seed as split,
    stateless_categorical,
    stateless_multinomial,
    stateless_random_gamma as stateless_gamma,
    stateless_random_normal as stateless_normal,
    stateless_random_poisson as stateless_poisson,
    stateless_random_uniform as stateless_uniform,
    stateless_truncated_normal,
    truncated_normal,
)


def __getattr__(name: str) -> Any:
    raise _missing("tf.random", name, globals())
