"""tf.losses: losses, their weights and reductions, and the collection that they are in."""

from dtflab.base.missing_names import missing_in as _missing_in
from dtflab.nets.losses import Reduction, absolute_difference, add_loss, compute_weighted_loss, cosine_distance
from dtflab.nets.losses import get_losses, get_regularization_loss, get_regularization_losses, get_total_loss
from dtflab.nets.losses import hinge_loss, huber_loss, log_loss, mean_pairwise_squared_error, mean_squared_error
from dtflab.nets.losses import sigmoid_cross_entropy, softmax_cross_entropy, sparse_softmax_cross_entropy

__getattr__ = _missing_in("tf.losses", globals())
