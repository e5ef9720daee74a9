"""tf.random: random values, by the names that TF1 also has there."""

from __future__ import annotations

from typing import Any

from dtflab.base.missing_names import missing as _missing
from dtflab.graph.random_seed import get_seed, set_random_seed
from dtflab.ops.labels.candidate_sampling import (
    all_candidate_sampler,
    fixed_unigram_candidate_sampler,
    learned_unigram_candidate_sampler,
    log_uniform_candidate_sampler,
    uniform_candidate_sampler,
)
from dtflab.ops.sampling.choices import categorical, multinomial, random_gamma as gamma, random_poisson as poisson
from dtflab.ops.sampling.draws import (
    random_normal as normal,
    random_shuffle as shuffle,
    random_uniform as uniform,
    truncated_normal,
)
from dtflab.ops.sampling.stateless import (
    fold_in,
    split_seed as split,
    stateless_categorical,
    stateless_multinomial,
    stateless_random_gamma as stateless_gamma,
    stateless_random_normal as stateless_normal,
    stateless_random_poisson as stateless_poisson,
    stateless_random_uniform as stateless_uniform,
    stateless_truncated_normal,
)


def __getattr__(name: str) -> Any:
    raise _missing("tf.random", name, globals())
