"""Wrappers of cells: dropout, residual connections, a device.

Stands for the `…Wrapper` classes of `python/ops/rnn_cell_impl.py`. Left out: configs.

Rule: a wrapper has no variables and no variable scope; those are of the cell inside.
"""

from __future__ import annotations

import hashlib
import numbers
from collections.abc import Callable
from typing import Any

from dtflab.base import nest
from dtflab.graph.convert import convert_to_tensor
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import device as device_scope, name_scope
from dtflab.graph.static_value import get_static_value
from dtflab.nets.rnn_cell import LSTMStateTuple, RNNCell, assert_like_rnncell
from dtflab.nets.rnn_step import shape_of_size
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.lists.tensor_array import TensorArray
from dtflab.ops.math import functions as math
from dtflab.ops.nn import functions as nn
from dtflab.ops.sampling import functions as sampling


class RNNCellWrapper(RNNCell):
    """A cell around another one."""

    def __init__(self, cell: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        assert_like_rnncell("cell", cell)
        self.cell = cell

    def __call__(  # type: ignore[override]
        self, inputs: Any, state: Any, *args: Any, scope: Any = None, **kwargs: Any
    ) -> Any:
        return self._around(inputs, state, lambda i, s: self.cell(i, s, *args, scope=scope, **kwargs))

    def _around(self, inputs: Any, state: Any, cell: Callable[[Any, Any], Any]) -> Any:
        """(output, new state), with those of `cell(inputs, state)`."""
        raise NotImplementedError

    @property
    def wrapped_cell(self) -> Any:
        return self.cell

    @property
    def state_size(self) -> Any:
        return self.cell.state_size

    @property
    def output_size(self) -> Any:
        return self.cell.output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        with name_scope(f"{type(self).__name__}ZeroState"):
            return self.cell.zero_state(batch_size, dtype)

    @property
    def trainable_weights(self) -> list[Any]:
        return list(self.cell.trainable_weights)

    @property
    def non_trainable_weights(self) -> list[Any]:
        return list(self.cell.non_trainable_weights)


class DeviceWrapper(RNNCellWrapper):
    """The cell on `device`, which is what `tf.device` takes: each layer of a MultiRNNCell can have its own."""

    def __init__(self, cell: Any, device: Any, **kwargs: Any) -> None:
        super().__init__(cell, **kwargs)
        self._device = device

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        with name_scope(f"{type(self).__name__}ZeroState"), device_scope(self._device):
            return self.cell.zero_state(batch_size, dtype)

    def _around(self, inputs: Any, state: Any, cell: Callable[[Any, Any], Any]) -> Any:
        with device_scope(self._device):
            return cell(inputs, state)


class ResidualWrapper(RNNCellWrapper):
    """The output is inputs + output, or `residual_fn(inputs, output)`."""

    def __init__(self, cell: Any, residual_fn: Callable[[Any, Any], Any] | None = None, **kwargs: Any) -> None:
        super().__init__(cell, **kwargs)
        self._residual_fn = residual_fn or _sums

    def _around(self, inputs: Any, state: Any, cell: Callable[[Any, Any], Any]) -> Any:
        output, new_state = cell(inputs, state)
        return self._residual_fn(inputs, output), new_state


def _sums(inputs: Any, outputs: Any) -> Any:
    nest.assert_same_structure(inputs, outputs)
    nest.map_structure(lambda i, o: i.shape.assert_is_compatible_with(o.shape), inputs, outputs)
    return nest.map_structure(lambda i, o: i + o, inputs, outputs)


class DropoutWrapper(RNNCellWrapper):
    """Dropout of the inputs of a cell, its output, and its new state.

    Args:
      input_keep_prob, output_keep_prob, state_keep_prob: the share that is kept; numbers or scalar tensors. Of an
        LSTM's state only h is dropped, never the memory c.
      variational_recurrent: whether the same elements are dropped at all time steps of a run and in all rows of a
        batch; then `dtype` is needed, and `input_size` (without the batch) if inputs are dropped.
      seed: the source of the op seeds.
      dropout_state_filter_visitor: a function of a (part of a) state: whether it may be dropped, or such answers for
        its parts.
    """

    def __init__(
        self, cell: Any, input_keep_prob: Any = 1.0, output_keep_prob: Any = 1.0, state_keep_prob: Any = 1.0,
        variational_recurrent: bool = False, input_size: Any = None, dtype: Any = None, seed: int | None = None,
        dropout_state_filter_visitor: Callable[[Any], Any] | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(cell, dtype=dtype, **kwargs)
        if dropout_state_filter_visitor is not None and not callable(dropout_state_filter_visitor):
            raise TypeError(f"dropout_state_filter_visitor must be callable. Received: {dropout_state_filter_visitor}")
        self._filter = dropout_state_filter_visitor or _all_but_memories
        self._seed, self._variational = seed, variational_recurrent
        self._noise: dict[str, Any] = dict.fromkeys(("input", "state", "output"))
        with name_scope("DropoutWrapperInit"):
            self._keep = {
                "input": _probability("input_keep_prob", input_keep_prob),
                "state": _probability("state_keep_prob", state_keep_prob),
                "output": _probability("output_keep_prob", output_keep_prob),
            }
        if variational_recurrent:
            self._draw_noise(input_size, dtype)

    def _draw_noise(self, input_size: Any, dtype: Any) -> None:
        """Draw one random row for each of the tensors that may be dropped, once per step of the graph."""
        if dtype is None:
            raise ValueError("When variational_recurrent=True, dtype must be provided")
        if _drops(self._keep["input"]):
            if input_size is None:
                raise ValueError(
                    "When variational_recurrent=True and input_keep_prob < 1.0 or is unknown, input_size must be "
                    "provided"
                )
            self._noise["input"] = self._rows("input", input_size, dtype)
        self._noise["state"] = self._rows("state", self.cell.state_size, dtype)
        self._noise["output"] = self._rows("output", self.cell.output_size, dtype)

    def _rows(self, what: str, sizes: Any, dtype: Any) -> list[Tensor]:
        shapes = [arrays.concat(([1], shape_of_size(size).as_list()), 0) for size in nest.flatten(sizes)]
        return [
            sampling.random_uniform(shape, seed=self._seed_of(what, index), dtype=dtype)
            for index, shape in enumerate(shapes)
        ]

    def _seed_of(self, what: str, index: int) -> int | None:
        if self._seed is None:
            return None
        digest = hashlib.md5(f"{self._seed}{what}_{index}".encode(), usedforsecurity=False).hexdigest()
        return int(digest[:8], 16) & 0x7FFFFFFF

    def _around(self, inputs: Any, state: Any, cell: Callable[[Any, Any], Any]) -> Any:
        output, new_state = cell(self._dropped("input", inputs), state)
        new_state = self._dropped("state", new_state, self._filter)
        return self._dropped("output", output), new_state

    def _dropped(self, what: str, values: Any, may_drop: Callable[[Any], Any] = lambda value: True) -> Any:
        keep = self._keep[what]
        if not _drops(keep):
            return values
        flat, allowed = nest.flatten(values), _answers(may_drop, values)
        noise = self._noise[what] or [None] * len(flat)
        found = [
            self._drop(value, keep, row, self._seed_of(what, index)) if allowed[index] else value
            for index, (value, row) in enumerate(zip(flat, noise))
        ]
        return nest.pack_sequence_as(values, found)

    def _drop(self, value: Any, keep: Any, noise: Any, seed: int | None) -> Any:
        if not self._variational:
            return nn.dropout(value, rate=1.0 - keep, seed=seed)
        kept = math.floor(keep + noise)  # 1 with probability `keep`, else 0
        result = math.divide(value, keep) * kept
        result.set_shape(value.shape)
        return result


def _probability(name: str, given: Any) -> Any:
    """A float if the value is known, else a tensor."""
    tensor = convert_to_tensor(given)
    value = get_static_value(tensor)
    if value is None:
        return tensor
    if not 0 <= value <= 1:
        raise ValueError(f"Parameter {name} must be between 0 and 1. Received {value}")
    return float(value)


def _drops(keep: Any) -> bool:
    return not isinstance(keep, numbers.Real) or bool(keep < 1)


def _all_but_memories(state: Any) -> Any:
    if isinstance(state, LSTMStateTuple):
        return LSTMStateTuple(c=False, h=True)
    return not isinstance(state, TensorArray)


def _answers(may_drop: Callable[[Any], Any], value: Any) -> list[bool]:
    """The result of `may_drop` for each leaf of `value`; it is called from the outside in, until it returns False."""
    answer = may_drop(value)
    if answer is False or not nest.is_nested(value):
        return [bool(answer)] * len(nest.flatten(value))
    parts = list(value.values()) if isinstance(value, dict) else list(value)
    said = [True] * len(parts) if answer is True else list(answer)
    return [
        leaf
        for part, yes in zip(parts, said)
        for leaf in (_answers(may_drop, part) if yes else [False] * len(nest.flatten(part)))
    ]
