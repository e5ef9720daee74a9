"""A language model: LSTM layers that guess each next word, with the full softmax over all words or a sampled one.

Sources: Jozefowicz et al., "Exploring the Limits of Language Modeling" (2016); LSTM-512-512 with 40,000 words of Abadi
et al., "TensorFlow" (OSDI 2016), section 6.4. With the full softmax each step multiplies, and its gradient fills, the
whole matrix of words; with the sampled one only the rows of the right and of `sampled` other words.
"""

from __future__ import annotations

from typing import Any

from dtflab.graph import dtypes
from dtflab.graph.operation import Tensor
from dtflab.nets.rnn_cell import LSTMCell, MultiRNNCell
from dtflab.nets.static_rnn import static_rnn
from dtflab.ops.arrays.functions import placeholder, reshape, stack
from dtflab.ops.labels.functions import sampled_softmax_loss
from dtflab.ops.linalg.functions import matmul
from dtflab.ops.nn.cross_entropy import sparse_softmax_cross_entropy_with_logits
from dtflab.ops.reduce.functions import reduce_mean
from dtflab.ops.variables.get_variable import get_variable
from dtflab.ops.variables.variable_scope import variable_scope
from dtflab.sim.models.seq2seq import embedded


def language_model(
    batch: int, layers: int = 2, units: int = 512, vocabulary: int = 40_000, steps: int = 20,
    sampled: int | None = None,
) -> Tensor:  # fmt: skip
    """The loss over `steps` words of each row; `sampled`: over that many other words instead of all."""
    words, following = (placeholder(dtypes.int32, [batch, steps], name=name) for name in ("words", "following"))
    with variable_scope("words"):
        rows = embedded(words, vocabulary, units)
    outputs, _ = static_rnn(MultiRNNCell([LSTMCell(units) for _ in range(layers)]), rows, dtype=dtypes.float32)
    x = reshape(stack(outputs, axis=1), [-1, units])
    with variable_scope("softmax"):
        weights, biases = get_variable("weights", [vocabulary, units]), get_variable("biases", [vocabulary])
        loss: Tensor = reduce_mean(_losses(x, weights, biases, reshape(following, [-1]), sampled))
    return loss


def _losses(x: Tensor, weights: Any, biases: Any, words: Tensor, sampled: int | None) -> Any:
    if sampled is None:
        logits = matmul(x, weights, transpose_b=True) + biases
        return sparse_softmax_cross_entropy_with_logits(labels=words, logits=logits)
    right, count = reshape(words, [-1, 1]), weights.shape[0].value
    return sampled_softmax_loss(weights, biases, right, x, sampled, count, remove_accidental_hits=False)
