"""tf.random: random values, by the names that TF1 also has there."""

from dtflab.base.missing_names import missing_in as _missing_in
from dtflab.graph.random_seed import get_seed, set_random_seed
from dtflab.ops.labels.functions import all_candidate_sampler, fixed_unigram_candidate_sampler
from dtflab.ops.labels.functions import learned_unigram_candidate_sampler, log_uniform_candidate_sampler
from dtflab.ops.labels.functions import uniform_candidate_sampler
from dtflab.ops.sampling.functions import categorical, fold_in, multinomial, random_gamma as gamma
from dtflab.ops.sampling.functions import random_normal as normal, random_poisson as poisson, random_shuffle as shuffle
from dtflab.ops.sampling.functions import random_uniform as uniform, split_seed as split, stateless_categorical
from dtflab.ops.sampling.functions import stateless_multinomial, stateless_random_gamma as stateless_gamma
from dtflab.ops.sampling.functions import stateless_random_normal as stateless_normal
from dtflab.ops.sampling.functions import stateless_random_poisson as stateless_poisson
from dtflab.ops.sampling.functions import stateless_random_uniform as stateless_uniform, stateless_truncated_normal
from dtflab.ops.sampling.functions import truncated_normal

__getattr__ = _missing_in("tf.random", globals())
