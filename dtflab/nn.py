"""tf.nn: the names of TensorFlow's neural network functions."""

from __future__ import annotations

from dtflab.ops.activations import (
    elu as elu,
    leaky_relu as leaky_relu,
    relu as relu,
    relu6 as relu6,
    selu as selu,
    softplus as softplus,
    softsign as softsign,
)
from dtflab.ops.bias import bias_add as bias_add
from dtflab.ops.cross_entropy import (
    log_softmax as log_softmax,
    sigmoid_cross_entropy_with_logits as sigmoid_cross_entropy_with_logits,
    softmax as softmax,
    softmax_cross_entropy_with_logits as softmax_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits_v2 as softmax_cross_entropy_with_logits_v2,
    sparse_softmax_cross_entropy_with_logits as sparse_softmax_cross_entropy_with_logits,
)
from dtflab.ops.nn import (
    crelu as crelu,
    dropout as dropout,
    l2_loss as l2_loss,
    l2_normalize as l2_normalize,
    relu_layer as relu_layer,
    xw_plus_b as xw_plus_b,
)
from dtflab.ops.ranking import in_top_k as in_top_k, top_k as top_k
from dtflab.ops.unary import sigmoid as sigmoid, tanh as tanh
