"""Attention for small encoder–decoder nets: at each step the decoder reads a weighted mean of the encoder's outputs,
with weights that it computes.

Stands for `tf.contrib.seq2seq` (attention_wrapper.py, decoder.py, basic_decoder.py, loss.py). Left out: beam search,
monotonic attention, helpers that sample.

Rule: a score per row of the memory, made of a query (the output of a cell), goes through softmax; the weights are the
alignments, and their mean of the memory is the context. `AttentionWrapper` around all layers queries with the output of
the top one, so the next step's bottom layer waits for all layers. `BottomAttentionCell` queries with the output of the
bottom one, and upper layers on other devices can work while the bottom one is at the next step (Wu et al., Google's
Neural Machine Translation System, 2016).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dtflab.graph import dtypes
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import control_dependencies
from dtflab.nets.layers.core import Dense
from dtflab.nets.raw_rnn import raw_rnn
from dtflab.nets.rnn import dynamic_rnn
from dtflab.nets.rnn_cell import RNNCell
from dtflab.nets.rnn_step import zeros_of
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.arrays.functions import stack
from dtflab.ops.assertions import functions as assertions
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.indexing.functions import sequence_mask
from dtflab.ops.linalg import functions as linalg
from dtflab.ops.math import functions as math
from dtflab.ops.nn import cross_entropy
from dtflab.ops.reduce import functions as reduce
from dtflab.ops.reduce.functions import argmax
from dtflab.ops.variables import initializers
from dtflab.ops.variables.get_variable import get_variable
from dtflab.ops.variables.variable_scope import variable_scope


class AttentionMechanism:
    """A memory [batch, time, depth]; called with a query [batch, size], it returns the alignments.

    With `memory_sequence_length` [batch], places past a row's end have weight 0; each row has at least one place.
    """

    def __init__(self, num_units: int, memory: Any, memory_sequence_length: Any, name: str) -> None:
        memory = convert_to_tensor(memory, name="memory")
        self.time = arrays.shape(memory)[1]
        self.mask: Any = None
        if memory_sequence_length is not None:
            lengths = convert_to_tensor(memory_sequence_length)
            words = "All values in memory_sequence_length must be greater than zero."
            with control_dependencies([assertions.assert_positive(lengths, message=words)]):
                self.mask = sequence_mask(lengths, self.time)
            memory *= arrays.expand_dims(arrays.cast(self.mask, memory.dtype), 2)
        self.values, self.num_units = memory, num_units
        self.keys = Dense(num_units, use_bias=False, name="memory_layer")(memory)
        self._scope = name

    def __call__(self, query: Tensor) -> Tensor:
        """Weights [batch, time] whose sum is 1."""
        with variable_scope(self._scope):
            scores = self.scores(query)
            if self.mask is not None:
                scores = indexing.where_v2(self.mask, scores, convert_to_tensor(-np.inf, scores.dtype))
            return cross_entropy.softmax(scores)

    def scores(self, query: Tensor) -> Tensor:
        """How well each row of the memory fits the query, [batch, time]."""
        raise NotImplementedError

    def context(self, alignments: Tensor) -> Tensor:
        """The mean of the memory by these weights, [batch, depth]."""
        return arrays.squeeze(linalg.matmul(arrays.expand_dims(alignments, 1), self.values), [1])


class LuongAttention(AttentionMechanism):
    """score = query · key (Luong et al., 2015): the query has `num_units` columns. With `scale`, times a weight."""

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        scale: bool = False,
        name: str = "luong_attention",
    ) -> None:
        super().__init__(num_units, memory, memory_sequence_length, name)
        self._scale = scale

    def scores(self, query: Tensor) -> Tensor:
        if query.shape[-1].value != self.num_units:
            raise ValueError(
                f"Luong's attention multiplies queries and keys: the query has size {query.shape[-1]}, the "
                f"keys {self.num_units}. Make num_units equal to the output size of the cell."
            )
        products = linalg.matmul(arrays.expand_dims(query, 1), self.keys, transpose_b=True)
        scores: Tensor = arrays.squeeze(products, [1])
        if self._scale:
            scores = get_variable("attention_g", [], query.dtype, initializers.Ones()) * scores
        return scores


class BahdanauAttention(AttentionMechanism):
    """score = v · tanh(W query + key) (Bahdanau et al., 2014). With `normalize`, the length of v is a weight."""

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        normalize: bool = False,
        name: str = "bahdanau_attention",
    ) -> None:
        super().__init__(num_units, memory, memory_sequence_length, name)
        self._normalize = normalize
        self._query_layer = Dense(num_units, use_bias=False, name="query_layer")

    def scores(self, query: Tensor) -> Tensor:
        v = get_variable("attention_v", [self.num_units], query.dtype)
        sums = self.keys + arrays.expand_dims(self._query_layer(query), 1)
        if self._normalize:
            first = initializers.Constant(self.num_units**-0.5)
            length = get_variable("attention_g", [], query.dtype, first)
            v = length * v * math.rsqrt(reduce.reduce_sum(math.square(v)))
            sums += get_variable("attention_b", [self.num_units], query.dtype, initializers.Zeros())
        return reduce.reduce_sum(v * math.tanh(sums), [2])


class AttentionWrapperState(NamedTuple):
    """The state of the wrapped cell, the last attention, and its weights."""

    cell_state: Any
    attention: Any
    alignments: Any


class AttentionWrapper(RNNCell):
    """A cell whose input includes the last attention, and whose output is the query for `mechanism`.

    The attention is the context, or with `attention_layer_size` a product of [output, context] with a matrix. It is
    also the wrapper's output, unless `output_attention` is False.
    """

    def __init__(
        self,
        cell: Any,
        mechanism: AttentionMechanism,
        attention_layer_size: int | None = None,
        output_attention: bool = True,
        name: str | None = None,
    ) -> None:
        super().__init__(name=name)
        if not isinstance(mechanism, AttentionMechanism):
            raise TypeError(f"An AttentionWrapper needs a LuongAttention or BahdanauAttention, not {mechanism!r}.")
        self.cell, self.mechanism, self._output_attention = cell, mechanism, output_attention
        self._size = attention_layer_size or mechanism.values.shape[-1].value
        self._layer = None
        if attention_layer_size is not None:
            self._layer = Dense(attention_layer_size, use_bias=False, name="attention_layer")

    @property
    def output_size(self) -> Any:
        return self._size if self._output_attention else self.cell.output_size

    @property
    def state_size(self) -> Any:
        return AttentionWrapperState(self.cell.state_size, self._size, self.mechanism.values.shape[1].value)

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        weights = arrays.zeros(stack([batch_size, self.mechanism.time]), dtype)
        return AttentionWrapperState(
            self.cell.zero_state(batch_size, dtype), zeros_of(batch_size, self._size, dtype), weights
        )

    def call(self, inputs: Any, state: Any) -> Any:
        output, cell_state = self.cell(arrays.concat([inputs, state.attention], -1), state.cell_state)
        alignments = self.mechanism(output)
        attention = self.mechanism.context(alignments)
        if self._layer is not None:
            attention = self._layer(arrays.concat([output, attention], 1))
        result = attention if self._output_attention else output
        return result, AttentionWrapperState(cell_state, attention, alignments)


class BottomAttentionCell(RNNCell):
    """Layers of which only the bottom one queries the memory; its attention is part of the others' input.

    `bottom` is an AttentionWrapper with `output_attention=False`. The attention is that of the previous step, so that
    upper layers do not wait for it; with `new_attention` it is that of this step.
    """

    def __init__(self, bottom: AttentionWrapper, upper: Sequence[Any], new_attention: bool = False) -> None:
        super().__init__()
        if not isinstance(bottom.state_size, AttentionWrapperState):
            raise TypeError(
                f"The bottom layer must be an AttentionWrapper, with output_attention=False, not {bottom!r}."
            )
        self.bottom, self.upper, self._new = bottom, list(upper), new_attention

    @property
    def output_size(self) -> Any:
        return self.upper[-1].output_size if self.upper else self.bottom.output_size

    @property
    def state_size(self) -> Any:
        return tuple(cell.state_size for cell in (self.bottom, *self.upper))

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        return tuple(cell.zero_state(batch_size, dtype) for cell in (self.bottom, *self.upper))

    def call(self, inputs: Any, state: Any) -> Any:
        with variable_scope("cell_0"):
            output, first = self.bottom(inputs, state[0])
        attention = (first if self._new else state[0]).attention
        states = [first]
        for index, (cell, own) in enumerate(zip(self.upper, state[1:]), 1):
            with variable_scope(f"cell_{index}"):
                output, new = cell(arrays.concat([output, attention], -1), own)
            states.append(new)
        return output, tuple(states)


# -- decoding -----------------------------------------------------------------------------------------


Function = Callable[[Any], Any]  # of a tensor


def teacher_forced(
    cell: Any, inputs: Any, sequence_length: Any, initial_state: Any, output_layer: Function, scope: Any = None
) -> tuple[Tensor, Any]:
    """(logits [batch, time, …], last state) where each step's input is the right previous word: [batch, time, size]."""
    outputs, state = dynamic_rnn(cell, inputs, sequence_length, initial_state, scope=scope or "decoder")
    return output_layer(outputs), state


def sequence_loss(logits: Any, targets: Any, weights: Any) -> Tensor:
    """The mean cross entropy of `targets` [batch, time], integers, each counted by its weight."""
    losses = cross_entropy.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits)
    return reduce.reduce_sum(losses * weights) / reduce.reduce_sum(weights)


class GreedyResult(NamedTuple):
    """Words [batch, time], alignments [batch, time, memory's time], and how many of the words count, [batch]."""

    words: Tensor
    alignments: Tensor
    lengths: Tensor


def greedy(
    cell: Any,
    embed: Function,
    start: Any,
    end_word: int,
    initial_state: Any,
    output_layer: Function,
    maximum: int,
    scope: Any = None,
) -> GreedyResult:
    """The likeliest word at each step, which is the next input, until all rows have `end_word`, or `maximum` steps.

    `start` [batch] are the first words; `embed` makes inputs [batch, size] of words. The cell is one of the two here,
    or one whose state has `.alignments`; after a call of `teacher_forced` it uses the same variables. Past a row's end,
    words and alignments are 0.
    """
    start = arrays.cast(start, dtypes.int32)

    def loop_fn(time: Any, output: Any, state: Any, progress: Any) -> Any:
        if output is None:
            over = arrays.fill(arrays.shape(start), maximum <= 0)
            first = start[0], _alignments(initial_state)[0]  # shapes and dtypes of an emission
            return over, embed(start), initial_state, first, (over, arrays.zeros_like(start))
        words = arrays.cast(argmax(output_layer(output), 1), dtypes.int32)
        before, lengths = progress
        over = math.logical_or(before, math.logical_or(math.equal(words, end_word), time >= maximum))
        lengths += 1 - arrays.cast(before, dtypes.int32)
        return over, embed(words), state, (words, _alignments(state)), (over, lengths)

    (words, alignments), _, (_, lengths) = raw_rnn(cell, loop_fn, scope=scope or "decoder")
    by_row = arrays.transpose(words.stack()), arrays.transpose(alignments.stack(), [1, 0, 2])
    return GreedyResult(*by_row, lengths)


def _alignments(state: Any) -> Tensor:
    """The weights in the state of one of the cells here."""
    asked = state[0] if isinstance(state, tuple) and not hasattr(state, "alignments") else state
    if not hasattr(asked, "alignments"):
        raise TypeError(
            "greedy needs the state of an AttentionWrapper or BottomAttentionCell, for example cell.zero_state(…)."
        )
    return asked.alignments
