"""Sequence to sequence: an encoder and a decoder of LSTM layers, with or without attention, unrolled in time.

Sources: Sutskever et al., "Sequence to Sequence Learning" (2014); Luong et al., "Effective Approaches" (2015); Wu et
al., "Google's Neural Machine Translation System" (2016); tensorflow/nmt. Left out: a bidirectional first layer,
residual connections, dropout, and GNMT's additive scores (both kinds of attention score by products here, so that only
the place of the question differs).

Rule: time is unrolled (`static_rnn`), so that the graph alone says what waits for what. With "standard" attention the
decoder asks with its top layer, and the next word's bottom layer waits for the answer; with "gnmt" the bottom layer
asks, and upper layers can be a word behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtflab.base.text_table import plural
from dtflab.graph import dtypes
from dtflab.graph.operation import Tensor
from dtflab.nets.attention import AttentionWrapper, BottomAttentionCell, LuongAttention
from dtflab.nets.layers.core import Dense
from dtflab.nets.rnn_cell import LSTMCell, MultiRNNCell
from dtflab.nets.rnn_cell_wrappers import DeviceWrapper
from dtflab.nets.static_rnn import static_rnn
from dtflab.ops.arrays.functions import placeholder, reshape, stack, unstack
from dtflab.ops.nn.cross_entropy import sparse_softmax_cross_entropy_with_logits
from dtflab.ops.nn.embedding import embedding_lookup
from dtflab.ops.reduce.functions import reduce_mean
from dtflab.ops.variables.get_variable import get_variable
from dtflab.ops.variables.variable_scope import variable_scope

ATTENTIONS = (None, "standard", "gnmt")


def seq2seq(
    batch: int, layers: int = 4, units: int = 1024, vocabulary: int = 32_000, attention: str | None = None,
    steps: int = 25, devices: Sequence[Any] | None = None,
) -> Tensor:  # fmt: skip
    """The loss of translating sentences of `steps` words, each way `layers` LSTMs of `units`.

    `devices`: one for each layer, of the encoder as of the decoder; else where the caller says. ValueError for an
    unknown kind of attention, or for other than one device per layer.
    """
    if attention not in ATTENTIONS:
        raise ValueError(f"attention must be one of {ATTENTIONS}, not {attention!r}.")
    if devices is not None and len(devices) != layers:
        raise ValueError(f"{plural(layers, 'layer')} on {plural(len(devices), 'device')}: each layer needs its own.")
    cells = [_cells(layers, units, devices) for _ in range(2)]
    source, target_in, target_out = (placeholder(dtypes.int32, [batch, steps], name=n) for n in _INPUTS)
    with variable_scope("encoder"):
        words = embedded(source, vocabulary, units)
        encoded, state = static_rnn(MultiRNNCell(cells[0]), words, dtype=dtypes.float32)
    with variable_scope("decoder"):
        cell, first = _decoder(cells[1], attention, stack(encoded, axis=1), state, batch)
        decoded, _ = static_rnn(cell, embedded(target_in, vocabulary, units), first)
        logits = Dense(vocabulary, use_bias=False, name="projection")(reshape(stack(decoded, axis=1), [-1, units]))
    words_out = reshape(target_out, [-1])
    loss: Tensor = reduce_mean(sparse_softmax_cross_entropy_with_logits(labels=words_out, logits=logits))
    return loss


_INPUTS = ("source", "target_in", "target_out")


def _cells(layers: int, units: int, devices: Sequence[Any] | None) -> list[Any]:
    cells = [LSTMCell(units) for _ in range(layers)]
    return cells if devices is None else [DeviceWrapper(cell, d) for cell, d in zip(cells, devices, strict=True)]


def embedded(words: Tensor, vocabulary: int, units: int) -> list[Tensor]:
    """For each time the words' rows of a table, [batch, units]."""
    table = get_variable("embedding", [vocabulary, units])
    return unstack(embedding_lookup(table, words), axis=1)


def _decoder(cells: list[Any], attention: str | None, memory: Tensor, state: Any, batch: int) -> tuple[Any, Any]:
    """The decoder's cell and its first state: the encoder's last, and nothing attended to so far."""
    units = cells[0].output_size
    if attention is None:
        return MultiRNNCell(cells), state
    mechanism = LuongAttention(units, memory)
    if attention == "standard":
        cell: Any = AttentionWrapper(MultiRNNCell(cells), mechanism, attention_layer_size=units)
        return cell, cell.zero_state(batch, dtypes.float32)._replace(cell_state=tuple(state))
    bottom = AttentionWrapper(cells[0], mechanism, output_attention=False)
    first = bottom.zero_state(batch, dtypes.float32)._replace(cell_state=state[0])
    return BottomAttentionCell(bottom, cells[1:]), (first, *state[1:])
