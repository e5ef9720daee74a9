"""tf.metrics: measures of a model that are kept in variables over many batches."""

from dtflab.base.missing_names import missing_in as _missing_in
from dtflab.nets.metrics import accuracy, mean, mean_absolute_error, mean_cosine_distance, mean_iou
from dtflab.nets.metrics import mean_per_class_accuracy, mean_relative_error, mean_squared_error, mean_tensor
from dtflab.nets.metrics import percentage_below, root_mean_squared_error
from dtflab.nets.metrics_at_k import average_precision_at_k, precision_at_k, precision_at_top_k, recall_at_k
from dtflab.nets.metrics_at_k import recall_at_top_k, sparse_average_precision_at_k, sparse_precision_at_k
from dtflab.nets.metrics_at_thresholds import auc, false_negatives_at_thresholds, false_positives_at_thresholds
from dtflab.nets.metrics_at_thresholds import precision_at_thresholds, recall_at_thresholds, sensitivity_at_specificity
from dtflab.nets.metrics_at_thresholds import specificity_at_sensitivity, true_negatives_at_thresholds
from dtflab.nets.metrics_at_thresholds import true_positives_at_thresholds
from dtflab.nets.metrics_of_counts import false_negatives, false_positives, precision, recall, true_negatives
from dtflab.nets.metrics_of_counts import true_positives

__getattr__ = _missing_in("tf.metrics", globals())
