"""tf.nn: the names of TensorFlow's neural network functions."""

from dtflab.api import rnn_cell
from dtflab.base.missing_names import missing_in as _missing_in
from dtflab.nets.average_loss import compute_average_loss, scale_regularization_loss
from dtflab.nets.raw_rnn import raw_rnn
from dtflab.nets.rnn import bidirectional_dynamic_rnn, dynamic_rnn
from dtflab.nets.static_rnn import static_bidirectional_rnn, static_rnn, static_state_saving_rnn
from dtflab.ops.arrays.functions import depth_to_space, space_to_batch, space_to_depth
from dtflab.ops.conv.atrous import with_space_to_batch
from dtflab.ops.conv.functions import atrous_conv2d, atrous_conv2d_transpose, conv1d, conv1d_transpose, conv2d
from dtflab.ops.conv.functions import conv2d_backprop_filter, conv2d_backprop_input, conv2d_transpose, conv3d
from dtflab.ops.conv.functions import conv3d_backprop_filter_v2, conv3d_transpose, conv_transpose, convolution
from dtflab.ops.conv.functions import depthwise_conv2d, depthwise_conv2d_native, depthwise_conv2d_native_backprop_filter
from dtflab.ops.conv.functions import depthwise_conv2d_native_backprop_input, dilation2d, erosion2d, separable_conv2d
from dtflab.ops.labels.functions import all_candidate_sampler, collapse_repeated, compute_accidental_hits
from dtflab.ops.labels.functions import ctc_beam_search_decoder, ctc_beam_search_decoder_v2, ctc_greedy_decoder
from dtflab.ops.labels.functions import ctc_loss, fixed_unigram_candidate_sampler, learned_unigram_candidate_sampler
from dtflab.ops.labels.functions import log_uniform_candidate_sampler, nce_loss, sampled_softmax_loss
from dtflab.ops.labels.functions import uniform_candidate_sampler
from dtflab.ops.math.functions import sigmoid, tanh
from dtflab.ops.nn.cross_entropy import log_softmax, sigmoid_cross_entropy_with_logits, softmax
from dtflab.ops.nn.cross_entropy import softmax_cross_entropy_with_logits, softmax_cross_entropy_with_logits_v2
from dtflab.ops.nn.cross_entropy import sparse_softmax_cross_entropy_with_logits, weighted_cross_entropy_with_logits
from dtflab.ops.nn.embedding import embedding_lookup, embedding_lookup_sparse, safe_embedding_lookup_sparse
from dtflab.ops.nn.functions import bias_add, crelu, dropout, elu, fused_batch_norm, in_top_k, l2_loss, l2_normalize
from dtflab.ops.nn.functions import leaky_relu, local_response_normalization, log_poisson_loss, relu, relu6, relu_layer
from dtflab.ops.nn.functions import selu, softplus, softsign, swish, swish as silu, top_k, xw_plus_b, zero_fraction
from dtflab.ops.nn.moments import batch_norm_with_global_normalization, batch_normalization, moments, normalize_moments
from dtflab.ops.nn.moments import sufficient_statistics, weighted_moments
from dtflab.ops.pool.functions import avg_pool, avg_pool1d, avg_pool3d, avg_pool_v2, fractional_avg_pool
from dtflab.ops.pool.functions import fractional_max_pool, max_pool, max_pool1d, max_pool2d, max_pool3d, max_pool_v2
from dtflab.ops.pool.functions import max_pool_with_argmax, pool

avg_pool2d = avg_pool
conv3d_backprop_filter = conv3d_backprop_filter_v2
depthwise_conv2d_backprop_filter = depthwise_conv2d_native_backprop_filter
depthwise_conv2d_backprop_input = depthwise_conv2d_native_backprop_input
lrn = local_response_normalization

__getattr__ = _missing_in("tf.nn", globals())
