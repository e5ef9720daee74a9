"""Recurrent cells: one step of a net that keeps a state, (inputs, state) → (output, new state).

Stands for `python/ops/rnn_cell_impl.py`. Left out: configs, masks, cells of CuDNN. The wrappers are in
`rnn_cell_wrappers.py`, the loops over time in `rnn.py`.

Rule: a cell is a layer. Called again (by a loop over time) it finds the variables of its first call, which are under
the scope of the loop: `rnn/basic_lstm_cell/kernel`.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from typing import Any

from dtflab.base import nest, tf_logging
from dtflab.graph import dtypes
from dtflab.graph.convert import constant, convert_to_tensor
from dtflab.graph.graph_keys import GraphKeys
from dtflab.graph.operation import Tensor
from dtflab.graph.scopes import get_collection_ref, name_scope
from dtflab.graph.static_value import get_static_value
from dtflab.graph.tensor_shape import as_shape
from dtflab.nets.layers.activations import activation_of
from dtflab.nets.layers.base import ZEROS, Layer
from dtflab.nets.layers.input_spec import InputSpec
from dtflab.nets.rnn_step import zeros_of
from dtflab.ops.arrays import functions as arrays
from dtflab.ops.indexing import functions as indexing
from dtflab.ops.linalg import functions as linalg
from dtflab.ops.math import clipping, functions as math
from dtflab.ops.nn import functions as nn
from dtflab.ops.variables import initializers, partitioned_variables
from dtflab.ops.variables.variable_scope import get_variable_scope, variable_scope


def assert_like_rnncell(name: str, cell: Any) -> None:
    """Raise TypeError if `cell`, the argument `name`, does not have the attributes of a cell."""
    wrong = [f"'{attr}' property is missing" for attr in ("output_size", "state_size") if not hasattr(cell, attr)]
    if not (hasattr(cell, "zero_state") or hasattr(cell, "get_initial_state")):
        wrong.append("either 'zero_state' or 'get_initial_state' method is required")
    if not callable(cell):
        wrong.append("is not callable")
    if wrong:
        raise TypeError(f"The argument '{name}' ({cell}) is not an RNNCell: {', '.join(wrong)}.")


class RNNCell(Layer):
    """The base class of cells. Subclasses define `state_size` and `output_size` and compute in `call(inputs, state)`.

    A subclass may make its variables in `call` with `tf.get_variable`, or in `build` if it is a LayerRNNCell.
    """

    _opened: Any = None  # the scope of the first call, entered again by the others

    def __call__(  # type: ignore[override]
        self, inputs: Any, state: Any, *args: Any, scope: Any = None, **kwargs: Any
    ) -> Any:
        """(output, new state): [batch, output_size], and tensors as nested as `state_size`, [batch, …] each."""
        if scope is not None:
            with variable_scope(scope, custom_getter=self._noted) as entered:
                return super().__call__(inputs, state, *args, scope=entered, **kwargs)
        if self._opened is None:
            self._opened = variable_scope(get_variable_scope(), custom_getter=self._noted)
        with self._opened:
            return super().__call__(inputs, state, *args, **kwargs)

    def _noted(self, getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Register a variable that `get_variable` makes inside `call` as a weight of this cell."""
        variable = getter(*args, **kwargs)
        shards = list(variable) if hasattr(variable, "_get_partitions") else [variable]
        if not any(shards[0] is known for known in self._trainable_weights + self._non_trainable_weights):
            self._own(shards, any(shards[0] is v for v in get_collection_ref(GraphKeys.TRAINABLE_VARIABLES)))
        return variable

    @property
    def state_size(self) -> Any:
        """Sizes of the state without the batch: an int, a TensorShape, or tuples of them."""
        raise NotImplementedError("Abstract method")

    @property
    def output_size(self) -> Any:
        """Size of the output without the batch."""
        raise NotImplementedError("Abstract method")

    def get_initial_state(self, inputs: Any = None, batch_size: Any = None, dtype: Any = None) -> Any:
        """`zero_state` for a batch of this size, or as large as that of `inputs`."""
        if inputs is not None:
            inputs = convert_to_tensor(inputs, name="inputs")
            batch_size, dtype = _of_inputs(inputs, batch_size, dtype)
        if batch_size is None or dtype is None:
            raise ValueError(
                "batch_size and dtype cannot be None while constructing initial state: "
                f"batch_size={batch_size}, dtype={dtype}"
            )
        return self.zero_state(batch_size, dtype)

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """Zeros, as nested as `state_size`, each [batch_size, size]; `batch_size` is a number or a scalar tensor."""
        with name_scope(f"{type(self).__name__}ZeroState"):
            return nest.map_structure(lambda size: zeros_of(batch_size, size, dtype), self.state_size)


def _of_inputs(inputs: Tensor, batch_size: Any, dtype: Any) -> tuple[Any, Any]:
    """Batch size and dtype of `inputs`. Raises ValueError if the given ones differ."""
    known = inputs.shape.dims[0].value if inputs.shape.dims else None
    given = get_static_value(batch_size) if isinstance(batch_size, Tensor) else batch_size
    if batch_size is not None and known != given:
        raise ValueError(
            "batch size from input tensor is different from the input param. Input tensor batch: "
            f"{known}, batch_size: {batch_size}"
        )
    if dtype is not None and inputs.dtype != dtype:
        raise ValueError(
            "dtype from input tensor is different from the input param. Input tensor dtype: "
            f"{inputs.dtype}, dtype: {dtype}"
        )
    return known or arrays.shape(inputs)[0], inputs.dtype


class LayerRNNCell(RNNCell):
    """A cell that makes its variables in `build`."""

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: Any = None,
        name: Any = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **kwargs)
        _check_dtype(self.dtype)
        self.input_spec = InputSpec(ndim=2)
        self._num_units = num_units
        self._activation: Any = activation_of(activation) if activation else math.tanh

    def __call__(  # type: ignore[override]
        self, inputs: Any, state: Any, *args: Any, scope: Any = None, **kwargs: Any
    ) -> Any:
        return Layer.__call__(self, inputs, state, *args, scope=scope, **kwargs)

    @property
    def state_size(self) -> Any:
        return self._num_units

    @property
    def output_size(self) -> Any:
        return self._num_units

    def _input_depth(self, input_shape: Any) -> int:
        depth = as_shape(input_shape)[-1].value
        if depth is None:
            raise ValueError(f"Expected inputs.shape[-1] to be known, received shape: {input_shape}")
        _check_dtype(self.dtype)
        return int(depth)

    def _add_affine(self, input_shape: Any, outputs: int) -> None:
        """Make the kernel and the bias that compute that many numbers from the inputs and the state."""
        depth = self._input_depth(input_shape) + self._num_units
        self._kernel = self.add_weight("kernel", [depth, outputs])
        self._bias = self.add_weight("bias", [outputs], initializer=ZEROS)
        self.built = True


def _check_dtype(dtype: Any) -> None:
    if dtype is not None and not (dtypes.as_dtype(dtype).is_floating or dtypes.as_dtype(dtype).is_complex):
        raise ValueError(f"RNN cell only supports floating point inputs, but received dtype: {dtype}")


def _affine(inputs: Sequence[Any], kernel: Any, biases: Any) -> Tensor:
    """The concatenated inputs · kernel + biases."""
    return nn.bias_add(linalg.matmul(arrays.concat(inputs, 1), kernel), biases)


class BasicRNNCell(LayerRNNCell):
    """output = new state = activation([inputs, state] · kernel + bias), by default with tanh."""

    def build(self, input_shape: Any) -> None:
        self._add_affine(input_shape, self._num_units)

    def call(self, inputs: Any, state: Any) -> Any:
        _check_dtype(inputs.dtype)
        output = self._activation(_affine([inputs, state], self._kernel, self._bias))
        return output, output


class GRUCell(LayerRNNCell):
    """Gated recurrent unit: with gates r and u, new state = u · state + (1 - u) · activation([inputs, r · state] …)."""

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: Any = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: Any = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_units, activation, reuse, name, dtype, **kwargs)
        self._kernel_initializer, self._bias_initializer = kernel_initializer, bias_initializer

    def build(self, input_shape: Any) -> None:
        units, depth = self._num_units, self._input_depth(input_shape) + self._num_units
        kernels, biases = self._kernel_initializer, self._bias_initializer
        ones = initializers.Constant(1.0) if biases is None else biases
        zeros = ZEROS if biases is None else biases
        self._gate_kernel = self.add_weight("gates/kernel", [depth, 2 * units], initializer=kernels)
        self._gate_bias = self.add_weight("gates/bias", [2 * units], initializer=ones)
        self._candidate_kernel = self.add_weight("candidate/kernel", [depth, units], initializer=kernels)
        self._candidate_bias = self.add_weight("candidate/bias", [units], initializer=zeros)
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        _check_dtype(inputs.dtype)
        gates = math.sigmoid(_affine([inputs, state], self._gate_kernel, self._gate_bias))
        r, u = arrays.split(gates, 2, axis=1)
        candidate = _affine([inputs, r * state], self._candidate_kernel, self._candidate_bias)
        c = self._activation(candidate)
        new_state = u * state + (1 - u) * c
        return new_state, new_state


class LSTMStateTuple(collections.namedtuple("LSTMStateTuple", ("c", "h"))):
    """The state of an LSTM: its memory c and its output h."""

    __slots__ = ()

    @property
    def dtype(self) -> Any:
        if self.c.dtype != self.h.dtype:
            raise TypeError(f"Inconsistent dtypes for internal state: {self.c.dtype} vs {self.h.dtype}")
        return self.c.dtype


class BasicLSTMCell(LayerRNNCell):
    """LSTM without peepholes, clipping and projection; gates in the order i, j (new input), f, o.

    `forget_bias` is added to f, so that an untrained net remembers. The state is an LSTMStateTuple, or with
    `state_is_tuple=False` both parts concatenated in one tensor.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = None,
        reuse: Any = None,
        name: Any = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_units, activation, reuse, name, dtype, **kwargs)
        self._forget_bias, self._state_is_tuple = forget_bias, state_is_tuple

    @property
    def state_size(self) -> Any:
        return LSTMStateTuple(self._num_units, self._num_units) if self._state_is_tuple else 2 * self._num_units

    def build(self, input_shape: Any) -> None:
        self._add_affine(input_shape, 4 * self._num_units)

    def call(self, inputs: Any, state: Any) -> Any:
        _check_dtype(inputs.dtype)
        one = constant(1, dtypes.int32)
        c, h = state if self._state_is_tuple else arrays.split(state, 2, axis=one)
        i, j, f, o = arrays.split(_affine([inputs, h], self._kernel, self._bias), 4, axis=one)
        forget_bias = constant(self._forget_bias, f.dtype)
        kept = math.multiply(c, math.sigmoid(math.add(f, forget_bias)))
        new_c = math.add(kept, math.multiply(math.sigmoid(i), self._activation(j)))
        new_h = math.multiply(self._activation(new_c), math.sigmoid(o))
        return new_h, LSTMStateTuple(new_c, new_h) if self._state_is_tuple else arrays.concat([new_c, new_h], 1)


class LSTMCell(LayerRNNCell):
    """LSTM with peepholes, clipping and a projection of the output.

    Args:
      use_peepholes: whether the gates see the memory c, each through a diagonal matrix.
      cell_clip: c is kept between -cell_clip and cell_clip.
      initializer: of the matrices.
      num_proj, proj_clip: the output is multiplied by a [num_units, num_proj] matrix, and clipped.
      num_unit_shards, num_proj_shards: into how many shards the kernels are cut.
      forget_bias, state_is_tuple, activation: as for BasicLSTMCell.
    """

    def __init__(
        self, num_units: int, use_peepholes: bool = False, cell_clip: float | None = None, initializer: Any = None,
        num_proj: int | None = None, proj_clip: float | None = None, num_unit_shards: int | None = None,
        num_proj_shards: int | None = None, forget_bias: float = 1.0, state_is_tuple: bool = True,
        activation: Any = None, reuse: Any = None, name: Any = None, dtype: Any = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(num_units, activation, reuse, name, dtype, **kwargs)
        self._use_peepholes, self._cell_clip, self._initializer = use_peepholes, cell_clip, initializer
        self._num_proj, self._proj_clip = num_proj, proj_clip
        self._num_unit_shards, self._num_proj_shards = num_unit_shards, num_proj_shards
        self._forget_bias, self._state_is_tuple = forget_bias, state_is_tuple

    @property
    def output_size(self) -> Any:
        return self._num_proj or self._num_units

    @property
    def state_size(self) -> Any:
        sizes = LSTMStateTuple(self._num_units, self.output_size)
        return sizes if self._state_is_tuple else sum(sizes)

    def build(self, input_shape: Any) -> None:
        depth, units, matrices = self._input_depth(input_shape), self._num_units, self._initializer
        shape, shards = [depth + self.output_size, 4 * units], _in_shards(self._num_unit_shards)
        self._kernel = self.add_weight("kernel", shape, initializer=matrices, partitioner=shards)
        self._bias = self.add_weight("bias", [4 * units], initializer=ZEROS)
        if self._use_peepholes:
            self._w_f_diag = self.add_weight("w_f_diag", [units], initializer=matrices)
            self._w_i_diag = self.add_weight("w_i_diag", [units], initializer=matrices)
            self._w_o_diag = self.add_weight("w_o_diag", [units], initializer=matrices)
        if self._num_proj is not None:
            shape, shards = [units, self._num_proj], _in_shards(self._num_proj_shards)
            self._proj_kernel = self.add_weight("projection/kernel", shape, initializer=matrices, partitioner=shards)
        self.built = True

    def call(self, inputs: Any, state: Any) -> Any:
        _check_dtype(inputs.dtype)
        c, m = state if self._state_is_tuple else self._parts(state)
        i, j, f, o = arrays.split(_affine([inputs, m], self._kernel, self._bias), 4, axis=1)
        c = self._memory(i, j, f, c)
        seen = o + self._w_o_diag * c if self._use_peepholes else o
        m = math.sigmoid(seen) * self._activation(c)
        if self._num_proj is not None:
            m = _clipped(linalg.matmul(m, self._proj_kernel), self._proj_clip)
        return m, LSTMStateTuple(c, m) if self._state_is_tuple else arrays.concat([c, m], 1)

    def _parts(self, state: Any) -> tuple[Tensor, Tensor]:
        c = indexing.slice(state, [0, 0], [-1, self._num_units])
        return c, indexing.slice(state, [0, self._num_units], [-1, self.output_size])

    def _memory(self, i: Any, j: Any, f: Any, c: Any) -> Tensor:
        """The new c: the kept part of the old one, and the taken part of the new input j."""
        f = f + self._forget_bias
        if self._use_peepholes:
            kept = math.sigmoid(f + self._w_f_diag * c) * c
            taken = math.sigmoid(i + self._w_i_diag * c) * self._activation(j)
        else:
            kept = math.sigmoid(f) * c
            taken = math.sigmoid(i) * self._activation(j)
        return _clipped(kept + taken, self._cell_clip)


def _in_shards(count: int | None) -> Any:
    return None if count is None else partitioned_variables.fixed_size_partitioner(count)


def _clipped(x: Tensor, limit: float | None) -> Tensor:
    return x if limit is None else clipping.clip_by_value(x, -limit, limit)


class MultiRNNCell(RNNCell):
    """A stack of cells: the output of each is the input of the next.

    The state is a tuple of theirs, or with `state_is_tuple=False` all of them concatenated in one tensor. Their
    variables are under `cell_0`, `cell_1`, …; wrap a cell in a DeviceWrapper to put its layer on another device.
    """

    def __init__(self, cells: Sequence[Any], state_is_tuple: bool = True) -> None:
        super().__init__()
        if not cells:
            raise ValueError("Must specify at least one cell for MultiRNNCell.")
        if not nest.is_nested(cells):
            raise TypeError(f"cells must be a list or tuple, but received: {cells}.")
        if len({id(cell) for cell in cells}) < len(cells):
            tf_logging.warning("Two cells of a MultiRNNCell are the same object and share their weights.")
        if not state_is_tuple and any(nest.is_nested(cell.state_size) for cell in cells):
            raise ValueError(
                "Some cells return tuples of states, but the flag state_is_tuple is not set. "
                f"State sizes are: {[cell.state_size for cell in cells]}"
            )
        self._cells, self._state_is_tuple = cells, state_is_tuple

    @property
    def state_size(self) -> Any:
        sizes = tuple(cell.state_size for cell in self._cells)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> Any:
        return self._cells[-1].output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        with name_scope(f"{type(self).__name__}ZeroState"):
            if self._state_is_tuple:
                return tuple(cell.zero_state(batch_size, dtype) for cell in self._cells)
            return super().zero_state(batch_size, dtype)

    @property
    def trainable_weights(self) -> list[Any]:
        return [w for cell in self._cells for w in cell.trainable_weights] if self.trainable else []

    @property
    def non_trainable_weights(self) -> list[Any]:
        frozen = [] if self.trainable else [w for cell in self._cells for w in cell.trainable_weights]
        return frozen + [w for cell in self._cells for w in cell.non_trainable_weights]

    def call(self, inputs: Any, state: Any) -> Any:
        if self._state_is_tuple and not nest.is_nested(state):
            raise ValueError(f"Expected state to be a tuple of length {len(self.state_size)}, but received: {state}")
        new_states, begin = [], 0
        for index, cell in enumerate(self._cells):
            with variable_scope(f"cell_{index}"):
                if self._state_is_tuple:
                    own = state[index]
                else:
                    own = indexing.slice(state, [0, begin], [-1, cell.state_size])
                    begin += cell.state_size
                inputs, new_state = cell(inputs, own)
                new_states.append(new_state)
        return inputs, tuple(new_states) if self._state_is_tuple else arrays.concat(new_states, 1)
