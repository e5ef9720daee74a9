"""Data that ships with the package: handwritten digits, ready without a download.

Stands for `tensorflow/examples/tutorials/mnist/input_data.py`, whose `read_data_sets` this follows: the same three
parts, the same `next_batch`. Left out: downloading, and MNIST itself (no package ships it).
The rule: one seed gives one order of batches, on every machine; only `read_data_sets` without one draws its own.

Design: docs/design/data.md
"""

from dtflab.base.missing_names import missing_in as _missing_in
from dtflab.datasets.dataset import Dataset, Datasets
from dtflab.datasets.digits import digits

__all__ = ["digits", "Dataset", "Datasets"]

__getattr__ = _missing_in("tf.datasets", __all__)
