"""tf.nn.rnn_cell: cells of recurrent nets, and what can be wrapped around them."""

from __future__ import annotations

from typing import Any

from dtflab.base.missing_names import missing as _missing
from dtflab.nets.rnn_cell import BasicLSTMCell, BasicRNNCell, GRUCell, LSTMCell, LSTMStateTuple, MultiRNNCell, RNNCell
from dtflab.nets.rnn_cell_wrappers import DeviceWrapper, DropoutWrapper, ResidualWrapper


def __getattr__(name: str) -> Any:
    raise _missing("tf.nn.rnn_cell", name, globals())
