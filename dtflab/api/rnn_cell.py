"""tf.nn.rnn_cell: cells of recurrent nets, and what can be wrapped around them."""

from dtflab.base.missing_names import missing_in as _missing_in
from dtflab.nets.rnn_cell import BasicLSTMCell, BasicRNNCell, GRUCell, LSTMCell, LSTMStateTuple, MultiRNNCell, RNNCell
from dtflab.nets.rnn_cell_wrappers import DeviceWrapper, DropoutWrapper, ResidualWrapper

__getattr__ = _missing_in("tf.nn.rnn_cell", globals())
