"""A ranker: large tables of which each example reads a few rows, and a small dense net behind them.

Sources: Cheng et al., "Wide & Deep Learning" (2016), for the shape; Covington et al., "Deep Neural Networks for YouTube
Recommendations" (2016), for the sizes (tables of a million rows, layers of 1024, 512, 256). Its gradients by the tables
are IndexedSlices, so little travels, however large the model.
"""

from __future__ import annotations

from collections.abc import Sequence

from dtflab.graph import dtypes
from dtflab.graph.operation import Tensor
from dtflab.nets import layers
from dtflab.ops.arrays.functions import concat, placeholder
from dtflab.ops.nn.cross_entropy import sigmoid_cross_entropy_with_logits
from dtflab.ops.nn.embedding import embedding_lookup
from dtflab.ops.nn.functions import relu
from dtflab.ops.reduce.functions import reduce_mean
from dtflab.ops.variables.get_variable import get_variable


def ranker(
    batch: int, tables: int = 8, rows: int = 1_000_000, depth: int = 64, ids: int = 10,
    hidden: Sequence[int] = (1024, 512, 256),
) -> Tensor:  # fmt: skip
    """The loss of guessing a click from `ids` numbers for each of `tables` features, each a row of `depth`."""
    means = []
    for number in range(tables):
        looked_up = placeholder(dtypes.int32, [batch, ids], name=f"ids_{number}")
        table = get_variable(f"embedding_{number}/weights", [rows, depth])
        means.append(reduce_mean(embedding_lookup(table, looked_up), 1))
    x = concat(means, 1)
    for index, units in enumerate(hidden):
        x = layers.dense(x, units, relu, name=f"hidden_{index}")
    clicks = placeholder(dtypes.float32, [batch, 1], name="clicks")
    logits = layers.dense(x, 1, name="click")
    loss: Tensor = reduce_mean(sigmoid_cross_entropy_with_logits(labels=clicks, logits=logits))
    return loss
