"""tf.nn: the names of TensorFlow's neural network functions."""

from __future__ import annotations

from dtflab.ops.activations import (
    elu as elu,
)
from dtflab.ops.activations import (
    leaky_relu as leaky_relu,
)
from dtflab.ops.activations import (
    relu as relu,
)
from dtflab.ops.activations import (
    relu6 as relu6,
)
from dtflab.ops.activations import (
    selu as selu,
)
from dtflab.ops.activations import (
    softplus as softplus,
)
from dtflab.ops.activations import (
    softsign as softsign,
)
from dtflab.ops.bias import bias_add as bias_add
from dtflab.ops.cross_entropy import (
    log_softmax as log_softmax,
)
from dtflab.ops.cross_entropy import (
    sigmoid_cross_entropy_with_logits as sigmoid_cross_entropy_with_logits,
)
from dtflab.ops.cross_entropy import (
    softmax as softmax,
)
from dtflab.ops.cross_entropy import (
    softmax_cross_entropy_with_logits as softmax_cross_entropy_with_logits,
)
from dtflab.ops.cross_entropy import (
    softmax_cross_entropy_with_logits_v2 as softmax_cross_entropy_with_logits_v2,
)
from dtflab.ops.cross_entropy import (
    sparse_softmax_cross_entropy_with_logits as sparse_softmax_cross_entropy_with_logits,
)
from dtflab.ops.nn import (
    crelu as crelu,
)
from dtflab.ops.nn import (
    dropout as dropout,
)
from dtflab.ops.nn import (
    l2_loss as l2_loss,
)
from dtflab.ops.nn import (
    l2_normalize as l2_normalize,
)
from dtflab.ops.nn import (
    relu_layer as relu_layer,
)
from dtflab.ops.nn import (
    xw_plus_b as xw_plus_b,
)
from dtflab.ops.ranking import in_top_k as in_top_k
from dtflab.ops.ranking import top_k as top_k
from dtflab.ops.unary import sigmoid as sigmoid
from dtflab.ops.unary import tanh as tanh
